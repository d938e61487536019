//! The server as a service of the person's session: a unit of systemd, and the dot among the programs
//! that a desktop starts (Desktop Application Autostart Specification, freedesktop.org).

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use gyrus_process::Programs;
use gyrus_surfaces::console::put;

use crate::{Gyrus, exit::Code, failure::Failure, private_file};

/// The port of the server if none is given.
pub(super) const PORT: u16 = 7717;

/// The first line of files that `gyrus serve install` writes, by which they are recognised.
const MARK: &str = "# Written by `gyrus serve install`; `gyrus serve uninstall` removes it.\n";

const UNIT: &str = "gyrus.service";

/// Commands that put the unit to work.
const START: [&[&str]; 3] = [
    &["--user", "daemon-reload"],
    &["--user", "enable", UNIT],
    // One that runs already has the old settings.
    &["--user", "restart", UNIT],
];

/// Commands of systemd that end the service.
const END: [&[&str]; 1] = [&["--user", "disable", "--now", UNIT]];

/// Let the server start with your session, and the dot with your desktop
///
/// Writes a unit for systemd and, where this gyrus knows desktops, an entry for the desktop's
/// autostart. Keys in the environment of your shell are not the service's: `gyrus setup` stores
/// them.
#[derive(Args)]
pub(super) struct InstallService {
    /// Port on this machine
    #[arg(long, default_value_t = PORT)]
    port: u16,
}

struct ServiceFiles {
    unit: PathBuf,
    dot: PathBuf,
}

impl ServiceFiles {
    fn of(gyrus: &Gyrus) -> Result<Self, Failure> {
        let environment = &gyrus.environment;
        let usual = || Some(environment.home.as_ref()?.join(".config"));
        let folder = environment.xdg_config_home.clone().or_else(usual);
        let folder = folder.ok_or_else(|| {
            Failure::usage("there is no folder for the service: HOME is not set, or not absolute")
        })?;
        Ok(Self {
            unit: folder.join("systemd/user").join(UNIT),
            dot: folder.join("autostart/gyrus-dot.desktop"),
        })
    }
}

impl InstallService {
    pub(super) fn execute(&self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let files = ServiceFiles::of(gyrus)?;
        let program = std::env::current_exe()?;
        let program = word(&program)?;
        let home = gyrus.environment.gyrus_home.as_deref();
        let home = home
            .map(|home| word(&std::path::absolute(home)?))
            .transpose()?;
        write(
            &files.unit,
            &unit(program.as_str(), home.as_deref(), self.port),
        )?;
        if cfg!(feature = "desktop") {
            write(&files.dot, &autostart(&program, home.as_deref()))?;
        }
        if systemctl(&START)? {
            put("the server runs, and starts with your session from now on\n")?;
        }
        put("to see its address: gyrus serve open\n")?;
        Ok(Code::Reached)
    }
}

pub(super) fn uninstall(gyrus: &Gyrus) -> Result<Code, Failure> {
    let files = ServiceFiles::of(gyrus)?;
    if is_own(&files.unit)? {
        systemctl(&END)?;
    }
    let mut removed = false;
    for file in [&files.unit, &files.dot] {
        if is_own(file)? {
            fs::remove_file(file)?;
            put(&format!("removed {}\n", file.display()))?;
            removed = true;
        }
    }
    if !removed {
        put("there is no service of gyrus\n")?;
    }
    Ok(Code::Reached)
}

fn unit(program: &str, home: Option<&str>, port: u16) -> String {
    let home = home.map_or_else(String::new, |home| {
        format!("Environment=GYRUS_HOME={home}\n")
    });
    format!(
        "{MARK}[Unit]\n\
         Description=gyrus: runs, agents and their dashboard\n\
         \n\
         [Service]\n\
         ExecStart={program} serve --port {port}\n\
         {home}Restart=on-failure\n\
         RestartSec=5\n\
         # It parks what is at work.\n\
         KillMode=mixed\n\
         TimeoutStopSec=40\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

fn autostart(program: &str, home: Option<&str>) -> String {
    let home = home.map_or_else(String::new, |home| format!("env GYRUS_HOME={home} "));
    format!(
        "{MARK}[Desktop Entry]\n\
         Type=Application\n\
         Name=gyrus: what runs do\n\
         Exec={home}{program} dot\n\
         X-GNOME-Autostart-enabled=true\n"
    )
}

/// Returns a path in the syntax of both kinds of files, which give some characters a meaning.
fn word(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().unwrap_or_default();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._+@,-".contains(letter);
    if text.is_empty() || !text.chars().all(is_plain) {
        let name = path.display();
        let failure = Failure::usage(format!(
            "`{name}` cannot be named in a unit: it has spaces or special characters"
        ));
        return Err(failure.hint("move it to a plain path"));
    }
    Ok(text.to_owned())
}

/// Whether a file exists and was written by `gyrus serve install`.
fn is_own(path: &Path) -> io::Result<bool> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.starts_with(MARK)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let shown = path.display();
    let failed =
        |error: &io::Error| Failure::failed(format!("{shown} cannot be written")).because(error);
    if path.exists() && !is_own(path).map_err(|error| failed(&error))? {
        let failure = Failure::usage(format!("{shown} is there already, and not of gyrus"));
        return Err(failure.hint("move the file away, then install again"));
    }
    private_file::write(path, text.as_bytes()).map_err(|error| failed(&error))?;
    Ok(put(&format!("wrote {shown}\n"))?)
}

/// Runs commands of systemd, and returns whether they succeeded; if not, the person is told what to
/// type.
fn systemctl(commands: &[&[&str]]) -> Result<bool, Failure> {
    let program = Programs::of_this_process().find("systemctl");
    for arguments in commands {
        let done = program.as_ref().is_ok_and(|program| {
            let done = Command::new(&program.path).args(*arguments).output();
            done.is_ok_and(|done| done.status.success())
        });
        if !done {
            put("systemd does not answer for your session; there, type:\n")?;
            for arguments in commands {
                put(&format!("  systemctl {}\n", arguments.join(" ")))?;
            }
            return Ok(false);
        }
    }
    Ok(true)
}
