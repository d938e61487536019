//! Reads the text of a proposal that a person edited, and makes the calls that check and apply a
//! proposal. Whether the hunks fit is not judged here: the tools do that, which have the files.

use gyrus_contract::{
    ApplyChangesetCall, BINARY, EMPTY_BINARY, FileDiff, MADE_FOR, Proposal, ProposeChangesetCall,
    ProposedChange, WantedChange, path_of_header,
};

/// Maximum number of reported wrong lines.
const MAX_WRONG: usize = 20;

/// Whether a change leaves an existing file unchanged.
fn is_nothing(change: &FileDiff) -> bool {
    let is_kept = change.before.is_some() && !change.deleted;
    is_kept && change.executable.is_none() && change.hunks.is_empty()
}

/// Returns the new content and the diff that the tools take.
fn content_or_diff(change: &FileDiff) -> (Option<String>, Option<String>) {
    match (change.deleted, change.before) {
        (true, _) => (None, None),
        // A new file without a line has no hunk.
        (false, None) if change.hunks.is_empty() => (Some(String::new()), None),
        (false, _) => (None, Some(change.hunks.clone())),
    }
}

/// Returns the call that checks a proposal.
pub(super) fn check(proposal: &Proposal) -> ProposeChangesetCall {
    let changes = proposal.changes.iter().map(|change| {
        let (content, diff) = content_or_diff(change);
        ProposedChange {
            path: change.path.clone(),
            reason: change.reason.clone(),
            before: change.before,
            content,
            edits: None,
            delete: change.deleted.then_some(true),
            diff,
            executable: change.executable,
        }
    });
    ProposeChangesetCall {
        summary: proposal.summary.clone(),
        changes: changes.collect(),
    }
}

/// Returns the call that applies a proposal.
pub(super) fn apply(proposal: &Proposal, verify: Option<&str>) -> ApplyChangesetCall {
    let changes = proposal.changes.iter().map(|change| {
        let (content, diff) = content_or_diff(change);
        WantedChange {
            path: change.path.clone(),
            before: change.before,
            content,
            diff,
            executable: change.executable,
        }
    });
    ApplyChangesetCall {
        changes: changes.collect(),
        verify: verify.map(str::to_owned),
    }
}

/// Describes the number of files.
pub(super) fn counted(proposal: &Proposal) -> String {
    let count = |wanted: fn(&FileDiff) -> bool| {
        proposal
            .changes
            .iter()
            .filter(|change| wanted(change))
            .count()
    };
    let (new, deleted) = (count(|one| one.before.is_none()), count(|one| one.deleted));
    let all = gyrus_text::counted(proposal.changes.len(), "file");
    let kinds = [(new, "new"), (deleted, "deleted")];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<_> = kinds
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    if kinds.is_empty() {
        all
    } else {
        format!("{all}: {}", kinds.join(", "))
    }
}

/// Parses a changeset, or returns all its mistakes. Files without changes are left out.
pub(super) fn read(text: &str) -> Result<Proposal, Vec<String>> {
    let mut reader = ProposalReader::default();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let line = line.strip_suffix('\n').unwrap_or(line);
        if let Err(why) = reader.line(line) {
            let shown = gyrus_text::shorten(line, 60);
            reader
                .wrong
                .push(format!("line {number} (`{shown}`) {why}"));
        }
    }
    let ProposalReader {
        mut proposal,
        mut wrong,
        unknown,
        ..
    } = reader;
    wrong.extend(unknown.iter().map(|path| {
        format!("`{path}` has neither the line `{MADE_FOR}DIGEST` above it nor `{NEW_FILE}…`")
    }));
    proposal.changes.retain(|change| !is_nothing(change));
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
struct ProposalReader {
    proposal: Proposal,
    wrong: Vec<String>,
    /// The lines of the comment being read, which belongs to the next file.
    comment: Vec<String>,
    /// Files that may or may not exist.
    unknown: Vec<String>,
    in_hunk: bool,
    /// Number of lines of the old file that are still to come in the present hunk, by its head.
    old_left: usize,
}

impl ProposalReader {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let is_over = !self.in_hunk || self.old_left == 0;
        if let Some(words) = line.strip_prefix('#').filter(|_| is_over) {
            self.in_hunk = false;
            let words = words.strip_prefix(' ').unwrap_or(words);
            self.comment.push(words.trim_end().to_owned());
            return Ok(());
        }
        if line.starts_with("diff ") {
            self.in_hunk = false;
            return self.begin(line);
        }
        if line.is_empty() && is_over {
            self.end_comment();
            return Ok(());
        }
        let Some(change) = self.proposal.changes.last_mut() else {
            return Err("stands before the first file");
        };
        if line.starts_with("@@") {
            let left = old_lines(line).ok_or("is not the head of a hunk, as `@@ -1,3 +1,4 @@`")?;
            (self.in_hunk, self.old_left) = (true, left);
            self.keep(line);
        } else if self.in_hunk {
            let line = match line.chars().next() {
                // Editors remove the space from a line that has nothing else.
                None => " ",
                Some(' ' | '-' | '+' | '\\') => line,
                Some(_) => {
                    return Err(
                        "is not a line of a hunk, which begins with a blank, `-`, `+` or `\\`",
                    );
                }
            };
            if line.starts_with([' ', '-']) {
                self.old_left = self.old_left.saturating_sub(1);
            }
            self.keep(line);
        } else {
            if line.starts_with(NEW_FILE) {
                self.unknown.pop_if(|path| *path == change.path);
            }
            of_header(change, line.trim_end_matches('\r'))?;
        }
        Ok(())
    }

    /// Ends a free-standing comment, which before the first file is the reason for the whole.
    fn end_comment(&mut self) {
        let comment = std::mem::take(&mut self.comment);
        if self.proposal.changes.is_empty() && !comment.is_empty() {
            say(&mut self.proposal.summary, &comment.join("\n"));
        }
    }

    /// Begins a file with its first line; the comment above it is its reason, with the digest of
    /// the file below.
    fn begin(&mut self, line: &str) -> Result<(), &'static str> {
        let mut comment = std::mem::take(&mut self.comment);
        let digest = comment.last().and_then(|last| {
            let digest = last.strip_prefix(MADE_FOR.strip_prefix("# ")?)?;
            digest.trim().parse().ok()
        });
        if digest.is_some() {
            comment.pop();
        }
        let wrong = "names no file as `diff --git a/PATH b/PATH`";
        let path = path_of_header(line).ok_or(wrong)?;
        if digest.is_none() {
            self.unknown.push(path.clone());
        }
        self.proposal.changes.push(FileDiff {
            path,
            before: digest,
            reason: comment.join("\n"),
            ..FileDiff::default()
        });
        Ok(())
    }

    /// Adds a line to the hunks of the present file.
    fn keep(&mut self, line: &str) {
        if let Some(change) = self.proposal.changes.last_mut() {
            change.hunks.push_str(line);
            change.hunks.push('\n');
        }
    }
}

/// The beginning of the line about a new file.
const NEW_FILE: &str = "new file mode ";

/// Parses a line between a file's first line and its hunks.
fn of_header(change: &mut FileDiff, line: &str) -> Result<(), &'static str> {
    let executes = |mode: &str| mode.ends_with("755");
    if let Some(mode) = line.strip_prefix(NEW_FILE) {
        if change.before.is_some() {
            return Err("makes a file that is there already");
        }
        change.executable = executes(mode).then_some(true);
    } else if line.starts_with("deleted file mode ") {
        change.deleted = true;
    } else if let Some(mode) = line.strip_prefix("new mode ") {
        change.executable = Some(executes(mode));
    } else if let Some(ids) = line.strip_prefix("index ") {
        change.git_id = ids.split_once("..").map(|(old, _)| old.to_owned());
    } else if !is_said_elsewhere(line) {
        return Err("says nothing that is known of a file");
    }
    Ok(())
}

/// Whether a header line repeats information of other lines.
fn is_said_elsewhere(line: &str) -> bool {
    let starts = ["old mode ", "--- ", "+++ "];
    starts.iter().any(|start| line.starts_with(start))
        || line == BINARY
        || EMPTY_BINARY.lines().any(|known| known == line)
}

fn say(words: &mut String, more: &str) {
    if !words.is_empty() {
        words.push('\n');
    }
    words.push_str(more);
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
    use gyrus_contract::TypedCall as _;
    use serde_json::json;

    use super::*;

    const DIGEST: &str = "00112233445566778899aabbccddeeff";

    fn whole() -> String {
        format!(
            "# why, and\n# \n# why again\n\n\
             # here\n# made for {DIGEST}\ndiff --git a/src/a b.rs b/src/a b.rs\n\
             old mode 100644\nnew mode 100755\n--- a/src/a b.rs\t\n+++ b/src/a b.rs\t\n\
             @@ -1,3 +1,3 @@\n one\r\n-two\n+2\n \n\\ No newline at end of file\n\n\
             # there\ndiff --git a/new.rs b/new.rs\nnew file mode 100644\n\
             --- /dev/null\n+++ b/new.rs\n@@ -0,0 +1 @@\n+diff x new\n\n\
             # away\n# made for {DIGEST}\ndiff --git a/gone.rs b/gone.rs\n\
             deleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-# old\n"
        )
    }

    #[test]
    fn all_of_it_is_read_byte_for_byte() {
        let read = read(&whole()).unwrap();
        assert_eq!(read.summary, "why, and\n\nwhy again");
        assert_eq!(counted(&read), "3 files: 1 new, 1 deleted");
        assert_eq!(read.to_string(), whole());
        let hunks = "@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n \n\\ No newline at end of file\n";
        assert_eq!(
            apply(&read, Some("true")).to_call().arguments,
            json!({"changes": [
                {"path": "src/a b.rs", "before": DIGEST, "executable": true, "diff": hunks},
                {"path": "new.rs", "diff": "@@ -0,0 +1 @@\n+diff x new\n"},
                {"path": "gone.rs", "before": DIGEST},
            ], "verify": "true"})
        );
        assert_eq!(
            check(&read).to_call().arguments["changes"],
            json!([
                {"path": "src/a b.rs", "reason": "here", "before": DIGEST, "executable": true, "diff": hunks},
                {"path": "new.rs", "reason": "there", "diff": "@@ -0,0 +1 @@\n+diff x new\n"},
                {"path": "gone.rs", "reason": "away", "before": DIGEST, "delete": true},
            ])
        );
    }

    #[test]
    fn what_is_left_out_is_not_changed() {
        let text = whole().replace("old mode 100644\nnew mode 100755\n", "");
        let text = text.replace("@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n \n", "");
        let text = text.replace("\\ No newline at end of file\n", "");
        let paths = |text: &str| {
            let changes = read(text).unwrap().changes.into_iter();
            changes.map(|change| change.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(&text), ["new.rs", "gone.rs"]);
        let (kept, _) = text.split_once("# away").unwrap();
        assert_eq!(paths(kept), ["new.rs"]);
        // A new file without lines is an empty one.
        let empty = read("diff --git a/new.rs b/new.rs\nnew file mode 100644\n").unwrap();
        assert_eq!(
            apply(&empty, None).to_call().arguments,
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
            ("diff --git a/a.rs b/b.rs\n", "names no file"),
            (
                "diff --git a/a.rs b/a.rs\n@@ -1 +1 @@\n-a\n+b\n",
                "`a.rs` has neither the line `# made for DIGEST` above it nor",
            ),
            (
                "diff --git a/a.rs b/a.rs\nhello\n",
                "line 2 (`hello`) says nothing",
            ),
            (
                "diff --git a/a.rs b/a.rs\n@@ hello\n",
                "is not the head of a hunk",
            ),
            (
                "diff --git a/a.rs b/a.rs\n@@ -0,0 +1 @@\nhello\n",
                "is not a line of a hunk",
            ),
        ] {
            let found = read(text).unwrap_err();
            assert!(found[0].contains(wrong), "{text}: {found:?}");
        }
        let many = "hello\n".repeat(30);
        assert_eq!(read(&many).unwrap_err().len(), MAX_WRONG + 1);
    }
}
