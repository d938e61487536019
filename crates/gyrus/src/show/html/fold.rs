//! Entries of a run put together to steps, one at a time, so that a page takes no more memory for
//! a million steps than for the largest of them.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, Message, MessageBody, Origin, Part};
use gyrus_journal::Reader;
use gyrus_kernel::{Appended, Entry, Inline, ReadValue, ScreenViewed, Stop, ToolResulted, summary};

use super::{
    content,
    moment::date_and_time,
    picture::Pictures,
    step::{
        Answered, Approval, Attempt, Call, Child, Fate, Item, Life, Outcome, Raw, Step, Wait, What,
    },
    words::{Words, brief, briefs},
};

/// What entries come to.
#[derive(Debug)]
pub(super) enum Piece {
    /// A step.
    Step(Step),
    /// Something between two steps.
    Between(Item),
}

/// Puts entries together.
pub(super) struct Fold<'a> {
    reader: &'a Reader,
    step: Option<Step>,
    /// Where the items of the open step are, by effect.
    places: BTreeMap<EffectId, usize>,
    entries: Vec<Raw>,
}

fn value_in_words(value: ReadValue) -> String {
    match value {
        ReadValue::Clock { at_ms } => format!("read the clock: {}", date_and_time(at_ms)),
        ReadValue::Random { number } => format!("drew a random number: {number}"),
    }
}

impl<'a> Fold<'a> {
    /// For the entries of the run that `reader` reads.
    pub(super) fn new(reader: &'a Reader) -> Self {
        Self {
            reader,
            step: None,
            places: BTreeMap::new(),
            entries: Vec::new(),
        }
    }

    /// Takes in the next entry; the pieces that are complete now.
    pub(super) fn take(
        &mut self,
        entry: &gyrus_journal::Entry,
        pictures: &mut Pictures,
    ) -> Vec<Piece> {
        let at_ms = entry.at_ms;
        let parsed = gyrus_kernel::parse(entry);
        let mut pieces = Vec::new();
        let cycle = match &parsed {
            Ok(Entry::CycleEnded(ended)) => Some(ended.cycle),
            Ok(Entry::CycleDropped(dropped)) => Some(dropped.cycle),
            Ok(entry) => entry.effect().map(EffectId::cycle_number),
            Err(_) => None,
        };
        if let Some(number) = cycle {
            if self.step.as_ref().is_some_and(|step| step.number != number) {
                pieces.extend(self.finish());
            }
            let open = self.step.get_or_insert_with(|| Step {
                number,
                began_ms: at_ms,
                ended_ms: at_ms,
                fate: Fate::Open,
                items: Vec::new(),
                entries: Vec::new(),
            });
            open.ended_ms = at_ms;
        }
        self.entries.push(content::raw(entry));
        match parsed {
            Ok(entry) => self.follow(at_ms, entry, pictures, &mut pieces),
            Err(error) => self.life(
                at_ms,
                What::Unreadable(brief(&error.to_string())),
                &mut pieces,
            ),
        }
        pieces
    }

    /// The step that is open, as far as it came.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        self.places.clear();
        let mut step = self.step.take()?;
        step.entries = std::mem::take(&mut self.entries);
        content::drop_repeated_words(&mut step.items);
        Some(Piece::Step(step))
    }

    /// Entries that belong to no step: those after the last one.
    pub(super) fn rest(self) -> Vec<Raw> {
        self.entries
    }

    fn follow(
        &mut self,
        at_ms: i64,
        entry: Entry,
        pictures: &mut Pictures,
        pieces: &mut Vec<Piece>,
    ) {
        match entry {
            Entry::RunStarted(_) => {}
            Entry::RunResumed(_)
            | Entry::RunHandedOver(_)
            | Entry::RunParked(_)
            | Entry::RunEnded(_)
            | Entry::BudgetWarning(_)
            | Entry::TakeoverStarted(_)
            | Entry::TakeoverEnded(_) => {
                if let Some(life) = life(entry) {
                    self.life(at_ms, What::Life(life), pieces);
                }
            }
            Entry::CycleEnded(ended) => {
                self.told(at_ms, &ended.appended);
                self.end(Fate::Done, pieces);
            }
            Entry::CycleDropped(dropped) => {
                self.end(Fate::GivenUp(Words::of(&dropped.why)), pieces);
            }
            Entry::ModelCall(asked) => {
                self.told(at_ms, &asked.appended);
                let attempt = Attempt {
                    number: asked.attempt,
                    model: brief(&asked.model),
                    why: brief(&asked.why),
                    purpose: asked.purpose,
                    messages: asked.to.saturating_sub(asked.from),
                    reserved: asked.reserved,
                    came: None,
                };
                match self.find(&asked.effect) {
                    Some(What::Asked(attempts)) => attempts.push(attempt),
                    _ => self.add(at_ms, Some(asked.effect), What::Asked(vec![attempt])),
                }
            }
            Entry::ModelReply(reply) => {
                let (number, came) = (reply.attempt, content::reply(&reply, self.reader));
                if let Some(What::Asked(attempts)) = self.find(&reply.effect) {
                    let last = attempts.iter_mut().rfind(|one| one.number == number);
                    if let Some(attempt) = last {
                        attempt.came = Some(came);
                    }
                }
            }
            Entry::ToolCalled(_)
            | Entry::GateVerdict(_)
            | Entry::ApprovalAsked(_)
            | Entry::ApprovalAnswered(_)
            | Entry::ToolStarted(_)
            | Entry::ToolResulted(_) => self.follow_call(at_ms, entry, pictures),
            Entry::ScreenViewed(viewed) => self.looked(at_ms, viewed, pictures),
            Entry::Steered(_)
            | Entry::Noted { .. }
            | Entry::ValueTaken(_)
            | Entry::WaitStarted(_)
            | Entry::WaitEnded(_)
            | Entry::BranchesStarted(_)
            | Entry::RaceWon(_)
            | Entry::ChildStarted(_)
            | Entry::ChildEnded(_) => self.follow_other(at_ms, entry),
        }
    }

    /// What concerns a tool call.
    fn follow_call(&mut self, at_ms: i64, entry: Entry, pictures: &mut Pictures) {
        match entry {
            Entry::ToolCalled(called) => {
                let call = Call {
                    arguments: content::arguments(&called.call.arguments),
                    tool: brief(&called.call.tool),
                    gate: None,
                    approvals: Vec::new(),
                    started: 0,
                    outcome: None,
                };
                self.add(at_ms, Some(called.effect), What::Called(Box::new(call)));
            }
            Entry::GateVerdict(judged) => {
                if let Some(What::Called(call)) = self.find(&judged.effect) {
                    call.gate = Some(content::judged(&judged));
                }
            }
            Entry::ApprovalAsked(asked) => {
                let approval = Approval {
                    asked_ms: at_ms,
                    is_question: asked.card.question,
                    sentence: Words::of(&asked.card.sentence),
                    reasons: briefs(asked.card.reasons.iter().map(String::as_str)),
                    details: content::details(&asked.card),
                    answer: None,
                };
                match self.find(&asked.effect) {
                    Some(What::Called(call)) => call.approvals.push(approval),
                    Some(What::Question(approvals)) => approvals.push(approval),
                    _ => self.add(at_ms, Some(asked.effect), What::Question(vec![approval])),
                }
            }
            Entry::ApprovalAnswered(answered) => {
                let answer = Answered {
                    at_ms,
                    approved: answered.approved,
                    by: answered.by,
                    words: Words::of(&answered.reason.unwrap_or_default()),
                };
                let approvals = match self.find(&answered.effect) {
                    Some(What::Called(call)) => &mut call.approvals,
                    Some(What::Question(approvals)) => approvals,
                    _ => return,
                };
                if let Some(approval) = approvals.last_mut() {
                    approval.answer = Some(answer);
                }
            }
            Entry::ToolStarted(started) => {
                if let Some(What::Called(call)) = self.find(&started.effect) {
                    call.started = started.attempt;
                }
            }
            Entry::ToolResulted(result) => {
                let outcome = self.outcome(&result, pictures);
                if let Some(What::Called(call)) = self.find(&result.effect) {
                    call.outcome = Some(outcome);
                }
            }
            _ => {}
        }
    }

    /// The remaining effects.
    fn follow_other(&mut self, at_ms: i64, entry: Entry) {
        match entry {
            Entry::Steered(steered) => {
                let said = steered
                    .messages
                    .into_iter()
                    .filter_map(|message| match message.body {
                        MessageBody::Steer { text } => Some((message.from, Words::of(&text))),
                        _ => None,
                    });
                self.add(at_ms, Some(steered.effect), What::Steered(said.collect()));
            }
            Entry::Noted { kind, fact, .. } => {
                self.add(at_ms, Some(fact.effect), content::noted(kind, &fact.fact));
            }
            Entry::ValueTaken(taken) => {
                let noted = What::Noted {
                    kind: "value".to_owned(),
                    words: Words::of(&value_in_words(taken.value)),
                    is_json: false,
                };
                self.add(at_ms, Some(taken.effect), noted);
            }
            Entry::WaitStarted(wait) => {
                let waited = What::Waited(Wait {
                    until_ms: wait.until_ms,
                    signal: wait.signal.as_deref().map(brief),
                    ended: None,
                });
                self.add(at_ms, Some(wait.effect), waited);
            }
            Entry::WaitEnded(wait) => {
                if let Some(What::Waited(open)) = self.find(&wait.effect) {
                    open.ended = Some(wait.payload.map(|payload| Words::of(&payload.text)));
                }
            }
            Entry::BranchesStarted(started) => {
                let branches = What::Branches {
                    form: started.form,
                    branches: started.branches,
                    won: None,
                };
                self.add(at_ms, Some(started.effect), branches);
            }
            Entry::RaceWon(race) => {
                if let Some(What::Branches { won, .. }) = self.find(&race.effect) {
                    *won = Some(race.winner);
                }
            }
            Entry::ChildStarted(child) => {
                let started = What::Child(Child {
                    run: child.child,
                    goal: Words::of(&child.goal),
                    limits: child.limits,
                    ended: None,
                });
                self.add(at_ms, Some(child.effect), started);
            }
            Entry::ChildEnded(ended) => {
                if let Some(What::Child(child)) = self.find(&ended.effect) {
                    child.ended = Some((brief(&summary(&ended.ending)), ended.spent));
                }
            }
            _ => {}
        }
    }

    fn looked(&mut self, at_ms: i64, viewed: ScreenViewed, pictures: &mut Pictures) {
        let read = viewed
            .view
            .read(|id| self.reader.blob(id).map_err(Stop::from));
        let words = match read {
            Ok(text) => super::super::line::of_view(&text).unwrap_or(text),
            Err(error) => format!("(it cannot be shown: {error})"),
        };
        let picture = viewed.frame.as_ref().map(|frame| {
            let caption = format!("{} × {}", frame.width, frame.height);
            (pictures.take(frame, self.reader), caption)
        });
        let words = Words::of(&words);
        self.add(at_ms, Some(viewed.effect), What::Looked { words, picture });
    }

    fn outcome(&self, result: &ToolResulted, pictures: &mut Pictures) -> Outcome {
        let pictures = result.images.iter().map(|image| {
            let caption = format!("{} × {}", image.width, image.height);
            (pictures.take(image, self.reader), caption)
        });
        Outcome {
            settled: result.settled,
            is_error: result.is_error,
            verdict: result.verdict,
            words: text(&result.text, self.reader),
            pictures: pictures.collect(),
            artifacts: briefs(result.artifacts.iter().map(|file| file.path.as_str())),
            took_ms: result.took_ms,
        }
    }

    /// What gyrus itself told the model. Such words are short: what stands in a blob is something
    /// that the page shows already, where it came from.
    fn told(&mut self, at_ms: i64, appended: &Appended) {
        for item in &appended.items {
            if let Inline::Is(item) = item {
                for words in own_words(&item.message) {
                    self.add(at_ms, None, What::Told(Words::of(words)));
                }
            }
        }
    }

    fn life(&mut self, at_ms: i64, what: What, pieces: &mut Vec<Piece>) {
        let item = Item {
            at_ms,
            effect: None,
            what,
        };
        match &mut self.step {
            Some(step) => step.items.push(item),
            None => pieces.push(Piece::Between(item)),
        }
    }

    fn end(&mut self, fate: Fate, pieces: &mut Vec<Piece>) {
        if let Some(step) = &mut self.step {
            step.fate = fate;
        }
        pieces.extend(self.finish());
    }

    fn add(&mut self, at_ms: i64, effect: Option<EffectId>, what: What) {
        let Some(step) = &mut self.step else {
            return;
        };
        if let Some(effect) = &effect {
            self.places.insert(effect.clone(), step.items.len());
        }
        step.items.push(Item {
            at_ms,
            effect,
            what,
        });
    }

    fn find(&mut self, effect: &EffectId) -> Option<&mut What> {
        let place = *self.places.get(effect)?;
        let item = self.step.as_mut()?.items.get_mut(place)?;
        Some(&mut item.what)
    }
}

/// A text, wherever it is, or why it cannot be shown.
fn text(value: &Inline<String>, reader: &Reader) -> Words {
    let read = value.read(|id| reader.blob(id).map_err(Stop::from));
    Words::of(&read.unwrap_or_else(|error| format!("(it cannot be shown: {error})")))
}

fn life(entry: Entry) -> Option<Life> {
    match entry {
        Entry::RunResumed(resumed) => Some(Life::Resumed {
            pid: resumed.process.pid,
            set_aside_bytes: resumed.set_aside_bytes,
        }),
        Entry::RunHandedOver(handed) => Some(Life::HandedOver {
            reason: Words::of(&handed.reason),
            done: handed.done.len(),
        }),
        Entry::RunParked(parked) => Some(Life::Parked(brief(&summary(&parked.ending)))),
        Entry::RunEnded(ended) => Some(Life::Ended(brief(&summary(&ended.ending)))),
        Entry::BudgetWarning(warning) => Some(Life::Warned(brief(&warning.what))),
        Entry::TakeoverStarted(takeover) => Some(Life::TakenOver(brief(&takeover.by.id))),
        Entry::TakeoverEnded(takeover) => Some(Life::GivenBack {
            by: brief(&takeover.by.id),
            took_ms: takeover.took_ms,
            words: takeover.words.as_deref().map(Words::of),
        }),
        _ => None,
    }
}

/// The texts of a message that gyrus itself wrote.
fn own_words(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text(text) if text.origin == Origin::Kernel => Some(text.text.as_str()),
        _ => None,
    })
}
