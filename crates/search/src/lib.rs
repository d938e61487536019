//! Search over texts by their words: the words of all texts in one file, the texts best first.
//!
//! The one idea: an index is never needed. Everything here can be deleted at any time, and the next
//! use builds it again from the texts. Every use compares the texts' stamps with those in the index and
//! reads the texts that changed, so a file that another process replaces, or that is old, does no harm:
//! it is written again, as a whole, once enough has changed, and what it lacks is read by each process.
//!
//! A [`Ranking`] compares texts that are in memory anyway, for one question and without files.
//!
//! The callers know the texts and their places (notes of the memory, past runs). This crate never
//! reads one itself.

mod tokens;
mod stem;
mod dates;
mod words;
mod document;
mod stored;
mod rank;
mod ranking;

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use self::{
    document::{FIELDS, link_word},
    rank::{REORDERED, Statistics, WordWeight, boost, told_by_all},
    stored::{IndexFile, IndexedNote, WordOccurrence, digest},
    words::query_terms,
};
pub use self::{
    document::{IndexDocument, IndexField, name_of},
    ranking::Ranking,
    stored::SourceStamp,
    words::{QueryWords, words},
};

/// Share of the notes, as a divisor, up to which changes are not written.
const UNWRITTEN: usize = 64;

/// A note that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteHit {
    /// The note's path, or another name under which it was added.
    pub path: String,
    /// The note's score; higher is better.
    pub score: f64,
    /// Share of the query's information that the note's words cover, from 0 to 1.
    pub coverage: f64,
}

/// Result of comparing the index with the notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// Number of texts that were read because they changed.
    pub changed: usize,
    /// Number of texts that are gone or changed.
    pub removed: usize,
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    /// The index file; `None` if there is none that can be read.
    stored: Option<IndexFile>,
    /// The notes of the file, then those that it lacks; `None` for outdated ones.
    notes: Vec<Option<IndexedNote>>,
    numbers: HashMap<Box<str>, usize>,
    /// Words of the notes that are not in the file yet.
    unwritten: Vec<WordOccurrence>,
}

impl Index {
    /// Opens the index in a folder, which is created if it is missing. One that cannot be read is
    /// built again.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (stored, notes) = IndexFile::open(folder).unzip();
        let mut index = Self {
            folder: folder.to_owned(),
            stored,
            notes: Vec::new(),
            numbers: HashMap::new(),
            unwritten: Vec::new(),
        };
        for note in notes.unwrap_or_default() {
            index.push(note);
        }
        Ok(index)
    }

    fn push(&mut self, note: IndexedNote) -> usize {
        let number = self.notes.len();
        self.numbers.insert(note.path.clone(), number);
        self.notes.push(Some(note));
        number
    }

    /// Returns the number of notes.
    #[cfg(test)]
    pub fn notes(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Updates the index to these notes; `read` returns the content of one, or `None` if it is
    /// gone. A note whose stamp is the default one is read again the next time.
    pub fn refresh(
        &mut self,
        notes: &[(String, SourceStamp)],
        read: impl FnMut(&str) -> Option<(IndexDocument, SourceStamp)>,
    ) -> io::Result<IndexChanges> {
        let listed: HashSet<&str> = notes.iter().map(|(path, _)| path.as_str()).collect();
        let known = self.numbers.keys();
        let gone: Vec<_> = known
            .filter(|path| !listed.contains(&***path))
            .cloned()
            .collect();
        let gone = gone.iter().map(|path| (&**path, None));
        let listed = notes.iter().map(|(path, stamp)| (&**path, Some(*stamp)));
        self.refresh_some(&listed.chain(gone).collect::<Vec<_>>(), read)
    }

    /// Updates the index for these notes alone; `None` stands for one that is gone.
    pub fn refresh_some(
        &mut self,
        notes: &[(&str, Option<SourceStamp>)],
        mut read: impl FnMut(&str) -> Option<(IndexDocument, SourceStamp)>,
    ) -> io::Result<IndexChanges> {
        let mut changes = IndexChanges::default();
        for (path, stamp) in notes {
            let number = self.numbers.get(*path).copied();
            let known = number.and_then(|number| self.notes[number].as_ref());
            if known.map(|known| known.stamp) == *stamp {
                continue;
            }
            if let Some(number) = number {
                changes.removed += 1;
                self.numbers.remove(*path);
                self.notes[number] = None;
            }
            if stamp.is_some() {
                changes.changed += 1;
                if let Some((document, stamp)) = read(path) {
                    self.add(path, stamp, &document);
                }
            }
        }
        let stored = self.stored.as_ref().map_or(0, |stored| stored.notes);
        let fresh = self.notes.len() - stored;
        let dead = self.notes.len() - self.numbers.len();
        if self.stored.is_none() || (fresh + dead) * UNWRITTEN > self.numbers.len() {
            self.write()?;
        }
        Ok(changes)
    }

    fn add(&mut self, path: &str, stamp: SourceStamp, document: &IndexDocument) {
        let lengths = document.lengths;
        let number = self.push(IndexedNote {
            path: path.into(),
            stamp,
            lengths,
        });
        let words = document.counts.iter();
        let postings = words.map(|(word, counts)| WordOccurrence::new(word, number, *counts));
        self.unwritten.extend(postings);
    }

    /// Writes a new file with the current notes.
    fn write(&mut self) -> io::Result<()> {
        let stored = self.stored.as_ref().map(IndexFile::all).transpose()?;
        let mut postings = stored.unwrap_or_default();
        postings.extend_from_slice(&self.unwritten);
        let mut notes = Vec::with_capacity(self.numbers.len());
        let mut numbers = Vec::with_capacity(self.notes.len());
        for note in &self.notes {
            numbers.push(note.is_some().then_some(notes.len()));
            notes.extend(note.clone());
        }
        postings.retain_mut(|posting| {
            let number = numbers.get(posting.note()).copied().flatten();
            posting.set_note(number.unwrap_or_default());
            number.is_some()
        });
        postings.sort_unstable();
        self.stored = Some(IndexFile::write(&self.folder, &notes, &postings)?);
        (self.notes, self.numbers, self.unwritten) = Default::default();
        for note in notes {
            self.push(note);
        }
        Ok(())
    }

    /// Returns the paths of all texts, with their stamps.
    pub fn stamps(&self) -> impl Iterator<Item = (&str, SourceStamp)> {
        let notes = self.notes.iter().flatten();
        notes.map(|note| (&*note.path, note.stamp))
    }

    /// Returns the texts with words of the query, the best first. `now_ms` is the time against
    /// which their ages count.
    pub fn search(&self, query: &str, most: usize, now_ms: i64) -> io::Result<Vec<NoteHit>> {
        self.search_among(|_| true, query, most, now_ms)
    }

    /// Returns the texts with words of the query that link to a name, the best first.
    pub fn search_linking_to(
        &self,
        name: &str,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> io::Result<Vec<NoteHit>> {
        let linking = self.postings(&link_word(name))?;
        let linking: HashSet<usize> = linking.iter().map(WordOccurrence::note).collect();
        self.search_among(|note| linking.contains(&note), query, most, now_ms)
    }

    /// Returns the paths of the texts that link to a name, sorted.
    pub fn linking_to(&self, name: &str) -> io::Result<Vec<&str>> {
        let linking = self.postings(&link_word(name))?;
        let linking = linking.iter().filter_map(|posting| self.note(posting));
        let mut paths: Vec<_> = linking.map(|note| &*note.path).collect();
        paths.sort_unstable();
        Ok(paths)
    }

    fn search_among(
        &self,
        is_among: impl Fn(usize) -> bool,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> io::Result<Vec<NoteHit>> {
        let mut statistics = Statistics {
            notes: self.numbers.len() as u64,
            lengths: [0; FIELDS],
        };
        for note in self.notes.iter().flatten() {
            for (sum, length) in statistics.lengths.iter_mut().zip(note.lengths) {
                *sum += u64::from(length);
            }
        }
        // What each note has of the score, and of what the query tells.
        let mut scores = vec![(0.0, 0.0); self.notes.len()];
        let mut words = Vec::new();
        for term in query_terms(query) {
            let found = self.postings(&term.term)?;
            let occurs_in = found.len() as u64;
            if term.is_joint && occurs_in == 0 {
                continue;
            }
            let weight = WordWeight::new(occurs_in, &statistics);
            let tells = term.tells(occurs_in, statistics.notes);
            words.push(tells);
            for posting in &found {
                if let Some(note) = self.note(posting) {
                    let (score, told) = &mut scores[posting.note()];
                    *score += weight.score(posting.counts(), note.lengths);
                    *told += tells;
                }
            }
        }
        let scored = self.notes.iter().zip(scores).enumerate();
        let scored = scored.filter_map(|(number, (note, (score, told)))| {
            let counts = score > 0.0 && is_among(number);
            note.as_ref()
                .filter(|_| counts)
                .map(|note| (note, score, told))
        });
        let mut best: Vec<_> = scored.collect();
        best.sort_unstable_by(|(one, score, _), (other, more, _)| {
            more.total_cmp(score)
                .then_with(|| one.path.cmp(&other.path))
        });
        best.truncate(REORDERED.max(most));
        let told_by_all = told_by_all(words);
        let mut hits = Vec::with_capacity(best.len());
        for (note, score, told) in best {
            let age = (now_ms - note.stamp.modified / 1_000_000) as f64 / 86_400_000.0;
            let links = self.postings(&link_word(name_of(&note.path)))?.len();
            hits.push(NoteHit {
                path: note.path.to_string(),
                score: score * boost(links as u64, age),
                coverage: (told / told_by_all).min(1.0),
            });
        }
        hits.sort_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then_with(|| one.path.cmp(&other.path))
        });
        hits.truncate(most);
        Ok(hits)
    }

    /// Returns the note of a posting, if it counts.
    fn note(&self, posting: &WordOccurrence) -> Option<&IndexedNote> {
        self.notes.get(posting.note())?.as_ref()
    }

    /// Returns the postings of a word in the present notes.
    fn postings(&self, word: &str) -> io::Result<Vec<WordOccurrence>> {
        let digest = digest(word);
        let stored = self.stored.as_ref().map(|stored| stored.postings(digest));
        let mut found = stored.transpose()?.unwrap_or_default();
        found.extend(
            self.unwritten
                .iter()
                .filter(|posting| posting.word == digest),
        );
        found.retain(|posting| self.note(posting).is_some());
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
