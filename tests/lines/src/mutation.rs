//! Mutations of lines: small steps from what people type towards what harms.

use fastrand::Rng;

use super::dictionary::{CHARACTERS, FRAMES, OPERANDS, OPTIONS, PAYLOADS, PREFIXES, SPACES};

/// Steps that one line takes, at most.
const MOST_STEPS: usize = 3;

/// No line grows longer, in bytes.
const LONGEST: usize = 4096;

/// Lines that mutations start from.
pub struct Stock {
    /// Lines that only read. Most mutations start here, for these are nearest to being believed.
    pub reading: Vec<String>,
    /// All others.
    pub other: Vec<String>,
}

impl Stock {
    /// The mutation that belongs to a seed: the same one always, for the same lines.
    pub fn mutation(&self, seed: u64) -> String {
        // Neighbouring seeds must not give neighbouring numbers.
        let mut random =
            Rng::with_seed(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x6779_7275_7367_6174);
        let mut line = self.one(&mut random).to_owned();
        for _ in 0..=random.usize(..MOST_STEPS) {
            let next = self.step(&line, &mut random);
            if next.len() <= LONGEST {
                line = next;
            }
        }
        // Neither can be handed to a shell.
        line.replace('\0', "")
    }

    fn one(&self, random: &mut Rng) -> &str {
        let list = match random.usize(..4) {
            0 if !self.other.is_empty() => &self.other,
            _ => &self.reading,
        };
        &list[random.usize(..list.len())]
    }

    fn step(&self, line: &str, random: &mut Rng) -> String {
        match random.usize(..16) {
            0 => splice(line, self.one(random), random),
            1 => insert(line, one(random, &PAYLOADS), random),
            2 => insert(line, &format!(" {} ", one(random, &PAYLOADS)), random),
            3 => format!("{line} {}", one(random, &PAYLOADS)),
            4 => format!("{}{line}", one(random, &PREFIXES)),
            5 => one(random, &FRAMES).replace('@', line),
            6 | 7 => with_option(line, random),
            8 => insert_word(line, one(random, &OPERANDS), random),
            9 => replace_word(line, random, |_, random| one(random, &OPERANDS).to_owned()),
            10 => replace_word(line, random, requote),
            11 => replace_space(line, one(random, &SPACES), random),
            12 => insert(line, one(random, &CHARACTERS), random),
            13 => without_a_character(line, random),
            14 => join(line, self.one(random), random),
            _ => replace_word(line, random, abbreviate),
        }
    }
}

/// Returns the beginning of a character of the line, or the line's end.
fn boundary(line: &str, random: &mut Rng) -> usize {
    let mut at = random.usize(..=line.len());
    while !line.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn insert(line: &str, text: &str, random: &mut Rng) -> String {
    let at = boundary(line, random);
    format!("{}{text}{}", &line[..at], &line[at..])
}

fn without_a_character(line: &str, random: &mut Rng) -> String {
    let at = boundary(line, random);
    let mut rest = line[at..].chars();
    rest.next();
    format!("{}{}", &line[..at], rest.as_str())
}

/// The beginning of one line, by words, and the end of another.
fn splice(line: &str, other: &str, random: &mut Rng) -> String {
    let start: Vec<&str> = line.split(' ').collect();
    let end: Vec<&str> = other.split(' ').collect();
    let start = &start[..=random.usize(..start.len())];
    let end = &end[random.usize(..end.len())..];
    [start, end].concat().join(" ")
}

fn join(line: &str, other: &str, random: &mut Rng) -> String {
    let by = one(
        random,
        &[" ; ", " && ", " | ", " || ", "\n", " & ", " |& ", "; "],
    );
    format!("{line}{by}{other}")
}

fn insert_word(line: &str, word: &str, random: &mut Rng) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let at = 1 + random.usize(..words.len());
    words.insert(at, word);
    words.join(" ")
}

fn replace_word(line: &str, random: &mut Rng, by: impl Fn(&str, &mut Rng) -> String) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let at = random.usize(..words.len());
    let new = by(words[at], random);
    let mut words: Vec<&str> = words;
    words[at] = &new;
    words.join(" ")
}

/// The same word in other quotes, or with an escape; not always the same word to a shell.
fn requote(word: &str, random: &mut Rng) -> String {
    let bare = word.trim_matches(['\'', '"']);
    match random.usize(..8) {
        0 => bare.to_owned(),
        1 => format!("'{bare}'"),
        2 => format!("\"{bare}\""),
        3 => format!("$'{bare}'"),
        4 => format!("$\"{bare}\""),
        5 => insert(bare, "\\", random),
        6 => insert(bare, "''", random),
        _ => insert(bare, "\\\n", random),
    }
}

/// `--option` shortened, which most programs understand.
fn abbreviate(word: &str, random: &mut Rng) -> String {
    match word.strip_prefix("--").filter(|name| name.len() > 2) {
        Some(name) => {
            let end = 1 + boundary(&name[1..], random).max(1);
            match name.get(..end) {
                Some(short) => format!("--{short}"),
                None => word.to_owned(),
            }
        }
        None => format!("{word}{word}"),
    }
}

fn replace_space(line: &str, by: &str, random: &mut Rng) -> String {
    let spaces: Vec<usize> = line.match_indices(' ').map(|(at, _)| at).collect();
    if spaces.is_empty() {
        format!("{by}{line}")
    } else {
        let at = spaces[random.usize(..spaces.len())];
        format!("{}{by}{}", &line[..at], &line[at + 1..])
    }
}

/// A dangerous option after a program that has it, else after any word.
fn with_option(line: &str, random: &mut Rng) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let known: Vec<(usize, &[&str])> = words
        .iter()
        .enumerate()
        .flat_map(|(at, word)| {
            OPTIONS
                .iter()
                .filter(move |(program, _)| program == word)
                .map(move |(_, options)| (at, *options))
        })
        .collect();
    let (program, options) = if known.is_empty() {
        (
            random.usize(..words.len()),
            OPTIONS[random.usize(..OPTIONS.len())].1,
        )
    } else {
        known[random.usize(..known.len())]
    };
    // Right behind the program, or further on in its command.
    let at = program + 1 + random.usize(..(words.len() - program).min(4));
    words.insert(at, one(random, options));
    words.join(" ")
}

/// One of the list, which is not empty.
fn one<'a>(random: &mut Rng, list: &[&'a str]) -> &'a str {
    list[random.usize(..list.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_line_and_lines_differ() {
        let stock = Stock {
            reading: vec!["ls -l".to_owned(), "grep -r ü .".to_owned(), String::new()],
            other: vec!["touch FLAG".to_owned()],
        };
        let lines = |from: u64| (from..from + 20_000).map(|seed| stock.mutation(seed));
        assert!(lines(0).eq(lines(0)));
        let all: std::collections::BTreeSet<String> = lines(0).collect();
        assert!(all.len() > 10_000, "{} different lines", all.len());
        assert!(
            all.iter()
                .all(|line| line.len() <= LONGEST && !line.contains('\0'))
        );
    }
}
