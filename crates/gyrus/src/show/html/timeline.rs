//! A step on the page: one line when it is folded, everything when it is open.

use std::collections::BTreeMap;

use gyrus_contract::RunId;
use gyrus_text::counted;

use super::{
    item::item,
    markup::{Anchor, Element, Markup},
    moment::{Start, duration},
    step::{Call, Fate, Outcome, Raw, Step, What},
    words::Kind,
};

/// Characters of a step's one line.
const GIST: usize = 140;

/// Names of tools that a step's one line has.
const NAMED_TOOLS: usize = 2;

/// What the steps of a run have in common.
pub(super) struct Context<'a> {
    /// The run's number on the page.
    pub(super) number: u32,
    /// The run.
    pub(super) run: RunId,
    /// What times are told from.
    pub(super) start: Start,
    /// Runs whose steps stand on the page, by their number there.
    pub(super) children: &'a BTreeMap<RunId, u32>,
}

impl Context<'_> {
    /// Where the whole of a text is that was cut.
    fn rest(&self, step: u32) -> String {
        let name = self.run.short();
        format!("the whole text is in `gyrus trace {name}`, step {step}")
    }
}

/// A step, folded or open.
pub(super) fn step(step: &Step, context: &Context<'_>, is_open: bool) -> Markup {
    let rest = context.rest(step.number);
    let items: Markup = step
        .items
        .iter()
        .map(|one| item(one, context, &rest))
        .collect();
    let mut body = Element::new("div").class("items").with(items);
    if let Fate::GivenUp(why) = &step.fate {
        let label = Element::new("p")
            .class("aside")
            .text("this step was given up:");
        body = body.with(label).with(why.render(Kind::Prose, &rest));
    }
    let mut html = Element::new("details").class("step").id(Anchor::Step {
        run: context.number,
        step: step.number,
    });
    if step.fate != Fate::Done {
        html = html.class("unkept");
    }
    if is_open {
        html = html.set("open", "");
    }
    html.with(head(step, context))
        .with(body)
        .with(entries(&step.entries, context.start))
        .into()
}

fn head(step: &Step, context: &Context<'_>) -> Element {
    let charged = step.charged();
    let lasted = step
        .ended_ms
        .saturating_sub(step.began_ms)
        .max(0)
        .unsigned_abs();
    let mut figures = Element::new("span").class("figures");
    if charged.tokens > 0 {
        let tokens = counted(charged.tokens, "token");
        figures = figures.with(Element::new("span").text(&tokens));
    }
    if charged.cost.0 > 0 {
        figures = figures.with(Element::new("span").text(&charged.cost.to_string()));
    }
    figures = figures.with(Element::new("span").text(&duration(lasted)));
    Element::new("summary")
        .with(
            Element::new("span")
                .class("number")
                .text(&step.number.to_string()),
        )
        .with(tools(step))
        .with(Element::new("span").class("gist").text(&step.gist(GIST)))
        .with(flags(step))
        .with(figures)
        .with(
            Element::new("span")
                .class("when")
                .with(context.start.moment_and_hour(step.began_ms)),
        )
}

fn calls(step: &Step) -> impl Iterator<Item = &Call> {
    step.items.iter().filter_map(|item| match &item.what {
        What::Called(call) => Some(&**call),
        _ => None,
    })
}

/// The tools of a step, each named once.
fn tools(step: &Step) -> Element {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for call in calls(step) {
        match names.iter_mut().find(|(name, _)| *name == call.tool) {
            Some((_, times)) => *times += 1,
            None => names.push((&call.tool, 1)),
        }
    }
    let mut tools = Element::new("span").class("tools");
    for (name, times) in names.iter().take(NAMED_TOOLS) {
        let times = if *times > 1 {
            format!(" ×{times}")
        } else {
            String::new()
        };
        tools = tools.with(Element::new("span").class("tool").text(name).text(&times));
    }
    if names.len() > NAMED_TOOLS {
        let more = format!("+{}", names.len() - NAMED_TOOLS);
        tools = tools.with(Element::new("span").class("tool").text(&more));
    }
    tools
}

/// What went another way than usual in a step.
fn flags(step: &Step) -> Element {
    let has = |wanted: fn(&What) -> bool| step.items.iter().any(|item| wanted(&item.what));
    let failed = |outcome: &Outcome| outcome.is_error;
    let is_asked = calls(step).any(|call| !call.approvals.is_empty())
        || has(|what| matches!(what, What::Question(_)));
    let mut flags = Element::new("span").class("flags");
    for (is_so, class, word) in [
        (is_asked, "ask", "asked"),
        (
            has(|what| matches!(what, What::Steered(_))),
            "ask",
            "steered",
        ),
        (
            has(|what| matches!(what, What::Child(_))),
            "child",
            "child run",
        ),
        (
            has(|what| matches!(what, What::Asked(attempts) if attempts.len() > 1)),
            "bad",
            "retried",
        ),
        (
            calls(step).any(|call| call.outcome.as_ref().is_some_and(failed)),
            "bad",
            "error",
        ),
        (matches!(step.fate, Fate::GivenUp(_)), "bad", "given up"),
        (step.fate == Fate::Open, "bad", "unfinished"),
    ] {
        if is_so {
            flags = flags.with(Element::new("span").class("flag").class(class).text(word));
        }
    }
    flags
}

/// Entries as they stand in the journal, folded.
pub(super) fn entries(entries: &[Raw], start: Start) -> Markup {
    let label = match entries.len() {
        0 => return Markup::default(),
        count => format!("{} of the journal", counted(count, "entry")),
    };
    let rows: Markup = entries
        .iter()
        .map(|entry| {
            let rest = format!("the whole payload is in entry {} of the journal", entry.seq);
            let head = Element::new("p")
                .class("label")
                .with(
                    Element::new("span")
                        .class("effect")
                        .text(&entry.seq.to_string()),
                )
                .with(Element::new("span").class("name").text(&entry.kind))
                .with(start.moment(entry.at_ms));
            Element::new("div")
                .class("entry")
                .with(head)
                .with(entry.payload.render(Kind::Code, &rest))
                .into()
        })
        .collect();
    Element::new("details")
        .class("raw")
        .with(Element::new("summary").text(&label))
        .with(rows)
        .into()
}
