//! The held requests of a page, as the state knows them.

use std::time::{Duration, Instant};

use gyrus_contract::{AimedElement, HeldRequest};

use crate::sent::ExpectedForm;

/// A request that the browser has paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterceptedRequest {
    /// The session of the request, which gets the answer.
    pub(crate) session: String,
    /// Id in the Fetch domain.
    pub(crate) id: String,
}

/// The time between an input and the next look, slightly longer after a link.
#[derive(Debug)]
pub(crate) struct Wake {
    /// Origins to which a page may send.
    pub(crate) allowed: Vec<String>,
    /// The last document whose requests are held; `None` if those of later documents are held too.
    pub(crate) up_to: Option<u32>,
    /// The data that the present documents may send.
    pub(crate) sends: MaySend,
    /// Name of the tool whose call caused the requests.
    pub(crate) by: String,
    /// The link, if the input was judged as one that only goes somewhere: then every request that
    /// does more than fetch is held, wherever it goes.
    pub(crate) link: Option<AimedElement>,
    /// The address of that link.
    pub(crate) link_to: Option<String>,
    /// The end of the time, once the page was looked at.
    pub(crate) until: Option<Instant>,
}

/// Time after a look for which requests of a link are held: scripts do some things by a timer.
const AFTER_LOOK: Duration = Duration::from_secs(2);

/// The data that the present documents may send.
#[derive(Debug)]
pub(crate) enum MaySend {
    /// Any data may go to the allowed origins.
    Anything,
    /// Anything that does not contradict this judged form.
    LikeForm(ExpectedForm),
    /// Nothing yet, because the form is measured just before the input.
    NothingYet,
    /// This form, once, and nothing else.
    Form(ExpectedForm),
    /// Nothing more, because the form was sent.
    NothingMore,
}

#[derive(Debug, Clone)]
pub(crate) struct RequestHold {
    pub(crate) shown: HeldRequest,
    pub(crate) id: InterceptedRequest,
    /// The request's id in the Network domain.
    pub(super) network: Option<String>,
    pub(crate) frame: String,
    /// The followed link that caused the request.
    pub(crate) link: Option<AimedElement>,
    pub(super) turns: u32,
    /// Whether the request was blocked because no answer came in time.
    pub(super) is_over: bool,
}

/// The held requests, and their results.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) wake: Option<Wake>,
    pub(super) all: Vec<RequestHold>,
    /// Number of requests held so far.
    pub(crate) counted: u32,
    /// Number of requests blocked since the last look: noise, and those beyond the maximum.
    pub(super) blocked: u32,
    /// Number of requests blocked since the last action began, because they were not the form that
    /// may be sent.
    pub(super) not_the_form: u32,
    /// Requests to block with the browser's next event.
    pub(super) to_block: Vec<InterceptedRequest>,
}

impl Holdings {
    /// Ends the time between an input and a look.
    pub(crate) fn looked(&mut self) {
        match &mut self.wake {
            Some(wake) if wake.link.is_some() => {
                wake.sends = MaySend::Anything;
                wake.until
                    .get_or_insert_with(|| Instant::now() + AFTER_LOOK);
            }
            Some(_) | None => self.wake = None,
        }
    }

    /// Forgets the input once its time is over.
    pub(super) fn forget_old(&mut self) {
        let until = self.wake.as_ref().and_then(|wake| wake.until);
        if until.is_some_and(|until| until < Instant::now()) {
            self.wake = None;
        }
    }

    pub(super) fn end(&mut self, of: impl Fn(&RequestHold) -> bool) {
        for one in &mut self.all {
            if !one.is_over && of(one) {
                one.is_over = true;
                self.to_block.push(one.id.clone());
            }
        }
    }
}
