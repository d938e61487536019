//! The changeset loop: changes of many files at once, reviewed by a person.
//!
//! It looks for files that are relevant to the goal, and a person accepts, drops and adds some. The
//! model reads on and proposes one changeset, without any tool that changes files. A person
//! approves, edits or rejects it. Then all of it is applied, or nothing, and a reflection is
//! recorded for later runs. [`CHANGE_CYCLE`](gyrus_contract::CHANGE_CYCLE) is the table of all
//! transitions; see `docs/changeset.md`.
//!
//! One cycle finds the files, including the person's decision. Planning is [`React`] with another
//! [`TurnProfile`], one turn per cycle. The turn that proposes continues with the person's decision
//! and applying, so between two cycles the state is `IDLE` or `PLANNING_WITH_CONTEXT`.

mod context;
mod diff;
mod proposal;

use gyrus_contract::{
    Action, ApplyChangesetCall, Arguments as _, ChangeEvent, ChangeState, ExecutionResult, FINISH,
    Message, Origin, Part, Perception, Plan, ProposeChangesetCall, Purpose, RankedFile,
    ReadJournalCall, Role, Strength, Text, TypedCall as _,
};
use gyrus_kernel::{CognitiveLoop, EffectError, Run, Stop};
use gyrus_text::shorten;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::context::{RankedContext, counted, is_files, measured, read_all};
use crate::{
    CognitiveConfig, LoopKind, React, ReactState, Review, browse,
    config::DEFAULT_OUTPUT_TOKENS,
    goal,
    react::{TurnProfile, acts_by_react},
    review::{ReviewResult, review},
    verification::lesson,
};

const PROMPT: &str = include_str!("changeset.md");
const REFLECTION_PROMPT: &str = include_str!("reflection.md");

/// The description of the loop `changeset`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "changeset",
    prompts: &[PROMPT, REFLECTION_PROMPT],
    max_iterations: Some(100),
    max_output_tokens: DEFAULT_OUTPUT_TOKENS,
    build: |config| Ok(Box::new(Changeset::new(config))),
};

/// The kind of the fact with the reflection on a changeset.
pub const REFLECTION: &str = "changeset.reflection";

/// Maximum number of characters of goals and queries.
const QUERY_CHARACTERS: usize = 4_000;

/// Recorded name of the approver when no person is asked.
const CONFIGURATION: &str = "configuration";

/// The state between cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangesetState {
    state: ChangeState,
    /// The approved files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<Vec<RankedFile>>,
    /// The outcome of the last proposal, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<ProposalOutcome>,
    /// Number of proposals that could not be applied.
    failures: u32,
    /// The reason why the last changeset could not be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// The state of the planning part.
    acting: ReactState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProposalOutcome {
    Applied,
    Failed,
    Rejected,
}

/// The reason for ending without changes, and the person who decided it, if one did.
struct NoChangesReason {
    why: String,
    by: Option<String>,
}

/// A loop that finds files, plans with them, has the plan approved, and applies it.
#[derive(Debug)]
pub struct Changeset {
    acting: React,
    config: CognitiveConfig,
    state: ChangesetState,
}

/// Returns the call that applies an edited proposal.
pub(crate) fn edited(text: &str) -> Result<ApplyChangesetCall, Vec<String>> {
    Ok(diff::apply(&diff::read(text)?, None))
}

impl Changeset {
    /// Creates a loop with this configuration.
    pub fn new(config: CognitiveConfig) -> Self {
        Self {
            acting: React::new(config.clone()),
            config,
            state: ChangesetState::default(),
        }
    }

    /// Makes a transition of the table and records it, with the person who decided it, if one did.
    fn step(
        &mut self,
        run: &mut Run,
        event: ChangeEvent,
        text: &str,
        by: Option<&str>,
    ) -> Result<(), Stop> {
        let from = self.state.state;
        let to = from
            .on(event)
            .map_err(|illegal| Stop::Failed(illegal.to_string()))?;
        self.state.state = to;
        let mut fact = json!({"from": from, "event": event, "to": to, "text": text});
        if let Some(by) = by {
            fact["by"] = json!(by);
        }
        if event == ChangeEvent::Failed {
            fact["last_error"] = json!(self.state.last_error);
        }
        run.note("changeset.state", 1, &fact)
    }

    /// Ends the work without changes.
    fn abort(&mut self, run: &mut Run, abort: NoChangesReason) -> Result<ExecutionResult, Stop> {
        self.step(run, ChangeEvent::Abort, &abort.why, abort.by.as_deref())?;
        Ok(ExecutionResult {
            error: Some(abort.why),
            ..ExecutionResult::default()
        })
    }

    /// Selects the files, has them approved and reads them, from `IDLE` to planning. Files that
    /// were approved before are only read again.
    async fn curate(&mut self, run: &mut Run) -> Result<ExecutionResult, Stop> {
        let known = self.state.context.clone();
        let text = match known {
            Some(_) => "again, with the same files",
            None => "looking for the files that the goal is about",
        };
        self.step(run, ChangeEvent::Start, text, None)?;
        let files = match known {
            Some(files) => {
                self.step(run, ChangeEvent::ContextReady, &counted(&files), None)?;
                let by = Some("approved before");
                self.step(run, ChangeEvent::ApproveContext, "the same files", by)?;
                self.read(run, files).await?
            }
            None => {
                let files = match self.choose(run).await {
                    Ok(files) => files,
                    Err(error) => return self.abort(run, error.handled()?),
                };
                let files = self.read(run, files).await?;
                self.recall(run).await?;
                files
            }
        };
        self.state.context = Some(files);
        Ok(ExecutionResult::default())
    }

    /// Returns the files, with a person's approval if that is required.
    async fn choose(
        &mut self,
        run: &mut Run,
    ) -> Result<Vec<RankedFile>, EffectError<NoChangesReason>> {
        let mut words = goal::goal_in_words(run);
        loop {
            let found = RankedContext::about(run, &shorten(&words, QUERY_CHARACTERS)).await?;
            let found_files = counted(&found.chosen());
            self.step(run, ChangeEvent::ContextReady, &found_files, None)?;
            if !self.config.reviews(Review::Context) {
                let by = Some(CONFIGURATION);
                self.step(
                    run,
                    ChangeEvent::ApproveContext,
                    "nobody is asked about them",
                    by,
                )?;
                return Ok(found.chosen());
            }
            match review(run, &found).await? {
                ReviewResult::AsShown { by } => {
                    self.step(
                        run,
                        ChangeEvent::ApproveContext,
                        "as they were found",
                        Some(&by),
                    )?;
                    return Ok(found.chosen());
                }
                ReviewResult::Edited { edited, by } => {
                    let text = format!("as the person changed them: {}", counted(&edited));
                    self.step(run, ChangeEvent::ApproveContext, &text, Some(&by))?;
                    return Ok(edited);
                }
                ReviewResult::Rejected { words: said, by } => {
                    self.step(run, ChangeEvent::RejectContext, &said, Some(&by))?;
                    self.acting.tell(format!(
                        "The person did not want the files that were found first, and says: {said}"
                    ));
                    // The newest words come first, so that they are not cut off.
                    words = format!("{said}\n{words}");
                }
                ReviewResult::Ended { why, by } => {
                    return Err(EffectError::Failed(NoChangesReason { why, by }));
                }
            }
        }
    }

    /// Reads approved files into memory, replacing earlier readings.
    async fn read(
        &mut self,
        run: &mut Run,
        mut files: Vec<RankedFile>,
    ) -> Result<Vec<RankedFile>, Stop> {
        let vouched = if self.config.reviews(Review::Context) {
            ", which the person approved"
        } else {
            ""
        };
        if let Some(message) = read_all(run, &mut files, vouched).await? {
            let memory = self.acting.memory_buffer_mut();
            if memory.recent(usize::MAX).any(|past| is_files(past)) {
                let past = memory.recent(usize::MAX).filter(|past| !is_files(past));
                let past: Vec<_> = past.cloned().collect();
                memory.rewrite(past);
            }
            memory.add(message);
        }
        let fact = json!({"text": measured(run, &files), "files": files});
        run.note("changeset.context", 1, &fact)?;
        Ok(files)
    }

    /// Recalls the notes of earlier runs in this folder about similar goals.
    async fn recall(&mut self, run: &mut Run) -> Result<(), Stop> {
        let mut tools = run.tools().iter();
        if !tools.any(|spec| spec.name == ReadJournalCall::TOOL) {
            return Ok(());
        }
        let goal = goal::goal_in_words(run);
        let query = Some(shorten(&goal, QUERY_CHARACTERS).into_owned());
        let seen = run.call(&ReadJournalCall { query }.to_call()).await?;
        let lead = "How earlier runs in this folder went, as far as they were about the same:";
        let parts = [Text::new(lead, Origin::Kernel), seen.text].map(Part::Text);
        let told = Message {
            role: Role::User,
            parts: parts.into(),
        };
        if !seen.is_error {
            self.acting.memory_buffer_mut().add(told);
        }
        Ok(())
    }

    fn profile(&self, run: &Run) -> TurnProfile {
        let mut words = PROMPT.to_owned();
        if let Some(command) = self.config.verify.as_deref() {
            words.push_str(&format!(
                "\nOnce the files are in place, the command `{command}` is run. If it fails, all \
                 of them are put back, and you are told what it said."
            ));
        }
        TurnProfile {
            words,
            purpose: Purpose::Plan,
            tools: Some(browse::only_reads(
                run,
                &[ProposeChangesetCall::TOOL, FINISH],
            )),
            ..TurnProfile::default()
        }
    }

    /// Runs a turn of planning, and handles the proposal if there is one.
    async fn plan(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let result = self.acting.act(run, plan).await?;
        let proposes = |action: &&Action| {
            action.call.tool == ProposeChangesetCall::TOOL && !action.observation.is_error
        };
        let gives_up = result.claim.as_ref().is_some_and(|claim| !claim.reached);
        // Of two proposals in one turn the later counts, and a claim beside one is about it.
        match result.actions.iter().rfind(proposes) {
            Some(action) if !gives_up => {
                let proposal = ProposeChangesetCall::value_of(&action.observation);
                self.proposed(run, result, proposal).await
            }
            _ => {
                if let Some(claim) = &result.claim {
                    let why = format!("the model proposes nothing: {}", claim.answer);
                    self.step(run, ChangeEvent::Abort, &why, None)?;
                }
                // Where nothing is proposed nothing was reached.
                Ok(ExecutionResult {
                    strength: Strength::Answered,
                    ..result
                })
            }
        }
    }
}

impl CognitiveLoop for Changeset {
    acts_by_react!(ChangesetState);

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        self.acting.profile = self.profile(run);
        self.acting.perceive(run).await
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        match self.state.state {
            ChangeState::PlanningWithContext => self.acting.think(run, perception).await,
            _ => Ok(Plan::with_goal(goal::first_goal(perception))),
        }
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let result = match self.state.state {
            ChangeState::PlanningWithContext => self.plan(run, plan).await,
            _ => self.curate(run).await,
        };
        self.state.acting = self.acting.state().clone();
        result
    }

    /// Records the reflection for later runs.
    async fn conclude(&mut self, run: &mut Run, result: &ExecutionResult) -> Result<(), Stop> {
        let Some(outcome) = self.state.outcome else {
            return Ok(());
        };
        let ended = match (&result.error, outcome) {
            (Some(why), _) => format!("It ended like this: {}", shorten(why, QUERY_CHARACTERS)),
            (None, ProposalOutcome::Applied) => "It was applied.".to_owned(),
            (None, ProposalOutcome::Failed | ProposalOutcome::Rejected) => {
                "It was given up.".to_owned()
            }
        };
        let words = format!("{REFLECTION_PROMPT}\n{ended}");
        let said = self.acting.last_words(run, &words).await?;
        let [worked, did_not] = lesson::read(&said, outcome == ProposalOutcome::Applied);
        if worked.is_empty() && did_not.is_empty() {
            return Ok(());
        }
        let fact = json!({
            "outcome": outcome,
            "goal": goal::first_goal(&run.perception()),
            "worked": worked,
            "did_not": did_not,
        });
        run.note(REFLECTION, 1, &fact)
    }

    fn sent_back(&mut self, why: &str) {
        let memory = self.acting.memory_buffer_mut();
        memory.add_observation("verification", why);
        self.acting
            .tell("Propose another changeset that fixes what was found.");
    }
}
