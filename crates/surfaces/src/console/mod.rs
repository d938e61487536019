//! The console: a run's durable entries on standard error, and a person's answers to its cards.
//!
//! It has no private view of the run: it reads entries, and an answer typed here is a message in
//! the inbox like one from any other surface. So a card that is answered elsewhere meanwhile is
//! simply over.

mod answers;
mod bottom;
pub mod card;
mod choice;
mod debug_log;
mod history;
mod input;
mod line;
mod line_editor;
mod code_colours;
mod markdown;
mod paint;
mod plan_list;
mod status;
mod title;
mod input_area;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{self, Write},
};

use gyrus_contract::{
    Answer, EffectId, FINISH, MessageBody, OnAsk, Principal, RunId, Spent, time_ordered_uuid,
};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{
    ApprovalCard, Entry, LivePiece,
    approvals::{self, ApprovalError, OpenQuestion, VoidAnswer},
};

pub(crate) use self::paint::STYLES;
pub use self::{
    answers::{choices, understand, wants_to_edit},
    bottom::{clear_status, put, put_status},
    choice::choose,
    debug_log::keep_log,
    input_area::LineQueue,
    line::ConsoleLine,
    line_editor::{LineCandidate, LineCandidates, LineEditor, LineView, LineWish, plain_line},
    paint::{Painter, Theme, set_theme},
    title::{begin_titles, end_titles, set_title},
};
use self::{
    answers::{is_alike, understand_all},
    bottom::{has_open_row, put_below, put_more},
    input_area::{InputArea, PersonLine},
    markdown::Markdown,
    status::StatusRow,
};
use gyrus_text::{clip, one_line, span};

use crate::{
    error::SurfaceError,
    keys::Key,
    live_replies::ReplyPiece,
    output,
    projection::{
        Happening, HappeningPart, HappeningSubject, Projection, Prominence, TextForm, Tone,
        is_patch,
    },
    shown_plan::ShownPlan,
    shown_processes::ShownProcesses,
    speech::{LiveSpeech, Speech, SpokenKind},
    terminal,
};

/// Most cards of a kind that are shown again when one joins them.
const MOST_JOINED: usize = 3;

/// Maximum number of shown lines of thinking in one reply.
const THINKING_LINES: usize = 12;

struct Row {
    run: RunId,
    tone: Tone,
    text: String,
}

/// A run's console.
pub struct Console {
    store: Store,
    run: RunId,
    painter: Painter,
    on_ask: OnAsk,
    /// The person who answers here; `None` without a terminal to answer at.
    person: Option<Principal>,
    /// Unanswered cards, the one being asked first.
    open: VecDeque<OpenQuestion>,
    asking: bool,
    /// Status of the run, for the line at the bottom; only at a terminal.
    status: Option<StatusRow>,
    /// The line in which the person types below everything, if they can while the run works.
    input_area: Option<InputArea>,
    /// Text that the run's models are streaming.
    speech: Speech,
    row: Option<Row>,
    /// The words being streamed, with their run.
    markdown: (RunId, Markdown),
    projections: BTreeMap<RunId, Projection>,
    /// Whether the run is reading files for itself, which is reported in one line.
    gathering: bool,
    /// A patch that a run proposed; a card shows it, if one comes next.
    proposed: Option<(RunId, ConsoleLine)>,
    /// The call by which the run's model ends it.
    claim: Option<EffectId>,
    /// Calls whose change was shown on a card.
    shown_changes: BTreeSet<(RunId, EffectId)>,
    /// The plan of the run.
    plan: ShownPlan,
    processes: ShownProcesses,
    at_work: Vec<RunId>,
    /// The sub-runs that worked in parallel with another one.
    side_by_side: BTreeSet<RunId>,
}

impl Console {
    /// A console for `run`. `person` is who answers at this terminal, if one can.
    pub fn new(
        store: Store,
        run: RunId,
        painter: Painter,
        on_ask: OnAsk,
        person: Option<Principal>,
    ) -> Self {
        Self {
            store,
            run,
            painter,
            on_ask,
            person,
            open: VecDeque::new(),
            asking: false,
            status: None,
            input_area: None,
            speech: Speech::default(),
            row: None,
            markdown: (run, Markdown::default()),
            projections: BTreeMap::new(),
            gathering: false,
            proposed: None,
            claim: None,
            shown_changes: BTreeSet::new(),
            plan: ShownPlan::default(),
            processes: ShownProcesses::default(),
            at_work: Vec::new(),
            side_by_side: BTreeSet::new(),
        }
    }

    /// Adds a status line at the bottom about the run's activity.
    pub fn with_status(mut self, spent: Spent) -> Self {
        self.status = Some(StatusRow::new(spent));
        self
    }

    /// Adds a line below everything else in which the person types while the run works. `ahead`
    /// gets what is for later.
    pub fn with_input_area(mut self, ahead: LineQueue) -> Self {
        if self.person.is_some() && self.status.is_some() {
            self.input_area = Some(InputArea::new(ahead));
            self.fit_columns();
        }
        self
    }

    /// Whether keys must be read one by one.
    pub fn has_input_area(&self) -> bool {
        self.input_area.is_some()
    }

    /// Whether the bottom has a status that changes by itself.
    pub fn has_status(&self) -> bool {
        self.status.is_some() && (!self.asking || self.has_input_area())
    }

    /// Whether the console waits for a line of the terminal.
    pub fn is_asking(&self) -> bool {
        self.asking
    }

    /// Shows an entry of the run or of one of its children.
    pub fn entry(
        &mut self,
        run: RunId,
        entry: &gyrus_journal::LogEntry,
        reader: &LogReader,
    ) -> Result<(), SurfaceError> {
        let parsed = gyrus_kernel::parse(entry).ok();
        let is_gathered = run == self.run && parsed.as_ref().is_some_and(|one| self.gathers(one));
        parsed.iter().for_each(|one| self.note_child(one));
        if let Some(parsed) = parsed.as_ref().filter(|_| run == self.run) {
            self.processes.take(entry, parsed);
        }
        if let Some(Entry::Noted { kind, fact, .. }) = parsed.as_ref().filter(|_| run == self.run) {
            self.plan.noted(kind, &fact.fact);
        }
        let is_between = parsed.as_ref().is_some_and(comes_between);
        if let Some((of, line)) = self.proposed.take_if(|_| !is_between) {
            self.show(of, &line)?;
        }
        let projection = self.projections.entry(run).or_default();
        for happening in projection.take(entry, reader) {
            self.happened(run, &happening, is_gathered)?;
        }
        match parsed {
            Some(Entry::Steered(steered)) => {
                if let Some(input_area) = &mut self.input_area {
                    input_area.was_read(&steered);
                }
                Ok(())
            }
            Some(Entry::RunEnded(_)) if run == self.run => self
                .input_area
                .as_mut()
                .map_or(Ok(()), InputArea::run_ended),
            Some(Entry::ApprovalAsked(asked)) => {
                self.proposed.take_if(|(of, _)| *of == run);
                if asked
                    .card
                    .details
                    .iter()
                    .any(|detail| is_patch(&detail.text))
                {
                    self.shown_changes.insert((run, asked.effect.clone()));
                }
                self.asked(OpenQuestion::new(run, asked))
            }
            Some(parsed) => self.settle(run, &parsed),
            None => Ok(()),
        }
    }

    fn happened(
        &mut self,
        run: RunId,
        happening: &Happening,
        is_gathered: bool,
    ) -> Result<(), SurfaceError> {
        if let Some(status) = self.status.as_mut().filter(|_| run == self.run) {
            status.happened(happening);
        }
        if happening.subject == HappeningSubject::Request {
            for spoken in self.speech.was_asked(run) {
                self.speaks(run, &spoken)?;
            }
        }
        let is_own = run == self.run;
        let is_claim =
            is_own && happening.subject == HappeningSubject::Call && happening.headline == FINISH;
        if is_claim {
            self.claim.clone_from(&happening.effect);
        }
        let is_recorded = is_own
            && matches!(happening.subject, HappeningSubject::Result { .. })
            && happening.tone != Tone::Bad
            && self.claim.is_some()
            && happening.effect == self.claim;
        let is_hidden = is_gathered
            || is_recorded
            || happening.weight == Prominence::Detail
            || self.speech.was_shown(run, happening.subject);
        if is_hidden {
            return Ok(());
        }
        let mut line = ConsoleLine::from(happening);
        if is_claim {
            // Its answer is shown at the end, if it becomes one.
            let gives_up = |part: &HappeningPart| matches!(part, HappeningPart::Arguments(all) if all["reached"] == false);
            let gives_up = happening.parts.iter().any(gives_up);
            line.text = if gives_up {
                "gives up"
            } else {
                "says that it is done"
            }
            .to_owned();
        }
        if line.patch.is_some() && happening.text(TextForm::Output).is_none() {
            self.proposed = Some((run, line));
            return Ok(());
        }
        if let (Some(effect), HappeningSubject::Result { .. }) =
            (&happening.effect, happening.subject)
            && self.shown_changes.remove(&(run, effect.clone()))
        {
            line.patch = None;
        }
        self.show(run, &line)
    }

    /// Removes the cards that an entry answers or voids.
    fn settle(&mut self, run: RunId, entry: &Entry) -> Result<(), SurfaceError> {
        let before = self.open.len();
        self.open.retain(|open| {
            if let Entry::ApprovalAnswered(answered) = entry {
                open.run != run || open.id.effect != answered.effect
            } else if let Entry::ToolResulted(ended) = entry {
                open.run != run || !approvals::voids(ended, &open.id.effect)
            } else {
                true
            }
        });
        if self.open.len() < before {
            self.ask()
        } else {
            Ok(())
        }
    }

    /// Whether an entry is one of the many about finding and reading a changeset's files.
    fn gathers(&mut self, entry: &Entry) -> bool {
        if let Entry::Noted { kind, fact, .. } = entry {
            if kind == "changeset.state" {
                let step = (fact.fact["from"].as_str(), fact.fact["to"].as_str());
                self.gathering = matches!(
                    step,
                    (_, Some("CURATING_CONTEXT" | "AWAITING_CONTEXT_APPROVAL"))
                        | (
                            Some("AWAITING_CONTEXT_APPROVAL"),
                            Some("PLANNING_WITH_CONTEXT")
                        )
                );
            } else if kind == "changeset.context" {
                self.gathering = false;
            }
            return false;
        }
        if let Entry::ToolResulted(result) = entry {
            return self.gathering && !result.is_error;
        }
        self.gathering && matches!(entry, Entry::ToolCalled(_))
    }

    /// A question is open. A card of the same effect that was asked before is void.
    pub fn asked(&mut self, open: OpenQuestion) -> Result<(), SurfaceError> {
        let void = |card: &OpenQuestion| card.run == open.run && card.id.effect == open.id.effect;
        let is_next = self.open.front().is_none_or(void);
        self.open.retain(|card| !void(card));
        if is_next {
            self.open.push_front(open);
            return self.ask();
        }
        let joins = self.asking
            && self
                .open
                .front()
                .is_some_and(|first| is_alike(first, &open));
        self.open.push_back(open);
        if !joins {
            return Ok(());
        }
        self.end_question()?;
        match &mut self.input_area {
            Some(input_area) => input_area.begin_answer_anew(),
            None => terminal::forget_what_was_typed(),
        }
        self.asking = true;
        // Of many only what is new is shown.
        let alike = self.alike().count();
        let new = if alike > MOST_JOINED { alike - 1 } else { 0 };
        put(&self.question(new))
    }

    /// Returns the card whose turn it is with those like it, from one of them on, and the possible answers where a person
    /// can answer here.
    fn question(&self, from: usize) -> String {
        let Some(first) = self.open.front() else {
            return String::new();
        };
        let alike: Vec<_> = self.alike().collect();
        let cards = alike
            .iter()
            .skip(from)
            .map(|one| (&one.id, &one.card, one.run.short()));
        let mut text: String = card::joined_lines(cards, &self.painter)
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        if self.person.is_some() && self.on_ask == OnAsk::Wait {
            if alike.len() > 1 {
                let all = alike.len();
                text.push_str(&format!(
                    "Y = yes to all {all}, N = no to all {all}; to the first: "
                ));
            }
            text.push_str(choices(&first.card));
        }
        text
    }

    /// Returns the open cards that are asked together: the first, and those like it.
    fn alike(&self) -> impl Iterator<Item = &OpenQuestion> {
        let first = self.open.front();
        self.open.iter().filter(move |one| {
            first.is_some_and(|first| std::ptr::eq(first, *one) || is_alike(first, one))
        })
    }

    fn ask(&mut self) -> Result<(), SurfaceError> {
        let Some(open) = self.open.front() else {
            self.asking = false;
            if let Some(input_area) = &mut self.input_area {
                input_area.take_up_again();
            }
            return Ok(());
        };
        let (run, id) = (open.run.short(), &open.id);
        let mut text = self.question(0);
        if self.on_ask == OnAsk::Wait && self.person.is_none() {
            text.push_str(&format!(
                "answer from elsewhere: gyrus approve {run} {id} (or: gyrus deny {run} {id})\n"
            ));
        }
        if self.person.is_some() && self.on_ask == OnAsk::Wait {
            self.end_question()?;
            ring()?;
            title::notify();
            match &mut self.input_area {
                Some(input_area) => input_area.set_aside(),
                None => terminal::forget_what_was_typed(),
            }
            self.asking = true;
        }
        put(&text)
    }

    /// Handles a piece of a model's reply. Text shown here is not shown again with its entry.
    pub fn reply_piece(&mut self, piece: &ReplyPiece) -> Result<(), SurfaceError> {
        if let Some(status) = &mut self.status {
            status.reply_piece(&piece.said);
        }
        if let Some(spoken) = self.speech.take(piece) {
            self.speaks(piece.run, &spoken)?;
        }
        if let LivePiece::ProcessEnded(name) = &piece.said
            && piece.run == self.run
        {
            self.processes.ended(name);
        }
        if piece.said == LivePiece::Ended {
            self.end_line()?;
        }
        Ok(())
    }

    /// Shows a model's text as it arrives, in lines like those of the entries that follow.
    fn speaks(&mut self, run: RunId, spoken: &LiveSpeech) -> Result<(), SurfaceError> {
        let (tone, mark) = match spoken.kind {
            SpokenKind::Words => (Tone::Thought, '•'),
            SpokenKind::Thinking if spoken.lines_before >= THINKING_LINES => return Ok(()),
            SpokenKind::Thinking => (Tone::Aside, '~'),
        };
        let is_other = |row: &Row| (row.run, row.tone) != (run, tone);
        if spoken.begins || self.row.as_ref().is_some_and(is_other) {
            self.end_line()?;
        }
        let mark = if spoken.begins { mark } else { ' ' };
        if tone != Tone::Thought || !self.painter.has_colours() {
            return self.write_on(run, tone, mark, &spoken.text);
        }
        self.markdown.0 = run;
        let words = self.markdown.1.take(&spoken.text);
        self.write_on(run, tone, mark, &words)
    }

    /// Writes more words of a model.
    fn write_on(
        &mut self,
        run: RunId,
        tone: Tone,
        mark: char,
        words: &str,
    ) -> Result<(), SurfaceError> {
        self.end_question()?;
        // A card that came between has ended the row.
        let goes_on = has_open_row();
        let begun = self.row.take().filter(|_| goes_on).map(|row| row.text);
        let indent = self.indent(run);
        let begun = begun.unwrap_or_default();
        let (shown, text) = self.painter.go_on(tone, &indent, mark, &begun, words);
        put_more(&shown)?;
        self.row = (!text.is_empty()).then_some(Row { run, tone, text });
        self.show_status()
    }

    fn end_line(&mut self) -> Result<(), SurfaceError> {
        let (run, markdown) = &mut self.markdown;
        let (run, held) = (*run, markdown.end());
        *markdown = Markdown::default();
        if !held.is_empty() {
            self.write_on(run, Tone::Thought, ' ', &held)?;
        }
        match self.row.take() {
            Some(_) => put(""),
            None => Ok(()),
        }
    }

    /// Returns the prefix of a run's lines: of runs that worked side by side, their names.
    fn indent(&self, run: RunId) -> String {
        if run == self.run {
            String::new()
        } else if self.side_by_side.contains(&run) {
            format!("  {} ┆ ", run.short())
        } else {
            "  ┆ ".to_owned()
        }
    }

    /// Records which sub-runs work in parallel.
    fn note_child(&mut self, entry: &Entry) {
        if let Entry::ChildStarted(started) = entry {
            self.at_work.push(started.child);
            if self.at_work.len() > 1 {
                self.side_by_side.extend(&self.at_work);
            }
        } else if let Entry::ChildEnded(ended) = entry {
            self.at_work.retain(|child| *child != ended.child);
        }
    }

    /// Adapts the output to the terminal, whose size may have changed.
    fn fit_columns(&mut self) {
        if let Some(columns) = output::columns_of(&io::stderr()) {
            // Behind a character in the last column a cursor cannot be put.
            let columns = columns - usize::from(self.has_input_area());
            self.painter = self.painter.with_columns(columns);
        }
    }

    /// Paints the line at the bottom anew.
    pub fn show_status(&mut self) -> Result<(), SurfaceError> {
        self.fit_columns();
        if let Some(input_area) = &self.input_area {
            let mut lines = plan_list::lines(&self.plan, &self.painter);
            lines.extend(self.process_lines());
            lines.extend(input_area.goals(&self.painter));
            lines.extend(self.status.iter().map(|status| status.line(&self.painter)));
            let mut rows = input_area.rows(&self.painter, self.asking);
            let (row, column) = rows.cursor;
            let cursor = (lines.len() + row, column);
            lines.append(&mut rows.lines);
            return put_below(lines, Some(cursor));
        }
        match &self.status {
            Some(status) if !self.asking && self.row.is_none() => {
                put_status(&status.line(&self.painter))
            }
            _ => Ok(()),
        }
    }

    /// Returns a line about each background process.
    fn process_lines(&self) -> impl Iterator<Item = String> {
        let columns = self.painter.columns.saturating_sub(1);
        self.processes.list().iter().map(move |process| {
            let age = gyrus_kernel::now_ms().saturating_sub(process.since_ms);
            let time = span(u64::try_from(age).unwrap_or(0));
            let words = format!("⚙ {} · {time} · {}", process.name, process.line);
            self.painter.paint(Tone::Aside, &clip(&words, columns))
        })
    }

    /// A key was pressed. Returns a line that is meant for the card.
    pub fn key(&mut self, key: Key) -> Result<Option<String>, SurfaceError> {
        let (Some(input_area), Some(person)) = (&mut self.input_area, &self.person) else {
            return Ok(None);
        };
        let line = match input_area.key(key, self.asking) {
            None => None,
            Some(PersonLine::Background) => {
                let id = time_ordered_uuid().to_string();
                let body = MessageBody::Background;
                approvals::send_as(&self.store, self.run, &id, person.clone(), body)?;
                None
            }
            Some(PersonLine::Answer(line)) => {
                put(&format!("❯ {}\n", one_line(&line)))?;
                Some(line)
            }
            Some(PersonLine::Steer(text)) => {
                let id = time_ordered_uuid().to_string();
                let shown = clip(&one_line(&text), self.painter.columns * 2);
                let said = format!("❯ {shown} (told before the next step)");
                input_area.sent(id.clone(), text.clone());
                let body = MessageBody::steer(text);
                approvals::send_as(&self.store, self.run, &id, person.clone(), body)?;
                put(&format!("{}\n", self.painter.paint(Tone::Ask, &said)))?;
                None
            }
        };
        self.show_status()?;
        Ok(line)
    }

    /// A line was typed.
    pub fn typed(&mut self, typed: &str) -> Result<(), SurfaceError> {
        let Some(open) = self.open.front().filter(|_| self.asking) else {
            return Ok(());
        };
        if let Some(answer) = understand_all(typed).filter(|_| self.alike().count() > 1) {
            return self.send_to_all(&answer);
        }
        match understand(typed, &open.card) {
            Some(answer) => self.send(answer),
            None => put(&format!("please type {}", choices(&open.card))),
        }
    }

    /// Sends an answer to all questions that are asked together. Each is bound to its own card.
    fn send_to_all(&mut self, answer: &Answer) -> Result<(), SurfaceError> {
        let Some(person) = &self.person else {
            return Ok(());
        };
        let first = self.open.front().cloned();
        let (alike, others) = self
            .open
            .drain(..)
            .partition(|one| first.as_ref().is_some_and(|first| is_alike(first, one)));
        let alike: Vec<_> = alike;
        self.open = VecDeque::from(others);
        self.asking = false;
        for one in &alike {
            match approvals::answer(&self.store, one, person.clone(), answer.clone()) {
                Err(void @ ApprovalError::Void(_)) => put(&SurfaceError::from(void).told())?,
                sent => sent?,
            }
        }
        self.ask()
    }

    fn send(&mut self, answer: Answer) -> Result<(), SurfaceError> {
        let (Some(open), Some(person)) = (self.open.front(), &self.person) else {
            return Ok(());
        };
        match approvals::answer(&self.store, open, person.clone(), answer) {
            Err(ApprovalError::Void(VoidAnswer::Mismatch(mismatch))) => {
                put(&format!("{mismatch}: {}", choices(&open.card)))
            }
            Err(void @ ApprovalError::Void(_)) => {
                self.asking = false;
                put(&SurfaceError::from(void).told())
            }
            sent => {
                self.asking = false;
                set_title("works");
                Ok(sent?)
            }
        }
    }

    /// Returns the card to edit, if the person typed the request for an editor.
    pub fn to_edit(&self, typed: &str) -> Option<ApprovalCard> {
        let open = self.open.front().filter(|_| self.asking)?;
        (wants_to_edit(typed, &open.card)).then(|| open.card.clone())
    }

    /// Returns the answer that editing a card led to.
    pub fn edited(&mut self, came: Result<Answer, SurfaceError>) -> Result<(), SurfaceError> {
        match (came, self.open.front()) {
            (Ok(answer), _) => self.send(answer),
            (Err(failure), Some(open)) => {
                put(&format!("{}{}", failure.told(), choices(&open.card)))
            }
            (Err(_), None) => Ok(()),
        }
    }

    /// Handles the loss of the terminal, at which nothing can be typed any more.
    pub fn no_terminal(&mut self) -> Result<(), SurfaceError> {
        self.person = None;
        self.end_question()?;
        self.ask()
    }

    fn show(&mut self, run: RunId, line: &ConsoleLine) -> Result<(), SurfaceError> {
        self.end_question()?;
        self.end_line()?;
        let indent = self.indent(run);
        put(&line.rendered(&indent, &self.painter))?;
        self.show_status()
    }

    fn end_question(&mut self) -> Result<(), SurfaceError> {
        if self.has_input_area() {
            // The card stays open, and no cursor stands behind it.
            return Ok(());
        }
        if std::mem::take(&mut self.asking) {
            put("\n")
        } else {
            Ok(())
        }
    }
}

/// Whether an entry comes between a proposal and the card that shows it.
fn comes_between(entry: &Entry) -> bool {
    let known = ["changeset.state", "gate.foreseen"];
    matches!(entry, Entry::ApprovalAsked(_))
        || matches!(entry, Entry::Noted { kind, .. } if known.contains(&&**kind))
}

/// Rings the bell, for a person who does not look.
fn ring() -> Result<(), SurfaceError> {
    Ok(io::stderr().lock().write_all(b"\x07")?)
}
