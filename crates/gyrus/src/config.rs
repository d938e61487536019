//! The configuration file: what flags and the environment leave open.
//!
//! Every key is typed and documented here; a mistake names the file, the line and what was
//! probably meant. Nothing in it can make a run less careful than a flag could.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_contract::{Mode, OnAsk, Purpose, ThinkingEffort};
use gyrus_kernel::QUESTIONS_LAST;
use gyrus_mcp::ServerSection;
use gyrus_models::RoutingPolicy;
use gyrus_runtime::request::{LimitFlags, RunOptions, options};
use gyrus_text::file_mistake;
use gyrus_tools::SearchProvider;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};

use crate::{
    failure::Failure, keys::KeySource, sandbox_section::SandboxSection,
    telemetry::TelemetrySection, time::milliseconds,
};

/// The configuration of a person: the content of `config.toml`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Config {
    /// Default of `--model`: one name, or a list of them.
    #[serde(deserialize_with = "names")]
    pub(crate) model: Vec<String>,
    /// Models for a second look at calls that reading does not explain, named as in `model`; none,
    /// if it is absent.
    #[serde(deserialize_with = "names")]
    pub(crate) assess: Vec<String>,
    /// Criterion that decides among models of the same strength: order, cost, latency or
    /// local-only.
    pub(crate) policy: RoutingPolicy,
    /// Default of `--effort`: one word, or one for each purpose.
    pub(crate) effort: EffortSection,
    /// Sources of the values of key variables that the environment does not set.
    pub(crate) keys: BTreeMap<String, KeySource>,
    /// Default of `--loop`.
    #[serde(rename = "loop")]
    pub(crate) cognitive_loop: Option<String>,
    /// Default of `--approve`. `auto` cannot be configured: it needs a folder that may be lost.
    #[serde(deserialize_with = "mode")]
    pub(crate) approve: Option<Mode>,
    /// Default of `--on-ask`.
    pub(crate) on_ask: Option<OnAsk>,
    /// Default of `--reflect`.
    pub(crate) reflect: bool,
    pub(crate) limits: LimitFlags,
    /// Settings of questions to the person.
    pub(crate) approvals: ApprovalsSection,
    /// Settings of runs that a judge decides about.
    pub(crate) engineer: EngineerSection,
    /// Destination of traces, metrics and logs.
    pub(crate) telemetry: TelemetrySection,
    /// Addresses and commands that a server informs of events, by name.
    pub(crate) hooks: BTreeMap<String, HookSection>,
    pub(crate) serve: ServeSection,
    pub(crate) chat: ChatsSection,
    /// Settings of the memory.
    pub(crate) memory: MemorySection,
    /// Additions of variables, ports and folders to the sandbox of runs.
    pub(crate) sandbox: SandboxSection,
    /// Names of the language servers that may be started; all, if it is absent.
    pub(crate) language_servers: Option<Vec<String>>,
    /// Terms of the sub-runs that models may start.
    pub(crate) delegate: DelegateSection,
    /// MCP servers whose tools runs have, by name.
    pub(crate) mcp: BTreeMap<String, ServerSection>,
    /// The service that runs search the web by; none by default.
    pub(crate) web_search: Option<WebSearchSection>,
    /// The place of newer versions; none by default.
    pub(crate) update: UpdateSection,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebSearchSection {
    pub(crate) provider: SearchProvider,
    /// The address of the server, instead of the provider's own if there is one.
    pub(crate) url: Option<String>,
    /// The variable with the key, instead of the provider's usual one.
    key: Option<String>,
}

impl WebSearchSection {
    /// Returns the variable with the key.
    pub(crate) fn variable(&self) -> &str {
        self.key.as_deref().unwrap_or(self.provider.variable())
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UpdateSection {
    /// The address of the folder with the packages and their checksums.
    pub(crate) url: Option<String>,
    /// The public key that signs the checksums, as OpenSSH writes it.
    pub(crate) key: Option<String>,
}

/// The effort of thinking: one word, or a section `[effort]` with one for each purpose.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum EffortSection {
    Every(ThinkingEffort),
    ByPurpose(BTreeMap<Purpose, ThinkingEffort>),
}

impl Default for EffortSection {
    fn default() -> Self {
        Self::ByPurpose(BTreeMap::new())
    }
}

impl EffortSection {
    /// Returns the efforts by purpose; what the person said for this run counts for all.
    pub(crate) fn by_purpose(
        &self,
        said: Option<ThinkingEffort>,
    ) -> BTreeMap<Purpose, ThinkingEffort> {
        match (said, self) {
            (None, Self::ByPurpose(efforts)) => efforts.clone(),
            (Some(effort), _) | (None, &Self::Every(effort)) => {
                Purpose::ALL.map(|purpose| (purpose, effort)).into()
            }
        }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct DelegateSection {
    /// Whether models may start sub-runs; unless it is said, they are offered it where a goal asks for
    /// it or is large.
    pub(crate) enabled: Option<bool>,
    /// Maximum number of sub-runs that work at the same time.
    pub(crate) at_once: usize,
    /// Maximum number of runs below a run that a person began.
    pub(crate) runs: u32,
    /// Levels of sub-runs: with 1, sub-runs start none.
    pub(crate) depth: u32,
    /// Models for sub-runs beside the run's own, named as in `model`.
    #[serde(deserialize_with = "names")]
    pub(crate) models: Vec<String>,
}

impl Default for DelegateSection {
    fn default() -> Self {
        Self {
            enabled: None,
            at_once: 4,
            runs: 16,
            depth: 1,
            models: Vec::new(),
        }
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ApprovalsSection {
    /// Time for which an answer to a question counts, in milliseconds.
    #[serde(deserialize_with = "milliseconds")]
    expires: Option<u64>,
    /// A command line that is run when a run waits for the person.
    pub(crate) notify: Option<String>,
}

impl ApprovalsSection {
    pub(crate) fn expires(&self) -> Duration {
        self.expires.map_or(QUESTIONS_LAST, Duration::from_millis)
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServeSection {
    /// Other origins whose pages may show runs and answer their questions, with a token.
    pub(crate) origins: Vec<String>,
}

impl ServeSection {
    /// Returns the origins as browsers write them.
    ///
    /// # Errors
    /// A message about an entry that is not an origin.
    pub(crate) fn origins(&self) -> Result<BTreeSet<String>, String> {
        let origins = self.origins.iter().map(|given| {
            let url = url::Url::parse(given).ok();
            let origin = url
                .map(|url| url.origin())
                .filter(|origin| origin.is_tuple());
            let origin = origin.map(|origin| origin.ascii_serialization());
            let is_bare =
                |origin: &String| given.trim_end_matches('/').eq_ignore_ascii_case(origin);
            origin.filter(is_bare).ok_or_else(|| {
                format!("`{given}` in `origins` is not an origin like https://wiki.example")
            })
        });
        origins.collect()
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct MemorySection {
    /// The folder of notes, absolute or below `~/`.
    pub(crate) vault: Option<PathBuf>,
    /// Whether runs get lessons of earlier ones (default: yes).
    pub(crate) lessons: Option<bool>,
    /// Whether the runs of a person are noted when they end. Default: true.
    pub(crate) note_runs: Option<bool>,
    /// The server for finding notes by their meaning, beside their words. Notes are sent to it.
    pub(crate) embeddings: Option<ModelServerSection>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookSection {
    /// Patterns of the topics of which the hook is informed.
    pub(crate) events: Vec<String>,
    pub(crate) url: Option<String>,
    /// The variable with the secret by which the deliveries to `url` are signed.
    pub(crate) secret: Option<String>,
    /// A command line that gets each event on its standard input.
    pub(crate) command: Option<String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChatsSection {
    /// A bot of Telegram.
    pub(crate) telegram: Option<ChatSection>,
}

/// The id of a group: a number or a text, as the messenger has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the id of a group: a number, or a text"
)]
pub(crate) enum GroupId {
    Number(i64),
    Text(String),
}

impl std::fmt::Display for GroupId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GroupId::Number(number) => number.fmt(f),
            GroupId::Text(text) => text.fmt(f),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatSection {
    /// The variable with the token of the account.
    pub(crate) token: String,
    /// The folder in which the chat's runs work, absolute or below `~/`.
    pub(crate) workdir: PathBuf,
    /// Options of `gyrus run`, without dashes.
    #[serde(default, deserialize_with = "options::deserialize")]
    pub(crate) options: RunOptions,
    /// The groups that may be used, by their ids.
    #[serde(default)]
    pub(crate) groups: Vec<GroupId>,
    pub(crate) transcribe: Option<ModelServerSection>,
    /// The address of the messenger's server, instead of the default one if there is one.
    pub(crate) url: Option<String>,
}

/// A server with the API of OpenAI, for other purposes than the models of runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelServerSection {
    /// The address of the server's API, without `/audio/transcriptions` or `/embeddings`.
    pub(crate) url: String,
    pub(crate) model: String,
    /// The environment variable with the server's key, if a key is needed.
    pub(crate) key: Option<String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EngineerSection {
    /// Default of `--docs`.
    pub(crate) docs: Option<String>,
}

impl Config {
    /// Reads the configuration file; a missing file is read as an empty one.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        match gyrus_process::read_regular_text(path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => {
                Err(Failure::usage(format!("{} cannot be read", path.display())).because(&error))
            }
        }
    }

    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        read_toml(path, text)
    }
}

/// Parses a file that a person wrote: a mistake is reported with its line and, for an unknown word,
/// the nearest known one.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Failure> {
    toml::from_str(text).map_err(|error| {
        let mistake = file_mistake(text, error.span(), error.message());
        let failure = Failure::usage(format!(
            "{}, line {}: {}",
            path.display(),
            mistake.line,
            mistake.message
        ));
        match mistake.nearest {
            Some(known) => failure.hint(format!("did you mean `{known}`?")),
            None => failure,
        }
    })
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a model is a name, or a list of names")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(name) => vec![name],
        OneOrMore::More(names) => names,
    })
}

fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Mode>, D::Error> {
    let mode: Mode = String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)?;
    if mode == Mode::Auto {
        return Err(D::Error::custom(
            "`auto` cannot be configured; give --approve auto with a --workdir that may be lost",
        ));
    }
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Limits, Microdollars};
    use gyrus_runtime::request::CostLimit;

    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("config.toml"), text).map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_key() {
        let config = parse(
            "model = \"script:a.toml\"\nloop = \"react\"\napprove = \"acceptEdits\"\n\
             on-ask = \"park\"\n[limits]\nsteps = 5\ntokens = 9\ncost = 0.5\ntime = \"10m\"\n",
        )
        .unwrap();
        assert_eq!(config.model, ["script:a.toml"]);
        assert_eq!(config.approve, Some(Mode::Edits));
        assert_eq!(config.on_ask, Some(OnAsk::Park));
        let limits = Limits {
            steps: Some(5),
            tokens: Some(9),
            cost: Some(Microdollars(500_000)),
            time_ms: Some(600_000),
        };
        assert_eq!(config.limits.limits(), limits);
        let config = parse(
            "model = [\"anthropic\", \"ollama\"]\npolicy = \"local-only\"\n\
             [keys]\nA_KEY = { command = \"pass show a\" }\nB_KEY = { file = \"/k\" }\n",
        )
        .unwrap();
        assert_eq!(config.model, ["anthropic", "ollama"]);
        assert_eq!(config.policy, RoutingPolicy::LocalOnly);
        assert_eq!(config.keys.len(), 2);
        assert_eq!(config.approvals.expires(), QUESTIONS_LAST);
        let config = parse("[approvals]\nexpires = \"90m\"\nnotify = \"tell me\"\n").unwrap();
        assert_eq!(config.approvals.expires(), Duration::from_secs(5_400));
        assert_eq!(config.approvals.notify.as_deref(), Some("tell me"));
        assert_eq!(parse("").unwrap(), Config::default());
    }

    #[test]
    fn mistakes_name_line_and_remedy() {
        for (text, expected) in [
            ("modl = \"x\"", "line 1: unknown key `modl`"),
            ("modl = \"x\"", "did you mean `model`?"),
            ("\n[limits]\nstep = 3", "line 3: unknown key `step`"),
            ("on-ask = \"prak\"", "did you mean `park`?"),
            ("approve = \"auto\"", "cannot be configured"),
            ("approve = \"yes\"", "`yes` is not a mode"),
            ("[limits]\ncost = -1", "`-1` is not an amount"),
            ("[limits]\ntime = \"10\"", "`10` is not a duration"),
            ("[approvals]\nexpires = \"never\"", "is not a duration"),
            ("[approvals]\nnotfy = \"x\"", "did you mean `notify`?"),
            ("model = ", "line 1"),
            ("model = 3", "a name, or a list"),
            ("assess = true", "a name, or a list"),
            ("policy = \"locl-only\"", "did you mean `local-only`?"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn dollars() {
        for (text, micro) in [
            ("0.25", Some(250_000)),
            ("$3", Some(3_000_000)),
            (".5", Some(500_000)),
            ("0.0000001", None),
            ("-1", None),
            ("1e3", None),
            ("", None),
            (".", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(
                text.parse::<CostLimit>().ok().map(|cost| cost.0.0),
                micro,
                "{text}"
            );
        }
    }
}
