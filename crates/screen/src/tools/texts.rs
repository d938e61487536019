//! Reading the text of a page, of an element, or of a PDF, in pieces.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gyrus_contract::{ExtractCall, ToolOutput};
use gyrus_text::first_bytes;
use serde::Deserialize;

use super::action::{ActionCall, ActionFailure, ScreenToolAction};
use crate::{input::UnusableTarget, state::PageFrame};

/// Maximum bytes and lines of a piece: all of it fits into one turn of a model.
const MAX_PIECE: usize = 6_000;
const MAX_LINES: usize = 200;

/// Maximum bytes of a line; a longer one is taken apart.
const MAX_LINE: usize = 1_000;

#[derive(Deserialize)]
struct ExtractedText {
    text: String,
    pdf: bool,
}

impl ScreenToolAction for ExtractCall {
    const ONLY_READS: bool = true;

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let text = match self.on {
            Some(id) => {
                let frame = doing.frame_of(id)?;
                let ask = format!("gyrus.read({})", id.number);
                let asking = doing.session.ask::<ExtractedText>(&frame, &ask);
                let read = doing.session.unless_held(&doing.tab, asking).await?;
                read.map_err(|_| UnusableTarget::Gone { id })?.text
            }
            None => doing.text_of_page().await?,
        };
        Ok(piece(&text, self.pages))
    }
}

impl ActionCall<'_> {
    /// Returns the text of the main document, and then of its frames; one that does not answer is
    /// left out.
    async fn text_of_page(&self) -> Result<String, ActionFailure> {
        let frames = self.session.state().frames_of(&self.tab);
        let asking = frames
            .iter()
            .map(|(_, frame)| self.session.ask::<ExtractedText>(frame, "gyrus.read(0)"));
        let asking = futures_util::future::join_all(asking);
        let read = self.session.unless_held(&self.tab, asking).await?;
        let mut texts = Vec::new();
        for ((id, frame), read) in frames.iter().zip(read) {
            let is_main = *id == self.tab.target;
            match read {
                Ok(read) if read.pdf => texts.push(self.text_of_pdf(frame).await?),
                Ok(read) if is_main => texts.push(read.text),
                // The viewer of PDFs is one.
                Ok(_) if frame.origin.starts_with("chrome-extension:") => {}
                Ok(read) if !read.text.trim().is_empty() => {
                    texts.push(format!("[a frame of {}]\n{}", frame.origin, read.text));
                }
                Err(error) if is_main => return Err(ActionFailure::Broke(error.to_string())),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(texts.join("\n"))
    }

    /// Returns the text of a PDF, which the browser's own viewer only paints: it is fetched again
    /// as the page it is, mostly from the browser's cache.
    async fn text_of_pdf(&self, frame: &PageFrame) -> Result<String, ActionFailure> {
        let ask = format!("gyrus.bytes({})", gyrus_pdf::MAX_BYTES);
        let asking = self.session.ask::<String>(frame, &ask);
        let fetched = self.session.unless_held(&self.tab, asking).await?;
        let broke = |why: String| ActionFailure::Broke(format!("the PDF: {why}"));
        let fetched = fetched.map_err(|error| broke(error.to_string()))?;
        let bytes = STANDARD.decode(fetched);
        let bytes = bytes.map_err(|error| broke(error.to_string()))?;
        if !bytes.starts_with(gyrus_pdf::MAGIC) {
            return Err(broke(
                "it cannot be fetched again, or is too large".to_owned(),
            ));
        }
        let reading = tokio::task::spawn_blocking(move || gyrus_pdf::text_of(&bytes));
        let read = reading.await.map_err(|error| broke(error.to_string()))?;
        read.map_err(broke)
    }
}

/// Returns a piece of a text, by its number from 1, and says which others there are.
pub(crate) fn piece(text: &str, number: Option<f64>) -> ToolOutput {
    let mut pieces = vec![(String::new(), 0)];
    for line in text.lines().flat_map(parts) {
        let (piece, lines) = pieces.last_mut().expect("there is one");
        if *lines == MAX_LINES || piece.len() + line.len() > MAX_PIECE {
            pieces.push((format!("{line}\n"), 1));
        } else {
            piece.push_str(line);
            piece.push('\n');
            *lines += 1;
        }
    }
    let (number, count) = (number.unwrap_or(1.0).max(1.0), pieces.len());
    let at = (1..=count).find(|at| *at as f64 >= number.floor());
    let text = match at {
        None => format!("[there are only {count} pieces]"),
        Some(at) if count == 1 => pieces.swap_remove(at - 1).0,
        Some(at) => format!("{}[piece {at} of {count}]", pieces[at - 1].0),
    };
    ToolOutput::read(text.trim_end())
}

/// Splits a line into parts of limited length.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        let part = first_bytes(rest, MAX_LINE);
        rest = &rest[part.len()..];
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_text_comes_in_pieces() {
        let long = "é".repeat(1_234);
        let lines: Vec<String> = (1..=700).map(|number| format!("line {number}")).collect();
        let text = format!("{}\n\n  \n{long}\nend", lines.join("\n"));
        let mut all = String::new();
        for number in 1..=4 {
            let told = piece(&text, Some(f64::from(number))).text;
            let end = format!("[piece {number} of 4]");
            all.push_str(told.strip_suffix(&end).unwrap_or_default());
        }
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        assert!(plain(&all) == plain(&text));
        assert_eq!(piece(&text, Some(9.0)).text, "[there are only 4 pieces]");
        assert_eq!(piece("", None).text, "");
    }
}
