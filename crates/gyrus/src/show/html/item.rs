//! Everything on the page that happens in a step or between two.

use gyrus_contract::{EffectId, Purpose};
use gyrus_kernel::ConcurrencyForm;
use gyrus_text::{counted, grouped};

use super::{
    card,
    head::limits,
    markup::{Anchor, Element, Markup},
    moment::{Start, date_and_time, duration},
    step::{Answer, Attempt, Child, Item, Life, Reply, Wait, What},
    timeline::Context,
    words::Kind,
};

/// Something that happened, with its mark, its name and its time.
pub(super) fn item(item: &Item, context: &Context<'_>, rest: &str) -> Markup {
    let labelled = |class, mark, name: &str| Labelled {
        class,
        mark,
        name: Markup::text(name),
        more: Markup::default(),
        body: Markup::default(),
    };
    let shown = match &item.what {
        What::Thought {
            is_reflection,
            words,
        } => {
            let name = if *is_reflection {
                "reflection"
            } else {
                "thought"
            };
            labelled("thought", "•", name).body(words.render(Kind::Prose, rest))
        }
        What::Noted {
            kind,
            words,
            is_json,
        } => {
            let form = if *is_json { Kind::Code } else { Kind::Prose };
            labelled("note", "·", kind).body(words.render(form, rest))
        }
        What::Asked(attempts) => asked(attempts, rest),
        What::Told(words) => {
            labelled("note", "·", "gyrus tells the model").body(words.render(Kind::Prose, rest))
        }
        What::Looked { words, picture } => {
            let mut shown = labelled("note", "◉", "looked at the screen");
            shown = shown.body(words.render(Kind::Prose, rest));
            match picture {
                Some((seen, caption)) => shown.body(card::picture(seen, caption)),
                None => shown,
            }
        }
        What::Called(call) => {
            let mut shown = labelled("call", "→", &call.tool);
            if let Some(judged) = &call.gate {
                shown = shown.more(card::verdict(judged));
            }
            shown.body(card::call(call, context.start, rest))
        }
        What::Question(approvals) => labelled("ask", "?", "a person is asked")
            .body(card::approvals(approvals, context.start, rest)),
        What::Steered(messages) => {
            let mut shown = labelled("ask", "»", "the person adds");
            for (who, words) in messages {
                shown = shown
                    .more(card::principal(who))
                    .body(words.render(Kind::Prose, rest));
            }
            shown
        }
        What::Waited(wait) => waited(wait, rest),
        What::Branches {
            form,
            branches,
            won,
        } => labelled("note", "·", &parallel(*form, *branches, *won)),
        What::Child(child) => delegated(child, context, rest),
        What::Life(life) => happened(life, rest),
        What::Unreadable(why) => labelled("bad", "!", why),
    };
    shown.render(item.at_ms, item.effect.as_ref(), context.start)
}

/// An item in the making: a mark and a name, and what belongs to it.
struct Labelled {
    class: &'static str,
    mark: &'static str,
    name: Markup,
    more: Markup,
    body: Markup,
}

impl Labelled {
    fn more(mut self, more: impl Into<Markup>) -> Self {
        self.more.push(more);
        self
    }

    fn body(mut self, body: impl Into<Markup>) -> Self {
        self.body.push(body);
        self
    }

    fn render(self, at_ms: i64, effect: Option<&EffectId>, start: Start) -> Markup {
        let mut label = Element::new("p")
            .class("label")
            .with(Element::new("span").class("mark").text(self.mark))
            .with(Element::new("span").class("name").with(self.name))
            .with(self.more);
        let mut html = Element::new("div").class("item").class(self.class);
        if let Some(effect) = effect {
            // Deeper than cycle and effect: inside of a branch.
            if effect.path().len() > 2 {
                html = html.class("branch");
            }
            let number = Element::new("span")
                .class("effect")
                .hint("the number of this effect")
                .text(&effect.to_string());
            label = label.with(number);
        }
        html.with(label.with(start.moment(at_ms)))
            .with(self.body)
            .into()
    }
}

fn asked(attempts: &[Attempt], rest: &str) -> Labelled {
    let mut shown = Labelled {
        class: "model",
        mark: "◦",
        name: Markup::text("model"),
        more: Markup::default(),
        body: Markup::default(),
    };
    for attempt in attempts {
        shown = shown.body(one_attempt(attempt, rest));
    }
    shown
}

fn one_attempt(attempt: &Attempt, rest: &str) -> Markup {
    let mut line = Element::new("p").class("attempt");
    if attempt.number > 1 {
        line = line.with(span(&format!("attempt {}", attempt.number)));
    }
    line = line.with(Element::new("span").class("who").text(&attempt.model));
    let purpose = match attempt.purpose {
        Purpose::Agent => "",
        Purpose::Plan => "to plan",
        Purpose::Reflect => "to look back",
        Purpose::Verify => "to verify",
        Purpose::Safety => "to judge a call",
        Purpose::Summarise => "to summarise",
    };
    if !purpose.is_empty() {
        line = line.with(span(purpose));
    }
    if !attempt.why.is_empty() {
        line = line.with(span(&format!("because {}", attempt.why)));
    }
    let Some(reply) = &attempt.came else {
        let reserved = format!("{} set aside", counted(attempt.reserved.tokens, "token"));
        return line
            .with(span(&reserved))
            .with(span("no answer yet"))
            .into();
    };
    if let Answer::Words { model, .. } = &reply.answer
        && !attempt.model.ends_with(model.as_str())
    {
        line = line.with(span(&format!("answered by {model}")));
    }
    line = charged(line, reply);
    if attempt.messages > 0 {
        line = line.with(span(&format!(
            "{} of memory",
            counted(attempt.messages, "message")
        )));
    }
    let mut html = Markup::from(line);
    let error = |text: &str| Element::new("p").class("error").text("! ").text(text);
    match &reply.answer {
        Answer::Words { words, cut, .. } => {
            if *cut {
                html.push(error("the reply was cut at the output limit"));
            }
            if words.is_object() {
                let summary = Element::new("summary").text("the reply, as the loop reads it");
                let fold = Element::new("details").class("more").with(summary);
                html.push(fold.with(words.render(Kind::Code, rest)));
            } else if !words.is_blank() {
                html.push(words.render(Kind::Prose, rest));
            }
        }
        Answer::Error(why) => html.push(error(why)),
        Answer::CutOff => html.push(error("cut off; it may have been answered and charged")),
        Answer::Gone(why) => html.push(error(&format!("the reply cannot be shown: {why}"))),
    }
    html
}

/// What a reply took and cost, at the end of its line.
fn charged(mut line: Element, reply: &Reply) -> Element {
    match &reply.answer {
        Answer::Words {
            usage: Some(usage), ..
        } => {
            let (sent, written) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
            let mut tokens = format!("{sent} in, {written} out");
            if usage.cached_tokens > 0 {
                tokens.push_str(&format!(", {} cached", grouped(usage.cached_tokens)));
            }
            line = line.with(span(&tokens));
        }
        _ if reply.charged.tokens > 0 => {
            line = line.with(span(&counted(reply.charged.tokens, "token")));
        }
        _ => {}
    }
    if reply.charged.cost.0 > 0 {
        line = line.with(span(&reply.charged.cost.to_string()));
    }
    if reply.estimated {
        line = line.with(span("estimated"));
    }
    line.with(span(&duration(reply.took_ms)))
}

fn span(text: &str) -> Element {
    Element::new("span").text(text)
}

fn waited(wait: &Wait, rest: &str) -> Labelled {
    let mut words = "waits".to_owned();
    if let Some(signal) = &wait.signal {
        words.push_str(&format!(" for the signal `{signal}`"));
    }
    if let Some(until_ms) = wait.until_ms {
        words.push_str(&format!(" until {}", date_and_time(until_ms)));
    }
    let body = match &wait.ended {
        None => Markup::default(),
        Some(None) => Element::new("p")
            .class("aside")
            .text("the time is over")
            .into(),
        Some(Some(payload)) => payload.render(Kind::Output, rest),
    };
    Labelled {
        class: "note",
        mark: "…",
        name: Markup::text(&words),
        more: Markup::default(),
        body,
    }
}

fn parallel(form: ConcurrencyForm, branches: u32, won: Option<Option<u32>>) -> String {
    let form = match form {
        ConcurrencyForm::All => "side by side",
        ConcurrencyForm::Race => "in a race",
        ConcurrencyForm::Timeout => "against a deadline",
    };
    let won = match won {
        None => String::new(),
        Some(None) => "; the deadline won".to_owned(),
        Some(Some(branch)) => format!("; branch {branch} won"),
    };
    format!("{} {form}{won}", counted(branches, "branch"))
}

fn delegated(child: &Child, context: &Context<'_>, rest: &str) -> Labelled {
    let name = child.run.short();
    let place = context
        .children
        .get(&child.run)
        .map(|number| Anchor::Run(*number));
    let more = match place {
        Some(anchor) => Element::new("a").link(anchor).text("its steps").into(),
        None => Markup::default(),
    };
    let mut body = child.goal.render(Kind::Prose, rest);
    let limits = limits(&child.limits);
    if !limits.is_empty() {
        let words = format!("at most {limits}");
        body.push(Element::new("p").class("aside").text(&words));
    }
    let outcome = match &child.ended {
        None => "it has not ended yet".to_owned(),
        Some((ending, spent)) => format!(
            "{} · {}, {}, {}",
            ending,
            counted(spent.steps, "step"),
            counted(spent.tokens, "token"),
            spent.cost
        ),
    };
    body.push(Element::new("p").class("outcome").text("⇐ ").text(&outcome));
    Labelled {
        class: "child",
        mark: "⇒",
        name: Markup::text(&format!("child run {name}")),
        more,
        body,
    }
}

fn happened(life: &Life, rest: &str) -> Labelled {
    let (class, mark, words, body) = match life {
        Life::Resumed {
            pid,
            set_aside_bytes,
        } => {
            let torn = set_aside_bytes.map_or_else(String::new, |bytes| {
                format!(
                    "; {} unfinished bytes of the journal were set aside",
                    grouped(bytes)
                )
            });
            (
                "life",
                "■",
                format!("taken up by process {pid}{torn}"),
                None,
            )
        }
        Life::HandedOver { reason, done } => {
            let words = format!(
                "a fresh step takes over; {} before it",
                counted(*done, "effect")
            );
            ("life", "■", words, Some(reason))
        }
        Life::Parked(ending) => ("life", "■", format!("parked: {ending}"), None),
        Life::Ended(ending) => ("life", "■", ending.clone(), None),
        Life::Warned(what) => ("bad", "!", format!("a limit is near: {what}"), None),
        Life::TakenOver(by) => ("life", "»", format!("{by} has the browser"), None),
        Life::GivenBack { by, took_ms, words } => {
            let took = gyrus_text::span(*took_ms);
            let said = format!("{by} gave the browser back after {took}");
            ("life", "»", said, words.as_ref())
        }
    };
    Labelled {
        class,
        mark,
        name: Markup::text(&words),
        more: Markup::default(),
        body: body.map_or_else(Markup::default, |words| words.render(Kind::Prose, rest)),
    }
}
