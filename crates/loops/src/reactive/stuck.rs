//! Distinguishes progress from repeating the same action on the same screen.
//!
//! An action is identified by its target (tool, role, name, and a cell of ten pixels), the state of
//! the target and the screen before it, the text that was read, and that it changed nothing. The
//! second time the model is told what comes next; from the third on the loop itself tries an
//! escape, each kind once: back, reload, another route. Then the run parks and tells a person.
//! Actions that only look, and those with an unknown effect, may repeat twice as often; and a page
//! is never left because of an action that only looks. Opening an address, again and again from the
//! same page, counts as an action without effect, although the page is loaded each time.

use gyrus_contract::{
    ActionVerdict, Arguments as _, Digest, Element, ElementState, FINISH, GoBackCall, OpenUrlCall,
    ReloadCall, ScreenEffect, ToolCall, View,
};
use serde::{Deserialize, Serialize};

use super::actions;

/// Maximum number of remembered actions.
pub(super) const RING: usize = 8;

/// The side of a cell in pixels of the frame.
const CELL: i32 = 10;

/// The recent actions, and the reactions to repetition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stuck {
    /// The last actions, newest last.
    ring: Vec<ScreenPrint>,
    /// Number of escapes tried so far.
    #[serde(default)]
    tried: u8,
    /// A note for the model's next prompt.
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ScreenPrint {
    print: u64,
    screen: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    changed: bool,
}

/// The reaction to an action.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StuckAdvice {
    /// Continue, perhaps with a note to the model.
    GoOn,
    Try(ToolCall),
    /// Park, because every escape was tried or there is none. The text is for a person.
    Park(String),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ActionRecord<'a> {
    pub(super) call: &'a ToolCall,
    /// A description of the action.
    pub(super) what: &'a str,
    /// The view before the action.
    pub(super) view: Option<&'a View>,
    pub(super) verdict: ActionVerdict,
    /// The output of the tool.
    pub(super) said: &'a str,
}

impl Stuck {
    /// Records an action and returns the reaction. `start` is an address to begin again from.
    pub(super) fn observe(&mut self, done: ActionRecord<'_>, start: Option<&str>) -> StuckAdvice {
        let opens = done.call.tool == OpenUrlCall::TOOL;
        let changed = done.verdict == ActionVerdict::Changed && !opens;
        let only_looks = only_looks(&done.call.tool);
        let read = if only_looks { done.said } else { "" };
        let seen = ScreenPrint {
            print: fingerprint(done.call, done.view, read),
            screen: done.view.map_or(0, |view| match done.verdict {
                ActionVerdict::CannotTell => letters(view),
                _ if opens => letters(view),
                _ => screen(view),
            }),
            changed,
        };
        // Looking again after a change is normal, and so is opening a page to begin again.
        let past = self.ring.iter().rev();
        let past = past.take_while(|past| !((only_looks || opens) && past.changed));
        let same = past.filter(|past| **past == seen).count() + 1;
        self.ring.push(seen);
        if self.ring.len() > RING {
            self.ring.remove(0);
        }
        if changed {
            if self.ring.len() == RING && self.ring.iter().all(|past| past.changed) {
                self.tried = 0;
            }
            return StuckAdvice::GoOn;
        }
        let is_unsure = done.verdict == ActionVerdict::CannotTell;
        let patience = if only_looks || is_unsure { 2 } else { 1 };
        match same.div_ceil(patience) {
            0 | 1 => StuckAdvice::GoOn,
            2 => {
                self.warn(done, start, same);
                StuckAdvice::GoOn
            }
            _ => self.way_out(done, start, same),
        }
    }

    fn warn(&mut self, done: ActionRecord<'_>, start: Option<&str>, same: usize) {
        let then = match next_way(&mut self.tried.clone(), done, start) {
            Some(way) => format!("`{}` is done for you", way.tool),
            None => "the work stops until a person looks at it".to_owned(),
        };
        self.note = Some(format!(
            "You did `{}` {same} times on this very screen and nothing changed. Do something \
             else: another element, the keyboard, scrolling, another page. If it is done again \
             without effect, {then}.",
            done.what
        ));
    }

    fn way_out(&mut self, done: ActionRecord<'_>, start: Option<&str>, same: usize) -> StuckAdvice {
        let Some(way) = next_way(&mut self.tried, done, start) else {
            let why = if leaves_no_page(done) {
                format!(
                    "the model keeps asking for `{}`, and nothing comes of it",
                    done.what
                )
            } else {
                format!(
                    "`{}` was tried {same} times on the same screen without any effect, and going \
                 back, loading the page again and starting from another address did not help",
                    done.what
                )
            };
            return StuckAdvice::Park(why);
        };
        self.ring.clear();
        self.note = Some(format!(
            "You did `{}` {same} times on one screen without any effect, so `{}` was done for \
             you. Take another way to the goal, or finish and say what is in the way.",
            done.what, way.tool
        ));
        StuckAdvice::Try(way)
    }

    /// Adds a text to the model's note, if it is not empty.
    pub(super) fn tell(&mut self, words: String) {
        if !words.is_empty() {
            let before = self.note.take().map(|note| format!("{note}\n"));
            self.note = Some(before.unwrap_or_default() + &words);
        }
    }

    /// Removes and returns the note for the model.
    pub(super) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    pub(super) fn has_note(&self) -> bool {
        self.note.is_some()
    }

    /// Forgets all actions, after a person has looked at the repetition or on another screen.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Returns the next escape that was not tried.
fn next_way(tried: &mut u8, done: ActionRecord<'_>, start: Option<&str>) -> Option<ToolCall> {
    let empty = || serde_json::json!({});
    while !leaves_no_page(done) && *tried < 3 {
        *tried += 1;
        match (*tried, start) {
            (1, _) => return Some(ToolCall::new(GoBackCall::TOOL, empty())),
            (2, _) => return Some(ToolCall::new(ReloadCall::TOOL, empty())),
            (_, Some(url)) => {
                let there = serde_json::json!({ "url": url });
                return Some(ToolCall::new(OpenUrlCall::TOOL, there));
            }
            (_, None) => {}
        }
    }
    None
}

/// Whether an action gives no reason to leave the page: it only looks, or ends the work.
fn leaves_no_page(done: ActionRecord<'_>) -> bool {
    done.call.tool == FINISH || only_looks(&done.call.tool)
}

/// Returns a fingerprint of an action's target, the target's state, and the text that was read. Ids
/// are left out, because the same button has another one after a reload.
fn fingerprint(call: &ToolCall, view: Option<&View>, read: &str) -> u64 {
    let elements = view.iter().flat_map(|view| &view.elements);
    let focused = || {
        elements
            .clone()
            .rfind(|it| it.states.contains(&ElementState::Focused))
    };
    let named = call.arguments["on"].as_str();
    let target = named.map_or_else(focused, |id| element(view, id));
    let stands = target.map(|target| (&target.value, &target.states, &target.bounds));
    let aimed = ["on", "from", "to", "at"].map(|name| &call.arguments[name]);
    let places = aimed.map(|place| match place {
        serde_json::Value::String(id) => match element(view, id) {
            Some(element) => {
                let cell = element.bounds.map(|bounds| {
                    let middle = |from: i32, length: i32| from.saturating_add(length / 2);
                    cell(
                        middle(bounds.x, bounds.width),
                        middle(bounds.y, bounds.height),
                    )
                });
                format!("{} {} {cell:?}", element.role, element.name)
            }
            None => id.clone(),
        },
        serde_json::Value::Array(point) => {
            let pixel = |index: usize| {
                let number = point.get(index).and_then(serde_json::Value::as_i64);
                number
                    .and_then(|number| i32::try_from(number).ok())
                    .unwrap_or_default()
            };
            format!("{:?}", cell(pixel(0), pixel(1)))
        }
        _ => String::new(),
    });
    let others = call.arguments.as_object().into_iter().flatten();
    let others: Vec<_> = others
        .filter(|(name, _)| !["on", "from", "to", "at", "token"].contains(&name.as_str()))
        .collect();
    short(Digest::of_json(&(&call.tool, places, others, stands, read)))
}

pub(super) fn element<'a>(view: Option<&'a View>, id: &str) -> Option<&'a Element> {
    let id = id.parse().ok()?;
    view?.elements.iter().find(|element| element.id == id)
}

fn cell(x: i32, y: i32) -> (i32, i32) {
    (x.div_euclid(CELL), y.div_euclid(CELL))
}

/// Returns a hash of a screen's texts without numbers, which clocks change: where an action's
/// effect is unknown, different texts show that there was one.
fn letters(view: &View) -> u64 {
    let names = view.elements.iter().map(|element| {
        let letters = element.name.chars().filter(|it| it.is_alphabetic());
        letters.collect::<String>()
    });
    let names: Vec<_> = names.collect();
    short(Digest::of_json(&(&view.address, &view.scroll, names)))
}

/// Returns a hash of a page's content, without the ids and places of its elements.
pub(super) fn contents(view: &View) -> u64 {
    let shown = view.elements.iter().map(|element| {
        let states = element.states.iter();
        // The keyboard and the scrolling are not a page's own.
        let passing = [
            ElementState::Focused,
            ElementState::OutOfView,
            ElementState::Covered,
        ];
        let states: Vec<_> = states.filter(|state| !passing.contains(state)).collect();
        (&element.role, &element.name, &element.value, states)
    });
    let shown: Vec<_> = shown.collect();
    short(Digest::of_json(&(&view.address, &view.dialog, shown)))
}

/// Returns a hash of a screen: that of its picture, or without a picture, of its content.
fn screen(view: &View) -> u64 {
    view.hash.unwrap_or_else(|| {
        let shown: Vec<_> = view
            .elements
            .iter()
            .map(|element| {
                (
                    &element.role,
                    &element.name,
                    &element.value,
                    &element.states,
                )
            })
            .collect();
        short(Digest::of_json(&(
            &view.address,
            &view.scroll,
            &view.dialog,
            &view.held,
            shown,
        )))
    })
}

/// Returns a short part of a digest, which is enough to distinguish a few things in the journal.
fn short(digest: Digest) -> u64 {
    let bytes = digest.as_bytes();
    let (first, _) = bytes
        .split_first_chunk::<8>()
        .expect("a digest has 32 bytes");
    // Small enough for a JSON number that every reader parses exactly.
    u64::from_le_bytes(*first) >> 12
}

/// Whether an action only reads the screen.
pub(super) fn only_looks(tool: &str) -> bool {
    actions::named(tool).is_some_and(|action| action.effect == ScreenEffect::Looks)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::samples, *};

    fn done(
        stuck: &mut Stuck,
        tool: &str,
        arguments: Value,
        verdict: ActionVerdict,
    ) -> StuckAdvice {
        let view = samples::form();
        let call = ToolCall::new(tool, arguments);
        let done = ActionRecord {
            call: &call,
            what: "it",
            view: Some(&view),
            verdict,
            said: "",
        };
        stuck.observe(done, Some("https://start.test/"))
    }

    fn way(advice: StuckAdvice) -> String {
        match advice {
            StuckAdvice::GoOn => "go on".to_owned(),
            StuckAdvice::Try(call) => call.tool,
            StuckAdvice::Park(why) => why,
        }
    }

    #[test]
    fn the_same_without_effect_is_told_then_left_then_parked() {
        let mut stuck = Stuck::default();
        let mut ways = Vec::new();
        for _ in 0..12 {
            let advice = done(
                &mut stuck,
                "click",
                json!({"on": "b4"}),
                ActionVerdict::NoEffect,
            );
            ways.push(way(advice));
            if ways.len() == 2 {
                let note = stuck.take_note().unwrap();
                assert!(note.contains("2 times") && note.contains("`go_back`"));
            }
        }
        assert_eq!(ways[..3], ["go on", "go on", "go_back"]);
        assert_eq!(ways[3..6], ["go on", "go on", "reload"]);
        assert_eq!(ways[6..9], ["go on", "go on", "open_url"]);
        assert!(ways[11].contains("going back"), "{ways:?}");
    }

    #[test]
    fn ten_pixels_are_the_same_place_and_what_changes_is_no_circle() {
        let mut stuck = Stuck::default();
        for (x, y) in [(101, 52), (109, 58), (100, 50)] {
            done(
                &mut stuck,
                "click",
                json!({"at": [x, y]}),
                ActionVerdict::CannotTell,
            );
        }
        assert!(stuck.has_note());
        stuck.reset();
        for x in [5, 15, 25, 35] {
            done(
                &mut stuck,
                "click",
                json!({"at": [x, 5]}),
                ActionVerdict::NoEffect,
            );
        }
        for _ in 0..20 {
            let advice = done(
                &mut stuck,
                "scroll",
                json!({"direction": "down"}),
                ActionVerdict::Changed,
            );
            assert_eq!(advice, StuckAdvice::GoOn);
        }
        assert!(!stuck.has_note());
    }

    #[test]
    fn what_moves_or_reads_something_else_is_no_circle() {
        let mut stuck = Stuck::default();
        let mut view = samples::form();
        let mut observe = |stuck: &mut Stuck, tool: &str, on: &str, value: &str, said: &str| {
            view.elements[5].value = Some(value.to_owned());
            let call = ToolCall::new(tool, json!({"on": on, "key": "ArrowUp"}));
            let done = ActionRecord {
                call: &call,
                what: "it",
                view: Some(&view),
                verdict: ActionVerdict::CannotTell,
                said,
            };
            way(stuck.observe(done, None))
        };
        let id = samples::form().elements[5].id.to_string();
        for value in 0..20 {
            assert_eq!(
                observe(&mut stuck, "press_key", &id, &value.to_string(), ""),
                "go on"
            );
        }
        for read in 0..20 {
            assert_eq!(
                observe(&mut stuck, "extract", &id, "1", &read.to_string()),
                "go on"
            );
        }
        for _ in 0..10 {
            assert_eq!(
                observe(&mut stuck, "take_screenshot", &id, "1", "a"),
                "go on"
            );
            let drag = json!({"from": [1, 1], "to": [50, 50]});
            done(&mut stuck, "drag", drag, ActionVerdict::Changed);
        }
        let same: Vec<_> = (0..5)
            .map(|_| observe(&mut stuck, "extract", &id, "1", "a"))
            .collect();
        assert_eq!(same[..4], ["go on"; 4]);
        assert!(same[4].contains("keeps asking"), "{same:?}");
        assert!(!stuck.has_note() || stuck.take_note().is_some_and(|it| it.contains("stops")));
    }

    #[test]
    fn opening_one_address_again_and_again_is_a_circle() {
        let mut stuck = Stuck::default();
        let url = json!({"url": "https://a.test/"});
        let open =
            |stuck: &mut Stuck| way(done(stuck, "open_url", url.clone(), ActionVerdict::Changed));
        assert_eq!(open(&mut stuck), "go on");
        assert_eq!(open(&mut stuck), "go on");
        assert!(
            stuck
                .take_note()
                .is_some_and(|note| note.contains("2 times"))
        );
        assert_eq!(open(&mut stuck), "go_back");

        // Beginning again after something was done is none.
        let mut stuck = Stuck::default();
        for _ in 0..6 {
            assert_eq!(open(&mut stuck), "go on");
            done(
                &mut stuck,
                "click",
                json!({"on": "b4"}),
                ActionVerdict::Changed,
            );
        }
        assert!(!stuck.has_note());
    }

    #[test]
    fn waiting_has_more_patience_and_no_way_out() {
        let mut stuck = Stuck::default();
        let waits: Vec<_> = (0..5)
            .map(|_| way(done(&mut stuck, "wait", json!({}), ActionVerdict::NoEffect)))
            .collect();
        assert_eq!(waits[..4], ["go on"; 4]);
        assert!(waits[4].contains("keeps asking"), "{waits:?}");
    }

    #[test]
    fn eight_changes_in_a_row_give_the_ways_out_back() {
        let mut stuck = Stuck::default();
        let click = |stuck: &mut Stuck, verdict| done(stuck, "click", json!({"on": "b4"}), verdict);
        for _ in 0..3 {
            click(&mut stuck, ActionVerdict::NoEffect);
        }
        for _ in 0..RING {
            click(&mut stuck, ActionVerdict::Changed);
        }
        for _ in 0..2 {
            click(&mut stuck, ActionVerdict::NoEffect);
        }
        assert_eq!(way(click(&mut stuck, ActionVerdict::NoEffect)), "go_back");
    }
}
