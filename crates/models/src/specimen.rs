//! One protocol, as a simulation that breaks streams uses it.

use gyrus_contract::{ModelError, Reply};

use crate::stream::{ReplyReader, Stream};

/// A protocol's canonical stream, and the reader of such streams.
pub struct Specimen {
    /// Name of the protocol.
    pub name: &'static str,
    /// A whole reply with thinking, text and two calls.
    pub stream: &'static str,
    /// Markers of the end of a reply; every stream that is a reply without content contains one.
    pub closing: &'static [&'static str],
    /// Feeds a fresh reader with the pieces and ends the body.
    pub read: fn(&mut dyn Iterator<Item = &[u8]>) -> Result<Reply, ModelError>,
}

/// Implements [`Specimen::read`] for a reader.
pub(crate) fn read<R: ReplyReader>(
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> Result<Reply, ModelError> {
    let mut stream = Stream::new(R::default());
    for piece in pieces {
        if let Some(reply) = stream.push(piece, &mut |_| {})? {
            return Ok(reply);
        }
    }
    stream.end(&mut |_| {})
}
