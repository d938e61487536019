use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use gyrus_contract::{Origin, Text};
use serde_json::{Value, json};

use super::*;
use crate::{HistoryLimits, LiveItem};

/// Everything that is waited for happens within this time, or the test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Counts events, and replies with the count.
struct Counter;

impl AgentBehavior for Counter {
    async fn on_event(
        &mut self,
        event: Event,
        state: &mut AgentState,
    ) -> Result<Vec<AgentAction>, BehaviorError> {
        if event.payload == json!("fail") {
            return Err(BehaviorError("told to".to_owned()));
        }
        assert_ne!(event.payload, json!("panic"), "told to panic");
        let count = state.get::<u64>("count").unwrap_or(0) + 1;
        state.set("count", &count)?;
        Ok(vec![
            AgentAction::Publish {
                topic: "counted".parse().unwrap(),
                payload: json!(count),
            },
            AgentAction::Reply {
                payload: json!(count),
            },
        ])
    }
}

/// An agent whose loop works on the text of each event.
struct Worker;

impl AgentBehavior for Worker {
    async fn on_event(
        &mut self,
        event: Event,
        _: &mut AgentState,
    ) -> Result<Vec<AgentAction>, BehaviorError> {
        let goal = Text::new(event.payload.to_string(), Origin::Kernel);
        Ok(vec![AgentAction::Run {
            goal,
            context: Vec::new(),
        }])
    }
}

/// Runs that reach their goal at once, and are counted; the first one never ends.
#[derive(Default)]
struct Reached {
    begun: Mutex<Vec<gyrus_contract::RunId>>,
    hangs: AtomicUsize,
}

impl AgentRuns for Reached {
    fn drive(
        &self,
        run: AgentRun,
    ) -> std::pin::Pin<Box<dyn Future<Output = AgentRunEnd> + Send + '_>> {
        self.begun.lock().push(run.run);
        Box::pin(async {
            if self.hangs.load(Ordering::Relaxed) > 0 {
                std::future::pending::<()>().await;
            }
            AgentRunEnd {
                reached: true,
                summary: "claimed: done".to_owned(),
                answer: Some("done".to_owned()),
                nothing_to_do: false,
            }
        })
    }
}

fn me() -> Principal {
    Principal {
        surface: "test".to_owned(),
        id: "me".to_owned(),
    }
}

fn world() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

async fn living(store: &Store, config: AgentConfig) -> (EventBus, Agents, Arc<Reached>) {
    let bus = EventBus::open(store, HistoryLimits::default()).unwrap();
    let agents = Agents::open(store, bus.clone());
    let runs = Arc::new(Reached::default());
    agents
        .create_agent(config, Box::new(Counter), runs.clone())
        .await
        .unwrap();
    agents.begin().await.unwrap();
    (bus, agents, runs)
}

async fn send(bus: &EventBus, topic: &str, payload: Value) {
    let event = Event::new(topic.parse().unwrap(), "test", Origin::Person, payload);
    bus.publish_durable(event).await.unwrap();
}

async fn until(agents: &Agents, name: &str, wanted: impl Fn(&AgentRecord) -> bool) {
    let wait = async {
        while !agents.look(name, &wanted).unwrap() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, wait).await;
    waited.unwrap_or_else(|_| panic!("{:?}", agents.look(name, AgentRecord::clone)));
}

fn counter() -> AgentConfig {
    AgentConfig::new("counter").with_subscription("work.**".parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_and_mailbox_outlive_the_process_and_nothing_is_handled_twice() {
    let (_folder, store) = world();
    let (bus, agents, _) = living(&store, counter()).await;
    let mut heard = bus
        .subscribe(
            "ear",
            &["counted".parse().unwrap()],
            100,
            crate::Overflow::Wait,
        )
        .unwrap();
    for number in 0..5 {
        send(&bus, "work.item", json!(number)).await;
    }
    send(&bus, "other.item", json!(0)).await;
    send(&bus, "agent.counter.inbox", json!("direct")).await;
    until(&agents, "counter", |record| record.figures.handled == 6).await;
    agents.pause("counter", me(), None).await.unwrap();
    send(&bus, "work.item", json!("waits")).await;
    until(&agents, "counter", |record| record.mailbox.len() == 1).await;
    for count in 1..=6 {
        let Some(LiveItem::Event(event)) = heard.recv().await else {
            panic!("it is closed");
        };
        assert_eq!(event.payload, json!(count));
    }
    drop((heard, agents, bus));

    let (bus, agents, _) = reopened(&store).await;
    assert!(!agents.look("counter", AgentRecord::is_active).unwrap());
    agents.resume("counter").await.unwrap();
    until(&agents, "counter", |record| record.figures.handled == 7).await;
    let count = agents.look("counter", |record| record.state.get::<u64>("count"));
    assert_eq!(count.unwrap(), Some(7));
    drop(bus);
}

/// Reopens everything, once the tasks of the previous one have ended.
async fn reopened(store: &Store) -> (EventBus, Agents, Arc<Reached>) {
    let open = async {
        loop {
            if let Ok(bus) = EventBus::open(store, HistoryLimits::default()) {
                let agents = Agents::open(store, bus.clone());
                let runs = Arc::new(Reached::default());
                let made = agents.create_agent(counter(), Box::new(Counter), runs.clone());
                if made.await.is_ok() {
                    agents.begin().await.unwrap();
                    return (bus, agents, runs);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, open).await.unwrap()
}

#[tokio::test]
async fn an_agent_that_fails_is_tried_again_and_then_quarantined() {
    let (_folder, store) = world();
    let config = AgentConfig {
        retries: 1,
        ..counter()
    };
    let (bus, agents, _) = living(&store, config).await;
    for (round, word) in ["fail", "panic"].into_iter().enumerate() {
        send(&bus, "work.item", json!(word)).await;
        send(&bus, "work.item", json!("good")).await;
        until(&agents, "counter", |record| {
            matches!(record.stage, Some(AgentStage::Quarantined { .. }))
        })
        .await;
        let failures = agents
            .look("counter", |record| record.figures.failures)
            .unwrap();
        assert_eq!(failures, 2 * (round as u64 + 1));
        // The event is still the first; a person gives it up.
        agents.skip("counter", me()).await.unwrap();
        agents.resume("counter").await.unwrap();
        until(&agents, "counter", |record| {
            record.figures.handled == round as u64 + 1
        })
        .await;
    }
    agents.retire("counter", me()).await.unwrap();
    let again = agents.create_agent(counter(), Box::new(Counter), Arc::new(Reached::default()));
    assert!(matches!(
        again.await,
        Err(AgentError::Retired { .. } | AgentError::Ledger(_))
    ));
}

#[tokio::test]
async fn a_full_mailbox_drops_as_it_says_and_counts() {
    for (overflow, left) in [
        (MailboxOverflow::DropOldest, json!([0, 8, 9])),
        (MailboxOverflow::DropNewest, json!([0, 1, 2])),
    ] {
        let (_folder, store) = world();
        let config = AgentConfig {
            mailbox: 3,
            overflow,
            ..counter()
        };
        let (bus, agents, _) = living(&store, config).await;
        agents.pause("counter", me(), None).await.unwrap();
        for number in 0..10 {
            send(&bus, "work.item", json!(number)).await;
        }
        until(&agents, "counter", |record| record.figures.dropped == 7).await;
        let waiting = agents.look("counter", |record| {
            let events = record
                .mailbox
                .iter()
                .map(|(_, event)| event.payload.clone());
            Value::Array(events.collect())
        });
        assert_eq!(waiting.unwrap(), left);
    }
}

#[tokio::test]
async fn a_run_that_was_begun_is_gone_on_with() {
    let (_folder, store) = world();
    let bus = EventBus::open(&store, HistoryLimits::default()).unwrap();
    let agents = Agents::open(&store, bus.clone());
    let runs = Arc::new(Reached::default());
    runs.hangs.store(1, Ordering::Relaxed);
    let config = AgentConfig::new("worker");
    agents
        .create_agent(config.clone(), Box::new(Worker), runs.clone())
        .await
        .unwrap();
    agents.begin().await.unwrap();
    send(&bus, "agent.worker.inbox", json!("go")).await;
    until(&agents, "worker", |record| record.run.is_some()).await;
    let run = agents.look("worker", |record| record.run).unwrap();
    drop((agents, bus));

    let open = async {
        loop {
            if let Ok(bus) = EventBus::open(&store, HistoryLimits::default()) {
                let agents = Agents::open(&store, bus.clone());
                let again = Arc::new(Reached::default());
                let made = agents.create_agent(config.clone(), Box::new(Worker), again.clone());
                if made.await.is_ok() {
                    return (bus, agents, again);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (bus, agents, again) = tokio::time::timeout(TIMEOUT, open).await.unwrap();
    let mut told = bus
        .subscribe_durable("ear", &["agent.worker.*".parse().unwrap()], StartAt::Oldest)
        .await
        .unwrap();
    until(&agents, "worker", |record| record.figures.handled == 1).await;
    assert_eq!(Some(again.begun.lock()[0]), run);
    let mut reached = 0;
    while let Ok(Ok(DurableItem::Event(_, event))) =
        tokio::time::timeout(Duration::from_millis(200), told.next()).await
    {
        reached += usize::from(event.topic.as_str() == "agent.worker.reached");
    }
    assert_eq!(reached, 1);
}
