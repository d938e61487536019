//! The index finds what a search without one finds, whatever was changed or damaged.

use std::collections::BTreeMap;

use super::*;

/// Notes for comparing searches with and without an index.
#[derive(Default)]
struct Notes {
    notes: BTreeMap<String, (String, SourceStamp)>,
    clock: i64,
}

impl Notes {
    fn set(&mut self, path: &str, text: String) {
        self.clock += 1;
        let stamp = SourceStamp {
            size: text.len() as u64,
            inode: 1,
            modified: self.clock * 3_600_000_000_000,
            changed: self.clock,
        };
        self.notes.insert(path.to_owned(), (text, stamp));
    }

    fn refresh(&self, index: &mut Index) -> IndexChanges {
        let listed: Vec<_> = self
            .notes
            .iter()
            .map(|(path, (_, stamp))| (path.clone(), *stamp))
            .collect();
        index
            .refresh(&listed, |path| {
                let (text, stamp) = &self.notes[path];
                Some((document(path, text), *stamp))
            })
            .unwrap()
    }

    /// Scores every note from its text alone.
    fn brute_force(&self, query: &str, most: usize, now_ms: i64) -> Vec<NoteHit> {
        let counted: Vec<_> = self
            .notes
            .iter()
            .map(|(path, (text, stamp))| (path, stamp, document(path, text)))
            .collect();
        let mut statistics = Statistics {
            notes: counted.len() as u64,
            lengths: [0; FIELDS],
        };
        for (_, _, IndexDocument { lengths, .. }) in &counted {
            for (sum, length) in statistics.lengths.iter_mut().zip(lengths) {
                *sum += u64::from(*length);
            }
        }
        let having = |word: &str| {
            let having = counted
                .iter()
                .filter(|(_, _, document)| document.counts.contains_key(word));
            having.count() as u64
        };
        let mut scores = vec![(0.0, 0.0); counted.len()];
        let mut weights = Vec::new();
        for term in query_terms(query) {
            let word = &term.term;
            let occurs_in = having(word);
            if term.is_joint && occurs_in == 0 {
                continue;
            }
            let weight = WordWeight::new(occurs_in, &statistics);
            let tells = term.tells(occurs_in, statistics.notes);
            weights.push(tells);
            for ((_, _, IndexDocument { counts, lengths }), score) in
                counted.iter().zip(&mut scores)
            {
                if let Some(counts) = counts.get(word) {
                    score.0 += weight.score(*counts, *lengths);
                    score.1 += tells;
                }
            }
        }
        let mut hits: Vec<_> = counted
            .iter()
            .zip(scores)
            .filter(|(_, score)| score.0 > 0.0)
            .collect();
        hits.sort_by(|one, other| other.1.0.total_cmp(&one.1.0).then(one.0.0.cmp(other.0.0)));
        hits.truncate(REORDERED.max(most));
        let mut hits: Vec<_> = hits
            .into_iter()
            .map(|((path, stamp, _), (score, told))| {
                let age = (now_ms - stamp.modified / 1_000_000) as f64 / 86_400_000.0;
                NoteHit {
                    path: path.to_string(),
                    score: score * boost(having(&link_word(name_of(path))), age),
                    coverage: (told / told_by_all(weights.clone())).min(1.0),
                }
            })
            .collect();
        hits.sort_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then(one.path.cmp(&other.path))
        });
        hits.truncate(most);
        hits
    }
}

/// Reads a text of these tests: a line is tags, a heading, or words with links.
fn document(path: &str, text: &str) -> IndexDocument {
    let mut document = IndexDocument::default();
    document.add(IndexField::Title, name_of(path));
    for line in text.lines() {
        let field = match line.as_bytes().first() {
            Some(b'#') => IndexField::Heading,
            Some(b'@') => IndexField::Tag,
            Some(_) | None => IndexField::Body,
        };
        document.add(field, line);
        if let Some((_, link)) = line.split_once("[[") {
            document.link(link.split("]]").next().unwrap_or_default());
        }
    }
    document
}

/// Returns a random word of a small vocabulary, common ones more often.
fn word(random: &mut fastrand::Rng) -> String {
    let number = random.usize(1..60) * random.usize(1..60) / 60;
    format!("w{number}")
}

fn text(random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    if random.bool() {
        text += &format!("@ {} {}\n", word(random), word(random));
    }
    for _ in 0..random.usize(0..12) {
        if random.u8(..) < 60 {
            text += "## ";
        }
        for _ in 0..random.usize(0..12) {
            text += &word(random);
            text += " ";
        }
        if random.u8(..) < 40 {
            text += &format!("[[Note {}]] #{}", random.usize(0..200), word(random));
        }
        text += "\n";
    }
    text
}

#[test]
fn the_best_ten_are_those_of_a_search_without_an_index() {
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index::open(folder.path()).unwrap();
        let mut notes = Notes::default();
        for round in 0..20 {
            for _ in 0..random.usize(1..if round == 0 { 200 } else { 12 }) {
                let path = format!("Note {}.md", random.usize(0..200));
                if random.u8(..) < 50 {
                    notes.notes.remove(&path);
                } else {
                    let text = text(&mut random);
                    notes.set(&path, text);
                }
            }
            notes.refresh(&mut index);
            assert_eq!(index.notes(), notes.notes.len() as u64);
            if random.bool() {
                index = Index::open(folder.path()).unwrap();
                notes.refresh(&mut index);
            }
            let now_ms = notes.clock * 3_600_000;
            for _ in 0..2 {
                let query = format!("{} {} {}", word(&mut random), word(&mut random), "w1");
                let found = index.search(&query, 10, now_ms).unwrap();
                let expected = notes.brute_force(&query, 10, now_ms);
                assert_eq!(found, expected, "seed {seed}, round {round}: {query}");
            }
        }
        assert_eq!(notes.refresh(&mut index), IndexChanges::default());
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 2, "the index and its lock");
    }
}

#[test]
fn a_damaged_index_is_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    let mut random = fastrand::Rng::with_seed(7);
    for number in 0..50 {
        let text = text(&mut random);
        notes.set(&format!("Note {number}.md"), text);
    }
    notes.refresh(&mut Index::open(folder.path()).unwrap());
    let expected = notes.brute_force("w1 w2", 10, 0);
    let file = folder.path().join("index");
    let whole = fs::read(&file).unwrap();
    for cut in (0..whole.len()).step_by(whole.len() / 60) {
        fs::write(&file, &whole[..cut]).unwrap();
        let mut index = Index::open(folder.path()).unwrap();
        notes.refresh(&mut index);
        assert_eq!(index.search("w1 w2", 10, 0).unwrap(), expected, "{cut}");
    }
    for byte in (0..whole.len()).step_by(whole.len() / 300) {
        let mut flipped = whole.clone();
        flipped[byte] ^= 0x55;
        fs::write(&file, &flipped).unwrap();
        // Not every flipped bit can be noticed, but none may panic or take endless memory.
        let mut index = Index::open(folder.path()).unwrap();
        let _ = index.search("w1 w2 w3", 10, 0);
        let _ = notes.refresh(&mut index);
    }
}

#[test]
fn a_few_changes_are_found_without_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    for number in 0..1_000 {
        notes.set(&format!("Note {number}.md"), "w1".to_owned());
    }
    let mut index = Index::open(folder.path()).unwrap();
    notes.refresh(&mut index);
    let before = fs::read(folder.path().join("index")).unwrap();
    notes.set("Note 7.md", "unheard".to_owned());
    notes.notes.remove("Note 8.md");
    for _ in 0..2 {
        assert_eq!(notes.refresh(&mut index).changed, 1);
        let found = index.search("unheard", 10, 0).unwrap();
        assert_eq!(found, notes.brute_force("unheard", 10, 0));
        assert_eq!(fs::read(folder.path().join("index")).unwrap(), before);
        index = Index::open(folder.path()).unwrap();
    }
    for number in 0..20 {
        notes.set(&format!("Note {number}.md"), "w2".to_owned());
    }
    notes.refresh(&mut index);
    let mut index = Index::open(folder.path()).unwrap();
    assert_eq!(notes.refresh(&mut index), IndexChanges::default());
}
