//! Words that must not stand in code, or only in one place.

use super::{Finding, source, source::Source};

/// Words that are banned together, for one reason.
struct Ban {
    words: &'static [&'static str],
    applies: fn(&Source) -> bool,
    /// Whether tests, benchmarks and examples are held to it too.
    in_tests: bool,
    /// The remedy, in a sentence.
    hint: &'static str,
}

const BANS: [Ban; 12] = [
    Ban {
        words: &["std::time", "SystemTime", "Instant", "jiff", "chrono"],
        applies: is_loop,
        in_tests: false,
        hint: "a loop has no clock: use `run.now()` and `run.sleep_until(…)`",
    },
    Ban {
        words: &[
            "rand",
            "fastrand",
            "getrandom",
            "uuid",
            "RandomState",
            "RunId::new",
        ],
        applies: is_loop,
        in_tests: false,
        hint: "a loop has no chance: use `run.random()`",
    },
    Ban {
        words: &["HashMap", "HashSet"],
        applies: is_loop,
        in_tests: false,
        hint: "its order differs on replay: use `BTreeMap`, `BTreeSet` or `Vec`",
    },
    Ban {
        words: &[
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
            "std::os",
            "env!",
        ],
        applies: is_loop,
        in_tests: false,
        hint: "a loop touches the world by `run.call(…)` only",
    },
    Ban {
        words: &["std::thread", "tokio", "futures", "select!", "join!"],
        applies: is_loop,
        in_tests: false,
        hint: "concurrency is the kernel's: use `run.call_all(…)` or another form of `Run`",
    },
    Ban {
        words: &["println!", "eprintln!", "print!", "eprint!", "dbg!"],
        applies: is_library,
        in_tests: false,
        hint: "a library never prints: return it, a surface decides what a person sees",
    },
    Ban {
        words: &["stdout()"],
        applies: |source| {
            source.path.starts_with("crates/gyrus/src/") && !source.path.ends_with("/output.rs")
        },
        in_tests: false,
        hint: "it would show what others wrote as it is: use `output::standard()`",
    },
    Ban {
        words: &[
            "floor_char_boundary",
            "levenshtein",
            "osa_distance",
            "jaro",
            "jaro_winkler",
        ],
        applies: |source| source.crate_folder() != "text",
        in_tests: false,
        hint: "`gyrus_text` cuts texts and finds what a word was meant to be",
    },
    Ban {
        words: &[
            "RootCertStore",
            "rustls_native_certs",
            "webpki_roots",
            "Client::builder",
            "is_link_local",
            "is_unicast_link_local",
        ],
        applies: |source| source.crate_folder() != "net",
        in_tests: false,
        hint: "`gyrus_net` has the trusted roots, the HTTP client, and what an address is",
    },
    Ban {
        words: &["todo!", "unimplemented!"],
        applies: |_| true,
        in_tests: true,
        hint: "finish it, or return an error that says what is missing",
    },
    Ban {
        words: &["#[ignore"],
        applies: |_| true,
        in_tests: true,
        hint: "a test that does not run tests nothing: repair it or delete it",
    },
    Ban {
        words: &["#[allow(", "#![allow("],
        applies: |_| true,
        in_tests: true,
        hint: "use `#[expect(…, reason = \"…\")]`, which goes away with its reason",
    },
];

/// Marks of unfinished work, which stand in comments.
const MARKS: [&str; 2] = ["FIXME", "XXX"];

fn is_loop(source: &Source) -> bool {
    source.path.starts_with("crates/loops/src/")
}

fn is_library(source: &Source) -> bool {
    !matches!(source.crate_folder(), "gyrus" | "xtask")
}

/// Character literals that every table of unseen characters has.
const UNSEEN: [&str; 4] = [r"'\u{200b}'", r"'\u{202e}'", r"'\u{2066}'", r"'\u{3164}'"];

/// Files that may list unseen characters for other ends: the table itself, what git ignores in
/// names, and the contract, which stands on nothing (a test of `tools` holds it against the table).
const LISTS_UNSEEN: [&str; 4] = [
    "xtask/src/tidy/words.rs",
    "crates/text/src/",
    "crates/workspace/src/repository/index_path.rs",
    "crates/contract/src/command.rs",
];

/// Checks one file for a second table of unseen characters.
fn check_unseen(source: &Source) -> Vec<Finding> {
    if LISTS_UNSEEN
        .iter()
        .any(|path| source.path.starts_with(path))
    {
        return Vec::new();
    }
    let lines = (1..).zip(source.text.lines());
    let is_one = |line: &str| UNSEEN.iter().any(|literal| line.contains(literal));
    lines
        .filter(|(number, line)| is_one(line) && !source.is_test(*number))
        .map(|(number, _)| {
            let message = "a second table of unseen characters: use `gyrus_text::unseen`";
            Finding::new(&source.path, number, message)
        })
        .collect()
}

/// Checks one file for banned words.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = check_unseen(source);
    for ban in BANS.iter().filter(|ban| (ban.applies)(source)) {
        for word in ban.words {
            let mut places: Vec<usize> = source::words(&source.code, word).collect();
            if let Some(module) = word.strip_prefix("std::") {
                places.extend(in_groups(&source.code, module));
            }
            for place in places {
                let line = source.line_of(place);
                if ban.in_tests || !source.is_test(line) {
                    let message = format!("`{word}`: {}", ban.hint);
                    findings.push(Finding::new(&source.path, line, message));
                }
            }
        }
    }
    for mark in MARKS {
        for place in source::words(&source.code_and_comments, mark) {
            let message = format!("`{mark}`: do it, or write down elsewhere what is open");
            findings.push(Finding::new(&source.path, source.line_of(place), message));
        }
    }
    findings
}

/// Finds the places of `module` in a group such as `use std::{fs, io};`.
fn in_groups(code: &str, module: &str) -> Vec<usize> {
    let mut places = Vec::new();
    for (start, _) in code.match_indices("use std::{") {
        let end = start + code[start..].find(';').unwrap_or(code.len() - start);
        places.extend(source::words(&code[start..end], module).map(|at| start + at));
    }
    places
}

/// Only one file, in the kernel, clears calls.
pub(super) fn check_mint(sources: &[Source]) -> Vec<Finding> {
    const MINT: &str = "Cleared::mint";
    let mut findings = Vec::new();
    let mut kernel_file: Option<&str> = None;
    for source in sources {
        for place in source::words(&source.code, MINT) {
            let line = source.line_of(place);
            if source.is_test(line) {
                continue;
            }
            if !source.path.starts_with("crates/kernel/src/") {
                let message = format!("`{MINT}`: only the kernel clears a call");
                findings.push(Finding::new(&source.path, line, message));
            } else if *kernel_file.get_or_insert(&source.path) != source.path {
                let message = format!("`{MINT}`: the kernel clears calls in one file only");
                findings.push(Finding::new(&source.path, line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines on which `text` breaks a rule at `path`.
    fn check(path: &str, text: &str, expected: &[usize]) {
        let findings = super::check(&Source::new(path, text));
        let mut lines: Vec<_> = findings.iter().filter_map(|finding| finding.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{path}: {text}: {findings:?}");
    }

    #[test]
    fn loops_touch_nothing_but_their_run() {
        let path = "crates/loops/src/react.rs";
        check(
            path,
            "let a = run.now();\nlet b = std::time::Instant::now();",
            &[2, 2],
        );
        check(
            path,
            "use std::{collections::BTreeMap, sync::Arc};\nuse std::{fs, io};",
            &[2],
        );
        check(path, "use std::{\n    time::Duration,\n};", &[2]);
        check(
            path,
            "rand::rng();\nfastrand::u8();\noperand::f();\nRunId::new();",
            &[1, 2, 4],
        );
        check(
            path,
            "HashMap::new();\nHashSet::new();\nBTreeMap::new();",
            &[1, 2],
        );
        check(
            path,
            "std::env::var(a);\nstd::net::f();\nstd::process::f();",
            &[1, 2, 3],
        );
        check(path, "tokio::spawn(f);\nstd::thread::spawn(f);", &[1, 2]);
        check(path, "// std::fs\nlet a = \"std::fs and HashMap\";", &[]);
        check(path, "#[cfg(test)]\nmod tests {\n use std::fs;\n}", &[]);
        check("crates/loops/tests/a.rs", "use std::fs;", &[]);
        check(
            "crates/kernel/src/a.rs",
            "use std::fs;\nHashMap::new();",
            &[],
        );
    }

    #[test]
    fn libraries_do_not_print() {
        let text = "println!();\neprintln!();\nprint!();\ndbg!(a);\nwriteln!(f);";
        check("crates/journal/src/a.rs", text, &[1, 2, 3, 4]);
        check("crates/gyrus/src/a.rs", text, &[]);
        check("xtask/src/a.rs", text, &[]);
        let text = "writeln!(io::stdout(), x);\ncommand.stdout(x);";
        check("crates/gyrus/src/a.rs", text, &[1]);
        check("crates/gyrus/src/output.rs", text, &[]);
        check("crates/journal/tests/a.rs", text, &[]);
    }

    #[test]
    fn what_a_leaf_does_is_done_there() {
        let text =
            "&a[..a.floor_char_boundary(9)];\nstrsim::jaro(a, b);\nreqwest::Client::builder();";
        check("crates/tools/src/a.rs", text, &[1, 2, 3]);
        check("crates/text/src/a.rs", text, &[3]);
        check("crates/net/src/a.rs", text, &[1, 2]);
        check("crates/tools/tests/a.rs", text, &[]);
        let table = ["matches!(c, '\\u{200", "b}');\n\"\\u{200b}\";"].concat();
        check("crates/tools/src/a.rs", &table, &[1]);
        check("crates/text/src/unseen.rs", &table, &[]);
        check("crates/tools/tests/a.rs", &table, &[]);
    }

    #[test]
    fn unfinished_work_is_found_everywhere() {
        for path in ["crates/gyrus/src/a.rs", "crates/journal/tests/a.rs"] {
            check(path, "todo!();\nunimplemented!()\n", &[1, 2]);
            check(path, "#[ignore]\n#[ignore = \"slow\"]\nignore();", &[1, 2]);
            check(
                path,
                "#[allow(dead_code)]\n#![allow(x)]\n#[expect(x)]",
                &[1, 2],
            );
            let marked = ["// FIX", "ME later\n/* XX", "X */\nlet a = \"XX", "X\";"];
            check(path, &marked.concat(), &[1, 2]);
        }
    }

    #[test]
    fn one_file_of_the_kernel_mints() {
        let mint = "let a = Cleared::mint(b, c);";
        let check = |paths: &[&str], expected: &[&str]| {
            let sources: Vec<_> = paths.iter().map(|path| Source::new(path, mint)).collect();
            let found: Vec<_> = check_mint(&sources).into_iter().map(|f| f.path).collect();
            assert_eq!(found, expected);
        };
        check(&["crates/kernel/src/a.rs", "crates/tools/tests/a.rs"], &[]);
        check(
            &["crates/kernel/src/a.rs", "crates/kernel/src/b.rs"],
            &["crates/kernel/src/b.rs"],
        );
        check(&["crates/tools/src/a.rs"], &["crates/tools/src/a.rs"]);
    }
}
