//! `gyrus withheld`

use clap::Args;
use gyrus_journal::Store;
use gyrus_kernel::{StandingRun, WithheldChanges, withheld_changes};
use gyrus_text::{counted, one_line};

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run};
use gyrus_surfaces::console::put;

/// Show which changes of a run's commands were kept out of its folder
///
/// Commands may not change by themselves what other programs run or obey. This lists such changes,
/// with the reason, and brings back those that you want.
#[derive(Args)]
pub(crate) struct ShowWithheld {
    #[command(flatten)]
    run: RunArgument,
    /// Bring back the change of this file; may be given several times
    #[arg(long, value_name = "FILE")]
    restore: Vec<String>,
    /// Bring back all of them
    #[arg(long, conflicts_with = "restore")]
    restore_all: bool,
}

impl ShowWithheld {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let found = withheld_changes(&store, run)?;
        if self.restore_all || !self.restore.is_empty() {
            inside_run::refuse("bring back what was withheld")?;
            return self.bring_back(gyrus, &store, run, &found);
        }
        let mut text = String::new();
        for changes in &found {
            let state = match &changes.applied {
                None => "not applied",
                Some(_) => "applied after a yes",
            };
            text.push_str(&format!("call {}: {state}\n", changes.effect));
            for (path, why) in &changes.files {
                let lost = if changes.is_kept(path) {
                    ""
                } else {
                    " (its content was not kept)"
                };
                text.push_str(&format!("  {}: {why}{lost}\n", one_line(path)));
            }
            for (name, why) in &changes.in_repositories {
                let name = one_line(name);
                text.push_str(&format!("  {name}: {why} (only its card applies it)\n"));
            }
        }
        if found.is_empty() {
            text.push_str("nothing was withheld\n");
        } else {
            let name = run.short();
            text.push_str(&format!(
                "to bring one back: gyrus withheld {name} --restore FILE\n"
            ));
        }
        put(&text)?;
        Ok(Code::Reached)
    }

    fn bring_back(
        &self,
        gyrus: &Gyrus,
        store: &Store,
        run: gyrus_contract::RunId,
        found: &[WithheldChanges],
    ) -> Result<Code, Failure> {
        let known = |file: &String| found.iter().any(|changes| changes.is_kept(file));
        if let Some(unknown) = self.restore.iter().find(|file| !known(file)) {
            return Err(Failure::usage(format!(
                "no change of `{unknown}` was withheld in run {}, or its content was not kept",
                run.short()
            ))
            .hint(format!("see what was: gyrus withheld {}", run.short())));
        }
        let workspace = StandingRun::read(store, run)?.started.workspace.clone();
        let trash = gyrus.home()?.state.join("trash").join(run.to_string());
        let (mut back, mut refused) = (0, Vec::new());
        for changes in found {
            let files: Vec<String> = changes.files.iter().map(|(path, _)| path.clone()).collect();
            let wanted = files.iter().filter(|file| {
                changes.is_kept(file) && (self.restore_all || self.restore.contains(file))
            });
            let wanted: Vec<String> = wanted.cloned().collect();
            if wanted.is_empty() {
                continue;
            }
            let trash = trash.join(format!("withheld-{}", changes.effect));
            let done = changes.bring_back(store, run, (&workspace, &wanted), &trash)?;
            back += done.undone.len();
            refused.extend(done.refused);
        }
        let mut text = format!("{} brought back\n", counted(back, "file"));
        for one in &refused {
            text.push_str(&format!(
                "  left alone: {} ({})\n",
                one_line(&one.path),
                one.why
            ));
        }
        put(&text)?;
        Ok(Code::reached_if(refused.is_empty()))
    }
}
