//! The plan of a run as a list that ticks.

use gyrus_text::clip;

use super::paint::Painter;
use crate::{
    projection::Tone,
    shown_plan::{ShownPlan, ShownStep, StepProgress},
};

/// Most steps that are shown.
const PLAN_LINES: usize = 6;

/// Returns the steps of the plan around the first that is open, until none is.
pub(super) fn lines(plan: &ShownPlan, painter: &Painter) -> Vec<String> {
    let steps = plan.steps();
    let open = |step: &ShownStep| step.progress == StepProgress::Open;
    let Some(next) = steps.iter().position(open) else {
        return Vec::new();
    };
    let first = next
        .saturating_sub(1)
        .min(steps.len().saturating_sub(PLAN_LINES));
    let columns = painter.columns.saturating_sub(1);
    let shown = steps.iter().skip(first).take(PLAN_LINES).map(|step| {
        let (mark, tone) = match step.progress {
            StepProgress::Open => ('☐', Tone::Plain),
            StepProgress::Done => ('✓', Tone::Aside),
            StepProgress::Failed => ('✗', Tone::Bad),
        };
        painter.paint(tone, &clip(&format!("{mark} {}", step.words), columns))
    });
    let mut lines: Vec<String> = shown.collect();
    let more = steps.len() - first - lines.len();
    if first + more > 0 {
        let done = steps.iter().filter(|step| !open(step)).count();
        let of = format!("{done} of {} steps", steps.len());
        lines.push(painter.paint(Tone::Aside, &clip(&of, columns)));
    }
    lines
}
