//! Every environment variable that gyrus looks at, in one place.
//!
//! They are read once, at the start, and everything else takes them from here. What a tool's
//! commands see of the environment is the tools' business.

use std::{collections::BTreeMap, env, ffi::OsString, path::PathBuf};

use gyrus_surfaces::console::Theme;

/// Puts state and configuration into this one folder.
pub(crate) const GYRUS_HOME: &str = "GYRUS_HOME";
/// The model for runs that name none with `--model`.
pub(crate) const GYRUS_MODEL: &str = "GYRUS_MODEL";
/// The token for `--connect`.
pub(crate) const GYRUS_TOKEN: &str = "GYRUS_TOKEN";
/// Set to anything: `last` is the newest run of all folders. A server sets it for commands that come
/// from elsewhere.
pub(crate) const GYRUS_ANYWHERE: &str = "GYRUS_ANYWHERE";
/// The language servers that may be started, separated by commas; `none` is none.
pub(crate) const GYRUS_LANGUAGE_SERVERS: &str = "GYRUS_LANGUAGE_SERVERS";
/// The folder of notes that runs remember by.
pub(crate) const GYRUS_VAULT: &str = "GYRUS_VAULT";
/// For tests of recovery: the process kills itself once this many entries of its run are on disk.
pub(crate) const GYRUS_CRASH_AFTER: &str = "GYRUS_CRASH_AFTER";
/// For tests of schedules, in debug builds: the clock of triggers is ahead by so many milliseconds.
pub(crate) const GYRUS_CLOCK_AHEAD_MS: &str = "GYRUS_CLOCK_AHEAD_MS";
/// The person's home folder: where state and configuration are by default, and no workspace.
pub(crate) const HOME: &str = "HOME";
/// Folder in which programs keep state, instead of `~/.local/state`.
pub(crate) const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Folder of configuration, instead of `~/.config`.
pub(crate) const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Set to anything: no colours.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// The colours of the terminal, which some terminals set.
pub(crate) const COLORFGBG: &str = "COLORFGBG";
/// `light` or `dark`: the background of the terminal, where it does not say so itself.
pub(crate) const GYRUS_THEME: &str = "GYRUS_THEME";
/// The terminal; one that is `dumb` gets no colours.
pub(crate) const TERM: &str = "TERM";
/// The X display that the person works at.
pub(crate) const DISPLAY: &str = "DISPLAY";
/// The person's name, as approvals record it.
pub(crate) const USER: &str = "USER";

/// The person's editor, for a text that is asked about; before `EDITOR`.
pub(crate) const VISUAL: &str = "VISUAL";
/// The same.
pub(crate) const EDITOR: &str = "EDITOR";

#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) gyrus_home: Option<PathBuf>,
    pub(crate) vault: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) xdg_state_home: Option<PathBuf>,
    pub(crate) xdg_config_home: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) anywhere: bool,
    pub(crate) crash_after: Option<String>,
    pub(crate) clock_ahead_ms: i64,
    pub(crate) display: Option<String>,
    pub(crate) user: Option<String>,
    /// A command line that lets the person change the file named after it.
    pub(crate) editor: Option<String>,
    /// The background of the terminal, if it is known.
    pub(crate) theme: Option<Theme>,
    /// Colours are unwanted or impossible.
    pub(crate) plain: bool,
    /// The terminal cannot move its cursor.
    pub(crate) dumb: bool,
}

impl Environment {
    /// Looks at the process's environment. A variable that is empty counts as absent.
    pub(crate) fn read() -> Self {
        let text = |name| set(name).and_then(|value| value.into_string().ok());
        // The XDG specification: a relative path is to be ignored.
        let absolute = |name| {
            set(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let dumb = set(TERM).is_none_or(|term| term == "dumb");
        Self {
            gyrus_home: set(GYRUS_HOME).map(PathBuf::from),
            vault: set(GYRUS_VAULT).map(PathBuf::from),
            home: absolute(HOME),
            xdg_state_home: absolute(XDG_STATE_HOME),
            xdg_config_home: absolute(XDG_CONFIG_HOME),
            model: text(GYRUS_MODEL),
            token: text(GYRUS_TOKEN),
            anywhere: set(GYRUS_ANYWHERE).is_some(),
            display: text(DISPLAY),
            crash_after: text(GYRUS_CRASH_AFTER),
            clock_ahead_ms: if cfg!(debug_assertions) {
                let ahead = text(GYRUS_CLOCK_AHEAD_MS);
                ahead.and_then(|ahead| ahead.parse().ok()).unwrap_or(0)
            } else {
                0
            },
            user: text(USER),
            editor: text(VISUAL).or_else(|| text(EDITOR)),
            theme: Theme::of(text(GYRUS_THEME).as_deref(), text(COLORFGBG).as_deref()),
            plain: set(NO_COLOR).is_some() || set(TERM).is_some_and(|term| term == "dumb"),
            dumb,
        }
    }
}

fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable that a provider's entry in the catalogue names (a key, or an address), or that
/// OpenTelemetry defines for every program.
pub(crate) fn variable(name: &str) -> Option<String> {
    set(name).and_then(|value| value.into_string().ok())
}

/// Returns all variables that are text, for a command of the person's own.
pub(crate) fn all() -> BTreeMap<String, String> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
