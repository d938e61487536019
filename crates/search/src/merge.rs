//! Merges segments: which of them, and how.

use std::path::Path;

use crate::segment::{IndexError, Postings, Segment, Writer};

/// Number of segments of similar size at which they become one; also the factor between sizes that
/// are similar.
const TIER: usize = 8;

/// Returns the places of segments that are to become one, sorted; `None` if all is well. Of each
/// segment the notes that count and all its notes are given.
pub(super) fn to_merge(sizes: &[(usize, usize)]) -> Option<Vec<usize>> {
    // One that is mostly dead is written again without them.
    let wasteful = |(alive, all): &(usize, usize)| alive * 2 < *all;
    if let Some(place) = sizes.iter().position(wasteful) {
        return Some(vec![place]);
    }
    let tier = |alive: usize| alive.max(1).ilog(TIER);
    let tiers = 0..=tier(sizes.iter().map(|(alive, _)| *alive).max()?);
    for wanted in tiers {
        let places: Vec<usize> = (0..sizes.len())
            .filter(|place| tier(sizes[*place].0) == wanted)
            .collect();
        if places.len() >= TIER {
            return Some(places);
        }
    }
    None
}

/// Writes one segment with the notes of several that count.
pub(super) fn merge(inputs: &[(&Segment, &[bool])], path: &Path) -> Result<(), IndexError> {
    const DEAD: u32 = u32::MAX;
    let mut notes = Vec::new();
    let mut numbers: Vec<Vec<u32>> = Vec::new();
    for (segment, alive) in inputs {
        let mut new = Vec::with_capacity(alive.len());
        for (note, alive) in segment.notes.iter().zip(*alive) {
            if *alive {
                new.push(u32::try_from(notes.len()).map_err(|_| IndexError::Damaged)?);
                notes.push(note.clone());
            } else {
                new.push(DEAD);
            }
        }
        numbers.push(new);
    }
    let mut cursors = Vec::new();
    for (segment, _) in inputs {
        cursors.push(segment.cursor()?);
    }
    let mut writer = Writer::new(path)?;
    while let Some(word) = cursors.iter().filter_map(|cursor| cursor.word()).min() {
        let word = word.to_owned();
        let mut merged = Postings::default();
        for (cursor, numbers) in cursors.iter_mut().zip(&numbers) {
            if cursor.word() != Some(&word) {
                continue;
            }
            for mut posting in cursor.take()? {
                posting.note = numbers[posting.note as usize];
                if posting.note != DEAD {
                    merged.add(posting);
                }
            }
        }
        if !merged.is_empty() {
            writer.add(&word, &merged)?;
        }
    }
    Ok(writer.finish(&notes)?)
}
