//! Messages to the person's page: each is a length of four bytes, a byte for its type, and its bytes.

use axum::body::Bytes;

/// Type of a message with JSON about the state around the picture.
pub(crate) const WORDS: u8 = 0;

/// Type of a message with a JPEG or a PNG.
pub(crate) const PICTURE: u8 = 1;

/// Returns a message of a type.
pub(crate) fn chunk(kind: u8, bytes: &[u8]) -> Bytes {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut chunk = Vec::with_capacity(bytes.len() + 5);
    chunk.extend(length.to_be_bytes());
    chunk.push(kind);
    chunk.extend(bytes);
    chunk.into()
}
