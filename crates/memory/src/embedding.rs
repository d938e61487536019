//! Search by meaning, where a person has configured a server that turns texts into vectors.
//!
//! Vectors are files beside the index, named by the digest of their text, and can be deleted at any
//! time like it. What cannot be embedded now is found by its words alone.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::Digest;
use gyrus_search::{NoteHit, SourceStamp};

use crate::note::Note;

/// Number of characters of a note, with its name, that are embedded.
const EMBEDDED_CHARS: usize = 6_000;

/// Number of texts in one request.
const BATCH: usize = 32;

/// Maximum number of notes that are embedded before one search; the others follow at the next.
const MAX_AT_ONCE: usize = 1_024;

/// Maximum number of notes that are found by meaning.
const NEAREST: usize = 50;

/// Number of the nearest notes that are found even without a word of the query.
const ABOUT: usize = 3;

/// Coverage of such a note: enough to be recalled, too little to be given unasked. It is whole if
/// the note stands out.
const NEAR: f64 = 0.1;

/// Standard deviations above the mean at which a note counts as similar among many; it can be fewer
/// among few.
const STANDS_OUT: f64 = 2.75;
const STANDS_OUT_OF_FEW: f64 = 0.6;

/// The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
const FUSION: f64 = 60.0;

/// Turns texts into vectors, which are near to each other for texts with a similar meaning.
pub trait Embedder: Send + Sync {
    /// Returns the name of the model: vectors of another one say nothing.
    fn model(&self) -> &str;

    /// Returns a vector for each text.
    ///
    /// # Errors
    /// A sentence for a person.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String>;
}

#[derive(Default)]
pub(crate) struct Vectors {
    of_notes: HashMap<String, (SourceStamp, Vec<f32>)>,
}

impl Vectors {
    /// Updates the vectors for these notes, whose texts `content` returns. What was made before
    /// lies below `state`.
    pub(crate) fn refresh(
        &mut self,
        state: &Path,
        embedder: &dyn Embedder,
        notes: HashMap<&str, SourceStamp>,
        content: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), String> {
        let known = |path: &String, (stamp, _): &mut (SourceStamp, Vec<f32>)| {
            notes.get(path.as_str()) == Some(stamp)
        };
        self.of_notes.retain(known);
        let folder = state
            .join("vectors")
            .join(Digest::of(embedder.model().as_bytes()).to_string());
        let mut missing = Vec::new();
        for (path, stamp) in &notes {
            if self.of_notes.contains_key(*path) || missing.len() == MAX_AT_ONCE {
                continue;
            }
            // It may be gone since, or too large.
            let Some(content) = content(path) else {
                continue;
            };
            let note = Note::new(path, &content);
            let text = format!("{}\n{}", note.name(), note.body());
            let text = gyrus_text::first_chars(&text, EMBEDDED_CHARS).to_owned();
            let file = folder.join(Digest::of(text.as_bytes()).to_string());
            match read(&file) {
                Some(vector) => {
                    self.of_notes.insert((*path).to_owned(), (*stamp, vector));
                }
                None => missing.push(((*path).to_owned(), *stamp, text, file)),
            }
        }
        for batch in missing.chunks(BATCH) {
            let texts: Vec<String> = batch.iter().map(|(_, _, text, _)| text.clone()).collect();
            for ((path, stamp, _, file), vector) in batch.iter().zip(vectors(embedder, &texts)?) {
                // One that cannot be kept is made again.
                let _ = write(file, &vector);
                self.of_notes.insert(path.clone(), (*stamp, vector));
            }
        }
        Ok(())
    }

    /// Combines the results of the search by words with the notes nearest to the query, by
    /// reciprocal ranks.
    pub(crate) fn fuse(
        &self,
        embedder: &dyn Embedder,
        query: &str,
        hits: Vec<NoteHit>,
    ) -> Result<Vec<NoteHit>, String> {
        let asked = vectors(embedder, &[query.to_owned()])?;
        let near = |vector: &[f32]| -> f64 {
            let parts = asked.iter().flatten().zip(vector);
            parts.map(|(one, other)| f64::from(one * other)).sum()
        };
        let notes = self.of_notes.iter();
        let mut nearest: Vec<(f64, &String)> = notes
            .map(|(path, (_, vector))| (near(vector), path))
            .collect();
        nearest.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        let count = nearest.len().max(1) as f64;
        let mean = nearest.iter().map(|(near, _)| near).sum::<f64>() / count;
        let variance = nearest
            .iter()
            .map(|(near, _)| (near - mean).powi(2))
            .sum::<f64>()
            / count;
        let deviations = STANDS_OUT.min(STANDS_OUT_OF_FEW * count.sqrt());
        let least = mean + deviations * variance.sqrt();
        let mut fused: HashMap<String, NoteHit> = HashMap::new();
        for (place, hit) in hits.into_iter().enumerate() {
            let score = 1.0 / (FUSION + place as f64);
            fused.insert(hit.path.clone(), NoteHit { score, ..hit });
        }
        for (place, (near, path)) in nearest.into_iter().take(NEAREST).enumerate() {
            let hit = fused.entry(path.clone()).or_insert_with(|| NoteHit {
                path: path.clone(),
                score: 0.0,
                coverage: 0.0,
            });
            hit.score += 1.0 / (FUSION + place as f64);
            if place < ABOUT {
                hit.coverage = if near > least {
                    1.0
                } else {
                    hit.coverage.max(NEAR)
                };
            }
        }
        let mut fused: Vec<NoteHit> = fused.into_values().collect();
        fused.sort_by(|one, other| {
            other
                .score
                .total_cmp(&one.score)
                .then_with(|| one.path.cmp(&other.path))
        });
        Ok(fused)
    }
}

/// Returns the vectors of texts, each of length 1.
fn vectors(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
    let mut vectors = embedder.embed(texts)?;
    if vectors.len() != texts.len() {
        return Err(format!(
            "{} texts were embedded, and {} vectors came",
            texts.len(),
            vectors.len()
        ));
    }
    for vector in &mut vectors {
        let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
        if !length.is_normal() {
            return Err("a vector has no length".to_owned());
        }
        vector.iter_mut().for_each(|part| *part /= length);
    }
    Ok(vectors)
}

fn read(file: &Path) -> Option<Vec<f32>> {
    let bytes = fs::read(file).ok()?;
    let (parts, rest) = bytes.as_chunks::<4>();
    (rest.is_empty() && !parts.is_empty())
        .then(|| parts.iter().map(|part| f32::from_le_bytes(*part)).collect())
}

fn write(file: &Path, vector: &[f32]) -> io::Result<()> {
    fs::create_dir_all(file.parent().map(PathBuf::from).unwrap_or_default())?;
    let bytes: Vec<u8> = vector.iter().flat_map(|part| part.to_le_bytes()).collect();
    let draft = file.with_extension("draft");
    fs::write(&draft, bytes)?;
    fs::rename(draft, file)
}
