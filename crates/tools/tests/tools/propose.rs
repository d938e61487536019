//! Changesets from the proposal to the application.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use gyrus_contract::{ActionVerdict, BuiltIn, Digest, MADE_FOR, Probe, path_of_header};
use gyrus_tools::{ApplyChangeset, ProposeChangeset, Shell};
use serde_json::{Value, json};

use crate::site::World;

fn apply_tool() -> BuiltIn<ApplyChangeset> {
    BuiltIn::new(ApplyChangeset::new(Shell::with_variables(|_| None)))
}

fn propose(world: &World, changes: Value) -> Result<String, String> {
    let arguments = json!({"summary": "Why it is done.\n\nAnd more.", "changes": changes});
    let output = world.call(&BuiltIn::new(ProposeChangeset), arguments);
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    let text = world.redacted(&output);
    if output.is_error { Err(text) } else { Ok(text) }
}

/// Returns the changes of a diff in the form in which a loop applies them.
fn changes(diff: &str) -> Vec<Value> {
    let mut changes: Vec<Value> = Vec::new();
    let (mut in_hunk, mut before) = (false, None);
    for line in diff.split_inclusive('\n') {
        if let Some(digest) = line.strip_prefix(MADE_FOR) {
            before = Some(digest.trim_end());
        } else if line.starts_with("diff ") {
            let path = path_of_header(line.trim_end()).unwrap();
            changes.push(json!({"path": path, "diff": ""}));
            if let Some(before) = before.take() {
                changes.last_mut().unwrap()["before"] = json!(before);
            }
            in_hunk = false;
        } else if let Some(change) = changes.last_mut() {
            in_hunk |= line.starts_with("@@");
            in_hunk &= !line.starts_with('#') && line != "\n";
            if in_hunk {
                if let Some(diff) = change.get("diff") {
                    change["diff"] = json!(format!("{}{line}", diff.as_str().unwrap()));
                }
            } else if line.starts_with("deleted file mode") {
                change.as_object_mut().unwrap().remove("diff");
            } else if line.starts_with("new mode") || line.starts_with("new file mode 100755") {
                change["executable"] = json!(line.trim_end().ends_with("755"));
            }
        }
    }
    changes
}

/// Returns a world with everything that can be proposed.
fn world() -> World {
    let world = World::new();
    let write = |name: &str, content: &[u8]| fs::write(world.path(name), content).unwrap();
    fs::create_dir(world.path("old")).unwrap();
    write("lines", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
    write("dos.txt", b"one\r\ntwo\r\nthree");
    write("run.sh", b"#!/bin/sh\n");
    write("plain.sh", b"#!/bin/sh\n");
    write("picture", &[0, 159, 146, 150, 255]);
    write("program", &[0x7f, b'E', b'L', b'F', 0xff]);
    write("old/a", b"the old a\n");
    write("config", b"a = 1\nkey = hunter2\nb = 2\nc = 3\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(world.path("run.sh"), executable).unwrap();
    world
}

fn everything() -> Value {
    json!([
        {"path": "lines", "reason": "two of them", "edits": [
            {"old": "2\n3\n", "new": "2\nnew\n3\n"}, {"old": "11\n", "new": ""}]},
        {"path": "dos.txt", "reason": "line ends stay", "edits": [{"old": "one\ntwo", "new": "1\n2"}]},
        {"path": "run.sh", "reason": "another\nshell", "content": "#!/bin/bash\n"},
        {"path": "plain.sh", "reason": "it is started", "executable": true},
        {"path": "picture", "reason": "", "delete": true},
        {"path": "program", "reason": "not text", "executable": true},
        {"path": "old/a", "reason": "moved", "delete": true},
        {"path": "new/deep a", "reason": "moved", "content": "the old a", "executable": true},
        {"path": "empty", "reason": "a mark", "content": "", "edits": null, "delete": null},
        {"path": "config", "reason": "more", "edits": [{"old": "a = 1", "new": "a = 2"}]}
    ])
}

#[test]
fn the_diff_is_what_a_person_reads() {
    let world = world();
    let before = world.names();
    let diff = propose(&world, everything()).unwrap();
    insta::assert_snapshot!(diff.replace('\r', "␍"), @r"
    # Why it is done.
    # 
    # And more.

    # two of them
    # made for 8f0d341ef861afb61b4adac34a5faed4
    diff --git a/lines b/lines
    --- a/lines
    +++ b/lines
    @@ -1,5 +1,6 @@
     1
     2
    +new
     3
     4
     5
    @@ -8,5 +9,4 @@
     8
     9
     10
    -11
     12

    # line ends stay
    # made for ae43f8212c906ca748926169ddb863bc
    diff --git a/dos.txt b/dos.txt
    --- a/dos.txt
    +++ b/dos.txt
    @@ -1,3 +1,3 @@
    -one␍
    -two␍
    +1␍
    +2␍
     three
    \ No newline at end of file

    # another
    # shell
    # made for bc1f407a11c9377c8b9b13f956b279c8
    diff --git a/run.sh b/run.sh
    --- a/run.sh
    +++ b/run.sh
    @@ -1,1 +1,1 @@
    -#!/bin/sh
    +#!/bin/bash

    # it is started
    # made for bc1f407a11c9377c8b9b13f956b279c8
    diff --git a/plain.sh b/plain.sh
    old mode 100644
    new mode 100755

    # made for d772fdc2de1483b57f1ce63a85e26bbb
    diff --git a/picture b/picture
    deleted file mode 100644
    index 365006928ede9c4036366661c73eaa0176cf9454..0000000000000000000000000000000000000000
    GIT binary patch
    literal 0
    HcmV?d00001


    # not text
    # made for 3df463629d49bc902472d3cb7906fe32
    diff --git a/program b/program
    old mode 100644
    new mode 100755

    # moved
    # made for def009eead394f409a1cca1ca41c2002
    diff --git a/old/a b/old/a
    deleted file mode 100644
    --- a/old/a
    +++ /dev/null
    @@ -1,1 +0,0 @@
    -the old a

    # moved
    diff --git a/new/deep a b/new/deep a
    new file mode 100755
    --- /dev/null
    +++ b/new/deep a	
    @@ -0,0 +1,1 @@
    +the old a
    \ No newline at end of file

    # a mark
    diff --git a/empty b/empty
    new file mode 100644

    # more
    # made for 8581a952ae33928ba632a9c59c200b54
    diff --git a/config b/config
    --- a/config
    +++ b/config
    @@ -1,4 +1,4 @@
    -a = 1
    +a = 2
     key = ⟦secret:KEY⟧
     b = 2
     c = 3
    ");
    assert_eq!(world.names(), before);
}

#[test]
fn what_was_approved_is_what_is_applied() {
    let world = world();
    let approved = changes(&propose(&world, everything()).unwrap());
    // Reading it again says the same.
    let again = approved.iter().map(|change| {
        let mut change = change.clone();
        change["reason"] = json!("");
        if change.get("diff").is_none() {
            change["delete"] = json!(true);
        }
        change
    });
    let again = changes(&propose(&world, json!(again.collect::<Vec<_>>())).unwrap());
    assert_eq!(again, approved);

    let call = json!({"changes": approved});
    let resolved = world.resolved(&apply_tool(), call.clone());
    assert_eq!(world.probe(&apply_tool(), &resolved), Probe::DidNotHappen);
    let output = world.call(&apply_tool(), call.clone());
    assert_eq!(output.text, "applied: 2 created, 6 replaced, 2 deleted");
    let read = |name: &str| fs::read_to_string(world.path(name)).unwrap();
    let mode = |name: &str| fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o111;
    assert_eq!(read("lines"), "1\n2\nnew\n3\n4\n5\n6\n7\n8\n9\n10\n12\n");
    assert_eq!(read("dos.txt"), "1\r\n2\r\nthree");
    assert_eq!(read("run.sh"), "#!/bin/bash\n");
    assert_eq!(read("new/deep a"), "the old a");
    assert_eq!(read("empty"), "");
    assert_eq!(read("config"), "a = 2\nkey = hunter2\nb = 2\nc = 3\n");
    assert_eq!((mode("run.sh"), mode("plain.sh")), (0o111, 0o111));
    assert_eq!(mode("program"), 0o111);
    assert!(mode("new/deep a") != 0 && !world.path("old").exists());

    // The same call again finds it done, though no diff fits any more.
    let resolved = world.resolved(&apply_tool(), call.clone());
    assert!(matches!(
        world.probe(&apply_tool(), &resolved),
        Probe::Happened(_)
    ));
    let again = world.call(&apply_tool(), call);
    assert_eq!(again.verdict, ActionVerdict::NoEffect, "{}", again.text);
}

#[test]
fn a_hunk_that_a_person_left_out_is_not_applied() {
    let world = world();
    let mut approved = changes(&propose(&world, everything()).unwrap());
    approved.truncate(1);
    let diff = approved[0]["diff"].as_str().unwrap().to_owned();
    let second = diff[1..].find("@@ -").unwrap() + 1;
    approved[0]["diff"] = json!(diff[second..]);
    assert!(
        !world
            .call(&apply_tool(), json!({"changes": approved}))
            .is_error
    );
    let lines = fs::read_to_string(world.path("lines")).unwrap();
    assert_eq!(lines, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12\n");
}

#[test]
fn a_diff_for_another_file_is_a_conflict() {
    let world = world();
    let approved = changes(&propose(&world, everything()).unwrap());
    fs::write(world.path("lines"), "1\n2\n3\n").unwrap();
    fs::write(world.path("new"), "a file").unwrap();
    fs::write(world.path("empty"), "taken").unwrap();
    fs::remove_file(world.path("dos.txt")).unwrap();
    fs::remove_file(world.path("config")).unwrap();
    symlink("run.sh", world.path("config")).unwrap();
    let before = world.names();
    // The path as the gate resolved it before the link existed.
    let mut call = world.resolved(&apply_tool(), json!({"changes": approved}));
    call.paths.get_mut("changes/9").unwrap().in_workspace = Some("config".into());
    let output = world.call_resolved(&apply_tool(), call);
    assert_eq!(
        output.text,
        "nothing was changed, because files are not as the changeset expects: `lines` was changed \
         meanwhile; `dos.txt` was deleted meanwhile; `new/deep a` would lie below a file; `empty` \
         exists already; `config` is a symbolic link by now"
    );
    assert_eq!(world.names(), before);

    let wrong = json!([{"path": "run.sh", "before": Digest::of(b"#!/bin/sh\n").to_string(),
        "diff": "@@ -1,1 +1,1 @@\n-#!/bin/bash\n"}]);
    let output = world.call(&apply_tool(), json!({"changes": wrong}));
    assert_eq!(
        output.text,
        "`run.sh` does not fit its diff: line 1 of the file is not what the hunk \
         `@@ -1,1 +1,1 @@` says; nothing was changed"
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let world = world();
    symlink("lines", world.path("link")).unwrap();
    fs::write(world.path("locked"), "x").unwrap();
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::hard_link(world.path("dos.txt"), world.path("twin")).unwrap();
    fs::File::create(world.path("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let proposed = json!([
        {"path": "../out", "reason": "", "content": "x"},
        {"path": "lines", "reason": "", "edits": [{"old": "1\n", "new": "x"}]},
        {"path": "link", "reason": "", "content": "x"},
        {"path": "locked", "reason": "", "content": "y"},
        {"path": "twin", "reason": "", "content": "y"},
        {"path": "huge", "reason": "", "delete": true},
        {"path": "picture", "reason": "", "content": "y"},
        {"path": "old", "reason": "", "delete": true},
        {"path": "none", "reason": "", "delete": true},
        {"path": "none2", "reason": "", "edits": [{"old": "a", "new": "b"}]},
        {"path": "config", "reason": "", "edits": [{"old": "a = 1", "new": "b"}, {"old": "a = 1", "new": "c"}]},
        {"path": "run.sh/x", "reason": "", "content": "y"},
        {"path": "new", "reason": "", "content": "y"},
        {"path": "new/y", "reason": "", "content": "y"},
        {"path": "plain.sh", "reason": "", "content": "y", "delete": true},
        {"path": "odd\nname", "reason": "", "content": "y"},
        {"path": "secret", "reason": "", "content": "⟦secret:OTHER⟧"},
        {"path": ".gyrus-changeset/intent", "reason": "", "content": "y"}
    ]);
    insta::assert_snapshot!(propose(&world, proposed).unwrap_err(), @r#"
    the proposal cannot be made: `../out` is outside the workspace
    `link` is named twice
    `plain.sh` needs exactly one of `content`, `edits` and `delete`: true
    "odd\nname" has a control character in its name
    `secret` needs a secret, but the secret `OTHER` is not known to this process
    `.gyrus-changeset/intent` lies where changesets are made ready
    `lines` cannot be edited (edit 1): the old text occurs 2 times in `lines`, in lines 1, 11; nothing was changed. Quote more lines around the one that is meant
    `locked` is protected against writing
    `twin` has hard links, so that changing it could change a file elsewhere
    `huge` is larger than 256 MB, too large for a changeset
    `picture` is not UTF-8 text, so it can only be deleted
    `old` is a folder; name the files in it
    `none` is not there
    `none2` is not there; give its whole `content`
    `config` cannot be edited (edit 2): the old text does not occur in `config`; nothing was changed. Nothing in it is like it: `read` the file, or `search` for where it is
    `run.sh/x` would lie below a file
    `new/y` would lie below the file `new`
    "#);
    for (changes, words) in [
        (json!([]), "a changeset has 1 to 20000 files, not 0"),
        (
            json!([{"path": "run.sh", "reason": "", "content": "#!/bin/sh\n", "executable": true}]),
            "the proposal changes nothing",
        ),
        (
            json!([{"path": "new", "reason": ""}]),
            "needs exactly one of",
        ),
        (
            json!([{"path": "new", "content": ""}]),
            "missing argument `reason`",
        ),
        (
            json!([{"path": "lines", "reason": "", "content": "x", "before": Digest::of(b"").to_string()}]),
            "`lines` was changed meanwhile",
        ),
        (
            json!([{"path": "lines", "reason": "", "diff": "@@ -1,1 +1,1 @@\n-one\n+1\n"}]),
            "`lines` does not fit its diff: line 1 of the file",
        ),
        (
            json!([{"path": "new", "reason": "", "content": "x\n".repeat(1_000_000)}]),
            "propose less at once",
        ),
    ] {
        let error = propose(&world, changes).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

/// A secret in a file never shows, and is there again when the diff is applied.
#[test]
fn secrets_stay_in_their_places() {
    let world = world();
    let edits = json!([{"path": "config", "reason": "", "edits": [
        {"old": "key = ⟦secret:KEY⟧\n", "new": "key = ⟦secret:KEY⟧ # ours\n"},
        {"old": "c = 3", "new": "c = ⟦secret:KEY⟧"}]}]);
    let diff = propose(&world, edits).unwrap();
    assert!(
        !diff.contains("hunter2") && diff.contains("-key = ⟦secret:KEY⟧\n"),
        "{diff}"
    );
    let output = world.call(&apply_tool(), json!({"changes": changes(&diff)}));
    assert!(!output.is_error, "{}", output.text);
    let config = fs::read_to_string(world.path("config")).unwrap();
    assert_eq!(config, "a = 1\nkey = hunter2 # ours\nb = 2\nc = hunter2\n");
}

/// A model that only has a secret's marker cannot learn the secret by proposing it.
#[test]
fn a_proposal_shows_no_secret() {
    let world = world();
    let edits = json!([{"path": "lines", "reason": "", "edits": [
        {"old": "3\n", "new": "say ⟦secret:FOUND⟧\n"}]},
        {"path": "new", "reason": "", "content": "⟦secret:FOUND⟧⟦secret:KEY⟧\n⟦secret:FOUND⟧"}]);
    let diff = propose(&world, edits).unwrap();
    assert!(diff.contains("+say ⟦secret:FOUND⟧\n"), "{diff}");
    assert!(!diff.contains("s3sam"), "{diff}");
    let output = world.call(&apply_tool(), json!({"changes": changes(&diff)}));
    assert!(!output.is_error, "{}", output.text);
    let new = fs::read_to_string(world.path("new")).unwrap();
    assert_eq!(new, "s3samhunter2\ns3sam");

    let wrong = json!([
        {"path": "lines", "reason": "", "edits": [{"old": "⟦secret:FOUND⟧ x", "new": ""}]},
        {"path": "run.sh", "reason": "", "diff": "@@ -1,1 +1,1 @@\n-⟦secret:FOUND⟧\n"},
        {"path": "plain.sh", "reason": "", "diff": "⟦secret:FOUND⟧\n"},
        {"path": "config", "reason": "", "content": "⟦secret:LINES⟧"},
        {"path": "dos.txt", "reason": "", "diff": "@@ -1,1 +1,1 @@\n+⟦secret:LINES⟧"}
    ]);
    let error = propose(&world, wrong).unwrap_err();
    let lines = "has ⟦secret:LINES⟧ in it, a secret of several lines, which a diff would show";
    assert_eq!(error.matches(lines).count(), 2, "{error}");
    assert!(
        !error.contains("s3sam") && !error.contains("two"),
        "{error}"
    );
}

#[test]
fn ten_thousand_files() {
    const FILES: usize = 10_000;
    let world = World::new();
    for number in 0..FILES {
        let folder = world.path(&format!("d{}", number % 100));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(number.to_string()), format!("{number}\n")).unwrap();
    }
    let proposed = (0..FILES).map(|number| {
        let path = format!("d{}/{number}", number % 100);
        match number % 10 {
            0 => json!({"path": format!("new/{number}"), "reason": "new", "content": "new\n"}),
            1 => json!({"path": path, "reason": "other", "content": "other\n"}),
            _ => json!({"path": path, "reason": "unused", "delete": true}),
        }
    });
    let started = std::time::Instant::now();
    let diff = propose(&world, proposed.collect()).unwrap();
    let (proposed, size) = (started.elapsed(), diff.len());
    let call = json!({"changes": changes(&diff)});
    let started = std::time::Instant::now();
    let output = world.call(&apply_tool(), call);
    let applied = started.elapsed();
    assert_eq!(
        output.text,
        "applied: 1000 created, 1000 replaced, 8000 deleted"
    );
    // For a person who runs the test with its output shown; times are not asserted.
    println!("{size} bytes: proposed in {proposed:?}, applied in {applied:?}");
}
