//! Logs of references (reflogs): their values over time, one line for each change. The log of
//! `refs/stash` is the list of stashes.

use std::collections::BTreeSet;

use gyrus_contract::Digest;
use serde::{Deserialize, Serialize};

use super::names::ObjectId;

/// Maximum bytes of a log that is read.
pub(super) const MAX_LOG: u64 = 16 << 20;
/// Maximum number of lines that one command may add to a reflog.
const MAX_LINES: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogChange {
    /// Digest of the old log.
    pub(super) before: Digest,
    /// Whether the lines are appended; otherwise they replace the log.
    pub(super) appends: bool,
    /// The lines without line ends.
    pub(super) lines: Vec<String>,
    /// For the list of stashes, all old and new lines, for an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stashes: Option<(Vec<String>, Vec<String>)>,
}

/// Handling of lines that a command removed from a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenOut {
    /// Keep the lines, by which a person can find lost commits.
    Stay,
    /// Remove the lines, as with a dropped stash.
    Go,
}

/// Returns the difference between two states of a log. Lines that are not well-formed are left out.
pub(super) fn compare(before: &[u8], after: &[u8], taken_out: TakenOut) -> Option<LogChange> {
    if before == after {
        return None;
    }
    let old: BTreeSet<_> = before.split(|byte| *byte == b'\n').collect();
    let (appends, new) = match (after.strip_prefix(before), taken_out) {
        (Some(new), _) => (true, new),
        (None, TakenOut::Stay) => (true, after),
        (None, TakenOut::Go) => (false, after),
    };
    let lines = new.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| taken_out == TakenOut::Go || !old.contains(line));
    let lines: Vec<_> = lines.filter_map(clean).take(MAX_LINES).collect();
    let all = |log: &[u8]| log.split(|byte| *byte == b'\n').filter_map(clean).collect();
    (!appends || !lines.is_empty()).then(|| LogChange {
        before: Digest::of(before),
        appends,
        lines,
        stashes: (taken_out == TakenOut::Go).then(|| (all(before), all(after))),
    })
}

impl LogChange {
    pub(super) fn appending(line: String) -> Self {
        Self {
            before: Digest::of(b""),
            appends: true,
            lines: vec![line],
            stashes: None,
        }
    }

    pub(super) fn lists_stashes(&self) -> bool {
        self.stashes.is_some()
    }

    /// Returns the reverse change of a list of stashes.
    pub(super) fn inverse(&self) -> Self {
        let (before, after) = self.stashes.clone().unwrap_or_default();
        let log: String = after.iter().map(|line| format!("{line}\n")).collect();
        Self {
            before: Digest::of(log.as_bytes()),
            appends: false,
            lines: before.clone(),
            stashes: Some((after, before)),
        }
    }

    /// Whether the log is unchanged.
    pub(super) fn is_empty(&self) -> bool {
        self.appends && self.lines.is_empty()
    }

    /// Drops the lines that name an object for which `exists` is false.
    pub(super) fn retain(&mut self, exists: impl Fn(&ObjectId) -> bool) {
        self.lines
            .retain(|line| objects(line).is_some_and(|ids| ids.iter().all(&exists)));
    }

    /// Returns the objects that became new values when the lines were written.
    pub(super) fn new_objects(&self) -> impl Iterator<Item = ObjectId> {
        let new = self.lines.iter().filter_map(|line| line.get(41..81));
        new.filter_map(ObjectId::parse).filter(|id| !id.is_null())
    }

    /// Returns the objects that the lines name.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.lines.iter().filter_map(|line| objects(line)).flatten()
    }
}

/// Returns the log after the change. Lines that others have added to `live`, the present log, stay.
/// `None` if there is nothing to do.
pub(super) fn apply(live: &[u8], change: &LogChange) -> Option<Vec<u8>> {
    let lines: String = change
        .lines
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    if live.ends_with(lines.as_bytes()) && (change.appends || live.len() == lines.len()) {
        return None;
    }
    if !change.appends && Digest::of(live) == change.before {
        return Some(lines.into_bytes());
    }
    let mut log = live.to_vec();
    for line in lines.split_inclusive('\n') {
        let is_there = live
            .split_inclusive(|byte| *byte == b'\n')
            .any(|l| l == line.as_bytes());
        if change.appends || !is_there {
            log.extend_from_slice(line.as_bytes());
        }
    }
    (log.len() > live.len()).then_some(log)
}

pub(super) fn objects_in(log: &[u8]) -> impl Iterator<Item = ObjectId> {
    let lines = log.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(objects).flatten()
}

fn objects(line: &str) -> Option<Vec<ObjectId>> {
    let mut words = line.splitn(3, ' ');
    let old = ObjectId::parse(words.next()?)?;
    let new = ObjectId::parse(words.next()?)?;
    Some([old, new].into_iter().filter(|id| !id.is_null()).collect())
}

/// Returns a line in git's format, without characters that move a terminal's cursor.
fn clean(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (head, message) = line.split_once('\t').unwrap_or((&line, ""));
    objects(head)?;
    let (who, when) = head.get(82..)?.rsplit_once("> ")?;
    let (seconds, zone) = when.split_once(' ')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let zone_digits = zone.strip_prefix(['+', '-'])?;
    let is_fine = who.contains('<') && is_number(seconds) && is_number(zone_digits);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let line = if message.is_empty() {
        head.chars().map(visible).collect()
    } else {
        let head: String = head.chars().map(visible).collect();
        let message: String = message.chars().map(visible).collect();
        format!("{head}\t{message}")
    };
    is_fine.then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn line(old: &str, new: &str, message: &str) -> String {
        format!("{old} {new} A B <a@b> 1700000000 +0100\t{message}\n")
    }

    #[test]
    fn lines_are_added_to_what_is_there_now() {
        let null = "0".repeat(40);
        let base = line(&null, ONE, "first");
        let inside = base.clone() + &line(ONE, TWO, "second \u{1b}[2J") + "nonsense\n";
        let change = compare(base.as_bytes(), inside.as_bytes(), TakenOut::Stay).unwrap();
        let added = line(ONE, TWO, "second  [2J");
        let applied = apply(base.as_bytes(), &change).unwrap();
        assert_eq!(String::from_utf8_lossy(&applied), base.clone() + &added);
        assert_eq!(apply(&applied, &change), None);
        let person = base.clone() + &line(ONE, ONE, "theirs");
        let applied = apply(person.as_bytes(), &change).unwrap();
        assert_eq!(applied, (person + &added).into_bytes());
        // Lines that a command removes stay.
        let emptied = compare(base.as_bytes(), added.as_bytes(), TakenOut::Stay).unwrap();
        assert_eq!(
            apply(base.as_bytes(), &emptied),
            Some((base + &added).into_bytes())
        );
    }

    #[test]
    fn a_shortened_list_of_stashes_takes_the_place_of_the_old_one() {
        let null = "0".repeat(40);
        let (first, second) = (line(&null, ONE, "a"), line(ONE, TWO, "b"));
        let base = first.clone() + &second;
        let change = compare(base.as_bytes(), first.as_bytes(), TakenOut::Go).unwrap();
        assert_eq!(
            apply(base.as_bytes(), &change),
            Some(first.clone().into_bytes())
        );
        assert_eq!(apply(first.as_bytes(), &change), None);
        // Another process added one meanwhile, and it stays.
        let theirs = base + &line(TWO, ONE, "c");
        assert_eq!(apply(theirs.as_bytes(), &change), None);
    }
}
