//! The error type of commands, for the person who typed one: what happened, why, and what to do.
//!
//! A failure carries the exit code that it ends the process with. Nothing below the commands
//! knows of exit codes; here errors of the other crates get theirs.

use std::{error::Error, fmt, io, path::Path, str::FromStr};

use gyrus_contract::RunId;
use gyrus_gate::policy::PolicyFileError;
use gyrus_journal::LogName;
use gyrus_kernel::{
    FindRunError, KernelError, StandingError, Stop, WorkspaceMoved,
    approvals::{ApprovalError, VoidAnswer},
    grants::GrantError,
    redact::KeyError,
};
use gyrus_mcp::ProjectFileError;
use gyrus_models::MeasuredError;
use gyrus_process::ProgramError;
use gyrus_runtime::{ledger::LedgerError, request::RefusedRequest};
use gyrus_surfaces::{SurfaceError, next_step};
use gyrus_text::visible;

use crate::{exit::Code, system_cause};

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// The error, in one sentence.
    pub(crate) message: String,
    /// Causes, outermost first.
    pub(crate) causes: Vec<String>,
    /// Advice on what to do next.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// Creates a failure for a request that cannot be fulfilled: exit code 2.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Code::Usage, message)
    }

    /// Creates a failure for an operation that did not succeed: exit code 1.
    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::new(Code::Failed, message)
    }

    /// The model cannot be asked: exit code 7.
    pub(crate) fn unreachable(message: impl fmt::Display) -> Self {
        Self::new(Code::ModelUnreachable, message)
    }

    /// Creates a failure for a run that another worker has: exit code 8.
    #[cfg(feature = "fleet")]
    pub(crate) fn elsewhere(message: impl fmt::Display) -> Self {
        Self::new(Code::Elsewhere, message)
    }

    fn new(code: Code, message: impl fmt::Display) -> Self {
        Self {
            code,
            message: message.to_string(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Adds a cause, and the causes behind it.
    pub(crate) fn because(mut self, cause: &(dyn Error + 'static)) -> Self {
        for cause in std::iter::successors(Some(cause), |&cause| cause.source()) {
            let Some(known) = system_cause::of(cause) else {
                self.causes.push(cause.to_string());
                continue;
            };
            self.causes.push(known.words.to_owned());
            self.hint = self.hint.or(known.next.map(str::to_owned));
            if known.is_want && self.code == Code::Usage {
                // The same words do once it is there.
                self.code = Code::Failed;
            }
            break;
        }
        self
    }

    /// Whether the failure is printed to nobody.
    pub(crate) fn is_silent(&self) -> bool {
        self.message.is_empty()
    }

    /// Adds advice on what to do next.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

impl Failure {
    /// Returns the failure as text, for a surface that marks errors itself.
    pub(crate) fn in_words(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("error: ").unwrap_or(&text).to_owned()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may quote paths and contents.
        write!(f, "error: {}", visible(&self.message))?;
        for cause in &self.causes {
            write!(f, "\n  because: {}", visible(cause))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", visible(hint))?;
        }
        Ok(())
    }
}

impl Error for Failure {}

pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(flag: &str, text: &str) -> Result<T, Failure> {
    let wrong = |error| Failure::usage(format!("invalid value for `{flag}`: {error}"));
    text.parse().map_err(wrong)
}

impl From<gyrus_journal::Error> for Failure {
    fn from(error: gyrus_journal::Error) -> Self {
        of_journal(&error)
    }
}

fn of_journal(error: &gyrus_journal::Error) -> Failure {
    use gyrus_journal::Error as E;
    match error {
        E::NetworkFileSystem { .. } | E::NotAStore { .. } => Failure::usage(error).hint(format!(
            "name a folder on a local disk: {}=/path gyrus …",
            crate::env::GYRUS_HOME
        )),
        E::NotFound { name } => Failure::usage(format!("there is no {}", kind_and_name(name))),
        E::NewerFormat { .. } | E::BadExport { .. } | E::Exists { .. } => Failure::usage(error),
        E::Held { name, holder } => Failure::failed(format!(
            "run {} is held by process {} on {} since {}",
            short(name),
            holder.process.pid,
            holder.host,
            gyrus_text::utc(holder.since_ms)
        ))
        .hint(format!(
            "let it finish, or end it and take its run over: gyrus resume {} --take",
            short(name)
        )),
        E::BornElsewhere { name } => Failure::usage(format!(
            "{} was imported or copied from elsewhere: it is a record, and nothing of it acts",
            kind_and_name(name)
        ))
        .hint(match name.id().parse::<RunId>() {
            Ok(run) => format!(
                "look at it: gyrus show {0}; to begin a new run of yours with what it remembers: \
                 gyrus resume {0} --workdir FOLDER",
                run.short()
            ),
            Err(_) => format!("if all of this state is yours: {ADOPT}"),
        }),
        E::CopiedStore { root } => Failure::usage(format!(
            "the state in {} was copied or moved here from another place: it can be read, and nothing \
             is begun there or gone on with",
            root.display()
        ))
        .hint(format!("if it is yours: {ADOPT}")),
        E::NeedsReplica { name } => Failure::usage(format!(
            "run {} belongs to a fleet",
            short(name)
        ))
        .hint(
            "the fleet's workers continue the run: gyrus worker --fleet ADDRESS; the copy here may be behind",
        ),
        _ => {
            let mut chain = std::iter::successors(Some(error as &(dyn Error + 'static)), |&it| it.source());
            let failure = Failure::failed(error);
            match chain.find_map(system_cause::of).and_then(|known| known.next) {
                Some(next) => failure.hint(next),
                None => failure,
            }
        }
    }
}

/// The command with which a person makes a copied state their own.
const ADOPT: &str = "gyrus runs adopt";

fn kind_and_name(name: &LogName) -> String {
    match name.id().parse::<RunId>() {
        Ok(run) => format!("run {}", run.short()),
        Err(_) => format!("log {name}"),
    }
}

/// Returns the short name of a log, as a person knows it: most are runs.
fn short(name: &LogName) -> String {
    let id = name.id();
    id.parse::<RunId>()
        .map_or_else(|_| id.to_owned(), RunId::short)
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Journal(error) => of_journal(&error),
            KernelError::Stop(stop) => stop.into(),
            KernelError::Latched(latched) => latched.into(),
            KernelError::Loop(reason) => Failure::usage(reason),
            KernelError::UnknownPrice { .. } => Failure::usage(error).hint("add --max-tokens N"),
            KernelError::Over { run, .. } => {
                let run = run.short();
                Failure::usage(error).hint(format!(
                    "fork it to go on from one of its steps: gyrus fork {run} --at STEP --workdir \
                     NEW"
                ))
            }
            KernelError::NotARun { .. } => Failure::usage(error),
            KernelError::Moved(moved) => moved.into(),
            KernelError::NoStep { run, .. } => {
                Failure::usage(error).hint(format!("see its steps: gyrus show {}", run.short()))
            }
        }
    }
}

impl From<WorkspaceMoved> for Failure {
    fn from(moved: WorkspaceMoved) -> Self {
        Failure::failed(moved).hint(
            "put it back there; or go on with a copy of one of its steps: gyrus fork RUN --at STEP \
             --workdir NEW",
        )
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Journal(error) => of_journal(&error),
            Stop::Divergence(_) => Failure::failed(stop)
                .hint("nothing was repeated; the run can be read with `gyrus show`, or forked"),
            Stop::Park(_)
            | Stop::Failed(_)
            | Stop::EndOfRecord
            | Stop::Unreadable(_)
            | Stop::BadBlob(_) => Failure::failed(stop),
        }
    }
}

impl From<gyrus::RuntimeError> for Failure {
    fn from(error: gyrus::RuntimeError) -> Self {
        use gyrus::RuntimeError as E;
        match error {
            E::State { ref source, .. } => state(&error, source),
            E::FolderName { .. } => {
                Failure::usage(error).hint("rename it, or name another one: --workdir FOLDER")
            }
            E::WorkspaceInVault { .. } => {
                Failure::usage(error).hint("name another folder: --workdir FOLDER")
            }
            E::Policy(error) => error.into(),
            E::Grants(error) => error.into(),
            E::Key(error) => error.into(),
            E::Journal(error) => of_journal(&error),
            E::Kernel(error) => error.into(),
            E::Agents(error) => Failure::failed(error),
            E::Bus(error) => Failure::failed(error),
            E::Context(_) | E::ContextElsewhere { .. } => Failure::failed(error),
            E::Workspace(_) => {
                Failure::usage(error).hint("name the folder that may be changed: --workdir FOLDER")
            }
            E::SystemFolder { folder } => {
                let at = folder.display();
                Failure::usage(format!("{at} belongs to the system")).hint(format!(
                    "a run works there only if you agree once: at a terminal, gyrus --workdir {at}"
                ))
            }
            E::NoModel | E::Connect(_) | E::Script(_) => Failure::usage(error),
        }
    }
}

fn state(error: &gyrus::RuntimeError, source: &io::Error) -> Failure {
    if source.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self").exists() {
        return Failure::failed("there is no /proc here, and nothing works without it")
            .hint("mount it: mount -t proc proc /proc");
    }
    let failure = Failure::usage(error).because(source);
    // A want has its own advice.
    if failure.code == Code::Failed {
        return failure;
    }
    let name = crate::env::GYRUS_HOME;
    failure.hint(format!(
        "make it writable, or name another one: {name}=/path gyrus …"
    ))
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        Self::failed(error)
    }
}

impl From<FindRunError> for Failure {
    fn from(error: FindRunError) -> Self {
        let failure = Failure::usage(&error);
        let list = "see which there are: gyrus runs list";
        match error {
            FindRunError::Journal(error) => of_journal(&error),
            FindRunError::NoRuns => failure.hint("start one: gyrus run GOAL"),
            FindRunError::TooShort { .. } | FindRunError::NotFound { .. } => failure.hint(list),
            FindRunError::Ambiguous { .. } => failure.hint("give more characters of the id"),
        }
    }
}

impl From<StandingError> for Failure {
    fn from(error: StandingError) -> Self {
        match error {
            StandingError::Journal(error) => of_journal(&error),
            error => Failure::failed(error),
        }
    }
}

impl From<MeasuredError> for Failure {
    fn from(error: MeasuredError) -> Self {
        match &error {
            MeasuredError::Read { source, .. } => Failure::usage(&error).because(source),
            MeasuredError::Write { source, .. } => Failure::failed(&error).because(source),
        }
    }
}

impl From<PolicyFileError> for Failure {
    fn from(error: PolicyFileError) -> Self {
        let failure = Failure::usage(&error);
        match &error {
            PolicyFileError::Read { source, .. } => failure.because(source),
            PolicyFileError::Wrong(wrong) => failure.hint(format!(
                "fix {}; until then nothing runs",
                wrong.file.display()
            )),
            PolicyFileError::Meanings(_) | PolicyFileError::ControlFiles { .. } => failure,
            PolicyFileError::UnknownAgent { agent, .. } => failure.hint(format!(
                "write in policy.toml what it may do: [agent.{agent}]"
            )),
        }
    }
}

impl From<ProjectFileError> for Failure {
    fn from(error: ProjectFileError) -> Self {
        let mut failure = Failure::usage(&error);
        if let Some(source) = &error.source {
            failure = failure.because(source);
        }
        match error.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        match &error {
            KeyError::Damaged { .. } => Failure::failed(&error)
                .hint("remove the file; secrets that are found in text then get other names"),
            KeyError::Read { source, .. } | KeyError::Unusable(source) => {
                Failure::usage(&error).because(source)
            }
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        match &error {
            LedgerError::Journal(journal) => of_journal(journal),
            LedgerError::Unreadable { .. } | LedgerError::Unwritable(_) => {
                Self::failed("the state cannot be read or written").because(&error)
            }
            LedgerError::Shared { .. } => {
                Self::usage(&error).hint("to see what is wrong with the fleet: gyrus fleet doctor")
            }
        }
    }
}

impl From<GrantError> for Failure {
    fn from(error: GrantError) -> Self {
        let failure = Failure::failed(&error);
        match error {
            GrantError::Journal(error) => of_journal(&error),
            GrantError::InUse | GrantError::Unreadable { source: None, .. } => failure,
            GrantError::Unreadable {
                source: Some(source),
                ..
            }
            | GrantError::Unwritable(source) => failure.because(&source),
        }
    }
}

impl From<ApprovalError> for Failure {
    fn from(error: ApprovalError) -> Self {
        let failure = Failure::failed(&error);
        match error {
            ApprovalError::Journal(error) => of_journal(&error),
            ApprovalError::Grant(error) => error.into(),
            ApprovalError::Void(void) => void.into(),
            ApprovalError::Busy { .. } => failure.hint("see what became of it: gyrus approvals"),
            ApprovalError::Unlockable { source, .. } => failure.because(&source),
            ApprovalError::NoWorkspace(_) => failure,
            ApprovalError::Over { .. } => Failure::usage(error),
            ApprovalError::Message(source) => failure.because(&source),
        }
    }
}

impl From<VoidAnswer> for Failure {
    fn from(void: VoidAnswer) -> Self {
        let hint = next_step(&void);
        Failure::usage(void).hint(hint)
    }
}

impl From<SurfaceError> for Failure {
    fn from(error: SurfaceError) -> Self {
        let hint = error.hint();
        let failure = match error {
            SurfaceError::Journal(error) => of_journal(&error),
            SurfaceError::Approval(error) => error.into(),
            SurfaceError::Output(error) => error.into(),
            SurfaceError::Program(error) => error.into(),
            SurfaceError::Watcher(error) => Failure::failed(error),
            SurfaceError::Json(source) => {
                Failure::failed("the output cannot be written").because(&source)
            }
            SurfaceError::File {
                message, source, ..
            } => Failure::failed(message).because(&source),
            SurfaceError::Usage {
                message, source, ..
            } => match &source {
                Some(source) => Failure::usage(message).because(source),
                None => Failure::usage(message),
            },
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<RefusedRequest> for Failure {
    fn from(RefusedRequest { message, hint }: RefusedRequest) -> Self {
        Self {
            hint,
            ..Self::usage(message)
        }
    }
}

impl From<std::io::Error> for Failure {
    /// Standard output or error cannot be written.
    fn from(error: std::io::Error) -> Self {
        // Whoever read it has seen enough, as in `gyrus runs list | head -1`.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::failed("");
        }
        Failure::failed("the output cannot be written").because(&error)
    }
}
