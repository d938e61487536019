//! `shell`: what it orders from the keeper, and what it makes of the outcome.

use gyrus_contract::{ActionVerdict, BuiltIn, CapturedOutput, CommandOutcome, Exit, KeeperError};
use gyrus_tools::Shell;
use serde_json::{Value, json};

use crate::site::World;

/// Creates the tool with these variables.
fn shell() -> BuiltIn<Shell> {
    BuiltIn::new(Shell::with_variables(|name| {
        let value = match name {
            "PATH" => "/home/me/bin:.::/usr/bin:tools",
            "HOME" => "/home/me",
            "LANG" => "de_DE.UTF-8",
            "USER" => "",
            "ANTHROPIC_API_KEY" | "SSH_AUTH_SOCK" => "must not get through",
            _ => return None,
        };
        Some(value.to_owned())
    }))
}

#[test]
fn orders_exactly_the_command() {
    let world = World::new();
    let arguments =
        json!({"command": "curl -H 'key: ⟦secret:KEY⟧' x | tee y", "timeout_seconds": 7});
    let output = world.call(&shell(), arguments);
    assert_eq!(output.text, "(no output)\n[exit code 0]");
    let command = world.commands.lock().unwrap().pop().unwrap();
    assert!(
        ["/bash", "/sh"]
            .iter()
            .any(|shell| command.program.ends_with(shell)),
        "{}",
        command.program
    );
    assert_eq!(
        command.arguments,
        ["-c", "curl -H 'key: hunter2' x | tee y"]
    );
    assert_eq!(command.folder, world.path(""));
    assert_eq!((command.time_limit_ms, command.stdin.as_str()), (7000, ""));
    let environment: Vec<String> = command
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        environment,
        [
            "HOME=/home/me",
            "LANG=de_DE.UTF-8",
            "NO_UPDATE_NOTIFIER=1",
            // No relative folder: programs are not looked up in the workspace.
            "PATH=/home/me/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
            "PIP_DISABLE_PIP_VERSION_CHECK=1",
            "TERM=dumb",
            "TMPDIR=/tmp",
            "npm_config_update_notifier=false",
        ]
    );
    world.call(&shell(), json!({"command": "true"}));
    assert_eq!(
        world.commands.lock().unwrap().pop().unwrap().time_limit_ms,
        120_000
    );
}

#[test]
fn refuses_before_anything_starts() {
    let world = World::new();
    let check = |arguments: Value, words: &str| {
        let output = world.call(&shell(), arguments);
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
        assert_eq!(output.verdict, ActionVerdict::NoEffect);
        assert!(world.commands.lock().unwrap().is_empty());
    };
    check(json!({"command": "  "}), "`command` is empty");
    check(json!({"command": "a\0b"}), "NUL");
    check(
        json!({"command": "x", "timeout_seconds": 86_401}),
        "between 1 and 86400",
    );
    check(
        json!({"command": "x", "timeout_seconds": 0}),
        "between 1 and 86400",
    );
    check(
        json!({"command": "x", "timeout_seconds": 1.5}),
        "Expected an object like",
    );
    check(json!({"cmd": "x"}), "unknown argument `cmd`");
    check(
        json!({"command": "echo ⟦secret:OTHER⟧"}),
        "`OTHER` is not known",
    );
}

#[test]
fn says_how_it_ended() {
    let world = World::new();
    let check = |exit, output: CapturedOutput, text: &str| {
        *world.outcome.lock().unwrap() = Ok(CommandOutcome { exit, output });
        let output = world.call(&shell(), json!({"command": "x"}));
        assert_eq!(
            (output.text.as_str(), output.is_error),
            (text, exit != Exit::Code(0))
        );
        assert_eq!(output.verdict, ActionVerdict::CannotTell);
    };
    let printed = |head: &str, omitted_bytes, tail: &str| CapturedOutput {
        head: head.to_owned(),
        tail: tail.to_owned(),
        omitted_bytes,
        invalid_bytes: 0,
    };
    check(Exit::Code(0), printed("hi\n", 0, ""), "hi\n[exit code 0]");
    check(
        Exit::Code(2),
        printed("no newline", 0, ""),
        "no newline\n[exit code 2]",
    );
    check(
        Exit::Signal(11),
        printed("", 0, ""),
        "(no output)\n[killed by signal 11]",
    );
    check(
        Exit::Code(0),
        printed("ab", 0, "cd\n"),
        "abcd\n[exit code 0]",
    );
    check(
        Exit::Code(0),
        printed("a", 9, "b"),
        "a\n[… 9 bytes omitted …]\nb\n[exit code 0]",
    );
    let progress = "\u{1b}[32m 1%\r99%\u{1b}[0m\r\n";
    check(
        Exit::Code(0),
        printed(progress, 0, ""),
        "99%\n[exit code 0]",
    );
    // What lies across the cut between the two parts is one line.
    check(Exit::Code(0), printed("1%", 0, "\r2%"), "2%\n[exit code 0]");
    let latin = CapturedOutput {
        invalid_bytes: 1,
        ..printed(r"a caf\xE9", 0, "")
    };
    let named = "[1 byte that is not UTF-8 is shown as \\xNN]\n[exit code 0]";
    check(Exit::Code(0), latin, &format!("a caf\\xE9\n{named}"));
    let summed_up = |bytes: &str| {
        let hint = "write it into a file, or show it with `xxd`";
        format!("(output that is not text: {bytes}; {hint})\n[exit code 0]")
    };
    check(
        Exit::Code(0),
        printed("a\0b", 5, "c"),
        &summed_up("9 bytes"),
    );
    let noise = CapturedOutput {
        invalid_bytes: 2,
        ..printed(r"ab\xE9\xFF", 0, "")
    };
    check(Exit::Code(0), noise, &summed_up("4 bytes"));
    let killed = "a\n[timed out after 120 s; the command and everything it started were killed]";
    check(Exit::TimedOut, printed("a", 0, ""), killed);
}

#[test]
fn a_lost_keeper_leaves_doubt() {
    let world = World::new();
    let reason = "it was killed".to_owned();
    *world.outcome.lock().unwrap() = Err(KeeperError::Keeper { reason });
    let output = world.call(&shell(), json!({"command": "x"}));
    assert_eq!(
        (output.is_error, output.verdict),
        (true, ActionVerdict::CannotTell)
    );
    let program = "bash".to_owned();
    let reason = "no such file".to_owned();
    *world.outcome.lock().unwrap() = Err(KeeperError::Start { program, reason });
    let output = world.call(&shell(), json!({"command": "x"}));
    assert_eq!(
        (output.is_error, output.verdict),
        (true, ActionVerdict::NoEffect)
    );
}
