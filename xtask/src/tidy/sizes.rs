//! No file and no function grows too long, nor does the program. Files and functions that already are
//! stand in a list with their size, and the list only shrinks.

use std::collections::BTreeMap;

use super::{Finding, Source};

/// The list: one `PATH LINES` or `PATH FUNCTION LINES` a line, `#` for comments.
pub(super) const EXCEPTIONS: &str = "xtask/tidy-exceptions.txt";
/// The most lines of a file.
const FILE_LINES: usize = 800;
/// The most lines of a function, from the word `fn` to its closing brace.
const FUNCTION_LINES: usize = 70;

/// Maximum number of lines of the program beside its tests, scripts and styles included. It
/// falls: a crate grows by what another loses. A debt is named in the commit that raises it.
const MOST_LINES: usize = 257_231;

/// A file, or a function in it. Functions of one name in one file are one subject: the longest.
type Subject = (String, Option<String>);

/// Checks the sizes of all sources against the limits and the list.
pub(super) fn check(sources: &[Source], exceptions: &str) -> Vec<Finding> {
    let (mut listed, mut findings) = read_exceptions(exceptions);
    for (subject, (line, lines)) in too_long(sources) {
        let what = match &subject.1 {
            Some(function) => format!("function `{function}` has {lines} lines"),
            None => format!("the file has {lines} lines"),
        };
        let message = match listed.remove(&subject) {
            Some((_, allowed)) if allowed == lines => continue,
            Some((_, allowed)) if allowed < lines => {
                format!("{what}, {} more than before; split it", lines - allowed)
            }
            Some((listed_at, _)) => {
                let message = format!("{} now has {lines} lines: write that", subject.0);
                findings.push(Finding::new(EXCEPTIONS, listed_at, message));
                continue;
            }
            None if subject.1.is_some() => format!("{what}, over {FUNCTION_LINES}; split it"),
            None => format!("{what}, over {FILE_LINES}; split it by concept"),
        };
        findings.push(Finding::new(&subject.0, line, message));
    }
    for ((path, function), (listed_at, _)) in listed {
        let function = function.map(|name| format!(" {name}")).unwrap_or_default();
        let message = format!("{path}{function} is not too long any more: delete this line");
        findings.push(Finding::new(EXCEPTIONS, listed_at, message));
    }
    findings
}

/// Returns the lines of all crates beside their tests. `scripts` are files in other languages: path and
/// lines.
pub(super) fn program(sources: &[Source], scripts: &[(String, usize)]) -> usize {
    let is_program = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    let own = sources.iter().filter(|source| is_program(&source.path));
    let scripts = scripts.iter().filter(|(path, _)| is_program(path));
    own.map(production_lines).sum::<usize>() + scripts.map(|(_, lines)| lines).sum::<usize>()
}

/// Checks the lines of the program against the limit.
pub(super) fn check_program(lines: usize) -> Option<Finding> {
    let message = format!(
        "the program has {lines} lines beside its tests, over {MOST_LINES}: delete as many as were added"
    );
    (lines > MOST_LINES).then(|| Finding::new("crates", None, message))
}

/// The lines of a file that are not for tests only.
fn production_lines(source: &Source) -> usize {
    let lines = 1..=source.text.lines().count();
    lines.filter(|line| !source.is_test(*line)).count()
}

/// Everything over its limit, with its line (none for a file) and size.
fn too_long(sources: &[Source]) -> BTreeMap<Subject, (Option<usize>, usize)> {
    let mut found = BTreeMap::new();
    for source in sources {
        let lines = source.text.lines().count();
        if lines > FILE_LINES {
            found.insert((source.path.clone(), None), (None, lines));
        }
        for function in source.functions() {
            // A test may be long: most of it is a table of cases.
            if function.lines > FUNCTION_LINES && !source.is_test(function.line) {
                let subject = (source.path.clone(), Some(function.name.to_owned()));
                let longest = found.entry(subject).or_insert((None, 0));
                if function.lines > longest.1 {
                    *longest = (Some(function.line), function.lines);
                }
            }
        }
    }
    found
}

/// The listed subjects, each with the line it stands on and its listed size.
fn read_exceptions(text: &str) -> (BTreeMap<Subject, (usize, usize)>, Vec<Finding>) {
    let mut listed = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (path, function, lines) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [path, lines] => (path, None, lines),
            [path, function, lines] => (path, Some(function.to_owned()), lines),
            _ => ("", None, ""),
        };
        match lines.parse() {
            Ok(lines) => {
                listed.insert((path.to_owned(), function), (index + 1, lines));
            }
            Err(_) => {
                let message = "neither `PATH LINES` nor `PATH FUNCTION LINES`";
                findings.push(Finding::new(EXCEPTIONS, index + 1, message));
            }
        }
    }
    (listed, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_counted_beside_its_tests() {
        let tests = "#[cfg(test)]\nmod tests {\n\n\n}\n";
        let text = "\n".repeat(500) + tests;
        let source = |path: &str| Source::new(path, &text);
        let sources = [
            source("crates/net/src/a.rs"),
            source("crates/net/tests/a.rs"),
        ];
        let scripts = [
            ("crates/net/src/a.js".to_owned(), 20),
            ("clients/a.js".to_owned(), 30),
        ];
        assert_eq!(program(&sources, &scripts), 520);
        assert!(check_program(MOST_LINES).is_none());
        assert!(check_program(MOST_LINES + 1).is_some());
    }

    #[test]
    fn sizes_only_shrink() {
        let file = |lines: usize| Source::new("crates/a/src/file.rs", &"\n".repeat(lines));
        let function = |lines: usize| {
            let text = format!("fn long() {{{}}}", "\n".repeat(lines - 1));
            Source::new("crates/a/src/function.rs", &text)
        };
        let check = |source: Source, exceptions: &str, expected: &[&str]| {
            let findings = super::check(&[source], exceptions);
            assert_eq!(findings.len(), expected.len(), "{findings:?}");
            for (finding, part) in findings.iter().zip(expected) {
                assert!(finding.to_string().contains(part), "{finding}");
            }
        };
        check(file(800), "", &[]);
        check(
            file(801),
            "",
            &["crates/a/src/file.rs: the file has 801 lines"],
        );
        check(file(801), "# known\ncrates/a/src/file.rs 801\n", &[]);
        check(
            file(802),
            "crates/a/src/file.rs 801",
            &["1 more than before"],
        );
        check(
            file(801),
            "crates/a/src/file.rs 802",
            &["tidy-exceptions.txt:1: "],
        );
        check(file(800), "\ncrates/a/src/file.rs 801", &["txt:2: "]);
        check(file(1), "crates/a/src/gone.rs 900", &["delete this line"]);
        check(file(1), "crates/a/src/file.rs many", &["neither"]);
        check(function(70), "", &[]);
        check(
            function(71),
            "",
            &["function.rs:1: function `long` has 71 lines"],
        );
        check(function(71), "crates/a/src/function.rs long 71", &[]);
        check(
            function(70),
            "crates/a/src/function.rs long 71",
            &["delete this line"],
        );
    }
}
