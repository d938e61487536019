//! Distinguishes progress from repetition.
//!
//! An action is compared together with its arguments and its result. The same action with a new
//! result is waiting or watching; the same failing test between different edits is fixing. Only an
//! action that is repeated with the same result, with nothing new tried in between, is repetition.

use gyrus_contract::{ActionVerdict, Digest, Observation, ToolCall};
use serde::{Deserialize, Serialize};

/// Number of equal results at which the model gets a note.
pub const NUDGE_AT: u32 = 3;
/// Number of equal results at which the model must take another approach.
pub const DEMAND_AT: u32 = 5;
/// Number of equal results at which the run parks.
pub const PARK_AT: u32 = 8;

/// Maximum number of different remembered actions. Longer cycles are not detected.
const RING: usize = 8;

/// The reaction to repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepetitionAdvice {
    /// No repetition was found.
    GoOn,
    /// Tell the model this text.
    Tell(String),
    /// Park, with this text for the person.
    Park(String),
}

/// Recent actions, each with its last result and the number of consecutive occurrences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionRepetition {
    /// Action, result and count of each action; the newest is last.
    seen: Vec<(u32, u32, u32)>,
}

impl ActionRepetition {
    /// Records the result of a call, and returns the reaction.
    pub fn observe(&mut self, call: &ToolCall, observation: &Observation) -> RepetitionAdvice {
        let action = short(Digest::of_json(&(&call.tool, &call.arguments)));
        let result = short(Digest::of_json(&(
            &observation.text.text,
            observation.is_error,
        )));
        let known = self.seen.iter().position(|(seen, _, _)| *seen == action);
        let count = match known {
            Some(index) => {
                let (_, before, count) = self.seen.remove(index);
                if before == result {
                    count.saturating_add(1)
                } else {
                    1
                }
            }
            None => {
                // Something new was tried: an earlier action may have another result now. It stays
                // remembered, so that alternating between the two is not new again.
                if may_have_changed(observation.verdict) {
                    for (_, _, count) in &mut self.seen {
                        *count = 0;
                    }
                }
                1
            }
        };
        self.seen.push((action, result, count));
        if self.seen.len() > RING {
            self.seen.remove(0);
        }
        advise(&call.tool, count)
    }

    /// Forgets all actions, after a person has looked at the repetition.
    pub fn reset(&mut self) {
        self.seen.clear();
    }
}

fn may_have_changed(verdict: ActionVerdict) -> bool {
    match verdict {
        ActionVerdict::Changed | ActionVerdict::CannotTell => true,
        ActionVerdict::NoEffect | ActionVerdict::Refused => false,
    }
}

fn advise(tool: &str, count: u32) -> RepetitionAdvice {
    match count {
        0..NUDGE_AT => RepetitionAdvice::GoOn,
        NUDGE_AT..DEMAND_AT => RepetitionAdvice::Tell(format!(
            "You have called `{tool}` {count} times with the same arguments and got the same \
             result each time. If you wait for something, wait longer in one call; otherwise do \
             something different."
        )),
        DEMAND_AT..PARK_AT => RepetitionAdvice::Tell(format!(
            "`{tool}` with these arguments has now come out the same {count} times. This \
             approach does not work. Take another one, or finish and say what is in the way. \
             After {PARK_AT} times the work stops."
        )),
        PARK_AT.. => RepetitionAdvice::Park(format!(
            "the same call of `{tool}` came out the same {count} times in a row, and being told \
             so changed nothing"
        )),
    }
}

/// Returns a short part of a digest, which is enough to distinguish a few actions in the journal.
fn short(digest: Digest) -> u32 {
    let [a, b, c, d, ..] = *digest.as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{EffectId, Origin, Text};
    use serde_json::json;

    use super::*;

    /// Observes `steps` of (command, result, verdict) and counts the reactions.
    fn play(steps: impl IntoIterator<Item = (String, String, ActionVerdict)>) -> (usize, bool) {
        let mut guard = ActionRepetition::default();
        let (mut told, mut parked) = (0, false);
        for (command, result, verdict) in steps {
            let call = ToolCall::new("shell", json!({"command": command}));
            let observation = Observation {
                effect: EffectId::cycle(1).then(1),
                call_id: String::new(),
                tool: "shell".into(),
                text: Text::new(
                    result,
                    Origin::Tool {
                        name: "shell".into(),
                    },
                ),
                value: None,
                images: Vec::new(),
                is_error: false,
                verdict,
                artifacts: Vec::new(),
                claim: None,
            };
            match guard.observe(&call, &observation) {
                RepetitionAdvice::GoOn => {}
                RepetitionAdvice::Tell(_) => told += 1,
                RepetitionAdvice::Park(_) => parked = true,
            }
        }
        (told, parked)
    }

    fn step(command: &str, result: impl Into<String>) -> (String, String, ActionVerdict) {
        (command.to_owned(), result.into(), ActionVerdict::CannotTell)
    }

    #[test]
    fn the_same_again_and_again_is_told_and_then_parked() {
        assert_eq!(play((0..7).map(|_| step("ls", "a b"))), (5, false));
        assert_eq!(play((0..8).map(|_| step("ls", "a b"))), (5, true));
    }

    #[test]
    fn a_circle_of_two_is_a_circle() {
        let steps = (0..16).map(|n| {
            if n % 2 == 0 {
                step("a", "x")
            } else {
                step("b", "y")
            }
        });
        assert!(play(steps).1);
    }

    #[test]
    fn waiting_for_something_that_moves_is_no_circle() {
        assert_eq!(
            play((0..50).map(|n| step("progress", format!("{n} %")))),
            (0, false)
        );
    }

    #[test]
    fn failing_tests_between_different_edits_are_no_circle() {
        let steps = (0..50).map(|n| {
            if n % 2 == 0 {
                step("cargo test", "1 failed")
            } else {
                step(&format!("edit {n}"), "ok")
            }
        });
        assert_eq!(play(steps), (0, false));
    }

    #[test]
    fn looking_at_new_things_does_not_excuse_the_circle() {
        let look = |n: usize| {
            (
                format!("cat {n}"),
                "text".to_owned(),
                ActionVerdict::NoEffect,
            )
        };
        let steps = (0..16).map(|n| {
            if n % 2 == 0 {
                step("make", "error")
            } else {
                look(n)
            }
        });
        assert!(play(steps).1);
    }
}
