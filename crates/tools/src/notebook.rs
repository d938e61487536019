//! Jupyter notebooks as text ([nbformat 4](https://nbformat.readthedocs.io/en/latest/format_description.html)):
//! each cell with its number and kind, then the text of its outputs.

use std::fmt::Write as _;

use serde::Deserialize;

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: NotebookText,
    #[serde(default)]
    outputs: Vec<NotebookOutput>,
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum NotebookText {
    Whole(String),
    Parts(Vec<String>),
    #[default]
    None,
}

impl NotebookText {
    fn text(&self) -> String {
        match self {
            NotebookText::Whole(text) => text.clone(),
            NotebookText::Parts(parts) => parts.concat(),
            NotebookText::None => String::new(),
        }
    }
}

#[derive(Deserialize)]
struct NotebookOutput {
    #[serde(default)]
    text: NotebookText,
    evalue: Option<String>,
    #[serde(default)]
    data: Data,
}

#[derive(Deserialize, Default)]
struct Data {
    #[serde(rename = "text/plain", default)]
    plain: NotebookText,
    #[serde(rename = "image/png")]
    picture: Option<serde::de::IgnoredAny>,
}

/// Returns the text of a notebook; one of an old format, or that is none, is returned as it stands.
pub(crate) fn text_of(content: &[u8]) -> String {
    let Ok(notebook) = serde_json::from_slice::<Notebook>(content) else {
        return String::from_utf8_lossy(content).into_owned();
    };
    let mut text = String::new();
    for (number, cell) in (1..).zip(&notebook.cells) {
        let _ = writeln!(text, "--- cell {number}: {} ---", cell.cell_type);
        let _ = writeln!(text, "{}", cell.source.text().trim_end());
        for output in &cell.outputs {
            let mut shown = output.text.text() + &output.data.plain.text();
            shown.push_str(output.evalue.as_deref().unwrap_or_default());
            if output.data.picture.is_some() {
                shown.push_str("\n(a picture)");
            }
            let _ = writeln!(text, "--- output of cell {number} ---\n{}", shown.trim());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_outputs_are_text() {
        let notebook = r##"{"cells": [
            {"cell_type": "markdown", "source": "# Honey\n"},
            {"cell_type": "code", "source": ["a = 1\n", "a"], "metadata": {},
             "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["1"]}},
                         {"output_type": "display_data", "data": {"image/png": "iVBO", "text/plain": "fig"}},
                         {"output_type": "error", "ename": "E", "evalue": "no bees", "traceback": []}]}
        ], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}"##;
        let text = text_of(notebook.as_bytes());
        assert_eq!(
            text,
            "--- cell 1: markdown ---\n# Honey\n--- cell 2: code ---\na = 1\na\n\
             --- output of cell 2 ---\n1\n--- output of cell 2 ---\nfig\n(a picture)\n\
             --- output of cell 2 ---\nno bees\n"
        );
        assert_eq!(text_of(b"{\"cells\": 3}"), "{\"cells\": 3}");
    }
}
