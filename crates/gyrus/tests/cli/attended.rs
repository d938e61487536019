//! A run whose person sits at the terminal: commands are put into the background, cards of a kind are one,
//! and a plan ticks.

use crate::{
    planning::{plan, reply, shell, summary, write},
    support::World,
    terminal::Terminal,
};

const XTERM: &[(&str, &str)] = &[("TERM", "xterm-256color")];

/// A command that lasts, and what comes of it once it goes on by itself.
const ASIDE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { timeout_seconds = 600, command = "echo 'line one'; echo made > made.txt; until [ -e go ]; do sleep 0.01; done; echo 'line two'; exit 3" } }]
[[reply]]
when = "(?s)line one.*a person put it into the background"
find = { process = 'process (\S+) goes on' }
calls = [
  { tool = "shell", arguments = { command = "ls; touch go" } },
  { tool = "shell", arguments = { process = "{{process}}", command = "", until = "never" } },
]
[[reply]]
when = "(?s)line two.*ended: exit code 3.*created: made.txt"
text = "It went on."
"#;

#[test]
fn a_command_is_put_into_the_background() {
    let world = World::new(ASIDE);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_in(&world, &arguments, "", XTERM, 80) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("go\r");
    // Its last line is seen while it runs.
    terminal.stands("· line one");
    assert!(!world.work().join("made.txt").exists());
    terminal.types("\x02");
    terminal.stands("a person put it into the background");
    terminal.stands("It went on.");
    terminal.stands("❯ a goal");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(world.file("made.txt"), "made\n");
    world.replays();
}

/// A command that takes longer than a command should.
const LONG: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { timeout_seconds = 600, command = "echo 'line one'; until [ -e go ]; do sleep 0.01; done; echo 'line two'" } }]
[[reply]]
when = "(?s)line one.*it was put there after 1 s"
find = { process = 'process (\S+) goes on' }
calls = [{ tool = "shell", arguments = { process = "{{process}}", command = "", until = "never" } }]
[[reply]]
when = "(?s)line two.*ended: exit code 0"
text = "It went on."
"#;

#[test]
fn a_long_command_goes_on_in_the_background_by_itself_and_is_shown() {
    let world = World::new(LONG);
    std::fs::create_dir_all(world.path("home")).unwrap();
    let config = "[sandbox]\nbackground-after = \"1s\"\n";
    std::fs::write(world.path("home/config.toml"), config).unwrap();
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_in(&world, &arguments, "", XTERM, 80) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("go\r");
    terminal.stands("⚙ 1.");
    std::fs::write(world.work().join("go"), "").unwrap();
    let screen = terminal.stands("It went on.");
    assert!(!screen.contains("⚙"), "{screen}");
    terminal.stands("❯ a goal");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    // Without a terminal there is nobody to put it there, as without the setting.
    std::fs::write(world.path("script.toml"), crate::support::THREE_STEPS).unwrap();
    world.run(&[]).exits(0);
}

/// Commands that end by themselves, at their limit, and in other ways.
const ORDINARY: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo out; echo err >&2; git init -q . 2>/dev/null; exit 4" } }]
[[reply]]
when = '(?s)out\nerr\n\[exit code 4\]'
calls = [{ tool = "shell", arguments = { command = "echo begun; sleep 600", timeout_seconds = 1 } }]
[[reply]]
when = '(?s)begun\n\[timed out after 1 s'
calls = [{ tool = "shell", arguments = { command = "if then" } }]
[[reply]]
when = '(?s)syntax error.*exit code 2'
calls = [{ tool = "shell", arguments = { command = "nowhere-at-all" } }]
[[reply]]
when = 'line 1: nowhere-at-all: command not found\n\[exit code 127\]'
calls = [{ tool = "shell", arguments = { command = "seq 1 100000; kill -9 $$" } }]
[[reply]]
when = '(?s)^1\n2\n.*bytes omitted.*100000\n\[killed by signal 9\]'
calls = [{ tool = "shell", arguments = { command = "(sleep 600; echo late) & head -c 40 /dev/zero; ls -A /tmp; cat" } }]
[[reply]]
when = '(?s)exit code 0'
text = "All as ever."
"#;

#[test]
fn no_more_than_eight_go_on_and_a_key_too_many_does_nothing() {
    let calls = (1..=9).map(|number| {
        let command = format!("echo began-{number}; sleep 300");
        format!("[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = \"{command}\" }} }}]\n")
    });
    let world = World::new(&(calls.collect::<String>() + "[[reply]]\ntext = \"Over.\"\n"));
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_in(&world, &arguments, "\x02", XTERM, 80) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("\x02go\x02\r");
    for number in 1..=9 {
        terminal.shows(&format!("· began-{number}"));
        terminal.types("\x02");
    }
    terminal.stands("8 processes go on already; end one first");
    terminal.types("\x03");
    terminal.shows("finishing what is in progress");
    terminal.types("\x03");
    terminal.stands("/resume goes on with it");
    terminal.stands("❯ a goal");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn commands_end_as_they_do_where_nobody_sits() {
    let world = World::new(ORDINARY);
    world.run(&["--max-steps", "20"]).exits(0);
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_in(&world, &arguments, "", XTERM, 80) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("go\r");
    terminal.stands("All as ever.");
    terminal.stands("❯ a goal");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn what_was_put_into_the_background_ends_with_the_run() {
    let world = World::new(
        &ASIDE
            .replace("touch go", "true")
            .replace("until = \"never\"", "until = \"line\", timeout_seconds = 1")
            .replace(
                "(?s)line two.*ended: exit code 3.*created: made.txt",
                "(?s)goes on",
            ),
    );
    let arguments = ["--workdir", ".", "--approve", "auto"];
    let Some(mut terminal) = Terminal::start_in(&world, &arguments, "", XTERM, 80) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types("go\r");
    terminal.stands("· line one");
    terminal.types("\x02");
    terminal.stands("It went on.");
    // Nobody saw its end, and a person hears that.
    terminal.stands("ended with it, changes dropped: echo 'line one'");
    terminal.stands("❯ a goal");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
    let marker = world.work().display().to_string();
    let is_own = |line: &Vec<u8>| {
        let line = String::from_utf8_lossy(line);
        line.contains("line two") && line.contains(&marker)
    };
    assert_eq!(lines.filter(is_own).count(), 0);
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    // Nobody saw its end, so what it changed is dropped.
    assert!(!world.work().join("made.txt").exists());
}

/// Three parts that each want to change what is asked about, and one that asks something else.
const ALIKE: &str = r#"
[[reply]]
calls = [
  { tool = "delegate", arguments = { goal = "alpha part" } },
  { tool = "delegate", arguments = { goal = "beta part" } },
  { tool = "delegate", arguments = { goal = "gamma part" } },
]
[[reply]]
repeat = 9
text = "All three are done."
[[reply]]
goal = "alpha part"
calls = [{ tool = "write", arguments = { path = ".git/alpha", content = "1\n" } }]
[[reply]]
goal = "alpha part"
repeat = 9
text = "alpha is done"
[[reply]]
goal = "beta part"
calls = [{ tool = "write", arguments = { path = ".git/beta", content = "2\n" } }]
[[reply]]
goal = "beta part"
repeat = 9
text = "beta is done"
[[reply]]
goal = "gamma part"
calls = [{ tool = "write", arguments = { path = ".git/gamma", content = "3\n" } }]
[[reply]]
goal = "gamma part"
repeat = 9
text = "gamma is done"
"#;

const GOAL: &str = "in parallel: three parts\r";

#[test]
fn cards_of_a_kind_are_answered_with_one_key() {
    for (columns, key, files) in [(80, "Y", "1\n2\n3\n"), (40, "N not now", "")] {
        let world = World::new(ALIKE);
        let Some(mut terminal) =
            Terminal::start_in(&world, &["--workdir", "."], "", XTERM, columns)
        else {
            return;
        };
        terminal.stands("❯ a goal");
        terminal.types(GOAL);
        terminal.shows("\x1b]2;gyrus asks you\x07\x1b]9;gyrus waits for your answer\x07");
        let card = terminal.stands("Y = yes to all 3, N = no to all 3");
        assert!(card.contains("│ and "), "{card}");
        assert_eq!(world.file(".git/alpha"), "");
        terminal.types(&format!("{key}\r"));
        terminal.stands("All three are done.");
        terminal.stands("❯ a goal");
        terminal.types("/quit\r");
        assert_eq!(terminal.exit_code(), Some(0));
        let written = ["alpha", "beta", "gamma"].map(|name| world.file(&format!(".git/{name}")));
        assert_eq!(written.concat(), files);
    }
}

#[test]
fn each_of_them_can_be_answered_alone() {
    let world = World::new(ALIKE);
    let Some(mut terminal) = Terminal::start_in(&world, &["--workdir", "."], "", XTERM, 80) else {
        return;
    };
    terminal.stands("❯ a goal");
    terminal.types(GOAL);
    terminal.stands("Y = yes to all 3");
    terminal.types("Yes please\r");
    terminal.stands("please type y = yes");
    assert_eq!(world.file(".git/alpha"), "");
    terminal.types("y\r");
    // What stood there before an answer does not count: the next card comes after it.
    terminal.shows("approved by tester (console)");
    terminal.shows("Y = yes to all 2");
    terminal.types("n\r");
    terminal.shows("denied by tester (console)");
    terminal.shows("y = yes");
    terminal.types("y\r");
    terminal.stands("All three are done.");
    terminal.stands("❯ a goal");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
    let written = ["alpha", "beta", "gamma"].map(|name| world.file(&format!(".git/{name}")));
    assert_eq!(written.iter().filter(|text| !text.is_empty()).count(), 2);
}

/// Right-to-left words, wide characters, marks and signs that join, in a narrow terminal.
#[test]
fn a_line_of_any_script_is_typed_and_changed() {
    for columns in [24, 40] {
        let world = World::new("[[reply]]\ntext = \"Said.\"\n");
        let Some(mut terminal) =
            Terminal::start_in(&world, &["--workdir", "."], "", XTERM, columns)
        else {
            return;
        };
        terminal.stands("❯ a goal");
        terminal.types("שלום عالم 日本語の文字 e\u{301}🇩🇪👨\u{200d}👩\u{200d}👧 x");
        terminal.types("\x1b[D\x1b[Dz\x01a\x05b");
        let screen = terminal.stands("xb");
        assert!(screen.contains("❯ aשלום عالم"), "{screen}");
        for line in screen.lines() {
            assert!(gyrus_text::width(line) <= usize::from(columns), "{line}");
        }
        terminal.types("\r");
        terminal.stands("Said.");
        terminal.stands("❯ a goal");
        terminal.types("/quit\r");
        assert_eq!(terminal.exit_code(), Some(0));
    }
}

#[test]
fn a_plan_is_a_list_that_ticks() {
    let steps = [
        write("a", "a.txt", "a\n", &[]),
        shell("b", "until [ -e go ]; do sleep 0.01; done", &["a"]),
        write("c", "c.txt", "c\n", &["b"]),
    ];
    let script = reply("plan", &plan(&steps), "") + &summary("All is in order.");
    for columns in [40, 80, 200] {
        let world = World::new(&script);
        let arguments = ["--workdir", ".", "--approve", "auto", "--loop", "plan"];
        let Some(mut terminal) = Terminal::start_in(&world, &arguments, "", XTERM, columns) else {
            return;
        };
        terminal.stands("❯ a goal");
        terminal.types("bring the notes into order\r");
        terminal.stands("✓ a: because of a\n☐ b: because of b\n☐ c: because of c\nstep ");
        std::fs::write(world.work().join("go"), "").unwrap();
        terminal.stands("All is in order.");
        let screen = terminal.stands("❯ a goal");
        assert!(!screen.contains('☐'), "{screen}");
        terminal.types("/quit\r");
        assert_eq!(terminal.exit_code(), Some(0));
    }
}

#[test]
fn colours_suit_the_background() {
    let world = World::new("[[reply]]\ntext = \"Use `it`.\"\n");
    for (environment, code) in [
        ([("COLORFGBG", "0;15"), ("TERM", "xterm")], "\x1b[35mit"),
        (
            [("COLORFGBG", "15;default;0"), ("TERM", "xterm")],
            "\x1b[94m• Use ",
        ),
        (
            [("COLORFGBG", "x;\u{1b}99999"), ("TERM", "xterm")],
            "\x1b[34m• Use ",
        ),
        ([("GYRUS_THEME", "light"), ("TERM", "xterm")], "\x1b[35mit"),
    ] {
        let arguments = ["run", "go", "--workdir", "."];
        let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &environment) else {
            return;
        };
        terminal.shows(code);
    }
}
