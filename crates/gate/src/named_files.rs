//! The files that the arguments of a call name, with what they hold: part of what a person says yes
//! to, so that nobody can put something else in their place meanwhile.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use gyrus_contract::{
    BlobId, CommandReading, FileIdentity, FileState, NamedFile, ResolvedCall, ResolvedProgram,
    ToolSpec, Touch,
};
use gyrus_process::{Programs, open_regular};

use crate::{as_user, control, own_paths::OwnPaths, paths::real_path, shell};

/// Maximum size of a file whose content is hashed, in bytes; this takes about 50 ms. A larger file
/// is identified by its inode.
const MAX_HASHED: u64 = 64 << 20;
/// Maximum total size of the files of one call whose content is hashed, in bytes.
const MAX_HASHED_IN_ALL: u64 = 256 << 20;
/// Maximum number of paths that are looked up in each folder: more than the words of a call with a
/// person's rights can have.
const MAX_PATHS: usize = 5_000;
/// Maximum number of folders beside the workspace in which paths are looked up.
const MAX_FOLDERS: usize = 4;

/// Looks up the files that a call names. Empty for calls whose files matter to nobody: those that
/// only read them, and commands in a sandbox.
pub(crate) fn look_up(
    own_paths: &OwnPaths,
    programs: &Programs,
    call: &ResolvedCall,
    spec: &ToolSpec,
    workspace: &Path,
) -> Vec<NamedFile> {
    let mut look = NamedFilesLook {
        own_paths,
        workspace,
        seen: BTreeSet::new(),
        left: MAX_HASHED_IN_ALL,
        files: Vec::new(),
    };
    if let Some(command) = &call.command
        && command.containment.is_none()
    {
        let list = spec.touches.iter().find_map(Touch::program);
        let words = list.and_then(|(_, list)| call.arguments[list].as_array());
        let words = words.into_iter().flatten().filter_map(|word| word.as_str());
        let words: Vec<&str> = words.chain(literal(&command.reading)).collect();
        look.words(&words);
        if command.program.as_ref().is_some_and(starts_another) {
            look.programs(programs, &words);
        }
    }
    let leads_out = spec.touches(Touch::is_screen_input) || spec.is_served();
    for path in call.paths.values() {
        let is_asked = path.in_workspace.is_none() || control::obeyed_by(&path.real).is_some();
        let changes = spec.touches(|touch| touch.paths().is_some_and(|paths| paths.is_changed));
        if leads_out || (changes && is_asked) {
            look.file(&path.given, &path.real);
        }
    }
    look.files
}

fn literal(reading: &CommandReading) -> impl Iterator<Item = &str> {
    let words = reading.commands.iter().flat_map(|command| &command.words);
    words.filter_map(|word| word.literal())
}

fn starts_another(program: &ResolvedProgram) -> bool {
    let name = program.path.file_name().and_then(|name| name.to_str());
    name.is_some_and(as_user::runs_others)
}

struct NamedFilesLook<'a> {
    own_paths: &'a OwnPaths,
    workspace: &'a Path,
    /// Real paths of the files found so far.
    seen: BTreeSet<PathBuf>,
    /// Number of bytes that may still be hashed.
    left: u64,
    files: Vec<NamedFile>,
}

impl NamedFilesLook<'_> {
    /// Looks up the paths among words, in the workspace and in the folders named by other words, to
    /// which a program may change first.
    fn words(&mut self, words: &[&str]) {
        // Whole words first: many marks in one must not hide the next.
        let parts = words.iter().flat_map(|word| paths_in(word));
        let paths = words.iter().copied().chain(parts).take(MAX_PATHS);
        let paths: BTreeSet<&str> = paths.collect();
        let is_folder = |path: &&&str| self.workspace.join(path).is_dir();
        let folders = paths.iter().filter(is_folder).take(MAX_FOLDERS);
        let folders: Vec<&str> = std::iter::once("").chain(folders.copied()).collect();
        for (folder, path) in folders
            .iter()
            .flat_map(|folder| paths.iter().map(move |path| (folder, path)))
        {
            let given = Path::new(folder).join(path);
            if let Ok(real) = real_path(&self.workspace.join(&given)) {
                self.file(&given.to_string_lossy(), &real);
            }
        }
    }

    /// Looks up the programs that another program starts by their names.
    fn programs(&mut self, programs: &Programs, words: &[&str]) {
        for word in words.iter().take(MAX_PATHS) {
            if !word.contains('/')
                && let Ok(found) = programs.find(word)
            {
                self.file(&format!("program {word}"), &found.real);
            }
        }
    }

    fn file(&mut self, given: &str, real: &Path) {
        if self.seen.insert(real.to_owned())
            && let Ok(state) = self.state(real)
        {
            self.files.push(NamedFile {
                given: given.to_owned(),
                real: real.to_owned(),
                state,
            });
        }
    }

    /// Returns the state of a plain file. Of keys and of what lies outside of the workspace, nothing
    /// is read.
    fn state(&mut self, real: &Path) -> io::Result<FileState> {
        let found = fs::symlink_metadata(real)?;
        if !found.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let home = self.own_paths.person.as_deref();
        let is_read = real.starts_with(self.workspace) && !shell::is_secret(real, home);
        if is_read && found.len() <= MAX_HASHED.min(self.left) {
            let mut bytes = Vec::new();
            open_regular(real)?
                .take(MAX_HASHED + 1)
                .read_to_end(&mut bytes)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.left = self.left.saturating_sub(length);
            return Ok(FileState::Content {
                hash: BlobId::of(&bytes),
                bytes: length,
                executable: found.mode() & 0o111 != 0,
            });
        }
        let nanos = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
        Ok(FileState::Identity(FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            changed_ns: i64::try_from(nanos).unwrap_or(i64::MAX),
        }))
    }
}

/// Returns the parts of a word that may be a path: `deploy.sh`, `--file=deploy.sh`, `-fdeploy.sh`,
/// `data=@deploy.sh`, `from:deploy.sh`, `deploy.sh,other.sh`.
fn paths_in(word: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::from([word]);
    if let Some(glued) = word.strip_prefix('-').and_then(|word| word.get(1..)) {
        found.insert(glued);
    }
    let marks = [
        '=', '@', ':', ',', ';', '<', '>', '|', '&', '(', ')', '"', '\'', ' ', '\t', '\n',
    ];
    for (at, mark) in word.match_indices(marks) {
        found.insert(&word[at + mark.len()..]);
    }
    found.extend(word.split(marks));
    found.remove("");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_words() {
        for word in [
            "deploy.sh",
            "./a=b/deploy.sh",
            "--file=deploy.sh",
            "-fdeploy.sh",
            "@deploy.sh",
            "data=@deploy.sh",
            "host:deploy.sh",
            "deploy.sh:/inside",
            "type=bind,src=deploy.sh,dst=/x",
            "sh deploy.sh; true",
            "$(cat deploy.sh)",
            "import x; open('deploy.sh')",
        ] {
            let found = paths_in(word);
            let ends = ["deploy.sh", "./a=b/deploy.sh"];
            assert!(
                ends.iter().any(|end| found.contains(end)),
                "{word}: {found:?}"
            );
        }
    }
}
