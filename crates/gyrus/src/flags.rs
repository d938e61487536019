//! Flags that several commands share, and what they mean.

use std::{collections::BTreeSet, path::PathBuf, str::FromStr};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    value_parser,
};
use gyrus::runtime::Confinement;
use gyrus_contract::{Limits, Microdollars, Mode, ModeError, OnAsk, Strength};
use gyrus_kernel::{Attachment, ResumeChanges, RunStarted};
use gyrus_loops::{Check, CognitiveConfig, Judge, Review, ThinkingStrategy};
use gyrus_screen::{DebuggingPort, LaunchError, has_display};

use gyrus_text::parse_duration;

use serde::{
    Deserialize as _,
    de::{DeserializeOwned, IntoDeserializer, value::Error as ValueError},
};

use crate::{
    answer_schema::GivenSchema,
    browser::{self, Consent},
    config::parse_cost,
    failure::Failure,
    mcp::{PromptName, prompt_argument},
    model_flags::ModelFlags,
    sandbox_settings::SandboxFlags,
    screen::{DesktopKind, DesktopOptions, ScreenOptions},
};
use gyrus_surfaces::console::put;

fn text_of_file(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    match text.trim() {
        "" => Err("it is empty".into()),
        text => Ok(text.into()),
    }
}

/// Flags for how a run thinks and where it works, whatever its goal.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// Cognitive loop: auto, react, chain-of-thought, single-shot, plan, engineer, changeset or
    /// reactive
    ///
    /// auto: reactive, if --url, --screen or --attach names a page to work on; plan, if --review
    /// plan or --on-failure asks for one; engineer, if --judge names a judge; changeset, if --review
    /// context, --review proposal or --verify asks for one; single-shot, if the goal says all that
    /// its answer needs; else react, which has all tools and sends work on pages to a child run.
    #[arg(long = "loop", value_name = "LOOP")]
    pub(crate) cognitive_loop: Option<String>,
    /// Begin with a summary of what the session said so far, in place of all of it
    #[arg(long)]
    pub(crate) compact: bool,
    /// Begin with the summary in this file, in place of all that the session said; `gyrus context
    /// --summary` prints the last one, to be edited
    #[arg(long, value_name = "FILE", conflicts_with = "compact", value_parser = text_of_file)]
    pub(crate) summary: Option<String>,
    /// Agent whose trust it works under: one of your policy (default: `default`); or an agent of a
    /// plugin that it follows, PLUGIN:AGENT
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The folder that it may work in (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workdir: Option<PathBuf>,
    /// At the end, ask the model what worked and what did not, for later runs with similar goals
    #[arg(long)]
    pub(crate) reflect: bool,
    /// Replay no learned procedure, though one answers to the goal
    #[arg(long)]
    pub(crate) no_procedure: bool,
    /// Give the run no lessons of earlier runs with similar goals
    #[arg(long)]
    pub(crate) no_lessons: bool,
    #[command(flatten)]
    pub(crate) skills: SkillFlags,
    /// Give the run nothing of the memory, and note nothing of it there; it can still call `recall`
    #[arg(long)]
    pub(crate) no_memory: bool,
    #[command(flatten)]
    pub(crate) review: ReviewFlags,
    #[command(flatten)]
    pub(crate) plan: PlanFlags,
    #[command(flatten)]
    pub(crate) changeset: ChangesetFlags,
    #[command(flatten)]
    pub(crate) judging: JudgingFlags,
    #[command(flatten)]
    pub(crate) screen: ScreenFlags,
    #[command(flatten)]
    pub(crate) verification: VerificationFlags,
    #[command(flatten)]
    pub(crate) approvals: ApprovalFlags,
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Flags for the skills of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SkillFlags {
    /// Skill that is not to be loaded, though its triggers match; several may be named
    #[arg(long, value_name = "NAME")]
    pub(crate) no_skill: Vec<String>,
    /// Load no skills
    #[arg(long)]
    pub(crate) no_skills: bool,
}

/// Flags for what a person reviews.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reviewing")]
pub(crate) struct ReviewFlags {
    /// Show these before they count, to approve, edit or reject them: plan, context, proposal,
    /// mandate or none
    ///
    /// plan: what is planned, before anything is done. mandate: the calls of servers' tools that
    /// would pass unasked. context: the files that a changeset is
    /// planned with. proposal: the changeset. Without this, --loop changeset shows context and
    /// proposal; none shows nothing.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = review())]
    review: Vec<Option<Review>>,
}

/// Reads a decision that is left to a person, or `none`.
fn review() -> impl TypedValueParser<Value = Option<Review>> {
    let words = PossibleValuesParser::new(["plan", "context", "proposal", "mandate", "none"]);
    words.map(|word| {
        Review::deserialize(IntoDeserializer::<ValueError>::into_deserializer(word)).ok()
    })
}

impl ReviewFlags {
    /// That what is named goes together.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.review.contains(&None) && self.review.iter().any(Option::is_some) {
            Err(
                Failure::usage("--review none shows nothing, and something is named beside")
                    .hint("leave `none` out, or everything else"),
            )
        } else {
            Ok(())
        }
    }

    fn asks_for_a_plan(&self) -> Option<&'static str> {
        let asks = self.review.contains(&Some(Review::Plan));
        asks.then_some("--review plan")
    }

    fn asks_for_a_changeset(&self) -> Option<&'static str> {
        self.review.iter().find_map(|word| match word {
            Some(Review::Context) => Some("--review context"),
            Some(Review::Proposal) => Some("--review proposal"),
            Some(Review::Plan | Review::Mandate) | None => None,
        })
    }

    /// Returns what a person reviews of a run with this strategy.
    fn reviews(&self, strategy: ThinkingStrategy) -> BTreeSet<Review> {
        if self.review.is_empty() && strategy == ThinkingStrategy::Changeset {
            return BTreeSet::from([Review::Context, Review::Proposal]);
        }
        self.review.iter().copied().flatten().collect()
    }
}

/// Flags for plans.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct PlanFlags {
    /// When a step of the plan fails: stop, or replan the rest with what is known (default: stop)
    #[arg(long, value_name = "WHAT", value_parser = ["stop", "replan"])]
    on_failure: Option<String>,
}

/// Flags for changesets.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Changesets")]
pub(crate) struct ChangesetFlags {
    /// A command that must succeed once a changeset is applied; if it fails, every file is put back
    #[arg(long, value_name = "COMMAND")]
    verify: Option<String>,
}

impl RunFlags {
    /// The flag that asks for a plan, if one does.
    pub(crate) fn asks_for_a_plan(&self) -> Option<&'static str> {
        let on_failure = self.plan.on_failure.as_ref().map(|_| "--on-failure");
        self.review.asks_for_a_plan().or(on_failure)
    }

    /// The flag that asks for a changeset, if one does.
    pub(crate) fn asks_for_a_changeset(&self) -> Option<&'static str> {
        let verify = self.changeset.verify.as_ref().map(|_| "--verify");
        self.review.asks_for_a_changeset().or(verify)
    }

    /// Says what becomes of questions in the queue, unless the flags say it. A run without a screen waits
    /// outside memory; one that has a screen would lose it.
    pub(crate) fn ask_in_queue(&mut self) {
        let by_screen = match self.screen.leads() {
            Some(_) => OnAsk::Wait,
            None => OnAsk::Park,
        };
        self.approvals.on_ask.get_or_insert(by_screen);
    }

    /// Adds to a chosen loop what the flags say of it.
    pub(crate) fn apply(&self, config: &mut CognitiveConfig) {
        config.reviews = self.review.reviews(config.strategy);
        config.replanning = self.plan.on_failure.as_deref() == Some("replan");
        config.verify.clone_from(&self.changeset.verify);
    }
}

/// Flags for who accepts the work.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Judging")]
pub(crate) struct JudgingFlags {
    /// Judge that decides whether the goal is reached: a command, http(s)://ADDRESS or
    /// mcp:SERVER__TOOL
    ///
    /// The run searches, plans, works, and submits. A command accepts with exit code 0; an address
    /// is sent the submission and answers {"accepted": …, "report": …, "images": […]}; a server's
    /// tool answers with "accepted" too. What is rejected goes back, up to three times.
    #[arg(long, value_name = "JUDGE")]
    pub(crate) judge: Option<Judge>,
    /// Show the model the pictures that match this pattern after each judging by a command
    #[arg(long, value_name = "PATTERN", requires = "judge")]
    pub(crate) judge_images: Option<String>,
    /// The folder with documents to search before planning
    #[arg(long, value_name = "FOLDER")]
    pub(crate) docs: Option<String>,
}

impl JudgingFlags {
    /// The flag that asks for a judge's loop, if one does.
    pub(crate) fn asks_for_a_judge(&self) -> Option<&'static str> {
        match (&self.judge, &self.docs) {
            (Some(_), _) => Some("--judge"),
            (None, Some(_)) => Some("--docs"),
            (None, None) => None,
        }
    }

    /// The address that the person typed.
    pub(crate) fn address(&self) -> Option<String> {
        let address = self.judge.as_ref().and_then(Judge::address);
        address.map(str::to_owned)
    }
}

/// When the goal counts as reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Verification")]
pub(crate) struct VerificationFlags {
    /// Check that must hold in the end: a command, text:WORDS, url:ADDRESS, file:PATH or
    /// js:EXPRESSION
    ///
    /// When the model says that it is done, all checks are made; what fails goes back to it, up to
    /// three times. A command must end with exit code 0. text: is looked for on the page, url: may
    /// have `*` in it, `file:PATH contains TEXT` looks into a file, js: must be truthy in the page.
    #[arg(long, value_name = "CHECK")]
    check: Vec<Check>,
    /// JSON Schema that the answer must fit: a file, or the schema itself
    ///
    /// The answer is then JSON, for a program to read. One that does not fit goes back to the model,
    /// up to three times; then the run counts as failed. Of oneOf, one or more forms may fit.
    #[arg(long, value_name = "SCHEMA", alias = "output-schema")]
    answer_schema: Option<GivenSchema>,
    /// Required strength of the result: claimed, checked or verified (default: on a page, it is
    /// looked again)
    ///
    /// claimed: the model says so. checked: your checks passed. verified: a model that did not do
    /// the work looks at the screen and agrees as well. Less than that counts as failed.
    #[arg(long, value_name = "STRENGTH", value_parser = strength())]
    require: Option<Strength>,
}

impl VerificationFlags {
    /// Whether anything is to be verified.
    pub(crate) fn is_given(&self) -> bool {
        self.require.is_some() || !self.check.is_empty() || self.answer_schema.is_some()
    }

    /// Whether the answer is to have a form.
    pub(crate) fn has_answer_schema(&self) -> bool {
        self.answer_schema.is_some()
    }

    /// Returns the words that tell the model of the form of the answer.
    pub(crate) fn answer_in_words(&self) -> Option<Attachment> {
        self.answer_schema.as_ref().map(GivenSchema::in_words)
    }

    /// Whether a model is to look at the end.
    pub(crate) fn needs_a_look(&self) -> bool {
        self.require == Some(Strength::Verified)
    }

    /// Adds it to how the loop thinks; `on_screen` if the run works on one, `has_screen` if it has
    /// one at all.
    pub(crate) fn apply(
        &self,
        mut config: CognitiveConfig,
        on_screen: bool,
        has_screen: bool,
    ) -> Result<CognitiveConfig, Failure> {
        if let Some(check) = self.check.iter().find(|check| check.needs_a_screen())
            && !has_screen
        {
            return Err(Failure::usage(format!("the check `{check}` needs a page"))
                .hint("name one with --url, or give the run a browser with --screen browser"));
        }
        match self.require {
            Some(Strength::Checked)
                if self.check.is_empty()
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
            Some(_) | None => config.required = self.require,
        }
        config.looks_again = config
            .required
            .map_or(on_screen, |it| it == Strength::Verified);
        let new = self.check.iter();
        let new = new.filter(|check| !config.checks.contains(check));
        let new: Vec<Check> = new.cloned().collect();
        config.checks.extend(new);
        let schema = self.answer_schema.as_ref();
        config.answer_schema = schema.map(|given| given.schema().clone());
        Ok(config)
    }

    /// Scripts that the person typed.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = String> {
        let scripts = self.check.iter().filter_map(Check::script);
        scripts.map(str::to_owned)
    }
}

/// Flags for the run's screen.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Screen")]
pub(crate) struct ScreenFlags {
    /// Screen that the run sees: browser, x11 or none (default: a browser, if one is installed)
    ///
    /// Given, or with --url, the run works on the screen itself; else it hands such work to a child
    /// run, when its goal needs a page. Nothing is started before it is needed. x11 is a desktop of
    /// the run's own that nobody sees, with the programs that it opens there.
    #[arg(long, value_name = "WHAT")]
    screen: Option<ScreenWord>,
    /// With --screen x11: the display that you work at, as `:0`, in place of one of the run's own
    ///
    /// The run moves your mouse there. Every use of a program that your goal does not name is asked
    /// about.
    #[arg(long, value_name = "DISPLAY")]
    display: Option<String>,
    /// The page to begin on; the run may type and send there as in its goal's own places
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The browser profile, with its logins (default: one that is gone afterwards)
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
    /// Show the browser's window
    #[arg(long, alias = "headed")]
    visible: bool,
    /// Start the browser without its own sandbox, where the system does not let it have one
    ///
    /// A page that breaks out of its renderer then has all that the browser has.
    #[arg(long)]
    browser_without_its_sandbox: bool,
    /// Work in a browser that runs already, with its logins: http://127.0.0.1:9222
    ///
    /// One of this machine that was started with --remote-debugging-port=9222 and a
    /// --user-data-dir of its own. The run opens tabs of its own there, and closes them at the end.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["profile", "visible", "browser_without_its_sandbox"])]
    attach: Option<DebuggingPort>,
    /// Say yes beforehand to what --attach warns of, where no terminal can ask
    #[arg(long, requires = "attach")]
    attach_anyway: bool,
}

/// Values of `--screen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScreenWord {
    Browser,
    X11,
    None,
}

impl ScreenFlags {
    /// The flag that has the run work on the screen itself, if one does.
    pub(crate) fn leads(&self) -> Option<&'static str> {
        if self.url.is_some() {
            Some("--url")
        } else if self.attach.is_some() {
            Some("--attach")
        } else {
            let works_there = matches!(self.screen, Some(ScreenWord::Browser | ScreenWord::X11));
            works_there.then_some("--screen")
        }
    }

    /// Whether it is a screen or a browser that is open on this machine.
    #[cfg(feature = "fleet")]
    pub(crate) fn is_of_this_machine(&self) -> bool {
        self.display.is_some() || self.attach.is_some()
    }

    /// Has it confirmed, once, that a run may work in a person's own browser.
    pub(crate) fn confirm(&self) -> Result<(), Failure> {
        let Some(at) = &self.attach else {
            return Ok(());
        };
        let consent = if self.attach_anyway {
            Consent::Given
        } else {
            Consent::Wanted
        };
        browser::confirm_attaching(at, consent)
    }

    fn no_display(&self) -> Option<LaunchError> {
        (self.visible && !has_display()).then_some(LaunchError::NoDisplay)
    }

    /// Whether the run is to have no screen.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.screen, Some(ScreenWord::None))
    }

    /// Returns the screen of a run that goes on with the session of the run `before` it: the same,
    /// unless a flag names one.
    pub(crate) fn of_session(
        &self,
        before: Option<&RunStarted>,
    ) -> Result<Option<ScreenOptions>, Failure> {
        let is_given = self.screen.is_some()
            || self.leads().is_some()
            || self.profile.is_some()
            || self.visible
            || self.browser_without_its_sandbox;
        let before = before.filter(|_| !is_given);
        match before.and_then(|before| ScreenOptions::of(before.screen.as_ref())) {
            Some(options) => {
                options.warn()?;
                Ok(Some(options))
            }
            None => self.options(),
        }
    }

    /// Returns the screen that the flags ask for, if they do.
    pub(crate) fn options(&self) -> Result<Option<ScreenOptions>, Failure> {
        if self.screen == Some(ScreenWord::X11) {
            let options = self.desktop()?;
            options.check()?;
            return Ok(Some(ScreenOptions::Desktop(options)));
        }
        if self.display.is_some() {
            return Err(Failure::usage("--display goes with --screen x11 only"));
        }
        Ok(self.browser_options()?.map(ScreenOptions::Browser))
    }

    fn desktop(&self) -> Result<DesktopOptions, Failure> {
        let is_browsers = self.url.is_some()
            || self.attach.is_some()
            || self.profile.is_some()
            || self.visible
            || self.browser_without_its_sandbox;
        if is_browsers {
            return Err(Failure::usage(
                "--screen x11 does not go with --url, --profile, --visible, --attach or \
                 --browser-without-its-sandbox",
            ));
        }
        Ok(DesktopOptions {
            desktop: DesktopKind::X11,
            display: self.display.clone(),
        })
    }

    /// Returns the browser that the flags ask for, if they do.
    fn browser_options(&self) -> Result<Option<browser::BrowserOptions>, Failure> {
        let wanted = self.leads().is_some() || self.profile.is_some() || self.visible;
        match self.screen {
            Some(ScreenWord::None) if wanted => Err(Failure::usage(
                "--screen none does not go with --url, --profile, --visible or --attach",
            )),
            Some(ScreenWord::None) => Ok(None),
            _ if self.attach.is_some() => Ok(Some(browser::BrowserOptions {
                attach: self.attach.clone(),
                ..browser::BrowserOptions::default()
            })),
            None if !wanted && browser::missing().is_some() => Ok(None),
            _ => match browser::missing().or_else(|| self.no_display()) {
                Some(why) => Err(Failure::usage(why)),
                None => Ok(Some(browser::BrowserOptions {
                    profile: self.profile.clone(),
                    visible: self.visible,
                    without_sandbox: self.browser_without_its_sandbox,
                    attach: None,
                })),
            },
        }
    }
}

/// Flags for the context of a goal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Context")]
pub(crate) struct ContextFlags {
    /// Give the run this text file to read with the goal; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Give the run this picture to look at with the goal (PNG, JPEG or WebP)
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Give the run the text on your desktop's clipboard to read with the goal
    #[arg(long)]
    pub(crate) clipboard: bool,
    /// Give the run this prompt of a server to read with the goal, as `gyrus mcp list` shows it
    #[arg(long, value_name = "SERVER:PROMPT", value_parser = PromptName::parse)]
    pub(crate) mcp_prompt: Option<PromptName>,
    /// An argument of that prompt
    #[arg(long, value_name = "NAME=VALUE", requires = "mcp_prompt", value_parser = prompt_argument)]
    pub(crate) mcp_argument: Vec<(String, String)>,
}

/// Flags for the budget of a run. The words of other tools are accepted too.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitFlags {
    /// At most so many steps
    #[arg(long, alias = "max-turns", value_name = "N", value_parser = value_parser!(u64).range(1..))]
    max_steps: Option<u64>,
    /// At most so many tokens, input and output together
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// At most so many US dollars, like 0.25
    #[arg(long, alias = "max-budget-usd", value_name = "USD", value_parser = parse_cost)]
    max_cost: Option<Microdollars>,
    /// At most so long, like 90s, 10m or 1h30m; waiting for a person does not count
    #[arg(long, value_name = "DURATION", value_parser = milliseconds)]
    max_time: Option<u64>,
}

/// Reads one of the words by which a type is stored.
fn word<T, const N: usize>(words: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let words = PossibleValuesParser::new(words);
    words.try_map(|word| T::deserialize(word.into_deserializer()).map_err(|it: ValueError| it))
}

/// Reads the strength that a result can be required to have.
pub(crate) fn strength() -> impl TypedValueParser<Value = Strength> {
    word(["claimed", "checked", "verified"])
}

/// Reads the name of a browser profile.
pub(crate) fn profile_name(word: &str) -> Result<String, String> {
    let checked = gyrus_screen::check_profile_name(word);
    checked.map_err(|error| error.to_string())?;
    Ok(word.to_owned())
}

fn milliseconds(text: &str) -> Result<u64, String> {
    let duration = parse_duration(text)?;
    if duration.is_zero() {
        return Err("nothing can be done in no time".to_owned());
    }
    u64::try_from(duration.as_millis()).map_err(|_| format!("`{text}` is too long"))
}

impl LimitFlags {
    /// As limits; what is not given is not limited.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            steps: self.max_steps,
            tokens: self.max_tokens,
            cost: self.max_cost,
            time_ms: self.max_time,
        }
    }
}

/// Flags for how much a run may do, and for what happens when a person must be asked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Approvals")]
pub(crate) struct ApprovalFlags {
    /// Mode of approval, which says what it may do without asking: read-only, ask, edits, auto or
    /// never
    ///
    /// read-only: only what changes nothing. ask: changes what can be undone in the workspace, and
    /// runs code in the sandbox; asks for everything else. edits: the same where there is no undo.
    /// auto: asks before running code outside the sandbox. never: denies what it would have to ask for. What is
    /// critical is asked or denied in every mode. bypass: auto with --sandbox off, so code is asked
    /// about each time.
    #[arg(long, alias = "permission-mode", value_name = "MODE")]
    pub(crate) approve: Option<ApproveValue>,
    /// When a person must be asked: wait, park or deny (default: wait at a terminal, else deny)
    ///
    /// wait: here, or for `gyrus approve` from elsewhere. park: end with exit code 5; the run goes
    /// on when it is answered and resumed. deny: count it as a no.
    #[arg(long, value_name = "WHAT", value_parser = word::<OnAsk, 3>(["wait", "park", "deny"]))]
    pub(crate) on_ask: Option<OnAsk>,
    /// Confine commands to the workspace, without a network: on or off (default: on)
    ///
    /// Without the sandbox, whatever runs code is asked about each time, in every mode.
    #[arg(long, value_name = "WHAT", value_parser = confinement())]
    sandbox: Option<Confinement>,
}

/// Values of `--approve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApproveValue {
    /// As the mode says.
    Mode(Mode),
    /// Other tools' word for asking nothing: mode `auto` without a sandbox.
    Bypass,
}

impl FromStr for ApproveValue {
    type Err = ModeError;
    fn from_str(word: &str) -> Result<Self, ModeError> {
        match word {
            "bypass" | "bypassPermissions" | "yolo" => Ok(ApproveValue::Bypass),
            word => word.parse().map(ApproveValue::Mode),
        }
    }
}

impl ApproveValue {
    pub(crate) fn mode(self) -> Mode {
        match self {
            ApproveValue::Mode(mode) => mode,
            ApproveValue::Bypass => Mode::Auto,
        }
    }

    /// Whether commands are confined where nothing else says so.
    pub(crate) fn confinement(self) -> Confinement {
        match self {
            ApproveValue::Mode(_) => Confinement::Sandboxed,
            ApproveValue::Bypass => Confinement::Unsandboxed,
        }
    }
}

/// Reads whether commands are confined, in the words of other tools too.
pub(crate) fn confinement() -> impl TypedValueParser<Value = Confinement> {
    let on = PossibleValue::new("on").alias("workspace-write");
    let off = PossibleValue::new("off").aliases(["danger-full-access", "none"]);
    PossibleValuesParser::new([on, off]).map(|word| match &*word {
        "on" | "workspace-write" => Confinement::Sandboxed,
        _ => Confinement::Unsandboxed,
    })
}

impl ApprovalFlags {
    /// The mode, if one was given.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.approve.map(ApproveValue::mode)
    }

    /// Whether commands are confined.
    pub(crate) fn confinement(&self) -> Confinement {
        let implied = self.approve.map(ApproveValue::confinement);
        let given = self.sandbox.or(implied);
        given.unwrap_or(Confinement::Sandboxed)
    }

    /// Says what a word of other tools does not mean here.
    pub(crate) fn announce(&self) -> Result<(), Failure> {
        if let Some(ApproveValue::Bypass) = self.approve {
            put(
                "bypass means mode `auto` without a sandbox: what is critical, and all unsandboxed \
                 code, is still asked about each time\n",
            )?;
        }
        Ok(())
    }
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
    /// Returns flags with which programs read the output.
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
    /// As changes of a run whose setting for questions was `before`.
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
