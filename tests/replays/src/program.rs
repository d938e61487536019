//! gyrus as a person runs it: a process in a home of its own, whose questions about the practice
//! sites are answered with yes.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use gyrus_contract::{Answer, ApprovalScope, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{
    Entry,
    approvals::{self, OpenQuestion},
};
use gyrus_player::Player;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

/// Time after which a run is ended from outside.
const LIMIT: Duration = Duration::from_secs(120);

/// A gyrus with a home and a folder to work in.
pub(crate) struct Program {
    binary: PathBuf,
    folder: tempfile::TempDir,
    store: Store,
}

/// A run, as it was seen from outside.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// The exit code.
    pub(crate) code: Option<i32>,
    /// Number of questions to models.
    pub(crate) asked_models: usize,
    /// Time from the start of the process to its end.
    pub(crate) took: Duration,
    /// The reason why a procedure was handed over, or the last words on standard error.
    pub(crate) said: String,
}

/// A task that is shown once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lesson<'a> {
    pub(crate) url: &'a str,
    pub(crate) command: &'a str,
    /// The task as the player reads it.
    pub(crate) played: &'a str,
    /// The check that it must pass.
    pub(crate) check: &'a str,
}

/// A fact of a run, of which the reason is told.
#[derive(Deserialize)]
struct Noted {
    fact: Reason,
}

/// Why a replay was handed over, or a run is stuck.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reason {
    Stuck(String),
    HandedOver { reason: String },
}

/// An entry as `gyrus run --json` prints it.
#[derive(Deserialize)]
struct Line<'a> {
    run: RunId,
    kind: &'a str,
    v: u16,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

impl Program {
    pub(crate) fn new(binary: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("gyrus-replays-")
            .tempdir()?;
        std::fs::create_dir(folder.path().join("work"))?;
        let home = folder.path().join("home");
        std::fs::create_dir(&home)?;
        Ok(Self {
            binary: binary.to_owned(),
            store: Store::open(&home.join("journal"))?,
            folder,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env_clear()
            .env("GYRUS_HOME", self.folder.path().join("home"))
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANG", "C.UTF-8")
            .current_dir(self.folder.path().join("work"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end and returns its standard output.
    pub(crate) async fn says(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output().await?;
        if !output.status.success() {
            bail!(
                "gyrus {} ended with {}: {}",
                arguments.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Learns a task: a run with the perfect player, a check, and a person's yes. Returns the name of
    /// the procedure.
    pub(crate) async fn learn(&self, lesson: Lesson<'_>) -> anyhow::Result<(String, Ran)> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("task.toml");
        std::fs::write(&file, lesson.played)?;
        let player = Player::start(gyrus_player::read(&file).map_err(anyhow::Error::msg)?)?;
        let model = player.model();
        let arguments = [
            "--url",
            lesson.url,
            "--model",
            &model,
            "--check",
            lesson.check,
        ];
        let more = ["--require", "checked", "--", lesson.command];
        let ran = self.run(&[&arguments[..], &more].concat()).await?;
        if ran.code != Some(0) {
            let shown = self.says(&["show", "last"]).await?;
            bail!("the first run failed with {:?}:\n{shown}", ran.code);
        }
        let listed = self.says(&["procedures", "list", "--json"]).await?;
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed)
            .with_context(|| format!("`procedures list --json` printed {listed}"))?;
        let [one] = &listed[..] else {
            let why = self.says(&["procedures", "why", "last"]).await?;
            bail!("{} procedures were learned: {why}", listed.len());
        };
        let name = one["name"].as_str().context("it has no name")?.to_owned();
        self.says(&["procedures", "promote", &name, "--yes"])
            .await?;
        Ok((name, ran))
    }

    /// Starts a run and answers its questions until it ends.
    pub(crate) async fn run(&self, arguments: &[&str]) -> anyhow::Result<Ran> {
        let fixed = ["run", "--approve", "auto", "--on-ask", "wait", "--json"];
        self.watch(&fixed, arguments, u64::MAX).await
    }

    /// Starts a run, kills it after so many entries, and resumes it.
    pub(crate) async fn run_killed(&self, arguments: &[&str], after: u64) -> anyhow::Result<Ran> {
        let fixed = ["run", "--approve", "auto", "--on-ask", "wait", "--json"];
        let ran = self.watch(&fixed, arguments, after).await?;
        if ran.code.is_some() {
            return Ok(ran);
        }
        let fixed = ["resume", "--take", "--approve", "auto", "--on-ask", "wait"];
        let again = self.watch(&fixed, &["--json", "last"], u64::MAX).await?;
        Ok(Ran {
            asked_models: ran.asked_models + again.asked_models,
            ..again
        })
    }

    async fn watch(&self, fixed: &[&str], arguments: &[&str], entries: u64) -> anyhow::Result<Ran> {
        let began = Instant::now();
        let mut child = self
            .command(&[fixed, arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", self.binary.display()))?;
        let out = child.stdout.take().context("it has no output")?;
        let err = child.stderr.take().context("it has no errors")?;
        let saying = tokio::spawn(last_line(err));
        let mut ran = Ran::default();
        let mut lines = BufReader::new(out).lines();
        let watching = async {
            let mut left = entries;
            while let Some(line) = lines.next_line().await? {
                self.take(&line, &mut ran);
                left = left.saturating_sub(1);
                if left == 0 {
                    child.start_kill()?;
                }
            }
            anyhow::Ok(child.wait().await?.code())
        };
        match tokio::time::timeout(LIMIT, watching).await {
            Ok(code) => ran.code = code?,
            Err(_) => {
                child.kill().await?;
                ran.said = "it did not end in time".to_owned();
            }
        }
        ran.took = began.elapsed();
        let said = saying.await?;
        if ran.said.is_empty() {
            ran.said = said;
        }
        Ok(ran)
    }

    fn take(&self, line: &str, ran: &mut Ran) {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else {
            return;
        };
        ran.asked_models += usize::from(line.kind == "model.call");
        let payload = line.payload.map(RawValue::get);
        if ["procedure.handed_over", "stuck"].contains(&line.kind) {
            let noted = payload.and_then(|payload| serde_json::from_str::<Noted>(payload).ok());
            ran.said = match noted.map(|noted| noted.fact) {
                Some(Reason::Stuck(why) | Reason::HandedOver { reason: why }) => why,
                None => format!("it cannot be read why: {}", payload.unwrap_or_default()),
            };
        }
        let entry = payload.map(|payload| Entry::parse(line.kind, line.v, payload));
        if let Some(Ok(Entry::ApprovalAsked(asked))) = entry {
            let from = Principal {
                surface: "replays".to_owned(),
                id: "a person".to_owned(),
            };
            let yes = Answer::yes(ApprovalScope::Once);
            // A run that asks nothing any more needs no answer.
            let _ = approvals::answer(&self.store, &OpenQuestion::new(line.run, asked), from, yes);
        }
    }
}

async fn last_line(from: impl tokio::io::AsyncRead + Unpin) -> String {
    let mut lines = BufReader::new(from).lines();
    let mut last = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if !line.trim().is_empty() {
            last = line;
        }
    }
    last
}
