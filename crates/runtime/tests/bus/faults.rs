//! Durable events on a disk that fails, and on one that is taken up often.

use std::{path::Path, sync::Arc, time::Duration};

use gyrus_contract::{Origin, Principal, Text};
use gyrus_journal::Store;
use gyrus_runtime::{
    BusError, DurableItem, Event, EventBus, EventPosition, HistoryLimits, StartAt,
    queue::{CommandStage, Gateway, QueueCommand, QueueError, QueueWork},
    request::RunRequest,
};

use gyrus_simulation::journal::{Fault, SimDisk};

use super::{numbered, patterns};

const WORKER: &str = "worker";

fn store(disk: &SimDisk) -> Result<Store, BusError> {
    Ok(Store::open_on(Arc::new(disk.clone()), Path::new("/home"))?)
}

fn limits() -> HistoryLimits {
    HistoryLimits {
        log_events: 3,
        keep_bytes: 0,
        duplicate_window: 4,
        ..HistoryLimits::default()
    }
}

/// The events that somebody was told of.
#[derive(Default)]
struct Told {
    /// The position of each number that was published, or `None` if there was no answer.
    published: Vec<Option<u64>>,
    acknowledged: u64,
}

/// Publishes eight events and acknowledges every second, until something fails.
async fn live(disk: &SimDisk, told: &mut Told) -> Result<(), BusError> {
    let bus = EventBus::open(&store(disk)?, limits())?;
    let any = patterns(&["**"]);
    let start = StartAt::Acknowledged;
    let mut worker = bus.subscribe_durable(WORKER, &any, start).await?;
    for number in 0..8 {
        told.published.push(None);
        let position = bus.publish_durable(numbered("a", number)).await?;
        told.published[number.unsigned_abs() as usize] = Some(position.0);
        let DurableItem::Event(received, _) = worker.next().await? else {
            panic!("nothing is lost")
        };
        assert_eq!(received, position);
        if number % 2 == 0 {
            bus.acknowledge(WORKER, position).await?;
            told.acknowledged = position.0;
        }
    }
    Ok(())
}

/// Reads on after the crash, and compares.
async fn check(disk: &SimDisk, told: &Told) {
    let bus = EventBus::open(&store(disk).unwrap(), limits()).unwrap();
    let any = patterns(&["**"]);
    let start = StartAt::Acknowledged;
    let mut worker = bus.subscribe_durable(WORKER, &any, start).await.unwrap();
    let acknowledged = bus.durable_subscribers()[0].acknowledged.0;
    assert!(acknowledged >= told.acknowledged);
    let last = bus.last_position().unwrap().0;
    let mut received = std::collections::BTreeMap::new();
    for expected in acknowledged + 1..=last {
        let DurableItem::Event(position, event) = worker.next().await.unwrap() else {
            panic!("nothing is lost")
        };
        assert_eq!(position.0, expected);
        received.insert(position.0, event.payload.as_i64().unwrap());
    }
    for (number, position) in (0..).zip(&told.published) {
        if let Some(position) = position.filter(|position| *position > acknowledged) {
            assert_eq!(received.get(&position), Some(&number));
        }
    }
    // The history goes on.
    let position = bus.publish_durable(numbered("a", 100)).await.unwrap();
    assert_eq!(position.0, last + 1);
}

#[tokio::test]
async fn whatever_call_of_the_disk_fails_no_acknowledged_event_is_lost() {
    let calls = {
        let disk = SimDisk::new();
        live(&disk, &mut Told::default()).await.unwrap();
        disk.calls()
    };
    for fault in [Fault::Io, Fault::NoSpace, Fault::PowerCut] {
        for call in 1..=calls {
            let disk = SimDisk::new();
            disk.fail_at(call, fault);
            let mut told = Told::default();
            // A failure to remove an old log is not one of publishing.
            let _ = live(&disk, &mut told).await;
            check(&disk.crash(call), &told).await;
        }
    }
}

/// Number of attempts within which a bus recovers.
const ATTEMPTS: usize = 1_000;

/// Publishes an event until it is stored; each attempt takes up what the one before could not.
async fn publish(bus: EventBus, event: Arc<Event>) -> u64 {
    for _ in 0..ATTEMPTS {
        if let Ok(position) = bus.publish_durable(Arc::clone(&event)).await {
            return position.0;
        }
        // Others that were told of the failure release the log.
        tokio::task::yield_now().await;
    }
    panic!("it never works again")
}

/// Acknowledges a position until that is stored.
async fn acknowledge(bus: &EventBus, position: u64) {
    for _ in 0..ATTEMPTS {
        if bus
            .acknowledge(WORKER, EventPosition(position))
            .await
            .is_ok()
        {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never works again")
}

#[tokio::test]
async fn a_bus_goes_on_after_a_failure_of_the_disk() {
    let mut recovered = 0;
    for call in 1..150 {
        let disk = SimDisk::new();
        let bus = EventBus::open(&store(&disk).unwrap(), limits()).unwrap();
        let (any, start) = (patterns(&["**"]), StartAt::Acknowledged);
        let subscribed = bus.subscribe_durable(WORKER, &any, start);
        let mut worker = subscribed.await.unwrap();
        disk.fail_at(disk.calls() + call, Fault::Io);
        for number in 0..8 {
            let event = Arc::new(numbered("a", number));
            let position = publish(bus.clone(), Arc::clone(&event)).await;
            assert_eq!(position, number.unsigned_abs() + 1, "call {call}");
            let DurableItem::Event(received, same) = worker.next().await.unwrap() else {
                panic!("nothing is lost")
            };
            assert_eq!((received.0, same), (position, event));
            acknowledge(&bus, position).await;
        }
        recovered += disk.fired();
        // All of it is there when the bus is opened again.
        drop((worker, bus));
        let told = Told {
            published: (1..=8).map(Some).collect(),
            acknowledged: 8,
        };
        check(&disk.kill(), &told).await;
    }
    assert!(recovered > 50, "{recovered}");
}

#[tokio::test]
async fn positions_go_on_after_everything_was_removed() {
    let disk = SimDisk::new();
    let store = store(&disk).unwrap();
    let limits = HistoryLimits {
        keep_for: Duration::ZERO,
        log_events: 1,
        duplicate_window: 0,
        ..limits()
    };
    let open = || EventBus::open(&store, limits).unwrap();
    for expected in 1..=5 {
        let position = open().publish_durable(numbered("a", 0)).await.unwrap();
        assert_eq!(position.0, expected);
    }
    // A log that is taken too often is replaced, also when it is empty.
    for _ in 0..103 {
        drop(open());
    }
    let bus = open();
    for expected in 6..=7 {
        let position = bus.publish_durable(numbered("a", 0)).await.unwrap();
        assert_eq!(position.0, expected);
    }
    let names = store.names("events").unwrap();
    let names: Vec<&str> = names.iter().map(|name| name.id()).collect();
    assert!(
        names.len() == 2 && names[0].starts_with("control-"),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_publishers_get_over_one_failure() {
    const PUBLISHERS: i64 = 32;
    for call in 1..20 {
        let disk = SimDisk::new();
        let bus = EventBus::open(&store(&disk).unwrap(), HistoryLimits::default()).unwrap();
        disk.fail_at(disk.calls() + call, Fault::Io);
        let mut publishers = tokio::task::JoinSet::new();
        for number in 0..PUBLISHERS {
            publishers.spawn(publish(bus.clone(), Arc::new(numbered("a", number))));
        }
        let positions = publishers.join_all().await;
        let positions: std::collections::BTreeSet<u64> = positions.into_iter().collect();
        // Each has a position of its own, and none is left out.
        assert_eq!(positions, (1..=PUBLISHERS.unsigned_abs()).collect());
    }
}

#[tokio::test]
async fn a_queue_goes_on_after_a_failure_of_the_disk() {
    let person = Principal {
        surface: "test".to_owned(),
        id: "ada".to_owned(),
    };
    let command = |number: u32| {
        let request = RunRequest::new(Text::new("go", Origin::Person), "/work".into());
        let work = QueueWork::Start(Box::new(request));
        QueueCommand {
            key: Some(number.to_string()),
            ..QueueCommand::new(work, None, person.clone(), "default".to_owned())
        }
    };
    let mut recovered = 0;
    for (fault, call) in [Fault::Io, Fault::NoSpace]
        .into_iter()
        .flat_map(|fault| (1..40).map(move |call| (fault, call)))
    {
        let disk = SimDisk::new();
        let store = store(&disk).unwrap();
        let gateway = Gateway::open(&store).unwrap();
        disk.fail_at(disk.calls() + call, fault);
        for number in 0..4 {
            let submitted = loop {
                if let Ok(submitted) = gateway.submit(command(number)).await {
                    break submitted;
                }
                // The disk refused once: whoever asks hears that it is over.
                assert_eq!(gateway.want(), None, "{fault:?} {call}");
            };
            while let Err(error) = gateway.cancel(&submitted.command.id, person.clone()).await {
                assert!(matches!(error, QueueError::Ledger(_)), "{error}");
            }
        }
        recovered += disk.fired();
        drop((gateway, store));
        let queue = Gateway::read(&self::store(&disk.kill()).unwrap()).unwrap();
        let all = queue.all();
        assert_eq!(all.len(), 4, "{fault:?} {call}");
        for one in all {
            assert!(
                matches!(one.stage, CommandStage::Cancelled { .. }),
                "{one:?}"
            );
        }
    }
    assert!(recovered > 20, "{recovered}");
}
