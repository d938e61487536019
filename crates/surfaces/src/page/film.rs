//! The film strip: the pictures of a stretch in their order, with the cycles and the ends of
//! processes as marks.

use gyrus_contract::{Image, RunId};
use maud::{Markup, html};

use super::{
    markup::step_address,
    step::{Section, StepItem},
};
use crate::projection::{HappeningPart, HappeningSubject};

/// Height of a picture in the strip, in pixels.
const HEIGHT: u32 = 84;

/// Returns the items of the strip; nothing if no section has a picture.
pub(super) fn strip<'a>(run: RunId, sections: impl Iterator<Item = &'a Section>) -> Markup {
    let (mut has_picture, mut step_shown) = (false, 0);
    let mut frames = Vec::new();
    for section in sections {
        match section {
            Section::Between(item) => frames.extend(seams(item)),
            Section::Step(step) => {
                for item in &step.items {
                    frames.extend(seams(item));
                    for (seq, image) in pictures(item) {
                        let is_first =
                            std::mem::replace(&mut step_shown, step.number) != step.number;
                        let step = is_first.then_some(step.number);
                        frames.push(frame(run, seq, image, step));
                        has_picture = true;
                    }
                }
            }
        }
    }
    html! { @if has_picture { @for frame in &frames { (frame) } } }
}

fn pictures(item: &StepItem) -> impl Iterator<Item = (u64, &Image)> {
    item.happenings.iter().flat_map(|one| {
        let parts = one.parts.iter();
        parts.filter_map(|part| match part {
            HappeningPart::Picture(image) => Some((one.seq, image)),
            HappeningPart::Badge(..)
            | HappeningPart::Text(..)
            | HappeningPart::Arguments(_)
            | HappeningPart::Card(_)
            | HappeningPart::Files(_)
            | HappeningPart::Run(_) => None,
        })
    })
}

fn frame(run: RunId, seq: u64, image: &Image, begins: Option<u32>) -> Markup {
    let width = u64::from(image.width) * u64::from(HEIGHT) / u64::from(image.height.max(1));
    let words = format!("the screen at entry {seq}");
    html! {
        li.frame id={ "f" (seq) } {
            a href=(step_address(run, seq)) {
                img src={ "/api/runs/" (run) "/blobs/" (image.blob) } alt=(words) title=(words)
                    loading="lazy" width=(width.min(400)) height=(HEIGHT);
            }
            @if let Some(step) = begins { span.cycle { "step " (step) } }
        }
    }
}

/// Marks the places where one process ended and another continued the run.
fn seams(item: &StepItem) -> Vec<Markup> {
    let resumed = item
        .happenings
        .iter()
        .filter(|one| one.subject == HappeningSubject::Resumed);
    let seam = |one: &crate::projection::Happening| {
        html! { li.seam id={ "f" (one.seq) } title=(one.headline) { span { "resumed" } } }
    };
    resumed.map(seam).collect()
}
