//! The hunks of a unified diff: written for a person to read and to cut, and applied strictly.
//!
//! Nothing is searched for: a hunk applies at the old line number that it names, and every line
//! that it keeps or removes must be there, byte for byte. So the diff that a person read is the one
//! applied, and removing a hunk does not affect the others. Line numbers of the new side are for
//! readers and are ignored.

#[cfg(test)]
mod tests;

/// Reason why a diff cannot be applied to a file. It does not quote lines, which may contain
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiffError {
    #[error("line {0} of the diff stands before the first hunk, which begins with @@")]
    NoHunk(usize),
    #[error("line {0} of the diff is not the head of a hunk like @@ -1,3 +1,4 @@")]
    Head(usize),
    #[error("line {0} of the diff, in a hunk, begins with neither a space nor - nor + nor \\")]
    Line(usize),
    #[error("the hunk `{head}` has {found} lines of the old file, not {said}")]
    Length {
        head: String,
        said: usize,
        found: usize,
    },
    #[error("the hunk `{0}` begins before the one above it ends")]
    Order(String),
    #[error("line {line} of the file is not what the hunk `{head}` says")]
    Mismatch { head: String, line: usize },
    #[error("a line that is said to have no newline would not be the last one of the file")]
    Unended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HunkSide {
    Both,
    Old,
    New,
}

#[derive(Debug)]
struct Hunk<'a> {
    head: &'a str,
    /// Number of lines of the old file before the hunk.
    at: usize,
    /// The lines with their line breaks.
    lines: Vec<(HunkSide, Vec<u8>)>,
}

/// Returns `old` with the diff applied.
pub(super) fn patch(old: &[u8], diff: &str) -> Result<Vec<u8>, DiffError> {
    applied(old, &read(diff)?)
}

/// Returns the content for which the diff was made, if applying the diff yields `new`.
pub(super) fn unpatch(new: &[u8], diff: &str) -> Option<Vec<u8>> {
    let mut hunks = read(diff).ok()?;
    let (mut longer, mut shorter) = (0, 0);
    for hunk in &mut hunks {
        hunk.at = (hunk.at + longer).checked_sub(shorter)?;
        for (side, _) in &mut hunk.lines {
            *side = match side {
                HunkSide::Both => HunkSide::Both,
                HunkSide::Old => {
                    shorter += 1;
                    HunkSide::New
                }
                HunkSide::New => {
                    longer += 1;
                    HunkSide::Old
                }
            };
        }
    }
    applied(new, &hunks).ok()
}

fn applied(old: &[u8], hunks: &[Hunk<'_>]) -> Result<Vec<u8>, DiffError> {
    let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let mut new: Vec<&[u8]> = Vec::with_capacity(old.len());
    let mut next = 0;
    for hunk in hunks {
        let head = || hunk.head.to_owned();
        let mismatch = |line| DiffError::Mismatch {
            head: head(),
            line: line + 1,
        };
        if hunk.at < next {
            return Err(DiffError::Order(head()));
        }
        let before = old.get(next..hunk.at).ok_or_else(|| mismatch(old.len()))?;
        new.extend(before);
        next = hunk.at;
        for (side, line) in &hunk.lines {
            if *side != HunkSide::New {
                if old.get(next) != Some(&line.as_slice()) {
                    return Err(mismatch(next));
                }
                next += 1;
            }
            if *side != HunkSide::Old {
                new.push(line);
            }
        }
    }
    new.extend(&old[next..]);
    let last = new.len().saturating_sub(1);
    if new[..last].iter().all(|line| line.ends_with(b"\n")) {
        Ok(new.concat())
    } else {
        Err(DiffError::Unended)
    }
}

fn read(diff: &str) -> Result<Vec<Hunk<'_>>, DiffError> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut said = 0;
    for (number, whole) in (1..).zip(diff.split_inclusive('\n')) {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        if line.starts_with("@@") {
            if let Some(hunk) = hunks.last() {
                complete(hunk, said)?;
            }
            let (head, at, count) = head(line).ok_or(DiffError::Head(number))?;
            said = count;
            let lines = Vec::new();
            hunks.push(Hunk { head, at, lines });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            return Err(DiffError::NoHunk(number));
        };
        let side = match line.as_bytes().first() {
            // An empty line, as an editor that trims lines leaves it.
            None | Some(b' ') => HunkSide::Both,
            Some(b'-') => HunkSide::Old,
            Some(b'+') => HunkSide::New,
            Some(b'\\') => {
                let above = hunk.lines.last_mut();
                above.and_then(|(_, above)| above.pop_if(|byte| *byte == b'\n'));
                continue;
            }
            Some(_) => return Err(DiffError::Line(number)),
        };
        let content = line.get(1..).unwrap_or_default();
        hunk.lines
            .push((side, [content.as_bytes(), b"\n"].concat()));
    }
    if let Some(hunk) = hunks.last() {
        complete(hunk, said)?;
    }
    Ok(hunks)
}

/// Checks the head's count of old lines, so that a person who deleted one by hand gets an error.
fn complete(hunk: &Hunk<'_>, said: usize) -> Result<(), DiffError> {
    let old = |line: &&(HunkSide, Vec<u8>)| line.0 != HunkSide::New;
    let found = hunk.lines.iter().filter(old).count();
    if found == said {
        Ok(())
    } else {
        Err(DiffError::Length {
            head: hunk.head.to_owned(),
            said,
            found,
        })
    }
}

/// Parses a head: its text without trailing words, the number of old lines before its hunk, and the
/// number of old lines in it.
fn head(line: &str) -> Option<(&str, usize, usize)> {
    let (numbers, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = numbers.split_once(" +")?;
    let head = &line[.."@@ -".len() + numbers.len() + " @@".len()];
    let (first, count) = range(old)?;
    range(new)?;
    match count {
        0 => Some((head, first, 0)),
        _ => Some((head, first.checked_sub(1)?, count)),
    }
}

fn range(numbers: &str) -> Option<(usize, usize)> {
    match numbers.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((numbers.parse().ok()?, 1)),
    }
}
