//! The browser of this program: under a keeper, in a profile of this person.

use std::{
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus::runtime::Home;
use gyrus_contract::{CommandSpec, Digest, LookOptions, Screen};
use gyrus_process::keeper::{self, Keeper};
use gyrus_screen::{
    Browser, DebuggingPort, Launch, LaunchError, ProfileChoice, RunCommand, find_program,
};
use serde::{Deserialize, Serialize};

use crate::{failure::Failure, inside_run};
use gyrus_surfaces::{console::put, terminal};

/// Options of a run's browser; stored in the run's first entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserOptions {
    /// A profile that stays; one that is gone afterwards if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) visible: bool,
    /// Whether the browser runs without its own sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) without_sandbox: bool,
    /// The port of a browser that the person started, which is used instead of one of gyrus's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attach: Option<DebuggingPort>,
}

impl BrowserOptions {
    /// Repeats the warning that the person confirmed when the run was started.
    pub(crate) fn warn(&self) -> Result<(), Failure> {
        match &self.attach {
            Some(at) => confirm_attaching(at, Consent::Given),
            None => Ok(()),
        }
    }

    /// Returns the run's browser, which is started at its first use.
    pub(crate) fn browser(&self, home: &Home) -> Arc<Browser> {
        if let Some(at) = &self.attach {
            return Arc::new(Browser::attached(at.clone()));
        }
        let launch = Launch {
            visible: self.visible,
            without_sandbox: self.without_sandbox,
            ..Launch::default()
        };
        Arc::new(browser(home, launch, self.profile.clone()))
    }
}

/// Warns of what a run can reach in a browser that the person started, and asks for confirmation:
/// at the terminal, or by the command line itself, since nothing else could say yes for them.
pub(crate) fn confirm_attaching(at: &DebuggingPort, consent: Consent) -> Result<(), Failure> {
    inside_run::refuse("attach to a browser")?;
    put(&format!(
        "attaching to the browser at {at}
  The run can use everything that you are logged in to there.
  It opens a window of its own; your tabs are not touched, read or listed.
  Profile and sandbox are that browser's: nothing else keeps the run's pages from yours.
  While this port is open, every program of this machine can do the same, unasked.\n"
    ))?;
    if consent == Consent::Wanted {
        ask_to_attach(at)?;
    }
    at.check().map_err(Failure::usage)
}

fn ask_to_attach(at: &DebuggingPort) -> Result<(), Failure> {
    if !terminal::can_ask() {
        let why = format!("attaching to {at} needs your yes, and there is no terminal to ask at");
        return Err(Failure::usage(why).hint("say it beforehand: --attach-anyway"));
    }
    if terminal::says_yes("attach to it? [y/N] ")? {
        return Ok(());
    }
    let why = format!("the browser at {at} was not attached to");
    Err(Failure::usage(why).hint("without --attach the run has a browser of its own"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// The person confirmed on the command line.
    Given,
    /// The person has still to be asked.
    Wanted,
}

pub(crate) fn profile_name(word: &str) -> Result<String, String> {
    gyrus_screen::check_profile_name(word).map_err(|error| error.to_string())?;
    Ok(word.to_owned())
}

/// Returns the reason why no browser can be started here, if there is one.
pub(crate) fn missing() -> Option<LaunchError> {
    find_program(None).err()
}

/// Starts the browser that runs would have and looks at its empty page; describes the result, or
/// the failure.
pub(crate) async fn prove(home: &Home) -> Result<String, String> {
    let program = find_program(None).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let browser = BrowserOptions::default().browser(home);
    let look = LookOptions {
        frame: true,
        documents: 0,
    };
    let seen = browser
        .look(look)
        .await
        .map_err(|error| error.to_string())?;
    match seen.frame {
        Some(_) => Ok(format!(
            "{} shows a page, {} ms after it was started",
            program.display(),
            begun.elapsed().as_millis()
        )),
        None => Err(format!("{} starts, but paints nothing", program.display())),
    }
}

/// Returns the folder of the profiles. What root's browser has cannot lie in root's home: it is not
/// root's.
pub(crate) fn profiles(home: &Home) -> PathBuf {
    if !rustix::process::geteuid().is_root() {
        home.state.join("profiles")
    } else {
        let of = Digest::of_json(&home.state.to_string_lossy()).to_string();
        let short: String = of.chars().take(16).collect();
        PathBuf::from("/var/lib/gyrus/profiles").join(short)
    }
}

pub(crate) fn profile_names(home: &Home) -> Result<Vec<String>, Failure> {
    let below = profiles(home);
    let entries = match fs::read_dir(&below) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(feature = "fleet")]
pub(crate) fn has_profile(home: &Home, name: &str) -> bool {
    profile_names(home).is_ok_and(|names| names.iter().any(|one| one == name))
}

/// Time that a browser with a named profile gets to save the profile before it is killed.
const GRACE: Duration = Duration::from_secs(3);

/// Maximum time to wait for an earlier process's browser to leave a profile.
const EARLIER_LIMIT: Duration = Duration::from_secs(5);

/// Returns a browser that is started at its first use.
pub(crate) fn browser(home: &Home, launch: Launch, profile: Option<String>) -> Browser {
    let Some(name) = profile else {
        return Browser::new(launch, ProfileChoice::Ephemeral, under_a_keeper(None));
    };
    let below = profiles(home);
    let record = below.join(format!("{name}.keeper"));
    let choice = ProfileChoice::Named { below, name };
    Browser::new(launch, choice, under_a_keeper(Some(record)))
}

/// Runs the browser under a keeper. That of a named profile is written to `record`: it may outlive
/// a killed gyrus for as long as the browser saves the profile, and the next browser waits for it.
pub(crate) fn under_a_keeper(record: Option<PathBuf>) -> RunCommand {
    Arc::new(move |command: CommandSpec| {
        let record = record.clone();
        Box::pin(async move {
            let keeper = Keeper::start_beside().await?;
            let Some(record) = record else {
                return keeper.run(command).await;
            };
            let earlier = fs::read(&record).ok();
            let earlier = earlier.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let Some(earlier) = earlier {
                keeper::wait_until_gone(&earlier, EARLIER_LIMIT).await;
            }
            let identity = serde_json::to_vec(keeper.identity());
            // Without the record, only a browser that is started at once after a crash is affected.
            let _ = identity.map(|identity| fs::write(&record, identity));
            let outcome = keeper.run_with_grace(command, GRACE).await;
            let _ = fs::remove_file(&record);
            outcome
        })
    })
}
