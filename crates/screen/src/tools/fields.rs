//! Enters values into fields.

use gyrus_contract::{
    ActionVerdict, Aim, ElementState, SelectOptionCall, SelectTextCall, ToolOutput, TypeTextCall,
};
use serde::Deserialize;

use super::{
    action::{ActionCall, ActionFailure, ScreenToolAction},
    acts::{KeyboardFocus, MAX_PRESSES},
};
use crate::{
    browser::BrowserSession,
    cdp::CdpError,
    input::{Chord, InputTarget, Press, Spot, quoted},
    state::TabState,
    verdict::InputEffects,
};

/// Maximum number of characters shown of a field's value.
const MAX_VALUE: usize = 200;

#[derive(Debug, Deserialize)]
struct FieldReading {
    holds: bool,
    /// The value; missing for a secret.
    value: Option<String>,
}

/// The way of a slider to a number.
#[derive(Debug, Deserialize)]
struct Slide {
    value: String,
    holds: bool,
    /// A key, and how often it is struck.
    keys: Option<(String, u32)>,
    /// A drag, from and to points of the slider's document.
    drag: Option<[f64; 4]>,
}

/// Maximum number of strikes of keys in a row, and drags, that move a slider.
const MAX_MOVES: usize = 12;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OptionResult {
    Now {
        chosen: Vec<String>,
    },
    Options {
        options: Vec<String>,
        more: bool,
    },
    Several {
        several: Vec<String>,
    },
    Wrong {
        wrong: String,
    },
    Disabled {
        #[expect(dead_code, reason = "only its presence tells")]
        disabled: bool,
    },
}

#[derive(Debug, Deserialize)]
struct SelectedAnswer {
    is: bool,
}

impl ScreenToolAction for TypeTextCall {
    fn target(&self) -> Option<(InputTarget, &'static str)> {
        Some((InputTarget::of(self.on, self.at), purpose_of(self)))
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let given = self.text.as_str();
        let text = doing
            .site
            .reveal(given)
            .map_err(|error| ActionFailure::Refused(error.to_string()))?;
        let (target, purpose) = (InputTarget::of(self.on, self.at), purpose_of(self));
        let spot = doing.judged(target, purpose, "").await?;
        let refuse = |why: &str| {
            Err(ActionFailure::Refused(format!(
                "refused: {} {why}",
                spot.told.words
            )))
        };
        if spot.is(ElementState::Disabled) || spot.is(ElementState::ReadOnly) {
            return refuse("takes no input now");
        }
        match spot.told.kind.as_str() {
            "select" => return refuse("is a list: use select_option"),
            "file" => return refuse("takes files: use upload_file"),
            "set" => return doing.set(&spot, &text, given).await,
            "slide" => return doing.slide(&spot, &text).await,
            "line" | "keys" if text.contains(['\n', '\r']) => {
                return refuse("takes one line only: leave the line breaks out");
            }
            _ => {}
        }
        let focus = doing.focus_for_typing(&spot, target, purpose).await?;
        let mut effects = doing.type_at(self, &spot, &focus, &text).await?;
        let is_secret = given != text;
        let shown = if is_secret {
            "the secret".to_owned()
        } else {
            format!("“{}”", cut(&text))
        };
        let done = format!("Typed {shown} into {} {}", spot.id(), spot.told.words);
        if self.submit {
            return Ok(doing.told(&format!("{done} and pressed Enter"), &effects));
        }
        if focus.kind == "keys" {
            let opened = doing.field_opened(&spot).await;
            effects.words.splice(0..0, opened.filter(|_| !is_secret));
            return Ok(doing.told(&done, &effects));
        }
        let ask = format!(
            "gyrus.holds({}, {}, {})",
            focus.number,
            quoted(&text),
            self.replace
        );
        let asking = doing.session.ask::<FieldReading>(&spot.frame, &ask);
        if let Ok(Ok(held)) = doing.session.unless_held(&doing.tab, asking).await
            && !held.holds
        {
            let made = match held.value.filter(|_| !is_secret) {
                Some(value) => format!("the page made “{}” of it", cut(&value)),
                None => "the page made something else of it".to_owned(),
            };
            effects.words.insert(0, made);
            if effects.verdict == ActionVerdict::NoEffect {
                effects.verdict = ActionVerdict::CannotTell;
            }
        }
        Ok(doing.told(&done, &effects))
    }
}

/// Selects text by the document's own selection, which notifies the page's listeners.
impl ScreenToolAction for SelectTextCall {
    fn target(&self) -> Option<(InputTarget, &'static str)> {
        self.on.map(|id| (InputTarget::Element(id), "glance"))
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let text = self.text.as_deref().unwrap_or_default();
        let main = doing.session.state().frames.get(&doing.tab.target).cloned();
        let (spot, frame, number) = match self.on {
            Some(id) => {
                let spot = doing.judged(InputTarget::Element(id), "glance", "").await?;
                let (frame, number) = (spot.frame.clone(), spot.number());
                (Some(spot), frame, number)
            }
            None => (None, main.unwrap_or_default(), 0),
        };
        let standing = doing.session.watch(&doing.tab, spot.as_ref(), "").await;
        let ask = format!("gyrus.select({number}, {})", quoted(text));
        let mut selected = None;
        let input = async {
            selected = Some(doing.session.ask::<SelectedAnswer>(&frame, &ask).await?);
            Ok(())
        };
        let effects = doing.finish(spot.as_ref(), &standing, input).await?;
        match selected {
            Some(SelectedAnswer { is: false }) => Err(ActionFailure::Refused(format!(
                "refused: “{}” does not stand there as one text; `extract` tells the words",
                cut(text)
            ))),
            _ if text.is_empty() => Ok(doing.told("Selected all of it", &effects)),
            _ => Ok(doing.told(&format!("Selected “{}”", cut(text)), &effects)),
        }
    }
}

impl ScreenToolAction for SelectOptionCall {
    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let target = InputTarget::Element(self.on);
        let spot = session.locate(tab, target, "set", &self.option).await?;
        let ask = choosing(&spot, &self.option, "true");
        let asking = session.ask::<OptionResult>(&spot.frame, &ask);
        if let Ok(chosen) = session.unless_held(tab, asking).await? {
            chosen.check(&spot, &self.option)?;
        }
        Ok(spot.aim())
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::Element(self.on);
        let spot = doing.judged(target, "set", &self.option).await?;
        let standing = doing.session.watch(&doing.tab, Some(&spot), "").await;
        let ask = choosing(&spot, &self.option, "false");
        let mut chosen = None;
        let input = async {
            chosen = Some(doing.session.ask::<OptionResult>(&spot.frame, &ask).await?);
            Ok(())
        };
        let effects = doing.finish(Some(&spot), &standing, input).await?;
        let words = &spot.told.words;
        let Some(chosen) = chosen else {
            // The page went away while it was chosen.
            return Ok(doing.told(&format!("Chose in {words}"), &effects));
        };
        let now = chosen.check(&spot, &self.option)?;
        let now: Vec<String> = now.iter().map(|one| format!("“{}”", cut(one))).collect();
        let done = format!("Chosen in {} {words}: {}", spot.id(), now.join(", "));
        Ok(doing.told(&done, &effects))
    }
}

/// Returns the question that chooses an option, or `only` whether it can be chosen.
fn choosing(spot: &Spot, option: &str, only: &str) -> String {
    format!(
        "gyrus.choose({}, {}, {only})",
        spot.number(),
        quoted(option)
    )
}

impl OptionResult {
    /// Returns the options that are chosen after the input.
    fn check(self, spot: &Spot, wanted: &str) -> Result<Vec<String>, ActionFailure> {
        let words = &spot.told.words;
        let why = match self {
            Self::Now { chosen } => return Ok(chosen),
            Self::Options { options, more } => format!(
                "{words} has no option “{}”; it has: {}{}",
                cut(wanted),
                options.join(" | "),
                if more { " …" } else { "" }
            ),
            Self::Several { several } => format!(
                "“{}” fits {} options of {words}: {}; name the one that is meant by its value or \
                 its number, as “#2”, and if nothing tells which that is, ask",
                cut(wanted),
                several.len(),
                several.join(", ")
            ),
            Self::Wrong { wrong } => {
                format!("{wrong} is not a native list: click it, look, and click the option")
            }
            Self::Disabled { .. } => format!("{words}, or that option, is disabled"),
        };
        Err(ActionFailure::Refused(format!("refused: {why}")))
    }
}

impl ActionCall<'_> {
    /// Types at the keyboard focus.
    async fn type_at(
        &self,
        call: &TypeTextCall,
        spot: &Spot,
        focus: &KeyboardFocus,
        text: &str,
    ) -> Result<InputEffects, ActionFailure> {
        let takes_keys = focus.kind == "keys";
        let prepared = match (takes_keys, call.replace) {
            // There is no text to select: what takes keys decides where they go.
            (true, _) => format!("gyrus.beforeKeys({})", spot.number()),
            (false, true) => "gyrus.selectAll()".to_owned(),
            (false, false) if InputTarget::of(call.on, call.at) == InputTarget::Keyboard => {
                "gyrus.toEndUnlessSelected()".to_owned()
            }
            (false, false) => "gyrus.toEnd()".to_owned(),
        };
        let standing = self.session.watch(&self.tab, Some(spot), "key").await;
        let input = async {
            let _: bool = self.session.ask(&spot.frame, &prepared).await?;
            let text = match text.chars().next().filter(|_| takes_keys) {
                Some(first) => self.open_by_key(spot, first, text, call.replace).await?,
                None => text,
            };
            if call.replace && text.is_empty() {
                let delete = Chord::parse("Delete").expect("Delete is a key");
                self.session.strike(&self.tab, &delete).await?;
            }
            let lines = focus.kind == "rich";
            self.session.type_in(&self.tab, text, lines).await?;
            if call.submit {
                let enter = Chord::parse("Enter").expect("Enter is a key");
                self.session.strike(&self.tab, &enter).await?;
            }
            Ok(())
        };
        self.finish(Some(spot), &standing, input).await
    }

    /// Describes the field that keys opened, unless it holds a secret. What only takes keys holds no
    /// text to compare.
    async fn field_opened(&self, spot: &Spot) -> Option<String> {
        let asking = self
            .session
            .ask::<Option<String>>(&spot.frame, "gyrus.typedText()");
        let typed = self.session.unless_held(&self.tab, asking).await;
        let value = typed.ok()?.ok()??;
        Some(format!("a field opened for it and holds “{}”", cut(&value)))
    }

    /// Types the first letter, which may open a field, and returns the text that is to follow.
    async fn open_by_key<'t>(
        &self,
        spot: &Spot,
        first: char,
        text: &'t str,
        replace: bool,
    ) -> Result<&'t str, CdpError> {
        let letter = first.to_string();
        self.session.type_in(&self.tab, &letter, false).await?;
        let ask = format!("gyrus.afterFirst({}, {replace})", quoted(&letter));
        let is_taken: bool = self.session.ask(&spot.frame, &ask).await?;
        Ok(if is_taken {
            &text[first.len_utf8()..]
        } else {
            text
        })
    }

    /// Focuses a field by a click, as a person would do it.
    async fn focus_for_typing(
        &self,
        spot: &Spot,
        target: InputTarget,
        purpose: &str,
    ) -> Result<KeyboardFocus, ActionFailure> {
        let [now, soon] = ["focus", "focusSoon"]
            .map(|method| format!("gyrus.{method}({}, false)", spot.number()));
        let asking = |ask| {
            self.session.unless_held(
                &self.tab,
                self.session.ask::<KeyboardFocus>(&spot.frame, ask),
            )
        };
        let broke = |error: CdpError| ActionFailure::Broke(error.to_string());
        let mut focus = asking(&now).await?.map_err(broke)?;
        if target != InputTarget::Keyboard && !(focus.has && focus.exactly) {
            let press = Press::default();
            // A page that is not painted yet does not receive the first press.
            for _ in 0..MAX_PRESSES {
                let (again, _) = self.approach(target, (purpose, ""), "pointer").await?;
                let clicked = self.session.press(&self.tab, again.point, press);
                self.session
                    .unless_held(&self.tab, clicked)
                    .await?
                    .map_err(broke)?;
                let asking = self.session.ask::<u32>(&spot.frame, "gyrus.passed()");
                let passed = self.session.unless_held(&self.tab, asking).await?;
                if passed.map_err(broke)? > 0 {
                    break;
                }
            }
            focus = asking(&soon).await?.map_err(broke)?;
        }
        let takes_text = matches!(focus.kind.as_str(), "line" | "text" | "rich" | "keys");
        if !focus.has || !takes_text {
            return Err(ActionFailure::Refused(format!(
                "refused: {} takes no text: the keyboard is at {}",
                spot.told.words, focus.words
            )));
        }
        Ok(focus)
    }

    /// Moves a slider of the page's making to a number, by keys or by the mouse.
    async fn slide(&self, spot: &Spot, text: &str) -> Result<ToolOutput, ActionFailure> {
        let (number, words) = (spot.number(), &spot.told.words);
        let wanted: f64 = text.trim().parse().map_err(|_| {
            ActionFailure::Refused(format!("refused: {words} is a slider: type a number"))
        })?;
        let standing = self.session.watch(&self.tab, Some(spot), "").await;
        let mut last = None;
        let input = async {
            for _ in 0..MAX_MOVES {
                let ask = format!("gyrus.slide({number}, {wanted})");
                let way: Slide = self.session.ask(&spot.frame, &ask).await?;
                if let Some((key, times)) = &way.keys
                    && let Ok(key) = Chord::parse(key)
                {
                    for _ in 0..*times {
                        self.session.strike(&self.tab, &key).await?;
                    }
                } else if let Some([x, y, to_x, to_y]) = way.drag {
                    let path = [spot.seen_at(x, y), spot.seen_at(to_x, to_y)];
                    let by_mouse = std::future::ready(false);
                    self.session.drag(&self.tab, &path, by_mouse).await?;
                } else {
                    last = Some(way);
                    break;
                }
            }
            Ok(())
        };
        let effects = self.finish(Some(spot), &standing, input).await?;
        match last {
            Some(way) if way.holds => {
                let done = format!("Set {} {words} to “{}”", spot.id(), cut(text));
                Ok(self.told(&done, &effects))
            }
            way => Err(ActionFailure::Broke(format!(
                "{words} does not take “{}”: it holds “{}” now; another number may fit its steps, \
                 or drag it",
                cut(text),
                way.map(|way| cut(&way.value)).unwrap_or_default()
            ))),
        }
    }

    /// Sets the value of a field with a picker, whose parts cannot all be reached by keys.
    async fn set(&self, spot: &Spot, text: &str, given: &str) -> Result<ToolOutput, ActionFailure> {
        let standing = self.session.watch(&self.tab, Some(spot), "").await;
        let (number, quoted) = (spot.number(), quoted(text));
        let ask = format!("gyrus.setValue({number}, {quoted})");
        let mut held = None;
        let input = async {
            let beside = format!("gyrus.setBeside({number}, {quoted})");
            let key: String = self.session.ask(&spot.frame, &beside).await?;
            if let Ok(key) = Chord::parse(&key) {
                self.session.strike(&self.tab, &key).await?;
            }
            held = Some(self.session.ask::<FieldReading>(&spot.frame, &ask).await?);
            Ok(())
        };
        let effects = self.finish(Some(spot), &standing, input).await?;
        match held {
            Some(held) if !held.holds => {
                let value = held.value.filter(|_| given == text).unwrap_or_default();
                let why = format!(
                    "{} does not take “{}”: it holds “{}” now; write dates as 2026-01-31, times as 13:05, colours as #ff0000",
                    spot.told.words,
                    cut(given),
                    cut(&value)
                );
                Err(ActionFailure::Broke(why))
            }
            _ => Ok(self.told(
                &format!("Set {} {} to “{}”", spot.id(), spot.told.words, cut(given)),
                &effects,
            )),
        }
    }
}

fn purpose_of(call: &TypeTextCall) -> &'static str {
    if call.submit { "submit" } else { "type" }
}

pub(crate) fn cut(text: &str) -> String {
    gyrus_text::shorten(text, MAX_VALUE).into_owned()
}
