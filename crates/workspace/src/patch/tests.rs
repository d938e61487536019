//! Real git takes the patches, forwards and backwards.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

use super::*;

fn git(folder: &Path, arguments: &[&str], input: &str) {
    let mut git = Command::new("git");
    git.args(["-c", "core.autocrlf=false"]).args(arguments);
    git.current_dir(folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut git = git.spawn().unwrap();
    git.stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let said = git.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{arguments:?}: {error}\n{input}");
}

fn put(folder: &Path, name: &str, side: Option<FileVersion<'_>>) {
    let path = folder.join(name);
    let _ = fs::remove_file(&path);
    let Some(FileVersion { mode, content }) = side else {
        return;
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if mode == 0o120_000 {
        symlink(std::str::from_utf8(content).unwrap(), &path).unwrap();
        return;
    }
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o777)).unwrap();
}

fn is(folder: &Path, name: &str, side: Option<FileVersion<'_>>) {
    let path = folder.join(name);
    let found = fs::symlink_metadata(&path).ok().map(|found| {
        if found.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            return (0o120_000, target.to_str().unwrap().as_bytes().to_vec());
        }
        let executes = found.permissions().mode() & 0o100 != 0;
        (gyrus_contract::git_mode(executes), fs::read(&path).unwrap())
    });
    let wanted = side.map(|side| (side.mode, side.content.to_vec()));
    assert!(found == wanted, "{name}: {found:?} is not {wanted:?}");
}

#[test]
fn git_applies_every_kind_of_change() {
    const FILE: u32 = 0o100_644;
    const PROGRAM: u32 = 0o100_755;
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000).collect();
    let other: Vec<u8> = bytes.iter().rev().copied().collect();
    let side = |mode, content| Some(FileVersion { mode, content });
    let text = |content: &'static str| side(FILE, content.as_bytes());
    let sides: Vec<(&str, Option<FileVersion<'_>>, Option<FileVersion<'_>>)> = vec![
        ("changed", text("a\nb\nc\n"), text("a\nB\nc\n")),
        ("no newline", text("a\nb"), text("a\nc")),
        ("gains a newline", text("a"), text("a\n")),
        ("carriage", text("a\r\nb\r\n"), text("a\r\nc\r\n")),
        ("new/deep/file", None, text("all\nof it")),
        ("empty", None, text("")),
        ("was empty", text(""), None),
        ("gone", text("a\n"), None),
        ("program", None, side(PROGRAM, b"#!/bin/sh\n")),
        ("becomes a program", text("a\n"), side(PROGRAM, b"a\n")),
        ("binary", side(FILE, &bytes), side(FILE, &other)),
        ("new binary", None, side(FILE, &bytes)),
        ("gone binary", side(FILE, &bytes), None),
        ("latin-1", side(FILE, b"caf\xe9\n"), side(FILE, b"th\xe9\n")),
        ("link", None, side(0o120_000, b"changed")),
        ("becomes a link", text("a\n"), side(0o120_000, b"gone")),
        ("qu\"ote\\日本", text("a\n"), text("b\n")),
    ];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    git(folder, &["init", "--quiet"], "");
    let mut patch = String::new();
    for (name, old, new) in &sides {
        put(folder, name, *old);
        patch += &of_file(name.as_bytes(), *old, *new);
    }
    put(folder, "renamed", text("the same\n"));
    patch += &of_renamed(b"renamed", b"has another name", FILE);
    git(folder, &["apply", "--check"], &patch);
    git(folder, &["apply"], &patch);
    sides
        .iter()
        .for_each(|(name, _, new)| is(folder, name, *new));
    is(folder, "has another name", text("the same\n"));
    git(folder, &["apply", "-R"], &patch);
    sides
        .iter()
        .for_each(|(name, old, _)| is(folder, name, *old));
}
