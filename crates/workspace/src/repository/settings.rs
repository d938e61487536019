//! Settings of a repository that a command may change without a person's approval: those that name
//! neither a program nor a place, and whose effect a person would see.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    config::{Config, SettingName, Values},
    names::RefName,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    pub name: SettingName,
    /// Old values; none if it was not set. `None` in the list is a name without `=`.
    pub before: Vec<Option<String>>,
    /// New values; none if it is not set any more.
    pub after: Vec<Option<String>>,
}

/// Required form of a setting's value.
#[derive(Clone, Copy)]
enum Form {
    /// Text that ends up in commits.
    Text,
    Boolean,
    /// A Boolean, or one of these words.
    BooleanOr(&'static [&'static str]),
    OneOf(&'static [&'static str]),
    Color,
    /// The name of a remote that the repository has, or `.`; an address is a place.
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
const ALLOWED: [(&str, bool, &str, Form); 21] = [
    ("user", false, "name", Form::Text),
    ("user", false, "email", Form::Text),
    ("author", false, "name", Form::Text),
    ("author", false, "email", Form::Text),
    ("committer", false, "name", Form::Text),
    ("committer", false, "email", Form::Text),
    ("branch", true, "remote", Form::Remote),
    ("branch", true, "merge", Form::Branch),
    ("branch", true, "rebase", Form::BooleanOr(&["merges"])),
    ("branch", true, "description", Form::Text),
    ("pull", false, "rebase", Form::BooleanOr(&["merges"])),
    ("pull", false, "ff", Form::BooleanOr(&["only"])),
    ("merge", false, "ff", Form::BooleanOr(&["only"])),
    (
        "merge",
        false,
        "conflictstyle",
        Form::OneOf(&["merge", "diff3", "zdiff3"]),
    ),
    (
        "diff",
        false,
        "algorithm",
        Form::OneOf(&["default", "myers", "minimal", "patience", "histogram"]),
    ),
    ("rebase", false, "autostash", Form::Boolean),
    ("init", false, "defaultbranch", Form::BranchName),
    ("core", false, "quotepath", Form::Boolean),
    ("advice", false, "*", Form::Boolean),
    ("color", false, "*", Form::Color),
    ("color", true, "*", Form::Color),
];

/// Settings that git itself writes into the configuration of a new repository.
const OF_NEW_REPOSITORIES: [(&str, &str, Form); 8] = [
    ("core", "repositoryformatversion", Form::OneOf(&["0", "1"])),
    ("core", "filemode", Form::Boolean),
    ("core", "bare", Form::OneOf(&["false"])),
    ("core", "logallrefupdates", Form::Boolean),
    ("core", "ignorecase", Form::Boolean),
    ("core", "precomposeunicode", Form::Boolean),
    ("core", "symlinks", Form::Boolean),
    ("submodule", "active", Form::OneOf(&["."])),
];

/// Maximum bytes of a value that is carried over.
const MAX_VALUE: usize = 1_000;

/// Returns the settings that differ in `after`.
pub(super) fn compare(before: &Config, after: &Config) -> Vec<SettingChange> {
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

/// Whether a setting is allowed in a repository that a command made.
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

fn fits(form: Form, values: &Values, remotes: &BTreeSet<String>) -> bool {
    let is_boolean = |value: Option<&str>| {
        let words = ["true", "false", "yes", "no", "on", "off", "1", "0", ""];
        value.is_none_or(|value| words.contains(&value.to_ascii_lowercase().as_str()))
    };
    values.iter().all(|value| {
        let word = value.as_deref().unwrap_or_default();
        let is_text = !word.chars().any(char::is_control) && word.len() <= MAX_VALUE;
        is_text
            && match form {
                Form::Text => value.is_some(),
                Form::Boolean => is_boolean(value.as_deref()),
                Form::BooleanOr(words) => is_boolean(value.as_deref()) || words.contains(&word),
                Form::OneOf(words) => words.contains(&word),
                Form::Color => word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || " #-".contains(c)),
                Form::Remote => word == "." || remotes.contains(word),
                Form::Branch => word.starts_with("refs/heads/") && RefName::parse(word).is_ok(),
                Form::BranchName => {
                    !word.starts_with('-') && RefName::parse(&format!("refs/heads/{word}")).is_ok()
                }
            }
    })
}

/// Returns the remotes that a configuration names by an address.
pub(super) fn remotes(config: &Config) -> BTreeSet<String> {
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
        let remotes = remotes(&Config::parse(real.as_bytes()).unwrap());
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
            let after = Config::parse(text.as_bytes()).unwrap();
            let changes = compare(&Config::default(), &after);
            assert_eq!(is_allowed(&changes[0], &remotes), allowed, "{text}");
        }
    }
}
