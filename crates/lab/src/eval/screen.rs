//! The screen of an attempt, and which questions about it the evaluation answers with yes: those about
//! the pages that it serves itself, or about the programs of the task on a desktop in the run's
//! sandbox.

use std::path::Path;

use gyrus_contract::{Aim, Starts};

use super::{attempt::MeasuredTarget, served};

/// The address of a desktop in a run's sandbox. On one outside of it, programs have the person's own
/// rights, so nothing is allowed there.
const IN_SANDBOX: &str = "x11:sandbox";

pub(super) enum AttemptScreen<'a> {
    Browser {
        start: String,
        /// Origins that gyrus itself serves for the attempt. What is asked about these is allowed.
        ours: Vec<String>,
    },
    /// A separate desktop.
    Desktop {
        /// Names of the programs of the task. What is asked about these is allowed.
        programs: &'a [String],
    },
    /// No screen: nothing beyond what the policy allows in the attempt's folder is allowed.
    NoScreen,
    /// None, beside a server of tools that the task brings. Its calls are allowed.
    Server { description: String },
}

impl AttemptScreen<'_> {
    /// Returns the arguments that give `gyrus run` this screen.
    pub(super) fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Browser { start, .. } => vec!["--url", start],
            Self::Desktop { .. } => vec!["--screen", "x11"],
            Self::NoScreen => Vec::new(),
            Self::Server { description } => vec!["--mcp-config", description],
        }
    }

    pub(super) fn may_allow(&self) -> bool {
        match self {
            Self::Browser { ours, .. } => !ours.is_empty(),
            Self::Desktop { .. } | Self::Server { .. } => true,
            Self::NoScreen => false,
        }
    }

    /// Whether a call is this attempt's own: of this tool, and of what the gate measured.
    pub(super) fn allows(&self, tool: Option<&str>, measured: Option<&MeasuredTarget>) -> bool {
        if let Self::Server { .. } = self {
            return tool.is_some_and(|tool| tool.starts_with(served::PREFIX));
        }
        measured.is_some_and(|measured| self.owns(measured))
    }

    /// Whether everything that the gate measured belongs to this attempt.
    fn owns(&self, measured: &MeasuredTarget) -> bool {
        match self {
            Self::Browser { ours, .. } => is_on_pages(ours, &measured.aim),
            Self::Desktop { programs } => {
                let is_inside = |file: &gyrus_contract::ResolvedPath| file.in_workspace.is_some();
                is_of_programs(programs, &measured.aim) && measured.files.iter().all(is_inside)
            }
            Self::NoScreen | Self::Server { .. } => false,
        }
    }

    pub(super) fn limit(&self) -> &'static str {
        match self {
            Self::Browser { .. } => "an evaluation allows only what is about its own pages",
            Self::Desktop { .. } => {
                "an evaluation allows only what is about the programs and the files of the task"
            }
            Self::NoScreen => "an evaluation allows only what needs no approval",
            Self::Server { .. } => "an evaluation allows only calls of the task's own server",
        }
    }
}

/// Whether everything that an input touches (the document, the form, any destination) has one of
/// these origins.
fn is_on_pages(ours: &[String], aim: &Aim) -> bool {
    let form = aim.form.iter().map(|form| form.action.as_str());
    let goes = aim.starts.iter().filter_map(|starts| match starts {
        Starts::Follows { address } | Starts::Opens { address } | Starts::Sends { address, .. } => {
            Some(address.as_str())
        }
        Starts::Looking
        | Starts::Types
        | Starts::Chooses { .. }
        | Starts::Submits
        | Starts::Acts
        | Starts::Uploads { .. }
        | Starts::Launches { .. }
        | Starts::Closes { .. }
        | Starts::Answers { .. } => None,
    });
    let own = [aim.origin.as_str(), aim.address.as_str()];
    let mut places = own.into_iter().chain(form).chain(goes);
    places.all(|place| ours.iter().any(|ours| is_of(ours, place)))
        && aim.fills.iter().all(|field| is_on_pages(ours, field))
}

fn is_of(origin: &str, address: &str) -> bool {
    address
        .strip_prefix(origin)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

/// Whether an input goes to a window of one of these programs on a desktop in the run's sandbox, or
/// starts one of them there.
fn is_of_programs(programs: &[String], aim: &Aim) -> bool {
    let is_named = |name: &str| programs.iter().any(|program| program == name);
    let place = aim.origin.strip_prefix(IN_SANDBOX);
    let program = place.and_then(|place| place.strip_prefix('/'));
    let does = aim.starts.iter().all(|starts| match starts {
        Starts::Looking | Starts::Types | Starts::Chooses { .. } | Starts::Acts => true,
        Starts::Closes { .. } => true,
        Starts::Launches { program } => {
            let name = Path::new(program)
                .file_name()
                .and_then(|name| name.to_str());
            name.is_some_and(is_named)
        }
        Starts::Follows { .. }
        | Starts::Opens { .. }
        | Starts::Submits
        | Starts::Uploads { .. }
        | Starts::Answers { .. }
        | Starts::Sends { .. } => false,
    });
    program.is_some_and(is_named) && aim.form.is_none() && does
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_no_prefix() {
        let ours = "http://127.0.0.1:40";
        for (address, expected) in [
            ("http://127.0.0.1:40", true),
            ("http://127.0.0.1:40/w/a/", true),
            ("http://127.0.0.1:40?x", true),
            ("http://127.0.0.1:4000/w/a/", false),
            ("http://127.0.0.1:40.evil.example/", false),
            ("http://127.0.0.1:40@evil.example/", false),
            ("https://127.0.0.1:40/", false),
            ("null", false),
        ] {
            assert_eq!(is_of(ours, address), expected, "{address}");
        }
    }

    /// The target of a call at a window, or of one that starts a program.
    fn measured(origin: &str, starts: Starts, file: Option<&str>) -> MeasuredTarget {
        let file = file.map(|real| gyrus_contract::ResolvedPath {
            given: real.to_owned(),
            real: real.into(),
            in_workspace: Path::new(real).strip_prefix("/work").ok().map(Into::into),
            withheld: None,
        });
        MeasuredTarget {
            aim: Aim {
                address: origin.to_owned(),
                origin: origin.to_owned(),
                element: None,
                form: None,
                starts: vec![starts],
                fills: Vec::new(),
            },
            files: file.into_iter().collect(),
        }
    }

    #[test]
    fn only_programs_of_the_task_on_a_desktop_of_its_own_are_allowed() {
        let programs = ["mousepad".to_owned(), "xfce4-terminal".to_owned()];
        let screen = AttemptScreen::Desktop {
            programs: &programs,
        };
        let launches = |program: &str| Starts::Launches {
            program: program.to_owned(),
        };
        for (origin, starts, file, expected) in [
            ("x11:sandbox/mousepad", Starts::Acts, None, true),
            ("x11:sandbox/xfce4-terminal", Starts::Types, None, true),
            (
                "x11:sandbox/mousepad",
                launches("/usr/bin/mousepad"),
                Some("/work/a"),
                true,
            ),
            (
                "x11:sandbox/mousepad",
                launches("/usr/bin/mousepad"),
                Some("/etc/hosts"),
                false,
            ),
            (
                "x11:sandbox/mousepad",
                launches("/usr/bin/bash"),
                None,
                false,
            ),
            (
                "x11:sandbox/bash",
                launches("/usr/bin/mousepad"),
                None,
                false,
            ),
            ("x11:sandbox/mousepad", Starts::Submits, None, false),
            ("x11:sandbox/mousepad2", Starts::Acts, None, false),
            ("x11:sandbox/xterm", Starts::Acts, None, false),
            ("x11:sandbox", Starts::Acts, None, false),
            ("x11:0/mousepad", Starts::Acts, None, false),
            ("x11:nested/mousepad", Starts::Acts, None, false),
            ("x11:sandboxx/mousepad", Starts::Acts, None, false),
            ("https://x11:sandbox/mousepad", Starts::Acts, None, false),
        ] {
            let told = format!("{origin} {starts:?} {file:?}");
            let measured = measured(origin, starts, file);
            assert_eq!(screen.allows(None, Some(&measured)), expected, "{told}");
        }
    }
}
