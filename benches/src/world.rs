//! A kernel to measure: a model and a tool that cost nothing, in a store of the caller's.

use std::{path::Path, sync::Arc};

use gyrus_contract::{
    BoxedFuture, CallPlace, ChangedPath, Claim, Cleared, Decision, Delta, Gate, Judgement, Mode,
    Model, ModelError, OnAsk, Origin, Part, Price, Prompt, Repeat, Reply, ResolvedCall, Risk, Site,
    StopReason, Text, Tool, ToolCall, ToolOutput, ToolSpec, Touch, Unresolvable, Usage, Verdict,
    WithheldChange,
};
use gyrus_journal::Store;
use gyrus_kernel::{Kernel, NewRun, Organs, SingleModel, redact::Redactor};
use gyrus_loops::CognitiveConfig;
use serde_json::json;

/// Behaviour of the model.
#[derive(Clone, Copy)]
pub(crate) enum Plays {
    /// Calls the tool so often, then finishes.
    Steps(u64),
    /// Calls the tool for ever.
    ForEver,
}

pub(crate) fn kernel(root: &Path, plays: Plays, asks: bool) -> anyhow::Result<Kernel> {
    let store = Store::open(root)?;
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Note::new()), Arc::new(Finish::new())];
    let organs = Organs::new(
        Arc::new(SingleModel(Arc::new(Free { plays }))),
        tools,
        Arc::new(Open { asks }),
        Arc::new(Redactor::new([7; 32], Vec::new())),
        gyrus_loops::factory(),
    );
    Ok(Kernel::new(store, organs))
}

pub(crate) fn new_run(workspace: &Path) -> anyhow::Result<NewRun> {
    let config = CognitiveConfig::react().with_memory_window(20);
    let goal = Text::new("measure", Origin::Person);
    let name = config.strategy.loop_name();
    let config = serde_json::to_value(&config)?;
    Ok(NewRun {
        mode: Mode::Auto,
        throwaway: true,
        on_ask: OnAsk::Wait,
        ..NewRun::new(goal, name, config, workspace.to_owned())
    })
}

/// A model that answers at once.
struct Free {
    plays: Plays,
}

impl Model for Free {
    fn name(&self) -> &str {
        "bench/free"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::new(1, 1))
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        let number = prompt.ordinal;
        let done = matches!(self.plays, Plays::Steps(steps) if number >= steps);
        let (tool, arguments) = if done {
            ("finish", json!({}))
        } else {
            ("note", json!({ "text": format!("{number:0200}") }))
        };
        let call = ToolCall {
            id: format!("call-{number}"),
            tool: tool.to_owned(),
            arguments,
            repairs: Vec::new(),
        };
        let reply = Reply {
            parts: vec![
                Part::Text(Text::new("I note the next number.", Origin::Model)),
                Part::ToolCall(call),
            ],
            stop: StopReason::ToolCalls,
            usage: Some(Usage {
                input_tokens: 900,
                output_tokens: 60,
                cached_tokens: 0,
                cache_written_tokens: 0,
            }),
            model: "free".to_owned(),
        };
        Box::pin(std::future::ready(Ok(reply)))
    }
}

/// A tool that changes the world as far as the kernel knows, and answers with 200 bytes.
struct Note {
    spec: ToolSpec,
}

impl Note {
    fn new() -> Self {
        let spec = ToolSpec {
            name: "note".to_owned(),
            description: "Notes a text.".to_owned(),
            parameters: json!({ "type": "object" }),
            touches: vec![Touch::Writes("text".to_owned())],
            repeat: Repeat::Never,
        };
        Self { spec }
    }
}

impl Tool for Note {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        _site: &'a dyn Site,
    ) -> BoxedFuture<'a, ToolOutput> {
        let text = call.arguments["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        Box::pin(std::future::ready(ToolOutput::read(text)))
    }
}

struct Finish {
    spec: ToolSpec,
}

impl Finish {
    fn new() -> Self {
        let spec = ToolSpec {
            name: "finish".to_owned(),
            description: "Ends the work.".to_owned(),
            parameters: json!({ "type": "object" }),
            touches: Vec::new(),
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

impl Tool for Finish {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _call: Cleared<ResolvedCall>,
        _site: &'a dyn Site,
    ) -> BoxedFuture<'a, ToolOutput> {
        let claim = Claim {
            reached: true,
            answer: "measured".to_owned(),
            evidence: Vec::new(),
            shortfalls: Vec::new(),
        };
        let output = ToolOutput {
            claim: Some(claim),
            ..ToolOutput::read("done")
        };
        Box::pin(std::future::ready(output))
    }
}

/// A gate that lets everything through, or asks about everything.
pub(crate) struct Open {
    pub(crate) asks: bool,
}

impl Gate for Open {
    fn resolve(
        &self,
        call: &ToolCall,
        _spec: &ToolSpec,
        _place: CallPlace<'_>,
    ) -> Result<ResolvedCall, Unresolvable> {
        Ok(ResolvedCall {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            paths: Default::default(),
            command: None,
            files: Vec::new(),
            aim: None,
        })
    }

    fn withhold(&self, _: &[ChangedPath], _: &Judgement<'_>) -> Vec<WithheldChange> {
        Vec::new()
    }

    fn sends_to(&self, _call: &ResolvedCall, _risk: Risk, _under: &Judgement<'_>) -> Vec<String> {
        Vec::new()
    }

    fn judge(&self, _call: &ResolvedCall, _spec: &ToolSpec, _under: &Judgement<'_>) -> Verdict {
        let decision = if self.asks {
            Decision::Ask
        } else {
            Decision::Allow
        };
        Verdict {
            risk: Risk::Moderate,
            decision,
            reasons: Vec::new(),
            wider: Vec::new(),
            if_doubted: None,
            ungranted: None,
        }
    }
}
