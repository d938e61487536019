//! `git`: which subcommands only read, and what keeps them from doing more.
//!
//! A repository can name programs that git runs: to watch files, to show differences, to convert
//! content. Reading commands are called such only where the configuration that git would find is
//! known to name none ([`git_config`]), and run with variables that switch the rest off.

use std::collections::BTreeMap;

use gyrus_contract::Does;

use super::{Call, git_config, git_settings, network, options::Spec};
use crate::shell::{PARTLY, reader::Reader, words::Word};

/// Options that choose what is shown and how, common to what walks and compares revisions.
const SHOW: &str = "oneline all graph decorate? stat? shortstat numstat name-only name-status \
    patch no-patch patch-with-stat follow since= until= after= before= author= committer= grep= \
    max-count= skip= reverse merges no-merges first-parent abbrev-commit abbrev? no-abbrev date= \
    format= pretty? summary cached staged color? no-color word-diff? ignore-space-change \
    ignore-all-space ignore-blank-lines unified= diff-filter= find-renames? find-copies? no-renames \
    raw branches? tags? remotes? left-right cherry-pick cherry cherry-mark topo-order date-order \
    author-date-order no-ext-diff no-textconv exit-code quiet check minimal patience histogram \
    no-color-moved color-moved? full-index binary dirstat? relative? no-prefix simplify-merges \
    ancestry-path full-history no-walk? walk-reflogs no-decorate count objects parents children \
    boundary compact-summary text function-context pickaxe-regex pickaxe-all merge-base \
    left-only right-only invert-grep regexp-ignore-case extended-regexp fixed-strings perl-regexp \
    source log-size show-pulls clear-decorations no-notes inter-hunk-context= diff-algorithm= \
    ignore-space-at-eol ignore-submodules? cc combined-all-paths root no-index no-relative \
    reflog min-parents= max-parents= no-min-parents no-max-parents diff-merges= no-diff-merges \
    ignore-cr-at-eol max-depth= min-age= max-age= full-diff sparse dense no-commit-id output= mailmap use-mailmap \
    output-indicator-new= output-indicator-old= src-prefix= dst-prefix= ws-error-highlight= \
    no-mailmap ita-invisible-in-index";

/// Subcommands that read, with all of their options that do no more.
const READS: &[(&str, Spec, Reach)] = &[
    (
        "log",
        Spec::strict("n:pusg#L:S:G:U:iEFPwbM;C;mcrtzRaBD", SHOW),
        Reach::Objects,
    ),
    (
        "show",
        Spec::strict("n:pusg#L:S:G:U:iEFPwbM;C;mcrtzRaBD", SHOW),
        Reach::Objects,
    ),
    (
        "diff",
        Spec::strict("puswbU:M;C;S:G:azRBDrc", SHOW),
        Reach::Files,
    ),
    (
        "diff-tree",
        Spec::strict("puswbU:M;C;S:G:azRBDrctm", SHOW),
        Reach::Objects,
    ),
    (
        "diff-index",
        Spec::strict("puswbU:M;C;S:G:azRBDrcm", SHOW),
        Reach::Files,
    ),
    (
        "diff-files",
        Spec::strict("puswbU:M;C;S:G:azRBDrc0123q", SHOW),
        Reach::Files,
    ),
    ("rev-list", Spec::strict("n:#igEF", SHOW), Reach::Objects),
    (
        "shortlog",
        Spec::strict(
            "nsecw;",
            "numbered summary email committer all since= until= no-merges group= format= after= before= author=",
        ),
        Reach::Objects,
    ),
    (
        "status",
        Spec::strict(
            "sbvu;z",
            "short branch porcelain? long untracked-files? ignored? column? no-column verbose show-stash ahead-behind no-ahead-behind renames no-renames find-renames? ignore-submodules?",
        ),
        Reach::Files,
    ),
    (
        "blame",
        Spec::strict(
            "L:wlsetpcfnM;C;b",
            "line-porcelain porcelain date= show-email show-name show-number root abbrev= incremental since= reverse first-parent show-stats",
        ),
        Reach::Objects,
    ),
    ("annotate", Spec::strict("L:wlset", ""), Reach::Objects),
    (
        "grep",
        Spec::strict(
            "aiIwvhHEGFPnlLcqrpWzof:e:A:B:C:m:#",
            "cached untracked no-index text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp fixed-strings perl-regexp line-number column files-with-matches name-only files-without-match null only-matching count color? no-color break heading show-function function-context context= after-context= before-context= max-depth= threads= and or not all-match quiet exclude-standard no-exclude-standard recursive no-recursive max-count=",
        ),
        Reach::Objects,
    ),
    (
        "ls-files",
        Spec::strict(
            "cdmosuktvfzx:X:",
            "cached deleted modified others ignored stage unmerged killed exclude= exclude-from= exclude-per-directory= exclude-standard error-unmatch full-name abbrev? eol deduplicate directory no-empty-directory with-tree= format= sparse",
        ),
        Reach::Files,
    ),
    (
        "ls-tree",
        Spec::strict(
            "drtlz",
            "long name-only name-status object-only full-name full-tree abbrev? format=",
        ),
        Reach::Objects,
    ),
    (
        "rev-parse",
        Spec::strict(
            "q",
            "show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository verify quiet short? abbrev-ref? symbolic symbolic-full-name all branches? tags? remotes? revs-only no-revs flags no-flags show-object-format? default= path-format= show-superproject-working-tree git-path= since= until= disambiguate= local-env-vars",
        ),
        Reach::Objects,
    ),
    (
        "cat-file",
        Spec::strict(
            "tspe",
            "batch? batch-check? batch-all-objects buffer unordered follow-symlinks",
        ),
        Reach::Objects,
    ),
    (
        "show-ref",
        Spec::strict(
            "qdsh",
            "head heads tags branches hash? abbrev? verify quiet dereference exclude-existing?",
        ),
        Reach::Objects,
    ),
    (
        "for-each-ref",
        Spec::strict(
            "",
            "count= sort= format= color? points-at= merged? no-merged? contains? no-contains? ignore-case exclude= omit-empty",
        ),
        Reach::Objects,
    ),
    (
        "merge-base",
        Spec::strict("a", "all octopus independent is-ancestor fork-point"),
        Reach::Objects,
    ),
    (
        "name-rev",
        Spec::strict("", "tags refs= all name-only always exclude= no-undefined"),
        Reach::Objects,
    ),
    (
        "describe",
        Spec::strict(
            "",
            "tags all always long abbrev= exact-match first-parent match= exclude= candidates= contains debug",
        ),
        Reach::Objects,
    ),
    (
        "count-objects",
        Spec::strict("vH", "verbose human-readable"),
        Reach::Objects,
    ),
    (
        "check-ignore",
        Spec::strict("vnqz", "verbose non-matching no-index quiet"),
        Reach::Objects,
    ),
    (
        "check-attr",
        Spec::strict("az", "all cached"),
        Reach::Objects,
    ),
    ("cherry", Spec::strict("v", "abbrev?"), Reach::Objects),
    ("var", Spec::strict("l", ""), Reach::Objects),
    (
        "range-diff",
        Spec::strict(
            "s",
            "creation-factor= no-dual-color no-patch left-only right-only stat?",
        ),
        Reach::Objects,
    ),
    (
        "help",
        Spec::strict("agc", "all guides config"),
        Reach::Objects,
    ),
    ("version", Spec::strict("", "build-options"), Reach::Objects),
];

/// Subcommands that read with certain first words only.
const READS_WITH: &[(&str, &[&str], Spec, Reach)] = &[
    (
        "branch",
        &[],
        Spec::strict(
            "avrl",
            "all verbose remotes list show-current sort= format= contains= no-contains= merged? no-merged? points-at= color? no-color column? no-column abbrev? ignore-case",
        ),
        Reach::Objects,
    ),
    (
        "tag",
        &[],
        Spec::strict(
            "ln;",
            "list sort= format= contains= no-contains= merged= no-merged= points-at= column? ignore-case color?",
        ),
        Reach::Objects,
    ),
    (
        "remote",
        &["get-url"],
        Spec::strict("v", "verbose all push"),
        Reach::Objects,
    ),
    (
        "stash",
        &["list", "show"],
        Spec::strict(
            "pun:#",
            "patch stat? name-only name-status oneline format= date= include-untracked only-untracked",
        ),
        Reach::Objects,
    ),
    (
        "worktree",
        &["list"],
        Spec::strict("vz", "porcelain verbose"),
        Reach::Objects,
    ),
    (
        "reflog",
        &["show", "exists"],
        Spec::strict("n:#p", SHOW),
        Reach::Objects,
    ),
    (
        "notes",
        &["list", "show"],
        Spec::strict("", "ref="),
        Reach::Objects,
    ),
    (
        "bundle",
        &["list-heads"],
        Spec::strict("", ""),
        Reach::Objects,
    ),
    (
        "symbolic-ref",
        &[],
        Spec::strict("q", "short quiet"),
        Reach::Objects,
    ),
];

/// What changes the repository; `true` if files of the workspace may be lost by it.
const CHANGES: &[&str] = &[
    "add",
    "commit",
    "checkout",
    "switch",
    "restore",
    "stash",
    "merge",
    "rebase",
    "reset",
    "tag",
    "branch",
    "cherry-pick",
    "revert",
    "rm",
    "mv",
    "clean",
    "init",
    "apply",
    "am",
    "bisect",
    "notes",
    "worktree",
    "submodule",
    "sparse-checkout",
    "remote",
    "config",
    "gc",
    "prune",
    "repack",
    "reflog",
    "update-index",
    "update-ref",
    "symbolic-ref",
    "write-tree",
    "commit-tree",
    "read-tree",
    "replace",
    "filter-branch",
    "rerere",
    "fast-import",
    "hash-object",
    "mktree",
    "pack-refs",
    "checkout-index",
    "format-patch",
    "archive",
    "bundle",
    "fsck",
    "maintenance",
    "lfs",
    "subtree",
    "merge-tree",
    "filter-repo",
    "prune-packed",
    "unpack-objects",
    "commit-graph",
    "multi-pack-index",
    "mergetool",
    "difftool",
    "whatchanged",
    "verify-commit",
    "verify-tag",
    "show-branch",
    "describe",
];

/// What a reading subcommand looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// What is stored.
    Objects,
    /// Files of the workspace too, and repositories within it.
    Files,
}

/// Variables that keep `git` from running anything or writing anything while it reads.
pub(in crate::shell) fn environment() -> BTreeMap<String, String> {
    const SETTINGS: &[(&str, &str)] = &[
        ("core.fsmonitor", "false"),
        ("core.untrackedCache", "false"),
        ("core.hooksPath", "/dev/null"),
        ("core.pager", "cat"),
        ("core.quotePath", "false"),
        // `git diff` writes the index although locks are optional.
        ("diff.autoRefreshIndex", "false"),
        ("diff.ignoreSubmodules", "all"),
        ("log.showSignature", "false"),
        ("safe.bareRepository", "explicit"),
        // The configuration was read and found to be harmless, whoever owns it.
        ("safe.directory", "*"),
        ("submodule.recurse", "false"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
    ];
    const VARIABLES: &[(&str, &str)] = &[
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_PAGER", "cat"),
        ("GIT_EDITOR", "false"),
        ("GIT_ASKPASS", "false"),
        ("GIT_SSH_COMMAND", "false"),
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
    ];
    let mut all: BTreeMap<String, String> = VARIABLES
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    all.insert("GIT_CONFIG_COUNT".to_owned(), SETTINGS.len().to_string());
    for (number, (key, value)) in SETTINGS.iter().enumerate() {
        all.insert(format!("GIT_CONFIG_KEY_{number}"), (*key).to_owned());
        all.insert(format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned());
    }
    all
}

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    if call.name != "git" {
        return false;
    }
    let before = reader.folder.clone();
    match global(reader, call) {
        Ok(Some((subcommand, args))) => {
            let call = Call {
                name: &subcommand,
                args,
                part: call.part,
            };
            self::subcommand(reader, &call);
        }
        Ok(None) => {}
        Err(why) => reader.hides(call.part, why),
    }
    reader.folder = before;
    true
}

type Subcommand<'a> = Option<(String, &'a [Word])>;

/// The options before the subcommand.
fn global<'a>(reader: &mut Reader<'_>, call: &Call<'a>) -> Result<Subcommand<'a>, &'static str> {
    let mut words = call.args;
    while let [word, rest @ ..] = words {
        let text = word
            .literal()
            .ok_or("which subcommand it runs is known only when it runs")?;
        words = rest;
        match text.as_str() {
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--no-lazy-fetch"
            | "--no-replace-objects"
            | "--icase-pathspecs" => {}
            "--version" | "-v" | "--help" | "-h" | "--html-path" | "--man-path" | "--info-path"
            | "--exec-path"
                if rest.is_empty() =>
            {
                return Ok(None);
            }
            "-C" => {
                let [folder, rest @ ..] = words else {
                    return Err("an option lacks its value");
                };
                words = rest;
                let folder = folder
                    .literal()
                    .ok_or("in which folder it runs is not known")?;
                reader.folder = reader.absolute(&folder).ok();
            }
            "-c" => {
                let [setting, rest @ ..] = words else {
                    return Err("an option lacks its value");
                };
                words = rest;
                let text = setting.literal().unwrap_or_default().to_lowercase();
                let harmless = [
                    "core.quotepath=",
                    "color.",
                    "core.pager=cat",
                    "user.name=",
                    "user.email=",
                    "log.date=",
                    "init.defaultbranch=",
                    "advice.",
                    "commit.gpgsign=false",
                ];
                let plain = harmless.iter().any(|start| text.starts_with(start));
                if !plain || text.starts_with("core.pager") && text != "core.pager=cat" {
                    return Err("a setting may make it run other programs");
                }
            }
            text if text.starts_with('-') => return Err("an option that is not known"),
            _ => return Ok(Some((text, rest))),
        }
    }
    Ok(None)
}

fn subcommand(reader: &mut Reader<'_>, call: &Call<'_>) {
    let asks = call
        .args
        .iter()
        .any(|word| word.literal().as_deref() == Some("-h"));
    if asks && call.args.len() == 1 && CHANGES.contains(&call.name) {
        return;
    }
    // It looks at every file then, and notes what it saw.
    let looks = |word: &Word| word.prefix().starts_with("--dirty");
    if call.name == "describe" && call.args.iter().any(looks) {
        return changes(reader, call);
    }
    if let Some((_, spec, reach)) = READS.iter().find(|(name, ..)| *name == call.name) {
        return match reads(reader, call, spec) {
            Ok(()) => calm(reader, call, *reach),
            Err(why) => reader.hides(call.part, why),
        };
    }
    if let Some((_, firsts, spec, reach)) = READS_WITH.iter().find(|(name, ..)| *name == call.name)
        && reads_with(call, firsts, spec)
    {
        return calm(reader, call, *reach);
    }
    if call.name == "config" && git_settings::reads(call) {
        return git_settings::prints(reader, call);
    }
    if network::git(reader, call) {
        return;
    }
    match CHANGES.contains(&call.name) {
        true => changes(reader, call),
        false => {
            let alias = "it may be an alias, or a program `git-…` on the path";
            if call.name.starts_with("credential") {
                let why = "it hands out or keeps passwords";
                reader.fact(Does::UsesCredentials, call.part, why);
            }
            changes(reader, call);
            reader.runs_code(call.part, alias);
        }
    }
}

fn reads(reader: &mut Reader<'_>, call: &Call<'_>, spec: &Spec) -> Result<(), &'static str> {
    let parsed = spec.parse(call.args)?;
    if checks_signatures(call) {
        return Err("it runs a program that checks signatures");
    }
    for file in parsed.values(&["output"]) {
        reader.writes(file, call.part);
    }
    if call.name == "help" && !parsed.operands.is_empty() {
        return Err("it shows a page by another program");
    }
    if call.name == "diff" && parsed.has(&["no-index"]) && !parsed.operands.iter().all(Word::is_one)
    {
        return Err("an argument that could be an option");
    }
    Ok(())
}

/// Signatures are checked by another program.
fn checks_signatures(call: &Call<'_>) -> bool {
    let open = |word: &Word| word.literal().is_none() && word.prefix().starts_with('-');
    call.args.iter().any(|word| {
        let text = &word.raw;
        text.contains("%G") || text.contains("signature") || open(word) && text.contains("format")
    })
}

/// Whether the words are those that make this subcommand read.
fn reads_with(call: &Call<'_>, firsts: &[&str], spec: &Spec) -> bool {
    let Ok(parsed) = spec.parse(call.args) else {
        return false;
    };
    if checks_signatures(call) {
        return false;
    }
    let lists = parsed.has(&[
        "l",
        "list",
        "contains",
        "no-contains",
        "merged",
        "no-merged",
        "points-at",
    ]);
    match (call.name, parsed.operands.split_first()) {
        ("branch" | "tag", Some(_)) => lists,
        ("stash", None) => false,
        (_, None) => true,
        ("symbolic-ref", Some((name, rest))) => rest.is_empty() && name.is_one(),
        ("reflog", Some((first, _))) => match first.literal() {
            Some(word) => {
                firsts.contains(&&*word) || word.starts_with("HEAD") || word.contains('@')
            }
            None => false,
        },
        (_, Some((first, rest))) => {
            let known = first.literal().is_some_and(|word| firsts.contains(&&*word));
            // `stash -p` saves; options count only after the word that reads.
            let leads = call.args.first().and_then(Word::literal) == first.literal();
            known && leads && (call.name != "worktree" || rest.is_empty())
        }
    }
}

/// A reading command: fine if the repository's configuration is.
fn calm(reader: &mut Reader<'_>, call: &Call<'_>, reach: Reach) {
    reader.calm_git = true;
    let Some(folder) = reader.folder.clone() else {
        return reader.runs_code(call.part, "which repository it reads is not known");
    };
    let compares = reach == Reach::Files;
    match git_config::check(&folder, compares) {
        Ok(()) => reader.reads(".", call.part),
        Err(why) => reader.runs_code(call.part, &why),
    }
}

fn changes(reader: &mut Reader<'_>, call: &Call<'_>) {
    let hooks = "git may run hooks and other programs that the repository names";
    reader.fact(
        Does::ChangesRepository,
        call.part,
        "it changes the repository",
    );
    reader.runs_code(call.part, hooks);
    if is_elsewhere(reader) {
        reader.writes(&Word::plain("."), call.part);
    }
    let has = |wanted: &[&str]| {
        call.args
            .iter()
            .any(|word| word.literal().is_some_and(|word| wanted.contains(&&*word)))
    };

    let first = call
        .args
        .first()
        .and_then(Word::literal)
        .unwrap_or_default();
    let loses = match call.name {
        "reset" => has(&["--hard", "--merge", "--keep"]),
        "clean" => !has(&["-n", "--dry-run"]),
        "restore" | "rm" | "mv" | "checkout-index" | "read-tree" => true,
        "checkout" => has(&["--", "-f", "--force", "."]),
        "switch" => has(&["-f", "--force", "--discard-changes"]),
        "stash" => matches!(first.as_str(), "drop" | "clear"),
        "worktree" => matches!(first.as_str(), "remove" | "prune"),
        _ => false,
    };
    if loses {
        reader.removes_partly(&Word::plain("."), call.part, PARTLY[0]);
    }
    let destroys = match call.name {
        "reflog" => matches!(first.as_str(), "expire" | "delete"),
        // By itself it drops only what nothing has named for weeks.
        "gc" => !call.args.iter().all(|word| {
            let text = word.literal();
            text.is_some_and(|text| ["-q", "--quiet", "--auto", "--no-prune"].contains(&&*text))
        }),
        "prune" => !has(&["-n", "--dry-run"]),
        "filter-branch" | "filter-repo" | "prune-packed" => true,
        "stash" => matches!(first.as_str(), "drop" | "clear"),
        _ => false,
    };
    if destroys {
        reader.fact(
            Does::Destroys,
            call.part,
            "what it drops cannot be got back",
        );
    }
    outside(reader, call);
}

/// Whether it surely runs in a folder outside of that which the line starts in.
fn is_elsewhere(reader: &Reader<'_>) -> bool {
    let real = |folder: &std::path::Path| folder.canonicalize().unwrap_or(folder.to_owned());
    let folder = reader.folder.as_deref().map(real);
    folder.is_some_and(|folder| !folder.starts_with(real(&reader.place.folder)))
}

/// Subcommands that also write where they are told, or set what runs later.
fn outside(reader: &mut Reader<'_>, call: &Call<'_>) {
    match call.name {
        "config" => git_settings::config(reader, call),
        "archive" => match Spec::strict("o:lv0", "format= prefix= output=").parse(call.args) {
            Ok(parsed) => {
                for file in parsed.values(&["o", "output"]) {
                    reader.writes(file, call.part);
                }
            }
            Err(why) => reader.hides(call.part, why),
        },
        "format-patch" => {
            let spec = Spec::strict("o:n#Nksv:", "output-directory= stdout cover-letter");
            match spec.parse(call.args) {
                Ok(parsed) if parsed.has(&["stdout"]) => {}
                Ok(parsed) => {
                    let folder = parsed.values(&["o", "output-directory"]).last().cloned();
                    reader.writes(&folder.unwrap_or(Word::plain(".")), call.part);
                }
                Err(why) => reader.hides(call.part, why),
            }
        }
        "bundle" => {
            let file = call.args.iter().filter(|word| !is_option(word)).nth(1);
            let folder = Word::plain(".");
            reader.writes(file.unwrap_or(&folder), call.part);
        }
        "init" | "worktree" => {
            if call.name == "init" {
                git_settings::init(reader, call);
            }
            for word in call.args.iter().filter(|word| word.prefix().contains('/')) {
                reader.writes(word, call.part);
            }
        }
        "branch" | "checkout" | "switch" | "sparse-checkout"
            if git_settings::names_branches(call) =>
        {
            reader.sets_git(call.part);
        }
        "submodule" if lists_submodules(call) => {}
        "remote" => git_settings::remote(reader, call),
        "submodule" | "lfs" => may_connect(reader, call),
        _ => {}
    }
}

pub(super) fn may_connect(reader: &mut Reader<'_>, call: &Call<'_>) {
    let hosts = Vec::new();
    let why = "it may connect to remotes";
    reader.fact(Does::Connects { hosts }, call.part, why);
}

pub(super) fn is_option(word: &Word) -> bool {
    word.prefix().starts_with('-')
}

/// Whether it only lists submodules, although others of its kind talk to remotes.
fn lists_submodules(call: &Call<'_>) -> bool {
    let first = call.args.first().and_then(Word::literal);
    matches!(first.as_deref(), Some("status" | "summary"))
}

#[cfg(test)]
#[test]
fn no_letter_is_listed_twice() {
    let more = READS_WITH.iter().map(|(name, _, spec, _)| (name, spec));
    for (name, spec) in READS.iter().map(|(name, spec, _)| (name, spec)).chain(more) {
        assert_eq!(spec.listed_twice(), None, "{name}");
    }
}
