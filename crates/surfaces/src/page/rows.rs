//! Rows of a run for a page that a server shows: a stretch of the journal, drawn as on the whole
//! page. A row has the number of its first entry as its id, so a later look replaces it in place.

use std::collections::BTreeMap;

use gyrus_contract::RunId;
use gyrus_journal::LogReader;
use maud::{Markup, PreEscaped, html};

use super::{
    film,
    item::{ItemDrawer, StepContext},
    markup::shown,
    moment::TimeOrigin,
    picture::PagePictures,
    step::{RawEntry, Section, StepFate, Steps},
    timeline,
};
use crate::projection::patch_lines;

/// Maximum number of entries read for one stretch of rows.
const ENTRIES: u64 = 200;

/// Number of open rows at the end of the newest stretch.
const OPEN_LAST: usize = 3;

/// A stretch of a run's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    /// The last entries.
    Newest,
    /// The last entries before this number.
    Before(u64),
    /// The first entries after this number.
    After(u64),
}

impl Stretch {
    /// Returns the numbers of the first and the last entry to read.
    fn bounds(self, end: u64) -> (u64, u64) {
        let back = |to: u64| (to.saturating_sub(ENTRIES).saturating_add(1), to);
        match self {
            Stretch::Newest => back(end),
            Stretch::Before(seq) => back(seq.saturating_sub(1).min(end)),
            Stretch::After(seq) => (seq.saturating_add(1), seq.saturating_add(ENTRIES).min(end)),
        }
    }
}

/// Amount of detail in which a stretch is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Zoom {
    /// Each cycle as one sentence.
    Cycles,
    /// Each cycle with its effects.
    #[default]
    Effects,
    /// Each entry as the journal contains it.
    Entries,
    /// One long text, in which nothing is folded that a person watching the run would see.
    Reading,
}

/// Rows of a run.
#[derive(Debug)]
pub struct RunRows {
    /// The rows, in which every unseen character is visible.
    pub html: String,
    /// The pictures of the stretch as items of a list, with the cycles and the ends of processes
    /// as marks; empty if it has no pictures.
    pub film: String,
    /// Number of the first shown entry.
    pub first: u64,
    /// Sequence number after which the next reading begins: a step that has not ended is drawn
    /// again.
    pub after: u64,
    /// Whether there are entries after the stretch.
    pub more: bool,
}

/// Draws a stretch of a run's journal, up to the entry `end`. Reads no more than the stretch, however
/// long the run is. A damaged entry ends the stretch.
pub fn rows(
    reader: &LogReader,
    run: RunId,
    stretch: Stretch,
    zoom: Zoom,
    end: u64,
) -> Result<RunRows, gyrus_journal::Error> {
    if zoom == Zoom::Entries {
        return entries(reader, run, stretch, end);
    }
    let began_ms = reader.entry(1)?.map_or(0, |first| first.at_ms);
    let (from, to) = stretch.bounds(end);
    let mut steps = Steps::new(reader);
    let mut drawn: Vec<(String, u64, Section)> = Vec::new();
    let (mut last, mut first) = (from.saturating_sub(1), from);
    // Forwards from a given number nothing is left out; backwards it begins with a whole step.
    let mut is_aligned = from == 1 || matches!(stretch, Stretch::After(_));
    for entry in reader.entries(from)? {
        let Ok(entry) = entry else { break };
        if entry.seq > to {
            break;
        }
        last = entry.seq;
        for section in steps.take(&entry) {
            let ended = matches!(&section, Section::Step(step) if step.fate != StepFate::Open);
            if !is_aligned && ended {
                is_aligned = true;
                drawn.clear();
                first = entry.seq + 1;
                continue;
            }
            drawn.push(row(section, entry.seq));
        }
    }
    let pending = steps.pending_since();
    let after = match pending {
        // A step that fills the stretch is drawn in two rows.
        Some(seq) if seq > from || last == end => seq.saturating_sub(1),
        Some(_) | None => last,
    };
    if let Some(section) = steps.finish() {
        drawn.push(row(section, last));
    }
    let open_from = match stretch {
        Stretch::Newest | Stretch::After(_) => drawn.len().saturating_sub(OPEN_LAST),
        Stretch::Before(_) => usize::MAX,
    };
    let look = RowStyle { zoom, open_from };
    let html = draw_all(&drawn, &steps.rest(), began_ms, run, reader, look);
    let film = film::strip(run, drawn.iter().map(|(_, _, section)| section));
    Ok(RunRows {
        html: shown(&html.0).into_owned(),
        film: shown(&film.0).into_owned(),
        first,
        after,
        more: last < end,
    })
}

/// Renders a range of entries in the order of the journal.
fn entries(
    reader: &LogReader,
    run: RunId,
    stretch: Stretch,
    end: u64,
) -> Result<RunRows, gyrus_journal::Error> {
    let start = TimeOrigin {
        at_ms: reader.entry(1)?.map_or(0, |first| first.at_ms),
    };
    let (from, to) = stretch.bounds(end);
    let (mut last, mut html) = (from.saturating_sub(1), String::new());
    for entry in reader.entries(from)?.take_while(Result::is_ok).flatten() {
        if entry.seq > to {
            break;
        }
        last = entry.seq;
        let row = html! {
            div.row.entry id={ "e" (entry.seq) } data-seq=(entry.seq) {
                (timeline::entry(&RawEntry::of(&entry), Some(run), start))
            }
        };
        html.push_str(&shown(&row.0));
    }
    Ok(RunRows {
        html,
        film: String::new(),
        first: from,
        after: last,
        more: last < end,
    })
}

/// Form in which the sections of a stretch are drawn.
#[derive(Debug, Clone, Copy)]
struct RowStyle {
    zoom: Zoom,
    /// The first open row.
    open_from: usize,
}

fn draw_all(
    drawn: &[(String, u64, Section)],
    rest: &[RawEntry],
    began_ms: i64,
    run: RunId,
    reader: &LogReader,
    look: RowStyle,
) -> Markup {
    let start = TimeOrigin { at_ms: began_ms };
    let context = StepContext {
        number: 0,
        run,
        start,
        children: &BTreeMap::new(),
    };
    let mut pictures = PagePictures::served(run);
    html! {
        @for (number, (id, seq, section)) in drawn.iter().enumerate() {
            div.row id=(id) data-seq=(seq) {
                (draw(section, &context, reader, &mut pictures, look, number))
            }
        }
        @if look.zoom == Zoom::Effects && let Some(entry) = rest.first() {
            div.row id={ "s" (entry.seq) } data-seq=(entry.seq) {
                (timeline::entries(rest, start))
            }
        }
    }
}

/// Returns a section with its id and the number of its first entry.
fn row(section: Section, seq: u64) -> (String, u64, Section) {
    match &section {
        Section::Step(step) => {
            let seq = step.entries.first().map_or(seq, |entry| entry.seq);
            (format!("s{seq}"), seq, section)
        }
        Section::Between(_) => (format!("b{seq}"), seq, section),
    }
}

fn draw(
    section: &Section,
    context: &StepContext<'_>,
    reader: &LogReader,
    pictures: &mut PagePictures,
    look: RowStyle,
    number: usize,
) -> Markup {
    match (section, look.zoom) {
        (Section::Step(step), Zoom::Cycles) => timeline::sentence(step, context),
        (Section::Step(step), Zoom::Reading) => timeline::reading(step, context, reader, pictures),
        (Section::Step(step), Zoom::Effects | Zoom::Entries) => {
            let is_open = number >= look.open_from;
            timeline::step(step, context, reader, pictures, is_open)
        }
        (Section::Between(item), _) => {
            let drawing = ItemDrawer {
                context,
                reader,
                rest: "",
            };
            drawing.item(item, pictures)
        }
    }
}

/// Returns untrusted text whole, in the colours of what it is. Every unseen character of it is made
/// visible once the page passes [`visible_html`].
pub fn whole_text(text: &str) -> Markup {
    let is_patch = crate::projection::is_patch(text);
    html! {
        pre {
            @for line in text.trim_end_matches('\n').split_inclusive('\n') {
                @let class = match line.as_bytes().first() {
                    Some(b'+') if is_patch => "added",
                    Some(b'-') if is_patch => "removed",
                    _ => "kept",
                };
                span class=(class) { (line) }
            }
        }
    }
}

/// Draws a complete patch, with a colour for each kind of line.
pub fn whole_patch(patch: &str) -> Markup {
    html! {
        pre {
            @for (tone, line) in patch_lines(patch) {
                span class=(super::excerpt::of_patch(tone)) { (line) "\n" }
            }
        }
    }
}

/// Returns HTML in which every unseen character is replaced by its name.
pub fn visible_html(html: &Markup) -> Markup {
    PreEscaped(shown(&html.0).into_owned())
}
