//! The steps of a run on a screen that did something, without detours.

use gyrus_contract::{
    ActionVerdict, AnswerDialogCall, Arguments as _, ClickCall, ElementState, OpenApplicationCall,
    OpenUrlCall, PressKeyCall, SelectOptionCall, TypeTextCall, View,
};

use serde_json::json;

use crate::{
    LearnedPlace, NotLearned, RecordedRun, RecordedStep, desktop,
    page::{self, PlacedView},
};

/// Tools that only read, or only scroll.
const LOOKS: [&str; 7] = [
    "scroll",
    "scroll_to",
    "hover",
    "find",
    "extract",
    "wait",
    "take_screenshot",
];

/// The tool that selects text. On a page it only shows where a text is; what is typed next in a
/// program replaces it.
const SELECTS: &str = "select_text";

/// A marker by which journals replace secrets.
const SECRET: &str = "⟦secret";

pub(crate) fn text_of<'a>(step: &'a RecordedStep, argument: &str) -> Option<&'a str> {
    step.call.arguments.get(argument)?.as_str()
}

pub(crate) fn target(step: &RecordedStep, page: &PlacedView<'_>) -> Option<usize> {
    page.index(text_of(step, "on")?.parse().ok()?)
}

/// Whether an action decides: a button, or a key that sends a form. In a program every click and key
/// does that is not one of those by which a person finds their way.
pub(crate) fn decides(step: &RecordedStep, page: &PlacedView<'_>) -> bool {
    let on_desktop = desktop::is_desktop(page.view);
    let role = target(step, page).map_or("", |at| page.element(at).role.as_str());
    let is_button = || {
        let finds_the_way = || matches!(role, "menu" | "menubar" | "tab" | "tablist");
        role == "button" || (on_desktop && !page::is_field_role(role) && !finds_the_way())
    };
    let submits = step
        .call
        .arguments
        .get("submit")
        .and_then(serde_json::Value::as_bool);
    match step.call.tool.as_str() {
        ClickCall::TOOL => step.commits || is_button(),
        PressKeyCall::TOOL => match text_of(step, "key") {
            Some("Enter") => true,
            Some("Escape" | "Tab" | "F10") => step.commits,
            _ => step.commits || on_desktop,
        },
        AnswerDialogCall::TOOL => true,
        _ => step.commits || submits == Some(true),
    }
}

/// Returns the steps that had an effect, without detours.
pub(crate) fn kept(run: &RecordedRun) -> Result<Vec<&RecordedStep>, NotLearned> {
    let (start, on_desktop) = match &run.place {
        LearnedPlace::Site { start, .. } => (start.as_str(), false),
        LearnedPlace::Desktop { .. } | LearnedPlace::Folder { .. } => ("", true),
    };
    let mut kept: Vec<&RecordedStep> = Vec::new();
    for step in &run.steps {
        let tool = step.call.tool.as_str();
        let seen = &step.observation;
        let had_no_effect = match seen.verdict {
            ActionVerdict::Refused => true,
            // Programs do more than they show.
            ActionVerdict::NoEffect => !on_desktop,
            ActionVerdict::Changed | ActionVerdict::CannotTell => false,
        };
        let only_looks = LOOKS.contains(&tool) || (tool == SELECTS && !on_desktop);
        if step.call.arguments.to_string().contains(SECRET) {
            return Err(NotLearned::because("it used a secret"));
        }
        if only_looks || (!step.commits && (seen.is_error || had_no_effect)) {
            continue;
        }
        if step.commits && seen.is_error && seen.verdict == ActionVerdict::Refused {
            continue;
        }
        if tool == OpenUrlCall::TOOL {
            if text_of(step, "url") != Some(start) {
                return Err(NotLearned::because("it opened an address of its own"));
            }
            if kept.iter().any(|step| step.commits) {
                return Err(NotLearned::because(
                    "it began again after something was sent",
                ));
            }
            kept.clear();
            continue;
        }
        kept.push(step);
    }
    without_detours(&mut kept);
    without_overwritten(&mut kept);
    for step in &kept {
        let known = [
            ClickCall::TOOL,
            TypeTextCall::TOOL,
            PressKeyCall::TOOL,
            SelectOptionCall::TOOL,
            AnswerDialogCall::TOOL,
            OpenApplicationCall::TOOL,
        ];
        if !known.contains(&step.call.tool.as_str()) {
            return Err(NotLearned::because(format!(
                "the tool `{}` is not replayed",
                step.call.tool
            )));
        }
        let has = |argument: &str| {
            let given = step.call.arguments.get(argument);
            given.is_some_and(|given| !given.is_null() && *given != json!([]))
        };
        if step.view.is_none() || has("at") || has("fill") {
            return Err(NotLearned::because(
                "an action was aimed at a point of a picture, or filled in several fields",
            ));
        }
    }
    Ok(kept)
}

/// Returns a page's content apart from the effects of the keyboard and of scrolling.
fn shown(view: &View) -> impl PartialEq {
    let passing = [
        ElementState::Focused,
        ElementState::OutOfView,
        ElementState::Covered,
    ];
    let elements = view.elements.iter().map(move |element| {
        let mut states = element.states.clone();
        states.retain(|state| !passing.contains(state));
        (
            element.role.clone(),
            element.name.clone(),
            element.value.clone(),
            states,
        )
    });
    (
        view.address.clone(),
        desktop::windows(view),
        view.dialog.clone(),
        elements.collect::<Vec<_>>(),
    )
}

/// Removes steps that led back to an earlier state of the page.
fn without_detours(steps: &mut Vec<&RecordedStep>) {
    let mut first = 0;
    while first < steps.len() {
        let binds = |step: &&RecordedStep| {
            step.commits
                || step
                    .view
                    .as_ref()
                    .is_some_and(|view| decides(step, &PlacedView::new(view)))
        };
        let before = steps[first].view.as_ref().map(shown);
        let back = (first + 2..steps.len()).rev().find(|later| {
            let is_same = before.is_some() && steps[*later].view.as_ref().map(shown) == before;
            is_same && !steps[first..*later].iter().any(binds)
        });
        match back {
            Some(later) => drop(steps.drain(first..later)),
            None => first += 1,
        }
    }
}

/// Removes steps whose input into a field was replaced before anything was sent.
fn without_overwritten(steps: &mut Vec<&RecordedStep>) {
    let sets = |step: &RecordedStep| match step.call.tool.as_str() {
        SelectOptionCall::TOOL => text_of(step, "on").map(str::to_owned),
        TypeTextCall::TOOL if step.call.arguments["replace"] == true => {
            text_of(step, "on").map(str::to_owned)
        }
        _ => None,
    };
    let mut at = 0;
    while at < steps.len() {
        let own = sets(steps[at]);
        let later = steps[at + 1..]
            .iter()
            .take_while(|step| sets(step).is_some());
        let is_replaced = own.is_some() && later.into_iter().any(|step| sets(step) == own);
        if is_replaced {
            steps.remove(at);
        } else {
            at += 1;
        }
    }
}
