//! The bytes of an answer, unpacked where a server packed them although nobody asked for it.

use std::io::Write;

use flate2::write::MultiGzDecoder;
use gyrus_contract::ModelError;
use gyrus_net::causes;
use reqwest::{Response, header::CONTENT_ENCODING};

use crate::errors::{bad, bounded_line};

pub(super) struct ReplyBody {
    response: Response,
    unpacking: Option<MultiGzDecoder<Vec<u8>>>,
}

impl ReplyBody {
    pub(super) fn new(response: Response) -> Result<Self, ModelError> {
        let encoding = response.headers().get(CONTENT_ENCODING);
        let encoding = encoding.map_or(&b"identity"[..], |value| value.as_bytes());
        let unpacking = match encoding.to_ascii_lowercase().trim_ascii() {
            b"" | b"identity" => None,
            b"gzip" | b"x-gzip" => Some(MultiGzDecoder::new(Vec::new())),
            other => {
                let other = bounded_line(&String::from_utf8_lossy(other));
                return Err(bad(format!(
                    "the answer is encoded as `{other}`, which was not asked for"
                )));
            }
        };
        Ok(Self {
            response,
            unpacking,
        })
    }

    /// Returns the next bytes; `None` at the proper end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, String> {
        let chunk = self.response.chunk().await;
        let Some(bytes) = chunk.map_err(|error| in_words(&error))? else {
            return Ok(None);
        };
        let Some(unpacking) = &mut self.unpacking else {
            return Ok(Some(bytes.into()));
        };
        unpacking
            .write_all(&bytes)
            .and_then(|()| unpacking.flush())
            .map_err(|error| format!("its gzip cannot be read: {error}"))?;
        Ok(Some(std::mem::take(unpacking.get_mut())))
    }
}

/// Returns an error of HTTP with its causes as one line.
pub(super) fn in_words(error: &reqwest::Error) -> String {
    bounded_line(&causes(error))
}
