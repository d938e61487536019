//! The screen that a person has, as their page uses it.

use std::sync::Arc;

use axum::body::Bytes;
use gyrus_contract::BoxedFuture;
use tokio::sync::mpsc;

use super::{desk::TakeoverDesk, did::Did};

/// A screen in a person's control.
pub(crate) trait TakenScreen: Send + Sync {
    /// Returns the width and the height at the beginning, in the pixels of its inputs.
    fn size(&self) -> (u32, u32);

    /// Sends pictures, and the data around them, until the receiver is gone.
    fn show(
        self: Arc<Self>,
        desk: Arc<TakeoverDesk>,
        out: mpsc::Sender<Bytes>,
    ) -> BoxedFuture<'static, ()>;

    /// Carries an input of the person out; the error says why it could not.
    fn forward<'a>(
        &'a self,
        desk: &'a TakeoverDesk,
        did: Did,
    ) -> BoxedFuture<'a, Result<(), String>>;
}
