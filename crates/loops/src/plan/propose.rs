//! From a goal to a plan in force: asked for, checked, repaired, decided about by a person.

use std::sync::Arc;

use gyrus_contract::{Message, Origin, Purpose, Role, StopReason, SystemPart, Text, ToolSpec};
use gyrus_kernel::{Ask, Run, Stop};
use serde_json::json;

use super::{
    Planner, Stage, Turn,
    check::{self, Against, Checked},
    draft::{self, Draft},
    kernel_says, tools, words,
};
use crate::prompt;

/// A model may repair a plan so often.
const MAX_REPAIRS: u32 = 3;

/// What became of a plan that a person was shown.
enum Reviewed {
    Approved(Checked),
    /// The words go back to the model.
    Rejected(String),
    /// Without words there is nothing to plan.
    Ended(String),
}

impl Planner {
    /// A plan that may be carried out, or why there is none.
    pub(super) async fn propose(&mut self, run: &mut Run) -> Result<Turn, Stop> {
        let tools = tools(run);
        let mut talk = vec![kernel_says("Make the plan now.")];
        let mut wrong = Vec::new();
        for attempt in 1..=1 + MAX_REPAIRS {
            let mut question = prompt::question(
                &self.config,
                prompt::PLAN,
                Purpose::Plan,
                &run.perception(),
                &self.memory,
            );
            question.system.push(SystemPart {
                text: words::surroundings(run.mode_at_start(), &tools),
                cacheable: true,
            });
            let reply = run
                .ask(Ask {
                    tail: talk.clone(),
                    output_schema: Some(draft::schema()),
                    ..question
                })
                .await?;
            self.state.heard = run.goal().len();
            let cut_off = "it was cut off at its length limit: plan fewer or shorter steps";
            let read = match reply.stop {
                StopReason::MaxTokens => Err(vec![cut_off.to_owned()]),
                StopReason::EndOfTurn | StopReason::ToolCalls => draft::read(&reply.text()),
            };
            let checked = match read {
                Ok(draft) => self.check(run, draft, &tools)?,
                Err(wrong) => Err(wrong),
            };
            wrong = match checked {
                Ok(checked) => return Ok(Turn::Proposed(checked)),
                Err(wrong) => wrong,
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
        Ok(Turn::Hopeless(format!(
            "no plan could be carried out, after {MAX_REPAIRS} repairs; the last one: {}",
            wrong.join("; ")
        )))
    }

    fn check(
        &self,
        run: &mut Run,
        draft: Draft,
        tools: &[Arc<ToolSpec>],
    ) -> Result<Result<Checked, Vec<String>>, Stop> {
        let perception = run.perception();
        let before = self.state.past.iter();
        let against = Against {
            perception: &perception,
            tools,
            before: before.map(|step| (step.id.as_str(), step.worked)).collect(),
        };
        check::check(run, draft, &against)
    }

    /// Shows a plan to a person, as often as they change it into something that cannot be done.
    async fn review(&self, run: &mut Run, proposed: Checked) -> Result<Reviewed, Stop> {
        let tools = tools(run);
        let mut card = words::card(&proposed, &tools, &[]);
        loop {
            let answer = run.approve(card.clone()).await?;
            let edited = match (answer.approved, answer.reason) {
                (true, None) => return Ok(Reviewed::Approved(proposed)),
                (true, Some(edited)) => edited,
                (false, Some(words)) => return Ok(Reviewed::Rejected(words)),
                (false, None) if answer.by.is_some() => {
                    return Ok(Reviewed::Ended("a person rejected the plan".to_owned()));
                }
                (false, None) => {
                    let why = "the plan was to be reviewed, and nobody could be asked";
                    return Ok(Reviewed::Ended(why.to_owned()));
                }
            };
            let checked = match draft::read(&edited) {
                Ok(draft) => self.check(run, draft, &tools)?,
                Err(wrong) => Err(wrong),
            };
            match checked {
                Ok(checked) => {
                    run.note(
                        "plan.edited",
                        1,
                        &json!({"text": words::listed(&checked.draft)}),
                    )?;
                    return Ok(Reviewed::Approved(checked));
                }
                Err(wrong) => {
                    card = words::card(&proposed, &tools, &wrong);
                    card.edit = Some(edited);
                }
            }
        }
    }

    /// From here on the plan is in force.
    fn adopt(&mut self, run: &mut Run, checked: Checked) -> Result<(), Stop> {
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
        self.state.stage = Stage::Working;
        Ok(())
    }

    fn remember_plan(&mut self, what: &str, draft: &Draft) {
        let text = format!("{what}:\n{}", json!(draft));
        let text = Text::new(text, Origin::Model);
        self.memory.add(Message::user(text));
    }

    /// Has a person decide, if one is to; why the run is over, if it is.
    pub(super) async fn decide(
        &mut self,
        run: &mut Run,
        checked: Checked,
    ) -> Result<Option<String>, Stop> {
        if !self.config.reviews_plans() {
            self.adopt(run, checked)?;
            return Ok(None);
        }
        let proposed = checked.draft.clone();
        match self.review(run, checked).await? {
            Reviewed::Approved(checked) => self.adopt(run, checked)?,
            Reviewed::Rejected(words) => {
                self.remember_plan("A plan that was not carried out", &proposed);
                self.plan_anew(&format!("A person rejected that plan and says: {words}"));
            }
            Reviewed::Ended(why) => return Ok(Some(why)),
        }
        Ok(None)
    }
}
