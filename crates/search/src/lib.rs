//! Search over texts by their words: an index in files, the texts best first.
//!
//! The one idea: an index is never needed. Everything here can be deleted at any time, and the next
//! use builds it again from the texts. Every use compares the texts' stamps with those in the index,
//! reads the texts that changed, and writes them as a new segment; segments of similar size are
//! merged, so that their number stays small. One process at a time changes an index. Another one that
//! has it open notices by the list of segments, and keeps its files for as long as it needs them.
//!
//! A [`Ranking`] compares texts that are in memory anyway, for one question and without files.
//!
//! The callers know the texts and their places (notes of the memory, past runs). This crate never
//! reads one itself.

mod words;
mod document;
mod segment;
mod rank;
mod merge;
mod ranking;

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub use self::{
    document::{Document, IndexField, name_of},
    ranking::Ranking,
    segment::{IndexError, Stamp},
    words::{query_words, words},
};
use self::{
    document::{FIELDS, link_word},
    merge::{merge, to_merge},
    rank::{REORDERED, Statistics, WordWeight, boost, telling, told_by_all},
    segment::{Builder, IndexedNote, Posting, Segment},
};

/// Memory that words may take before they are written as a segment.
const MAX_BUILDER_BYTES: usize = 48 << 20;

const VERSION: u32 = 1;

/// Segments that count, in the order of their making.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    segments: Vec<ListedSegment>,
    /// Number of the next segment.
    next: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ListedSegment {
    number: u64,
    /// Notes that were changed or deleted since, sorted.
    dead: Vec<u32>,
}

#[derive(Debug)]
struct Part {
    number: u64,
    segment: Segment,
    /// Whether each note still counts.
    alive: Vec<bool>,
}

impl Part {
    fn living(&self) -> impl Iterator<Item = (u32, &IndexedNote)> {
        let notes = (0..).zip(&self.segment.notes);
        notes.filter(|(number, _)| self.alive[*number as usize])
    }
}

/// A note that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its path, or what else it was added by.
    pub path: String,
    /// Its score; higher is better.
    pub score: f64,
    /// Part of what the query tells that the note has words of, from 0 to 1.
    pub coverage: f64,
}

/// Result of comparing the index with the notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// Number of texts that were read.
    pub changed: usize,
    /// Number of texts that no longer count, or not as they were.
    pub removed: usize,
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    manifest: Manifest,
    parts: Vec<Part>,
    statistics: Statistics,
}

impl Index {
    /// Opens the index in a folder, which is made if it is missing. One that cannot be read is
    /// deleted.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut index = Self {
            folder: folder.to_owned(),
            manifest: Manifest::default(),
            parts: Vec::new(),
            statistics: Statistics {
                notes: 0,
                lengths: [0; FIELDS],
            },
        };
        let _ = index.load();
        Ok(index)
    }

    /// Reads the list of segments again, if it changed. Whether there is one: each that was written
    /// had been compared with all notes. If anything is damaged, the index is empty.
    fn load(&mut self) -> Result<bool, IndexError> {
        let read = fs::read(self.folder.join("segments.json"));
        let manifest = match read {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Manifest::default(),
            Err(error) => return Err(error.into()),
        };
        let is_there = manifest.version == VERSION;
        let manifest = if is_there {
            manifest
        } else {
            Manifest {
                next: manifest.next,
                ..Manifest::default()
            }
        };
        if manifest == self.manifest && self.parts.len() == manifest.segments.len() {
            return Ok(is_there);
        }
        let mut old: HashMap<u64, Segment> = self
            .parts
            .drain(..)
            .map(|part| (part.number, part.segment))
            .collect();
        for listed in &manifest.segments {
            let opened = match old.remove(&listed.number) {
                Some(segment) => Ok(segment),
                None => Segment::open(&self.path(listed.number)),
            };
            let segment = match opened {
                Ok(segment) => segment,
                Err(error) => {
                    self.parts.clear();
                    self.manifest = Manifest {
                        next: manifest.next,
                        ..Manifest::default()
                    };
                    self.count();
                    return Err(error);
                }
            };
            let mut alive = vec![true; segment.notes.len()];
            for dead in &listed.dead {
                if let Some(note) = alive.get_mut(*dead as usize) {
                    *note = false;
                }
            }
            self.parts.push(Part {
                number: listed.number,
                segment,
                alive,
            });
        }
        self.manifest = manifest;
        self.count();
        Ok(is_there)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.segment"))
    }

    fn count(&mut self) {
        let mut statistics = Statistics {
            notes: 0,
            lengths: [0; FIELDS],
        };
        for (_, note) in self.parts.iter().flat_map(Part::living) {
            statistics.notes += 1;
            for (sum, length) in statistics.lengths.iter_mut().zip(note.lengths) {
                *sum += u64::from(length);
            }
        }
        self.statistics = statistics;
    }

    /// Returns the number of notes.
    #[cfg(test)]
    pub fn notes(&self) -> u64 {
        self.statistics.notes
    }

    /// Brings the index up to date with these notes; `read` returns the content of one, or `None`
    /// if it is gone. A note whose stamp is the default one is read again the next time.
    pub fn refresh(
        &mut self,
        notes: &[(String, Stamp)],
        read: impl FnMut(&str) -> Option<(Document, Stamp)>,
    ) -> Result<IndexChanges, IndexError> {
        let _lock = self.lock()?;
        // A damaged index is built again.
        let is_there = matches!(self.load(), Ok(true));
        let differences = self.differences(notes);
        let refreshed = self.take_in(differences, read)?;
        if !is_there && self.parts.is_empty() {
            self.save()?;
        }
        Ok(refreshed)
    }

    /// Brings the index up to date with these notes alone; `None` stands for one that is gone.
    /// Returns whether that is enough: if not, it has to be compared with all notes.
    pub fn refresh_some(
        &mut self,
        notes: &[(&str, Option<Stamp>)],
        read: impl FnMut(&str) -> Option<(Document, Stamp)>,
    ) -> Result<bool, IndexError> {
        let _lock = self.lock()?;
        if !matches!(self.load(), Ok(true)) {
            return Ok(false);
        }
        let mut wanted: HashMap<&str, Option<Stamp>> = notes.iter().copied().collect();
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for (number, part) in self.parts.iter().enumerate() {
            for (note, indexed) in part.living() {
                match wanted.remove(&*indexed.path) {
                    Some(Some(stamp)) if stamp == indexed.stamp => {}
                    Some(stamp) => {
                        removed.push((number, note));
                        changed.extend(stamp.map(|_| indexed.path.to_string()));
                    }
                    None => {}
                }
            }
        }
        let new = wanted.into_iter().filter(|(_, stamp)| stamp.is_some());
        changed.extend(new.map(|(path, _)| path.to_owned()));
        let changed = changed.iter().map(String::as_str).collect();
        self.take_in((changed, removed), read)?;
        Ok(true)
    }

    fn lock(&self) -> io::Result<File> {
        // Somebody may have deleted it.
        fs::create_dir_all(&self.folder)?;
        let lock = File::create(self.folder.join("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    fn take_in(
        &mut self,
        (changed, removed): (Vec<&str>, Vec<(usize, u32)>),
        mut read: impl FnMut(&str) -> Option<(Document, Stamp)>,
    ) -> Result<IndexChanges, IndexError> {
        let refreshed = IndexChanges {
            changed: changed.len(),
            removed: removed.len(),
        };
        if changed.is_empty() && removed.is_empty() {
            return Ok(refreshed);
        }
        let mut is_other = !removed.is_empty();
        for (part, note) in removed {
            self.parts[part].alive[note as usize] = false;
        }
        let mut builder = Builder::default();
        for path in changed {
            let Some((document, stamp)) = read(path) else {
                continue;
            };
            is_other = true;
            builder.add(path, stamp, document);
            if builder.bytes() > MAX_BUILDER_BYTES {
                self.write(std::mem::take(&mut builder))?;
            }
        }
        if !is_other {
            return Ok(refreshed);
        }
        self.write(builder)?;
        self.merge()?;
        self.save()?;
        self.count();
        Ok(refreshed)
    }

    /// Returns the paths that are to be read, and the notes that no longer count.
    fn differences<'n>(&self, notes: &'n [(String, Stamp)]) -> (Vec<&'n str>, Vec<(usize, u32)>) {
        let mut known: HashMap<&str, (usize, u32, Stamp)> = HashMap::new();
        for (number, part) in self.parts.iter().enumerate() {
            for (note, indexed) in part.living() {
                known.insert(&indexed.path, (number, note, indexed.stamp));
            }
        }
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for (path, stamp) in notes {
            match known.remove(path.as_str()) {
                Some((_, _, before)) if before == *stamp => {}
                Some((part, note, _)) => {
                    removed.push((part, note));
                    changed.push(path.as_str());
                }
                None => changed.push(path.as_str()),
            }
        }
        removed.extend(known.into_values().map(|(part, note, _)| (part, note)));
        (changed, removed)
    }

    fn write(&mut self, builder: Builder) -> Result<(), IndexError> {
        if builder.notes.is_empty() {
            return Ok(());
        }
        let number = self.number();
        let path = self.path(number);
        builder.write(&path)?;
        self.open_part(number)
    }

    fn number(&mut self) -> u64 {
        self.manifest.next += 1;
        self.manifest.next
    }

    fn open_part(&mut self, number: u64) -> Result<(), IndexError> {
        let segment = Segment::open(&self.path(number))?;
        self.parts.push(Part {
            number,
            alive: vec![true; segment.notes.len()],
            segment,
        });
        Ok(())
    }

    /// Merges segments until no tier has too many.
    fn merge(&mut self) -> Result<(), IndexError> {
        loop {
            self.parts.retain(|part| part.alive.contains(&true));
            let sizes: Vec<_> = self
                .parts
                .iter()
                .map(|part| (part.living().count(), part.alive.len()))
                .collect();
            let Some(chosen) = to_merge(&sizes) else {
                return Ok(());
            };
            let number = self.number();
            let mut parts = Vec::new();
            for place in chosen.iter().rev() {
                parts.push(self.parts.remove(*place));
            }
            parts.reverse();
            let inputs: Vec<_> = parts
                .iter()
                .map(|part| (&part.segment, part.alive.as_slice()))
                .collect();
            merge(&inputs, &self.path(number))?;
            self.open_part(number)?;
        }
    }

    /// Writes the list of segments, and deletes the files that are not in it.
    fn save(&mut self) -> io::Result<()> {
        self.manifest = Manifest {
            version: VERSION,
            next: self.manifest.next,
            segments: self
                .parts
                .iter()
                .map(|part| ListedSegment {
                    number: part.number,
                    dead: (0..)
                        .zip(&part.alive)
                        .filter_map(|(note, alive)| (!alive).then_some(note))
                        .collect(),
                })
                .collect(),
        };
        let draft = self.folder.join("segments.draft");
        let mut file = File::create(&draft)?;
        serde_json::to_writer(&mut file, &self.manifest)?;
        file.sync_all()?;
        fs::rename(&draft, self.folder.join("segments.json"))?;
        File::open(&self.folder)?.sync_all()?;
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".segment"));
            let is_unused = number.is_some_and(|number| {
                let mut listed = self.parts.iter().map(|part| part.number.to_string());
                !listed.any(|listed| listed == number)
            });
            if is_unused {
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
        Ok(())
    }

    /// Returns the texts that have words of the query, the best first. `now_ms` is the time against
    /// which their ages count.
    pub fn search(&self, query: &str, most: usize, now_ms: i64) -> Result<Vec<Hit>, IndexError> {
        let all: Vec<_> = self.parts.iter().map(|part| part.alive.clone()).collect();
        self.search_among(&all, query, most, now_ms)
    }

    /// Returns the same of those that link to a name.
    pub fn search_linking_to(
        &self,
        name: &str,
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<Hit>, IndexError> {
        let linking = self.postings(&link_word(name))?;
        let among = self.parts.iter().zip(linking).map(|(part, linking)| {
            let mut among = vec![false; part.alive.len()];
            for posting in linking {
                among[posting.note as usize] = true;
            }
            among
        });
        self.search_among(&among.collect::<Vec<_>>(), query, most, now_ms)
    }

    /// Returns the paths of the texts that link to a name, sorted.
    pub fn linking_to(&self, name: &str) -> Result<Vec<&str>, IndexError> {
        let linking = self.postings(&link_word(name))?;
        let mut paths = Vec::new();
        for (part, linking) in self.parts.iter().zip(linking) {
            let notes = linking.iter().map(|posting| posting.note as usize);
            paths.extend(notes.map(|note| &*part.segment.notes[note].path));
        }
        paths.sort_unstable();
        Ok(paths)
    }

    fn search_among(
        &self,
        among: &[Vec<bool>],
        query: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<Hit>, IndexError> {
        // What each note has of the score, and of what the query tells.
        let mut scores: Vec<Vec<(f64, f64)>> = self
            .parts
            .iter()
            .map(|part| vec![(0.0, 0.0); part.alive.len()])
            .collect();
        let mut words = Vec::new();
        for word in query_words(query) {
            let found = self.postings(&word)?;
            let occurs_in = found.iter().map(|found| found.len() as u64).sum();
            let weight = WordWeight::new(occurs_in, &self.statistics);
            let tells = telling(&word, occurs_in, self.statistics.notes);
            words.push(tells);
            for ((part, found), scores) in self.parts.iter().zip(found).zip(&mut scores) {
                for posting in found {
                    let note = posting.note as usize;
                    let lengths = part.segment.notes[note].lengths;
                    scores[note].0 += weight.score(posting.counts, lengths);
                    scores[note].1 += tells;
                }
            }
        }
        let mut best = Vec::new();
        for ((part, scores), among) in self.parts.iter().zip(&scores).zip(among) {
            let scored = part.segment.notes.iter().zip(scores);
            let scored = scored.zip(among).filter(|(_, is_among)| **is_among);
            best.extend(
                scored
                    .map(|(scored, _)| scored)
                    .filter(|(_, score)| score.0 > 0.0),
            );
        }
        let better = |one: &(&IndexedNote, &(f64, f64)), other: &(&IndexedNote, &(f64, f64))| {
            (other.1.0)
                .total_cmp(&one.1.0)
                .then_with(|| one.0.path.cmp(&other.0.path))
        };
        let kept = REORDERED.max(most);
        if best.len() > kept {
            best.select_nth_unstable_by(kept, better);
            best.truncate(kept);
        }
        let told_by_all = told_by_all(words);
        let mut hits = Vec::with_capacity(best.len());
        for (note, (score, told)) in best {
            let age = (now_ms - note.stamp.modified / 1_000_000) as f64 / 86_400_000.0;
            hits.push(Hit {
                path: note.path.to_string(),
                score: score * boost(self.links_to(&note.path)?, age),
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

    /// Returns the postings of a word in each segment, of notes that count.
    fn postings(&self, word: &str) -> Result<Vec<Vec<Posting>>, IndexError> {
        let found = self.parts.iter().map(|part| {
            let mut found = part.segment.postings(word)?;
            found.retain(|posting| part.alive[posting.note as usize]);
            Ok(found)
        });
        found.collect()
    }

    /// Returns the number of notes that link to a note.
    fn links_to(&self, path: &str) -> Result<u64, IndexError> {
        let found = self.postings(&link_word(name_of(path)))?;
        Ok(found.iter().map(|found| found.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests;
