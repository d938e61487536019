//! Choice of a run's cognitive loop: by the person, or by rules that they can read.

use gyrus_loops::{CognitiveConfig, NAMES, Strategy};

use crate::{config::Config, failure::Failure, flags::RunFlags};

/// The word that leaves the choice to the rules; it is what holds where nothing is said.
const AUTO: &str = "auto";

/// The loop that the flags name, else the configuration, else the rules. What the rules choose says
/// why.
pub(crate) fn choose(flags: &RunFlags, config: &Config) -> Result<CognitiveConfig, Failure> {
    flags.review.check()?;
    let named = match (&flags.cognitive_loop, &config.cognitive_loop) {
        (None, None) => AUTO,
        (Some(name), _) | (None, Some(name)) => name,
    };
    let chosen = match named {
        AUTO => by_rule(flags)?,
        name => by_name(name, flags)?,
    };
    let strategy = chosen.strategy();
    let name = strategy.loop_name();
    if let Some(flag) = flags.asks_for_a_plan()
        && strategy != Strategy::Plan
    {
        let what = format!("{flag} needs a plan, and the loop `{name}` makes none");
        return Err(Failure::usage(what).hint("use --loop plan, or leave the flag out"));
    }
    if let Some(flag) = flags.asks_for_a_changeset()
        && strategy != Strategy::Changeset
    {
        let what = format!("{flag} is for changesets, and the loop `{name}` makes none");
        return Err(Failure::usage(what).hint("use --loop changeset, or leave the flag out"));
    }
    if let Some(flag) = flags.judging.asks_for_a_judge()
        && strategy != Strategy::Engineer
    {
        let what = format!(
            "{flag} is for work that a judge decides about, and the loop `{name}` asks none"
        );
        return Err(Failure::usage(what)
            .hint("use --loop engineer with --judge JUDGE, or leave the flag out"));
    }
    let chosen = flags.judging.apply(chosen, config.engineer.docs.as_deref());
    Ok(flags.apply(chosen))
}

/// A flag that asks for a loop.
struct Wanted<'a> {
    flag: &'a str,
    /// Its effect, in words that follow the flag.
    does: &'static str,
    thinks: CognitiveConfig,
}

/// The rules: a flag that asks for a way to think chooses it, and two that ask for two are refused.
fn by_rule(flags: &RunFlags) -> Result<CognitiveConfig, Failure> {
    let wanted = |flag, does, thinks| Wanted { flag, does, thinks };
    let judge = flags.judging.judge.clone();
    let all = [
        flags.screen.leads().map(|flag| {
            let does = "names what to work on itself";
            wanted(flag, does, CognitiveConfig::reactive())
        }),
        flags
            .asks_for_a_plan()
            .map(|flag| wanted(flag, "asks for a plan", CognitiveConfig::plan())),
        judge.map(|judge| {
            let thinks = CognitiveConfig::engineer(judge);
            wanted("--judge", "names a judge", thinks)
        }),
        flags
            .asks_for_a_changeset()
            .map(|flag| wanted(flag, "asks for a changeset", CognitiveConfig::changeset())),
    ];
    let mut all = all.into_iter().flatten();
    match (all.next(), all.next()) {
        (None, _) => {
            Ok(CognitiveConfig::react()
                .with_reason("no page, plan, judge or changeset is asked for"))
        }
        (Some(one), None) => {
            let why = format!("{} {}", one.flag, one.does);
            Ok(one.thinks.with_reason(why))
        }
        (Some(one), Some(other)) => {
            let name = |wanted: &Wanted<'_>| wanted.thinks.strategy().loop_name();
            let (first, second) = (name(&one), name(&other));
            Err(Failure::usage(format!(
                "{} {}, and {} {}",
                one.flag, one.does, other.flag, other.does
            ))
            .hint(format!(
                "leave one of the two out: they ask for --loop {first} and --loop {second}"
            )))
        }
    }
}

fn by_name(name: &str, flags: &RunFlags) -> Result<CognitiveConfig, Failure> {
    Ok(match name {
        "react" => CognitiveConfig::react(),
        "chain-of-thought" => CognitiveConfig::chain_of_thought(),
        "single-shot" => CognitiveConfig::single_shot(),
        "plan" => CognitiveConfig::plan(),
        "engineer" => match &flags.judging.judge {
            Some(judge) => CognitiveConfig::engineer(judge.clone()),
            None => {
                return Err(Failure::usage("the loop `engineer` needs a judge").hint(
                    "say who decides: --judge COMMAND, https://ADDRESS or mcp:SERVER__TOOL",
                ));
            }
        },
        "changeset" => CognitiveConfig::changeset(),
        "reactive" => CognitiveConfig::reactive(),
        given => {
            let names = [&[AUTO], NAMES].concat();
            let failure = Failure::usage(format!(
                "there is no loop `{given}`; there are {}",
                names.join(", ")
            ));
            return Err(match gyrus_text::closest(given, names) {
                Some(known) => failure.hint(format!("did you mean `{known}`?")),
                None => failure,
            });
        }
    })
}
