//! Every crash of a scenario, and what must hold after it.
//!
//! The undisturbed run is recorded once. Then, for every prefix of its journal and for every
//! thing that may have become of the calls in flight there, a fresh process takes the run up. It
//! must come to the same end and the same world, do nothing again whose outcome was recorded, and
//! keep each tool's repeat policy for what was not.

use gyrus_contract::{Repeat, Spent};
use gyrus_kernel::{Ending, Entry, log_name};

use crate::{
    recording::{Cut, Recording, repeat_of},
    scenario::{Bench, Scenario},
    script::Script,
    world::{Deed, State},
};

/// Second crashes that are tried while recovering from each first one, at places that differ from
/// one first crash to the next.
const SECOND_CRASHES: usize = 2;

/// Result of an undisturbed run.
pub struct Undisturbed {
    /// Its journal.
    pub recording: Recording,
    /// Everything that was done.
    pub deeds: Vec<Deed>,
    ending: Ending,
    state: State,
    bench: Bench,
}

/// Counts of the crashes that were tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Crashes, each with one state of the world.
    pub crashes: usize,
    /// Second crashes while recovering from a first one.
    pub second_crashes: usize,
}

/// One crash, with everything that the next process finds.
struct Crash {
    title: String,
    left: Recording,
    /// Deeds in the world before it.
    deeds: Vec<Deed>,
}

/// Records `scenario` without a crash.
pub async fn undisturbed(scenario: &Scenario) -> Undisturbed {
    let bench = scenario.bench();
    let finished = bench.start().await.expect("it runs undisturbed");
    let recording = bench.recording();
    let (state, deeds) = (bench.world.state().unordered(), bench.world.deeds());
    Undisturbed {
        recording,
        deeds,
        ending: finished.ending,
        state,
        bench,
    }
}

/// Crashes `scenario` everywhere, and panics with the place where something did not hold.
pub async fn crash_everywhere(scenario: &Scenario) -> Tried {
    let whole = undisturbed(scenario).await;
    let mut tried = Tried::default();
    for crash in crashes(&scenario.name, &whole.recording, &whole.deeds, &[]) {
        tried.crashes += 1;
        let bench = resume(scenario, &whole, &whole.bench, &crash).await;
        // While recovering, it crashes again.
        let again = bench.recording();
        let since = crash.left.lines.len() + 1..again.lines.len();
        let step = since.len() / SECOND_CRASHES + 1;
        for entries in since.skip(tried.crashes % step).step_by(step) {
            let of_child = again.children.last().map(|child| child.lines.len());
            let left = again.cut(Cut { entries, of_child });
            let title = format!("{}, then {entries} entries", crash.title);
            for second in variants(title, left, &bench.world.deeds(), &crash.deeds) {
                tried.second_crashes += 1;
                resume(scenario, &whole, &bench, &second).await;
            }
        }
    }
    tried
}

/// Every crash that can happen to a recording whose deeds were `deeds`; those in `certain` happened
/// before in any case.
fn crashes(name: &str, whole: &Recording, deeds: &[Deed], certain: &[Deed]) -> Vec<Crash> {
    let mut crashes = Vec::new();
    for cut in whole.cuts() {
        let last = whole.lines[cut.entries - 1].entry.kind();
        let child = cut
            .of_child
            .map(|left| format!(" and {left} of its child"))
            .unwrap_or_default();
        let title = format!("{name}: {} entries (`{last}`){child}", cut.entries);
        crashes.extend(variants(title, whole.cut(cut), deeds, certain));
    }
    crashes
}

/// The states that the world can be in when these entries are left: each call in flight has
/// happened, or has not.
fn variants(title: String, left: Recording, deeds: &[Deed], certain: &[Deed]) -> Vec<Crash> {
    let mut done: Vec<Deed> = certain.to_vec();
    done.extend(deeds.iter().filter(|deed| left.has_settled(deed)).cloned());
    done.dedup();
    let mut seen: Vec<Deed> = Vec::new();
    done.retain(|deed| {
        let new = !seen.contains(deed);
        seen.push(deed.clone());
        new
    });
    let open: Vec<Deed> = left
        .in_flight()
        .into_iter()
        .filter(|deed| !done.contains(deed))
        .collect();
    (0..1_u32 << open.len())
        .map(|which| {
            let happened = open
                .iter()
                .enumerate()
                .filter(|(index, _)| which & (1 << index) != 0)
                .map(|(_, deed)| deed.clone());
            let happened: Vec<Deed> = happened.collect();
            let words: Vec<_> = happened
                .iter()
                .map(|deed| format!("{} {}", deed.tool, deed.effect))
                .collect();
            let title = match open.len() {
                0 => title.clone(),
                _ => format!("{title}, in flight and happened: [{}]", words.join(", ")),
            };
            let deeds = done.iter().cloned().chain(happened).collect();
            Crash {
                title,
                left: left.clone(),
                deeds,
            }
        })
        .collect()
}

/// Takes a crashed run up to its end and checks everything that must hold.
async fn resume(scenario: &Scenario, whole: &Undisturbed, from: &Bench, crash: &Crash) -> Bench {
    let bench = scenario.bench_after(crash.deeds.clone());
    crash.left.plant(&from.store, &bench.store);
    let title = &crash.title;
    if crash
        .left
        .entries()
        .any(|entry| matches!(entry, Entry::RunEnded(_)))
    {
        assert!(
            bench.take().is_err(),
            "{title}: a run that is over was taken up"
        );
        return bench;
    }
    let finished = match bench.resume().await {
        Ok(finished) => finished,
        Err(error) => panic!("{title}: {error}\n{:#?}", bench.recording().kinds()),
    };
    let now = bench.recording();
    let journal = || format!("{title}\n{:#?}", now.kinds());
    assert_eq!(finished.ending, whole.ending, "{}", journal());
    check_effects(&bench, crash, &now);
    check_replies(&bench, crash, title);
    check_state(whole, crash, &bench, title);
    check_books(&now, &finished.spent, title);
    bench
        .store
        .verify(&log_name(now.run))
        .unwrap_or_else(|error| panic!("{title}: {error}"));
    let replayed = bench.kernel.replay(now.run).await;
    let replayed = replayed.unwrap_or_else(|error| panic!("{title}: replay: {error}"));
    assert!(
        replayed.differences.is_empty() && !replayed.unfinished,
        "{title}: {replayed:?}"
    );
    bench
}

/// Checks that no recorded effect is done again, and that one in flight is done as its tool allows.
fn check_effects(bench: &Bench, crash: &Crash, now: &Recording) {
    let deeds = bench.world.deeds();
    let (before, since) = deeds.split_at(crash.deeds.len());
    let title = &crash.title;
    for deed in since {
        assert!(
            !crash.left.has_settled(deed),
            "{title}: {deed:?} was settled and done again"
        );
        let times = since.iter().filter(|other| *other == deed).count();
        assert_eq!(
            times, 1,
            "{title}: {deed:?} was done {times} times by one process"
        );
    }
    for deed in crash.left.in_flight() {
        let (happened, again) = (before.contains(&deed), since.contains(&deed));
        let effect = &deed.effect;
        match repeat_of(&deed.tool) {
            // A lost race cuts it off instead of repeating it.
            Repeat::Freely => {}
            Repeat::Never => assert!(!again, "{title}: {effect} was repeated"),
            Repeat::Probe => {
                assert!(bench.world.probes() > 0, "{title}: {effect} was not probed");
                assert_ne!(
                    happened, again,
                    "{title}: {effect} happened {happened}, then {again}"
                );
                assert!(now.has_settled(&deed), "{title}: {effect} has no outcome");
            }
        }
    }
}

/// A recorded reply is never asked for again.
fn check_replies(bench: &Bench, crash: &Crash, title: &str) {
    let recorded = crash.left.replies();
    for prompt in bench.model.heard() {
        let child = Script::is_for_child(&prompt);
        let run = match crash.left.children.last() {
            Some(last) if child => last.run,
            _ => crash.left.run,
        };
        let asked = (run, format!("{:?}", prompt.purpose), prompt.ordinal);
        let known = recorded.contains(&asked) && (!child || !crash.left.children.is_empty());
        assert!(
            !known,
            "{title}: {asked:?} was recorded and asked for again"
        );
    }
}

/// Whether a call that added `words` happened before the crash, without an outcome.
fn happened_in_flight(crash: &Crash, words: &str) -> bool {
    let adds = |deed: &&Deed| deed.arguments["line"] == words;
    crash
        .deeds
        .iter()
        .filter(adds)
        .any(|deed| !crash.left.has_settled(deed))
}

/// The world ends as it would have, except for what nobody may repeat and nobody looked after.
fn check_state(whole: &Undisturbed, crash: &Crash, bench: &Bench, title: &str) {
    let mut state = bench.world.state().unordered();
    // A call that a race cut off has no place in the undisturbed world, but a crash came between
    // its happening and that.
    state
        .lines
        .retain(|line| whole.state.lines.contains(line) || !happened_in_flight(crash, line));
    assert_eq!(state, whole.state, "{title}");
}

/// Checks that the run reports the usage that its entries report.
fn check_books(now: &Recording, spent: &Spent, title: &str) {
    assert_eq!(
        spent.tokens,
        now.charged_tokens(),
        "{title}: tokens against the entries"
    );
    let cycles = now.count("cycle.ended") + now.count("cycle.dropped");
    assert_eq!(
        spent.steps, cycles as u64,
        "{title}: steps against the entries"
    );
}
