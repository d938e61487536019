//! A proposed patch as parts that a person keeps or leaves out, each by a tick.

use std::collections::HashMap;

use gyrus_contract::path_of_header;
use gyrus_surfaces::page::whole_patch;
use gyrus_text::counted;
use maud::{Markup, html};

#[derive(Debug, Default, PartialEq, Eq)]
struct PatchFile {
    /// The remarks above the file's header, and the header.
    head: String,
    /// The file's hunks, each from its `@@` line on.
    hunks: Vec<String>,
}

impl PatchFile {
    fn path(&self) -> String {
        let header = self.head.lines().find(|line| line.starts_with("diff "));
        header.and_then(path_of_header).unwrap_or_default()
    }

    fn remarks(&self) -> impl Iterator<Item = &str> {
        let remarks = self.head.lines().filter_map(|line| line.strip_prefix('#'));
        remarks.map(str::trim)
    }

    /// Returns the rest of the header, with lines about a created, deleted or executable file.
    fn header(&self) -> String {
        let lines = self.head.lines();
        let said = lines.filter(|line| {
            !["#", "diff ", "--- ", "+++ "]
                .iter()
                .any(|start| line.starts_with(start))
                && !line.is_empty()
        });
        said.collect::<Vec<_>>().join("\n")
    }
}

/// A patch, split into files and hunks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunks {
    /// The remarks about the whole.
    summary: String,
    files: Vec<PatchFile>,
}

impl Hunks {
    /// Returns the parts of a card's text, if it is a patch.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut hunks = Self::default();
        // Remarks and blank lines, which belong to what follows them.
        let mut between = String::new();
        for line in text.split_inclusive('\n') {
            let is_between = line.trim_end().is_empty() || line.starts_with('#');
            if line.starts_with("diff ") {
                hunks.files.push(PatchFile {
                    head: std::mem::take(&mut between) + line,
                    hunks: Vec::new(),
                });
            } else if is_between {
                between.push_str(line);
                if hunks.files.is_empty() && line.trim_end().is_empty() {
                    hunks.summary.push_str(&std::mem::take(&mut between));
                }
            } else {
                let file = hunks.files.last_mut()?;
                if line.starts_with("@@") {
                    file.hunks.push(String::new());
                }
                let part = file.hunks.last_mut().unwrap_or(&mut file.head);
                part.push_str(&std::mem::take(&mut between));
                part.push_str(line);
            }
        }
        (!hunks.files.is_empty()).then_some(hunks)
    }

    /// Returns the patch with the ticked parts only. A file of which nothing is left is left out.
    pub(super) fn ticked(&self, ticks: &HashMap<String, String>) -> String {
        let is_ticked = |file: usize, hunk: usize| ticks.contains_key(&name(file, hunk));
        let mut text = self.summary.clone();
        for (number, file) in self.files.iter().enumerate() {
            let kept = (0..file.hunks.len()).filter(|hunk| is_ticked(number, *hunk));
            let kept: Vec<usize> = kept.collect();
            if kept.is_empty() && !(file.hunks.is_empty() && is_ticked(number, 0)) {
                continue;
            }
            if !text.is_empty() && !text.ends_with("\n\n") {
                text.push('\n');
            }
            text.push_str(file.head.trim_start_matches('\n'));
            for hunk in kept {
                text.push_str(&file.hunks[hunk]);
            }
        }
        text
    }

    /// Draws all parts of the patch, each with a checkbox.
    pub(super) fn fields(&self) -> Markup {
        let count: usize = self.files.iter().map(|file| file.hunks.len().max(1)).sum();
        html! {
            input type="hidden" name="ticked" value="yes";
            p.label {
                "as written by the model (unverified): " (counted(count, "part")) " of "
                (counted(self.files.len(), "file")) "; what you leave unticked is not done"
            }
            @for remark in self.summary.lines().filter_map(|line| line.strip_prefix('#')) {
                p.said-of-it { (remark.trim()) }
            }
            @for (number, file) in self.files.iter().enumerate() {
                fieldset.file {
                    legend { code { (file.path()) } }
                    @for remark in file.remarks() { p.said-of-it { (remark) } }
                    @let header = file.header();
                    @if file.hunks.is_empty() {
                        (tick(&name(number, 0), "the file", &header))
                    } @else {
                        @if !header.is_empty() { p.said-of-it { (header) } }
                        @for (at, hunk) in file.hunks.iter().enumerate() {
                            @let (head, lines) = hunk.split_once('\n').unwrap_or((hunk, ""));
                            (tick(&name(number, at), head, lines))
                        }
                    }
                }
            }
        }
    }
}

fn name(file: usize, hunk: usize) -> String {
    format!("keep.{file}.{hunk}")
}

/// Draws a checkbox, its label, and the lines below.
fn tick(name: &str, words: &str, lines: &str) -> Markup {
    html! {
        div.hunk {
            p { input type="checkbox" id=(name) name=(name) checked; label for=(name) { code { (words) } } }
            @if !lines.is_empty() { div.untrusted tabindex="0" role="group" aria-label=(words) { (whole_patch(lines)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
# All of it

# why
# made for 00112233445566778899aabbccddeeff
diff --git a/src/a.rs b/src/a.rs
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,2 +1,2 @@
-# old
+# new
 \n+
@@ -9,1 +9,0 @@
-last
\\ No newline at end of file

# empty
diff --git a/src/b.rs b/src/b.rs
new file mode 100644

diff --git a/src/c.bin b/src/c.bin
deleted file mode 100644
index 8b13..0000
GIT binary patch
literal 0
HcmV?d00001

";

    fn ticked(names: &[&str]) -> String {
        let ticks = names
            .iter()
            .map(|name| ((*name).to_owned(), "on".to_owned()));
        Hunks::of(PATCH).unwrap().ticked(&ticks.collect())
    }

    #[test]
    fn what_is_ticked_is_left_as_it_stands() {
        let all = ["keep.0.0", "keep.0.1", "keep.1.0", "keep.2.0"];
        assert_eq!(ticked(&all).trim_end(), PATCH.trim_end());
        let (first, _) = PATCH.split_once("@@ -9").unwrap();
        assert_eq!(ticked(&["keep.0.0"]), first);
        let (head, _) = first.split_once("@@ -1").unwrap();
        let (_, second) = PATCH.split_once("@@ -9").unwrap();
        let (second, rest) = second.split_once("\n\n").unwrap();
        assert_eq!(ticked(&["keep.0.1"]), format!("{head}@@ -9{second}\n"));
        assert_eq!(
            ticked(&all[2..]).trim_end(),
            format!("# All of it\n\n{}", rest.trim_end())
        );
        assert_eq!(ticked(&["keep.9.9"]), "# All of it\n\n");
    }

    #[test]
    fn other_texts_have_no_parts() {
        for text in [
            "",
            "\n",
            "# only words\n",
            "AGENTS.md  # 12 bytes\n",
            "@@ -1 +1 @@\n+a\n",
        ] {
            assert_eq!(Hunks::of(text), None, "{text:?}");
        }
    }
}
