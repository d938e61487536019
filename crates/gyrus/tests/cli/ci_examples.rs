//! The examples for continuous integration: a hook that reviews commits, and a step of an action.

use std::{fs, path::PathBuf, process::Command};

use crate::support::{Said, World, said};

fn example(name: &str) -> PathBuf {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/ci");
    examples.join(name)
}

/// Runs a program with this gyrus on its path.
fn with_gyrus(world: &World, program: &str, arguments: &[&str], more: &[(&str, &str)]) -> Said {
    let gyrus = PathBuf::from(env!("CARGO_BIN_EXE_gyrus"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", gyrus.parent().unwrap().display());
    // As the tests start gyrus, but for the program.
    let like = world.command(&[]);
    let variables = like
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(variables)
        .env("PATH", path)
        .envs(more.iter().copied())
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ])
        .current_dir(world.work());
    said(command.output().unwrap())
}

fn git(world: &World, arguments: &[&str]) -> Said {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    with_gyrus(world, "git", &[&identity[..], arguments].concat(), &[])
}

#[test]
fn a_hook_reviews_what_is_committed() {
    for (answer, code) in [
        (r#"{\"findings\": []}"#, 0),
        (r#"{\"findings\": [\"a key in notes.txt\"]}"#, 1),
        // Never in the form: there is no review, and nobody is held up.
        ("looks good to me", 0),
    ] {
        let reply = format!(
            "[[reply]]\nwhen = \"the key is 7\"\ncalls = [{{ tool = \"finish\", arguments = {{ reached \
             = true, answer = \"{answer}\" }} }}]\n"
        );
        let again = reply.replace("when = \"the key is 7\"\n", "");
        let world = World::new(&format!("{reply}{}", again.repeat(3)));
        git(&world, &["init", "--quiet"]).exits(0);
        fs::copy(
            example("review.sh"),
            world.work().join(".git/hooks/pre-commit"),
        )
        .unwrap();
        git(
            &world,
            &["commit", "--quiet", "--allow-empty", "-m", "nothing"],
        )
        .exits(0);
        assert!(world.runs().is_empty(), "there was nothing to review");
        fs::write(world.work().join("notes.txt"), "the key is 7\n").unwrap();
        git(&world, &["add", "notes.txt"]).exits(0);
        let committed = git(&world, &["commit", "--quiet", "-m", "notes"]);
        assert_eq!(committed.code, Some(code), "{answer} {committed:#?}");
        let said = committed.err;
        assert_eq!(said.contains("a key in notes.txt"), code == 1, "{said}");
        assert_eq!(
            said.contains("could not review"),
            answer.starts_with("looks"),
            "{said}"
        );
    }
}

#[test]
fn a_step_of_an_action_hands_the_answer_on_and_nothing_else() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \
         \"one\\nrun=forged\\nend-\\nanswer<<x\\ntwo\" } }]\n",
    );
    let output = world.path("output");
    let more = [
        ("GOAL", "say $(touch owned) `touch owned`"),
        ("APPROVE", "auto"),
        ("GITHUB_OUTPUT", output.to_str().unwrap()),
    ];
    let step = example("run.sh");
    with_gyrus(&world, step.to_str().unwrap(), &[], &more).exits(0);
    assert!(!world.work().join("owned").exists());
    let written = fs::read_to_string(&output).unwrap();
    let (first, rest) = written.split_once('\n').unwrap();
    let mark = first.strip_prefix("answer<<").unwrap();
    let (answer, rest) = rest.split_once(&format!("\n{mark}\n")).unwrap();
    assert_eq!(answer, "one\nrun=forged\nend-\nanswer<<x\ntwo");
    assert_eq!(rest, format!("run={}\n", world.runs()[0]));
    // What fails fails the step, with the exit code of gyrus.
    let failing = [&more[..], &[("ANSWER_SCHEMA", "{")]].concat();
    with_gyrus(&world, step.to_str().unwrap(), &[], &failing).exits(2);
}

#[test]
fn inputs_of_the_action_reach_no_script_as_text() {
    let action = fs::read_to_string(example("action.yml")).unwrap();
    let (_, script) = action.split_once("run: '").unwrap();
    let (script, environment) = script.split_once('\n').unwrap();
    assert!(!script.contains("${{"), "{script}");
    let step = fs::read_to_string(example("run.sh")).unwrap();
    for name in ["GOAL", "APPROVE", "ANSWER_SCHEMA", "MODEL"] {
        assert!(
            environment.contains(&format!("{name}: ${{{{ inputs.")),
            "{name}"
        );
        assert!(
            step.contains(&format!("${name}")) || step.contains(&format!("${{{name}:-}}")),
            "{name}"
        );
    }
}
