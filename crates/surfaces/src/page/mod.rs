//! A run as one page: a single file that needs nothing else and asks nobody for anything.
//!
//! The journal is read twice, first for the head of the page (`survey`), then step by step
//! (`step`), each step being written before the next one is read. Everything in a run is untrusted,
//! the person's own goal included: the templates escape it, what is written makes every unseen
//! character visible (`markup`), and the page's policy lets no script run but ours, and nothing be
//! loaded.
//!
//! Reading order: `step` (what the page knows of a step), `timeline`, `item`.

mod markup;
mod excerpt;
mod ansi;
mod picture;
mod moment;
mod time_shares;
mod survey;
mod plot;
mod head;
mod step;
mod item;
mod timeline;
mod rows;
mod present;
mod film;
mod one_step;
mod prompt;
mod whole_run;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io::Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::RunId;
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{log_name, summary};
use gyrus_text::counted;
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

pub(crate) use self::step::first_argument;
use self::{
    excerpt::brief,
    item::{ItemDrawer, StepContext},
    markup::{PageAnchor, shown},
    moment::TimeOrigin,
    step::{PageStep, Section, Steps},
    survey::{Survey, SurveyState},
};
pub use self::{
    markup::step_address,
    moment::{date_and_time, duration},
    one_step::{OneStep, one_step},
    picture::PagePictures,
    plot::{Bar, plot},
    present::{RunNow, ScreenHolder, ShownElement, present},
    prompt::{AskedModel, asked_model, prompt},
    rows::{RunRows, Stretch, Zoom, rows, visible_html, whole_patch, whole_text},
    whole_run::WholeRun,
};
pub use crate::console::card::whose;
use crate::{error::SurfaceError, projection::HappeningPart};
pub use picture::picture_media_type;

/// The style of a run's page.
pub const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The beginning of every page; a file that begins so may be replaced by a newer page.
pub const OPENING: &str = "<!doctype html>\n<!-- a run of gyrus -->\n";

/// Maximum number of steps of a run that is shown with all of them open.
const OPEN_ALL: usize = 12;

/// Number of open steps at the end of a longer run.
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
/// Returns an error when the run's journal cannot be opened, or `out` not be written.
pub fn write(
    store: &Store,
    run: RunId,
    out: &mut dyn Write,
) -> Result<Option<gyrus_journal::Error>, SurfaceError> {
    let reader = store.reader(&log_name(run))?;
    let survey = Survey::read(store, run, &reader)?;
    let mut page = HtmlPage {
        store,
        out,
        start: TimeOrigin {
            at_ms: survey.began_ms,
        },
        pictures: PagePictures::default(),
        numbers: BTreeMap::from([(run, 0)]),
    };
    page.begin(&survey)?;
    page.timeline(&survey, &reader, 0)?;
    page.end()?;
    Ok(survey.damage)
}

/// Returns a small page as a whole, with a style of its own beside the common one.
pub fn whole(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        html lang="en" {
            (document_head(title, &format!("{STYLE}{style}")))
            body { (body) }
        }
    };
    format!("{OPENING}{}", shown(&page.0))
}

/// Returns the beginning of a text on one line.
pub fn first_words(text: &str, characters: usize) -> String {
    excerpt::Excerpt::of(text).gist(characters)
}

struct HtmlPage<'a> {
    store: &'a Store,
    out: &'a mut dyn Write,
    start: TimeOrigin,
    pictures: PagePictures,
    /// The runs on the page, in order.
    numbers: BTreeMap<RunId, u32>,
}

impl HtmlPage<'_> {
    fn put(&mut self, html: &Markup) -> Result<(), SurfaceError> {
        self.tag(&html.0)
    }

    /// Writes HTML that may be the beginning or the end of an element.
    fn tag(&mut self, html: &str) -> Result<(), SurfaceError> {
        Ok(self.out.write_all(shown(html).as_bytes())?)
    }

    /// Writes everything before the steps.
    fn begin(&mut self, survey: &Survey) -> Result<(), SurfaceError> {
        let forks = survey::forks(self.store, survey.run)?;
        let name = survey.run.short();
        let title = format!("{} · run {name}", survey.goal.gist(GIST));
        self.tag(OPENING)?;
        self.tag("<html lang=\"en\">")?;
        self.put(&document_head(&title, STYLE))?;
        self.tag("<body>")?;
        self.put(&html! {
            header id=(PageAnchor::Run(0)) {
                p.brand { b { "gyrus" } span { "run " (name) } }
                (head::head(survey))
            }
            aside { (head::side(survey, &forks)) }
        })?;
        self.tag("<main>")?;
        self.put(&toolbar(survey.steps.len()))
    }

    fn end(&mut self) -> Result<(), SurfaceError> {
        self.tag("</main>")?;
        self.put(&html! {
            footer {
                "Everything on this page is from the run's journal, as it was when the page was \
                 written. What models, tools and files say is shown as text; nothing of it was \
                 checked."
            }
            script { (PreEscaped(SCRIPT)) }
        })?;
        self.tag("</body></html>\n")
    }

    /// Writes the steps of a run, each before the next one is read.
    fn timeline(
        &mut self,
        survey: &Survey,
        reader: &LogReader,
        depth: usize,
    ) -> Result<(), SurfaceError> {
        let mut steps = Steps::new(reader);
        for entry in reader.entries(1)? {
            // Damage was met in the first reading, and is told in the head.
            let Ok(entry) = entry else { break };
            if entry.seq > survey.last_seq {
                break;
            }
            for section in steps.take(&entry) {
                self.section(&section, survey, reader, depth)?;
            }
        }
        if let Some(section) = steps.finish() {
            self.section(&section, survey, reader, depth)?;
        }
        let rest = timeline::entries(&steps.rest(), self.start);
        self.put(&rest)
    }

    fn section(
        &mut self,
        section: &Section,
        survey: &Survey,
        reader: &LogReader,
        depth: usize,
    ) -> Result<(), SurfaceError> {
        let new = match section {
            Section::Step(step) if depth < DEPTH => self.new_children(step),
            Section::Step(_) | Section::Between(_) => Vec::new(),
        };
        let context = StepContext {
            number: self.numbers.get(&survey.run).copied().unwrap_or(0),
            run: survey.run,
            start: self.start,
            children: &self.numbers,
        };
        let html = match section {
            Section::Step(step) => {
                let is_open = is_open(survey, step.number);
                timeline::step(step, &context, reader, &mut self.pictures, is_open)
            }
            Section::Between(item) => {
                let drawing = ItemDrawer {
                    context: &context,
                    reader,
                    rest: "",
                };
                drawing.item(item, &mut self.pictures)
            }
        };
        self.put(&html)?;
        for child in new {
            self.child(child, depth + 1)?;
        }
        Ok(())
    }

    /// Numbers the stored child runs of a step that are not on the page yet.
    fn new_children(&mut self, step: &PageStep) -> Vec<RunId> {
        let mut new = Vec::new();
        for part in step.happenings().flat_map(|one| &one.parts) {
            if let HappeningPart::Run(run) = part
                && self.store.exists(&log_name(*run))
                && !self.numbers.contains_key(run)
            {
                let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
                self.numbers.insert(*run, number);
                new.push(*run);
            }
        }
        new
    }

    /// Writes a child run below the step that started it, folded.
    fn child(&mut self, run: RunId, depth: usize) -> Result<(), SurfaceError> {
        let name = run.short();
        let number = self.numbers.get(&run).copied().unwrap_or(0);
        let id = PageAnchor::Run(number);
        self.tag(&format!("<details class=\"run\" id=\"{id}\">"))?;
        let read = self.store.reader(&log_name(run)).and_then(|reader| {
            let survey = Survey::read(self.store, run, &reader)?;
            Ok((reader, survey))
        });
        match read {
            Err(error) => {
                self.put(&html! { summary { "run " (name) " cannot be read: " (error) } })?;
            }
            Ok((reader, survey)) => {
                let (steps, tokens) = (
                    counted(survey.steps.len(), "step"),
                    counted(survey.tokens(), "token"),
                );
                self.put(&html! {
                    summary {
                        span.mark { "⇒" }
                        span.name { "run " (name) }
                        span.gist { (survey.goal.gist(GIST)) }
                        span.stands { (stands(&survey.standing)) }
                        span.figures { (steps) " · " (tokens) (survey.cost().after(" · ")) }
                    }
                    @if let Some(damage) = &survey.damage {
                        p.damage { "its journal cannot be read to its end: " (damage) }
                    }
                })?;
                self.timeline(&survey, &reader, depth)?;
            }
        }
        self.tag("</details>")
    }
}

fn document_head(title: &str, style: &str) -> Markup {
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        digest(SCRIPT),
        digest(style)
    );
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="referrer" content="no-referrer";
            // Without this a browser asks the server that it got the page from for an icon.
            link rel="icon" href="data:,";
            title { (title) }
            style { (PreEscaped(style)) }
        }
    }
}

/// Returns the hash of an inline script or style for the page's content security policy.
fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// Draws the bar for the script; without the script it stays hidden.
fn toolbar(steps: usize) -> Markup {
    let keys = [
        ("j k", "next, previous"),
        ("/", "filter"),
        ("e", "all open or folded"),
    ];
    html! {
        nav hidden {
            input type="search" placeholder="filter steps"
                aria-label="show only steps with these words";
            output { (counted(steps, "step")) }
            p.keys {
                @for (key, what) in keys { kbd { (key) } span { (what) } }
            }
        }
    }
}

fn is_open(survey: &Survey, step: u32) -> bool {
    let from = survey.steps.len().saturating_sub(OPEN_LAST);
    survey.steps.len() <= OPEN_ALL
        || survey.steps[from..]
            .first()
            .is_some_and(|first| step >= first.step)
}

fn stands(standing: &SurveyState) -> String {
    match standing {
        SurveyState::Over(ending) | SurveyState::Parked(ending) => brief(&summary(ending)),
        SurveyState::Running => "running".to_owned(),
        SurveyState::CutOff => "cut off".to_owned(),
    }
}
