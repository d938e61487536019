//! `cargo xtask tidy`: the project's own rules, each with a sentence when it breaks.
//!
//! Rules are pure functions from a source, a manifest or a document to findings; this file only
//! gathers what they look at. Sources are read by a light lexer that knows strings and comments,
//! not by a parser: a rule that would need types belongs to clippy.

mod finding;
mod lexer;
mod source;
mod dependencies;
mod words;
mod prose;
mod names;
mod vendors;
mod sizes;
mod circles;
mod docs;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use crate::repository;
use finding::Finding;
use source::Source;

/// Checks the whole repository and prints what is broken.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository::root()?;
    let sources = read_sources(&root)?;
    let mut findings = dependencies::check(&repository::metadata(&["--no-deps"])?.packages);
    for source in &sources {
        findings.extend(words::check(source));
        findings.extend(prose::check(source));
        findings.extend(vendors::check(source));
        findings.extend(docs::check_opening(source));
    }
    findings.extend(words::check_mint(&sources));
    findings.extend(names::check(&sources));
    findings.extend(circles::check(&sources));
    findings.extend(sizes::check(&sources, &read(&root, sizes::EXCEPTIONS)?));
    let lines = sizes::program(&sources, &scripts(&root)?);
    println!("{lines} lines beside tests");
    findings.extend(sizes::check_program(lines));
    let paths = documents(&root)?;
    for path in &paths {
        findings.extend(docs::check_document(&root, path, &read(&root, path)?));
    }
    findings.extend(docs::check_contents(
        &read(&root, "docs/SUMMARY.md")?,
        &paths,
    ));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!(
            "{count} of the project's rules are broken in {} sources",
            sources.len()
        ),
    }
}

fn read(root: &Path, path: &str) -> anyhow::Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// Every Rust file of the workspace.
fn read_sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask"] {
        find(&root.join(folder), "rs", &mut paths)?;
    }
    let mut sources = paths
        .iter()
        .map(|path| {
            let path = relative(root, path)?;
            let text = read(root, &path)?;
            Ok(Source::new(&path, &text))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    source::mark_test_modules(&mut sources);
    Ok(sources)
}

/// Returns the scripts and styles of the program with their lines.
fn scripts(root: &Path) -> anyhow::Result<Vec<(String, usize)>> {
    let mut paths = Vec::new();
    for extension in ["js", "css"] {
        find(&root.join("crates"), extension, &mut paths)?;
    }
    let lines = |path: &PathBuf| {
        let path = relative(root, path)?;
        let lines = read(root, &path)?.lines().count();
        Ok((path, lines))
    };
    paths.iter().map(lines).collect()
}

/// The documents whose links and paths are checked.
fn documents(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md"]
        .iter()
        .map(|name| root.join(name))
        .filter(|path| path.exists())
        .collect();
    find(&root.join("docs"), "md", &mut paths)?;
    paths.iter().map(|path| relative(root, path)).collect()
}

fn relative(root: &Path, path: &Path) -> anyhow::Result<String> {
    let path = path
        .strip_prefix(root)
        .context("a path outside the repository")?;
    Ok(path
        .to_str()
        .context("a path that is not UTF-8")?
        .to_owned())
}

/// Adds the files below `folder` with this extension, in order of their names.
fn find(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                find(&path, extension, paths)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules hold for this very repository's own developer commands.
    #[test]
    fn sources_are_found_and_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()
            .unwrap();
        let sources = read_sources(&root).unwrap();
        let this = sources
            .iter()
            .find(|source| source.path == "xtask/src/tidy/mod.rs")
            .unwrap();
        assert!(this.is_test(this.text.lines().count() - 2));
        assert!(!this.is_test(1));
    }
}
