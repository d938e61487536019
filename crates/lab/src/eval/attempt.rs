//! Outcome of one attempt at one task: a fold over the entries of its run.

use std::collections::BTreeMap;

use gyrus_contract::{ActionVerdict, Aim, EffectId, Image, ResolvedPath, RunId, Strength};
use gyrus_journal::Reader;
use gyrus_kernel::{ApprovalAsked, AttemptResult, Ending, Entry, Settled, summary};
use serde::{Deserialize, Serialize};

/// Outcome of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Id of the task.
    pub task: String,
    /// Number of the attempt at the task, from 1.
    pub repeat: u32,
    /// Whether the outcome is as strong as was required, and the answer right.
    pub passed: bool,
    /// Strength of the claim that it is done; absent if the run did not claim so.
    pub strength: Option<Strength>,
    /// The reason why it did not pass, in a sentence.
    pub why: Option<String>,
    /// Turns that were begun.
    pub steps: u64,
    /// Tokens of all prompts and replies.
    pub tokens: Tokens,
    /// Cost in millionths of a US dollar.
    pub cost: u64,
    /// Time from the start of the process to its end.
    pub wall_ms: u64,
    /// Counts of the verdicts on calls.
    pub verdicts: Verdicts,
    /// Counts of the run's questions.
    pub questions: Questions,
    /// Inputs that the gate measured at another element than the one that was named.
    pub landed_elsewhere: u64,
    /// The run, as `gyrus show` takes it.
    pub run: Option<RunId>,
}

/// Tokens as providers report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Prompt tokens that did not come from a cache.
    pub fresh: u64,
    /// Prompt tokens that came from a cache.
    pub cached: u64,
    /// Tokens of replies.
    pub output: u64,
    /// Prompts that were sent.
    pub prompts: u64,
}

/// Counts of the verdicts on the calls of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Calls that changed something.
    pub changed: u64,
    /// Calls without an effect.
    pub no_effect: u64,
    /// Calls of which nobody can tell.
    pub cannot_tell: u64,
    /// Calls that were refused.
    pub refused: u64,
}

/// Counts of questions by their answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Questions {
    /// Questions that were asked.
    pub asked: u64,
    /// Number of questions that the evaluation answered because they were about its own server.
    pub allowed: u64,
    /// Questions that were answered with no.
    pub denied: u64,
}

/// Target of a call, as the gate measured it.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) aim: Aim,
    /// The files that the call names.
    pub(super) files: Vec<ResolvedPath>,
}

/// Reads the entries of a run as they come.
#[derive(Debug, Default)]
pub(super) struct Fold {
    pub(super) attempt: Attempt,
    pub(super) ending: Option<Ending>,
    pub(super) last_frame: Option<Image>,
    /// Targets of calls that are not settled: as the call named them and as the gate measured them.
    named: BTreeMap<EffectId, String>,
    measured: BTreeMap<EffectId, Measured>,
    /// The check that failed last.
    failed_check: Option<String>,
}

impl Fold {
    /// Takes an entry in; a question is returned, for somebody to answer.
    pub(super) fn take(&mut self, entry: Entry, reader: &Reader) -> Option<ApprovalAsked> {
        let attempt = &mut self.attempt;
        match entry {
            Entry::ToolCalled(called) => {
                if let Some(on) = called.call.arguments["on"].as_str() {
                    self.named.insert(called.effect, on.to_owned());
                }
            }
            Entry::GateVerdict(judged) => {
                let aim = judged.aim?;
                let at = aim.element.as_ref().map(|element| element.id.to_string());
                let named = self.named.remove(&judged.effect);
                attempt.landed_elsewhere +=
                    u64::from(named.is_some_and(|named| at.is_some_and(|at| at != named)));
                let files = judged.paths.into_values().collect();
                self.measured.insert(judged.effect, Measured { aim, files });
            }
            Entry::ModelReply(reply) => {
                attempt.tokens.prompts += 1;
                attempt.cost += reply.charged.cost.0;
                if let AttemptResult::Reply { reply } = reply.came
                    && let Ok(reply) =
                        reply.read(|id| reader.blob(id).map_err(gyrus_kernel::Stop::from))
                    && let Some(usage) = reply.usage
                {
                    attempt.tokens.fresh += usage.input_tokens.saturating_sub(usage.cached_tokens);
                    attempt.tokens.cached += usage.cached_tokens;
                    attempt.tokens.output += usage.output_tokens;
                }
            }
            Entry::ToolResulted(result) => {
                let verdicts = &mut attempt.verdicts;
                *match (result.settled, result.verdict) {
                    (Settled::Refused, _) | (_, ActionVerdict::Refused) => &mut verdicts.refused,
                    (_, ActionVerdict::Changed) => &mut verdicts.changed,
                    (_, ActionVerdict::NoEffect) => &mut verdicts.no_effect,
                    (_, ActionVerdict::CannotTell) => &mut verdicts.cannot_tell,
                } += 1;
            }
            Entry::ScreenViewed(viewed) => {
                self.last_frame = viewed.frame.or(self.last_frame.take());
            }
            Entry::ApprovalAsked(asked) => {
                attempt.questions.asked += 1;
                return Some(asked);
            }
            Entry::CycleEnded(_) => attempt.steps += 1,
            Entry::RunStarted(started) => attempt.run = Some(started.run),
            Entry::RunEnded(ended) => self.end(ended.ending, ended.spent.steps),
            Entry::RunParked(parked) => self.end(parked.ending, parked.spent.steps),
            Entry::Noted { kind, fact, .. } if kind == "verification.check" => {
                self.failed_check = failed_check(&fact.fact).or(self.failed_check.take());
            }
            _ => {}
        }
        None
    }

    fn end(&mut self, ending: Ending, steps: u64) {
        self.attempt.steps = steps;
        self.ending = Some(ending);
    }

    /// Returns the target of the call that a question is about; `None` if it is about no screen.
    pub(super) fn measured(&self, asked: &ApprovalAsked) -> Option<&Measured> {
        self.measured.get(&asked.effect)
    }

    /// Settles it: `required` is the least strength, `answer` what the answer must hold.
    pub(super) fn settle(&mut self, required: Strength, answer: Option<&str>, otherwise: &str) {
        let attempt = &mut self.attempt;
        let why = match &self.ending {
            None => otherwise.to_owned(),
            Some(Ending::Reached { claim, .. }) if !claim.reached => {
                format!("it gave up: {}", claim.answer)
            }
            Some(Ending::Reached { claim, strength }) => {
                let holds = answer.map(|answer| plain(&claim.answer).contains(&plain(answer)));
                // An answer that was compared with the right one is a check that passed.
                let strength = match holds {
                    Some(true) => (*strength).max(Strength::Checked),
                    // Whatever other checks say, this one failed.
                    Some(false) => Strength::Claimed,
                    None => *strength,
                };
                attempt.strength = Some(strength);
                match holds {
                    Some(false) => format!(
                        "its answer does not hold `{}`: {}",
                        answer.unwrap_or_default(),
                        claim.answer
                    ),
                    _ if strength < required => format!("it is only {}", strength.word()),
                    _ => {
                        attempt.passed = true;
                        return;
                    }
                }
            }
            Some(ending) => match &self.failed_check {
                Some(check) => format!("{}; {check}", summary(ending)),
                None => summary(ending),
            },
        };
        attempt.why = Some(in_short(&why));
    }
}

/// The check that a fact tells of, if it failed.
fn failed_check(fact: &serde_json::Value) -> Option<String> {
    let check = fact["check"].as_str().filter(|_| fact["passed"] == false)?;
    Some(format!("the check {check} failed"))
}

fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// One line of at most 300 characters.
pub(super) fn in_short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    gyrus_text::shorten(&words.join(" "), 300).into_owned()
}

#[cfg(test)]
mod tests {
    use gyrus_contract::Claim;

    use super::*;

    /// The strength of an attempt that failed is never that of checks which passed.
    #[test]
    fn a_wrong_answer_is_not_checked() {
        let settled = |answer: &str| {
            let claim = Claim {
                reached: true,
                answer: "It costs 42 EUR.".to_owned(),
                evidence: Vec::new(),
                shortfalls: Vec::new(),
            };
            let strength = Strength::Checked;
            let mut fold = Fold {
                ending: Some(Ending::Reached { claim, strength }),
                ..Fold::default()
            };
            fold.settle(Strength::Claimed, Some(answer), "");
            (fold.attempt.passed, fold.attempt.strength)
        };
        assert_eq!(settled("42 eur"), (true, Some(Strength::Checked)));
        assert_eq!(settled("43 EUR"), (false, Some(Strength::Claimed)));
    }
}
