//! Paths that rules deny, so that a sandbox can keep them from a command whatever it is called.
//!
//! A rule is kept like this if it speaks of nothing but paths, tools and agents. What the writing
//! tools and the shell may not touch but `read` may is only kept from being changed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{Policy, path::PathPattern};

/// Maximum number of folder entries that are examined for one command.
const MAX_ENTRIES: usize = 50_000;

/// Maximum number of paths that are kept from one command.
const MAX_PLACES: usize = 256;

/// Paths that a command must not see, or must not change.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    pub(crate) hidden: BTreeSet<PathBuf>,
    pub(crate) read_only: BTreeSet<PathBuf>,
    /// Folders around these paths that must not be moved: elsewhere no rule would know what lies in
    /// them.
    pub(crate) fixed: BTreeSet<PathBuf>,
    /// Whether more paths exist than could be examined, or a rule denies the whole workspace.
    pub(crate) is_partial: bool,
}

impl Policy {
    /// Returns the existing paths that must be kept from the commands of this tool.
    pub(crate) fn mask(&self, tool: &str, agent: &str, workspace: &Path) -> Mask {
        let mut mask = Mask::default();
        let mut left = MAX_ENTRIES;
        for rule in self.rules.iter().filter(|rule| rule.masks(tool, agent)) {
            for pattern in &rule.paths {
                let Some(found) = found(pattern, workspace, &mut left) else {
                    mask.is_partial = true;
                    continue;
                };
                let (whole, parts): (Vec<_>, Vec<_>) = found
                    .into_iter()
                    .partition(|path| workspace.starts_with(path));
                mask.is_partial |= !whole.is_empty();
                if !pattern.is_any_depth_at(0) {
                    let above = parts.iter().flat_map(|path| path.ancestors().skip(1));
                    let below =
                        above.filter(|path| path.starts_with(workspace) && *path != workspace);
                    mask.fixed.extend(below.map(Path::to_path_buf));
                }
                if rule.is_about_reading() {
                    mask.hidden.extend(parts)
                } else {
                    mask.read_only.extend(parts)
                }
            }
        }
        if mask.hidden.len() + mask.read_only.len() + mask.fixed.len() > MAX_PLACES {
            mask.is_partial = true;
            mask.hidden = mask.hidden.into_iter().take(MAX_PLACES).collect();
            mask.read_only.clear();
            mask.fixed.clear();
        }
        mask
    }
}

/// Existing paths that match; below a folder that matches, none. `None` if there are too many.
fn found(pattern: &PathPattern, workspace: &Path, left: &mut usize) -> Option<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut places = vec![(pattern.start(workspace), 0)];
    while let Some((place, at)) = places.pop() {
        if pattern.ends_at(at) {
            found.extend(real(place));
            continue;
        }
        let is_any = pattern.is_any_depth_at(at);
        if is_any {
            places.push((place.clone(), at + 1));
        }
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            *left = left.checked_sub(1)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match is_any {
                true if is_folder && !entry.path().ends_with(".git/objects") => {
                    places.push((entry.path(), at));
                }
                false if pattern.name_matches_at(at, &entry.file_name()) => {
                    places.push((entry.path(), at + 1));
                }
                true | false => {}
            }
        }
    }
    Some(found)
}

/// The real path of a place; of a link only if it leads to a file.
fn real(place: PathBuf) -> Option<PathBuf> {
    let is_link = place.symlink_metadata().ok()?.is_symlink();
    let real = place.canonicalize().ok()?;
    (!is_link || real.is_file()).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{LineReader, PolicyOrigin};

    fn check(rules: &str, hidden: &[&str], read_only: &[&str], fixed: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        for file in [
            "app/.ENV",
            "app/x.rs",
            "db/migrations/1",
            "key.pem",
            "secrets/one/two",
        ] {
            let file = workspace.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink("app/x.rs", workspace.join("link.pem")).unwrap();
        std::os::unix::fs::symlink("app", workspace.join("folder.pem")).unwrap();
        let origin = PolicyOrigin {
            file: "policy.toml".into(),
            may_loosen: true,
            home: None,
        };
        let lines = LineReader {
            workspace: &workspace,
            read: &|_| Default::default(),
        };
        let rules = rules
            .split('|')
            .map(|rule| format!("[[rule]]\nwhy = \"x\"\n{rule}\n"));
        let policy = Policy::parse(&rules.collect::<String>(), &origin, lines).unwrap();
        let mask = policy.mask("shell", "main", &workspace);
        let at = |names: &[&str]| names.iter().map(|name| workspace.join(name)).collect();
        assert_eq!(mask.hidden, at(hidden));
        assert_eq!(mask.read_only, at(read_only));
        assert_eq!(mask.fixed, at(fixed));
        assert!(!mask.is_partial);
        let other = policy.mask("shell", "other", &workspace);
        assert_eq!(
            other.hidden.is_empty(),
            hidden.is_empty() || policy_names_main(&policy)
        );
    }

    fn policy_names_main(policy: &Policy) -> bool {
        policy.rules.iter().all(|rule| !rule.agents.is_empty())
    }

    #[test]
    fn what_is_denied_is_found() {
        check(
            "decide = \"deny\"\npath = \".env\"",
            &["app/.ENV"],
            &[],
            &[],
        );
        check(
            "decide = \"deny\"\npath = \"app/.env\"",
            &["app/.ENV"],
            &[],
            &["app"],
        );
        check(
            "decide = \"deny\"\npath = \"*.pem\"",
            &["app/x.rs", "key.pem"],
            &[],
            &[],
        );
        check(
            "decide = \"deny\"\npath = \"secrets/**\"",
            &["secrets"],
            &[],
            &[],
        );
        check(
            "decide = \"deny\"\ntool = [\"write\", \"edit\", \"shell\"]\npath = \"db/migrations/**\"",
            &[],
            &["db/migrations"],
            &["db"],
        );
        check(
            "decide = \"deny\"\nagent = \"main\"\npath = \"key.pem\"",
            &["key.pem"],
            &[],
            &[],
        );
        // These cannot be kept by a sandbox, or need not be.
        check("decide = \"ask\"\npath = \".env\"", &[], &[], &[]);
        check(
            "decide = \"deny\"\nexposed = true\npath = \".env\"",
            &[],
            &[],
            &[],
        );
        check(
            "decide = \"deny\"\ncommand = [\"cat\"]\npath = \".env\"",
            &[],
            &[],
            &[],
        );
        check(
            "decide = \"deny\"\ntool = \"read\"\npath = \".env\"",
            &[],
            &[],
            &[],
        );
    }
}
