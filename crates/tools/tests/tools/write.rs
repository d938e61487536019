//! Tests of `write`.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use gyrus_contract::{ActionVerdict, Artifact, BuiltIn, Digest, Probe, ToolOutput};
use gyrus_tools::Write;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::site::World;

fn write(world: &World, path: &str, content: &str) -> ToolOutput {
    world.call(
        &BuiltIn::new(Write),
        json!({"path": path, "content": content}),
    )
}

#[track_caller]
fn refused(world: &World, path: &str, words: &str) {
    let before = world.names();
    let output = write(world, path, "content");
    assert!(
        output.is_error && output.text.contains(words),
        "{}",
        output.text
    );
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    assert_eq!(world.names(), before, "something was left behind");
}

#[test]
fn creates_overwrites_and_leaves_alone() {
    let world = World::new();
    let output = write(&world, "a/b/c.txt", "one\ntwo\n");
    assert_eq!(output.text, "created `a/b/c.txt` (8 bytes, 2 lines)");
    assert_eq!(output.verdict, ActionVerdict::Changed);
    let digest = Digest::of(b"one\ntwo\n");
    assert_eq!(
        output.artifacts,
        [Artifact {
            path: "a/b/c.txt".to_owned(),
            digest
        }]
    );
    assert_eq!(fs::read(world.path("a/b/c.txt")).unwrap(), b"one\ntwo\n");

    let file = world.path("a/b/c.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    let inode = fs::metadata(&file).unwrap().ino();
    let output = write(&world, "a/b/c.txt", "one\ntwo\n");
    assert!(
        output.text.starts_with("unchanged: `a/b/c.txt`"),
        "{}",
        output.text
    );
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "it was replaced");

    let output = write(&world, "a/b/c.txt", "ONE\ntwo\n");
    assert_eq!(output.text, "overwrote `a/b/c.txt` (8 bytes, 2 lines)");
    assert_eq!(fs::read(&file).unwrap(), b"ONE\ntwo\n");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(
        fs::read_dir(world.path("a/b")).unwrap().count(),
        1,
        "a temporary file is left"
    );

    assert_eq!(
        write(&world, "empty", "").text,
        "created `empty` (0 bytes, 0 lines)"
    );
    let outside = world.outside("o.txt");
    let output = write(&world, "../o.txt", "x");
    assert_eq!(
        (output.artifacts.len(), fs::read(outside).unwrap()),
        (0, b"x".to_vec())
    );
}

#[test]
fn does_not_replace_what_was_not_read() {
    let mut world = World::new();
    world.knows_nothing = true;
    let content = "limit = 10\n".repeat(7);
    fs::write(world.path("a.toml"), &content).unwrap();
    let output = write(&world, "a.toml", "limit = 20\n");
    assert!(output.is_error);
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    let starts = "`a.toml` exists (77 bytes, 7 lines) and this run has not read it, so nothing was \
                  written. To change a part of it use `edit`; `write` it once more to replace all \
                  of it. It begins:\n     1\tlimit = 10\n";
    assert!(output.text.starts_with(starts), "{}", output.text);
    assert_eq!(output.text.lines().count(), 6);
    assert_eq!(fs::read_to_string(world.path("a.toml")).unwrap(), content);

    // Nothing is lost by these.
    assert!(
        write(&world, "a.toml", &content)
            .text
            .starts_with("unchanged")
    );
    assert!(!write(&world, "new", "x").is_error);
    fs::write(world.path("empty"), "").unwrap();
    assert!(!write(&world, "empty", "x").is_error);

    fs::write(world.outside("o.txt"), "not to be shown").unwrap();
    let output = write(&world, "../o.txt", "x");
    assert!(
        output.is_error && !output.text.contains("shown"),
        "{}",
        output.text
    );
    fs::write(world.path("data"), b"\xff\xfe").unwrap();
    let output = write(&world, "data", "x");
    assert!(output.text.contains("(2 bytes) and"), "{}", output.text);

    world.knows_nothing = false;
    assert_eq!(
        write(&world, "a.toml", "x").text,
        "overwrote `a.toml` (1 byte, 1 line)"
    );
}

#[test]
fn odd_names_and_contents() {
    let world = World::new();
    let longest = "n".repeat(255);
    for name in [
        "-rf",
        "new\nline",
        " ",
        longest.as_str(),
        "caf\u{e9}",
        "cafe\u{301}",
    ] {
        assert!(!write(&world, name, name).is_error, "{name:?}");
    }
    for name in [
        "-rf",
        "new\nline",
        " ",
        longest.as_str(),
        "caf\u{e9}",
        "cafe\u{301}",
    ] {
        assert_eq!(fs::read(world.path(name)).unwrap(), name.as_bytes());
    }
    refused(&world, &"n".repeat(256), "at most 255 bytes");
    refused(
        &world,
        &format!("new/folder/{}", "n".repeat(256)),
        "at most 255 bytes",
    );
    refused(
        &world,
        &format!("{}/x", "n".repeat(256)),
        "at most 255 bytes",
    );
    refused(&world, "a\0b", "Invalid argument");
    refused(&world, "-rf/below", "Not a directory");
    refused(&world, "../no/such/folder", "outside the workspace");
    let content = "\0\u{feff}\r\n\u{1f980}".repeat(100_000);
    assert!(!write(&world, "odd", &content).is_error);
    assert_eq!(fs::read_to_string(world.path("odd")).unwrap(), content);
}

#[test]
fn replaces_files_only() {
    let world = World::new();
    fs::create_dir(world.path("folder")).unwrap();
    refused(&world, "folder", "`folder` is a folder; name a file in it");
    refused(&world, ".", "is the top folder");
    mknodat(
        CWD,
        world.path("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    refused(&world, "pipe", "is a named pipe");
    refused(&world, "/dev/null", "is a device");
    assert!(fs::metadata("/dev/null").unwrap().mode() & 0o777 == 0o666);
    if !rustix::process::geteuid().is_root() {
        fs::write(world.path("locked"), "kept").unwrap();
        fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o444)).unwrap();
        refused(&world, "locked", "Permission denied");
    }
}

#[test]
fn secrets_become_real_in_the_file_only() {
    let world = World::new();
    let output = write(&world, "env", "KEY=⟦secret:KEY⟧\n");
    assert_eq!(fs::read(world.path("env")).unwrap(), b"KEY=hunter2\n");
    assert!(!output.text.contains("hunter2"));
    let output = write(&world, "new/env", "KEY=⟦secret:OTHER⟧\n");
    assert!(
        output.is_error && output.text.contains("`OTHER` is not known"),
        "{}",
        output.text
    );
    assert_eq!(world.names(), ["env"]);
}

#[test]
fn wrong_arguments_do_nothing() {
    let world = World::new();
    for arguments in [
        json!({"path": "a"}),
        json!({"path": "a", "content": 1}),
        json!({"path": "a", "content": "x", "mode": "append"}),
        json!(r#"{"path": "a", "content": "#),
    ] {
        let output = world.call(&BuiltIn::new(Write), arguments);
        assert!(output.is_error && output.text.contains("Expected an object like"));
    }
    assert_eq!(world.names(), Vec::<String>::new());
}

#[test]
fn tells_whether_a_lost_call_happened() {
    let world = World::new();
    let tool = BuiltIn::new(Write);
    let probe = |arguments: Value| world.probe(&tool, &world.resolved(&tool, arguments));
    let ours = || json!({"path": "f", "content": "⟦secret:KEY⟧"});
    assert_eq!(probe(ours()), Probe::DidNotHappen, "there is no file");
    fs::write(world.path("f"), "before!").unwrap();
    assert_eq!(probe(ours()), Probe::DidNotHappen, "as long, but different");
    fs::write(world.path("f"), "hunter2").unwrap();
    match probe(ours()) {
        Probe::Happened(output) => {
            assert_eq!(output.text, "wrote `f` (7 bytes, 1 line)");
            assert_eq!(output.verdict, ActionVerdict::Changed);
            assert_eq!(output.artifacts.len(), 1);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        probe(json!({"path": "f", "content": "⟦secret:OTHER⟧"})),
        Probe::Unknown
    );
    fs::create_dir(world.path("d")).unwrap();
    assert_eq!(
        probe(json!({"path": "d", "content": ""})),
        Probe::DidNotHappen
    );
    assert_eq!(
        fs::read(world.path("f")).unwrap(),
        b"hunter2",
        "a probe changes nothing"
    );
}

#[test]
fn never_leaves_by_a_link() {
    let world = World::new();
    let tool = BuiltIn::new(Write);
    fs::create_dir(world.outside("out")).unwrap();
    fs::create_dir(world.path("d")).unwrap();
    symlink(world.outside("out"), world.path("link")).unwrap();
    let judged = world.resolved(&tool, json!({"path": "d/file", "content": "x"}));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (d, link) = (world.path("d"), world.path("link"));
            while !done.load(Ordering::Relaxed) {
                use rustix::fs::{RenameFlags, renameat_with};
                renameat_with(CWD, &d, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..500 {
            world.call_resolved(&tool, judged.clone());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        fs::read_dir(world.outside("out")).unwrap().count(),
        0,
        "it was written outside"
    );

    // The file itself is a link by now.
    let judged = world.resolved(&tool, json!({"path": "file", "content": "x"}));
    fs::write(world.outside("target"), "kept").unwrap();
    symlink(world.outside("target"), world.path("file")).unwrap();
    let output = world.call_resolved(&tool, judged);
    assert!(
        output.is_error && output.text.contains("symbolic link"),
        "{}",
        output.text
    );
    assert_eq!(fs::read(world.outside("target")).unwrap(), b"kept");
}

#[test]
fn readers_see_the_old_content_or_the_new() {
    let world = World::new();
    let contents = ["a".repeat(100_000), "b".repeat(200_000)];
    write(&world, "f", &contents[0]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let seen = fs::read_to_string(world.path("f")).unwrap();
                assert!(contents.contains(&seen), "{} bytes", seen.len());
            }
        });
        for round in 0..100 {
            write(&world, "f", &contents[round % 2]);
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn a_full_disk_changes_nothing() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            unmount(&self.0, UnmountFlags::DETACH).unwrap();
        }
    }
    let world = World::new();
    let folder = world.path("small");
    fs::create_dir(&folder).unwrap();
    if let Err(error) = mount(
        "tmpfs",
        &folder,
        "tmpfs",
        MountFlags::empty(),
        Some(c"size=64k"),
    ) {
        println!("skipped: no file system can be mounted here: {error}");
        return;
    }
    let _mounted = Mounted(folder.clone());
    assert!(!write(&world, "small/f", "kept").is_error);
    let output = write(&world, "small/f", &"x".repeat(1_000_000));
    assert!(
        output.is_error && output.text.contains("No space left"),
        "{}",
        output.text
    );
    assert!(output.text.contains("make room first"), "{}", output.text);
    let output = write(&world, "small/new/g", &"x".repeat(1_000_000));
    assert!(output.is_error);
    assert_eq!(fs::read(folder.join("f")).unwrap(), b"kept");
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        1,
        "something was left behind"
    );
}
