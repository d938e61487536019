//! One thing that happened, as any surface shows it.

use gyrus_contract::{EffectId, Image, RunId};
use gyrus_kernel::{ApprovalCard, Charge};
use gyrus_text::{clip, one_line};
use serde_json::Value;

/// An event of a run. The texts may hold anything that a model, a page or a file said: a surface
/// makes unseen characters visible and escapes its own markup.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// Number of the entry that reports the event.
    pub seq: u64,
    /// Time at which the entry was appended, in UTC milliseconds.
    pub at_ms: i64,
    /// The effect to which the event belongs; those of one effect belong together.
    pub effect: Option<EffectId>,
    /// The step that the event ends, if any.
    pub step: Option<u32>,
    /// The kind of thing that happened.
    pub subject: HappeningSubject,
    /// Whether a person who watches the run sees the event.
    pub weight: Prominence,
    /// The colour, by meaning.
    pub tone: Tone,
    /// The event as one sentence; empty if the parts say everything.
    pub headline: String,
    /// The parts of the event, in order.
    pub parts: Vec<HappeningPart>,
    /// Tokens and money charged for the event.
    pub charged: Charge,
    /// The duration in milliseconds, if it was measured.
    pub took_ms: Option<u64>,
}

/// Kinds of things that happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HappeningSubject {
    /// The run began.
    Goal,
    /// A process took the run up again.
    Resumed,
    /// The run stopped and can be resumed; whether a person has to answer first.
    Parked {
        /// Whether the run waits for a person.
        for_person: bool,
    },
    /// The run is over.
    Ended,
    /// A fresh step continues after a change of the program.
    HandedOver,
    /// A step is complete.
    StepEnded,
    /// A step was abandoned.
    StepDropped,
    /// A limit is near.
    Warning,
    /// A person amended the goal or took over the browser.
    Person,
    /// A request was sent to a model.
    Request,
    /// A model answered.
    Reply,
    /// A model did not answer.
    ReplyFailed,
    /// gyrus sent the model a message of its own.
    Told,
    /// The model thought.
    Thought,
    /// The model looked back.
    Reflection,
    /// A loop or an organ recorded a fact.
    Note,
    /// A tool is called.
    Call,
    /// The gate judged a call.
    Verdict,
    /// A call was started.
    Started,
    /// A call ended.
    Result {
        /// Whether the call failed or was not executed.
        failed: bool,
    },
    /// The run read the screen.
    View,
    /// A question was put to a person.
    Question,
    /// A person answered, or nobody could be asked.
    Answer {
        /// Whether the answer is a yes.
        approved: bool,
    },
    /// A clock or a random number was read.
    Value,
    /// The run waits.
    Wait,
    /// A wait is over.
    WaitEnded,
    /// Branches run together.
    Branches,
    /// A child run began.
    Child,
    /// A child run ended.
    ChildEnded,
    /// The entry cannot be read.
    Unreadable,
}

impl HappeningSubject {
    /// Returns the character that marks events of this kind.
    pub fn mark(self) -> char {
        match self {
            HappeningSubject::Goal
            | HappeningSubject::Resumed
            | HappeningSubject::Parked { .. }
            | HappeningSubject::Ended
            | HappeningSubject::HandedOver => '■',
            HappeningSubject::StepEnded | HappeningSubject::StepDropped => '─',
            HappeningSubject::Warning
            | HappeningSubject::ReplyFailed
            | HappeningSubject::Unreadable => '!',
            HappeningSubject::Person | HappeningSubject::Answer { .. } => '»',
            HappeningSubject::Request | HappeningSubject::Reply => '◦',
            HappeningSubject::Told
            | HappeningSubject::Note
            | HappeningSubject::Value
            | HappeningSubject::Verdict
            | HappeningSubject::Started => '·',
            HappeningSubject::Thought | HappeningSubject::Reflection => '•',
            HappeningSubject::Call => '→',
            HappeningSubject::Result { .. } => '←',
            HappeningSubject::View => '◉',
            HappeningSubject::Question => '?',
            HappeningSubject::Wait | HappeningSubject::WaitEnded => '…',
            HappeningSubject::Branches => '∥',
            HappeningSubject::Child => '⇒',
            HappeningSubject::ChildEnded => '⇐',
        }
    }

    /// The name of the kind, for a label.
    pub fn name(self) -> &'static str {
        match self {
            HappeningSubject::Goal => "goal",
            HappeningSubject::Resumed => "resumed",
            HappeningSubject::Parked { .. } => "parked",
            HappeningSubject::Ended => "ended",
            HappeningSubject::HandedOver => "handed over",
            HappeningSubject::StepEnded => "step ended",
            HappeningSubject::StepDropped => "step abandoned",
            HappeningSubject::Warning => "warning",
            HappeningSubject::Person => "person",
            HappeningSubject::Request => "request",
            HappeningSubject::Reply => "reply",
            HappeningSubject::ReplyFailed => "no reply",
            HappeningSubject::Told => "gyrus tells the model",
            HappeningSubject::Thought => "thought",
            HappeningSubject::Reflection => "reflection",
            HappeningSubject::Note => "note",
            HappeningSubject::Value => "value",
            HappeningSubject::Call => "call",
            HappeningSubject::Verdict => "gate",
            HappeningSubject::Started => "started",
            HappeningSubject::Result { .. } => "result",
            HappeningSubject::View => "screen",
            HappeningSubject::Question => "question",
            HappeningSubject::Answer { .. } => "answer",
            HappeningSubject::Wait | HappeningSubject::WaitEnded => "wait",
            HappeningSubject::Branches => "branches",
            HappeningSubject::Child | HappeningSubject::ChildEnded => "child run",
            HappeningSubject::Unreadable => "unreadable",
        }
    }
}

/// Whether a person who watches a run sees an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prominence {
    /// The event is shown while the run goes on.
    Main,
    /// The event is shown to a person who asks for the whole timeline.
    Detail,
}

/// Colours, by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The model's thinking.
    Thought,
    /// A tool call, or a success.
    Call,
    /// The result of a call.
    Observation,
    /// A question to a person, or an answer.
    Ask,
    /// A failure or a danger.
    Bad,
    Strong,
    /// Text that a reader may skip.
    Aside,
    /// All other text.
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// Sentences.
    Prose,
    /// Text whose line breaks and columns count.
    Code,
    /// Output of a terminal program, with its colours.
    Output,
    Diff,
    /// A remark of gyrus itself.
    Aside,
    /// A remark about a failure.
    Wrong,
}

/// A part of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum HappeningPart {
    /// A short remark beside the headline, with the tone of its meaning.
    Badge(Tone, String),
    Text(TextForm, String),
    /// The arguments of a call.
    Arguments(Value),
    /// A question to a person.
    Card(Box<ApprovalCard>),
    Picture(Image),
    /// Paths in the workspace of files that a call produced.
    Files(Vec<String>),
    /// A child run.
    Run(RunId),
}

impl HappeningPart {
    /// Creates a part with sentences.
    pub fn prose(text: impl Into<String>) -> Self {
        Self::Text(TextForm::Prose, text.into())
    }

    pub fn code(text: impl Into<String>) -> Self {
        Self::Text(TextForm::Code, text.into())
    }

    /// Creates a part with a remark.
    pub fn aside(text: impl Into<String>) -> Self {
        Self::Text(TextForm::Aside, text.into())
    }
}

impl HappeningPart {
    fn words(&self) -> Option<String> {
        match self {
            HappeningPart::Badge(_, text) | HappeningPart::Text(_, text) => Some(text.clone()),
            HappeningPart::Arguments(arguments) => Some(arguments.to_string()),
            HappeningPart::Files(paths) => Some(paths.join(", ")),
            HappeningPart::Card(_) | HappeningPart::Picture(_) | HappeningPart::Run(_) => None,
        }
    }
}

impl Happening {
    fn new(subject: HappeningSubject, weight: Prominence, tone: Tone, headline: String) -> Self {
        Self {
            seq: 0,
            at_ms: 0,
            effect: None,
            step: None,
            subject,
            weight,
            tone,
            headline,
            parts: Vec::new(),
            charged: Charge::default(),
            took_ms: None,
        }
    }

    /// Returns the event in one line of at most `columns` columns, for surfaces that show the
    /// latest events; `None` if there is nothing to say. Cards are shown in another way.
    pub fn in_one_line(&self, columns: usize) -> Option<String> {
        let words = match (&*self.headline, self.parts.first()) {
            ("", part) => part?.words()?,
            (headline, Some(HappeningPart::Arguments(arguments))) => {
                format!("{headline} {arguments}")
            }
            (headline, _) => headline.to_owned(),
        };
        let words = words.trim();
        if words.is_empty() || self.subject == HappeningSubject::Question {
            return None;
        }
        let mark = self.subject.mark();
        Some(clip(&one_line(&format!("{mark} {words}")), columns))
    }

    pub(super) fn main(subject: HappeningSubject, tone: Tone, headline: impl Into<String>) -> Self {
        Self::new(subject, Prominence::Main, tone, headline.into())
    }

    pub(crate) fn detail(subject: HappeningSubject, headline: impl Into<String>) -> Self {
        Self::new(subject, Prominence::Detail, Tone::Aside, headline.into())
    }

    pub(super) fn with(mut self, part: HappeningPart) -> Self {
        self.parts.push(part);
        self
    }

    pub(super) fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    pub(super) fn at(mut self, entry: &gyrus_journal::LogEntry) -> Self {
        self.seq = entry.seq;
        self.at_ms = entry.at_ms;
        self
    }

    /// Returns the text of the first part in this form.
    pub fn text(&self, wanted: TextForm) -> Option<&str> {
        self.parts.iter().find_map(|part| match part {
            HappeningPart::Text(form, text) if *form == wanted => Some(text.as_str()),
            HappeningPart::Text(..)
            | HappeningPart::Badge(..)
            | HappeningPart::Arguments(_)
            | HappeningPart::Card(_)
            | HappeningPart::Picture(_)
            | HappeningPart::Files(_)
            | HappeningPart::Run(_) => None,
        })
    }
}
