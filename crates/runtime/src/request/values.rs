//! Values of flags.

use std::{fmt, str::FromStr};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gyrus_contract::{Microdollars, Mode, ModeError};
use gyrus_text::parse_duration;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::Error as ValueError},
};
use serde_json::Value;

/// Words for the evidence that a result can be required to have.
pub(super) const STRENGTHS: [&str; 3] = ["claimed", "checked", "verified"];

/// Words for the things that a person reviews, and for none of them.
pub(super) const REVIEWS: [&str; 5] = ["plan", "context", "proposal", "mandate", "none"];

pub(super) fn word<T, const N: usize>(words: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let words = PossibleValuesParser::new(words);
    words.try_map(|word| T::deserialize(word.into_deserializer()).map_err(|it: ValueError| it))
}

/// Reads a number of which there must be one at least.
pub(super) fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("it is not a whole number".to_owned()),
    }
}

pub(super) fn text_of_file(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    match text.trim() {
        "" => Err("it is empty".into()),
        text => Ok(text.into()),
    }
}

/// Whether commands of runs are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// Commands run in a sandbox, or need approval where the sandbox is incomplete.
    #[serde(rename = "on", alias = "workspace-write")]
    Sandboxed,
    /// Commands run with the rights of this process, after a question.
    #[serde(rename = "off", alias = "danger-full-access", alias = "none")]
    Unsandboxed,
}

/// Reads whether commands are confined, in the words of other tools too.
pub fn confinement() -> impl TypedValueParser<Value = Confinement> {
    let on = PossibleValue::new("on").alias("workspace-write");
    let off = PossibleValue::new("off").aliases(["danger-full-access", "none"]);
    PossibleValuesParser::new([on, off]).map(|word| match &*word {
        "on" | "workspace-write" => Confinement::Sandboxed,
        _ => Confinement::Unsandboxed,
    })
}

/// Maximum cost of a run, written in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "String")]
pub struct CostLimit(pub Microdollars);

impl FromStr for CostLimit {
    type Err = String;

    /// Reads US dollars like `0.25` or `$3`, to the sixth decimal; nothing is no limit.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse()? {
            Microdollars(0) => Err(format!("`{text}` is not an amount above 0")),
            cost => Ok(Self(cost)),
        }
    }
}

impl TryFrom<Value> for CostLimit {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => text.parse(),
            number => number.to_string().parse(),
        }
    }
}

impl From<CostLimit> for String {
    fn from(limit: CostLimit) -> Self {
        limit.to_string()
    }
}

impl fmt::Display for CostLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Microdollars(micros) = self.0;
        write!(f, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

/// Maximum time of a run in milliseconds, written as `90s`, `10m` or `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(pub u64);

impl FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = parse_duration(text)?;
        if duration.is_zero() {
            return Err("nothing can be done in no time".to_owned());
        }
        let milliseconds = u64::try_from(duration.as_millis());
        milliseconds
            .map(Self)
            .map_err(|_| format!("`{text}` is too long"))
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// Values of `--approve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approve {
    /// This mode.
    Mode(Mode),
    /// Alias in the words of other tools: mode `auto` without a sandbox.
    Bypass,
}

impl FromStr for Approve {
    type Err = ModeError;
    fn from_str(word: &str) -> Result<Self, ModeError> {
        match word {
            "bypass" | "bypassPermissions" | "yolo" => Ok(Approve::Bypass),
            word => word.parse().map(Approve::Mode),
        }
    }
}

impl fmt::Display for Approve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Approve::Mode(mode) => mode.fmt(f),
            Approve::Bypass => f.write_str("bypass"),
        }
    }
}

impl Approve {
    /// Returns the mode.
    pub fn mode(self) -> Mode {
        match self {
            Approve::Mode(mode) => mode,
            Approve::Bypass => Mode::Auto,
        }
    }

    /// Whether commands are confined unless another setting decides it.
    pub fn confinement(self) -> Confinement {
        match self {
            Approve::Mode(_) => Confinement::Sandboxed,
            Approve::Bypass => Confinement::Unsandboxed,
        }
    }
}

/// The reason why no run can be started by a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}{}", if .hint.is_some() { "; " } else { "" }, .hint.as_deref().unwrap_or_default())]
pub struct RefusedRequest {
    /// The reason as one sentence.
    pub message: String,
    /// Advice on the next step.
    pub hint: Option<String>,
}

gyrus_contract::stored_as_text!(TimeLimit, Approve);
