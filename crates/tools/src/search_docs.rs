//! The tool `search_docs`: finds the passages of a folder's documents that are about a question.
//!
//! Nothing is indexed beforehand: a folder of documents is read within a second, and an index could
//! only be out of date.

use std::{fmt::Write as _, time::Duration};

use gyrus_contract::{
    Boxed, Cleared, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    arguments,
    background::{self, Patience},
    documents::Documents,
    failure::{self, Failure},
    place::Place,
    rank::Ranking,
    walk::shown,
};

/// Length in bytes after which a passage ends with the current paragraph.
const PASSAGE_BYTES: usize = 800;

/// Maximum bytes shown of a passage.
const SHOWN_BYTES: usize = 2_000;

/// Default number of passages.
const DEFAULT_PASSAGES: usize = 5;

/// Maximum number of passages.
const MAX_PASSAGES: usize = 20;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(10);

const EXAMPLE: &str = r#"{"query": "clock tree skew limits", "path": "docs"}"#;

/// Searches documents.
pub struct SearchDocs {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    /// The raw path is not used; the resolved path of the call is.
    #[serde(rename = "path")]
    _path: String,
    max_passages: Option<usize>,
}

impl SearchDocs {
    /// Creates the tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "search_docs".to_owned(),
            description: "Finds the passages of documents (text files of a folder) that are most \
                          about a question, by its words, best first, each with its place. Use it \
                          to find out what the documents say; use `search` for exact text."
                .to_owned(),
            parameters: arguments::schema(
                json!({
                    "query": {
                        "type": "string",
                        "description": "The words to look for: a few that the passage would have."
                    },
                    "path": {
                        "type": "string",
                        "description": "The folder, relative to the workspace or absolute."
                    },
                    "max_passages": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_PASSAGES,
                        "description": format!("Default: {DEFAULT_PASSAGES}.")
                    }
                }),
                &["query", "path"],
            ),
            touches: vec![Touch::Reads("path".to_owned())],
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

impl Tool for SearchDocs {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(run(&call, site).await) })
    }
}

async fn run(call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
    let Arguments {
        query,
        max_passages,
        ..
    } = arguments::parse(call, EXAMPLE)?;
    let most = max_passages
        .unwrap_or(DEFAULT_PASSAGES)
        .clamp(1, MAX_PASSAGES);
    let found = Found::about(&query);
    if found.ranking.asks_nothing() {
        let words = "`query` has no word in it; give a few words that the passage would have";
        return Err(Failure::new(words));
    }
    let place = Place::of(call, site.workspace())?;
    let documents = Documents::below(&place)?;
    let given = place.given().to_owned();
    let text = background::work(TIME_LIMIT, move |patience| {
        in_folder(documents, &given, found, most, patience)
    });
    Ok(ToolOutput::read(text.await))
}

/// Passages about a query, with their places.
struct Found {
    ranking: Ranking,
    passages: Vec<(String, String)>,
}

impl Found {
    fn about(query: &str) -> Self {
        Self {
            ranking: Ranking::new(query),
            passages: Vec::new(),
        }
    }

    fn add(&mut self, name: &str, text: &str) {
        for (line, passage) in passages(text) {
            // The name of a document says what it is about, too.
            self.ranking.add(&format!("{name} {passage}"));
            self.passages.push((format!("{name}:{line}"), passage));
        }
    }

    fn text(&self, most: usize) -> String {
        let mut text = String::new();
        let best = self.ranking.best();
        for number in best.iter().take(most) {
            let (place, passage) = &self.passages[*number];
            let shown = gyrus_text::first_bytes(passage, SHOWN_BYTES);
            let more = if shown.len() < passage.len() {
                " […]"
            } else {
                ""
            };
            let _ = write!(text, "{place}\n{}{more}\n\n", shown.trim_end());
        }
        if best.is_empty() {
            text.push_str("(no passage has any of these words)\n");
        } else if best.len() > most {
            let _ = writeln!(text, "[{most} of {} passages]", best.len());
        }
        text
    }
}

fn in_folder(
    mut documents: Documents,
    given: &str,
    mut found: Found,
    most: usize,
    patience: &Patience,
) -> String {
    while let Some(document) = documents.next(patience) {
        found.add(&shown(given, &document.path), &document.text);
    }
    found.text(most) + &documents.note()
}

/// Returns the passages of a text, each with the number of its first line: paragraphs, and those
/// that are short together with what follows. A heading begins a passage of its own.
fn passages(text: &str) -> Vec<(usize, String)> {
    let mut passages: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    let mut blank = true;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            blank = true;
            continue;
        }
        let heading = blank && line.starts_with('#');
        let last = passages.last_mut().filter(|_| open && !heading);
        match last {
            Some((_, passage)) if !blank || passage.len() < PASSAGE_BYTES => {
                if blank {
                    passage.push('\n');
                }
                let _ = writeln!(passage, "{line}");
                // A paragraph without an end is cut all the same.
                open = passage.len() < 2 * PASSAGE_BYTES;
            }
            Some(_) | None => {
                passages.push((number, format!("{line}\n")));
                open = true;
            }
        }
        blank = false;
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_follow_headings_and_paragraphs() {
        let long = "word ".repeat(200);
        let text = format!("# One\n\nfirst\nsecond\n\nthird\n\n# Two\n\n{long}\n\nafter\n");
        let found: Vec<_> = passages(&text)
            .into_iter()
            .map(|(line, text)| (line, text.len()))
            .collect();
        assert_eq!(found, [(1, 27), (8, 1_008), (12, 6)]);
        assert_eq!(passages("\n\n"), []);
        let endless = "line\n".repeat(10_000);
        let longest = passages(&endless).iter().map(|(_, text)| text.len()).max();
        assert!(longest.is_some_and(|longest| longest < 3 * PASSAGE_BYTES));
    }
}
