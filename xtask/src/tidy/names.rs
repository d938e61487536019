//! Public types have names of their own, so that a search finds one.

use std::collections::BTreeMap;

use super::{Finding, source::Source};

/// Keywords that introduce a type or a trait.
const KINDS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];

/// Checks that no two public types at the outer level of a file of the crates have one name.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut firsts: BTreeMap<&str, String> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_crate(&source.path)) {
        for (number, line) in (1..).zip(source.code.lines()) {
            let Some(name) = public_type(line).filter(|_| !source.is_test(number)) else {
                continue;
            };
            let place = format!("{}:{number}", source.path);
            if let Some(first) = firsts.get(name) {
                let message = format!("a second public type `{name}`, beside {first}: rename one");
                findings.push(Finding::new(&source.path, number, message));
            } else {
                firsts.insert(name, place);
            }
        }
    }
    findings
}

fn is_crate(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/")
}

/// The name of the public type that a line begins to define.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_public_type() {
        let check = |first: &str, second: &str, expected: &[usize]| {
            let sources = [
                Source::new("crates/a/src/lib.rs", first),
                Source::new("crates/b/src/c.rs", second),
            ];
            let findings = super::check(&sources);
            let lines: Vec<_> = findings.iter().filter_map(|finding| finding.line).collect();
            assert_eq!(lines, expected, "{findings:?}");
        };
        check("pub struct A;", "\npub enum A {}", &[2]);
        check("pub trait A {}\npub type B<T> = C;", "pub struct B;", &[1]);
        check(
            "pub struct A;",
            "pub struct AB;\nstruct A;\npub(crate) struct A;",
            &[],
        );
        check("pub struct A;", "mod b {\n    pub struct A;\n}", &[]);
        check("pub struct A;", "pub use a::A;\n// pub struct A;", &[]);
    }
}
