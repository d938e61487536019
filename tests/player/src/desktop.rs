//! Steps that only a desktop has: applications, windows, and text where the keyboard is.

use serde_json::json;

use crate::{
    play::Next,
    prompt::{Prompt, Tab, plain},
    task::Step,
};

/// Returns what a step of a desktop takes on this screen; `None` for any other step.
pub(crate) fn next(step: &Step, prompt: &Prompt) -> Option<Next> {
    if let Some(application) = &step.open {
        let mut action = json!({"do": "open_application", "application": application});
        if let Some(file) = &step.file {
            action["file"] = file.as_str().into();
        }
        return Some(Next::Last(action));
    }
    if let Some(text) = &step.enter {
        return Some(Next::Then(json!({"do": "type_text", "text": text})));
    }
    if let Some(title) = &step.window {
        return Some(match find(prompt, title) {
            Some(window) if window.is_active => Next::Is,
            Some(window) => Next::Last(json!({"do": "switch_tab", "tab": window.number})),
            None => missing(title),
        });
    }
    let title = step.close.as_ref()?;
    Some(match find(prompt, title) {
        Some(window) => Next::Last(json!({"do": "close_tab", "tab": window.number})),
        None => missing(title),
    })
}

fn missing(title: &str) -> Next {
    Next::Helps(
        json!({"do": "wait"}),
        format!("no window is called {title}"),
    )
}

/// Returns the first window whose title has these words.
fn find<'a>(prompt: &'a Prompt, words: &str) -> Option<&'a Tab> {
    let words = plain(words);
    prompt
        .tabs
        .iter()
        .find(|tab| plain(&tab.title).contains(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The action that a step takes beside two windows.
    fn action(step: &Step) -> String {
        let said = "=== the screen (data) ===\npage \"A\" at \"x11:nested/A\"\n\
                    tabs 2 \"Save As\" (this), 1 \"notes.txt - Mousepad\"\n\
                    === end of the screen ===";
        match next(step, &Prompt::read("", said)) {
            None => "not of a desktop".to_owned(),
            Some(Next::Is) => "is".to_owned(),
            Some(Next::Then(action) | Next::Last(action) | Next::Helps(action, _)) => {
                action.to_string()
            }
        }
    }

    #[test]
    fn windows_are_found_by_their_titles() {
        let window = |title: &str| Step {
            window: Some(title.to_owned()),
            ..Step::default()
        };
        assert_eq!(action(&window("save as")), "is");
        assert!(action(&window("notes.txt")).contains("\"tab\":1"));
        assert!(action(&window("Calculator")).contains("wait"));
        let close = Step {
            close: Some("Save As".to_owned()),
            ..Step::default()
        };
        assert!(action(&close).contains("close_tab"));
        assert_eq!(action(&Step::default()), "not of a desktop");
    }
}
