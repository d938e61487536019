//! A person's word on the files that a changeset is planned with, and on the changeset.

use std::fs;

use serde_json::json;

use crate::{
    changing::{
        PARKED, SHAPES, approve_as, asked, by_file, edit, events, path_of, propose, renames,
        resume, run, shape, tree, world,
    },
    journal::facts,
};

#[test]
fn the_cards_show_what_is_read_and_what_is_changed() {
    let changes = [
        edit("src/lib.rs", "struct Point", "struct Vertex"),
        json!({"path": "notes/lunch.txt", "reason": "nobody reads it", "delete": true}),
        json!({"path": "NEWS.md", "reason": "people ask", "content": "Vertex\n"}),
    ];
    let world = world(&[propose(&changes, "")]);
    let said = run(&world, &PARKED).exits(5).err;
    let has = |said: &str, words: &str| assert!(said.contains(words), "`{words}`: {said}");
    has(&said, "The agent wants to plan a changeset with ");
    has(&said, "┃ AGENTS.md: 44 bytes, about 11 tokens, guideline");
    has(&said, "as it was found (unverified):");
    assert!(
        asked(&world).starts_with("AGENTS.md  # 44 bytes"),
        "{}",
        asked(&world)
    );
    world.gyrus(&["approve", "last"]).exits(0);
    let said = resume(&world).exits(5).err;
    has(&said, "The agent wants to change 3 files: 1 new, 1 deleted");
    has(&said, "as written by the model (unverified):");
    has(&said, "┃ -pub struct Point {\n");
    has(&said, "┃ +pub struct Vertex {\n");
    has(&said, "┃ # nobody reads it\n");
    has(&said, "┃ deleted file mode 100644\n");
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    has(&listed, "┃ +pub struct Vertex {\n");
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world).exits(0);
    assert_eq!(
        events(&world),
        [
            "start",
            "context:ready",
            "user:approve:context (tester)",
            "proposal:ready",
            "user:approve:proposal (tester)",
            "applied"
        ]
    );
    assert_eq!(world.file("NEWS.md"), "Vertex\n");
    assert!(!world.work().join("notes").exists());
    world.replays();
}

#[test]
fn a_person_takes_files_and_hunks_out_of_the_changeset() {
    let world = world(&[propose(&renames(&[]), "")]);
    run(&world, &[&PARKED[..], &["--review", "proposal"]].concat()).exits(5);
    let before = tree(&world.work());
    let whole = asked(&world);
    let files = by_file(&whole);
    assert_eq!(files.len(), 1 + SHAPES);
    // One file goes, of another its second hunk, and in a third lines are changed.
    let left = whole.replace(files[3].trim_end_matches('\n'), "");
    let (first_hunk, _) = files[5].rsplit_once("@@ -").unwrap();
    let left = left.replace(files[5].trim_end(), first_hunk.trim_end());
    let left = left.replacen(
        "+    let first = Vertex {",
        "+    let the_first = Vertex {",
        1,
    );
    let left = left.replacen("     first.x\n", "-    first.x\n+    the_first.x\n", 1);
    approve_as(&world, &left);
    resume(&world).exits(0);
    let after = tree(&world.work());
    let same = after.iter().filter(|(name, text)| before[*name] == **text);
    let same: Vec<_> = same.map(|(name, _)| name.as_str()).collect();
    let name = |file: &str| path_of(file);
    let taken_out = name(&files[3]);
    assert_eq!(same, ["AGENTS.md", "notes/lunch.txt", &taken_out]);
    let half = world.file(&name(&files[5]));
    assert!(
        half.contains("use crate::Vertex;") && half.contains("first = Point {"),
        "{half}"
    );
    let changed = (0..SHAPES).map(|number| world.file(&shape(number)));
    assert_eq!(
        changed.filter(|text| text.contains("the_first.x")).count(),
        1
    );
    world.replays();
}

#[test]
fn an_edit_that_does_not_fit_comes_back() {
    let world = world(&[propose(&renames(&[]), "")]);
    run(&world, &[&PARKED[..], &["--review", "proposal"]].concat()).exits(5);
    let before = tree(&world.work());
    // What is wrong in its form is said at once.
    for (edited, wrong) in [
        (
            "see above\n",
            "line 1 (`see above`) stands before the first file",
        ),
        ("# nothing of it\n", "nothing is left to change"),
    ] {
        let file = world.path("edited.txt");
        fs::write(&file, edited).unwrap();
        world
            .gyrus(&["approve", "last", "--edited", file.to_str().unwrap()])
            .exits(2)
            .says(wrong)
            .says("nothing was sent");
    }
    // Whether the hunks fit is said by the run, which looks at the files.
    let edited = asked(&world).replacen("-pub struct Point", "-pub struct Pint", 1);
    approve_as(&world, &edited);
    resume(&world)
        .exits(5)
        .says("your edit was not taken: ")
        .says("src/lib.rs");
    // What they wrote is there to go on with.
    assert_eq!(asked(&world).trim(), edited.trim());
    assert_eq!(tree(&world.work()), before);
    world.gyrus(&["deny", "last"]).exits(0);
    resume(&world)
        .exits(4)
        .says("a person rejected the proposal");
    assert_eq!(events(&world).last().unwrap(), "abort (tester)");
    assert_eq!(
        facts(&world, "changeset.reflection")[0]["outcome"],
        "rejected"
    );
    assert_eq!(tree(&world.work()), before);
    world.replays();
}

#[test]
fn a_no_with_words_goes_to_the_model() {
    let first = [edit("src/lib.rs", "struct Point", "struct Corner")];
    let second = propose(&renames(&[]), "find = { words = '(Vertex, not Corner)' }");
    let world = world(&[
        propose(&first, "find = { words = '(lunch matters)' }"),
        second,
    ]);
    run(&world, &PARKED).exits(5);
    world
        .gyrus(&["deny", "last", "--reason", "lunch matters: soup"])
        .exits(0);
    resume(&world).exits(5);
    assert!(
        asked(&world).contains("notes/lunch.txt"),
        "{}",
        asked(&world)
    );
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world).exits(5);
    let words = ["deny", "last", "--reason", "Vertex, not Corner"];
    world.gyrus(&words).exits(0);
    resume(&world).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world).exits(0);
    assert_eq!(
        events(&world),
        [
            "start",
            "context:ready",
            "user:reject:context (tester)",
            "context:ready",
            "user:approve:context (tester)",
            "proposal:ready",
            "user:reject:proposal (tester)",
            "proposal:ready",
            "user:approve:proposal (tester)",
            "applied"
        ]
    );
    world.replays();
}

#[test]
fn a_person_adds_and_drops_files() {
    let proposal = propose(
        &renames(&[]),
        r"find = { lunch = '(soup on Mondays)', guide = '(a guideline of this project, which the person approved)', cut = '(of 30000)' }",
    );
    let world = world(&[proposal]);
    run(&world, &PARKED).exits(5);
    approve_as(&world, "AGENTS.md\nnotes/dinner.txt\n");
    resume(&world)
        .exits(5)
        .says("your edit was not taken: `notes/dinner.txt` cannot be read");
    for name in ["notes/long.txt", "notes/longer.txt"] {
        fs::write(world.work().join(name), "a long line\n".repeat(30_000)).unwrap();
    }
    let list =
        "AGENTS.md  # yes\n# src/lib.rs\nnotes/lunch.txt\nnotes/long.txt\nnotes/longer.txt\n";
    approve_as(&world, list);
    resume(&world)
        .exits(5)
        .says("more than the 16000 tokens that were meant for them");
    let context = &facts(&world, "changeset.context")[0];
    let paths: Vec<_> = context["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["path"])
        .collect();
    let names = ["lunch.txt", "long.txt", "longer.txt"].map(|name| format!("notes/{name}"));
    assert_eq!(paths[0], "AGENTS.md");
    assert_eq!(paths[1..], names.each_ref());
    world.gyrus(&["deny", "last"]).exits(0);
    resume(&world).exits(4);
    world.replays();
}

#[test]
fn with_nobody_to_ask_nothing_is_done() {
    let world = world(&[propose(&renames(&[]), "")]);
    let before = tree(&world.work());
    run(&world, &[]).exits(4).says("nobody could be asked");
    assert_eq!(events(&world), ["start", "context:ready", "abort"]);
    run(&world, &["--review", "proposal"]).exits(4);
    assert_eq!(events(&world)[3..], ["proposal:ready", "abort"]);
    assert_eq!(tree(&world.work()), before);
}

/// The card tells the gate's verdict on applying before a person reads, and no line of a summary
/// can pose as a diff.
#[test]
fn the_card_says_what_is_asked_again() {
    let hook = json!({"path": ".git/hooks/post-merge", "reason": "r", "content": "#!/bin/sh\n"});
    let script =
        propose(&[hook], "").replace("Point is called", "x\\ndiff --git a/x b/x\\n@@ Point is");
    let world = world(&[script]);
    std::fs::create_dir_all(world.work().join(".git/hooks")).unwrap();
    run(&world, &PARKED).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    let said = resume(&world).exits(5).err;
    for words in [
        "you are asked again before it is applied: writes .git/hooks/post-merge",
        "┃ # diff --git a/x b/x\n",
        "┃ diff --git a/.git/hooks/post-merge b/.git/hooks/post-merge\n",
    ] {
        assert!(said.contains(words), "`{words}`: {said}");
    }
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world)
        .exits(5)
        .says("git runs programs that such files name");
    assert!(!world.work().join(".git/hooks/post-merge").exists());
}

#[test]
fn what_would_be_denied_is_shown_to_nobody() {
    let proposed = propose(&renames(&[]), "");
    let again = propose(&renames(&[]), "when = 'nobody was shown it'");
    let world = world(&[proposed, again.repeat(3)]);
    std::fs::create_dir(world.path("home")).unwrap();
    let rule = "[[rule]]\ndecide = \"deny\"\nwhy = \"not in this folder\"\n\
                tool = \"apply_changeset\"\n";
    std::fs::write(world.path("home/policy.toml"), rule).unwrap();
    let more = [&PARKED[..], &["--review", "proposal"]].concat();
    run(&world, &more)
        .exits(1)
        .says("no changeset could be proposed that is allowed; the last: ")
        .says("not in this folder");
    assert!(!events(&world).contains(&"proposal:ready".to_owned()));
}
