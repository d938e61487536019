use std::{path::PathBuf, sync::Arc};

use gyrus_contract::{DEFAULT_AGENT, Origin, Principal, Text};
use gyrus_kernel::latch::LatchContent;

use super::*;
use crate::{ledger::Fold as _, request::RunRequest};

const LIMITS: AtOnce = AtOnce {
    in_all: 4,
    per_agent: 4,
};

fn person() -> Principal {
    Principal {
        surface: "test".to_owned(),
        id: "ada".to_owned(),
    }
}

fn command(needs: &[&str]) -> Arc<QueueCommand> {
    let request = RunRequest {
        needs: needs.iter().map(|&need| need.to_owned()).collect(),
        ..RunRequest::new(Text::new("go", Origin::Person), PathBuf::from("/work"))
    };
    let work = QueueWork::Start(Box::new(request));
    Arc::new(QueueCommand::new(
        work,
        None,
        person(),
        DEFAULT_AGENT.to_owned(),
    ))
}

fn worker(machine: &str, labels: &'static [&'static str]) -> QueueWorker {
    QueueWorker {
        name: format!("{machine}-1"),
        machine: machine.to_owned(),
        build: "0.9.1".to_owned(),
        has: Arc::new(move |label| label == "folder:/work" || labels.contains(&label)),
    }
}

fn submit(queue: &mut CommandQueue, command: &Arc<QueueCommand>) {
    queue.apply(QueueFact::Submitted(Arc::clone(command)));
}

fn begin(queue: &mut CommandQueue, command: &QueueCommand, worker: &QueueWorker) {
    let running = CommandStage::Running {
        since_ms: 1,
        worker: Some(worker.name.clone()),
        machine: Some(worker.machine.clone()),
        build: Some(worker.build.clone()),
    };
    queue.apply(state::stage(&command.id, running));
}

fn next<'a>(queue: &'a CommandQueue, worker: &QueueWorker) -> Option<&'a str> {
    let next = queue.next(2, LIMITS, Some(worker));
    next.map(|command| command.id.as_str())
}

/// Returns the queue as a newly started process sees it.
fn folded_again(queue: &CommandQueue) -> CommandQueue {
    let mut again = CommandQueue::default();
    for fact in queue.facts() {
        again.apply(fact);
    }
    again
}

#[test]
fn a_command_waits_for_a_machine_that_has_what_it_needs() {
    let (plain, demanding) = (command(&[]), command(&["gpu", "screen"]));
    let mut queue = CommandQueue::default();
    submit(&mut queue, &demanding);
    submit(&mut queue, &plain);
    let with_both = worker("b", &["gpu", "screen", "other"]);
    assert_eq!(next(&queue, &worker("a", &["gpu"])), Some(&*plain.id));
    assert_eq!(next(&queue, &with_both), Some(&*demanding.id));
    let needs = queue.get(&demanding.id).expect("it is there").needs();
    assert_eq!(worker("a", &["gpu"]).lacks(&needs), ["screen"]);
    assert!(queue.next(2, LIMITS, None).is_some());
}

#[test]
fn a_run_in_a_folder_goes_on_on_its_machine_and_by_no_older_program() {
    let bound = command(&[]);
    let (here, there) = (worker("here", &[]), worker("there", &[]));
    let mut queue = CommandQueue::default();
    submit(&mut queue, &bound);
    assert!(next(&queue, &here).is_some() && next(&queue, &there).is_some());
    begin(&mut queue, &bound, &here);
    queue.apply(state::stage(&bound.id, CommandStage::Queued));
    for queue in [&queue, &folded_again(&queue)] {
        assert_eq!(next(queue, &there), None);
        assert_eq!(next(queue, &here), Some(&*bound.id));
        let bound = queue.get(&bound.id).expect("it is there");
        let needs = bound.needs();
        let again = Arc::new(QueueCommand {
            id: "again".to_owned(),
            work: QueueWork::Resume,
            ..(*bound.command).clone()
        });
        assert_eq!(QueuedCommand::new(again, Some(bound)).needs(), needs);
        assert_eq!(there.lacks(&needs), ["machine:here"]);
        let other = |build: &str| QueueWorker {
            build: build.to_owned(),
            ..here.clone()
        };
        assert_eq!(other("0.9.0").lacks(&needs), ["gyrus:0.9.1"]);
        assert!(other("0.10.0").lacks(&needs).is_empty());
        assert!(
            other("0.9.1+20261129084500.1a2b3c4d")
                .lacks(&needs)
                .is_empty()
        );
    }
}

#[test]
fn nothing_begins_while_all_runs_are_stopped() {
    let waiting = command(&[]);
    let mut queue = CommandQueue::default();
    submit(&mut queue, &waiting);
    let told = LatchContent::now(person(), Some("fire".to_owned()));
    queue.apply(QueueFact::Stopped(told.clone()));
    queue.apply(QueueFact::Stopped(LatchContent::now(person(), None)));
    for mut queue in [folded_again(&queue), queue] {
        assert_eq!(queue.stopped(), Some(&told));
        assert_eq!(next(&queue, &worker("a", &[])), None);
        queue.apply(QueueFact::Rearmed {
            by: person(),
            at_ms: 3,
        });
        assert_eq!(next(&queue, &worker("a", &[])), Some(&*waiting.id));
    }
}

/// Returns a queue in a folder that is removed at the end.
fn gateway() -> (tempfile::TempDir, Gateway) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let gateway = Gateway::open(&store).expect("a queue");
    (folder, gateway)
}

async fn begun(gateway: &Gateway) -> String {
    let new = command(&[]);
    gateway
        .submit((*new).clone())
        .await
        .expect("it is accepted");
    let begun = gateway.begin_next(LIMITS).await.expect("it is written");
    begun.expect("it is its turn").id.clone()
}

#[tokio::test]
async fn stopping_all_ends_what_is_at_work_in_the_same_step() {
    let (_folder, gateway) = gateway();
    let id = begun(&gateway).await;
    let told = LatchContent::now(person(), Some("fire".to_owned()));
    assert_eq!(gateway.stop_all(&told).await.expect("it is written"), 1);
    assert_eq!(gateway.stop_all(&told).await.expect("it is written"), 0);
    let stage = gateway.with(|queue| queue.get(&id).expect("it is there").stage.clone());
    let CommandStage::Ended { summary, .. } = stage else {
        panic!("it is not over: {stage:?}");
    };
    assert!(summary.contains("fire"), "{summary}");
    let begun = gateway.begin_next(LIMITS).await.expect("it is read");
    assert!(begun.is_none());
    assert!(gateway.rearm(&person()).await.expect("it is written"));
    assert!(!gateway.rearm(&person()).await.expect("it is written"));
}

#[tokio::test]
async fn a_command_rests_longer_each_time_and_is_never_given_up() {
    let (_folder, gateway) = gateway();
    let id = begun(&gateway).await;
    let mut rests = Vec::new();
    let rest = async |entries| {
        let before = gyrus_kernel::now_ms();
        let until_ms = gateway.rest(&id, None, entries, "its process died").await;
        let until_ms = until_ms.expect("it is written")?;
        // It is due at once, for the test.
        let _ = gateway.reach(&id, CommandStage::Queued).await;
        let _ = gateway.begin_next(LIMITS).await;
        Some((until_ms - before + 500) / 1_000)
    };
    for entries in [7, 7, 6].into_iter().chain([7; 12]) {
        rests.extend(rest(entries).await);
    }
    // A rest that began under a clock that was ahead is not longer.
    let now = gyrus_kernel::now_ms();
    for (left, is_over) in [(-1, true), (0, true), (600_000, false), (600_001, true)] {
        let stage = CommandStage::Parked {
            why: String::new(),
            for_person: false,
            until_ms: Some(now + left),
            deaths: Some(Deaths {
                rests: 1,
                entries: 7,
            }),
        };
        assert_eq!(stage.is_waited_out(now), is_over, "{left}");
    }
    // With another entry it begins anew.
    assert_eq!(rests[..5], [5, 10, 5, 5, 10]);
    assert_eq!(rests.last(), Some(&600));
    gateway
        .end(&id, None, "stopped".to_owned())
        .await
        .expect("it is written");
    // It is nobody's any more.
    let rest = gateway.rest(&id, None, 7, "").await.expect("it is read");
    assert_eq!(rest, None);
}

#[tokio::test]
async fn what_another_worker_has_does_not_rest() {
    let (_folder, gateway) = gateway();
    let id = begun(&gateway).await;
    let rest = gateway.rest(&id, Some("other"), 1, "").await;
    assert_eq!(rest.expect("it is read"), None);
    assert!(gateway.has(&id));
    assert_eq!(gateway.with(CommandQueue::running), 1);
}

#[tokio::test]
async fn what_became_of_a_command_meanwhile_stands() {
    let (_folder, gateway) = gateway();
    let id = begun(&gateway).await;
    let stage = || gateway.with(|queue| queue.get(&id).expect("it is there").stage.clone());
    // It was taken for dead, and is late.
    assert!(gateway.give_back(&id, "other").await.is_ok_and(|had| !had));
    let back = state::stage(&id, CommandStage::Queued);
    let facts = &gateway.shared.facts;
    let changed = facts.change(|_| Ok((vec![back.clone()], ()))).await;
    changed.expect("it is written");
    let end = gateway.end(&id, Some(1), "its process died".to_owned());
    end.await.expect("it is read");
    assert_eq!(stage(), CommandStage::Queued);
    let again = gateway.begin_next(LIMITS).await.expect("it is written");
    assert_eq!(again.map(|command| command.id.clone()), Some(id.clone()));
    let end = gateway.end(&id, Some(0), "reached".to_owned());
    end.await.expect("it is written");
    let over = stage();
    let again = gateway.reach(&id, CommandStage::Queued).await;
    again.expect("it is read");
    assert!(over.is_over() && stage() == over, "{over:?}");
}
