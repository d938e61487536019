//! The engineer loop: work that an outside judge accepts or rejects.
//!
//! Phase 0 searches documents and the journal of past runs, and writes one plan. Phase 1 is ReAct
//! with that plan before it. Phase 2 submits to a [`Judge`]: a rejection is returned as an
//! observation and phase 1 continues, a few times; after an acceptance the model says what went
//! right, for the journal of later runs. See `docs/engineer.md`.
//!
//! A submission is part of the cycle in which the model asks for it, so that a cycle always ends
//! between two whole turns.

mod judge;

use std::sync::Arc;

use gyrus_contract::{
    Action, Claim, Evidence, ExecutionResult, Perception, Plan, Purpose, Strength,
};
use gyrus_kernel::{CognitiveLoop, ModelQuestion, Run, Stop, ToolOffer};
use gyrus_text::shorten;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::judge::JudgeVerdict;
pub use self::judge::{BadJudge, Judge};
use crate::{
    CognitiveConfig, LoopKind, React, ReactState, browse,
    config::DEFAULT_OUTPUT_TOKENS,
    delegate, goal,
    json::the_object,
    react::{TurnProfile, acts_by_react},
};

const PROMPT: &str = include_str!("engineer.md");
const WENT_RIGHT_PROMPT: &str = include_str!("went_right.md");

/// The description of the loop `engineer`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "engineer",
    prompts: &[PROMPT, WENT_RIGHT_PROMPT],
    max_iterations: Some(100),
    max_output_tokens: DEFAULT_OUTPUT_TOKENS,
    build: |config| Ok(Box::new(Engineer::new(config)?)),
};

/// The kind of the fact with the lessons of a success.
pub const WENT_RIGHT: &str = "engineer.went_right";

/// Maximum number of rejected submissions after which the work continues.
const MAX_RETRIES: u32 = 3;

/// Maximum number of consecutive submissions that no judge ruled on before the run gives up.
const MAX_UNRULED: u32 = 3;

/// Maximum number of search turns before the model must plan.
const MAX_SEARCHES: u32 = 10;

/// Number of further turns before the loop concludes that there will be no plan.
const MAX_REMINDERS: u32 = 2;

/// Maximum number of characters of a plan, which is part of every question.
const PLAN_CHARACTERS: usize = 12_000;

/// Maximum number of stored characters of the last report. Memory has all of it.
const REPORT_CHARACTERS: usize = 4_000;

/// The state between cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineerState {
    phase: EngineerPhase,
    /// Number of turns in all phases.
    steps: u32,
    /// The plan; empty before it is made.
    plan: String,
    /// The last report of a rejection, or the reason why there was no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Number of rejections followed by more work.
    retries: u32,
    /// Number of consecutive submissions that no judge ruled on.
    #[serde(default)]
    unheard: u32,
    /// The state of the acting part.
    acting: ReactState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EngineerPhase {
    /// The model searches, then makes one plan.
    #[default]
    Planning,
    /// Acting, until the model submits.
    Executing,
    /// The work was submitted: the judge decides, or has accepted.
    Validating,
}

impl EngineerPhase {
    fn word(self) -> &'static str {
        match self {
            EngineerPhase::Planning => "planning",
            EngineerPhase::Executing => "executing",
            EngineerPhase::Validating => "validating",
        }
    }
}

/// A loop that plans, works and submits to a judge.
#[derive(Debug)]
pub struct Engineer {
    acting: React,
    config: CognitiveConfig,
    judge: Judge,
    state: EngineerState,
}

impl Engineer {
    /// Creates a loop with this configuration.
    ///
    /// # Errors
    /// A message if the configuration names no judge.
    pub fn new(config: CognitiveConfig) -> Result<Self, String> {
        let judge = config.judge.as_ref().cloned();
        let judge = judge.ok_or("the loop `engineer` needs a judge, and none is configured")?;
        Ok(Self {
            acting: React::new(config.clone()),
            config,
            judge,
            state: EngineerState::default(),
        })
    }

    /// Returns the profile of the acting part in this turn, which follows from state and
    /// configuration.
    fn profile(&self, run: &Run) -> TurnProfile {
        let reads = browse::only_reads(run, &[]);
        let mut tools = browse::specs(run);
        tools.extend(delegate::spec(&self.config));
        let missing = reads.iter().filter(|read| !tools.contains(read)).cloned();
        tools.extend(missing.collect::<Vec<_>>());
        tools.extend(self.judge.spec().map(Arc::new));
        let profile = TurnProfile {
            words: format!("{PROMPT}\n{}", self.judge.in_words()),
            tools: Some(tools),
            ..TurnProfile::default()
        };
        match self.state.phase {
            EngineerPhase::Planning => TurnProfile {
                purpose: Purpose::Plan,
                callable: Some(reads),
                ..profile
            },
            EngineerPhase::Executing | EngineerPhase::Validating => TurnProfile {
                purpose: Purpose::Agent,
                plan: Some(self.state.plan.clone()),
                judge: Some(self.judge.clone()),
                ..profile
            },
        }
    }

    /// Appends the request for a plan to the prompt, whose earlier messages stay unchanged.
    fn ask_for_plan(&mut self) {
        let docs = match self.config.docs.as_deref() {
            Some(folder) => format!("The documents are in the folder `{folder}`."),
            None => "No folder with documents was named.".to_owned(),
        };
        self.acting
            .tell(format!("First the plan, in words. {docs}"));
    }

    fn enter(&mut self, run: &mut Run, phase: EngineerPhase) -> Result<(), Stop> {
        self.state.phase = phase;
        let fact = json!({
            "text": phase.word(),
            "step": self.state.steps,
            "retries": self.state.retries,
        });
        run.note("phase", 1, &fact)
    }

    /// Runs a turn of phase 0: searches, or the plan.
    async fn run_phase_0(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        if let Some(why) = self.judge.missing(run) {
            return Ok(ExecutionResult {
                error: Some(why),
                ..ExecutionResult::default()
            });
        }
        let asks_for_tools = plan.tool_calls().next().is_some();
        let said = plan.steps.first().map_or("", |step| step.thought.trim());
        if !asks_for_tools && !said.is_empty() {
            self.carry_out(run, said)?;
            return Ok(ExecutionResult::default());
        }
        // Who wants to begin has seen enough.
        let begins = (plan.tool_calls()).any(|call| self.acting.profile.withholds(run, call));
        let mut result = if asks_for_tools {
            self.acting.act(run, plan).await?
        } else {
            ExecutionResult::default()
        };
        if !asks_for_tools || begins || self.state.steps >= MAX_SEARCHES {
            let said = self.plan_alone(run).await?;
            if !said.trim().is_empty() {
                self.memory_buffer_mut().add_agent_response(said.as_str());
                self.carry_out(run, &said)?;
                return Ok(result);
            }
        }
        if self.state.steps >= MAX_SEARCHES + MAX_REMINDERS {
            let turns = self.state.steps;
            result.error = Some(format!("the model wrote no plan in {turns} turns"));
        }
        Ok(result)
    }

    /// Requests the plan alone, without tools, which small models call as long as they may.
    async fn plan_alone(&self, run: &mut Run) -> Result<String, Stop> {
        let words = "Write the plan now. Answer with one JSON object: {\"plan\": \"…\"}";
        let question = ModelQuestion {
            tools: ToolOffer::Withheld,
            output_schema: Some(json!({
                "type": "object",
                "properties": {"plan": {"type": "string"}},
                "required": ["plan"],
                "additionalProperties": false,
            })),
            ..self
                .acting
                .aside(run, &run.perception(), Purpose::Plan, words)
        };
        let said = run.ask(question).await?.text();
        let object = the_object(&said, "plan").ok();
        let plan = object.and_then(|object| object["plan"].as_str().map(str::to_owned));
        Ok(plan.unwrap_or(said))
    }

    fn carry_out(&mut self, run: &mut Run, plan: &str) -> Result<(), Stop> {
        self.state.plan = shorten(plan, PLAN_CHARACTERS).into_owned();
        run.note("engineer.plan", 1, &json!({ "plan": self.state.plan }))?;
        self.enter(run, EngineerPhase::Executing)?;
        self.acting.tell("Now carry the plan out, step by step.");
        Ok(())
    }

    /// Runs a turn of phase 1: think, act, observe; and phase 2 if the model submits in it.
    async fn run_phase_1(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let submits = plan.tool_calls().any(|call| self.judge.hears(call))
            || self.acting.submission_in_words(plan).is_some();
        if submits {
            self.enter(run, EngineerPhase::Validating)?;
        }
        let mut result = self.acting.act(run, plan).await?;
        let heard = result.actions.iter();
        let heard = heard
            .filter(|action| self.judge.hears(&action.call))
            .find(|action| action.observation.claim.is_none());
        if let Some(submission) = heard.cloned().filter(|_| submits) {
            self.run_phase_2(run, plan, &submission, &mut result)?;
        }
        Ok(result)
    }

    /// Draws the consequences of a submission: the work is done, or phase 1 goes on.
    fn run_phase_2(
        &mut self,
        run: &mut Run,
        plan: &Plan,
        submission: &Action,
        result: &mut ExecutionResult,
    ) -> Result<(), Stop> {
        let verdict = self.judge.verdict(&submission.observation);
        self.note_verdict(run, verdict, submission)?;
        match verdict {
            JudgeVerdict::Accepted => {
                self.state.last_error = None;
                self.state.unheard = 0;
                let thought = plan.steps.first().map_or("", |step| &step.thought);
                result.claim = Some(self.claim(thought, submission));
                result.strength = Strength::Checked;
            }
            JudgeVerdict::Rejected | JudgeVerdict::NoRuling => {
                result.error = self.goes_on(verdict, submission);
                if result.error.is_none() {
                    self.enter(run, EngineerPhase::Executing)?;
                }
            }
        }
        Ok(())
    }

    fn note_verdict(
        &self,
        run: &mut Run,
        verdict: JudgeVerdict,
        submission: &Action,
    ) -> Result<(), Stop> {
        let report = &submission.observation.text.text;
        let text = match verdict {
            JudgeVerdict::Accepted => "the judge accepted the work".to_owned(),
            JudgeVerdict::Rejected => {
                format!("the judge rejected the work: {}", shorten(report, 200))
            }
            JudgeVerdict::NoRuling => format!("no verdict came: {}", shorten(report, 200)),
        };
        let fact = json!({
            "text": text,
            "judge": self.judge,
            "accepted": verdict == JudgeVerdict::Accepted,
            "effect": submission.observation.effect,
            "retries": self.state.retries,
            "images": submission.observation.images.len(),
        });
        run.note("judge.verdict", 1, &fact)
    }

    fn claim(&self, thought: &str, submission: &Action) -> Claim {
        let seen = &submission.observation;
        let summary = submission.call.arguments["summary"].as_str();
        let words = summary.unwrap_or(thought).trim();
        let answer = if words.is_empty() {
            "The judge accepted the work."
        } else {
            words
        };
        Claim {
            reached: true,
            answer: answer.to_owned(),
            evidence: vec![Evidence {
                what: format!("the judge accepted it: {}", self.judge),
                at: seen.effect.to_string(),
            }],
            shortfalls: Vec::new(),
        }
    }

    /// Decides how to continue after a submission that was not accepted; returns the reason if the
    /// run ends.
    fn goes_on(&mut self, verdict: JudgeVerdict, submission: &Action) -> Option<String> {
        let report = shorten(&submission.observation.text.text, REPORT_CHARACTERS).into_owned();
        self.state.last_error = Some(report.clone());
        if verdict == JudgeVerdict::NoRuling {
            self.state.unheard += 1;
            return (self.state.unheard > MAX_UNRULED).then(|| {
                format!("no verdict came from the judge, the last time because: {report}")
            });
        }
        self.state.unheard = 0;
        if self.state.retries >= MAX_RETRIES {
            let times = 1 + MAX_RETRIES;
            return Some(format!(
                "the judge rejected the work {times} times; its last report: {report}"
            ));
        }
        self.state.retries += 1;
        let left = match 1 + MAX_RETRIES - self.state.retries {
            1 => "the next submission is the last".to_owned(),
            left => format!("{left} more submissions count"),
        };
        self.acting.tell(format!(
            "The judge rejected the work. Find out why, fix it, and submit again: {left}."
        ));
        None
    }
}

impl CognitiveLoop for Engineer {
    acts_by_react!(EngineerState);

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        self.state.steps += 1;
        if self.state.steps == 1 {
            self.enter(run, EngineerPhase::Planning)?;
            self.ask_for_plan();
        }
        self.acting.profile = self.profile(run);
        self.acting.perceive(run).await
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        // The model is not asked for work that cannot be judged.
        if self.judge.missing(run).is_some() {
            return Ok(Plan::with_goal(goal::first_goal(perception)));
        }
        self.acting.think(run, perception).await
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let result = match self.state.phase {
            EngineerPhase::Planning => self.run_phase_0(run, plan).await,
            EngineerPhase::Executing | EngineerPhase::Validating => {
                self.run_phase_1(run, plan).await
            }
        };
        self.state.acting = self.acting.state().clone();
        result
    }

    /// Records the lessons of a success, for later runs.
    async fn conclude(&mut self, run: &mut Run, result: &ExecutionResult) -> Result<(), Stop> {
        let reached = result.claim.as_ref().is_some_and(|claim| claim.reached);
        if !reached || result.error.is_some() {
            return Ok(());
        }
        let words = self.acting.last_words(run, WENT_RIGHT_PROMPT).await?;
        match words.trim() {
            "" => Ok(()),
            words => run.note(WENT_RIGHT, 1, &json!({ "text": words })),
        }
    }

    fn sent_back(&mut self, why: &str) {
        self.state.phase = EngineerPhase::Executing;
        let memory = self.acting.memory_buffer_mut();
        memory.add_observation("verification", why);
        self.acting
            .tell("Mend what was found, and submit to the judge again.");
    }
}
