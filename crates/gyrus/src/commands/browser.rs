//! `gyrus browser`

use std::{
    fs,
    io::{Write, stdout},
};

use clap::{Args, Subcommand};
use gyrus_screen::{Launch, Profile};

use crate::{
    Gyrus, browser, console::put, drive, exit::Code, failure::Failure, new_run::address, own_child,
};

/// Log in once by hand, for later runs: profiles of the browser
#[derive(Args)]
pub(crate) struct Browser {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Open a browser in which you log in; later runs have that with --profile
    ///
    /// What you type goes to the page alone. Close the window when you are done.
    Login {
        /// Where to log in
        #[arg(value_name = "URL")]
        address: String,
        /// The profile that remembers it
        #[arg(long, value_name = "NAME", default_value = "default")]
        profile: String,
    },
    /// List the profiles that there are
    Profiles,
    /// Remove a profile with everything in it: logins, cookies, history
    Forget {
        /// Its name
        profile: String,
    },
}

impl Browser {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        own_child::refuse("use your browser profiles")?;
        let home = gyrus.home()?;
        match self.verb {
            Verb::Login {
                address: given,
                profile,
            } => {
                let address = address(&given)?;
                let launch = Launch {
                    visible: true,
                    ..Launch::default()
                };
                drive::runtime()?.block_on(async {
                    let opened = browser::browser(&home, launch, Some(profile.clone()));
                    opened.open(&address).await.map_err(failed)?;
                    put(&format!(
                        "log in there, then close the window; runs have it with --profile {profile}\n"
                    ))?;
                    opened.closed().await;
                    Ok(Code::Reached)
                })
            }
            Verb::Profiles => {
                let mut out = stdout().lock();
                for name in browser::profile_names(&home)? {
                    writeln!(out, "{name}")?;
                }
                Ok(Code::Reached)
            }
            Verb::Forget { profile } => {
                let below = browser::profiles(&home);
                if !browser::profile_names(&home)?.contains(&profile) {
                    return Err(Failure::usage(format!("there is no profile `{profile}`"))
                        .hint("gyrus browser profiles lists them"));
                }
                // Whoever holds the lease uses it.
                let held = Profile::named(&below, &profile).map_err(failed)?;
                fs::remove_dir_all(held.folder()).map_err(|error| {
                    Failure::failed(format!("the profile `{profile}` cannot be removed"))
                        .because(&error)
                })?;
                put(&format!("the profile `{profile}` is gone\n"))?;
                Ok(Code::Reached)
            }
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}
