//! The documentation holds: the example, the commands of the README, the help.

use std::{fs, path::Path, process::Stdio};

use crate::support::{World, read};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The commands of a section of the README that begin with `gyrus`, without the remarks behind
/// them.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let lines = lines.filter(|line| line.contains("gyrus ") && !line.starts_with("cargo"));
    let without_remark = |line: &str| line.split(" # ").next().unwrap_or(line).trim().to_owned();
    lines.map(without_remark).collect()
}

/// Replaces the program in a line by a function that asks for the help of the same command line:
/// every command and flag must be known.
fn is_understood(world: &World, line: &str) {
    let gyrus = env!("CARGO_BIN_EXE_gyrus");
    // The words after `--` are another program's.
    let script = format!(
        "gyrus() {{ local own=(); for word; do [ \"$word\" = -- ] && break; own+=(\"$word\"); done
         '{gyrus}' \"${{own[@]}}\" --help >/dev/null; }}\n{line}"
    );
    let mut shell = world.command(&[]);
    let mut command = std::process::Command::new("bash");
    command.env_clear();
    for (name, value) in shell.stdin(Stdio::null()).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let said = command
        .args(["-c", &script])
        .current_dir(world.work())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{line}: {error}");
}

#[test]
fn every_command_of_the_documents_is_known() {
    let world = World::new("");
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    // What the tutorials say is done, in a test of its own.
    let docs = docs.filter(|path| !path.ends_with("tutorials.md"));
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut count = 0;
    for path in docs.chain([repository().join("README.md")]) {
        for line in commands(&read(&path)) {
            is_understood(&world, &line);
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

/// Returns the contents of the blocks of one language in a text.
fn blocks(text: &str, language: &str) -> String {
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let contents = blocks.filter_map(|block| block.split("```").next());
    contents.collect()
}

#[test]
fn the_tutorials_do_what_they_say() {
    let gyrus = Path::new(env!("CARGO_BIN_EXE_gyrus")).parent().unwrap();
    let path = format!("{}:{}", gyrus.display(), std::env::var("PATH").unwrap());
    let page = read(&repository().join("docs/tutorials.md"));
    let sections: Vec<_> = page
        .split("\n## ")
        .filter(|it| it.contains("```sh"))
        .collect();
    assert!(sections.len() >= 5, "{}", sections.len());
    for section in sections {
        let world = World::new("");
        let end = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";
        let script = format!("{end}\nexec 2>&1\n{}", blocks(section, "sh"));
        let mut bash = std::process::Command::new("bash");
        for (name, value) in world.command(&[]).get_envs() {
            bash.env(name, value.unwrap_or_default());
        }
        let bash = bash
            .args(["-euo", "pipefail", "-c", &script])
            .env("PATH", &path);
        let said = crate::support::said(bash.current_dir(world.work()).output().unwrap()).exits(0);
        for line in blocks(section, "text").lines() {
            assert!(said.out.contains(line), "`{line}` is not in {said:#?}");
        }
    }
}

#[test]
fn the_example_and_what_the_readme_does_with_runs() {
    let world = World::new("");
    let script = format!(
        "script:{}",
        repository().join("examples/count.toml").display()
    );
    let goal = ["run", "count the lines of notes.txt", "--model", &script];
    // Where there are no notes, nothing is said to be reached.
    let without = world.gyrus(&goal);
    assert!(
        without.code != Some(0) && !without.out.contains("3 lines"),
        "{without:?}"
    );
    let notes = repository().join("examples/notes.txt");
    fs::copy(notes, world.work().join("notes.txt")).unwrap();
    let said = world.gyrus(&goal).exits(0);
    assert!(said.out.contains("notes.txt has 3 lines."), "{said:?}");
    // In the sandbox, nobody is asked.
    assert!(!said.err.contains("approval"), "{said:?}");
    for arguments in [
        &["runs"][..],
        &["show", "last"],
        &["show", "last", "--html", "-o", "run.html"],
        &["record", "last", "-o", "again.toml"],
        &["approvals"],
        &["policy", "explain", "rm -rf build"],
        &["replay", "last"],
        &["runs", "export", "last", "run.gyrus"],
        &["fork", "last", "--at", "1", "--workdir", "again"],
        &["undo", "last"],
        &["diff", "last"],
        &["models"],
        &["tools"],
    ] {
        world.gyrus(arguments).exits(0);
    }
    // An export goes where its output goes.
    let exported = world.command(&["runs", "export", "last"]).output().unwrap();
    assert!(exported.status.success() && !exported.stdout.is_empty());
}

#[test]
fn the_help_of_every_command_is_plain_text() {
    let world = World::new("");
    let mut left = vec![Vec::new()];
    let mut count = 0;
    while let Some(command) = left.pop() {
        let arguments: Vec<&str> = command
            .iter()
            .map(String::as_str)
            .chain(["--help"])
            .collect();
        let help = world.gyrus(&arguments).exits(0).out;
        for odd in ["\\\"", "`[", "<br", "\\n"] {
            assert!(!help.contains(odd), "{command:?}: {odd} in {help}");
        }
        // The overview of all commands is in groups; what goes on from the line above is indented more.
        let listed = help.split_once("Commands:\n");
        let is_overview = command.is_empty();
        let without = if is_overview { help.as_str() } else { "" };
        let listed = listed.map_or(without, |(_, listed)| listed);
        let listed = listed
            .lines()
            .take_while(|line| is_overview || !line.is_empty());
        for line in listed.filter_map(|line| line.strip_prefix("  ")) {
            let names = line.split("  ").next().unwrap();
            let names = names.split(", ").filter(|name| !name.is_empty());
            left.extend(names.map(|name| [command.clone(), vec![name.to_owned()]].concat()));
        }
        count += 1;
    }
    assert!(count > 30, "{count}");
}
