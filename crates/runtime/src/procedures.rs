//! Procedures that are kept, as the fold of a log: their versions, a person's approval,
//! and the outcomes of their replays.
//!
//! A procedure is kept under its name. A repaired one is a new version; older ones stay and can be
//! compared. Only a promoted version is ever replayed, and only a person promotes.

use std::collections::{BTreeMap, VecDeque};

use gyrus_contract::{Principal, RunId};
use gyrus_procedures::{LearnedPlace, Procedure, SlotValues};
use serde::{Deserialize, Serialize};

use crate::ledger::Fold;

/// The id of the ledger: there is one for all procedures.
pub const PROCEDURE_LEDGER: &str = "procedures";

/// Maximum number of the latest replays of a procedure that are stored individually; older ones are
/// counted.
const MAX_REPLAYS: usize = 100;

/// Maximum number of stored versions of a procedure.
const MAX_VERSIONS: usize = 20;

/// The source of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProcedureSource {
    /// A run that reached its goal.
    Run { run: RunId },
    /// A person who demonstrated the procedure.
    Taught { by: Principal },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcedureVersion {
    /// The number, from 1.
    pub version: u32,
    /// The procedure, under the name by which it is stored.
    pub procedure: Procedure,
    pub source: ProcedureSource,
    /// The time at which the procedure was learned, in UTC milliseconds.
    pub at_ms: i64,
}

/// A person's approval of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    pub version: u32,
    pub by: Principal,
    /// The time, in UTC milliseconds.
    pub at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// The goal was reached without a model.
    Replayed,
    /// The screen differed from the procedure, and a model had to continue.
    HandedOver { reason: String },
    /// The run ended without the goal and without a model.
    Failed { reason: String },
}

/// Counts of replays by their outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayCounts {
    /// Number of replays that reached the goal without a model.
    pub replayed: u64,
    /// Number of replays that a model had to continue.
    pub handed_over: u64,
    /// Number of replays that failed.
    pub failed: u64,
}

impl ReplayCounts {
    fn count(&mut self, outcome: &ReplayOutcome) {
        match outcome {
            ReplayOutcome::Replayed => self.replayed += 1,
            ReplayOutcome::HandedOver { .. } => self.handed_over += 1,
            ReplayOutcome::Failed { .. } => self.failed += 1,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptProcedure {
    /// The procedure's versions, oldest first; never empty.
    pub versions: Vec<ProcedureVersion>,
    /// The approval of the version that is replayed.
    pub promotion: Option<Promotion>,
    /// The latest version that a person was asked about at the end of a run; 0 if there is none.
    pub asked: u32,
    /// Whether a person said that they must not be asked about the procedure again.
    pub is_declined: bool,
    /// The latest replays, oldest first.
    pub replays: VecDeque<(RunId, ReplayOutcome)>,
    older: ReplayCounts,
}

impl KeptProcedure {
    pub fn latest(&self) -> Option<&ProcedureVersion> {
        self.versions.last()
    }

    /// Returns the version of this number.
    pub fn version(&self, version: u32) -> Option<&ProcedureVersion> {
        self.versions.iter().find(|kept| kept.version == version)
    }

    /// Returns the version that is replayed, if a person promoted one.
    pub fn promoted(&self) -> Option<&ProcedureVersion> {
        self.version(self.promotion.as_ref()?.version)
    }

    /// Whether a person is to be asked, once, whether the latest version is to be promoted: the first
    /// time that it was learned, and when a promoted one was repaired in a way that needs a new yes.
    pub fn is_to_be_asked(&self) -> bool {
        let latest = self.latest().map_or(0, |latest| latest.version);
        let promoted = self.promotion.as_ref().map(|promotion| promotion.version);
        let is_first = self.asked == 0 || promoted.is_some();
        !self.is_declined && is_first && self.asked < latest && promoted != Some(latest)
    }

    /// Returns the counts of all replays.
    pub fn counts(&self) -> ReplayCounts {
        let mut counts = self.older;
        self.replays
            .iter()
            .for_each(|(_, outcome)| counts.count(outcome));
        counts
    }
}

/// All stored procedures, by name.
#[derive(Debug, Default, PartialEq)]
pub struct KeptProcedures(BTreeMap<String, KeptProcedure>);

impl KeptProcedures {
    pub fn get(&self, name: &str) -> Option<&KeptProcedure> {
        self.0.get(name)
    }

    /// Returns all procedures, sorted by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &KeptProcedure)> {
        self.0.iter().map(|(name, kept)| (name.as_str(), kept))
    }

    /// Returns the promoted procedures that answer to a command, wherever they were learned, with
    /// the values of their slots.
    pub fn answering(&self, command: &str) -> Vec<(&ProcedureVersion, SlotValues)> {
        let answers = |kept: &'_ KeptProcedure| {
            let procedure = &kept.promoted()?.procedure;
            procedure.command.values(&procedure.slots, command)
        };
        let all = self.0.values();
        all.filter_map(|kept| Some((kept.promoted()?, answers(kept)?)))
            .collect()
    }

    /// Returns the name of the kept procedure of which this is another version: the same command
    /// with the same slots at the same place.
    pub fn same_as(&self, procedure: &Procedure) -> Option<&str> {
        let is_same = |kept: &KeptProcedure| {
            kept.latest()
                .is_some_and(|latest| is_another_version(&latest.procedure, procedure))
        };
        let mut all = self.0.iter();
        all.find(|(_, kept)| is_same(kept))
            .map(|(name, _)| name.as_str())
    }

    /// Returns a name similar to this one that no procedure has.
    pub fn free_name(&self, name: &str) -> String {
        if !self.0.contains_key(name) {
            return name.to_owned();
        }
        let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
        let mut free = numbered.filter(|name| !self.0.contains_key(name));
        free.next().expect("there are more numbers than procedures")
    }
}

/// Whether two procedures answer to the same commands at the same place.
fn is_another_version(one: &Procedure, other: &Procedure) -> bool {
    let shapes = |procedure: &Procedure| -> Vec<_> {
        procedure.slots.iter().map(|slot| slot.shape).collect()
    };
    let same_place = match (&one.place, &other.place) {
        (LearnedPlace::Site { origin, .. }, LearnedPlace::Site { origin: other, .. }) => {
            origin == other
        }
        (one, other) => one == other,
    };
    one.command == other.command && shapes(one) == shapes(other) && same_place
}

/// A fact about procedures.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum ProcedureFact {
    /// A version was learned.
    #[serde(rename = "procedure.learned")]
    Learned {
        /// The name under which the procedure is stored.
        name: String,
        version: Box<ProcedureVersion>,
    },
    /// A person promoted a version, or a repaired version took the place of a promoted one.
    #[serde(rename = "procedure.promoted")]
    Promoted { name: String, promotion: Promotion },
    /// A person was asked, at the end of a run, whether a version is to be promoted.
    #[serde(rename = "procedure.asked")]
    Asked { name: String, version: u32 },
    /// A person said that they must not be asked about the procedure again.
    #[serde(rename = "procedure.declined")]
    Declined { name: String },
    #[serde(rename = "procedure.replayed")]
    Replayed {
        name: String,
        run: RunId,
        #[serde(flatten)]
        outcome: ReplayOutcome,
    },
    /// Older replays were counted together.
    #[serde(rename = "procedure.counted")]
    Counted { name: String, counts: ReplayCounts },
    /// A person had the procedure removed.
    #[serde(rename = "procedure.forgotten")]
    Forgotten { name: String, by: Principal },
}

impl Fold for KeptProcedures {
    const LOG_KIND: &'static str = "procedures";
    type Fact = ProcedureFact;

    fn apply(&mut self, fact: ProcedureFact) {
        match fact {
            ProcedureFact::Learned { name, version } => {
                let kept = self.0.entry(name).or_default();
                let is_next = kept
                    .latest()
                    .is_none_or(|latest| latest.version < version.version);
                if is_next {
                    kept.versions.push(*version);
                    kept.drop_oldest();
                }
            }
            ProcedureFact::Promoted { name, promotion } => {
                if let Some(kept) = self.0.get_mut(&name)
                    && kept.version(promotion.version).is_some()
                {
                    kept.promotion = Some(promotion);
                }
            }
            ProcedureFact::Asked { name, version } => {
                if let Some(kept) = self.0.get_mut(&name) {
                    kept.asked = kept.asked.max(version);
                }
            }
            ProcedureFact::Declined { name } => {
                if let Some(kept) = self.0.get_mut(&name) {
                    kept.is_declined = true;
                }
            }
            ProcedureFact::Replayed { name, run, outcome } => {
                if let Some(kept) = self.0.get_mut(&name) {
                    kept.replayed(run, outcome);
                }
            }
            ProcedureFact::Counted { name, counts } => {
                if let Some(kept) = self.0.get_mut(&name) {
                    kept.older = counts;
                }
            }
            ProcedureFact::Forgotten { name, .. } => {
                self.0.remove(&name);
            }
        }
    }

    fn facts(&self) -> Vec<ProcedureFact> {
        self.0
            .iter()
            .flat_map(|(name, kept)| kept.facts(name))
            .collect()
    }
}

impl KeptProcedure {
    /// Records the outcome of a replay. A resumed run tells its outcome again; the last one counts.
    fn replayed(&mut self, run: RunId, outcome: ReplayOutcome) {
        if let Some(known) = self.replays.iter_mut().find(|(known, _)| *known == run) {
            known.1 = outcome;
            return;
        }
        self.replays.push_back((run, outcome));
        if self.replays.len() > MAX_REPLAYS
            && let Some((_, oldest)) = self.replays.pop_front()
        {
            self.older.count(&oldest);
        }
    }

    /// Drops the oldest version other than the promoted one, if there are too many.
    fn drop_oldest(&mut self) {
        let promoted = self.promotion.as_ref().map(|promotion| promotion.version);
        if self.versions.len() > MAX_VERSIONS {
            let is_other = |kept: &ProcedureVersion| Some(kept.version) != promoted;
            if let Some(oldest) = self.versions.iter().position(is_other) {
                self.versions.remove(oldest);
            }
        }
    }

    fn facts(&self, name: &str) -> Vec<ProcedureFact> {
        let name = || name.to_owned();
        let mut facts: Vec<_> = self
            .versions
            .iter()
            .map(|version| ProcedureFact::Learned {
                name: name(),
                version: Box::new(version.clone()),
            })
            .collect();
        if let Some(promotion) = self.promotion.clone() {
            facts.push(ProcedureFact::Promoted {
                name: name(),
                promotion,
            });
        }
        facts.push(ProcedureFact::Asked {
            name: name(),
            version: self.asked,
        });
        if self.is_declined {
            facts.push(ProcedureFact::Declined { name: name() });
        }
        facts.push(ProcedureFact::Counted {
            name: name(),
            counts: self.older,
        });
        let replays = self.replays.iter().map(|(run, outcome)| {
            let (run, outcome) = (*run, outcome.clone());
            ProcedureFact::Replayed {
                name: name(),
                run,
                outcome,
            }
        });
        facts.extend(replays);
        facts
    }
}

#[cfg(test)]
mod tests {
    use gyrus_procedures::SlotTemplate;

    use super::*;

    fn version(version: u32) -> Box<ProcedureVersion> {
        let procedure = Procedure {
            name: "order".to_owned(),
            command: SlotTemplate::default(),
            slots: Vec::new(),
            place: LearnedPlace::Site {
                origin: "https://shop.example".to_owned(),
                start: "https://shop.example/".to_owned(),
            },
            steps: Vec::new(),
            ends: Vec::new(),
            checks: Vec::new(),
            answer: SlotTemplate::default(),
        };
        Box::new(ProcedureVersion {
            version,
            procedure,
            source: ProcedureSource::Run { run: RunId::new() },
            at_ms: 1,
        })
    }

    fn person() -> Principal {
        Principal {
            surface: "command line".to_owned(),
            id: "ada".to_owned(),
        }
    }

    fn promoted(version: u32) -> ProcedureFact {
        ProcedureFact::Promoted {
            name: "order".to_owned(),
            promotion: Promotion {
                version,
                by: person(),
                at_ms: 2,
            },
        }
    }

    fn learned(number: u32) -> ProcedureFact {
        ProcedureFact::Learned {
            name: "order".to_owned(),
            version: version(number),
        }
    }

    fn replayed(run: RunId, outcome: ReplayOutcome) -> ProcedureFact {
        ProcedureFact::Replayed {
            name: "order".to_owned(),
            run,
            outcome,
        }
    }

    #[test]
    fn the_facts_of_a_state_fold_to_it_again() {
        let mut state = KeptProcedures::default();
        // A promotion of what is not there promotes nothing.
        state.apply(promoted(1));
        for number in 1..=30 {
            state.apply(learned(number));
            if number == 3 {
                state.apply(promoted(3));
            }
        }
        state.apply(promoted(99));
        let (first, reason) = (RunId::new(), "a link is gone".to_owned());
        state.apply(replayed(first, ReplayOutcome::HandedOver { reason }));
        state.apply(ProcedureFact::Asked {
            name: "order".to_owned(),
            version: 2,
        });
        for _ in 0..2 * MAX_REPLAYS {
            state.apply(replayed(RunId::new(), ReplayOutcome::Replayed));
        }
        let last = RunId::new();
        let reason = "denied".to_owned();
        state.apply(replayed(last, ReplayOutcome::Failed { reason }));
        // It was resumed and reached its goal.
        state.apply(replayed(last, ReplayOutcome::Replayed));
        let kept = state.get("order").unwrap();
        assert_eq!(kept.versions.len(), MAX_VERSIONS);
        assert_eq!(kept.promoted().unwrap().version, 3);
        assert_eq!(kept.latest().unwrap().version, 30);
        let counts = ReplayCounts {
            replayed: 201,
            handed_over: 1,
            failed: 0,
        };
        assert_eq!(kept.counts(), counts);

        let mut again = KeptProcedures::default();
        for fact in state.facts() {
            // As they are written and read.
            let text = serde_json::to_string(&fact).unwrap();
            again.apply(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(again, state);
        again.apply(ProcedureFact::Forgotten {
            name: "order".to_owned(),
            by: person(),
        });
        assert!(again.get("order").is_none());
        again.apply(replayed(last, ReplayOutcome::Replayed));
        assert!(again.get("order").is_none());
    }
}
