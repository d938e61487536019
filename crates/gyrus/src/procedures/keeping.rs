//! A run that has ended adds to the ledger: the outcome of its replay, and what can be learned.

use gyrus_contract::{Principal, RunId, Strength};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{Ending, Entry, check_not_record, log_name, now_ms, summary};
use gyrus_procedures::{NotLearned, Procedure, ProcedureStep, SlotTemplate, learn};
use gyrus_runtime::procedures::{
    KeptProcedure, KeptProcedures, ProcedureFact, ProcedureSource, ProcedureVersion, Promotion,
    ReplayOutcome,
};
use serde_json::Value;

use super::{
    ledger::{change, kept},
    recording::recorded,
    replayed::{replayed_by, replays},
    words::written,
};
use crate::failure::Failure;

/// The kind of the note that a replay was handed over to a model.
const HANDED_OVER: &str = "procedure.handed_over";

/// Maximum length of a name in characters, without a number that distinguishes it.
const MAX_NAME: usize = 48;

/// The procedure that a run added or repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcedureUpdate {
    /// The name of the procedure that was learned or repaired.
    pub(crate) name: String,
    pub(crate) version: u32,
    /// Whether the procedure replaces a promoted version without another question.
    pub(crate) is_promoted: bool,
}

/// Records in the ledger the outcome of a run's replay, and the procedure that can be learned from
/// the run. Repeating it adds nothing.
///
/// # Errors
/// A journal cannot be read, or the ledger cannot be written. The inner error says why nothing was
/// learned.
pub(crate) fn after_run(
    store: &Store,
    run: RunId,
) -> Result<Result<ProcedureUpdate, NotLearned>, Failure> {
    check_not_record(store, run)?;
    let reader = store.reader(&log_name(run))?;
    let nothing = |reason: &str| {
        Ok(Err(NotLearned::Unrepeatable {
            reason: reason.to_owned(),
        }))
    };
    let Some(Ok(Entry::RunStarted(started))) =
        reader.entry(1)?.map(|first| gyrus_kernel::parse(&first))
    else {
        return nothing("its journal does not say how it started");
    };
    let ending = ending(&reader)?;
    if let Some(name) = replayed_by(&started) {
        let handed_over = handed_over(&reader)?;
        let outcome = outcome(ending.as_ref(), handed_over.as_deref());
        if let Some(outcome) = outcome {
            let name = name.to_owned();
            change(store, |_| {
                vec![ProcedureFact::Replayed {
                    name: name.clone(),
                    run,
                    outcome: outcome.clone(),
                }]
            })?;
        }
        if handed_over.is_none() {
            return nothing("it is a replay");
        }
    }
    if !matches!(ending, Some(Ending::Reached { strength, .. }) if strength >= Strength::Checked) {
        return nothing("it did not end checked or verified");
    }
    let procedure = match recorded(&reader)?.and_then(|run| learn(&run)) {
        Ok(procedure) => procedure,
        Err(why) => return Ok(Err(why)),
    };
    keep(
        store,
        procedure,
        ProcedureSource::Run { run },
        replays(&started),
    )
}

/// Stores a procedure as the first version of its name, or as a further one. `repaired` is what the
/// run replayed before it handed over.
pub(crate) fn keep(
    store: &Store,
    procedure: Procedure,
    source: ProcedureSource,
    repaired: Option<Procedure>,
) -> Result<Result<ProcedureUpdate, NotLearned>, Failure> {
    let add = |kept: &KeptProcedures| addition(kept, &procedure, &source, repaired.as_ref());
    if let Err(why) = add(&kept(store)?) {
        return Ok(Err(why));
    }
    change(store, |kept| {
        add(kept).map(|(_, facts)| facts).unwrap_or_default()
    })?;
    let kept = kept(store)?;
    let Some(name) = kept.same_as(&procedure) else {
        let reason = "it was forgotten meanwhile".to_owned();
        return Ok(Err(NotLearned::Unrepeatable { reason }));
    };
    let version = kept.get(name).and_then(KeptProcedure::latest);
    let promoted = kept.get(name).and_then(KeptProcedure::promoted);
    let version = version.map_or(0, |latest| latest.version);
    Ok(Ok(ProcedureUpdate {
        name: name.to_owned(),
        version,
        is_promoted: promoted.is_some_and(|promoted| promoted.version == version),
    }))
}

fn addition(
    kept: &KeptProcedures,
    procedure: &Procedure,
    source: &ProcedureSource,
    repaired: Option<&Procedure>,
) -> Result<(String, Vec<ProcedureFact>), NotLearned> {
    let at_ms = now_ms();
    let not = |reason: String| Err(NotLearned::Unrepeatable { reason });
    let (name, number, promotion) = match kept.same_as(procedure) {
        None => (kept.free_name(&safe(&procedure.name)), 1, None),
        Some(name) => {
            let known = kept.get(name).expect("it was just found");
            let latest = known.latest().expect("there is a version of each");
            if known
                .versions
                .iter()
                .any(|version| version.source == *source)
            {
                return not(format!("`{name}` was learned from it already"));
            }
            if is_same_work(&latest.procedure, procedure) {
                return not(format!("`{name}` says the same already"));
            }
            let is_repair = repaired.is_some_and(|repaired| repaired.name == name);
            if known.promotion.is_some() && !is_repair && !is_taught(source) {
                return not(format!("`{name}` is promoted, and did not replay here"));
            }
            let number = latest.version + 1;
            let promotion = known
                .promotion
                .as_ref()
                .zip(known.promoted())
                .filter(|(_, version)| is_repair && binds_alike(&version.procedure, procedure))
                .map(|(promotion, _)| Promotion {
                    version: number,
                    by: promotion.by.clone(),
                    at_ms,
                });
            (name.to_owned(), number, promotion)
        }
    };
    // The start that a person vouched for stays, and only its site is compared.
    let place = kept.get(&name).and_then(KeptProcedure::latest);
    let place = place.map_or(&procedure.place, |latest| &latest.procedure.place);
    let version = ProcedureVersion {
        version: number,
        procedure: Procedure {
            name: name.clone(),
            place: place.clone(),
            ..procedure.clone()
        },
        source: source.clone(),
        at_ms,
    };
    let mut facts = vec![ProcedureFact::Learned {
        name: name.clone(),
        version: Box::new(version),
    }];
    facts.extend(promotion.map(|promotion| ProcedureFact::Promoted {
        name: name.clone(),
        promotion,
    }));
    Ok((name, facts))
}

/// Returns a name as a name: lower-case letters, digits and hyphens, of which a folder can be made.
fn safe(name: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let words = name.split(|letter: char| !is_plain(&letter));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name = gyrus_text::first_chars(&words.join("-"), MAX_NAME)
        .trim_end_matches('-')
        .to_owned();
    if name.is_empty() {
        "procedure".to_owned()
    } else {
        name
    }
}

fn is_taught(source: &ProcedureSource) -> bool {
    match source {
        ProcedureSource::Taught { .. } => true,
        ProcedureSource::Run { .. } => false,
    }
}

/// Whether two procedures do the same, apart from the values with which they were learned.
fn is_same_work(one: &Procedure, other: &Procedure) -> bool {
    let does = |procedure: &Procedure| {
        let steps = procedure.steps.iter();
        steps
            .map(|step| (work(step), step.commits))
            .collect::<Vec<_>>()
    };
    does(one) == does(other) && one.checks == other.checks
}

/// Whether a repaired procedure commits to nothing new: the same committing steps, with the same
/// targets and arguments, in the same order.
fn binds_alike(before: &Procedure, repaired: &Procedure) -> bool {
    let binding = |procedure: &Procedure| {
        let committing = procedure.steps.iter().filter(|step| step.commits);
        committing.map(work).collect::<Vec<_>>()
    };
    before.checks == repaired.checks && binding(before) == binding(repaired)
}

/// The tool and arguments of a step, and its targets by role and name.
type StepWork = (String, Value, Vec<(String, String, SlotTemplate)>);

fn work(step: &ProcedureStep) -> StepWork {
    let targets = step
        .targets
        .iter()
        .map(|(argument, anchor)| (argument.clone(), anchor.role.clone(), anchor.name.clone()));
    (step.tool.clone(), written(step), targets.collect())
}

fn ending(reader: &LogReader) -> Result<Option<Ending>, Failure> {
    let mut back = reader.entries_back()?;
    let last = back.next().transpose()?;
    Ok(match last.map(|last| gyrus_kernel::parse(&last)) {
        Some(Ok(Entry::RunEnded(ended))) => Some(ended.ending),
        Some(Ok(Entry::RunParked(parked))) => Some(parked.ending),
        _ => None,
    })
}

fn handed_over(reader: &LogReader) -> Result<Option<String>, Failure> {
    let note = reader.last(HANDED_OVER)?;
    Ok(match note.map(|note| gyrus_kernel::parse(&note)) {
        Some(Ok(Entry::Noted { fact, .. })) => {
            let reason = fact.fact["reason"].as_str().unwrap_or("something differed");
            Some(reason.to_owned())
        }
        _ => None,
    })
}

/// Returns the outcome of a replay; `None` while it can go on as one.
fn outcome(ending: Option<&Ending>, handed_over: Option<&str>) -> Option<ReplayOutcome> {
    if let Some(reason) = handed_over {
        let reason = reason.to_owned();
        return Some(ReplayOutcome::HandedOver { reason });
    }
    match ending? {
        Ending::Reached { .. } => Some(ReplayOutcome::Replayed),
        ending @ Ending::Failed { .. } => Some(ReplayOutcome::Failed {
            reason: summary(ending),
        }),
        Ending::Limit { .. }
        | Ending::Waiting { .. }
        | Ending::Sleeping { .. }
        | Ending::Stuck { .. }
        | Ending::ModelUnreachable { .. }
        | Ending::Stopped { .. }
        | Ending::Interrupted => None,
    }
}

pub(super) fn promotion(name: &str, version: u32, by: &Principal) -> ProcedureFact {
    ProcedureFact::Promoted {
        name: name.to_owned(),
        promotion: Promotion {
            version,
            by: by.clone(),
            at_ms: now_ms(),
        },
    }
}
