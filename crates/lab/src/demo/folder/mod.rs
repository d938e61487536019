//! The demo without a browser: sales figures in a folder.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{CallEnd, Entry, log_name};

use super::{
    DemoStage, NextCommands,
    actor::{self, Actor},
    entries,
    report::DemoReport,
};
use crate::LabError;

const FILES: [(&str, &str); 2] = [
    (
        "sales-january.csv",
        "product,units,price\nlamps,12,40\ndesks,2,150\n",
    ),
    (
        "sales-february.csv",
        "product,units,price\nlamps,10,40\nchairs,3,50\n",
    ),
];

/// Expected ledger in the end: each line once.
const LEDGER: &str = "summary written\nposting: begun\nposting: done\n";

/// The step during which the process is killed.
const KILLED_IN: u32 = 5;

/// The last step that the fork shares with its origin.
const FORKED_AT: u32 = 3;

/// Plays the demo; returns commands to try next.
pub(super) async fn play(
    stage: &DemoStage,
    report: &mut DemoReport<'_>,
) -> Result<NextCommands, LabError> {
    for (name, text) in FILES {
        stage.files.write(PathBuf::from("work").join(name), text)?;
    }
    let mut demo = FolderDemo {
        stage,
        report,
        script: stage
            .files
            .write("script.toml", include_str!("script.toml"))?,
        fork_script: stage.files.write("fork.toml", include_str!("fork.toml"))?,
        fork: stage.files.path("fork"),
    };
    let (run, effect) = demo.crash().await?;
    demo.resume(run, &effect).await?;
    demo.replay(run).await?;
    let fork = demo.fork(run).await?;
    demo.verify(&[run, fork])?;
    let name = run.short();
    let another = stage.files.path("another");
    Ok(NextCommands {
        here: vec![
            format!("gyrus show {name}"),
            format!("gyrus trace {name}"),
            format!("gyrus fork {name} --at 2 --workdir {}", another.display()),
            "gyrus runs list".to_owned(),
        ],
        own: vec!["With a browser it orders something in a shop: gyrus demo --install".to_owned()],
    })
}

struct FolderDemo<'a, 'c> {
    stage: &'a DemoStage,
    report: &'a mut DemoReport<'c>,
    script: PathBuf,
    /// The model of the fork.
    fork_script: PathBuf,
    /// The folder in which the fork works, which does not exist yet.
    fork: PathBuf,
}

impl FolderDemo<'_, '_> {
    fn ledger(&self) -> String {
        ledger_in(&self.stage.files.work)
    }

    /// A run works until a command is in the middle of its work; then it is killed.
    async fn crash(&mut self) -> Result<(RunId, EffectId), LabError> {
        self.report
            .part("1. A run adds up sales figures and posts the result.")?;
        let script = format!("script:{}", self.script.display());
        let work = self.stage.files.work.display().to_string();
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
        let actor = Actor::start(&*self.stage.gyrus, &arguments, self.stage.seen)?;
        let run = actor::first_run(self.stage.gyrus.store()).await?;
        let has_begun = |folder: &Path| ledger_in(folder).contains("begun");
        let effect = actor::in_the_middle(
            self.stage.gyrus.store(),
            run,
            KILLED_IN,
            has_begun,
            &self.stage.files.work,
        )
        .await?;
        let tree = actor.tree();
        self.report.part(&format!(
            "2. Its process is killed in the middle of effect {effect}: SIGKILL, no goodbye."
        ))?;
        let (gone, detail) = actor.kill_all(tree).await?;
        self.report
            .found("nothing_survives_the_kill", gone, &detail)?;
        Ok((run, effect))
    }

    /// The run is taken up where the journal ends.
    async fn resume(&mut self, run: RunId, effect: &EffectId) -> Result<(), LabError> {
        self.report
            .part(&format!("3. gyrus resume {}", run.short()))?;
        let id = run.to_string();
        let actor = Actor::start(&*self.stage.gyrus, &["resume", &id], self.stage.seen)?;
        let code = actor.end().await?;
        self.report.reached(code)?;
        let ledger = self.ledger();
        let lines: Vec<&str> = ledger.lines().collect();
        self.report.found(
            "finished_effects_happen_once",
            ledger == LEDGER,
            &format!(
                "nothing happened twice; the folder's own ledger says: {}",
                lines.join(" · ")
            ),
        )?;
        let settled = settled(self.stage.gyrus.store(), run, effect)?;
        self.report.found(
            "the_interrupted_effect_is_not_repeated",
            settled == Some(CallEnd::Interrupted),
            &format!(
                "effect {effect} was not repeated: a command is never run again by itself; the \
                 model was told that it was interrupted, and looked first"
            ),
        )
    }

    async fn replay(&mut self, run: RunId) -> Result<(), LabError> {
        self.report
            .part(&format!("4. gyrus replay {}", run.short()))?;
        let began = Instant::now();
        let replayed = self.stage.gyrus.replay(run).await?;
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

    /// Forks the run at an earlier step, in a folder with the state of that time.
    async fn fork(&mut self, run: RunId) -> Result<RunId, LabError> {
        let name = run.short();
        self.report.part(&format!(
            "5. gyrus fork {name} --at {FORKED_AT} --workdir fork"
        ))?;
        let model = format!("script:{}", self.fork_script.display());
        let (step, folder) = (FORKED_AT.to_string(), self.fork.display().to_string());
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
        let code = Actor::start(&*self.stage.gyrus, &arguments, self.stage.seen)?
            .end()
            .await?;
        let has = |name: &str| self.fork.join(name).exists();
        let as_then = has("summarise.sh") && !has("ledger.txt") && !has("summary.txt");
        let untouched = self.ledger() == LEDGER;
        self.report.found(
            "the_fork_goes_its_own_way",
            code == Some(0) && as_then && untouched,
            &format!(
                "the new folder was as it was after step {FORKED_AT} (a script, no ledger), the \
                 new run went its own way, and the first folder is untouched"
            ),
        )?;
        gyrus_kernel::runs(self.stage.gyrus.store())?
            .into_iter()
            .find(|other| *other != run)
            .ok_or_else(|| LabError::failed("there is no run but the first"))
    }

    fn verify(&mut self, runs: &[RunId]) -> Result<(), LabError> {
        self.report.part("6. gyrus runs verify")?;
        for run in runs {
            let name = run.short();
            match self.stage.gyrus.store().verify(&log_name(*run)) {
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
}

fn settled(store: &Store, run: RunId, effect: &EffectId) -> Result<Option<CallEnd>, LabError> {
    let entries = entries(store, run)?.into_iter();
    Ok(entries.rev().find_map(|entry| match entry {
        Entry::ToolResulted(result) if result.effect == *effect => Some(result.settled),
        _ => None,
    }))
}

/// Returns the ledger in a folder; empty if there is none.
fn ledger_in(folder: &Path) -> String {
    fs::read_to_string(folder.join("ledger.txt")).unwrap_or_default()
}
