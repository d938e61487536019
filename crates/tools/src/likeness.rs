//! Finds the lines of a file that are most like a text, for a model whose quotation was not exact.

use std::fmt::Write as _;

/// Maximum number of lines of the file that are searched.
const MAX_LINES: usize = 10_000;

/// Maximum number of lines of the text that are compared.
const MAX_COMPARED: usize = 20;

/// Maximum number of lines similar to the first one from which the others are compared.
const MAX_CANDIDATES: usize = 32;

/// Maximum length of a line that is compared and shown, in bytes.
const MAX_LINE_BYTES: usize = 200;

/// Minimum likeness, from 0 to 1, of a line to the text's first line.
const LEAST_LIKENESS: f64 = 0.5;

/// Returns the part of `content` that is most similar to `wanted`: a sentence and numbered lines as
/// `read` shows them, or empty if nothing is similar.
pub(crate) fn nearest(content: &str, wanted: &str) -> String {
    let lines: Vec<&str> = content.lines().take(MAX_LINES).collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    // Blank lines do not help to find the place.
    let blank = wanted
        .iter()
        .take_while(|line| line.trim().is_empty())
        .count();
    let wanted = &wanted[blank..wanted.len().min(blank + MAX_COMPARED)];
    let Some(first) = wanted.first() else {
        return String::new();
    };
    let mut starts: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (likeness(line, first), at))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .collect();
    // The likest first; of equals, the first in the file, as the order of equals is kept.
    starts.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let candidates = starts.into_iter().take(MAX_CANDIDATES);
    let best = candidates
        .rev()
        .map(|(of_first, start)| {
            let others = wanted.iter().zip(&lines[start..]).skip(1);
            let sum: f64 = others.map(|(wanted, line)| likeness(line, wanted)).sum();
            ((of_first + sum) / wanted.len() as f64, start)
        })
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let Some((best, start)) = best else {
        return String::new();
    };
    let found = &lines[start..lines.len().min(start + wanted.len())];
    let mut text = if best >= 1.0 {
        "It differs only in white space from:\n".to_owned()
    } else {
        "Most like it is:\n".to_owned()
    };
    for (number, line) in (start + 1..).zip(found) {
        let _ = writeln!(text, "{number:>6}\t{}", clipped(line));
    }
    text
}

/// Returns the likeness of two lines, from 0 to 1; 1 if they differ in white space only.
fn likeness(line: &str, wanted: &str) -> f64 {
    if line.split_whitespace().eq(wanted.split_whitespace()) {
        return 1.0;
    }
    let (line, wanted) = (clipped(line.trim()), clipped(wanted.trim()));
    // Too different in length to be alike, which is most lines and quickly seen.
    if line.len() > 2 * wanted.len() || wanted.len() > 2 * line.len() {
        return 0.0;
    }
    strsim::sorensen_dice(line, wanted).min(0.99)
}

fn clipped(line: &str) -> &str {
    gyrus_text::first_bytes(line, MAX_LINE_BYTES)
}
