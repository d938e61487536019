//! The held requests of a page, as the state knows them.

use gyrus_contract::{Aimed, HeldRequest};

use crate::sent::ExpectedForm;

/// A request that the browser paused for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The session that reported it, which gets the answer.
    pub(crate) session: String,
    /// Id in the Fetch domain.
    pub(crate) id: String,
}

/// The time between an input and the next look.
#[derive(Debug)]
pub(crate) struct Wake {
    /// Origins to which a page may send.
    pub(crate) allowed: Vec<String>,
    /// The last document whose requests are held; `None`: those of later documents are held too.
    pub(crate) up_to: Option<u32>,
    /// Whether the present documents may send one form only.
    pub(crate) sends: MaySend,
    /// Name of the tool that caused it.
    pub(crate) by: String,
    /// The link, if the input was judged as one that only goes somewhere: then every request that
    /// does more than fetch is held, wherever it goes.
    pub(crate) link: Option<Aimed>,
}

/// The data that the present documents may send.
#[derive(Debug)]
pub(crate) enum MaySend {
    /// Anything, to the origins that are allowed.
    Anything,
    /// Anything that does not contradict this form, which was judged.
    LikeForm(ExpectedForm),
    /// Nothing yet: the form is measured just before the input.
    NothingYet,
    /// This form, once; all else is blocked.
    Form(ExpectedForm),
    /// Nothing more: the form was sent.
    NothingMore,
}

/// A request that is held.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) shown: HeldRequest,
    pub(crate) id: Stopped,
    /// Its id in the Network domain.
    pub(super) network: Option<String>,
    pub(crate) frame: String,
    /// The link that was followed, and did this.
    pub(crate) link: Option<Aimed>,
    pub(super) turns: u32,
    /// Whether it was blocked because no answer came in time.
    pub(super) is_over: bool,
}

/// The held requests, and their results.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) wake: Option<Wake>,
    pub(super) all: Vec<Holding>,
    /// Number of requests held so far.
    pub(crate) counted: u32,
    /// Number of requests blocked since the last look: noise, and those beyond the maximum.
    pub(super) blocked: u32,
    /// Number of requests blocked since the last action began, because they were not the form that
    /// may be sent.
    pub(super) not_the_form: u32,
    /// Requests to block with the browser's next event.
    pub(super) to_block: Vec<Stopped>,
}

impl Holdings {
    pub(super) fn end(&mut self, of: impl Fn(&Holding) -> bool) {
        for one in &mut self.all {
            if !one.is_over && of(one) {
                one.is_over = true;
                self.to_block.push(one.id.clone());
            }
        }
    }
}
