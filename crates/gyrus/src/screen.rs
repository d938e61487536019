//! The screen of a run, as its first entry names it: a browser, or a desktop.

use std::path::Path;

use gyrus::runtime::{Confinement, Home, RunScreen};
use gyrus_kernel::RunStarted;
use gyrus_runtime::request::{ScreenFlags, ScreenWord};
use gyrus_screen::{DebuggingPort, LaunchError, has_display};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    browser::{self, BrowserOptions, Consent},
    failure::{Failure, parsed},
    mcp::StartSurroundings,
};

/// Options of a run's screen; stored in the run's first entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ScreenOptions {
    /// The options of a desktop. Every object of [`BrowserOptions`] lacks what names it.
    Desktop(DesktopOptions),
    Browser(BrowserOptions),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DesktopOptions {
    pub(crate) desktop: DesktopKind,
    /// The display that the person works at; `None` for a nested desktop that nobody sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) display: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DesktopKind {
    X11,
}

impl ScreenOptions {
    /// Returns the options that a run was started with; `None` for one without a screen.
    pub(crate) fn of(screen: Option<&Value>) -> Option<Self> {
        serde_json::from_value(screen?.clone()).ok()
    }

    /// Returns the screen with which a run was started; it is started when it is needed.
    ///
    /// # Errors
    /// This program was built without desktops.
    pub(crate) fn open(
        screen: Option<&Value>,
        around: &StartSurroundings<'_>,
    ) -> Result<Option<RunScreen>, Failure> {
        let screen = Self::of(screen)
            .map(|options| options.screen(around.home, around.workspace, around.confinement));
        screen.transpose()
    }

    /// Repeats the warning that the person confirmed when the run was started.
    pub(crate) fn warn(&self) -> Result<(), Failure> {
        match self {
            Self::Browser(options) => options.warn(),
            Self::Desktop(_) => Ok(()),
        }
    }

    /// Returns the screen of runs that work in a folder; it is started when it is needed.
    ///
    /// # Errors
    /// This program was built without desktops.
    pub(crate) fn screen(
        &self,
        home: &Home,
        workspace: &Path,
        confinement: Confinement,
    ) -> Result<RunScreen, Failure> {
        match self {
            Self::Browser(options) => Ok(RunScreen::Browser(options.browser(home))),
            Self::Desktop(options) => options.screen(home, workspace, confinement),
        }
    }
}

/// Asks once for confirmation that a run may work in a person's own browser.
pub(crate) fn confirm(flags: &ScreenFlags) -> Result<(), Failure> {
    let Some(at) = endpoint(flags)? else {
        return Ok(());
    };
    let consent = if flags.attach_anyway {
        Consent::Given
    } else {
        Consent::Wanted
    };
    browser::confirm_attaching(&at, consent)
}

fn endpoint(flags: &ScreenFlags) -> Result<Option<DebuggingPort>, Failure> {
    let attach = flags.attach.as_deref();
    attach.map(|at| parsed("--attach", at)).transpose()
}

impl ScreenOptions {
    /// Returns the screen of a run that continues the session of the run `before` it: the same,
    /// unless a flag names one.
    pub(crate) fn of_session(
        flags: &ScreenFlags,
        before: Option<&RunStarted>,
    ) -> Result<Option<Self>, Failure> {
        let is_given = flags.screen.is_some()
            || flags.leads().is_some()
            || flags.profile.is_some()
            || flags.visible
            || flags.browser_without_its_sandbox;
        let before = before.filter(|_| !is_given);
        match before.and_then(|before| Self::of(before.screen.as_ref())) {
            Some(options) => {
                options.warn()?;
                Ok(Some(options))
            }
            None => Self::of_flags(flags),
        }
    }

    pub(crate) fn of_flags(flags: &ScreenFlags) -> Result<Option<Self>, Failure> {
        if flags.screen == Some(ScreenWord::X11) {
            let options = DesktopOptions::of_flags(flags)?;
            options.check()?;
            return Ok(Some(Self::Desktop(options)));
        }
        if flags.display.is_some() {
            return Err(Failure::usage("--display goes with --screen x11 only"));
        }
        Ok(browser_options(flags)?.map(Self::Browser))
    }
}

fn browser_options(flags: &ScreenFlags) -> Result<Option<BrowserOptions>, Failure> {
    let wanted = flags.leads().is_some() || flags.profile.is_some() || flags.visible;
    if let Some(profile) = &flags.profile {
        browser::profile_name(profile)
            .map_err(|error| Failure::usage(format!("invalid value for `--profile`: {error}")))?;
    }
    let no_display = || (flags.visible && !has_display()).then_some(LaunchError::NoDisplay);
    match flags.screen {
        Some(ScreenWord::None) if wanted => Err(Failure::usage(
            "--screen none does not go with --url, --profile, --visible or --attach",
        )),
        Some(ScreenWord::None) => Ok(None),
        _ if flags.attach.is_some() => Ok(Some(BrowserOptions {
            attach: endpoint(flags)?,
            ..BrowserOptions::default()
        })),
        None if !wanted && browser::missing().is_some() => Ok(None),
        _ => match browser::missing().or_else(no_display) {
            Some(why) => Err(Failure::usage(why)),
            None => Ok(Some(BrowserOptions {
                profile: flags.profile.clone(),
                visible: flags.visible,
                without_sandbox: flags.browser_without_its_sandbox,
                attach: None,
            })),
        },
    }
}

impl DesktopOptions {
    fn of_flags(flags: &ScreenFlags) -> Result<Self, Failure> {
        let is_browsers = flags.url.is_some()
            || flags.attach.is_some()
            || flags.profile.is_some()
            || flags.visible
            || flags.browser_without_its_sandbox;
        if is_browsers {
            return Err(Failure::usage(
                "--screen x11 does not go with --url, --profile, --visible, --attach or \
                 --browser-without-its-sandbox",
            ));
        }
        Ok(Self {
            desktop: DesktopKind::X11,
            display: flags.display.clone(),
        })
    }

    #[cfg(feature = "desktop")]
    pub(crate) fn screen(
        &self,
        home: &Home,
        workspace: &Path,
        confinement: Confinement,
    ) -> Result<RunScreen, Failure> {
        use gyrus_screen::{Desktop, DesktopConnections, DesktopPlace};

        let connections = std::sync::Arc::<DesktopConnections>::default();
        let place = match &self.display {
            Some(display) => DesktopPlace::Own {
                display: display.clone(),
            },
            None => DesktopPlace::Nested {
                width: WIDTH,
                height: HEIGHT,
                enclosure: enclosure(home, workspace, confinement, connections.clone()),
            },
        };
        let desktop = Desktop::connected(place, connections);
        Ok(RunScreen::Desktop(desktop.into()))
    }

    #[cfg(not(feature = "desktop"))]
    pub(crate) fn screen(&self, _: &Home, _: &Path, _: Confinement) -> Result<RunScreen, Failure> {
        Err(without_desktops())
    }

    /// Checks that the desktop can be started, before a run with it is created.
    ///
    /// # Errors
    /// A part of it is missing.
    #[cfg(feature = "desktop")]
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.display.is_some() {
            return Ok(());
        }
        gyrus_screen::nested_parts().map_err(Failure::usage)
    }

    /// Returns the failure with the advice how to get a gyrus with desktops.
    ///
    /// # Errors
    /// Always, since this program was built without desktops.
    #[cfg(not(feature = "desktop"))]
    pub(crate) fn check(&self) -> Result<(), Failure> {
        Err(without_desktops())
    }
}

/// The size of a desktop of a run's own, in pixels.
#[cfg(feature = "desktop")]
const WIDTH: u16 = 1280;
#[cfg(feature = "desktop")]
const HEIGHT: u16 = 800;

/// Returns the function that confines a desktop's programs: in a sandbox, if it holds and has a
/// `/tmp` of its own for the display's socket, so that programs change nothing but the folder, and
/// reach what `connections` let through.
#[cfg(feature = "desktop")]
fn enclosure(
    home: &Home,
    workspace: &Path,
    confinement: Confinement,
    connections: std::sync::Arc<gyrus_screen::DesktopConnections>,
) -> gyrus_screen::MakeEnclosure {
    use gyrus_screen::Enclosure;

    let (home, workspace) = (home.clone(), workspace.to_owned());
    let open = Enclosure::opener(crate::browser::under_a_keeper(None));
    if confinement == Confinement::Unsandboxed {
        return open;
    }
    std::sync::Arc::new(move || {
        if !gyrus::runtime::sandbox::has_own_folders(&home) {
            return open();
        }
        let held = gyrus_screen::TemporaryFolder::of_desktop()
            .map_err(|error| format!("the folder of a desktop cannot be made: {error}"))?;
        let mut containment = gyrus::runtime::sandbox::plan(&home, held.path(), &workspace)?;
        containment.network = gyrus_contract::Network::Proxy;
        let run = gyrus::runtime::sandbox::run_connected(containment, connections.clone());
        Ok(Enclosure::confined(run, workspace.clone(), held))
    })
}

/// Returns the failure with the advice how to get a gyrus with desktops.
#[cfg(not(feature = "desktop"))]
pub(crate) fn without_desktops() -> Failure {
    let failure = Failure::usage("this gyrus was built without desktops");
    failure.hint("build it with them: cargo build --release --features desktop")
}
