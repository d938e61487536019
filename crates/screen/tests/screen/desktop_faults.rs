//! A desktop on which something goes wrong: it is said, nothing hangs, and no input goes elsewhere.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use gyrus_contract::{ActionVerdict, LookOptions, Screen as _, ScreenError};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    desktop::has,
    desktop_acting::{Desk, is_missing},
    desktop_stand_ins::{say, wait_for, words},
};

/// Returns the processes of this test's desktop whose command line has this in it.
fn processes(part: &str) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let read = |process: i32, what: &str| {
        let bytes = fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let numbers: Vec<_> = numbers.collect();
    // Programs are told apart by the home that they were given: some leave their parents.
    let parent = |process: i32| {
        let stat = read(process, "stat");
        let (_, rest) = stat.rsplit_once(") ")?;
        let parent = rest.split(' ').nth(1)?.parse::<i32>().ok()?;
        (parent > 1).then_some(parent)
    };
    let own = std::process::id().cast_signed();
    let is_own_server = |process: &&i32| {
        let mut line = std::iter::successors(Some(**process), |one| parent(*one));
        let is_server = read(**process, "cmdline").contains("Xvfb\0-displayfd");
        is_server && line.any(|one| one == own)
    };
    let server = numbers.iter().find(is_own_server).expect("a server");
    let environment = read(*server, "environ");
    let mut variables = environment.split('\0');
    let home = variables.find(|one| one.starts_with("HOME=")).unwrap();
    let home = format!("{home}\0");
    let fits = |process: &i32| {
        read(*process, "cmdline").contains(part) && read(*process, "environ").contains(&home)
    };
    let fitting = numbers.iter().filter(|process| fits(process));
    fitting
        .filter_map(|process| Pid::from_raw(*process))
        .collect()
}

fn signal(part: &str, signal: Signal) {
    let found = processes(part);
    assert!(!found.is_empty(), "no process has {part}");
    for process in found {
        kill_process(process, signal).unwrap();
    }
}

const LOOK: LookOptions = LookOptions {
    frame: true,
    documents: 0,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_desktop_that_lost_its_server_says_so_and_begins_again() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("text").await;
    let before = desk.look().await;
    let text = desk.text().await.id;
    signal("Xvfb", Signal::KILL);
    let clicked = desk.act("click", json!({"on": text})).await;
    assert!(clicked.is_error, "{}", clicked.text);
    // What was lost is told once, and then there is another.
    let now = desk.look().await;
    assert_ne!(now.session, before.session);
    assert_eq!(now.elements, []);
    signal("Xvfb", Signal::KILL);
    let lost = desk.desktop.look(LOOK).await;
    assert!(matches!(lost, Err(ScreenError::Lost { .. })), "{lost:?}");
    let opened = json!({"application": "mousepad"});
    desk.done("open_application", opened).await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_given_up() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("text").await;
    signal("Xvfb", Signal::STOP);
    let began = Instant::now();
    let lost = desk.desktop.look(LOOK).await;
    assert!(matches!(lost, Err(ScreenError::Lost { .. })), "{lost:?}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(desk.look().await.elements, []);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_accessibility_bus_a_desktop_is_still_seen_and_gets_another() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("text").await;
    signal("accessibility.conf", Signal::KILL);
    let view = desk.look().await;
    assert!(view.title.contains("note.txt"), "{}", view.title);
    let unread = view.unread.join("\n");
    assert!(
        unread.contains("when the accessibility bus ended"),
        "{unread}"
    );
    // Of a program that is opened now everything is seen.
    fs::write(desk.path("other.txt"), "anew").unwrap();
    desk.done("press_key", json!({"key": "Control+q"})).await;
    let opened = json!({"application": "mousepad", "file": "other.txt"});
    desk.done("open_application", opened).await;
    assert_eq!(desk.text().await.value.as_deref(), Some("anew"));
    // A bus that hangs costs a look a few seconds, and only its elements.
    signal("accessibility.conf", Signal::STOP);
    let began = Instant::now();
    let view = desk.look().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(view.title.contains("other.txt"), "{}", view.title);
    assert!(!view.unread.is_empty());
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_named_and_others_go_on() {
    if is_missing() || !has(&["galculator"]) {
        return;
    }
    let desk = Desk::with_editor("text").await;
    let calculator = json!({"application": "calculator"});
    desk.done("open_application", calculator).await;
    signal("mousepad", Signal::STOP);
    let began = Instant::now();
    let unread = desk.look().await.unread.join("\n");
    assert!(unread.contains("Mousepad"), "{unread}");
    assert!(unread.contains("does not answer"), "{unread}");
    let seven = desk.named("7").await.id;
    let clicked = desk.done("click", json!({"on": seven})).await;
    assert_eq!(clicked.verdict, ActionVerdict::Changed, "{}", clicked.text);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    // Its own window takes no text; that is said, and how much is known to have arrived.
    let window = desk.find(|one| one.name.contains("note.txt")).await.id;
    desk.act("switch_tab", json!({"tab": window.document}))
        .await;
    let began = Instant::now();
    let typed = desk
        .act("type_text", json!({"text": "x".repeat(500)}))
        .await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(typed.is_error, "{}", typed.text);
    assert!(
        typed.text.contains("does not read its events"),
        "{}",
        typed.text
    );
    assert!(
        typed.text.contains("the first 0 are known to have arrived"),
        "{}",
        typed.text
    );
    // It is read again once it goes on.
    signal("mousepad", Signal::CONT);
    let unread = desk.look().await.unread;
    assert!(unread.is_empty(), "{unread:?}");
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_accessibility_is_used_by_its_pixels() {
    if is_missing() || !has(&["xterm"]) {
        return;
    }
    let desk = Desk::new();
    desk.desktop
        .start(&["xterm".to_owned(), "-e".to_owned(), "sh".to_owned()])
        .await
        .unwrap();
    let view = desk.look().await;
    let [window] = &view.elements[..] else {
        panic!("{:#?}", view.elements);
    };
    assert_eq!(window.role, "window");
    let file = desk.path("flag");
    let line = format!("echo typed > '{}'", file.display());
    let typed = json!({"text": line, "submit": true});
    let typed = desk.done("type_text", typed).await;
    assert_eq!(typed.verdict, ActionVerdict::Changed, "{}", typed.text);
    for _ in 0..500 {
        if fs::read_to_string(&file).is_ok_and(|text| text == "typed\n") {
            desk.leave().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the shell did not do it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_goes_away_with_the_desktop_is_told() {
    if is_missing() || !has(&["xterm"]) {
        return;
    }
    let desk = Desk::new();
    desk.desktop
        .start(&["xterm".to_owned(), "-e".to_owned(), "sh".to_owned()])
        .await
        .unwrap();
    let line = json!({"text": "echo words > ~/letter.txt", "submit": true});
    let mut told = desk.done("type_text", line).await.text;
    // The shell may need longer than the screen.
    for _ in 0..100 {
        if told.contains("home/letter.txt now, which goes away with this desktop") {
            let again = desk.done("press_key", json!({"key": "a"})).await.text;
            assert!(!again.contains("letter.txt now"), "{again}");
            desk.leave().await;
            return;
        }
        told = desk.done("press_key", json!({"key": "a"})).await.text;
    }
    panic!("{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_stops_where_another_window_takes_the_keyboard() {
    if is_missing() {
        return;
    }
    let desk = Desk::new();
    let folder = tempfile::tempdir().unwrap();
    desk.desktop
        .start(&words("steal", folder.path()))
        .await
        .unwrap();
    fs::write(desk.path("note.txt"), "").unwrap();
    let opened = json!({"application": "mousepad", "file": "note.txt"});
    desk.done("open_application", opened).await;
    // So long that it still is typed when the other window has come, however busy the machine is.
    let text: String = (0..2_000).map(|at| format!("{at} ")).collect();
    let typed = desk.act("type_text", json!({"text": text})).await;
    assert!(typed.is_error, "{}", typed.text);
    let (_, said) = typed.text.split_once("the first ").unwrap();
    let arrived: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!((400..text.len()).contains(&arrived), "{}", typed.text);
    let moved = typed
        .text
        .contains("the keyboard is now at window “stand-in”");
    assert!(moved, "{}", typed.text);
    let held = desk.text().await;
    let whole = desk.done("extract", json!({"on": held.id})).await.text;
    assert_eq!(whole.trim_end(), text[..arrived].trim_end());
    assert_eq!(wait_for(folder.path(), "stolen"), "0");
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_lock_nothing_is_used() {
    if is_missing() {
        return;
    }
    let desk = Desk::new();
    let folder = tempfile::tempdir().unwrap();
    desk.desktop
        .start(&words("lock", folder.path()))
        .await
        .unwrap();
    fs::write(desk.path("note.txt"), "kept").unwrap();
    let opened = json!({"application": "mousepad", "file": "note.txt"});
    desk.done("open_application", opened).await;
    let text = desk.text().await.id;
    let typing = json!({"text": "no"});
    let aim = desk.aim("type_text", typing.clone()).await.unwrap();
    say(folder.path(), "lock");
    wait_for(folder.path(), "locked");
    let unread = desk.look().await.unread.join("\n");
    assert!(unread.contains("covered by i3lock"), "{unread}");
    // Also what was judged before the lock came.
    let refused = desk.act_as_judged("type_text", typing.clone(), aim).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    for (tool, arguments) in [
        ("type_text", typing.clone()),
        ("press_key", json!({"key": "Delete"})),
        ("click", json!({"on": text})),
        ("click", json!({"at": [640, 400]})),
        ("scroll", json!({"direction": "down"})),
    ] {
        let refused = desk.act(tool, arguments).await;
        assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
        assert!(refused.text.contains("i3lock"), "{}", refused.text);
    }
    say(folder.path(), "unlock");
    wait_for(folder.path(), "unlocked");
    desk.done("type_text", typing).await;
    let value = desk.text().await.value.unwrap();
    assert!(value == "nokept" || value == "keptno", "{value}");
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_that_changes_its_size_is_seen_whole() {
    if is_missing() {
        return;
    }
    let desk = Desk::new();
    let folder = tempfile::tempdir().unwrap();
    desk.desktop
        .start(&words("resize", folder.path()))
        .await
        .unwrap();
    fs::write(desk.path("note.txt"), "text").unwrap();
    let opened = json!({"application": "mousepad", "file": "note.txt"});
    desk.done("open_application", opened).await;
    let before = desk.look().await.session;
    say(folder.path(), "resize");
    let size = wait_for(folder.path(), "resized");
    let seen = desk.desktop.look(LOOK).await.unwrap();
    assert_eq!(seen.view.session, before);
    assert_eq!(format!("{}×{}", seen.view.width, seen.view.height), size);
    let picture = seen.frame.unwrap();
    assert_eq!(format!("{}×{}", picture.width, picture.height), size);
    let text = desk.text().await.id;
    let typed = json!({"on": text, "text": "more", "replace": true});
    desk.done("type_text", typed).await;
    assert_eq!(desk.text().await.value.as_deref(), Some("more"));
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_another_user_is_seen_and_not_used() {
    let is_root = rustix::process::geteuid().is_root();
    if is_missing() || !is_root || !has(&["xterm", "setpriv"]) {
        return;
    }
    let desk = Desk::new();
    let folder = tempfile::tempdir().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let script = "cp \"$XAUTHORITY\" \"$0/cookie\" && chmod 644 \"$0/cookie\" && \
                  XAUTHORITY=\"$0/cookie\" exec setpriv --reuid 65534 --clear-groups \
                  xterm -T theirs -e cat";
    let place = folder.path().to_str().unwrap();
    let words = ["sh", "-c", script, place].map(str::to_owned);
    desk.desktop.start(&words).await.unwrap();
    let window = desk.named("theirs").await.id;
    for (tool, arguments) in [
        ("click", json!({"on": window})),
        ("type_text", json!({"text": "no"})),
        ("close_tab", json!({"tab": window.document})),
    ] {
        let refused = desk.act(tool, arguments).await;
        assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
        assert!(refused.text.contains("another user"), "{}", refused.text);
    }
    desk.leave().await;
}
