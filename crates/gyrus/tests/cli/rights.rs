//! A person's own rights: what gyrus starts for itself is not what a run planted, and what a run
//! wants started with them is asked about and is exactly what was asked about.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use gyrus_kernel::{Entry, ToolResulted};
use serde_json::{Value, json};

use crate::support::{Said, World, said};

/// A script of these calls, one after the other, and then the end.
pub(crate) fn script(calls: &[Value]) -> String {
    let mut text = String::new();
    for call in calls {
        // JSON in a string of JSON is a string of TOML, too.
        let arguments = serde_json::to_string(&call["arguments"].to_string()).unwrap();
        let tool = &call["tool"];
        text += &format!("[[reply]]\ncalls = [{{ tool = {tool}, arguments = {arguments} }}]\n");
    }
    text + "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"done\" } }]\n"
}

pub(crate) fn as_user(program: &str, arguments: &[&str]) -> Value {
    let arguments = json!({"program": program, "arguments": arguments, "reason": "to see"});
    json!({"tool": "run_as_user", "arguments": arguments})
}

pub(crate) fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world in which `recorder` is installed: it writes down what it was given, and where.
pub(crate) fn world(calls: &[Value]) -> World {
    let world = World::new(&script(calls));
    install(&world, "recorder");
    world
}

pub(crate) fn install(world: &World, name: &str) {
    let seen = world.path("person/seen");
    executable(
        &world.path(&format!("person/bin/{name}")),
        &format!(
            "#!/bin/sh\nexec >>{}\nfor word; do printf '<%s>\\n' \"$word\"; done\npwd\nenv\necho END\n",
            seen.display()
        ),
    );
}

/// gyrus, with the workspace's own folders of programs first on `PATH`, by three names.
pub(crate) fn gyrus(world: &World, arguments: &[&str]) -> Said {
    let mut command = world.command(arguments);
    let folders = [
        world.work().join(".venv/bin"),
        world.path("link"),
        ".venv/bin".into(),
        world.path("person/bin"),
    ];
    let path = std::env::var_os("PATH").unwrap();
    let path = folders.into_iter().chain(std::env::split_paths(&path));
    command
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("GYRUS_SECRET", "hidden")
        .env("PROJECT_LIB", world.work().join("lib"))
        .env("GH_TOKEN", "of-the-person-1234");
    said(command.output().unwrap())
}

pub(crate) fn seen(world: &World) -> String {
    fs::read_to_string(world.path("person/seen")).unwrap_or_default()
}

fn text_of(resulted: &ToolResulted) -> String {
    let read: Result<String, Box<dyn std::error::Error>> =
        resulted.text.read(|_| Err("it is in a blob".into()));
    read.unwrap_or_default()
}

/// Returns the reasons why calls were refused, or their results.
fn results(world: &World) -> String {
    let entries = world.entries().into_iter();
    let texts = entries.filter_map(|entry| match entry {
        Entry::ToolResulted(resulted) => Some(text_of(&resulted)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_a_run_planted_is_not_what_gyrus_starts() {
    let call = json!({"tool": "shell", "arguments": {"command": "echo it is $0"}});
    let world = World::new(&script(&[call, as_user("date", &[])]));
    let mark = world.path("person/planted-ran");
    for name in [
        "sh",
        "bash",
        "env",
        "git",
        "setpriv",
        "chromium",
        "google-chrome",
        "xdg-open",
        "xclip",
        "wl-paste",
        "vi",
        "date",
        "key",
        "apt-get",
        "sudo",
    ] {
        executable(
            &world.work().join(".venv/bin").join(name),
            &format!(
                "#!/bin/sh\n/usr/bin/touch {}\n/bin/echo planted\n",
                mark.display()
            ),
        );
    }
    symlink(world.work().join(".venv/bin"), world.path("link")).unwrap();
    install(&world, "tell");
    fs::create_dir(world.path("home")).unwrap();
    fs::write(
        world.path("home/config.toml"),
        "[approvals]\nnotify = \"tell\"\n[keys]\nOPENAI_API_KEY = { command = \"key\" }\n",
    )
    .unwrap();
    let look = |more: &[&str]| {
        let mut command = world.command(&["look", "data:text/html,x"]);
        let path = format!(
            "{}:{}:/usr/bin:/bin",
            world.work().join(".venv/bin").display(),
            world.path("link").display()
        );
        command
            .env("PATH", path)
            .env_remove("GYRUS_BROWSER")
            .args(more);
        said(command.output().unwrap())
    };
    let looked = look(&[]);
    if looked.err.contains("no browser is installed") {
        assert!(looked.err.contains("which runs can write"), "{looked:?}");
    }
    gyrus(&world, &["doctor"]);
    gyrus(&world, &["models", "--model", "openai"]);
    gyrus(&world, &["tools"]);
    gyrus(&world, &["run", "go", "--clipboard"]);
    assert!(!mark.exists());
    let parked = gyrus(
        &world,
        &["run", "go", "--approve", "auto", "--on-ask", "park"],
    );
    // The command of `notify` is found beside the planted programs, and what it starts, too.
    assert!(
        parked.code == Some(5) && seen(&world).contains("END"),
        "{parked:?}"
    );
    let told = results(&world);
    assert!(!told.contains("planted"), "{told}");
    let edited = gyrus(&world, &["approve", "last"]);
    assert_eq!(edited.code, Some(0), "{edited:?}");
    let resumed = gyrus(&world, &["resume", "last"]).exits(0);
    assert!(!mark.exists(), "{resumed:?}");
}

#[test]
fn one_program_with_literal_arguments_is_asked_about_and_started() {
    let arguments = [
        "$(touch pwned)",
        "; touch pwned",
        "`touch pwned`",
        "two\nlines",
        "--upload-pack=./evil",
        "*",
        "",
        "it's \"quoted\"",
        "\u{202e}\u{200b}\\xff",
    ];
    let world = world(&[as_user("recorder", &arguments)]);
    symlink(world.work(), world.path("link")).unwrap();
    let asked = gyrus(
        &world,
        &["run", "go", "--approve", "auto", "--on-ask", "park"],
    )
    .exits(5);
    for words in [
        "Run the program recorder with your own rights",
        "outside of the sandbox",
        "argument 1: \"$(touch pwned)\"",
        "argument 4: \"two\\nlines\"",
        "argument 7: \"\"",
        "\\u{202e}\\u{200b}\\\\xff",
        "reason: to see",
    ] {
        assert!(
            asked.err.contains(words),
            "`{words}` is not in {}",
            asked.err
        );
    }
    assert!(!asked.err.contains("you could allow"), "{}", asked.err);
    assert_eq!(seen(&world), "");
    gyrus(&world, &["approve", "last"]).exits(0);
    gyrus(&world, &["resume", "last"]).exits(0);
    let seen = seen(&world);
    let given: String = arguments.iter().map(|word| format!("<{word}>\n")).collect();
    assert!(seen.starts_with(&given), "{seen}");
    assert_eq!(seen.matches("END").count(), 1);
    assert!(!world.work().join("pwned").exists());
    let work = world.work().canonicalize().unwrap();
    assert!(seen.contains(&format!("\n{}\n", work.display())), "{seen}");
    let path = seen
        .lines()
        .find_map(|line| line.strip_prefix("PATH="))
        .unwrap();
    assert!(!path.contains("work") && !path.contains("link"), "{path}");
    assert!(
        path.split(':').all(|folder| folder.starts_with('/')),
        "{path}"
    );
    assert!(seen.contains("GH_TOKEN=of-the-person-1234"), "{seen}");
    assert!(
        !seen.contains("GYRUS_") && !seen.contains("PROJECT_LIB"),
        "{seen}"
    );
    world.replays();
}

/// The sentence has the beginning of a long line, by one character or by many; below it stands all.
#[test]
fn a_long_line_is_cut_in_the_sentence_and_whole_below() {
    let folder = World::new("").path("person/bin/recorder");
    let before = folder.display().to_string().len() + 1;
    for length in [301 - before, 900] {
        let long = "x".repeat(length);
        let world = world(&[as_user("recorder", &[&long])]);
        gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
        let cards = world.entries().into_iter().find_map(|entry| match entry {
            Entry::ApprovalAsked(asked) => Some(asked.card),
            _ => None,
        });
        let card = cards.unwrap();
        assert!(
            card.sentence.ends_with("x… (all of it stands below)"),
            "{}",
            card.sentence
        );
        let argument = format!("argument 1: {long}");
        assert!(card.details.iter().any(|detail| detail.text == argument));
    }
}

#[test]
fn what_no_person_could_judge_is_refused_before_anybody_is_asked() {
    let world = World::new("");
    executable(&world.work().join("tool"), "#!/bin/sh\n");
    executable(&world.work().join(".venv/bin/only-there"), "#!/bin/sh\n");
    symlink(world.work(), world.path("link")).unwrap();
    install(&world, "recorder");
    let in_work = world.work().join("tool").display().to_string();
    let by_link = world.path("link/tool").display().to_string();
    let (long, many) = ("x".repeat(100_000), vec!["x"; 31]);
    let unseen = "\u{200b}".repeat(400);
    let raw = |arguments: Value| json!({"tool": "run_as_user", "arguments": arguments});
    let cases = [
        (as_user("./tool", &[]), "a relative path"),
        (as_user(".venv/bin/only-there", &[]), "a relative path"),
        (as_user("only-there", &[]), "which runs can write"),
        (as_user(&in_work, &[]), "which runs can write"),
        (as_user(&by_link, &[]), "which runs can write"),
        (as_user("", &[]), "must not be empty"),
        (as_user("rec\0order", &[]), "NUL"),
        (as_user("recorder", &["a\0b"]), "NUL"),
        (
            as_user("recorder", &[&long]),
            "longer than the 2000 characters",
        ),
        (
            as_user("recorder", &[&unseen]),
            "longer than the 2000 characters",
        ),
        (as_user("recorder", &many), "31 of them"),
        (as_user("recorder", &["⟦secret:KEY⟧"]), "names a secret"),
        (as_user("recorder -x", &[]), "was not found"),
        (as_user(&long, &[]), "longer than 4096 bytes"),
        (
            raw(json!({"program": "recorder", "arguments": "a b", "reason": "x"})),
            "list of texts",
        ),
        (
            raw(json!({"program": "recorder", "arguments": [1], "reason": "x"})),
            "list of texts",
        ),
        (raw(json!({"program": "recorder"})), "reason"),
        (
            raw(json!({"program": "recorder", "reason": "x", "env": {}})),
            "env",
        ),
    ];
    let calls: Vec<Value> = cases.iter().map(|(call, _)| call.clone()).collect();
    fs::write(world.path("script.toml"), script(&calls)).unwrap();
    let done = gyrus(
        &world,
        &["run", "go", "--on-ask", "park", "--max-steps", "50"],
    );
    assert_eq!(done.code, Some(0), "{done:?}");
    let entries = world.entries();
    let refused: Vec<String> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::ToolResulted(resulted) if resulted.is_error => Some(text_of(resulted)),
            _ => None,
        })
        .collect();
    assert_eq!(refused.len(), cases.len(), "{refused:#?}");
    for ((call, words), refused) in cases.iter().zip(refused) {
        let shown: String = call.to_string().chars().take(200).collect();
        assert!(refused.contains(words), "{shown}: {refused}");
    }
    assert!(
        !entries
            .iter()
            .any(|entry| matches!(entry, Entry::ApprovalAsked(_)))
    );
    assert_eq!(seen(&world), "");
}

#[test]
fn a_program_that_was_replaced_after_the_yes_is_asked_about_again() {
    let world = world(&[as_user("recorder", &["x"])]);
    gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
    gyrus(&world, &["approve", "last"]).exits(0);
    let program = world.path("person/bin/recorder");
    let mark = world.path("person/replaced");
    executable(
        &world.path("person/new"),
        &format!("#!/bin/sh\ntouch {}\n", mark.display()),
    );
    fs::rename(world.path("person/new"), &program).unwrap();
    let again = gyrus(&world, &["resume", "last"]).exits(5);
    assert!(again.err.contains("1.2-2"), "{}", again.err);
    assert!(!mark.exists() && seen(&world).is_empty());
    // What would be found now is another file altogether.
    fs::remove_file(&program).unwrap();
    gyrus(&world, &["approve", "last"]).exits(0);
    gyrus(&world, &["resume", "last"]).exits(0);
    let told = results(&world);
    assert!(told.contains("`recorder` was not found"), "{told}");
}

#[test]
fn a_reading_verb_is_granted_by_its_exact_words() {
    let list = as_user("gh", &["pr", "list"]);
    let more = as_user("gh", &["pr", "list", "--limit", "5"]);
    let create = as_user("gh", &["pr", "create"]);
    let world = world(&[list.clone(), list.clone(), more, create]);
    install(&world, "gh");
    let asked = gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
    let offer = "/gh pr list`, in exactly these words, with your own rights";
    let said = asked.err.replace("\n│ ", " ");
    assert!(said.contains(offer), "{said}");
    gyrus(&world, &["approve", "last", "--session"]).exits(0);
    // The same passes; one more argument asks.
    let asked = gyrus(&world, &["resume", "last"]).exits(5);
    assert_eq!(seen(&world).matches("END").count(), 2);
    assert!(asked.err.contains("--limit"), "{}", asked.err);
    gyrus(&world, &["approve", "last", "--always"]).exits(0);
    // A verb that does more is never granted.
    let asked = gyrus(&world, &["resume", "last"]).exits(5);
    let (_, card) = asked.err.split_once("approval 4.2").unwrap();
    assert!(
        card.contains("create") && !card.contains("you could allow"),
        "{card}"
    );
    gyrus(&world, &["approve", "last", "--session"]).exits(2);
    gyrus(&world, &["deny", "last"]).exits(0);
    gyrus(&world, &["resume", "last"]).exits(0);
    assert_eq!(seen(&world).matches("END").count(), 3);
    // What is always allowed is so in another run, under its own name in the verdict.
    let alone = script(&[as_user("gh", &["pr", "list", "--limit", "5"])]);
    fs::write(world.path("script.toml"), alone).unwrap();
    let json = gyrus(&world, &["run", "anew", "--on-ask", "deny", "--json"]).exits(0);
    assert_eq!(seen(&world).matches("END").count(), 4);
    assert!(
        json.out
            .contains("\"risk\":\"high\",\"decision\":\"allow\""),
        "{}",
        json.out
    );
    assert!(
        json.out.contains("\"ungranted\":\"critical\""),
        "{}",
        json.out
    );
    // In a mode that changes nothing it does not.
    gyrus(&world, &["run", "anew", "--approve", "read-only"]).exits(0);
    assert_eq!(seen(&world).matches("END").count(), 4);
    // Another program of that name is not the one that was allowed.
    fs::rename(world.path("person/bin/gh"), world.path("person/gh")).unwrap();
    executable(&world.path("other/gh"), "#!/bin/sh\n");
    let mut command = world.command(&["run", "anew", "--on-ask", "park"]);
    command.env(
        "PATH",
        format!("{}:/usr/bin:/bin", world.path("other").display()),
    );
    let asked = said_of(command);
    assert_eq!(asked.code, Some(5), "{asked:?}");
}

fn said_of(mut command: Command) -> Said {
    said(command.output().unwrap())
}

#[test]
fn modes_rules_and_gyrus_itself_forbid_it() {
    let push = as_user("git", &["push", "origin", "main"]);
    let world = world(&[push]);
    for mode in ["never", "read-only"] {
        gyrus(&world, &["run", "go", "--approve", mode]).exits(0);
    }
    for mode in ["ask", "edits", "auto"] {
        for sandbox in ["on", "off"] {
            let flags = [
                "run",
                "go",
                "--on-ask",
                "park",
                "--approve",
                mode,
                "--sandbox",
                sandbox,
            ];
            gyrus(&world, &flags).exits(5);
        }
    }
    fs::write(
        world.path("home/policy.toml"),
        "[[rule]]\ndecide = \"deny\"\nwhy = \"nothing leaves\"\ncommand = [\"git\", \"push\"]\n\
         [[rule]]\ndecide = \"allow\"\nwhy = \"all of it\"\ntool = \"run_as_user\"\n",
    )
    .unwrap();
    let denied = gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(0);
    assert!(denied.err.contains("nothing leaves"), "{}", denied.err);
    let own = world.path("home/config.toml").display().to_string();
    let calls = [as_user("cat", &[&own]), as_user("recorder", &[])];
    fs::write(world.path("script.toml"), script(&calls)).unwrap();
    // No rule allows it, and nobody can allow what is gyrus's own.
    let asked = gyrus(&world, &["run", "go", "--on-ask", "park"]).exits(5);
    assert!(asked.err.contains("gyrus's own state"), "{}", asked.err);
    assert!(
        asked.err.contains("Run the program recorder"),
        "{}",
        asked.err
    );
    assert_eq!(seen(&world), "");
}

#[test]
fn a_push_in_the_shell_has_no_rights_and_one_as_the_person_has() {
    let line = "git push origin main; echo ended";
    let shell = json!({"tool": "shell", "arguments": {"command": line}});
    let loud =
        json!({"tool": "shell", "arguments": {"command": "sudo -n true || systemctl start x"}});
    let push = as_user("git", &["push", "origin", "main"]);
    let fetch = as_user("git", &["fetch", "origin"]);
    let world = World::new(&script(&[shell, loud, push, fetch]));
    if !is_confined(&world) {
        return;
    }
    let remote = world.path("person/remote.git");
    git(&world.work(), &["init", "--bare", remote.to_str().unwrap()]);
    git(&world.work(), &["init"]);
    git(&world.work(), &["commit", "--allow-empty", "-m", "first"]);
    git(
        &world.work(),
        &["remote", "add", "origin", remote.to_str().unwrap()],
    );
    // A hook in a folder of the workspace, which a run could have written.
    let mark = world.path("person/hooked");
    for hook in ["reference-transaction", "post-merge"] {
        let hook = world.work().join("tools/hooks").join(hook);
        executable(&hook, &format!("#!/bin/sh\necho x >>{}\n", mark.display()));
    }
    let said = gyrus(
        &world,
        &["run", "go", "--approve", "auto", "--on-ask", "park"],
    );
    let mut asked = said.exits(5);
    if asked.err.contains("shell") && !asked.err.contains("Run the program") {
        gyrus(&world, &["approve", "last"]).exits(0);
        asked = gyrus(&world, &["resume", "last"]).exits(5);
    }
    assert!(
        asked.err.contains("it changes what others have"),
        "{}",
        asked.err
    );
    assert!(asked.err.contains("git runs the hooks"), "{}", asked.err);
    let told = results(&world);
    assert!(told.contains("ended"), "{told}");
    assert!(
        told.contains("call `run_as_user` with that one program"),
        "{told}"
    );
    assert_eq!(git(&remote, &["branch"]), "");
    gyrus(&world, &["approve", "last"]).exits(0);
    let asked = gyrus(&world, &["resume", "last"]).exits(5);
    assert_eq!(git(&remote, &["branch"]).trim(), "* main");
    // Reading runs no hooks, wherever they are.
    git(&world.work(), &["config", "core.hooksPath", "tools/hooks"]);
    git(&remote, &["update-ref", "refs/heads/other", "main"]);
    assert!(asked.err.contains("git fetch origin"), "{}", asked.err);
    gyrus(&world, &["approve", "last", "--session"]).exits(0);
    gyrus(&world, &["resume", "last"]).exits(0);
    assert!(git(&world.work(), &["branch", "-r"]).contains("origin/other"));
    assert!(!mark.exists(), "{}", results(&world));
}

/// Whether commands are confined on this machine.
fn is_confined(world: &World) -> bool {
    let said = world
        .gyrus(&["policy", "explain", "--json", "make"])
        .exits(0);
    let explained: Value = serde_json::from_str(&said.out).unwrap();
    !explained["containment"].is_null()
}
