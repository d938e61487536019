//! A plan is made, checked and carried out: real files, real commands, a scripted model.

use std::{fs, os::unix::fs::PermissionsExt};

use gyrus_kernel::Entry;
use serde_json::{Value, json};

use crate::{
    journal::{self, facts},
    support::World,
};

pub(crate) const GOAL: &str = "bring the notes into order";

/// A step; `after` names those that it depends on.
pub(crate) fn step(id: &str, tool: &str, input: Value, after: &[&str]) -> Value {
    json!({
        "id": id, "tool": tool, "input": input, "reason": format!("because of {id}"),
        "requires_permission": tool == "shell", "expected": "it is done", "depends_on": after,
    })
}

pub(crate) fn write(id: &str, path: &str, content: &str, after: &[&str]) -> Value {
    step(
        id,
        "write",
        json!({"path": path, "content": content}),
        after,
    )
}

pub(crate) fn shell(id: &str, command: &str, after: &[&str]) -> Value {
    step(id, "shell", json!({ "command": command }), after)
}

/// A plan for [`GOAL`], as a model writes it that does as it is told.
pub(crate) fn plan(steps: &[Value]) -> String {
    json!({"goal": GOAL, "steps": steps}).to_string()
}

/// A reply of a script; `keys` are further keys of it.
pub(crate) fn reply(purpose: &str, text: &str, keys: &str) -> String {
    assert!(!text.contains("'''"));
    format!("[[reply]]\npurpose = \"{purpose}\"\n{keys}\ntext = '''{text}'''\n")
}

pub(crate) fn summary(words: &str) -> String {
    let text = json!({"reached": true, "summary": words}).to_string();
    reply("summarise", &text, "")
}

/// A world whose model plans this, and sums up.
pub(crate) fn planned(steps: &[Value]) -> World {
    World::new(&(reply("plan", &plan(steps), "") + &summary("All is in order.")))
}

pub(crate) fn run(world: &World, more: &[&str]) -> crate::support::Said {
    let arguments = [
        "run",
        GOAL,
        "--loop",
        "plan",
        "--workdir",
        ".",
        "--approve",
        "auto",
    ];
    world.gyrus(&[&arguments, more].concat())
}

/// The task's own entries in order, and that there is one end, and last.
pub(crate) fn timeline(world: &World) -> Vec<String> {
    let noted = world.entries().into_iter().filter_map(|entry| match entry {
        Entry::Noted { kind, fact, .. } if kind.starts_with("task.") => {
            let step = fact.fact["step"]
                .as_str()
                .map_or_else(String::new, |id| format!(" {id}"));
            Some(kind + &step)
        }
        _ => None,
    });
    let kinds: Vec<String> = noted.collect();
    let is_end = |kind: &&String| *kind == "task.result" || *kind == "task.error";
    assert_eq!(kinds.iter().filter(is_end).count(), 1, "{kinds:?}");
    assert!(kinds.last().as_ref().is_some_and(is_end), "{kinds:?}");
    assert_eq!(kinds[0], "task.request", "{kinds:?}");
    kinds
}

pub(crate) fn started(world: &World) -> usize {
    let entries = world.entries();
    let started = entries
        .iter()
        .filter(|entry| matches!(entry, Entry::ToolStarted(_)));
    started.count()
}

#[test]
fn the_journal_of_a_small_plan() {
    let world = planned(&[
        write("1", "notes/index.md", "# Notes\n", &[]),
        step("2", "list", json!({"path": "notes"}), &["1"]),
    ]);
    let said = run(&world, &[]).exits(0);
    assert_eq!(said.out, "All is in order.\n\nFiles: notes/index.md\n");
    assert_eq!(world.file("notes/index.md"), "# Notes\n");
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · plan · script/scripted · [folder]/work
    • the plan: a plan of 2 steps
      1. write: because of 1
      2. list: because of 2
    → write content=# Notes path=notes/index.md
    ← created `notes/index.md` (8 bytes, 1 line)
      diff --git a/notes/index.md b/notes/index.md
      new file mode 100644
      --- /dev/null
      +++ b/notes/index.md
      @@ -0,0 +1,1 @@
      +# Notes
    · step 1 (`write`) worked
    → list notes
    ← index.md  8 bytes
    · step 2 (`list`) worked
    ■ reached, as the model claims · 4 steps · [n] tokens · [time]
      evidence: step 1 (`write`) worked (2.1)
      evidence: step 2 (`list`) worked (3.1)
      changed: notes, notes/index.md; gyrus diff, gyrus undo
    ");
    insta::assert_snapshot!(journal::lines(&world), @r"
    run.started
    workspace.recorded
    1.1 task.request bring the notes into order
    1.2 model.call Plan
    1.2 model.reply
    1.3 gate.foreseen write: allowed, list: allowed
    1.4 task.plan a plan of 2 steps | 1. write: because of 1 | 2. list: because of 2
    cycle.ended
    2.1 tool.call write
    2.1 gate.verdict Allow
    2.1 tool.started
    2.1 tool.result
    2.2 task.step step 1 (`write`) worked
    cycle.ended
    3.1 tool.call list
    3.1 gate.verdict Allow
    3.1 tool.started
    3.1 tool.result
    3.2 task.step step 2 (`list`) worked
    cycle.ended
    4.1 model.call Summarise
    4.1 model.reply
    4.2 task.result All is in order. |  | Files: notes/index.md
    cycle.ended
    run.ended
    ");
    assert_eq!(
        timeline(&world),
        [
            "task.request",
            "task.plan",
            "task.step 1",
            "task.step 2",
            "task.result"
        ]
    );
    let request = &facts(&world, "task.request")[0];
    assert_eq!(request["trust"], "auto");
    assert_eq!(request["text"], GOAL);
    let of_plan = &facts(&world, "task.plan")[0];
    assert_eq!(of_plan["steps"][0]["risk"], "moderate");
    assert_eq!(of_plan["steps"][1]["decision"], "allow");
    assert_eq!(
        facts(&world, "task.result")[0]["artifacts"],
        json!(["notes/index.md"])
    );
    world.replays();
}

/// The events of `--json` are the same entries in the same order.
#[test]
fn programs_follow_the_task() {
    let world = planned(&[write("1", "a", "x\n", &[]), write("2", "b", "y\n", &[])]);
    let said = run(&world, &["--json"]).exits(0);
    let kinds: Vec<String> = said
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|entry| entry["kind"].as_str().map(str::to_owned))
        .filter(|kind| kind.starts_with("task."))
        .collect();
    assert_eq!(
        kinds,
        [
            "task.request",
            "task.plan",
            "task.step",
            "task.step",
            "task.result"
        ]
    );
}

/// Classifies a file of the inbox by its content alone: where it belongs and what it is called.
fn paper(number: usize) -> (String, String) {
    let month = 1 + number % 12;
    match number % 4 {
        0 => (
            format!(
                "ACME Ltd\nInvoice No. {number:04}\nDate: 2025-{month:02}-17\nTotal: {number}.00 EUR\n"
            ),
            format!("invoices/2025-{month:02}/invoice-{number:04}.txt"),
        ),
        1 => (
            format!(
                "Dear Ann,\n\nthis is letter {number}; it mentions an invoice.\n\nYours, Bob\n"
            ),
            format!("letters/f{number:03}.tmp"),
        ),
        2 => (
            format!("2025-{month:02}-01T10:00:00Z ERROR disk {number} is full\n"),
            format!("logs/2025-{month:02}-f{number:03}.log"),
        ),
        _ => (
            format!("{number} potatoes; $(touch pwned)\n"),
            format!("other/f{number:03}.tmp"),
        ),
    }
}

const SORT: &str = r#"#!/bin/sh
set -eu
for file in inbox/*; do
  name=$(basename "$file" .tmp)
  if number=$(sed -n 's/^Invoice No\. //p' "$file") && [ -n "$number" ]; then
    month=$(sed -n 's/^Date: \([0-9]*-[0-9]*\)-.*/\1/p' "$file")
    target="invoices/$month/invoice-$number.txt"
  elif grep -q '^Dear ' "$file"; then
    target="letters/$name.tmp"
  elif grep -Eq '^[0-9]{4}-[0-9]{2}-[0-9]{2}T.* (ERROR|INFO) ' "$file"; then
    target="logs/$(cut -c1-7 "$file")-$name.log"
  else
    target="other/$name.tmp"
  fi
  mkdir -p "$(dirname "$target")"
  mv -n "$file" "$target"
done
rmdir inbox
"#;

#[test]
fn two_hundred_files_are_organised_by_what_is_in_them() {
    let world = planned(&[
        step("look", "list", json!({"path": "inbox"}), &[]),
        write("script", "sort.sh", SORT, &[]),
        shell("sort", "sh sort.sh", &["look"]),
        shell(
            "count",
            "find invoices letters logs other -type f | wc -l",
            &["sort"],
        ),
        write(
            "note",
            "moved.txt",
            "{{count.output}} files, exit code {{count.output.exit_code}}",
            &["count"],
        ),
    ]);
    fs::create_dir(world.work().join("inbox")).unwrap();
    for number in 0..200 {
        let file = world.work().join(format!("inbox/f{number:03}.tmp"));
        fs::write(file, paper(number).0).unwrap();
    }
    let goal = "organise the 200 files in ./inbox by what is in them";
    let script = fs::read_to_string(world.path("script.toml")).unwrap();
    fs::write(world.path("script.toml"), script.replace(GOAL, goal)).unwrap();
    world.gyrus(&["run", goal, "--loop", "plan"]).exits(0);
    for number in 0..200 {
        let (content, place) = paper(number);
        assert_eq!(world.file(&place), content, "{place}");
    }
    assert!(!world.work().join("inbox").exists());
    assert!(!world.work().join("pwned").exists());
    assert_eq!(world.file("moved.txt"), "200 files, exit code 0");
    assert_eq!(facts(&world, "task.step").len(), 5);
    let order = timeline(&world);
    assert_eq!(
        &order[2..4],
        ["task.step look", "task.step script"],
        "{order:?}"
    );
    // The script was not named in `depends_on`: it waits for the file that it runs.
    assert_eq!(order[4], "task.step sort", "{order:?}");
}

/// Each of two commands waits for the other's file, which is where both see it: changes of the
/// folder are a command's own until it has ended.
#[test]
fn steps_that_do_not_depend_on_each_other_run_at_once() {
    let meet =
        |own: &str, other: &str| format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done");
    let world = planned(&[
        shell("1", &meet("/tmp/a", "/tmp/b"), &[]),
        shell("2", &meet("/tmp/b", "/tmp/a"), &[]),
        shell("3", "rm /tmp/a /tmp/b", &["1", "2"]),
    ]);
    run(&world, &[]).exits(0);
    let forms = world.entries().into_iter().filter_map(|entry| match entry {
        Entry::BranchesStarted(started) => Some(started.branches),
        _ => None,
    });
    assert_eq!(forms.collect::<Vec<_>>(), [2]);
    world.replays();
}

#[test]
fn what_a_step_returned_is_data_in_another() {
    let world = planned(&[
        step("1", "read", json!({"path": "found.txt"}), &[]),
        write("2", "copy.txt", "It said: {{1.output}}", &[]),
        write("3", "template.txt", "{{name}} {{ 2.outputs }}", &[]),
    ]);
    fs::write(
        world.work().join("found.txt"),
        "{{3.output}} $(touch pwned)\n",
    )
    .unwrap();
    run(&world, &[]).exits(0);
    let copy = world.file("copy.txt");
    assert_eq!(copy, "It said: {{3.output}} $(touch pwned)");
    assert_eq!(world.file("template.txt"), "{{name}} {{ 2.outputs }}");
    assert!(!world.work().join("pwned").exists());
    // What was judged and called is the filled-in call.
    let called = world.entries().into_iter().find_map(|entry| match entry {
        Entry::ToolCalled(called) if called.call.arguments["path"] == "copy.txt" => {
            Some(called.call.arguments["content"].clone())
        }
        _ => None,
    });
    assert_eq!(called.unwrap(), copy);
}

/// A reference stands for what a step returned, not for the text that a model is shown of it.
#[test]
fn a_reference_is_the_value_that_a_step_returned() {
    let all = "{{lines.output}} {{file.output}} {{found.output}} {{found.output.paths.0}} \
               {{matches.output.lines}}";
    let world = planned(&[
        shell("lines", "wc -l < a.txt", &[]),
        step("file", "read", json!({"path": "a.txt"}), &[]),
        step(
            "found",
            "glob",
            json!({"pattern": "*.txt", "path": "."}),
            &[],
        ),
        step(
            "matches",
            "search",
            json!({"pattern": "o", "path": "."}),
            &[],
        ),
        write("all", "all", all, &[]),
        write("wrong", "wrong", "{{lines.output.stdout}}", &["all"]),
    ]);
    fs::write(world.work().join("a.txt"), "one\n").unwrap();
    run(&world, &[])
        .exits(1)
        .says("step lines returned no `stdout`; its fields are exit_code, text");
    assert_eq!(world.file("all"), "1 one a.txt a.txt 1");
    assert!(!world.work().join("wrong").exists());
    world.replays();
}

#[test]
fn a_failing_step_stops_the_plan() {
    let world = planned(&[
        write("1", "a.txt", "kept\n", &[]),
        shell("2", "echo hopeless; exit 3", &["1"]),
        write("3", "b.txt", "never\n", &["2"]),
    ]);
    let said = run(&world, &[]).exits(1);
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · plan · script/scripted · [folder]/work
    • the plan: a plan of 3 steps
      1. write: because of 1
      2. shell: because of 2
      3. write: because of 3
    → write path=a.txt content=kept
    ← created `a.txt` (5 bytes, 1 line)
      diff --git a/a.txt b/a.txt
      new file mode 100644
      --- /dev/null
      +++ b/a.txt
      @@ -0,0 +1,1 @@
      +kept
    · step 1 (`write`) worked
    → shell echo hopeless; exit 3
    ← failed: hopeless
      [exit code 3]
    · step 2 (`shell`) failed: hopeless [exit code 3]
    the goal was not reached: step 2 (`shell`) failed: hopeless [exit code 3]; done: 1 (`write`); not begun: 3; files: a.txt
      changed: a.txt; gyrus diff, gyrus undo
      see what happened: gyrus show [run]
    ");
    assert_eq!(
        (world.file("a.txt").as_str(), world.file("b.txt").as_str()),
        ("kept\n", "")
    );
    assert_eq!(
        timeline(&world),
        [
            "task.request",
            "task.plan",
            "task.step 1",
            "task.step 2",
            "task.error"
        ]
    );
    let error = &facts(&world, "task.error")[0];
    assert_eq!(error["artifacts"], json!(["a.txt"]));
    assert_eq!(facts(&world, "task.step")[1]["worked"], false);
}

#[test]
fn the_rest_is_planned_anew_if_that_is_wanted() {
    let first = plan(&[
        write("1", "a.txt", "kept\n", &[]),
        shell("2", "cat missing.txt", &["1"]),
        write("3", "b.txt", "never\n", &["2"]),
    ]);
    // An id that was used, then one that is new and may depend on what worked.
    let again = plan(&[write("1", "b.txt", "again\n", &[])]);
    let better = plan(&[write("4", "b.txt", "instead\n", &["1"])]);
    let script = reply("plan", &first, "")
        + &reply(
            "plan",
            &again,
            "find = { failed = 'Step 2 .`shell`. (failed)' }",
        )
        + &reply("plan", &better, "when = 'the id `1` is used twice'")
        + &summary("Done otherwise.");
    let world = World::new(&script);
    run(&world, &["--on-failure", "replan"]).exits(0);
    assert_eq!(world.file("b.txt"), "instead\n");
    assert_eq!(
        timeline(&world),
        [
            "task.request",
            "task.plan",
            "task.step 1",
            "task.step 2",
            "task.plan",
            "task.step 4",
            "task.result"
        ]
    );
}

#[test]
fn planning_anew_has_an_end() {
    let plans =
        (1..=5).map(|id| reply("plan", &plan(&[shell(&id.to_string(), "exit 1", &[])]), ""));
    let world = World::new(&plans.collect::<String>());
    run(&world, &["--on-failure", "replan"])
        .exits(1)
        .says("the rest was planned anew 3 times");
    assert_eq!(facts(&world, "task.plan").len(), 4);
    timeline(&world);
}

/// A check that fails sends the work back: another plan, and still one end.
#[test]
fn a_check_sends_the_work_back_to_another_plan() {
    let script = reply("plan", &plan(&[write("1", "out.txt", "draft\n", &[])]), "")
        + &summary("Done.")
        + &reply(
            "plan",
            &plan(&[write("2", "out.txt", "final\n", &[])]),
            "find = { why = '(These checks failed)' }",
        )
        + &summary("Done now.");
    let world = World::new(&script);
    let more = ["--check", "grep -q final out.txt", "--require", "checked"];
    let said = run(&world, &more).exits(0);
    assert!(said.out.starts_with("Done now."), "{}", said.out);
    assert_eq!(
        timeline(&world),
        [
            "task.request",
            "task.plan",
            "task.step 1",
            "task.plan",
            "task.step 2",
            "task.result"
        ]
    );
    // One that never holds ends in an error, once.
    let plans = (1..=4).map(|id| {
        let write = write(&id.to_string(), "out.txt", "draft\n", &[]);
        reply("plan", &plan(&[write]), "") + &summary("Done.")
    });
    let world = World::new(&plans.collect::<String>());
    run(&world, &more).exits(1);
    assert_eq!(timeline(&world).last().unwrap(), "task.error");
}

#[test]
fn an_honest_no_is_an_error() {
    let no = json!({"reached": false, "summary": "The list is empty."}).to_string();
    let script = reply(
        "plan",
        &plan(&[step("1", "list", json!({"path": "."}), &[])]),
        "",
    ) + &reply("summarise", &no, "");
    let world = World::new(&script);
    run(&world, &[]).exits(1).says("The list is empty.");
    assert_eq!(timeline(&world).last().unwrap(), "task.error");
}

/// Words that do not say whether the goal is reached are asked about once, and are not a claim.
#[test]
fn a_summary_says_whether_the_goal_is_reached() {
    let plan = reply(
        "plan",
        &plan(&[step("1", "list", json!({"path": "."}), &[])]),
        "",
    );
    let prose = reply("summarise", "I have done my best.", "");
    let world = World::new(&(plan.clone() + &prose + &summary("It is empty.")));
    assert_eq!(run(&world, &[]).exits(0).out, "It is empty.\n");
    let quoted = reply("summarise", r#"{"reached": "no", "summary": "x"}"#, "");
    let world = World::new(&(plan + &prose + &quoted));
    run(&world, &[])
        .exits(1)
        .says("the model did not say whether the goal is reached");
    assert_eq!(timeline(&world).last().unwrap(), "task.error");
}

/// The planner is given files, the clipboard, what the session knows, and the trust level.
#[test]
fn the_planner_knows_what_was_given() {
    let steps = [step("1", "list", json!({"path": "."}), &[])];
    let finds = r#"find = { a = 'given.txt. came with the goal(.)', b = '(from the file)', c = '(from the clipboard)', d = 'person.s (clipboard)', e = '(First a file)', f = 'Trust level: .(edits)', g = '(Runs a .bash. command line)' }"#;
    let script = crate::support::THREE_STEPS.to_owned()
        + &reply("plan", &plan(&steps), finds)
        + &summary("ok");
    let world = World::new(&script);
    fs::write(world.path("given.txt"), "from the file\n").unwrap();
    let helpers = world.path("helpers");
    fs::create_dir(&helpers).unwrap();
    let xclip = helpers.join("xclip");
    fs::write(&xclip, "#!/bin/sh\nprintf 'from the clipboard'\n").unwrap();
    fs::set_permissions(&xclip, fs::Permissions::from_mode(0o755)).unwrap();
    world.run(&[]).exits(0);
    let given = world.path("given.txt");
    let arguments = [
        "run",
        GOAL,
        "-c",
        "--loop",
        "plan",
        "--approve",
        "edits",
        "--clipboard",
        "--file",
        given.to_str().unwrap(),
    ];
    let path = format!("{}:{}", helpers.display(), std::env::var("PATH").unwrap());
    let mut command = world.command(&arguments);
    let output = command
        .env("PATH", path)
        .env("DISPLAY", ":0")
        .output()
        .unwrap();
    crate::support::said(output).exits(0);
    world
        .gyrus(&["run", GOAL, "--clipboard"])
        .exits(2)
        .says("there is no desktop");
}

/// Words that come while a step runs are part of the goal: the rest is planned anew.
#[test]
fn what_a_person_adds_is_planned_for() {
    let first = plan(&[
        shell(
            "1",
            "echo begun > ledger.txt; until [ -e go ]; do sleep 0.01; done",
            &[],
        ),
        write("2", "old.txt", "never\n", &["1"]),
    ]);
    let second = plan(&[write("3", "new.txt", "in German\n", &[])]);
    let script = reply("plan", &first, "")
        + &reply("plan", &second, "find = { added = '(auf Deutsch)' }")
        + &summary("ok");
    let world = World::new(&script);
    let running = world.start(&[
        "run",
        GOAL,
        "--loop",
        "plan",
        "--workdir",
        ".",
        "--approve",
        "auto",
    ]);
    world.wait_for_file("ledger.txt", "begun");
    world.gyrus(&["steer", "last", "auf Deutsch"]).exits(0);
    fs::write(world.work().join("go"), "").unwrap();
    running.end().exits(0);
    assert_eq!(
        (
            world.file("old.txt").as_str(),
            world.file("new.txt").as_str()
        ),
        ("", "in German\n")
    );
    timeline(&world);
}

#[test]
fn a_plan_is_forked_after_its_first_steps() {
    let world = planned(&[
        write("1", "a.txt", "one\n", &[]),
        write("2", "b.txt", "two\n", &["1"]),
    ]);
    run(&world, &[]).exits(0);
    let fork = world.path("fork");
    let arguments = [
        "fork",
        "last",
        "--at",
        "2",
        "--workdir",
        fork.to_str().unwrap(),
    ];
    world.gyrus(&arguments).exits(0);
    assert_eq!(fs::read_to_string(fork.join("b.txt")).unwrap(), "two\n");
    world.replays();
}
