//! The prompt of one turn. There is no conversation: the same few parts are written anew each time,
//! the unchanging ones first.

use gyrus_contract::{
    Arguments as _, ExtractCall, FindCall, Image, Message, OpenApplicationCall, Origin, Part, Role,
    ScreenAction, SystemPart, Text, View,
};

use gyrus_text::tokens;

use super::{
    render::{self, RenderBudget},
    state::{ActionOutput, ReactiveState},
    words::lines_of_data,
};
use crate::{CognitiveConfig, config::PerceptionMode, prompt};

/// Number of tokens of a turn's own text without a picture.
pub const FRESH: usize = 820;

/// Maximum tokens of the changing part with a picture: it leaves room for one of 1280 by 800 where
/// such pictures cost most.
const FRESH_WITH_PICTURE: usize = 280;

/// Minimum number of tokens of a view, beside its usable elements.
const LEAST: usize = 120;

/// Maximum tokens of an action's output: extracted text, search results, and any other text.
const READ: usize = 2_500;
const FOUND: usize = 300;
const SAID: usize = 120;

/// Returns the loop's instructions, with the parts that depend on the run.
pub(super) fn system(
    config: &CognitiveConfig,
    actions: &[&ScreenAction],
    token: &str,
) -> Vec<SystemPart> {
    let listed: Vec<_> = actions
        .iter()
        .map(|action| format!("- {} {}", action.name, action.usage))
        .collect();
    let words = super::PROMPT.replace("{{actions}}", &listed.join("\n"));
    let mut parts = prompt::system(config, &words);
    if actions
        .iter()
        .any(|action| action.name == OpenApplicationCall::TOOL)
    {
        parts.push(SystemPart::cacheable(super::DESKTOP_PROMPT.trim_end()));
    }
    parts.push(SystemPart::cacheable(format!(
        "The completion token of this run is: {token}"
    )));
    parts
}

pub(super) fn sends_picture(mode: PerceptionMode, state: &ReactiveState, view: &View) -> bool {
    let has_picture = view.frame.is_some();
    match mode {
        PerceptionMode::Tree => false,
        PerceptionMode::Vision => has_picture,
        PerceptionMode::Auto => {
            has_picture
                && (state.last.had_no_effect
                    || state.last.needs_picture
                    || state.stuck.has_note()
                    || render::says_little(view))
        }
    }
}

pub(super) enum ScreenInTurn<'a> {
    /// A view, with its picture if the picture is sent.
    View(&'a View, Option<&'a Image>),
    /// No view, for this reason.
    Blind(&'a str),
}

/// Returns the content that changes from turn to turn, as one message.
pub(super) fn turn(
    state: &ReactiveState,
    note: Option<&str>,
    goal: &str,
    sight: ScreenInTurn<'_>,
) -> Message {
    let picture = match &sight {
        ScreenInTurn::View(_, picture) => *picture,
        ScreenInTurn::Blind(_) => None,
    };
    let mut texts: Vec<_> = kept(state, picture.is_some()).collect();
    // Extracted text is added to the budget: it is what the turn is about.
    let mut spent: usize = texts.iter().map(|text| tokens(&text.text)).sum();
    if let Some(output) = &state.output {
        let (text, counts) = returned(output);
        spent += if counts { tokens(&text.text) } else { 0 };
        texts.push(text);
    }
    if let Some(note) = note {
        let text = Text::new(format!("=== mind ===\n{note}"), Origin::Kernel);
        spent += tokens(&text.text);
        texts.push(text);
    }
    texts.push(match sight {
        ScreenInTurn::View(view, picture) => screen(view, picture, goal, spent),
        ScreenInTurn::Blind(why) => Text::new(
            format!(
                "=== the screen ===\nIt cannot be seen: {}",
                lines_of_data(why, SAID)
            ),
            Origin::Kernel,
        ),
    });
    let mut parts: Vec<_> = texts.into_iter().map(Part::Text).collect();
    parts.extend(picture.cloned().map(Part::Image));
    Message {
        role: Role::User,
        parts,
    }
}

/// Returns the memo and the log. The words in both are the model's, and may repeat untrusted text.
fn kept(state: &ReactiveState, with_picture: bool) -> impl Iterator<Item = Text> {
    let memo: Vec<_> = state.memo.lines().collect();
    let mut log = if with_picture {
        state.log.fewer_lines()
    } else {
        state.log.lines().collect()
    };
    if !log.is_empty() && !state.expects.is_empty() {
        log.push(format!("You expected then: {}", state.expects));
    }
    let section = |title: &str, lines: Vec<String>| {
        let text = format!("=== {title} ===\n{}", lines.join("\n"));
        (!lines.is_empty()).then(|| Text::new(text, Origin::Model))
    };
    [
        section("your memo", memo),
        section("your last actions", log),
    ]
    .into_iter()
    .flatten()
}

/// Returns the output of the last action, and whether it counts against the budget.
fn returned(output: &ActionOutput) -> (Text, bool) {
    let (most, counts) = match output.tool.as_str() {
        ExtractCall::TOOL => (READ, false),
        FindCall::TOOL => (FOUND, false),
        _ => (SAID, true),
    };
    let lines = lines_of_data(&output.text, most);
    let text = format!(
        "=== `{}` returned (data) ===\n{}",
        output.tool,
        lines.trim_end()
    );
    let origin = Origin::Tool {
        name: output.tool.clone(),
    };
    (Text::new(text, origin), counts)
}

/// Formats the screen within the remaining tokens of a turn.
fn screen(view: &View, picture: Option<&Image>, goal: &str, spent: usize) -> Text {
    let fresh = if picture.is_some() {
        FRESH_WITH_PICTURE
    } else {
        FRESH
    };
    let budget = RenderBudget {
        tokens: fresh.saturating_sub(spent).max(LEAST),
        with_picture: picture.is_some(),
        goal,
    };
    let tree = render::render(view, budget);
    let size = match picture {
        Some(picture) => format!(", {} by {} pixels", picture.width, picture.height),
        None => String::new(),
    };
    Text::new(
        format!("=== the screen{size} (data) ===\n{tree}\n=== end of the screen ==="),
        Origin::Tool {
            name: "screen".to_owned(),
        },
    )
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
