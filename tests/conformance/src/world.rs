//! A world small enough to compare: some lines, some values, and who did what to them.
//!
//! Its tools have one repeat policy each, so a crash in the middle of any of them has one right
//! continuation: [`look`](LOOK) is repeated freely, [`put`](PUT) can tell whether it happened,
//! [`append`](APPEND) must never happen twice. [`hold`](HOLD) is an `append` that waits until a
//! test lets it go.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{
    ActionVerdict, AppliedChangeset, BoxedFuture, Claim, Cleared, EffectId, FileDiff, Probe,
    Proposal, RankedFile, RankedFiles, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec,
    Touch, WhyRanked,
};
use parking_lot::{Mutex, MutexGuard};
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
/// Finds the one file that there is; repeated freely.
pub const RANK: &str = "rank_files";
/// Reads it; repeated freely.
pub const READ: &str = "read";
/// Makes a diff of a value for each path; repeated freely.
pub const PROPOSE: &str = "propose_changeset";
/// Sets the values of such a diff; can tell whether it did. The value [`CONFLICT`] is refused, and
/// leaves a mark.
pub const APPLY: &str = "apply_changeset";
/// Value that cannot be applied.
pub const CONFLICT: &str = "conflict";
/// Value that leaves the world half changed the first time that it is applied.
pub const STRANDED: &str = "stranded";

/// The part of the world that can be changed.
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
    /// Arguments of the call.
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
        self.inner.lock()
    }

    /// As it is now.
    pub fn state(&self) -> State {
        self.inner().state.clone()
    }

    /// Every execution, oldest first.
    pub fn deeds(&self) -> Vec<Deed> {
        self.inner().deeds.clone()
    }

    /// Returns how often [`PUT`] was asked whether it had happened.
    pub fn probes(&self) -> u32 {
        self.inner().probes
    }

    /// Waits until a call of [`HOLD`] is in progress.
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
        self.made([
            (LOOK, Vec::new(), Repeat::Freely),
            (APPEND, writes(), Repeat::Never),
            (PUT, writes(), Repeat::Probe),
            (HOLD, writes(), Repeat::Never),
            (FINISH, Vec::new(), Repeat::Freely),
        ])
    }

    /// The same, with those that make changesets.
    pub fn tools_for_changesets(&self) -> Vec<Arc<dyn Tool>> {
        let changes = vec![Touch::Changes("changes".to_owned())];
        let more = self.made([
            (RANK, Vec::new(), Repeat::Freely),
            (READ, Vec::new(), Repeat::Freely),
            (PROPOSE, Vec::new(), Repeat::Freely),
            (APPLY, changes, Repeat::Probe),
        ]);
        self.tools().into_iter().chain(more).collect()
    }

    fn made<const N: usize>(&self, tools: [(&str, Vec<Touch>, Repeat); N]) -> Vec<Arc<dyn Tool>> {
        tools
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
        APPLY => {
            let values = changed(arguments);
            let strands = values.iter().any(|(_, value)| value == STRANDED);
            let first = !state.values.contains_key("half");
            if strands && first {
                state
                    .values
                    .extend([("half".to_owned(), "changed".to_owned())])
            } else {
                state.values.extend(values)
            }
        }
        _ => {}
    }
}

/// The values that a changeset sets: the added lines of each diff.
fn changed(arguments: &Value) -> Vec<(String, String)> {
    let changes = arguments["changes"].as_array().into_iter().flatten();
    let values = changes.map(|change| {
        let diff = text(change, "diff");
        let added = diff.lines().filter_map(|line| line.strip_prefix('+'));
        let value = added.collect::<Vec<_>>().join("\n");
        if value == CONFLICT {
            ("tried".to_owned(), value)
        } else {
            (text(change, "path"), value)
        }
    });
    values.collect()
}

/// Returns the proposal as a diff; one whose summary says so is wrong.
fn proposed(arguments: &Value) -> ToolOutput {
    let summary = text(arguments, "summary");
    if summary.contains("wrong") {
        return ToolOutput::error("colour: the old text is not there");
    }
    let changes = arguments["changes"].as_array();
    let changes = changes.into_iter().flatten().map(|change| FileDiff {
        path: text(change, "path"),
        reason: "why".to_owned(),
        hunks: format!("@@ -0,0 +1 @@\n+{}\n", text(change, "content")),
        ..FileDiff::default()
    });
    let proposal = Proposal {
        summary,
        changes: changes.collect(),
    };
    ToolOutput::read(proposal.to_string()).with_value(&proposal)
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
        RANK => {
            let files = vec![RankedFile {
                path: "notes".to_owned(),
                bytes: 8,
                tokens: 2,
                why: WhyRanked::AboutTheGoal,
                chosen: true,
            }];
            let ranked = RankedFiles {
                files,
                considered: 1,
            };
            ToolOutput::read("a list").with_value(&ranked)
        }
        READ => ToolOutput::read("     1\tgreen is good"),
        PROPOSE => proposed(arguments),
        APPLY
            if changed(arguments)
                .iter()
                .any(|(_, value)| value == CONFLICT) =>
        {
            ToolOutput::error("nothing was changed: `colour` was changed meanwhile")
        }
        APPLY if state.values.contains_key("half") && !state.values.contains_key("colour") => {
            ToolOutput {
                verdict: ActionVerdict::Changed,
                ..ToolOutput::error("what was done so far could not be taken back")
            }
        }
        APPLY => {
            let applied = AppliedChangeset {
                text: "done".to_owned(),
                created: changed(arguments).len(),
                replaced: 0,
                deleted: 0,
            };
            ToolOutput {
                verdict: ActionVerdict::Changed,
                ..ToolOutput::read("done").with_value(&applied)
            }
        }
        FINISH => ToolOutput {
            claim: Some(Claim {
                reached: arguments["reached"].as_bool().unwrap_or_default(),
                answer: text(arguments, "answer"),
                evidence: Vec::new(),
                shortfalls: Vec::new(),
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
    ) -> BoxedFuture<'a, ToolOutput> {
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

    fn probe<'a>(&'a self, call: &'a ResolvedCall, _site: &'a dyn Site) -> BoxedFuture<'a, Probe> {
        Box::pin(async move {
            let mut inner = self.world.inner();
            let wanted = if self.spec.name == APPLY {
                changed(&call.arguments)
            } else {
                vec![(
                    text(&call.arguments, "file"),
                    text(&call.arguments, "value"),
                )]
            };
            let is_set =
                |(name, value): &(String, String)| inner.state.values.get(name) == Some(value);
            let happened = wanted.iter().all(is_set);
            inner.probes += 1;
            if happened {
                Probe::Happened(Box::new(output(
                    &self.spec.name,
                    &call.arguments,
                    &inner.state,
                )))
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
