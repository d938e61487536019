//! A yes to a call binds what the files hold that the call names: if they change between card and
//! start, the person is asked again and sees the difference.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use gyrus_kernel::Entry;
use serde_json::json;

use crate::{
    rights::{as_user, executable, gyrus, install, script, seen, world},
    support::World,
};

type Change = fn(&World, &Path);

/// Arguments of `recorder`, the file that they name, and what happens to it while the card waits.
const CHANGES: [(&str, &[&str], &str, Change); 13] = [
    ("rewritten", &["deploy.sh"], "deploy.sh", |_, file| {
        fs::write(file, "echo theirs\n").unwrap();
    }),
    (
        "a path through folders",
        &["./a/../deploy.sh"],
        "deploy.sh",
        |_, file| fs::write(file, "echo theirs\n").unwrap(),
    ),
    (
        "an option",
        &["--file=deploy.sh"],
        "deploy.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
    (
        "a glued option",
        &["-fdeploy.sh"],
        "deploy.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
    (
        "data of a request",
        &["-d", "@deploy.sh"],
        "deploy.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
    ("gone", &["deploy.sh"], "deploy.sh", |_, file| {
        fs::remove_file(file).unwrap();
    }),
    ("a mode", &["deploy.sh"], "deploy.sh", |_, file| {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }),
    (
        "another in its place",
        &["deploy.sh"],
        "deploy.sh",
        |world, file| {
            let other = world.work().join("other.sh");
            fs::write(&other, "echo theirs\n").unwrap();
            fs::remove_file(file).unwrap();
            symlink(other, file).unwrap();
        },
    ),
    (
        "where a link leads",
        &["link.sh"],
        "deploy.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
    ("a file that did not exist", &["late"], "late", |_, file| {
        fs::write(file, "echo theirs\n").unwrap();
    }),
    (
        "a text that names it",
        &["-c", "sh deploy.sh; true"],
        "deploy.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
    (
        "a file of another folder",
        &["-C", "a", "inner.sh"],
        "a/inner.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
    (
        "a file elsewhere",
        &["../elsewhere.sh"],
        "../elsewhere.sh",
        |_, file| {
            fs::write(file, "echo theirs\n").unwrap();
        },
    ),
];

fn prepare(world: &World) {
    let work = world.work();
    fs::create_dir(work.join("a")).unwrap();
    fs::write(work.join("deploy.sh"), "echo mine\n").unwrap();
    fs::write(work.join("a/inner.sh"), "echo mine\n").unwrap();
    fs::write(work.join("../elsewhere.sh"), "echo mine\n").unwrap();
    symlink("deploy.sh", work.join("link.sh")).unwrap();
}

fn asked(world: &World) -> usize {
    let entries = world.entries();
    let asked = entries
        .iter()
        .filter(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    asked.count()
}

#[test]
fn what_changed_after_the_card_is_asked_about_again() {
    for (case, arguments, file, change) in CHANGES {
        let world = world(&[as_user("recorder", arguments)]);
        prepare(&world);
        gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
        change(&world, &world.work().join(file));
        gyrus(&world, &["approve", "last"]).exits(0);
        let said = gyrus(&world, &["resume", "last", "--on-ask", "park"]);
        assert_eq!(said.code, Some(5), "{case}: {}", said.err);
        assert_eq!(seen(&world), "", "{case}");
        assert!(
            said.err.contains("when you were asked before"),
            "{case}: {}",
            said.err
        );
        if case == "rewritten" {
            for words in ["-echo mine", "+echo theirs"] {
                assert!(said.err.contains(words), "{words}: {}", said.err);
            }
        }
        // The second yes is to what is there now.
        gyrus(&world, &["approve", "last"]).exits(0);
        gyrus(&world, &["resume", "last", "--on-ask", "park"]).exits(0);
        assert_ne!(seen(&world), "", "{case}");
        assert_eq!(asked(&world), 2, "{case}");
        gyrus(&world, &["replay", "last"]).exits(0);
    }
}

#[test]
fn what_holds_the_same_is_not_asked_about_again() {
    let world = world(&[as_user("recorder", &["deploy.sh", "--file=late", "main"])]);
    prepare(&world);
    let said = gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
    assert!(said.err.contains("file deploy.sh: "), "{}", said.err);
    // Written again, by whatever name, it is the same.
    fs::remove_file(world.work().join("deploy.sh")).unwrap();
    fs::write(world.work().join("deploy.sh"), "echo mine\n").unwrap();
    fs::write(world.work().join("unrelated"), "x").unwrap();
    gyrus(&world, &["approve", "last"]).exits(0);
    gyrus(&world, &["resume", "last", "--on-ask", "park"]).exits(0);
    assert_ne!(seen(&world), "");
    assert_eq!(asked(&world), 1);
}

#[test]
fn a_program_that_another_starts_is_bound_too() {
    let world = World::new(&script(&[as_user("env", &["deploy"])]));
    prepare(&world);
    install(&world, "deploy");
    gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
    let mark = world.path("person/evil");
    executable(
        &world.path("person/bin/deploy"),
        &format!("#!/bin/sh\ntouch {}\n", mark.display()),
    );
    gyrus(&world, &["approve", "last"]).exits(0);
    gyrus(&world, &["resume", "last", "--on-ask", "park"]).exits(5);
    assert!(!mark.exists());
    assert_eq!(asked(&world), 2);
}

#[test]
fn an_unsandboxed_line_is_bound_too() {
    for line in [
        "sh deploy.sh",
        "sh ./link.sh && true",
        "bash -c 'sh deploy.sh'",
    ] {
        let call = json!({"tool": "shell", "arguments": {"command": line}});
        let world = World::new(&script(&[call]));
        prepare(&world);
        let arguments = ["run", "go", "--on-ask", "park", "--sandbox", "off"];
        world.gyrus(&arguments).exits(5);
        fs::write(world.work().join("deploy.sh"), "touch evil\n").unwrap();
        world.gyrus(&["approve", "last"]).exits(0);
        let said = world.gyrus(&["resume", "last", "--on-ask", "park", "--sandbox", "off"]);
        assert_eq!(said.code, Some(5), "{line}: {}", said.err);
        assert!(!world.work().join("evil").exists(), "{line}");
        assert_eq!(asked(&world), 2, "{line}");
    }
}
