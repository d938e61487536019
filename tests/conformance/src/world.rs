//! A world small enough to compare: some lines, some values, and who did what to them.
//!
//! Its tools have one repeat policy each, so a crash in the middle of any of them has one right
//! continuation: [`look`](LOOK) is repeated freely, [`put`](PUT) can tell whether it happened,
//! [`append`](APPEND) must never happen twice. [`hold`](HOLD) is an `append` that waits until a
//! test lets it go.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gyrus_contract::{
    ActionVerdict, Boxed, Claim, Cleared, EffectId, Probe, Repeat, ResolvedCall, Site, Tool,
    ToolOutput, ToolSpec, Touch,
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Shows everything; repeated freely.
pub const LOOK: &str = "look";
/// Adds a line; never repeated.
pub const APPEND: &str = "append";
/// Sets a value; can tell whether it did.
pub const PUT: &str = "put";
/// As [`APPEND`], once [`World::release`] lets it.
pub const HOLD: &str = "hold";
/// Claims that the goal is reached.
pub const FINISH: &str = "finish";

/// What can be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Lines, in the order they were added.
    pub lines: Vec<String>,
    /// Values by name.
    pub values: BTreeMap<String, String>,
}

impl State {
    /// The state without the order of lines, which is not part of any promise: an interrupted
    /// call is made up for later than it would have been.
    pub fn unordered(mut self) -> Self {
        self.lines.sort_unstable();
        self
    }
}

/// One execution of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Deed {
    /// The effect that it was.
    pub effect: EffectId,
    /// The tool.
    pub tool: String,
    /// What it was called with.
    pub arguments: Value,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    deeds: Vec<Deed>,
    probes: u32,
}

/// The world. Clones are the same one.
#[derive(Debug, Clone)]
pub struct World {
    inner: Arc<Mutex<Inner>>,
    holding: watch::Sender<u32>,
    released: watch::Sender<bool>,
}

impl World {
    /// The world as these deeds, done by an earlier process, leave it.
    pub fn after(deeds: Vec<Deed>) -> Self {
        let mut inner = Inner::default();
        for deed in deeds {
            apply(&mut inner.state, &deed.tool, &deed.arguments);
            inner.deeds.push(deed);
        }
        Self {
            inner: Arc::new(Mutex::new(inner)),
            holding: watch::Sender::new(0),
            released: watch::Sender::new(false),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As it is now.
    pub fn state(&self) -> State {
        self.inner().state.clone()
    }

    /// Every execution, oldest first.
    pub fn deeds(&self) -> Vec<Deed> {
        self.inner().deeds.clone()
    }

    /// How often [`PUT`] was asked whether it had happened.
    pub fn probes(&self) -> u32 {
        self.inner().probes
    }

    /// Waits until a call of [`HOLD`] is in hand.
    pub async fn holding(&self) {
        let mut holding = self.holding.subscribe();
        holding
            .wait_for(|held| *held > 0)
            .await
            .expect("the world holds the sender");
    }

    /// Lets every call of [`HOLD`] go, now and later.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// The tools that act on it.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let writes = || vec![Touch::Writes("file".to_owned())];
        [
            (LOOK, Vec::new(), Repeat::Freely),
            (APPEND, writes(), Repeat::Never),
            (PUT, writes(), Repeat::Probe),
            (HOLD, writes(), Repeat::Never),
            (FINISH, Vec::new(), Repeat::Freely),
        ]
        .into_iter()
        .map(|(name, touches, repeat)| -> Arc<dyn Tool> {
            let spec = ToolSpec {
                name: name.to_owned(),
                description: format!("the world's `{name}`"),
                parameters: json!({"type": "object"}),
                touches,
                repeat,
            };
            Arc::new(WorldTool {
                world: self.clone(),
                spec,
            })
        })
        .collect()
    }
}

/// Arguments of [`APPEND`] and [`HOLD`].
pub fn line(line: &str) -> Value {
    json!({"file": "lines", "line": line})
}

/// Arguments of [`PUT`].
pub fn value(name: &str, value: &str) -> Value {
    json!({"file": name, "value": value})
}

/// Arguments of [`FINISH`].
pub fn claim(answer: &str) -> Value {
    json!({"reached": true, "answer": answer})
}

fn text(arguments: &Value, name: &str) -> String {
    arguments[name].as_str().unwrap_or_default().to_owned()
}

fn apply(state: &mut State, tool: &str, arguments: &Value) {
    match tool {
        APPEND | HOLD => state.lines.push(text(arguments, "line")),
        PUT => {
            state
                .values
                .insert(text(arguments, "file"), text(arguments, "value"));
        }
        _ => {}
    }
}

struct WorldTool {
    world: World,
    spec: ToolSpec,
}

impl WorldTool {
    fn act(&self, effect: &EffectId, arguments: &Value) -> ToolOutput {
        let mut inner = self.world.inner();
        let Inner { state, deeds, .. } = &mut *inner;
        let tool = self.spec.name.clone();
        apply(state, &tool, arguments);
        let output = output(&tool, arguments, state);
        deeds.push(Deed {
            effect: effect.clone(),
            tool,
            arguments: arguments.clone(),
        });
        output
    }
}

fn output(tool: &str, arguments: &Value, state: &State) -> ToolOutput {
    match tool {
        LOOK => ToolOutput::read(show(state)),
        FINISH => ToolOutput {
            claim: Some(Claim {
                reached: arguments["reached"].as_bool().unwrap_or_default(),
                answer: text(arguments, "answer"),
                evidence: Vec::new(),
            }),
            ..ToolOutput::read("the claim is recorded")
        },
        _ => ToolOutput {
            verdict: ActionVerdict::Changed,
            ..ToolOutput::read("done")
        },
    }
}

fn show(state: &State) -> String {
    let values = state
        .values
        .iter()
        .map(|(name, value)| format!("{name} = {value}"));
    let shown: Vec<_> = state.lines.iter().cloned().chain(values).collect();
    if shown.is_empty() {
        "nothing yet".to_owned()
    } else {
        shown.join("\n")
    }
}

impl Tool for WorldTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move {
            if self.spec.name == HOLD {
                self.world.holding.send_modify(|held| *held += 1);
                let mut released = self.world.released.subscribe();
                released
                    .wait_for(|released| *released)
                    .await
                    .expect("the world holds the sender");
            }
            match revealed(&call.arguments, site) {
                Ok(arguments) => self.act(call.effect(), &arguments),
                Err(error) => ToolOutput::error(error),
            }
        })
    }

    fn probe<'a>(&'a self, call: &'a ResolvedCall, _site: &'a dyn Site) -> Boxed<'a, Probe> {
        Box::pin(async move {
            let mut inner = self.world.inner();
            let (name, value) = (
                text(&call.arguments, "file"),
                text(&call.arguments, "value"),
            );
            let happened = inner.state.values.get(&name) == Some(&value);
            inner.probes += 1;
            if happened {
                Probe::Happened(output(PUT, &call.arguments, &inner.state))
            } else {
                Probe::DidNotHappen
            }
        })
    }
}

/// The arguments with every secret's marker replaced, as the world outside gets them.
fn revealed(arguments: &Value, site: &dyn Site) -> Result<Value, String> {
    let text = site
        .reveal(&arguments.to_string())
        .map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}
