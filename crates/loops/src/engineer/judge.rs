//! The judge, which decides outside of the run whether the work is good: a command, an HTTP
//! endpoint or a tool of a server. The model submits its work; its own opinion about it does not
//! count.

use std::{fmt, str::FromStr};

use gyrus_contract::{
    Arguments, EffectId, FINISH, GlobCall, JudgeCall, JudgeRuling, Observation, Origin, ReadCall,
    Repeat, ShellCall, ToolCall, ToolSpec, TypedCall as _, schema_of,
};
use gyrus_kernel::{Run, Stop};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{goal, json::the_object};

/// The tool by which a model submits, unless the judge is itself a tool.
const SUBMIT: &str = "submit";

/// A submission to a judge that sees the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubmitCall {
    /// For the person: what was done, and how you saw that it holds.
    #[expect(dead_code, reason = "it is read in the journal")]
    summary: String,
}

impl Arguments for SubmitCall {
    const TOOL: &'static str = SUBMIT;
    const EXAMPLE: &'static str = r#"{"summary": "Uploads are retried; the tests pass."}"#;
}

/// A submission to a judge that sees nothing else.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubmitTextCall {
    /// The thing to be judged, whole, in the form that the judge takes.
    submission: String,
    /// For the person: what was done, and how you saw that it holds.
    summary: String,
}

impl Arguments for SubmitTextCall {
    const TOOL: &'static str = SUBMIT;
    const EXAMPLE: &'static str = r#"{"submission": "42", "summary": "The sum, checked by hand."}"#;
}

/// Maximum number of pictures of one judgement for the model.
const MAX_IMAGES: usize = 4;

/// Time limit of a command that judges, in seconds.
const JUDGE_SECONDS: u64 = 600;

/// A judge, written as `mcp:SERVER__TOOL`, `http://…` or `https://…`; all else is a command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Judge {
    /// A command that runs in the workspace, behind the gate. Exit code 0 accepts.
    Command(String),
    /// Address that receives a submission by HTTP and answers with a verdict.
    Http(String),
    /// A tool of a server, by its name in the run.
    Tool(String),
}

/// The error for a text that names no judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid judge `{given}`: a judge is a command, http://ADDRESS or mcp:SERVER__TOOL")]
pub struct BadJudge {
    given: String,
}

impl FromStr for Judge {
    type Err = BadJudge;

    fn from_str(given: &str) -> Result<Self, BadJudge> {
        let whole = given.trim();
        let judge = match whole.strip_prefix("mcp:").map(str::trim) {
            Some(name) if !name.is_empty() && !name.contains(char::is_whitespace) => {
                Some(Judge::Tool(name.to_owned()))
            }
            Some(_) => None,
            None if whole.starts_with("http://") || whole.starts_with("https://") => {
                let is_address = !whole.contains(char::is_whitespace) && !whole.ends_with("://");
                is_address.then(|| Judge::Http(whole.to_owned()))
            }
            None => (!whole.is_empty()).then(|| Judge::Command(whole.to_owned())),
        };
        judge.ok_or_else(|| BadJudge {
            given: given.to_owned(),
        })
    }
}

gyrus_contract::stored_as_text!(Judge);

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judge::Command(text) | Judge::Http(text) => f.write_str(text),
            Judge::Tool(name) => write!(f, "mcp:{name}"),
        }
    }
}

/// The result of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgeVerdict {
    Accepted,
    Rejected,
    /// The judge gave no verdict: it was not asked, its answer was lost, or the answer was neither
    /// yes nor no.
    NoRuling,
}

impl Judge {
    /// Returns the address of the judge, which the person typed, for the gate.
    pub fn address(&self) -> Option<&str> {
        match self {
            Judge::Http(address) => Some(address),
            Judge::Command(_) | Judge::Tool(_) => None,
        }
    }

    /// Describes the judge to the model.
    pub(super) fn in_words(&self) -> String {
        match self {
            Judge::Command(line) => format!(
                "The judge is the command `{line}`, run in the workspace; exit code 0 accepts. \
                 Call `{SUBMIT}` to have it judge."
            ),
            Judge::Http(address) => format!(
                "The judge is the service at {address}. Call `{SUBMIT}` with what it is to judge."
            ),
            Judge::Tool(name) => {
                format!("The judge is the tool `{name}`: calling it submits the work.")
            }
        }
    }

    /// Returns the tool that submits, unless the judge is itself a tool.
    pub(super) fn spec(&self) -> Option<ToolSpec> {
        let (description, parameters) = match self {
            Judge::Tool(_) => return None,
            Judge::Command(_) => (
                "Submits the work, as it stands in the workspace, to the judge.",
                schema_of::<SubmitCall>(),
            ),
            Judge::Http(_) => (
                "Submits the work to the judge, which sees only what is in this call.",
                schema_of::<SubmitTextCall>(),
            ),
        };
        Some(ToolSpec {
            name: SUBMIT.to_owned(),
            description: description.to_owned(),
            parameters,
            touches: Vec::new(),
            repeat: Repeat::Never,
        })
    }

    /// Returns the call that submits work of which the model only spoke; a judge that is a tool needs
    /// arguments of its own.
    pub(crate) fn submission(&self, words: &str) -> Option<ToolCall> {
        let arguments = match self {
            Judge::Command(_) => json!({"summary": words}),
            Judge::Http(_) => json!({"summary": words, "submission": words}),
            Judge::Tool(_) => return None,
        };
        Some(ToolCall::new(SUBMIT, arguments))
    }

    /// Returns the reason why the judge is not available in this run, if that is so.
    pub(super) fn missing(&self, run: &Run) -> Option<String> {
        match self {
            Judge::Tool(name) if !run.tools().iter().any(|spec| spec.name == *name) => {
                Some(format!(
                    "the judge `{name}` is not there: no server of this run has such a tool; see \
                     which there are: gyrus tools"
                ))
            }
            Judge::Tool(_) | Judge::Command(_) | Judge::Http(_) => None,
        }
    }

    /// Returns the name of the tool that the model calls.
    pub(super) fn name(&self) -> &str {
        match self {
            Judge::Command(_) | Judge::Http(_) => SUBMIT,
            Judge::Tool(name) => name,
        }
    }

    /// Whether the judge decides about the call: a submission, or a claim that only it can make.
    pub(crate) fn hears(&self, call: &ToolCall) -> bool {
        call.tool == self.name() || (call.tool == FINISH && claims(&call.arguments))
    }

    /// Submits the work to the judge; `images` is the pattern of the pictures that a command makes.
    pub(crate) async fn hear(
        &self,
        run: &mut Run,
        call: &ToolCall,
        images: Option<&str>,
    ) -> Result<Observation, Stop> {
        let cycle = EffectId::cycle(run.cycle());
        let refused = |words: String| Ok(Observation::refused(cycle, call, words));
        if call.tool == FINISH {
            let name = self.name();
            return refused(format!(
                "only the judge says that the goal is reached; call `{name}`"
            ));
        }
        let judging = match self {
            Judge::Tool(_) => {
                let mut seen = run.call(call).await?;
                seen.is_error |= accepts(&seen) != Some(true);
                return Ok(seen);
            }
            Judge::Command(line) => {
                if let Err(wrong) = SubmitCall::parse(&call.arguments) {
                    return refused(wrong.to_string());
                }
                let command = ShellCall {
                    command: line.clone(),
                    // Tests may have to be built first.
                    timeout_seconds: Some(JUDGE_SECONDS),
                    ..ShellCall::default()
                };
                command.to_call()
            }
            Judge::Http(address) => {
                let given = match SubmitTextCall::parse(&call.arguments) {
                    Ok(given) => given,
                    Err(wrong) => return refused(wrong.to_string()),
                };
                let submission = [
                    ("goal", json!(goal::goal_in_words(run))),
                    ("summary", json!(given.summary)),
                    ("submission", json!(given.submission)),
                ];
                let submission = submission.map(|(name, value)| (name.to_owned(), value));
                JudgeCall {
                    url: address.clone(),
                    submission: submission.into_iter().collect(),
                }
                .to_call()
            }
        };
        let mut seen = run.call(&judging).await?;
        if let (Judge::Command(_), Some(pattern)) = (self, images)
            && self.verdict(&seen) != JudgeVerdict::NoRuling
        {
            add_images(run, pattern, &mut seen).await?;
        }
        Ok(Observation {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            ..seen
        })
    }

    pub(super) fn verdict(&self, seen: &Observation) -> JudgeVerdict {
        let accepted = match (self, &seen.text.origin) {
            // The kernel answers where a call was refused, denied or interrupted.
            (_, Origin::Kernel) => None,
            (Judge::Command(_), _) => Some(!seen.is_error),
            (Judge::Http(_), _) => JudgeCall::value_of(seen).map(|ruling| ruling.accepted),
            (Judge::Tool(_), _) => accepts(seen),
        };
        match accepted {
            Some(true) if !seen.is_error => JudgeVerdict::Accepted,
            Some(_) => JudgeVerdict::Rejected,
            None => JudgeVerdict::NoRuling,
        }
    }
}

/// Whether a call of `finish` claims that the goal is reached. Some models send the arguments as
/// the text of an object, and some the boolean as a text.
fn claims(arguments: &Value) -> bool {
    let parsed = arguments.as_str().map(serde_json::from_str::<Value>);
    let arguments = match &parsed {
        Some(Ok(object)) => object,
        Some(Err(_)) | None => arguments,
    };
    arguments["reached"] != json!(false) && arguments["reached"] != json!("false")
}

/// Returns the verdict in the answer of a server's tool: `accepted` of its structured content, or
/// of the one object in its text that has it.
fn accepts(seen: &Observation) -> Option<bool> {
    match &seen.value {
        Some(value) => JudgeRuling::deserialize(value)
            .ok()
            .map(|ruling| ruling.accepted),
        None => said_to_accept(&seen.text.text),
    }
}

fn said_to_accept(text: &str) -> Option<bool> {
    let object = the_object(text, "accepted").ok()?;
    object["accepted"].as_bool()
}

/// Adds the newest pictures that match the pattern to the output of a judging command.
async fn add_images(run: &mut Run, pattern: &str, seen: &mut Observation) -> Result<(), Stop> {
    let glob = GlobCall {
        pattern: pattern.to_owned(),
        path: ".".to_owned(),
        hidden: true,
    };
    let found = run.call(&glob.to_call()).await?;
    if found.is_error {
        let words = format!("\n[no picture: {}]", found.text.text);
        seen.text.text.push_str(&words);
        return Ok(());
    }
    let paths = GlobCall::value_of(&found).unwrap_or_default().paths;
    for path in paths.into_iter().take(MAX_IMAGES) {
        let shown = run.call(&ReadCall::of(&path).to_call()).await?;
        if !shown.is_error && !shown.images.is_empty() {
            seen.text.text.push_str(&format!("\n[picture: {path}]"));
            seen.images.extend(shown.images);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_meant() {
        for (given, meant) in [
            ("cargo test", Some(Judge::Command("cargo test".to_owned()))),
            (
                "https://judge.example/v1",
                Some(Judge::Http("https://judge.example/v1".to_owned())),
            ),
            (
                "mcp:cad__submit_design",
                Some(Judge::Tool("cad__submit_design".to_owned())),
            ),
            ("mcp:", None),
            ("mcp:submit design", None),
            ("http://", None),
            ("  ", None),
        ] {
            assert_eq!(given.parse::<Judge>().ok(), meant, "{given}");
            if let Some(judge) = meant {
                assert_eq!(judge.to_string(), given);
            }
        }
    }

    #[test]
    fn only_plain_words_are_a_verdict() {
        for (said, verdict) in [
            (r#"{"accepted": true, "report": "fine"}"#, Some(true)),
            (r#"{"accepted": false}"#, Some(false)),
            (r#"{"accepted": "true"}"#, None),
            (r#"{"ok": true}"#, None),
            ("accepted", None),
            (r#"{"accepted": false} {"accepted": true}"#, None),
            ("", None),
        ] {
            assert_eq!(said_to_accept(said), verdict, "{said}");
        }
    }

    #[test]
    fn a_claim_is_the_judges_business_and_a_no_is_not() {
        let judge = Judge::Command("true".to_owned());
        for (arguments, heard) in [
            (json!({"reached": true}), true),
            (json!({}), true),
            (json!("{\"reached\": true}"), true),
            (json!({"reached": false}), false),
            (json!("{\"reached\": false}"), false),
        ] {
            let call = ToolCall::new(FINISH, arguments.clone());
            assert_eq!(judge.hears(&call), heard, "{arguments}");
        }
    }
}
