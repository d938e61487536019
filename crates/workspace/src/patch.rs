//! Changes as patches that `git apply` takes: a unified diff where both sides are text, else git's
//! own form for binary contents, which restores them byte for byte.

#[cfg(test)]
mod tests;

use std::{
    fmt::Write as _,
    io::Write as _,
    ops::Range,
    time::{Duration, Instant},
};

use flate2::{Compression, write::ZlibEncoder};
use gyrus_contract::{BINARY, NO_GIT_ID, PatchHeader};
use sha1::{Digest as _, Sha1};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// Marker below a line that ends a file without a line break.
pub const NO_NEWLINE: &str = "\\ No newline at end of file";

/// Maximum time for comparing the sides of one file. What has not been compared by then is shown
/// as replaced.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// One side of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion<'a> {
    /// The file's mode, as git stores it.
    pub mode: u32,
    /// The file's content, or the target of a link.
    pub content: &'a [u8],
}

/// Returns git's SHA-1 name of a blob with this content.
pub fn git_id(content: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    let hash = hash.finalize();
    hash.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the patch of one path; empty if both sides are the same.
pub fn of_file(path: &[u8], old: Option<FileVersion<'_>>, new: Option<FileVersion<'_>>) -> String {
    if let (Some(one), Some(other)) = (old, new) {
        if one == other {
            return String::new();
        }
        // Another kind of file takes the place of one that is deleted.
        if one.mode & 0o170_000 != other.mode & 0o170_000 {
            return of_file(path, old, None) + &of_file(path, None, new);
        }
    }
    if old.is_none() && new.is_none() {
        return String::new();
    }
    let content =
        |side: Option<FileVersion<'_>>| side.map_or(&[][..], |side| side.content).to_vec();
    let (before, after) = (content(old), content(new));
    let header = PatchHeader {
        path,
        before: old.map(|old| old.mode),
        after: new.map(|new| new.mode),
        renamed_from: None,
        ids: None,
        has_hunks: false,
    };
    if let (Some(before), Some(after)) = (text(&before), text(&after)) {
        let hunks = hunks(before, after, Instant::now() + TIME_LIMIT);
        let has_hunks = !hunks.is_empty();
        return PatchHeader {
            has_hunks,
            ..header
        }
        .lines()
            + &hunks;
    }
    let id = |side: Option<FileVersion<'_>>| {
        side.map_or_else(|| NO_GIT_ID.to_owned(), |side| git_id(side.content))
    };
    let (one, other) = (id(old), id(new));
    let ids = Some((&*one, &*other));
    let (after, before) = (literal(&after), literal(&before));
    PatchHeader { ids, ..header }.lines() + &format!("{BINARY}\n{after}{before}")
}

/// Returns the patch that renames a file without changing its content.
pub fn of_renamed(from: &[u8], to: &[u8], mode: u32) -> String {
    let header = PatchHeader {
        path: to,
        before: Some(mode),
        after: Some(mode),
        renamed_from: Some(from),
        ids: None,
        has_hunks: false,
    };
    header.lines()
}

/// The content as text; `None` if git would treat it as binary, or it is not UTF-8.
fn text(content: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(content).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Returns a content in git's form for binary patches: deflated, in lines of base 85.
fn literal(content: &[u8]) -> String {
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::default());
    let deflated = deflated
        .write_all(content)
        .and_then(|()| deflated.finish())
        .expect("a vector takes every byte");
    let mut text = format!("literal {}\n", content.len());
    for line in deflated.chunks(52) {
        // The length: A to Z are 1 to 26, a to z are 27 to 52.
        let length = u8::try_from(line.len()).expect("at most 52");
        text.push(char::from(match length {
            ..=26 => b'A' + length - 1,
            _ => b'a' + length - 27,
        }));
        for four in line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..four.len()].copy_from_slice(four);
            let mut number = u32::from_be_bytes(bytes);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = BASE_85[(number % 85) as usize];
                number /= 85;
            }
            text.extend(digits.map(char::from));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Git's alphabet for base 85.
const BASE_85: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Returns the hunks that turn `old` into `new`; empty if they are the same. When time is up, what
/// has not been compared is shown as replaced.
pub fn hunks(old: &str, new: &str, until: Instant) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (old, new) = (lines(old), lines(new));
    let compared = compared(&old, &new, until);
    let mut text = String::new();
    for group in group_diff_ops(compared, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let olds = first.old_range().start..last.old_range().end;
        let news = first.new_range().start..last.new_range().end;
        let _ = writeln!(text, "@@ -{} +{} @@", numbers(&olds), numbers(&news));
        for change in &group {
            let (olds, news) = (&old[change.old_range()], &new[change.new_range()]);
            if let DiffOp::Equal { .. } = change {
                put(&mut text, ' ', olds);
            } else {
                put(&mut text, '-', olds);
                put(&mut text, '+', news);
            }
        }
    }
    text
}

/// Returns the equal and replaced ranges of lines.
fn compared(old: &[&str], new: &[&str], until: Instant) -> Vec<DiffOp> {
    let mut all = Vec::new();
    let (mut next_old, mut next_new) = (0, 0);
    let end = DiffOp::Equal {
        old_index: old.len(),
        new_index: new.len(),
        len: 0,
    };
    let found = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(until));
    for step in found.into_iter().chain([end]) {
        // For other operations the library does not always report correct positions.
        let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = step
        else {
            continue;
        };
        let (old_len, new_len) = (old_index - next_old, new_index - next_new);
        if old_len + new_len > 0 {
            all.push(DiffOp::Replace {
                old_index: next_old,
                old_len,
                new_index: next_new,
                new_len,
            });
        }
        if len > 0 {
            all.push(step);
        }
        (next_old, next_new) = (old_index + len, new_index + len);
    }
    all
}

/// Formats the first line and the count of a hunk: an empty range names the line before it.
fn numbers(lines: &Range<usize>) -> String {
    let first = lines.start + usize::from(!lines.is_empty());
    format!("{first},{}", lines.len())
}

fn put(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            let _ = write!(text, "\n{NO_NEWLINE}\n");
        }
    }
}
