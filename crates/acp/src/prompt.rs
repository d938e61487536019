//! A prompt as a goal and what comes with it. What the person typed is the goal; everything else is
//! data, and exposes the run as a file does.

use base64::Engine as _;
use gyrus_contract::{Origin, Text};
use gyrus_kernel::Attachment;

use crate::{
    host::AcpHost,
    message::RpcError,
    wire::{ContentBlock, Resource},
};

/// Maximum length of a goal in bytes, as for `gyrus run`.
const GOAL_LIMIT: usize = 4 << 20;

/// Maximum length of an attached text in bytes, as for `gyrus run --file`.
const TEXT_LIMIT: usize = 1 << 20;

const MAX_PARTS: usize = 200;

#[derive(Debug)]
pub(crate) struct EditorPrompt {
    /// The text that the person typed, with marks at the places of attachments.
    pub(crate) text: String,
    pub(crate) attachments: Vec<Attachment>,
}

/// Reads the parts of a prompt.
///
/// # Errors
/// A part cannot be used, or nothing is asked.
pub(crate) fn read(host: &dyn AcpHost, parts: Vec<ContentBlock>) -> Result<EditorPrompt, RpcError> {
    if parts.len() > MAX_PARTS {
        let why = format!("the prompt has more than {MAX_PARTS} parts");
        return Err(RpcError::params(why));
    }
    let mut prompt = EditorPrompt {
        text: String::new(),
        attachments: Vec::new(),
    };
    for part in parts {
        match part {
            ContentBlock::Text { text } => prompt.text.push_str(&text),
            ContentBlock::Image { data } => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(data);
                let bytes = bytes.map_err(|error| {
                    RpcError::params(format!("a picture is not valid base64: {error}"))
                })?;
                let picture = host.picture(bytes).map_err(RpcError::params)?;
                prompt.attach(picture);
            }
            ContentBlock::ResourceLink { name, uri } => {
                let place = prompt.next();
                let text = format!("attachment {place} is a reference to {name}: {uri}");
                prompt.attach(text_of(text, uri)?);
            }
            ContentBlock::Resource {
                resource:
                    Resource {
                        uri,
                        text: Some(text),
                    },
            } => {
                let place = prompt.next();
                let text = format!("attachment {place} is {uri}:\n{text}");
                prompt.attach(text_of(text, uri)?);
            }
            ContentBlock::Resource { resource } => {
                let uri = gyrus_text::quote(&resource.uri, 100);
                return Err(RpcError::params(format!("the resource {uri} is not text")));
            }
            ContentBlock::Other => {
                let why = "the prompt has a part that is neither text, a picture nor a resource";
                return Err(RpcError::params(why));
            }
        }
    }
    if prompt.text.len() > GOAL_LIMIT {
        let why = format!("the prompt is longer than {GOAL_LIMIT} bytes");
        return Err(RpcError::params(why));
    }
    if prompt.text.trim().is_empty() {
        return Err(RpcError::params("the prompt is empty"));
    }
    Ok(prompt)
}

impl EditorPrompt {
    fn next(&self) -> usize {
        self.attachments.len() + 1
    }

    /// Adds an attachment, and a mark at this place of the text. The mark has a number alone: names
    /// of files and pages are not the person's words.
    fn attach(&mut self, attachment: Attachment) {
        let space = if self.text.ends_with(char::is_whitespace) || self.text.is_empty() {
            ""
        } else {
            " "
        };
        let place = self.next();
        self.text.push_str(&format!("{space}(attachment {place})"));
        self.attachments.push(attachment);
    }
}

fn text_of(text: String, uri: String) -> Result<Attachment, RpcError> {
    if text.len() > TEXT_LIMIT {
        let uri = gyrus_text::quote(&uri, 100);
        let why = format!("the resource {uri} is longer than {TEXT_LIMIT} bytes");
        return Err(RpcError::params(why));
    }
    let path = uri.strip_prefix("file://").unwrap_or(&uri).to_owned();
    Ok(Attachment::Text(Text::new(text, Origin::File { path })))
}
