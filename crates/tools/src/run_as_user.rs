//! The tool `run_as_user`: runs one program with literal arguments and the person's own rights
//! outside of the sandbox, under the run's keeper.
//!
//! The gate has looked the program up and asked the person. It is looked up again just before the
//! start: if it is another file by then, nothing is started.

use std::{env, ffi::OsString, fmt::Write as _, sync::Arc};

use gyrus_contract::{
    ActionVerdict, Arguments, CommandSpec, DEFAULT_TIMEOUT_SECONDS, KeeperError,
    MAX_TIMEOUT_SECONDS, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool, Unresolvable,
    quoted_word,
};
use gyrus_process::Programs;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    failure::ToolFailure,
    shell::{HEAD_BYTES, TAIL_BYTES, output},
};

/// Maximum number of arguments of one call, all of which a person reads before approval.
const MAX_ARGUMENTS: usize = 30;

/// Maximum total length of the arguments, as the approval shows them, in characters.
const MAX_SHOWN: usize = 2_000;

/// Maximum characters of the reason.
const MAX_REASON: usize = 300;

/// Function that returns all variables of an environment.
type Variables = dyn Fn() -> Vec<(OsString, OsString)> + Send + Sync;

/// Runs one program with the person's own rights.
pub struct RunAsUser {
    programs: Arc<Programs>,
    variables: Box<Variables>,
}

/// Runs one program outside the sandbox, with the person's keys, logins and network, if they
/// agree: `git push`, `gh`, `ssh`, `docker`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAsUserArguments {
    program: String,
    #[serde(default)]
    arguments: Vec<String>,
    /// One sentence to the person.
    reason: String,
    /// Default: 120.
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    timeout_seconds: Option<u64>,
}

impl Arguments for RunAsUserArguments {
    const TOOL: &'static str = "run_as_user";
    const EXAMPLE: &'static str = r#"{"program": "git", "arguments": ["push", "origin", "main"], "reason": "the person asked for it"}"#;
}

impl RunAsUser {
    /// Creates the tool with the environment of this process.
    #[expect(clippy::new_without_default, reason = "it looks at the environment")]
    pub fn new() -> Self {
        Self::with(Arc::clone(Programs::of_this_process()), || {
            env::vars_os().collect()
        })
    }

    /// Creates the tool with these programs and these variables of the person.
    pub fn with(
        programs: Arc<Programs>,
        variables: impl Fn() -> Vec<(OsString, OsString)> + Send + Sync + 'static,
    ) -> Self {
        Self {
            programs,
            variables: Box::new(variables),
        }
    }

    fn command(
        &self,
        given: RunAsUserArguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<CommandSpec, ToolFailure> {
        if let Some(wrong) = wrong(&given) {
            return Err(ToolFailure::new(wrong));
        }
        let command = call.command.as_ref();
        let Some(program) = command.and_then(|command| command.program.as_ref()) else {
            return Err(ToolFailure::new(
                "the program was not looked up; nothing was started",
            ));
        };
        self.programs.keep_out_of(site.workspace());
        let now = self.programs.check(&program.path);
        if now.as_ref() != Ok(program) {
            let mut text = format!(
                "{} is not the file that was judged any more",
                program.path.display()
            );
            if let Err(error) = now {
                let _ = write!(text, " ({error})");
            }
            return Err(ToolFailure::new(text).and("; nothing was started"));
        }
        let mut environment = self.programs.environment((self.variables)());
        // The program starts in another folder than gyrus did.
        environment.remove("OLDPWD");
        environment.insert("PWD".to_owned(), site.workspace().display().to_string());
        let no_prompt = "GIT_TERMINAL_PROMPT".to_owned();
        environment.entry(no_prompt).or_insert("0".to_owned());
        Ok(CommandSpec {
            program: program.path.display().to_string(),
            arguments: given.arguments,
            folder: site.workspace().to_owned(),
            environment,
            stdin: String::new(),
            time_limit_ms: given.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS) * 1000,
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
        })
    }
}

impl TypedTool for RunAsUser {
    type Arguments = RunAsUserArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Never;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::RunsAsUser {
            program: "program".to_owned(),
            arguments: "arguments".to_owned(),
        }]
    }

    async fn run(
        &self,
        arguments: RunAsUserArguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let command = self.command(arguments, call, site)?;
        let seconds = command.time_limit_ms / 1000;
        match site.run_command(command).await {
            Ok(outcome) => Ok(output(&outcome, seconds)),
            Err(error @ KeeperError::Start { .. }) => Err(error.into()),
            Err(error @ KeeperError::Keeper { .. }) => {
                let text = format!("{error}; the program may have done some of its work");
                Ok(ToolOutput {
                    verdict: ActionVerdict::CannotTell,
                    ..ToolOutput::error(text)
                })
            }
        }
    }

    fn check(&self, arguments: &Value) -> Result<(), Unresolvable> {
        let given = RunAsUserArguments::deserialize(arguments).map_err(|error| Unresolvable {
            reason: format!(
                "invalid arguments: {error}. Expected an object like {}",
                RunAsUserArguments::EXAMPLE
            ),
        })?;
        match wrong(&given) {
            Some(reason) => Err(Unresolvable { reason }),
            None => Ok(()),
        }
    }
}

/// Returns the reason why the arguments cannot be passed on or cannot be read by a person.
fn wrong(given: &RunAsUserArguments) -> Option<String> {
    let nothing = "; nothing was started";
    let all = || given.arguments.iter().chain([&given.program]);
    if given.arguments.len() > MAX_ARGUMENTS {
        return Some(format!(
            "invalid `arguments`: {} of them, and at most {MAX_ARGUMENTS} are allowed{nothing}",
            given.arguments.len()
        ));
    }
    if all().any(|word| word.contains('\0')) {
        return Some(format!(
            "invalid `arguments`: one contains a NUL character, which no program can be given{nothing}"
        ));
    }
    if all().any(|word| word.contains("⟦secret:")) {
        return Some(format!(
            "invalid `arguments`: one names a secret, which other users could read while the program \
             runs; it has the person's own keys{nothing}"
        ));
    }
    // A prefix is enough for the check, however long they are.
    let shown = |word: &String| quoted_word(gyrus_text::first_bytes(word, 8 * MAX_SHOWN));
    let length: usize = all().map(|word| shown(word).chars().count() + 1).sum();
    if length > MAX_SHOWN {
        return Some(format!(
            "invalid `arguments`: they are longer than the {MAX_SHOWN} characters that a person can \
             be asked to read; put a long text into a file and name that{nothing}"
        ));
    }
    if given.reason.trim().is_empty() || given.reason.chars().count() > MAX_REASON {
        return Some(format!(
            "invalid `reason`: say in a sentence of at most {MAX_REASON} characters why it is \
             needed{nothing}"
        ));
    }
    let seconds = given.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    (!(1..=MAX_TIMEOUT_SECONDS).contains(&seconds))
        .then(|| format!("`timeout_seconds` must be between 1 and {MAX_TIMEOUT_SECONDS}{nothing}"))
}
