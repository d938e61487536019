//! Many files at once: real files, real commands, a person's word on them, a scripted model.

use std::{collections::BTreeMap, fs, path::Path};

use gyrus_contract::Strength;
use gyrus_kernel::{Ending, Entry};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    journal::{self, ending, entries, facts},
    support::{Said, World},
};

pub(crate) const GOAL: &str = "call Point Vertex everywhere";

/// Reply of the model when the run is over.
const LEARNED: &str = "[[reply]]\npurpose = \"reflect\"\n\
                       text = '{\"worked\": \"Every shape names its corner type once.\", \
                       \"did_not\": \"The shape module was missed at first.\"}'\n";

pub(crate) const PARKED: [&str; 2] = ["--on-ask", "park"];

/// Modules of the crate beside its root.
pub(crate) const SHAPES: usize = 12;

pub(crate) fn turn(tool: &str, arguments: &Value, keys: &str) -> String {
    format!(
        "[[reply]]\npurpose = \"plan\"\ntext = \"Now {tool}.\"\n{keys}\n\
         calls = [{{ tool = \"{tool}\", arguments = '''{arguments}''' }}]\n"
    )
}

pub(crate) fn propose(changes: &[Value], keys: &str) -> String {
    let arguments = json!({"summary": "Point is called Vertex.", "changes": changes});
    turn("propose_changeset", &arguments, keys)
}

pub(crate) fn edit(path: &str, old: &str, new: &str) -> Value {
    let edits = json!([{"old": old, "new": new}]);
    json!({"path": path, "reason": format!("{path} names it"), "edits": edits})
}

pub(crate) fn shape(number: usize) -> String {
    format!("src/shape_{number}.rs")
}

/// The whole change: the type, and every shape but those left out.
pub(crate) fn renames(leaves_out: &[usize]) -> Vec<Value> {
    let shapes = (0..SHAPES).filter(|number| !leaves_out.contains(number));
    let shapes = shapes.map(|number| edit(&shape(number), "Point {", "Vertex {"));
    let mut changes = vec![edit("src/lib.rs", "struct Point", "struct Vertex")];
    changes.extend(shapes.map(|mut change| {
        let uses = json!({"old": "crate::Point;", "new": "crate::Vertex;"});
        change["edits"].as_array_mut().unwrap().push(uses);
        change
    }));
    changes
}

/// A crate of real modules, in which one type is named everywhere.
fn a_crate(work: &Path) {
    let write = |name: &str, text: &str| {
        let path = work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let modules = (0..SHAPES).map(|number| format!("pub mod shape_{number};\n"));
    let modules: String = modules.collect();
    let point = "\n#[derive(Debug)]\npub struct Point {\n    pub x: f64,\n}\n";
    write("src/lib.rs", &format!("{modules}{point}"));
    for number in 0..SHAPES {
        let between = "// Far from what stands above.\n".repeat(8);
        let body = format!(
            "//! A shape with a corner.\n\nuse crate::Point;\n\n{between}/// Its corner.\npub fn \
             corner() -> f64 {{\n    let first = Point {{ x: {number}.0 }};\n    first.x\n}}\n"
        );
        write(&shape(number), &body);
    }
    write("AGENTS.md", "Names are English. Never touch `vendored/`.\n");
    write("notes/lunch.txt", "soup on Mondays\n");
}

/// A world with that crate.
pub(crate) fn world(script: &[String]) -> World {
    let world = World::new(&format!("{}{LEARNED}", script.concat()));
    a_crate(&world.work());
    world
}

/// A command that says whether the crate compiles, and leaves nothing behind.
const COMPILES: &str = "rustc --edition 2021 --crate-type lib --emit metadata \
                        -o \"${TMPDIR:-/tmp}/checked.rmeta\" src/lib.rs";

pub(crate) fn run(world: &World, more: &[&str]) -> Said {
    let arguments = [
        "run",
        GOAL,
        "--loop",
        "changeset",
        "--approve",
        "auto",
        "--workdir",
        ".",
    ];
    world.with_compiler(&[&arguments[..], more].concat())
}

pub(crate) fn resume(world: &World) -> Said {
    world.with_compiler(&["resume", "last", "--on-ask", "park"])
}

/// The events that the run went through, with who decided; it is back where it began.
pub(crate) fn events(world: &World) -> Vec<String> {
    let steps = facts(world, "changeset.state");
    let mut at = json!("IDLE");
    for step in &steps {
        assert_eq!(step["from"], at, "{steps:#?}");
        at = step["to"].clone();
    }
    let over = entries(world)
        .iter()
        .any(|entry| matches!(entry, Entry::RunEnded(_)));
    assert!(!over || at == "IDLE", "it ended in {at}");
    let word = |step: &Value| {
        let event = step["event"].as_str().unwrap().to_owned();
        match step["by"].as_str() {
            Some(by) => format!("{event} ({by})"),
            None => event,
        }
    };
    steps.iter().map(word).collect()
}

/// The text of the open card.
pub(crate) fn asked(world: &World) -> String {
    let asked = entries(world)
        .into_iter()
        .rev()
        .find_map(|entry| match entry {
            Entry::ApprovalAsked(asked) => asked.card.edit,
            _ => None,
        });
    asked.expect("it asks")
}

/// Every file below a folder, by name.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path)
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Approves the open card with another text.
pub(crate) fn approve_as(world: &World, text: &str) {
    let edited = world.path("edited.txt");
    fs::write(&edited, text).unwrap();
    let file = edited.to_str().unwrap();
    world.gyrus(&["approve", "last", "--edited", file]).exits(0);
}

/// The parts of a diff, one a file.
pub(crate) fn by_file(diff: &str) -> Vec<String> {
    let parts = diff.split("\n\n").skip(1);
    parts.map(|part| format!("{}\n", part.trim_end())).collect()
}

/// The path that a part of a diff is about.
pub(crate) fn path_of(part: &str) -> String {
    let header = part.lines().find(|line| line.starts_with("diff --git"));
    gyrus_contract::path_of_header(header.unwrap()).unwrap()
}

const UNASKED: [&str; 6] = [
    "start",
    "context:ready",
    "user:approve:context (configuration)",
    "proposal:ready",
    "user:approve:proposal (configuration)",
    "applied",
];

/// More files than are read at once.
#[test]
fn a_hundred_files_are_read_and_changed() {
    let file = |number: usize| format!("notes/{number}.txt");
    let changes = (0..100).map(|number| edit(&file(number), "Point", "Vertex"));
    let changes: Vec<_> = changes.collect();
    let world = World::new(&format!("{}{LEARNED}", propose(&changes, "")));
    fs::create_dir(world.work().join("notes")).unwrap();
    for number in 0..100 {
        fs::write(world.work().join(file(number)), "a Point\n").unwrap();
    }
    run(&world, &["--review", "none"])
        .exits(0)
        .says("read 100 files");
    assert_eq!(world.file("notes/99.txt"), "a Vertex\n");
    world.replays();
}

#[test]
fn the_journal_of_a_small_changeset() {
    let changes = [
        json!({"path": "notes/dinner.txt", "reason": "it is asked for", "content": "bread\n"}),
        edit("notes/lunch.txt", "soup", "stew"),
    ];
    let world = World::new(&format!("{}{LEARNED}", propose(&changes, "")));
    fs::create_dir(world.work().join("notes")).unwrap();
    fs::write(world.work().join("notes/lunch.txt"), "soup on Mondays\n").unwrap();
    fs::write(world.work().join("AGENTS.md"), "Names are English.\n").unwrap();
    let more = [
        "--review",
        "none",
        "--verify",
        "grep -q stew notes/lunch.txt",
    ];
    let said = run(&world, &more).exits(0);
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · changeset · script/scripted · [folder]/work
    · CURATING_CONTEXT: looking for the files that the goal is about
    · AWAITING_CONTEXT_APPROVAL: 1 file (about 5 tokens)
    · PLANNING_WITH_CONTEXT: nobody is asked about them (configuration)
    · read 1 file (about 7 tokens)
    → read_journal call Point Vertex everywhere
    ← (no run in this folder has ended before this one)
    • Now propose_changeset.
    → propose_changeset changes=(2 files) summary=Point is called Vertex.
    · AWAITING_PROPOSAL_APPROVAL: 2 files: 1 new: Point is called Vertex.
    · APPLYING_CHANGESET: nobody is asked about it (configuration)
    ← a patch:
      # Point is called Vertex.
      
      # it is asked for
      diff --git a/notes/dinner.txt b/notes/dinner.txt
      new file mode 100644
      --- /dev/null
      +++ b/notes/dinner.txt
      @@ -0,0 +1,1 @@
      +bread
      
      # notes/lunch.txt names it
      # made for a513c567c1c72e25cf1d49e89fb3723e
      diff --git a/notes/lunch.txt b/notes/lunch.txt
      --- a/notes/lunch.txt
      +++ b/notes/lunch.txt
      @@ -1,1 +1,1 @@
      -soup on Mondays
      +stew on Mondays
    → apply_changeset changes=(2 files) verify=grep -q stew notes/lunch.txt
    ← applied: 1 created, 1 replaced, 0 deleted
      verified:
      (no output)
      [exit code 0]
    · IDLE: applied: 1 created, 1 replaced, 0 deleted
    • what worked: Every shape names its corner type once.
      what did not: The shape module was missed at first.
    ■ reached: the checks passed · 2 steps · [n] tokens · [time]
      evidence: applied: 1 created, 1 replaced, 0 deleted (2.6)
      evidence: `grep -q stew notes/lunch.txt` succeeded afterwards (2.6)
      changed: notes/dinner.txt, notes/lunch.txt; gyrus diff, gyrus undo
    ");
    insta::assert_snapshot!(journal::lines(&world), @r"
    run.started
    workspace.recorded
    1.1 changeset.state looking for the files that the goal is about
    1.2 tool.call rank_files
    1.2 gate.verdict Allow
    1.2 tool.started
    1.2 tool.result
    1.3 changeset.state 1 file (about 5 tokens)
    1.4 changeset.state nobody is asked about them
    1.5 branches.started 1 at once
    1.5.1.1 tool.call read
    1.5.1.1 gate.verdict Allow
    1.5.1.1 tool.started
    1.5.1.1 tool.result
    1.6 changeset.context 1 file (about 7 tokens)
    1.7 tool.call read_journal
    1.7 gate.verdict Allow
    1.7 tool.started
    1.7 tool.result
    cycle.ended
    2.1 model.call Plan
    2.1 model.reply
    2.2 thought Now propose_changeset.
    2.3 tool.call propose_changeset
    2.3 gate.verdict Allow
    2.3 tool.started
    2.3 tool.result
    2.4 changeset.state 2 files: 1 new: Point is called Vertex.
    2.5 changeset.state nobody is asked about it
    2.6 tool.call apply_changeset
    2.6 gate.verdict Allow
    2.6 tool.started
    2.6 tool.result
    2.7 changeset.state applied: 1 created, 1 replaced, 0 deleted
    2.8 model.call Reflect
    2.8 model.reply
    2.9 changeset.reflection
    cycle.ended
    run.ended
    ");
}

#[test]
fn a_refactoring_of_many_files_is_applied_verified_and_undone() {
    let look = turn("search", &json!({"pattern": "Point", "path": "src"}), "");
    let world = world(&[look, propose(&renames(&[]), "")]);
    let before = tree(&world.work());
    let arguments = [
        "--review",
        "none",
        "--verify",
        COMPILES,
        "--require",
        "checked",
    ];
    let said = run(&world, &arguments).exits(0);
    assert!(
        said.out.starts_with("Point is called Vertex."),
        "{}",
        said.out
    );
    assert_eq!(events(&world), UNASKED);
    for number in 0..SHAPES {
        let text = world.file(&shape(number));
        assert!(
            text.contains("Vertex {") && !text.contains("Point"),
            "{text}"
        );
    }
    let Ending::Reached { strength, claim } = ending(&world) else {
        panic!("{:?}", ending(&world));
    };
    assert_eq!(strength, Strength::Checked);
    assert!(claim.evidence[1].what.contains("rustc"), "{claim:?}");
    world.replays();
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(tree(&world.work()), before);
}

/// Between the proposal and the yes the person changes a file themselves.
#[test]
fn a_file_that_changed_meanwhile_is_a_conflict() {
    let again = propose(
        &renames(&[]),
        r"find = { conflict = '(changed meanwhile)', now = '(// by hand)' }",
    );
    let world = world(&[propose(&renames(&[]), ""), again]);
    run(&world, &[&PARKED[..], &["--review", "proposal"]].concat()).exits(5);
    let by_hand = format!("{}// by hand\n", world.file(&shape(7)));
    fs::write(world.work().join(shape(7)), &by_hand).unwrap();
    let before = tree(&world.work());
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world).exits(5).says("was changed meanwhile");
    assert_eq!(tree(&world.work()), before, "something was applied");
    assert_eq!(
        events(&world)[5..],
        [
            "failed",
            "start",
            "context:ready",
            "user:approve:context (approved before)",
            "proposal:ready"
        ]
    );
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world).exits(0);
    assert!(
        world.file(&shape(7)).contains("Vertex {") && world.file(&shape(7)).contains("by hand")
    );
    let learned = &facts(&world, "changeset.reflection")[0];
    assert_eq!(learned["outcome"], "applied");
    assert_eq!(learned["goal"], GOAL);
    world.replays();
}

#[test]
fn what_does_not_compile_is_taken_back_and_mended() {
    let mended = propose(
        &renames(&[]),
        r"find = { why = '(E0432|unresolved import)' }",
    );
    let world = world(&[propose(&renames(&[4]), ""), mended]);
    let before = tree(&world.work());
    // The command leaves word of what it saw, outside of the tree that is compared.
    let said = run(&world, &["--review", "none", "--verify", COMPILES]).exits(0);
    assert!(
        said.err.contains("the verify command failed"),
        "{}",
        said.err
    );
    assert_eq!(events(&world)[5], "failed");
    let steps = facts(&world, "changeset.state");
    let why = steps[5]["last_error"].as_str().unwrap();
    assert!(
        why.contains("all files of the changeset are as they were before"),
        "{why}"
    );
    assert!(world.file(&shape(4)).contains("Vertex {"));
    world.replays();
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(tree(&world.work()), before);
}

#[test]
fn after_three_retries_it_fails_with_the_last_reason_and_the_tree_as_before() {
    let again = || propose(&renames(&[]), "");
    let world = world(&[again(), again(), again(), again()]);
    let before = tree(&world.work());
    let said = run(
        &world,
        &[
            "--review",
            "none",
            "--verify",
            "echo 'not on Mondays'; false",
        ],
    );
    said.exits(1)
        .says("4 changesets could not be applied")
        .says("not on Mondays");
    assert_eq!(tree(&world.work()), before);
    assert_eq!(
        events(&world)
            .iter()
            .filter(|event| *event == "failed")
            .count(),
        4
    );
    assert_eq!(
        facts(&world, "changeset.reflection")[0]["outcome"],
        "failed"
    );
    world.replays();
}

/// The list of files is a text; what cannot be read comes back.
#[test]
fn guidelines_are_read_and_nothing_is_changed_while_planning() {
    let write = json!({"path": "early", "content": "x"});
    let shell = json!({"command": "touch early"});
    let apply = json!({"changes": [{"path": "early", "content": "x"}]});
    let refused = |name: &str| format!("when = '`{name}` cannot be used in this phase'");
    let world = world(&[
        turn(
            "write",
            &write,
            r"find = { guide = '(a guideline of this project\. [\s\S]*Never touch `vendored/`)' }",
        ),
        turn("shell", &shell, &refused("write")),
        turn("apply_changeset", &apply, &refused("shell")),
        propose(&renames(&[]), &refused("apply_changeset")),
    ]);
    run(&world, &["--review", "none"]).exits(0);
    assert!(!world.work().join("early").exists());
}

#[test]
fn a_wrong_proposal_is_mended_by_the_model() {
    let wrong = [
        edit("src/lib.rs", "struct Pint", "struct Vertex"),
        edit("src/nowhere.rs", "a", "b"),
    ];
    let mended = propose(&renames(&[]), r"when = 'src/lib\.rs[\s\S]*src/nowhere\.rs'");
    let world = world(&[propose(&wrong, ""), mended]);
    run(&world, &["--review", "none"]).exits(0);
    assert_eq!(events(&world), UNASKED);
}

#[test]
fn later_runs_hear_what_was_learned() {
    let world = world(&[propose(&renames(&[]), "")]);
    run(&world, &["--review", "none"])
        .exits(0)
        .says("what worked: Every shape names");
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    let knows = r"find = { worked = '(what worked: Every shape names its corner type once)', not = '(what did not: The shape module)' }";
    let script = format!("{}{LEARNED}", propose(&renames(&[]), knows));
    fs::write(world.path("script.toml"), script).unwrap();
    run(&world, &["--review", "none"]).exits(0);
}

#[test]
fn a_model_may_say_that_there_is_nothing_to_propose() {
    for (reached, code) in [(true, 0), (false, 1)] {
        let says = turn(
            "finish",
            &json!({"reached": reached, "answer": "As it is."}),
            "",
        );
        let world = world(&[says]);
        let said = run(&world, &["--review", "none"]).exits(code);
        assert!(format!("{said:?}").contains("As it is."), "{said:?}");
        assert_eq!(events(&world)[3..], ["abort"]);
        assert!(facts(&world, "changeset.reflection").is_empty());
    }
}

/// Findings of an outer check go back, and another changeset is made.
#[test]
fn checks_stand_around_it() {
    let news = json!({"path": "NEWS.md", "reason": "checked for", "content": "Vertex\n"});
    let second = propose(&[news], "find = { why = '(These checks failed)' }");
    let world = world(&[propose(&renames(&[]), ""), second]);
    let arguments = ["--review", "none", "--check", "test -s NEWS.md"];
    run(&world, &arguments).exits(0);
    assert_eq!(
        events(&world)
            .iter()
            .filter(|event| *event == "applied")
            .count(),
        2
    );
    // What was learned is said once, at the end.
    assert_eq!(facts(&world, "changeset.reflection").len(), 1);
    world.replays();
}

#[test]
fn a_flag_chooses_the_loop_and_contradictions_are_named() {
    let auto = |world: &World, more: &[&str]| {
        let arguments = ["run", GOAL, "--approve", "auto", "--workdir", "."];
        world.gyrus(&[&arguments, more].concat())
    };
    for (flags, flag) in [
        (["--review", "context"], "--review context"),
        (["--review", "proposal"], "--review proposal"),
        (["--verify", "true"], "--verify"),
    ] {
        let world = world(&[propose(&renames(&[]), "")]);
        auto(&world, &[&flags[..], &PARKED].concat())
            .exits(5)
            .says(&format!(
                "uses the loop `changeset`, because {flag} asks for a changeset"
            ));
    }
    let world = world(&[]);
    for (flags, words) in [
        (
            &["--review", "proposal", "--loop", "react"][..],
            "--review proposal is for changesets",
        ),
        (
            &["--verify", "true", "--loop", "plan"],
            "--verify is for changesets",
        ),
        (
            &["--review", "plan", "--loop", "changeset"],
            "--review plan needs a plan",
        ),
        (
            &["--on-failure", "stop", "--loop", "changeset"],
            "--on-failure needs a plan",
        ),
        (&["--review", "plan,proposal"], "leave one of the two out"),
        (
            &["--verify", "true", "--judge", "true"],
            "leave one of the two out",
        ),
        (
            &["--verify", "true", "--url", "https://example.com"],
            "leave one of the two out",
        ),
        (&["--review", "none,context"], "--review none shows nothing"),
        (
            &["--docs", "docs", "--loop", "changeset"],
            "--docs is for work that a judge",
        ),
    ] {
        auto(&world, flags).exits(2).says(words);
    }
    assert!(world.runs().is_empty());
}

/// No other loop has these tools.
#[test]
fn other_loops_have_no_changesets() {
    let calls = "[[reply]]\ntext = \"?\"\ncalls = [{ tool = \"apply_changeset\", arguments = { changes = [] } }]\n\
                 [[reply]]\nwhen = 'no tool'\ntext = \"!\"\ncalls = [{ tool = \"finish\", arguments = { reached = false, answer = \"none\" } }]\n";
    let world = World::new(calls);
    world.run(&["--loop", "react"]).exits(1);
}

/// Says that it began, and lasts until there is a file `notes/go`.
const LASTING: &str = "echo begun > begun.txt; until [ -e notes/go ]; do sleep 0.01; done";

/// Cut off while the verify command runs: by a person once and for all, or by a kill. The next
/// process begins with the tree as it was, and comes to the end.
#[test]
fn cut_off_in_the_middle_of_applying_the_tree_is_whole() {
    for how in ["Ctrl-C twice", "stop", "kill"] {
        let again = || propose(&renames(&[]), "");
        let world = world(&[again(), again()]);
        let mut before = tree(&world.work());
        let is_as_before = || assert_eq!(tree(&world.work()), before, "{how}");
        let place = ["run", GOAL, "--approve", "auto", "--workdir", "."];
        let review = ["--review", "none", "--verify", LASTING];
        let arguments = [&place[..], &review, &["--loop", "changeset"]].concat();
        let mut running = world.start(&arguments);
        world.wait_for_layer("begun.txt");
        assert!(world.file(&shape(7)).contains("Vertex {"), "{how}");
        match how {
            "kill" => {
                running.signal(Signal::KILL);
                running.end();
            }
            "stop" => {
                world.gyrus(&["stop", "last"]).exits(0);
                let said = running.end().exits(4);
                said.says("IDLE: the run stopped in APPLYING_CHANGESET");
                is_as_before();
            }
            _ => {
                running.signal(Signal::INT);
                running.hears("finishing what is in progress");
                running.signal(Signal::INT);
                let said = running.end().exits(130);
                said.says("IDLE: the run stopped in APPLYING_CHANGESET");
                is_as_before();
            }
        }
        fs::write(world.work().join("notes/go"), "").unwrap();
        world.gyrus(&["resume", "last"]).exits(0);
        assert_eq!(events(&world).last().unwrap(), "applied", "{how}");
        let mut after = tree(&world.work());
        assert_eq!(after.remove("notes/go"), Some(Vec::new()), "{how}");
        before.insert("begun.txt".to_owned(), b"begun\n".to_vec());
        let names = |tree: &BTreeMap<String, Vec<u8>>| tree.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&before), "{how}");
        assert!(world.file("src/lib.rs").contains("Vertex"), "{how}");
        world.replays();
    }
}

/// A stop while a card is open ends nothing for good: the same card is there when the run goes on.
#[test]
fn a_stopped_run_goes_on_in_the_state_that_it_was_in() {
    let world = world(&[propose(&renames(&[]), "")]);
    let arguments = [
        "run",
        GOAL,
        "--approve",
        "auto",
        "--workdir",
        ".",
        "--review",
        "proposal",
        "--on-ask",
        "wait",
    ];
    let running = world.start(&arguments);
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    world.gyrus(&["stop", "last"]).exits(0);
    let state = "AWAITING_PROPOSAL_APPROVAL";
    let said = running.end().exits(4);
    said.says(&format!("IDLE: the run stopped in {state}"));
    let said = resume(&world)
        .exits(5)
        .says(&format!("{state}: taken up again"));
    assert!(
        !said.err.contains("IDLE"),
        "it waits in that state: {said:?}"
    );
    assert_eq!(events(&world)[3..], ["proposal:ready"]);
    world.gyrus(&["approve", "last"]).exits(0);
    resume(&world).exits(0);
    assert_eq!(
        events(&world)[4..],
        ["user:approve:proposal (tester)", "applied"]
    );
    world.replays();
}

/// A limit and a model that repeats itself leave no changeset in progress, and the run goes on where
/// it was; giving it up ends it there.
#[test]
fn a_limit_and_being_stuck_lead_back_to_idle() {
    let look = "[[reply]]\npurpose = \"plan\"\ntext = \"Again.\"\n\
                calls = [{ tool = \"list\", arguments = { path = \"src\" } }]\n";
    let looks: Vec<_> = std::iter::repeat_n(look.to_owned(), 12).collect();
    let idle = "IDLE: the run stopped in PLANNING_WITH_CONTEXT";
    let world = world(&looks);
    let limited = run(&world, &["--review", "none", "--max-steps", "2"]).exits(3);
    limited.says(idle);
    let resumed = world
        .gyrus(&["resume", "last", "--max-steps", "50"])
        .exits(6);
    let resumed = resumed
        .says("PLANNING_WITH_CONTEXT: taken up again")
        .says(idle);
    assert!(!resumed.err.contains("CURATING_CONTEXT"), "{}", resumed.err);
    world.gyrus(&["abandon", "last"]).exits(0);
    let shown = world.gyrus(&["show", "last"]).exits(0).out;
    assert_eq!(shown.matches("IDLE: the run stopped").count(), 2, "{shown}");
}

/// Writes over a file of the changeset and beside it, removes a file, and succeeds when shape 4 is
/// renamed as well.
const WRITES: &str = "echo formatted > src/lib.rs; echo x > new.txt; mkdir made; echo y > made/y; \
                      rm notes/lunch.txt; grep -q Vertex src/shape_4.rs";

/// A verify command fails, and what it wrote goes with the changeset; it succeeds, and that stays with
/// it.
#[test]
fn what_a_failing_verify_command_wrote_is_put_back() {
    let again = || propose(&renames(&[4]), "");
    let world = world(&[again(), again(), again(), again()]);
    let before = tree(&world.work());
    let said = run(&world, &["--review", "none", "--verify", WRITES]).exits(1);
    let whole = "all files of the changeset are as they were before\n";
    assert!(said.err.contains(whole), "{}", said.err);
    assert_eq!(tree(&world.work()), before);
    world.replays();

    let world = self::world(&[again(), propose(&renames(&[]), "")]);
    run(&world, &["--review", "none", "--verify", WRITES]).exits(0);
    assert_eq!(world.file("src/lib.rs"), "formatted\n");
    assert_eq!(world.file("made/y"), "y\n");
    assert!(!world.work().join("notes/lunch.txt").exists());
    world.replays();
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(tree(&world.work()), before);
}

/// A person writes while the verify command runs: that stays theirs, and is named.
#[test]
fn what_a_person_writes_during_a_failing_verify_command_is_kept() {
    let lasts = "echo x > new.txt; until grep -q go notes/lunch.txt; do sleep 0.01; done; false";
    let gives_up = turn("finish", &json!({"reached": false, "answer": "no"}), "");
    let world = world(&[propose(&renames(&[]), ""), gives_up]);
    let mut before = tree(&world.work());
    let place = ["run", GOAL, "--approve", "auto", "--workdir", "."];
    let review = ["--review", "none", "--verify", lasts];
    let running = world.start(&[&place[..], &review].concat());
    world.wait_for_layer("new.txt");
    fs::write(world.work().join(shape(7)), "mine\n").unwrap();
    fs::write(world.work().join("notes/lunch.txt"), "go out\n").unwrap();
    let said = running.end().exits(1);
    let kept = "what was written over them meanwhile is in `.gyrus-kept-1`\n";
    assert!(said.err.contains(kept), "{}", said.err);
    let mut after = tree(&world.work());
    after.retain(|name, content| !(name.starts_with(".gyrus-kept-1/") && content == b"mine\n"));
    before.insert("notes/lunch.txt".to_owned(), b"go out\n".to_vec());
    assert_eq!(after, before);
}
