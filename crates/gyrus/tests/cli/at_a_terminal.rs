//! A person at a terminal: cards, answers, colours.

use std::os::unix::fs::PermissionsExt;

use gyrus_kernel::Entry;

use crate::{support::World, terminal::Terminal};

const PROMPT: &str = "y = yes, n = no";

/// Asks twice.
const TWO_QUESTIONS: &str = r#"
[[reply]]
text = "One file."
calls = [{ tool = "write", arguments = { path = ".git/one", content = "1\n" } }]
[[reply]]
text = "Another."
calls = [{ tool = "write", arguments = { path = ".git/two", content = "2\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "asked" } }]
"#;

#[test]
fn cards_are_answered_one_by_one() {
    let world = World::new(TWO_QUESTIONS);
    // What is typed before a card is shown is not an answer to it.
    let Some(mut terminal) = Terminal::start(&world, &["run", "go"], "y\ny\n") else {
        return;
    };
    let card = terminal.shows(PROMPT);
    assert!(
        card.contains("\x1b[34m• One file."),
        "thoughts are blue: {card:?}"
    );
    assert!(
        card.contains("\x1b[32m→ write"),
        "calls are green: {card:?}"
    );
    assert!(card.contains("\x07"), "the bell rings: {card:?}");
    assert_eq!(world.file(".git/one"), "");
    terminal.types("perhaps\n");
    terminal.shows("please type y = yes, n = no");
    terminal.types("y\n");
    terminal.shows("\x1b[33m← created `.git/one`");
    terminal.shows(PROMPT);
    terminal.types("n not this one\n");
    terminal.shows("denied by tester (console): not this one");
    terminal.shows("asked\r\n");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(
        (
            world.file(".git/one").as_str(),
            world.file(".git/two").as_str()
        ),
        ("1\n", "")
    );
}

#[test]
fn a_card_that_is_answered_elsewhere_is_over() {
    let world = World::new(TWO_QUESTIONS);
    let Some(mut terminal) = Terminal::start(&world, &["run", "go"], "") else {
        return;
    };
    for _ in 0..2 {
        terminal.shows(PROMPT);
        world.gyrus(&["approve", "last"]).exits(0);
        terminal.shows("approved by tester (command line)");
    }
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_parked_card_is_shown_again_when_the_run_goes_on_at_a_terminal() {
    let world = World::new(TWO_QUESTIONS);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let resume = ["resume", "last", "--on-ask", "wait"];
    let Some(mut terminal) = Terminal::start(&world, &resume, "") else {
        return;
    };
    terminal.shows("approval 1.3");
    terminal.shows(PROMPT);
    // Ctrl-C: the question stays open.
    terminal.types("\x03");
    terminal.shows("gyrus resume");
    assert_eq!(terminal.exit_code(), Some(130));
    assert!(
        world
            .gyrus(&["approvals"])
            .exits(0)
            .out
            .contains("gyrus approve")
    );
    let asked = world
        .entries()
        .into_iter()
        .filter(|e| matches!(e, Entry::ApprovalAsked(_)));
    assert_eq!(asked.count(), 1);
}

#[test]
fn no_color_means_none() {
    let world = World::new(TWO_QUESTIONS);
    let arguments = ["run", "go", "--approve", "read-only"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &[("NO_COLOR", "1")])
    else {
        return;
    };
    let shown = terminal.shows("asked\r\n");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn words_wrap_at_any_width() {
    let answer = "It is done, and this is a long answer that goes on and on. 日本語の長い文 also.";
    let script = TWO_QUESTIONS.replace("\"asked\"", &format!("\"{answer}\""));
    for columns in [20, 33] {
        let world = World::new(&script);
        let plain = [("NO_COLOR", "1")];
        let start = |arguments: &[&str]| Terminal::start_in(&world, arguments, "", &plain, columns);
        let Some(mut terminal) = start(&["run", "go", "--approve", "read-only"]) else {
            return;
        };
        let mut shown = terminal.rest();
        shown += &start(&["runs", "rm", "nosuchrun"]).unwrap().rest();
        shown += &start(&["resume", "last"]).unwrap().rest();
        let mut asks = start(&["runs", "rm", "last"]).unwrap();
        shown += &asks.shows("[y/N]");
        asks.types("n\n");
        shown += &asks.rest();
        for line in shown.split("\r\n") {
            assert!(
                gyrus_text::width(line) <= columns.into(),
                "{columns}: {line:?} in {shown}"
            );
        }
        // No word is broken that fits on a line.
        for word in ["answer", "long", "goes"] {
            assert!(
                shown.split_whitespace().any(|one| one == word),
                "{word}: {shown}"
            );
        }
    }
}

#[test]
fn what_was_asked_for_stands_whole_at_the_terminal_and_nowhere_else() {
    const LINK: &str = "https://shop.example/reset?token=9f8e7d6c5b4a39281706f5e4d3c2b1a0";
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "mail.txt" } }]
[[reply]]
find = { link = "(https://shop.example/reset\\S+)", key = "(⟦secret:MAIL_API_KEY⟧)" }
calls = [{ tool = "finish", arguments = { reached = true, answer = "The link: {{link}} and {{key}}" } }]
"#,
    );
    // A text can name the marker of a key that gyrus knows, too.
    let mail = format!("Reset it here: {LINK}\nand say \u{27e6}secret:MAIL_API_KEY\u{27e7}\n");
    std::fs::write(world.work().join("mail.txt"), mail).unwrap();
    std::fs::create_dir(world.path("home")).unwrap();
    let key = "[keys]\nMAIL_API_KEY = { command = \"echo hunter2hunter2hunter2\" }\n";
    std::fs::write(world.path("home/config.toml"), key).unwrap();
    let Some(mut terminal) = Terminal::start(&world, &["run", "find the reset link"], "") else {
        return;
    };
    let before = terminal.shows("■ reached");
    assert!(!before.contains("9f8e7d6c"), "{before}");
    let shown = terminal.shows("secret:MAIL_API_KEY");
    assert!(shown.contains(&format!("The link: {LINK} and")), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(terminal.exit_code(), Some(0));
    let said = world.gyrus(&["run", "find the reset link"]).exits(0);
    assert!(!format!("{said:?}").contains("9f8e7d6c"), "{said:?}");
    let kept = format!("{:?}", world.entries());
    assert!(
        kept.contains("The link") && !kept.contains("9f8e7d6c"),
        "{kept}"
    );
    // In a pipe, a file of the person's own has it whole.
    let file = world.path("answer.txt");
    let arguments = [
        "run",
        "find the reset link",
        "--answer-file",
        file.to_str().unwrap(),
    ];
    let said = world.gyrus(&arguments).exits(0);
    assert!(!format!("{said:?}").contains("9f8e7d6c"), "{said:?}");
    let answer = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        answer,
        format!("The link: {LINK} and \u{27e6}secret:MAIL_API_KEY\u{27e7}\n")
    );
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // It is a new one, which is checked before anything else.
    let again = world.gyrus(&arguments).exits(2);
    assert!(
        again.err.contains("the file exists already"),
        "{}",
        again.err
    );
    let nowhere = world.path("none/answer.txt");
    let arguments = [
        "run",
        "find the reset link",
        "--answer-file",
        nowhere.to_str().unwrap(),
    ];
    let said = world.gyrus(&arguments).exits(2);
    assert!(
        said.err.contains("its folder does not exist"),
        "{}",
        said.err
    );
}
