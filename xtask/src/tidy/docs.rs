//! Crates open with what they are for, and documents name only what is there.

use std::path::Path;

use super::{Finding, Source};

/// Folders that exist on somebody's machine only.
const MACHINE_PATHS: [&str; 4] = ["/work/", "/tmp/", "/home/", "/root/"];

/// Whether a crate's root opens with its documentation.
pub(super) fn check_opening(source: &Source) -> Option<Finding> {
    let is_root = source.path.ends_with("/src/lib.rs") || source.path.ends_with("/src/main.rs");
    (is_root && !source.text.starts_with("//!")).then(|| {
        let message = "the first line must be `//!`: what the crate is for, its one idea";
        Finding::new(&source.path, 1, message)
    })
}

/// Checks a markdown document: links to files, and paths of one machine.
pub(super) fn check_document(root: &Path, path: &str, text: &str) -> Vec<Finding> {
    let folder = root.join(path);
    let folder = folder.parent().unwrap_or(root);
    let mut findings = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        let mut find = |message| findings.push(Finding::new(path, index + 1, message));
        for machine_path in MACHINE_PATHS.into_iter().filter(|part| names(line, part)) {
            find(format!("`{machine_path}` is a path of one machine"));
        }
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for target in links(line) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains(':') && !folder.join(file).exists() {
                find(format!("the link to `{target}` leads nowhere"));
            }
        }
    }
    findings
}

/// Checks that the contents of the book have every page.
pub(super) fn check_contents(contents: &str, paths: &[String]) -> Vec<Finding> {
    let pages = paths.iter().filter_map(|path| path.strip_prefix("docs/"));
    let missing = pages.filter(|page| {
        *page != "SUMMARY.md" && !page.contains('/') && !contents.contains(&format!("({page})"))
    });
    let message = |page| format!("`{page}` is missing: link it where a reader would look for it");
    missing
        .map(|page| Finding::new("docs/SUMMARY.md", 1, message(page)))
        .collect()
}

/// Whether an absolute path starts with `folder`, and not a longer one or an address contains it.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}'))
    })
}

/// The targets of `[…](target)` in a line, outside of `code`.
fn links(line: &str) -> Vec<&str> {
    let prose = line.split('`').step_by(2);
    prose
        .flat_map(|text| text.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split_whitespace().next().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_opens_with_its_documentation() {
        let check = |path: &str, text: &str, expected: bool| {
            assert_eq!(
                check_opening(&Source::new(path, text)).is_some(),
                expected,
                "{path}"
            );
        };
        check("crates/a/src/lib.rs", "//! For a.", false);
        check("crates/a/src/lib.rs", "mod a;", true);
        check("crates/a/src/main.rs", "", true);
        check("crates/a/src/other.rs", "mod a;", false);
    }

    #[test]
    fn documents_name_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        std::fs::write(folder.path().join("README.md"), "").unwrap();
        let check = |text: &str, expected: &[usize]| {
            let findings = check_document(folder.path(), "docs/a.md", text);
            let lines: Vec<_> = findings.iter().filter_map(|finding| finding.line).collect();
            assert_eq!(lines, expected, "{text}: {findings:?}");
        };
        check(
            "[a](../README.md) and [b](../README.md#part)\n[c](missing.md)",
            &[2],
        );
        check("[`a`](missing.md) ![a](missing.png \"title\")", &[1, 1]);
        check(
            "[a](https://example.org/x) [b](#part) [c](mailto:a@example.org)",
            &[],
        );
        check("`[a](missing.md)`\n```\n[a](missing.md)\n```\n", &[]);
        check(
            "see /work/main\n`cd /tmp/x`\nhttps://example.org/work/x\n~/work/x\n$HOME/x",
            &[1, 2],
        );
    }
}
