//! A run as one page: a single file that needs nothing else and asks nobody for anything.
//!
//! The journal is read twice, first for the head of the page (`survey`), then step by step
//! (`fold`), each step being written before the next one is read. Everything in a run is
//! untrusted, the person's own goal included: it becomes part of the page only through `markup`,
//! which escapes it, and the page's policy lets no script run but ours, and nothing be loaded.
//!
//! Reading order: `step` (what the page knows of a step), `fold`, `timeline`, `item`, `card`.

mod markup;
mod words;
mod ansi;
mod picture;
mod moment;
mod step;
mod content;
mod fold;
mod clock;
mod survey;
mod plot;
mod head;
mod card;
mod item;
mod timeline;
mod evaluation;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io::Write};

pub(crate) use self::evaluation::write as evaluation;

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::RunId;
use gyrus_journal::{Error, Store};
use gyrus_kernel::{log_name, summary};
use gyrus_text::counted;
use sha2::{Digest, Sha256};

use self::{
    fold::{Fold, Piece},
    markup::{Anchor, Element, Markup},
    moment::Start,
    picture::Pictures,
    step::{Step, What},
    survey::{Standing, Survey},
    timeline::Context,
    words::brief,
};
use crate::failure::Failure;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// How every page begins; a file that begins so may be replaced by a newer page.
pub(crate) const OPENING: &str = "<!doctype html>\n<!-- a run of gyrus -->\n";

/// A run of at most so many steps is shown with all of them open.
const OPEN_ALL: usize = 12;

/// Steps that are open at the end of a longer run.
const OPEN_LAST: usize = 4;

/// Characters of a goal in the title of the window and in the line of a child run.
const GIST: usize = 80;

/// Child runs within child runs; deeper ones are only named.
const DEPTH: usize = 8;

/// Writes the page of a run, with its child runs.
///
/// A journal that is damaged further on is shown up to there, and the damage is returned.
///
/// # Errors
/// When the run's journal cannot be opened, or `out` not be written.
pub(crate) fn write(
    store: &Store,
    run: RunId,
    out: &mut dyn Write,
) -> Result<Option<Error>, Failure> {
    let reader = store.reader(&log_name(run))?;
    let survey = Survey::read(store, run, &reader)?;
    let mut page = Page {
        store,
        out,
        start: Start {
            at_ms: survey.began_ms,
        },
        pictures: Pictures::default(),
        numbers: BTreeMap::from([(run, 0)]),
    };
    page.begin(&survey)?;
    page.timeline(&survey, 0)?;
    page.end()?;
    Ok(survey.damage)
}

/// A page that is being written.
struct Page<'a> {
    store: &'a Store,
    out: &'a mut dyn Write,
    start: Start,
    pictures: Pictures,
    /// The runs on the page, in order.
    numbers: BTreeMap<RunId, u32>,
}

impl Page<'_> {
    fn put(&mut self, html: impl Into<Markup>) -> Result<(), Failure> {
        Ok(self.out.write_all(html.into().as_str().as_bytes())?)
    }

    /// Everything before the steps.
    fn begin(&mut self, survey: &Survey) -> Result<(), Failure> {
        let forks = survey::forks(self.store, survey.run)?;
        let name = survey.run.short();
        self.put(Markup::ours(OPENING))?;
        self.put(Element::new("html").set("lang", "en").begin())?;
        let title = format!("{} · run {name}", survey.goal.gist(GIST));
        self.put(document_head(&title, &[STYLE]))?;
        self.put(Element::new("body").begin())?;
        let brand = Element::new("p")
            .class("brand")
            .with(Element::new("b").text("gyrus"))
            .with(Element::new("span").text(&format!("run {name}")));
        let header = Element::new("header").with(brand).with(head::head(survey));
        self.put(header.id(Anchor::Run(0)))?;
        self.put(Element::new("aside").with(head::side(survey, &forks)))?;
        self.put(Element::new("main").begin())?;
        self.put(toolbar(survey.steps.len()))
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.put(Element::end("main"))?;
        let said = "Everything on this page is from the run's journal, as it was when the page \
                    was written. What models, tools and files say is shown as text; nothing of it \
                    was checked.";
        self.put(Element::new("footer").text(said))?;
        self.put(Element::new("script").with(Markup::ours(SCRIPT)))?;
        self.put(Element::end("body"))?;
        self.put(Element::end("html"))?;
        self.put(Markup::ours("\n"))
    }

    /// The steps of a run, each written before the next one is read.
    fn timeline(&mut self, survey: &Survey, depth: usize) -> Result<(), Failure> {
        let reader = self.store.reader(&log_name(survey.run))?;
        let mut fold = Fold::new(&reader);
        for entry in reader.entries(1)? {
            // Damage was met in the first reading, and is told in the head.
            let Ok(entry) = entry else { break };
            if entry.seq > survey.last_seq {
                break;
            }
            for piece in fold.take(&entry, &mut self.pictures) {
                self.piece(&piece, survey, depth)?;
            }
        }
        if let Some(piece) = fold.finish() {
            self.piece(&piece, survey, depth)?;
        }
        let rest = timeline::entries(&fold.rest(), self.start);
        self.put(rest)
    }

    fn piece(&mut self, piece: &Piece, survey: &Survey, depth: usize) -> Result<(), Failure> {
        let new = match piece {
            Piece::Step(step) if depth < DEPTH => self.new_children(step),
            Piece::Step(_) | Piece::Between(_) => Vec::new(),
        };
        let context = Context {
            number: self.numbers.get(&survey.run).copied().unwrap_or(0),
            run: survey.run,
            start: self.start,
            children: &self.numbers,
        };
        let html = match piece {
            Piece::Step(step) => timeline::step(step, &context, is_open(survey, step.number)),
            Piece::Between(item) => item::item(item, &context, ""),
        };
        self.put(html)?;
        for child in new {
            self.child(child, depth + 1)?;
        }
        Ok(())
    }

    /// The child runs of a step that are kept and not on the page yet. They get their numbers.
    fn new_children(&mut self, step: &Step) -> Vec<RunId> {
        let mut new = Vec::new();
        for item in &step.items {
            if let What::Child(child) = &item.what
                && self.store.exists(&log_name(child.run))
                && !self.numbers.contains_key(&child.run)
            {
                let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
                self.numbers.insert(child.run, number);
                new.push(child.run);
            }
        }
        new
    }

    /// A child run below the step that started it, folded.
    fn child(&mut self, run: RunId, depth: usize) -> Result<(), Failure> {
        let name = run.short();
        let number = self.numbers.get(&run).copied().unwrap_or(0);
        let section = Element::new("details").class("run").id(Anchor::Run(number));
        let read = self
            .store
            .reader(&log_name(run))
            .and_then(|reader| Survey::read(self.store, run, &reader));
        let survey = match read {
            Ok(survey) => survey,
            Err(error) => {
                let words = format!("run {name} cannot be read: {error}");
                return self.put(section.with(Element::new("summary").text(&words)));
            }
        };
        let (steps, tokens) = (
            counted(survey.steps.len(), "step"),
            counted(survey.tokens(), "token"),
        );
        let figures = format!("{steps} · {tokens} · {}", survey.cost());
        let summary = Element::new("summary")
            .with(Element::new("span").class("mark").text("⇒"))
            .with(
                Element::new("span")
                    .class("name")
                    .text(&format!("run {name}")),
            )
            .with(
                Element::new("span")
                    .class("gist")
                    .text(&survey.goal.gist(GIST)),
            )
            .with(
                Element::new("span")
                    .class("stands")
                    .text(&stands(&survey.standing)),
            )
            .with(Element::new("span").class("figures").text(&figures));
        self.put(section.with(summary).begin())?;
        if let Some(damage) = &survey.damage {
            let words = format!("its journal cannot be read to its end: {damage}");
            self.put(Element::new("p").class("damage").text(&words))?;
        }
        self.timeline(&survey, depth)?;
        self.put(Element::end("details"))
    }
}

fn document_head(title: &str, styles: &[&'static str]) -> Element {
    let meta = |name, content| {
        Element::new("meta")
            .set("name", name)
            .set("content", content)
    };
    let policy = Element::new("meta").policy(&digest(SCRIPT), &digest(&styles.concat()));
    let css: Markup = styles.iter().map(|style| Markup::ours(style)).collect();
    Element::new("head")
        .with(Element::new("meta").set("charset", "utf-8"))
        .with(policy)
        .with(meta("viewport", "width=device-width, initial-scale=1"))
        .with(meta("color-scheme", "light dark"))
        .with(meta("referrer", "no-referrer"))
        // Without this a browser asks the server that it got the page from for an icon.
        .with(
            Element::new("link")
                .set("rel", "icon")
                .set("href", "data:,"),
        )
        .with(Element::new("title").text(title))
        .with(Element::new("style").with(css))
}

/// The hash that lets a browser run what the page says inline, as its policy writes it.
fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// What the script works with; without it there is nothing to see here.
fn toolbar(steps: usize) -> Element {
    let key = |key: &str, what: &str| {
        let mut html = Markup::from(Element::new("kbd").text(key));
        html.push(Element::new("span").text(what));
        html
    };
    let filter = Element::new("input")
        .set("type", "search")
        .set("placeholder", "filter steps")
        .set("aria-label", "show only steps with these words");
    let keys = [
        key("j k", "next, previous"),
        key("/", "filter"),
        key("e", "all open or folded"),
    ];
    Element::new("nav")
        .set("hidden", "")
        .with(filter)
        .with(Element::new("output").text(&counted(steps, "step")))
        .with(
            Element::new("p")
                .class("keys")
                .with(keys.into_iter().collect::<Markup>()),
        )
}

fn is_open(survey: &Survey, step: u32) -> bool {
    let from = survey.steps.len().saturating_sub(OPEN_LAST);
    survey.steps.len() <= OPEN_ALL
        || survey.steps[from..]
            .first()
            .is_some_and(|first| step >= first.step)
}

fn stands(standing: &Standing) -> String {
    match standing {
        Standing::Over(ending) | Standing::Parked(ending) => brief(&summary(ending)),
        Standing::Running => "running".to_owned(),
        Standing::CutOff => "cut off".to_owned(),
    }
}
