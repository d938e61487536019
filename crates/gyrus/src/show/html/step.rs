//! What the page knows of a step: the entries of one cycle, put together by effect and cut to
//! what a page takes.

use gyrus_contract::{
    ActionVerdict, Decision, EffectId, Limits, Microdollars, Principal, Purpose, Risk, RunId,
    Spent, Usage,
};
use gyrus_kernel::{Charge, ConcurrencyForm, Settled};

use super::{picture::Shown, words::Words};

/// A step, or what there is of it.
#[derive(Debug)]
pub(super) struct Step {
    /// Counted from 1.
    pub(super) number: u32,
    /// When its first entry was appended, in UTC milliseconds.
    pub(super) began_ms: i64,
    /// When its last one was.
    pub(super) ended_ms: i64,
    /// How it came out.
    pub(super) fate: Fate,
    /// What happened in it, in order of the first entry of each.
    pub(super) items: Vec<Item>,
    /// Its entries as they stand in the journal, and those since the step before.
    pub(super) entries: Vec<Raw>,
}

/// How a step came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its state is kept.
    Done,
    /// Its state is never used, for this reason.
    GivenUp(Words),
    /// There is no end of it yet.
    Open,
}

/// Something that happened.
#[derive(Debug)]
pub(super) struct Item {
    /// When it began, in UTC milliseconds.
    pub(super) at_ms: i64,
    /// The effect that it is.
    pub(super) effect: Option<EffectId>,
    /// What.
    pub(super) what: What,
}

/// What happened.
#[derive(Debug)]
pub(super) enum What {
    /// The model thought, or looked back.
    Thought {
        /// It looked back.
        is_reflection: bool,
        /// Its words.
        words: Words,
    },
    /// A fact that a loop or an organ noted down.
    Noted {
        /// Its kind.
        kind: String,
        /// The fact.
        words: Words,
        /// The fact is JSON, not a sentence.
        is_json: bool,
    },
    /// A model was asked.
    Asked(Vec<Attempt>),
    /// gyrus put words of its own before the model.
    Told(Words),
    /// A tool was called.
    Called(Box<Call>),
    /// The screen was looked at.
    Looked {
        /// What was there, in a few words.
        words: Words,
        /// The picture with what to say of it, if one was taken.
        picture: Option<(Shown, String)>,
    },
    /// A person was asked, by the loop itself.
    Question(Vec<Approval>),
    /// A person amended the goal.
    Steered(Vec<(Principal, Words)>),
    /// The run waited.
    Waited(Wait),
    /// Several branches ran together.
    Branches {
        /// How they end.
        form: ConcurrencyForm,
        /// How many.
        branches: u32,
        /// Who won, once it is decided; nobody if the deadline did.
        won: Option<Option<u32>>,
    },
    /// A child run.
    Child(Child),
    /// Something about the run as a whole.
    Life(Life),
    /// An entry that this gyrus cannot read, or that was erased.
    Unreadable(String),
}

/// One attempt at asking a model.
#[derive(Debug)]
pub(super) struct Attempt {
    /// Counted from 1.
    pub(super) number: u32,
    /// Who was asked.
    pub(super) model: String,
    /// Why this one; empty when there was no choice.
    pub(super) why: String,
    /// What for.
    pub(super) purpose: Purpose,
    /// How many messages of memory were sent.
    pub(super) messages: u64,
    /// Tokens and money that were set aside for it.
    pub(super) reserved: Charge,
    /// What came.
    pub(super) came: Option<Reply>,
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) struct Reply {
    /// How long it took.
    pub(super) took_ms: u64,
    /// What it cost.
    pub(super) charged: Charge,
    /// `charged` is what was reserved.
    pub(super) estimated: bool,
    /// Words or an error.
    pub(super) answer: Answer,
}

/// The content of a reply.
#[derive(Debug)]
pub(super) enum Answer {
    /// A reply.
    Words {
        /// Its text; blank if the step shows it as a thought already.
        words: Words,
        /// Who answered, by the provider's own name.
        model: String,
        /// Tokens as the provider counted them.
        usage: Option<Usage>,
        /// The output limit cut it.
        cut: bool,
    },
    /// An error, in words.
    Error(String),
    /// Nobody knows whether it was answered.
    CutOff,
    /// Its blob cannot be read.
    Gone(String),
}

/// A tool call, from intent to outcome.
#[derive(Debug)]
pub(super) struct Call {
    /// The tool.
    pub(super) tool: String,
    /// Each argument with its value; texts as they are, everything else as JSON.
    pub(super) arguments: Vec<Argument>,
    /// What the gate said, if it came to that.
    pub(super) gate: Option<Judged>,
    /// Questions about it.
    pub(super) approvals: Vec<Approval>,
    /// How often it was started.
    pub(super) started: u32,
    /// How it came out.
    pub(super) outcome: Option<Outcome>,
}

/// What the gate said of a call.
#[derive(Debug)]
pub(super) struct Judged {
    /// How bad it could be.
    pub(super) risk: Risk,
    /// What happens with it.
    pub(super) decision: Decision,
    /// Why.
    pub(super) reasons: Vec<String>,
    /// The places that its arguments mean.
    pub(super) places: Vec<String>,
}

/// An argument of a call.
#[derive(Debug)]
pub(super) struct Argument {
    /// Its name; empty for arguments that are no object.
    pub(super) name: String,
    /// Its value.
    pub(super) value: Words,
    /// The value is a text, not JSON.
    pub(super) is_text: bool,
}

/// A question to a person.
#[derive(Debug)]
pub(super) struct Approval {
    /// When it was asked, in UTC milliseconds.
    pub(super) asked_ms: i64,
    /// It asks for words, not for leave.
    pub(super) is_question: bool,
    /// What will happen, in gyrus's own words.
    pub(super) sentence: Words,
    /// Why it is asked.
    pub(super) reasons: Vec<String>,
    /// The model's words.
    pub(super) details: Vec<Words>,
    /// What was answered.
    pub(super) answer: Option<Answered>,
}

/// An answer of a person.
#[derive(Debug)]
pub(super) struct Answered {
    /// When, in UTC milliseconds.
    pub(super) at_ms: i64,
    /// Yes.
    pub(super) approved: bool,
    /// Who; `None` when nobody could be asked.
    pub(super) by: Option<Principal>,
    /// Their words.
    pub(super) words: Words,
}

/// The outcome of a tool call.
#[derive(Debug)]
pub(super) struct Outcome {
    /// How it came out.
    pub(super) settled: Settled,
    /// It failed.
    pub(super) is_error: bool,
    /// Whether the world changed.
    pub(super) verdict: ActionVerdict,
    /// What it returned.
    pub(super) words: Words,
    /// Pictures that it returned, each with what to say of it.
    pub(super) pictures: Vec<(Shown, String)>,
    /// Files that it left.
    pub(super) artifacts: Vec<String>,
    /// How long it took.
    pub(super) took_ms: u64,
}

/// A wait.
#[derive(Debug)]
pub(super) struct Wait {
    /// Until when at the latest, in UTC milliseconds.
    pub(super) until_ms: Option<i64>,
    /// For which signal.
    pub(super) signal: Option<String>,
    /// What ended it: the signal with what came with it, or the time.
    pub(super) ended: Option<Option<Words>>,
}

/// A child run, as its parent knows it.
#[derive(Debug)]
pub(super) struct Child {
    /// Which.
    pub(super) run: RunId,
    /// Its goal.
    pub(super) goal: Words,
    /// What it may use.
    pub(super) limits: Limits,
    /// How it ended, in words, and what it used.
    pub(super) ended: Option<(String, Spent)>,
}

/// Something about the run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Life {
    /// A process took it up again.
    Resumed {
        /// The process.
        pid: u32,
        /// Bytes that a crash left unfinished.
        set_aside_bytes: Option<u64>,
    },
    /// A fresh cycle took over.
    HandedOver {
        /// Why.
        reason: Words,
        /// How many effects were done.
        done: usize,
    },
    /// It stopped in this way and can be resumed.
    Parked(String),
    /// It is over, in this way.
    Ended(String),
    /// A limit is near.
    Warned(String),
    /// This person has the browser.
    TakenOver(String),
    /// The browser is the run's again.
    GivenBack {
        /// Who had it.
        by: String,
        /// For how long.
        took_ms: u64,
        /// What they say.
        words: Option<Words>,
    },
}

/// An entry as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raw {
    /// Its number.
    pub(super) seq: u64,
    /// When it was appended, in UTC milliseconds.
    pub(super) at_ms: i64,
    /// Its kind.
    pub(super) kind: String,
    /// Its payload as JSON, or why there is none.
    pub(super) payload: Words,
}

impl Step {
    /// Tokens and money that were charged in it, child runs included.
    pub(super) fn charged(&self) -> Charge {
        let mut sum = Charge::default();
        let mut add = |tokens: u64, cost: Microdollars| {
            sum.tokens = sum.tokens.saturating_add(tokens);
            sum.cost = sum.cost + cost;
        };
        for item in &self.items {
            match &item.what {
                What::Asked(attempts) => {
                    let replies = attempts.iter().filter_map(|attempt| attempt.came.as_ref());
                    replies.for_each(|reply| add(reply.charged.tokens, reply.charged.cost));
                }
                What::Child(Child {
                    ended: Some((_, spent)),
                    ..
                }) => add(spent.tokens, spent.cost),
                _ => {}
            }
        }
        sum
    }

    /// The words that say best what it is about, on one line.
    pub(super) fn gist(&self, characters: usize) -> String {
        let thought = self.items.iter().find_map(|item| match &item.what {
            What::Thought { words, .. } if !words.is_blank() => Some(words.gist(characters)),
            _ => None,
        });
        let told = || {
            self.items.iter().find_map(|item| match &item.what {
                What::Called(call) => call.arguments.first().map(|a| a.value.gist(characters)),
                _ => None,
            })
        };
        thought.or_else(told).unwrap_or_default()
    }
}
