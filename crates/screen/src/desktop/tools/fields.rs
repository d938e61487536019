//! Enters and selects text.

use gyrus_contract::{
    ActionVerdict, Aim, ElementState, SelectTextCall, Starts, ToolOutput, TypeTextCall,
};

use super::{DesktopAction, DesktopCall, elsewhere, told, unconfirmed, unknown};
use crate::{
    desktop::{
        effects::DesktopBefore,
        keyboard::{self, Arrival},
        look,
        measure::DesktopSpot,
        session::DesktopSession,
    },
    input::{Chord, InputTarget},
    tools::{action::ActionFailure, fields::cut},
};

/// Maximum number of characters of a text that is read to compare or to select in.
const MAX_TEXT: i32 = 1_000_000;

/// Beginning of the reason why typing stopped: the program reads no events.
const HANGS: &str = "the program does not read its events";

/// Returns the effects of typing into an element.
fn type_starts(submits: bool) -> impl Fn(&DesktopSpot) -> Vec<Starts> {
    move |_| {
        let enter = submits.then_some(Starts::Acts);
        std::iter::once(Starts::Types).chain(enter).collect()
    }
}

impl DesktopAction for TypeTextCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::of(self.on, self.at)).await?;
        Ok(spot.aim(type_starts(self.submit)(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let revealed = doing.site.reveal(&self.text);
        let text = revealed.map_err(|error| ActionFailure::Refused(error.to_string()))?;
        let text = text.replace("\r\n", "\n");
        let is_secret = !text.is_empty() && self.text.contains("⟦secret:");
        let target = InputTarget::of(self.on, self.at);
        let (spot, _) = doing.judged(target, type_starts(self.submit)).await?;
        let refuse = |why: &str| {
            let words = format!("refused: {} {why}", spot.words());
            Err(ActionFailure::Refused(words))
        };
        if spot.is(ElementState::Disabled) || spot.is(ElementState::ReadOnly) {
            return refuse("takes no input now");
        }
        let is_cell = spot.element.role == "cell";
        if !spot.takes_text() && !is_cell && !spot.is_window() && target != InputTarget::Keyboard {
            return refuse("takes no text");
        }
        if let Some(letter) = keyboard::untypable(&text) {
            let code = u32::from(letter);
            return refuse(&format!(
                "cannot be given the character U+{code:04X}, which no key types; leave it out, or \
                 use press_key"
            ));
        }
        let is_line = spot.takes_text() && !spot.is(ElementState::Multiple);
        if is_line && spot.element.role != "terminal" && text.contains('\n') {
            return refuse("takes one line only: leave the line breaks out");
        }
        if target != InputTarget::Keyboard {
            doing.give_keyboard(&spot).await?;
        }
        let before = doing.text_of(&spot).await;
        let reading = look::read(doing.session).await?;
        let standing = DesktopBefore::of(doing.session, reading, Some(spot.id())).await?;
        let typed = doing.enter(self, &spot, &text).await?;
        let mut effects = doing.session.effects(&standing).await?;
        if typed.arrival == Arrival::Unknown {
            unconfirmed(&mut effects);
        }
        let shown = if is_secret {
            "the secret".to_owned()
        } else {
            format!("“{}”", cut(&text))
        };
        if let Some(why) = &typed.stopped {
            return Ok(ToolOutput {
                is_error: true,
                ..told(&typed.stopped_at(why, &spot, &text), &effects)
            });
        }
        let done = format!("Typed {shown} into {} {}", spot.id(), spot.words());
        if self.submit {
            return Ok(told(&format!("{done} and pressed Enter"), &effects));
        }
        if let (Some(before), Some(now)) = (before, doing.text_of(&spot).await) {
            let grown = before.chars().count() + text.chars().count();
            let kept = now.chars().count() == grown || before.is_empty();
            let holds = now == text || (!self.replace && now.contains(&text) && kept);
            if !holds && !is_secret {
                let made = format!("the program made “{}” of it", cut(&now));
                effects.words.insert(0, made);
                effects.verdict = ActionVerdict::CannotTell;
            } else if holds && !text.is_empty() {
                effects.verdict = ActionVerdict::Changed;
            }
        }
        Ok(told(&done, &effects))
    }
}

/// Selects text by the program's own selection.
impl DesktopAction for SelectTextCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::of(self.on, None)).await?;
        Ok(spot.aim(vec![Starts::Looking]))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::of(self.on, None);
        let looking = |_: &DesktopSpot| vec![Starts::Looking];
        let (spot, standing) = doing.judged(target, looking).await?;
        let none = || {
            let what = spot.words();
            ActionFailure::Refused(format!(
                "refused: {what} holds no text that can be selected"
            ))
        };
        let whole = doing.text_of(&spot).await.ok_or_else(none)?;
        let wanted = self.text.as_deref().unwrap_or(&whole);
        let start = whole.find(wanted).ok_or_else(|| {
            ActionFailure::Refused(format!(
                "refused: “{}” does not stand there as one text; `extract` tells the words",
                cut(wanted)
            ))
        })?;
        let count = |text: &str| i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
        let from = count(&whole[..start]);
        let to = from.saturating_add(count(wanted));
        let is_selected = match (
            &doing.session.accessible,
            doing.session.numbers.path(spot.id()),
        ) {
            (Ok(accessible), Some((name, path))) => accessible.select(name, path, from, to).await,
            (Ok(_) | Err(_), _) => false,
        };
        if !is_selected {
            return Err(none());
        }
        let mut effects = doing.session.effects(&standing).await?;
        // What is selected stands in no element.
        effects
            .words
            .insert(0, "what is selected is different".to_owned());
        effects.verdict = ActionVerdict::Changed;
        let done = match &self.text {
            Some(text) => format!("Selected “{}”", cut(text)),
            None => "Selected all of it".to_owned(),
        };
        Ok(told(&done, &effects))
    }
}

impl DesktopCall<'_> {
    /// Returns the text of an element; `None` if it tells none, as for a secret.
    pub(super) async fn text_of(&self, spot: &DesktopSpot) -> Option<String> {
        if spot.is(ElementState::Masked) {
            return None;
        }
        let accessible = self.session.accessible.as_ref().ok()?;
        let (name, path) = self.session.numbers.path(spot.id())?;
        accessible.text(name, path, MAX_TEXT).await
    }

    /// Types where the keyboard is, for as long as it stays there.
    async fn enter(
        &mut self,
        call: &TypeTextCall,
        spot: &DesktopSpot,
        text: &str,
    ) -> Result<TypedPart, ActionFailure> {
        let (display, window) = (&self.session.display, spot.window.id);
        let strike = async |key: &str| {
            let chord = Chord::parse(key).expect("it is a key");
            display.strike(&chord, window).await.map_err(unknown)
        };
        let mut typed = TypedPart::default();
        let is_terminal = spot.element.role == "terminal" || !spot.takes_text();
        let first: &[&str] = if call.replace && !is_terminal {
            let deletes = text.is_empty().then_some("Delete");
            &["Control+a"].into_iter().chain(deletes).collect::<Vec<_>>()
        } else if InputTarget::of(call.on, call.at) != InputTarget::Keyboard && !is_terminal {
            &["Control+End"]
        } else {
            &[]
        };
        for key in first {
            typed.arrival = strike(key).await?.map_err(elsewhere)?;
            if typed.arrival == Arrival::Unknown && !text.is_empty() {
                typed.stopped = Some(format!("{HANGS}, so nothing but {key} was sent"));
                return Ok(typed);
            }
        }
        let had_keyboard = self.has_keyboard(spot).await;
        let mut typing = display.typing(text, window).map_err(unknown)?;
        while !typing.is_done() {
            let is_first = typed.characters == 0;
            if !is_first && self.has_keyboard(spot).await != had_keyboard {
                typed.stopped = Some("the keyboard is at another element now".to_owned());
                return Ok(typed);
            }
            match typing.next_part().await {
                Ok(Ok((characters, Arrival::Read))) => typed.characters += characters,
                Ok(Ok((characters, Arrival::Unknown))) => {
                    typed.arrival = Arrival::Unknown;
                    if typing.is_done() {
                        break;
                    }
                    typed.stopped = Some(format!(
                        "{HANGS}: {characters} characters were sent to it that it may read yet"
                    ));
                    return Ok(typed);
                }
                Ok(Err(why)) => {
                    typed.stopped = Some(why);
                    return Ok(typed);
                }
                Err(why) => {
                    typed.stopped = Some(format!("{why}, so more may have arrived than is known"));
                    return Ok(typed);
                }
            }
        }
        drop(typing);
        if call.submit {
            match strike("Enter").await? {
                Ok(Arrival::Read) => {}
                Ok(Arrival::Unknown) => typed.arrival = Arrival::Unknown,
                Err(why) => typed.stopped = Some(why),
            }
        }
        Ok(typed)
    }

    /// Whether an element reports the keyboard focus; `None` if it reports nothing about it.
    async fn has_keyboard(&self, spot: &DesktopSpot) -> Option<bool> {
        let accessible = self.session.accessible.as_ref().ok()?;
        let (name, path) = self.session.numbers.path(spot.id())?;
        accessible.has_keyboard(name, path).await
    }
}

#[derive(Debug)]
struct TypedPart {
    /// Number of characters that the program has read.
    characters: usize,
    arrival: Arrival,
    /// The reason why the rest was not.
    stopped: Option<String>,
}

impl Default for TypedPart {
    fn default() -> Self {
        Self {
            characters: 0,
            arrival: Arrival::Read,
            stopped: None,
        }
    }
}

impl TypedPart {
    /// Describes which part of a text was typed, and why the rest was not.
    fn stopped_at(&self, why: &str, spot: &DesktopSpot, text: &str) -> String {
        format!(
            "Stopped: {why}. Of the {} characters the first {} are known to have arrived in {} {}",
            text.chars().count(),
            self.characters,
            spot.id(),
            spot.words()
        )
    }
}
