//! Undo takes back what a run did to its folder, and nothing else.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::Path,
    process::Command,
};

use serde_json::Value;

use crate::{
    support::{THREE_STEPS, UNTIL_GO, World, works},
    terminal::Terminal,
};

/// One thing of every kind, in three steps.
const EVERYTHING: &str = r#"
[[reply]]
text = "A file."
calls = [{ tool = "write", arguments = { path = "made/new.txt", content = "new\n" } }]
[[reply]]
text = "Another."
calls = [{ tool = "read", arguments = { path = "edited.txt" } }]
[[reply]]
text = "Now."
calls = [{ tool = "edit", arguments = { path = "edited.txt", old_text = "one", new_text = "two" } }]
[[reply]]
text = "The rest."
calls = [{ tool = "shell", arguments = { command = """
echo more >> changed.txt; rm secret.txt; mv name.txt other.txt; chmod +x run.sh; ln -sfn run.sh link
rm -r sub; rm kind; mkdir -p kind/deep; echo in > kind/deep/in; rm -r was; echo file > was; chmod 700 shut
ln -s nowhere made/dangling; rm -f linked; echo plain > linked
""" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "all changed" } }]
"#;

fn furnish(work: &Path) {
    let at = |name: &str| work.join(name);
    fs::create_dir_all(at("sub/deep")).unwrap();
    fs::create_dir_all(at("was")).unwrap();
    fs::create_dir_all(at("shut")).unwrap();
    for (name, text, mode) in [
        ("edited.txt", "one\n", 0o644),
        ("changed.txt", "some\n", 0o640),
        ("secret.txt", "key\n", 0o600),
        ("name.txt", "name\n", 0o644),
        ("run.sh", "#!/bin/sh\n", 0o644),
        ("sub/deep/file", "deep\n", 0o755),
        ("kind", "was a file\n", 0o644),
        ("was/inside", "was in a folder\n", 0o644),
        ("untouched", "same\n", 0o644),
    ] {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("edited.txt", at("link")).unwrap();
    symlink("untouched", at("linked")).unwrap();
}

/// A line for everything below a folder.
fn describe(folder: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let mode = about.permissions().mode() & 0o777;
            if about.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                lines.push(format!("{name} -> {}", target.display()));
            } else if about.is_dir() {
                lines.push(format!("{name}/ {mode:o}"));
                walk(root, &path, lines);
            } else {
                let text = fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&text).into_owned();
                lines.push(format!("{name} {mode:o} {text:?}"));
            }
        }
    }
    let mut lines = Vec::new();
    walk(folder, folder, &mut lines);
    lines.sort();
    lines
}

fn json(world: &World, more: &[&str]) -> Value {
    let said = world.gyrus(&[&["undo", "last", "--json"], more].concat());
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"))
}

#[test]
fn everything_comes_back_and_what_went_is_kept() {
    let world = World::new(EVERYTHING);
    furnish(&world.work());
    let before = describe(&world.work());
    world.run(&[]).exits(0);
    let after = describe(&world.work());
    assert_ne!(before, after);

    let preview = world.gyrus(&["undo", "last"]).exits(0).says("--yes");
    assert_eq!(describe(&world.work()), after, "a preview changes nothing");
    insta::assert_snapshot!(world.mask(&preview.err), @"
    run [run]: [folder]/work back to before the run
      restore   changed.txt (5 bytes)
      restore   edited.txt (4 bytes)
      restore   kind (11 bytes)
      delete    kind/deep/
      delete    kind/deep/in (3 bytes)
      restore   link (link)
      restore   linked (link)
      delete    made/
      delete    made/dangling (link)
      delete    made/new.txt (4 bytes)
      re-create name.txt (5 bytes)
      delete    other.txt (5 bytes)
      mode of   run.sh (10 bytes)
      re-create secret.txt (4 bytes)
      mode of   shut/
      re-create sub/
      re-create sub/deep/
      re-create sub/deep/file (5 bytes)
      restore   was/
      re-create was/inside (16 bytes)
    what somebody else changed while the run went on counts as the run's: look before you say yes
    nothing was changed; to do it: gyrus undo [run] --yes
    ");

    let done = world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(describe(&world.work()), before, "{done:?}");
    let run = world.runs()[0].to_string();
    let trash = world.path("home/trash").join(&run).join("1");
    for (name, text) in [
        ("made/new.txt", "new\n"),
        ("edited.txt", "two\n"),
        ("other.txt", "name\n"),
        ("kind/deep/in", "in\n"),
        ("was", "file\n"),
    ] {
        assert_eq!(fs::read_to_string(trash.join(name)).unwrap(), text);
    }
    assert!(done.err.contains(&trash.display().to_string()), "{done:?}");

    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("nothing to take back");
    let shown = world.gyrus(&["show", "last"]).exits(0).out;
    assert!(shown.contains("undone on"), "{shown}");
    world.gyrus(&["runs", "verify"]).exits(0);
    world.gyrus(&["replay", "last"]).exits(0);
}

#[test]
fn a_later_step_is_taken_back_alone() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    world
        .gyrus(&["undo", "last", "--to", "9"])
        .exits(2)
        .says("the last one is 3");
    world
        .gyrus(&["undo", "last", "--to", "1", "--yes"])
        .exits(0)
        .says("1 taken back");
    assert_eq!(world.file("out.txt"), "hello\n");
    assert!(!world.work().join("ledger.txt").exists());
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(describe(&world.work()), [""; 0]);
}

#[test]
fn an_undo_of_some_steps_is_followed_by_one_of_all() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = "a", content = "1" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "printf 2 > a; mkdir d; echo c > d/c; echo b > b" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "printf 3 > a; rm -r b d" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#,
    );
    world.run(&[]).exits(0);
    world
        .gyrus(&["undo", "last", "--to", "2", "--yes"])
        .exits(0);
    assert_eq!(
        (world.file("a").as_str(), world.file("d/c").as_str()),
        ("2", "c\n")
    );
    std::fs::write(world.work().join("b"), "mine").unwrap();
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(world.file("b"), "mine");
    assert_eq!(describe(&world.work()).len(), 1);
}

#[test]
fn what_changed_since_is_left_alone() {
    let world = World::new(EVERYTHING);
    furnish(&world.work());
    world.run(&[]).exits(0);
    let at = |name: &str| world.work().join(name);
    fs::write(at("edited.txt"), "mine\n").unwrap();
    fs::write(at("made/mine.txt"), "mine\n").unwrap();
    fs::remove_file(at("was")).unwrap();
    fs::write(at("secret.txt"), "new key\n").unwrap();
    let planned = json(&world, &[]);
    let done = json(&world, &["--yes"]);
    let left = done["left_alone"].as_array().unwrap();
    let left: Vec<String> = left
        .iter()
        .map(|left| {
            format!(
                "{}: {}",
                left["path"].as_str().unwrap(),
                left["why"].as_str().unwrap()
            )
        })
        .collect();
    insta::assert_snapshot!(left.join("\n"), @"
    edited.txt: it was changed since
    made: `mine.txt` stays in it
    secret.txt: something new is there since
    was: it is gone since
    was/inside: the folder that it lay in is not there
    ");
    assert_eq!(planned["left_alone"], done["left_alone"]);
    assert_eq!(planned["changes"], done["changes"]);
    assert_eq!(world.file("edited.txt"), "mine\n");
    assert_eq!(world.file("made/mine.txt"), "mine\n");
    assert_eq!(world.file("secret.txt"), "new key\n");
    assert!(!at("made/new.txt").exists());
    assert_eq!(world.file("name.txt"), "name\n");
    world.gyrus(&["undo", "last", "--yes"]).exits(1);
}

#[test]
fn an_undo_that_was_cut_off_anywhere_is_completed() {
    let world = World::new(EVERYTHING);
    furnish(&world.work());
    let before = describe(&world.work());
    world.run(&[]).exits(0);
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(copied.unwrap().success());
    };
    copy(&world.work(), &world.path("left"));
    for steps in 1.. {
        let cut_off = world
            .command(&["undo", "last", "--yes"])
            .env("GYRUS_CRASH_AFTER", steps.to_string())
            .output()
            .unwrap();
        let was_killed = cut_off.status.signal() == Some(9);
        world.gyrus(&["undo", "last", "--yes"]).exits(0);
        assert_eq!(describe(&world.work()), before, "cut off after {steps}");
        if !was_killed {
            assert!(steps > 50, "there is more to do than {steps} changes");
            return;
        }
        copy(&world.path("left"), &world.work());
    }
}

#[test]
fn build_output_is_not_touched_and_everything_else_is() {
    let world = World::new(
        r#"
[[reply]]
text = "Build."
calls = [{ tool = "shell", arguments = { command = "echo built > target/more; echo hacked > .env; echo x >> dist/page; echo dist/ >> .gitignore; mkdir -p web/node_modules/a; echo 1 > web/node_modules/a/b" } }]
[[reply]]
text = "More."
calls = [{ tool = "shell", arguments = { command = "echo y >> dist/page" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "built" } }]
"#,
    );
    let at = |name: &str| world.work().join(name);
    for folder in ["target", "dist", "web"] {
        fs::create_dir(at(folder)).unwrap();
    }
    for (name, text) in [
        ("Cargo.toml", ""),
        ("package.json", "{}"),
        ("web/package.json", "{}"),
        (".gitignore", "/target\n.env\nnode_modules\n"),
        (".env", "KEY=1\n"),
        ("dist/page", "mine\n"),
    ] {
        fs::write(at(name), text).unwrap();
    }
    let huge = fs::File::create(at("target/huge")).unwrap();
    huge.set_len(2 << 30).unwrap();
    world.run(&[]).exits(0);
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("can be built again: target/, web/node_modules/\n");
    assert_eq!(world.file(".env"), "KEY=1\n");
    assert_eq!(world.file("dist/page"), "mine\n", "a run hides nothing");
    assert_eq!(world.file(".gitignore"), "/target\n.env\nnode_modules\n");
    assert_eq!(world.file("target/more"), "built\n");
    assert!(at("web/node_modules/a/b").exists());
    // A fork gets everything but the output.
    let fork = world.path("fork");
    let fork = fork.to_str().unwrap();
    world.gyrus(&["fork", "last", "--at", "1", "--workdir", fork]);
    assert_eq!(
        fs::read_to_string(world.path("fork/.env")).unwrap(),
        "hacked\n"
    );
    assert!(!world.path("fork/target").exists());
}

#[test]
fn git_is_taken_back_as_a_whole_or_not_at_all() {
    if !works("git", &["--version"]) {
        return;
    }
    let script = r#"
[[reply]]
text = "Commit."
calls = [{ tool = "shell", arguments = { command = "echo two > file; git -c user.name=a -c user.email=a@b commit -qam two" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "committed" } }]
"#;
    for touched in [false, true] {
        let world = World::new(script);
        let git = |line: &str| {
            let mut git = world.command(&[]);
            let mut git = Command::new("git")
                .args(["-c", "user.name=a", "-c", "user.email=a@b"])
                .args(line.split(' '))
                .current_dir(world.work())
                .env_clear()
                .envs(
                    git.env("GIT_CONFIG_NOSYSTEM", "1")
                        .get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                )
                .output()
                .unwrap();
            git.stdout.extend(git.stderr);
            String::from_utf8(git.stdout).unwrap()
        };
        git("init -q .");
        fs::write(world.work().join("file"), "one\n").unwrap();
        git("add file");
        git("commit -qm one");
        world.run(&[]).exits(0);
        assert!(git("log --oneline").contains("two"));
        if touched {
            fs::write(world.work().join("more"), "").unwrap();
            git("add more");
            git("commit -qm three");
        }
        let done = world.gyrus(&["undo", "last", "--yes"]);
        assert_eq!(world.file("file"), "one\n", "{done:?}");
        assert_eq!(git("log --oneline").contains("two"), touched, "{done:?}");
        assert_eq!(done.code, Some(i32::from(touched)), "{done:?}");
        assert_eq!(git("fsck --strict"), "", "{done:?}");
    }
}

#[test]
fn without_a_snapshot_nothing_is_undone() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "nothing to do" } }]
"#,
    );
    let large = fs::File::create(world.work().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    world.run(&[]).exits(0);
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(2)
        .says("there is no record of the folder before the run: the folder is too large");
}

#[test]
fn a_folder_of_thousands_of_files_is_edited_unasked_and_taken_back() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "part7/file.307" } }]
[[reply]]
calls = [{ tool = "edit", arguments = { path = "part7/file.307", old_text = "number 307", new_text = "changed" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "edited" } }]
"#,
    );
    for number in 0..6_000 {
        let folder = world.work().join(format!("part{}", number % 100));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("file.{number}"));
        fs::write(path, format!("number {number}\n")).unwrap();
    }
    let before = describe(&world.work());
    // There is nobody to ask.
    let run = || world.gyrus(&["run", "change one"]);
    run().exits(0);
    assert_eq!(world.file("part7/file.307"), "changed\n");
    assert!(
        !world
            .entries()
            .iter()
            .any(|entry| entry.kind() == "approval.asked")
    );
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("part7/file.307");
    assert_eq!(describe(&world.work()), before);
    // One that is too large for snapshots does not differ.
    let large = fs::File::create(world.work().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    run().exits(0);
    assert_eq!(world.file("part7/file.307"), "changed\n");
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(world.file("part7/file.307"), "number 307\n");
}

#[test]
fn a_run_that_goes_on_is_not_undone() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_layer("ledger.txt");
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(2)
        .says("gyrus stop");
    world.gyrus(&["stop", "last"]).exits(0);
    running.end();
    // What the cut-off step did is in no snapshot, so it is nobody's.
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("cut off in step 1");
    assert_eq!(world.file("ledger.txt"), "begun\n");
}

#[test]
fn a_person_is_asked() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    for (answer, code, left) in [("\r", 0, "hello\n"), ("y\r", 0, "")] {
        let Some(mut terminal) = Terminal::start(&world, &["undo", "last"], "y\r") else {
            return;
        };
        terminal.shows("take this back? [y/N]");
        terminal.types(answer);
        assert_eq!(terminal.exit_code(), Some(code));
        assert_eq!(world.file("out.txt"), left);
    }
}
