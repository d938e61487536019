//! `git` as it changes the settings of a repository: by `git config`, and by subcommands that note
//! something there.
//!
//! Settings decide which programs git runs and where a later push goes, so a change of them is a
//! write to their file, which is asked about. Only a few are known to do neither.

use gyrus_contract::Does;

use super::{
    Call,
    git::{is_option, may_connect},
    options::Spec,
};
use crate::shell::{reader::Reader, words::Word};

/// Where a repository's own settings stand, seen from its folder.
const FILE: &str = ".git/config";

/// `git config` that changes a setting.
pub(super) fn config(reader: &mut Reader<'_>, call: &Call<'_>) {
    let wide = call.args.iter().any(|word| {
        let text = word.prefix();
        let wide = ["--global", "--system", "--file", "--blob", "-f"];
        wide.iter().any(|option| text.starts_with(option))
    });
    if wide {
        reader.hides(call.part, "it changes settings of all repositories");
    } else if sets_what_runs_nothing(call) {
        reader.sets_git(call.part);
    } else {
        reader.writes(&Word::plain(FILE), call.part);
    }
}

/// `git init`, which also goes over a repository that is there already.
pub(super) fn init(reader: &mut Reader<'_>, call: &Call<'_>) {
    let elsewhere = |word: &Word| {
        let text = word.prefix();
        text.starts_with("--t") || text.starts_with("--sep") || word.may_split()
    };
    if call.args.iter().any(elsewhere) {
        reader.hides(call.part, "it takes hooks and settings from elsewhere");
    }
    if call.args.iter().all(is_option) {
        reader.sets_git(call.part);
    }
}

/// Whether `git config` only prints.
pub(super) fn reads(call: &Call<'_>) -> bool {
    let spec = Spec::strict(
        "lz",
        "list get get-all get-regexp get-urlmatch show-origin show-scope name-only type= local global system worktree null default= bool int path includes no-includes all regexp value= fixed-value url= ",
    );
    let Ok(parsed) = spec.parse(call.args) else {
        return false;
    };
    let first = parsed.operands.first().and_then(Word::literal);
    match (first.as_deref(), parsed.operands.len()) {
        (Some("get" | "list"), 1 | 2) => true,
        (Some("set" | "unset" | "edit" | "rename-section" | "remove-section"), _) => false,
        (None, 0) => parsed.has(&["l", "list"]),
        (Some(_), 1) => true,
        (Some(_), 2) => parsed.has(&["get", "get-all", "get-regexp", "get-urlmatch"]),
        _ => false,
    }
}

/// It prints settings and runs nothing, so the person's own settings are left visible.
pub(super) fn prints(reader: &mut Reader<'_>, call: &Call<'_>) {
    let secret = call.args.iter().any(|word| {
        let text = word.prefix().to_lowercase();
        ["token", "password", "extraheader", "cookie"]
            .iter()
            .any(|part| text.contains(part))
    });
    if secret {
        reader.fact(Does::UsesCredentials, call.part, "it prints a secret");
    }
    reader.reads(".", call.part);
}

/// `git config KEY VALUE` for settings that name no program and no place.
fn sets_what_runs_nothing(call: &Call<'_>) -> bool {
    const KEYS: &[&str] = &[
        "user.name",
        "user.email",
        "init.defaultbranch",
        "pull.rebase",
        "push.default",
        "fetch.prune",
        "core.autocrlf",
        "core.filemode",
        "core.ignorecase",
        "core.quotepath",
        "color.ui",
        "merge.conflictstyle",
        "rerere.enabled",
    ];
    let words: Option<Vec<String>> = call.args.iter().map(Word::literal).collect();
    let words = words.unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = words.strip_prefix(&["--local"]).unwrap_or(&words);
    let words = words.strip_prefix(&["set"]).unwrap_or(words);
    let [key, value] = words else {
        return false;
    };
    KEYS.contains(&key.to_lowercase().as_str()) && !value.starts_with('-')
}

/// `git remote …` other than looking: where the person's own next push or fetch goes stands in the
/// settings.
pub(super) fn remote(reader: &mut Reader<'_>, call: &Call<'_>) {
    const HERE: &[&str] = &["add", "set-url", "rename", "remove", "rm", "set-branches"];
    let first = call.args.iter().find(|word| !is_option(word));
    let first = first.and_then(Word::literal).unwrap_or_default();
    // What goes leads nowhere.
    if matches!(first.as_str(), "remove" | "rm") {
        return reader.sets_git(call.part);
    }
    reader.writes(&Word::plain(FILE), call.part);
    let fetches = |word: &Word| is_option(word) || word.may_split();
    let here = HERE.contains(&first.as_str());
    if !here || first == "add" && call.args.iter().any(fetches) {
        may_connect(reader, call);
    }
}

/// Whether branches get another name or something to follow, or the working tree other bounds.
/// Git notes that in its settings.
pub(super) fn names_branches(call: &Call<'_>) -> bool {
    let follows = ["--set-upstream", "--unset-upstream", "--track"];
    call.args
        .iter()
        .map(Word::prefix)
        .any(|text| match call.name {
            "branch" => {
                ["-u", "-t", "-m", "-M", "-c", "-C", "--move", "--copy"].contains(&text.as_str())
                    || follows.iter().any(|option| text.starts_with(option))
            }
            "sparse-checkout" => ["set", "init", "add", "disable"].contains(&text.as_str()),
            _ => text == "-t" || follows.iter().any(|option| text.starts_with(option)),
        })
}
