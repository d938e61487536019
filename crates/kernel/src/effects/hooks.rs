//! Running hooks. What they answer is a fact of the journal, so a replay runs none.

use gyrus_contract::{
    Decision, EffectId, FINISH, HookAnswer, HookEvent, HookRun, ToolCall, Verdict, field_mode,
    field_tool_input, field_tool_name,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    CallEnd, Entry, Fact, Run, Stop, ToolResulted, core::Core, log_name, recorded::diverges,
    run::NumberedEffect,
};

/// The kind of the note with the answer of hooks.
pub(crate) const HOOKS_RAN: &str = "hooks.ran";

/// Maximum length of a result that hooks are given, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

/// Maximum number of characters of a hook's command in messages about the hook.
const SHOWN: usize = 80;

/// The fact about the answers of hooks to an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HooksRan {
    event: HookEvent,
    /// The commands that ran, in order.
    hooks: Vec<String>,
    #[serde(flatten)]
    answer: HookAnswer,
}

impl HooksRan {
    /// Reads the answers of hooks from an entry of this kind.
    fn read(kind: &str, fact: &Fact) -> Option<Self> {
        let is_one = kind == HOOKS_RAN;
        is_one.then(|| Self::deserialize(&fact.fact).ok()).flatten()
    }
}

impl Run {
    /// Whether hooks are asked about this run's start and end.
    pub fn has_hooks(&self) -> bool {
        self.core.started.hooks
    }

    /// Asks the hooks about an event of the run itself. `subject` is the kind of the event, `more`
    /// further data for the hooks.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn ask_hooks(
        &mut self,
        event: HookEvent,
        subject: &str,
        more: Value,
    ) -> Result<HookAnswer, Stop> {
        let begun = self.begin(|| format!("asking hooks about {}", event.word()))?;
        let done = Box::pin(perform(&self.core, begun, event, subject, more)).await;
        self.end(done)
    }
}

async fn perform(
    core: &Core,
    begun: NumberedEffect,
    event: HookEvent,
    subject: &str,
    more: Value,
) -> Result<HookAnswer, Stop> {
    let ran = match begun.past.first() {
        None => {
            let ran = ask(core, event, subject, more).await?;
            record(core, &begun.effect, ran)?
        }
        Some(Entry::Noted { kind, fact, .. }) if let Some(ran) = HooksRan::read(kind, fact) => ran,
        Some(other) => return Err(diverges(&begun.effect, other, "asking hooks")),
    };
    // What hooks say was not written by the person who typed the goal.
    if !ran.answer.is_silent() {
        core.expose();
    }
    Ok(ran.answer)
}

#[derive(Debug, Default)]
pub(super) struct CallHooks {
    recorded: Vec<HooksRan>,
}

impl CallHooks {
    /// Reads a recorded answer.
    pub(super) fn read(&mut self, kind: &str, fact: &Fact) {
        self.recorded.extend(HooksRan::read(kind, fact));
    }

    fn answer(&self, event: HookEvent) -> Option<&HookAnswer> {
        let mut recorded = self.recorded.iter();
        let ran = recorded.find(|ran| ran.event == event)?;
        Some(&ran.answer)
    }

    /// Asks the hooks before the call. Returns the reason for the model if one refuses.
    pub(super) async fn ask_before(
        &mut self,
        core: &Core,
        effect: &EffectId,
        call: &ToolCall,
    ) -> Result<Option<String>, Stop> {
        if call.tool != FINISH {
            let about = (call, None);
            self.ask(core, effect, HookEvent::PreToolUse, about).await?;
        }
        let answer = self.answer(HookEvent::PreToolUse);
        let why = answer.and_then(|answer| answer.refuses.as_ref());
        Ok(why.map(|why| format!("this call is not allowed: {why}")))
    }

    /// Asks the hooks after a call that was made.
    pub(super) async fn ask_after(
        &mut self,
        core: &Core,
        call: &ToolCall,
        resulted: &ToolResulted,
    ) -> Result<(), Stop> {
        if core.kernel.organs().hooks.is_none() || resulted.settled != CallEnd::Done {
            return Ok(());
        }
        let text = resulted.text.load(&core.log)?;
        let about = (call, Some(&*text));
        let event = HookEvent::PostToolUse;
        self.ask(core, &resulted.effect, event, about).await
    }

    async fn ask(
        &mut self,
        core: &Core,
        effect: &EffectId,
        event: HookEvent,
        (call, response): (&ToolCall, Option<&str>),
    ) -> Result<(), Stop> {
        if core.kernel.organs().hooks.is_some() && self.answer(event).is_none() {
            let asking = about_call(core, effect, event, call, response);
            self.recorded.extend(Box::pin(asking).await?);
        }
        Ok(())
    }

    /// Returns the reasons why a person is to be asked about the call.
    pub(super) fn asks(&self) -> &[String] {
        let answer = self.answer(HookEvent::PreToolUse);
        answer.map_or(&[], |answer| &answer.asks)
    }

    /// Makes a verdict require a question if a hook wants that.
    pub(super) fn make_stricter(&self, verdict: &mut Verdict) {
        for why in self.asks() {
            verdict.decision = verdict.decision.max(Decision::Ask);
            verdict.reasons.push(why.clone());
        }
    }

    /// Returns the words of hooks for the model, beside the call's result.
    pub(super) fn told(&self, core: &Core) -> Vec<String> {
        let answers = self.recorded.iter().map(|ran| &ran.answer);
        let context = answers.flat_map(|answer| &answer.context);
        let context = context.map(|text| format!("a hook says: {text}"));
        let after = self.answer(HookEvent::PostToolUse);
        let refuses = after.and_then(|answer| answer.refuses.clone());
        let told: Vec<String> = context.chain(refuses).collect();
        if !told.is_empty() {
            core.expose();
        }
        told
    }
}

/// Asks the hooks about a call and records their answer; `None` if none applies to it.
async fn about_call(
    core: &Core,
    effect: &EffectId,
    event: HookEvent,
    call: &ToolCall,
    response: Option<&str>,
) -> Result<Option<HooksRan>, Stop> {
    let name = field_tool_name(&call.tool);
    let mut more = json!({
        "tool_name": name,
        "tool_input": field_tool_input(&call.tool, &call.arguments, &core.started.workspace),
        "tool_use_id": format!("{}:{effect}", core.started.run),
    });
    if let Some(text) = response {
        let text = gyrus_text::first_bytes(text, MAX_RESPONSE);
        more["tool_response"] = json!({ "content": text });
    }
    let ran = ask(core, event, &name, more).await?;
    if ran.hooks.is_empty() {
        return Ok(None);
    }
    record(core, effect, ran).map(Some)
}

/// Runs the hooks for an event, one after the other, until one refuses.
async fn ask(core: &Core, event: HookEvent, subject: &str, more: Value) -> Result<HooksRan, Stop> {
    let mut ran = HooksRan {
        event,
        hooks: Vec::new(),
        answer: HookAnswer::default(),
    };
    let organs = core.kernel.organs();
    let Some(hooks) = &organs.hooks else {
        return Ok(ran);
    };
    let matching = hooks.matching(event, subject, &more);
    let input = input(core, event, more).to_string();
    for hook in matching {
        core.may_act()?;
        let one = tokio::select! {
            one = hook.run(input.clone()) => one,
            ending = core.controls.stopped() => return Err(ending.into()),
        };
        let redact = |text: &str| organs.redactor.redact(text).into_owned();
        let one = HookRun {
            exit: one.exit.map_err(|why| redact(&why)),
            stdout: redact(&one.stdout),
            stderr: redact(&one.stderr),
        };
        let name = redact(hook.name());
        let short = gyrus_text::shorten(&name, SHOWN);
        let refused = ran.answer.add(&short, HookAnswer::of(event, &one));
        ran.hooks.push(name);
        if refused {
            break;
        }
    }
    Ok(ran)
}

/// Returns the JSON that hooks read on their standard input.
fn input(core: &Core, event: HookEvent, more: Value) -> Value {
    let run = core.started.run;
    let journal = core.kernel.store().folder(&log_name(run));
    let mut input = json!({
        "session_id": run,
        "transcript_path": journal,
        "cwd": core.started.workspace,
        "permission_mode": field_mode(core.settings.mode),
        "hook_event_name": event.word(),
    });
    if let (Some(input), Value::Object(more)) = (input.as_object_mut(), more) {
        let more: Map<String, Value> = more;
        input.extend(more);
    }
    input
}

fn record(core: &Core, effect: &EffectId, ran: HooksRan) -> Result<HooksRan, Stop> {
    let fact = serde_json::to_value(&ran).map_err(|error| Stop::Failed(error.to_string()))?;
    core.log.append(Entry::Noted {
        kind: HOOKS_RAN.to_owned(),
        version: 1,
        fact: Fact {
            effect: effect.clone(),
            fact,
        },
    })?;
    Ok(ran)
}
