//! From what a run did to a procedure.

use gyrus_contract::{Arguments as _, OpenApplicationCall, View};

use crate::{
    LearnedPlace, NotLearned, Procedure, ProcedureStep, RecordedRun, RecordedStep, SlotTemplate,
    SlotValues, TemplatePart, address, desktop, folder, on_screen, recorded::UnnamedProcedure,
    shape,
};

/// Maximum number of actions of a procedure.
pub(crate) const MOST_STEPS: usize = 60;

/// Maximum number of characters of a learned answer.
const ANSWER: usize = 300;

/// Words of commands that carry no meaning about their kind.
const SMALL_WORDS: [&str; 20] = [
    "the", "a", "an", "of", "for", "in", "on", "at", "to", "from", "with", "and", "that", "this",
    "my", "me", "is", "it", "says", "please",
];

/// Returns the procedure that can be learned from a run.
///
/// # Errors
/// The reason why the run teaches no procedure.
pub fn learn(run: &RecordedRun) -> Result<Procedure, NotLearned> {
    let learned = match &run.place {
        LearnedPlace::Site { start, .. } => on_screen::learn(run, start)?,
        LearnedPlace::Desktop { .. } => on_screen::learn(&in_windows(run), "")?,
        LearnedPlace::Folder { .. } => folder::learn(run)?,
    };
    if learned.steps.is_empty() {
        return Err(NotLearned::because("the run changed nothing"));
    }
    let starts = |step: &ProcedureStep| step.tool == OpenApplicationCall::TOOL;
    if learned.steps.iter().all(starts) {
        return Err(NotLearned::because(
            "nothing was done but starting a program",
        ));
    }
    if learned.steps.len() > MOST_STEPS {
        return Err(NotLearned::because(format!(
            "it has more than {MOST_STEPS} actions"
        )));
    }
    let own = learned.slots.iter().map(|slot| slot.learned.clone());
    let own = SlotValues(own.collect());
    if learned.command.values(&learned.slots, &run.command) != Some(own) {
        return Err(NotLearned::because(
            "the command can be read in more than one way",
        ));
    }
    Ok(Procedure {
        name: name(&learned.command),
        answer: answer(&run.answer, &learned),
        command: learned.command,
        slots: learned.slots,
        place: run.place.clone(),
        steps: learned.steps,
        ends: Vec::new(),
        checks: run.checks.clone(),
    })
}

/// Reduces a run on a desktop to the parts of its views that a procedure uses.
fn in_windows(run: &RecordedRun) -> RecordedRun {
    let used = |view: &View| desktop::in_use(view).into_owned();
    let steps = run.steps.iter().map(|step| RecordedStep {
        view: step.view.as_ref().map(used),
        ..step.clone()
    });
    RecordedRun {
        steps: steps.collect(),
        end: run.end.as_ref().map(used),
        ..run.clone()
    }
}

fn name(command: &SlotTemplate) -> String {
    let fixed = command.fixed_words().to_lowercase();
    let words = fixed.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty() && !SMALL_WORDS.contains(word));
    let words: Vec<_> = words.take(4).collect();
    if words.is_empty() {
        "task".to_owned()
    } else {
        words.join("-")
    }
}

/// Returns the answer with slots, or a neutral sentence if it contains findings of the run.
fn answer(answer: &str, learned: &UnnamedProcedure) -> SlotTemplate {
    let given = SlotTemplate::of(answer.trim(), &learned.slots, |_| true);
    let is_plain = !answer.trim().is_empty() && answer.chars().count() <= ANSWER;
    if is_plain && !address::has_other_digits(&given) && !answer.chars().any(shape::is_quotation) {
        return given;
    }
    let mut parts = vec![TemplatePart::Words("Done: ".to_owned())];
    parts.extend(learned.command.0.iter().cloned());
    SlotTemplate(parts)
}
