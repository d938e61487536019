//! The tools that clients see, and what each takes.

use std::sync::Arc;

use gyrus_contract::{Arguments, schema_of};
use gyrus_server::{Requester, TokenScope};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::report::{RunReport, RunReports};

/// Maximum length of a text from a client, in bytes.
pub(crate) const MAX_TEXT: usize = 256 << 10;

/// Maximum time that a call waits, in seconds.
pub(crate) const MAX_WAIT: u64 = 3_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedTool {
    Run,
    Follow,
    Runs,
    Steer,
    Resume,
    Stop,
    Diff,
    Skills,
    Recall,
    Answer,
}

/// Arguments of `run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunArguments {
    /// The aim, in whole sentences, with everything that must be known for it.
    #[schemars(length(min = 1))]
    pub(crate) goal: String,
    /// Absolute path of the folder to work in. Its files can be read and changed.
    pub(crate) workdir: Option<String>,
    /// Whether it gets a browser.
    #[serde(default)]
    pub(crate) browser: bool,
    /// The way it thinks: `auto` (the default), `react`, `plan`, `engineer`, `changeset`, `single-shot`,
    /// `chain-of-thought` or `reactive`.
    #[serde(rename = "loop")]
    pub(crate) cognitive_loop: Option<String>,
    /// An earlier run that this client started: go on with what it knows.
    pub(crate) continues: Option<String>,
    /// Seconds to wait for its end; 0 returns at once. Then use `follow`.
    #[schemars(range(max = MAX_WAIT))]
    pub(crate) wait_seconds: Option<u64>,
}

/// Arguments of `follow`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowArguments {
    /// The run: its id, or the end of it.
    pub(crate) run: String,
    /// The value `next` of the report before; what came until then is left out.
    #[serde(default)]
    pub(crate) after: u64,
    /// Seconds to wait for its end or a question; 0 returns at once.
    #[schemars(range(max = MAX_WAIT))]
    pub(crate) wait_seconds: Option<u64>,
}

/// Arguments of `resume`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeArguments {
    /// The run: its id, or the end of it.
    pub(crate) run: String,
    /// Seconds to wait for its end or a question; 0 returns at once.
    #[schemars(range(max = MAX_WAIT))]
    pub(crate) wait_seconds: Option<u64>,
}

/// Arguments of `runs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsArguments {
    /// The most runs that are listed, newest first.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) limit: Option<usize>,
}

/// Arguments of `steer`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SteerArguments {
    /// The run: its id, or the end of it.
    pub(crate) run: String,
    /// Words to be added to its goal, for good.
    #[schemars(length(min = 1))]
    pub(crate) text: String,
}

/// Arguments of `stop`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopArguments {
    /// The run: its id, or the end of it.
    pub(crate) run: String,
}

/// Arguments of `diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffArguments {
    /// The run: its id, or the end of it.
    pub(crate) run: String,
}

/// Arguments of `recall`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallArguments {
    /// The words to search for.
    #[schemars(length(min = 1))]
    pub(crate) words: String,
}

/// Arguments of `skills`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillsArguments {}

/// Arguments of `answer`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerArguments {
    /// The run that asks, as the report names it.
    pub(crate) run: String,
    /// The id of the question, as the report names it.
    pub(crate) question: String,
    /// The digest of the card, as the report names it: an answer to anything else does not count.
    pub(crate) digest: String,
    /// Yes or no.
    pub(crate) approve: bool,
    /// The answer to a question for words, or the reason of a no.
    pub(crate) words: Option<String>,
}

/// Names the tool of a type of arguments, with an example for whoever gives wrong ones.
macro_rules! arguments_of {
    ($($type:ty: $tool:literal, $example:literal;)*) => {
        $(impl Arguments for $type {
            const TOOL: &'static str = $tool;
            const EXAMPLE: &'static str = $example;
        })*
    };
}

arguments_of! {
    RunArguments: "run", r#"{"goal": "Count the lines of notes.txt.", "workdir": "/home/me/notes"}"#;
    FollowArguments: "follow", r#"{"run": "9407994e", "after": 12, "wait_seconds": 60}"#;
    ResumeArguments: "resume", r#"{"run": "9407994e"}"#;
    RunsArguments: "runs", r#"{"limit": 10}"#;
    SteerArguments: "steer", r#"{"run": "9407994e", "text": "Leave the headings out."}"#;
    StopArguments: "stop", r#"{"run": "9407994e"}"#;
    DiffArguments: "diff", r#"{"run": "9407994e"}"#;
    SkillsArguments: "skills", "{}";
    RecallArguments: "recall", r#"{"words": "supplier invoice"}"#;
    AnswerArguments: "answer", r#"{"run": "…", "question": "1.3", "digest": "…", "approve": false}"#;
}

const ALL: [ServedTool; 10] = [
    ServedTool::Run,
    ServedTool::Follow,
    ServedTool::Runs,
    ServedTool::Steer,
    ServedTool::Resume,
    ServedTool::Stop,
    ServedTool::Diff,
    ServedTool::Skills,
    ServedTool::Recall,
    ServedTool::Answer,
];

impl ServedTool {
    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns the tools of a caller. `questions` says whether the client's own person is shown
    /// questions.
    pub(crate) fn of(caller: &Requester, questions: QuestionsGo) -> Vec<Tool> {
        let has = |tool: &ServedTool| {
            let is_for_models = questions == QuestionsGo::ToModel || *tool != ServedTool::Answer;
            is_for_models && caller.may(tool.scope())
        };
        ALL.into_iter()
            .filter(has)
            .map(ServedTool::definition)
            .collect()
    }

    pub(crate) fn scope(self) -> TokenScope {
        match self {
            ServedTool::Follow
            | ServedTool::Runs
            | ServedTool::Diff
            | ServedTool::Skills
            | ServedTool::Recall => TokenScope::Read,
            ServedTool::Run | ServedTool::Steer | ServedTool::Resume | ServedTool::Stop => {
                TokenScope::Act
            }
            ServedTool::Answer => TokenScope::Approve,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ServedTool::Run => RunArguments::TOOL,
            ServedTool::Follow => FollowArguments::TOOL,
            ServedTool::Runs => RunsArguments::TOOL,
            ServedTool::Steer => SteerArguments::TOOL,
            ServedTool::Resume => ResumeArguments::TOOL,
            ServedTool::Stop => StopArguments::TOOL,
            ServedTool::Diff => DiffArguments::TOOL,
            ServedTool::Skills => SkillsArguments::TOOL,
            ServedTool::Recall => RecallArguments::TOOL,
            ServedTool::Answer => AnswerArguments::TOOL,
        }
    }

    fn words(self) -> &'static str {
        match self {
            ServedTool::Run => {
                "Give a goal to an agent of its own, which works in a folder with files, commands \
                 and, if you say so, a browser. Everything it does passes a gate and is recorded. \
                 Returns its report: the answer, or that it is still at work or waits for a person; \
                 then use `follow`. It can take minutes."
            }
            ServedTool::Follow => {
                "Wait for news of a run: its end, a question to a person, or the time that you name. \
                 Returns what it did since `after`."
            }
            ServedTool::Runs => "List runs, newest first, with their states.",
            ServedTool::Steer => "Add something to the goal of a run that is not over.",
            ServedTool::Resume => {
                "Have a run go on that was interrupted, stopped, or came to a limit."
            }
            ServedTool::Stop => {
                "Cut off what a run does and park it. What it did stays; `resume` goes on with it."
            }
            ServedTool::Diff => "Show what a run changed in its folder, as a patch.",
            ServedTool::Skills => {
                "List the skills: how kinds of tasks are done here. Only a person's own goals load \
                 them; a run that you begin follows none."
            }
            ServedTool::Recall => "Search the person's notes and those of earlier runs for words.",
            ServedTool::Answer => {
                "Answer a question of a run in your person's name. Show them the whole card first, \
                 and answer as they say."
            }
        }
    }

    fn definition(self) -> Tool {
        let (input, output) = match self {
            ServedTool::Run => (schema::<RunArguments>(), Some(schema::<RunReport>())),
            // These return the same; it is told once, because all of this is part of every prompt.
            ServedTool::Follow => (schema::<FollowArguments>(), None),
            ServedTool::Resume => (schema::<ResumeArguments>(), None),
            ServedTool::Runs => (schema::<RunsArguments>(), Some(schema::<RunReports>())),
            ServedTool::Steer => (schema::<SteerArguments>(), None),
            ServedTool::Stop => (schema::<StopArguments>(), None),
            ServedTool::Diff => (schema::<DiffArguments>(), None),
            ServedTool::Skills => (schema::<SkillsArguments>(), None),
            ServedTool::Recall => (schema::<RecallArguments>(), None),
            ServedTool::Answer => (schema::<AnswerArguments>(), None),
        };
        let reads = self.scope() == TokenScope::Read;
        let mut hints = ToolAnnotations::new().read_only(reads);
        if !reads {
            hints = hints.destructive(self == ServedTool::Run || self == ServedTool::Answer);
        }
        let mut tool = Tool::new(self.name(), self.words(), input).annotate(hints);
        tool.output_schema = output;
        tool
    }
}

/// The place where questions of runs go that a client may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionsGo {
    /// To the person at the client, which can show questions.
    ToPerson,
    /// To the client's model, by a tool.
    ToModel,
}

/// Reads the arguments of a tool.
///
/// # Errors
/// A message if the arguments do not fit.
pub(crate) fn arguments<T: Arguments>(given: Option<JsonObject>) -> Result<T, String> {
    let given = Value::Object(given.unwrap_or_default());
    T::parse(&given).map_err(|error| error.to_string())
}

fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    match schema_of::<T>() {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
