//! Patches as diffs of the protocol: the old and the new text of each place that changes.

use std::{iter::Peekable, path::Path};

use serde_json::{Value, json};

/// Returns a diff for each changed part of a patch. Paths are below `folder`. A part that is cut
/// off, or is not text, is left out, since the patch itself is shown beside.
pub(crate) fn of_patch(patch: &str, folder: &Path) -> Vec<Value> {
    let mut diffs = Vec::new();
    let (mut old_path, mut new_path) = (None, None);
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(path) = line.strip_prefix("--- ") {
            old_path = side_path(path, "a/");
        } else if let Some(path) = line.strip_prefix("+++ ") {
            new_path = side_path(path, "b/");
        } else if let Some(head) = line.strip_prefix("@@ -")
            && let Some((old, new)) = sides(head, &mut lines)
            && let Some(path) = new_path.as_ref().or(old_path.as_ref())
            && old != new
        {
            let mut diff = json!({"type": "diff", "path": folder.join(path), "newText": new});
            if old_path.is_some() {
                diff["oldText"] = json!(old);
            }
            diffs.push(diff);
        }
    }
    diffs
}

/// Reads the old and the new text of a part; `None` if it is cut off, or is not one.
fn sides<'p>(
    head: &str,
    lines: &mut Peekable<impl Iterator<Item = &'p str>>,
) -> Option<(String, String)> {
    let (mut old, mut new) = (String::new(), String::new());
    let (mut old_left, mut new_left) = lengths(head)?;
    while (old_left, new_left) != (0, 0) {
        // An editor may have removed the space of an empty line.
        let (sign, text) = lines.next()?.split_at_checked(1).unwrap_or((" ", ""));
        let (is_old, is_new) = match sign {
            " " => (true, true),
            "-" => (true, false),
            "+" => (false, true),
            _ => return None,
        };
        let has_end = lines.next_if(|next| next.starts_with('\\')).is_none();
        let end = if has_end { "\n" } else { "" };
        if is_old {
            old.extend([text, end]);
            old_left = old_left.saturating_sub(1);
        }
        if is_new {
            new.extend([text, end]);
            new_left = new_left.saturating_sub(1);
        }
    }
    Some((old, new))
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
