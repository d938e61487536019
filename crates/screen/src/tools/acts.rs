//! Actions of the mouse and the keyboard.

use std::time::{Duration, Instant};

use gyrus_contract::{
    ActionVerdict, Aim, ClickCall, ClickKind, DragCall, HoverCall, PressKeyCall, ScrollCall,
    ScrollDirection, ScrollToCall, ToolOutput,
};
use gyrus_text::counted;
use serde::Deserialize;

use super::{
    action::{ActionCall, ActionFailure, ScreenToolAction},
    fill,
};
use crate::{
    browser::BrowserSession,
    cdp::CdpError,
    input::{Chord, InputTarget, NoPageAnswer, PagePoint, Press, Spot, UnusableTarget, held_bits},
    settle::SETTLE_LIMIT,
    state::{MaySend, TabState},
    verdict::{InputEffects, StateBefore},
};

/// Maximum number of times that an element may move before the pointer has reached it.
const MAX_CHASES: usize = 4;

/// Part of a box's visible size that a turn of the wheel scrolls.
const PAGE: f64 = 0.9;

/// Maximum time of scrolling, in milliseconds.
const SCROLL_MS: u32 = 3_000;

/// Maximum number of attempts at an input that the guard keeps from the page.
pub(super) const MAX_PRESSES: usize = 3;

/// Returns the failure for a target with another element over it.
fn elsewhere(there: &str) -> ActionFailure {
    ActionFailure::Refused(format!(
        "refused: moved (now there: {there}); it was kept from the page; look again"
    ))
}

/// Returns the failure for a target that went away during the action.
fn unknown(why: &str) -> ActionFailure {
    ActionFailure::Broke(format!(
        "{why} (nobody knows whether the input took effect: look for that before you repeat it)"
    ))
}

/// Scroll position and size of a box.
#[derive(Debug, Deserialize)]
struct ScrollState {
    x: f64,
    y: f64,
    across: f64,
    down: f64,
    width: f64,
    height: f64,
    /// The middle of the page.
    middle: (f64, f64),
}

impl ScreenToolAction for ClickCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let fills = fill::aims(self, session, tab).await?;
        let target = InputTarget::of(self.on, self.at);
        let meant = fill::meant(self);
        let spot = session.locate(tab, target, purpose_of(self.kind), &meant);
        let aim = spot.await?.aim();
        Ok(Aim { fills, ..aim })
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let (button, count, verb) = match self.kind {
            Some(ClickKind::Double) => ("left", 2, "Double-clicked"),
            Some(ClickKind::Triple) => ("left", 3, "Triple-clicked"),
            Some(ClickKind::Right) => ("right", 1, "Right-clicked"),
            Some(ClickKind::Middle) => ("middle", 1, "Middle-clicked"),
            None => ("left", 1, "Clicked"),
        };
        let target = InputTarget::of(self.on, self.at);
        if let Some(stopped) = doing.fill_in(self).await? {
            return Ok(stopped);
        }
        doing.session.state().chooser = None;
        let press = Press {
            button,
            count,
            modifiers: held_bits(&self.with),
            hold: Duration::from_secs_f64(self.seconds.unwrap_or_default()),
        };
        let mut kept_from = None;
        for _ in 0..MAX_PRESSES {
            let (spot, standing) = doing
                .approach(target, (purpose_of(self.kind), ""), "pointer")
                .await?;
            let input = doing.session.press(&doing.tab, spot.point, press);
            let effects = doing.send(Some(&spot), &standing, input).await?;
            if let Some(there) = &effects.kept_from
                && (1..count).contains(&effects.landed)
            {
                let (landed, words) = (effects.landed, &spot.told.words);
                let done = format!(
                    "Only {landed} of {count} clicks landed on {} {words}: then {there} was \
                     there, and was not clicked",
                    spot.id()
                );
                return Ok(ToolOutput {
                    is_error: true,
                    ..doing.told(&done, &effects)
                });
            }
            if effects.blocked.is_none() {
                let done = format!("{verb} {} {}", spot.id(), spot.told.words);
                return Ok(match self.fill.len() {
                    0 => doing.told(&done, &effects),
                    many => {
                        let filled = format!("Filled in {}. {done}", counted(many, "field"));
                        ToolOutput {
                            verdict: ActionVerdict::Changed,
                            ..doing.told(&filled, &effects)
                        }
                    }
                });
            }
            kept_from = effects.blocked;
            if effects.landed > 0 {
                break;
            }
            // The input did not reach the page, so it may be tried again: after scrolling, the
            // browser may send an input to the previous position of a frame in another process.
        }
        Err(elsewhere(&kept_from.unwrap_or_default()))
    }
}

impl ScreenToolAction for HoverCall {
    fn target(&self) -> Option<(InputTarget, &'static str)> {
        Some((InputTarget::of(self.on, self.at), "look"))
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let spot = doing
            .judged(InputTarget::of(self.on, self.at), "look", "")
            .await?;
        let standing = doing.session.watch(&doing.tab, Some(&spot), "").await;
        let input = doing.session.point_at(&doing.tab, spot.point);
        let effects = doing.finish(Some(&spot), &standing, input).await?;
        Ok(doing.told(
            &format!("The pointer is on {} {}", spot.id(), spot.told.words),
            &effects,
        ))
    }
}

impl ScreenToolAction for PressKeyCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let chord = Chord::parse(&self.key).map_err(ActionFailure::Refused)?;
        let target = InputTarget::of(self.on, None);
        Ok(session
            .locate(tab, target, "key", &chord.name())
            .await?
            .aim())
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let chord = Chord::parse(&self.key).map_err(ActionFailure::Refused)?;
        let target = InputTarget::of(self.on, None);
        let spot = doing.judged(target, "key", &chord.name()).await?;
        if self.on.is_some() {
            doing.give_keyboard(&spot).await?;
        }
        let standing = doing.session.watch(&doing.tab, Some(&spot), "key").await;
        let input = doing.session.strike(&doing.tab, &chord);
        let effects = doing.finish(Some(&spot), &standing, input).await?;
        Ok(doing.told(
            &format!(
                "Pressed {} on {} {}",
                chord.name(),
                spot.id(),
                spot.told.words
            ),
            &effects,
        ))
    }
}

impl ScreenToolAction for DragCall {
    /// Measures both ends: the one that takes it is judged, too.
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let end = session.locate(tab, self.to.into(), "drop", "").await?;
        let start = session.locate(tab, self.from.into(), "drag", end.name());
        Ok(start.await?.aim())
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let (from, to) = (InputTarget::from(self.from), InputTarget::from(self.to));
        // Both at once must be in view: the end first, which may scroll, and then the start.
        let end = doing.session.locate(&doing.tab, to, "drop", "").await?;
        let (spot, standing) = doing.approach(from, ("drag", end.name()), "loose").await?;
        let end_now = doing.session.locate(&doing.tab, to, "drop", "").await?;
        let start_now = doing.judged(from, "drag", end_now.name()).await?;
        if end_now.id() != end.id() {
            return Err(ActionFailure::Refused(
                "refused: moved: where it would be dropped is something else now; look again"
                    .to_owned(),
            ));
        }
        if start_now.point != spot.point {
            return Err(ActionFailure::Refused(
                "refused: start and end do not fit into the window at once; scroll first"
                    .to_owned(),
            ));
        }
        let mut path = vec![spot.point];
        for [x, y] in &self.via {
            let point = InputTarget::Point(*x, *y);
            let through = doing.session.locate(&doing.tab, point, "look", "").await?;
            path.push(through.point);
        }
        path.push(end_now.point);
        let ask = format!("gyrus.isDraggable({})", spot.number());
        let is_draggable = async { doing.session.ask(&spot.frame, &ask).await.unwrap_or(false) };
        let input = doing.session.drag(&doing.tab, &path, is_draggable);
        let effects = doing.finish(Some(&spot), &standing, input).await?;
        let done = format!(
            "Dragged {} {} to {} {}",
            spot.id(),
            spot.told.words,
            end.id(),
            end.told.words
        );
        Ok(doing.told(&done, &effects))
    }
}

impl ScreenToolAction for ScrollToCall {
    fn target(&self) -> Option<(InputTarget, &'static str)> {
        Some((InputTarget::Element(self.on), "glance"))
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::Element(self.on);
        let spot = doing.judged(target, "glance", "").await?;
        let standing = doing.session.watch(&doing.tab, Some(&spot), "").await;
        let spot = doing.session.locate(&doing.tab, target, "look", "").await?;
        let effects = doing
            .finish(Some(&spot), &standing, std::future::ready(Ok(())))
            .await?;
        Ok(doing.told(
            &format!("{} {} is in view", spot.id(), spot.told.words),
            &effects,
        ))
    }
}

impl ScreenToolAction for ScrollCall {
    fn target(&self) -> Option<(InputTarget, &'static str)> {
        self.on.map(|id| (InputTarget::Element(id), "look"))
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let (direction, across, down) = match self.direction {
            ScrollDirection::Up => ("up", 0.0, -1.0),
            ScrollDirection::Down => ("down", 0.0, 1.0),
            ScrollDirection::Left => ("left", -1.0, 0.0),
            ScrollDirection::Right => ("right", 1.0, 0.0),
        };
        let frame_of_page = doing.session.state().frames.get(&doing.tab.target).cloned();
        let (frame, number, point) = match self.on {
            Some(id) => {
                let spot = doing.judged(InputTarget::Element(id), "look", "").await?;
                (spot.frame.clone(), spot.number(), Some(spot.point))
            }
            None => (frame_of_page.unwrap_or_default(), 0, None),
        };
        let broke = |error: CdpError| ActionFailure::Broke(error.to_string());
        let place = quoted_place(number, direction);
        let ask = format!("gyrus.scrollState({place})");
        let asking = doing.session.ask::<ScrollState>(&frame, &ask);
        let was = doing
            .session
            .unless_held(&doing.tab, asking)
            .await?
            .map_err(broke)?;
        let pages = self.pages.unwrap_or(1.0).clamp(0.05, 20.0);
        let turn = (
            across * was.width * PAGE * pages,
            down * was.height * PAGE * pages,
        );
        let point = point.unwrap_or(was.middle);
        let standing = doing.session.watch(&doing.tab, None, "").await;
        let input = async {
            doing.session.wheel(&doing.tab, point, turn).await?;
            let over = format!("gyrus.scrolled({place}, {}, {}, {SCROLL_MS})", was.x, was.y);
            doing
                .session
                .ask::<ScrollState>(&frame, &over)
                .await
                .map(drop)
        };
        let mut effects = doing.finish(None, &standing, input).await?;
        let asking = doing.session.ask::<ScrollState>(&frame, &ask);
        let now = doing
            .session
            .unless_held(&doing.tab, asking)
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
        let ends = match self.direction {
            ScrollDirection::Up => now.y < 1.0,
            ScrollDirection::Down => now.y + now.height > now.down - 1.5,
            ScrollDirection::Left => now.x < 1.0,
            ScrollDirection::Right => now.x + now.width > now.across - 1.5,
        };
        let end = if ends { "; this is the end" } else { "" };
        Ok(doing.told(&format!("Scrolled {direction}{end}"), &effects))
    }
}

impl ActionCall<'_> {
    /// Returns the output that describes an input and its effects.
    pub(super) fn told(&self, done: &str, effects: &InputEffects) -> ToolOutput {
        ToolOutput {
            verdict: effects.verdict,
            ..ToolOutput::read(format!("{done}. {}", effects.say()))
        }
    }

    /// Sends an input, waits for rest and returns the changes. The guard has been armed.
    pub(super) async fn finish(
        &self,
        spot: Option<&Spot>,
        standing: &StateBefore,
        input: impl Future<Output = Result<(), CdpError>>,
    ) -> Result<InputEffects, ActionFailure> {
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
        standing: &StateBefore,
        input: impl Future<Output = Result<(), CdpError>>,
    ) -> Result<InputEffects, ActionFailure> {
        {
            let mut state = self.session.state();
            state.acted = Some(Instant::now());
            state.sockets.input_begins();
            if let Some(wake) = state.holdings.wake.as_mut()
                && let Some(form) = spot.and_then(Spot::sent_form)
            {
                match wake.sends {
                    MaySend::NothingYet => wake.sends = MaySend::Form(form),
                    MaySend::Anything => wake.sends = MaySend::LikeForm(form),
                    MaySend::LikeForm(_) | MaySend::Form(_) | MaySend::NothingMore => {}
                }
            }
        }
        let sent = self.session.unless_held(&self.tab, input).await;
        self.session.state().sockets.input_ends();
        match sent {
            // A page that is held up now was held up by the input.
            Ok(Ok(()))
            | Err(
                NoPageAnswer::Dialog { .. }
                | NoPageAnswer::Request { .. }
                | NoPageAnswer::Closed
                | NoPageAnswer::Crashed,
            ) => {}
            Ok(Err(error)) if self.session.lost().is_none() => {
                // A tab that closes or crashes takes its answers with it.
                let held = NoPageAnswer::of(&self.session.state(), self.tab.number);
                if held.is_none() {
                    return Err(unknown(&error.to_string()));
                }
            }
            Ok(Err(error)) => return Err(unknown(&error.to_string())),
            Err(lost) => return Err(unknown(&lost.to_string())),
        }
        let rest = self.session.settle(SETTLE_LIMIT).await;
        if let Some(held @ NoPageAnswer::Crashed) =
            NoPageAnswer::of(&self.session.state(), self.tab.number)
        {
            return Err(unknown(&held.to_string()));
        }
        if let Some(reason) = self.session.lost() {
            return Err(unknown(&NoPageAnswer::Lost { reason }.to_string()));
        }
        Ok(self.session.effects(&self.tab, spot, standing, rest).await)
    }

    /// Moves the pointer to the judged target, however it moves, and arms the guard.
    pub(super) async fn approach(
        &self,
        target: InputTarget,
        (purpose, key): (&str, &str),
        guard: &str,
    ) -> Result<(Spot, StateBefore), ActionFailure> {
        let mut spot = self.judged(target, purpose, key).await?;
        for _ in 0..MAX_CHASES {
            let moved = self
                .session
                .unless_held(&self.tab, self.session.point_at(&self.tab, spot.point));
            moved
                .await?
                .map_err(|error| ActionFailure::Broke(error.to_string()))?;
            // Pointing at it may have opened or moved something, or what it shows then is on its way.
            let again = match self.judged(target, purpose, key).await {
                Ok(again) => again,
                Err(_) => {
                    self.session.settle(SETTLE_LIMIT).await;
                    self.judged(target, purpose, key).await?
                }
            };
            let near = |one: PagePoint, other: PagePoint| {
                (one.0 - other.0).abs() < 1.0 && (one.1 - other.1).abs() < 1.0
            };
            let stayed = near(spot.point, again.point);
            spot = again;
            if stayed {
                let standing = self.session.watch(&self.tab, Some(&spot), guard).await;
                return Ok((spot, standing));
            }
        }
        Err(ActionFailure::Refused(format!(
            "refused: moved: {} does not stand still; wait, or look again",
            spot.told.words
        )))
    }

    pub(super) async fn give_keyboard(&self, spot: &Spot) -> Result<KeyboardFocus, ActionFailure> {
        let ask = format!("gyrus.focus({}, true)", spot.number());
        let focus = self.session.ask::<KeyboardFocus>(&spot.frame, &ask);
        let focus = self.session.unless_held(&self.tab, focus).await?;
        match focus {
            Ok(focus) if focus.has => Ok(focus),
            Ok(focus) => Err(ActionFailure::Refused(format!(
                "refused: {} does not take the keyboard; it is at {}",
                spot.told.words, focus.words
            ))),
            Err(_) => Err(UnusableTarget::Gone { id: spot.id() }.into()),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct KeyboardFocus {
    pub(super) has: bool,
    pub(super) exactly: bool,
    pub(super) number: u32,
    pub(super) kind: String,
    pub(super) words: String,
}

fn purpose_of(kind: Option<ClickKind>) -> &'static str {
    if kind == Some(ClickKind::Right) {
        "menu"
    } else {
        "click"
    }
}

fn quoted_place(number: u32, direction: &str) -> String {
    format!("{number}, {}", crate::input::quoted(direction))
}
