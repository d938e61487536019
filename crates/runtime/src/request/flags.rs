//! The flags of `gyrus run`, which are the options of a run wherever one is asked for.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};
use gyrus_contract::{Limits, Mode, OnAsk, Strength, ThinkingEffort};
use gyrus_kernel::Attachment;
use serde::{Deserialize, Serialize};

use super::{
    answer_schema::GivenSchema,
    values::{
        Approve, Confinement, CostLimit, REVIEWS, RefusedRequest, STRENGTHS, TimeLimit,
        confinement, positive, text_of_file, word,
    },
};

/// Options of a run that is asked for.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct RunOptions {
    /// Work apart, in a git work tree of the last commit; the changes come back as a branch
    #[arg(long, conflicts_with_all = ["continues", "ephemeral", "fleet"])]
    pub worktree: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub flags: RunFlags,
    #[command(flatten)]
    #[serde(flatten)]
    pub context: ContextFlags,
    /// The reason why the options that were given cannot be read.
    #[arg(skip)]
    #[serde(skip)]
    pub refused: Option<RefusedRequest>,
}

/// Flags for how a run thinks and where it works, whatever its goal.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct RunFlags {
    #[command(flatten)]
    #[serde(flatten)]
    pub model: ModelFlags,
    /// Cognitive loop: auto, react, chain-of-thought, single-shot, plan, engineer, changeset or
    /// reactive
    ///
    /// auto: reactive, if --url, --screen or --attach names a page to work on; plan, if --review
    /// plan or --on-failure asks for one; engineer, if --judge names a judge; changeset, if --review
    /// context, --review proposal or --verify asks for one; single-shot, if the goal says all that
    /// its answer needs; else react, which has all tools and sends work on pages to a child run.
    #[arg(long = "loop", value_name = "LOOP")]
    #[serde(rename = "loop")]
    pub cognitive_loop: Option<String>,
    /// Begin with a summary of what the session said so far, in place of all of it
    #[arg(long)]
    pub compact: bool,
    /// Begin with the summary in this file, in place of all that the session said; `gyrus context
    /// --summary` prints the last one, to be edited
    #[arg(long, value_name = "FILE", value_parser = text_of_file)]
    #[serde(skip)]
    pub summary: Option<String>,
    /// Agent whose trust it works under: one of your policy (default: `default`); or an agent of a
    /// plugin that it follows, PLUGIN:AGENT
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The folder that it may work in (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip)]
    pub workdir: Option<PathBuf>,
    /// At the end, ask the model what worked and what did not, for later runs with similar goals
    #[arg(long)]
    pub reflect: bool,
    /// Replay no learned procedure, though one answers to the goal
    #[arg(long)]
    pub no_procedure: bool,
    /// Give the run no lessons of earlier runs with similar goals
    #[arg(long)]
    pub no_lessons: bool,
    /// Skill that is not to be loaded, though its triggers match; several may be named
    #[arg(long, value_name = "NAME")]
    pub no_skill: Vec<String>,
    /// Load no skills
    #[arg(long)]
    pub no_skills: bool,
    /// Give the run nothing of the memory, and note nothing of it there; it can still call `recall`
    #[arg(long)]
    pub no_memory: bool,
    /// Show these before they count, to approve, edit or reject them: plan, context, proposal,
    /// mandate or none
    ///
    /// plan: what is planned, before anything is done. mandate: the calls of servers' tools that
    /// would pass unasked. context: the files that a changeset is
    /// planned with. proposal: the changeset. Without this, --loop changeset shows context and
    /// proposal; none shows nothing.
    #[arg(long, help_heading = "Reviewing", value_name = "WHAT", value_delimiter = ',', value_parser = REVIEWS)]
    pub review: Vec<String>,
    /// When a step of the plan fails: stop, or replan the rest with what is known (default: stop)
    #[arg(long, help_heading = "Planning", value_name = "WHAT")]
    pub on_failure: Option<OnFailure>,
    /// A command that must succeed once a changeset is applied; if it fails, every file is put back
    #[arg(long, help_heading = "Changesets", value_name = "COMMAND")]
    pub verify: Option<String>,
    /// Judge that decides whether the goal is reached: a command, http(s)://ADDRESS or
    /// mcp:SERVER__TOOL
    ///
    /// The run searches, plans, works, and submits. A command accepts with exit code 0; an address
    /// is sent the submission and answers {"accepted": …, "report": …, "images": […]}; a server's
    /// tool answers with "accepted" too. What is rejected goes back, up to three times.
    #[arg(long, help_heading = "Judging", value_name = "JUDGE")]
    pub judge: Option<String>,
    /// Show the model the pictures that match this pattern after each judging by a command
    #[arg(long, help_heading = "Judging", value_name = "PATTERN")]
    pub judge_images: Option<String>,
    /// The folder with documents to search before planning
    #[arg(long, help_heading = "Judging", value_name = "FOLDER")]
    pub docs: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub screen: ScreenFlags,
    #[command(flatten)]
    #[serde(flatten)]
    pub verification: VerificationFlags,
    #[command(flatten)]
    #[serde(flatten)]
    pub approvals: ApprovalFlags,
    #[command(flatten)]
    #[serde(skip)]
    pub sandbox: SandboxFlags,
    #[command(flatten)]
    #[serde(flatten)]
    pub limits: LimitFlags,
}

/// Flags for the models that a run asks. A run that goes on has those that it had.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ModelFlags {
    /// Model to ask: PROVIDER, PROVIDER:small|medium|large, PROVIDER/MODEL, http://HOST/v1#MODEL,
    /// or script:FILE for replies from a file; several, as A,B, are alternatives, best first
    #[arg(long = "model", value_name = "MODEL")]
    #[serde(rename = "model")]
    pub names: Vec<String>,
    /// Thinking before a reply: none, low, medium, high or max (default: as the model does)
    #[arg(long, value_name = "EFFORT")]
    pub effort: Option<ThinkingEffort>,
    /// Tools that it is offered: few (shell, read, edit, write, finish and those of servers) or all
    /// (default: few for a small model)
    #[arg(long, value_name = "WHICH")]
    pub tools: Option<OfferedTools>,
}

/// The tools that a model is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfferedTools {
    /// Those that most work needs.
    Few,
    /// All of the run.
    All,
}

impl OfferedTools {
    pub fn word(self) -> &'static str {
        match self {
            Self::Few => "few",
            Self::All => "all",
        }
    }
}

impl ModelFlags {
    /// Returns flags that name these models only.
    pub fn named(names: Vec<String>) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }
}

/// Values of `--on-failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    Stop,
    Replan,
}

/// When the goal counts as reached.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[command(next_help_heading = "Verification")]
pub struct VerificationFlags {
    /// Check that must hold in the end: a command, text:WORDS, url:ADDRESS, file:PATH or
    /// js:EXPRESSION
    ///
    /// When the model says that it is done, all checks are made; what fails goes back to it, up to
    /// three times. A command must end with exit code 0. text: is looked for on the page, url: may
    /// have `*` in it, `file:PATH contains TEXT` looks into a file, js: must be truthy in the page.
    #[arg(long, value_name = "CHECK")]
    pub check: Vec<String>,
    /// JSON Schema that the answer must fit: a file, or the schema itself
    ///
    /// The answer is then JSON, for a program to read. One that does not fit goes back to the model,
    /// up to three times; then the run counts as failed. Of oneOf, one or more forms may fit.
    #[arg(long, value_name = "SCHEMA", alias = "output-schema")]
    pub answer_schema: Option<GivenSchema>,
    /// Required strength of the result: claimed, checked or verified (default: none; on a
    /// page, it is looked again whether the goal is reached)
    ///
    /// claimed: the model says so. checked: your checks passed. verified: a model that did not do
    /// the work looks at the screen and agrees as well. Less than that counts as failed.
    #[arg(long, value_name = "STRENGTH", value_parser = word::<Strength, 3>(STRENGTHS))]
    pub require: Option<Strength>,
}

/// Flags for the run's screen.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[command(next_help_heading = "Screen")]
pub struct ScreenFlags {
    /// Screen that the run sees: browser, x11 or none (default: a browser, if one is installed)
    ///
    /// Given, or with --url, the run works on the screen itself; else it hands such work to a child
    /// run, when its goal needs a page. Nothing is started before it is needed. x11 is a desktop of
    /// the run's own that nobody sees, with the programs that it opens there.
    #[arg(long, value_name = "WHAT")]
    pub screen: Option<ScreenWord>,
    /// With --screen x11: the display that you work at, as `:0`, in place of one of the run's own
    ///
    /// The run moves your mouse there. Every use of a program that your goal does not name is asked
    /// about.
    #[arg(long, value_name = "DISPLAY")]
    pub display: Option<String>,
    /// The page to begin on; the run may type and send there as in its goal's own places
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The browser profile, with its logins (default: one that is gone afterwards)
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Show the browser's window
    #[arg(long, alias = "headed")]
    pub visible: bool,
    /// Start the browser without its own sandbox, where the system does not let it have one
    ///
    /// A page that breaks out of its renderer then has all that the browser has.
    #[arg(long)]
    pub browser_without_its_sandbox: bool,
    /// Work in a browser that runs already, with its logins: http://127.0.0.1:9222
    ///
    /// One of this machine that was started with --remote-debugging-port=9222 and a
    /// --user-data-dir of its own. The run opens tabs of its own there, and closes them at the end.
    #[arg(long, value_name = "ADDRESS")]
    pub attach: Option<String>,
    /// Say yes beforehand to what --attach warns of, where no terminal can ask
    #[arg(long)]
    pub attach_anyway: bool,
}

/// Values of `--screen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScreenWord {
    Browser,
    X11,
    None,
}

impl ScreenWord {
    pub(crate) fn label(self) -> Option<&'static str> {
        match self {
            Self::Browser => Some("browser"),
            Self::X11 => Some("x11"),
            Self::None => None,
        }
    }
}

/// Flags for the context of a goal.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[command(next_help_heading = "Context")]
pub struct ContextFlags {
    /// Give the run this text file to read with the goal; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Give the run this picture to look at with the goal (PNG, JPEG or WebP)
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Give the run the text on your desktop's clipboard to read with the goal
    #[arg(long)]
    #[serde(skip)]
    pub clipboard: bool,
    /// Give the run this prompt of a server to read with the goal, as `gyrus mcp list` shows it
    #[arg(long, value_name = "SERVER:PROMPT")]
    pub mcp_prompt: Option<String>,
    /// An argument of that prompt
    #[arg(long, value_name = "NAME=VALUE")]
    pub mcp_argument: Vec<String>,
}

/// Flags for the budget of a run. The words of other tools are accepted too.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Limits")]
pub struct LimitFlags {
    /// Maximum number of steps
    #[arg(long, alias = "max-turns", value_name = "N", value_parser = positive)]
    #[serde(alias = "steps")]
    pub max_steps: Option<u64>,
    /// Maximum number of tokens, input and output together
    #[arg(long, value_name = "N", value_parser = positive)]
    #[serde(alias = "tokens")]
    pub max_tokens: Option<u64>,
    /// Maximum cost in US dollars, like 0.25
    #[arg(long, alias = "max-budget-usd", value_name = "USD")]
    #[serde(alias = "cost")]
    pub max_cost: Option<CostLimit>,
    /// Maximum time, like 90s, 10m or 1h30m; waiting for a person does not count
    #[arg(long, value_name = "DURATION")]
    #[serde(alias = "time")]
    pub max_time: Option<TimeLimit>,
}

/// Flags for how much a run may do, and for what happens when a person must be asked.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[command(next_help_heading = "Approvals")]
pub struct ApprovalFlags {
    /// Mode of approval, which says what it may do without asking: read-only, ask, edits, auto or
    /// never
    ///
    /// read-only: only what changes nothing. ask: changes what can be undone in the workspace, and
    /// runs code in the sandbox; asks for everything else. edits: the same where there is no undo.
    /// auto: asks before running code outside the sandbox. never: denies what it would have to ask for. What is
    /// critical is asked or denied in every mode. bypass: auto with --sandbox off, so code is asked
    /// about each time.
    #[arg(long, alias = "permission-mode", value_name = "MODE")]
    pub approve: Option<Approve>,
    /// When a person must be asked: wait, park or deny (default: wait at a terminal, else deny)
    ///
    /// wait: here, or for `gyrus approve` from elsewhere. park: end with exit code 5; the run goes
    /// on when it is answered and resumed. deny: count it as a no.
    #[arg(long, value_name = "WHAT", value_parser = word::<OnAsk, 3>(["wait", "park", "deny"]))]
    pub on_ask: Option<OnAsk>,
    /// Confine commands to the workspace, without a network: on or off (default: on)
    ///
    /// Without the sandbox, whatever runs code is asked about each time, in every mode.
    #[arg(long, value_name = "WHAT", value_parser = confinement())]
    pub sandbox: Option<Confinement>,
}

/// Flags that let more into the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Sandbox")]
pub struct SandboxFlags {
    /// Let commands see this variable of yours, NAME or NAME=VALUE; `*` in it stands for anything
    ///
    /// The journal has its name, never its value, which is kept from models. NAME=VALUE can be read
    /// in the list of this machine's processes: for a secret, set the variable and give its name.
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Let commands connect to this port of this machine's loopback
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Let the run work in this folder, too; PATH:ro to only read it
    #[arg(long, value_name = "PATH")]
    pub add_dir: Vec<String>,
}

impl RunFlags {
    /// Returns the words for the things that a person reviews, which may stand in one text with
    /// commas.
    pub fn reviews(&self) -> impl Iterator<Item = &str> {
        self.review.iter().flat_map(|words| words.split(','))
    }

    fn reviewing(&self, word: &str, flag: &'static str) -> Option<&'static str> {
        self.reviews().any(|named| named == word).then_some(flag)
    }

    /// Returns the flag that makes a plan necessary, if one does.
    pub fn asks_for_a_plan(&self) -> Option<&'static str> {
        let on_failure = self.on_failure.map(|_| "--on-failure");
        self.reviewing("plan", "--review plan").or(on_failure)
    }

    /// Returns the flag that makes a changeset necessary, if one does.
    pub fn asks_for_a_changeset(&self) -> Option<&'static str> {
        let verify = self.verify.as_ref().map(|_| "--verify");
        self.reviewing("context", "--review context")
            .or_else(|| self.reviewing("proposal", "--review proposal"))
            .or(verify)
    }

    /// Returns the flag that makes the judge's loop necessary, if one does.
    pub fn asks_for_a_judge(&self) -> Option<&'static str> {
        let judge = self.judge.as_ref().map(|_| "--judge");
        judge.or(self.docs.as_ref().map(|_| "--docs"))
    }

    /// Sets the handling of questions in the queue, unless the flags set it. A run without a screen
    /// waits outside memory; one with a screen would lose the screen.
    pub fn ask_in_queue(&mut self) {
        let by_screen = match self.screen.leads() {
            Some(_) => OnAsk::Wait,
            None => OnAsk::Park,
        };
        self.approvals.on_ask.get_or_insert(by_screen);
    }

    /// Returns the rule about combinations that the flags violate, if any.
    pub fn contradiction(&self) -> Option<&'static str> {
        let (screen, limits) = (&self.screen, &self.limits);
        let is_own =
            screen.profile.is_some() || screen.visible || screen.browser_without_its_sandbox;
        let has_judge = self.judge.is_some() || self.judge_images.is_none();
        let reviews_nothing = self.reviewing("none", "").is_some();
        if self.compact && self.summary.is_some() {
            Some("--compact does not go with --summary")
        } else if !has_judge {
            Some("--judge-images needs --judge")
        } else if screen.attach.is_some() && is_own {
            Some("--attach does not go with --profile, --visible or --browser-without-its-sandbox")
        } else if screen.attach.is_none() && screen.attach_anyway {
            Some("--attach-anyway needs --attach")
        } else if limits.max_steps == Some(0) || limits.max_tokens == Some(0) {
            Some("--max-steps and --max-tokens are 1 or more")
        } else if reviews_nothing && self.reviews().count() > 1 {
            Some("--review none shows nothing, and something is named beside")
        } else {
            None
        }
    }
}

impl VerificationFlags {
    /// Whether any verification is requested.
    pub fn is_given(&self) -> bool {
        self.require.is_some() || !self.check.is_empty() || self.answer_schema.is_some()
    }

    /// Returns the attachment that describes the form of the answer to the model.
    pub fn answer_in_words(&self) -> Option<Attachment> {
        self.answer_schema.as_ref().map(GivenSchema::in_words)
    }
}

impl ScreenFlags {
    /// Returns the flag that makes the run itself work on the screen, if any.
    pub fn leads(&self) -> Option<&'static str> {
        if self.url.is_some() {
            Some("--url")
        } else if self.attach.is_some() {
            Some("--attach")
        } else {
            let works_there = matches!(self.screen, Some(ScreenWord::Browser | ScreenWord::X11));
            works_there.then_some("--screen")
        }
    }

    /// Whether the flags name a screen or a browser that is open on this machine.
    pub fn is_of_this_machine(&self) -> bool {
        self.display.is_some() || self.attach.is_some()
    }

    /// Whether the run is to have no screen.
    pub fn is_none(&self) -> bool {
        matches!(self.screen, Some(ScreenWord::None))
    }
}

impl LimitFlags {
    /// Returns the flags as limits; what is not given is not limited.
    pub fn limits(&self) -> Limits {
        Limits {
            steps: self.max_steps,
            tokens: self.max_tokens,
            cost: self.max_cost.map(|limit| limit.0),
            time_ms: self.max_time.map(|limit| limit.0),
        }
    }
}

impl ApprovalFlags {
    /// Returns the mode, if one was given.
    pub fn mode(&self) -> Option<Mode> {
        self.approve.map(Approve::mode)
    }

    /// Whether commands are confined.
    pub fn confinement(&self) -> Confinement {
        let implied = self.approve.map(Approve::confinement);
        let given = self.sandbox.or(implied);
        given.unwrap_or(Confinement::Sandboxed)
    }
}
