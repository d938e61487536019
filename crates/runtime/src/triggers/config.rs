//! Triggers as they are described.

use std::{path::PathBuf, time::Duration};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use jiff::tz::TimeZone;

use super::{cron::CronSchedule, signature::HookSecret, when::Condition};
use crate::queue::AgentUse;

/// Maximum number of triggers of an agent.
pub const MAX_TRIGGERS: usize = 32;

/// Default number of useless wakes in a row after which a trigger is paused.
pub const PAUSE_AFTER: u32 = 5;

/// Default time without a change after which changed files are examined.
pub const SETTLE: Duration = Duration::from_secs(1);

/// Maximum number of patterns of a trigger for files.
pub const MAX_GLOBS: usize = 64;

/// A trigger of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerConfig {
    /// The name, unique among the agent's triggers. The rules are those of agents' names.
    pub name: String,
    /// The cause of the trigger's firings.
    pub source: TriggerSource,
    /// Conditions, all of which must hold.
    pub when: Vec<Condition>,
    /// Maximum number of firings on a day (UTC).
    pub wakes: Option<u64>,
    /// Number of useless wakes in a row after which it is paused.
    pub pause_after: u32,
}

impl TriggerConfig {
    /// Creates a trigger without conditions and limits.
    pub fn new(name: impl Into<String>, source: TriggerSource) -> Self {
        Self {
            name: name.into(),
            source,
            when: Vec::new(),
            wakes: None,
            pause_after: PAUSE_AFTER,
        }
    }
}

/// The cause of a trigger's firings.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerSource {
    /// Instants of a schedule.
    Cron {
        schedule: CronSchedule,
        /// The zone of the schedule's local time.
        zone: TimeZone,
        /// Handling of instants that passed while no server ran.
        missed: MissedPolicy,
    },
    /// Changes of files below a folder.
    Files {
        folder: PathBuf,
        /// The files, by their paths from the folder; all files if empty.
        globs: FileGlobs,
        /// Time without a change after which the files are examined.
        settle: Duration,
        /// Whether changes count that happened while no server ran.
        missed: bool,
    },
    /// Texts that come to the clipboard.
    Clipboard,
    /// Signed requests to `/hooks/AGENT/TRIGGER`. Without a secret they are all refused.
    Webhook { secret: Option<HookSecret> },
}

impl TriggerSource {
    /// Returns the kind as one word.
    pub fn kind(&self) -> &'static str {
        match self {
            TriggerSource::Cron { .. } => "cron",
            TriggerSource::Files { .. } => "files",
            TriggerSource::Clipboard => "clipboard",
            TriggerSource::Webhook { .. } => "webhook",
        }
    }
}

/// Handling of instants that passed while no server ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissedPolicy {
    /// Missed instants are left out.
    #[default]
    Skip,
    /// The last missed instant counts.
    Once,
    /// All missed instants count, at most the last 100.
    All,
}

/// Patterns of paths.
#[derive(Debug, Clone, Default)]
pub struct FileGlobs {
    patterns: Vec<String>,
    set: GlobSet,
}

impl PartialEq for FileGlobs {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl FileGlobs {
    /// Parses patterns. One without a slash is that of a name in any folder; `*` stops at slashes,
    /// `**` does not.
    ///
    /// # Errors
    /// A pattern is invalid: its number and the reason.
    pub fn new(patterns: Vec<String>) -> Result<Self, (usize, globset::Error)> {
        let mut set = GlobSetBuilder::new();
        for (number, pattern) in patterns.iter().enumerate() {
            let whole = match pattern.strip_prefix('/') {
                Some(rest) => rest.to_owned(),
                None if pattern.contains('/') => pattern.clone(),
                None => format!("**/{pattern}"),
            };
            let glob = GlobBuilder::new(&whole).literal_separator(true).build();
            set.add(glob.map_err(|error| (number, error))?);
        }
        let set = set.build().map_err(|error| (0, error))?;
        Ok(Self { patterns, set })
    }

    pub(super) fn patterns(&self) -> &[String] {
        &self.patterns
    }

    pub(super) fn has(&self, path: &std::path::Path) -> bool {
        self.patterns.is_empty() || self.set.is_match(path)
    }
}

/// Limits of the resources that an agent's runs may use on one day (UTC).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayBudget {
    /// Number of runs.
    pub runs: Option<u64>,
    /// Number of tokens.
    pub tokens: Option<u64>,
    /// Cost in millionths of a US dollar.
    pub cost_microdollars: Option<u64>,
}

impl DayBudget {
    /// Whether one of the limits is reached.
    pub fn is_used_up(&self, used: AgentUse) -> bool {
        let is_over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        is_over(self.runs, used.runs)
            || is_over(self.tokens, used.tokens)
            || is_over(self.cost_microdollars, used.cost_microdollars)
    }

    pub(super) fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}
