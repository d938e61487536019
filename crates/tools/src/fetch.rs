//! The tool `fetch`: a page of the web as readable text.
//!
//! It reads only, and only from public hosts: the author of a page must not reach hosts that only
//! this machine can reach.

mod body;
mod html;
pub(crate) mod visit;

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use gyrus_contract::{Arguments, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{body::BodyKind, visit::FetchAnswer};
use crate::{
    background::{self, Deadline},
    failure::ToolFailure,
    picture,
};

/// Default bytes of text in an answer.
const DEFAULT_TEXT_BYTES: usize = 50_000;

/// Maximum bytes of text in an answer.
const MAX_TEXT_BYTES: usize = 200_000;

/// Time limit of one call, redirects included.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Time limit for converting the body to text.
const READING_LIMIT: Duration = Duration::from_secs(10);

/// Fetches pages.
pub struct Fetch {
    allowed: BTreeSet<String>,
}

/// Gets a page of the public web as text with links, or a picture; no scripts, no cookies.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchArguments {
    url: String,
    /// Default: 50000.
    #[schemars(range(min = 1, max = MAX_TEXT_BYTES))]
    max_bytes: Option<usize>,
}

impl Arguments for FetchArguments {
    const TOOL: &'static str = "fetch";
    const EXAMPLE: &'static str = r#"{"url": "https://www.rust-lang.org/"}"#;
}

#[derive(Serialize)]
struct FetchedPage {
    url: String,
    status: u16,
    /// The text of the page; empty for a picture and other files.
    text: String,
    /// The address on another host to which the page redirects, which was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
}

impl Fetch {
    /// Creates the tool for public hosts.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        Self::allowing([])
    }

    /// Creates the tool for public hosts and for the named hosts, which may have any address, such
    /// as one in the person's own network.
    pub fn allowing(hosts: impl IntoIterator<Item = String>) -> Self {
        let hosts = hosts.into_iter();
        let allowed = hosts.map(|host| host.to_ascii_lowercase()).collect();
        Self { allowed }
    }
}

impl TypedTool for Fetch {
    type Arguments = FetchArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Connects("url".to_owned())]
    }

    async fn run(
        &self,
        arguments: FetchArguments,
        _call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let FetchArguments { url, max_bytes } = arguments;
        let url = visit::parse(&url)?;
        let limit = max_bytes
            .unwrap_or(DEFAULT_TEXT_BYTES)
            .clamp(1, MAX_TEXT_BYTES);
        let visit = visit::visit(url.clone(), &self.allowed, site);
        let page = tokio::time::timeout(TIME_LIMIT, visit)
            .await
            .map_err(|_| {
                ToolFailure::new(format!(
                    "`{url}` did not answer completely within {} seconds",
                    TIME_LIMIT.as_secs()
                ))
            })??;
        answer(page, limit, site).await
    }
}

async fn answer(
    page: FetchAnswer,
    limit: usize,
    site: &dyn Site,
) -> Result<ToolOutput, ToolFailure> {
    let mut text = heading(&page);
    let mut value = FetchedPage {
        url: page.url.to_string(),
        status: page.status.as_u16(),
        text: String::new(),
        leads_to: page.leads_to.as_ref().map(ToString::to_string),
    };
    if let Some(other) = &page.leads_to {
        let _ = write!(
            text,
            "[leads to another host, which was not asked: {other}\nTo go there, fetch that address.]"
        );
        return Ok(ToolOutput::read(text).with_value(&value));
    }
    let is_error = !page.status.is_success();
    let mut images = Vec::new();
    match picture::PictureHeader::read(&page.body).filter(|_| !page.is_cut) {
        Some(header) if page.encoding.is_empty() => {
            let (words, image) = picture::keep(header, &page.body, site)?;
            text.push_str(&words);
            images.extend(image);
        }
        _ => {
            let content = background::work(READING_LIMIT, move |deadline| {
                content(page, limit, deadline)
            });
            let (content, notes) = content.await;
            text.push_str(&content);
            text.push_str(&notes);
            value.text = content;
        }
    }
    Ok(ToolOutput {
        images,
        is_error,
        ..ToolOutput::read(text).with_value(&value)
    })
}

/// Returns the lines with the address, redirects and type of the answer.
fn heading(page: &FetchAnswer) -> String {
    let mut text = format!("{}\n", page.url);
    for from in &page.redirected_from {
        let _ = writeln!(text, "[redirected from {from}]");
    }
    let kind = match page.content_type.as_str() {
        "" => "no content type",
        kind => gyrus_text::first_bytes(kind, 100),
    };
    let cut = if page.is_cut {
        "; only the first were read"
    } else {
        ""
    };
    let more = if page.is_cut { "more than " } else { "" };
    let (status, size) = (page.status, page.body.len());
    let _ = writeln!(text, "status {status}, {kind}, {more}{size} bytes{cut}\n");
    text
}

/// Returns the text of a page, in at most `limit` bytes, and notes about it.
fn content(page: FetchAnswer, limit: usize, deadline: &Deadline) -> (String, String) {
    let FetchAnswer {
        url,
        content_type,
        encoding,
        body,
        is_cut,
        ..
    } = page;
    let (body, is_damaged) = match body::unpack(body, &encoding) {
        Ok(unpacked) => unpacked,
        Err(why) => return (String::new(), format!("(not shown: {why})")),
    };
    if body.is_empty() {
        return (String::new(), "(no content)".to_owned());
    }
    let kind = body::kind(&content_type, &body);
    if kind == BodyKind::Other {
        let note = "(not text, so not shown; to have the file, download it in the shell)";
        return (String::new(), note.to_owned());
    }
    let (decoded, characters) = body::decode(&body, &content_type, kind);
    let (mut text, is_longer) = match kind {
        BodyKind::Html => {
            let rendered = html::text(&decoded, &url, limit, deadline);
            (rendered.text, rendered.is_cut)
        }
        BodyKind::Text | BodyKind::Other => (decoded, false),
    };
    let mut notes = String::new();
    if text.trim().is_empty() {
        text.clear();
        notes.push_str("(no text: the page may be made by scripts, which are not run)");
    }
    let is_longer = is_longer || text.len() > limit;
    text.truncate(gyrus_text::first_bytes(&text, limit).len());
    let shown = text.len();
    if characters != "UTF-8" {
        let _ = write!(notes, "\n[converted from {characters}]");
    }
    if is_longer && limit < MAX_TEXT_BYTES {
        let _ = write!(
            notes,
            "\n[cut after {shown} bytes of text, there is more; `max_bytes` may be up to \
             {MAX_TEXT_BYTES}]"
        );
    } else if is_longer || is_cut || is_damaged {
        let _ = write!(
            notes,
            "\n[cut after {shown} bytes of text; to have the rest, download it in the shell]"
        );
    }
    (text, notes)
}
