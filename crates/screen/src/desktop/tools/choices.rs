//! Chooses an option of a list, and brings elements into view.

use gyrus_contract::{
    ActionVerdict, Aim, Bounds, Element, ElementId, ElementState, ScrollToCall, SelectOptionCall,
    Starts, ToolOutput,
};

use super::{DesktopAction, DesktopCall, elsewhere, told, unknown};
use crate::{
    desktop::{
        accessible::ChoiceOption,
        look,
        measure::DesktopSpot,
        pointer::{Button, ScreenPoint},
        session::DesktopSession,
    },
    input::{Chord, InputTarget},
    tools::{action::ActionFailure, fields::cut},
};

/// Maximum number of options that a message lists.
const MAX_LISTED: usize = 30;

/// Maximum number of turns of the wheel until an element is in view.
const MAX_TURNS: usize = 30;

/// Number of steps of one turn where the distance is not known.
const CELL_STEPS: u32 = 3;

/// Maximum number of steps of one turn.
const MAX_STEPS: u32 = 40;

fn chooses(_: &DesktopSpot) -> Vec<Starts> {
    vec![Starts::Chooses {
        option: String::new(),
    }]
}

fn looking(_: &DesktopSpot) -> Vec<Starts> {
    vec![Starts::Looking]
}

impl DesktopAction for SelectOptionCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::Element(self.on)).await?;
        Ok(spot.aim(chooses(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::Element(self.on);
        let (spot, standing) = doing.judged(target, chooses).await?;
        let what = spot.words();
        if spot.is(ElementState::Disabled) {
            return Err(ActionFailure::Refused(format!(
                "refused: {what} is disabled"
            )));
        }
        let is_none = || {
            ActionFailure::Refused(format!(
                "refused: {what} tells no options that can be chosen: click it, look, and click the \
                 option"
            ))
        };
        let accessible = doing.session.accessible.as_ref();
        let accessible = accessible.map_err(|_| is_none())?;
        let (name, path) = doing.session.numbers.path(spot.id()).ok_or_else(is_none)?;
        let options = accessible.options(name, path).await;
        if options.iter().all(|option| option.name.trim().is_empty()) {
            return Err(is_none());
        }
        let option = meant(&options, &self.option)
            .map_err(|why| ActionFailure::Refused(format!("refused: {what} {why}")))?;
        let is_chosen = accessible.choose(name, path, option.index).await;
        if !is_chosen && !doing.choose_by_mouse(&spot, &option.name).await? {
            return Err(is_none());
        }
        let mut effects = doing.session.effects(&standing).await?;
        let now = doing.session.locate(target).await.ok();
        let now = now.map(|spot| spot.element);
        let shows = now
            .is_some_and(|now| now.name == option.name || now.value.as_ref() == Some(&option.name));
        if shows {
            effects.verdict = ActionVerdict::Changed;
        }
        let done = format!("Chosen in {} {what}: “{}”", spot.id(), cut(&option.name));
        Ok(told(&done, &effects))
    }
}

/// Returns the option that `wanted` names; else the reason, in words that follow those for the
/// list.
fn meant<'o>(options: &'o [ChoiceOption], wanted: &str) -> Result<&'o ChoiceOption, String> {
    let wanted = wanted.trim();
    let lower = wanted.to_lowercase();
    let is_exact = |option: &&ChoiceOption| option.name.trim() == wanted;
    let is_same = |option: &&ChoiceOption| option.name.trim().to_lowercase() == lower;
    let exact: Vec<_> = options.iter().filter(is_exact).collect();
    let same: Vec<_> = options.iter().filter(is_same).collect();
    match (&exact[..], &same[..]) {
        ([one], _) | ([], [one]) => Ok(*one),
        ([], []) => {
            let names = options.iter().map(|option| cut(option.name.trim()));
            let names: Vec<_> = names
                .filter(|name| !name.is_empty())
                .take(MAX_LISTED)
                .collect();
            let more = if options.len() > MAX_LISTED {
                " …"
            } else {
                ""
            };
            Err(format!(
                "has no option “{}”; it has: {}{more}",
                cut(wanted),
                names.join(" | ")
            ))
        }
        ([_, ..] | [], _) => Err(format!(
            "has several options “{}”: click it, look, and click the one that is meant",
            cut(wanted)
        )),
    }
}

impl DesktopAction for ScrollToCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::Element(self.on)).await?;
        Ok(spot.aim(looking(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::Element(self.on);
        let (spot, standing) = doing.judged(target, looking).await?;
        let is_in_view = spot.reached().is_ok() || doing.bring_into_view(&spot).await?;
        let effects = doing.session.effects(&standing).await?;
        let (id, what) = (spot.id(), spot.words());
        if is_in_view {
            return Ok(told(&format!("{id} {what} is in view"), &effects));
        }
        Err(ActionFailure::Broke(format!(
            "{what} could not be brought into view; scroll, and look. {}",
            effects.say()
        )))
    }
}

impl DesktopCall<'_> {
    /// Opens a list and clicks the option of this name; whether there was exactly one to click.
    /// Else the list is closed again.
    async fn choose_by_mouse(
        &mut self,
        spot: &DesktopSpot,
        name: &str,
    ) -> Result<bool, ActionFailure> {
        let opens = spot.element.role == "combobox";
        if opens {
            self.click(spot).await?;
        }
        let reading = look::read(self.session).await?;
        let is_meant = |one: &&Element| {
            let is_option = ["listitem", "menuitem", "cell", "treeitem"].contains(&&*one.role);
            is_option && one.id.document == spot.id().document && one.name == name.trim()
        };
        let mut meant = reading.elements.iter().filter(is_meant);
        let option = match (meant.next(), meant.next()) {
            (Some(one), None) => self
                .session
                .find(&reading, InputTarget::Element(one.id))
                .ok(),
            _ => None,
        };
        let Some(option) = option.filter(|option| option.reached().is_ok()) else {
            if opens {
                let escape = Chord::parse("Escape").expect("it is a key");
                let display = &self.session.display;
                let struck = display.strike(&escape, spot.window.id).await;
                struck.map_err(unknown)?.map_err(elsewhere)?;
            }
            return Ok(false);
        };
        self.click(&option).await?;
        Ok(true)
    }

    async fn click(&mut self, spot: &DesktopSpot) -> Result<(), ActionFailure> {
        let point = spot.reached()?;
        self.session.display.point_at(point).map_err(unknown)?;
        self.press(spot, (Button::Left, 1), 0).await?;
        self.session.display.settle().await.map_err(unknown)?;
        Ok(())
    }

    /// Scrolls until an element is in view: by the program itself if it can, else by the wheel.
    /// Whether it is.
    async fn bring_into_view(&mut self, spot: &DesktopSpot) -> Result<bool, ActionFailure> {
        let target = InputTarget::Element(spot.id());
        let mut before = None;
        for turn in 0..MAX_TURNS {
            if turn > 0 || !self.program_scrolls_to(spot).await {
                let Some((around, wheel, at)) = self.way_to(spot).await? else {
                    return Ok(false);
                };
                // At the end of what can be scrolled nothing moves any more.
                if before.replace(at) == Some(at) {
                    return Ok(false);
                }
                self.turn_wheel(around, wheel).await?;
            }
            self.session.display.settle().await.map_err(unknown)?;
            if self.session.locate(target).await?.reached().is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn program_scrolls_to(&self, spot: &DesktopSpot) -> bool {
        match (
            &self.session.accessible,
            self.session.numbers.path(spot.id()),
        ) {
            (Ok(accessible), Some((name, path))) => accessible.scroll_to(name, path).await,
            (Ok(_) | Err(_), _) => false,
        }
    }

    /// Returns the box in which to turn the wheel towards an element, the direction, and what will
    /// be different after it has scrolled; `None` if there is no way.
    async fn way_to(
        &mut self,
        spot: &DesktopSpot,
    ) -> Result<Option<(Bounds, (Button, u32), (ElementId, Option<Bounds>))>, ActionFailure> {
        let reading = look::read(self.session).await?;
        let now = self
            .session
            .find(&reading, InputTarget::Element(spot.id()))?;
        let Some(around) = reading.limits.get(&spot.id()).copied() else {
            return Ok(None);
        };
        if let Some(shown) = now.element.bounds {
            let turn = turn_to(shown, around);
            return Ok(turn.map(|turn| (around, turn, (spot.id(), Some(shown)))));
        }
        // A cell has no place before it is drawn, only one among the others.
        let is_like = |one: &&Element| {
            one.id.document == spot.id().document
                && one.depth == spot.element.depth
                && one.role == spot.element.role
        };
        let mut like = reading.elements.iter().filter(is_like);
        let drawn = |one: &&Element| one.bounds.is_some() && one.id != spot.id();
        let own_place = reading.elements.iter().position(|one| one.id == spot.id());
        let Some(first) = like.find(drawn) else {
            return Ok(None);
        };
        let place = reading.elements.iter().position(|one| one.id == first.id);
        let button = if own_place < place {
            Button::WheelUp
        } else {
            Button::WheelDown
        };
        Ok(Some((
            around,
            (button, CELL_STEPS),
            (first.id, first.bounds),
        )))
    }

    /// Turns the wheel in a box where that only scrolls.
    async fn turn_wheel(
        &mut self,
        around: Bounds,
        turn: (Button, u32),
    ) -> Result<(), ActionFailure> {
        for point in points(around) {
            let target = InputTarget::Point(f64::from(point.0), f64::from(point.1));
            let Ok(there) = self.session.locate(target).await else {
                continue;
            };
            let takes_turns = ["combobox", "spinbutton", "slider", "tab", "tablist"];
            if takes_turns.contains(&there.element.role.as_str()) || there.reached().is_err() {
                continue;
            }
            let display = &self.session.display;
            display.point_at(point).map_err(unknown)?;
            let turned = display.press(turn, point, there.top);
            return turned.map_err(unknown)?.map_err(elsewhere);
        }
        let why = "refused: what should be scrolled is covered; look again";
        Err(ActionFailure::Refused(why.to_owned()))
    }
}

/// Returns points of a box: its middle, and others around it.
fn points(around: Bounds) -> impl Iterator<Item = ScreenPoint> {
    let parts = [
        (4, 4),
        (4, 2),
        (4, 6),
        (2, 4),
        (6, 4),
        (1, 1),
        (7, 1),
        (1, 7),
        (7, 7),
    ];
    let at = move |(x, y): (i32, i32)| {
        (
            around.x + around.width * x / 8,
            around.y + around.height * y / 8,
        )
    };
    parts.into_iter().map(at)
}

/// Returns the turn of the wheel that scrolls an element into a box, or nearer to it; `None` if it
/// lies in it.
fn turn_to(element: Bounds, around: Bounds) -> Option<(Button, u32)> {
    let outside = |start: i32, length: i32, from: i32, room: i32| {
        // Of what does not fit, the beginning is shown.
        let end = start + length.min(room);
        if start < from {
            start - from
        } else {
            (end - (from + room)).max(0)
        }
    };
    let down = outside(element.y, element.height, around.y, around.height);
    let right = outside(element.x, element.width, around.x, around.width);
    let (distance, length, button) = match (down, right) {
        (0, 0) => return None,
        (0, ..0) => (right, around.width, Button::WheelLeft),
        (0, _) => (right, around.width, Button::WheelRight),
        (..0, _) => (down, around.height, Button::WheelUp),
        _ => (down, around.height, Button::WheelDown),
    };
    // A step of GTK's is the length to the power of two thirds; others have similar ones.
    let step = f64::from(length.max(1)).powf(2.0 / 3.0);
    let steps = (f64::from(distance.abs()) / step).ceil() as u32;
    Some((button, steps.clamp(1, MAX_STEPS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_turns_towards_what_is_out_of_view() {
        let around = Bounds {
            x: 0,
            y: 100,
            width: 200,
            height: 125,
        };
        for (place, expected) in [
            ((0, 100, 50, 20), None),
            ((0, 225, 50, 20), Some((Button::WheelDown, 1))),
            ((0, 400, 50, 20), Some((Button::WheelDown, 8))),
            ((0, 60, 50, 20), Some((Button::WheelUp, 2))),
            ((0, 100, 50, 900), None),
            ((300, 100, 50, 20), Some((Button::WheelRight, 5))),
            ((-40, 100, 50, 20), Some((Button::WheelLeft, 2))),
            ((0, 90_000, 50, 20), Some((Button::WheelDown, MAX_STEPS))),
        ] {
            let (x, y, width, height) = place;
            let element = Bounds {
                x,
                y,
                width,
                height,
            };
            assert_eq!(turn_to(element, around), expected, "{place:?}");
        }
    }

    #[test]
    fn options_are_meant_by_their_words() {
        let option = |(index, name): (i32, &&str)| ChoiceOption {
            name: (*name).to_owned(),
            index,
        };
        let options: Vec<_> = (0..)
            .zip(&["Small", "small", "Large", "Two", "Two"])
            .map(option)
            .collect();
        for (wanted, expected) in [
            ("small", Ok(1)),
            ("Small ", Ok(0)),
            ("LARGE", Ok(2)),
            ("SMALL", Err("several")),
            ("Two", Err("several")),
            ("", Err("has no option")),
            ("Medium", Err("Small | small | Large | Two | Two")),
        ] {
            let found = meant(&options, wanted).map(|option| option.index);
            match (&found, expected) {
                (Ok(index), Ok(expected)) => assert_eq!(*index, expected, "{wanted}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{wanted}: {why}"),
                _ => panic!("{wanted}: {found:?}"),
            }
        }
    }
}
