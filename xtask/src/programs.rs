//! Programs that the tests need and a bare Debian may lack.

use std::{env, process::Command};

use anyhow::{Context, bail, ensure};

use crate::commands::CannotStart;

/// Each program with the Debian package that brings it.
const NEEDED: [(&str, &str); 5] = [
    ("bash", "bash"),
    ("chromium", "chromium"),
    ("git", "git"),
    ("ps", "procps"),
    ("setsid", "util-linux"),
];

/// Installs what is missing if this process may, else says how to.
pub(crate) fn ensure_installed() -> anyhow::Result<()> {
    let packages = missing(&NEEDED, is_on_path);
    if packages.is_empty() {
        return Ok(());
    }
    let command = format!(
        "apt-get install --yes --no-install-recommends {}",
        packages.join(" ")
    );
    if !is_root()? {
        bail!(CannotStart(format!(
            "programs are missing; install them by `sudo {command}`"
        )));
    }
    println!("installing what the tests need: {}", packages.join(" "));
    let status = Command::new("sh")
        .args(["-c", &format!("apt-get update && {command}")])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot run apt-get")?;
    ensure!(
        status.success(),
        CannotStart(format!("`{command}` ended with {status}"))
    );
    Ok(())
}

fn missing<'a>(needed: &[(&str, &'a str)], is_there: impl Fn(&str) -> bool) -> Vec<&'a str> {
    needed
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect()
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> anyhow::Result<bool> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .context("cannot run `id`")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_missing_program_is_named() {
        assert_eq!(missing(&NEEDED, |program| program != "ps"), ["procps"]);
        assert!(missing(&NEEDED, |_| true).is_empty());
        assert!(is_on_path("sh") && !is_on_path("no-such-program"));
    }
}
