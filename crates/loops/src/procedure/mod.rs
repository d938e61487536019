//! Replays a learned procedure: each cycle makes one of its steps, without a model. At the first
//! thing that differs it hands over, within the same run, to the loop that works with a model.
//!
//! The one idea: a step is made only if everything that the procedure knows holds: the page, what
//! was put into fields so far, the one element that fits. A step that binds somebody is attempted
//! at most once; if nobody can tell whether it happened, the run stops for a person to look.
//!
//! `ready` decides from a view what comes next. What a procedure is stands in `gyrus-procedures`.

mod ready;

use gyrus_contract::{
    Action, ActionVerdict, Aim, Arguments as _, BoxedFuture, Claim, Evidence, ExecutionResult,
    MemoryBuffer, Observation, OpenUrlCall, ToolCall, View, WaitCall,
};
use gyrus_kernel::{ErasedLoop, HandOverReport, InterruptedCycle, Run, Stop};
use gyrus_procedures::{AtPress, LearnedPlace, ProcedureStep, origin_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    CognitiveConfig, LoopKind, React, Reactive, Replays,
    kind::MOST_STEPS,
    reactive::words::{clean, quoted},
};
use ready::{NextDeed, ReplayPosition};

/// The description of the loop for procedures, as named in the journal.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "procedure",
    prompts: &[],
    max_iterations: Some(MOST_STEPS),
    max_output_tokens: 2_048,
    build: |config| Ok(Box::new(ReplayLoop::new(config)?)),
};

/// Seconds between readings of a page that lacks something for the next step, after which a model
/// takes over. A page for which the learned run waited longer gets that time as well.
const LOOKS: [f64; 5] = [0.1, 0.2, 0.4, 0.6, 0.8];

/// Seconds between further readings that look for a sign that a binding step has happened.
const LOOKS_AFTER: [f64; 3] = [1.0, 2.0, 3.0];

/// Maximum number of seconds to wait for a page because the learned run waited.
const MOST_WAITED: f64 = 20.0;

/// The address of an empty page.
const BLANK: &str = "about:blank";

/// The state between cycles.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ProcedureState {
    /// Number of executed steps.
    step: usize,
    opened: bool,
    /// Whether the conditions after the last step are still to be checked.
    unchecked: bool,
    /// Ids in the addresses of clicked links, in order.
    #[serde(default)]
    found: Vec<String>,
    /// Descriptions of the executed steps.
    done: Vec<String>,
    /// The session of the screen, and the last shown address.
    session: String,
    address: String,
    /// The reason why the run stops for a person before its next step.
    parks: Option<String>,
    /// The reason why the next cycle hands over.
    gives_up: Option<String>,
    handed_over: bool,
}

/// The loop that takes over where a procedure cannot continue.
enum FallbackLoop {
    Screen(Box<Reactive>),
    Tools(Box<React>),
}

struct ReplayLoop {
    config: CognitiveConfig,
    replays: Replays,
    inner: FallbackLoop,
    state: ProcedureState,
}

impl ReplayLoop {
    fn new(config: CognitiveConfig) -> Result<Self, String> {
        let replays = config
            .replays
            .as_deref()
            .cloned()
            .ok_or("the loop `procedure` needs a procedure; choose another loop")?;
        if replays.values.0.len() != replays.procedure.slots.len() {
            return Err(format!(
                "the procedure `{}` has {} slots, but {} values are given",
                replays.procedure.name,
                replays.procedure.slots.len(),
                replays.values.0.len()
            ));
        }
        let inner = match replays.procedure.place {
            LearnedPlace::Site { .. } | LearnedPlace::Desktop { .. } => {
                FallbackLoop::Screen(Box::new(Reactive::new(config.clone())))
            }
            LearnedPlace::Folder { .. } => {
                FallbackLoop::Tools(Box::new(React::new(config.clone())))
            }
        };
        Ok(Self {
            config,
            replays,
            inner,
            state: ProcedureState::default(),
        })
    }

    fn inner(&self) -> &dyn ErasedLoop {
        match &self.inner {
            FallbackLoop::Screen(inner) => inner.as_ref(),
            FallbackLoop::Tools(inner) => inner.as_ref(),
        }
    }

    fn inner_mut(&mut self) -> &mut dyn ErasedLoop {
        match &mut self.inner {
            FallbackLoop::Screen(inner) => inner.as_mut(),
            FallbackLoop::Tools(inner) => inner.as_mut(),
        }
    }

    fn step(&self, number: usize) -> Option<&ProcedureStep> {
        self.replays.procedure.steps.get(number)
    }

    /// Returns the last executed step, if it binds somebody and may not have happened.
    fn unknown_commit(&self) -> Option<&ProcedureStep> {
        let last = self.state.step.checked_sub(1)?;
        self.step(last)
            .filter(|step| self.state.unchecked && step.commits)
    }

    async fn turn(&mut self, run: &mut Run) -> Result<ExecutionResult, Stop> {
        if self.state.handed_over {
            return self.inner_mut().cycle(run).await;
        }
        if let Some(why) = self.state.parks.take() {
            run.stuck(why)?;
            self.state.gives_up = Some("a person looked at what was unclear".to_owned());
        }
        if self.state.step == 0 && !self.state.opened {
            let name = &self.replays.procedure.name;
            let text = format!("replaying the learned procedure `{name}` without a model");
            run.note(
                "procedure.replaying",
                1,
                &json!({ "name": name, "text": text }),
            )?;
        }
        if run.goal().len() > 1 {
            self.state.gives_up = Some("a person added to the goal".to_owned());
        }
        if let Some(why) = self.state.gives_up.take() {
            return self.give_up(run, &why, None);
        }
        match &self.replays.procedure.place {
            LearnedPlace::Site { origin, .. } => {
                let origin = origin.clone();
                self.on_site(run, &origin).await
            }
            LearnedPlace::Desktop { .. } => {
                self.state.opened = true;
                self.on_screen(run, "", Vec::new()).await
            }
            LearnedPlace::Folder { .. } => self.in_folder(run).await,
        }
    }

    /// Performs the next step on a page, after opening the page.
    async fn on_site(&mut self, run: &mut Run, origin: &str) -> Result<ExecutionResult, Stop> {
        let start = self
            .config
            .start_url
            .as_deref()
            .unwrap_or_default()
            .to_owned();
        let mut actions = Vec::new();
        if !self.state.opened {
            if origin_of(&start) != Some(origin) {
                let why = format!("it was learned at {origin} and not for {start}");
                return self.give_up(run, &why, None);
            }
            actions.push(self.open(run, &start).await?);
            self.state.opened = true;
        }
        self.on_screen(run, &start, actions).await
    }

    /// Performs the next step on a screen, after other actions of the same cycle.
    async fn on_screen(
        &mut self,
        run: &mut Run,
        start: &str,
        mut actions: Vec<Action>,
    ) -> Result<ExecutionResult, Stop> {
        let (view, next) = match self.wait_until_ready(run, start, &mut actions).await? {
            Ok(ready) => ready,
            Err((view, why)) => {
                let mut result = self.differs(run, &why, view.as_ref())?;
                result.actions = actions;
                return Ok(result);
            }
        };
        let NextDeed::Call { call, found } = next else {
            let mut result = self.finish(run)?;
            result.actions = actions;
            if let Some(claim) = &mut result.claim {
                claim.evidence.push(Evidence {
                    what: "the screen at the end".to_owned(),
                    at: gyrus_text::shorten(&view.address, 200).into_owned(),
                });
            }
            return Ok(result);
        };
        let observation = match self
            .step(self.state.step)
            .and_then(|step| step.form.as_ref())
        {
            None => run.call(&call).await?,
            Some(form) => {
                let mut values = self.replays.values.clone();
                values.0.extend(self.state.found.iter().cloned());
                let at = AtPress {
                    start,
                    slots: &self.replays.procedure.slots,
                    values: &values,
                };
                let is_form = |aim: &Aim| form.check(aim.form.as_ref(), at);
                run.call_if(&call, &is_form).await?
            }
        };
        let refused = self.took(&call, &observation);
        if refused.is_none() {
            self.state.found.extend(found);
        }
        actions.push(Action { call, observation });
        let mut result = match refused {
            Some(why) => self.give_up(run, &why, Some(&view))?,
            None => ExecutionResult::default(),
        };
        result.actions = actions;
        Ok(result)
    }

    /// Reads the screen until the next step is possible; the error is what differs, with the last
    /// view.
    async fn wait_until_ready(
        &mut self,
        run: &mut Run,
        start: &str,
        actions: &mut Vec<Action>,
    ) -> Result<Result<(View, NextDeed), (Option<View>, String)>, Stop> {
        let mut waits = self.waits().into_iter();
        let mut values = self.replays.values.clone();
        values.0.extend(self.state.found.iter().cloned());
        loop {
            let mut seen = run.look(false).await;
            if let Ok(view) = &seen
                && view.address == BLANK
                && view.session != self.state.session
                && !self.state.address.is_empty()
            {
                // The browser went with the process before this one.
                self.state.session.clone_from(&view.session);
                let address = self.state.address.clone();
                actions.push(self.open(run, &address).await?);
                seen = run.look(false).await;
            }
            let (view, why) = match seen {
                Err(error) => (None, error.handled()?),
                Ok(view) if self.is_another_desktop(&view) => {
                    let why = "the desktop was started anew, without what was on it".to_owned();
                    return Ok(Err((Some(view), why)));
                }
                Ok(view) => {
                    self.state.session.clone_from(&view.session);
                    if view.address != BLANK {
                        self.state.address.clone_from(&view.address);
                    }
                    let ready = ReplayPosition {
                        replays: &self.replays,
                        values: &values,
                        start,
                        step: self.state.step,
                        unchecked: self.state.unchecked,
                    };
                    match ready.next(&view) {
                        Ok(next) => return Ok(Ok((view, next))),
                        Err(why) => {
                            // Whatever comes next differs, the last step has happened.
                            if self.state.unchecked && ready.has_happened(&view) {
                                self.state.unchecked = false;
                            }
                            (Some(view), why)
                        }
                    }
                }
            };
            let Some(seconds) = waits.next() else {
                return Ok(Err((view, why)));
            };
            let call = ToolCall::new(WaitCall::TOOL, json!({ "seconds": seconds }));
            let observation = run.call(&call).await?;
            actions.push(Action { call, observation });
        }
    }

    /// Whether a view is of another desktop than that of the earlier steps.
    fn is_another_desktop(&self, view: &View) -> bool {
        match &self.replays.procedure.place {
            LearnedPlace::Desktop { .. } => {
                !self.state.session.is_empty() && view.session != self.state.session
            }
            LearnedPlace::Site { .. } | LearnedPlace::Folder { .. } => false,
        }
    }

    /// Returns the seconds between readings of a page that lacks something.
    fn waits(&self) -> Vec<f64> {
        let mut waits = LOOKS.to_vec();
        if self.unknown_commit().is_some() {
            waits.extend(LOOKS_AFTER);
        }
        let learned = self.step(self.state.step).map_or(0, |step| step.waited_ms);
        let mut more = (learned as f64 / 1_000.0).min(MOST_WAITED);
        while more >= 1.0 {
            waits.push(1.0);
            more -= 1.0;
        }
        waits
    }

    async fn open(&mut self, run: &mut Run, url: &str) -> Result<Action, Stop> {
        let call = ToolCall::new(OpenUrlCall::TOOL, json!({ "url": url }));
        let observation = run.call(&call).await?;
        Ok(Action { call, observation })
    }

    /// Counts a step as executed, or returns the reason why its call did nothing.
    fn took(&mut self, call: &ToolCall, seen: &Observation) -> Option<String> {
        let is_known = matches!(
            seen.verdict,
            ActionVerdict::Refused | ActionVerdict::NoEffect
        );
        if seen.is_error && is_known {
            return Some(format!(
                "`{}` was not done: {}",
                call.tool,
                gyrus_text::shorten(&seen.text.text, 300)
            ));
        }
        self.count(self.state.step);
        None
    }

    /// Counts a step as taken. What must hold after it is still to be checked.
    fn count(&mut self, number: usize) {
        let values = &self.replays.values;
        let words = self.step(number).map(|step| step.in_words(values));
        self.state.done.extend(words);
        self.state.step = number + 1;
        self.state.unchecked = true;
    }

    /// Handles a difference from the learned procedure: a model takes over, unless nobody can tell
    /// whether the last step has bound somebody.
    fn differs(
        &mut self,
        run: &mut Run,
        why: &str,
        view: Option<&View>,
    ) -> Result<ExecutionResult, Stop> {
        let Some(step) = self.unknown_commit() else {
            return self.give_up(run, why, view);
        };
        let words = step.in_words(&self.replays.values);
        let parks = format!(
            "it cannot be told whether the step “{words}” has happened: {why}; look at the page \
             before it is done again"
        );
        self.state.parks = Some(parks);
        Ok(ExecutionResult::default())
    }

    /// Hands over to the loop that works with a model.
    fn give_up(
        &mut self,
        run: &mut Run,
        why: &str,
        view: Option<&View>,
    ) -> Result<ExecutionResult, Stop> {
        let of = self.replays.procedure.steps.len();
        let step = self.state.step + 1;
        let name = &self.replays.procedure.name;
        let why = gyrus_text::shorten(why, 600);
        let text = if step > of {
            format!("the procedure `{name}` is handed over to a model after its last step: {why}")
        } else {
            format!(
                "the procedure `{name}` is handed over to a model at step {step} of {of}: {why}"
            )
        };
        let fact = json!({
            "name": name, "step": step, "of": of, "reason": why, "text": text,
            "done": self.state.done,
        });
        run.note("procedure.handed_over", 1, &fact)?;
        let told = self.told(&why);
        self.state.handed_over = true;
        let opened = self.state.opened;
        match &mut self.inner {
            FallbackLoop::Screen(inner) => {
                inner.continue_from(told, run.cycle(), &self.state.done, view.filter(|_| opened));
            }
            FallbackLoop::Tools(inner) => inner.memory_mut().add_observation("gyrus", told),
        }
        Ok(ExecutionResult::default())
    }

    /// Returns the message to the model that takes over.
    fn told(&self, why: &str) -> String {
        let mut lines = vec![format!(
            "gyrus replayed a procedure that it learned for this goal, and stopped because something \
             differs: {}",
            quoted(why, 400)
        )];
        if self.state.done.is_empty() {
            lines.push("Nothing has been done yet.".to_owned());
        } else {
            let done = match &self.replays.procedure.place {
                LearnedPlace::Desktop { .. } => {
                    "These steps have been done; look whether that is still so before you do one again:"
                }
                LearnedPlace::Site { .. } | LearnedPlace::Folder { .. } => {
                    "These steps have been done; do not do them again:"
                }
            };
            lines.push(done.to_owned());
            let done = (1..).zip(&self.state.done);
            lines.extend(done.map(|(number, words)| format!("{number}. {}", clean(words))));
        }
        if let Some(step) = self.step(self.state.step) {
            lines.push(format!(
                "The next step would have been: {}. Look where you are, check what was filled in, \
                 and go on from there.",
                clean(&step.in_words(&self.replays.values))
            ));
        }
        lines.join("\n")
    }

    fn finish(&mut self, run: &mut Run) -> Result<ExecutionResult, Stop> {
        let procedure = &self.replays.procedure;
        let steps = procedure.steps.len();
        let text = format!(
            "replayed the procedure `{}` without a model: {}",
            procedure.name,
            gyrus_text::counted(steps, "step")
        );
        let fact = json!({ "name": procedure.name, "steps": steps, "text": text });
        run.note("procedure.replayed", 1, &fact)?;
        self.state.unchecked = false;
        Ok(ExecutionResult {
            claim: Some(Claim {
                reached: true,
                answer: procedure.answer.filled(&self.replays.values),
                evidence: Vec::new(),
                shortfalls: Vec::new(),
            }),
            ..ExecutionResult::default()
        })
    }

    /// Performs the next call of a procedure without a screen.
    async fn in_folder(&mut self, run: &mut Run) -> Result<ExecutionResult, Stop> {
        self.state.opened = true;
        let Some(step) = self.step(self.state.step) else {
            return self.finish(run);
        };
        let call = match ready::call_of(step, &self.replays.values) {
            Ok(call) => call,
            Err(why) => return self.give_up(run, &why, None),
        };
        let observation = run.call(&call).await?;
        let refused = self.took(&call, &observation);
        let failed = observation.is_error;
        let said = gyrus_text::shorten(&observation.text.text, 300).into_owned();
        let actions = vec![Action { call, observation }];
        let mut result = match refused {
            Some(why) => self.give_up(run, &why, None)?,
            None if failed => self.differs(run, &said, None)?,
            None => {
                self.state.unchecked = false;
                ExecutionResult::default()
            }
        };
        result.actions = actions;
        Ok(result)
    }
}

impl ErasedLoop for ReplayLoop {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn unfinished(&self) -> InterruptedCycle {
        self.inner().unfinished()
    }

    fn memory(&self) -> &MemoryBuffer {
        self.inner().memory()
    }

    fn memory_mut(&mut self) -> &mut MemoryBuffer {
        self.inner_mut().memory_mut()
    }

    fn save(&self) -> Result<Value, Stop> {
        Ok(json!({ "replay": self.state, "loop": self.inner().save()? }))
    }

    fn load(&mut self, version: u32, mut state: Value) -> Result<(), String> {
        if version != self.version() {
            return Err(format!(
                "the state of a replay has version {version}, not {}",
                self.version()
            ));
        }
        let own = state["replay"].take();
        self.state = serde_json::from_value(own).map_err(|error| error.to_string())?;
        let inner_version = self.inner().version();
        self.inner_mut().load(inner_version, state["loop"].take())
    }

    fn cycle<'a>(&'a mut self, run: &'a mut Run) -> BoxedFuture<'a, Result<ExecutionResult, Stop>> {
        Box::pin(self.turn(run))
    }

    fn conclude<'a>(
        &'a mut self,
        run: &'a mut Run,
        result: &'a ExecutionResult,
    ) -> BoxedFuture<'a, Result<(), Stop>> {
        self.inner_mut().conclude(run, result)
    }

    fn recent_work(&self) -> Option<String> {
        if self.state.handed_over {
            self.inner().recent_work()
        } else {
            Some(self.state.done.join("\n"))
        }
    }

    fn asks_no_model(&self) -> bool {
        !self.state.handed_over
    }

    fn sent_back(&mut self, why: &str) {
        if self.state.handed_over {
            self.inner_mut().sent_back(why);
        } else {
            self.state.gives_up = Some(why.to_owned());
        }
    }

    /// An interrupted step is counted as taken, and looked at: if the page does not show that it
    /// happened, a binding one stops the run, and any other is handed over.
    fn hand_over(&mut self, handed: &HandOverReport) {
        if self.state.handed_over {
            self.inner_mut().hand_over(handed);
            return;
        }
        if self.state.parks.take().is_some() {
            self.state.unchecked = false;
            self.state.gives_up = Some("a person looked at what was unclear".to_owned());
        }
        let own = self.step(self.state.step).map(|step| step.tool.clone());
        let was_refused = |seen: &Observation| seen.verdict == ActionVerdict::Refused;
        let is_own = |seen: &&Observation| Some(&seen.tool) == own.as_ref() && !was_refused(seen);
        if handed
            .done
            .iter()
            .any(|seen| seen.tool == OpenUrlCall::TOOL)
        {
            self.state.opened = true;
        }
        if self.state.address.is_empty() {
            self.state.address = self
                .config
                .start_url
                .as_deref()
                .unwrap_or_default()
                .to_owned();
        }
        if handed.done.iter().find(is_own).is_some() {
            self.count(self.state.step);
        }
    }
}
