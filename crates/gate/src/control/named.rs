//! Reading which files control files name: what they include, source or start.
//!
//! A reading can only make more files control files. It knows the common ways to say it, not the
//! languages.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::{self, File},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
};

use gyrus_text::fits;
use gyrus_workspace::snapshot::is_left_out;

use super::table::Acts;

/// Maximum number of bytes of a file that are read.
const MAX_BYTES: u64 = 64 << 10;
/// Maximum number of files that are named.
const MAX_NAMED: usize = 512;
/// Maximum number of words read of a file.
const MAX_WORDS: usize = 2_000;
/// Maximum number of steps from a control file to a file that is read for the names in it: code
/// that a hook starts leads to all of a project's. Makefiles include each other at any depth.
const MAX_DEPTH: u8 = 1;
/// Maximum number of places in which a named file is looked for.
const MAX_CANDIDATES: usize = 8;

/// Words after which a file is named that is read, sourced or started.
const READS: [&str; 30] = [
    "source",
    ".",
    "include",
    "source_env",
    "source_env_if_exists",
    "dotenv",
    "dotenv_if_exists",
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "python",
    "python3",
    "node",
    "ruby",
    "perl",
    "php",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "lua",
    "Rscript",
    "exec",
    "eval",
    "luafile",
    "runtime",
    "load",
];
/// Words of git's configuration after which a file is named that git obeys.
const OF_GIT: [&str; 3] = ["path", "attributesfile", "fsmonitor"];
/// Words of a service's settings after which others of the repository are named.
const OF_SERVICES: [&str; 3] = ["local", "include", "template"];
/// Words followed by the name of a folder with programs.
const FOLDERS: [&str; 4] = ["PATH_add", "path_add", "hookspath", "load_prefix"];
/// Files that direnv evaluates for `use nix` and `use flake`.
const OF_NIX: [&str; 4] = ["flake.nix", "flake.lock", "shell.nix", "default.nix"];
/// Directives of a makefile that name files.
const INCLUDES: [&str; 5] = ["include", "-include", "sinclude", ".include", ".-include"];
/// Words between a word that starts programs and the program.
const BETWEEN: [&str; 4] = ["args", "run", "-u", "env"];

/// Extensions of files that are data to the file that names them.
const DATA: [&str; 12] = [
    "md", "txt", "css", "scss", "html", "svg", "png", "lock", "csv", "log", "d", "tsx",
];
/// Files that every tool of their language names.
const COMMON: [&str; 5] = [
    "package.json",
    "tsconfig.json",
    "jsconfig.json",
    "pyproject.toml",
    "Cargo.toml",
];
/// Endings of lists of dependencies, which every build writes.
const DEPENDENCIES: [&str; 6] = ["d", "Po", "Plo", "Tpo", "dep", "deps"];
/// Endings that code may leave out when it names other code.
const CODE: [&str; 5] = ["js", "cjs", "mjs", "ts", "rb"];

/// Language of a control file, as far as it matters for finding names in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Make,
    /// Settings of git outside of the workspace.
    Git,
    /// Text for agents, in which `@path` is included.
    Prose,
    /// Settings of a service, which include others of the repository.
    Service,
    /// Scripts, settings and code.
    Other,
}

/// A control file to read.
#[derive(Debug)]
pub(super) struct ToRead {
    file: PathBuf,
    /// The control file by which it is read, for the person.
    by: PathBuf,
    /// The folders from which the file may name others, below the workspace.
    bases: Vec<PathBuf>,
    language: Language,
    /// Number of files between it and the control file.
    depth: u8,
}

impl ToRead {
    /// Returns the file to read, below the workspace or absolute.
    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    pub(super) fn makefile(file: PathBuf, folder: PathBuf) -> Self {
        Self {
            by: file.clone(),
            file,
            bases: vec![folder],
            language: Language::Make,
            depth: 0,
        }
    }

    /// Whether the file is a makefile that is not at the top.
    pub(super) fn is_deep_makefile(&self) -> bool {
        self.language == Language::Make && self.file.components().count() > 1
    }

    pub(super) fn obeyed(file: PathBuf, acts: Acts) -> Self {
        let language = match acts {
            Acts::Agent => Language::Prose,
            Acts::Push => Language::Service,
            Acts::Enter | Acts::Git | Acts::Open | Acts::Save | Acts::Start => Language::Other,
        };
        Self {
            by: file.clone(),
            bases: file.ancestors().skip(1).map(Path::to_owned).collect(),
            file,
            language,
            depth: 0,
        }
    }
}

/// Returns the person's git configuration and the hooks and settings of the repository around a
/// workspace, as far as they lie outside the changed folder.
pub(super) fn git_settings(workspace: &Path, home: Option<&Path>) -> Vec<ToRead> {
    let git = workspace.ancestors().map(|above| above.join(".git"));
    let git = git.take(16).find(|git| git.symlink_metadata().is_ok());
    let mut settings = vec![PathBuf::from("/etc/gitconfig")];
    settings.extend(home.map(|home| home.join(".gitconfig")));
    settings.extend(home.map(|home| home.join(".config/git/config")));
    settings.extend(git.iter().map(|git| git.join("config")));
    let outside = |file: PathBuf| {
        // A setting is relative to its file, or to the top of the work tree.
        let own = file.parent().and_then(|folder| {
            let below = folder.strip_prefix(workspace).ok();
            below.map(Path::to_owned)
        });
        ToRead {
            by: file.clone(),
            bases: own.into_iter().chain([PathBuf::new()]).collect(),
            file,
            language: Language::Git,
            depth: 0,
        }
    };
    let hooks = git.and_then(|git| fs::read_dir(git.join("hooks")).ok());
    let hooks = hooks.into_iter().flatten().flatten().take(32);
    let hooks = hooks.map(|hook| hook.path());
    let hooks = hooks.filter(|hook| hook.extension().is_none_or(|end| end != "sample"));
    settings.into_iter().chain(hooks).map(outside).collect()
}

pub(super) struct ControlFileReader<'a> {
    workspace: &'a Path,
    home: Option<&'a Path>,
    seen: BTreeSet<PathBuf>,
}

impl<'a> ControlFileReader<'a> {
    pub(super) fn new(workspace: &'a Path, home: Option<&'a Path>) -> Self {
        Self {
            workspace,
            home,
            seen: BTreeSet::new(),
        }
    }

    /// Reads a control file, and records the files that it names; control files among these are
    /// read later.
    pub(super) fn read(
        &mut self,
        file: ToRead,
        named: &mut BTreeMap<ReadByControl, PathBuf>,
        to_read: &mut VecDeque<ToRead>,
    ) {
        if !self.seen.insert(file.file.clone()) {
            return;
        }
        let Some(text) = read_start(&self.workspace.join(&file.file)) else {
            return;
        };
        let found = match file.language {
            Language::Make => self.of_makefile(&text, &file),
            Language::Git | Language::Other => self.of_script(&text, &file),
            Language::Prose => self.of_words(&text, &file, |_, word| word.strip_prefix('@')),
            Language::Service => self.of_words(&text, &file, |before, word| {
                let included = OF_SERVICES.contains(&before);
                included.then(|| word.trim_start_matches('/'))
            }),
        };
        for found in found {
            if named.len() >= MAX_NAMED || is_left_out(self.workspace, &found.path) {
                continue;
            }
            let goes_on = file.language == Language::Make || file.depth < MAX_DEPTH;
            if !found.is_folder && goes_on {
                to_read.push_back(ToRead {
                    file: found.path.clone(),
                    by: file.by.clone(),
                    bases: file.bases.clone(),
                    language: file.language,
                    depth: file.depth + 1,
                });
            }
            named.entry(found).or_insert_with(|| file.by.clone());
        }
    }

    fn of_makefile(&self, text: &str, file: &ToRead) -> Vec<ReadByControl> {
        let joined = text.replace("\\\n", " ");
        let mut found = Vec::new();
        for line in joined.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if INCLUDES.contains(&first) {
                let names = words.take_while(|word| !word.starts_with('#'));
                found.extend(names.filter_map(|name| self.included(name, file)));
            } else if line.contains("$(shell") || line.contains("!=") || line.contains("${shell") {
                let run = line.find("shell").or_else(|| line.find("!="));
                let script = run.map_or(line, |at| &line[at..]);
                found.extend(self.of_script(script, file));
            }
        }
        found
    }

    /// Returns a file that a makefile includes. If its name begins with a variable, the rest is
    /// known.
    fn included(&self, name: &str, file: &ToRead) -> Option<ReadByControl> {
        let name = name.trim_matches(['"', '<', '>']);
        let base = file.bases.first()?;
        let path = match name.rfind(['$', ')', '}']) {
            None => below(base, name)?,
            Some(_) => {
                let (around, last) = name.rsplit_once('/')?;
                // Only the folder may be unknown.
                if last.contains(['$', ')', '}', '(', '{']) || around.is_empty() {
                    return None;
                }
                let known = self.find_named(base, last)?;
                base.join(known)
            }
        };
        let ending = path.extension().unwrap_or_default();
        let is_written = DEPENDENCIES.iter().any(|list| ending == *list);
        (!is_written).then(|| ReadByControl {
            by_make: true,
            ..ReadByControl::file(path)
        })
    }

    /// Finds a file in a folder whose name is unknown: here or one below.
    fn find_named(&self, base: &Path, name: &str) -> Option<PathBuf> {
        let here = self.workspace.join(base);
        if here.join(name).exists() {
            return Some(PathBuf::from(name));
        }
        let folders = fs::read_dir(&here).ok()?.flatten().take(256);
        let mut folders = folders.map(|entry| PathBuf::from(entry.file_name()).join(name));
        folders.find(|path| here.join(path).is_file())
    }

    fn of_script(&self, text: &str, file: &ToRead) -> Vec<ReadByControl> {
        let mut found = Vec::new();
        let mut before = String::new();
        for word in words(text).take(MAX_WORDS) {
            if word.starts_with('-') || BETWEEN.contains(&word) {
                continue;
            }
            let is = |names: &[&str]| names.iter().any(|name| before.eq_ignore_ascii_case(name));
            let sure = if is(&FOLDERS) {
                Sure::Folder
            } else if is(&READS)
                || (file.language == Language::Git && is(&OF_GIT))
                || word.starts_with("./")
                || word.starts_with("../")
            {
                Sure::File
            } else {
                Sure::IfProgram
            };
            if before == "use" && ["flake", "nix"].contains(&word) {
                let base = file.bases.first().cloned().unwrap_or_default();
                found.extend(OF_NIX.map(|name| ReadByControl::file(base.join(name))));
            }
            let resolved = self.resolve(word, file, sure).into_iter();
            found.extend(resolved.map(|path| ReadByControl {
                is_folder: sure == Sure::Folder,
                ..ReadByControl::file(path)
            }));
            word.clone_into(&mut before);
        }
        found
    }

    fn of_words(
        &self,
        text: &str,
        file: &ToRead,
        named: impl for<'w> Fn(&str, &'w str) -> Option<&'w str>,
    ) -> Vec<ReadByControl> {
        let mut before = "";
        let found = words(text).take(MAX_WORDS).filter_map(|word| {
            let found = named(before, word);
            before = word;
            found
        });
        let found = found.flat_map(|word| {
            let bases = file.bases.iter();
            let paths = bases.filter_map(move |base| below(base, word));
            paths.filter(|path| self.workspace.join(path).is_file())
        });
        found.map(ReadByControl::file).collect()
    }

    /// Returns the files of the workspace that a word of a control file names.
    fn resolve(&self, word: &str, file: &ToRead, sure: Sure) -> Vec<PathBuf> {
        let Some(word) = self.relative(word) else {
            return Vec::new();
        };
        let candidates = file.bases.iter().filter_map(|base| below(base, &word));
        let candidates: Vec<PathBuf> = candidates.take(MAX_CANDIDATES).collect();
        let real = |path: &PathBuf| fs::metadata(self.workspace.join(path)).ok();
        let known = |is: fn(&fs::Metadata) -> bool| {
            let mut known = candidates.clone();
            known.retain(|path| real(path).is_some_and(|data| is(&data)));
            known
        };
        match sure {
            // No shell looks for a bare word in its folder.
            Sure::IfProgram if !word.contains(['/', '.']) => Vec::new(),
            Sure::IfProgram => {
                known(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
            }
            // A setting is relative to its file or to the top, and both may be there.
            Sure::Folder => candidates.clone(),
            Sure::File => {
                let mut known = known(fs::Metadata::is_file);
                let coded = candidates
                    .iter()
                    .flat_map(|path| CODE.iter().map(|end| path.with_added_extension(end)));
                known.extend(coded.filter(|path| real(path).is_some_and(|data| data.is_file())));
                // It may come to be.
                let is_path = word.contains(['/', '.']);
                let is_folder = candidates.iter().any(|path| real(path).is_some());
                if known.is_empty() && is_path && !is_folder {
                    return candidates;
                }
                known
            }
        }
    }

    /// Returns the path in a word, relative to the folder to search; `None` if none matters.
    fn relative(&self, word: &str) -> Option<String> {
        let word = word.trim_start_matches(['!', '+', '@']);
        // What stands before it was a variable: `$PWD/x`, `${workspaceFolder}/x`.
        let word = match (word.strip_prefix('$'), word.strip_prefix("~/"), self.home) {
            (Some(variable), ..) => variable.split_once('/')?.1.to_owned(),
            (None, Some(rest), Some(home)) => home.join(rest).to_str()?.to_owned(),
            (None, ..) => word.to_owned(),
        };
        let inside = Path::new(&word).strip_prefix(self.workspace).ok();
        let word = inside.and_then(Path::to_str).unwrap_or(&word);
        let word = word.trim_start_matches('/');
        let name = Path::new(word).file_name()?.to_str()?;
        let ending = Path::new(word).extension().unwrap_or_default();
        let is_data = DATA.iter().any(|data| ending == *data) || COMMON.contains(&name);
        let is_plain = !word.contains(['*', '$', '~', '%', '\\']) && word.len() <= 512;
        (is_plain && !is_data).then(|| word.to_owned())
    }
}

/// The kind of file that a word names, and how certain that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    /// The context says that the word is a file.
    File,
    /// The context says that the word is a folder.
    Folder,
    /// The word is a file if there is a program of that name.
    IfProgram,
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let ends = |at: char| at.is_whitespace() || "\"'`;|&(){}[],=<>:".contains(at);
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.starts_with('#') && !line.starts_with("//"));
    lines.flat_map(move |line| line.split(ends).filter(|word| !word.is_empty()))
}

/// The path below the workspace that `word` names from `base`; `None` if that leads out of it.
pub(super) fn below(base: &Path, word: &str) -> Option<PathBuf> {
    let mut path = base.to_owned();
    for part in Path::new(word).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!path.as_os_str().is_empty() && path != base).then_some(path)
}

fn read_start(path: &Path) -> Option<String> {
    // A pipe would make the reading wait.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file, or a folder with its contents, that a control file names as read by its program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadByControl {
    /// Path below the workspace; parts may have stars.
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
    /// Whether make reads the file, which make first rebuilds from other files.
    pub(super) by_make: bool,
}

impl ReadByControl {
    pub(super) fn is(&self, path: &Path) -> bool {
        if !self.path.as_os_str().as_encoded_bytes().contains(&b'*') {
            return *path == *self.path || (self.is_folder && path.starts_with(&self.path));
        }
        let (wanted, mut parts) = (self.path.iter(), path.iter());
        let mut each = wanted.map(|wanted| (wanted, parts.next()));
        each.all(|(wanted, part)| {
            part.is_some_and(|part| fits(&wanted.to_string_lossy(), &part.to_string_lossy()))
        }) && (self.is_folder || parts.next().is_none())
    }
}
