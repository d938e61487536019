//! Actions of the mouse and the keyboard.

use std::time::Instant;

use gyrus_contract::{ActionVerdict, ToolOutput};
use serde::Deserialize;

use super::{Doing, Failure};
use crate::{
    cdp::CdpError,
    input::{Chord, Held, Missed, Point, Press, Spot, Target},
    settle::SETTLE_LIMIT,
    verdict::{Effects, Standing},
};

/// Maximum number of times that an element may move before the pointer has reached it.
const MAX_CHASES: usize = 4;

/// Part of a box's visible size that a turn of the wheel scrolls.
const PAGE: f64 = 0.9;

/// Maximum time of scrolling, in milliseconds.
const SCROLL_MS: u32 = 3_000;

/// Maximum number of attempts of an input that the guard kept from the page.
pub(super) const MAX_PRESSES: usize = 3;

/// Returns the failure for a target with another element over it.
fn elsewhere(there: &str) -> Failure {
    Failure::Refused(format!(
        "refused: moved (now there: {there}); it was kept from the page; look again"
    ))
}

/// Returns the failure for a target that went away during the action.
fn unknown(why: &str) -> Failure {
    Failure::Broke(format!(
        "{why} (nobody knows whether the input took effect: look for that before you repeat it)"
    ))
}

/// Scroll position and size of a box.
#[derive(Debug, Deserialize)]
struct Scrolled {
    x: f64,
    y: f64,
    across: f64,
    down: f64,
    width: f64,
    height: f64,
}

impl Doing<'_> {
    /// Returns the output that describes an input and its effects.
    pub(super) fn told(&self, done: &str, effects: &Effects) -> ToolOutput {
        ToolOutput {
            verdict: effects.verdict,
            ..ToolOutput::read(format!("{done}. {}", effects.say()))
        }
    }

    /// Sends an input, waits for rest and returns the changes. The guard has been armed.
    pub(super) async fn finish(
        &self,
        spot: Option<&Spot>,
        standing: &Standing,
        input: impl Future<Output = Result<(), CdpError>>,
    ) -> Result<Effects, Failure> {
        let effects = self.send(spot, standing, input).await?;
        match &effects.blocked {
            Some(there) => Err(elsewhere(there)),
            None => Ok(effects),
        }
    }

    /// Like [`Self::finish`], but an input that the guard kept from the page is an effect too.
    async fn send(
        &self,
        spot: Option<&Spot>,
        standing: &Standing,
        input: impl Future<Output = Result<(), CdpError>>,
    ) -> Result<Effects, Failure> {
        self.session.state().acted = Some(Instant::now());
        let sent = self.session.unless_held(&self.tab, input).await;
        match sent {
            // A page that is held up now was held up by the input.
            Ok(Ok(()))
            | Err(Held::Dialog { .. } | Held::Request { .. } | Held::Closed | Held::Crashed) => {}
            Ok(Err(error)) if self.session.lost().is_none() => {
                // A tab that closes or crashes takes its answers with it.
                let held = Held::of(&self.session.state(), self.tab.number);
                if held.is_none() {
                    return Err(unknown(&error.to_string()));
                }
            }
            Ok(Err(error)) => return Err(unknown(&error.to_string())),
            Err(lost) => return Err(unknown(&lost.to_string())),
        }
        let rest = self.session.settle(SETTLE_LIMIT).await;
        if let Some(held @ Held::Crashed) = Held::of(&self.session.state(), self.tab.number) {
            return Err(unknown(&held.to_string()));
        }
        if let Some(reason) = self.session.lost() {
            return Err(unknown(&Held::Lost { reason }.to_string()));
        }
        Ok(self.session.effects(&self.tab, spot, standing, rest).await)
    }

    /// Moves the pointer to the judged target, however it moves, and arms the guard.
    pub(super) async fn approach(
        &self,
        target: Target,
        purpose: &str,
        guard: &str,
    ) -> Result<(Spot, Standing), Failure> {
        let mut spot = self.judged(target, purpose, "").await?;
        for _ in 0..MAX_CHASES {
            let moved = self
                .session
                .unless_held(&self.tab, self.session.point_at(&self.tab, spot.point));
            moved
                .await?
                .map_err(|error| Failure::Broke(error.to_string()))?;
            // Pointing at it may have opened or moved something, or what it shows then is on its way.
            let again = match self.judged(target, purpose, "").await {
                Ok(again) => again,
                Err(_) => {
                    self.session.settle(SETTLE_LIMIT).await;
                    self.judged(target, purpose, "").await?
                }
            };
            let near = |one: Point, other: Point| {
                (one.0 - other.0).abs() < 1.0 && (one.1 - other.1).abs() < 1.0
            };
            let stayed = near(spot.point, again.point);
            spot = again;
            if stayed {
                let standing = self.session.watch(&self.tab, Some(&spot), guard).await;
                return Ok((spot, standing));
            }
        }
        Err(Failure::Refused(format!(
            "refused: moved: {} does not stand still; wait, or look again",
            spot.told.words
        )))
    }

    fn pointed(&self) -> Result<Target, Failure> {
        let on = self.arguments.on.map(Target::Element);
        let at = self.arguments.at.map(|[x, y]| Target::Point(x, y));
        on.or(at)
            .ok_or_else(|| Failure::Refused("one of `on` and `at` is needed".to_owned()))
    }

    pub(super) async fn click(&self) -> Result<ToolOutput, Failure> {
        let (button, count, verb) = match self.arguments.kind.as_deref() {
            Some("double") => ("left", 2, "Double-clicked"),
            Some("triple") => ("left", 3, "Triple-clicked"),
            Some("right") => ("right", 1, "Right-clicked"),
            Some("middle") => ("middle", 1, "Middle-clicked"),
            _ => ("left", 1, "Clicked"),
        };
        let purpose = if button == "right" { "menu" } else { "click" };
        self.session.state().chooser = None;
        let press = Press {
            button,
            count,
            modifiers: self.arguments.held(),
        };
        let mut kept_from = None;
        for _ in 0..MAX_PRESSES {
            let (spot, standing) = self.approach(self.pointed()?, purpose, "pointer").await?;
            let input = self.session.press(&self.tab, spot.point, press);
            let effects = self.send(Some(&spot), &standing, input).await?;
            if effects.blocked.is_none() {
                let done = format!("{verb} {} {}", spot.id(), spot.told.words);
                return Ok(self.told(&done, &effects));
            }
            kept_from = effects.blocked;
            if effects.reached {
                break;
            }
            // The input did not reach the page, so it may be tried again: after scrolling, the
            // browser may send an input to the previous position of a frame in another process.
        }
        Err(elsewhere(&kept_from.unwrap_or_default()))
    }

    pub(super) async fn hover(&self) -> Result<ToolOutput, Failure> {
        let spot = self.judged(self.pointed()?, "look", "").await?;
        let standing = self.session.watch(&self.tab, Some(&spot), "").await;
        let input = self.session.point_at(&self.tab, spot.point);
        let effects = self.finish(Some(&spot), &standing, input).await?;
        Ok(self.told(
            &format!("The pointer is on {} {}", spot.id(), spot.told.words),
            &effects,
        ))
    }

    pub(super) async fn press_key(&self) -> Result<ToolOutput, Failure> {
        let given = self.arguments.key.as_deref().unwrap_or_default();
        let chord = Chord::parse(given).map_err(Failure::Refused)?;
        let target = self.arguments.on.map_or(Target::Keyboard, Target::Element);
        let spot = self.judged(target, "key", &chord.name()).await?;
        if self.arguments.on.is_some() {
            self.give_keyboard(&spot).await?;
        }
        let standing = self.session.watch(&self.tab, Some(&spot), "key").await;
        let input = self.session.strike(&self.tab, &chord);
        let effects = self.finish(Some(&spot), &standing, input).await?;
        Ok(self.told(
            &format!(
                "Pressed {} on {} {}",
                chord.name(),
                spot.id(),
                spot.told.words
            ),
            &effects,
        ))
    }

    pub(super) async fn drag(&self) -> Result<ToolOutput, Failure> {
        let place = |place: Option<super::arguments::Place>| {
            place
                .map(Target::from)
                .ok_or(Failure::Refused("`from` and `to` are needed".to_owned()))
        };
        let (from, to) = (place(self.arguments.from)?, place(self.arguments.to)?);
        // Both at once must be in view: the end first, which may scroll, and then the start.
        let end = self.session.locate(&self.tab, to, "look", "").await?;
        let (spot, standing) = self.approach(from, "drag", "loose").await?;
        let end_now = self.session.locate(&self.tab, to, "look", "").await?;
        let start_now = self.judged(from, "drag", "").await?;
        if end_now.id() != end.id() {
            return Err(Failure::Refused(
                "refused: moved: where it would be dropped is something else now; look again"
                    .to_owned(),
            ));
        }
        if start_now.point != spot.point {
            return Err(Failure::Refused(
                "refused: start and end do not fit into the window at once; scroll first"
                    .to_owned(),
            ));
        }
        let mut path = vec![spot.point];
        for [x, y] in &self.arguments.via {
            let point = Target::Point(*x, *y);
            let through = self.session.locate(&self.tab, point, "look", "").await?;
            path.push(through.point);
        }
        path.push(end_now.point);
        let input = self.session.drag(&self.tab, &path, spot.told.draggable);
        let effects = self.finish(Some(&spot), &standing, input).await?;
        let done = format!(
            "Dragged {} {} to {} {}",
            spot.id(),
            spot.told.words,
            end.id(),
            end.told.words
        );
        Ok(self.told(&done, &effects))
    }

    pub(super) async fn scroll_to(&self) -> Result<ToolOutput, Failure> {
        let target = self.pointed()?;
        let spot = self.judged(target, "glance", "").await?;
        let standing = self.session.watch(&self.tab, Some(&spot), "").await;
        let spot = self.session.locate(&self.tab, target, "look", "").await?;
        let effects = self
            .finish(Some(&spot), &standing, std::future::ready(Ok(())))
            .await?;
        Ok(self.told(
            &format!("{} {} is in view", spot.id(), spot.told.words),
            &effects,
        ))
    }

    pub(super) async fn scroll(&self) -> Result<ToolOutput, Failure> {
        let direction = self.arguments.direction.as_deref().unwrap_or("down");
        let frame_of_page = self.session.state().frames.get(&self.tab.target).cloned();
        let (frame, number, point) = match self.arguments.on {
            Some(id) => {
                let spot = self.judged(Target::Element(id), "look", "").await?;
                (spot.frame.clone(), spot.number(), Some(spot.point))
            }
            None => (frame_of_page.unwrap_or_default(), 0, None),
        };
        let broke = |error: CdpError| Failure::Broke(error.to_string());
        let place = quoted_place(number, direction);
        let ask = format!("gyrus.scrollState({place})");
        let asking = self.session.ask::<Scrolled>(&frame, &ask);
        let was = self
            .session
            .unless_held(&self.tab, asking)
            .await?
            .map_err(broke)?;
        let pages = self.arguments.pages.unwrap_or(1.0).clamp(0.05, 20.0);
        let (across, down) = match direction {
            "up" => (0.0, -was.height),
            "left" => (-was.width, 0.0),
            "right" => (was.width, 0.0),
            _ => (0.0, was.height),
        };
        let turn = (across * PAGE * pages, down * PAGE * pages);
        let point = point.unwrap_or((was.width / 2.0, was.height / 2.0));
        let standing = self.session.watch(&self.tab, None, "").await;
        let input = async {
            self.session.wheel(&self.tab, point, turn).await?;
            let over = format!("gyrus.scrolled({place}, {}, {}, {SCROLL_MS})", was.x, was.y);
            self.session.ask::<Scrolled>(&frame, &over).await.map(drop)
        };
        let mut effects = self.finish(None, &standing, input).await?;
        let asking = self.session.ask::<Scrolled>(&frame, &ask);
        let now = self
            .session
            .unless_held(&self.tab, asking)
            .await?
            .map_err(broke)?;
        if (now.x - was.x).abs() >= 1.0 || (now.y - was.y).abs() >= 1.0 {
            effects.verdict = ActionVerdict::Changed;
            effects.words.insert(
                0,
                format!(
                    "it scrolled from {:.0},{:.0} to {:.0},{:.0}",
                    was.x, was.y, now.x, now.y
                ),
            );
        }
        let ends = match direction {
            "up" => now.y < 1.0,
            "left" => now.x < 1.0,
            "right" => now.x + now.width > now.across - 1.5,
            _ => now.y + now.height > now.down - 1.5,
        };
        let end = if ends { "; this is the end" } else { "" };
        Ok(self.told(&format!("Scrolled {direction}{end}"), &effects))
    }

    /// Gives the keyboard focus to an element.
    pub(super) async fn give_keyboard(&self, spot: &Spot) -> Result<Focus, Failure> {
        let ask = format!("gyrus.focus({}, true)", spot.number());
        let focus = self.session.ask::<Focus>(&spot.frame, &ask);
        let focus = self.session.unless_held(&self.tab, focus).await?;
        match focus {
            Ok(focus) if focus.has => Ok(focus),
            Ok(focus) => Err(Failure::Refused(format!(
                "refused: {} does not take the keyboard; it is at {}",
                spot.told.words, focus.words
            ))),
            Err(_) => Err(Missed::Gone { id: spot.id() }.into()),
        }
    }
}

/// Keyboard focus.
#[derive(Debug, Deserialize)]
pub(super) struct Focus {
    pub(super) has: bool,
    pub(super) exactly: bool,
    pub(super) number: u32,
    pub(super) kind: String,
    pub(super) words: String,
}

fn quoted_place(number: u32, direction: &str) -> String {
    format!("{number}, {}", crate::input::quoted(direction))
}
