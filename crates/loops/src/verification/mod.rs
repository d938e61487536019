//! Verification, which wraps any loop: when it claims to be done, the task's own checks are made,
//! then an independent look is taken. A claim that does not hold is sent back to the loop, a few
//! times.
//!
//! Where the answer is to have a form, that comes first: one in another form goes back, too. A form
//! lifts nothing.
//!
//! A claim becomes *checked* when all checks passed, *verified* when a model that did not do the
//! work agrees as well. Without such a model a comparison of the screen before and after may send
//! the work back, and strengthens nothing.
//!
//! When the run ends, and reflection is on, it also asks for the lesson of the run.

mod answer;
mod check;
mod heuristic;
mod look;
pub(crate) mod lesson;

use gyrus_contract::{
    ActionVerdict, BoxedFuture, Claim, Evidence, ExecutionResult, MemoryBuffer, Strength, View,
};
use gyrus_kernel::{ErasedLoop, HandOverReport, InterruptedCycle, Run, Stop};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::check::{BadCheck, CHECK_MADE, Check};
pub(crate) use self::look::VERIFY;
use self::{check::CheckResult, look::Material};
use crate::{CognitiveConfig, reactive};

/// Maximum number of times that checks and models send the work back.
const SENT_BACK: u32 = 3;

/// Maximum number of times that a mere comparison sends the work back.
const SENT_BACK_BY_GUESS: u32 = 2;

/// The state between cycles.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct VerificationState {
    sent_back: u32,
    #[serde(default)]
    by_guess: u32,
    /// Whether an action changed a page or a folder.
    acted: bool,
}

pub(crate) struct VerifiedLoop {
    inner: Box<dyn ErasedLoop>,
    config: CognitiveConfig,
    state: VerificationState,
}

enum ClaimJudgement {
    /// The claim is accepted with this strength and evidence.
    Stands(Strength, Vec<Evidence>),
    /// The work continues, for this reason.
    Back(String),
    /// The run ends without having reached its goal, for this reason.
    Failed(String),
}

impl VerifiedLoop {
    /// Wraps `inner`, unless neither verification nor learning is requested.
    pub(crate) fn around(
        inner: Box<dyn ErasedLoop>,
        config: &CognitiveConfig,
    ) -> Box<dyn ErasedLoop> {
        if !config.verifies() && !lesson::is_wanted(config) {
            inner
        } else {
            Box::new(Self {
                inner,
                config: config.clone(),
                state: VerificationState::default(),
            })
        }
    }

    async fn turn(&mut self, run: &mut Run) -> Result<ExecutionResult, Stop> {
        let mut result = self.inner.cycle(run).await?;
        if !self.config.verifies() {
            return Ok(result);
        }
        self.state.acted |= result.actions.iter().any(|action| {
            action.observation.verdict == ActionVerdict::Changed
                && !reactive::only_goes_or_looks(&action.call.tool)
        });
        let Some(claim) = result.claim.clone().filter(|claim| claim.reached) else {
            return Ok(result);
        };
        let claim = match self.in_form(claim) {
            Ok(claim) => claim,
            Err(judgement) => {
                self.decide(&mut result, judgement);
                return Ok(result);
            }
        };
        result.claim = Some(claim.clone());
        let judgement = self.judge(run, &claim, result.strength).await?;
        self.decide(&mut result, judgement);
        Ok(result)
    }

    /// Returns a claim whose answer has the required form.
    fn in_form(&mut self, claim: Claim) -> Result<Claim, ClaimJudgement> {
        let Some(schema) = self.config.answer_schema.as_ref() else {
            return Ok(claim);
        };
        match answer::in_form(&claim.answer, schema) {
            Ok(answer) => Ok(Claim { answer, ..claim }),
            Err(why) => Err(self.back(&why).unwrap_or_else(|| {
                ClaimJudgement::Failed(format!(
                    "the model was sent back {SENT_BACK} times, and its answer has still not the \
                     form that was asked for: {why}"
                ))
            })),
        }
    }

    /// Carries a judgement out.
    fn decide(&mut self, result: &mut ExecutionResult, judgement: ClaimJudgement) {
        match judgement {
            ClaimJudgement::Stands(strength, evidence) => {
                result.strength = strength;
                if let Some(claim) = &mut result.claim {
                    claim.evidence.extend(evidence);
                }
            }
            ClaimJudgement::Back(why) => {
                result.claim = None;
                self.inner.sent_back(&why);
            }
            ClaimJudgement::Failed(why) => {
                result.claim = None;
                result.error = Some(why);
            }
        }
    }

    /// Judges a claim. `already` is the strength that the loop itself found.
    async fn judge(
        &mut self,
        run: &mut Run,
        claim: &Claim,
        already: Strength,
    ) -> Result<ClaimJudgement, Stop> {
        let checked = check::perform(run, &self.config.checks).await?;
        let failed: Vec<_> = checked.iter().filter(|check| !check.passed).collect();
        if !failed.is_empty() {
            let why = said_by(&failed);
            return Ok(self.back(&why).unwrap_or_else(|| {
                ClaimJudgement::Failed(format!(
                    "the model claims that the goal is reached, and was sent back {SENT_BACK} \
                     times. {why}"
                ))
            }));
        }
        let cycle = run.cycle();
        let mut evidence: Vec<_> = checked.iter().map(|one| one.evidence(cycle)).collect();
        let mut strength = if checked.is_empty() {
            already
        } else {
            already.max(Strength::Checked)
        };
        if self.config.looks_again && !self.inner.asks_no_model() {
            match self.look(run, claim).await? {
                LookResult::Agrees(found) => {
                    strength = Strength::Verified;
                    evidence.push(found);
                }
                LookResult::Doubts(why) => match self.back(&why) {
                    Some(back) => return Ok(back),
                    None => evidence.push(doubt(&why, cycle)),
                },
                LookResult::Differs(why) => {
                    if self.state.by_guess < SENT_BACK_BY_GUESS {
                        self.state.by_guess += 1;
                        return Ok(ClaimJudgement::Back(why));
                    }
                }
                LookResult::CannotSay => {}
            }
        }
        let required = self.config.required.unwrap_or(Strength::Answered);
        Ok(if strength >= required {
            ClaimJudgement::Stands(strength, evidence)
        } else {
            ClaimJudgement::Failed(format!(
                "the model claims that the goal is reached, but it is only {}, and {} was \
             required; its answer: {}",
                strength.word(),
                required.word(),
                claim.answer
            ))
        })
    }

    /// Sends the work back, unless the maximum is reached.
    fn back(&mut self, why: &str) -> Option<ClaimJudgement> {
        (self.state.sent_back < SENT_BACK).then(|| {
            self.state.sent_back += 1;
            ClaimJudgement::Back(why.to_owned())
        })
    }

    async fn look(&mut self, run: &mut Run, claim: &Claim) -> Result<LookResult, Stop> {
        let now = match run.look(true).await {
            Ok(now) => now,
            Err(error) => {
                error.handled()?;
                return Ok(LookResult::CannotSay);
            }
        };
        let seen = run.views(look::VIEWS).await?;
        let material = Material {
            claim,
            now: &now,
            seen: &seen,
            acted: self.state.acted,
        };
        let opinion = match look::perform(run, &material).await {
            Ok(opinion) => opinion,
            Err(error) => {
                let why = error.handled()?;
                let guess = self.guess(run, &material);
                let fact = json!({ "by": "comparison", "because": why, "guess": guess });
                run.note("verification.look", 1, &fact)?;
                return Ok(self.compare(run, &material));
            }
        };
        let fact = json!({ "by": "model", "passes": look::PASSES, "opinion": opinion });
        run.note("verification.look", 1, &fact)?;
        let reasons = opinion.reasons.join("; ");
        Ok(if opinion.score < look::PASSES {
            LookResult::Doubts(format!(
                "An independent look gives {} of 100; {} pass. It says: {reasons}",
                opinion.score,
                look::PASSES
            ))
        } else if opinion.does_not_count.is_some() {
            LookResult::CannotSay
        } else {
            let quoted = if opinion.quotation.is_empty() {
                String::new()
            } else {
                format!("; the page says “{}”", opinion.quotation)
            };
            LookResult::Agrees(Evidence {
                what: format!(
                    "an independent look gives {} of 100: {reasons}{quoted}",
                    opinion.score
                ),
                at: format!("step {}", run.cycle()),
            })
        })
    }

    fn guess(&self, run: &Run, material: &Material<'_>) -> Option<heuristic::Guess> {
        let before: &View = material.seen.first().filter(|_| material.acted)?;
        let goal = run.goal();
        let words: Vec<_> = goal.iter().map(|text| text.text.as_str()).collect();
        Some(heuristic::guess(&words.join(" "), before, material.now))
    }

    fn compare(&self, run: &Run, material: &Material<'_>) -> LookResult {
        match self.guess(run, material) {
            Some(guess) if guess.score < look::PASSES => LookResult::Differs(format!(
                "The screen does not look as if the goal were reached ({} of 100: picture {} of \
                 30, elements {} of 30, words of the goal {} of 40). If it is reached, show where \
                 that can be seen, and finish again.",
                guess.score, guess.visual, guess.structural, guess.words
            )),
            Some(_) | None => LookResult::CannotSay,
        }
    }
}

enum LookResult {
    Agrees(Evidence),
    /// A model found something missing.
    Doubts(String),
    /// A comparison found something missing.
    Differs(String),
    CannotSay,
}

fn said_by(failed: &[&CheckResult]) -> String {
    let mut text = "The goal is not reached yet. These checks failed:".to_owned();
    for check in failed {
        text.push_str(&format!("\n- {}: {}", check.check, check.says));
    }
    text
}

fn doubt(why: &str, cycle: u32) -> Evidence {
    Evidence {
        what: format!("against it: {why}"),
        at: format!("step {cycle}"),
    }
}

impl ErasedLoop for VerifiedLoop {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn unfinished(&self) -> InterruptedCycle {
        self.inner.unfinished()
    }

    fn memory(&self) -> &MemoryBuffer {
        self.inner.memory()
    }

    fn memory_mut(&mut self) -> &mut MemoryBuffer {
        self.inner.memory_mut()
    }

    fn save(&self) -> Result<Value, Stop> {
        Ok(json!({ "loop": self.inner.save()?, "verification": self.state }))
    }

    fn load(&mut self, version: u32, mut state: Value) -> Result<(), String> {
        if state.get("verification").is_none() {
            // Of a run that was begun by a version that did not ask for lessons.
            return self.inner.load(version, state);
        }
        let own = state["verification"].take();
        self.state = serde_json::from_value(own).map_err(|error| error.to_string())?;
        self.inner.load(version, state["loop"].take())
    }

    fn cycle<'a>(&'a mut self, run: &'a mut Run) -> BoxedFuture<'a, Result<ExecutionResult, Stop>> {
        Box::pin(self.turn(run))
    }

    fn conclude<'a>(
        &'a mut self,
        run: &'a mut Run,
        result: &'a ExecutionResult,
    ) -> BoxedFuture<'a, Result<(), Stop>> {
        Box::pin(async move {
            self.inner.conclude(run, result).await?;
            if lesson::is_wanted(&self.config) && !self.inner.asks_no_model() {
                let (memory, work) = (self.inner.memory(), self.inner.recent_work());
                lesson::record(run, &self.config, memory, work, result).await?;
            }
            Ok(())
        })
    }

    fn recent_work(&self) -> Option<String> {
        self.inner.recent_work()
    }

    fn asks_no_model(&self) -> bool {
        self.inner.asks_no_model()
    }

    fn sent_back(&mut self, why: &str) {
        self.inner.sent_back(why);
    }

    fn hand_over(&mut self, handed: &HandOverReport) {
        self.inner.hand_over(handed);
    }
}
