//! The tool `search_docs`: finds the passages of a folder's documents that are about a question.
//!
//! Nothing is indexed beforehand: a folder of documents is read within a second, and an index could
//! only be out of date.

use std::{fmt::Write as _, time::Duration};

use gyrus_contract::{Arguments, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool};
use gyrus_search::Ranking;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    background::{self, Deadline},
    documents::Documents,
    failure::ToolFailure,
    place::AccessPlace,
    walk::shown,
};

/// Length in bytes after which a passage ends with the current paragraph.
const PASSAGE_BYTES: usize = 800;

/// Maximum number of bytes of a passage in the output.
const SHOWN_BYTES: usize = 2_000;

const DEFAULT_PASSAGES: usize = 5;

const MAX_PASSAGES: usize = 20;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Searches documents.
pub struct SearchDocs;

/// Finds the passages of documents (text files of a folder) that are most about a question, by
/// its words, best first, each with its place. Use it to find out what the documents say; use
/// `search` for exact text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchDocsArguments {
    /// The words to look for: a few that the passage would have.
    query: String,
    /// The folder, relative to the workspace or absolute.
    #[serde(rename = "path")]
    _path: String,
    /// Default: 5.
    #[schemars(range(min = 1, max = MAX_PASSAGES))]
    max_passages: Option<usize>,
}

#[derive(Serialize)]
struct Passages {
    passages: Vec<Passage>,
}

#[derive(Serialize)]
struct Passage {
    /// The document and the line.
    at: String,
    text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

impl Arguments for SearchDocsArguments {
    const TOOL: &'static str = "search_docs";
    const EXAMPLE: &'static str = r#"{"query": "clock tree skew limits", "path": "docs"}"#;
}

impl TypedTool for SearchDocs {
    type Arguments = SearchDocsArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Reads("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: SearchDocsArguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let SearchDocsArguments {
            query,
            max_passages,
            ..
        } = arguments;
        let most = max_passages
            .unwrap_or(DEFAULT_PASSAGES)
            .clamp(1, MAX_PASSAGES);
        let found = PassageList::about(&query);
        if found.ranking.asks_nothing() {
            let words = "`query` has no word in it; give a few words that the passage would have";
            return Err(ToolFailure::new(words));
        }
        let place = AccessPlace::of(call, site.workspace())?;
        let documents = Documents::below(&place)?;
        let given = place.given().to_owned();
        let text = background::work(TIME_LIMIT, move |deadline| {
            in_folder(documents, &given, found, most, deadline)
        });
        let (text, passages) = text.await;
        Ok(ToolOutput::read(text).with_value(&Passages { passages }))
    }
}

/// Passages about a query, with their places.
struct PassageList {
    ranking: Ranking,
    passages: Vec<(String, String)>,
}

impl PassageList {
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

    /// Returns the best passages, each within its maximum length.
    fn best(&self, most: usize) -> Vec<Passage> {
        let best = self.ranking.best().into_iter().take(most);
        best.map(|number| {
            let (at, passage) = &self.passages[number];
            let shown = gyrus_text::first_bytes(passage, SHOWN_BYTES);
            Passage {
                at: at.clone(),
                text: shown.trim_end().to_owned(),
                cut: shown.len() < passage.len(),
            }
        })
        .collect()
    }

    fn text(&self, best: &[Passage], most: usize) -> String {
        let mut text = String::new();
        for Passage {
            at,
            text: passage,
            cut,
        } in best
        {
            let more = if *cut { " […]" } else { "" };
            let _ = write!(text, "{at}\n{passage}{more}\n\n");
        }
        let count = self.ranking.best().len();
        if count == 0 {
            text.push_str("(no passage has any of these words)\n");
        } else if count > most {
            let _ = writeln!(text, "[{most} of {count} passages]");
        }
        text
    }
}

fn in_folder(
    mut documents: Documents,
    given: &str,
    mut found: PassageList,
    most: usize,
    deadline: &Deadline,
) -> (String, Vec<Passage>) {
    while let Some(document) = documents.next(deadline) {
        found.add(&shown(given, &document.path), &document.text);
    }
    let best = found.best(most);
    (found.text(&best, most) + &documents.note(), best)
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
