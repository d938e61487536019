//! The replies of models while they arrive, on their way to whoever shows them.

use std::sync::Arc;

use gyrus_contract::{Purpose, RunId};
use gyrus_kernel::{Live, LivePiece};
use tokio::sync::mpsc;

/// A piece of a model's reply, while it arrives.
#[derive(Debug, Clone)]
pub struct ReplyPiece {
    /// The run that sent the request.
    pub run: RunId,
    /// The purpose of the question.
    pub purpose: Purpose,
    pub said: LivePiece,
}

/// Receives the pieces of replies.
pub type LiveReplies = mpsc::UnboundedReceiver<ReplyPiece>;

/// Returns the sender to which a kernel passes replies as they arrive, and the receiver. A reply is
/// bounded, so the queue is.
pub fn live_replies() -> (Live, LiveReplies) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let live: Live = Arc::new(move |event| {
        // If nobody listens, nothing is lost: all of it comes again as entries.
        let _ = sender.send(ReplyPiece {
            run: event.run,
            purpose: event.purpose,
            said: event.said,
        });
    });
    (live, receiver)
}
