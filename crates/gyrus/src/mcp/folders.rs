//! The folders of a server beside the one that the run works in: its own program, wherever that
//! lies, and those that the person gave it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gyrus::runtime::Home;
use gyrus_mcp::ServerSection;

/// Folders of the machine that a sandbox replaces by an empty one of its own.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Files at the root of a program that consists of several folders.
const ROOTS: [&str; 3] = ["package.json", "pyproject.toml", "pyvenv.cfg"];

/// Returns the folders of the server's program and of files named in its arguments that the sandbox
/// would not show, because they lie where it has a folder of its own.
pub(super) fn of_program(section: &ServerSection, workspace: &Path) -> Vec<PathBuf> {
    let named = section.command.iter().chain(&section.args);
    let real = named.filter_map(|word| {
        let path = Path::new(word);
        path.is_absolute().then(|| fs::canonicalize(path).ok())?
    });
    let mut folders: Vec<PathBuf> = real
        .filter(|path| !path.starts_with(workspace) && !workspace.starts_with(path))
        .filter_map(|path| {
            let below = TEMPORARY
                .iter()
                .map(Path::new)
                .find(|place| path.starts_with(place))?;
            root_of(&path, below)
        })
        .filter(|folder| !workspace.starts_with(folder))
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Returns the folder of a program below another folder: the nearest that is the root of a package,
/// else the one that the file is in.
fn root_of(path: &Path, below: &Path) -> Option<PathBuf> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    let within = |folder: &&Path| folder.starts_with(below) && *folder != below;
    let mut above = folder.ancestors().take_while(within);
    let root = above.find(|folder| ROOTS.iter().any(|file| folder.join(file).exists()));
    root.or_else(|| Some(folder).filter(within))
        .map(Path::to_owned)
}

/// Returns the real folders that the server may change, as the person configured them.
///
/// # Errors
/// A message with the reason why a folder cannot be given to the server.
pub(super) fn given(section: &ServerSection, home: &Home) -> Result<Vec<PathBuf>, String> {
    let given = section.folders.iter().map(|written| {
        let path = match (written.strip_prefix("~/"), &home.person) {
            (Some(below), Some(person)) => person.join(below),
            _ => PathBuf::from(written),
        };
        if !path.is_absolute() {
            return Err(format!(
                "`{written}` in folders is not an absolute path, nor below ~/"
            ));
        }
        let real =
            fs::canonicalize(&path).map_err(|error| format!("`{written}` in folders: {error}"))?;
        let resolved = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let own: Vec<_> = home.own().iter().map(resolved).collect();
        let person = home.person.as_ref().map(resolved);
        let holds = own
            .iter()
            .chain(&person)
            .any(|kept| kept.starts_with(&real));
        let is_own = own.iter().any(|own| real.starts_with(own));
        if !real.is_dir() {
            Err(format!("`{written}` in folders is not a folder"))
        } else if holds || is_own || real.parent().is_none() {
            Err(format!(
                "`{written}` in folders holds your whole home or gyrus's own state; name a folder \
                 below it"
            ))
        } else {
            Ok(real)
        }
    });
    given.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_temporary_folder_is_seen_with_its_package_and_nothing_else() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("server/dist")).unwrap();
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("server/package.json"), "{}").unwrap();
        fs::write(root.join("server/dist/index.js"), "").unwrap();
        fs::write(root.join("alone.js"), "").unwrap();
        let section = |args: &[&Path]| {
            let mut section = ServerSection::default();
            section.command = Some("node".to_owned());
            section.args = args.iter().map(|path| path.display().to_string()).collect();
            section
        };
        let work = root.join("work");
        let seen = |path: &Path| of_program(&section(&[path]), &work);
        assert_eq!(
            seen(&root.join("server/dist/index.js")),
            [root.join("server")]
        );
        // Its folder holds the run's own, which is there already.
        assert!(seen(&root.join("alone.js")).is_empty());
        for other in [
            "/tmp",
            "/usr/bin/node",
            "/etc/passwd",
            "index.js",
            "/tmp/nothing/there",
        ] {
            assert!(seen(Path::new(other)).is_empty(), "{other}");
        }
        assert!(seen(&work.join("x.js")).is_empty());
    }
}
