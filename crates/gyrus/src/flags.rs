//! The meaning of the flags of a run, and flags that commands have beside them.

use std::{collections::BTreeSet, path::PathBuf};

use clap::{Args, ValueEnum};
use gyrus_contract::{OnAsk, Strength};
use gyrus_kernel::ResumeChanges;
use gyrus_loops::{Check, CognitiveConfig, Judge, Review, ThinkingStrategy};
use gyrus_runtime::request::{
    ApprovalFlags, Approve, GivenSchema, LimitFlags, ModelFlags, OnFailure, RunFlags,
    VerificationFlags,
};
use gyrus_surfaces::console::put;
use serde::{
    Deserialize as _,
    de::{IntoDeserializer, value::Error as ValueError},
};

use crate::{
    Gyrus,
    config::Config,
    failure::{Failure, parsed},
    screen,
};

/// Servers of tools beside those of the configuration.
#[derive(Default, Args)]
pub(crate) struct ServerFlags {
    /// Also start the servers of tools of this file: {"mcpServers": {"NAME": {"command": …}}}
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
}

impl ServerFlags {
    /// Returns the configuration, with these servers.
    pub(crate) fn config(&self, gyrus: &Gyrus) -> Result<Config, Failure> {
        let mut config = gyrus.config()?;
        if let Some(file) = &self.mcp_config {
            let unusable = format!("the servers of {} cannot be used", file.display());
            let text = gyrus_process::read_regular_text(file)
                .map_err(|error| Failure::usage(&unusable).because(&error))?;
            let servers = gyrus_mcp::own_servers(&text);
            let wrong = |why| Failure::usage(format!("{unusable}: {why}"));
            config.mcp.extend(servers.map_err(wrong)?);
        }
        Ok(config)
    }
}

pub(crate) fn judge(flags: &RunFlags) -> Result<Option<Judge>, Failure> {
    let judge = flags.judge.as_deref();
    judge.map(|judge| parsed("--judge", judge)).transpose()
}

/// Returns the things that a person reviews of a run with this strategy.
fn reviews(flags: &RunFlags, strategy: ThinkingStrategy) -> Result<BTreeSet<Review>, Failure> {
    if flags.review.is_empty() && strategy == ThinkingStrategy::Changeset {
        return Ok(BTreeSet::from([Review::Context, Review::Proposal]));
    }
    let words = flags.reviews().filter(|word| *word != "none");
    let reviews = words.map(|word| {
        Review::deserialize(IntoDeserializer::<ValueError>::into_deserializer(word))
            .map_err(|error| Failure::usage(format!("invalid value for `--review`: {error}")))
    });
    reviews.collect()
}

/// Adds the flags of a chosen loop to its configuration.
pub(crate) fn apply(flags: &RunFlags, config: &mut CognitiveConfig) -> Result<(), Failure> {
    config.reviews = reviews(flags, config.strategy)?;
    config.replanning = flags.on_failure == Some(OnFailure::Replan);
    config.verify.clone_from(&flags.verify);
    Ok(())
}

/// Adds the verification to how the loop thinks; `on_screen` if the run works on one, `has_screen`
/// if it has one at all.
pub(crate) fn verify(
    flags: &VerificationFlags,
    mut config: CognitiveConfig,
    on_screen: bool,
    has_screen: bool,
) -> Result<CognitiveConfig, Failure> {
    let checks = flags.check.iter().map(|check| parsed("--check", check));
    let checks = checks.collect::<Result<Vec<Check>, Failure>>()?;
    if let Some(check) = checks.iter().find(|check| check.needs_a_screen())
        && !has_screen
    {
        return Err(Failure::usage(format!("the check `{check}` needs a page"))
            .hint("name one with --url, or give the run a browser with --screen browser"));
    }
    match flags.require {
        Some(Strength::Checked)
            if checks.is_empty()
                && config.checks.is_empty()
                && config.judge.is_none()
                && config.verify.is_none() =>
        {
            return Err(Failure::usage("--require checked needs something to check")
                .hint("say what must hold: --check CHECK"));
        }
        Some(Strength::Verified) if !has_screen => {
            return Err(Failure::usage(
                "--require verified needs a screen to look at, and this run has none",
            )
            .hint("--require checked with --check COMMAND works without"));
        }
        Some(_) | None => config.required = flags.require,
    }
    config.looks_again = config
        .required
        .map_or(on_screen, |it| it == Strength::Verified);
    for check in checks {
        if !config.checks.contains(&check) {
            config.checks.push(check);
        }
    }
    let schema = flags.answer_schema.as_ref().map(GivenSchema::schema);
    config.answer_schema = schema.cloned();
    Ok(config)
}

/// Returns the scripts and addresses that the person typed.
pub(crate) fn trusted(flags: &RunFlags) -> Vec<String> {
    let checks = flags.verification.check.iter();
    let scripts =
        checks.filter_map(|check| Some(check.parse::<Check>().ok()?.script()?.to_owned()));
    let judge = flags.judge.as_ref();
    let address = judge.and_then(|judge| Some(judge.parse::<Judge>().ok()?.address()?.to_owned()));
    scripts.chain(address).collect()
}

/// Checks that the flags go together, after the notices and questions that they call for.
pub(crate) fn settle(flags: &RunFlags) -> Result<(), Failure> {
    check(flags)?;
    announce(&flags.approvals)?;
    screen::confirm(&flags.screen)
}

pub(crate) fn check(flags: &RunFlags) -> Result<(), Failure> {
    let broken = flags.contradiction().map(Failure::usage);
    broken.map_or(Ok(()), Err)
}

/// Explains a word of other tools that has another meaning here.
pub(crate) fn announce(flags: &ApprovalFlags) -> Result<(), Failure> {
    if let Some(Approve::Bypass) = flags.approve {
        put(
            "bypass means mode `auto` without a sandbox: what is critical, and all unsandboxed \
             code, is still asked about each time\n",
        )?;
    }
    Ok(())
}

/// Flags for what is shown of a run while it goes on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Append a line of JSON to this file after every step
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the answer to this new file, readable by you alone, as your own terminal shows it: with
    /// the links and codes that the run found for you
    #[arg(long, value_name = "FILE")]
    pub(crate) answer_file: Option<PathBuf>,
    /// Print the journal's entries to standard output, one line of JSON each, and nothing else
    #[arg(long)]
    json: bool,
    /// The same in the words of other tools
    #[arg(long, hide = true, value_name = "FORMAT")]
    output_format: Option<OutputFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

impl OutputFlags {
    pub(crate) fn as_json() -> Self {
        Self {
            json: true,
            ..Self::default()
        }
    }

    /// Whether programs read the output.
    pub(crate) fn json(&self) -> bool {
        self.json
            || self
                .output_format
                .is_some_and(|format| format != OutputFormat::Text)
    }
}

/// Everything that a person may change when a run goes on.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ChangeFlags {
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) approvals: ApprovalFlags,
}

impl ChangeFlags {
    /// Returns these flags as changes of a run whose setting for questions was `before`.
    pub(crate) fn changes(&self, before: OnAsk, at_terminal: bool) -> ResumeChanges {
        let on_ask = self
            .approvals
            .on_ask
            .unwrap_or(match (before, at_terminal) {
                (OnAsk::Park, _) => OnAsk::Park,
                (OnAsk::Wait | OnAsk::Deny, true) => OnAsk::Wait,
                (OnAsk::Wait | OnAsk::Deny, false) => OnAsk::Deny,
            });
        ResumeChanges {
            limits: self.limits.limits(),
            mode: self.approvals.mode(),
            on_ask: Some(on_ask),
            pins: None,
        }
    }
}
