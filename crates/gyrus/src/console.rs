//! The console: a run's durable entries on standard error, and a person's answers to its cards.
//!
//! It has no private view of the run: it reads entries, and an answer typed here is a message in
//! the inbox like one from any other surface. So a card that is answered elsewhere meanwhile is
//! simply over.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use gyrus_contract::{OnAsk, Principal, RunId, Spent};
use gyrus_journal::{Entry, Reader, Store};
use gyrus_kernel::{
    ApprovalCard,
    approvals::{self, ApprovalAnswer, ApprovalReach, Delivery, OpenQuestion},
};
use gyrus_text::{clip, counted, width, wrap};

use crate::{
    failure::Failure,
    output,
    show::{
        card,
        line::{self, Line, Weight},
        paint::{Paint, Painter},
        speech::{Heard, Speech},
        status::Status,
    },
};

/// Lines of one observation or thought that are shown; the journal has the rest.
const SHOWN_LINES: usize = 10;

/// A run's console.
pub(crate) struct Console {
    store: Store,
    run: RunId,
    painter: Painter,
    on_ask: OnAsk,
    /// Who answers here; `None` when there is no terminal to answer at.
    person: Option<Principal>,
    /// Unanswered cards, the one that is being asked first.
    open: VecDeque<OpenQuestion>,
    /// The cursor stands behind a question.
    asking: bool,
    /// What the run is at, for the line at the bottom; only at a terminal.
    status: Option<Status>,
    /// What its models are saying.
    speech: Speech,
    /// The run reads files for itself, and says in one line which.
    gathering: bool,
}

impl Console {
    /// A console for `run`. `person` is who answers at this terminal, if one can.
    pub(crate) fn new(
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
            speech: Speech::default(),
            gathering: false,
        }
    }

    /// With a line at the bottom that says what the run is at.
    pub(crate) fn with_status(mut self, spent: Spent) -> Self {
        self.status = Some(Status::new(spent));
        self
    }

    /// Whether there is such a line.
    pub(crate) fn has_status(&self) -> bool {
        self.status.is_some() && !self.asking
    }

    /// Whether a line from the terminal is wanted.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Shows an entry of the run or of one of its children.
    pub(crate) fn entry(
        &mut self,
        run: RunId,
        entry: &Entry,
        reader: &Reader,
    ) -> Result<(), Failure> {
        let parsed = gyrus_kernel::parse(entry);
        if let (Ok(parsed), Some(status)) = (&parsed, &mut self.status)
            && run == self.run
        {
            status.entry(parsed);
        }
        if let Ok(gyrus_kernel::Entry::ModelCall(_)) = &parsed {
            for line in self.speech.was_asked(run) {
                self.show(run, &line)?;
            }
        }
        if let Ok(gyrus_kernel::Entry::Noted { kind, .. }) = &parsed
            && self.speech.was_shown(run, kind)
        {
            return Ok(());
        }
        if let Ok(parsed) = &parsed
            && run == self.run
            && self.is_gathered(parsed)
        {
            return Ok(());
        }
        match parsed {
            Ok(gyrus_kernel::Entry::ApprovalAsked(asked)) => {
                self.asked(OpenQuestion::new(run, asked))
            }
            Ok(gyrus_kernel::Entry::ApprovalAnswered(answered)) => {
                self.show(run, &line::of(entry, reader))?;
                let over =
                    |open: &OpenQuestion| open.run == run && open.id.effect == answered.effect;
                self.open.retain(|open| !over(open));
                self.ask()
            }
            Ok(gyrus_kernel::Entry::ToolResulted(ended)) => {
                self.show(run, &line::of(entry, reader))?;
                let before = self.open.len();
                let over = |open: &OpenQuestion| {
                    open.run == run && approvals::voids(&ended, &open.id.effect)
                };
                self.open.retain(|open| !over(open));
                match self.open.len() < before {
                    true => self.ask(),
                    false => Ok(()),
                }
            }
            _ => self.show(run, &line::of(entry, reader)),
        }
    }

    /// Whether an entry is one of the many by which a changeset's files are found and read.
    fn is_gathered(&mut self, entry: &gyrus_kernel::Entry) -> bool {
        use gyrus_kernel::Entry as E;
        match entry {
            E::Noted { kind, fact, .. } if kind == "changeset.state" => {
                let step = (fact.fact["from"].as_str(), fact.fact["to"].as_str());
                self.gathering = matches!(
                    step,
                    (_, Some("CURATING_CONTEXT" | "AWAITING_CONTEXT_APPROVAL"))
                        | (
                            Some("AWAITING_CONTEXT_APPROVAL"),
                            Some("PLANNING_WITH_CONTEXT")
                        )
                );
                false
            }
            E::Noted { kind, .. } if kind == "changeset.context" => {
                self.gathering = false;
                false
            }
            E::ToolCalled(_) => self.gathering,
            E::ToolResulted(result) => self.gathering && !result.is_error,
            _ => false,
        }
    }

    /// A question is open. A card of the same effect that was asked before is void.
    pub(crate) fn asked(&mut self, open: OpenQuestion) -> Result<(), Failure> {
        let void = |card: &OpenQuestion| card.run == open.run && card.id.effect == open.id.effect;
        let is_next = self.open.front().is_none_or(void);
        self.open.retain(|card| !void(card));
        if is_next {
            self.open.push_front(open);
            self.ask()
        } else {
            self.open.push_back(open);
            Ok(())
        }
    }

    /// Shows the card whose turn it is.
    fn ask(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.front() else {
            self.asking = false;
            return Ok(());
        };
        let run = open.run.short();
        let mut text = String::new();
        for line in card::lines(&open.id, &open.card, &run, &self.painter) {
            text.push_str(&line);
            text.push('\n');
        }
        if self.person.is_some() && self.on_ask == OnAsk::Wait {
            text.push_str(choices(&open.card));
            self.end_question()?;
            ring()?;
            crate::terminal::forget_what_was_typed();
            self.asking = true;
        } else if self.on_ask == OnAsk::Wait {
            let id = &open.id;
            text.push_str(&format!(
                "answer from elsewhere: gyrus approve {run} {id} (or: gyrus deny {run} {id})\n"
            ));
        }
        put(&text)
    }

    /// A model speaks. What is shown of it here is not shown again when it is an entry.
    pub(crate) fn heard(&mut self, heard: &Heard) -> Result<(), Failure> {
        if let Some(status) = &mut self.status {
            status.heard(&heard.said);
        }
        match self.speech.line(heard) {
            Some(line) => self.show(heard.run, &line),
            None => Ok(()),
        }
    }

    /// Paints the line at the bottom anew.
    pub(crate) fn show_status(&mut self) -> Result<(), Failure> {
        match &self.status {
            Some(status) if !self.asking => put_status(&status.line(&self.painter)),
            _ => Ok(()),
        }
    }

    /// A line was typed.
    pub(crate) fn typed(&mut self, typed: &str) -> Result<(), Failure> {
        let (Some(open), Some(person), true) = (self.open.front(), &self.person, self.asking)
        else {
            return Ok(());
        };
        match understand(typed, &open.card) {
            Some(answer) => {
                self.asking = false;
                match approvals::answer(&self.store, open, person.clone(), answer)? {
                    Delivery::Given => Ok(()),
                    Delivery::Void(void) => put(&format!("{}\n", Failure::from(void))),
                }
            }
            None if open.card.question => put("your answer, in words: "),
            None if open.card.edit.is_some() => put("please type y, e or n: "),
            None if open.card.wider.is_empty() => put("please type y or n: "),
            None => put("please type y, s, a or n: "),
        }
    }

    /// The card to be changed in an editor, if that is what was typed.
    pub(crate) fn to_edit(&self, typed: &str) -> Option<ApprovalCard> {
        let open = self.open.front().filter(|_| self.asking)?;
        (wants_to_edit(typed, &open.card)).then(|| open.card.clone())
    }

    /// What came of editing a card.
    pub(crate) fn edited(&mut self, came: Result<ApprovalAnswer, Failure>) -> Result<(), Failure> {
        match (came, self.open.front(), &self.person) {
            (Ok(answer), Some(open), Some(person)) => {
                self.asking = false;
                match approvals::answer(&self.store, open, person.clone(), answer)? {
                    Delivery::Given => Ok(()),
                    Delivery::Void(void) => put(&format!("{}\n", Failure::from(void))),
                }
            }
            (Err(failure), Some(open), _) => put(&format!("{failure}\n{}", choices(&open.card))),
            (_, _, _) => Ok(()),
        }
    }

    /// Nothing can be typed any more.
    pub(crate) fn no_terminal(&mut self) -> Result<(), Failure> {
        self.person = None;
        self.end_question()?;
        self.ask()
    }

    fn show(&mut self, run: RunId, line: &Line) -> Result<(), Failure> {
        if line.weight == Weight::Detail {
            return Ok(());
        }
        self.end_question()?;
        let indent = if run == self.run { "" } else { "  ┆ " };
        put(&rendered(line, indent, &self.painter))?;
        self.show_status()
    }

    fn end_question(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.asking) {
            put("\n")
        } else {
            Ok(())
        }
    }
}

/// A line of the timeline as the console shows it: calls on one line, thoughts wrapped,
/// observations line by line; each bounded.
fn rendered(line: &Line, indent: &str, painter: &Painter) -> String {
    let columns = painter.columns.saturating_sub(width(indent) + 2);
    let lines = match line.paint {
        Paint::Thought => wrap(&line.text, columns),
        Paint::Observation => {
            let all = line.text.trim_end_matches('\n').split('\n');
            all.map(|one| clip(one, columns)).collect()
        }
        _ => vec![clip(&line.text, columns)],
    };
    let mut text = String::new();
    for (number, one) in lines.iter().take(SHOWN_LINES).enumerate() {
        let mark = if number == 0 { line.mark } else { ' ' };
        let painted = painter.paint(line.paint, &format!("{mark} {one}"));
        text.push_str(&format!("{indent}{}\n", painted.trim_end()));
    }
    if lines.len() > SHOWN_LINES {
        let more = format!("  … {}", counted(lines.len() - SHOWN_LINES, "more line"));
        text.push_str(&format!("{indent}{}\n", painter.paint(Paint::Aside, &more)));
    }
    text
}

/// What can be answered to a card.
pub(crate) fn choices(card: &ApprovalCard) -> &'static str {
    if card.question {
        "your answer: "
    } else if card.edit.is_some() {
        "y = yes, e = edit it first, n = no, n and words = no, and what to do instead: "
    } else if card.wider.is_empty() {
        "y = yes, n = no, n and words = no, and what to do instead: "
    } else {
        "y = yes, once; s = for this session; a = always here; n = no, n and words = no, and what \
         to do instead: "
    }
}

/// Whether a typed line asks for an editor.
pub(crate) fn wants_to_edit(typed: &str, card: &ApprovalCard) -> bool {
    let word = typed.trim().to_ascii_lowercase();
    card.edit.is_some() && (word == "e" || word == "edit")
}

/// What a typed line says; `None` if it is neither yes nor no, or no answer to a question.
pub(crate) fn understand(typed: &str, card: &ApprovalCard) -> Option<ApprovalAnswer> {
    let typed = typed.trim();
    let reach = ApprovalReach::Once;
    if card.question {
        let words = Some(typed.to_owned());
        return (!typed.is_empty()).then_some(ApprovalAnswer::Yes { words, reach });
    }
    let wider = !card.wider.is_empty();
    let yes = |reach| Some(ApprovalAnswer::Yes { words: None, reach });
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        // Words after a yes may be a condition, and a yes has none.
        "y" | "yes" if rest.is_empty() => yes(ApprovalReach::Once),
        "s" | "session" if rest.is_empty() && wider => yes(ApprovalReach::Session),
        "a" | "always" if rest.is_empty() && wider => yes(ApprovalReach::Always),
        "n" | "no" => Some(ApprovalAnswer::No {
            reason: (!rest.is_empty()).then(|| rest.to_owned()),
        }),
        _ => None,
    }
}

/// The status line stands on the screen, without an end: the next text takes its place.
static STATUS_IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// To the start of the line, and everything on it gone.
const CLEAR_LINE: &str = "\r\x1b[K";

/// Writes to standard error at once.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    let mut stream = io::stderr().lock();
    if STATUS_IS_SHOWN.swap(false, Ordering::Relaxed) {
        stream.write_all(CLEAR_LINE.as_bytes())?;
    }
    stream.write_all(output::fit(text).as_bytes())?;
    Ok(stream.flush()?)
}

/// Rings the bell: whoever looks elsewhere is called.
fn ring() -> Result<(), Failure> {
    Ok(io::stderr().lock().write_all(b"\x07")?)
}

/// Puts a status line at the bottom, in place of an earlier one.
fn put_status(line: &str) -> Result<(), Failure> {
    put("")?;
    let mut stream = io::stderr().lock();
    stream.write_all(output::fit(line).as_bytes())?;
    STATUS_IS_SHOWN.store(true, Ordering::Relaxed);
    Ok(stream.flush()?)
}

/// Takes the status line away.
pub(crate) fn clear_status() -> Result<(), Failure> {
    put("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        let no = |reason: Option<&str>| {
            Some(ApprovalAnswer::No {
                reason: reason.map(str::to_owned),
            })
        };
        let yes = |reach| Some(ApprovalAnswer::Yes { words: None, reach });
        let card = |wider| ApprovalCard {
            sentence: String::new(),
            reasons: Vec::new(),
            details: Vec::new(),
            question: false,
            wider,
            edit: None,
        };
        let grants = vec![gyrus_contract::Grant::PackageRegistries];
        for (typed, answer) in [
            ("s", yes(ApprovalReach::Session)),
            ("a", yes(ApprovalReach::Always)),
            ("y", yes(ApprovalReach::Once)),
        ] {
            assert_eq!(understand(typed, &card(grants.clone())), answer, "{typed}");
        }
        for (typed, answer) in [
            ("y\n", yes(ApprovalReach::Once)),
            (" YES ", yes(ApprovalReach::Once)),
            ("s", None),
            ("a", None),
            ("n", no(None)),
            (
                "no use the other folder\n",
                no(Some("use the other folder")),
            ),
            ("yes but not x", None),
            ("", None),
            ("yess", None),
        ] {
            assert_eq!(understand(typed, &card(Vec::new())), answer, "{typed}");
        }
    }

    #[test]
    fn lines_are_bounded_and_visible() {
        let line = |paint, text: &str| Line {
            weight: Weight::Main,
            paint,
            mark: '←',
            text: text.to_owned(),
            effect: None,
        };
        let painter = Painter::plain(20);
        let many = "x\n".repeat(30);
        for (paint, text, shown) in [
            (Paint::Observation, "a\nb\n", "← a\n  b\n"),
            (Paint::Call, "shell ls\nrm", "← shell ls⏎rm\n"),
            (
                Paint::Thought,
                "one two three four five",
                "← one two three four\n  five\n",
            ),
            (Paint::Observation, "\x1b[31mred", "← ␛[31mred\n"),
        ] {
            assert_eq!(rendered(&line(paint, text), "", &painter), shown);
        }
        let shown = rendered(&line(Paint::Observation, &many), "", &painter);
        assert!(shown.ends_with("… 20 more lines\n"), "{shown}");
    }
}
