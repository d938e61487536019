//! Tests of `clipboard`, under a real X server where there is one.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::{Child, Command, Stdio},
};

use gyrus_contract::{ActionVerdict, BuiltIn, CapturedOutput, CommandOutcome, Exit};
use gyrus_tools::Clipboard;
use serde_json::json;

use crate::site::World;

/// Creates the tool with a folder of programs and these variables.
fn clipboard(path: &str, variables: &[(&str, &str)]) -> BuiltIn<Clipboard> {
    let mut variables: BTreeMap<_, _> = variables.iter().copied().collect();
    variables.insert("PATH", path);
    BuiltIn::new(Clipboard::with_variables(|name| {
        variables.get(name).map(|value| (*value).to_owned())
    }))
}

/// Returns a world whose `bin` has programs of these names, to be found and not run.
fn world_with(programs: &[&str]) -> (World, String) {
    let world = World::new();
    fs::create_dir(world.outside("bin")).unwrap();
    for program in programs {
        let file = world.outside("bin").join(program);
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = world.outside("bin").display().to_string();
    (world, path)
}

fn prints(world: &World, code: i32, head: &str) {
    *world.outcome.lock().unwrap() = Ok(CommandOutcome {
        exit: Exit::Code(code),
        output: CapturedOutput {
            head: head.to_owned(),
            ..CapturedOutput::default()
        },
    });
}

#[test]
fn reads_with_the_helper_of_the_session() {
    let (world, path) = world_with(&["wl-paste", "xclip"]);
    prints(&world, 0, "copied\n");
    let session = [
        ("WAYLAND_DISPLAY", "wayland-0"),
        ("DISPLAY", ":0"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
        ("SSH_AUTH_SOCK", "must not get through"),
        ("XAUTHORITY", ""),
    ];
    let output = world.call(&clipboard(&path, &session), json!({}));
    assert_eq!((output.text.as_str(), output.is_error), ("copied\n", false));
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
    let command = world.commands.lock().unwrap().pop().unwrap();
    // The path is absolute: a program found later under the name would be another.
    assert_eq!(command.program, format!("{path}/wl-paste"));
    let names: Vec<_> = command.environment.keys().cloned().collect();
    assert_eq!(
        names,
        [
            "DISPLAY",
            "LANG",
            "PATH",
            "WAYLAND_DISPLAY",
            "XDG_RUNTIME_DIR"
        ]
    );
    world.call(&clipboard(&path, &[("DISPLAY", ":0")]), json!({}));
    let command = world.commands.lock().unwrap().pop().unwrap();
    assert_eq!(command.program, format!("{path}/xclip"));

    for (code, printed, text) in [
        (0, "", "(there is no text on the clipboard)"),
        (
            1,
            "Nothing is copied\n",
            "(there is no text on the clipboard)",
        ),
        (
            1,
            "Error: Can't open display: :0\n",
            "the clipboard cannot be reached: Error: Can't open display: :0",
        ),
    ] {
        prints(&world, code, printed);
        let output = world.call(&clipboard(&path, &session), json!({}));
        assert_eq!(output.text, text);
    }
}

#[test]
fn says_what_is_missing() {
    let (world, path) = world_with(&["xclip"]);
    let check = |clipboard: &BuiltIn<Clipboard>, words: &str| {
        for arguments in [json!({}), json!({"text": "x"})] {
            let output = world.call(clipboard, arguments);
            assert!(
                output.is_error && output.text.contains(words),
                "{}",
                output.text
            );
            assert_eq!(output.verdict, ActionVerdict::NoEffect);
        }
        assert!(world.commands.lock().unwrap().is_empty());
    };
    check(
        &clipboard(&path, &[("DISPLAY", "")]),
        "neither WAYLAND_DISPLAY nor DISPLAY was set",
    );
    // Its helper would be found in the standard folders of a machine that has one.
    if !["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|folder| fs::exists(format!("{folder}/wl-paste")).unwrap())
    {
        check(
            &clipboard("/nowhere", &[("WAYLAND_DISPLAY", "w")]),
            "not installed: `wl-paste` was not found (wl-paste and wl-copy are",
        );
    }
    let desktop = clipboard(&path, &[("DISPLAY", ":0")]);
    for (arguments, words) in [
        (json!({"text": ""}), "between 1 and 65536 bytes"),
        (
            json!({"text": "x".repeat(70_000)}),
            "between 1 and 65536 bytes",
        ),
        (json!({"text": "⟦secret:OTHER⟧"}), "`OTHER` is not known"),
        (json!({"texts": "x"}), "unknown argument `texts`"),
    ] {
        let output = world.call(&desktop, arguments);
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
    }
    assert!(world.commands.lock().unwrap().is_empty());
}

#[test]
fn sets_with_secrets_and_says_what_it_saw() {
    let (world, path) = world_with(&["xclip"]);
    let clipboard = clipboard(&path, &[("DISPLAY", ":0")]);
    let set = || world.call(&clipboard, json!({"text": "⟦secret:KEY⟧\n"}));
    prints(&world, 0, "chatter\n--- read back ---\nhunter2\n");
    let output = set();
    assert_eq!(output.text, "the clipboard holds the text (8 bytes)");
    assert_eq!(output.verdict, ActionVerdict::Changed);
    let command = world.commands.lock().unwrap().pop().unwrap();
    assert_eq!(command.stdin, "hunter2\n");
    assert!(!command.arguments.concat().contains("hunter2"));

    prints(&world, 1, "--- read back ---\n");
    let output = set();
    assert!(output.is_error && output.text.contains("no clipboard manager"));
    assert_eq!(output.verdict, ActionVerdict::Changed);
    prints(&world, 1, "Error: Can't open display: :0\n");
    let output = set();
    assert!(output.is_error && output.text.contains("Can't open display"));
    assert_eq!(output.verdict, ActionVerdict::NoEffect);
}

/// An X server without a desktop, on a free number.
struct Desktop {
    server: Child,
    display: String,
}

impl Desktop {
    fn start() -> Option<Self> {
        let started = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut server = started.ok()?;
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut number)
            .unwrap();
        let display = format!(":{}", number.trim());
        Some(Self { server, display })
    }

    /// Returns the text that another program reads from the clipboard.
    fn text(&self) -> Vec<u8> {
        let read = Command::new("xclip")
            .args(["-selection", "clipboard", "-out"])
            .env("DISPLAY", &self.display)
            .output();
        read.unwrap().stdout
    }

    /// Puts the text on the clipboard like a program of the person, until it is killed.
    fn owner(&self, text: &str) -> Owner {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        let mut child = Command::new("xclip")
            .args(["-selection", "clipboard", "-verbose"])
            .arg(file.path())
            .env("DISPLAY", &self.display)
            .process_group(0)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let owns = |line: String| line.contains("Waiting for selection request");
        assert!(lines.any(|line| owns(line.unwrap())));
        // Read on, or it could not go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        Owner(child)
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

struct Owner(Child);

impl Drop for Owner {
    fn drop(&mut self) {
        // The process ends by itself when another takes the clipboard.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

#[test]
fn on_a_real_desktop() {
    let path = "/usr/local/bin:/usr/bin:/bin";
    let helpers: Vec<_> = ["xclip", "xsel"]
        .into_iter()
        .filter(|name| fs::exists(format!("/usr/bin/{name}")).unwrap())
        .collect();
    if !helpers.contains(&"xclip") {
        println!("skipped: xclip is not installed");
        return;
    }
    let Some(desktop) = Desktop::start() else {
        println!("skipped: Xvfb is not installed");
        return;
    };
    let mut world = World::new();
    world.runs_commands = true;
    let clipboard = clipboard(path, &[("DISPLAY", &desktop.display)]);
    let empty = world.call(&clipboard, json!({}));
    assert_eq!(
        (empty.text.as_str(), empty.is_error),
        ("(there is no text on the clipboard)", false)
    );
    {
        let text = "two\nlines, żółć 世界\n";
        let _owner = desktop.owner(text);
        let read = world.call(&clipboard, json!({}));
        assert_eq!((read.text.as_str(), read.is_error), (text, false));
    }
    // There is no clipboard manager here, and the output says so.
    let set = world.call(&clipboard, json!({"text": "for the person"}));
    assert!(
        set.is_error && set.text.contains("no clipboard manager"),
        "{}",
        set.text
    );
    assert_eq!(world.call(&clipboard, json!({})).text, empty.text);

    // A clipboard manager takes a copy of what is new.
    let text = "for the person\n";
    let done = std::sync::atomic::AtomicBool::new(false);
    let (set, read) = std::thread::scope(|scope| {
        let manager = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                if desktop.text() == text.as_bytes() {
                    return Some(desktop.owner(text));
                }
            }
            None
        });
        let set = world.call(&clipboard, json!({"text": text}));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let _owner = manager.join().unwrap();
        (set, world.call(&clipboard, json!({})))
    });
    assert_eq!(set.text, "the clipboard holds the text (15 bytes)");
    assert_eq!(read.text, text);
}
