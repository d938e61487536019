//! The wording of doc comments and messages.

use super::{Finding, source, source::Source};

/// Beginnings of doc comments that do not say what the item is or does.
const BEGINNINGS: [&str; 11] = [
    "Of", "What", "Whom", "Who", "Whose", "How", "Where", "Why", "Which", "So many", "So",
];

/// Words after `is no` with which it is plain English.
const COMPARISONS: [&str; 3] = ["longer", "larger", "more"];

/// Checks one file's doc comments and messages.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = check_beginnings(source);
    if source.path.starts_with("crates/") {
        findings.extend(check_messages(source));
    }
    findings
}

/// Checks the first line of each doc comment.
fn check_beginnings(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(source.code_and_comments.lines()) {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let first = text.filter(|_| !is_inside).unwrap_or_default().trim_start();
        let begins = |word: &&&str| {
            let rest = first.strip_prefix(**word);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        };
        if let Some(word) = BEGINNINGS.iter().find(begins) {
            let message = format!("`{word} …`: say what the item is or does, as `Returns …`");
            findings.push(Finding::new(&source.path, number, message));
        }
        is_inside = text.is_some();
    }
    findings
}

/// Checks the strings of production code for "x is no y". "There is no x" is plain English.
fn check_messages(source: &Source) -> Vec<Finding> {
    let is_literal = |at: usize| source.code_and_comments[at..].starts_with(' ');
    let is_plain = |at: usize| {
        let after = source.text[at + "is no".len()..].trim_start();
        source.text[..at].ends_with("here ")
            || COMPARISONS.iter().any(|word| after.starts_with(word))
    };
    source::words(&source.text, "is no")
        .filter(|at| is_literal(*at) && !is_plain(*at))
        .map(|at| source.line_of(at))
        .filter(|line| !source.is_test(*line))
        .map(|line| {
            let message = "`is no …` in a message: \"invalid X `x`: reason\" or \"`x` is not a …\"";
            Finding::new(&source.path, line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[usize]) {
        let findings = super::check(&Source::new("crates/a/src/b.rs", text));
        let lines: Vec<_> = findings.iter().filter_map(|finding| finding.line).collect();
        assert_eq!(lines, expected, "{text}: {findings:?}");
    }

    #[test]
    fn doc_comments_say_what_an_item_is_or_does() {
        check("/// Returns it.\nfn a();", &[]);
        check(
            "//! What it is.\n\n/// Of a.\nstruct A;\n    /// So many b.\n",
            &[1, 3, 5],
        );
        check("/// The place\n/// Where it is.\nstruct A;", &[]);
        check("/// Often.\n// What\nlet a = \"\n/// What\";", &[]);
    }

    #[test]
    fn messages_say_what_is_invalid() {
        check("f(\"`x` is no number\");\n// It is no number.", &[1]);
        check(
            "f(\"there is no x\");\nf(\"There is no\\\n x, a is no longer b\");",
            &[],
        );
        check("#[cfg(test)]\nmod tests { f(\"`x` is no number\"); }", &[]);
    }
}
