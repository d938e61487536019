//! Running hooks. What they answer is a fact of the journal, so a replay runs none.

use gyrus_contract::{
    EffectId, HookAnswer, HookEvent, HookRun, ToolCall, field_mode, field_tool_input,
    field_tool_name,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Entry, Fact, Run, Stop, core::Core, log_name, recorded::diverges, run::Begun};

/// The kind of the note with the answer of hooks.
pub(crate) const HOOKS_RAN: &str = "hooks.ran";

/// Maximum length of a result that hooks are given, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

/// The fact that hooks were asked about an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HooksRan {
    pub(crate) event: HookEvent,
    /// The commands that ran, in order.
    hooks: Vec<String>,
    #[serde(flatten)]
    pub(crate) answer: HookAnswer,
}

impl HooksRan {
    /// Reads it from an entry of this kind.
    pub(crate) fn read(kind: &str, fact: &Fact) -> Option<Self> {
        let is_one = kind == HOOKS_RAN;
        is_one.then(|| Self::deserialize(&fact.fact).ok()).flatten()
    }
}

impl Run {
    /// Whether hooks are asked about this run's start and end.
    pub fn has_hooks(&self) -> bool {
        self.core.started.hooks
    }

    /// Asks the hooks about an event of the run itself. `subject` is the kind of it, `more` what they
    /// are told beside that.
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
    begun: Begun,
    event: HookEvent,
    subject: &str,
    more: Value,
) -> Result<HookAnswer, Stop> {
    let ran = match begun.past.first() {
        None => {
            let ran = ask(core, event, subject, more).await?;
            record(core, &begun.effect, ran)?
        }
        Some(Entry::Noted { kind, fact, .. })
            if let Some(ran) = HooksRan::read(kind, fact) =>
        {
            ran
        }
        Some(other) => return Err(diverges(&begun.effect, other, "asking hooks")),
    };
    // What hooks say was not written by the person who typed the goal.
    if !ran.answer.is_silent() {
        core.expose();
    }
    Ok(ran.answer)
}

/// Returns the answer of the hooks about a call: the recorded one, or, if there is none, that of the
/// hooks that there are now.
pub(super) async fn about_call(
    core: &Core,
    effect: &EffectId,
    event: HookEvent,
    call: &ToolCall,
    (past, response): (&[HooksRan], Option<&str>),
) -> Result<HookAnswer, Stop> {
    if let Some(ran) = past.iter().find(|ran| ran.event == event) {
        return Ok(ran.answer.clone());
    }
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
    let mut ran = ask(core, event, &name, more.clone()).await?;
    if ran.hooks.is_empty() && name != call.tool {
        ran = ask(core, event, &call.tool, more).await?;
    }
    if ran.hooks.is_empty() {
        return Ok(ran.answer);
    }
    Ok(record(core, effect, ran)?.answer)
}

/// Runs the hooks for an event, one after the other, until one refuses.
async fn ask(
    core: &Core,
    event: HookEvent,
    subject: &str,
    more: Value,
) -> Result<HooksRan, Stop> {
    let mut ran = HooksRan {
        event,
        hooks: Vec::new(),
        answer: HookAnswer::default(),
    };
    let organs = core.kernel.organs();
    let Some(hooks) = &organs.hooks else {
        return Ok(ran);
    };
    let input = input(core, event, more).to_string();
    for hook in hooks.matching(event, subject) {
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
        let refused = ran.answer.add(&name, HookAnswer::of(event, &one));
        ran.hooks.push(name);
        if refused {
            break;
        }
    }
    Ok(ran)
}

/// Returns what hooks read on their standard input.
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
