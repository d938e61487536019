//! `gyrus look --screen x11`: real programs on a display of its own.

use std::process::Command;

use crate::support::{World, works};

#[test]
fn a_program_on_a_desktop_of_its_own_is_shown() {
    if !(works("Xvfb", &["-help"]) && works("mousepad", &["--version"])) {
        eprintln!("left out: Xvfb or mousepad is not installed");
        return;
    }
    let world = World::new("");
    let note = world.work().join("shopping list.txt");
    std::fs::write(&note, "bread\nmilk\n").unwrap();
    let note = note.to_str().unwrap();
    let frame = ["look", "--screen", "x11", "--frame", "desktop.png"];
    let said = world
        .gyrus(&[&frame[..], &["--", "mousepad", note]].concat())
        .exits(0);
    for words in [
        "shopping list.txt - Mousepad",
        "menu \"File\"",
        "textbox = \"bread",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let picture = std::fs::read(world.work().join("desktop.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    // Nothing of the desktop is left.
    let left = Command::new("pgrep").args(["-f", note]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");

    for (arguments, words) in [
        (
            &["--", "no-such-program"][..],
            "`no-such-program` was not found",
        ),
        (&["--", "false"], "the program ended: exit code 1"),
        (
            &["--display", ":7777"],
            "the display `:7777` cannot be opened",
        ),
    ] {
        let said = world.gyrus(&[&["look", "--screen", "x11"], arguments].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
    for arguments in [
        &["look"][..],
        &["look", "http://127.0.0.1:1/", "--screen", "x11"],
        &["look", "--screen", "wayland"],
        &["look", "http://127.0.0.1:1/", "--", "mousepad"],
        &["look", "http://127.0.0.1:1/", "--display", ":0"],
    ] {
        assert_eq!(world.gyrus(arguments).code, Some(2), "{arguments:?}");
    }
}
