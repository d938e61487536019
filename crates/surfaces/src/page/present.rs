//! The present of a run, as far as its last entries tell it.

use std::collections::BTreeMap;

use gyrus_contract::{Bounds, EffectId, ElementId, Image, Principal, RunId, View};
use gyrus_journal::LogReader;
use gyrus_kernel::{Entry, Inline};
use maud::Markup;

use super::{
    item::{ItemDrawer, StepContext},
    moment::TimeOrigin,
    picture::PagePictures,
    step::StepItem,
};
use crate::projection::{Happening, HappeningPart, HappeningSubject, Projection, TextForm, stored};

/// Number of the last entries that are read.
const ENTRIES: u64 = 400;

/// Maximum number of the last messages of people that are shown.
const MESSAGES: usize = 3;

/// The person who controls a run's browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenHolder {
    pub by: Principal,
    /// The time at which they got the browser, in UTC milliseconds.
    pub since_ms: i64,
}

/// The present of a run.
#[derive(Debug, Default)]
pub struct RunNow {
    /// The call that is in progress, or waits.
    pub doing: Option<Markup>,
    /// The last thought of the model.
    pub thought: Option<Markup>,
    /// The plan in force.
    pub plan: Option<Markup>,
    /// The last messages of people that the run received, the newest last.
    pub received: Vec<Markup>,
    /// Title and address of the last page that the run read.
    pub place: Option<String>,
    /// The last picture of the run.
    pub picture: Option<Image>,
    /// The element that the call in progress touches.
    pub target: Option<ShownElement>,
    /// The person who controls the run's browser.
    pub holder: Option<ScreenHolder>,
}

/// An element of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownElement {
    /// The element's place, in pixels of the view.
    pub bounds: Bounds,
    /// The width of the view.
    pub width: u32,
    /// The height of the view.
    pub height: u32,
}

/// Reads the present of a run from its last entries, up to the entry `end`.
pub fn present(reader: &LogReader, run: RunId, end: u64) -> Result<RunNow, gyrus_journal::Error> {
    let began_ms = reader.entry(1)?.map_or(0, |first| first.at_ms);
    let mut seen = PresentBuilder::default();
    let mut projection = Projection::new();
    for entry in reader.entries(end.saturating_sub(ENTRIES).saturating_add(1))? {
        let Ok(entry) = entry else { break };
        if entry.seq > end {
            break;
        }
        seen.remember(&entry);
        for happening in projection.take(&entry, reader) {
            seen.take(happening);
        }
    }
    Ok(seen.draw(began_ms, run, reader))
}

#[derive(Default)]
struct PresentBuilder {
    calls: BTreeMap<EffectId, Vec<Happening>>,
    thought: Option<Happening>,
    plan: Option<Happening>,
    received: Vec<Happening>,
    place: Option<String>,
    picture: Option<Image>,
    view: Option<Inline<String>>,
    touched: BTreeMap<EffectId, ElementId>,
    holder: Option<ScreenHolder>,
}

impl PresentBuilder {
    fn remember(&mut self, entry: &gyrus_journal::LogEntry) {
        match gyrus_kernel::parse(entry) {
            Ok(Entry::ScreenViewed(viewed)) => self.view = Some(viewed.view),
            Ok(Entry::ToolCalled(called)) => {
                let on = called.call.arguments["on"].as_str();
                if let Some(on) = on.and_then(|on| on.parse().ok()) {
                    self.touched.insert(called.effect, on);
                }
            }
            Ok(Entry::TakeoverStarted(started)) => {
                self.holder = Some(ScreenHolder {
                    by: started.by,
                    since_ms: entry.at_ms,
                });
            }
            Ok(Entry::TakeoverEnded(_) | Entry::RunResumed(_) | Entry::RunEnded(_)) => {
                self.holder = None;
            }
            _ => {}
        }
    }

    fn take(&mut self, happening: Happening) {
        match happening.subject {
            // A question has a card of its own, and a call that was started is in progress.
            HappeningSubject::Call | HappeningSubject::Verdict => {
                if let Some(effect) = &happening.effect {
                    let of_effect = self.calls.entry(effect.clone()).or_default();
                    of_effect.push(happening);
                }
            }
            HappeningSubject::Result { .. } => {
                if let Some(effect) = &happening.effect {
                    self.calls.remove(effect);
                }
            }
            // What is still open belongs to a step that does not go on.
            HappeningSubject::StepEnded
            | HappeningSubject::StepDropped
            | HappeningSubject::Resumed => self.calls.clear(),
            HappeningSubject::Thought if happening.headline == "the plan" => {
                self.plan = Some(happening)
            }
            HappeningSubject::Thought | HappeningSubject::Reflection => {
                self.thought = Some(happening)
            }
            HappeningSubject::Reply if has_words(&happening) => self.thought = Some(happening),
            HappeningSubject::Person => {
                self.received.push(happening);
                if self.received.len() > MESSAGES {
                    self.received.remove(0);
                }
            }
            HappeningSubject::View => {
                for part in &happening.parts {
                    if let HappeningPart::Picture(image) = part {
                        self.picture = Some(image.clone());
                    }
                }
                self.place = Some(happening.headline);
            }
            HappeningSubject::Goal
            | HappeningSubject::Parked { .. }
            | HappeningSubject::Ended
            | HappeningSubject::HandedOver
            | HappeningSubject::Warning
            | HappeningSubject::Request
            | HappeningSubject::Reply
            | HappeningSubject::ReplyFailed
            | HappeningSubject::Told
            | HappeningSubject::Note
            | HappeningSubject::Started
            | HappeningSubject::Question
            | HappeningSubject::Answer { .. }
            | HappeningSubject::Value
            | HappeningSubject::Wait
            | HappeningSubject::WaitEnded
            | HappeningSubject::Branches
            | HappeningSubject::Child
            | HappeningSubject::ChildEnded
            | HappeningSubject::Unreadable => {}
        }
    }

    fn target(&self, reader: &LogReader) -> Option<ShownElement> {
        let (effect, _) = self.calls.last_key_value()?;
        let on = self.touched.get(effect)?;
        let text = stored(self.view.as_ref()?, reader).ok()?;
        let view: View = serde_json::from_str(&text).ok()?;
        let element = view.elements.iter().find(|element| element.id == *on)?;
        Some(ShownElement {
            bounds: element.bounds?,
            width: view.width,
            height: view.height,
        })
    }

    fn draw(self, began_ms: i64, run: RunId, reader: &LogReader) -> RunNow {
        let context = StepContext {
            number: 0,
            run,
            start: TimeOrigin { at_ms: began_ms },
            children: &BTreeMap::new(),
        };
        let drawing = ItemDrawer {
            context: &context,
            reader,
            rest: "",
        };
        let mut pictures = PagePictures::served(run);
        let mut drawn = |effect: Option<EffectId>, happenings: Vec<Happening>| {
            drawing.item(&StepItem { effect, happenings }, &mut pictures)
        };
        let target = self.target(reader);
        let doing = self.calls.into_iter().next_back();
        RunNow {
            target,
            doing: doing.map(|(effect, happenings)| drawn(Some(effect), happenings)),
            thought: self.thought.map(|one| drawn(None, vec![one])),
            plan: self.plan.map(|one| drawn(None, vec![one])),
            received: self
                .received
                .into_iter()
                .map(|one| drawn(None, vec![one]))
                .collect(),
            place: self.place,
            picture: self.picture,
            holder: self.holder,
        }
    }
}

fn has_words(reply: &Happening) -> bool {
    let is_prose = |part: &HappeningPart| matches!(part, HappeningPart::Text(TextForm::Prose, text) if !text.trim().is_empty());
    reply.parts.iter().any(is_prose)
}
