//! The ReAct loop, thinking and acting in turns: ask a model, execute its calls, remember the
//! results.

use std::{collections::VecDeque, sync::Arc};

use gyrus_contract::{
    Action, ActionVerdict, Arguments, Claim, EffectId, ExecutionResult, FindToolsCall, HookEvent,
    MemoryBuffer, Message, Observation, Origin, Part, Perception, Plan, Purpose, Repeat,
    StopReason, Strength, Text, ThoughtStep, ToolCall, ToolSpec, is_default, schema_of,
};
use gyrus_kernel::{
    CognitiveLoop, MandateSubject, ModelQuestion, Run, Stop, ToolOffer, amendment_message,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    ActionRepetition, CognitiveConfig, DELEGATE, LoopKind, RepetitionAdvice, browse,
    compaction::{self, CompactionTarget},
    config::DEFAULT_OUTPUT_TOKENS,
    delegate,
    engineer::Judge,
    evidence::Failures,
    goal,
    kept_work::{KeptWork, Summary},
    kind::{MOST_STEPS, keeps},
    mandate, prompt,
    words::{self, UselessReply},
};

const PROMPT: &str = include_str!("prompts/react.md");
/// The shorter instructions for a model that is offered few tools.
const BRIEF_PROMPT: &str = include_str!("prompts/react_brief.md");
const REFLECT_PROMPT: &str = include_str!("prompts/reflect.md");
const SUMMARISE_PROMPT: &str = include_str!("prompts/summarise.md");

/// The description of the loop `react`.
pub(crate) const KIND: LoopKind = LoopKind {
    name: "react",
    prompts: &[
        PROMPT,
        BRIEF_PROMPT,
        REFLECT_PROMPT,
        SUMMARISE_PROMPT,
        mandate::PROMPT,
    ],
    max_iterations: Some(MOST_STEPS),
    max_output_tokens: DEFAULT_OUTPUT_TOKENS,
    build: |config| Ok(Box::new(React::new(config))),
};

/// Maximum number of consecutive reminders for a model whose replies are cut off; then the run parks.
/// After a reply that is no answer there is one.
const MAX_REMINDERS: u32 = 2;

/// Maximum number of tokens of a reply that is bound to a call.
const BOUND_TOKENS: u64 = 2_048;

/// Number of characters at the beginning of a summary compared with the instruction to summarise.
const RECITED_CHARACTERS: usize = 40;

/// Maximum number of times that a run asks for a call when words follow a failed one.
const MAX_AFTER_FAILURE: u32 = 2;

/// Maximum number of characters of a failed call quoted in an answer.
const FAILED_CHARACTERS: usize = 200;

/// The loop's state between cycles, beside its memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReactState {
    /// Recent actions and their results.
    pub repetition: ActionRepetition,
    /// Number of consecutive replies without a tool call.
    #[serde(default)]
    pub idle_replies: u32,
    /// Number of texts of the goal and its amendments that are in the prompt.
    #[serde(default)]
    pub heard: usize,
    /// Whether the last reply had no text after executed calls: the answer is missing, not a call.
    #[serde(default)]
    pub was_silent: bool,
    /// Whether the model was asked again after a reply without text: the next one ends the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_after_silence: bool,
    /// Whether any call was executed that does more than talk.
    #[serde(default)]
    pub has_acted: bool,
    /// The call that failed last, if no other was executed after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_last: Option<String>,
    /// Subjects of failed calls, for checking claims about them.
    #[serde(default, skip_serializing_if = "Failures::is_empty")]
    pub failures: Failures,
    /// Whether a claim was refused because of failed evidence: the next one is taken, with the
    /// failure beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused_evidence: bool,
    /// Number of times the model was asked about its text after a failed call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asked_after_failure: u32,
    /// Number of tokens of the last prompt and its reply by the provider's count; 0 if unknown.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// Open steps and constraints that compaction must not lose.
    #[serde(default, skip_serializing_if = "KeptWork::is_empty")]
    pub kept: KeptWork,
}

/// The profile in which turns are taken. A loop that wraps this one sets it before each turn, from
/// its own state.
#[derive(Debug)]
pub(crate) struct TurnProfile {
    pub(crate) words: String,
    pub(crate) purpose: Purpose,
    /// The offered tools; `None` means all for a loop that does not see the screen.
    pub(crate) tools: Option<Vec<Arc<ToolSpec>>>,
    /// The offered tools that may be called; `None` means all. Phases of one run offer the same
    /// tools, so that each request begins with the previous one.
    pub(crate) callable: Option<Vec<Arc<ToolSpec>>>,
    /// The model's plan, repeated beside the goal once memory has dropped it.
    pub(crate) plan: Option<String>,
    /// The judge that decides in place of the model whether the goal is reached.
    pub(crate) judge: Option<Judge>,
}

impl Default for TurnProfile {
    fn default() -> Self {
        Self {
            words: PROMPT.to_owned(),
            purpose: Purpose::Agent,
            tools: None,
            callable: None,
            plan: None,
            judge: None,
        }
    }
}

impl TurnProfile {
    /// Whether the call is a submission to the judge.
    fn submits(&self, call: &ToolCall) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.hears(call))
    }

    /// Whether the tool exists but is not offered in this profile. For a tool that does not exist,
    /// the kernel has a better message. A profile that offers the search for tools offers those
    /// that can be found, too.
    pub(crate) fn withholds(&self, run: &Run, call: &ToolCall) -> bool {
        let is = |spec: &Arc<ToolSpec>| spec.name == call.tool;
        let searches = |spec: &Arc<ToolSpec>| spec.name == FindToolsCall::TOOL;
        let findable = |specs: &[Arc<ToolSpec>]| {
            let mut tools = run.tools().iter();
            specs.iter().any(searches) && tools.any(|spec| is(spec) && spec.is_served())
        };
        let offers = |specs: &Vec<Arc<ToolSpec>>| specs.iter().any(is) || findable(specs);
        let callable = self.callable.as_ref().or(self.tools.as_ref());
        let offered = callable.is_none_or(offers);
        !offered && run.tools().iter().any(is)
    }
}

/// The default loop: thought and calls in turns, until the model answers.
#[derive(Debug)]
pub struct React {
    config: CognitiveConfig,
    pub(crate) profile: TurnProfile,
    memory: MemoryBuffer,
    state: ReactState,
    /// Whether the reply of this cycle reached its length limit.
    cut_off: bool,
}

impl React {
    /// Creates a loop with this configuration.
    pub fn new(config: CognitiveConfig) -> Self {
        let memory = MemoryBuffer::new(config.memory_window);
        Self {
            config,
            profile: TurnProfile::default(),
            memory,
            state: ReactState::default(),
            cut_off: false,
        }
    }

    /// Returns a question beside the work. All but its words was sent with the step before it, so that
    /// no provider reads it anew; calls in the reply are not executed.
    pub(crate) fn aside<'a>(
        &'a self,
        run: &Run,
        perception: &Perception,
        purpose: Purpose,
        words: &str,
    ) -> ModelQuestion<'a> {
        ModelQuestion {
            purpose,
            tail: vec![Message::user(Text::new(words.trim_end(), Origin::Kernel))],
            ..self.next_step(run, perception)
        }
    }

    /// Requests closing words about finished work; empty when the prompt is too long for every
    /// model, because the result of the work must not be lost for it.
    pub(crate) async fn last_words(&self, run: &mut Run, words: &str) -> Result<String, Stop> {
        let question = self.aside(run, &run.perception(), Purpose::Reflect, words);
        let reply = run.ask_if_it_fits(question).await?;
        Ok(reply.map(|reply| reply.text()).unwrap_or_default())
    }

    /// Remembers the new amendments of the goal.
    fn hear(&mut self, run: &Run) {
        let goal = run.goal();
        for text in goal.iter().skip(self.state.heard.max(1)) {
            self.memory.add(amendment_message(text.clone()));
        }
        self.state.heard = goal.len();
    }

    /// Returns the question for the next step. What was added to the goal stands in memory, where it
    /// arrived, and so does the plan until memory is made shorter.
    fn next_step<'a>(&'a self, run: &Run, perception: &Perception) -> ModelQuestion<'a> {
        let TurnProfile {
            words,
            tools,
            purpose,
            ..
        } = &self.profile;
        let given = prompt::not_given_before(run, perception, &self.memory);
        let mut question = ModelQuestion {
            lead: goal::as_given(&given),
            ..prompt::question(run, &self.config, words, *purpose, perception, &self.memory)
        };
        let is_shorter = self.memory.first_number() > run.memory_start();
        if let (Some(plan), Some(goal)) = (&self.profile.plan, question.lead.last_mut())
            && is_shorter
        {
            let what = Text::new("Your plan:", Origin::Kernel);
            let plan = Text::new(plan.as_str(), Origin::Model);
            goal.parts.extend([what, plan].map(Part::Text));
        }
        if let Some(goal) = question.lead.last_mut() {
            goal.parts.extend(self.state.kept.parts());
        }
        if words == PROMPT
            && let Some(last) = question.system.last_mut()
        {
            last.brief = Some(BRIEF_PROMPT.trim_end().to_owned());
        }
        question.tools = match tools {
            None => {
                let mut specs = browse::specs(run);
                specs.extend(delegate::spec(&self.config));
                ToolOffer::Those(specs)
            }
            Some(specs) => ToolOffer::Those(specs.clone()),
        };
        question
    }

    /// Returns the question for the next step, bound to a call after a reply that was no answer.
    fn step<'a>(&'a self, run: &Run, perception: &Perception) -> ModelQuestion<'a> {
        let mut question = self.next_step(run, perception);
        if self.state.idle_replies > 0
            && !self.state.was_silent
            && let ToolOffer::Those(specs) = question.tools
        {
            question.tools = ToolOffer::OneOf(specs);
            // A small model that is bound may write without an end.
            question.max_output_tokens = question.max_output_tokens.min(BOUND_TOKENS);
        }
        question
    }

    /// Begins a run of a session with a summary, if it is to: the person's own one, or a model's.
    async fn begin_shorter(&mut self, run: &mut Run, perception: &Perception) -> Result<(), Stop> {
        let Some(summary) = &self.config.summary else {
            return if self.config.compacts_first {
                self.compact(run, perception, CompactionTarget::summary())
                    .await
            } else {
                Ok(())
            };
        };
        let before = compaction::size(&self.memory) + self.state.kept.size();
        let messages: Vec<_> = self.memory.recent(usize::MAX).cloned().collect();
        let shorter = compaction::in_place_of(&messages, summary);
        self.memory.rewrite([Arc::new(shorter)]);
        self.note_compaction(run, "given by the person", before)
    }

    /// Makes memory shorter, if possible; the journal records how.
    async fn compact(
        &mut self,
        run: &mut Run,
        perception: &Perception,
        aim: CompactionTarget,
    ) -> Result<(), Stop> {
        if run.has_hooks() {
            let more = json!({ "trigger": "auto", "custom_instructions": "" });
            let answer = run.ask_hooks(HookEvent::PreCompact, "auto", more).await?;
            if answer.refuses.is_some() || !answer.asks.is_empty() {
                return Ok(());
            }
        }
        let before = compaction::size(&self.memory) + self.state.kept.size();
        let mut how = "refused";
        if let Some(messages) = compaction::cut_results(&self.memory) {
            self.memory.rewrite(messages);
            how = "cut";
        }
        if !compaction::fits(&self.memory, aim)
            && let Some(messages) = compaction::cut_large_results(&self.memory, aim)
        {
            self.memory.rewrite(messages);
            how = "cut";
        }
        if !compaction::fits(&self.memory, aim) && self.summarise(run, perception, aim).await? {
            how = "summarised";
        }
        self.note_compaction(run, how, before)
    }

    fn note_compaction(&mut self, run: &mut Run, how: &str, before: u64) -> Result<(), Stop> {
        // The size of the next prompt is not known yet.
        self.state.prompt_tokens = 0;
        run.note(
            "memory.compacted",
            1,
            &json!({
                "how": how,
                "bytes_before": before,
                "bytes_after": compaction::size(&self.memory) + self.state.kept.size(),
            }),
        )
    }

    /// Replaces the older part of memory by a model's summary; open steps and constraints that it
    /// names become part of the state. Returns whether that made memory clearly shorter.
    async fn summarise(
        &mut self,
        run: &mut Run,
        perception: &Perception,
        aim: CompactionTarget,
    ) -> Result<bool, Stop> {
        let question = ModelQuestion {
            output_schema: Some(schema_of::<Summary>()),
            max_output_tokens: self.config.max_output_tokens.min(BOUND_TOKENS),
            ..self.aside(run, perception, Purpose::Summarise, SUMMARISE_PROMPT)
        };
        let Some(reply) = run.ask_if_it_fits(question).await? else {
            return Ok(false);
        };
        let mut summary = Summary::read(&reply.text());
        // A small model may recite what it was told.
        let recites = |text: &str| {
            let begins = gyrus_text::first_chars(text.trim(), RECITED_CHARACTERS);
            SUMMARISE_PROMPT.contains(begins)
        };
        summary.open_steps.retain(|step| !recites(step));
        summary.constraints.retain(|one| !recites(one));
        let kept = self.state.kept.after(&summary);
        let more = kept.size().saturating_sub(self.state.kept.size());
        let shorter = compaction::summarised(&self.memory, &summary.summary, more, aim);
        let Some(messages) = shorter.filter(|_| !recites(&summary.summary)) else {
            return Ok(false);
        };
        self.memory.rewrite(messages);
        self.state.kept = kept;
        Ok(true)
    }

    pub(crate) fn tell(&mut self, words: impl Into<String>) {
        self.memory
            .add(Message::user(Text::new(words, Origin::Kernel)));
    }

    /// Returns the text of a reply that is an answer.
    fn answer_in_words<'a>(&self, plan: &'a Plan) -> Option<&'a str> {
        let words = plan.steps.first().map(|step| step.thought.trim())?;
        if plan.tool_calls().next().is_some() || self.cut_off {
            return None;
        }
        let is_over = self.state.asked_after_silence
            && self.state.has_acted
            && self.state.failed_last.is_none();
        let reason = words::no_answer(words, self.state.has_acted, &self.profile.words);
        let is_answer = reason.is_none() || is_over && reason == Some(UselessReply::Empty);
        (is_answer && !self.gives_up_early()).then_some(words)
    }

    /// Whether the last call failed and the model has not yet been asked to continue after the
    /// failure: small models explain then what could be done, and do nothing.
    fn gives_up_early(&self) -> bool {
        self.state.failed_last.is_some()
            && self.profile.judge.is_none()
            && self.state.idle_replies == 0
            && self.state.asked_after_failure < MAX_AFTER_FAILURE
    }

    /// Returns the call that submits an answer in words to the judge, if there is one.
    pub(crate) fn submission_in_words(&self, plan: &Plan) -> Option<ToolCall> {
        let words = self.answer_in_words(plan)?;
        self.profile.judge.as_ref()?.submission(words)
    }

    /// Ends the work with an answer in text, or submits the answer to the judge.
    async fn take_answer(
        &mut self,
        run: &mut Run,
        plan: &Plan,
    ) -> Result<Option<ExecutionResult>, Stop> {
        let Some(answer) = self.answer_in_words(plan) else {
            return Ok(None);
        };
        let mut result = ExecutionResult::default();
        match (&self.profile.judge, self.submission_in_words(plan)) {
            (None, _) => {
                let denied = run.denied().into_iter();
                let denied = denied.map(|call| format!("this was denied: {call}"));
                let failed = self.state.failed_last.clone();
                result.strength = Strength::Answered;
                result.claim = Some(Claim {
                    reached: true,
                    answer: answer.to_owned(),
                    evidence: Vec::new(),
                    shortfalls: denied.chain(failed).collect(),
                });
            }
            (Some(judge), Some(call)) => {
                let observation = judge
                    .hear(run, &call, self.config.judge_images.as_deref())
                    .await?;
                self.memory
                    .add_observation(&call.tool, &observation.text.text);
                result.actions.push(Action { call, observation });
            }
            (Some(_), None) => return Ok(None),
        }
        self.state.idle_replies = 0;
        Ok(Some(result))
    }

    /// Asks once more after a useless reply; the run parks for a person if that does not help.
    fn remind(&mut self, run: &mut Run, said: &str) -> Result<(), Stop> {
        let after_failure = !said.trim().is_empty() && self.gives_up_early();
        self.state.asked_after_failure += u32::from(after_failure);
        self.state.idle_replies += 1;
        let cut_off = std::mem::take(&mut self.cut_off);
        self.give_up_if_idle(run, said, if cut_off { MAX_REMINDERS } else { 1 })?;
        self.state.was_silent = self.state.has_acted && !cut_off && said.trim().is_empty();
        self.state.asked_after_silence |= self.state.was_silent;
        self.tell(if self.state.was_silent {
            words::AFTER_SILENCE
        } else if cut_off {
            words::AFTER_CUT_OFF
        } else if after_failure {
            words::AFTER_FAILURE
        } else {
            words::AFTER_NO_CALL
        });
        Ok(())
    }

    fn give_up_if_idle(&mut self, run: &mut Run, said: &str, most: u32) -> Result<(), Stop> {
        if self.state.idle_replies > most {
            run.stuck(format!(
                "the model keeps answering without calling a tool or finishing; it last said: {}",
                gyrus_text::shorten(said, 300)
            ))?;
            self.state.idle_replies = 0;
        }
        Ok(())
    }

    async fn call(&self, run: &mut Run, plan: &Plan) -> Result<Vec<Observation>, Stop> {
        let harmless = |call: &ToolCall| {
            let spec = run.tools().iter().find(|spec| spec.name == call.tool);
            spec.is_some_and(|spec| spec.repeat == Repeat::Freely)
                && !self.profile.withholds(run, call)
                && !self.profile.submits(call)
        };
        // Reads do not interfere with each other; all other calls run in the requested order.
        if plan.tool_calls().nth(1).is_some() && plan.tool_calls().all(harmless) {
            return run.call_all(plan.tool_calls().cloned().collect()).await;
        }
        let open: Vec<_> = plan.tool_calls().collect();
        let denied = run.ask_together(&open).await?;
        let is_denied = |index| {
            denied
                .as_ref()
                .filter(|denied| denied.calls.contains(&index))
        };
        let mut observations = Vec::new();
        let mut delegated = VecDeque::new();
        // The work must not change until the judge's verdict was read, and a claim is about the
        // calls before it.
        let mut closed = None;
        for (index, call) in plan.tool_calls().enumerate() {
            let observation = match &self.profile.judge {
                _ if let Some(why) = closed => {
                    Observation::refused(EffectId::cycle(run.cycle()), call, why)
                }
                _ if let Some(denied) = is_denied(index) => {
                    Observation::refused(EffectId::cycle(run.cycle()), call, &denied.why)
                }
                _ if !self.state.refused_evidence
                    && let Some(why) = self.state.failures.named_by(call) =>
                {
                    let why = format!("{why}\n{}", words::AFTER_FAILED_EVIDENCE);
                    Observation::refused(EffectId::cycle(run.cycle()), call, why)
                }
                _ if self.profile.withholds(run, call) => {
                    let words = format!("`{}` cannot be used in this phase", call.tool);
                    Observation::refused(EffectId::cycle(run.cycle()), call, words)
                }
                Some(judge) if judge.hears(call) => {
                    closed = Some("not done: the work was submitted before this call");
                    let images = self.config.judge_images.as_deref();
                    judge.hear(run, call, images).await?
                }
                Some(_) | None if self.may_delegate(call) => {
                    if delegated.is_empty() {
                        delegated.extend(self.delegate(run, &open[index..]).await?);
                    }
                    let seen = delegated.pop_front();
                    seen.unwrap_or_else(|| unreachable!("the first of these calls is one"))
                }
                Some(_) | None => browse::call(run, call, self.config.left_at.as_deref()).await?,
            };
            if observation.claim.is_some() {
                closed = Some("not done: the work was said to be over before this call");
            }
            observations.push(observation);
        }
        Ok(observations)
    }

    /// Whether the call starts a sub-run that may be started in this phase.
    fn may_delegate(&self, call: &ToolCall) -> bool {
        let TurnProfile {
            tools, callable, ..
        } = &self.profile;
        let offers = |specs: &Vec<Arc<ToolSpec>>| specs.iter().any(|spec| spec.name == DELEGATE);
        call.tool == DELEGATE
            && self.config.delegation.is_some()
            && callable.as_ref().or(tools.as_ref()).is_none_or(offers)
    }

    /// Starts the sub-runs of the first of these calls and of those directly after it,
    /// concurrently.
    async fn delegate(&self, run: &mut Run, calls: &[&ToolCall]) -> Result<Vec<Observation>, Stop> {
        let calls = calls.iter().take_while(|call| self.may_delegate(call));
        delegate::call_all(run, &self.config, calls.copied().collect()).await
    }

    fn remember_whether_it_acted(&mut self, observations: &[Observation]) {
        for seen in observations.iter().filter(|seen| seen.claim.is_none()) {
            self.state.has_acted |= seen.verdict != ActionVerdict::Refused;
            self.state.failed_last = seen.is_error.then(|| {
                let why = gyrus_text::shorten(seen.text.text.trim(), FAILED_CHARACTERS);
                format!("`{}` failed last: {why}", seen.tool)
            });
        }
    }

    fn watch_for_repetition(&mut self, run: &mut Run, actions: &[Action]) -> Result<(), Stop> {
        for action in actions {
            match self
                .state
                .repetition
                .observe(&action.call, &action.observation)
            {
                RepetitionAdvice::GoOn => {}
                RepetitionAdvice::Tell(words) => self.tell(words),
                RepetitionAdvice::Park(words) => {
                    run.stuck(words.clone())?;
                    self.state.repetition.reset();
                    self.tell(format!(
                        "A person was told that {words}, and let you go on. Do it differently."
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Implements the methods that a loop around [`React`] delegates to it, for a loop with the fields
/// `acting` and `state`, whose state contains that of the acting part.
macro_rules! acts_by_react {
    ($state:ty) => {
        type State = $state;

        fn name(&self) -> &'static str {
            KIND.name
        }

        fn state(&self) -> &$state {
            &self.state
        }

        fn restore(&mut self, state: $state) {
            self.acting.restore(state.acting.clone());
            self.state = state;
        }

        fn memory_buffer(&self) -> &gyrus_contract::MemoryBuffer {
            self.acting.memory_buffer()
        }

        fn memory_buffer_mut(&mut self) -> &mut gyrus_contract::MemoryBuffer {
            self.acting.memory_buffer_mut()
        }

        async fn reflect(
            &mut self,
            run: &mut Run,
            perception: &Perception,
            plan: &Plan,
            result: &ExecutionResult,
        ) -> Result<Option<String>, Stop> {
            self.acting.reflect(run, perception, plan, result).await
        }
    };
}
pub(crate) use acts_by_react;

impl CognitiveLoop for React {
    keeps!(KIND.name, state: ReactState);

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        Ok(run.perception())
    }

    async fn think(&mut self, run: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        mandate::state(run, &self.config, MandateSubject::Tools).await?;
        if let (Some(window), tokens @ 1..) = (run.window(), self.state.prompt_tokens)
            && let Some(aim) = CompactionTarget::within(window, tokens, &self.memory)
        {
            self.compact(run, perception, aim).await?;
        } else if run.cycle() == 1 && run.memory_start() > 0 {
            self.begin_shorter(run, perception).await?;
        }
        self.hear(run);
        let question = self.step(run, perception);
        let reply = match run.ask_if_it_fits(question).await? {
            Some(reply) => reply,
            None => {
                let aim = CompactionTarget::half(&self.memory);
                self.hear(run);
                self.compact(run, perception, aim).await?;
                let question = self.step(run, perception);
                run.ask(question).await?
            }
        };
        // What came with this question stands before its reply.
        self.hear(run);
        self.state.prompt_tokens = reply.usage.map_or(0, |usage| {
            usage.input_tokens.saturating_add(usage.output_tokens)
        });
        self.cut_off = reply.stop == StopReason::MaxTokens;
        let thought = reply.text();
        if !thought.trim().is_empty() {
            run.note("thought", 1, &json!({ "text": thought }))?;
        }
        if !reply.parts.is_empty() {
            self.memory.add_reply(&reply);
        }
        let mut plan = Plan::with_goal(goal::first_goal(perception));
        for (number, call) in (1..).zip(reply.tool_calls()) {
            plan.add_step(ThoughtStep::with_tool(
                number,
                thought.clone(),
                call.clone(),
            ));
        }
        if plan.steps.is_empty() {
            plan.add_step(ThoughtStep::reasoning(1, thought));
        }
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        if let Some(answered) = self.take_answer(run, plan).await? {
            return Ok(answered);
        }
        if plan.tool_calls().next().is_none() {
            let said = plan
                .steps
                .first()
                .map_or("", |step| step.thought.as_str())
                .to_owned();
            self.remind(run, &said)?;
            return Ok(ExecutionResult::default());
        }
        self.state.idle_replies = 0;
        let observations = self.call(run, plan).await?;
        self.memory.add_results(&observations);
        self.remember_whether_it_acted(&observations);
        for (call, seen) in plan.tool_calls().zip(&observations) {
            self.state.failures.hear(call, seen);
        }
        let mut claim = observations.iter().find_map(|seen| seen.claim.clone());
        let mut calls = plan.tool_calls();
        let shortfall = calls.find_map(|call| self.state.failures.named_by(call));
        self.state.refused_evidence |= shortfall.is_some();
        let actions: Vec<_> = plan
            .tool_calls()
            .cloned()
            .zip(observations)
            .map(|(call, observation)| Action { call, observation })
            .collect();
        if claim.is_none() {
            self.watch_for_repetition(run, &actions)?;
        }
        // Nothing is reached by a word, nor by what failed.
        let is_reached = self.state.has_acted && shortfall.is_none();
        if let Some(claim) = &mut claim {
            claim.shortfalls.extend(shortfall);
        }
        let strength = if is_reached {
            Strength::Claimed
        } else {
            Strength::Answered
        };
        Ok(ExecutionResult {
            actions,
            claim,
            strength,
            ..ExecutionResult::default()
        })
    }

    async fn reflect(
        &mut self,
        run: &mut Run,
        perception: &Perception,
        _plan: &Plan,
        result: &ExecutionResult,
    ) -> Result<Option<String>, Stop> {
        let failed = result
            .actions
            .iter()
            .any(|action| action.observation.is_error);
        if !self.config.reflection || !failed {
            return Ok(None);
        }
        let question = self.aside(run, perception, Purpose::Reflect, REFLECT_PROMPT);
        let words = run.ask(question).await?.text();
        Ok(Some(words).filter(|words| !words.trim().is_empty()))
    }
}
