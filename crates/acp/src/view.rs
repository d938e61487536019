//! The entries of runs as updates of the protocol. It renders the projection of the entries, as
//! every surface does, and adds no fact.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use base64::Engine as _;
use gyrus_contract::{Claim, EffectId, FINISH, Image, Microdollars, RunId};
use gyrus_journal::LogReader;
use gyrus_kernel::{AttemptResult, Entry, GateVerdict, ModelReply, approvals::OpenQuestion};
use gyrus_surfaces::{
    console::card,
    projection::{
        self, Happening, HappeningPart, HappeningSubject, Projection, Prominence, TextForm,
    },
    shown_plan::{ShownPlan, StepProgress},
    speech::{LiveSpeech, Speech, SpokenKind},
    watching::ReplyPiece,
};
use gyrus_text::{clip, head_and_tail, one_line};
use serde_json::{Value, json};

use crate::diffs;

/// Maximum size of the text of one result, in bytes; the journal has the rest.
const TEXT: usize = 32 << 10;

/// Maximum size of arguments that are shown as data, in bytes.
const ARGUMENTS: usize = 16 << 10;

/// Maximum size of a picture, in bytes.
const PICTURE: usize = 1 << 20;

/// Columns of a title.
const TITLE: usize = 100;

/// Cost of a dollar in microdollars.
const DOLLAR: f64 = 1e6;

/// Kinds of calls in the protocol, each with its tools; those of other tools are `other`.
const KINDS: [(&str, &[&str]); 5] = [
    ("read", &["read", "list", "recall", "read_journal"]),
    (
        "search",
        &["glob", "search", "search_docs", "web_search", "rank_files"],
    ),
    (
        "edit",
        &["edit", "write", "propose_changeset", "apply_changeset"],
    ),
    ("execute", &["shell", "run_as_user"]),
    ("fetch", &["fetch"]),
];

/// The kind of the fact that is shown as a plan.
const PLAN: &str = "task.plan";

/// Arguments that say most about a call, the best first.
const TELLING: [&str; 8] = [
    "command", "path", "pattern", "url", "query", "question", "program", "goal",
];

/// Returns the plan as the protocol has plans: always the whole of it.
fn plan_update(plan: &ShownPlan) -> Value {
    let steps = plan.steps().iter().map(|step| {
        let (failed, status) = match step.progress {
            StepProgress::Open => ("", "pending"),
            StepProgress::Done => ("", "completed"),
            // What becomes of it is said.
            StepProgress::Failed => (" (failed)", "pending"),
        };
        let words = format!("{}{failed}", step.words);
        json!({"content": words, "priority": "medium", "status": status})
    });
    json!({"sessionUpdate": "plan", "entries": steps.collect::<Vec<_>>()})
}

/// The kind of the last update, since two texts of one kind would run into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastUpdate {
    Words,
    Thought,
    Other,
}

/// The updates of one session, made while its runs are followed or read again.
pub(crate) struct SessionView {
    folder: PathBuf,
    projections: BTreeMap<RunId, Projection>,
    speech: Speech,
    plan: ShownPlan,
    /// Whether goals are shown: those of a turn come from the client.
    shows_goals: bool,
    sent: LastUpdate,
    /// The words of the latest reply.
    words: String,
    /// Ids of calls that are not shown.
    hidden: BTreeSet<String>,
    window: Option<u64>,
    cost: Microdollars,
}

impl SessionView {
    /// Creates the view of a turn in a folder, after runs of the same session that cost so much.
    pub(crate) fn of_turn(folder: PathBuf, cost: Microdollars) -> Self {
        Self {
            folder,
            projections: BTreeMap::new(),
            speech: Speech::default(),
            plan: ShownPlan::default(),
            shows_goals: false,
            sent: LastUpdate::Other,
            words: String::new(),
            hidden: BTreeSet::new(),
            window: None,
            cost,
        }
    }

    /// Creates the view of runs that are read again.
    pub(crate) fn of_past(folder: PathBuf) -> Self {
        Self {
            shows_goals: true,
            ..Self::of_turn(folder, Microdollars::default())
        }
    }

    pub(crate) fn entry(
        &mut self,
        run: RunId,
        entry: &gyrus_journal::LogEntry,
        reader: &LogReader,
    ) -> Vec<Value> {
        let projection = self.projections.entry(run).or_default();
        let mut happenings = projection.take(entry, reader);
        if entry.kind == PLAN {
            // It is shown as a plan.
            happenings.clear();
        }
        let mut updates = Vec::new();
        for happening in &happenings {
            self.happened(run, happening, reader, &mut updates);
        }
        match gyrus_kernel::parse(entry) {
            Ok(Entry::GateVerdict(judged)) => updates.extend(locations(run, &judged)),
            Ok(Entry::ModelCall(call)) => self.window = call.window.or(self.window),
            Ok(Entry::ModelReply(reply)) => updates.extend(self.usage(&reply, reader)),
            Ok(Entry::Noted { kind, fact, .. }) => {
                if self.plan.noted(&kind, &fact.fact) {
                    updates.push(plan_update(&self.plan));
                }
            }
            // The projection says all that there is to say of the others.
            Ok(_) | Err(_) => {}
        }
        updates
    }

    fn happened(
        &mut self,
        run: RunId,
        happening: &Happening,
        reader: &LogReader,
        updates: &mut Vec<Value>,
    ) {
        let id = happening.effect.as_ref().map(|effect| call_id(run, effect));
        match (happening.subject, id) {
            (HappeningSubject::Goal, _) => {
                if self.shows_goals {
                    let goal = happening.headline.strip_prefix("goal: ");
                    let goal = goal.unwrap_or(&happening.headline);
                    updates.push(self.chunk("user_message_chunk", goal, LastUpdate::Other));
                }
            }
            (HappeningSubject::Request, _) => {
                self.words.clear();
                for spoken in self.speech.was_asked(run) {
                    updates.push(self.spoken(&spoken));
                }
            }
            (HappeningSubject::Thought, _) => {
                let text = sentences(happening);
                if !self.speech.was_shown(run, HappeningSubject::Thought) && !text.is_empty() {
                    self.words.push_str(&text);
                    updates.push(self.begin("agent_message_chunk", &text, LastUpdate::Words));
                }
            }
            (HappeningSubject::Reflection, _) => {
                let text = sentences(happening);
                if !self.speech.was_shown(run, HappeningSubject::Reflection) && !text.is_empty() {
                    updates.push(self.begin("agent_thought_chunk", &text, LastUpdate::Thought));
                }
            }
            (HappeningSubject::Call, Some(id)) if happening.headline == FINISH => {
                self.hidden.insert(id);
            }
            (HappeningSubject::Call, Some(id)) => {
                self.sent = LastUpdate::Other;
                updates.push(called(&id, happening));
            }
            (HappeningSubject::Started, Some(id)) if !self.hidden.contains(&id) => {
                updates.push(changed(&id, json!({"status": "in_progress"})));
            }
            (HappeningSubject::Result { failed }, Some(id)) => {
                updates.extend(self.resulted(&id, failed, happening, reader));
            }
            // The ending of the turn says it.
            (HappeningSubject::Parked { .. } | HappeningSubject::Ended, _) => {}
            (_, _) if happening.weight == Prominence::Main => {
                let text = remark(happening);
                if !text.is_empty() {
                    updates.push(self.begin("agent_thought_chunk", &text, LastUpdate::Thought));
                }
            }
            (_, _) => {}
        }
    }

    /// Returns the end of a call, if it is shown.
    fn resulted(
        &mut self,
        id: &str,
        failed: bool,
        happening: &Happening,
        reader: &LogReader,
    ) -> Option<Value> {
        if self.hidden.remove(id) {
            return None;
        }
        let mut content = Vec::new();
        for part in &happening.parts {
            match part {
                HappeningPart::Text(TextForm::Diff, patch) => {
                    let diffs = diffs::of_patch(patch, &self.folder);
                    if diffs.is_empty() {
                        content.push(text_content(patch));
                    }
                    content.extend(diffs);
                }
                HappeningPart::Text(_, text) => content.push(text_content(text)),
                HappeningPart::Picture(image) => content.extend(picture(image, reader)),
                HappeningPart::Badge(_, words) if failed => content.push(text_content(words)),
                HappeningPart::Badge(..)
                | HappeningPart::Arguments(_)
                | HappeningPart::Card(_)
                | HappeningPart::Files(_)
                | HappeningPart::Run(_) => {}
            }
        }
        let status = if failed { "failed" } else { "completed" };
        Some(changed(id, json!({"status": status, "content": content})))
    }

    /// Returns the use of the model's window after a reply, and what the session has cost.
    fn usage(&mut self, reply: &ModelReply, reader: &LogReader) -> Option<Value> {
        self.cost = self.cost + reply.charged.cost;
        let AttemptResult::Reply { reply } = &reply.came else {
            return None;
        };
        let usage = projection::stored(reply, reader).ok()?.usage?;
        let mut update = json!({
            "sessionUpdate": "usage_update",
            "used": usage.input_tokens + usage.output_tokens,
            "size": self.window?,
        });
        if self.cost.0 > 0 {
            // Costs are far below 2^53.
            let amount = self.cost.0 as f64 / DOLLAR;
            update["cost"] = json!({"amount": amount, "currency": "USD"});
        }
        Some(update)
    }

    /// Returns the update for a piece of a reply that arrives.
    pub(crate) fn piece(&mut self, piece: &ReplyPiece) -> Option<Value> {
        let spoken = self.speech.take(piece)?;
        Some(self.spoken(&spoken))
    }

    fn spoken(&mut self, spoken: &LiveSpeech) -> Value {
        let (kind, sent) = match spoken.kind {
            SpokenKind::Words => {
                self.words.push_str(&spoken.text);
                ("agent_message_chunk", LastUpdate::Words)
            }
            SpokenKind::Thinking => ("agent_thought_chunk", LastUpdate::Thought),
        };
        if spoken.begins {
            self.begin(kind, &spoken.text, sent)
        } else {
            self.chunk(kind, &spoken.text, sent)
        }
    }

    /// Returns the answer of a run that reached its goal, unless shown as the model's last words.
    pub(crate) fn answer(&mut self, claim: &Claim) -> Option<Value> {
        let answer = claim.answer.trim();
        if answer.is_empty() || self.words.trim() == answer {
            return None;
        }
        Some(self.say(answer))
    }

    pub(crate) fn say(&mut self, text: &str) -> Value {
        self.begin("agent_message_chunk", text, LastUpdate::Words)
    }

    pub(crate) fn remark(&mut self, text: &str) -> Value {
        self.begin("agent_thought_chunk", text, LastUpdate::Thought)
    }

    /// Returns the call of a question: its id, and fields that show the whole card.
    pub(crate) fn asked(&mut self, open: &OpenQuestion) -> Value {
        self.sent = LastUpdate::Other;
        let mut content = vec![json!({
            "type": "content",
            "content": {"type": "text", "text": card::plain_text(open)},
        })];
        for detail in &open.card.details {
            content.extend(diffs::of_patch(&detail.text, &self.folder));
        }
        json!({
            "toolCallId": call_id(open.run, &open.id.effect),
            "title": clip(&one_line(&open.card.sentence), TITLE),
            "status": "pending",
            "content": content,
        })
    }

    /// Returns an update with a text, set apart from a previous text of the same kind.
    fn begin(&mut self, kind: &str, text: &str, sent: LastUpdate) -> Value {
        if self.sent == sent {
            let text = format!("\n\n{text}");
            self.chunk(kind, &text, sent)
        } else {
            self.chunk(kind, text, sent)
        }
    }

    fn chunk(&mut self, kind: &str, text: &str, sent: LastUpdate) -> Value {
        self.sent = sent;
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
    }
}

pub(crate) fn call_id(run: RunId, effect: &EffectId) -> String {
    format!("{}.{effect}", run.short())
}

pub(crate) fn changed(id: &str, fields: Value) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
    if let (Some(update), Value::Object(fields)) = (update.as_object_mut(), fields) {
        update.extend(fields);
    }
    update
}

fn called(id: &str, happening: &Happening) -> Value {
    let tool = &happening.headline;
    let arguments = happening.parts.iter().find_map(|part| match part {
        HappeningPart::Arguments(arguments) => Some(arguments),
        _ => None,
    });
    let arguments = arguments.cloned().unwrap_or(Value::Null);
    let telling = TELLING.iter().find_map(|name| arguments[name].as_str());
    let title = match telling {
        Some(telling) => clip(&one_line(&format!("{tool} {telling}")), TITLE),
        None => clip(&one_line(tool), TITLE),
    };
    let kind = KINDS
        .iter()
        .find(|(_, tools)| tools.contains(&tool.as_str()));
    let mut update = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": title,
        "kind": kind.map_or("other", |(kind, _)| kind),
        "status": "pending",
    });
    if arguments.to_string().len() <= ARGUMENTS {
        update["rawInput"] = arguments;
    }
    update
}

fn locations(run: RunId, judged: &GateVerdict) -> Option<Value> {
    let places: Vec<Value> = judged
        .paths
        .values()
        .map(|path| json!({"path": path.real}))
        .collect();
    let id = call_id(run, &judged.effect);
    (!places.is_empty()).then(|| changed(&id, json!({"locations": places})))
}

fn text_content(text: &str) -> Value {
    let text = text.trim_end();
    let text = match head_and_tail(text, TEXT / 2, TEXT / 2) {
        None => text.to_owned(),
        Some((head, omitted, tail)) => {
            format!("{head}\n[… {omitted} bytes are left out …]\n{tail}")
        }
    };
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn picture(image: &Image, reader: &LogReader) -> Option<Value> {
    let bytes = reader.blob(&image.blob).ok()?;
    if bytes.len() > PICTURE {
        return None;
    }
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    let image = json!({"type": "image", "data": data, "mimeType": image.media_type});
    Some(json!({"type": "content", "content": image}))
}

/// Returns the sentences of an event, without remarks.
fn sentences(happening: &Happening) -> String {
    happening
        .text(TextForm::Prose)
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

fn remark(happening: &Happening) -> String {
    let mut parts = vec![happening.headline.clone()];
    for part in &happening.parts {
        if let HappeningPart::Text(TextForm::Prose | TextForm::Aside | TextForm::Wrong, text) = part
        {
            parts.push(text.trim_end().to_owned());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}
