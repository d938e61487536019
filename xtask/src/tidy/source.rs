//! A Rust file as the rules see it: its code without text, its tests, its functions.

use std::ops::Range;

use super::lexer::{self, Part};

/// One file.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the repository, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// `text` with comments and literals blanked; every byte keeps its place.
    pub(super) code: String,
    /// `text` with only literals blanked.
    pub(super) code_and_comments: String,
    /// Lines, counted from 1, that are built for tests only.
    test_lines: Vec<Range<usize>>,
    /// Names of modules that stand in other files and are built for tests only.
    test_modules: Vec<String>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// The line of the word `fn`.
    pub(super) line: usize,
    /// From the word `fn` to the closing brace, both counted.
    pub(super) lines: usize,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let parts = lexer::parts(text);
        let literals = parts.iter().filter(|(part, _)| *part == Part::Literal);
        let mut source = Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: blanked(text, parts.iter().map(|(_, range)| range)),
            code_and_comments: blanked(text, literals.map(|(_, range)| range)),
            test_lines: Vec::new(),
            test_modules: Vec::new(),
        };
        source.find_tests();
        source
    }

    /// Whether a line is built for tests, benchmarks or examples only.
    pub(super) fn is_test(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The crate's folder below `crates/`, or `xtask`.
    pub(super) fn crate_folder(&self) -> &str {
        let path = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        path.split('/').next().unwrap_or_default()
    }

    /// The line, counted from 1, of a byte.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        self.text.as_bytes()[..byte]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    }

    /// Every function with a body, nested ones included.
    pub(super) fn functions(&self) -> Vec<Function<'_>> {
        words(&self.code, "fn")
            .filter_map(|start| {
                let name = name_after(&self.code, start + "fn".len())?;
                let end = end_of_item(&self.code, start)?;
                // A signature in a trait has no body.
                if self.code.as_bytes()[end - 1] == b';' {
                    return None;
                }
                let line = self.line_of(start);
                Some(Function {
                    name,
                    line,
                    lines: self.line_of(end - 1) - line + 1,
                })
            })
            .collect()
    }

    fn find_tests(&mut self) {
        let inside = |folder: &str| self.path.contains(&format!("/{folder}/"));
        let as_a_whole = self.code.contains("#![cfg(test)]");
        if as_a_whole || ["tests", "benches", "examples"].into_iter().any(inside) {
            self.test_lines.push(0..usize::MAX);
            return;
        }
        for (start, _) in self.code.match_indices("#[cfg(") {
            let end = start + self.code[start..].find(']').unwrap_or_default();
            let condition = &self.code[start..end];
            let for_more = condition.contains("not(") || condition.contains("any(");
            if for_more || words(condition, "test").next().is_none() {
                continue;
            }
            let Some(item_end) = end_of_item(&self.code, end) else {
                continue;
            };
            let item = &self.code[end..item_end];
            if let (Some(at), true) = (words(item, "mod").next(), item.ends_with(';')) {
                self.test_modules
                    .extend(name_after(item, at + "mod".len()).map(str::to_owned));
            }
            self.test_lines
                .push(self.line_of(start)..self.line_of(item_end - 1) + 1);
        }
    }
}

/// Files whose `mod` line elsewhere is for tests are tests as a whole; where a `path` leads to them,
/// their names end in `_tests`.
pub(super) fn mark_test_modules(sources: &mut [Source]) {
    let mut tests: Vec<String> = Vec::new();
    for source in sources.iter() {
        let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let below = if matches!(name, "lib" | "main" | "mod") {
            folder
        } else {
            stem
        };
        tests.extend(
            source
                .test_modules
                .iter()
                .map(|module| format!("{below}/{module}")),
        );
    }
    for source in sources {
        let is_below = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if tests.iter().any(is_below) || source.path.ends_with("_tests.rs") {
            source.test_lines.push(0..usize::MAX);
        }
    }
}

fn blanked<'a>(text: &str, ranges: impl Iterator<Item = &'a Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in &mut bytes[range.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("whole characters were replaced by spaces")
}

/// Finds the places of `word` in `text` where it stands without being part of a longer name. An end
/// of `word` that is not part of a name, as the `!` of `dbg!`, borders on anything.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let borders = |inner: Option<u8>, outer: Option<&u8>| {
        !(inner.is_some_and(lexer::is_word) && outer.is_some_and(|byte| lexer::is_word(*byte)))
    };
    text.match_indices(word)
        .map(|(start, _)| start)
        .filter(move |start| {
            let before = start.checked_sub(1).and_then(|at| bytes.get(at));
            borders(word.bytes().next(), before)
                && borders(word.bytes().last(), bytes.get(start + word.len()))
        })
}

/// The name that follows, unless something else does, as in the type `fn()`.
fn name_after(code: &str, at: usize) -> Option<&str> {
    let rest = code[at..].trim_start();
    let end = lexer::end_of_word(rest.as_bytes(), 0);
    (end > 0).then_some(&rest[..end])
}

/// The end of the item that starts at `start`: after its `;` or its closing brace.
fn end_of_item(code: &str, start: usize) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (offset, byte) in code[start..].bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if brackets == 0 && braces == 0 => return Some(start + offset + 1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 && brackets == 0 {
                    return Some(start + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_text() {
        let source = Source::new("crates/a/src/b.rs", "f(\"x\"); // é y\n'a'");
        assert_eq!(source.code, "f(   );        \n   ");
        assert_eq!(source.code_and_comments, "f(   ); // é y\n   ");
        assert_eq!(source.crate_folder(), "a");
    }

    #[test]
    fn functions_are_measured() {
        let check = |text: &str, expected: &[(&str, usize, usize)]| {
            let source = Source::new("crates/a/src/b.rs", text);
            let found: Vec<_> = source
                .functions()
                .iter()
                .map(|f| (f.name, f.line, f.lines))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("fn a() {}", &[("a", 1, 1)]);
        check(
            "\nfn a(x: [u8; 2])\nwhere T: B {\n  '{'; \"}\" // }\n}\n",
            &[("a", 2, 4)],
        );
        check("trait A { fn a(&self); fn b(&self) {\n} }", &[("b", 1, 2)]);
        check("type A = fn(u8) -> u8;", &[]);
        check("fn a() {\nfn b() {\n}\n}", &[("a", 1, 4), ("b", 2, 2)]);
        check("const A: [(&str, fn()); 1] = [(\"\", || {})];", &[]);
        check("fn a() { unfinished(", &[]);
    }

    #[test]
    fn tests_are_known() {
        let check = |path: &str, text: &str, expected: &[bool]| {
            let source = Source::new(path, text);
            let found: Vec<_> = (1..=expected.len())
                .map(|line| source.is_test(line))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        let path = "crates/a/src/b.rs";
        check(
            path,
            "a;\n#[cfg(test)]\nmod t {\n{}\n}\nb;",
            &[false, true, true, true, true, false],
        );
        check(
            path,
            "#[cfg(all(test, unix))]\nuse a::{b};\nc;",
            &[true, true, false],
        );
        check(path, "#[cfg(not(test))]\nuse a;", &[false, false]);
        check(path, "#[cfg(any(test, unix))]\nuse a;", &[false, false]);
        check(path, "#![cfg(test)]\nuse a;", &[true, true]);
        check(path, "#[cfg(unix)]\nuse test;", &[false, false]);
        check(path, "// #[cfg(test)]\nuse a;", &[false, false]);
        check("crates/a/tests/b.rs", "a", &[true]);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_is_a_test() {
        let mut sources = [
            Source::new("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\nmod real;"),
            Source::new("crates/a/src/b/tests.rs", "a"),
            Source::new("crates/a/src/b/real.rs", "a"),
            Source::new("crates/a/src/lib.rs", "#[cfg(test)] mod check;"),
            Source::new("crates/a/src/check/deep.rs", "a"),
        ];
        mark_test_modules(&mut sources);
        let found: Vec<bool> = sources.iter().map(|source| source.is_test(3)).collect();
        assert_eq!(found, [false, true, false, false, true]);
    }
}
