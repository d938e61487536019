//! Whether there is a browser to show something in, and how there could be one.

use gyrus_process::Programs;
use gyrus_screen::{LaunchError, find_program};

use super::{DemoOptions, report::Report};
use crate::{Installation, LabConsole, LabError};
use gyrus_surfaces::projection::Tone;

/// The command that brings one.
const INSTALL: &str = "apt-get install --yes --no-install-recommends chromium";

/// Whether a browser is installed. Where none is, installs one if the person wants that; else says
/// what is left out.
pub(super) fn installed(report: &Report<'_>, options: &DemoOptions) -> Result<bool, LabError> {
    if let Err(why) = find_program(None) {
        let is_root = rustix::process::geteuid().is_root();
        let command = if is_root {
            INSTALL.to_owned()
        } else {
            format!("sudo {INSTALL}")
        };
        report.say(Tone::Plain, &format!("\n{why}."))?;
        let helps = matches!(why, LaunchError::NoProgram { .. });
        if !helps || !(options.install || (!options.json && wants_it(report.console, &command)?)) {
            let how = if helps {
                format!(" It needs a browser: {command}")
            } else {
                String::new()
            };
            let left_out = format!("Left out: the shop.{how}\nInstead: files in a folder.");
            report.say(Tone::Plain, &left_out)?;
            return Ok(false);
        }
        install(&command, is_root)?;
    }
    Ok(true)
}

/// Whether it works here; else says what is left out.
pub(super) async fn works(gyrus: &dyn Installation, report: &Report<'_>) -> Result<bool, LabError> {
    match gyrus.browser_works().await {
        Ok(()) => Ok(true),
        Err(why) => {
            report.say(
                Tone::Plain,
                &format!(
                    "\nLeft out: the shop, because the browser does not work here: {why}.\n\
                     `gyrus doctor` says more. Instead: files in a folder."
                ),
            )?;
            Ok(false)
        }
    }
}

fn wants_it(console: &dyn LabConsole, command: &str) -> Result<bool, LabError> {
    if !console.can_ask() {
        return Ok(false);
    }
    let typed = console.ask(&format!("Install it now, by `{command}`? [y/N] "))?;
    let typed = typed.unwrap_or_default().trim().to_lowercase();
    Ok(matches!(typed.as_str(), "y" | "yes"))
}

fn install(command: &str, is_root: bool) -> Result<(), LabError> {
    let update = if is_root {
        "apt-get update"
    } else {
        "sudo apt-get update"
    };
    let done = Programs::of_this_process()
        .shell(&format!("{update} && {command}"))
        .map_err(LabError::failed)?
        // What it prints is not a finding of the demo.
        .stdout(std::process::Stdio::from(std::io::stderr()))
        .status()
        .map_err(|error| LabError::failed("the browser cannot be installed").because(error))?;
    if done.success() && find_program(None).is_ok() {
        Ok(())
    } else {
        Err(LabError::failed("the browser was not installed")
            .hint(format!("run it yourself and look what it says: {command}")))
    }
}
