//! The task's own checks: conditions by a person that hold when the goal is reached.

use std::{fmt, str::FromStr};

use gyrus_contract::{
    EvaluateCall, Evidence, ReadCall, SearchCall, SearchMode, ShellCall, TypedCall as _, View,
};
use gyrus_kernel::{Run, Stop};
use gyrus_text::{fits, shorten};
use serde::Serialize;

/// The kind of the note about a check, right after the check's call if there was one.
pub const CHECK_MADE: &str = "verification.check";

/// Maximum number of characters of a check's output.
const SAYS: usize = 400;

/// A condition that must hold. Written as `text:…`, `url:…`, `file:PATH`, `file:PATH contains
/// TEXT`, `js:…`; everything else is a command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Check {
    /// A command that must end with exit code 0, in the workspace, behind the gate.
    Command(String),
    /// Words on the page at the end, regardless of case and white space.
    Text(String),
    /// The address at the end; `*` stands for any text.
    Url(String),
    /// A file of the workspace, and optionally words in one of its lines.
    File {
        /// The path, relative to the workspace or absolute.
        path: String,
        /// The words that a line of the file must contain.
        contains: Option<String>,
    },
    /// A JavaScript expression, evaluated in the page at the end; a promise is awaited. It must be
    /// truthy.
    Script(String),
}

/// The error for a text that is not a valid check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid check `{given}`: {why}; a check is a command, text:WORDS, url:ADDRESS, file:PATH, \
         `file:PATH contains TEXT` or js:EXPRESSION"
)]
pub struct BadCheck {
    given: String,
    why: &'static str,
}

impl FromStr for Check {
    type Err = BadCheck;

    fn from_str(given: &str) -> Result<Self, BadCheck> {
        let (kind, rest) = match given.split_once(':') {
            Some((kind @ ("text" | "url" | "file" | "js" | "cmd"), rest)) => (kind, rest.trim()),
            _ => ("cmd", given.trim()),
        };
        if rest.is_empty() {
            let why = "nothing follows";
            let given = given.to_owned();
            return Err(BadCheck { given, why });
        }
        Ok(match kind {
            "text" => Check::Text(rest.to_owned()),
            "url" => Check::Url(rest.to_owned()),
            "js" => Check::Script(rest.to_owned()),
            "file" => match rest.split_once(" contains ") {
                Some((path, words)) => Check::File {
                    path: path.trim().to_owned(),
                    contains: Some(words.trim().to_owned()),
                },
                None => Check::File {
                    path: rest.to_owned(),
                    contains: None,
                },
            },
            _ => Check::Command(rest.to_owned()),
        })
    }
}

gyrus_contract::stored_as_text!(Check);

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Command(line) => write!(f, "cmd:{line}"),
            Check::Text(words) => write!(f, "text:{words}"),
            Check::Url(address) => write!(f, "url:{address}"),
            Check::File { path, contains } => match contains {
                None => write!(f, "file:{path}"),
                Some(words) => write!(f, "file:{path} contains {words}"),
            },
            Check::Script(expression) => write!(f, "js:{expression}"),
        }
    }
}

impl Check {
    /// Whether the check looks at a page.
    pub fn needs_a_screen(&self) -> bool {
        match self {
            Check::Text(_) | Check::Url(_) | Check::Script(_) => true,
            Check::Command(_) | Check::File { .. } => false,
        }
    }

    /// Returns the script of the check, which the person typed, for the gate.
    pub fn script(&self) -> Option<&str> {
        match self {
            Check::Script(expression) => Some(expression),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct CheckResult {
    pub(super) check: String,
    pub(super) passed: bool,
    /// The output of the check, or its finding.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) says: String,
}

impl CheckResult {
    fn passed(check: &Check) -> Self {
        Self {
            check: check.to_string(),
            passed: true,
            says: String::new(),
        }
    }

    fn failed(check: &Check, says: &str) -> Self {
        Self {
            check: check.to_string(),
            passed: false,
            says: shorten(says, SAYS).into_owned(),
        }
    }

    fn by(check: &Check, held: bool, says: &str) -> Self {
        if held {
            Self::passed(check)
        } else {
            Self::failed(check, says)
        }
    }

    pub(super) fn evidence(&self, cycle: u32) -> Evidence {
        Evidence {
            what: format!("the check {} passed", self.check),
            at: format!("step {cycle}"),
        }
    }
}

/// Performs all checks, in order. Those that look at the page share one look.
pub(super) async fn perform(run: &mut Run, checks: &[Check]) -> Result<Vec<CheckResult>, Stop> {
    let looks = |check: &Check| matches!(check, Check::Text(_) | Check::Url(_));
    let view = if checks.iter().any(looks) {
        match run.look(false).await {
            Ok(view) => Ok(view),
            Err(error) => Err(error.handled()?),
        }
    } else {
        Err(String::new())
    };
    let mut done = Vec::new();
    for check in checks {
        let checked = match check {
            Check::Text(words) => on_page(check, &view, |view| {
                if says(view, words) {
                    None
                } else {
                    Some(format!("the page at {} does not say that", view.address))
                }
            }),
            Check::Url(wanted) => on_page(check, &view, |view| {
                if is_like(&view.address, wanted) {
                    None
                } else {
                    Some(format!("the page is {}", view.address))
                }
            }),
            Check::Command(line) => {
                let call = ShellCall {
                    command: line.clone(),
                    ..ShellCall::default()
                };
                let seen = run.call(&call.to_call()).await?;
                CheckResult::by(check, !seen.is_error, &seen.text.text)
            }
            Check::Script(expression) => {
                let expression = expression.clone();
                let seen = run.call(&EvaluateCall { expression }.to_call()).await?;
                CheckResult::by(check, !seen.is_error, &seen.text.text)
            }
            Check::File { path, contains } => file(run, check, path, contains.as_deref()).await?,
        };
        run.note(CHECK_MADE, 1, &checked)?;
        done.push(checked);
    }
    Ok(done)
}

fn on_page(
    check: &Check,
    view: &Result<View, String>,
    wrong: impl Fn(&View) -> Option<String>,
) -> CheckResult {
    match view {
        Err(why) => CheckResult::failed(check, &format!("the page cannot be seen: {why}")),
        Ok(view) => match wrong(view) {
            None => CheckResult::passed(check),
            Some(says) => CheckResult::failed(check, &says),
        },
    }
}

async fn file(
    run: &mut Run,
    check: &Check,
    path: &str,
    contains: Option<&str>,
) -> Result<CheckResult, Stop> {
    let call = match contains {
        None => ReadCall::of(path).to_call(),
        // The words are searched for literally, not as a pattern.
        Some(words) => SearchCall {
            pattern: escaped(words),
            path: path.to_owned(),
            mode: SearchMode::Files,
            ..SearchCall::default()
        }
        .to_call(),
    };
    let seen = run.call(&call).await?;
    let has_match = || SearchCall::value_of(&seen).is_some_and(|found| !found.files.is_empty());
    let found = !seen.is_error && (contains.is_none() || has_match());
    let says = if seen.is_error {
        seen.text.text.as_str()
    } else {
        "the file does not hold that"
    };
    Ok(CheckResult::by(check, found, says))
}

/// Returns a regular expression that matches only `words`.
fn escaped(words: &str) -> String {
    let mut pattern = String::new();
    for letter in words.chars() {
        if letter.is_ascii_punctuation() {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Whether the page contains `words`, regardless of case and white space. A sentence may consist of
/// several elements.
pub(super) fn says(view: &View, words: &str) -> bool {
    let words = plain(words);
    !words.is_empty() && plain(&text_of(view)).contains(&words)
}

/// Returns the text of a view, in reading order.
pub(super) fn text_of(view: &View) -> String {
    let mut text = view.title.clone();
    for element in &view.elements {
        for said in [Some(&element.name), element.value.as_ref()]
            .into_iter()
            .flatten()
        {
            text.push(' ');
            text.push_str(said);
        }
    }
    text
}

fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an address matches `wanted`, where `*` matches any text; without one, a slash at its end
/// does not count.
fn is_like(address: &str, wanted: &str) -> bool {
    fits(wanted, address) || (!wanted.contains('*') && address.strip_suffix('/') == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_meant() {
        let written = [
            "text:Thank you, Ada",
            "url:http://127.0.0.1:8080/thanks*",
            "file:out.txt",
            "file:out.txt contains 12: done",
            "js:document.title === 'a:b'",
            "cmd:cargo test",
        ];
        for given in written {
            assert_eq!(given.parse::<Check>().unwrap().to_string(), given);
        }
        let command: Check = "test -s a:b".parse().unwrap();
        assert_eq!(command, Check::Command("test -s a:b".to_owned()));
        assert!("text:  ".parse::<Check>().is_err());
        assert!("".parse::<Check>().is_err());
    }

    #[test]
    fn addresses_are_compared_whole() {
        let like = [
            ("http://a/b", "http://a/b", true),
            ("http://a/b/", "http://a/b", true),
            ("http://a/bc", "http://a/b", false),
            ("http://a/b?x=1", "http://a/b*", true),
            ("http://a/b/c/d", "http://a/*/d", true),
            ("http://a/b/c/e", "http://a/*/d", false),
            ("http://evil/?http://a/b", "http://a/*", false),
        ];
        for (address, wanted, expected) in like {
            assert_eq!(is_like(address, wanted), expected, "{address} {wanted}");
        }
    }
}
