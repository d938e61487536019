//! The rows of `docs/mission.md`: what was promised, how it is used, the test that shows it.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, ensure};

use crate::repository;

/// Prints the table, and fails if it names a test that does not exist.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = repository::root()?;
    let page = root.join("docs/mission.md");
    let text =
        fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let mut tests = BTreeSet::new();
    for folder in ["crates", "tests"] {
        collect(&root.join(folder), &mut tests)?;
    }
    let (mut wrong, mut whole, mut count) = (Vec::new(), 0, 0);
    for row in rows(&text) {
        let [id, usage, test, missing] = row;
        println!(
            "{id:<4} {usage}\n     {}{missing}",
            if missing.is_empty() { test } else { "" }
        );
        count += 1;
        whole += usize::from(missing.is_empty());
        let name = test.trim_matches('`');
        if !name.is_empty() && !tests.contains(name) {
            wrong.push(format!(
                "{id} names the test `{name}`, which does not exist"
            ));
        }
        if name.is_empty() && missing.is_empty() {
            wrong.push(format!("{id} names no test and says nothing about it"));
        }
    }
    println!("{count} rows, of which {whole} hold in full");
    ensure!(count > 0, "{} has no rows", page.display());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Returns the rows that have an id: a letter and a number.
fn rows(page: &str) -> impl Iterator<Item = [&str; 4]> {
    page.lines().filter_map(|line| {
        let cells: Vec<&str> = line
            .strip_prefix('|')?
            .strip_suffix('|')?
            .split(" |")
            .map(str::trim)
            .collect();
        let [id, usage, test, missing] = cells[..] else {
            return None;
        };
        let is_id = id.len() > 1
            && id.starts_with(|letter: char| letter.is_ascii_uppercase())
            && id[1..].bytes().all(|byte| byte.is_ascii_digit());
        is_id.then_some([id, usage, test, missing])
    })
}

/// Adds the tests of all sources below a folder, each as `FILE::FUNCTION`.
fn collect(folder: &Path, tests: &mut BTreeSet<String>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, tests)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            let named = match path.file_stem() {
                Some(stem) if stem != "mod" && stem != "main" => Some(stem),
                _ => folder.file_name(),
            };
            let file = named.unwrap_or_default().to_string_lossy().into_owned();
            let source = fs::read_to_string(&path)?;
            let mut is_test = false;
            for line in source.lines().map(str::trim) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let name = line.trim_start_matches("async ").strip_prefix("fn ");
                if let Some(name) = name.and_then(|rest| rest.split('(').next()) {
                    if is_test {
                        tests.insert(format!("{file}::{name}"));
                    }
                    is_test = false;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_an_id() {
        let page = "| row | how | test | missing |\n| --- | --- | --- | --- |\n| C1 | `run` | `a::b` | |\n| D20 | | | Not there. |\n| `000` | x | y |\n";
        let found: Vec<_> = rows(page).collect();
        assert_eq!(
            found,
            [["C1", "`run`", "`a::b`", ""], ["D20", "", "", "Not there."]]
        );
    }
}
