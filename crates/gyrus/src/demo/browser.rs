//! Whether there is a browser to show something in, and how there could be one.

use std::io::{BufRead, stdin};

use gyrus_screen::LaunchError;

use super::{Wanted, report::Report};
use crate::{
    browser, failure::Failure, home::Home, output, programs, show::paint::Paint, terminal,
};

/// The command that brings one.
const INSTALL: &str = "apt-get install --yes --no-install-recommends chromium";

/// Whether a browser is installed. Where none is, installs one if the person wants that; else says
/// what is left out.
pub(super) fn installed(report: &Report, wanted: &Wanted) -> Result<bool, Failure> {
    if let Some(why) = browser::missing() {
        let is_root = rustix::process::geteuid().is_root();
        let command = match is_root {
            true => INSTALL.to_owned(),
            false => format!("sudo {INSTALL}"),
        };
        report.say(Paint::Plain, &format!("\n{why}."))?;
        let helps = matches!(why, LaunchError::NoProgram { .. });
        if !helps || !(wanted.install || (!wanted.json && wants_it(&command)?)) {
            let how = match helps {
                true => format!(" It needs a browser: {command}"),
                false => String::new(),
            };
            let left_out = format!("Left out: the shop.{how}\nInstead: files in a folder.");
            report.say(Paint::Plain, &left_out)?;
            return Ok(false);
        }
        install(&command, is_root)?;
    }
    Ok(true)
}

/// Whether it works here; else says what is left out.
pub(super) async fn works(home: &Home, report: &Report) -> Result<bool, Failure> {
    match browser::prove(home).await {
        Ok(_) => Ok(true),
        Err(why) => {
            report.say(
                Paint::Plain,
                &format!(
                    "\nLeft out: the shop, because the browser does not work here: {why}.\n\
                     `gyrus doctor` says more. Instead: files in a folder."
                ),
            )?;
            Ok(false)
        }
    }
}

fn wants_it(command: &str) -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Ok(false);
    }
    let mut out = output::standard();
    write!(out, "Install it now, by `{command}`? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn install(command: &str, is_root: bool) -> Result<(), Failure> {
    let update = if is_root {
        "apt-get update"
    } else {
        "sudo apt-get update"
    };
    let done = programs::shell(&format!("{update} && {command}"))?
        // What it prints is no finding of the demo.
        .stdout(std::process::Stdio::from(std::io::stderr()))
        .status()
        .map_err(|error| Failure::failed("the browser cannot be installed").because(&error))?;
    match done.success() && browser::missing().is_none() {
        true => Ok(()),
        false => Err(Failure::failed("the browser was not installed")
            .hint(format!("run it yourself and look what it says: {command}"))),
    }
}
