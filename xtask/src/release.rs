//! A release, and the archives that packages are made of: the same bytes from the same files.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, bail, ensure};

use crate::{error::CannotStart, programs::run_in, repository};

/// A release: what is built, from which commit.
pub(crate) struct Release {
    pub(crate) version: String,
    /// The time of the commit in seconds since 1970: the time of every file that is packed.
    pub(crate) time: String,
    pub(crate) architecture: &'static str,
}

impl Release {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let packages = repository::metadata(&["--no-deps"])?.packages;
        let package = packages.into_iter().find(|package| package.name == "gyrus");
        let version = package
            .context("the workspace has no package gyrus")?
            .version;
        let time = said(Command::new("git").args(["show", "-s", "--format=%ct", "HEAD"]))?;
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => bail!(CannotStart(format!("packages are not made for {other}"))),
        };
        Ok(Self {
            version,
            time: time.trim().to_owned(),
            architecture,
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("gyrus-{}-linux-{}", self.version, self.architecture)
    }
}

/// Packs what lies in a folder, by name, as nobody's in particular, at the time of the commit.
pub(crate) fn pack_tree(
    release: &Release,
    tree: &Path,
    to: &Path,
    more: &[&str],
) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{}", release.time)]);
    tar.args(more).args(["--create", "--file"]).arg(to);
    run_in(tree, tar.args(packed(tree)?))
}

/// Returns the names of what was packed so far, in order.
pub(crate) fn packed(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}

/// Runs a command and returns what it printed.
pub(crate) fn said(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        CannotStart(format!("`{program}` is needed and cannot be run: {error}"))
    })?;
    let wrong = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`{program}` failed: {}",
        wrong.trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}
