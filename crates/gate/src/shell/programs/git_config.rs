//! Whether the repository in a folder names programs that git would run while reading.
//!
//! Git finds a repository by going upwards. Here the same way is gone, and what stands in the
//! configuration must be on a list of settings known to be harmless: a list of the harmful ones
//! would grow with every version of git.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// A larger configuration is unusual.
const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// A larger index is not looked through.
const MAX_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// The mode of an entry that stands for another repository, between the words around it.
const LINK_MODE: [u8; 4] = [0, 0, 0xe0, 0];

/// Settings that name no program: `section.key`, whatever the subsection.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.abbrev",
    "core.commentchar",
    "core.longpaths",
    "core.protectntfs",
    "core.protecthfs",
    "core.compression",
    "core.checkstat",
    "core.trustctime",
    "core.untrackedcache",
    "remote.url",
    "remote.fetch",
    "remote.pushurl",
    "remote.push",
    "remote.tagopt",
    "remote.prune",
    "remote.skipfetchall",
    "remote.gh-resolved",
    "branch.remote",
    "branch.merge",
    "branch.rebase",
    "branch.pushremote",
    "branch.description",
    "branch.vscode-merge-base",
    "branch.gh-merge-base",
    "user.name",
    "user.email",
    "user.signingkey",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "init.defaultbranch",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "push.followtags",
    "fetch.prune",
    "fetch.prunetags",
    "merge.ff",
    "merge.conflictstyle",
    "rebase.autostash",
    "rebase.autosquash",
    "rerere.enabled",
    "color.ui",
    "color.status",
    "color.diff",
    "color.branch",
    "diff.renames",
    "diff.algorithm",
    "diff.colormoved",
    "diff.mnemonicprefix",
    "status.short",
    "status.branch",
    "status.showuntrackedfiles",
    "gc.auto",
    "commit.gpgsign",
    "tag.gpgsign",
    "commit.verbose",
    "tag.sort",
    "branch.sort",
    "log.date",
    "log.decorate",
    "advice.detachedhead",
    "gui.wmstate",
    "gui.geometry",
    "pack.windowmemory",
    "http.postbuffer",
    "receive.denycurrentbranch",
    "lfs.repositoryformatversion",
];

/// `Err` says, for a person, what is unusual.
pub(super) fn check(folder: &Path, compares: bool) -> Result<(), String> {
    for above in folder.ancestors() {
        let dot_git = above.join(".git");
        if let Ok(kind) = fs::symlink_metadata(&dot_git) {
            let store = match kind.is_file() {
                true => linked(above, &dot_git)?,
                false => dot_git,
            };
            return repository(above, &store, compares);
        }
        if above.join("HEAD").exists() && above.join("objects").exists() {
            return Err(
                "git would take a folder for a repository that may name programs".to_owned(),
            );
        }
    }
    Ok(())
}

/// Where a file `.git` says that the repository is.
fn linked(above: &Path, file: &Path) -> Result<PathBuf, String> {
    let text = small(file)?;
    let target = text.trim_end().strip_prefix("gitdir: ");
    let target = target.ok_or("a file `.git` that is not understood")?;
    Ok(above.join(target))
}

fn repository(above: &Path, store: &Path, compares: bool) -> Result<(), String> {
    let shared = match store.join("commondir") {
        file if file.exists() => store.join(small(&file)?.trim_end()),
        _ => store.to_owned(),
    };
    if !(shared.join("objects").is_dir() && store.join("HEAD").exists()) {
        return Err("a folder `.git` that is no whole repository".to_owned());
    }
    for config in [shared.join("config"), store.join("config.worktree")] {
        if config.exists() {
            settings(&small(&config)?)?;
        }
    }
    // The rest of a split index lies in another file, which git touches whenever it reads it.
    let split = |folder: &Path| {
        fs::read_dir(folder).is_ok_and(|files| {
            files.flatten().any(|file| {
                file.file_name()
                    .to_string_lossy()
                    .starts_with("sharedindex")
            })
        })
    };
    if split(store) || split(&shared) {
        return Err("an index that is split into two files".to_owned());
    }
    if compares {
        others_within(above, store)?;
    }
    Ok(())
}

/// Repositories within this one have a configuration of their own.
fn others_within(above: &Path, store: &Path) -> Result<(), String> {
    let why = "git would look into repositories within this one, which may name programs";
    if fs::symlink_metadata(above.join(".gitmodules")).is_ok() || store.join("modules").exists() {
        return Err(why.to_owned());
    }
    let index = store.join("index");
    if !index.exists() {
        return Ok(());
    }
    let file = fs::File::open(&index).map_err(|_| "the index cannot be read")?;
    let mut bytes = Vec::new();
    let length = file.take(MAX_INDEX_BYTES + 1).read_to_end(&mut bytes);
    let length = length.map_err(|_| "the index cannot be read")?;

    if length as u64 > MAX_INDEX_BYTES {
        return Err("an index that is not understood".to_owned());
    }
    let links = |bytes: &[u8]| {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == LINK_MODE[2]) {
            if at >= 2 && rest[at - 2..].starts_with(&LINK_MODE) {
                return true;
            }
            rest = &rest[at + 1..];
        }
        false
    };
    match links(&bytes) {
        true => Err(why.to_owned()),
        false => Ok(()),
    }
}

fn small(file: &Path) -> Result<String, String> {
    let unusual = || "the repository's configuration cannot be read".to_owned();
    let about = fs::metadata(file).map_err(|_| unusual())?;
    if !about.is_file() || about.len() > MAX_CONFIG_BYTES {
        return Err(unusual());
    }
    fs::read_to_string(file).map_err(|_| unusual())
}

/// Whether every setting is known to be harmless.
fn settings(text: &str) -> Result<(), String> {
    let unusual = || "the repository's configuration is written in an unusual way".to_owned();
    let mut section = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A value that goes on in the next line could hide the next setting, and be hidden by it.
        if line.ends_with('\\') {
            return Err(unusual());
        }
        if let Some(header) = line.strip_prefix('[') {
            let (header, rest) = header.rsplit_once(']').ok_or_else(unusual)?;
            if !rest.is_empty() || header.contains(']') {
                return Err(unusual());
            }
            let name = header.split([' ', '"', '.']).next().unwrap_or_default();
            section = name.to_lowercase();
            continue;
        }
        let key = line
            .split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .to_lowercase();
        let key = format!("{section}.{key}");
        let value = line.split_once('=').map_or("", |(_, value)| value.trim());
        let not_bare = key == "core.bare" && value == "false";
        let submodule = matches!(key.as_str(), "submodule.url" | "submodule.active");
        if !(not_bare || submodule || HARMLESS.contains(&key.as_str())) {
            return Err(format!(
                "the repository's configuration sets `{key}`, which may make git run a program"
            ));
        }
    }
    Ok(())
}
