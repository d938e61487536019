//! An input beside what the page's own events say of it (`recorder.js`), and looks after it.

use std::{collections::BTreeMap, fmt::Write as _};

use gyrus_contract::{ActionVerdict, Element, ElementId, ElementState, ToolOutput, View};
use serde::Deserialize;
use serde_json::Value;

use crate::{hands::Hands, tasks::Done};

/// Time without changes after which an input is over, and the most that is waited for that.
const REST_MS: (u32, u32) = (800, 5_000);

/// Time between two looks, as a model takes at least for its answer.
const MODEL_MS: u32 = 1_000;

/// The kind of an input, and the way in which its target was found.
pub(crate) struct Input<'a> {
    pub(crate) what: String,
    pub(crate) tool: &'a str,
    pub(crate) by_id: bool,
    /// Whether what it starts goes on for longer than an input is waited for.
    pub(crate) starts_job: bool,
}

/// Inputs of an application.
#[derive(Default)]
pub(crate) struct Count {
    inputs: usize,
    by_point: usize,
    verdicts: BTreeMap<&'static str, usize>,
    wrong: usize,
    /// Inputs at or to a dialog of the browser, of which the page tells nothing.
    unknown: usize,
    /// A later look shows more than the first one.
    late: usize,
    /// A later look shows more than the second one too.
    too_early: usize,
}

/// A report of the recorder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    id: f64,
    events: BTreeMap<String, u32>,
    /// Changes of elements that had been quiet.
    quiet: u32,
    noise: u32,
    /// Changes before the input began, as of pointing.
    before: u32,
    differs: Vec<String>,
    selected: bool,
    scrolled: bool,
    sent: Vec<String>,
    first: Vec<String>,
}

/// The recorder's judgement of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Changed,
    /// Only a request was sent.
    Sent,
    /// Only the caret, or what is selected.
    Selected,
    /// Only what changes by itself.
    Noise,
    Nothing,
    /// The page does not answer, as while a dialog is open.
    Unknown,
}

impl Told {
    fn truth(&self) -> Truth {
        if self.quiet > 0 || !self.differs.is_empty() || self.scrolled {
            Truth::Changed
        } else if self.selected {
            Truth::Selected
        } else if !self.sent.is_empty() {
            Truth::Sent
        } else if self.noise > 0 {
            Truth::Noise
        } else {
            Truth::Nothing
        }
    }

    fn was_pressed(&self) -> bool {
        let pressed = ["mousedown", "keydown", "beforeinput", "drop", "click"];
        pressed.iter().any(|one| self.events.contains_key(*one))
    }
}

/// Whether a verdict contradicts the page's events.
fn is_wrong(verdict: ActionVerdict, truth: Truth, told: &Told) -> bool {
    match verdict {
        ActionVerdict::Changed => matches!(truth, Truth::Sent | Truth::Noise | Truth::Nothing),
        ActionVerdict::NoEffect => matches!(truth, Truth::Changed | Truth::Sent),
        ActionVerdict::Refused => told.was_pressed(),
        ActionVerdict::CannotTell => false,
    }
}

impl Count {
    /// Does an input and compares what it is said to have done with what the page recorded, and
    /// the looks after it with later ones.
    pub(crate) async fn input(
        &mut self,
        hands: &Hands,
        input: Input<'_>,
        arguments: Value,
    ) -> anyhow::Result<ToolOutput> {
        let reads = ["find", "extract", "wait", "take_screenshot"].contains(&input.tool);
        if reads {
            return hands.act(input.tool, arguments).await;
        }
        let before = hands.look().await?;
        let held = before.dialog.is_some();
        let marked = if held {
            Value::Null
        } else {
            // A page that has just been loaded still changes by itself.
            let rested = "recorder.marked ? true : recorder.rest(1200, 6000)";
            let _ = hands.evaluate(rested).await;
            hands.evaluate("recorder.mark()").await.unwrap_or_default()
        };
        let output = hands.act(input.tool, arguments).await?;
        let first = hands.look().await?;
        pause(hands, MODEL_MS).await;
        let second = hands.look().await?;
        let held = held || first.dialog.is_some();
        let told = if held {
            Told::default()
        } else {
            told(hands).await
        };
        let truth = match (held, marked.as_f64()) {
            (true, _) | (_, None) => Truth::Unknown,
            _ if told.id.to_bits() == 0 => Truth::Unknown,
            _ if first.tabs.len() != before.tabs.len() => Truth::Changed,
            (false, Some(marked)) if marked.to_bits() != told.id.to_bits() => Truth::Changed,
            _ => told.truth(),
        };
        self.unknown += usize::from(truth == Truth::Unknown);
        let began = output.text.contains("a download began");
        if is_wrong(output.verdict, truth, &told) && !began {
            self.wrong += 1;
            eprintln!("wrong verdict:");
        }
        eprintln!("{}\n  {}\n  {truth:?} {told:?}", input.what, output.text);
        self.later(hands, &input, [&first, &second]).await?;
        self.inputs += 1;
        self.by_point += usize::from(!input.by_id);
        *self.verdicts.entry(word(output.verdict)).or_default() += 1;
        Ok(output)
    }

    /// Compares the looks after an input with later ones.
    async fn later(
        &mut self,
        hands: &Hands,
        input: &Input<'_>,
        looks: [&View; 2],
    ) -> anyhow::Result<()> {
        let third = hands.look().await?;
        if input.starts_job || looks.iter().all(|look| news(look, &third).is_empty()) {
            return Ok(());
        }
        // What changes once more, as a clock, is not what the input caused.
        pause(hands, MODEL_MS).await;
        let goes_on = news(&third, &hands.look().await?);
        let [first, second] = looks.map(|look| {
            let mut news = news(look, &third);
            news.retain(|id, _| !goes_on.contains_key(id));
            news
        });
        if !first.is_empty() {
            eprintln!(
                "late: {}\n  after one look {first:?}\n  after two {second:?}",
                input.what
            );
            self.late += 1;
            self.too_early += usize::from(!second.is_empty());
        }
        Ok(())
    }
}

/// The recorder's report once the page rests.
async fn told(hands: &Hands) -> Told {
    let (quiet, limit) = REST_MS;
    // A document that went away takes its recorder with it.
    let _ = hands
        .evaluate(&format!("recorder.rest({quiet}, {limit})"))
        .await;
    let told = hands.evaluate("recorder.told()").await;
    serde_json::from_value(told.unwrap_or_default()).unwrap_or_default()
}

async fn pause(hands: &Hands, milliseconds: u32) {
    let pause = format!("new Promise((done) => setTimeout(done, {milliseconds}))");
    // A page that a dialog holds up does not answer, and does not change.
    let _ = hands.evaluate(&pause).await;
}

fn word(verdict: ActionVerdict) -> &'static str {
    match verdict {
        ActionVerdict::Changed => "changed",
        ActionVerdict::NoEffect => "no effect",
        ActionVerdict::CannotTell => "cannot tell",
        ActionVerdict::Refused => "refused",
    }
}

/// Returns what a later view shows and an earlier one did not, by the ids of the elements.
fn news(earlier: &View, later: &View) -> BTreeMap<ElementId, String> {
    let said = |one: &Element| {
        let mut states = one.states.clone();
        states.retain(|one| {
            use ElementState::{Covered, Focused, OutOfView};
            !matches!(one, Covered | OutOfView | Focused)
        });
        format!("{} {:?} {:?} {states:?}", one.role, one.name, one.value)
    };
    let mut was: BTreeMap<String, usize> = BTreeMap::new();
    for one in &earlier.elements {
        *was.entry(said(one)).or_default() += 1;
    }
    let mut news = BTreeMap::new();
    for one in &later.elements {
        let line = said(one);
        match was.get_mut(&line) {
            Some(left) if *left > 0 => *left -= 1,
            _ => drop(news.insert(one.id, line)),
        }
    }
    news
}

/// Returns the table of what was done.
pub(crate) fn table(all: &[Done]) -> String {
    let mut text = "| application | tasks | inputs | by point | changed | no effect | cannot tell | refused | wrong | not recorded | late by a look | later |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n".to_owned();
    for Done {
        name,
        version,
        tasks,
        done,
        count,
    } in all
    {
        let of = |word| count.verdicts.get(word).copied().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {name} {version} | {done} of {tasks} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            count.inputs,
            count.by_point,
            of("changed"),
            of("no effect"),
            of("cannot tell"),
            of("refused"),
            count.wrong,
            count.unknown,
            count.late,
            count.too_early
        );
    }
    text
}
