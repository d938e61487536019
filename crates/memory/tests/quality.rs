//! How well the memory finds what a person means: 60 notes, 60 questions in a person's words, each
//! with the notes that answer it (2) or help (1). The measure is nDCG@10 (Järvelin and Kekäläinen,
//! "Cumulated gain-based evaluation of IR techniques", 2002), and the figures stand in
//! `docs/memory.md`.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::{collections::HashMap, fs};

use gyrus_memory::Vault;
use gyrus_search::{query_words, words};

const NOTES: &str = include_str!("questions/notes.md");
const QUESTIONS: &str = include_str!("questions/questions.txt");

/// Time at which all notes are equally old.
const NOW: i64 = 4_000_000_000_000;

const CUT: usize = 10;

fn notes() -> Vec<(&'static str, &'static str)> {
    let notes = NOTES.split("@@ ").skip(1);
    notes.map(|note| note.split_once('\n').unwrap()).collect()
}

fn questions() -> Vec<(&'static str, HashMap<&'static str, f64>)> {
    let questions = QUESTIONS.lines().map(|line| {
        let (question, grades) = line.split_once(" | ").unwrap();
        let grades = grades.split(", ").map(|grade| {
            let (note, grade) = grade.split_once('=').unwrap();
            (note, grade.parse().unwrap())
        });
        (question, grades.collect())
    });
    questions.collect()
}

/// Returns the gain of a ranking, as a part of the best one's.
fn ndcg<'n>(ranked: impl Iterator<Item = &'n str>, grades: &HashMap<&str, f64>) -> f64 {
    let sum = |grades: &mut dyn Iterator<Item = f64>| -> f64 {
        let gains = grades.take(CUT).zip(0..);
        gains
            .map(|(grade, place)| (grade.exp2() - 1.0) / f64::from(place + 2).log2())
            .sum()
    };
    let mut best: Vec<f64> = grades.values().copied().collect();
    best.sort_by(|one, other| other.total_cmp(one));
    let mut found = ranked.map(|note| grades.get(note).copied().unwrap_or(0.0));
    sum(&mut found) / sum(&mut best.into_iter())
}

/// Ranks notes by how often the words of the question stand in them, as a plain search would.
fn counted(question: &str) -> Vec<&'static str> {
    let wanted = query_words(question);
    let count = |text: &str| {
        let mut count = 0;
        words(text, |word| {
            count += usize::from(wanted.iter().any(|wanted| wanted == word));
        });
        count
    };
    let mut ranked: Vec<_> = notes()
        .into_iter()
        .map(|(path, text)| (count(path) + count(text), path))
        .filter(|(count, _)| *count > 0)
        .collect();
    ranked.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    ranked.into_iter().map(|(_, path)| path).collect()
}

#[test]
fn questions_of_a_person_find_their_notes() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::at(
        &folder.path().join("notes"),
        true,
        &folder.path().join("state"),
    );
    for (path, text) in notes() {
        let path = folder.path().join("notes").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let searcher = vault.searcher().unwrap();
    let questions = questions();
    let (mut ours, mut plain, mut given) = (0.0, 0.0, 0);
    for (question, grades) in &questions {
        let found = searcher.recall(question, CUT, NOW).unwrap();
        let mut ranked: Vec<&str> = found.iter().map(|piece| piece.note.as_str()).collect();
        ranked.dedup();
        let of_ours = ndcg(ranked.iter().copied(), grades);
        let of_plain = ndcg(counted(question).into_iter(), grades);
        if of_ours < 0.6 {
            eprintln!("{question}: {of_ours:.2}, {of_plain:.2}: {ranked:?}");
        }
        ours += of_ours;
        plain += of_plain;
        // What a run with this goal is given has the note that answers it.
        let context = searcher.context(question, NOW).unwrap();
        let has = grades
            .iter()
            .filter(|(_, grade)| **grade > 1.0)
            .any(|(note, _)| context.text.contains(&format!("[{note}, line ")));
        given += usize::from(has);
    }
    let count = questions.len() as f64;
    let (ours, plain) = (ours / count, plain / count);
    eprintln!("nDCG@10: {ours:.3}, counting words: {plain:.3}; given to the run: {given}");
    assert!(ours > plain && ours > 0.8, "{ours} {plain}");
    assert!(given >= 56, "{given}");
}
