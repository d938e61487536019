//! Settings of a repository that a command may change without a person's approval: those that name
//! neither a program nor a place, and whose effect a person would see.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    config::{GitConfig, SettingName, Values},
    names::RefName,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    pub name: SettingName,
    /// Old values; empty for a new setting. `None` in the list is a name without `=`.
    pub before: Vec<Option<String>>,
    /// New values; empty for a removed setting.
    pub after: Vec<Option<String>>,
}

#[derive(Clone, Copy)]
enum SettingForm {
    /// Text that ends up in commits.
    Text,
    Boolean,
    /// A Boolean, or one of these words.
    BooleanOr(&'static [&'static str]),
    OneOf(&'static [&'static str]),
    Color,
    /// The name of one of the repository's remotes, or `.`; an address is a place.
    Remote,
    Branch,
    BranchName,
}

/// Allowed settings: section, whether it has subsections, name, form. A `*` stands for any name.
///
/// Left out on purpose: `core.*` (most of it names programs or changes what is checked out),
/// `alias`, `filter`, `diff.*.command` and `textconv`, `credential`, `gpg`, `user.signingKey`,
/// `include`, `url`, `remote` and `submodule.*.url` (programs and places), `push` (contents of a
/// person's next push), `extensions` and `gc` (storage of objects).
const ALLOWED: [(&str, bool, &str, SettingForm); 21] = [
    ("user", false, "name", SettingForm::Text),
    ("user", false, "email", SettingForm::Text),
    ("author", false, "name", SettingForm::Text),
    ("author", false, "email", SettingForm::Text),
    ("committer", false, "name", SettingForm::Text),
    ("committer", false, "email", SettingForm::Text),
    ("branch", true, "remote", SettingForm::Remote),
    ("branch", true, "merge", SettingForm::Branch),
    (
        "branch",
        true,
        "rebase",
        SettingForm::BooleanOr(&["merges"]),
    ),
    ("branch", true, "description", SettingForm::Text),
    ("pull", false, "rebase", SettingForm::BooleanOr(&["merges"])),
    ("pull", false, "ff", SettingForm::BooleanOr(&["only"])),
    ("merge", false, "ff", SettingForm::BooleanOr(&["only"])),
    (
        "merge",
        false,
        "conflictstyle",
        SettingForm::OneOf(&["merge", "diff3", "zdiff3"]),
    ),
    (
        "diff",
        false,
        "algorithm",
        SettingForm::OneOf(&["default", "myers", "minimal", "patience", "histogram"]),
    ),
    ("rebase", false, "autostash", SettingForm::Boolean),
    ("init", false, "defaultbranch", SettingForm::BranchName),
    ("core", false, "quotepath", SettingForm::Boolean),
    ("advice", false, "*", SettingForm::Boolean),
    ("color", false, "*", SettingForm::Color),
    ("color", true, "*", SettingForm::Color),
];

/// Settings that git itself writes into the configuration of a new repository.
const OF_NEW_REPOSITORIES: [(&str, &str, SettingForm); 8] = [
    (
        "core",
        "repositoryformatversion",
        SettingForm::OneOf(&["0", "1"]),
    ),
    ("core", "filemode", SettingForm::Boolean),
    ("core", "bare", SettingForm::OneOf(&["false"])),
    ("core", "logallrefupdates", SettingForm::Boolean),
    ("core", "ignorecase", SettingForm::Boolean),
    ("core", "precomposeunicode", SettingForm::Boolean),
    ("core", "symlinks", SettingForm::Boolean),
    ("submodule", "active", SettingForm::OneOf(&["."])),
];

/// Maximum bytes of a value that is carried over.
const MAX_VALUE: usize = 1_000;

/// Returns the settings that differ in `after`.
pub(super) fn compare(before: &GitConfig, after: &GitConfig) -> Vec<SettingChange> {
    let (mut old, new) = (before.values(), after.values());
    let mut changes = Vec::new();
    for (name, after) in new {
        let before = old.remove(&name).unwrap_or_default();
        if before != after {
            changes.push(SettingChange {
                name,
                before,
                after,
            });
        }
    }
    changes.extend(old.into_iter().map(|(name, before)| SettingChange {
        name,
        before,
        after: Vec::new(),
    }));
    changes
}

/// Whether a change is carried over without approval. `remotes` are those of the real repository.
pub(super) fn is_allowed(change: &SettingChange, remotes: &BTreeSet<String>) -> bool {
    let SettingName {
        section,
        subsection,
        name,
    } = &change.name;
    let entry = ALLOWED.iter().find(|(s, below, n, _)| {
        s == section && *below == subsection.is_some() && (*n == "*" || n == name)
    });
    entry.is_some_and(|(.., form)| fits(*form, &change.after, remotes))
}

/// Whether a setting is allowed in a repository that a command created.
pub(super) fn is_allowed_in_new(name: &SettingName, values: &Values) -> bool {
    let SettingName {
        section,
        subsection,
        name: last,
    } = name;
    let change = SettingChange {
        name: name.clone(),
        before: Vec::new(),
        after: values.clone(),
    };
    let own = OF_NEW_REPOSITORIES
        .iter()
        .find(|(s, n, _)| s == section && n == last);
    let own = own.filter(|_| subsection.is_none());
    let remotes = BTreeSet::from(["origin".to_owned()]);
    let is_plain_remote = || {
        let remote = subsection.as_deref().filter(|_| section == "remote");
        remote.is_some_and(|remote| {
            values
                .iter()
                .all(|value| is_plain_clone(remote, last, value.as_deref()))
        })
    };
    own.is_some_and(|(.., form)| fits(*form, values, &remotes))
        || is_allowed(&change, &remotes)
        || is_plain_remote()
}

/// Whether `git clone` of a web address writes this.
fn is_plain_clone(remote: &str, name: &str, value: Option<&str>) -> bool {
    let value = value.unwrap_or_default();
    match name {
        "url" => {
            let rest = value.strip_prefix("https://");
            rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_graphic() && c != '@'))
        }
        "fetch" => value == format!("+refs/heads/*:refs/remotes/{remote}/*"),
        _ => false,
    }
}

fn fits(form: SettingForm, values: &Values, remotes: &BTreeSet<String>) -> bool {
    let is_boolean = |value: Option<&str>| {
        let words = ["true", "false", "yes", "no", "on", "off", "1", "0", ""];
        value.is_none_or(|value| words.contains(&value.to_ascii_lowercase().as_str()))
    };
    values.iter().all(|value| {
        let word = value.as_deref().unwrap_or_default();
        let is_text = !word.chars().any(char::is_control) && word.len() <= MAX_VALUE;
        is_text
            && match form {
                SettingForm::Text => value.is_some(),
                SettingForm::Boolean => is_boolean(value.as_deref()),
                SettingForm::BooleanOr(words) => {
                    is_boolean(value.as_deref()) || words.contains(&word)
                }
                SettingForm::OneOf(words) => words.contains(&word),
                SettingForm::Color => word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || " #-".contains(c)),
                SettingForm::Remote => word == "." || remotes.contains(word),
                SettingForm::Branch => {
                    word.starts_with("refs/heads/") && RefName::parse(word).is_ok()
                }
                SettingForm::BranchName => {
                    !word.starts_with('-') && RefName::parse(&format!("refs/heads/{word}")).is_ok()
                }
            }
    })
}

/// Returns the remotes with an address in a configuration.
pub(super) fn remotes(config: &GitConfig) -> BTreeSet<String> {
    let named = config
        .settings
        .iter()
        .filter(|setting| setting.name.section == "remote" && setting.name.name == "url");
    // A name that could be mistaken for a path or an address is not allowed.
    let named = named.filter_map(|setting| setting.name.subsection.clone());
    named
        .filter(|name| !name.contains(['/', ':', '\\']) && !name.starts_with(['-', '.']))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_a_program_or_a_place_are_not_allowed() {
        let real = "[remote \"origin\"]\n\turl = x\n[remote \"a/b\"]\n\turl = y\n";
        let remotes = remotes(&GitConfig::parse(real.as_bytes()).unwrap());
        for (text, allowed) in [
            ("[user]\nname = A B", true),
            ("[user]\nsigningKey = k", false),
            ("[branch \"m\"]\nremote = origin", true),
            ("[branch \"m\"]\nremote = .", true),
            ("[branch \"m\"]\nremote = a/b", false),
            ("[branch \"m\"]\nremote = ../x", false),
            ("[branch \"m\"]\nremote = ext::sh", false),
            ("[branch \"m\"]\nmerge = refs/heads/m", true),
            ("[branch \"m\"]\nmerge = HEAD", false),
            ("[branch \"m\"]\nrebase = interactive", false),
            ("[branch]\nremote = origin", false),
            ("[pull]\nrebase", true),
            ("[color]\nui = auto", true),
            ("[color \"diff\"]\nnew = green bold #ff0000", true),
            ("[color]\npager = $(x)", false),
            ("[core]\npager = x", false),
            ("[core]\nhooksPath = x", false),
            ("[core]\nfsmonitor = true", false),
            ("[core]\nworktree = /", false),
            ("[core]\nquotePath = false", true),
            ("[alias]\nst = !x", false),
            ("[include]\npath = x", false),
            ("[filter \"x\"]\nclean = x", false),
            ("[remote \"origin\"]\nurl = z", false),
            ("[user]\nname = \"a\\nb\"", false),
        ] {
            let after = GitConfig::parse(text.as_bytes()).unwrap();
            let changes = compare(&GitConfig::default(), &after);
            assert_eq!(is_allowed(&changes[0], &remotes), allowed, "{text}");
        }
    }
}
