//! Patches as diffs of the protocol: the old and the new text of each place that changes.

use std::path::Path;

use serde_json::{Value, json};

/// Returns a diff for each changed part of a patch. Paths are below `folder`. A part that is cut
/// off, or is not text, is left out, since the patch itself is shown beside.
pub(crate) fn of_patch(patch: &str, folder: &Path) -> Vec<Value> {
    let mut diffs = Vec::new();
    let mut reading = PatchReader::default();
    for line in patch.lines() {
        reading.line(line, folder, &mut diffs);
    }
    reading.end_part(folder, &mut diffs);
    diffs
}

#[derive(Default)]
struct PatchReader {
    old_path: Option<String>,
    new_path: Option<String>,
    /// Lines of the old and the new side that are still to come in this part.
    left: (usize, usize),
    old: String,
    new: String,
    is_in_part: bool,
    last: LineSide,
}

#[derive(Clone, Copy, Default)]
enum LineSide {
    #[default]
    Both,
    Old,
    New,
}

impl PatchReader {
    fn line(&mut self, line: &str, folder: &Path, diffs: &mut Vec<Value>) {
        if self.left != (0, 0) {
            self.inside(line);
        } else if let Some(head) = line.strip_prefix("@@ -") {
            self.end_part(folder, diffs);
            if let Some(left) = lengths(head) {
                self.left = left;
                self.is_in_part = true;
            }
        } else if line.starts_with('\\') {
            // "No newline at end of file" is about the line before.
            let ends = |text: &mut String| {
                if text.ends_with('\n') {
                    text.pop();
                }
            };
            match self.last {
                LineSide::Old => ends(&mut self.old),
                LineSide::New => ends(&mut self.new),
                LineSide::Both => {
                    ends(&mut self.old);
                    ends(&mut self.new);
                }
            }
        } else if let Some(path) = line.strip_prefix("--- ") {
            self.end_part(folder, diffs);
            self.old_path = side_path(path, "a/");
        } else if let Some(path) = line.strip_prefix("+++ ") {
            self.new_path = side_path(path, "b/");
        }
    }

    fn inside(&mut self, line: &str) {
        let (sign, text) = match line.split_at_checked(1) {
            Some((sign, text)) => (sign, text),
            // An editor may have removed the space of an empty line.
            None => (" ", ""),
        };
        let mut add = |is_old: bool, is_new: bool| {
            for (is_here, side, left) in [
                (is_old, &mut self.old, &mut self.left.0),
                (is_new, &mut self.new, &mut self.left.1),
            ] {
                if is_here {
                    side.push_str(text);
                    side.push('\n');
                    *left = left.saturating_sub(1);
                }
            }
        };
        match sign {
            " " => {
                add(true, true);
                self.last = LineSide::Both;
            }
            "-" => {
                add(true, false);
                self.last = LineSide::Old;
            }
            "+" => {
                add(false, true);
                self.last = LineSide::New;
            }
            "\\" => {}
            _ => {
                // It is not a patch, or it was cut off.
                self.left = (0, 0);
                self.is_in_part = false;
            }
        }
    }

    fn end_part(&mut self, folder: &Path, diffs: &mut Vec<Value>) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        let is_whole = std::mem::take(&mut self.is_in_part) && self.left == (0, 0);
        self.left = (0, 0);
        let Some(path) = self.new_path.as_ref().or(self.old_path.as_ref()) else {
            return;
        };
        if !is_whole || old == new {
            return;
        }
        let mut diff = json!({"type": "diff", "path": folder.join(path), "newText": new});
        if self.old_path.is_some() {
            diff["oldText"] = json!(old);
        }
        diffs.push(diff);
    }
}

/// Returns the path of one side; `None` if the file does not exist there.
fn side_path(written: &str, prefix: &str) -> Option<String> {
    let path = written.split('\t').next().unwrap_or(written);
    let path = path.strip_prefix(prefix).unwrap_or(path);
    // A quoted path is not what it seems; the patch shows it.
    let is_usable = path != "/dev/null" && !path.starts_with('"') && !path.is_empty();
    is_usable.then(|| path.to_owned())
}

/// Reads `1,3 +1,4 @@`: the numbers of lines of both sides.
fn lengths(head: &str) -> Option<(usize, usize)> {
    let (old, rest) = head.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    Some((length(old)?, length(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patch: &str, expected: &Value) {
        let diffs = Value::from(of_patch(patch, Path::new("/w")));
        assert_eq!(&diffs, expected, "{patch}");
    }

    #[test]
    fn changed_new_and_deleted_files() {
        check(
            "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@ fn\n one\n-two\n+2\n three\n@@ -9 +9 @@\n-x\n+y\n",
            &json!([
                {"type": "diff", "path": "/w/a.rs", "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"},
                {"type": "diff", "path": "/w/a.rs", "oldText": "x\n", "newText": "y\n"},
            ]),
        );
        check(
            "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+--- a\n+b\n\\ No newline at end of file\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            &json!([
                {"type": "diff", "path": "/w/n", "newText": "--- a\nb"},
                {"type": "diff", "path": "/w/gone", "oldText": "x\n", "newText": ""},
            ]),
        );
    }

    #[test]
    fn what_is_cut_off_or_no_patch_gives_none() {
        for patch in [
            "",
            "hello",
            "@@ -1 +1 @@\n-a\n+b\n",
            "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n[the rest of the diff is left out]\n",
            "--- a/x\n+++ b/x\n@@ -1,99999999999999999999 +1 @@\n-a\n",
            "--- \"a/\\303\"\n+++ \"b/\\303\"\n@@ -1 +1 @@\n-a\n+b\n",
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+é\n",
        ] {
            check(patch, &json!([]));
        }
    }
}
