//! A model that plays a script, in process.
//!
//! It finds its place by purpose and count of recorded replies, so it needs no memory of its own
//! and a killed run goes on where it was. The one thing it decides by itself is what a careful
//! model does when it is told that an `append` was interrupted: look, append again what is
//! missing, and only then go on in the script.
//!
//! It also refuses prompts that providers refuse, so every test checks every prompt.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_contract::{
    BoxedFuture, Delta, MAX_SILENCE, Message, Model, ModelError, Origin, Part, Price, Prompt,
    Purpose, Reply, Role, StopReason, Text, ToolCall, ToolResult, Usage,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    workflow::CHILD_GOAL,
    world::{APPEND, HOLD, LOOK, line},
};

/// Usage that every reply reports.
pub const USAGE: Usage = Usage {
    input_tokens: 100,
    output_tokens: 10,
    cached_tokens: 0,
    cache_written_tokens: 0,
};

/// Ids of calls that the script does not hold begin like this.
const DETOUR: &str = "detour";

/// One reply, and how the model misbehaves before and with it.
#[derive(Debug, Clone)]
pub struct Turn {
    parts: Vec<Part>,
    errors: Vec<ModelError>,
    usage: Option<Usage>,
    cut: bool,
    hangs: bool,
    silent: Option<Duration>,
}

impl Turn {
    /// No parts at all.
    pub fn empty() -> Self {
        Self {
            parts: Vec::new(),
            errors: Vec::new(),
            usage: Some(USAGE),
            cut: false,
            hangs: false,
            silent: None,
        }
    }

    /// Words only.
    pub fn say(words: &str) -> Self {
        Self::empty().and_say(words)
    }

    /// A call only.
    pub fn call(tool: &str, arguments: Value) -> Self {
        Self::empty().and_call(tool, arguments)
    }

    /// Words after what is there.
    #[must_use]
    pub fn and_say(mut self, words: &str) -> Self {
        self.parts.push(Part::Text(Text::new(words, Origin::Model)));
        self
    }

    /// A call after what is there.
    #[must_use]
    pub fn and_call(mut self, tool: &str, arguments: Value) -> Self {
        self.parts
            .push(Part::ToolCall(ToolCall::new(tool, arguments)));
        self
    }

    /// These errors first, one an attempt.
    #[must_use]
    pub fn after(mut self, errors: impl IntoIterator<Item = ModelError>) -> Self {
        self.errors.extend(errors);
        self
    }

    /// The provider forgets to say what it cost.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// The provider says that it cost this.
    #[must_use]
    pub fn using(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// It ends at the output limit.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// It never comes.
    #[must_use]
    pub fn hanging(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// The provider says nothing until the attempt is given up.
    #[must_use]
    pub fn silent(self) -> Self {
        self.silent_for(MAX_SILENCE)
    }

    /// The provider says nothing for so long, and then the attempt fails.
    #[must_use]
    pub fn silent_for(mut self, time: Duration) -> Self {
        self.silent = Some(time);
        self
    }

    fn reply(self, ids: &str) -> Reply {
        let mut parts = self.parts;
        let calls = parts.iter_mut().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        });
        let mut called = false;
        for (number, call) in calls.enumerate() {
            called = true;
            if call.id.is_empty() {
                call.id = format!("{ids}-{number}");
            }
        }
        let stop = match (self.cut, called) {
            (true, _) => StopReason::MaxTokens,
            (false, true) => StopReason::ToolCalls,
            (false, false) => StopReason::EndOfTurn,
        };
        Reply {
            parts,
            stop,
            usage: self.usage,
            model: "scripted".to_owned(),
        }
    }
}

/// A rate limit that may be tried again at once.
pub fn too_fast() -> ModelError {
    ModelError::RateLimited {
        after_ms: Some(0),
        message: "slow down".to_owned(),
    }
}

/// Answers one prompt.
type Rule = Arc<dyn Fn(&Prompt) -> Turn + Send + Sync>;

/// Replies of a model, by goal, purpose and ordinal. The last turn of a part is repeated for ever.
#[derive(Clone, Default)]
pub struct Script {
    parts: Vec<(String, Purpose, Vec<Turn>)>,
    rule: Option<Rule>,
}

impl Script {
    /// A script of the agent's own turns.
    pub fn agent(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::default().and(Purpose::Agent, turns)
    }

    /// A model that is a function of its prompt.
    pub fn rule(rule: impl Fn(&Prompt) -> Turn + Send + Sync + 'static) -> Self {
        Self {
            parts: Vec::new(),
            rule: Some(Arc::new(rule)),
        }
    }

    /// Also these turns for another purpose.
    #[must_use]
    pub fn and(self, purpose: Purpose, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.for_goal("", purpose, turns)
    }

    /// Also these turns for runs whose goal contains `words`. Name them before the others.
    #[must_use]
    pub fn for_goal(
        mut self,
        words: &str,
        purpose: Purpose,
        turns: impl IntoIterator<Item = Turn>,
    ) -> Self {
        self.parts
            .push((words.to_owned(), purpose, turns.into_iter().collect()));
        self
    }

    /// Whether the prompt is one of the [workflow](crate::workflow)'s child.
    pub fn is_for_child(prompt: &Prompt) -> bool {
        goal(prompt).contains(CHILD_GOAL)
    }

    fn turn(&self, prompt: &Prompt) -> Turn {
        if let Some(rule) = &self.rule {
            return rule(prompt);
        }
        if let Some(turn) = detour(prompt) {
            return turn;
        }
        let goal = goal(prompt);
        let part = self
            .parts
            .iter()
            .find(|(words, purpose, _)| *purpose == prompt.purpose && goal.contains(words));
        let (_, _, turns) =
            part.unwrap_or_else(|| panic!("no script for {:?} and: {goal}", prompt.purpose));
        let place = usize::try_from(prompt.ordinal).expect("tests are short") - detours(prompt);
        turns
            .get(place)
            .or(turns.last())
            .expect("a part has a turn")
            .clone()
    }
}

/// The first message, which names the goal.
fn goal(prompt: &Prompt) -> String {
    prompt
        .messages
        .first()
        .map(|message| message.text())
        .unwrap_or_default()
}

/// A look after an interrupted line, and the line again if the look does not show it.
fn detour(prompt: &Prompt) -> Option<Turn> {
    let call_of = |id: &str| {
        let calls = prompt.messages.iter().flat_map(|message| calls(message));
        calls.into_iter().find(|call| call.id == id)
    };
    // What is still to be done about each interrupted line, in order.
    let mut open: Vec<(String, Turn)> = Vec::new();
    for result in prompt.messages.iter().flat_map(|message| results(message)) {
        if let Some(words) = result.call_id.strip_prefix("detour-look:") {
            open.retain(|(line, _)| line != words);
            if !result.text.text.lines().any(|shown| shown == words) {
                open.push((
                    words.to_owned(),
                    called("detour-append", words, APPEND, line(words)),
                ));
            }
            continue;
        }
        let Some(call) = call_of(&result.call_id) else {
            continue;
        };
        let careful = [APPEND, HOLD].contains(&call.tool.as_str());
        let Some(words) = call.arguments["line"].as_str().filter(|_| careful) else {
            continue;
        };
        open.retain(|(line, _)| line != words);
        if result.is_error && result.text.text.contains("interrupted") {
            open.push((
                words.to_owned(),
                called("detour-look", words, LOOK, json!({})),
            ));
        }
    }
    open.into_iter().next().map(|(_, turn)| turn)
}

fn called(detour: &str, words: &str, tool: &str, arguments: Value) -> Turn {
    let id = format!("{detour}:{words}");
    let call = ToolCall {
        id,
        tool: tool.to_owned(),
        arguments,
        repairs: Vec::new(),
    };
    Turn {
        parts: vec![Part::ToolCall(call)],
        ..Turn::empty()
    }
}

fn detours(prompt: &Prompt) -> usize {
    let made = |message: &Arc<Message>| calls(message).any(|call| call.id.starts_with(DETOUR));
    prompt
        .messages
        .iter()
        .filter(|message| made(message))
        .count()
}

fn calls(message: &Message) -> impl Iterator<Item = &ToolCall> {
    message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    })
}

fn results(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// A model that plays a [`Script`].
pub struct Scripted {
    script: Script,
    price: Option<Price>,
    window: Option<u64>,
    heard: Mutex<Vec<Prompt>>,
    /// Number of errors given so far, by goal, purpose and ordinal.
    failed: Mutex<BTreeMap<(String, Purpose, u64), usize>>,
    hanging: watch::Sender<u32>,
}

impl Scripted {
    /// A model with this script, price and window.
    pub fn new(script: Script, price: Option<Price>, window: Option<u64>) -> Self {
        Self {
            script,
            price,
            window,
            heard: Mutex::default(),
            failed: Mutex::default(),
            hanging: watch::Sender::new(0),
        }
    }

    /// Every prompt that reached it, oldest first.
    pub fn heard(&self) -> Vec<Prompt> {
        lock(&self.heard).clone()
    }

    /// Waits until it is asked for a reply that never comes.
    pub async fn hanging(&self) {
        let mut hanging = self.hanging.subscribe();
        hanging
            .wait_for(|asked| *asked > 0)
            .await
            .expect("the model holds the sender");
    }

    fn next_error(&self, prompt: &Prompt, turn: &Turn) -> Option<ModelError> {
        let goal = goal(prompt);
        let mut failed = lock(&self.failed);
        let given = failed
            .entry((goal, prompt.purpose, prompt.ordinal))
            .or_default();
        let error = turn.errors.get(*given).cloned();
        *given += 1;
        error
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "script/conformance"
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            check(prompt);
            lock(&self.heard).push(prompt.clone());
            let turn = self.script.turn(prompt);
            if let Some(error) = self.next_error(prompt, &turn) {
                return Err(error);
            }
            if let Some(time) = turn.silent {
                tokio::time::sleep(time).await;
                return Err(ModelError::Network {
                    message: "the provider was silent".to_owned(),
                });
            }
            if turn.hangs {
                self.hanging.send_modify(|asked| *asked += 1);
                return std::future::pending().await;
            }
            Ok(turn.reply(&format!("{:?}-{}", prompt.purpose, prompt.ordinal)))
        })
    }
}

/// Checks what providers insist on: the person speaks last, and every call has its result at once.
fn check(prompt: &Prompt) {
    let last = prompt.messages.last().expect("a prompt has a message");
    assert_eq!(
        last.role,
        Role::User,
        "the last message is the model's own: {last:?}"
    );
    let mut open: Vec<&str> = Vec::new();
    for message in &prompt.messages {
        for result in results(message) {
            let known = open.iter().position(|id| *id == result.call_id);
            let known = known.unwrap_or_else(|| panic!("a result without its call: {result:?}"));
            open.remove(known);
        }
        assert!(
            open.is_empty(),
            "calls without results: {open:?} before {message:?}"
        );
        open.extend(calls(message).map(|call| call.id.as_str()));
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}
