//! Spoken words as text, by a server that has the widespread endpoint `/audio/transcriptions`: one on
//! this machine, or a provider's.

use std::time::Duration;

use gyrus_net::{causes, client_builder};
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::Deserialize;

use crate::multipart::Multipart;

/// Time for a connection, and for a whole answer: a slow machine may take long.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(180);

/// The longest answer in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// A server that transcribes speech.
pub struct Transcription {
    client: Client,
    url: Url,
    model: String,
    key: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Transcript {
    text: String,
}

impl Transcription {
    /// Creates a client for the base address of an API, such as `http://127.0.0.1:8080/v1`.
    ///
    /// # Errors
    /// A message if the address or the key cannot be used.
    pub fn new(base: &str, model: &str, key: Option<&str>) -> Result<Self, String> {
        let address = format!("{}/audio/transcriptions", base.trim_end_matches('/'));
        let url: Url = address
            .parse()
            .map_err(|error| format!("invalid `url`: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("invalid `url`: it begins with http:// or https://".to_owned());
        }
        let builder = client_builder(&url, CONNECT_WITHIN).map_err(|error| causes(&error))?;
        let client = builder.timeout(ANSWER_WITHIN).build();
        let key = key.map(|key| {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            value.map_err(|_| "the key has characters that no key has".to_owned())
        });
        Ok(Self {
            client: client.map_err(|error| causes(&error))?,
            url,
            model: model.to_owned(),
            key: key.transpose()?,
        })
    }

    /// Returns the words of a recording.
    pub(crate) async fn words(&self, name: &str, bytes: &[u8]) -> Result<String, String> {
        let body = Multipart::new()
            .field("model", &self.model)
            .field("response_format", "json")
            .file("file", name, "audio/ogg", bytes);
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, body.content_type());
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let sent = request.body(body.bytes()).send().await;
        let mut answer = sent.map_err(|error| causes(&error.without_url()))?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = answer
            .chunk()
            .await
            .map_err(|error| causes(&error.without_url()))?
        {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_ANSWER {
                return Err("its answer is too long".to_owned());
            }
        }
        if !status.is_success() {
            return Err(format!("it answered {status}"));
        }
        let transcript: Transcript = serde_json::from_slice(&bytes)
            .map_err(|_| "its answer is not a transcript".to_owned())?;
        Ok(transcript.text.trim().to_owned())
    }
}
