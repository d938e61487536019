//! The calls that parts of gyrus make themselves: the arguments of the tools, and the values that
//! they return.
//!
//! A loop makes a call from the type that the tool parses, and reads the value that the tool
//! wrote, so neither side knows the other's JSON or words. Tools that only models call define
//! their arguments beside their code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{Arguments, Digest, Observation, ToolCall};

/// The tool with which a model claims that the goal is reached.
pub const FINISH: &str = "finish";

/// Default time limit of a command, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 120;

/// Maximum time limit of a command that can be asked for, in seconds. The person's own may be lower.
pub const MAX_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;

/// Maximum number of files in one changeset.
pub const MAX_CHANGES: usize = 20_000;

/// The arguments of a tool that parts of gyrus call themselves.
pub trait TypedCall: Arguments + Serialize {
    /// The value that the tool returns.
    type Value: DeserializeOwned;

    /// Returns the call with these arguments.
    fn to_call(&self) -> ToolCall {
        let arguments = serde_json::to_value(self).expect("arguments are plain data");
        ToolCall::new(Self::TOOL, arguments)
    }

    /// Returns the value of a result; `None` if it has none, as in old journals and in errors.
    fn value_of(seen: &Observation) -> Option<Self::Value> {
        Self::Value::deserialize(seen.value.as_ref()?).ok()
    }
}

/// Implements [`Arguments`] and [`TypedCall`] for arguments: the name of the tool, the type of its
/// value, and an example.
macro_rules! typed_calls {
    ($($call:ident = $tool:literal -> $value:ty, $example:literal;)*) => {$(
        impl Arguments for $call {
            const TOOL: &'static str = $tool;
            const EXAMPLE: &'static str = $example;
        }

        impl TypedCall for $call {
            type Value = $value;
        }
    )*};
}

typed_calls! {
    ShellCall = "shell" -> CommandResult,
        r#"{"command": "cargo test", "timeout_seconds": 300}"#;
    ReadCall = "read" -> Value,
        r#"{"path": "src/main.rs", "offset_line": 1, "limit_lines": 200}"#;
    GlobCall = "glob" -> PathList,
        r#"{"pattern": "src/**/*.rs", "path": "."}"#;
    SearchCall = "search" -> SearchResult,
        r#"{"pattern": "fn main\\b", "path": ".", "glob": "*.rs", "context": 2}"#;
    EvaluateCall = "evaluate" -> Value,
        r#"{"expression": "document.title"}"#;
    JudgeCall = "judge" -> JudgeRuling,
        r#"{"url": "https://judge.example/", "submission": {}}"#;
    RankFilesCall = "rank_files" -> RankedFiles,
        r#"{"query": "retry failed uploads", "path": ".", "max_tokens": 20000}"#;
    ReadJournalCall = "read_journal" -> Value,
        r#"{"query": "retry failed uploads"}"#;
    FindToolsCall = "find_tools" -> FoundTools,
        r#"{"query": "create an issue"}"#;
    ProposeChangesetCall = "propose_changeset" -> crate::Proposal,
        r#"{"summary": "Retry uploads that time out", "changes": [{"path": "src/upload.rs", "reason": "try three times", "edits": [{"old": "send(&file)", "new": "retry(3, || send(&file))"}]}, {"path": "src/retry.rs", "reason": "new helper", "content": "pub fn retry() {}\n"}, {"path": "src/old.rs", "reason": "unused now", "delete": true}]}"#;
    ApplyChangesetCall = "apply_changeset" -> AppliedChangeset,
        r#"{"changes": [{"path": "src/new.rs", "content": "fn new() {}\n"}, {"path": "src/old.rs", "before": "00112233445566778899aabbccddeeff"}], "verify": "cargo test"}"#;
}

/// Returns the folder that a path means which is left out.
fn here() -> String {
    ".".to_owned()
}

/// Whether a value is the default of its type, which is left out where it is stored.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Runs a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellCall {
    /// The command line; for a process, a line that it reads.
    pub command: String,
    /// Default: 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<u64>,
    /// It goes on as a process.
    #[serde(default, skip_serializing_if = "is_default")]
    pub background: bool,
    /// The process that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Output to wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Kills it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub end: bool,
}

/// The value of a command that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// Its standard output and error in the order written. Of a long one the middle is left out.
    pub text: String,
    /// The exit code; absent if the command was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Number of bytes that are left out of `text`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub omitted_bytes: u64,
}

/// Reads a text file or a PDF with line numbers, shows a picture, or lists a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadCall {
    /// The file or folder.
    pub path: String,
    /// The first line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub offset_line: Option<u64>,
    /// Default: 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = Self::MAX_LINES))]
    pub limit_lines: Option<u64>,
    /// Byte of a long line to go on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub column: Option<u64>,
}

impl ReadCall {
    /// Maximum and default number of lines of one call.
    pub const MAX_LINES: u64 = 2_000;

    /// Reads the file at `path` from its beginning.
    pub fn of(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

/// Finds files by a pattern of their path, newest first; ignored files are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobCall {
    /// Only `**` crosses `/`; without a `/` it means names at any depth.
    pub pattern: String,
    /// The folder.
    #[serde(default = "here")]
    pub path: String,
    /// Hidden and ignored files, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden: bool,
}

/// The value of a tool that lists files or folders: those that its text shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathList {
    /// The paths, in the form in which `read` accepts them; folders end with `/`.
    pub paths: Vec<String>,
}

/// The form in which matches are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// The matching lines.
    #[default]
    Lines,
    /// The names of files with a match.
    Files,
    /// The number of matching lines, by file.
    Count,
}

/// Finds lines in files by a regular expression; ignored files are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchCall {
    /// Without look-around.
    pub pattern: String,
    /// The file or folder.
    #[serde(default = "here")]
    pub path: String,
    /// Only files like `*.rs` or `src/**/*.{c,h}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// Default: lines.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: SearchMode,
    /// Case does not count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignore_case: bool,
    /// Lines around each match.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = Self::MAX_CONTEXT))]
    pub context: usize,
    /// Default: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = Self::MAX_MATCHES))]
    pub max_matches: Option<usize>,
    /// Hidden and ignored files, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden: bool,
}

impl SearchCall {
    /// Maximum number of lines of context around a match.
    pub const MAX_CONTEXT: usize = 20;

    /// Maximum number of matching lines, or of files.
    pub const MAX_MATCHES: usize = 1_000;
}

/// The value of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The matches as the tool shows them, without notes about the search.
    pub text: String,
    /// Number of matching lines; in the mode `files`, each file counts once.
    pub lines: u64,
    /// The files with a match.
    pub files: Vec<String>,
}

/// Evaluates a JavaScript expression in the page, for a check that a person typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateCall {
    /// The expression; a promise is awaited.
    pub expression: String,
}

/// Posts a submission to the judge that you named, and reads its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeCall {
    /// The judge's address.
    pub url: String,
    /// The submission to judge.
    pub submission: Map<String, Value>,
}

/// The ruling of a judge: the value of `judge`, and of a server's tool that judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeRuling {
    /// Whether it accepts the work.
    pub accepted: bool,
    #[serde(default, rename = "text", skip_serializing_if = "is_default")]
    pub report: String,
}

/// Ranks the files of a folder by how much they are about a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankFilesCall {
    /// The goal, or words that the files would have.
    pub query: String,
    /// The folder, relative to the workspace; `.` for all of it.
    pub path: String,
    /// Default: 20000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
}

/// The result of a ranking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankedFiles {
    /// The files: the chosen ones first, best first.
    pub files: Vec<RankedFile>,
    /// Number of files that were considered.
    #[serde(default)]
    pub considered: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankedFile {
    /// The path, in the form in which `read` accepts it.
    pub path: String,
    /// The size in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Estimated size in tokens; 0 if unknown.
    #[serde(default)]
    pub tokens: u64,
    /// The reason why it is listed.
    #[serde(default)]
    pub why: WhyRanked,
    /// Whether it fits, together with the other chosen ones.
    #[serde(default)]
    pub chosen: bool,
}

/// The reason why a file is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WhyRanked {
    /// It holds the project's conventions.
    #[serde(rename = "guideline")]
    Guideline,
    /// Its words are those of the goal.
    #[serde(rename = "about the goal")]
    AboutTheGoal,
    /// A person added it to the list.
    #[default]
    #[serde(rename = "added by a person")]
    Added,
}

impl WhyRanked {
    /// Returns the reason as it is shown.
    pub fn words(self) -> &'static str {
        match self {
            Self::Guideline => "guideline",
            Self::AboutTheGoal => "about the goal",
            Self::Added => "added by a person",
        }
    }
}

/// Tells of earlier runs in the same folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadJournalCall {
    /// A few words of what you are about to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Finds tools of the connected servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindToolsCall {
    /// A few words: what the tool should do, and with what.
    pub query: String,
}

/// The value of a search for tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundTools {
    /// Names of the tools that were found, best first. A model is offered them from then on.
    pub tools: Vec<String>,
}

/// Proposes all changes to the project at once, for a person to review; nothing is changed yet.
/// Returns the diff, or everything that is wrong with the proposal. `read` the files first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeChangesetCall {
    /// Summary of what the changes do together, and why.
    pub summary: String,
    /// One for each file, with one of `content`, `edits` and `delete`.
    #[schemars(length(min = 1, max = MAX_CHANGES))]
    pub changes: Vec<ProposedChange>,
}

/// The proposed change of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposedChange {
    /// The file, in the workspace.
    pub path: String,
    /// Reason for the change of this file, for the person who reviews.
    pub reason: String,
    /// The digest of the file that `diff` was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub before: Option<Digest>,
    /// The whole content of a new file, or of one that becomes another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Replacements in a file that exists, made one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub edits: Option<Vec<ProposedEdit>>,
    /// True: the file is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
    /// The hunks of a proposal that a person has cut. Not described to models, because they write
    /// hunks that do not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub diff: Option<String>,
    /// Left out: as the file is, and a new one is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
}

/// A replacement in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposedEdit {
    /// Text to replace, exactly as it stands in the file, without line numbers. It must occur once:
    /// quote enough lines around it.
    pub old: String,
    /// Replacement; empty to delete the text.
    pub new: String,
}

/// Creates, replaces and deletes files of the workspace, all of them or none. Nothing is
/// changed if a file is not as `before` says. With `verify`, the command runs when the files
/// are in place, and everything is taken back if it fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyChangesetCall {
    /// One for each file.
    #[schemars(length(min = 1, max = MAX_CHANGES))]
    pub changes: Vec<WantedChange>,
    /// A command line that must succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
}

/// The change of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedChange {
    /// The file, in the workspace.
    pub path: String,
    /// The digest of the file as it is now; left out for a new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub before: Option<Digest>,
    /// The whole new content. A marker like ⟦secret:NAME⟧ becomes the secret. With neither
    /// `content` nor `diff` the file is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// In place of `content`: hunks of a unified diff, from the first @@ line on, for the file as
    /// `before` says. Each must fit exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Left out: as the file was, and a new one is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
}

/// The value of a changeset that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedChangeset {
    /// The counts in one line.
    pub text: String,
    /// Number of files that were created.
    pub created: usize,
    /// Number of files whose content was replaced.
    pub replaced: usize,
    /// Number of files that were deleted.
    pub deleted: usize,
}
