//! Commands work with private copies of repositories: git's own data is carried over, what other
//! programs obey waits for a yes.

use std::{fs, path::Path, process::Command};

use gyrus_kernel::Entry;
use rustix::process::Signal;

use crate::support::World;

/// One command whose text says nothing of what it does.
const RUNS_CODE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh code.sh" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=p", "-c", "user.email=p@example.org"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A workspace with a repository, and a script that a command runs there.
fn world(code: &str) -> World {
    let world = World::new(RUNS_CODE);
    let work = world.work();
    fs::write(work.join("file"), "one\n").unwrap();
    git(&work, &["init", "-q", "-b", "main"]);
    git(&work, &["config", "user.name", "p"]);
    git(&work, &["config", "user.email", "p@example.org"]);
    git(&work, &["add", "file"]);
    git(&work, &["commit", "-qm", "first"]);
    fs::write(work.join("code.sh"), code).unwrap();
    world
}

fn is_whole(work: &Path) {
    git(work, &["fsck", "--full", "--strict"]);
    assert!(!work.join(".git/index.lock").exists());
}

#[test]
fn a_commit_is_carried_over_and_a_hook_is_not() {
    let world = world(
        "set -e\necho two > file\ngit commit -qam second\ngit branch feature\n\
         echo 'touch planted' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit\n\
         git config core.fsmonitor ./planted.sh\ngit config alias.x '!touch planted'\n",
    );
    let work = world.work();
    let config = fs::read_to_string(work.join(".git/config")).unwrap();
    world.gyrus(&["run", "go"]).exits(0);
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "second");
    assert!(git(&work, &["branch"]).contains("feature"));
    assert!(!work.join(".git/hooks/post-commit").exists());
    assert_eq!(
        fs::read_to_string(work.join(".git/config")).unwrap(),
        config
    );
    is_whole(&work);
    world.gyrus(&["replay", "last"]).exits(0);
    // Which writes the index.
    assert_eq!(git(&work, &["status", "--short"]), "?? code.sh");
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("restore   .git (branches, HEAD, index and settings)");
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "first");
    assert_eq!(git(&work, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(&work, &["status", "--short"]), "?? code.sh");
    is_whole(&work);
    world
        .gyrus(&["undo", "last", "--yes"])
        .exits(0)
        .says("there is nothing to take back");
}

#[test]
fn a_yes_applies_hooks_and_settings_by_another_process() {
    let world = world(
        "printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit\n\
         git config core.fsmonitor ./watch.sh; echo two > file; git commit -qam second\n",
    );
    let work = world.work();
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    for words in [
        "`.git/config`",
        "`.git/hooks/post-commit`",
        "fsmonitor = ./watch.sh",
        "+#!/bin/sh",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(!work.join(".git/hooks/post-commit").exists());
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(git(&work, &["config", "core.fsmonitor"]), "./watch.sh");
    assert!(work.join(".git/hooks/post-commit").exists());
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "second");
    world.gyrus(&["replay", "last"]).exits(0);
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert!(!work.join(".git/hooks/post-commit").exists());
    let config = fs::read_to_string(work.join(".git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "first");
}

#[test]
fn a_new_repository_keeps_its_data_and_loses_what_runs() {
    let world = world(
        "set -e\ngit init -q sub\ncd sub\ngit config user.email a@example.org\n\
         git config core.pager ./evil\necho x > x; git add x\n\
         git -c user.name=a commit -qm 'in sub'\n\
         printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit\n",
    );
    let work = world.work();
    world.gyrus(&["run", "go"]).exits(0);
    let sub = work.join("sub");
    assert_eq!(git(&sub, &["log", "--format=%s"]), "in sub");
    assert!(!sub.join(".git/hooks/pre-commit").exists());
    let config = fs::read_to_string(sub.join(".git/config")).unwrap();
    assert!(config.contains("a@example.org"), "{config}");
    assert!(!config.contains("evil"), "{config}");
}

#[test]
fn a_moved_repository_stays_whole_and_a_link_to_another_is_taken_back() {
    let world = world(
        "mv nested moved; cd moved; echo two > file; git commit -qam 'while moved'; \
         cd ..; mkdir trap; echo \"gitdir: $PWD/nested/.git\" > trap/.git\n",
    );
    let work = world.work();
    let nested = work.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q", "-b", "main"]);
    fs::write(nested.join("file"), "one\n").unwrap();
    fs::write(nested.join(".git/hooks/mine"), "#!/bin/sh\n").unwrap();
    git(&nested, &["add", "file"]);
    git(&nested, &["commit", "-qm", "first"]);
    world.gyrus(&["run", "go"]).exits(0);
    // What is mounted in a layer cannot be moved, only copied.
    assert!(nested.join(".git/hooks/mine").exists());
    assert!(!work.join("moved/.git/hooks/mine").exists());
    assert!(!work.join("trap/.git").exists());
    is_whole(&nested);
    is_whole(&work.join("moved"));
}

#[test]
fn a_linked_work_tree_commits_into_a_repository_elsewhere() {
    let world = World::new(RUNS_CODE);
    let main = world.path("main");
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    git(&main, &["config", "user.name", "p"]);
    git(&main, &["config", "user.email", "p@example.org"]);
    fs::write(main.join("file"), "one\n").unwrap();
    git(&main, &["add", "file"]);
    git(&main, &["commit", "-qm", "first"]);
    let work = world.work();
    fs::remove_dir_all(&work).unwrap();
    let place = work.to_str().unwrap();
    git(&main, &["worktree", "add", "-q", "-b", "side", place]);
    let code = "echo two > file; git commit -qam second; echo x > ../main/escaped; \
                echo evil > ../main/.git/hooks/post-commit";
    fs::write(work.join("code.sh"), code).unwrap();
    world.gyrus(&["run", "go"]).exits(0);
    assert_eq!(git(&main, &["log", "--format=%s", "-1", "side"]), "second");
    assert_eq!(git(&work, &["status", "--short"]), "?? code.sh");
    assert!(!main.join("escaped").exists());
    assert!(!main.join(".git/hooks/post-commit").exists());
    is_whole(&main);
    git(
        &main,
        &["commit", "-q", "--allow-empty", "-m", "of a person"],
    );
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(git(&main, &["log", "--format=%s", "-1", "side"]), "first");
    assert_eq!(
        git(&main, &["log", "--format=%s", "-1", "main"]),
        "of a person"
    );
    assert_eq!(git(&work, &["status", "--short"]), "?? code.sh");
}

#[test]
fn a_run_that_was_killed_carries_over_when_it_is_taken_up() {
    let world = world(
        "echo two > file; git commit -qam second; touch .git/hooks/evil; echo done > mark; sleep 60",
    );
    let work = world.work();
    let running = world.start(&["run", "go"]);
    world.wait_for(|entry| matches!(entry, Entry::ToolStarted(_)));
    world.wait_for_layer("mark");
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "first");
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "second");
    assert!(!work.join(".git/hooks/evil").exists());
    is_whole(&work);
}

#[test]
fn what_a_person_commits_meanwhile_stays() {
    let world = world(
        "git checkout -qb mine; echo two > file; git commit -qam 'of the run'; git checkout -q main; \
         git merge -q --ff-only mine; echo ready > mark; while [ ! -e go ]; do sleep 0.05; done",
    );
    let work = world.work();
    let running = world.start(&["run", "go"]);
    world.wait_for_layer("mark");
    git(
        &work,
        &["commit", "-q", "--allow-empty", "-m", "of a person"],
    );
    fs::write(work.join("go"), "").unwrap();
    let said = running.end();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        git(&work, &["log", "--format=%s", "-1", "main"]),
        "of a person"
    );
    assert_eq!(
        git(&work, &["log", "--format=%s", "-1", "mine"]),
        "of the run"
    );
    is_whole(&work);
}

#[test]
fn a_copied_repository_is_whole() {
    let world = world(
        "mkdir other; cp -a .git other/.git; echo 'touch evil' > other/.git/hooks/pre-commit",
    );
    let work = world.work();
    world.gyrus(&["run", "go"]).exits(0);
    let other = work.join("other");
    assert_eq!(git(&other, &["log", "--format=%s"]), "first");
    assert!(!other.join(".git/gyrus-objects").exists());
    assert!(!other.join(".git/objects/info/alternates").exists());
    assert!(!other.join(".git/hooks/pre-commit").exists());
    is_whole(&other);
}

#[test]
fn a_repository_of_another_form_can_be_read_and_the_model_is_told_why() {
    let script = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "git status --short; git config a.b c; echo x > .git/hooks/evil" } }]
[[reply]]
when = "objectformat"
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;
    let world = World::new(script);
    let work = world.work();
    git(&work, &["init", "-q", "--object-format=sha256"]);
    fs::write(work.join("file"), "one\n").unwrap();
    let config = fs::read_to_string(work.join(".git/config")).unwrap();
    world.gyrus(&["run", "go"]).exits(0).says("?? file");
    assert_eq!(
        fs::read_to_string(work.join(".git/config")).unwrap(),
        config
    );
    assert!(!work.join(".git/hooks/evil").exists());
}

/// Ways to bring a control file into the repository beside the work tree.
const COMMITS_PLANTS: [(&str, &str, &str); 12] = [
    (
        "one line, with an ordinary file",
        ".github/workflows/x.yml",
        "mkdir -p .github/workflows; echo evil > $P; echo two > file; git add .; git commit -qm both",
    ),
    (
        "another branch, and back",
        ".envrc",
        "git checkout -qb fix; echo evil > $P; git add $P; git commit -qm fix; git checkout -q main",
    ),
    (
        "only the commit in the middle",
        "Makefile",
        "echo two > file; git commit -qam one; echo evil > $P; git add $P; git commit -qm two; \
         git rm -q $P; git commit -qm three",
    ),
    ("a stash", "AGENTS.md", "echo evil > $P; git stash -qu"),
    (
        "the index without the work tree",
        ".envrc",
        "id=$(echo evil | git hash-object -w --stdin); \
         git update-index --add --cacheinfo 100644,$id,$P",
    ),
    (
        "a tag of a commit of no branch",
        ".gitattributes",
        "echo evil > $P; git add $P; t=$(git write-tree); c=$(git commit-tree -m x $t); \
         git tag -a -m v v $c; git reset -q; rm $P",
    ),
    (
        "an amended commit",
        ".envrc",
        "echo two > file; git commit -qam one; echo evil > $P; git add $P; \
         git commit -q --amend --no-edit",
    ),
    (
        "a mailed patch",
        ".envrc",
        "echo evil > $P; git add $P; git commit -qm p; git format-patch -q -1 -o /tmp/p; \
         git reset -q --hard HEAD~1; git am -q /tmp/p/*.patch",
    ),
    (
        "a merge that holds more than its parents",
        ".envrc",
        "git checkout -qb side; echo x > x; git add x; git commit -qm x; git checkout -q main; \
         git merge -q --no-ff --no-commit side; echo evil > $P; git add $P; git commit -qm merge",
    ),
    (
        "notes",
        ".envrc",
        "echo evil > $P; git add $P; t=$(git write-tree); c=$(git commit-tree -m x $t); \
         git update-ref refs/notes/n $c; git reset -q",
    ),
    (
        "a rename of what is there",
        ".envrc",
        "git mv file $P; git commit -qm moved",
    ),
    (
        "a commit that was begun by plumbing alone",
        ".gitmodules",
        "id=$(echo evil | git hash-object -w --stdin); \
         t=$(printf '100644 blob %s\\t%s\\n' $id $P | git mktree); \
         git update-ref refs/heads/main $(git commit-tree -p main -m x $t)",
    ),
];

/// Checks that a person's next steps with git bring nothing back.
fn is_nowhere(work: &Path, path: &str, case: &str) {
    let all = git(work, &["log", "--all", "--format=%H", "--", path]);
    assert_eq!(all, "", "{case}");
    assert_eq!(git(work, &["ls-files", "--", path]), "", "{case}");
    assert_eq!(git(work, &["stash", "list"]), "", "{case}");
    let log = git(work, &["reflog", "--format=%H"]);
    for commit in log.lines() {
        let files = git(work, &["ls-tree", "-r", "--name-only", commit]);
        assert!(!files.lines().any(|file| file == path), "{case}: {files}");
    }
    let branches = git(work, &["for-each-ref", "--format=%(refname:short)"]);
    for branch in branches.lines() {
        git(work, &["checkout", "-qf", branch]);
        assert!(!work.join(path).exists(), "{case}: {branch}");
    }
    is_whole(work);
}

#[test]
fn a_no_leaves_no_control_file_in_the_repository() {
    for (case, path, code) in COMMITS_PLANTS {
        let world = world(&code.replace("$P", path));
        let work = world.work();
        let head = git(&work, &["rev-parse", "HEAD"]);
        let said = world.gyrus(&["run", "go"]).exits(0);
        assert_eq!(
            git(&work, &["rev-parse", "main"]),
            head,
            "{case}: {}",
            said.err
        );
        assert_eq!(
            git(&work, &["diff", "--cached", "--name-only"]),
            "",
            "{case}"
        );
        is_nowhere(&work, path, case);
        world.gyrus(&["replay", "last"]).exits(0);
    }
}

#[test]
fn a_yes_moves_the_branch_with_the_file() {
    for (case, path, code) in COMMITS_PLANTS.into_iter().take(2) {
        let world = world(&code.replace("$P", path));
        let work = world.work();
        let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
        for words in [
            path,
            "in commit ",
            "+evil",
            "your yes applies it again and moves `",
        ] {
            assert!(said.err.contains(words), "{case}, {words}: {}", said.err);
        }
        assert!(!said.err.contains("2 questions"), "{}", said.err);
        world.gyrus(&["approve", "last"]).exits(0);
        world.gyrus(&["resume", "last"]).exits(0);
        let status = git(&work, &["status", "--short"]);
        assert_eq!(status.replace("?? code.sh", ""), "", "{case}");
        let all = git(&work, &["log", "--all", "--format=%H", "--", path]);
        assert_eq!(all.lines().count(), 1, "{case}");
        let asked = |entry: &&Entry| matches!(entry, Entry::ApprovalAsked(_));
        assert_eq!(world.entries().iter().filter(asked).count(), 1, "{case}");
        world.gyrus(&["replay", "last"]).exits(0);
        world.gyrus(&["undo", "last", "--yes"]).exits(0);
        assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "first", "{case}");
        let all = git(&work, &["log", "--all", "--format=%H", "--", path]);
        assert_eq!(all, "", "{case}");
        is_whole(&work);
    }
}

#[test]
fn a_person_who_moved_the_branch_keeps_it() {
    let (_, path, code) = COMMITS_PLANTS[0];
    let world = world(&code.replace("$P", path));
    let work = world.work();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    git(
        &work,
        &["commit", "-q", "--allow-empty", "-m", "of a person"],
    );
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(git(&work, &["log", "--format=%s", "-1"]), "of a person");
    is_whole(&work);
}

#[test]
fn what_a_person_has_is_committed_and_merged_unasked() {
    for code in [
        // What stands there was not written by the command.
        "git add Makefile .github; git commit -qm mine; echo done > mark",
        "git checkout -q feature 2>/dev/null; git checkout -q main; git merge -q feature",
        "git branch other feature; git tag -a -m t t feature",
    ] {
        let world = world(code);
        let work = world.work();
        git(&work, &["checkout", "-qb", "feature"]);
        fs::write(work.join(".envrc"), "mine\n").unwrap();
        git(&work, &["add", ".envrc"]);
        git(&work, &["commit", "-qm", "envrc"]);
        git(&work, &["rm", "-q", ".envrc"]);
        git(&work, &["commit", "-qm", "no envrc"]);
        git(&work, &["checkout", "-q", "main"]);
        fs::write(work.join("Makefile"), "mine:\n").unwrap();
        fs::create_dir_all(work.join(".github/workflows")).unwrap();
        fs::write(work.join(".github/workflows/x.yml"), "mine\n").unwrap();
        let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(0);
        let asked = |entry: &&Entry| matches!(entry, Entry::ApprovalAsked(_));
        assert_eq!(
            world.entries().iter().filter(asked).count(),
            0,
            "{}",
            said.err
        );
        is_whole(&work);
    }
}
