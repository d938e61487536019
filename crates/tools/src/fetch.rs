//! The tool `fetch`: a page of the web as readable text.
//!
//! It reads only, and only from public hosts: the author of a page must not reach hosts that only
//! this machine can reach.

mod body;
mod html;
pub(crate) mod visit;

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use gyrus_contract::{
    Boxed, Cleared, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use serde::Deserialize;
use serde_json::json;

use self::{
    body::Kind,
    visit::{MAX_BODY_BYTES, Page},
};
use crate::{
    arguments,
    background::{self, Patience},
    failure::{self, Failure},
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

const EXAMPLE: &str = r#"{"url": "https://www.rust-lang.org/"}"#;

/// Fetches pages.
pub struct Fetch {
    spec: ToolSpec,
    allowed: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    max_bytes: Option<usize>,
}

impl Fetch {
    /// Creates the tool for public hosts.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        Self::allowing([])
    }

    /// Creates the tool for public hosts and for these hosts, names or addresses as written in a
    /// URL, which may have any address, such as those in the person's own network.
    pub fn allowing(hosts: impl IntoIterator<Item = String>) -> Self {
        let spec = ToolSpec {
            name: "fetch".to_owned(),
            description: format!(
                "Gets a page from the web and returns it as readable text with its links: HTML \
                 converted, text and JSON as they are, PNG, JPEG and WebP pictures shown, other \
                 files only described. Reads at most {} MB, follows redirects on the same host, runs no scripts, \
                 sends no cookies, reaches public hosts only. Prefer it to `curl` or `wget` in \
                 the shell, but for downloading files.",
                MAX_BODY_BYTES >> 20
            ),
            parameters: arguments::schema(
                json!({
                    "url": {
                        "type": "string",
                        "description": "The whole address, with http:// or https://."
                    },
                    "max_bytes": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_TEXT_BYTES,
                        "description": format!(
                            "How much text to return. Default: {DEFAULT_TEXT_BYTES}."
                        )
                    }
                }),
                &["url"],
            ),
            touches: vec![Touch::Connects("url".to_owned())],
            repeat: Repeat::Freely,
        };
        let hosts = hosts.into_iter();
        let allowed = hosts.map(|host| host.to_ascii_lowercase()).collect();
        Self { spec, allowed }
    }

    async fn run(&self, call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
        let Arguments { url, max_bytes } = arguments::parse(call, EXAMPLE)?;
        let url = visit::parse(&url)?;
        let limit = max_bytes
            .unwrap_or(DEFAULT_TEXT_BYTES)
            .clamp(1, MAX_TEXT_BYTES);
        let visit = visit::visit(url.clone(), &self.allowed);
        let page = tokio::time::timeout(TIME_LIMIT, visit)
            .await
            .map_err(|_| {
                Failure::new(format!(
                    "`{url}` did not answer completely within {} seconds",
                    TIME_LIMIT.as_secs()
                ))
            })??;
        answer(page, limit, site).await
    }
}

impl Tool for Fetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(self.run(&call, site).await) })
    }
}

async fn answer(page: Page, limit: usize, site: &dyn Site) -> Result<ToolOutput, Failure> {
    let mut text = heading(&page);
    if let Some(other) = &page.leads_to {
        let _ = write!(
            text,
            "[leads to another host, which was not asked: {other}\nTo go there, fetch that address.]"
        );
        return Ok(ToolOutput::read(text));
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
            let content = background::work(READING_LIMIT, move |patience| {
                content(page, limit, patience)
            });
            text.push_str(&content.await);
        }
    }
    Ok(ToolOutput {
        images,
        is_error,
        ..ToolOutput::read(text)
    })
}

/// Returns the lines with the address, redirects and type of the answer.
fn heading(page: &Page) -> String {
    let mut text = format!("{}\n", page.url);
    for from in &page.redirected_from {
        let _ = writeln!(text, "[redirected from {from}]");
    }
    let kind = match page.content_type.as_str() {
        "" => "no content type",
        kind => gyrus_text::first_bytes(kind, 100),
    };
    let cut = match page.is_cut {
        true => "; only the first were read",
        false => "",
    };
    let more = if page.is_cut { "more than " } else { "" };
    let (status, size) = (page.status, page.body.len());
    let _ = writeln!(text, "status {status}, {kind}, {more}{size} bytes{cut}\n");
    text
}

/// Returns the text of a page, in at most `limit` bytes and a note.
fn content(page: Page, limit: usize, patience: &Patience) -> String {
    let Page {
        url,
        content_type,
        encoding,
        body,
        is_cut,
        ..
    } = page;
    let (body, is_damaged) = match body::unpack(body, &encoding) {
        Ok(unpacked) => unpacked,
        Err(why) => return format!("(not shown: {why})"),
    };
    if body.is_empty() {
        return "(no content)".to_owned();
    }
    let kind = body::kind(&content_type, &body);
    if kind == Kind::Other {
        return "(not text, so not shown; to have the file, download it in the shell)".to_owned();
    }
    let (decoded, characters) = body::decode(&body, &content_type, kind);
    let (mut text, is_longer) = match kind {
        Kind::Html => {
            let rendered = html::text(&decoded, &url, limit, patience);
            (rendered.text, rendered.is_cut)
        }
        Kind::Text | Kind::Other => (decoded, false),
    };
    if text.trim().is_empty() {
        text = "(no text: the page may be made by scripts, which are not run)".to_owned();
    }
    let is_longer = is_longer || text.len() > limit;
    text.truncate(gyrus_text::first_bytes(&text, limit).len());
    let shown = text.len();
    if characters != "UTF-8" {
        let _ = write!(text, "\n[converted from {characters}]");
    }
    if is_longer && limit < MAX_TEXT_BYTES {
        let _ = write!(
            text,
            "\n[cut after {shown} bytes of text, there is more; `max_bytes` may be up to \
             {MAX_TEXT_BYTES}]"
        );
    } else if is_longer || is_cut || is_damaged {
        let _ = write!(
            text,
            "\n[cut after {shown} bytes of text; to have the rest, download it in the shell]"
        );
    }
    text
}
