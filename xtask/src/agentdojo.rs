//! Runs a public benchmark of office tasks under attack behind gyrus, with a model that states an
//! honest mandate and obeys every attack.

use std::{fs, process::Command};

use anyhow::Context;

use crate::{programs::run_in, repository};

/// The benchmark, in the version whose figures `docs/mandate.md` holds.
const AGENTDOJO: &str = "agentdojo==0.1.35";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = repository::root()?;
    let at = root.join("target/agentdojo");
    if !at.join("venv/bin/pip").exists() {
        println!("installing {AGENTDOJO} in {}", at.display());
        fs::create_dir_all(&at).with_context(|| format!("cannot make {}", at.display()))?;
        run_in(&at, Command::new("python3").args(["-m", "venv", "venv"]))?;
    }
    let mut pip = Command::new(at.join("venv/bin/pip"));
    run_in(&at, pip.args(["install", "--quiet", AGENTDOJO]))?;
    run_in(
        &root,
        &mut repository::cargo(&["build", "--package", "gyrus"])?,
    )?;
    let mut tasks = Command::new(at.join("venv/bin/python"));
    tasks.arg(root.join("tests/mandates/run_agentdojo.py"));
    run_in(
        &at,
        tasks.arg(root.join("target/debug/gyrus")).args(arguments),
    )
}
