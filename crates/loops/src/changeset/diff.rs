//! A changeset in the form in which a person reads and edits it: a unified diff with the reasons
//! above the hunks.
//!
//! ```text
//! # why as a whole
//! diff src/a.rs 00112233445566778899aabbccddeeff
//! # why here
//! @@ -1,2 +1,2 @@
//!  stays
//! -goes
//! +comes
//! ```
//!
//! The digest is that of the file that the hunks were made for; `new` stands there if there must be
//! none. `executable`, `not executable` and `deleted` are lines of their own below the reason.
//! Whether the hunks fit is not judged here: the tools do that, which have the files.

use gyrus_contract::{Digest, ToolCall};
use serde_json::{Value, json};

/// Maximum number of wrong lines that are reported.
const MAX_WRONG: usize = 20;

/// A changeset.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Proposal {
    /// The reason for the whole changeset.
    pub(super) summary: String,
    /// The changes, one for each file.
    pub(super) changes: Vec<Change>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) path: String,
    /// The digest of the file before; `None` if it did not exist.
    pub(super) before: Option<Digest>,
    pub(super) reason: String,
    executable: Option<bool>,
    pub(super) deleted: bool,
    /// The hunks, from the first `@@` on.
    hunks: String,
    /// The whole text, as it was read.
    pub(super) text: String,
}

impl Change {
    /// Whether the file existed and nothing is left to change in it.
    fn is_nothing(&self) -> bool {
        let is_kept = self.before.is_some() && !self.deleted;
        is_kept && self.executable.is_none() && self.hunks.is_empty()
    }

    /// Adds the arguments for both tools to `what`.
    fn arguments(&self, mut what: Value) -> Value {
        what["path"] = json!(self.path);
        if let Some(before) = self.before {
            what["before"] = json!(before);
        }
        match (self.deleted, self.before) {
            (true, _) => {}
            // A new file without a line has no hunk.
            (false, None) if self.hunks.is_empty() => what["content"] = json!(""),
            (false, _) => what["diff"] = json!(self.hunks),
        }
        if let Some(executable) = self.executable {
            what["executable"] = json!(executable);
        }
        what
    }
}

impl Proposal {
    /// Returns the call that checks it.
    pub(super) fn check(&self, tool: &str) -> ToolCall {
        let changes = self.changes.iter().map(|change| {
            let mut what = json!({ "reason": change.reason });
            if change.deleted {
                what["delete"] = json!(true);
            }
            change.arguments(what)
        });
        let changes: Vec<_> = changes.collect();
        ToolCall::new(tool, json!({"summary": self.summary, "changes": changes}))
    }

    /// Returns the call that applies it.
    pub(super) fn apply(&self, tool: &str, verify: Option<&str>) -> ToolCall {
        let changes = self
            .changes
            .iter()
            .map(|change| change.arguments(json!({})));
        let mut arguments = json!({ "changes": changes.collect::<Vec<_>>() });
        if let Some(command) = verify {
            arguments["verify"] = json!(command);
        }
        ToolCall::new(tool, arguments)
    }

    /// Describes the number of files.
    pub(super) fn counted(&self) -> String {
        let count = |wanted: fn(&Change) -> bool| {
            self.changes.iter().filter(|change| wanted(change)).count()
        };
        let (new, deleted) = (count(|one| one.before.is_none()), count(|one| one.deleted));
        let all = gyrus_text::counted(self.changes.len(), "file");
        let kinds = [(new, "new"), (deleted, "deleted")];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<_> = kinds
            .map(|(count, kind)| format!("{count} {kind}"))
            .collect();
        match kinds.is_empty() {
            true => all,
            false => format!("{all}: {}", kinds.join(", ")),
        }
    }
}

/// Parses a changeset; returns all mistakes if there are any. Files without changes are left out.
pub(super) fn read(text: &str) -> Result<Proposal, Vec<String>> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let line = line.strip_suffix('\n').unwrap_or(line);
        if let Err(why) = reader.line(line) {
            let shown = gyrus_text::shorten(line, 60);
            reader
                .wrong
                .push(format!("line {number} (`{shown}`) {why}"));
        }
    }
    let Reader {
        mut proposal,
        wrong,
        ..
    } = reader;
    proposal.changes.retain(|change| !change.is_nothing());
    if !wrong.is_empty() {
        let more = wrong.len().saturating_sub(MAX_WRONG);
        let mut wrong: Vec<_> = wrong.into_iter().take(MAX_WRONG).collect();
        if more > 0 {
            wrong.push(format!("and {}", gyrus_text::counted(more, "more line")));
        }
        return Err(wrong);
    }
    if proposal.changes.is_empty() {
        let nothing = "nothing is left to change; to change nothing, deny it";
        return Err(vec![nothing.to_owned()]);
    }
    Ok(proposal)
}

#[derive(Default)]
struct Reader {
    proposal: Proposal,
    wrong: Vec<String>,
    in_hunk: bool,
    /// Number of lines of the old file that are still to come in the present hunk, by its head.
    old_left: usize,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(head) = line.strip_prefix("diff ") {
            self.in_hunk = false;
            self.proposal.changes.push(begin(head)?);
            self.keep(line);
            return Ok(());
        }
        let Some(change) = self.proposal.changes.last_mut() else {
            match line.strip_prefix('#') {
                Some(words) => say(&mut self.proposal.summary, words),
                None if line.is_empty() => {}
                None => return Err("stands before the first file"),
            }
            return Ok(());
        };
        if line.starts_with("@@") {
            let left = old_lines(line).ok_or("is no head of a hunk, as `@@ -1,3 +1,4 @@`")?;
            (self.in_hunk, self.old_left) = (true, left);
            self.keep(line);
        } else if self.in_hunk {
            let line = match line.chars().next() {
                // Editors remove the space from a line that has nothing else.
                None if self.old_left > 0 => " ",
                None => return Ok(()),
                Some(' ' | '-' | '+' | '\\') => line,
                Some(_) => {
                    return Err(
                        "is no line of a hunk, which begins with a blank, `-`, `+` or `\\`",
                    );
                }
            };
            if line.starts_with([' ', '-']) {
                self.old_left = self.old_left.saturating_sub(1);
            }
            self.keep(line);
        } else if !line.is_empty() {
            above_hunks(change, line)?;
            self.keep(line);
        }
        Ok(())
    }

    /// Adds the line to the present file.
    fn keep(&mut self, line: &str) {
        if let Some(change) = self.proposal.changes.last_mut() {
            let in_hunk = self.in_hunk && !change.deleted;
            for text in [Some(&mut change.text), in_hunk.then_some(&mut change.hunks)] {
                let Some(text) = text else { continue };
                text.push_str(line);
                text.push('\n');
            }
        }
    }
}

/// Parses the head of a file: the path, and the digest or `new`.
fn begin(head: &str) -> Result<Change, &'static str> {
    let wrong = "names no file with its digest, or `new`";
    let (path, before) = head.trim_end().rsplit_once(' ').ok_or(wrong)?;
    let before = match before {
        "new" => None,
        digest => Some(digest.parse().map_err(|_| wrong)?),
    };
    if path.is_empty() {
        return Err(wrong);
    }
    Ok(Change {
        path: path.to_owned(),
        before,
        reason: String::new(),
        executable: None,
        deleted: false,
        hunks: String::new(),
        text: String::new(),
    })
}

/// Parses a line between a file's head and its hunks.
fn above_hunks(change: &mut Change, line: &str) -> Result<(), &'static str> {
    match (line, line.strip_prefix('#')) {
        (_, Some(words)) => say(&mut change.reason, words),
        ("executable", _) => change.executable = Some(true),
        ("not executable", _) => change.executable = Some(false),
        ("deleted", _) if change.before.is_none() => return Err("deletes a file that is `new`"),
        ("deleted", _) => change.deleted = true,
        _ => return Err("says nothing that is known of a file"),
    }
    Ok(())
}

fn say(words: &mut String, line: &str) {
    if !words.is_empty() {
        words.push('\n');
    }
    words.push_str(line.strip_prefix(' ').unwrap_or(line));
}

/// Returns the number of lines of the old file in a hunk: `-3,7`, or `-3` for one.
fn old_lines(head: &str) -> Option<usize> {
    let old = head.strip_prefix("@@ -")?.split(' ').next()?;
    match old.split_once(',') {
        Some((_, lines)) => lines.parse().ok(),
        None => old.parse::<usize>().ok().map(|_| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "00112233445566778899aabbccddeeff";

    fn whole() -> String {
        format!(
            "# why, and\n#\n# why again\ndiff src/a b.rs {DIGEST}\n# here\nexecutable\n\
             @@ -1,3 +1,3 @@\n one\r\n-two\n+2\n \n\\ No newline at end of file\n\
             diff new.rs new\n# there\n@@ -0,0 +1 @@\n+diff x new\n\
             diff gone.rs {DIGEST}\n# away\ndeleted\n@@ -1 +0,0 @@\n-# old\n"
        )
    }

    #[test]
    fn all_of_it_is_read_byte_for_byte() {
        let read = read(&whole()).unwrap();
        assert_eq!(read.summary, "why, and\n\nwhy again");
        assert_eq!(read.counted(), "3 files: 1 new, 1 deleted");
        let text: String = read.changes.iter().map(|change| &*change.text).collect();
        assert_eq!(format!("# why, and\n#\n# why again\n{text}"), whole());
        let hunks = "@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n \n\\ No newline at end of file\n";
        assert_eq!(
            read.apply("apply", Some("true")).arguments,
            json!({"changes": [
                {"path": "src/a b.rs", "before": DIGEST, "executable": true, "diff": hunks},
                {"path": "new.rs", "diff": "@@ -0,0 +1 @@\n+diff x new\n"},
                {"path": "gone.rs", "before": DIGEST},
            ], "verify": "true"})
        );
        assert_eq!(
            read.check("propose").arguments["changes"],
            json!([
                {"path": "src/a b.rs", "reason": "here", "before": DIGEST, "executable": true, "diff": hunks},
                {"path": "new.rs", "reason": "there", "diff": "@@ -0,0 +1 @@\n+diff x new\n"},
                {"path": "gone.rs", "reason": "away", "before": DIGEST, "delete": true},
            ])
        );
    }

    #[test]
    fn what_is_left_out_is_not_changed() {
        let text = whole().replace("executable\n@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n \n", "");
        let text = text.replace("\\ No newline at end of file\n", "");
        let paths = |text: &str| {
            let changes = read(text).unwrap().changes.into_iter();
            changes.map(|change| change.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(&text), ["new.rs", "gone.rs"]);
        let (kept, _) = text.split_once("diff gone.rs").unwrap();
        assert_eq!(paths(kept), ["new.rs"]);
        // A new file without lines is an empty one.
        let empty = read("diff new.rs new\n").unwrap();
        assert_eq!(
            empty.apply("apply", None).arguments,
            json!({"changes": [{"path": "new.rs", "content": ""}]})
        );
    }

    #[test]
    fn no_cut_of_a_diff_is_more_than_wrong() {
        let text = whole();
        for at in 0..=text.len() {
            for part in [&text[..at], &text[at..]] {
                if let Ok(proposal) = read(part) {
                    assert!(!proposal.changes.is_empty(), "{part}");
                }
            }
        }
    }

    #[test]
    fn an_editor_may_take_the_last_blank() {
        let text = whole().replace("\n \n", "\n\n");
        assert_eq!(read(&text), read(&whole()));
    }

    #[test]
    fn everything_that_is_wrong_is_named_with_its_line() {
        for (text, wrong) in [
            ("", "nothing is left"),
            ("hello\n", "line 1 (`hello`) stands before the first file"),
            (
                "diff a.rs 0011\n",
                "line 1 (`diff a.rs 0011`) names no file",
            ),
            ("diff a.rs\n", "names no file"),
            ("diff a.rs new\nhello\n", "line 2 (`hello`) says nothing"),
            ("diff a.rs new\ndeleted\n", "deletes a file that is `new`"),
            ("diff a.rs new\n@@ hello\n", "is no head of a hunk"),
            (
                "diff a.rs new\n@@ -0,0 +1 @@\nhello\n",
                "is no line of a hunk",
            ),
        ] {
            let found = read(text).unwrap_err();
            assert!(found[0].contains(wrong), "{text}: {found:?}");
        }
        let many = "hello\n".repeat(30);
        assert_eq!(read(&many).unwrap_err().len(), MAX_WRONG + 1);
    }
}
