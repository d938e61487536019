//! Quality of what the memory finds: 60 notes, 60 questions in a person's words, each
//! with the notes that answer it (2) or help (1). The measure is nDCG@10 (Järvelin and Kekäläinen,
//! "Cumulated gain-based evaluation of IR techniques", 2002), and the figures stand in
//! `docs/memory.md`.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::{collections::HashMap, fs, path::Path};

use gyrus_memory::{MAX_CONTEXT_TOKENS, Vault};
use gyrus_search::words;

#[path = "questions/generated.rs"]
mod generated;

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
    let mut wanted = Vec::new();
    words(question, |word| wanted.push(word.to_owned()));
    wanted.sort();
    wanted.dedup();
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
        let context = searcher.context(question, MAX_CONTEXT_TOKENS, NOW).unwrap();
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

/// Ranks notes by plain BM25 over their lower-case words: the path's and the text's.
fn by_plain_bm25(notes: &[(String, String)], question: &str) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let texts: Vec<Vec<String>> = notes
        .iter()
        .map(|(path, text)| split(&format!("{path} {text}")))
        .collect();
    let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len() as f64;
    let mut scores = vec![0.0; texts.len()];
    for word in split(question) {
        let count = |text: &Vec<String>| text.iter().filter(|one| **one == word).count() as f64;
        let having = texts.iter().filter(|text| count(text) > 0.0).count() as f64;
        let rarity = (1.0 + (texts.len() as f64 - having + 0.5) / (having + 0.5)).ln();
        for (score, text) in scores.iter_mut().zip(&texts) {
            let held_back = 1.2 * (0.25 + 0.75 * text.len() as f64 / average);
            *score += rarity * count(text) * 2.2 / (count(text) + held_back);
        }
    }
    let mut ranked: Vec<_> = scores
        .into_iter()
        .zip(notes)
        .filter(|(score, _)| *score > 0.0)
        .collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.0.cmp(&other.1.0)));
    ranked
        .into_iter()
        .map(|(_, (path, _))| path.clone())
        .collect()
}

/// Figures over many questions.
#[derive(Default)]
struct Figures {
    first: f64,
    among_five: f64,
    gain: f64,
}

impl Figures {
    fn count(&mut self, ranked: &[String], answer: &str) -> bool {
        let place = ranked.iter().take(CUT).position(|path| path == answer);
        self.first += f64::from(place == Some(0));
        self.among_five += f64::from(place.is_some_and(|place| place < 5));
        self.gain += place.map_or(0.0, |place| 1.0 / (place as f64 + 2.0).log2());
        place.is_some_and(|place| place < 5)
    }

    fn over(&self, count: usize) -> [f64; 3] {
        [self.first, self.among_five, self.gain].map(|sum| sum / count as f64)
    }
}

fn vault_of(folder: &Path, notes: &[(String, String)]) -> Vault {
    for (path, text) in notes {
        let path = folder.join("notes").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Vault::at(&folder.join("notes"), true, &folder.join("state"))
}

#[test]
fn questions_among_notes_that_are_alike_find_the_one() {
    let generated::Questions { notes, questions } = generated::questions();
    assert!(questions.len() >= 300);
    let folder = tempfile::tempdir().unwrap();
    let vault = vault_of(folder.path(), &notes);
    let searcher = vault.searcher().unwrap();
    let (mut ours, mut plain) = (Figures::default(), Figures::default());
    for (question, answer) in &questions {
        let found = searcher.recall(question, CUT, NOW).unwrap();
        let mut ranked: Vec<String> = found.into_iter().map(|piece| piece.note).collect();
        ranked.dedup();
        if !ours.count(&ranked, answer) {
            eprintln!("{question}: {answer} is not among {ranked:?}");
        }
        plain.count(&by_plain_bm25(&notes, question), answer);
    }
    let (ours, plain) = (ours.over(questions.len()), plain.over(questions.len()));
    eprintln!(
        "{} questions, {} notes; first, R@5, nDCG@10: {ours:.3?}; plain BM25: {plain:.3?}",
        questions.len(),
        notes.len()
    );
    assert!(ours[1] >= 0.97 && ours[2] > plain[2], "{ours:?} {plain:?}");
}

/// The one of sixty hives, or of ten offices, that is asked for is given to a run, and no other.
#[test]
fn one_of_many_that_are_alike_is_given() {
    let generated::Questions { notes, questions } = generated::questions();
    for (kind, count) in [("Hives/", 60), ("Offices/", 10)] {
        let is_one = |path: &str| path.starts_with(kind);
        let alike: Vec<_> = notes
            .iter()
            .filter(|note| is_one(&note.0))
            .cloned()
            .collect();
        assert_eq!(alike.len(), count);
        let folder = tempfile::tempdir().unwrap();
        let vault = vault_of(folder.path(), &alike);
        let searcher = vault.searcher().unwrap();
        for (question, answer) in questions.iter().filter(|(_, answer)| is_one(answer)) {
            let found = searcher.recall(question, CUT, NOW).unwrap();
            assert!(
                found.iter().all(|piece| piece.note == *answer),
                "{question}: {found:?}"
            );
            let given = searcher.context(question, MAX_CONTEXT_TOKENS, NOW).unwrap();
            let is_given = given.text.contains(&format!("[{answer}, line "));
            assert!(is_given && given.notes == 1, "{question}: {given:?}");
        }
    }
}
