//! Plays the tasks that come with gyrus by the perfect player, through the whole program, and prints
//! what it came to: those on sites and those without a screen, one suite that is named, or with
//! `--miniwob FOLDER` those pages.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{error::CannotStart, programs, repository};

/// A suite that comes with gyrus.
pub(crate) struct Played {
    /// The name of the suite.
    name: &'static str,
    /// The folder of its tasks.
    folder: &'static str,
    /// The features of gyrus that it needs.
    features: &'static [&'static str],
}

/// The suite of tasks on gyrus's own sites.
pub(crate) const SITES: Played = Played {
    name: "demo-site",
    folder: "crates/lab/suite",
    features: &[],
};

/// The suite of tasks on programs of a desktop.
const DESKTOP: Played = Played {
    name: "desktop",
    folder: "crates/lab/suite-of-desktops",
    features: &["--features", "gyrus/desktop"],
};

/// The suite of tasks without a screen.
const EVERYDAY: Played = Played {
    name: "everyday",
    folder: "examples/eval/everyday",
    features: &[],
};

/// Figures that the player counted.
#[derive(Debug, Deserialize)]
struct Figures {
    prompts: u64,
    unusable: u64,
    pictures: u64,
    fresh_tokens: u64,
    fixed_tokens: u64,
    in_view: u64,
    out_of_view: u64,
    came_later: u64,
    not_in_text: u64,
    never_found: u64,
    missed: Vec<String>,
}

/// Plays the suite that is named first, or without arguments all that need no desktop; further
/// arguments are for `gyrus eval`.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let Some((first, rest)) = arguments.split_first() else {
        let sites = play(&SITES, &[]);
        play(&EVERYDAY, &["--jobs".to_owned(), "4".to_owned()])?;
        return sites;
    };
    match first.as_str() {
        name if name == EVERYDAY.name => play(&EVERYDAY, rest),
        name if name == SITES.name => play(&SITES, rest),
        name if name == DESKTOP.name => {
            programs::ensure_desktop_programs()?;
            play(&DESKTOP, rest)
        }
        _ => play(&SITES, arguments),
    }
}

fn play(suite: &Played, arguments: &[String]) -> anyhow::Result<()> {
    let is_of_others = arguments.iter().any(|it| it.starts_with("--miniwob"));
    let status = with_player(suite, |model| {
        Ok(suite
            .gyrus()?
            .arg("eval")
            .args((!is_of_others).then_some(suite.name))
            .args(["--model", model])
            .args(arguments)
            .status()?)
    })?;
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => bail!(CannotStart("the evaluation did not start".to_owned())),
        Some(code) => bail!("the evaluation ended with exit code {code}"),
        None => bail!("the evaluation was killed"),
    }
}

impl Played {
    /// Returns gyrus as a command without arguments.
    pub(crate) fn gyrus(&self) -> anyhow::Result<Command> {
        let run = ["run", "--quiet", "--package", "gyrus"];
        repository::cargo(&[&run, self.features, &["--"]].concat())
    }
}

/// Builds gyrus and the perfect player, does something with the name of its model, and prints what
/// the player counted meanwhile.
pub(crate) fn with_player<T>(
    suite: &Played,
    evaluate: impl FnOnce(&str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let packages = ["--package", "gyrus", "--package", "gyrus-player"];
    let build = [&["build", "--quiet"], &packages[..], suite.features].concat();
    if !repository::cargo(&build)?.status()?.success() {
        bail!("gyrus or its player cannot be built");
    }
    let folder = repository::root()?.join(suite.folder);
    let mut player = repository::cargo(&["run", "--quiet", "--package", "gyrus-player", "--"])?
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the player cannot be started")?;
    let mut said = BufReader::new(player.stdout.take().context("the player has no output")?);
    let mut model = String::new();
    said.read_line(&mut model)?;
    let evaluated = evaluate(model.trim());
    // It ends when nobody can ask any more, whatever became of the evaluation.
    drop(player.stdin.take());
    let mut counted = String::new();
    said.read_to_string(&mut counted)?;
    player.wait()?;
    let figures: Figures = serde_json::from_str(&counted).context("the player counted nothing")?;
    println!("{}", told(&figures));
    evaluated
}

fn told(figures: &Figures) -> String {
    let told = figures.in_view + figures.out_of_view;
    let needed = told + figures.not_in_text + figures.never_found;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let mut text = format!(
        "the player: {} prompts ({} with a picture, {} after an unusable reply), {:.0} fresh \
         tokens each beside {:.0} of instructions, as estimated",
        figures.prompts,
        figures.pictures,
        figures.unusable,
        share(figures.fresh_tokens, figures.prompts),
        share(figures.fixed_tokens, figures.prompts),
    );
    if needed == 0 {
        return text;
    }
    text.push_str(&format!(
        "\n{told} of {needed} targets that were on the page stood in the prompt's text ({:.2} %), \
         {} of them as out of view; {} came later",
        share(told, needed) * 100.0,
        figures.out_of_view,
        figures.came_later,
    ));
    for missed in &figures.missed {
        text.push_str(&format!("\n  not in the text: {missed}"));
    }
    text
}
