//! `gyrus demo`: a task, a crash in the middle of it, and everything that holds after it.
//!
//! The demo is a person at a second terminal: it starts gyrus as a process, watches it through
//! its journal, kills it, resumes it, and then looks for itself: at the process table, at the
//! folder's own ledger, at the journal. Nothing is asserted that was not looked at.

mod world;
mod actor;
mod report;

use std::time::{Duration, Instant};

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::{Store, os::process::ProcessIdentity};
use gyrus_kernel::{Entry, Settled, log_name};

use self::{
    actor::Actor,
    report::Report,
    world::{LEDGER, World},
};
use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    home::Home,
    organs,
    select::{self, short},
    show::paint::Paint,
};

/// The step in whose middle the process is killed.
const KILLED_IN: u32 = 5;

/// The last step that the fork shares.
const FORKED_AT: u32 = 3;

/// How long the processes of a killed run may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Plays it. The exit code says whether everything held.
pub(crate) fn play(gyrus: &Gyrus, json: bool, keep: bool) -> Result<Code, Failure> {
    let world = World::make()?;
    let home = world.gyrus_home(&gyrus.environment)?;
    let store = home.store()?;
    let report = Report::new(json, gyrus.environment.plain);
    let mut demo = Demo {
        world,
        home,
        store,
        report,
        seen: !json,
    };
    let runtime = drive::runtime()?;
    let played = runtime.block_on(async {
        tokio::select! {
            played = demo.play() => played.map(Some),
            // Dropping the play kills what it started.
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    runtime.shutdown_background();
    match played? {
        Some(run) => demo.farewell(run, keep),
        None => Ok(Code::Interrupted),
    }
}

struct Demo {
    world: World,
    home: Home,
    store: Store,
    report: Report,
    /// The console of the runs is shown.
    seen: bool,
}

impl Demo {
    async fn play(&mut self) -> Result<RunId, Failure> {
        self.report.say(
            Paint::Strong,
            "Scripted: what the model says. Real: files, shell, journal, crash, resume, replay, \
             fork.",
        )?;
        let (run, effect) = self.crash().await?;
        self.resume(run, &effect).await?;
        self.replay(run).await?;
        let fork = self.fork(run).await?;
        self.verify(&[run, fork])?;
        Ok(run)
    }

    /// A run works until a command is in the middle of its work; then it is killed.
    async fn crash(&mut self) -> Result<(RunId, EffectId), Failure> {
        self.report
            .part("1. A run adds up sales figures and posts the result.")?;
        let script = format!("script:{}", self.world.script.display());
        let work = self.world.work.display().to_string();
        let goal = "Add up the sales in this folder and post the total once.";
        let arguments = [
            "run",
            goal,
            "--model",
            &script,
            "--workdir",
            &work,
            "--approve",
            "auto",
        ];
        let mut actor = Actor::start(&self.world.home, &arguments, self.seen)?;
        let run = actor::first_run(&self.store).await?;
        let has_begun = || self.world.ledger().contains("begun");
        let effect =
            actor::in_the_middle(&self.store, run, KILLED_IN, has_begun, &self.world.work).await?;
        let tree = actor.tree();
        self.report.part(&format!(
            "2. Its process is killed in the middle of effect {effect}: SIGKILL, no goodbye."
        ))?;
        let killed = Instant::now();
        actor.kill()?;
        let gone =
            tokio::task::spawn_blocking(move || all_gone(&tree).map(|all| (all, tree.len())));
        let (gone, processes) = gone.await.map_err(Failure::failed)??;
        let detail = format!(
            "none of its {processes} processes is alive, the command's included, {} ms later",
            killed.elapsed().as_millis()
        );
        self.report
            .found("nothing_survives_the_kill", gone && processes > 1, &detail)?;
        Ok((run, effect))
    }

    /// The run is taken up where the journal ends.
    async fn resume(&mut self, run: RunId, effect: &EffectId) -> Result<(), Failure> {
        self.report
            .part(&format!("3. gyrus resume {}", short(&run.to_string())))?;
        let id = run.to_string();
        let actor = Actor::start(&self.world.home, &["resume", &id], self.seen)?;
        let code = actor.end().await?;
        self.report.found(
            "the_run_reaches_its_goal",
            code == Some(0),
            &format!(
                "the run reached its goal (exit code {})",
                code.unwrap_or(-1)
            ),
        )?;
        let ledger = self.world.ledger();
        let lines: Vec<&str> = ledger.lines().collect();
        self.report.found(
            "finished_effects_happen_once",
            ledger == LEDGER,
            &format!(
                "nothing happened twice; the folder's own ledger says: {}",
                lines.join(" · ")
            ),
        )?;
        let settled = settled(&self.store, run, effect)?;
        self.report.found(
            "the_interrupted_effect_is_not_repeated",
            settled == Some(Settled::Interrupted),
            &format!(
                "effect {effect} was not repeated: a command is never run again by itself; the \
                 model was told that it was interrupted, and looked first"
            ),
        )
    }

    /// Everything once more, from the journal alone.
    async fn replay(&mut self, run: RunId) -> Result<(), Failure> {
        self.report
            .part(&format!("4. gyrus replay {}", short(&run.to_string())))?;
        let kernel = organs::silent_kernel(&self.home, self.store.clone())?;
        let began = Instant::now();
        let replayed = kernel.replay(run).await?;
        let seconds = began.elapsed().as_secs_f64().max(f64::EPSILON);
        self.report.found(
            "the_replay_agrees",
            replayed.differences.is_empty() && !replayed.unfinished,
            &format!(
                "without model, tools or files: {} entries, {} steps, {} differences, {:.0} \
                 entries/s",
                replayed.entries,
                replayed.cycles,
                replayed.differences.len(),
                replayed.entries as f64 / seconds
            ),
        )
    }

    /// Another way from an earlier step, in a folder as it was then.
    async fn fork(&mut self, run: RunId) -> Result<RunId, Failure> {
        let name = short(&run.to_string()).to_owned();
        self.report.part(&format!(
            "5. gyrus fork {name} --at {FORKED_AT} --workdir fork"
        ))?;
        let model = format!("script:{}", self.world.fork_script.display());
        let (step, folder) = (FORKED_AT.to_string(), self.world.fork.display().to_string());
        let id = run.to_string();
        let arguments = [
            "fork",
            &id,
            "--at",
            &step,
            "--workdir",
            &folder,
            "--model",
            &model,
        ];
        let code = Actor::start(&self.world.home, &arguments, self.seen)?
            .end()
            .await?;
        let has = |name: &str| self.world.fork.join(name).exists();
        let as_then = has("summarise.sh") && !has("ledger.txt") && !has("summary.txt");
        let untouched = self.world.ledger() == LEDGER;
        self.report.found(
            "the_fork_goes_its_own_way",
            code == Some(0) && as_then && untouched,
            &format!(
                "the new folder was as it was after step {FORKED_AT} (a script, no ledger), the \
                 new run went its own way, and the first folder is untouched"
            ),
        )?;
        select::all(&self.store)?
            .into_iter()
            .find(|other| *other != run)
            .ok_or_else(|| Failure::failed("there is no run but the first"))
    }

    fn verify(&mut self, runs: &[RunId]) -> Result<(), Failure> {
        self.report.part("6. gyrus runs verify")?;
        for run in runs {
            let name = short(&run.to_string()).to_owned();
            match self.store.verify(&log_name(*run)) {
                Ok(found) => {
                    let tail = found.tail.map_or(0, |tail| tail.bytes);
                    let detail = format!(
                        "run {name}: the chain of {} entries holds, the crash included",
                        found.entries
                    );
                    self.report.found("the_chain_holds", tail == 0, &detail)?;
                }
                Err(error) => {
                    self.report
                        .found("the_chain_holds", false, &error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Says how it went and what to try next.
    fn farewell(self, run: RunId, keep: bool) -> Result<Code, Failure> {
        let code = self.report.code();
        let everything = match code {
            Code::Reached => "Everything held.",
            _ => "Not everything held. That is a fault of gyrus: please report it.",
        };
        self.report.part(everything)?;
        if !keep {
            self.report.say(
                Paint::Plain,
                &format!(
                    "The folder {} is gone. To look around in it: gyrus demo --keep",
                    self.world.root().display()
                ),
            )?;
            return Ok(code);
        }
        let name = short(&run.to_string()).to_owned();
        let home = self.world.home.display().to_string();
        let report = self.report;
        let folder = self.world.keep();
        report.say(
            Paint::Plain,
            &format!(
                "The folder stays: {}\n\nTo try next:\n  export GYRUS_HOME={home}\n  gyrus show \
                 {name}\n  gyrus trace {name}\n  gyrus fork {name} --at 2 --workdir {}\n  gyrus \
                 runs list",
                folder.display(),
                folder.join("another").display()
            ),
        )?;
        Ok(code)
    }
}

/// Waits until all processes are gone; whether they are.
fn all_gone(tree: &[ProcessIdentity]) -> Result<bool, Failure> {
    let deadline = Instant::now() + GONE_WITHIN;
    for process in tree {
        let left = deadline.saturating_duration_since(Instant::now());
        if !process.wait_gone(left)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How an effect was settled in the end.
fn settled(store: &Store, run: RunId, effect: &EffectId) -> Result<Option<Settled>, Failure> {
    let mut settled = None;
    for entry in store.reader(&log_name(run))?.entries(1)? {
        if let Ok(Entry::ToolResulted(result)) = gyrus_kernel::parse(&entry?)
            && result.effect == *effect
        {
            settled = Some(result.settled);
        }
    }
    Ok(settled)
}
