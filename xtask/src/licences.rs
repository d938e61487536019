//! Licences, banned crates and sources of everything that is linked, by `deny.toml`.
//!
//! cargo-deny does it where it is installed. Where it is not, the lists `allow` and `deny` of the
//! same file are applied here to what `cargo metadata` knows offline.

use anyhow::{Context, bail, ensure};

use crate::repository::{self, Package};

/// The only registry that packages come from, as `cargo metadata` writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks all packages, and says which of the two ways it took.
pub(crate) fn run() -> anyhow::Result<()> {
    if repository::has_subcommand("deny")? {
        println!("checking by cargo-deny");
        let checks = ["deny", "--offline", "check", "licenses", "bans", "sources"];
        let status = repository::cargo(&checks)?
            .status()
            .context("cannot run cargo-deny")?;
        ensure!(status.success(), "cargo-deny ended with {status}");
        return Ok(());
    }
    let path = repository::root()?.join("deny.toml");
    let rules = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let allowed = list(&rules, "licenses", "allow").context("deny.toml allows no licence")?;
    let banned = list(&rules, "bans", "deny").context("deny.toml bans nothing")?;
    // Packages for other systems are in the lock file but need not be on this disk.
    let platform = host()?;
    let metadata = repository::metadata(&["--all-features", "--filter-platform", &platform])?;
    let findings: Vec<String> = metadata
        .packages
        .iter()
        .flat_map(|package| findings(package, &allowed, &banned))
        .collect();
    println!(
        "cargo-deny is not installed: checked {} packages for {platform} by deny.toml's lists",
        metadata.packages.len()
    );
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{}", findings.join("\n"));
}

/// The target triple of this machine's compiler.
fn host() -> anyhow::Result<String> {
    let output = std::process::Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}

/// The strings of `key = ["…", …]` in a section of a TOML file that keeps such lists plain.
fn list<'a>(toml: &'a str, section: &str, key: &str) -> Option<Vec<&'a str>> {
    let (_, body) = toml.split_once(&format!("\n[{section}]\n"))?;
    let body = body.split("\n[").next()?;
    let mut strings = Vec::new();
    let mut inside = false;
    for line in body.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let starts = line
            .split_once('=')
            .is_some_and(|(name, _)| name.trim() == key);
        inside |= starts;
        if inside {
            strings.extend(line.split('"').skip(1).step_by(2));
            if line.contains(']') {
                return Some(strings);
            }
        }
    }
    None
}

fn findings(package: &Package, allowed: &[&str], banned: &[&str]) -> Vec<String> {
    let Package { name, version, .. } = package;
    let mut findings = Vec::new();
    match &package.license {
        None => findings.push(format!("{name} {version} states no licence")),
        Some(license) if is_allowed(license, allowed) => {}
        Some(license) => findings.push(format!(
            "{name} {version} is under `{license}`, which deny.toml does not allow"
        )),
    }
    if banned.contains(&name.as_str()) {
        findings.push(format!("{name} {version} is banned by deny.toml"));
    }
    if let Some(source) = package
        .source
        .as_ref()
        .filter(|source| *source != CRATES_IO)
    {
        findings.push(format!(
            "{name} {version} comes from {source}, not from crates.io"
        ));
    }
    findings
}

/// Whether the allowed licences satisfy an SPDX expression. The old `MIT/Apache-2.0` means `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

/// `a OR b`
fn either(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut satisfied = both(words, allowed);
    while take(words, "OR") {
        satisfied |= both(words, allowed);
    }
    satisfied
}

/// `a AND b`, which binds tighter than `OR`
fn both(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut satisfied = one(words, allowed);
    while take(words, "AND") {
        satisfied &= one(words, allowed);
    }
    satisfied
}

/// `(…)`, `licence` or `licence WITH exception`
fn one(words: &mut &[&str], allowed: &[&str]) -> bool {
    if take(words, "(") {
        let satisfied = either(words, allowed);
        return take(words, ")") && satisfied;
    }
    let Some((licence, rest)) = words.split_first() else {
        return false;
    };
    *words = rest;
    if !take(words, "WITH") {
        return allowed.contains(licence);
    }
    let Some((exception, rest)) = words.split_first() else {
        return false;
    };
    *words = rest;
    allowed.contains(&format!("{licence} WITH {exception}").as_str())
}

fn take(words: &mut &[&str], expected: &str) -> bool {
    match words.split_first() {
        Some((word, rest)) if *word == expected => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"];
        let check = |expression: &str, expected: bool| {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        };
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("GPL-3.0-only OR MIT", true);
        check("MIT/Apache-2.0", true);
        check("MIT AND GPL-3.0-only", false);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND GPL-3.0-only", false);
        check("MIT OR Unicode-3.0 AND GPL-3.0-only", true);
        check("Apache-2.0", false);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("MIT WITH LLVM-exception", false);
        check("", false);
        check("MIT MIT", false);
        check("(MIT", false);
    }

    #[test]
    fn the_lists_are_read() {
        let toml = "# no\n[a]\nallow = [\"wrong\"]\n\n[licenses]\nother = []\nallow = [\n  \"MIT\", # the usual\n  # \"GPL-3.0\",\n  \"ISC\",\n]\n\n[bans]\ndeny = [\"b\", \"c\"]\n";
        assert_eq!(list(toml, "licenses", "allow"), Some(vec!["MIT", "ISC"]));
        assert_eq!(list(toml, "bans", "deny"), Some(vec!["b", "c"]));
        assert_eq!(list(toml, "bans", "allow"), None);
        assert_eq!(list(toml, "sources", "allow"), None);
    }

    #[test]
    fn a_package_is_judged() {
        let check = |name: &str, license: Option<&str>, source: Option<&str>, expected: usize| {
            let package = Package {
                name: name.into(),
                version: "1.0.0".into(),
                license: license.map(Into::into),
                source: source.map(Into::into),
                dependencies: Vec::new(),
            };
            let found = findings(&package, &["MIT"], &["openssl"]);
            assert_eq!(found.len(), expected, "{found:?}");
        };
        check("fine", Some("MIT"), Some(CRATES_IO), 0);
        check("ours", Some("MIT"), None, 0);
        check("bare", None, None, 1);
        check("openssl", Some("MIT"), Some(CRATES_IO), 1);
        check("forked", Some("MIT"), Some("git+https://example.org/x"), 1);
    }
}
