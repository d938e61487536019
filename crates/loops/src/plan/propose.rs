//! From a goal to a plan in force: asking for a plan, checking and repairing it, and a person's
//! decision.

use std::sync::Arc;

use gyrus_contract::{
    Message, Origin, Perception, Purpose, Role, StopReason, SystemPart, Text, ToolSpec,
};
use gyrus_kernel::{ApprovalCard, EffectError, ModelQuestion, Run, Stop};
use serde_json::json;

use super::{
    CycleThought, PlanStage, Planner, callable,
    check::{self, Against, ValidPlan},
    draft::{self, AgentPlan},
    kernel_says, words,
};
use crate::{
    Review, prompt,
    review::{ReviewResult, ReviewSubject, review},
};

/// Maximum length of a textual answer that the reason of a failure quotes, in characters.
const ANSWER_CHARACTERS: usize = 300;

/// Maximum number of repairs of a plan by the model.
const MAX_REPAIRS: u32 = 3;

struct PlanForPerson<'a> {
    planner: &'a Planner,
    proposed: &'a ValidPlan,
    tools: Vec<Arc<ToolSpec>>,
}

impl ReviewSubject for PlanForPerson<'_> {
    type Edited = ValidPlan;

    fn what(&self) -> &'static str {
        "plan"
    }

    fn card(&self, wrong: &[String]) -> ApprovalCard {
        words::card(self.proposed, &self.tools, wrong)
    }

    async fn read(
        &self,
        run: &mut Run,
        edited: &str,
    ) -> Result<ValidPlan, EffectError<Vec<String>>> {
        let of_tool = |step: &_| check::of_tool(step, &self.tools);
        let draft = draft::read(edited, of_tool).map_err(EffectError::Failed)?;
        self.planner.validate_plan(run, draft, &self.tools)
    }
}

impl Planner {
    /// Returns a question with the common parts of the questions for a plan and for a summary.
    pub(super) fn question(
        &self,
        run: &Run,
        purpose: Purpose,
        perception: &Perception,
    ) -> ModelQuestion<'_> {
        let words = super::PROMPT;
        let mut question =
            prompt::question(run, &self.config, words, purpose, perception, &self.memory);
        let surroundings = words::surroundings(run.mode_at_start(), &super::tools(run));
        question.system.push(SystemPart::cacheable(surroundings));
        question
    }

    /// Returns a valid plan, an answer that the model repeats as text, or the reason why there is
    /// neither.
    pub(super) async fn plan_task(&mut self, run: &mut Run) -> Result<CycleThought, Stop> {
        let tools = callable(run);
        let mut talk = vec![kernel_says("Make the plan now.")];
        let mut wrong = Vec::new();
        let mut spoke = false;
        for attempt in 1..=1 + MAX_REPAIRS {
            let perception = run.perception();
            let question = ModelQuestion {
                tail: talk.clone(),
                output_schema: Some(draft::schema()),
                ..self.question(run, Purpose::Plan, &perception)
            };
            let reply = run.ask(question).await?;
            self.state.heard = run.goal().len();
            let said = reply.text();
            let speaks = reply.stop == StopReason::EndOfTurn
                && !said.contains('{')
                && !said.trim().is_empty();
            if speaks && std::mem::replace(&mut spoke, true) {
                let said = gyrus_text::shorten(said.trim(), ANSWER_CHARACTERS);
                return Ok(CycleThought::Hopeless(format!(
                    "the model answered in words instead of a plan: {said}"
                )));
            }
            let cut_off = "it was cut off at its length limit: plan fewer or shorter steps";
            let read = match reply.stop {
                StopReason::MaxTokens => Err(vec![cut_off.to_owned()]),
                StopReason::EndOfTurn | StopReason::ToolCalls => {
                    draft::read(&said, |step| check::of_tool(step, &tools))
                }
            };
            let read = read.map_err(EffectError::Failed);
            wrong = match read.and_then(|draft| self.validate_plan(run, draft, &tools)) {
                Ok(checked) => return Ok(CycleThought::Proposed(checked)),
                Err(error) => error.handled()?,
            };
            let fact = json!({"attempt": attempt, "text": wrong.join("; "), "wrong": wrong});
            run.note("plan.invalid", 1, &fact)?;
            if !reply.parts.is_empty() {
                talk.push(Message {
                    role: Role::Assistant,
                    parts: reply.parts,
                });
            }
            talk.push(kernel_says(&words::refused(&wrong)));
        }
        Ok(CycleThought::Hopeless(format!(
            "no plan could be carried out, after {MAX_REPAIRS} repairs; the last one: {}",
            wrong.join("; ")
        )))
    }

    fn validate_plan(
        &self,
        run: &mut Run,
        draft: AgentPlan,
        tools: &[Arc<ToolSpec>],
    ) -> Result<ValidPlan, EffectError<Vec<String>>> {
        let perception = run.perception();
        let before = self.state.past.iter();
        let against = Against {
            perception: &perception,
            tools,
            before: before.map(|step| (step.id.as_str(), step.worked)).collect(),
        };
        check::validate_plan(run, draft, &against)
    }

    /// Makes the plan the current one.
    fn adopt(&mut self, run: &mut Run, checked: ValidPlan) -> Result<(), Stop> {
        self.state.revision += 1;
        let listed = words::listed(&checked.draft);
        let fact = json!({
            "task": run.id(),
            "revision": self.state.revision,
            "text": listed,
            "goal": checked.draft.goal,
            "steps": words::fact(&checked),
        });
        run.note("task.plan", 1, &fact)?;
        self.remember_plan("The plan in force", &checked.draft);
        self.state.steps = checked.draft.steps;
        self.state.stage = PlanStage::Working;
        Ok(())
    }

    fn remember_plan(&mut self, what: &str, draft: &AgentPlan) {
        let text = format!("{what}:\n{}", json!(draft));
        let text = Text::new(text, Origin::Model);
        self.memory.add(Message::user(text));
    }

    /// Asks a person to decide, if that is required; returns the reason if the run ends.
    pub(super) async fn decide(
        &mut self,
        run: &mut Run,
        checked: ValidPlan,
    ) -> Result<Option<String>, Stop> {
        if !self.config.reviews(Review::Plan) {
            self.adopt(run, checked)?;
            return Ok(None);
        }
        let shown = PlanForPerson {
            planner: self,
            proposed: &checked,
            tools: callable(run),
        };
        match review(run, &shown).await? {
            ReviewResult::AsShown { .. } => self.adopt(run, checked)?,
            ReviewResult::Edited { edited, .. } => {
                let fact = json!({"text": words::listed(&edited.draft)});
                run.note("plan.edited", 1, &fact)?;
                self.adopt(run, edited)?;
            }
            ReviewResult::Rejected { words, .. } => {
                self.remember_plan("A plan that was not carried out", &checked.draft);
                self.plan_anew(&format!("A person rejected that plan and says: {words}"));
            }
            ReviewResult::Ended { why, .. } => return Ok(Some(why)),
        }
        Ok(None)
    }
}
