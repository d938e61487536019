//! The tool `shell`: runs a command line in a shell under the run's keeper.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_contract::{
    ActionVerdict, AttendedEnd, CapturedOutput, CommandOutcome, CommandResult, CommandSpec,
    DEFAULT_TIMEOUT_SECONDS, Does, Exit, KeeperError, MAX_TIMEOUT_SECONDS, ProcessAction,
    ProcessReport, Repeat, ResolvedCall, ShellCall, Site, ToolOutput, Touch, TypedTool,
};
use gyrus_process::Programs;
use gyrus_text::counted;
use serde::Serialize;

use crate::{failure::ToolFailure, terminal::folded};

/// Maximum bytes kept from the start of the output.
pub(crate) const HEAD_BYTES: usize = 16 * 1024;

/// Maximum size of the end of the output that is kept, in bytes.
pub(crate) const TAIL_BYTES: usize = 16 * 1024;

/// Folders that are searched for programs after those of the person's `PATH`.
const STANDARD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that keep programs from checking for updates of themselves, because the person would
/// be asked about the connection.
const QUIET: [(&str, &str); 3] = [
    ("NO_UPDATE_NOTIFIER", "1"),
    ("npm_config_update_notifier", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
];

/// Hint for a command that failed in the sandbox and seems to need more access.
const HINT: &str = "this ran in the sandbox, without the person's keys, logins and daemons; if it \
                    failed for want of them, call `run_as_user` with that one program";

/// Runs command lines.
pub struct Shell {
    program: String,
    environment: BTreeMap<String, String>,
}

impl Shell {
    /// Creates the tool with the few harmless variables of this process's environment.
    #[expect(clippy::new_without_default, reason = "it looks at the environment")]
    pub fn new() -> Self {
        Self::over(|name| env::var(name).ok(), Programs::of_this_process())
    }

    /// Creates the tool with the environment that `variable` returns; only `PATH`, `HOME`, `USER`,
    /// `LANG`, `LC_ALL` and `TMPDIR` are read.
    pub fn with_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let programs = Programs::on_path(variable("PATH").as_deref().map(OsStr::new));
        Self::over(variable, &programs)
    }

    fn over(variable: impl Fn(&str) -> Option<String>, programs: &Programs) -> Self {
        let environment = environment(variable);
        // Once, and never in the workspace, whose programs the commands themselves may well find.
        let found = programs.find("bash").or_else(|_| programs.find("sh"));
        let path = found.map_or_else(|_| PathBuf::from("/bin/sh"), |found| found.path);
        Self {
            program: path.display().to_string(),
            environment,
        }
    }

    fn name(&self) -> &'static str {
        if Path::new(&self.program).ends_with("bash") {
            "bash"
        } else {
            "sh"
        }
    }

    pub(crate) fn line(
        &self,
        command: &str,
        timeout_seconds: u64,
        site: &dyn Site,
    ) -> Result<CommandSpec, ToolFailure> {
        let wrong = if command.trim().is_empty() {
            Some("`command` is empty".to_owned())
        } else if command.contains('\0') {
            Some("`command` contains a NUL character, which no program can be given".to_owned())
        } else if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
            Some(format!(
                "`timeout_seconds` must be between 1 and {MAX_TIMEOUT_SECONDS}"
            ))
        } else {
            None
        };
        let nothing = "; nothing was started";
        if let Some(wrong) = wrong {
            return Err(ToolFailure::new(wrong).and(nothing));
        }
        let revealed = site.reveal(command);
        let command = revealed.map_err(|error| ToolFailure::from(error).and(nothing))?;
        Ok(self.spec(command, site.workspace(), timeout_seconds))
    }

    /// Returns a command line as the shell runs it in this folder.
    pub fn spec(&self, command: String, folder: &Path, timeout_seconds: u64) -> CommandSpec {
        CommandSpec {
            program: self.program.clone(),
            arguments: vec!["-c".to_owned(), command],
            folder: folder.to_owned(),
            environment: self.environment.clone(),
            stdin: String::new(),
            time_limit_ms: timeout_seconds * 1000,
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
        }
    }
}

impl TypedTool for Shell {
    type Arguments = ShellCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Never;

    fn description(&self) -> String {
        format!(
            "Runs a `{}` command line in the workspace, in a sandbox without the person's keys and logins. \
             Each call is a new shell; only what is put in the background outlives it.",
            self.name()
        )
    }

    fn touches(&self) -> Vec<Touch> {
        // A line that a process reads may be one for a shell.
        vec![Touch::Starts("command".to_owned())]
    }

    async fn run(
        &self,
        arguments: ShellCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let seconds = arguments.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if let Some(process) = &arguments.process {
            return more_of(process, &arguments, site).await;
        }
        if arguments.background {
            return self.start(&arguments, site).await;
        }
        let mut command = self.line(&arguments.command, seconds, site)?;
        let seconds = seconds.min(site.longest_command());
        command.time_limit_ms = seconds * 1000;
        match site.run_attended(command).await {
            Ok(AttendedEnd::GoesOn {
                process: name,
                after,
            }) => {
                let look = ProcessAction::Look {
                    input: None,
                    until: None,
                    within: Duration::ZERO,
                };
                let mut output = looked(&name, site.process(&name, look).await)?;
                let why = match after {
                    None => "a person put it into the background".to_owned(),
                    Some(after) => format!("it was put there after {} s", after.as_secs()),
                };
                let _ = write!(output.text, "\n[{why}]");
                Ok(output)
            }
            Ok(AttendedEnd::Ended(outcome)) => {
                let mut output = output(&outcome, seconds);
                for limit in limits(call, &outcome, &output, (seconds, site)) {
                    output.limited(limit);
                }
                Ok(output)
            }
            Err(error @ KeeperError::Start { .. }) => Err(error.into()),
            Err(error @ KeeperError::Keeper { .. }) => {
                let text = format!("{error}; the command may have done some of its work");
                Ok(ToolOutput {
                    verdict: ActionVerdict::CannotTell,
                    ..ToolOutput::error(text)
                })
            }
        }
    }
}

/// Time for which a command is watched after it was put in the background.
const FIRST_LOOK: Duration = Duration::from_secs(1);

impl Shell {
    /// Starts a background command, and returns its first output.
    async fn start(
        &self,
        arguments: &ShellCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let command = self.line(&arguments.command, DEFAULT_TIMEOUT_SECONDS, site)?;
        let name = site.start_process(command).await?;
        let seconds = arguments
            .timeout_seconds
            .filter(|_| arguments.until.is_some());
        let look = ProcessAction::Look {
            input: None,
            until: arguments.until.clone(),
            within: seconds.map_or(FIRST_LOOK, Duration::from_secs),
        };
        looked(&name, site.process(&name, look).await)
    }
}

/// Waits for a process and returns its new output.
async fn more_of(
    name: &str,
    arguments: &ShellCall,
    site: &dyn Site,
) -> Result<ToolOutput, ToolFailure> {
    let seconds = arguments.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    let action = if arguments.end {
        ProcessAction::End
    } else {
        let line = site.reveal(&arguments.command)?;
        ProcessAction::Look {
            input: (!line.is_empty()).then(|| format!("{}\n", line.trim_end_matches('\n'))),
            until: arguments.until.clone(),
            within: Duration::from_secs(seconds.min(site.longest_command())),
        }
    };
    looked(name, site.process(name, action).await)
}

/// Returns the output for a model about a process.
fn looked(name: &str, report: Result<ProcessReport, String>) -> Result<ToolOutput, ToolFailure> {
    let report = report.map_err(ToolFailure::new)?;
    let mut text = folded(&report.output);
    if report.omitted_bytes > 0 {
        text = format!("[… {} bytes omitted …]\n{text}", report.omitted_bytes);
    }
    if text.is_empty() {
        text.push_str("(no new output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let is_error = matches!(&report.ended, Some(Ok(exit)) if *exit != Exit::Code(0));
    let _ = match &report.ended {
        None => write!(
            text,
            "[process {name} goes on: with `process` \"{name}\" an empty `command` waits for more, `end` \
             kills it; what it changes in the workspace counts once you see its end]"
        ),
        Some(Ok(Exit::Code(code))) => write!(text, "[process {name} ended: exit code {code}]"),
        Some(Ok(Exit::Signal(signal))) => {
            write!(text, "[process {name} was killed by signal {signal}]")
        }
        Some(Ok(Exit::TimedOut)) => write!(text, "[process {name} timed out]"),
        Some(Err(why)) => write!(text, "[process {name}: {why}]"),
    };
    let value = ProcessValue {
        process: name,
        goes_on: report.ended.is_none(),
    };
    Ok(ToolOutput {
        is_error,
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::read(text).with_value(&value)
    })
}

/// The value of a call about a background process.
#[derive(Serialize)]
struct ProcessValue<'a> {
    process: &'a str,
    goes_on: bool,
}

/// Returns the output for a model of a command that ran.
pub(crate) fn output(outcome: &CommandOutcome, seconds: u64) -> ToolOutput {
    let captured = &outcome.output;
    let joined = |part: &dyn Fn(&str) -> String| match captured.omitted_bytes {
        0 => part(&format!("{}{}", captured.head, captured.tail)),
        omitted => format!(
            "{}\n[… {omitted} bytes omitted …]\n{}",
            part(&captured.head),
            part(&captured.tail)
        ),
    };
    let value = CommandResult {
        text: joined(&str::to_owned),
        exit_code: match outcome.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::TimedOut => None,
        },
        omitted_bytes: captured.omitted_bytes,
    };
    let mut text = shown(captured, joined(&folded));
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = match outcome.exit {
        Exit::Code(code) => write!(text, "[exit code {code}]"),
        Exit::Signal(signal) => write!(text, "[killed by signal {signal}]"),
        Exit::TimedOut => write!(
            text,
            "[timed out after {seconds} s; the command and everything it started were killed]"
        ),
    };
    ToolOutput {
        is_error: outcome.exit != Exit::Code(0),
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::read(text).with_value(&value)
    }
}

/// Returns the output for a model: folded as a terminal shows it, or summed up if it is not text.
fn shown(captured: &CapturedOutput, mut folded: String) -> String {
    let (head, tail) = (&captured.head, &captured.tail);
    // A byte that is not UTF-8 is shown in four.
    let kept = (head.len() + tail.len()) as u64 - 3 * captured.invalid_bytes;
    // Some commands separate names by a zero byte.
    let zeros = head.bytes().chain(tail.bytes()).filter(|byte| *byte == 0);
    if zeros.count() as u64 > kept / 10 || captured.invalid_bytes > kept / 4 {
        let bytes = kept + captured.omitted_bytes;
        return format!(
            "(output that is not text: {}; write it into a file, or show it with `xxd`)",
            counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte")
        );
    }
    if captured.invalid_bytes > 0 {
        if !folded.ends_with('\n') {
            folded.push('\n');
        }
        let invalid = usize::try_from(captured.invalid_bytes).unwrap_or(usize::MAX);
        let bytes = counted(invalid, "byte");
        let are = if invalid == 1 { "is" } else { "are" };
        let _ = write!(
            folded,
            "[{bytes} that {are} not UTF-8 {are} shown as \\xNN]"
        );
    }
    folded
}

/// Words with which programs report that they got no more memory.
const OUT_OF_MEMORY: [&str; 5] = [
    "Cannot allocate memory",
    "out of memory",
    "MemoryError",
    "bad_alloc",
    "memory allocation of",
];

/// Words with which programs report that a socket of the machine did not answer.
const SOCKET: [&str; 5] = [
    "authentication agent",
    "connecting to agent",
    "docker daemon",
    ".sock",
    "on socket",
];

/// Returns the limits of the sandbox that a command seems to have met, each with the setting that
/// would allow it.
fn limits(
    call: &ResolvedCall,
    outcome: &CommandOutcome,
    output: &ToolOutput,
    (seconds, site): (u64, &dyn Site),
) -> Vec<String> {
    let mut limits = Vec::new();
    let said = |words: &str| output.text.contains(words);
    if outcome.exit == Exit::TimedOut && seconds >= site.longest_command() {
        limits.push(format!(
            "no command runs for longer than {seconds} s here; for the person: `command-time` in \
             [sandbox] of config.toml"
        ));
    }
    let command = call.command.as_ref();
    let Some(containment) = command.and_then(|command| command.containment.as_ref()) else {
        return limits;
    };
    if output.is_error && needed_rights(call) {
        limits.push(HINT.to_owned());
    }
    if said("Read-only file system") {
        limits.push(if containment.writable.is_empty() {
            "it ran where nothing can be changed: the mode allows no more, or it looks like a line \
             that only reads"
                .to_owned()
        } else {
            "commands change nothing outside of the workspace and /tmp, nor what is protected \
             within; for a file elsewhere `write` asks the person, and `folders` in [sandbox] of \
             config.toml, or --add-dir, lets commands change a folder"
                .to_owned()
        });
    }
    if output.is_error && SOCKET.into_iter().any(said) {
        limits.push(
            "commands connect to no socket of this machine but those that `sockets` in [sandbox] of \
             the person's config.toml names"
                .to_owned(),
        );
    }
    if output.is_error && OUT_OF_MEMORY.into_iter().any(said) {
        limits.push(format!(
            "a process has at most {} MB of memory here; for the person: `memory-mb` in [sandbox] of \
             config.toml",
            containment.limits.memory_bytes >> 20
        ));
    }
    if let Some(hidden) = hidden(call) {
        let hidden = hidden.display();
        limits.push(format!(
            "the sandbox hides {hidden}: whatever is there, it looked empty"
        ));
    }
    limits
}

/// Whether the command's output suggests that it failed because of the sandbox.
fn needed_rights(call: &ResolvedCall) -> bool {
    let Some(command) = &call.command else {
        return false;
    };
    let mut facts = command.reading.facts.iter();
    command.containment.is_some()
        && facts.any(|fact| {
            matches!(
                fact.does,
                Does::UsesCredentials | Does::Publishes | Does::ChangesSystem
            )
        })
}

fn hidden(call: &ResolvedCall) -> Option<&Path> {
    let command = call.command.as_ref()?;
    let hidden = &command.containment.as_ref()?.hidden;
    command
        .reading
        .facts
        .iter()
        .find_map(|fact| match &fact.does {
            Does::Reads { path } if hidden.iter().any(|hidden| path.starts_with(hidden)) => {
                Some(path.as_path())
            }
            _ => None,
        })
}

/// Returns a small environment: variables that programs need, and none that could hold a secret.
fn environment(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let path = format!("{}:{STANDARD_PATH}", variable("PATH").unwrap_or_default());
    let mut folders: Vec<&str> = Vec::new();
    for folder in path.split(':') {
        // A relative entry would mean that a file in the workspace can pose as `ls`.
        if folder.starts_with('/') && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let mut environment = BTreeMap::from([
        ("PATH".to_owned(), folders.join(":")),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("TERM".to_owned(), "dumb".to_owned()),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
    ]);
    environment.extend(QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for name in ["HOME", "USER", "LANG", "LC_ALL", "TMPDIR"] {
        if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
            environment.insert(name.to_owned(), value);
        }
    }
    environment
}
