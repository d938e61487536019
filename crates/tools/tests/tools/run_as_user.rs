//! `run_as_user`: what it orders from the keeper, and what it refuses just before the start.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt, sync::Arc};

use gyrus_contract::{ActionVerdict, BuiltIn, CommandReading, ResolvedCall, ResolvedCommand, Tool};
use gyrus_process::Programs;
use gyrus_tools::RunAsUser;
use serde_json::{Value, json};

use crate::site::World;

/// Returns the tool in a world with a program `there`, which it finds.
fn tool(world: &World) -> (BuiltIn<RunAsUser>, Arc<Programs>) {
    fs::create_dir(world.outside("bin")).unwrap();
    install(world, "#!/bin/sh\n");
    let programs = Arc::new(Programs::on_path(Some(world.outside("bin").as_os_str())));
    let variables = || vec![(OsString::from("GH_TOKEN"), OsString::from("x"))];
    (
        BuiltIn::new(RunAsUser::with(Arc::clone(&programs), variables)),
        programs,
    )
}

fn install(world: &World, text: &str) {
    let (new, place) = (world.outside("new"), world.outside("bin/there"));
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(new, place).unwrap();
}

/// Returns the call as the gate resolves it now.
fn resolved(
    world: &World,
    tool: &BuiltIn<RunAsUser>,
    programs: &Programs,
    arguments: Value,
) -> ResolvedCall {
    let command = ResolvedCommand {
        reading: CommandReading::default(),
        containment: None,
        program: Some(programs.find("there").unwrap()),
    };
    ResolvedCall {
        command: Some(command),
        ..world.resolved(tool, arguments)
    }
}

#[test]
fn orders_exactly_the_program() {
    let world = World::new();
    let (tool, programs) = tool(&world);
    let arguments = json!({"program": "there", "arguments": ["$x", "a b"], "reason": "r"});
    let call = resolved(&world, &tool, &programs, arguments);
    assert!(!world.call_resolved(&tool, call).is_error);
    let command = world.commands.lock().unwrap().pop().unwrap();
    assert_eq!(
        command.program,
        world.outside("bin/there").display().to_string()
    );
    assert_eq!(command.arguments, ["$x", "a b"]);
    assert_eq!(command.folder, world.path(""));
    let path = &command.environment["PATH"];
    assert!(
        path.starts_with(&world.outside("bin").display().to_string()),
        "{path}"
    );
    assert_eq!(command.environment["GH_TOKEN"], "x");
}

#[test]
fn starts_nothing_but_the_file_that_was_judged() {
    let world = World::new();
    let (tool, programs) = tool(&world);
    let arguments = json!({"program": "there", "reason": "r"});
    let check = |call: ResolvedCall, words: &str| {
        let output = world.call_resolved(&tool, call);
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
        assert!(
            output.text.ends_with("nothing was started"),
            "{}",
            output.text
        );
        assert_eq!(output.verdict, ActionVerdict::NoEffect);
        assert!(world.commands.lock().unwrap().is_empty());
    };
    let judged = resolved(&world, &tool, &programs, arguments.clone());
    install(&world, "#!/bin/no\n");
    check(judged, "is not the file that was judged any more");
    let judged = resolved(&world, &tool, &programs, arguments.clone());
    fs::set_permissions(world.outside("bin"), fs::Permissions::from_mode(0o777)).unwrap();
    check(judged, "may be changed by every user");
    let unresolved = world.resolved(&tool, arguments);
    check(unresolved, "was not looked up");
    let too_many = json!({"program": "there", "arguments": vec!["x"; 31], "reason": "r"});
    assert!(
        tool.check(&too_many)
            .unwrap_err()
            .reason
            .contains("31 of them")
    );
}

/// The contract stands on no other crate, so that it has to know by itself what a person would not
/// see of a word.
#[test]
fn a_quoted_word_hides_nothing() {
    let hides = |c: &char| {
        let quoted = gyrus_contract::quoted_word(&format!("x{c}x"));
        quoted.contains(gyrus_text::is_unseen)
    };
    let hidden: Vec<char> = ('\0'..=char::MAX).filter(hides).collect();
    assert!(hidden.is_empty(), "{hidden:x?}");
}
