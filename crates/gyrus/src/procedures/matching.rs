//! The procedure that a command replays, if exactly one answers to it here.

use std::path::Path;

use gyrus_contract::{Origin, Text};
use gyrus_journal::Store;
use gyrus_loops::{Check, CognitiveConfig};
use gyrus_procedures::{LearnedPlace, Procedure, SlotValues};

use super::{ledger::kept, recording::origin};
use gyrus_contract::Strength;
use gyrus_runtime::request::RunFlags;

use crate::{
    failure::Failure,
    screen::{DesktopOptions, ScreenOptions},
    which_loop::AUTO,
};

#[derive(Debug, Clone)]
pub(crate) struct ProcedureReplay {
    procedure: Procedure,
    values: SlotValues,
    start: ReplayStart,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ReplayStart {
    /// A page, by its address.
    Page(String),
    /// An empty desktop.
    Desktop,
    /// The folder, without a screen.
    Folder,
}

impl ProcedureReplay {
    pub(crate) fn name(&self) -> &str {
        &self.procedure.name
    }

    /// Returns the address to begin at, for one of a site.
    pub(crate) fn address(&self) -> Option<&str> {
        match &self.start {
            ReplayStart::Page(address) => Some(address),
            ReplayStart::Desktop | ReplayStart::Folder => None,
        }
    }

    pub(crate) fn is_on_screen(&self) -> bool {
        self.start != ReplayStart::Folder
    }

    pub(crate) fn config(&self) -> CognitiveConfig {
        let checks = self.procedure.checks.iter();
        CognitiveConfig {
            checks: checks.filter_map(|check| check.parse().ok()).collect(),
            ..CognitiveConfig::procedure(self.procedure.clone(), self.values.clone())
        }
    }

    /// Returns the scripts among the procedure's checks, which the person saw at the promotion.
    pub(crate) fn scripts(&self) -> Vec<String> {
        let checks = self.procedure.checks.iter();
        let checks = checks.filter_map(|check| check.parse::<Check>().ok());
        checks
            .filter_map(|check| check.script().map(str::to_owned))
            .collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandPlace<'a> {
    pub(crate) url: Option<&'a str>,
    pub(crate) workspace: &'a Path,
    /// The screen of the run, if it has one.
    pub(crate) screen: Option<&'a ScreenOptions>,
}

/// Returns the given flag that cannot be combined with a replay, if any.
pub(crate) fn refusing_flag(flags: &RunFlags) -> Option<&'static str> {
    let named = flags.cognitive_loop.as_deref();
    if flags.no_procedure {
        Some("--no-procedure")
    } else if named.is_some_and(|name| name != AUTO) {
        Some("--loop")
    } else if flags.reflect {
        Some("--reflect")
    } else if flags.verification.require == Some(Strength::Verified) {
        Some("--require verified")
    } else if flags.verification.answer_schema.is_some() {
        Some("--answer-schema")
    } else {
        let judge = flags.asks_for_a_judge();
        let plan = flags.asks_for_a_plan();
        judge.or(plan).or(flags.asks_for_a_changeset())
    }
}

/// Returns the one promoted procedure that answers to a person's command at this place, or none if
/// there are several.
pub(crate) fn for_command(
    store: &Store,
    command: &Text,
    place: CommandPlace<'_>,
) -> Result<Option<ProcedureReplay>, Failure> {
    if command.origin != Origin::Person {
        return Ok(None);
    }
    let kept = kept(store)?;
    let answering = kept.answering(&command.text).into_iter();
    let mut here = answering.filter_map(|(version, values)| {
        let procedure = version.procedure.clone();
        let start = start(&procedure.place, place)?;
        // A check that this version does not understand could not be made.
        let mut checks = procedure.checks.iter();
        let all_known = checks.all(|check| check.parse::<Check>().is_ok());
        all_known.then_some(ProcedureReplay {
            procedure,
            values,
            start,
        })
    });
    let first = here.next();
    Ok(first.filter(|_| here.next().is_none()))
}

/// Returns the place to begin in, if a procedure of this place may be replayed.
fn start(learned: &LearnedPlace, here: CommandPlace<'_>) -> Option<ReplayStart> {
    let is_here = |workspace: &str| Path::new(workspace) == here.workspace;
    match (learned, here.url, here.screen) {
        // Whoever says that there is no screen, or names a desktop, does not mean a site.
        (LearnedPlace::Site { .. }, _, None | Some(ScreenOptions::Desktop(_))) => None,
        (LearnedPlace::Site { origin: of, .. }, Some(url), Some(ScreenOptions::Browser(_))) => {
            (origin(url).as_ref() == Some(of)).then(|| ReplayStart::Page(url.to_owned()))
        }
        (LearnedPlace::Site { start, .. }, None, Some(ScreenOptions::Browser(_))) => {
            Some(ReplayStart::Page(start.clone()))
        }
        // Programs are started on a desktop of the run's own only.
        (
            LearnedPlace::Desktop { workspace },
            None,
            Some(ScreenOptions::Desktop(DesktopOptions { display: None, .. })),
        ) => is_here(workspace).then_some(ReplayStart::Desktop),
        (LearnedPlace::Desktop { .. }, _, _) | (LearnedPlace::Folder { .. }, Some(_), _) => None,
        (LearnedPlace::Folder { workspace }, None, _) => {
            is_here(workspace).then_some(ReplayStart::Folder)
        }
    }
}
