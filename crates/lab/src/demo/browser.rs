//! Whether there is a browser to show something in, and how there could be one.

use gyrus_process::Programs;
use gyrus_screen::{LaunchError, find_program};

use super::{DemoOptions, report::DemoReport};
use crate::{Installation, LabConsole, LabError};
use gyrus_surfaces::projection::Tone;

/// The command that installs a browser.
const INSTALL: &str = "apt-get -o DPkg::Lock::Timeout=300 install --yes \
                       --no-install-recommends chromium";

/// Whether a browser is installed. Where none is, installs one if the person wants that; else says
/// what is left out.
pub(super) fn installed(report: &DemoReport<'_>, options: &DemoOptions) -> Result<bool, LabError> {
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

/// Whether the browser works here; if not, prints what is left out.
pub(super) async fn works(
    gyrus: &dyn Installation,
    report: &DemoReport<'_>,
) -> Result<bool, LabError> {
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

fn wants_it(console: &LabConsole, command: &str) -> Result<bool, LabError> {
    if !gyrus_surfaces::terminal::can_ask() {
        return Ok(false);
    }
    let typed = console.ask(&format!("Install it now, by `{command}`? [y/N] "))?;
    let typed = typed.unwrap_or_default().trim().to_lowercase();
    Ok(matches!(typed.as_str(), "y" | "yes"))
}

/// Returns a script that installs after an update. apt waits by itself for another one that
/// installs, but not for one that updates: that is tried again for five minutes.
fn script(update: &str, install: &str) -> String {
    format!(
        "tries=0\n\
         until said=$({update} 2>&1); do\n\
         case $said in *lists/lock*) ;; *) printf '%s\\n' \"$said\" >&2; exit 1 ;; esac\n\
         tries=$((tries + 1)); [ \"$tries\" -le 300 ] || exit 1; sleep 1\n\
         done\n\
         {install}"
    )
}

fn install(command: &str, is_root: bool) -> Result<(), LabError> {
    let update = if is_root {
        "apt-get update"
    } else {
        "sudo apt-get update"
    };
    let done = Programs::of_this_process()
        .shell(&script(update, command))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_apt_that_updates_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = |update: &str| {
            let run = std::process::Command::new("sh")
                .args(["-c", &script(update, "echo installed")])
                .current_dir(folder.path())
                .output()
                .expect("there is a shell");
            (run.status.success(), run.stdout)
        };
        // The first time the lock is held.
        let busy = "if [ -e free ]; then true; else touch free; \
                    echo 'E: Could not get lock /var/lib/apt/lists/lock' >&2; false; fi";
        assert_eq!(said(busy), (true, b"installed\n".to_vec()));
        assert_eq!(said("false"), (false, Vec::new()));
    }
}
