//! Inputs on desktops: windows are judged for what their programs are.

use gyrus_contract::{Aim, AimedElement, ElementId, Grant, Starts};
use serde_json::json;

use crate::world::{CHOOSES, Comes, Under, call, comes, masked};

/// The goal of these tests.
const GOAL: &str = "Write the letter in Mousepad.";

/// An aim at a control of a program: `nested/mousepad`.
fn aim(program: &str, role: &str, name: &str, starts: Starts) -> Aim {
    let address = format!("x11:{program}");
    Aim {
        origin: address.to_lowercase(),
        address,
        element: Some(AimedElement {
            id: ElementId {
                document: 1,
                number: 1,
            },
            role: role.to_owned(),
            name: name.to_owned(),
            states: [].into(),
        }),
        form: None,
        starts: vec![starts],
        fills: Vec::new(),
    }
}

#[track_caller]
fn check(program: &str, role: &str, name: &str, starts: Starts, expected: Comes) {
    let aim = aim(program, role, name, starts);
    assert_eq!(comes(aim), expected, "{program} {role} {name}");
}

#[test]
fn a_program_on_a_desktop_of_its_own_is_used_without_asking() {
    check(
        "nested/Galculator",
        "button",
        "7",
        Starts::Acts,
        Comes::Plain,
    );
    check(
        "nested/Mousepad",
        "textbox",
        "",
        Starts::Types,
        Comes::Plain,
    );
    check("nested/Mousepad", "checkbox", "Wrap", CHOOSES, Comes::Plain);
    check(
        "nested/Mousepad",
        "menu",
        "File",
        Starts::Looking,
        Comes::Free,
    );
    check("nested", "", "", Starts::Looking, Comes::Free);
}

#[test]
fn programs_in_the_sandbox_are_started_without_asking_unless_they_run_commands() {
    let starts = |program: &str| Starts::Launches {
        program: format!("/usr/bin/{program}"),
    };
    check("sandbox/mousepad", "", "", starts("mousepad"), Comes::Plain);
    check("sandbox/xterm", "", "", starts("xterm"), Comes::Once);
    check("sandbox/python3", "", "", starts("python3"), Comes::Once);
    check(
        "sandbox/XTerm",
        "window",
        "xterm",
        Starts::Types,
        Comes::Once,
    );
    check(
        "sandbox/Mousepad",
        "textbox",
        "",
        Starts::Types,
        Comes::Plain,
    );
    check(
        "sandbox/Mousepad",
        "button",
        "Delete",
        Starts::Acts,
        Comes::Critical,
    );
    let named = Under {
        goal: "List the files in xterm.",
        ..Under::default()
    };
    for starts in [Starts::Types, starts("xterm")] {
        let aim = aim("sandbox/xterm", "window", "", starts);
        assert_eq!(named.comes(&call(Some(aim))), Comes::Plain);
    }
}

#[test]
fn on_the_persons_display_only_what_they_named_is_used_without_asking() {
    check("0/Mousepad", "textbox", "", Starts::Types, Comes::Once);
    check("0/Mousepad", "menu", "File", Starts::Looking, Comes::Free);
    let types = aim("0/Mousepad", "textbox", "", Starts::Types);
    let named = Under {
        goal: GOAL,
        ..Under::default()
    };
    assert_eq!(named.comes(&call(Some(types.clone()))), Comes::Plain);
    // Another program is not meant, nor one whose name only contains the word.
    for other in ["0/Galculator", "0/Mousepad2", "0/pad"] {
        let types = aim(other, "textbox", "", Starts::Types);
        assert_eq!(named.comes(&call(Some(types))), Comes::Once, "{other}");
    }
    let grants = [Grant::Origin {
        origin: "x11:0/mousepad".to_owned(),
    }];
    let granted = Under {
        grants: &grants,
        ..Under::default()
    };
    assert_eq!(granted.comes(&call(Some(types))), Comes::Plain);
    let nested = aim("nested/Settings", "textbox", "", Starts::Types);
    assert_eq!(granted.comes(&call(Some(nested))), Comes::Once);
}

#[test]
fn typing_into_a_terminal_is_a_command() {
    for terminal in [
        "nested/XTerm",
        "nested/UXTerm",
        "0/Gnome-terminal",
        "nested/konsole",
        "0/Alacritty",
        "nested/URxvt",
        "0/xfce4-appfinder",
    ] {
        for starts in [Starts::Types, Starts::Acts, CHOOSES] {
            check(terminal, "window", "", starts, Comes::Critical);
        }
        check(terminal, "window", "", Starts::Looking, Comes::Free);
        let closes = Starts::Closes { unsaved: false };
        check(terminal, "window", "", closes, Comes::Critical);
    }
    // A terminal inside of another program.
    check(
        "nested/Geany",
        "terminal",
        "",
        Starts::Types,
        Comes::Critical,
    );
    // The goal allows no commands by naming a terminal.
    let named = Under {
        goal: "List the folder in xterm.",
        ..Under::default()
    };
    let types = aim("nested/XTerm", "window", "", Starts::Types);
    assert_eq!(named.comes(&call(Some(types))), Comes::Critical);
}

#[test]
fn what_gives_rights_cannot_be_used() {
    for window in [
        "0/Polkit-gnome-authentication-agent-1",
        "0/lxpolkit",
        "0/gyrus",
        "0/XScreenSaver",
    ] {
        check(window, "textbox", "Password", Starts::Types, Comes::Never);
        check(window, "button", "OK", Starts::Acts, Comes::Never);
    }
    for prompt in ["0/Pinentry-gtk-2", "0/Gcr-prompter", "0/ssh-askpass"] {
        check(prompt, "textbox", "", Starts::Types, Comes::Critical);
    }
    let password = aim("nested/Mailer", "textbox", "", Starts::Types);
    assert_eq!(comes(masked(password)), Comes::Critical);
    check(
        "nested/Mailer",
        "textbox",
        "Password",
        Starts::Types,
        Comes::Critical,
    );
}

#[test]
fn buttons_weigh_what_they_say() {
    for (name, expected) in [
        ("Send", Comes::Once),
        ("Delete", Comes::Critical),
        ("Löschen", Comes::Critical),
        ("Pay now", Comes::Critical),
        ("Install", Comes::Critical),
        ("Installieren", Comes::Critical),
        ("Close without saving", Comes::Critical),
        ("Discard changes", Comes::Critical),
        ("Save", Comes::Plain),
        ("Cancel", Comes::Plain),
    ] {
        check("nested/Mailer", "button", name, Starts::Acts, expected);
        // What a text says is no command.
        check("nested/Mailer", "textbox", name, Starts::Acts, Comes::Plain);
    }
}

#[test]
fn the_clipboard_is_the_persons_where_they_work() {
    for (place, expected) in [
        ("0", Comes::Once),
        ("nested", Comes::Plain),
        ("sandbox", Comes::Plain),
    ] {
        // Also reading it: they may have copied a password.
        for starts in [Starts::Looking, Starts::Types] {
            check(place, "clipboard", "the clipboard", starts, expected);
        }
    }
}

#[test]
fn a_file_is_given_by_a_control_that_is_judged_as_such() {
    let gives = || Starts::Uploads {
        names: vec!["report.pdf".to_owned()],
    };
    for (place, name, expected) in [
        ("0/Mousepad", "Open…", Comes::Once),
        ("nested/Mousepad", "Open…", Comes::Plain),
        ("sandbox/Mousepad", "Open…", Comes::Plain),
        ("sandbox/Mailer", "Send file", Comes::Once),
        ("nested/polkit-agent", "Open…", Comes::Never),
    ] {
        check(place, "button", name, gives(), expected);
    }
}

#[test]
fn closing_what_was_not_saved_deletes_it() {
    let closes = |unsaved| Starts::Closes { unsaved };
    check(
        "nested/Mousepad",
        "window",
        "*note",
        closes(true),
        Comes::Critical,
    );
    check(
        "nested/Mousepad",
        "window",
        "note",
        closes(false),
        Comes::Plain,
    );
    check("0/Mousepad", "window", "note", closes(false), Comes::Once);
}

#[test]
fn starting_a_program_is_asked_about_unless_it_was_named() {
    let launches = |program: &str| {
        let name = program.rsplit('/').next().unwrap();
        let starts = Starts::Launches {
            program: program.to_owned(),
        };
        aim(&format!("nested/{name}"), "application", name, starts)
    };
    assert_eq!(comes(launches("/usr/bin/mousepad")), Comes::Once);
    let named = Under {
        goal: GOAL,
        ..Under::default()
    };
    let named = |program: &str| named.comes(&call(Some(launches(program))));
    assert_eq!(named("/usr/bin/mousepad"), Comes::Plain);
    for program in [
        "/usr/bin/xterm",
        "/usr/bin/bash",
        "/usr/bin/python3.12",
        "/usr/bin/env",
    ] {
        assert_eq!(named(program), Comes::Critical, "{program}");
    }
}

#[test]
fn keys_and_drags_weigh_what_they_do_in_a_file_manager() {
    let with = |program: &str, arguments: serde_json::Value| {
        let mut call = call(Some(aim(program, "listitem", "letter.txt", Starts::Acts)));
        call.arguments = arguments;
        Under::default().comes(&call)
    };
    let delete = json!({"key": "Shift+Delete"});
    assert_eq!(with("nested/Pcmanfm", delete.clone()), Comes::Critical);
    assert_eq!(with("nested/Galculator", delete), Comes::Once);
    assert_eq!(
        with("nested/Pcmanfm", json!({"key": "Enter"})),
        Comes::Plain
    );
    let drag = json!({"from": "a1", "to": "a2"});
    assert_eq!(with("nested/Pcmanfm", drag.clone()), Comes::Once);
    assert_eq!(with("nested/Galculator", drag), Comes::Plain);
}
