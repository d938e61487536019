//! The reactive loop reaches a goal on a screen: look, decide, act, and begin again from the new
//! view.
//!
//! The one idea: there is no conversation. Each turn's prompt holds the goal, a memo that the model
//! writes itself, the last ten actions with their effects, and the screen as it is now; so a turn
//! costs the same after a hundred as after one, and an interrupted one is simply abandoned. The
//! layout of the prompt and all rules are in `docs/reactive.md`.
//!
//! `actions` lists the possible actions, `reply` parses an answer, `native` one that uses a
//! provider's own screen tool, `render` formats a view as text, `stuck` detects a lack of progress.

mod actions;
mod prompt;
mod line;
mod native;
mod place;
mod render;
mod reply;
#[cfg(test)]
mod samples;
mod state;
mod stuck;
pub(crate) mod words;

use gyrus_contract::{
    Action, ActionVerdict, Arguments as _, Claim, ClickCall, DragCall, Evidence, ExecutionResult,
    FINISH, MemoryBuffer, MemoryExtent, Message, Observation, OpenUrlCall, Origin, Perception,
    Plan, Purpose, ScreenAction, ScreenEffect, ScreenSize, ScrollCall, StopReason, Strength,
    TakeScreenshotCall, Text, ThoughtStep, ToolCall, View, WaitCall,
};
use gyrus_kernel::{
    ApprovalCard, CognitiveLoop, HandOverReport, InterruptedCycle, MandateSubject, ModelQuestion,
    Run, Stop, ToolOffer,
};
use gyrus_text::shorten;
use serde_json::json;

use crate::{
    CognitiveConfig, LoopKind,
    config::PerceptionMode,
    goal,
    kind::{MOST_STEPS, keeps},
    mandate,
};
use actions::FinishClaim;
pub use prompt::FRESH;
use prompt::ScreenInTurn;
use reply::{Deeds, ReplyChoices, UsableReply};
pub use state::ReactiveState;
use state::{ActionLine, ActionOutput, LastTurn};
use stuck::{ActionRecord, StuckAdvice};
use words::{clean, quoted};

const PROMPT: &str = include_str!("reactive.md");

/// The part of the instructions for a desktop.
const DESKTOP_PROMPT: &str = include_str!("desktop.md");

/// The description of the loop `reactive`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "reactive",
    prompts: &[PROMPT, DESKTOP_PROMPT, mandate::PROMPT],
    max_iterations: Some(MOST_STEPS),
    max_output_tokens: 2_048,
    build: |config| Ok(Box::new(Reactive::new(config))),
};

/// The tool by which a run with a screen is recognised.
pub(crate) const OF_EVERY_SCREEN: &str = ClickCall::TOOL;

/// Whether a tool acts on a screen, and is of no use to a loop that does not look.
pub(crate) fn is_of_screen(tool: &str) -> bool {
    tool != FINISH && actions::named(tool).is_some()
}

/// Whether a tool only navigates or reads.
pub(crate) fn only_goes_or_looks(tool: &str) -> bool {
    actions::named(tool).is_some_and(|action| action.effect != ScreenEffect::Acts)
}

/// Formats a view for a model, with at most `tokens` tokens for elements that are not usable.
#[doc(hidden)]
pub fn shown(view: &View, tokens: usize) -> String {
    render::render(
        view,
        render::RenderBudget {
            tokens,
            with_picture: false,
            goal: "",
        },
    )
}

/// Maximum number of repeated questions after unusable replies; then the run parks.
const REPAIRS: u32 = 2;

/// Number of consecutive failed readings after which the run parks.
const MOST_BLIND: u32 = 3;

/// Beginnings of the address of a desktop that was started with the process of the run.
const OWN_DESKTOPS: [&str; 2] = ["x11:sandbox", "x11:nested"];

/// The address of an empty page.
const BLANK: &str = "about:blank";

/// Maximum number of characters of an answer.
const ANSWER: usize = 8_000;

/// The loop that works on a screen.
#[derive(Debug)]
pub struct Reactive {
    config: CognitiveConfig,
    memory: MemoryBuffer,
    state: ReactiveState,
    /// The view of this turn, or the reason why there is none.
    sight: Result<View, String>,
    /// The model's claim that the work is finished.
    finish: Option<FinishClaim>,
}

impl Reactive {
    /// Creates a loop with this configuration.
    pub fn new(config: CognitiveConfig) -> Self {
        let memory = MemoryBuffer::new(config.memory_window);
        Self {
            config,
            memory,
            state: ReactiveState::default(),
            sight: Err("nobody looked yet".to_owned()),
            finish: None,
        }
    }

    /// Takes over from another loop, at the page where it stopped. `told` is the first message to
    /// the model; `done` are descriptions of executed steps.
    pub(crate) fn continue_from(
        &mut self,
        told: String,
        cycle: u32,
        done: &[String],
        view: Option<&View>,
    ) {
        self.state.opened = view.is_some();
        if let Some(view) = view {
            self.state.page.remember(view);
        }
        for action in done {
            self.state.log.add(ActionLine {
                cycle,
                action: clean(action),
                verdict: ActionVerdict::Changed,
                note: "as it was learned".to_owned(),
            });
        }
        self.state.stuck.tell(told);
    }

    /// Draws the completion token. It is grouped like a serial number: a word beside the name of a
    /// token would be taken for a secret.
    fn draw_token(&mut self, run: &mut Run) -> Result<(), Stop> {
        if self.state.token.is_empty() {
            let number = run.random()?;
            let groups = [48, 32, 16, 0].map(|bits| format!("{:04x}", (number >> bits) & 0xffff));
            self.state.token = groups.join(" ");
        }
        Ok(())
    }

    async fn open_start(&mut self, run: &mut Run) -> Result<(), Stop> {
        let Some(url) = self
            .config
            .start_url
            .as_deref()
            .filter(|_| !self.state.opened)
        else {
            return Ok(());
        };
        let call = ToolCall::new(OpenUrlCall::TOOL, json!({ "url": url }));
        let seen = run.call(&call).await?;
        self.state.opened = true;
        self.log(
            run.cycle(),
            format!("gyrus: {}", describe(&call, None)),
            &seen,
        );
        Ok(())
    }

    async fn look(&mut self, run: &mut Run) -> Result<(), Stop> {
        let frame = self.config.perception != PerceptionMode::Tree;
        self.sight = match run.look(frame).await {
            Ok(view) => Ok(view),
            Err(error) => Err(error.handled()?),
        };
        self.state.blind = match &self.sight {
            Ok(_) => 0,
            Err(_) => self.state.blind + 1,
        };
        let without = self.sight.as_ref().is_ok_and(|view| view.frame.is_none());
        if frame && without && !self.state.told_without {
            self.state.told_without = true;
            run.note(
                "perception",
                1,
                "there are no pictures, since no model that may be asked sees them or the screen \
                 gives none: the tree alone is shown",
            )?;
        }
        if let Err(why) = &self.sight
            && self.state.blind >= MOST_BLIND
        {
            self.state.parks = Some(format!(
                "the screen could not be seen {MOST_BLIND} times in a row: {why}"
            ));
        }
        Ok(())
    }

    /// Opens the page of the last look again on a screen that has lost it: after a crash, a pause or
    /// a fork the run has another browser, and one that ended begins at an empty page.
    async fn open_again(&mut self, run: &mut Run) -> Result<(), Stop> {
        let Ok(view) = &self.sight else { return Ok(()) };
        let page = &self.state.page;
        let is_new = !page.session.is_empty() && view.session != page.session;
        let is_own = |start: &&str| view.address.starts_with(start);
        if is_new && OWN_DESKTOPS.iter().any(is_own) {
            self.state.stuck.tell(
                "The desktop was started anew: the programs that ran there are gone, with what was \
                 not saved. Open what you need again."
                    .to_owned(),
            );
        }
        let is_lost = view.session != page.session && view.address == BLANK;
        let left_at = page.address.as_deref().or(self.config.left_at.as_deref());
        let Some(url) = left_at.filter(|_| is_lost).map(str::to_owned) else {
            self.state.page.remember(view);
            return Ok(());
        };
        let contents = page.address.is_some().then_some(page.contents);
        // Once for each screen.
        self.state.page.session.clone_from(&view.session);
        let call = ToolCall::new(OpenUrlCall::TOOL, json!({ "url": url }));
        let opened = run.call(&call).await?;
        let action = format!("gyrus: {}", describe(&call, None));
        self.log(run.cycle(), action, &opened);
        self.look(run).await?;
        if let Ok(view) = &self.sight {
            let is_same = contents == Some(stuck::contents(view));
            self.state.page.remember(view);
            self.state.stuck.tell(String::from(if is_same {
                "The browser was started anew; the page that you were at was opened again and shows \
                 the same as before."
            } else {
                "The browser was started anew, so the page that you were at was opened again. What \
                 was typed or opened there may be gone: look."
            }));
        }
        Ok(())
    }

    /// Whether the picture of this turn's view is sent.
    fn sends_picture(&self) -> bool {
        let mode = self.config.perception;
        let view = self.sight.as_ref();
        view.is_ok_and(|view| prompt::sends_picture(mode, &self.state, view))
    }

    fn offered(&self, run: &Run) -> Vec<&'static ScreenAction> {
        let tools = run.tools().iter().map(|spec| spec.name.as_str());
        let mut offered = reply::offered_by(tools);
        let view = self.sight.as_ref();
        if view.is_ok_and(|view| view.frame.is_none()) {
            offered.retain(|action| action.name != TakeScreenshotCall::TOOL);
        }
        offered
    }

    /// Asks until there is a usable reply, or three replies were unusable.
    async fn decide(
        &mut self,
        run: &mut Run,
        perception: &Perception,
    ) -> Result<Option<UsableReply>, Stop> {
        let actions = self.offered(run);
        let with_picture = self.sends_picture();
        let note = self.state.stuck.take_note();
        let mut wrong: Option<String> = None;
        let mut was_in_words = false;
        for _ in 0..=REPAIRS {
            let picture = self.sight.as_ref().ok().filter(|_| with_picture);
            let picture = picture.and_then(|view| view.frame.as_ref());
            let sight = match &self.sight {
                Ok(view) => ScreenInTurn::View(view, picture),
                Err(why) => ScreenInTurn::Blind(why),
            };
            let goal = goal::first_goal(perception);
            let mut tail = vec![prompt::turn(&self.state, note.as_deref(), &goal, sight)];
            tail.extend(
                wrong
                    .take()
                    .map(|why| Message::user(Text::new(why, Origin::Kernel))),
            );
            let ask = ModelQuestion {
                purpose: Purpose::Agent,
                system: prompt::system(&self.config, &actions, &self.state.token),
                lead: self.lead(perception),
                lead_at: 0,
                memory: None,
                tail,
                tools: picture.map_or(ToolOffer::Withheld, |picture| {
                    ToolOffer::OnScreen(ScreenSize {
                        width: picture.width,
                        height: picture.height,
                    })
                }),
                output_schema: Some(actions::schema(&actions)),
                max_output_tokens: self.config.max_output_tokens,
            };
            let answer = run.ask(ask).await?;
            let offered = ReplyChoices {
                actions: &actions,
                frame: picture.map(|picture| (picture.width, picture.height)),
            };
            let calls: Vec<_> = answer.tool_calls().collect();
            let read = match answer.stop {
                StopReason::MaxTokens => Err("it was cut off at its length limit".to_owned()),
                _ if !calls.is_empty() => {
                    native::read(&calls, &answer.text(), offered, self.sight.as_ref().ok())
                }
                StopReason::EndOfTurn | StopReason::ToolCalls => {
                    reply::read(&answer.text(), offered)
                }
            };
            match read {
                Ok(reply) => return Ok(Some(reply)),
                Err(why) => {
                    let answer = reply::in_words(&answer);
                    if let (true, Some(words)) = (was_in_words, &answer) {
                        return Ok(Some(UsableReply::answer(words, &self.state.token)));
                    }
                    run.note("reply.unusable", 1, &json!({ "why": why }))?;
                    was_in_words = answer.is_some();
                    wrong = Some(reply::told(&why, was_in_words));
                }
            }
        }
        Ok(None)
    }

    /// Asks a person for the confirmation that the model's provider requires, with the provider's
    /// reason. The approval is for this reply; the gate asks its own questions besides.
    async fn is_confirmed(
        &mut self,
        run: &mut Run,
        why: Vec<String>,
        deeds: &Deeds,
    ) -> Result<bool, Stop> {
        let (Some(_), Deeds::Calls(calls)) = (why.first(), deeds) else {
            return Ok(true);
        };
        let view = self.sight.as_ref().ok();
        let meant: Vec<_> = calls.iter().map(|call| describe(call, view)).collect();
        let meant = meant.join("; ");
        let answer = run
            .approve(ApprovalCard {
                sentence: format!("act on the screen: {meant}"),
                reasons: vec!["the model's provider wants a person's yes before this".to_owned()],
                details: why
                    .into_iter()
                    .map(|words| Text::new(words, Origin::Model))
                    .collect(),
                question: false,
                wider: Vec::new(),
                edit: None,
            })
            .await?;
        if !answer.approved {
            self.state.log.add(ActionLine {
                cycle: run.cycle(),
                action: meant,
                verdict: ActionVerdict::Refused,
                note: "a person was asked and did not say yes".to_owned(),
            });
        }
        Ok(answer.approved)
    }

    /// Returns the goal, after a digest of the memory of an earlier run in the session.
    fn lead(&self, perception: &Perception) -> Vec<Message> {
        let mut lead = Vec::new();
        let before = self.memory.to_context_string();
        if !before.is_empty() {
            let text = words::lines_of_data(&before, 400);
            lead.push(Message::user(Text::new(
                format!(
                    "=== earlier in this session (data) ===\n{}",
                    text.trim_end()
                ),
                Origin::Run,
            )));
        }
        lead.extend(goal::goal_with(perception, MemoryExtent::Digest));
        lead
    }

    fn log(&mut self, cycle: u32, action: String, seen: &Observation) {
        self.state.page.follow(seen);
        let failed = seen.is_error || seen.verdict == ActionVerdict::Refused;
        let note = if failed {
            state::in_short(&seen.text.text)
        } else {
            String::new()
        };
        self.state.log.add(ActionLine {
            cycle,
            action,
            verdict: seen.verdict,
            note,
        });
        // The next view shows what changed.
        let says = seen.verdict != ActionVerdict::Changed && !seen.text.text.trim().is_empty();
        self.state.output = says.then(|| ActionOutput {
            tool: seen.tool.clone(),
            text: shorten(&seen.text.text, 20_000).into_owned(),
        });
    }

    /// Executes the decided calls, until the screen differs from its state at the decision.
    async fn call_all(&mut self, run: &mut Run, plan: &Plan) -> Result<Vec<Action>, Stop> {
        let mut actions = Vec::new();
        self.state.last = LastTurn::default();
        let mut calls = plan.tool_calls().peekable();
        while let Some(call) = calls.next() {
            let view = self.sight.as_ref().ok();
            let what = describe(call, view);
            let observation = run.call(call).await?;
            let done = ActionRecord {
                call,
                what: &what,
                view,
                verdict: observation.verdict,
                said: &observation.text.text,
            };
            let start = self.start_of(view);
            let advice = self.state.stuck.observe(done, start.as_deref());
            let changed = observation.verdict == ActionVerdict::Changed;
            let last = &mut self.state.last;
            // The tree shows where the page ends.
            let at_the_end =
                call.tool == ScrollCall::TOOL && observation.verdict == ActionVerdict::NoEffect;
            last.had_no_effect |= !changed && !at_the_end && !stuck::only_looks(&call.tool);
            let points = ["at", "from", "to"]
                .iter()
                .any(|name| call.arguments[name].is_array());
            last.needs_picture |=
                points || [DragCall::TOOL, TakeScreenshotCall::TOOL].contains(&call.tool.as_str());
            self.log(run.cycle(), what, &observation);
            actions.push(Action {
                call: call.clone(),
                observation,
            });
            match advice {
                StuckAdvice::GoOn => {}
                StuckAdvice::Park(why) => {
                    self.state.parks = Some(why);
                    break;
                }
                StuckAdvice::Try(way) => {
                    actions.push(self.escape(run, way).await?);
                    break;
                }
            }
            // A wait for a stated time has served its purpose.
            let goes_on =
                changed || call.tool == WaitCall::TOOL && !call.arguments["seconds"].is_null();
            if !goes_on || calls.peek().is_none() || self.is_elsewhere(run).await? {
                break;
            }
        }
        let left = calls.count();
        if left > 0
            && let Some(action) = actions.last()
        {
            let done = plan.tool_calls().count() - left;
            run.note(
                "batch.stopped",
                1,
                &json!({ "after": done, "left": left, "verdict": action.observation.verdict }),
            )?;
        }
        Ok(actions)
    }

    /// Executes an escape from repetition, which the loop tries by itself.
    async fn escape(&mut self, run: &mut Run, way: ToolCall) -> Result<Action, Stop> {
        let observation = run.call(&way).await?;
        self.log(
            run.cycle(),
            format!("gyrus: {}", describe(&way, None)),
            &observation,
        );
        Ok(Action {
            call: way,
            observation,
        })
    }

    /// Returns the address to begin again from: where the run began, or the front page of the
    /// present site.
    fn start_of(&self, view: Option<&View>) -> Option<String> {
        if let Some(url) = self.config.start_url.as_deref() {
            return Some(url.to_owned());
        }
        let address = &view?.address;
        let (scheme, rest) = address.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        (scheme.starts_with("http") && !host.is_empty() && !host.contains('@'))
            .then(|| format!("{scheme}://{host}/"))
    }

    /// Whether a page or a dialog appeared since the turn's look. The rest of a batch was decided
    /// for the previous one.
    async fn is_elsewhere(&mut self, run: &mut Run) -> Result<bool, Stop> {
        let now = match run.look(false).await {
            Ok(now) => now,
            Err(error) => {
                self.sight = Err(error.handled()?);
                return Ok(true);
            }
        };
        self.state.page.remember(&now);
        let Ok(before) = &self.sight else {
            return Ok(true);
        };
        let tab = |view: &View| {
            view.tabs
                .iter()
                .find(|tab| tab.is_active)
                .map(|tab| tab.number)
        };
        // Frames inside a page are documents too; the page's own comes first.
        let document = |view: &View| view.elements.first().map(|element| element.id.document);
        Ok(before.address != now.address
            || before.session != now.session
            || tab(before) != tab(&now)
            || document(before) != document(&now)
            || before.tabs.len() != now.tabs.len()
            || (now.dialog.is_some() && before.dialog != now.dialog))
    }

    /// Returns the content of the screen at the claim that the work is done, as evidence.
    fn evidence(&self) -> Vec<Evidence> {
        let shown = self.sight.as_ref().ok().map(|view| Evidence {
            what: format!("the screen at the end: {}", quoted(&view.title, 80)),
            at: shorten(&clean(&view.address), 200).into_owned(),
        });
        shown.into_iter().collect()
    }

    /// Returns the claim that ends the run, if the token is the run's.
    fn claim(&mut self, run: &Run, finish: FinishClaim) -> Option<Claim> {
        let given: Vec<_> = finish.token.split_whitespace().collect();
        if given.join(" ") == self.state.token {
            self.memory.add_agent_response(finish.answer.clone());
            return Some(Claim {
                reached: finish.reached,
                answer: shorten(&finish.answer, ANSWER).into_owned(),
                evidence: if finish.in_words {
                    Vec::new()
                } else {
                    self.evidence()
                },
                shortfalls: Vec::new(),
            });
        }
        let call = ToolCall::new(
            FINISH,
            json!({ "reached": finish.reached, "answer": finish.answer }),
        );
        let done = ActionRecord {
            call: &call,
            what: "finish",
            view: self.sight.as_ref().ok(),
            verdict: ActionVerdict::Refused,
            said: "",
        };
        if let StuckAdvice::Park(why) = self.state.stuck.observe(done, None) {
            self.state.parks = Some(why);
        }
        self.state.log.add(ActionLine {
            cycle: run.cycle(),
            action: "finish".to_owned(),
            verdict: ActionVerdict::Refused,
            note: "that is not the completion token of this run".to_owned(),
        });
        None
    }
}

/// Describes a call in one short line.
fn describe(call: &ToolCall, view: Option<&View>) -> String {
    let mut line = call.tool.clone();
    for (name, value) in call.arguments.as_object().into_iter().flatten() {
        let shown = match value.as_str() {
            Some(id) if ["on", "from", "to"].contains(&name.as_str()) => {
                match stuck::element(view, id) {
                    Some(element) => format!("{id} {}", quoted(&element.name, 30)),
                    None => shorten(&clean(id), 30).into_owned(),
                }
            }
            Some(text) => quoted(text, 40),
            None => shorten(&value.to_string(), 40).into_owned(),
        };
        match name.as_str() {
            "on" | "at" | "text" | "url" | "key" | "direction" => {
                line.push_str(&format!(" {shown}"))
            }
            _ => line.push_str(&format!(" {name} {shown}")),
        }
    }
    line
}

impl CognitiveLoop for Reactive {
    keeps!(KIND.name, state: ReactiveState);

    /// Abandons an unfinished cycle: the screen has changed since its actions were decided.
    fn unfinished(&self) -> InterruptedCycle {
        InterruptedCycle::Abandon
    }

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        if let Some(why) = self.state.parks.take() {
            run.stuck(why)?;
        }
        mandate::state(run, &self.config, MandateSubject::Forms).await?;
        self.draw_token(run)?;
        self.open_start(run).await?;
        self.look(run).await?;
        self.open_again(run).await?;
        Ok(run.perception())
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        let mut plan = Plan::with_goal(goal::first_goal(perception));
        let reply = self.decide(run, perception).await?;
        self.state.output = None;
        let Some(reply) = reply else {
            self.state.parks = Some(format!(
                "{} replies of the model in a row could not be read as actions",
                REPAIRS + 1
            ));
            return Ok(plan);
        };
        if !reply.note.is_empty() || !reply.expects.is_empty() {
            let thought = json!({ "text": reply.note, "expects": reply.expects });
            run.note("thought", 1, &thought)?;
        }
        let mut lost = Vec::new();
        for (key, text) in &reply.memo {
            lost.extend(self.state.memo.change(key, text));
        }
        if !reply.memo.is_empty() {
            run.note("memo", 1, &self.state.memo)?;
        }
        self.state.stuck.tell(lost.join("; "));
        self.state.expects = reply.expects;
        if !self.is_confirmed(run, reply.confirm, &reply.deeds).await? {
            return Ok(plan);
        }
        match reply.deeds {
            Deeds::Finish(finish) => self.finish = Some(finish),
            Deeds::Calls(calls) => {
                for (number, call) in (1..).zip(calls) {
                    plan.add_step(ThoughtStep::with_tool(number, reply.note.clone(), call));
                }
            }
        }
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        if let Some(finish) = self.finish.take() {
            let mut result = ExecutionResult::default();
            if finish.in_words {
                result.strength = Strength::Answered;
            }
            result.claim = self.claim(run, finish);
            return Ok(result);
        }
        Ok(ExecutionResult {
            actions: self.call_all(run, plan).await?,
            ..ExecutionResult::default()
        })
    }

    /// Shows the reason in the next prompt, marked as untrusted: a model wrote a part of it.
    fn recent_work(&self) -> Option<String> {
        let lines: Vec<_> = self.state.log.lines().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn sent_back(&mut self, why: &str) {
        self.state.output = Some(ActionOutput {
            tool: "verification".to_owned(),
            text: shorten(why, 2_000).into_owned(),
        });
        let told = "Your `finish` was not accepted: `verification` says why. Go on.";
        self.state.stuck.tell(told.to_owned());
    }

    /// Adds the actions of an interrupted turn to the log. The person who resumed the run has seen
    /// what it was stuck at.
    fn take_over(&mut self, handed: &HandOverReport) {
        self.state.stuck.reset();
        self.state.parks = None;
        self.state.blind = 0;
        self.state.expects = String::new();
        self.state.output = None;
        if let Some(view) = &handed.viewed {
            self.state.page.remember(view);
        }
        for seen in &handed.done {
            self.log(seen.effect.cycle_number(), seen.tool.clone(), seen);
        }
        let done = if handed.done.is_empty() {
            "it had done nothing"
        } else {
            "what it did stands in the log and must not simply be done again"
        };
        self.state.stuck.tell(format!(
            "Your last turn was cut off; {done}. Look where you are."
        ));
    }
}
