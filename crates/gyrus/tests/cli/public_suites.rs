//! Tasks of public suites in their own form, and options that vary, through the whole program: real
//! runs over the wire, real tests, a real server of tools.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use gyrus_player::{Player, Task};
use serde_json::{Value, json};

use crate::support::{Said, THREE_STEPS, World, read, said, works};

/// The beginning of the goal of a customer's run.
const SERVE: &str = "Serve this customer with the tools of the server `tools`, as the policy below says. The \
     customer cannot be asked anything else, and agrees to what the policy needs their consent for.\n\n\
     The customer:\n";

/// Programs that are found here, whatever the home folder is.
const PATH: &str = "/usr/bin:/usr/local/bin:/bin";

fn examples(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/eval");
    examples.join(name).canonicalize().unwrap()
}

fn task(id: &str, goal: &str, does: &str) -> Task {
    let goal = serde_json::to_string(goal).unwrap();
    toml::from_str(&format!("id = \"{id}\"\ngoal = {goal}\ndoes = [{does}]")).unwrap()
}

/// Evaluates a suite by a player of these tasks, and returns the report.
fn play(world: &World, suite: &Path, tasks: Vec<Task>, more: &[&str]) -> (Said, Value) {
    let player = Player::start(tasks).unwrap();
    let (model, folder) = (player.model(), world.path("report"));
    let _ = fs::remove_dir_all(&folder);
    let (suite, report) = (suite.to_str().unwrap(), folder.to_str().unwrap());
    let named = ["--model", &model];
    let named = if more.iter().any(|it| it.contains("model=")) {
        &[]
    } else {
        &named[..]
    };
    let with_model: Vec<String> = more.iter().map(|it| it.replace("MODEL", &model)).collect();
    let with_model = with_model.iter().map(String::as_str);
    let arguments = ["eval", suite, "--jobs", "2", "--report", report];
    let arguments: Vec<&str> = (arguments.into_iter())
        .chain(named.iter().copied())
        .chain(with_model)
        .collect();
    let told = said(
        world
            .command(&arguments)
            .env("PATH", PATH)
            .output()
            .unwrap(),
    );
    let written = fs::read_to_string(folder.join("report.json"));
    let report = written.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
    (told, report)
}

/// Task, whether it passed, whether its claim was false, and the reason, of each attempt.
fn outcomes(report: &Value) -> Vec<(String, bool, bool, String)> {
    let attempts = report["attempts"].as_array().unwrap().iter();
    let outcomes = attempts.map(|it| {
        let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let is = |key: &str| it[key].as_bool().unwrap();
        (text("task"), is("passed"), is("false_claim"), text("why"))
    });
    outcomes.collect()
}

/// The journal of each run as it is written.
fn journals(world: &World) -> Vec<String> {
    let runs = world.runs().into_iter();
    let paths = runs.map(|run| format!("home/journal/runs/{run}/000001.jsonl"));
    paths.map(|path| read(&world.path(&path))).collect()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn task_folders_of_terminal_bench_are_tried_as_they_are() {
    let world = World::new("");
    let suite = examples("terminal-bench");
    let hello = |does: &str| task("hello-world", "Create a file called greeting.txt", does);
    let totals = |does: &str| task("fix-totals", "The script totals.sh prints", does);
    let right = r#"{ shell = "printf 'Hello, world!' > greeting.txt" }, { answer = "done" }"#;
    let fixed = r#"{ shell = "sed -i 's/+3/+2/' src/totals.sh" }, { answer = "done" }"#;
    let others = |does: [&str; 3]| {
        [
            task("word-count", "Count the words of", does[0]),
            task("log-report", "The file ", does[1]),
            task("commit-work", "In the git repository", does[2]),
        ]
    };
    let solved = others([
        r#"{ shell = "wc -w < poem.txt > count.txt" }, { answer = "14" }"#,
        r#"{ shell = "echo '{\"200\": 3, \"404\": 1, \"500\": 1}' > report.json" }, { answer = "done" }"#,
        r#"{ shell = "cd site && sed -i 's/colour/color/' $(git ls-files) && git -c user.name=a -c user.email=a@b commit -qam 'Use one spelling'" }, { answer = "done" }"#,
    ]);
    let tasks = [hello(right), totals(fixed)].into_iter().chain(solved);
    let (told, report) = play(&world, &suite, tasks.collect(), &[]);
    assert_eq!(report["totals"]["passed"], 5, "{told:#?}");
    // Paths of the container stand for places of the folder, in the goal as in the files.
    for journal in journals(&world) {
        let names_container = journal.contains("/app") || journal.contains("/workspace");
        assert!(
            journal.contains("/tmp/gyrus-eval-") && !names_container,
            "{journal}"
        );
    }

    // The tests are out of reach of the run: what it leaves in their place is not asked.
    let cheats = r#"{ shell = "mkdir -p .gyrus-checks; echo 'exit 0' > .gyrus-checks/run-tests.sh; echo 'raise SystemExit' > .gyrus-checks/unittest.py" }, { answer = "done" }"#;
    let changed = r#"{ shell = "echo 'echo 50' > src/totals.sh; echo x > data/sales.csv" }, { answer = "done" }"#;
    let failed = others([
        r#"{ shell = "wc -c < poem.txt > count.txt" }, { answer = "67" }"#,
        r#"{ shell = "echo '{\"200\": 5}' > report.json" }, { answer = "done" }"#,
        r#"{ shell = "cd site && sed -i 's/colour/color/' * && git -c user.name=a -c user.email=a@b commit -qam 'Use one spelling'" }, { answer = "done" }"#,
    ]);
    let tasks = [hello(cheats), totals(changed)].into_iter().chain(failed);
    let (told, report) = play(&world, &suite, tasks.collect(), &[]);
    told.exits(1);
    for (task, passed, lied, why) in outcomes(&report) {
        assert!(!passed && lied, "{task}");
        let expected = match task.as_str() {
            "fix-totals" => "differ",
            "hello-world" => "test_greeting",
            "word-count" => "does not hold 14",
            "log-report" => "test_report",
            _ => "",
        };
        assert!(why.contains(expected), "{task}: {why}");
    }
}

/// A task that needs more of a container than a folder can be is not tried.
#[test]
fn tasks_that_need_more_than_a_folder_are_left_out_with_the_reason() {
    let world = World::new("");
    for (name, file, text) in [
        (
            "outside",
            "Dockerfile",
            "WORKDIR /app\nCOPY task.yaml /etc/passwd\n",
        ),
        (
            "services",
            "docker-compose.yaml",
            "services:\n  a: {image: x}\n  b: {image: y}\n",
        ),
        ("binary", "tests/a.bin", "\u{0}"),
        ("no-tests", "notes.md", ""),
    ] {
        let folder = world.path("suite").join(name);
        write(&folder.join("task.yaml"), "instruction: do it\n");
        if name != "no-tests" {
            write(&folder.join("run-tests.sh"), "true\n");
        }
        write(&folder.join(file), text);
    }
    fs::write(world.path("suite/binary/tests/a.bin"), [0xff, 0xfe, 0]).unwrap();
    let (told, report) = play(&world, &world.path("suite"), Vec::new(), &[]);
    let told = told.exits(0);
    let found: Vec<_> = outcomes(&report)
        .into_iter()
        .map(|(task, .., why)| (task, why))
        .collect();
    for (task, expected) in [
        ("outside", "outside of its working folder"),
        ("services", "several services"),
        ("binary", "is not text"),
        ("no-tests", "has no tests"),
    ] {
        let found = found
            .iter()
            .any(|(name, why)| name == task && why.contains(expected));
        assert!(found, "{task}: {told:#?}");
    }
    // A form that is broken is told before anything begins.
    write(&world.path("suite/no-tests/task.yaml"), "instruction: [\n");
    let suite = world.path("suite");
    let told = world.gyrus(&["eval", suite.to_str().unwrap()]).exits(2);
    assert!(told.err.contains("task.yaml: line"), "{told:#?}");
}

/// A repository whose second commit is the fix of the first.
fn repository(world: &World) -> String {
    let folder = world.path("suite/repos/ada__calc");
    write(
        &folder.join("calc.py"),
        "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n",
    );
    write(
        &folder.join("test_calc.py"),
        "import unittest\n\nfrom calc import double\n\n\nclass CalcTest(unittest.TestCase):\n    \
         def test_double(self):\n        self.assertEqual(double(3), 6)\n",
    );
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "init.defaultBranch=main",
        ]);
        let output = git.args(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    let base = git(&["rev-parse", "HEAD"]);
    let fixed = read(&folder.join("calc.py")).replace("a - b", "a + b");
    fs::write(folder.join("calc.py"), fixed).unwrap();
    git(&["commit", "-q", "-a", "-m", "the secret fix"]);
    base
}

#[test]
fn instances_of_swe_bench_are_tried_from_their_commit_by_their_tests() {
    if !works("git", &["--version"]) {
        return;
    }
    let world = World::new("");
    let base = repository(&world);
    let patch = "--- a/test_calc.py\n+++ b/test_calc.py\n@@ -6,3 +6,6 @@\n class CalcTest(unittest.TestCase):\n     \
                 def test_double(self):\n         self.assertEqual(double(3), 6)\n+\n+    \
                 def test_add(self):\n+        self.assertEqual(__import__(\"calc\").add(2, 3), 5)\n";
    let instance = |id: &str, more: Value| {
        let mut instance = json!({
            "instance_id": id, "repo": "ada/calc", "base_commit": base, "version": "1",
            "problem_statement": "`add` returns the difference of its arguments.",
            "patch": "the fix", "test_patch": patch,
            "FAIL_TO_PASS": "[\"test_calc.CalcTest.test_add\"]",
            "PASS_TO_PASS": ["test_calc.CalcTest.test_double"],
            "test_cmd": "python3 -m unittest",
        });
        let more = more.as_object().unwrap().clone();
        instance.as_object_mut().unwrap().extend(more);
        instance
    };
    let lines = [
        instance("ada__calc-1", json!({})),
        instance(
            "ada__calc-2",
            json!({"problem_statement": "`add` does not add."}),
        ),
        instance("ada__gone-3", json!({"repo": "ada/gone"})),
        instance(
            "ada__calc-4",
            json!({"problem_statement": "Sums are wrong.", "FAIL_TO_PASS": ["test_calc.CalcTest.test_add"]}),
        ),
        instance(
            "ada__calc-5",
            json!({"problem_statement": "Minus stands where plus belongs.", "PASS_TO_PASS": "[]"}),
        ),
        instance(
            "ada__calc-6",
            json!({"problem_statement": "Nothing needs to be done, does it?"}),
        ),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    let suite = world.path("suite/instances.jsonl");
    fs::write(&suite, lines).unwrap();
    let does = [
        r#"{ shell = "sed -i 's/a - b/a + b/' calc.py" }, { answer = "fixed" }"#,
        r#"{ shell = "sed -i 's/a - b/5/; s/a \\* 2/7/' calc.py; git log --all --oneline; echo junk > test_calc.py" }, { answer = "fixed" }"#,
    ];
    let tasks = vec![
        task("1", "`add` returns the difference", does[0]),
        task("2", "`add` does not add", does[1]),
        task("4", "Sums are wrong", does[0]),
        task("5", "Minus stands where", does[0]),
        task("6", "Nothing needs to be done", r#"{ answer = "nothing" }"#),
    ];
    let (told, report) = play(&world, &suite, tasks, &[]);
    let told = told.exits(1);
    let found = outcomes(&report);
    assert!(found[0].1, "{told:#?}");
    // What passed before must still pass, and the history ends at the commit.
    assert!(
        !found[1].1 && found[1].2 && found[1].3.contains("test_double"),
        "{told:#?}"
    );
    assert!(found[2].3.contains("needs a clone"), "{told:#?}");
    assert!(found[3].1 && found[4].1 && !found[5].1, "{told:#?}");
    let secret = journals(&world)
        .iter()
        .any(|journal| journal.contains("the secret fix"));
    assert!(!secret, "the later commit is not there to be read");

    for (more, expected) in [
        (
            json!({"base_commit": "--upload-pack=x"}),
            "is not the id of a commit",
        ),
        (json!({"FAIL_TO_PASS": "[]"}), "names no test"),
        (json!({"FAIL_TO_PASS": "test_add"}), "instances.jsonl"),
        (json!({"repo": "../.."}), "needs a clone"),
    ] {
        fs::write(&suite, instance("x", more).to_string()).unwrap();
        let (told, _) = play(&world, &suite, Vec::new(), &[]);
        let text = format!("{}{}", told.out, told.err);
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(expected), "{told:#?}");
    }
}

#[test]
fn customers_are_served_by_a_server_of_tools_and_its_data_are_compared() {
    let world = World::new("");
    let suite = examples("tau");
    let find = r#"{ call = "tools__find_order", with = { id = "B-17" } }"#;
    let cancel = |id: &str| {
        format!(r#"{{ call = "tools__cancel_order", with = {{ id = "{id}", reason = "x" }} }}"#)
    };
    let customer = |said: &str, does: String| task(said, &format!("{SERVE}{said}"), &does);
    let (first, second) = ("You ordered Notes", "You are ada, and want to");
    let others = || {
        let ask = |id: &str, answer: &str| {
            format!(
                r#"{{ call = "tools__find_order", with = {{ id = "{id}" }} }}, {{ answer = "{answer}" }}"#
            )
        };
        let both = format!(
            "{}, {}, {{ answer = \"You get 30 back.\" }}",
            cancel("B-19"),
            cancel("B-20")
        );
        [
            customer("You are ada. You want to know", ask("B-17", "It cost 24.")),
            customer("You are ben, and cancel", both),
            customer("Your order is B-99", ask("B-99", "There is none.")),
        ]
    };
    let mut right = vec![
        customer(
            first,
            format!(
                "{find}, {}, {{ answer = \"You get 24 back.\" }}",
                cancel("B-17")
            ),
        ),
        customer(
            second,
            format!("{}, {{ answer = \"It was sent.\" }}", cancel("B-18")),
        ),
    ];
    right.extend(others());
    let (told, report) = play(&world, &suite, right, &[]);
    let told = told.exits(0);
    let totals = &report["totals"];
    assert_eq!(
        (&totals["passed"], &totals["skipped"]),
        (&5.into(), &1.into()),
        "{told:#?}"
    );
    // Calls of the task's own server alone were allowed.
    assert_eq!(
        (&totals["questions"], &totals["allowed"]),
        (&7.into(), &7.into()),
        "{told:#?}"
    );

    let mut wrong = vec![
        customer(
            first,
            format!("{find}, {{ answer = \"I cancelled it: 24.\" }}"),
        ),
        customer(
            second,
            format!("{}, {{ answer = \"Cancelled.\" }}", cancel("B-17")),
        ),
    ];
    wrong.extend(others());
    let (told, report) = play(&world, &suite, wrong, &[]);
    told.exits(1);
    let found = outcomes(&report);
    let state = "/orders/B-17/state is \"open\", not \"cancelled\"";
    assert!(found[0].2 && found[0].3.contains(state), "{found:?}");
    assert!(
        found[1].2 && found[1].3.contains("is \"cancelled\", not \"open\""),
        "{found:?}"
    );
    assert_eq!(read(&suite.join("db.json")).matches("cancelled").count(), 0);
}

/// Tasks in the form of gyrus: a judge, a server of tools, files for the checks, varied options.
const TASKS: &str = r#"
screen = "none"
[[task]]
id = "judged"
goal = "Write the number seven into n.txt."
files = { "judge.sh" = "grep -qx 7 n.txt\n" }
options = { judge = "sh judge.sh", loop = "engineer" }
checks = ["grep -qx 7 n.txt"]
does = [{ shell = "echo 7 > n.txt" }, { answer = "7" }]
[[task]]
id = "hidden"
goal = "Write the number eight into n.txt."
hidden = { "check.sh" = "grep -qx 8 n.txt\n" }
checks = ["sh check.sh"]
does = [{ shell = "echo 8 > n.txt; echo exit 1 > check.sh" }, { answer = "8" }]
"#;

#[test]
fn every_task_is_tried_with_every_value_of_an_option() {
    let world = World::new(THREE_STEPS);
    let suite = world.path("tasks.toml");
    let (head, _) = TASKS.split_once("[[task]]").unwrap();
    let (_, hidden) = TASKS.rsplit_once("[[task]]").unwrap();
    fs::write(&suite, format!("{head}[[task]]{hidden}")).unwrap();
    fs::write(world.work().join("none.toml"), "[[reply]]\ntext = \"\"\n").unwrap();
    let tasks = || gyrus_player::read(&suite).unwrap();
    let over = [
        "--over",
        "loop=react,auto",
        "--over",
        "model=MODEL,script:none.toml",
        "--repeat",
        "2",
    ];
    let (told, report) = play(&world, &suite, tasks(), &over);
    let told = told.exits(1);
    let settings = report["settings"].as_object().unwrap();
    assert_eq!(settings.len(), 4, "{told:#?}");
    for (name, totals) in settings {
        let passed = if name.contains("script:") { 0 } else { 2 };
        assert_eq!(
            (&totals["passed"], &totals["attempts"]),
            (&passed.into(), &2.into()),
            "{name}: {told:#?}"
        );
    }
    assert!(
        told.out.contains("  options ") && told.out.contains("2/2"),
        "{told:#?}"
    );
    let page = read(&world.path("report/index.html"));
    assert!(page.contains("<h2>Options</h2>") && page.contains("loop=auto"));
    // Attempts with other options are compared with their own kind.
    let folder = world.path("report").display().to_string();
    let compared = world.gyrus(&["eval", "compare", &folder, &folder]).exits(0);
    assert!(!compared.out.contains("worse"), "{compared:#?}");

    let suite = suite.to_str().unwrap();
    for (arguments, expected) in [
        (&["--over", "loop"][..], "OPTION=VALUE"),
        (&["--over", "approve=never"], "sets `--approve` itself"),
        (
            &["--over", "model=a,b", "--model", "c"],
            "would name others",
        ),
        (&["--over", "loop=react,reactt"], "reactt"),
        (&["--over", "nonsense=1,2"], "--nonsense"),
    ] {
        let told = world
            .gyrus(&[&["eval", suite], arguments].concat())
            .exits(2);
        assert!(told.err.contains(expected), "{expected}: {told:#?}");
    }
}

#[test]
fn a_task_brings_a_judge_and_files_for_its_checks() {
    let world = World::new("");
    let suite = world.path("tasks.toml");
    fs::write(&suite, TASKS).unwrap();
    let (told, report) = play(
        &world,
        &suite,
        gyrus_player::read(&suite).unwrap(),
        &["--only", "hidden"],
    );
    told.exits(0);
    assert_eq!(outcomes(&report).len(), 1);
    // The judge's loop was chosen, and its options reached the run.
    let (_, report) = play(
        &world,
        &suite,
        gyrus_player::read(&suite).unwrap(),
        &["--only", "judged"],
    );
    assert_eq!(outcomes(&report).len(), 1);
    let journals = journals(&world);
    let journal = journals.last().unwrap();
    assert!(
        journal.contains("sh judge.sh") && journal.contains("\"engineer\""),
        "{journal}"
    );
}
