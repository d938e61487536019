//! `gyrus` without a command: a line prompt.

use gyrus_kernel::Entry;

use crate::{
    provider::{Provider, words},
    support::{THREE_STEPS, World},
    terminal::Terminal,
};

const XTERM: &[(&str, &str)] = &[("TERM", "xterm-256color")];

#[test]
fn a_conversation_at_a_terminal() {
    let world = World::new(THREE_STEPS);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.shows("Ctrl-D leaves.");
    terminal.shows("❯");
    terminal.types("say hello\r");
    // Streamed while it comes, and not said again as an entry.
    let first = terminal.stands("reached, as the model claims");
    assert_eq!(first.matches("First a file.").count(), 1, "{first}");
    terminal.shows("It says hello.");
    terminal.shows("❯");
    terminal.types("/qiut\r");
    terminal.shows("did you mean `/quit`?");
    terminal.shows("❯");
    terminal.types("and once more\r");
    terminal.shows("reached, as the model claims");
    terminal.shows("❯");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));

    // Both runs are one session, and what was typed is there next time.
    let runs = world.runs();
    assert_eq!(runs.len(), 2);
    let name = gyrus_kernel::log_name(runs[1]);
    let first = world.store().reader(&name).unwrap().entry(1).unwrap();
    let started = gyrus_kernel::parse(&first.unwrap()).unwrap();
    assert!(
        matches!(&started, Entry::RunStarted(started) if started.continues == Some(runs[0])),
        "{started:?}"
    );
    let history = std::fs::read_to_string(world.path("home/history")).unwrap();
    assert!(history.contains("say hello") && history.contains("and once more"));
}

#[test]
fn what_can_be_said_beside_goals() {
    let world = World::new(THREE_STEPS);
    std::fs::write(world.work().join("notes.txt"), "noted\n").unwrap();
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.shows("❯");
    terminal.types("/diff\r");
    terminal.shows("there is no run in this session yet");
    terminal.shows("❯");
    terminal.types("/loop nosuch\r");
    terminal.shows("there is no loop `nosuch`");
    terminal.shows("❯");
    terminal.types("/loop react\r");
    terminal.shows("the next run thinks in it");
    terminal.shows("❯");
    // A file is completed, and comes with the goal.
    terminal.types("read @no\t");
    terminal.shows("@notes.txt");
    terminal.types("\r");
    terminal.shows("It says hello.");
    terminal.shows("this session: 1 run · ");
    terminal.shows("❯");
    terminal.types("/cost\r");
    terminal.shows("this session: 1 run · ");
    terminal.shows("❯");
    terminal.types("/trace\r");
    terminal.shows("step 1 is complete");
    terminal.shows("❯");
    terminal.types("/diff\r");
    terminal.shows("+hello");
    terminal.shows("❯");
    terminal.types("/undo\r");
    terminal.shows("take this back? [y/N]");
    terminal.types("y\r");
    terminal.shows("taken back");
    terminal.shows("❯");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(world.file("out.txt"), "");
    let entries = world.entries();
    let Entry::RunStarted(started) = &entries[0] else {
        panic!("{entries:?}")
    };
    assert_eq!(started.cognitive_loop, "react");
    assert!(
        format!("{:?}", started.context).contains("noted"),
        "{started:?}"
    );
}

#[test]
fn an_interrupt_parks_the_run_and_not_the_conversation() {
    let world = World::new(crate::support::UNTIL_GO);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.shows("❯");
    terminal.types("wait\r");
    world.wait_for_file("ledger.txt", "begun");
    terminal.types("\x03");
    terminal.shows("finishing what is in progress");
    terminal.types("\x03");
    terminal.shows("/resume goes on with it");
    terminal.shows("❯");
    std::fs::write(world.work().join("go"), "").unwrap();
    terminal.types("/resume\r");
    terminal.shows("finished");
    terminal.shows("❯");
    // Without a run, a signal ends it, and the terminal is as it was before.
    terminal.types("!(until [ -e now ]; do :; done; kill $PPID) & echo be''gun\r");
    terminal.stands("begun");
    terminal.stands("❯ a goal");
    std::fs::write(world.work().join("now"), "").unwrap();
    let rest = terminal.rest();
    let last = |mode: &str| rest.rfind(mode);
    assert!(last("\x1b[?2004l") > last("\x1b[?2004h"), "{rest:?}");
    assert_eq!(terminal.exit_code(), Some(130));
}

#[test]
fn the_bottom_line_says_what_the_run_is_at() {
    let world = World::new(crate::support::UNTIL_GO);
    let arguments = ["run", "go", "--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.shows("running shell");
    std::fs::write(world.work().join("go"), "").unwrap();
    let rest = terminal.shows("finished");
    // The last thing on the screen is the answer, not a half line.
    assert!(rest.rfind("\r\x1b[K") > rest.rfind("step "), "{rest:?}");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_person_types_while_the_run_works() {
    let world = World::new(crate::support::UNTIL_GO);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.stands("❯");
    terminal.types("wait\r");
    world.wait_for_file("ledger.txt", "begun");
    terminal.stands("Enter tells the run");
    // What is typed is seen at once, and can be changed.
    terminal.types("be quick, pleese\x7f\x7f\x7f");
    terminal.stands("be quick, ple");
    terminal.types("ase\r");
    terminal.stands("be quick, please (told before the next step)");
    terminal.types("and then rest\x1b\r");
    terminal.stands("then: and then rest");
    terminal.types("/cost\r");
    terminal.stands("then: /cost");
    terminal.types("half a li");
    terminal.stands("❯ half a li");
    std::fs::write(world.work().join("go"), "").unwrap();
    terminal.stands("the person adds: be quick, please");
    terminal.stands("finished");
    // The goals that waited, one after the other; then the prompt goes on with what was begun.
    terminal.stands("❯ and then rest");
    terminal.stands("finished");
    terminal.stands("❯ /cost");
    terminal.stands("this session: 2 runs");
    terminal.stands("half a li");
    terminal.types("ne\x15/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(world.runs().len(), 2);
}

#[test]
fn what_comes_too_late_for_a_run_is_the_next_goal() {
    let (answers, says) = std::sync::mpsc::channel::<&str>();
    let provider = Provider::start(move |_, _| words(says.recv().unwrap()));
    let world = World::new(THREE_STEPS);
    let model = provider.model();
    let arguments = ["--workdir", ".", "--approve", "auto", "--model", &model];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.stands("❯");
    terminal.types("say one\r");
    terminal.stands("asking");
    terminal.types("say another\r");
    terminal.stands("say another (told before the next step)");
    answers.send("first").unwrap();
    terminal.stands("the run ended before it read what you added");
    terminal.stands("❯ say another");
    answers.send("second").unwrap();
    terminal.stands("second");
    terminal.stands("❯");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_card_takes_no_words_that_were_typed_before_it() {
    let script = r#"
        [[reply]]
        calls = [{ tool = "shell", arguments = { command = "until [ -e go ]; do sleep 0.01; done" } }]
        [[reply]]
        calls = [{ tool = "write", arguments = { path = ".git/one", content = "1\n" } }]
        [[reply]]
        calls = [{ tool = "finish", arguments = { reached = true, answer = "asked" } }]
    "#;
    let world = World::new(script);
    let Some(mut terminal) = Terminal::start_with(&world, &["--workdir", "."], "", XTERM) else {
        return;
    };
    terminal.stands("❯");
    terminal.types("go\r");
    terminal.stands("running shell");
    terminal.types("yes, and more");
    terminal.stands("❯ yes, and more");
    std::fs::write(world.work().join("go"), "").unwrap();
    terminal.stands("y = yes, n = no");
    terminal.stands("your answer");
    terminal.types("\r");
    terminal.types("perhaps\r");
    terminal.stands("please type y = yes");
    assert_eq!(world.file(".git/one"), "");
    terminal.types("yes\r");
    terminal.stands("approved by tester (console)");
    terminal.stands("asked");
    // What was begun before the card is there again.
    terminal.stands("❯ yes, and more");
    terminal.types("\x15/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(world.file(".git/one"), "1\n");
}

#[test]
fn the_line_offers_what_could_be_meant() {
    let world = World::new(THREE_STEPS);
    std::fs::create_dir_all(world.work().join("src/deep")).unwrap();
    std::fs::write(world.work().join("src/deep/main.rs"), "fn main() {}\n").unwrap();
    let Some(mut terminal) = Terminal::start_with(&world, &["--workdir", "."], "", XTERM) else {
        return;
    };
    terminal.stands("ask · script");
    terminal.types("/co");
    let offered = terminal.stands("/compact");
    for word in ["/cost", "/context", "show what fills the model"] {
        assert!(offered.contains(word), "{offered}");
    }
    // The return key has the one that is selected; Escape sends them away.
    terminal.types("\x1b[B\x1b[B\r");
    terminal.stands("there is no run in this session yet");
    terminal.types("\x1b[Z");
    terminal.stands("edits · script");
    terminal.types("see @dpm");
    terminal.stands("  src/deep/main.rs");
    terminal.types("\t");
    terminal.stands("see @src/deep/main.rs");
    // What is long is folded, and goes as it is.
    terminal.types("\x1b[200~");
    terminal.types(&"line\n".repeat(20));
    terminal.types("\x1b[201~");
    terminal.stands("see @src/deep/main.rs[pasted 20 lines]");
    terminal.types("\x03");
    terminal.stands("❯ a goal");
    // A command of the person's own, one of gyrus, and a line of before.
    terminal.types("!printf 'own %s' words\r");
    terminal.stands("own words");
    terminal.types("/memory list\r");
    terminal.stands("❯ /memory list");
    terminal.stands("❯ a goal");
    terminal.types("\x12own");
    terminal.stands("  !printf 'own %s' words");
    terminal.types("\r");
    terminal.stands("❯ !printf 'own %s' words");
    terminal.types("\x03one row\\\ranother");
    terminal.stands("❯ one row\\\n  another");
    terminal.types("\x03\x04");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_person_goes_back_to_before_a_goal() {
    let world = World::new(THREE_STEPS);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("!echo seen by both\r");
    terminal.stands("❯ a goal");
    terminal.types("say hello\r");
    terminal.shows("reached, as the model claims");
    terminal.shows("❯");
    assert!(!world.file("out.txt").is_empty());
    // Escape twice, as the word for it.
    terminal.types("\x1b\x1b");
    terminal.stands("back to before which goal? arrows or a number");
    terminal.types("1\r");
    terminal.shows("take this back? [y/N]");
    terminal.types("y\r");
    terminal.shows("the next run knows nothing of it");
    terminal.stands("❯ say hello");
    assert_eq!(world.file("out.txt"), "");
    terminal.types("\r");
    terminal.shows("reached, as the model claims");
    terminal.shows("❯");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    let runs = world.runs();
    let name = gyrus_kernel::log_name(runs[1]);
    let first = world.store().reader(&name).unwrap().entry(1).unwrap();
    let Entry::RunStarted(started) = gyrus_kernel::parse(&first.unwrap()).unwrap() else {
        panic!("a run begins with its start")
    };
    assert_eq!(started.continues, None);
    // What the person's own command printed came with the first goal.
    let first = gyrus_kernel::log_name(runs[0]);
    let first = world.store().reader(&first).unwrap().entry(1).unwrap();
    let first = format!("{:?}", gyrus_kernel::parse(&first.unwrap()).unwrap());
    assert!(first.contains("seen by both"), "{first}");

    // Another conversation goes on from one of these.
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", XTERM) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("/resume\r");
    terminal.stands("go on with which? arrows or a number");
    terminal.types("\x1b[B\x1b[A1\r");
    terminal.shows("the next goal goes on from it");
    terminal.shows("❯");
    terminal.types("and again\r");
    terminal.shows("reached, as the model claims");
    terminal.shows("❯");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    let runs = world.runs();
    let name = gyrus_kernel::log_name(runs[2]);
    let first = world.store().reader(&name).unwrap().entry(1).unwrap();
    let first = format!("{:?}", gyrus_kernel::parse(&first.unwrap()).unwrap());
    assert!(
        first.contains(&format!("continues: Some({:?})", runs[1])),
        "{first}"
    );
}

#[test]
fn markdown_is_shown_as_what_it_means() {
    let world = World::new(
        "[[reply]]\ntext = \"# Plan\\nIt is **done**, see `out.txt`.\\n\\n| a | b |\\n|---|---|\\n| longer | 1 |\\n\"\n",
    );
    let arguments = ["run", "go", "--workdir", "."];
    for (columns, environment) in [(200, XTERM), (80, XTERM), (40, XTERM)] {
        let started = Terminal::start_in(&world, &arguments, "", environment, columns);
        let Some(mut terminal) = started else {
            return;
        };
        let screen = terminal.stands("answered");
        assert!(
            screen.contains("• Plan\n  It is done, see out.txt.\n  a       b\n  longer  1\n"),
            "{screen}"
        );
        assert_eq!(terminal.exit_code(), Some(0));
    }
    // Without colours it stands as it was written.
    let plain = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
    if let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &plain) {
        terminal.stands("It is **done**, see `out.txt`.");
    }
}

#[test]
fn a_picture_comes_from_the_clipboard() {
    use std::os::unix::fs::PermissionsExt as _;
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let world = World::new("[[reply]]\ntext = \"Seen.\"\n");
    let helpers = world.path("helpers");
    std::fs::create_dir(&helpers).unwrap();
    let xclip = helpers.join("xclip");
    let path = format!("{}:{}", helpers.display(), std::env::var("PATH").unwrap());
    let prints = |what: &str| {
        let script = format!("#!/bin/sh\ncase \"$*\" in *image/png*) {what};; esac\n");
        std::fs::write(&xclip, script).unwrap();
        std::fs::set_permissions(&xclip, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    prints("echo 'Error: target image/png not available' >&2; exit 1");
    let environment = [
        ("TERM", "xterm-256color"),
        ("PATH", &*path),
        ("DISPLAY", ":0"),
    ];
    let arguments = ["--workdir", "."];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &environment) else {
        return;
    };
    terminal.stands("❯ a goal");
    for (wrong, told) in [
        ("exit 1", "there is no picture"),
        ("echo not a picture", "is not a PNG"),
        ("head -c 9000000 /dev/zero", "error:"),
    ] {
        prints(wrong);
        terminal.types("/image\r");
        terminal.shows(told);
        terminal.shows("❯");
    }
    prints(&format!("echo {PNG} | base64 -d"));
    terminal.types("/image\r");
    terminal.shows("the attachment comes with the next goal");
    terminal.shows("❯");
    terminal.types("look\r");
    terminal.shows("this session:");
    terminal.shows("❯");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    let Entry::RunStarted(started) = &world.entries()[0] else {
        panic!("a run begins with its start")
    };
    assert!(
        format!("{:?}", started.context).contains("image/png"),
        "{started:?}"
    );
}

#[test]
fn a_session_of_the_folder_is_chosen_to_go_on_with() {
    let finish = "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"finished\" } }]\n";
    let world = World::new(&format!("{}{finish}", finish.repeat(2)));
    // Nothing is there yet.
    world
        .gyrus(&["resume"])
        .exits(2)
        .says("there is no run yet");
    let begin = |goal: &str, more: &[&str], code| {
        let arguments = [&["run", goal, "--workdir", ".", "--approve", "auto"], more].concat();
        world.gyrus(&arguments).exits(code);
    };
    begin("the first goal", &[], 0);
    begin("and then", &["--continue"], 0);
    std::fs::write(world.path("script.toml"), crate::support::UNTIL_GO).unwrap();
    std::fs::write(world.work().join("go"), "").unwrap();
    begin("the second goal", &["--max-steps", "1"], 3);
    // Without a terminal they are listed, a session once, by its first words.
    let said = world.gyrus(&["resume"]).exits(2).says("gyrus resume ");
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 2, "{said:?}");
    assert!(lines[0].contains("(parked) the second goal"), "{said:?}");
    assert!(lines[1].ends_with("the first goal"), "{said:?}");
    let resume = ["resume", "--approve", "read-only"];
    let Some(mut terminal) = Terminal::start_with(&world, &resume, "", XTERM) else {
        return;
    };
    terminal.stands("▸  1  ");
    // Not beyond the end, and a number that is none stays where it was.
    terminal.types("\x1b[B\x1b[B\x1b[B9x");
    terminal.stands("▸  2  ");
    terminal.types("\r");
    terminal.stands("the next goal goes on from it");
    // What was said with it holds for what comes.
    terminal.stands("read-only · ");
    terminal.stands("❯ a goal");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    // None is chosen. The words are seen in a narrow terminal.
    let Some(mut terminal) = Terminal::start_in(&world, &["resume"], "", XTERM, 40) else {
        return;
    };
    terminal.stands("(parked) the second");
    terminal.stands("▸  1  ");
    terminal.types("\x1b");
    assert_eq!(terminal.exit_code(), Some(0));
    // A conversation in another folder, with another policy, does not go on with it.
    std::fs::create_dir(world.path("other")).unwrap();
    let other = ["--workdir", "../other"];
    let Some(mut terminal) = Terminal::start_with(&world, &other, "", XTERM) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types(&format!("/resume {}\r", world.runs()[2].short()));
    terminal.stands("works in another folder");
    terminal.stands("❯ a goal");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn what_is_pasted_is_one_text_and_a_command_gives_the_terminal_back() {
    let world = World::new(THREE_STEPS);
    // A history that is not a file is none.
    std::fs::create_dir(world.path("home")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.path("home/history")).unwrap();
    let Some(mut terminal) = Terminal::start_with(&world, &[], "", XTERM) else {
        return;
    };
    terminal.stands("❯ a goal");
    // However long it is, none of its lines is a goal of its own.
    terminal.types("\x1b[200~");
    for _ in 0..40_000 {
        terminal.types("a line\n");
    }
    terminal.types("the end\x1b[201~");
    terminal.stands("❯ [pasted 40,001 lines]");
    // One whose end never comes is over with Ctrl-C, and stays.
    terminal.types("\x15\x1b[200~no end\x03");
    terminal.stands("❯ no end");
    // What a command leaves in the background holds neither the prompt nor what comes after it.
    terminal.types("\x15!sleep 300 & echo $! > pid; stty raw; echo be''gun\r");
    terminal.stands("begun");
    terminal.stands("❯ a goal");
    terminal.types("!stty -a | grep -q -e -opost || echo as be''fore\r");
    terminal.stands("as before");
    terminal.stands("❯ a goal");
    terminal.types("!kill $(cat pid) && echo go''ne\r");
    terminal.stands("gone");
    terminal.stands("❯ a goal");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(world.runs().is_empty());
}
