//! A journal that older code wrote goes on under today's: continued where it can be, handed over
//! to a fresh cycle where it cannot.
//!
//! The old journal is a file of this repository, so it also shows that the format stays readable.
//! `cargo test -p gyrus-conformance --test it -- --ignored` writes a new one; do that only for a
//! new version of the format, under a new name.

use std::{fs, path::Path, sync::Arc};

use gyrus_conformance::{
    recording::{Cut, Recording},
    scenario::{Bench, Scenario},
    script::{Script, Turn},
    world::{APPEND, Deed, FINISH, LOOK, PUT, claim, line, value},
};
use gyrus_contract::{MessageBody, Prompt, RunId};
use gyrus_journal::{Store, os::disk::OsDisk};
use gyrus_kernel::{CallEnd, Ending, Entry, log_name};
use serde_json::json;

use crate::ledger::{Today, loops};

/// Folder of the old journal, and of the workspace that it names.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/ledger-1");
const OLD_WORKSPACE: &str = "/home/ann/ledger";

/// A model that looks, and does what is still missing.
fn model(prompt: &Prompt) -> Turn {
    if prompt.tools.is_empty() {
        return Turn::say("three");
    }
    let last = prompt.messages.last().unwrap().text();
    let shows = |words: &str| last.lines().any(|line| line == words);
    let looked = last == "nothing yet" || ["one = 1", "two = 2", "three"].into_iter().any(shows);
    if !looked {
        return Turn::call(LOOK, json!({}));
    }
    for name in ["one", "two"] {
        let number = if name == "one" { "1" } else { "2" };
        if !shows(&format!("{name} = {number}")) {
            return Turn::call(PUT, value(name, number));
        }
    }
    if shows("three") {
        Turn::call(FINISH, claim("the ledger is complete"))
    } else {
        Turn::call(APPEND, line("three"))
    }
}

fn scenario(today: Today) -> Scenario {
    Scenario::new("ledger", Script::rule(model)).thinking(loops(today))
}

/// The old journal, in a store of its own.
#[derive(Clone)]
struct Old {
    store: Store,
    recording: Recording,
    deeds: Vec<Deed>,
    _folder: Arc<tempfile::TempDir>,
}

fn old() -> Old {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("state");
    copy(Path::new(FIXTURE), &root);
    let store = Store::open_on(Arc::new(OsDisk), &root).unwrap();
    let name = store.names("runs").unwrap().remove(0);
    let run: RunId = name.id().parse().unwrap();
    store.verify(&name).unwrap();
    let recording = Recording::read(&store, run);
    let deeds = settled(&recording);
    Old {
        store,
        recording,
        deeds,
        _folder: Arc::new(folder),
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
    // Version control keeps no empty folders.
    if from.parent().is_some_and(|parent| parent.ends_with("runs")) {
        for part in ["blobs", "inbox"] {
            fs::create_dir_all(to.join(part)).unwrap();
        }
    }
}

/// Returns the deeds of the recorded calls.
fn settled(recording: &Recording) -> Vec<Deed> {
    let calls = recording.entries().filter_map(|entry| match entry {
        Entry::ToolCalled(called) => Some(Deed {
            effect: called.effect.clone(),
            tool: called.call.tool.clone(),
            arguments: called.call.arguments.clone(),
        }),
        _ => None,
    });
    calls.filter(|deed| recording.has_settled(deed)).collect()
}

impl Old {
    /// Today's process over the old journal, in a world where these deeds were done.
    fn under(&self, today: Today, deeds: &[Deed]) -> Bench {
        let mut scenario = scenario(today);
        scenario.new.id = self.recording.run;
        let bench = scenario.bench_after(deeds.to_vec());
        let workspace = scenario.new.workspace.to_str().unwrap();
        let moved = self.recording.rewritten(OLD_WORKSPACE, workspace);
        moved.plant(&self.store, &bench.store);
        bench
    }
}

fn check_reached(bench: &Bench, ending: &Ending, title: &str) {
    assert!(
        matches!(ending, Ending::Reached { .. }),
        "{title}: {ending:?}"
    );
    let state = bench.world.state();
    assert_eq!(state.lines, ["three"], "{title}");
    assert_eq!(state.values.len(), 2, "{title}");
    let deeds = bench.world.deeds();
    let puts = deeds.iter().filter(|deed| deed.tool == PUT).count();
    assert_eq!(puts, 2, "{title}: what was done was done again: {deeds:#?}");
}

/// Resumes the old journal, whether its interrupted call happened or not.
async fn check(today: Today, handed_over: usize) {
    let old = old();
    let mut happened = old.deeds.clone();
    happened.extend(old.recording.in_flight());
    assert_eq!((old.deeds.len(), happened.len()), (2, 3));
    for deeds in [&old.deeds, &happened] {
        let bench = old.under(today, deeds);
        let ended = bench.resume().await.unwrap();
        let title = format!("{} deeds", deeds.len());
        check_reached(&bench, &ended.ending, &title);
        let recording = bench.recording();
        assert_eq!(recording.count("run.handed_over"), handed_over, "{title}");
        assert_eq!(recording.charged_tokens(), ended.spent.tokens, "{title}");
        if handed_over > 0 {
            check_told(&recording);
            let told = bench.model.heard()[0].messages.last().unwrap().text();
            assert!(told.contains("- put: done"), "{title}: {told}");
        }
    }
}

fn check_told(recording: &Recording) {
    let handed = recording.entries().find_map(|entry| match entry {
        Entry::RunHandedOver(handed) => Some(handed),
        _ => None,
    });
    let done: Vec<_> = handed
        .unwrap()
        .done
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(done, ["2.2", "2.3"]);
    let unknown = recording.entries().any(|entry| {
        matches!(entry, Entry::ToolResulted(result)
            if result.settled == CallEnd::Interrupted && result.effect.to_string() == "2.3")
    });
    assert!(unknown, "the interrupted call has no outcome");
}

#[test]
fn the_old_journal_is_still_readable() {
    insta::assert_snapshot!(old().recording.kinds().join("\n"));
}

#[tokio::test]
async fn the_same_code_continues() {
    check(Today::Same, 0).await;
}

#[tokio::test]
async fn code_that_migrates_continues_without_a_hand_over() {
    check(Today::Migrates, 0).await;
}

#[tokio::test]
async fn code_that_does_something_else_begins_afresh() {
    // It does the same steps again under new numbers, so nobody may be surprised by a third line.
    let old = old();
    let bench = old.under(Today::Differs, &old.deeds);
    // A process of today came and went before it did anything; what is recorded is no less old.
    drop(bench.take().unwrap());
    let ended = bench.resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    let recording = bench.recording();
    assert_eq!(recording.count("run.handed_over"), 1);
    check_told(&recording);
}

#[tokio::test]
async fn code_that_cannot_read_the_state_is_told_what_was_done() {
    check(Today::Rewritten, 1).await;
}

#[tokio::test]
async fn any_unfinished_cycle_can_be_handed_over() {
    let old = old();
    let cycle = 1 + old
        .recording
        .kinds()
        .iter()
        .position(|k| *k == "cycle.ended")
        .unwrap();
    for entries in cycle..old.recording.lines.len() {
        let recording = old.recording.cut(Cut {
            entries,
            of_child: None,
        });
        let deeds = settled(&recording);
        let cut = Old {
            recording,
            ..old.clone()
        };
        let bench = cut.under(Today::Rewritten, &deeds);
        let ended = bench.resume().await.unwrap();
        let title = format!("{entries} entries");
        check_reached(&bench, &ended.ending, &title);
        let recording = bench.recording();
        assert_eq!(recording.charged_tokens(), ended.spent.tokens, "{title}");
        let (calls, replies) = (
            recording.count("model.call"),
            recording.count("model.reply"),
        );
        assert_eq!(calls, replies, "{title}: a request has no outcome");
    }
}

#[tokio::test]
async fn what_a_person_said_outlives_the_cycle_that_is_given_up() {
    let first = scenario(Today::Same);
    let bench = first.bench();
    let ready = bench.create();
    let steer = || MessageBody::steer("mind the colours");
    let id = bench.send(steer());
    ready.drive().await.unwrap();
    let whole = bench.recording();
    let entries = 1 + whole
        .kinds()
        .iter()
        .position(|kind| *kind == "tool.started")
        .unwrap();
    let left = whole.cut(Cut {
        entries,
        of_child: None,
    });
    let mut today = first.clone();
    today = today.thinking(loops(Today::Rewritten));
    let next = today.bench_after(Vec::new());
    left.plant(&bench.store, &next.store);
    next.send_as(&id, steer());
    let ended = next.resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    assert_eq!(next.recording().count("run.handed_over"), 1);
    for prompt in next.model.heard() {
        let texts: String = prompt.messages.iter().map(|one| one.text()).collect();
        assert_eq!(texts.matches("mind the colours").count(), 1, "{texts}");
    }
    assert_eq!(next.waiting(), 0);
}

#[tokio::test]
async fn a_hand_over_survives_every_crash() {
    let old = old();
    let bench = old.under(Today::Rewritten, &old.deeds);
    bench.resume().await.unwrap();
    let whole = bench.recording();
    let start = old.recording.lines.len() + 1;
    for entries in start..whole.lines.len() {
        let left = whole.cut(Cut {
            entries,
            of_child: None,
        });
        let deeds = bench
            .world
            .deeds()
            .into_iter()
            .filter(|deed| left.has_settled(deed));
        let next = bench.scenario.bench_after(deeds.collect());
        left.plant(&bench.store, &next.store);
        let title = format!("{entries} entries");
        let ended = next
            .resume()
            .await
            .unwrap_or_else(|error| panic!("{title}: {error}"));
        check_reached(&next, &ended.ending, &title);
        let recording = next.recording();
        assert_eq!(
            recording.count("cycle.dropped"),
            1,
            "{title}: {:#?}",
            recording.kinds()
        );
        assert_eq!(recording.charged_tokens(), ended.spent.tokens, "{title}");
        let first = next.model.heard().first().map(|prompt| prompt.ordinal);
        assert!(
            first.is_none_or(|ordinal| ordinal > 0),
            "{title}: it forgot a reply"
        );
    }
}

#[tokio::test]
#[ignore = "writes the old journal anew"]
async fn write_the_old_journal() {
    let bench = scenario(Today::Same).bench();
    bench.start().await.unwrap();
    let whole = bench.recording();
    let started = whole
        .kinds()
        .iter()
        .rposition(|kind| *kind == "tool.started")
        .unwrap();
    let left = whole.cut(Cut {
        entries: started + 1,
        of_child: None,
    });
    let workspace = bench.scenario.new.workspace.to_str().unwrap().to_owned();
    let fixture = Path::new(FIXTURE);
    let _ = fs::remove_dir_all(fixture);
    let store = Store::open_on(Arc::new(OsDisk), fixture).unwrap();
    left.rewritten(&workspace, OLD_WORKSPACE)
        .plant(&bench.store, &store);
    // What any process makes again.
    fs::remove_file(store.folder(&log_name(bench.run())).join("lock")).unwrap();
    for folder in ["blobs", ".incoming"] {
        fs::remove_dir_all(fixture.join(folder)).unwrap();
    }
}
