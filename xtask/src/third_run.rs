//! Plays the tasks that come with gyrus three times in one home, in which runs remember, follow
//! skills and are given lessons, and fails where the third time is worse than the first.
//!
//! A perfect player gains nothing from lessons. So this tells that nothing that a run is given makes
//! it longer, makes it ask more, or makes a prompt dearer than stated.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::eval;

/// Maximum number of fresh tokens by which a prompt of the third run may be longer than one of the
/// first, as the player counts them: those of the lessons that a run is given.
const MORE_TOKENS_A_PROMPT: f64 = 100.0;

/// Number of times that a task is played.
const TIMES: usize = 3;

#[derive(Debug, Deserialize)]
struct Report {
    attempts: Vec<Attempt>,
}

#[derive(Debug, Clone, Deserialize)]
struct Attempt {
    task: String,
    passed: bool,
    steps: u64,
    tokens: Tokens,
    questions: Questions,
}

#[derive(Debug, Clone, Deserialize)]
struct Tokens {
    fresh: u64,
    prompts: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Questions {
    asked: u64,
}

impl Attempt {
    fn fresh_a_prompt(&self) -> f64 {
        self.tokens.fresh as f64 / self.tokens.prompts.max(1) as f64
    }

    /// Returns the reason why this is worse than the first time, if it is.
    fn worse_than(&self, first: &Attempt) -> Option<String> {
        let more = self.fresh_a_prompt() - first.fresh_a_prompt();
        let task = &self.task;
        if first.passed && !self.passed {
            Some(format!("{task} does not pass any more"))
        } else if self.steps > first.steps {
            Some(format!(
                "{task} takes {} steps, not {}",
                self.steps, first.steps
            ))
        } else if self.questions.asked > first.questions.asked {
            let (now, before) = (self.questions.asked, first.questions.asked);
            Some(format!("{task} asks {now} times, not {before}"))
        } else if more > MORE_TOKENS_A_PROMPT {
            Some(format!("{task} takes {more:.0} more tokens a prompt"))
        } else {
            None
        }
    }
}

/// Plays them, with further arguments for `gyrus eval`.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let state = state(home.path());
    fs::create_dir(&state)?;
    fs::write(state.join("config.toml"), "reflect = true\n")?;
    let noted = gyrus(
        home.path(),
        &["memory", "add", "Orders go to the street in the profile."],
    )?;
    ensure!(noted.success(), "nothing can be remembered");
    let rounds = eval::with_player(&eval::SITES, |model| {
        let rounds: Vec<_> = (1..=TIMES)
            .map(|number| round(home.path(), model, number, arguments))
            .collect::<Result<_, _>>()?;
        // Pages are slower now and then: what is worse once is played again.
        let mut worse = Vec::new();
        for (task, third) in &rounds[TIMES - 1] {
            let first = rounds[0].get(task).context("it was not played at first")?;
            if third.worse_than(first).is_some() {
                let only = ["--only".to_owned(), task.clone()];
                let number = TIMES + 1 + worse.len();
                let again = round(home.path(), model, number, &only)?;
                worse.extend(again.values().filter_map(|again| again.worse_than(first)));
            }
        }
        Ok((rounds, worse))
    });
    let (rounds, worse) = rounds?;
    println!("{}", table(&rounds));
    gyrus(home.path(), &["memory", "lessons"])?;
    ensure!(
        worse.is_empty(),
        "the third run is worse: {}",
        worse.join("; ")
    );
    Ok(())
}

/// Plays every task once.
fn round(
    home: &Path,
    model: &str,
    number: usize,
    arguments: &[String],
) -> anyhow::Result<BTreeMap<String, Attempt>> {
    let folder = home.join(format!("report-{number}"));
    let folder = folder
        .to_str()
        .context("the name of the folder is not UTF-8")?;
    let given = ["eval", "demo-site", "--model", model, "--report", folder];
    let arguments = arguments.iter().map(String::as_str);
    let all: Vec<&str> = given.into_iter().chain(arguments).collect();
    gyrus(home, &all)?;
    let report = fs::read(Path::new(folder).join("report.json")).context("there is no report")?;
    let report: Report = serde_json::from_slice(&report)?;
    let attempts = report.attempts.into_iter();
    Ok(attempts
        .map(|attempt| (attempt.task.clone(), attempt))
        .collect())
}

/// Returns the folder of gyrus's state; the notes lie beside it.
fn state(home: &Path) -> std::path::PathBuf {
    home.join("state")
}

fn gyrus(home: &Path, arguments: &[&str]) -> anyhow::Result<std::process::ExitStatus> {
    let mut command: Command = eval::SITES.gyrus()?;
    let command = command
        .env("GYRUS_HOME", state(home))
        .env("GYRUS_VAULT", home.join("notes"));
    Ok(command.args(arguments).status()?)
}

/// Returns the sums of each time as a table in Markdown.
fn table(rounds: &[BTreeMap<String, Attempt>]) -> String {
    let mut text = "| run | passed | steps | questions | prompts | fresh tokens | a prompt |\n\
                    | --- | --- | --- | --- | --- | --- | --- |"
        .to_owned();
    for (round, number) in rounds.iter().zip(1..) {
        let sum = |of: fn(&Attempt) -> u64| round.values().map(of).sum::<u64>();
        let (fresh, prompts) = (sum(|one| one.tokens.fresh), sum(|one| one.tokens.prompts));
        text += &format!(
            "\n| {number} | {} of {} | {} | {} | {prompts} | {fresh} | {:.0} |",
            sum(|one| u64::from(one.passed)),
            round.len(),
            sum(|one| one.steps),
            sum(|one| one.questions.asked),
            fresh as f64 / prompts.max(1) as f64
        );
    }
    let most = rounds[0].iter().filter_map(|(task, first)| {
        let third = rounds.last()?.get(task)?;
        Some(third.fresh_a_prompt() - first.fresh_a_prompt())
    });
    let most = most.fold(0.0, f64::max);
    text + &format!("\n\nThe most that a task's prompts grew: {most:.0} tokens each.")
}
