//! Sub-runs that a model starts: several at once, with less than their parent has, watched, steered and
//! stopped one by one.

use std::{fs, path::PathBuf};

use gyrus_contract::RunId;
use gyrus_kernel::{Ending, Entry, RunStarted, log_name};
use rustix::process::Signal;

use crate::support::{Said, World};

const GOAL: &str =
    "Rework the parser in three parts, then write tests and update the documentation";

/// Arguments of a run with more to do than one step.
fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", GOAL, "--workdir", ".", "--approve", "auto"], more].concat()
}

fn entries(world: &World, run: RunId) -> Vec<Entry> {
    let reader = world.store().reader(&log_name(run)).unwrap();
    let entries = reader.entries(1).unwrap();
    entries
        .map(|entry| gyrus_kernel::parse(&entry.unwrap()).unwrap())
        .collect()
}

fn root(world: &World) -> RunId {
    world.runs().into_iter().find(|run| run.is_root()).unwrap()
}

/// The sub-runs, in the order of their goals.
fn children(world: &World) -> Vec<(String, RunId)> {
    let mut found: Vec<_> = entries(world, root(world))
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::ChildStarted(child) => Some((child.goal, child.child)),
            _ => None,
        })
        .collect();
    found.sort();
    found
}

fn started(world: &World, run: RunId) -> RunStarted {
    match entries(world, run).remove(0) {
        Entry::RunStarted(started) => started,
        other => panic!("{other:?}"),
    }
}

/// Waits until so many commands of sub-runs are at work, each with a file of its own name.
fn wait_for(world: &World, names: &[&str]) {
    for name in names {
        world.wait_for_layer(name);
    }
}

/// Three parts at once, each of which lasts until there is a file `go`.
const THREE: &str = r#"
[model]
price = { input = 1000000, output = 1000000 }
[[reply]]
text = "Three parts."
calls = [
  { tool = "delegate", arguments = { goal = "alpha part" } },
  { tool = "delegate", arguments = { goal = "beta part", effort = "low" } },
  { tool = "delegate", arguments = { goal = "gamma part", tools = ["Bash"], max_steps = 5 } },
]
[[reply]]
when = '''(?s)alpha is done\s+\[sub-run \w+: answered; \d steps, [\d,]+ tokens, \$0\.\d+\].*beta is done.*gamma is done'''
text = "All three parts are done."
[[reply]]
goal = "alpha part"
calls = [{ tool = "shell", arguments = { command = "echo a > a.txt; until [ -e go ]; do sleep 0.01; done" } }]
[[reply]]
goal = "alpha part"
repeat = 2
text = "alpha is done"
[[reply]]
goal = "beta part"
calls = [{ tool = "shell", arguments = { command = "echo b > b.txt; until [ -e go ]; do sleep 0.01; done" } }]
[[reply]]
goal = "beta part"
repeat = 2
text = "beta is done"
[[reply]]
goal = "gamma part"
calls = [{ tool = "shell", arguments = { command = "echo c > c.txt; until [ -e go ]; do sleep 0.01; done" } }]
[[reply]]
goal = "gamma part"
repeat = 2
text = "gamma is done"
"#;

#[test]
fn three_at_once_come_back_with_their_cost_and_are_undone_together() {
    let world = World::new(THREE);
    let running = world.start(&run(&[]));
    wait_for(&world, &["a.txt", "b.txt", "c.txt"]);
    let listed = world.gyrus(&["runs"]).exits(0).out;
    assert_eq!(listed.matches("↳").count(), 3, "{listed}");
    fs::write(world.work().join("go"), "").unwrap();
    let ended = running.end().exits(0);
    assert!(
        ended.out.contains("All three parts are done."),
        "{ended:#?}"
    );
    for (name, content) in [("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n")] {
        assert_eq!(world.file(name), content);
    }
    let children = children(&world);
    let gamma = started(&world, children[2].1);
    assert_eq!(gamma.settings.limits.steps, Some(5));
    assert_eq!(gamma.skills[0].tools, Some(vec!["shell".to_owned()]));
    let beta = started(&world, children[1].1);
    assert_eq!(beta.own_model.effort.map(|it| it.word()), Some("low"));
    world.replays();
    for (_, child) in &children {
        let replayed = world.gyrus(&["replay", &child.to_string()]).exits(0).out;
        assert!(replayed.contains("0 differences"), "{replayed}");
    }
    let shown = world.gyrus(&["runs", "show"]).exits(0).out;
    assert_eq!(shown.matches("sub-run").count(), 3, "{shown}");
    world.gyrus(&["undo", "--yes"]).exits(0);
    assert!(!world.work().join("a.txt").exists() && !world.work().join("c.txt").exists());
}

#[test]
fn one_is_stopped_and_another_steered_while_the_rest_goes_on() {
    let script = THREE
        .replace(
            "(?s)alpha is done\\s+\\[sub-run \\w+: answered; \\d steps, [\\d,]+ tokens, \\$0\\.\\d+\\].*beta is done.*gamma is done",
            "(?s)alpha is done.*stopped by tester.*gamma is done",
        )
        .replace(
            "goal = \"gamma part\"\nrepeat",
            "goal = \"gamma part\"\nwhen = \"in capital letters\"\nrepeat",
        );
    let world = World::new(&script);
    let running = world.start(&run(&[]));
    wait_for(&world, &["a.txt", "b.txt", "c.txt"]);
    let children = children(&world);
    let name = |index: usize| children[index].1.to_string();
    world
        .gyrus(&["steer", &name(2), "Say it in capital letters"])
        .exits(0);
    world
        .gyrus(&["stop", &name(1)])
        .exits(0)
        .says("the run that started it learns this and continues");
    fs::write(world.work().join("go"), "").unwrap();
    running.end().exits(0);
    let followed = world.gyrus(&["follow", &name(0)]);
    assert!(followed.out.contains("alpha is done"), "{followed:#?}");
    world.replays();
}

#[test]
fn a_killed_process_takes_its_sub_runs_up_again_where_they_were() {
    let world = World::new(THREE);
    let running = world.start(&run(&[]));
    wait_for(&world, &["a.txt", "b.txt", "c.txt"]);
    running.signal(Signal::KILL);
    drop(running);
    fs::write(world.work().join("go"), "").unwrap();
    world
        .gyrus(&["resume", "last", "--approve", "auto"])
        .exits(0);
    assert_eq!(children(&world).len(), 3);
    world.replays();
}

#[test]
fn a_stop_of_the_parent_ends_all_at_once_and_resuming_goes_on() {
    let world = World::new(THREE);
    let running = world.start(&run(&[]));
    wait_for(&world, &["a.txt", "b.txt", "c.txt"]);
    world.gyrus(&["stop"]).exits(0).says("is parked");
    assert_eq!(running.end().code, Some(4));
    fs::write(world.work().join("go"), "").unwrap();
    world
        .gyrus(&["resume", "last", "--approve", "auto"])
        .exits(0);
    world.replays();
}

/// Two parts that each ask a person.
const ASKING: &str = r#"
[[reply]]
calls = [
  { tool = "delegate", arguments = { goal = "alpha part" } },
  { tool = "delegate", arguments = { goal = "beta part" } },
]
[[reply]]
when = "(?s)it is blue.*it is green"
text = "Both know."
[[reply]]
goal = "alpha part"
calls = [{ tool = "ask_person", arguments = { question = "Which colour for alpha?" } }]
[[reply]]
goal = "alpha part"
when = "blue"
text = "it is blue"
[[reply]]
goal = "beta part"
calls = [{ tool = "ask_person", arguments = { question = "Which colour for beta?" } }]
[[reply]]
goal = "beta part"
when = "green"
text = "it is green"
"#;

#[test]
fn questions_go_up_and_each_gets_its_own_answer() {
    let world = World::new(ASKING);
    world.gyrus(&run(&["--on-ask", "park"])).exits(5);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(
        listed.contains("alpha?") && listed.contains("beta?"),
        "{listed}"
    );
    let children = children(&world);
    for (child, answer) in [(1, "green"), (0, "blue")] {
        let name = children[child].1.to_string();
        world
            .gyrus(&["approve", &name, "--answer", answer])
            .exits(0);
    }
    let ended = world
        .gyrus(&["resume", "last", "--approve", "auto"])
        .exits(0);
    assert!(ended.out.contains("Both know."), "{ended:#?}");
    world.replays();
}

/// A role in the way of other agents, with a model of its own.
fn role(world: &World, model: &str) -> PathBuf {
    let folder = world.path("home/agents");
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "---\nname: reviewer\ndescription: Reviews a change.\ntools: Read, Grep\nmodel: {model}\ncolor: blue\n---\nYou review. Begin with REVIEW.\n"
    );
    fs::write(folder.join("reviewer.md"), text).unwrap();
    folder
}

const REVIEWED: &str = r#"
[[reply]]
calls = [{ tool = "delegate", arguments = { goal = "look at it", role = "reviewer" } }]
[[reply]]
when = "REVIEW: all is well"
text = "Reviewed."
[[reply]]
text = "Reviewed."
"#;

#[test]
fn a_role_has_its_own_words_model_and_tools() {
    let world = World::new(REVIEWED);
    let other = r#"
[model]
name = "other"
[[reply]]
find = { begin = "Begin with (REVIEW)" }
calls = [{ tool = "write", arguments = { path = "x", content = "{{begin}}" } }]
[[reply]]
when = "the skill `reviewer` works without `write`"
text = "REVIEW: all is well"
[[reply]]
text = "REVIEW: all is well"
"#;
    fs::write(world.path("other.toml"), other).unwrap();
    let model = format!("script:{}", world.path("other.toml").display());
    role(&world, &model);
    world.gyrus(&run(&[])).exits(0);
    assert!(!world.work().join("x").exists());
    let child = started(&world, children(&world)[0].1);
    assert_eq!(
        (child.model.as_str(), child.own_model.name),
        ("script/other", Some(model))
    );
    world.replays();
    let agents = world.gyrus(&["agents"]).exits(0);
    assert!(!agents.err.contains("workdir"), "{agents:#?}");
}

#[test]
fn roles_of_a_project_count_once_a_person_agreed_to_them() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "delegate", arguments = { goal = "look at it", role = "reviewer" } }]
[[reply]]
repeat = 9
text = "Over."
[[reply]]
goal = "look at it"
find = { begin = "Begin with (REVIEW)" }
text = "{{begin}}: all is well"
"#,
    );
    let folder = world.work().join(".claude/agents");
    fs::create_dir_all(&folder).unwrap();
    // Which model it costs is not for a project to say; other files there are none, and say why.
    let text = "---\ndescription: Reviews a change.\nmodel: opus\n---\nBegin with REVIEW.\n";
    fs::write(folder.join("reviewer.md"), text).unwrap();
    fs::write(
        folder.join("wrong.md"),
        "---\ndescription: x\nname: two words\n---\n",
    )
    .unwrap();
    fs::create_dir(folder.join("folder.md")).unwrap();
    let answers = |says: &str, tells: &str| {
        let ended = world.gyrus(&run(&[]));
        assert!(ended.err.contains(says), "{ended:#?}");
        assert!(ended.err.contains(tells), "{ended:#?}");
    };
    let (none, review) = ("there is no role `reviewer`", "REVIEW: all is well");
    answers(none, "nobody agreed to them");
    let trusted = world.gyrus(&["trust"]).exits(0);
    assert!(
        trusted.err.contains("stay as they are: reviewer"),
        "{trusted:#?}"
    );
    answers(review, "its name is not one word");
    // Another text asks again.
    fs::write(folder.join("reviewer.md"), text.replace("change", "file")).unwrap();
    answers(none, "nobody agreed to them");
    world.gyrus(&["trust", "--as-data"]).exits(0);
    answers(none, "");
    // A person's own role of that name comes first.
    role(&world, "script:/nowhere/missing.toml");
    answers("missing.toml cannot be read", "");
}

#[test]
fn a_role_whose_model_cannot_be_asked_says_so_and_the_run_goes_on() {
    let world = World::new(&REVIEWED.replace("REVIEW: all is well", "missing.toml cannot be read"));
    role(&world, "script:/nowhere/missing.toml");
    let ended = world.gyrus(&run(&[])).exits(4);
    assert!(ended.out.contains("Reviewed."), "{ended:#?}");
    world.replays();
}

#[test]
fn wrong_uses_are_told_and_depth_width_and_number_are_capped() {
    let parts = (0..5).map(|_| r#"{ tool = "delegate", arguments = { goal = "small part" } }"#);
    let parts: Vec<_> = parts.collect();
    let script = format!(
        r#"
[[reply]]
calls = [
  {{ tool = "delegate", arguments = {{ goal = " " }} }},
  {{ tool = "delegate", arguments = {{ goal = "x", role = "nobody" }} }},
  {{ tool = "delegate", arguments = {{ goal = "x", model = "openai" }} }},
  {{ tool = "delegate", arguments = {{ goal = "x", effort = "huge" }} }},
  {{ tool = "delegate", arguments = {{ goal = "x", max_steps = 0 }} }},
]
[[reply]]
when = "(?s)`goal` is empty.*there is no role `nobody`.*`openai` cannot be asked.*`huge` is not an effort.*a limit of 0"
calls = [{}]
[[reply]]
when = "(?s)small is done.*small is done.*small is done.*may start 4 children at most"
text = "Enough."
[[reply]]
text = "Enough."
[[reply]]
goal = "small part"
calls = [{{ tool = "delegate", arguments = {{ goal = "smaller part" }} }}]
[[reply]]
goal = "small part"
when = "no tool `delegate`"
text = "small is done"
[[reply]]
goal = "small part"
text = "small is done"
"#,
        parts.join(", ")
    );
    let world = World::new(&script);
    fs::create_dir_all(world.path("home")).unwrap();
    let config = "[delegate]\nat-once = 2\nruns = 4\n";
    fs::write(world.path("home/config.toml"), config).unwrap();
    world.gyrus(&run(&[])).exits(4);
    let entries = entries(&world, root(&world));
    let refused = |entry: &&Entry| matches!(entry, Entry::ChildEnded(child) if matches!(child.ending, Ending::Failed { .. }));
    assert_eq!(entries.iter().filter(refused).count(), 1);
    let widest = entries.iter().filter_map(|entry| match entry {
        Entry::BranchesStarted(started) => Some(started.branches),
        _ => None,
    });
    assert_eq!(widest.max(), Some(2));
    world.replays();
    let none = "[delegate]\nenabled = false\n";
    fs::write(world.path("home/config.toml"), none).unwrap();
    let said: Said = world.gyrus(&run(&["--max-steps", "2"]));
    assert!(said.err.contains("no tool `delegate`"), "{said:#?}");
}

/// A repository with one commit.
fn repository(world: &World) {
    fs::write(world.work().join("kept.txt"), "as it was\n").unwrap();
    for arguments in [
        &["init", "--quiet", "-b", "main"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "--quiet",
            "-m",
            "first",
        ],
    ] {
        git(world, arguments);
    }
}

fn git(world: &World, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(arguments).current_dir(world.work());
    command.env("HOME", world.path("person"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn work_trees_keep_parts_apart_and_come_back_as_branches() {
    let script = r#"
[[reply]]
calls = [
  { tool = "delegate", arguments = { goal = "alpha part", worktree = true } },
  { tool = "delegate", arguments = { goal = "beta part", worktree = true } },
  { tool = "delegate", arguments = { goal = "idle part", worktree = true } },
]
[[reply]]
when = '(?s)alpha is done.*the branch gyrus/\w+ \(1 file changed.*beta is done.*the branch gyrus/\w+.*idle.*as it was, and was removed'
text = "Both are branches."
[[reply]]
goal = "alpha part"
calls = [{ tool = "edit", arguments = { path = "kept.txt", old_text = "as it was", new_text = "by alpha" } }]
[[reply]]
goal = "alpha part"
calls = [{ tool = "read", arguments = { path = "kept.txt" } }]
[[reply]]
goal = "alpha part"
text = "alpha is done"
[[reply]]
goal = "beta part"
calls = [{ tool = "shell", arguments = { command = "echo by beta > kept.txt" } }]
[[reply]]
goal = "beta part"
text = "beta is done"
[[reply]]
goal = "idle part"
text = "idle is done"
"#;
    let script = script.replacen(
        r#"calls = [{ tool = "edit""#,
        r#"calls = [{ tool = "read", arguments = { path = "kept.txt" } }, { tool = "edit""#,
        1,
    );
    let world = World::new(&script);
    repository(&world);
    world.gyrus(&run(&[])).exits(0);
    assert_eq!(world.file("kept.txt"), "as it was\n");
    let branches = git(
        &world,
        &["branch", "--list", "gyrus/*", "--format=%(refname:short)"],
    );
    let branches: Vec<&str> = branches.lines().collect();
    assert_eq!(branches.len(), 2);
    let mut contents: Vec<String> = branches
        .iter()
        .map(|branch| git(&world, &["show", &format!("{branch}:kept.txt")]))
        .collect();
    contents.sort();
    assert_eq!(contents, ["by alpha\n", "by beta\n"]);
    assert!(!world.path("work.gyrus").exists());
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
    world.replays();
}

#[test]
fn a_whole_run_works_in_a_work_tree_if_it_is_to() {
    let script = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo new > new.txt; until [ -e go ]; do sleep 0.01; done" } }]
[[reply]]
repeat = 2
text = "It is new."
"#;
    let world = World::new(script);
    world
        .gyrus(&run(&["--worktree"]))
        .exits(2)
        .says("is in no git repository");
    repository(&world);
    let running = world.start(&run(&["--worktree"]));
    world.wait_for_layer("new.txt");
    let listed = git(&world, &["worktree", "list"]);
    let tree = listed
        .lines()
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    world.gyrus(&["stop", "last", "--anywhere"]).exits(0);
    assert_eq!(running.end().code, Some(4));
    fs::write(PathBuf::from(&tree).join("go"), "").unwrap();
    let ended = world
        .gyrus(&["resume", "last", "--anywhere", "--approve", "auto"])
        .exits(4);
    assert!(
        ended.err.contains("its changes are the branch gyrus/"),
        "{ended:#?}"
    );
    assert!(!PathBuf::from(&tree).exists() && !world.work().join("new.txt").exists());
    let branch = git(
        &world,
        &["branch", "--list", "gyrus/*", "--format=%(refname:short)"],
    );
    git(&world, &["merge", "--quiet", branch.trim()]);
    assert!(world.work().join("new.txt").exists());
}

#[test]
fn a_work_tree_is_brought_back_without_its_programs_and_stays_if_something_would_be_lost() {
    let parts = [
        (
            "filtered",
            "echo 'touch ../../escaped; cat' > clean.sh; echo by run > kept.txt",
            "is the branch",
        ),
        (
            "nested",
            "mkdir sub; cd sub; git init -q; echo precious > p.txt; git add .; git -c user.name=a -c \
             user.email=a@b commit -qm x",
            "`sub` in it is not in the branch",
        ),
        (
            "hidden",
            "echo '*' > .gitignore; echo precious > p.txt",
            "`p.txt` in it is not in the branch",
        ),
        (
            "cached",
            "mkdir cache; echo '*' > cache/.gitignore; echo x > cache/x; echo y > y",
            "is the branch",
        ),
    ];
    let replies = parts.map(|(goal, command, _)| {
        format!(
            "[[reply]]\ngoal = '{goal}'\ncalls = [{{ tool = \"shell\", arguments = {{ command = \"{command}\" \
             }} }}]\n[[reply]]\ngoal = '{goal}'\nrepeat = 2\ntext = \"Done.\"\n"
        )
    });
    let world = World::new(&replies.concat());
    fs::write(world.work().join("clean.sh"), "cat\n").unwrap();
    fs::write(world.work().join(".gitattributes"), "*.txt filter=f\n").unwrap();
    repository(&world);
    git(&world, &["config", "filter.f.clean", "sh ./clean.sh"]);
    for (goal, _, end) in parts {
        let end = end.replace("is the branch", "its changes are the branch");
        let arguments = [
            "run",
            goal,
            "--workdir",
            ".",
            "--approve",
            "auto",
            "--worktree",
        ];
        world.gyrus(&arguments).exits(0).says(&end);
    }
    assert!(!world.path("escaped").exists());
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 3);
}
