//! Determines the effects of an input on a desktop, by comparing what was there before with what is
//! there once it is still again.

use std::collections::BTreeMap;

use gyrus_contract::{ActionVerdict, Element, ElementId, ElementState};
use gyrus_text::shorten;

use super::{
    look,
    measure::words,
    reading::DesktopReading,
    saved_files::saved_files,
    session::{DesktopSession, lost},
    windows::DesktopWindow,
};
use crate::{tools::action::ActionFailure, verdict::InputEffects, view::Pixels};

/// Number of pixels that may differ without counting as a change: a caret blinks.
const BLINK: usize = 200;

/// Maximum time for the elements of a window that opened.
const NEW_WINDOW: std::time::Duration = std::time::Duration::from_secs(2);

/// Maximum number of changes in a message.
const MAX_TOLD: usize = 4;

pub(super) struct DesktopBefore {
    reading: DesktopReading,
    pixels: Pixels,
    target: Option<ElementId>,
    caret: Option<FocusedCaret>,
}

/// The place of the caret, and of what is selected, in the element with the keyboard.
#[derive(PartialEq)]
struct FocusedCaret {
    element: ElementId,
    at: (i32, (i32, i32)),
}

impl DesktopBefore {
    /// Records the desktop, before an input to this element.
    pub(super) async fn of(
        session: &DesktopSession,
        reading: DesktopReading,
        target: Option<ElementId>,
    ) -> Result<Self, ActionFailure> {
        Ok(Self {
            caret: session.caret(&reading).await,
            reading,
            pixels: session.display.capture().map_err(lost)?,
            target,
        })
    }
}

/// Returns the element with the keyboard.
fn focused(reading: &DesktopReading) -> Option<&Element> {
    let mut all = reading.elements.iter();
    all.rfind(|one| one.states.contains(&ElementState::Focused))
}

impl DesktopSession {
    /// Returns a message about saved files that are lost at the desktop's end, once for each file.
    fn newly_saved(&mut self) -> Option<String> {
        let enclosure = self.nested.as_ref()?.enclosure();
        let saved = saved_files(enclosure);
        let new: Vec<_> = saved.difference(&self.saved).collect();
        let first = shorten(new.first()?, 200);
        let more = match new.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let place = enclosure.workspace();
        let place = place.map_or("elsewhere".to_owned(), |place| {
            format!("in {}", place.display())
        });
        let told = format!(
            "a file is at {first}{more} now, which goes away with this desktop: what is to stay must \
             be saved {place}"
        );
        self.saved = saved;
        Some(told)
    }

    /// Returns where the caret stands; `None` where the element with the keyboard has none.
    async fn caret(&self, reading: &DesktopReading) -> Option<FocusedCaret> {
        let element = focused(reading)?.id;
        let (name, path) = self.numbers.path(element)?;
        let at = self.accessible.as_ref().ok()?.caret(name, path).await?;
        Some(FocusedCaret { element, at })
    }

    /// Waits until the desktop is still and returns the differences.
    pub(super) async fn effects(
        &mut self,
        before: &DesktopBefore,
    ) -> Result<InputEffects, ActionFailure> {
        let mut settled = self.display.settle().await.map_err(lost)?;
        let old = before.reading.listed();
        let now = self.display.windows().map_err(lost)?;
        if now.iter().any(|new| old.iter().all(|old| old.id != new.id)) {
            look::wait_for_elements(self, NEW_WINDOW).await;
            settled = self.display.settle().await.map_err(lost)?;
        }
        let after = look::read(self).await?;
        let mut words = self.changed_windows(&old, &after.listed());
        if after.size != before.reading.size {
            let (width, height) = after.size;
            words.push(format!("the screen is {width} × {height} pixels now"));
        }
        words.extend(after.locked().filter(|_| before.reading.locked().is_none()));
        words.extend(self.newly_saved());
        let (was, is) = (by_id(&before.reading), by_id(&after));
        words.extend(
            before
                .target
                .and_then(|id| changed_target(was.get(&id)?, is.get(&id)?)),
        );
        let is_partial = !after.unread.is_empty() || !before.reading.unread.is_empty();
        words.extend(changed_elements(before.target, (&was, &is), is_partial));
        if words.is_empty()
            && let (Some(was), Some(is)) = (&before.caret, self.caret(&after).await)
            && was.element == is.element
            && *was != is
        {
            words.push("what is selected, or the caret, is elsewhere".to_owned());
        }
        let was_focused = focused(&before.reading).map(|old| old.id);
        let focused = focused(&after).filter(|new| was_focused != Some(new.id));
        let focused = focused.map(|one| format!("the keyboard is now at {}", self::words(one)));
        // What is refused is no effect of the input alone.
        let refused = self.connections.newly_refused();
        let beside: Vec<_> = focused.into_iter().chain(refused).collect();
        let focused = (!beside.is_empty()).then(|| beside.join("; "));
        let drawn = self.drawn_in_window(before, &after);
        let document = before.target.map(|id| id.document);
        let known = after
            .elements
            .iter()
            .filter(|one| Some(one.id.document) == document);
        let is_drawn_only = known.count() <= 1;
        if words.is_empty() && drawn > BLINK && is_drawn_only {
            words.push("what is drawn in the window is different".to_owned());
        }
        let rest = look::rest(settled);
        let verdict = match (words.is_empty(), &focused) {
            (false, _) => ActionVerdict::Changed,
            (true, None) if drawn > BLINK || is_drawn_only && drawn > 0 || is_partial => {
                ActionVerdict::CannotTell
            }
            (true, _) => ActionVerdict::NoEffect,
        };
        Ok(InputEffects {
            verdict,
            words,
            focused,
            blocked: None,
            kept_from: None,
            landed: 0,
            rest,
        })
    }

    /// Returns the number of pixels of the target's window that are different.
    fn drawn_in_window(&self, before: &DesktopBefore, after: &DesktopReading) -> usize {
        let target = before.target;
        let target = target.and_then(|id| self.numbers.window(id.document));
        let mut windows = after.windows.iter();
        let window = windows.find(|window| Some(window.id) == target);
        window.map_or(0, |window| {
            let pixels = self.display.capture().ok();
            pixels.map_or(0, |pixels| pixels.differing(&before.pixels, window.bounds))
        })
    }

    fn changed_windows(&mut self, old: &[DesktopWindow], now: &[DesktopWindow]) -> Vec<String> {
        let mut words = Vec::new();
        for window in now {
            let number = self.numbers.document(window.id);
            let title = shorten(&window.title, 100);
            match old.iter().find(|old| old.id == window.id) {
                None => words.push(format!("window {number} opened (“{title}”)")),
                Some(old) if old.title != window.title => {
                    words.push(format!("the title of window {number} is now “{title}”"));
                }
                Some(old) if old.is_shown != window.is_shown => {
                    let how = if window.is_shown { "shown" } else { "hidden" };
                    words.push(format!("window {number} is {how} now"));
                }
                Some(old) if old.is_active != window.is_active && window.is_active => {
                    words.push(format!("window {number} (“{title}”) has the keyboard now"));
                }
                Some(_) => {}
            }
        }
        for gone in old
            .iter()
            .filter(|old| now.iter().all(|now| now.id != old.id))
        {
            let number = self.numbers.document(gone.id);
            let title = shorten(&gone.title, 100);
            words.push(format!("window {number} (“{title}”) was closed"));
        }
        words
    }
}

/// Describes the difference between the target before and after the input.
fn changed_target(was: &Element, is: &Element) -> Option<String> {
    if was.value != is.value && !is.states.contains(&ElementState::Masked) {
        let value = is.value.as_deref().unwrap_or_default();
        return Some(format!("it holds “{}” now", shorten(value, 100)));
    }
    if was.name != is.name {
        return Some(format!("it is called “{}” now", shorten(&is.name, 100)));
    }
    (lasting(was) != lasting(is)).then(|| "the element is different".to_owned())
}

/// Returns the states of an element apart from those about the keyboard and the pointer.
fn lasting(element: &Element) -> Vec<ElementState> {
    let passing = [
        ElementState::Focused,
        ElementState::Covered,
        ElementState::Pressed,
    ];
    let is_toggle = element.role == "button";
    let states = element.states.iter().copied();
    states
        .filter(|state| !passing.contains(state) || is_toggle && *state == ElementState::Pressed)
        .collect()
}

/// Whether two elements with different ids are one for a person: they say the same at one depth.
fn is_alike(one: &Element, other: &Element) -> bool {
    let said = |of: &Element| (of.id.document, of.depth);
    said(one) == said(other)
        && (&one.role, &one.name, &one.value) == (&other.role, &other.name, &other.value)
        && lasting(one) == lasting(other)
}

fn by_id(reading: &DesktopReading) -> Elements<'_> {
    let elements = reading.elements.iter();
    elements.map(|element| (element.id, element)).collect()
}

type Elements<'e> = BTreeMap<ElementId, &'e Element>;

/// Returns the differences of other elements in windows that existed before, as text. If the
/// reading is partial, windows without elements are left out.
fn changed_elements(
    target: Option<ElementId>,
    (was, is): (&Elements<'_>, &Elements<'_>),
    is_partial: bool,
) -> Vec<String> {
    let has_window = |elements: &Elements<'_>, document: u32| {
        let mut own = elements.keys().filter(|id| id.document == document);
        own.nth(usize::from(is_partial)).is_some()
    };
    let stays = |one: &&&Element| {
        let document = one.id.document;
        one.depth > 0 && has_window(was, document) && has_window(is, document)
    };
    let gone = was.values().filter(stays);
    let mut gone: Vec<&Element> = gone
        .filter(|gone| !is.contains_key(&gone.id))
        .copied()
        .collect();
    let mut told = Vec::new();
    for element in is.values().filter(stays) {
        let said = words(element);
        match was.get(&element.id) {
            // LibreOffice makes elements anew that are what they were.
            None => match gone.iter().position(|gone| is_alike(gone, element)) {
                Some(at) => drop(gone.remove(at)),
                None => told.push(format!("{said} appeared")),
            },
            Some(_) if Some(element.id) == target => {}
            Some(was)
                if was.value != element.value
                    && !element.states.contains(&ElementState::Masked) =>
            {
                let value = shorten(element.value.as_deref().unwrap_or_default(), 60);
                told.push(format!("{said} holds “{value}” now"));
            }
            Some(was) if was.name != element.name => {
                told.push(format!(
                    "{} is called “{}” now",
                    words(was),
                    shorten(&element.name, 60)
                ));
            }
            Some(was) if lasting(was) != lasting(element) => {
                told.push(format!("{said} is different"));
            }
            Some(_) => {}
        }
    }
    told.extend(gone.iter().map(|gone| format!("{} went away", words(gone))));
    if told.len() > MAX_TOLD {
        let more = told.len() - MAX_TOLD;
        told.truncate(MAX_TOLD);
        told.push(format!("{more} more changes"));
    }
    told
}
