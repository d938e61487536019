//! Looking at a nested desktop with real programs.

use gyrus_contract::{ElementState, LookOptions, Screen as _, View};
use gyrus_process::Programs;
use gyrus_screen::{Desktop, DesktopPlace, Enclosure};

use crate::support;

/// Whether the programs are installed.
pub(crate) fn has(programs: &[&str]) -> bool {
    let is_there = |name: &&str| Programs::of_this_process().find(name).is_ok();
    programs.iter().all(is_there)
}

pub(crate) fn nested() -> Desktop {
    let place = DesktopPlace::Nested {
        width: 1280,
        height: 800,
        enclosure: Enclosure::opener(support::run()),
    };
    Desktop::new(place)
}

async fn look(desktop: &Desktop) -> View {
    let wanted = LookOptions {
        frame: true,
        documents: 0,
    };
    let seen = desktop.look(wanted).await.expect("a view");
    let picture = seen.frame.expect("a picture");
    assert_eq!((picture.width, picture.height), (1280, 800));
    seen.view
}

#[tokio::test]
async fn a_program_on_a_desktop_is_seen() {
    if !has(&["Xvfb", "openbox", "dbus-daemon", "mousepad"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shopping.txt");
    std::fs::write(&file, "bread\nmilk\n").unwrap();
    let desktop = nested();
    let words = ["mousepad".to_owned(), file.to_string_lossy().into_owned()];
    desktop.start(&words).await.unwrap();
    let view = look(&desktop).await;
    assert!(view.title.contains("shopping.txt"), "{}", view.title);
    let text = view
        .elements
        .iter()
        .find(|element| element.role == "textbox");
    let text = text.expect("the text of the file");
    assert_eq!(text.value.as_deref(), Some("bread\nmilk"));
    assert!(text.states.contains(&ElementState::Focused));
    let bounds = text.bounds.unwrap();
    assert!(bounds.width > 100 && bounds.x >= 0, "{bounds:?}");
    let file = view.elements.iter().find(|element| element.name == "File");
    assert_eq!(file.unwrap().role, "menu");
    desktop.leave().await;
}

/// Returns the name of a process and its parent; `None` once it has ended.
fn name_and_parent(process: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (name, rest) = stat.rsplit_once(") ")?;
    let mut rest = rest.split(' ');
    let state = rest.next()?;
    let parent = rest.next()?.parse().ok()?;
    let name = name.split_once('(')?.1;
    (state != "Z").then(|| (name.to_owned(), parent))
}

/// Returns the displays that this process has started, itself or by others.
fn displays_of_this_process() -> Vec<u32> {
    let is_below = |process: u32| {
        let parents = std::iter::successors(Some(process), |one| Some(name_and_parent(*one)?.1));
        parents
            .into_iter()
            .any(|parent| parent == std::process::id())
    };
    let processes = std::fs::read_dir("/proc").expect("the list of processes");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process| name_and_parent(*process).is_some_and(|(name, _)| name == "Xvfb"))
        .filter(|process| is_below(*process))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_desktop_that_is_dropped_ends() {
    if !has(&["Xvfb", "openbox", "dbus-daemon"]) {
        return;
    }
    let desktop = nested();
    let view = look(&desktop).await;
    assert_eq!(view.elements, []);
    let displays = displays_of_this_process();
    assert_eq!(displays.len(), 1);
    drop(desktop);
    for _ in 0..500 {
        if name_and_parent(displays[0]).is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the display still runs");
}
