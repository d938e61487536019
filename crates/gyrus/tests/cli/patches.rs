//! Changes as patches: shown in colour where a person looks, and taken by a real `git apply`.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    changing::{self, edit, propose},
    support::{World, works},
    terminal::Terminal,
};

fn git(folder: &Path, arguments: &[&str], input: &[u8]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut git = git.spawn().unwrap();
    git.stdin.take().unwrap().write_all(input).unwrap();
    let said = git.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{arguments:?}: {error}");
}

const EDITS: &str = r##"
[[reply]]
text = "A file."
calls = [{ tool = "write", arguments = { path = "a.txt", content = "one\ntwo\nthree\n" } }]
[[reply]]
text = "Another."
calls = [{ tool = "edit", arguments = { path = "a.txt", old_text = "two\n", new_text = "zwei\nmore\n" } }]
[[reply]]
text = "A hook."
calls = [{ tool = "write", arguments = { path = ".envrc", content = "echo hello\n" } }]
[[reply]]
text = "A long one."
calls = [{ tool = "write", arguments = { path = "long.txt", content = """LONG""" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"##;

#[test]
fn edits_show_what_they_change() {
    let long = "a line\n".repeat(500);
    let world = World::new(&EDITS.replace("LONG", &long));
    let arguments = ["run", "go", "--approve", "edits"];
    let Some(mut terminal) = Terminal::start(&world, &arguments, "") else {
        return;
    };
    terminal.shows("← created `a.txt`");
    terminal.shows("\x1b[32m+one");
    let edit = terminal.shows("\x1b[31m-two");
    assert!(edit.contains("@@ -1,3 +1,4 @@"), "{edit:?}");
    terminal.shows("\x1b[32m+zwei");
    // The card shows the change, and the result does not show it again.
    let card = terminal.shows("+echo hello");
    assert!(card.contains("┌ approval"), "{card:?}");
    terminal.shows("y = yes, n = no");
    terminal.types("y\n");
    terminal.shows("← created `.envrc`");
    let rest = terminal.shows("created `long.txt`");
    assert!(!rest.contains("+echo hello"), "{rest:?}");
    let rest = terminal.shows("more lines");
    assert!(rest.matches("+a line").count() < 50, "{rest:?}");
    terminal.shows("done");
    assert_eq!(terminal.exit_code(), Some(0));
    let page = world.gyrus(&["show", "last", "--html"]).exits(0).out;
    assert!(page.contains(r#"<span class="removed">-two"#));
    assert!(page.contains(r#"<span class="added">+zwei"#));
}

#[test]
fn what_a_run_changed_is_a_patch() {
    let line = "mv moved.txt elsewhere.txt; rm gone.txt; printf 'no end' > end.txt; \
                printf '\\0\\1\\2' > bytes.bin; chmod +x tool.sh; ln -s end.txt link; \
                mkdir deep; echo new > deep/new.txt; echo two >> kept.txt";
    let arguments = json!({ "command": line });
    let script = format!(
        "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = '''{arguments}''' }}]\n[[reply]]\n\
         calls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = \"done\" }} }}]\n"
    );
    let world = World::new(&script);
    let work = world.work();
    let before = world.path("before");
    for folder in [&work, &before] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("moved.txt"), "it moves\n").unwrap();
        fs::write(folder.join("gone.txt"), "it goes").unwrap();
        fs::write(folder.join("kept.txt"), "one\n").unwrap();
        fs::write(folder.join("bytes.bin"), [0, 255, 128]).unwrap();
        fs::write(folder.join("tool.sh"), "true\n").unwrap();
        let plain = fs::Permissions::from_mode(0o644);
        fs::set_permissions(folder.join("tool.sh"), plain).unwrap();
        git(folder, &["init", "--quiet"], b"");
        git(folder, &["add", "."], b"");
        git(folder, &["commit", "--quiet", "-m", "before"], b"");
    }
    world.run(&[]).exits(0);
    let patch = world.command(&["diff", "last"]).output().unwrap();
    assert!(patch.status.success(), "{patch:?}");
    let patch = patch.stdout;
    git(&before, &["apply", "--check"], &patch);
    git(&before, &["apply", "--index"], &patch);
    let text = String::from_utf8_lossy(&patch);
    for part in [
        "rename from moved.txt",
        "GIT binary patch",
        "new mode 100755",
        "120000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for name in [
        "elsewhere.txt",
        "end.txt",
        "bytes.bin",
        "deep/new.txt",
        "kept.txt",
        "link",
    ] {
        let now = fs::read(before.join(name)).unwrap();
        assert_eq!(now, fs::read(work.join(name)).unwrap(), "{name}");
    }
    assert!(!before.join("gone.txt").exists() && !before.join("moved.txt").exists());
}

#[test]
fn a_proposal_is_a_patch_and_is_shown_once() {
    let changes = [
        edit("src/lib.rs", "struct Point", "struct Vertex"),
        json!({"path": "NEWS.md", "reason": "people ask", "content": "no end"}),
        json!({"path": "notes/lunch.txt", "reason": "nobody reads it", "delete": true}),
        json!({"path": "a.bin", "reason": "old", "delete": true}),
        json!({"path": "tool.sh", "reason": "it runs", "executable": true}),
        json!({"path": "with space.txt", "reason": "x", "content": "y\n"}),
    ];
    let world = changing::world(&[propose(&changes, "")]);
    let work = world.work();
    fs::write(work.join("a.bin"), [0, 159, 146, 150]).unwrap();
    fs::write(work.join("tool.sh"), "true\n").unwrap();
    fs::set_permissions(work.join("tool.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    git(&work, &["init", "--quiet"], b"");
    git(&work, &["add", "."], b"");
    let parked = ["--review", "proposal", "--on-ask", "park"];
    let said = changing::run(&world, &parked).exits(5).err;
    assert_eq!(said.matches("+pub struct Vertex {").count(), 1, "{said}");
    let listed = world.gyrus(&["approvals", "--json"]).exits(0).out;
    let card: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let proposal = card["card"]["edit"].as_str().unwrap();
    git(&work, &["apply", "--check"], proposal.as_bytes());
    world.gyrus(&["approve", "last"]).exits(0);
    // The process that goes on shows what it goes on from.
    let said = changing::resume(&world).exits(0).err;
    assert_eq!(said.matches("+pub struct Vertex {").count(), 1, "{said}");
    assert_eq!(world.file("NEWS.md"), "no end");
    // Where nobody is asked, it is shown all the same.
    let world = changing::world(&[propose(&changes[..1], "")]);
    let said = changing::run(&world, &["--review", "none"]).exits(0).err;
    assert_eq!(said.matches("+pub struct Vertex {").count(), 1, "{said}");
    assert!(works("git", &["--version"]));
}
