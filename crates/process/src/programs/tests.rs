use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::atomic::{AtomicUsize, Ordering},
};

use tempfile::TempDir;

use super::*;

/// A workspace, folders of programs, and a search in them.
struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let world = Self { root };
        for folder in ["work/.venv/bin", "work/node_modules/.bin", "good", "bin"] {
            fs::create_dir_all(world.at(folder)).unwrap();
        }
        world.program("good/tool");
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn program(&self, path: &str) {
        let path = self.at(path);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        mode(&path, 0o755);
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    /// Creates a search of these folders, of which relative ones are below the world's own.
    fn programs(&self, folders: &[&str]) -> Programs {
        let path: Vec<String> = folders
            .iter()
            .map(|folder| self.at(folder).display().to_string())
            .collect();
        let programs = Programs::on_path(Some(OsStr::new(&path.join(":"))));
        programs.keep_out_of(&self.at("work"));
        programs
    }

    /// Returns the path of `tool`, relative to the world's folder.
    fn finds(&self, folders: &[&str]) -> Result<String, String> {
        let found = self.programs(folders).find("tool");
        let found = found.map_err(|error| error.to_string())?;
        let below = found.path.strip_prefix(self.at("")).unwrap();
        Ok(below.display().to_string())
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_a_run_planted_is_passed_over() {
    let world = World::new();
    for planted in [
        "work/.venv/bin/tool",
        "work/node_modules/.bin/tool",
        "work/tool",
    ] {
        world.program(planted);
    }
    world.link("work", "project");
    world.link("work/.venv/bin", "active");
    world.link("project/node_modules/.bin", "twice");
    world.link("../work/tool", "bin/tool");
    for folders in [
        &["work/.venv/bin", "good"][..],
        &["work/node_modules/.bin", "good"],
        // By another name of the workspace or of the folder.
        &["project/.venv/bin", "good"],
        &["active", "good"],
        &["twice", "good"],
        &["good/../work/.venv/bin", "good"],
        &["work/.venv/bin/../../../project/.venv/./bin", "good"],
        // The folder is trusted, the file is a link into the workspace.
        &["bin", "good"],
        &["nowhere", "good"],
        &["good/tool", "good"],
    ] {
        assert_eq!(
            world.finds(folders).as_deref(),
            Ok("good/tool"),
            "{folders:?}"
        );
        let path = world.programs(folders).path();
        assert!(!path.contains("work") && !path.contains("active"), "{path}");
    }
    let refused = world.finds(&["active", "bin"]).unwrap_err();
    assert!(
        refused.starts_with("`tool` was not found; passed over: "),
        "{refused}"
    );
    assert!(refused.contains("work, which runs can write"), "{refused}");
    assert!(refused.contains("/bin/tool ("), "{refused}");
    // A workspace by another name is the same workspace.
    let programs = world.programs(&["work/.venv/bin"]);
    let other = Programs::on_path(Some(world.at("work/.venv/bin").as_os_str()));
    other.keep_out_of(&world.at("project"));
    assert!(programs.find("tool").is_err() && other.find("tool").is_err());
}

#[test]
fn entries_that_are_relative_or_empty_are_passed_over() {
    let world = World::new();
    world.program("work/tool");
    let good = world.at("good").display().to_string();
    for entry in ["", ".", "..", "./", "work", "node_modules/.bin", "~/bin"] {
        let programs = Programs::on_path(Some(OsStr::new(&format!("{entry}:{good}"))));
        assert!(programs.path().starts_with(&format!("{good}:/")), "{entry}");
        let found = programs.find("tool").unwrap();
        assert_eq!(found.path, world.at("good/tool"), "{entry}");
    }
    let bare = Programs::on_path(Some(OsStr::new(".:")));
    let refused = bare.find("tool").unwrap_err().to_string();
    assert!(refused.contains(". (a relative path)"), "{refused}");
    assert!(
        refused.contains("an entry (an empty entry means"),
        "{refused}"
    );
    let first = |path: &str| path.split(':').next().map(str::to_owned);
    assert!(first(&bare.path()).is_some_and(|first| STANDARD_PATH.contains(&first)));
    for unset in [None, Some(OsStr::new(""))] {
        let unset = Programs::on_path(unset);
        assert_eq!(unset.entries[1], Path::new("/usr/local/bin"));
        assert!(unset.find("sh").is_ok());
    }
}

#[test]
fn what_others_may_change_is_passed_over() {
    let world = World::new();
    world.program("bin/tool");
    fs::create_dir_all(world.at("open/inner")).unwrap();
    world.program("open/inner/tool");
    let finds = |folders: &[&str]| world.finds(folders);
    assert_eq!(finds(&["open/inner"]).as_deref(), Ok("open/inner/tool"));
    for (path, bits, why) in [
        ("open", 0o777, "may be changed by every user"),
        ("open/inner", 0o757, "may be changed by every user"),
        ("open/inner/tool", 0o757, "may be changed by every user"),
    ] {
        mode(&world.at(path), bits);
        let refused = finds(&["open/inner"]).unwrap_err();
        assert!(refused.contains(why), "{path}: {refused}");
        assert_eq!(finds(&["open/inner", "bin"]).as_deref(), Ok("bin/tool"));
        mode(&world.at(path), 0o755);
    }
    // In a sticky folder only owners replace files.
    mode(&world.at("open"), 0o1777);
    assert_eq!(finds(&["open/inner"]).as_deref(), Ok("open/inner/tool"));
    // Links are looked at where they stand, not only where they lead.
    mode(&world.at("open"), 0o755);
    fs::create_dir(world.at("shared")).unwrap();
    world.link("../good", "shared/link");
    mode(&world.at("shared"), 0o777);
    assert!(finds(&["shared/link"]).is_err());
    // Only root can change the owner of a file, and only to users that its namespace maps.
    if std::os::unix::fs::chown(world.at("bin/tool"), Some(65_534), None).is_ok() {
        let refused = finds(&["bin"]).unwrap_err();
        assert!(
            refused.contains("belongs to another user (65534)"),
            "{refused}"
        );
    }
}

#[test]
fn what_is_no_program_is_said_to_be_none() {
    let world = World::new();
    fs::write(world.at("bin/tool"), "text").unwrap();
    mode(&world.at("bin/tool"), 0o644);
    fs::create_dir(world.at("bin/folder")).unwrap();
    world.link("loop", "bin/loop");
    world.link("missing", "bin/gone");
    let programs = world.programs(&["bin", "good"]);
    assert_eq!(programs.find("tool").unwrap().path, world.at("good/tool"));
    let long = "x".repeat(100_000);
    for (name, words) in [
        ("", "it is empty"),
        ("a\0b", "NUL"),
        (long.as_str(), "longer than 4096 bytes"),
        ("./tool", "a relative path; give the bare name"),
        ("good/tool", "a relative path"),
        ("..", "a relative path"),
        ("folder", "`folder` was not found"),
        ("loop", "`loop` was not found"),
        ("gone", "`gone` was not found"),
        ("tool ", "was not found"),
        ("-tool", "was not found"),
    ] {
        let refused = programs.find(name).unwrap_err().to_string();
        assert!(refused.contains(words), "{name:?}: {refused}");
    }
    for (path, words) in [
        ("bin/tool", "not a file that can be executed"),
        ("bin/folder", "it is a folder"),
        ("bin/loop", "too many links"),
        ("bin/gone", "No such file"),
        ("good/tool/x", "Not a directory"),
        ("work", "which runs can write"),
        ("work/none", "which runs can write"),
    ] {
        let refused = programs.find(&world.at(path).display().to_string());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(words), "{path}: {refused}");
    }
}

#[test]
fn a_program_that_was_replaced_is_another_one() {
    let world = World::new();
    let programs = world.programs(&["good"]);
    let before = programs.find("tool").unwrap();
    assert_eq!(programs.check(&before.path).as_ref(), Ok(&before));
    // Once in place, with its time set back, and once by another file of the same name.
    let path = world.at("good/tool");
    let times = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "#!/bin/no\n").unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(times).unwrap();
    let changed = programs.check(&before.path).unwrap();
    assert_ne!(changed, before);
    world.program("good/new");
    fs::rename(world.at("good/new"), &path).unwrap();
    assert_ne!(
        programs.check(&before.path).unwrap().file.inode,
        changed.file.inode
    );
}

#[test]
fn other_workspaces_are_asked_for_only_where_it_matters() {
    let world = World::new();
    world.program("bin/tool");
    let asked = Arc::new(AtomicUsize::new(0));
    let programs = Programs::on_path(Some(world.at("bin").as_os_str()));
    let (count, bin) = (asked.clone(), world.at("bin"));
    programs.keep_out_of_all(move || {
        count.fetch_add(1, Ordering::Relaxed);
        vec![bin.clone()]
    });
    assert!(programs.check(Path::new("/bin/sh")).is_ok());
    assert!(programs.find("sh").is_ok());
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(programs.find("tool").is_err());
    assert!(programs.find("tool").is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn an_environment_without_what_loads_from_a_workspace() {
    let world = World::new();
    world.link("work", "project");
    let programs = world.programs(&["work/.venv/bin", "good"]);
    let at = |path: &str| world.at(path).display().to_string();
    let variables = [
        ("HOME", "/home/ada".to_owned(), true),
        ("SSH_AUTH_SOCK", "/run/agent".to_owned(), true),
        ("GH_TOKEN", "x".to_owned(), true),
        ("LANG", "C.UTF-8".to_owned(), true),
        ("EDITOR", "code --wait".to_owned(), true),
        (
            "GIT_SSH_COMMAND",
            "ssh -i /home/ada/.ssh/id".to_owned(),
            true,
        ),
        ("LD_LIBRARY_PATH", "/opt/lib:/usr/lib".to_owned(), true),
        ("GYRUS_MODEL", "x".to_owned(), false),
        ("NODE_OPTIONS", "-r dotenv".to_owned(), false),
        (
            "LD_LIBRARY_PATH_2",
            format!("/opt/lib:{}", at("work/lib")),
            false,
        ),
        ("LD_PRELOAD", "evil.so".to_owned(), false),
        ("PYTHONPATH", "/opt/lib:".to_owned(), false),
        ("KUBECONFIG", "kubeconfig".to_owned(), false),
        ("GIT_SSH", "./ssh".to_owned(), false),
        ("VIRTUAL_ENV", at("work/.venv"), false),
        ("PROJECT_LIB", at("project/lib/../lib"), false),
        (
            "SOME_OPTIONS",
            format!("--plugin={}", at("work/x.so")),
            false,
        ),
    ];
    let given = variables
        .iter()
        .map(|(name, value, _)| (OsString::from(name), OsString::from(value)));
    let environment = programs.environment(given);
    for (name, _, kept) in &variables {
        assert_eq!(environment.contains_key(*name), *kept, "{name}");
    }
    let path = &environment["PATH"];
    assert!(path.starts_with(&format!("{}:/", at("good"))), "{path}");
}
