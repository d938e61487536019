//! A folder to work in and a home, for real runs of a scripted model, and what must hold afterwards.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

/// Steps of a run: each adds a line to the ledger.
const STEPS: usize = 5;

/// The content of a person's file.
const OF_PERSON: &str = "these are my own words\n";

pub(super) const RUN: [&str; 8] = [
    "run",
    "write it down",
    "--workdir",
    ".",
    "--approve",
    "auto",
    "--on-ask",
    "deny",
];

pub(super) struct World {
    folder: TempDir,
    program: PathBuf,
}

impl World {
    pub(super) fn new(program: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("gyrus-endure-").tempdir()?;
        let world = Self {
            folder,
            program: program.to_owned(),
        };
        for name in ["home", "person", "work"] {
            fs::create_dir(world.path(name))?;
        }
        let steps = (1..=STEPS).map(|step| {
            format!(
                "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = \"echo {step} >> ledger.txt\" }} }}]\n"
            )
        });
        let end = "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"done\" } }]\n";
        fs::write(world.path("script.toml"), steps.collect::<String>() + end)?;
        world.settle(&world.path("work"))?;
        Ok(world)
    }

    /// Puts a person's file into a folder that runs work in.
    pub(super) fn settle(&self, work: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(work)?;
        Ok(fs::write(work.join("mine.txt"), OF_PERSON)?)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command that calls another program, with the world's environment and `$GYRUS`.
    pub(super) fn beside(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("person"))
            .env("GYRUS_HOME", self.path("home"))
            .env(
                "GYRUS_MODEL",
                format!("script:{}", self.path("script.toml").display()),
            )
            .env("GYRUS", &self.program)
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(super) fn gyrus(&self, arguments: &[&str]) -> Command {
        let mut command = self.beside(&self.program);
        command.args(arguments);
        command
    }

    /// Runs a command of gyrus to its end.
    pub(super) fn done(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let output = self.gyrus(arguments).output()?;
        not_panicked(&output).with_context(|| format!("`gyrus {}`", arguments.join(" ")))?;
        Ok(output)
    }

    /// Checks that a folder has what its run did: nothing twice, nothing lost that had ended, and not a
    /// byte of the person's touched.
    pub(super) fn check_work(&self, work: &Path) -> anyhow::Result<()> {
        let mine = fs::read_to_string(work.join("mine.txt")).unwrap_or_default();
        ensure!(mine == OF_PERSON, "a person's file was changed: {mine:?}");
        let ledger = fs::read_to_string(work.join("ledger.txt")).unwrap_or_default();
        let lines: Vec<&str> = ledger.lines().collect();
        let all: BTreeSet<&str> = lines.iter().copied().collect();
        ensure!(
            all.len() == lines.len(),
            "something was done twice: {lines:?}"
        );
        ensure!(
            lines.is_sorted(),
            "something was done out of order: {lines:?}"
        );
        Ok(())
    }

    pub(super) fn has_run(&self) -> anyhow::Result<bool> {
        Ok(!self.done(&["runs", "--json"])?.stdout.is_empty())
    }

    /// Lets the run that was begun end, or one that could not begin, and checks it.
    pub(super) fn to_its_end(&self) -> anyhow::Result<()> {
        let arguments: &[&str] = if self.has_run()? {
            &["resume", "last"]
        } else {
            &RUN
        };
        let last = self.done(arguments)?;
        let said = String::from_utf8_lossy(&last.stderr);
        let is_over =
            last.status.success() || said.contains("is over") || said.contains("has ended");
        ensure!(
            is_over,
            "`gyrus {}` ended with {}: {said}",
            arguments[0],
            last.status
        );
        self.check_run()
    }

    /// Checks the newest run of the folder: it is over, and its journal plays again.
    pub(super) fn check_run(&self) -> anyhow::Result<()> {
        self.check_work(&self.path("work"))?;
        let replayed = self.done(&["replay", "last"])?;
        let said = String::from_utf8_lossy(&replayed.stderr);
        ensure!(
            replayed.status.success(),
            "its journal does not replay: {said}"
        );
        Ok(())
    }
}

pub(super) fn not_panicked(output: &Output) -> anyhow::Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!said.contains("panicked at"), "it panicked: {said}");
    Ok(())
}
