//! How a run thinks: as the person says, or by rules that they can read.

use gyrus_loops::{CognitiveConfig, NAMES, Strategy};

use crate::{config::Config, failure::Failure, flags::RunFlags};

/// The word that leaves the choice to the rules; it is what holds where nothing is said.
const AUTO: &str = "auto";

/// The loop that the flags name, else the configuration, else the rules. What the rules choose says
/// why.
pub(crate) fn choose(flags: &RunFlags, config: &Config) -> Result<CognitiveConfig, Failure> {
    let named = match (&flags.cognitive_loop, &config.cognitive_loop) {
        (None, None) => AUTO,
        (Some(name), _) | (None, Some(name)) => name,
    };
    let chosen = match named {
        AUTO => by_rule(flags)?,
        name => by_name(name, flags)?,
    };
    let strategy = chosen.strategy();
    if let Some(flag) = flags.plan.asks_for_a_plan()
        && strategy != Strategy::Plan
    {
        let what = format!(
            "{flag} needs a plan, and the loop `{}` makes none",
            strategy.loop_name()
        );
        return Err(Failure::usage(what).hint("use --loop plan, or leave the flag out"));
    }
    if let Some(flag) = flags.judging.asks_for_a_judge()
        && strategy != Strategy::Engineer
    {
        let name = strategy.loop_name();
        let what = format!(
            "{flag} is for work that a judge decides about, and the loop `{name}` asks none"
        );
        return Err(Failure::usage(what)
            .hint("use --loop engineer with --judge JUDGE, or leave the flag out"));
    }
    let chosen = flags.judging.apply(chosen, config.engineer.docs.as_deref());
    Ok(flags.plan.apply(chosen))
}

/// The rules, in this order.
fn by_rule(flags: &RunFlags) -> Result<CognitiveConfig, Failure> {
    let judge = flags.judging.judge.as_ref();
    match (flags.plan.asks_for_a_plan(), flags.screen.leads(), judge) {
        (Some(flag), Some(page), _) => Err(Failure::usage(format!(
            "{flag} asks for a plan, and {page} for work on the page itself"
        ))
        .hint("say which you want: --loop plan or --loop reactive")),
        (None, Some(page), None) => {
            Ok(CognitiveConfig::reactive()
                .with_reason(format!("{page} names what to work on itself")))
        }
        (Some(flag), None, None) => {
            Ok(CognitiveConfig::plan().with_reason(format!("{flag} asks for a plan")))
        }
        (None, None, Some(judge)) => {
            Ok(CognitiveConfig::engineer(judge.clone()).with_reason("--judge names a judge"))
        }
        (Some(flag), None, Some(_)) | (None, Some(flag), Some(_)) => Err(Failure::usage(format!(
            "--judge has a judge decide, and {flag} asks for another way to work"
        ))
        .hint("leave one of the two out")),
        (None, None, None) => {
            Ok(CognitiveConfig::react().with_reason("neither a page nor a plan is asked for"))
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
        "reactive" => CognitiveConfig::reactive(),
        given => {
            let names = [&[AUTO], NAMES].concat();
            let near = names
                .iter()
                .map(|known| (strsim::jaro(given, known), known))
                .filter(|(nearness, _)| *nearness > 0.7)
                .max_by(|(one, _), (other, _)| one.total_cmp(other));
            let failure = Failure::usage(format!(
                "there is no loop `{given}`; there are {}",
                names.join(", ")
            ));
            return Err(match near {
                Some((_, known)) => failure.hint(format!("did you mean `{known}`?")),
                None => failure,
            });
        }
    })
}
