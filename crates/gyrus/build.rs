//! Names the commit of a released build, so that two builds of one version are told apart. A build for
//! development is not made again for each commit.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_released = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let build = match is_released.then(commit).flatten() {
        Some(commit) => format!("{version}+{commit}"),
        None => version,
    };
    println!("cargo::rustc-env=GYRUS_BUILD={build}");
}

/// Returns the time and the name of the commit that is checked out, so that later builds are known as
/// later; `None` outside a clone.
fn commit() -> Option<String> {
    // Whatever moves the commit adds a line to this file.
    println!(
        "cargo::rerun-if-changed={}",
        git(&["rev-parse", "--git-path", "logs/HEAD"])?
    );
    let date = "--date=format-local:%Y%m%d%H%M%S";
    git(&["show", "-s", "--abbrev=8", date, "--format=%cd.%h", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let said = Command::new("git")
        .args(arguments)
        .env("TZ", "UTC")
        .output();
    let said = said.ok()?;
    let said = said.status.success().then_some(said.stdout)?;
    Some(String::from_utf8(said).ok()?.trim().to_owned())
}
