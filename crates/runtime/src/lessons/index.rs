//! The index of the lessons: all that a start of a run needs to choose among them, and their texts,
//! so that the ledger need not be folded. It belongs to one position of the ledger; at any other it
//! is written anew.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use super::{
    Lesson, LessonBook, LessonRecord, LessonSubject,
    similar::{SAME_PLACE, SIMILAR, Weights, number, number_of, words},
};
use crate::ledger::Position;

/// The first bytes of an index of this format.
const FORMAT: &[u8; 8] = b"lessons2";

/// Maximum bytes of the rows.
const MAX_ROWS: u64 = 64 << 20;

/// Maximum bytes of a lesson's text.
const MAX_TEXT: u32 = 64 << 10;

const HASH: usize = 32;

/// The open index of the lessons.
pub(super) struct LessonIndex {
    file: File,
    texts_at: u64,
    rows: Vec<Row>,
}

/// A lesson that may be given.
struct Row {
    workspace: u32,
    site: u32,
    /// The goal, whatever its spaces.
    goal: u32,
    /// Whether the run could leave nothing out.
    direct: bool,
    words: Vec<u32>,
    text: TextPlace,
}

/// The place of a lesson's text behind the rows, and a number that stands for its bytes.
#[derive(Clone, Copy)]
struct TextPlace {
    at: u64,
    length: u32,
    sum: u32,
}

/// Returns the index of all lessons that may be given.
pub(super) fn bytes(book: &LessonBook, position: &Position) -> Vec<u8> {
    let (mut rows, mut texts) = (Vec::new(), Vec::new());
    let given = |record: &&LessonRecord| !record.is_retired();
    for record in book.lessons().filter(given) {
        let lesson = &record.lesson;
        let Ok(text) = serde_json::to_vec(lesson) else {
            continue;
        };
        let words = words(&lesson.goal);
        let mut add = |number: u32| rows.extend(number.to_le_bytes());
        add(number(&lesson.workspace));
        add(number(&lesson.site));
        add(goal_number(&lesson.goal));
        add(u32::from(lesson.direct));
        add(number_of(&text));
        add(u32::try_from(text.len()).unwrap_or(u32::MAX));
        add(u32::try_from(words.len()).unwrap_or(u32::MAX));
        words.into_iter().for_each(&mut add);
        texts.extend(text);
    }
    let name = position.in_words();
    let mut head = rows;
    head.splice(0..0, name.bytes());
    let mut all = FORMAT.to_vec();
    all.extend((name.len() as u64).to_le_bytes());
    all.extend((head.len() as u64).to_le_bytes());
    all.extend(blake3::hash(&head).as_bytes());
    all.extend(head);
    all.extend(texts);
    all
}

impl LessonIndex {
    /// Opens an index; `None` if there is none for this position, or it is damaged.
    pub(super) fn open(path: &Path, position: &Position) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let mut start = [0; FORMAT.len() + 16 + HASH];
        file.read_exact(&mut start).ok()?;
        let (format, start) = start.split_at(FORMAT.len());
        let (lengths, hash) = start.split_at(16);
        let (of_name, of_head) = lengths.split_at(8);
        let of_name = usize::try_from(u64::from_le_bytes(of_name.try_into().ok()?)).ok()?;
        let of_head = u64::from_le_bytes(of_head.try_into().ok()?);
        if format != FORMAT || of_head > MAX_ROWS {
            return None;
        }
        let mut head = vec![0; usize::try_from(of_head).ok()?];
        file.read_exact(&mut head).ok()?;
        if blake3::hash(&head).as_bytes() != hash {
            return None;
        }
        let (name, rows) = head.split_at_checked(of_name)?;
        (name == position.in_words().as_bytes()).then_some(())?;
        Some(Self {
            file,
            texts_at: (FORMAT.len() + 16 + HASH) as u64 + of_head,
            rows: read_rows(rows)?,
        })
    }

    /// Returns the lessons that fit a new run best, the best first and of equal ones the newest. A
    /// text that cannot be read is left out. There are none for a goal whose last run could leave
    /// nothing out: they would only make its prompts longer.
    pub(super) fn best(mut self, subject: &LessonSubject<'_>, most: usize) -> Vec<Lesson> {
        let goal = goal_number(subject.goal);
        let last = self.rows.iter().rfind(|row| row.goal == goal);
        if last.is_some_and(|last| last.direct) {
            return Vec::new();
        }
        let goals = self.rows.iter().map(|row| &*row.words);
        let weights = Weights::of(subject.goal, goals);
        let (workspace, site) = (number(subject.workspace), number(subject.site));
        let mut scored: Vec<(f64, TextPlace)> = Vec::new();
        for row in self.rows.iter().rev() {
            let similarity = weights.similarity(&row.words);
            if similarity < SIMILAR {
                continue;
            }
            let same_site = !subject.site.is_empty() && row.site == site;
            let places = i32::from(row.workspace == workspace) + i32::from(same_site);
            scored.push((similarity * SAME_PLACE.powi(places), row.text));
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut best: Vec<Lesson> = Vec::new();
        for (_, place) in scored {
            if best.len() == most {
                break;
            }
            let Some(lesson) = self.text(place) else {
                continue;
            };
            let says = |other: &Lesson| {
                (&other.worked, &other.did_not) == (&lesson.worked, &lesson.did_not)
            };
            if !best.iter().any(says) {
                best.push(lesson);
            }
        }
        best
    }

    fn text(&mut self, place: TextPlace) -> Option<Lesson> {
        let mut text = vec![0; usize::try_from(place.length).ok()?];
        let start = SeekFrom::Start(self.texts_at.checked_add(place.at)?);
        self.file.seek(start).ok()?;
        self.file.read_exact(&mut text).ok()?;
        (number_of(&text) == place.sum).then_some(())?;
        serde_json::from_slice(&text).ok()
    }
}

/// Returns a number that stands for a goal, whatever its spaces. One that was cut when its lesson
/// was kept equals no other.
fn goal_number(goal: &str) -> u32 {
    let words: Vec<&str> = goal.split_whitespace().collect();
    number(&words.join(" "))
}

fn read_rows(bytes: &[u8]) -> Option<Vec<Row>> {
    let (mut rows, mut at) = (Vec::new(), 0);
    let (whole, rest) = bytes.as_chunks::<4>();
    let mut numbers = whole.iter().map(|bytes| u32::from_le_bytes(*bytes));
    while let Some(workspace) = numbers.next() {
        let (site, goal) = (numbers.next()?, numbers.next()?);
        let (direct, sum) = (numbers.next()? != 0, numbers.next()?);
        let (length, count) = (numbers.next()?, numbers.next()?);
        let count = usize::try_from(count).ok()?;
        let words: Vec<u32> = numbers.by_ref().take(count).collect();
        if words.len() != count || length > MAX_TEXT {
            return None;
        }
        rows.push(Row {
            workspace,
            site,
            goal,
            direct,
            words,
            text: TextPlace { at, length, sum },
        });
        at += u64::from(length);
    }
    rest.is_empty().then_some(rows)
}
