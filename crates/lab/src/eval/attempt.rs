//! Outcome of one attempt at one task: a fold over the entries of its run.

use std::collections::BTreeMap;

use gyrus_contract::{ActionVerdict, Aim, Claim, EffectId, Image, ResolvedPath, RunId, Strength};
use gyrus_journal::LogReader;
use gyrus_kernel::{ApprovalAsked, AttemptResult, CallEnd, Ending, Entry, summary};
use serde::{Deserialize, Serialize};

use super::{expected::ExpectedAnswer, task::EvalTask};

/// Outcome of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// Id of the task.
    pub task: String,
    /// Number of the attempt at the task, from 1.
    pub repeat: u32,
    /// The values that options had in this attempt, where an evaluation varies them; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub setting: String,
    /// Whether the task is solved: the answer is right, and the checks of the evaluation passed or,
    /// on a screen, the outcome is as strong as was required.
    pub passed: bool,
    /// The outcome with which the run itself ended; absent if it did not reach its goal.
    pub strength: Option<Strength>,
    /// Whether the run claimed to have reached the goal, or more, though the answer is wrong or a
    /// check of the evaluation failed.
    #[serde(default)]
    pub false_claim: bool,
    /// Whether any call was executed that does work.
    #[serde(default)]
    pub worked: bool,
    /// Whether no run was started because a program of the task is not installed.
    #[serde(default)]
    pub skipped: bool,
    /// The reason why the attempt did not pass, as a sentence.
    pub why: Option<String>,
    /// Number of turns that were begun.
    pub steps: u64,
    /// Number of tokens of all prompts and replies.
    pub tokens: Tokens,
    /// Cost in millionths of a US dollar.
    pub cost: u64,
    /// Time from the start of the process to its end.
    pub wall_ms: u64,
    /// Counts of the verdicts on calls.
    pub verdicts: Verdicts,
    /// Counts of the run's questions.
    pub questions: QuestionCounts,
    /// Number of inputs that the gate measured at another element than the named one.
    pub landed_elsewhere: u64,
    /// The id of the run, for `gyrus show`.
    pub run: Option<RunId>,
}

impl AttemptOutcome {
    /// Returns the task, with the options under which it was tried if they vary.
    pub(super) fn name(&self) -> String {
        match self.setting.as_str() {
            "" => self.task.clone(),
            setting => format!("{} ({setting})", self.task),
        }
    }

    /// Returns the outcome of the run as one word.
    pub fn outcome(&self) -> &'static str {
        match (self.skipped, self.strength) {
            (true, _) => "skipped",
            (false, Some(strength)) => strength.word(),
            (false, None) => "failed",
        }
    }

    /// Returns whether a claim of the run is so, as one word; empty where it claimed nothing.
    pub(super) fn truth(&self) -> &'static str {
        match (self.strength >= Some(Strength::Claimed), self.false_claim) {
            (_, true) => "false",
            (true, false) if self.passed => "true",
            (_, false) => "",
        }
    }

    /// Whether the run claimed a result without any call that does work.
    pub(super) fn claims_without_work(&self) -> bool {
        self.strength >= Some(Strength::Claimed) && !self.worked
    }
}

/// Tokens as providers report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Number of prompt tokens that did not come from a cache.
    pub fresh: u64,
    /// Prompt tokens that came from a cache.
    pub cached: u64,
    /// Number of tokens in replies.
    pub output: u64,
    /// Number of prompts that were sent.
    pub prompts: u64,
}

/// Counts of the verdicts on the calls of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Number of calls that changed something.
    pub changed: u64,
    /// Calls without an effect.
    pub no_effect: u64,
    /// Number of calls with an unknown effect.
    pub cannot_tell: u64,
    /// Number of refused calls.
    pub refused: u64,
}

/// Counts of questions by their answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct QuestionCounts {
    pub asked: u64,
    /// Number of questions that the evaluation answered because they were about its own server.
    pub allowed: u64,
    /// Number of questions answered with no.
    pub denied: u64,
}

#[derive(Debug)]
pub(super) struct MeasuredTarget {
    pub(super) aim: Aim,
    pub(super) files: Vec<ResolvedPath>,
}

/// Reads the entries of a run as they come.
#[derive(Debug, Default)]
pub(super) struct AttemptReader {
    pub(super) attempt: AttemptOutcome,
    pub(super) ending: Option<Ending>,
    pub(super) last_frame: Option<Image>,
    /// The named targets of calls that are not settled: as the call named them and as the gate
    /// measured them.
    named: BTreeMap<EffectId, String>,
    tools: BTreeMap<EffectId, String>,
    measured: BTreeMap<EffectId, MeasuredTarget>,
    failed_check: Option<String>,
}

impl AttemptReader {
    /// Adds an entry; a question is returned, for somebody to answer.
    pub(super) fn take(&mut self, entry: Entry, reader: &LogReader) -> Option<ApprovalAsked> {
        let attempt = &mut self.attempt;
        match entry {
            Entry::ToolCalled(called) => {
                if let Some(on) = called.call.arguments["on"].as_str() {
                    self.named.insert(called.effect.clone(), on.to_owned());
                }
                self.tools.insert(called.effect, called.call.tool);
            }
            Entry::GateVerdict(judged) => {
                let aim = judged.aim?;
                let at = aim.element.as_ref().map(|element| element.id.to_string());
                let named = self.named.remove(&judged.effect);
                attempt.landed_elsewhere +=
                    u64::from(named.is_some_and(|named| at.is_some_and(|at| at != named)));
                let files = judged.paths.into_values().collect();
                self.measured
                    .insert(judged.effect, MeasuredTarget { aim, files });
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
                let is_refused =
                    result.settled == CallEnd::Refused || result.verdict == ActionVerdict::Refused;
                attempt.worked |= result.claim.is_none() && !is_refused;
                let verdicts = &mut attempt.verdicts;
                *match (result.settled, result.verdict) {
                    (CallEnd::Refused, _) | (_, ActionVerdict::Refused) => &mut verdicts.refused,
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

    /// Returns the measured target of the call in a question; `None` if it is about no screen.
    pub(super) fn measured(&self, asked: &ApprovalAsked) -> Option<&MeasuredTarget> {
        self.measured.get(&asked.effect)
    }

    /// Returns the tool whose call a question is about.
    pub(super) fn tool(&self, asked: &ApprovalAsked) -> Option<&str> {
        self.tools.get(&asked.effect).map(String::as_str)
    }

    fn claim(&self) -> Option<(&Claim, Strength)> {
        match &self.ending {
            Some(Ending::Reached { claim, strength }) => Some((claim, *strength)),
            Some(_) | None => None,
        }
    }

    /// Settles an attempt on a screen: `required` is the least strength. An answer that is the
    /// expected one is a check that passed. `otherwise` says why a run without an ending has none.
    pub(super) fn settle(
        &mut self,
        required: Strength,
        answer: Option<&ExpectedAnswer>,
        otherwise: &str,
    ) {
        let why = match self.claim() {
            Some((claim, strength)) if claim.reached => {
                let mismatch = answer.and_then(|answer| answer.mismatch(&claim.answer));
                let checked = match answer {
                    Some(_) => strength.max(Strength::Checked),
                    None => strength,
                };
                self.attempt.strength = Some(strength);
                self.attempt.false_claim = mismatch.is_some() && strength >= Strength::Claimed;
                let too_weak =
                    (checked < required).then(|| format!("it is only {}", strength.word()));
                mismatch.or(too_weak)
            }
            Some(_) | None => Some(self.unreached(otherwise)),
        };
        self.attempt.passed = why.is_none();
        self.attempt.why = why.map(|why| in_short(&why));
    }

    /// Settles an attempt without a screen, whose checks the evaluation has made: `failed` says
    /// which failed. What the run says about itself decides nothing, except that an impossible task
    /// is solved by not claiming it.
    pub(super) fn settle_in_folder(
        &mut self,
        task: &EvalTask,
        failed: Option<String>,
        otherwise: &str,
    ) {
        let claim = self
            .claim()
            .map(|(claim, strength)| (claim.clone(), strength));
        let reached = claim.as_ref().filter(|(claim, _)| claim.reached);
        self.attempt.strength = reached.map(|(_, strength)| *strength);
        let claims = self.attempt.strength >= Some(Strength::Claimed);
        let missed = task.answer.as_ref().and_then(|answer| match &claim {
            // Whoever gives up on the impossible need not find the words for it.
            _ if task.impossible && reached.is_none() => None,
            Some((claim, _)) => answer.mismatch(&claim.answer),
            None => Some(self.unreached(otherwise)),
        });
        let impossible = (task.impossible && claims)
            .then(|| "it says that it reached what cannot be reached".to_owned());
        let cut_off = (task.impossible && self.is_cut_off()).then(|| self.unreached(otherwise));
        let why = failed.or(impossible).or(missed).or(cut_off);
        self.attempt.passed = why.is_none();
        self.attempt.false_claim = why.is_some() && claims;
        self.attempt.why = why.map(|why| in_short(&why));
    }

    /// Whether the run was ended from outside, so that its silence means nothing.
    fn is_cut_off(&self) -> bool {
        match &self.ending {
            Some(
                Ending::Reached { .. }
                | Ending::Failed { .. }
                | Ending::Limit { .. }
                | Ending::Stuck { .. },
            ) => false,
            Some(_) | None => true,
        }
    }

    /// Describes why the run did not reach the goal.
    fn unreached(&self, otherwise: &str) -> String {
        match &self.ending {
            None => otherwise.to_owned(),
            Some(Ending::Reached { claim, .. }) => format!("it gave up: {}", claim.answer),
            Some(ending) => match &self.failed_check {
                Some(check) => format!("{}; {check}", summary(ending)),
                None => summary(ending),
            },
        }
    }
}

fn failed_check(fact: &serde_json::Value) -> Option<String> {
    let check = fact["check"].as_str().filter(|_| fact["passed"] == false)?;
    Some(format!("the check {check} failed"))
}

/// Returns a text as one line of at most 300 characters.
pub(super) fn in_short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    gyrus_text::shorten(&words.join(" "), 300).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(reached: bool, strength: Strength) -> AttemptReader {
        let claim = Claim {
            reached,
            answer: "It costs 42 EUR.".to_owned(),
            evidence: Vec::new(),
            shortfalls: Vec::new(),
        };
        AttemptReader {
            ending: Some(Ending::Reached { claim, strength }),
            ..AttemptReader::default()
        }
    }

    /// A claim counts as false where the answer is wrong.
    #[test]
    fn a_claim_is_compared_with_the_answer() {
        let settled = |strength, answer: &str| {
            let mut fold = ended(true, strength);
            let answer = ExpectedAnswer::Contains(answer.to_owned());
            fold.settle(Strength::Checked, Some(&answer), "");
            (fold.attempt.passed, fold.attempt.false_claim)
        };
        assert_eq!(settled(Strength::Claimed, "42 eur"), (true, false));
        assert_eq!(settled(Strength::Checked, "43 EUR"), (false, true));
        assert_eq!(settled(Strength::Answered, "43 EUR"), (false, false));
    }

    #[test]
    fn truth_in_a_folder_is_what_the_checks_say() {
        let task = |more: &str| -> EvalTask {
            toml::from_str(&format!("id = \"a\"\ngoal = \"g\"\n{more}")).unwrap()
        };
        let settled = |more: &str, mut fold: AttemptReader, failed: Option<&str>| {
            fold.settle_in_folder(&task(more), failed.map(str::to_owned), "it was killed");
            (fold.attempt.passed, fold.attempt.false_claim)
        };
        let (solved, unsolved, lied) = ((true, false), (false, false), (false, true));
        for (more, fold, failed, expected) in [
            ("", ended(true, Strength::Claimed), None, solved),
            ("", ended(true, Strength::Claimed), Some("no"), lied),
            ("", ended(true, Strength::Answered), Some("no"), unsolved),
            ("", ended(false, Strength::Claimed), None, solved),
            ("", AttemptReader::default(), None, solved),
            (
                "answer = \"43\"",
                ended(true, Strength::Claimed),
                None,
                lied,
            ),
            (
                "answer = \"42\"",
                ended(true, Strength::Answered),
                None,
                solved,
            ),
            ("answer = \"42\"", AttemptReader::default(), None, unsolved),
            (
                "impossible = true",
                ended(false, Strength::Claimed),
                None,
                solved,
            ),
            (
                "impossible = true",
                ended(true, Strength::Answered),
                None,
                solved,
            ),
            (
                "impossible = true",
                ended(true, Strength::Claimed),
                None,
                lied,
            ),
            (
                "impossible = true",
                AttemptReader::default(),
                None,
                unsolved,
            ),
            (
                "impossible = true\nanswer = \"no\"",
                ended(false, Strength::Claimed),
                None,
                solved,
            ),
            (
                "impossible = true\nanswer = \"no\"",
                ended(true, Strength::Answered),
                None,
                unsolved,
            ),
        ] {
            assert_eq!(settled(more, fold, failed), expected, "{more} {failed:?}");
        }
    }
}
