//! Looking at a nested desktop with real programs.

use gyrus_contract::{ElementState, Look, Screen as _, View};
use gyrus_process::Programs;
use gyrus_screen::{Desktop, DesktopPlace};

use crate::support;

/// Whether the programs are installed.
fn has(programs: &[&str]) -> bool {
    let is_there = |name: &&str| Programs::of_this_process().find(name).is_ok();
    programs.iter().all(is_there)
}

fn nested() -> Desktop {
    let place = DesktopPlace::Nested {
        width: 1280,
        height: 800,
    };
    Desktop::new(place, support::run())
}

async fn look(desktop: &Desktop) -> View {
    let wanted = Look {
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
