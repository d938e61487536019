//! Acting on a nested desktop with real programs: what was meant happens, and nothing else.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{fs, sync::Arc};

use gyrus_contract::{
    ActionVerdict, Element, ElementState, LookOptions, Screen as _, Starts, ToolOutput, View,
};
use gyrus_screen::{Desktop, desktop_tools};
use serde_json::{Value, json};

use crate::{
    desktop::{has, nested},
    hands::Hands,
};

/// A nested desktop with its tools.
pub(crate) struct Desk {
    pub(crate) desktop: Arc<Desktop>,
    hands: Hands,
}

impl std::ops::Deref for Desk {
    type Target = Hands;

    fn deref(&self) -> &Hands {
        &self.hands
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        let desktop = Arc::new(nested());
        Self {
            hands: Hands::new(desktop_tools(&desktop), Vec::new()),
            desktop,
        }
    }

    /// Opens a desktop with an editor of a file with this text.
    pub(crate) async fn with_editor(text: &str) -> Self {
        let desk = Self::new();
        fs::write(desk.path("note.txt"), text).unwrap();
        let opened = desk
            .act(
                "open_application",
                json!({"application": "mousepad", "file": "note.txt"}),
            )
            .await;
        assert_eq!(opened.verdict, ActionVerdict::Changed, "{}", opened.text);
        desk
    }

    pub(crate) async fn look(&self) -> View {
        let look = LookOptions {
            frame: false,
            documents: 0,
        };
        self.desktop.look(look).await.unwrap().view
    }

    /// Returns the first element that fits.
    pub(crate) async fn find(&self, fits: impl Fn(&Element) -> bool) -> Element {
        let view = self.look().await;
        let found = view.elements.iter().find(|one| fits(one)).cloned();
        found.unwrap_or_else(|| panic!("it is not in {:#?}", view.elements))
    }

    pub(crate) async fn named(&self, name: &str) -> Element {
        self.find(|one| one.name == name).await
    }

    pub(crate) async fn text(&self) -> Element {
        self.find(|one| one.role == "textbox").await
    }

    pub(crate) async fn done(&self, tool: &str, arguments: Value) -> ToolOutput {
        let done = self.act(tool, arguments.clone()).await;
        assert!(!done.is_error, "{tool} {arguments}: {}", done.text);
        done
    }

    pub(crate) async fn leave(self) {
        self.desktop.leave().await;
    }
}

pub(crate) fn is_missing() -> bool {
    !has(&["Xvfb", "openbox", "dbus-daemon", "mousepad"])
}

/// Words in twenty scripts, some of them beyond the basic plane, with combining marks and signs
/// that programs may take for markup.
pub(crate) const SCRIPTS: &str = "Latin ÀÉîõü ßŁżœ <b>&amp; \"quoted\" \\ ~ ^ ` € ½\n\
Ελληνικά Кириллица Հայերեն ქართული\n\
עברית العربية ܣܘܪܝܝܐ ދިވެހި\n\
हिन्दी বাংলা ਪੰਜਾਬੀ தமிழ் తెలుగు\n\
ไทย ລາວ བོད་སྐད မြန်မာ ខ្មែរ\n\
አማርኛ ᏣᎳᎩ 日本語ひらがなカタカナ 한국어 中文漢字\n\
e\u{301} n\u{303} 😀 👩\u{200d}🔬 𝔘𝔫𝔦 𐍈\n";

#[tokio::test]
async fn text_of_every_script_arrives_exactly() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("").await;
    let on = desk.text().await.id;
    let text = SCRIPTS.repeat(3);
    let typed = desk
        .done("type_text", json!({"on": on, "text": text}))
        .await;
    assert_eq!(typed.verdict, ActionVerdict::Changed, "{}", typed.text);
    desk.done("press_key", json!({"key": "Control+s"})).await;
    let saved = fs::read_to_string(desk.path("note.txt")).unwrap();
    // The editor ends the last line.
    assert_eq!(saved.trim_end_matches('\n'), text.trim_end_matches('\n'));
    // Again, in place of it.
    let on = desk.text().await.id;
    let typed = desk
        .done(
            "type_text",
            json!({"on": on, "text": "only this", "replace": true}),
        )
        .await;
    assert!(
        typed.text.contains("holds “only this” now"),
        "{}",
        typed.text
    );
    desk.leave().await;
}

#[tokio::test]
async fn a_menu_is_used_and_what_it_covers_is_not() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("one two three").await;
    let text = desk.text().await;
    let edit = desk.named("Edit").await.id;
    let opened = desk.done("click", json!({"on": edit})).await;
    assert_eq!(opened.verdict, ActionVerdict::Changed, "{}", opened.text);
    let all = desk
        .find(|one| one.name == "Select All" && one.role == "menuitem")
        .await;
    // A point of the text under the menu is the menu's.
    let bounds = all.bounds.unwrap();
    let at = [bounds.x + 5, bounds.y + bounds.height / 2];
    let aim = desk.aim("click", json!({"at": at})).await.unwrap().unwrap();
    assert_eq!(aim.element.unwrap().id, all.id);
    assert_eq!(aim.starts, [Starts::Acts]);
    desk.done("click", json!({"on": all.id})).await;
    desk.done("press_key", json!({"key": "Delete"})).await;
    assert_eq!(desk.text().await.value, None, "{}", text.id);
    desk.leave().await;
}

#[tokio::test]
async fn windows_are_switched_and_closed() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("first").await;
    let opened = desk
        .done("press_key", json!({"key": "Control+Shift+n"}))
        .await;
    assert!(opened.text.contains("window 2 opened"), "{}", opened.text);
    let tabs = desk.look().await.tabs;
    assert_eq!(tabs.len(), 2, "{tabs:?}");
    let first = tabs.iter().find(|tab| tab.title.contains("note.txt"));
    let first = first.unwrap().number;
    let switched = desk.done("switch_tab", json!({"tab": first})).await;
    assert!(
        switched.text.contains("has the keyboard now"),
        "{}",
        switched.text
    );
    // What is typed goes to the window in front.
    let typed = desk.done("type_text", json!({"text": "more "})).await;
    assert_eq!(typed.verdict, ActionVerdict::Changed, "{}", typed.text);
    let closes = async |tab: u32| {
        let aim = desk.aim("close_tab", json!({"tab": tab})).await;
        aim.unwrap().unwrap().starts
    };
    assert_eq!(closes(first).await, [Starts::Closes { unsaved: true }]);
    desk.done("press_key", json!({"key": "Control+s"})).await;
    assert_eq!(closes(first).await, [Starts::Closes { unsaved: false }]);
    let closed = desk.done("close_tab", json!({"tab": first})).await;
    assert!(closed.text.contains("was closed"), "{}", closed.text);
    assert_eq!(
        fs::read_to_string(desk.path("note.txt"))
            .unwrap()
            .trim_end(),
        "more first"
    );
    let gone = desk.act("switch_tab", json!({"tab": first})).await;
    assert!(gone.is_error && gone.text.contains("gone"), "{}", gone.text);
    desk.leave().await;
}

#[tokio::test]
async fn words_are_found_selected_dragged_over_and_read() {
    if is_missing() {
        return;
    }
    let lines: String = (1..200).map(|line| format!("line {line}\n")).collect();
    let desk = Desk::with_editor(&lines).await;
    let text = desk.text().await;
    let read = desk.done("extract", json!({"on": text.id})).await;
    assert_eq!(read.text.trim_end(), lines.trim_end());
    let found = desk.done("find", json!({"text": "search"})).await;
    assert!(found.text.contains("menu “Search”"), "{}", found.text);
    // The first line again and again, by words and by the mouse.
    let words = json!({"on": text.id, "text": "line 1\n"});
    desk.done("select_text", words).await;
    desk.done("type_text", json!({"text": "FIRST\n"})).await;
    let value = desk.done("extract", json!({"on": text.id})).await.text;
    assert!(value.starts_with("FIRST\nline 2\n"), "{value:.40}");
    let bounds = text.bounds.unwrap();
    let [from, to] = [[bounds.x + 3, bounds.y + 5], [bounds.x + 400, bounds.y + 5]];
    let dragged = desk.done("drag", json!({"from": from, "to": to})).await;
    assert!(dragged.text.starts_with("Dragged"), "{}", dragged.text);
    desk.done("press_key", json!({"key": "Delete"})).await;
    let value = desk.done("extract", json!({"on": text.id})).await.text;
    assert!(value.starts_with("\nline 2\n"), "{value:.40}");
    let scrolled = desk
        .done(
            "scroll",
            json!({"direction": "down", "on": text.id, "pages": 3}),
        )
        .await;
    assert_ne!(
        scrolled.verdict,
        ActionVerdict::NoEffect,
        "{}",
        scrolled.text
    );
    let picture = desk.done("take_screenshot", json!({})).await;
    assert_eq!(picture.images.len(), 1);
    desk.leave().await;
}

#[tokio::test]
async fn what_was_not_judged_is_not_touched() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("kept").await;
    let text = desk.text().await.id;
    let edit = desk.named("Edit").await.id;
    // Judged was another element, or none.
    let aim = desk.aim("click", json!({"on": edit})).await.unwrap();
    let refused = desk.act_as_judged("click", json!({"on": text}), aim).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    let refused = desk.act_as_judged("click", json!({"on": edit}), None).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    // A window came to lie over the element meanwhile.
    let aim = desk
        .aim("type_text", json!({"on": text, "text": "no"}))
        .await
        .unwrap();
    desk.done("press_key", json!({"key": "Control+r"})).await;
    let over = desk.look().await;
    let dialog = over.tabs.iter().find(|tab| tab.is_active).unwrap();
    assert!(dialog.title.contains("Replace"), "{:?}", over.tabs);
    let covered = over.elements.iter().find(|one| one.id == text);
    assert!(covered.is_some_and(|one| one.states.contains(&ElementState::Covered)));
    let refused = desk
        .act_as_judged("type_text", json!({"on": text, "text": "no"}), aim)
        .await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    assert!(refused.text.contains("in the way"), "{}", refused.text);
    for (tool, wrong, words) in [
        ("click", json!({"on": "z9"}), "gone"),
        ("click", json!({"at": [1, 799]}), "nothing is there"),
        ("type_text", json!({"text": "a\u{7}b"}), "U+0007"),
        ("press_key", json!({"key": "Hyper+a"}), "invalid key"),
        (
            "open_application",
            json!({"application": "no such thing"}),
            "no application",
        ),
        (
            "open_application",
            json!({"application": "mousepad", "file": "gone.txt"}),
            "no file",
        ),
        ("close_tab", json!({"tab": 77}), "no window 77"),
    ] {
        let said = desk.act(tool, wrong).await;
        assert!(
            said.is_error && said.text.contains(words),
            "{tool}: {}",
            said.text
        );
    }
    desk.leave().await;
}

/// Number of clicks of the sample; `examples/desktop_series.rs` does more.
const SAMPLE: usize = 20;

#[tokio::test]
async fn clicks_at_random_elements_land() {
    if is_missing() || !has(&["galculator"]) {
        return;
    }
    let desk = Desk::new();
    let calculator = json!({"application": "scientific calculations"});
    desk.done("open_application", calculator).await;
    let mut random = fastrand::Rng::with_seed(19);
    for _ in 0..SAMPLE / 10 {
        desk.done("press_key", json!({"key": "Escape"})).await;
        let digits: String = (0..10).map(|_| random.digit(10)).collect();
        let digits = digits.replace('0', "7");
        for digit in digits.chars() {
            let is_meant = |one: &Element| one.role == "button" && one.name == digit.to_string();
            let button = desk.find(is_meant).await.id;
            let clicked = desk.done("click", json!({"on": button})).await;
            assert_eq!(clicked.verdict, ActionVerdict::Changed, "{}", clicked.text);
        }
        let shown = desk.text().await.value.unwrap_or_default();
        assert_eq!(shown.replace([',', ' '], ""), digits);
    }
    desk.leave().await;
}
