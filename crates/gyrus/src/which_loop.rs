//! Chooses the loop of a run: the one that the person names, or by rules that they can read.

use gyrus_kernel::RunStarted;
use gyrus_loops::{CognitiveConfig, Strategy};

use crate::{config::Config, failure::Failure, flags::RunFlags};

/// The name that leaves the choice to the rules, which is the default.
const AUTO: &str = "auto";

/// A loop that has flags of its own, and the first of them that was given.
struct Asked {
    strategy: Strategy,
    flag: Option<&'static str>,
    /// Whether the flag chooses the loop by itself.
    chooses: bool,
    /// The flag's effect, in words that follow its name.
    does: &'static str,
    /// The reason why another loop refuses the flag, after the flag and before that loop's name;
    /// `None` where every loop takes it.
    refused: Option<(&'static str, &'static str)>,
    /// The flags that would choose this loop.
    remedy: &'static str,
}

/// The loops that flags ask for, in the order in which they are looked at.
fn asked(flags: &RunFlags) -> [Asked; 4] {
    [
        Asked {
            strategy: Strategy::Reactive,
            flag: flags.screen.leads(),
            chooses: true,
            does: "names what to work on itself",
            refused: None,
            remedy: "",
        },
        Asked {
            strategy: Strategy::Plan,
            flag: flags.asks_for_a_plan(),
            chooses: true,
            does: "asks for a plan",
            refused: Some(("needs a plan", "makes none")),
            remedy: "--loop plan",
        },
        Asked {
            strategy: Strategy::Engineer,
            flag: flags.judging.asks_for_a_judge(),
            chooses: flags.judging.judge.is_some(),
            does: "names a judge",
            refused: Some(("is for work that a judge decides about", "asks none")),
            remedy: "--loop engineer with --judge JUDGE",
        },
        Asked {
            strategy: Strategy::Changeset,
            flag: flags.asks_for_a_changeset(),
            chooses: true,
            does: "asks for a changeset",
            refused: Some(("is for changesets", "makes none")),
            remedy: "--loop changeset",
        },
    ]
}

/// Returns the loop that the flags name, else the configuration, else the rules, which look at the
/// run `before` it in its session too. What the rules choose says why.
pub(crate) fn choose(
    flags: &RunFlags,
    config: &Config,
    before: Option<&RunStarted>,
) -> Result<CognitiveConfig, Failure> {
    flags.review.check()?;
    let named = flags.cognitive_loop.as_deref();
    let named = named.or(config.cognitive_loop.as_deref()).unwrap_or(AUTO);
    let asked = asked(flags);
    let before = before.filter(|_| !flags.screen.is_none());
    let (strategy, because) = match named {
        AUTO => by_rule(&asked, before)?,
        name => (by_name(name)?, None),
    };
    let name = strategy.loop_name();
    for one in asked.iter().filter(|one| one.strategy != strategy) {
        if let (Some(flag), Some((needs, not))) = (one.flag, one.refused) {
            let what = format!("{flag} {needs}, and the loop `{name}` {not}");
            let hint = format!("use {}, or leave the flag out", one.remedy);
            return Err(Failure::usage(what).hint(hint));
        }
    }
    let mut chosen = CognitiveConfig::of(strategy);
    if let Some(because) = because {
        chosen = chosen.with_reason(because);
    }
    if strategy == Strategy::Engineer {
        let judge = flags.judging.judge.clone().ok_or_else(|| {
            Failure::usage("the loop `engineer` needs a judge")
                .hint("say who decides: --judge COMMAND, https://ADDRESS or mcp:SERVER__TOOL")
        })?;
        chosen = chosen.with_judge(judge);
    }
    let chosen = flags.judging.apply(chosen, config.engineer.docs.as_deref());
    Ok(flags.apply(chosen))
}

/// Returns the loop that the flags ask for, and the reason; two flags that ask for two loops are
/// refused.
fn by_rule(
    asked: &[Asked],
    before: Option<&RunStarted>,
) -> Result<(Strategy, Option<String>), Failure> {
    let given = |one: &Asked| one.flag.map(|flag| format!("{flag} {}", one.does));
    let mut wanted = asked
        .iter()
        .filter(|one| one.chooses)
        .filter_map(|one| Some((one.strategy, given(one)?)));
    match (wanted.next(), wanted.next()) {
        (None, _) if before.is_some_and(worked_on_the_screen) => {
            let because = "the run before it worked on the page itself";
            Ok((Strategy::Reactive, Some(because.to_owned())))
        }
        (None, _) => {
            let because = "no page, plan, judge or changeset is asked for";
            Ok((Strategy::React, Some(because.to_owned())))
        }
        (Some((strategy, why)), None) => Ok((strategy, Some(why))),
        (Some((first, does)), Some((second, does_too))) => {
            let (first, second) = (first.loop_name(), second.loop_name());
            Err(
                Failure::usage(format!("{does}, and {does_too}")).hint(format!(
                    "leave one of the two out: they ask for --loop {first} and --loop {second}"
                )),
            )
        }
    }
}

/// Whether a run worked on its screen itself.
fn worked_on_the_screen(run: &RunStarted) -> bool {
    run.screen.is_some() && run.cognitive_loop == Strategy::Reactive.loop_name()
}

fn by_name(name: &str) -> Result<Strategy, Failure> {
    Strategy::named(name).ok_or_else(|| {
        let names = [&[AUTO], &Strategy::names()[..]].concat();
        let failure = Failure::usage(format!(
            "there is no loop `{name}`; there are {}",
            names.join(", ")
        ));
        match gyrus_text::closest(name, names) {
            Some(known) => failure.hint(format!("did you mean `{known}`?")),
            None => failure,
        }
    })
}
