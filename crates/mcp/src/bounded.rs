//! A reader that bounds the length of every message.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum bytes of a message. A longer one ends the connection.
pub(crate) const MAX_MESSAGE: usize = 8 << 20;

/// Reason why a connection ended, once it is known.
pub(crate) type EndReason = Arc<OnceLock<String>>;

/// Reader that passes on lines within the limit.
pub(crate) struct LineLimit<R> {
    from: R,
    /// Bytes since the last line ended.
    length: usize,
    why: EndReason,
}

impl<R> LineLimit<R> {
    pub(crate) fn new(from: R, why: EndReason) -> Self {
        Self {
            from,
            length: 0,
            why,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimit<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.from).poll_read(context, into);
        if let Poll::Ready(Ok(())) = read {
            let new = &into.filled()[before..];
            self.length = match new.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => new.len() - end - 1,
                None => self.length + new.len(),
            };
            if self.length > MAX_MESSAGE {
                let why = format!("it sent a message of more than {MAX_MESSAGE} bytes");
                let _ = self.why.set(why.clone());
                return Poll::Ready(Err(io::Error::other(why)));
            }
        }
        read
    }
}
