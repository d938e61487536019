//! Fuzzes what reads bytes that others wrote.
//!
//! The compiler is told to count what runs, and the counts lead to new inputs. For that everything
//! is built once more, in a folder of its own; build scripts are not, as they are built for the
//! host and the rest is for a named target.

use anyhow::{Context, bail};

use crate::{error::CannotStart, repository};

/// Runs it with these arguments. It says itself what it found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let about = std::process::Command::new("rustc").arg("-vV").output()?;
    let about = String::from_utf8_lossy(&about.stdout);
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`rustc -vV` does not name the host")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = repository::root()?.join(target).join("fuzz");
    let found = folder.join("found");
    let fuzz = [
        "run",
        "--quiet",
        "--package",
        "gyrus-fuzz",
        "--target",
        host,
    ];
    let mut command = repository::cargo(&fuzz)?;
    command
        .arg("--")
        .arg("--folder")
        .arg(&found)
        .args(arguments)
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", "-Cinstrument-coverage")
        // Checks of sums and of assumptions stay on.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("LLVM_PROFILE_FILE", "/dev/null");
    let status = command.status()?;
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => bail!(CannotStart("`fuzz` did not start".to_owned())),
        Some(1) => bail!("a property does not hold"),
        _ => bail!(
            "`fuzz` ended with {status}: the input that it tried last is `…-last` in {}",
            found.display()
        ),
    }
}
