//! `gyrus browser`

use std::fs;

use clap::{Args, Subcommand};
use gyrus::runtime::Home;
use gyrus_screen::{Launch, Profile, has_display};
use serde_json::json;

use super::{listing::ListFlags, page_roles::PageRoles, take::OpenerPage};
use crate::{
    Gyrus, browser, drive, exit::Code, failure::Failure, inside_run, new_run::address,
    question::confirm,
};
use gyrus_surfaces::{console::put, output};

/// Log in once by hand, for later runs, and say what forms of sites mean
#[derive(Args)]
pub(crate) struct BrowserCommand {
    #[command(subcommand)]
    verb: BrowserVerb,
}

#[derive(Subcommand)]
enum BrowserVerb {
    /// Open a browser in which you log in; later runs have that with --profile
    ///
    /// What you type goes to the page alone. Close the window when you are done; without a desktop,
    /// you get the address of a page that shows it in any browser.
    Login {
        /// Address of the page to log in at
        #[arg(value_name = "URL")]
        address: String,
        /// The profile that remembers it
        #[arg(long, value_name = "NAME", default_value = "default", value_parser = crate::browser::profile_name)]
        profile: String,
    },
    /// List the profiles that there are
    Profiles(ListFlags),
    /// Remove a profile with everything in it: logins, cookies, history
    Forget {
        /// Its name
        profile: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    Roles(PageRoles),
}

impl BrowserCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("use your browser profiles, or say what forms mean")?;
        let home = gyrus.home()?;
        match self.verb {
            BrowserVerb::Login {
                address: given,
                profile,
            } => {
                let address = address(&given)?;
                drive::runtime()?.block_on(log_in(&home, &address, &profile))
            }
            BrowserVerb::Roles(roles) => roles.execute(&home, gyrus.environment.plain),
            BrowserVerb::Profiles(flags) => {
                let mut out = output::standard();
                for name in browser::profile_names(&home)? {
                    if flags.shows(&mut out, &json!({ "profile": name }))? {
                        writeln!(out, "{name}")?;
                    }
                }
                Ok(Code::Reached)
            }
            BrowserVerb::Forget { profile, yes } => {
                let below = browser::profiles(&home);
                if !browser::profile_names(&home)?.contains(&profile) {
                    return Err(Failure::usage(format!("there is no profile `{profile}`"))
                        .hint("gyrus browser profiles lists them"));
                }
                let what = format!("remove the profile `{profile}` with all its logins");
                confirm(&what, yes)?;
                // Whoever holds the lease uses it.
                let held = Profile::named(&below, &profile).map_err(failed)?;
                let logins = held.folder().with_extension("logins");
                let _ = fs::remove_file(logins);
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

/// Opens a window to log in, or without a desktop a page that any browser shows.
async fn log_in(home: &Home, address: &str, profile: &str) -> Result<Code, Failure> {
    let launch = Launch {
        visible: has_display(),
        ..Launch::default()
    };
    let opened = browser::browser(home, launch.clone(), Some(profile.to_owned()));
    opened.open(address).await.map_err(failed)?;
    if launch.visible {
        put("log in there, then close the window\n")?;
        opened.closed().await;
    } else {
        let mut page = Ok(None);
        opened
            .take_over(None, None, |address| {
                page = OpenerPage::open(home, address, has_display()).map(Some)
            })
            .await
            .map_err(failed)?;
        page?;
    }
    opened.leave().await;
    put(&format!("runs have that login with --profile {profile}\n"))?;
    Ok(Code::Reached)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}
