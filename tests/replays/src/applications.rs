//! Real applications of the registries: each task is learned once, then asked for with other values
//! while what the application holds grows, and is judged by what its database or its API says.
//!
//! An application is a file of `applications/`: how it is prepared and served, a program of Python
//! that prints all that it holds as a list of texts, one that adds more, and the tasks.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

use crate::{
    Count, Verdict,
    kinds_of_values::{PATHS, TEXTS, names_like},
    program::{Lesson, Program, Ran},
};

/// Time in which a server answers. The first start of a Python program compiles it.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The number of the replay from which on the application holds more each time.
const GROWS_FROM: usize = 4;

/// The number of the replay from which on the application speaks another language, if it has one.
const SPEAKS_FROM: usize = 14;

/// A series of replays on installed applications.
#[derive(Debug, Clone)]
pub struct ApplicationSeries {
    /// The executable.
    pub gyrus: PathBuf,
    /// The folder below which the packages are installed, `venv` and `npm`.
    pub installed: PathBuf,
    /// Only applications whose name contains this.
    pub only: String,
    /// Number of replays of each task.
    pub replays: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Application {
    name: String,
    /// Files that are written into its folder first.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Commands of a shell that make it ready.
    #[serde(default)]
    prepare: String,
    /// The command that serves it on `$PORT`.
    serve: String,
    /// A program of Python that prints what it holds.
    state: String,
    /// A program of Python that adds what its arguments name.
    grow: String,
    /// Commands of a shell after which it speaks another language.
    #[serde(default)]
    speaks: String,
    task: Vec<ApplicationTask>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplicationTask {
    name: String,
    start: String,
    /// The command, with `{0}` and `{1}` for values.
    command: String,
    /// Steps of the perfect player.
    does: Vec<toml::Table>,
    check: String,
    /// What must be there before.
    #[serde(default)]
    needs: Vec<String>,
    /// What is there afterwards, and was not before.
    adds: Vec<String>,
    /// What is no longer there afterwards.
    #[serde(default)]
    removes: Vec<String>,
    /// The values are paths and addresses.
    #[serde(default)]
    paths: bool,
}

impl ApplicationTask {
    /// Returns the values of a replay; those of number 0 are learned.
    fn values(&self, number: usize) -> [&'static str; 2] {
        let pool = if self.paths { PATHS } else { TEXTS };
        pool[number % pool.len()]
    }
}

fn filled(text: &str, values: [&str; 2]) -> String {
    text.replace("{0}", values[0]).replace("{1}", values[1])
}

/// A running application in a folder of its own.
struct Running<'a> {
    application: &'a Application,
    folder: tempfile::TempDir,
    path: String,
    modules: PathBuf,
    port: u16,
    _server: Child,
}

impl<'a> Running<'a> {
    async fn start(application: &'a Application, installed: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("gyrus-app-").tempdir()?;
        for (name, text) in &application.files {
            std::fs::write(folder.path().join(name), text)?;
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let modules = installed.join("npm/node_modules");
        let path = format!(
            "{}:{}:{}",
            installed.join("venv/bin").display(),
            modules.join(".bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let shell = |text: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-ec", text]);
            in_its_folder(&mut command, folder.path(), &path, &modules, port);
            command
        };
        let made = shell(&application.prepare).output().await?;
        ensure!(
            made.status.success(),
            "{} could not be prepared: {}",
            application.name,
            String::from_utf8_lossy(&made.stderr)
        );
        let server = shell(&application.serve)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let since = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .is_err()
        {
            ensure!(
                since.elapsed() < START_LIMIT,
                "{} does not answer",
                application.name
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(Self {
            application,
            folder,
            path,
            modules,
            port,
            _server: server,
        })
    }

    fn url(&self, task: &ApplicationTask) -> String {
        format!("http://127.0.0.1:{}{}", self.port, task.start)
    }

    async fn python(&self, program: &str, arguments: &[String]) -> anyhow::Result<Vec<u8>> {
        let mut command = Command::new(self.modules.join("../../venv/bin/python"));
        command.args(["-c", program]).args(arguments);
        in_its_folder(
            &mut command,
            self.folder.path(),
            &self.path,
            &self.modules,
            self.port,
        );
        let output = command.output().await?;
        ensure!(
            output.status.success(),
            "a program of {} failed: {}",
            self.application.name,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }

    /// Returns all that the application holds, sorted.
    async fn holds(&self) -> anyhow::Result<Vec<String>> {
        let printed = self.python(&self.application.state, &[]).await?;
        let mut held: Vec<String> = serde_json::from_slice(&printed)?;
        held.sort();
        Ok(held)
    }

    /// Waits until the application has written down what it was told, and returns what it holds.
    async fn holds_after(&self, before: &[String]) -> anyhow::Result<Vec<String>> {
        let since = Instant::now();
        loop {
            let held = self.holds().await?;
            if held != before || since.elapsed() > Duration::from_secs(2) {
                return Ok(held);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn grow(&self, names: &[String]) -> anyhow::Result<()> {
        if !names.is_empty() {
            self.python(&self.application.grow, names).await?;
        }
        Ok(())
    }

    async fn speak(&self) -> anyhow::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", &self.application.speaks]);
        in_its_folder(
            &mut command,
            self.folder.path(),
            &self.path,
            &self.modules,
            self.port,
        );
        ensure!(
            command.status().await?.success(),
            "{} speaks one language",
            self.application.name
        );
        Ok(())
    }
}

fn in_its_folder(command: &mut Command, folder: &Path, path: &str, modules: &Path, port: u16) {
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env("PATH", path)
        .env("NPM", modules)
        .env("PORT", port.to_string())
        .env("PYTHONPATH", folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
}

impl ApplicationSeries {
    /// Does it and tells what it does; the counts are by application.
    ///
    /// # Errors
    /// An application cannot be started, a task cannot be learned, or gyrus cannot be run.
    pub async fn run(&self, tell: impl Fn(&str)) -> anyhow::Result<BTreeMap<String, Count>> {
        let mut counts = BTreeMap::new();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/applications");
        let files = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let mut files: Vec<_> = files.collect::<Result<_, _>>()?;
        files.sort();
        for file in files {
            let application: Application = toml::from_str(&std::fs::read_to_string(&file)?)
                .with_context(|| format!("{} cannot be read", file.display()))?;
            if !application
                .name
                .to_lowercase()
                .contains(&self.only.to_lowercase())
            {
                continue;
            }
            for task in &application.task {
                let count = self.task(&application, task, &tell).await;
                let key = format!("{}: {}", application.name, task.name);
                counts.insert(key.clone(), count.context(key)?);
            }
        }
        ensure!(
            !counts.is_empty(),
            "no application is called `{}`",
            self.only
        );
        Ok(counts)
    }

    async fn task(
        &self,
        application: &Application,
        task: &ApplicationTask,
        tell: &impl Fn(&str),
    ) -> anyhow::Result<Count> {
        let running = Running::start(application, &self.installed).await?;
        let program = Program::new(&self.gyrus)?;
        let values = task.values(0);
        let needs: Vec<_> = task.needs.iter().map(|it| filled(it, values)).collect();
        running.grow(&needs).await?;
        let before = running.holds().await?;
        let command = filled(&task.command, values);
        let lesson = Lesson {
            url: &running.url(task),
            command: &command,
            played: &played(task, values),
            check: &task.check,
        };
        let (_, first) = program.learn(lesson).await?;
        let after = running.holds_after(&before).await?;
        let verdict = judged(task, values, &before, &after, &first);
        ensure!(
            verdict == Verdict::Replayed,
            "the first run did something else: {verdict:?}"
        );
        let mut count = Count {
            first: first.took,
            ..Count::default()
        };
        for number in 1..=self.replays {
            let (verdict, ran) = replay(&running, &program, task, number).await?;
            let values = task.values(number);
            tell(&format!(
                "{}, {}, {number} {values:?}: {verdict:?} in {:.1} s {}",
                application.name,
                task.name,
                ran.took.as_secs_f64(),
                ran.said
            ));
            count.add(verdict, &ran, &format!("{} {number}", task.name));
        }
        Ok(count)
    }
}

/// Asks for a task with the values of a number.
async fn replay(
    running: &Running<'_>,
    program: &Program,
    task: &ApplicationTask,
    number: usize,
) -> anyhow::Result<(Verdict, Ran)> {
    let values = task.values(number);
    let mut more: Vec<_> = task.needs.iter().map(|it| filled(it, values)).collect();
    if number >= GROWS_FROM {
        more.extend(names_like(values[0]));
    }
    running.grow(&more).await?;
    if number == SPEAKS_FROM && !running.application.speaks.is_empty() {
        running.speak().await?;
    }
    let before = running.holds().await?;
    let url = running.url(task);
    let command = filled(&task.command, values);
    let mut ran = program.run(&["--url", &url, "--", &command]).await?;
    if ran.code == Some(2) {
        "the command was not taken for the learned one".clone_into(&mut ran.said);
    }
    let after = running.holds_after(&before).await?;
    let mut verdict = judged(task, values, &before, &after, &ran);
    if ran.asked_models > 0 {
        verdict = Verdict::Wrong("it asked a model".to_owned());
    }
    Ok((verdict, ran))
}

/// Returns the task as the player reads it.
fn played(task: &ApplicationTask, values: [&str; 2]) -> String {
    let steps = task.does.iter().map(|step| {
        let fields = step.iter().map(|(key, value)| {
            let value = match value.as_str() {
                Some(text) => toml::Value::String(filled(text, values)),
                None => value.clone(),
            };
            (key.clone(), value)
        });
        toml::Value::Table(fields.collect())
    });
    let mut one = toml::Table::new();
    one.insert("id".to_owned(), task.name.clone().into());
    one.insert("goal".to_owned(), filled(&task.command, values).into());
    one.insert("does".to_owned(), toml::Value::Array(steps.collect()));
    let mut all = toml::Table::new();
    all.insert("task".to_owned(), toml::Value::Array(vec![one.into()]));
    all.to_string()
}

/// Judges a run by what the application held before and after it.
fn judged(
    task: &ApplicationTask,
    values: [&str; 2],
    before: &[String],
    after: &[String],
    ran: &Ran,
) -> Verdict {
    let added = without(after, before);
    let removed = without(before, after);
    let claims = ran.code == Some(0);
    let all = |texts: &[String]| {
        let mut all: Vec<_> = texts.iter().map(|text| filled(text, values)).collect();
        all.sort();
        all
    };
    if added.is_empty() && removed.is_empty() {
        if claims {
            Verdict::Wrong("it claims what did not happen".to_owned())
        } else {
            Verdict::HandedOver
        }
    } else if added != all(&task.adds) || removed != all(&task.removes) {
        Verdict::Wrong(format!("it added {added:?} and removed {removed:?}"))
    } else if claims {
        Verdict::Replayed
    } else {
        Verdict::HandedOver
    }
}

/// Returns what is in the one list and not in the other, each as often.
fn without(these: &[String], those: &[String]) -> Vec<String> {
    let mut left = those.to_vec();
    let is_more = |text: &&String| match left.iter().position(|other| other == *text) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    these.iter().filter(is_more).cloned().collect()
}
