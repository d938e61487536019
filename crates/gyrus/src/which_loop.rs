//! Chooses the loop of a run: the one that the person names, or by rules that they can read.

use gyrus_contract::{Intent, Limits};
use gyrus_kernel::RunStarted;
use gyrus_loops::{CognitiveConfig, ThinkingStrategy};
use gyrus_runtime::{
    intent::{ClassifiedGoal, classify},
    request::RunFlags,
};

use crate::{config::Config, failure::Failure, flags};

/// The name that leaves the choice to the rules, which is the default.
pub(crate) const AUTO: &str = "auto";

#[derive(Clone, Copy, Default)]
pub(crate) struct LoopSubject<'a> {
    /// The goal's words, which may be untrusted: they choose among sizes, and nothing else.
    pub(crate) goal: &'a str,
    pub(crate) has_context: bool,
    pub(crate) before: Option<&'a RunStarted>,
}

struct ByRule {
    strategy: ThinkingStrategy,
    because: String,
    /// The estimated size of the goal, if no rule decided before.
    intent: Option<Intent>,
}

/// A loop that has flags of its own, with the first of its flags that was given.
struct LoopByFlags {
    strategy: ThinkingStrategy,
    flag: Option<&'static str>,
    chooses: bool,
    /// The flag's effect, as words after its name.
    does: &'static str,
    /// The reason why another loop refuses the flag: the text after the flag and the text before
    /// that loop's name; `None` where every loop takes it.
    refused: Option<(&'static str, &'static str)>,
    /// The flags that would choose this loop.
    remedy: &'static str,
}

/// The loops that flags ask for, in the order of their examination.
fn asked(flags: &RunFlags) -> [LoopByFlags; 4] {
    [
        LoopByFlags {
            strategy: ThinkingStrategy::Reactive,
            flag: flags.screen.leads(),
            chooses: true,
            does: "names what to work on itself",
            refused: None,
            remedy: "",
        },
        LoopByFlags {
            strategy: ThinkingStrategy::Plan,
            flag: flags.asks_for_a_plan(),
            chooses: true,
            does: "asks for a plan",
            refused: Some(("needs a plan", "makes none")),
            remedy: "--loop plan",
        },
        LoopByFlags {
            strategy: ThinkingStrategy::Engineer,
            flag: flags.asks_for_a_judge(),
            chooses: flags.judge.is_some(),
            does: "names a judge",
            refused: Some(("is for work that a judge decides about", "asks none")),
            remedy: "--loop engineer with --judge JUDGE",
        },
        LoopByFlags {
            strategy: ThinkingStrategy::Changeset,
            flag: flags.asks_for_a_changeset(),
            chooses: true,
            does: "asks for a changeset",
            refused: Some(("is for changesets", "makes none")),
            remedy: "--loop changeset",
        },
    ]
}

/// Returns the loop that the flags name, else the configuration, else the rules, which also
/// consider the previous run of the session and the size of the goal. A choice by the rules comes
/// with its reason.
pub(crate) fn choose(
    flags: &RunFlags,
    config: &Config,
    subject: &LoopSubject<'_>,
) -> Result<CognitiveConfig, Failure> {
    let named = flags.cognitive_loop.as_deref();
    let named = named.or(config.cognitive_loop.as_deref()).unwrap_or(AUTO);
    let asked = asked(flags);
    let (strategy, rule) = match named {
        AUTO => {
            let rule = by_rule(&asked, flags, subject)?;
            (rule.strategy, Some(rule))
        }
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
    let is_by_size = rule.as_ref().is_some_and(|rule| rule.intent.is_some());
    if let Some(rule) = rule {
        chosen.because = Some(rule.because);
        chosen.intent = rule.intent;
    }
    let given = [flags.limits.limits(), config.limits.limits()];
    let has_no_end = matches!(
        strategy,
        ThinkingStrategy::ReAct | ThinkingStrategy::Reactive
    );
    if given == [Limits::default(); 2] && (has_no_end || is_by_size) {
        let steps = most_steps(classify(subject.goal).intent);
        chosen.max_iterations = Some(steps);
    }
    if strategy == ThinkingStrategy::Engineer {
        let judge = flags::judge(flags)?.ok_or_else(|| {
            Failure::usage("the loop `engineer` needs a judge")
                .hint("say who decides: --judge COMMAND, https://ADDRESS or mcp:SERVER__TOOL")
        })?;
        chosen.judge = Some(judge);
        let docs = flags.docs.as_ref().or(config.engineer.docs.as_ref());
        chosen.docs = docs.cloned();
        chosen.judge_images = flags.judge_images.clone();
    }
    chosen.reflection = flags.reflect || config.reflect;
    flags::apply(flags, &mut chosen)?;
    Ok(chosen)
}

/// Returns the loop that the flags ask for, and the reason; flags for two loops are refused.
fn by_rule(
    asked: &[LoopByFlags],
    flags: &RunFlags,
    subject: &LoopSubject<'_>,
) -> Result<ByRule, Failure> {
    let given = |one: &LoopByFlags| one.flag.map(|flag| format!("{flag} {}", one.does));
    let mut wanted = asked
        .iter()
        .filter(|one| one.chooses)
        .filter_map(|one| Some((one.strategy, given(one)?)));
    let rule = |strategy, because| ByRule {
        strategy,
        because,
        intent: None,
    };
    let before = subject.before.filter(|_| !flags.screen.is_none());
    match (wanted.next(), wanted.next()) {
        (None, _) if before.is_some_and(worked_on_the_screen) => {
            let because = "the run before it worked on the page itself".to_owned();
            Ok(rule(ThinkingStrategy::Reactive, because))
        }
        (None, _) => Ok(by_size(flags, subject)),
        (Some((strategy, why)), None) => Ok(rule(strategy, why)),
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

/// Returns the loop for the size of the goal: one answer without tools only where the goal says all
/// that is needed and nothing is to be looked at, else the loop with all tools.
fn by_size(flags: &RunFlags, subject: &LoopSubject<'_>) -> ByRule {
    let ClassifiedGoal {
        intent,
        because,
        needs_no_tools,
        ..
    } = classify(subject.goal);
    let is_alone = subject.before.is_none() && !subject.has_context;
    let strategy = if needs_no_tools && is_alone && !flags.verification.is_given() {
        ThinkingStrategy::SingleShot
    } else {
        ThinkingStrategy::ReAct
    };
    ByRule {
        strategy,
        because,
        intent: Some(intent),
    }
}

/// Returns the limit on steps where a person sets no limit of any kind. It is an end that can be
/// resumed, and far above what such goals take.
fn most_steps(intent: Intent) -> u64 {
    match intent {
        Intent::Simple => 35,
        Intent::MultiStep => 100,
        Intent::Complex => 200,
    }
}

fn worked_on_the_screen(run: &RunStarted) -> bool {
    run.screen.is_some() && run.cognitive_loop == ThinkingStrategy::Reactive.loop_name()
}

fn by_name(name: &str) -> Result<ThinkingStrategy, Failure> {
    ThinkingStrategy::named(name).ok_or_else(|| {
        let names = [&[AUTO], &ThinkingStrategy::names()[..]].concat();
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
