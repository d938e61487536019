//! Names of many files in one sentence: those of one name are told as a group, with the folder that
//! all of them are below.

use std::collections::BTreeMap;

use gyrus_text::grouped;

/// Maximum number of files that a text names.
pub(super) const MAX_NAMED: usize = 20;

/// Returns the names of files, or of groups of them where there are many.
pub(super) fn named_files(paths: &[&str]) -> Vec<String> {
    if paths.len() <= MAX_NAMED {
        return paths.iter().map(|path| format!("`{path}`")).collect();
    }
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths {
        let name = path.rsplit_once('/').map_or(*path, |(_, name)| name);
        groups.entry(name).or_default().push(path);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, paths)| std::cmp::Reverse(paths.len()));
    let named = groups.iter().take(MAX_NAMED);
    let mut names: Vec<String> = named.map(|(name, paths)| group(name, paths)).collect();
    let rest: Vec<&str> = groups
        .iter()
        .skip(MAX_NAMED)
        .flat_map(|(_, paths)| paths)
        .copied()
        .collect();
    if !rest.is_empty() {
        names.push(format!("{} more{}", grouped(rest.len()), below(&rest)));
    }
    names
}

fn group(name: &str, paths: &[&str]) -> String {
    match paths {
        [path] => format!("`{path}`"),
        _ => format!("{} files `{name}`{}", grouped(paths.len()), below(paths)),
    }
}

/// Returns a phrase for the folder above all files, unless that is the workspace.
fn below(paths: &[&str]) -> String {
    let folder = |path: &'_ str| path.rfind('/').map_or(0, |end| end + 1);
    let mut shared = paths.first().map_or("", |path| &path[..folder(path)]);
    for path in paths {
        while !path.starts_with(shared) {
            shared = &shared[..folder(shared.trim_end_matches('/'))];
        }
    }
    if shared.is_empty() {
        String::new()
    } else {
        format!(" below `{shared}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_told_in_groups() {
        let names = |paths: &[String]| {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            named_files(&paths).join(", ")
        };
        let few = ["a/.envrc".to_owned(), "Makefile".to_owned()];
        assert_eq!(names(&few), "`a/.envrc`, `Makefile`");
        let many = |folder: &str, name: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{folder}/{n}/{name}")).collect()
        };
        let all = [
            many("a/b", ".envrc", 20_000),
            many("a", "Makefile", 2),
            few.to_vec(),
        ]
        .concat();
        assert_eq!(
            names(&all),
            "20,001 files `.envrc` below `a/`, 3 files `Makefile`"
        );
        assert_eq!(
            names(&many("é/x", ".envrc", 30)),
            "30 files `.envrc` below `é/x/`"
        );
        let different: Vec<String> = (10..60).map(|n| format!("m/{n}.mk")).collect();
        let told = names(&different);
        assert!(
            told.starts_with("`m/10.mk`, ") && told.ends_with(", 30 more below `m/`"),
            "{told}"
        );
    }
}
