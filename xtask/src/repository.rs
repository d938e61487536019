//! The repository's root, and cargo's metadata of it.

use std::{env, path::PathBuf, process::Command};

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: call this as `cargo xtask`")?;
    let root = PathBuf::from(xtask).join("..");
    root.canonicalize()
        .with_context(|| format!("cannot find the repository at {}", root.display()))
}

/// The cargo that started this process, to be run in the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()?);
    Ok(command)
}

/// Whether `cargo NAME` is installed.
pub(crate) fn has_subcommand(name: &str) -> anyhow::Result<bool> {
    let output = cargo(&[name, "--version"])?
        .output()
        .context("cannot run cargo")?;
    Ok(output.status.success())
}

/// The part of `cargo metadata` that is looked at here.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Members of the workspace; their dependencies too, where these were asked for.
    pub(crate) packages: Vec<Package>,
}

/// A package as its manifest describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) license: Option<String>,
    /// The registry or repository that it comes from; `None` for a path.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a package's dependency tables.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// Asks `cargo metadata`, offline, with `arguments` beside the usual ones.
pub(crate) fn metadata(arguments: &[&str]) -> anyhow::Result<Metadata> {
    let output = cargo(&["metadata", "--offline", "--format-version", "1"])?
        .args(arguments)
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).context("cannot read what `cargo metadata` printed")
}
