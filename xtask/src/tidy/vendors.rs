//! Only a provider's own file knows its vendor's names.

use super::{Finding, Source};

/// Each vendor with the words that give it away, in lower case. Its own files are
/// `crates/models/src/VENDOR*`.
const VENDORS: [(&str, &[&str]); 4] = [
    ("anthropic", &["anthropic", "claude"]),
    ("openai", &["openai", "gpt"]),
    ("gemini", &["gemini"]),
    ("ollama", &["ollama"]),
];

/// Files in which every vendor may be named: the list of providers, the wiring with its
/// configuration, and what reads the files of other agents.
const OPEN: [&str; 5] = [
    "crates/models/src/lib.rs",
    "crates/models/src/catalogue/protocol.rs",
    "crates/gyrus/",
    "crates/plugins/",
    "xtask/",
];

/// Checks one file, its comments and literals included, its tests not.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    if OPEN.iter().any(|open| source.path.starts_with(open)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (vendor, names) in VENDORS {
        if source
            .path
            .starts_with(&format!("crates/models/src/{vendor}"))
        {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            let line = line.to_ascii_lowercase();
            let Some(name) = names.iter().find(|name| line.contains(**name)) else {
                continue;
            };
            if !source.is_test(index + 1) {
                let message = format!(
                    "`{name}`: only crates/models/src/{vendor}* may name this vendor; \
                     say what it means for every model"
                );
                findings.push(Finding::new(&source.path, index + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_are_named_at_home_only() {
        let check = |path: &str, text: &str, expected: &[usize]| {
            let findings = super::check(&Source::new(path, text));
            let lines: Vec<_> = findings.iter().filter_map(|finding| finding.line).collect();
            assert_eq!(lines, expected, "{path}: {findings:?}");
        };
        check(
            "crates/loops/src/react.rs",
            "a\n// as Claude does\n\"gpt-9\"",
            &[2, 3],
        );
        check("crates/contract/src/model.rs", "struct OpenAi;", &[1]);
        check("crates/models/src/router.rs", "if a == \"gemini\" {}", &[1]);
        check(
            "crates/models/src/anthropic.rs",
            "// claude by Anthropic\n// gpt",
            &[2],
        );
        check("crates/models/src/anthropic/wire.rs", "// claude", &[]);
        check(
            "crates/models/src/lib.rs",
            "mod anthropic;\nmod ollama;",
            &[],
        );
        check("crates/models/tests/a.rs", "// claude", &[]);
        check("crates/gyrus/src/main.rs", "\"OPENAI_API_KEY\"", &[]);
        check("crates/kernel/src/a.rs", "a model of any vendor", &[]);
    }
}
