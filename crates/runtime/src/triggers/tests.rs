//! Triggers on a store, with a clock that is set by hand.

use std::{
    fs,
    path::Path,
    pin::Pin,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use gyrus_contract::{Origin, Text};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{record::MAX_REMEMBERED, *};
use crate::{
    Event, EventBus, EventId, EventPosition, HistoryLimits,
    agents::{
        AgentAction, AgentBehavior, AgentConfig, AgentRun, AgentRunEnd, AgentRuns, AgentState,
        BehaviorError,
    },
    ledger::Fold as _,
};

/// Time limit of everything that the tests wait for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The start of each test: 2023-11-14, 22:00 UTC.
const BEGIN_MS: i64 = 1_700_000_000_000 / HOUR * HOUR;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

const SECRET: &str = "the secret of these tests";

/// A clock that the test sets.
#[derive(Debug)]
struct HandClock(watch::Sender<i64>);

impl TriggerClock for HandClock {
    fn now_ms(&self) -> i64 {
        *self.0.borrow()
    }

    fn wait_until(&self, at_ms: i64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut now = self.0.subscribe();
        Box::pin(async move {
            // Also where the clock was set back.
            let begun = *now.borrow_and_update();
            let _ = now.wait_for(|now| *now >= at_ms || *now < begun).await;
        })
    }
}

/// A clipboard that the test sets.
struct HandClipboard(Mutex<Option<String>>);

impl ClipboardReader for HandClipboard {
    fn read(&self) -> Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + '_>> {
        let text = self.0.lock().clone();
        Box::pin(std::future::ready(match text.as_deref() {
            Some("broken") => Err("it is broken".to_owned()),
            _ => Ok(text),
        }))
    }
}

/// Starts a run for every event.
struct Worker;

impl AgentBehavior for Worker {
    async fn on_event(
        &mut self,
        _: Event,
        _: &mut AgentState,
    ) -> Result<Vec<AgentAction>, BehaviorError> {
        Ok(vec![AgentAction::Run {
            goal: Text::new("work", Origin::Configuration),
            context: Vec::new(),
        }])
    }
}

/// Ends of runs, the first ones without use.
#[derive(Default)]
struct Ends {
    failing: AtomicU32,
    idle: AtomicU32,
}

impl AgentRuns for Ends {
    fn drive(&self, _: AgentRun) -> Pin<Box<dyn Future<Output = AgentRunEnd> + Send + '_>> {
        let take = |count: &AtomicU32| {
            let less = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
            less.is_ok()
        };
        let (fails, is_idle) = (take(&self.failing), take(&self.idle));
        Box::pin(std::future::ready(AgentRunEnd {
            reached: !fails,
            summary: "an end".to_owned(),
            answer: None,
            nothing_to_do: is_idle,
        }))
    }
}

struct World {
    triggers: Triggers,
    bus: EventBus,
    clock: Arc<HandClock>,
    ends: Arc<Ends>,
    clipboard: Arc<HandClipboard>,
}

impl World {
    /// Opens everything on a store, once the tasks of the previous world have ended.
    async fn open(folder: &Path, now_ms: i64, own: &[TriggerConfig]) -> Self {
        let opening = async {
            loop {
                match Self::try_open(folder, now_ms, own).await {
                    Some(world) => return world,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(TIMEOUT, opening).await.unwrap()
    }

    async fn try_open(folder: &Path, now_ms: i64, own: &[TriggerConfig]) -> Option<Self> {
        let store = Store::open(folder).unwrap();
        let bus = EventBus::open(&store, HistoryLimits::default()).ok()?;
        let gateway = Gateway::open(&store).ok()?;
        let agents = Agents::open(&store, bus.clone());
        let ends = Arc::new(Ends::default());
        let config = AgentConfig::new("worker");
        agents
            .create_agent(config, Box::new(Worker), ends.clone())
            .await
            .ok()?;
        let clock = Arc::new(HandClock(watch::Sender::new(now_ms)));
        let clipboard = Arc::new(HandClipboard(Mutex::new(Some("broken".to_owned()))));
        let triggers = Triggers::open(&agents, &gateway, clock.clone(), clipboard.clone());
        let triggers = triggers.ok()?;
        agents.begin().await.unwrap();
        triggers
            .set("worker", DayBudget::default(), own)
            .await
            .unwrap();
        triggers.begin().await.unwrap();
        Some(Self {
            triggers,
            bus,
            clock,
            ends,
            clipboard,
        })
    }

    async fn events(&self, topic: &str) -> Vec<Value> {
        let pattern = topic.parse().unwrap();
        let read = self.bus.read(EventPosition(0), &[pattern], 1_000).await;
        let events = read.unwrap().0.into_iter();
        events.map(|(_, event)| event.payload.clone()).collect()
    }

    async fn woken(&self) -> Vec<Value> {
        self.events("agent.worker.inbox").await
    }

    fn status(&self, name: &str) -> TriggerStatus {
        let mut all = self.triggers.of_agent("worker").into_iter();
        all.find(|one| one.name == name).unwrap()
    }

    #[track_caller]
    fn until(
        &self,
        name: &str,
        wanted: impl Fn(&TriggerStatus) -> bool,
    ) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let wait = async {
                while !wanted(&self.status(name)) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let waited = tokio::time::timeout(TIMEOUT, wait).await;
            waited.unwrap_or_else(|_| panic!("{caller}: {:?}", self.status(name)));
        }
    }

    /// Sets the clock, and waits until the timer has checked the schedule.
    async fn set_clock(&self, now_ms: i64) {
        self.clock.0.send_replace(now_ms);
        self.until("cron", |status| {
            status.next_ms.is_some_and(|next| next > now_ms)
        })
        .await;
    }

    async fn deliver(&self, id: &str, body: &Value) -> Result<DeliveryFate, TriggerError> {
        let timestamp = (self.clock.now_ms() / 1000).to_string();
        let body = body.to_string();
        let secret = HookSecret::new(SECRET).unwrap();
        let signature = secret.sign(id, &timestamp, body.as_bytes());
        let head = HookHead {
            id,
            timestamp: &timestamp,
            signature: &signature,
        };
        self.triggers
            .deliver("worker", "hook", head, body.as_bytes())
            .await
    }
}

fn cron(text: &str, missed: MissedPolicy) -> TriggerConfig {
    let source = TriggerSource::Cron {
        schedule: text.parse().unwrap(),
        zone: TimeZone::UTC,
        missed,
    };
    TriggerConfig::new("cron", source)
}

fn hook() -> TriggerConfig {
    let secret = Some(HookSecret::new(SECRET).unwrap());
    TriggerConfig::new("hook", TriggerSource::Webhook { secret })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instants_fire_once_over_restarts_and_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let own = [cron("0 * * * *", MissedPolicy::All)];
    let world = World::open(folder.path(), BEGIN_MS + MINUTE, &own).await;
    world
        .until("cron", |status| status.next_ms == Some(BEGIN_MS + HOUR))
        .await;
    assert_eq!(world.woken().await, [] as [Value; 0]);
    world.set_clock(BEGIN_MS + HOUR).await;
    let first = json!({"trigger": "cron", "at": "2023-11-14T23:00:00Z"});
    assert_eq!(world.woken().await, std::slice::from_ref(&first));
    world
        .until("cron", |status| {
            let last = status.record.last.as_ref().unwrap();
            last.result.as_deref() == Some("an end")
        })
        .await;

    // As a crash leaves it between the event and the log of triggers.
    let at = BEGIN_MS + 2 * HOUR;
    let payload = json!({"trigger": "cron", "at": "2023-11-15T00:00:00Z", "missed": true});
    let inbox = "agent.worker.inbox".parse().unwrap();
    let mut event = Event::new(inbox, "trigger cron", Origin::Kernel, payload.clone());
    event.id = EventId::derived(&format!("worker/cron/{at}"));
    world.bus.publish_durable(event).await.unwrap();
    drop(world);

    let world = World::open(folder.path(), BEGIN_MS + 3 * HOUR + 10 * MINUTE, &own).await;
    world
        .until("cron", |status| status.next_ms == Some(BEGIN_MS + 4 * HOUR))
        .await;
    let third = json!({"trigger": "cron", "at": "2023-11-15T01:00:00Z", "missed": true});
    assert_eq!(world.woken().await, [first, payload, third]);
    // A clock that was set back by a little repeats nothing; by a year, the schedule begins anew.
    world.set_clock(BEGIN_MS + 2 * HOUR + 50 * MINUTE).await;
    world.set_clock(BEGIN_MS + 3 * HOUR + 20 * MINUTE).await;
    assert_eq!(world.woken().await.len(), 3);
    let past = BEGIN_MS - 365 * 24 * HOUR;
    world.clock.0.send_replace(past + MINUTE);
    world
        .until("cron", |status| status.next_ms == Some(past + HOUR))
        .await;
    world.set_clock(past + HOUR).await;
    assert_eq!(world.woken().await.len(), 4);
    drop(world);
    // A schedule that was changed meanwhile has missed nothing.
    let other = [cron("*/10 * * * *", MissedPolicy::All)];
    let world = World::open(folder.path(), past + 2 * HOUR + MINUTE, &other).await;
    world
        .until("cron", |status| {
            status.next_ms == Some(past + 2 * HOUR + 10 * MINUTE)
        })
        .await;
    assert_eq!(world.woken().await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_of_wakes_is_counted_and_told_once_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let own = [TriggerConfig {
        wakes: Some(2),
        ..cron("* * * * *", MissedPolicy::Skip)
    }];
    let world = World::open(folder.path(), BEGIN_MS, &own).await;
    world.until("cron", |status| status.next_ms.is_some()).await;
    for minute in 1..=5 {
        world.set_clock(BEGIN_MS + minute * MINUTE).await;
    }
    let status = world.status("cron");
    assert_eq!(
        (status.wakes_today, status.record.held[&HeldBack::Budget]),
        (2, 3)
    );
    assert_eq!(world.events("agent.worker.trigger.limited").await.len(), 1);
    // The next day (UTC).
    world.set_clock(BEGIN_MS + 3 * HOUR).await;
    assert_eq!(world.status("cron").wakes_today, 1);
    // A person fires all the same.
    let me = Principal {
        surface: "test".to_owned(),
        id: "me".to_owned(),
    };
    world.set_clock(BEGIN_MS + 3 * HOUR + MINUTE).await;
    world.triggers.fire("worker", "cron", &me).await.unwrap();
    let last = json!({"trigger": "cron", "fired_by": "me"});
    assert_eq!(world.woken().await.last(), Some(&last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wakes_of_no_use_pause_a_trigger_until_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let own = [TriggerConfig {
        pause_after: 3,
        ..hook()
    }];
    let world = World::open(folder.path(), BEGIN_MS, &own).await;
    let wake = async |number: u32| {
        let delivered = world
            .deliver(&format!("d{number}"), &json!({}))
            .await
            .unwrap();
        world
            .until("hook", |status| {
                let last = status.record.last.as_ref().unwrap();
                last.result.is_some()
            })
            .await;
        delivered
    };
    // One that fails, one of use, and again from the beginning.
    world.ends.failing.store(1, Ordering::Relaxed);
    wake(1).await;
    assert_eq!(world.status("hook").record.useless, 1);
    wake(2).await;
    assert_eq!(world.status("hook").record.useless, 0);
    world.ends.failing.store(1, Ordering::Relaxed);
    wake(3).await;
    world.ends.idle.store(2, Ordering::Relaxed);
    wake(4).await;
    assert_eq!(world.status("hook").record.paused, None);
    wake(5).await;
    let why = "3 wakes in a row were of no use";
    assert_eq!(world.status("hook").record.paused.as_deref(), Some(why));
    let told = world.events("agent.worker.trigger.paused").await;
    assert_eq!(told, [json!({"trigger": "hook", "why": why})]);
    let held = world.deliver("d6", &json!({})).await.unwrap();
    assert_eq!(held, DeliveryFate::Held(HeldBack::Paused));
    world.triggers.resume("worker").await.unwrap();
    // It was not taken, so it may come again.
    assert_eq!(wake(6).await, DeliveryFate::Fired);
    assert_eq!(world.woken().await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_counts_once_and_conditions_are_checked_before() {
    let folder = tempfile::tempdir().unwrap();
    let when = vec![
        Condition::new("/state", Comparison::Equals(json!("failed"))).unwrap(),
        Condition::new("/build", Comparison::Changed).unwrap(),
    ];
    let own = [TriggerConfig { when, ..hook() }];
    let world = World::open(folder.path(), BEGIN_MS, &own).await;
    let held = Ok(DeliveryFate::Held(HeldBack::Condition));
    for (id, body, expected) in [
        ("a", json!({"state": "passed", "build": 1}), &held),
        // The build is that of the one before.
        ("b", json!({"state": "failed", "build": 1}), &held),
        (
            "c",
            json!({"state": "failed", "build": 2}),
            &Ok(DeliveryFate::Fired),
        ),
        (
            "c",
            json!({"state": "failed", "build": 3}),
            &Ok(DeliveryFate::Repeated),
        ),
        (
            "a",
            json!({"state": "failed", "build": 4}),
            &Ok(DeliveryFate::Repeated),
        ),
    ] {
        let delivered = world
            .deliver(id, &body)
            .await
            .map_err(|error| error.to_string());
        assert_eq!(&delivered, expected, "{id} {body}");
    }
    assert_eq!(world.status("hook").record.held[&HeldBack::Condition], 2);
    drop(world);
    let world = World::open(folder.path(), BEGIN_MS + 9 * MINUTE, &own).await;
    let body = json!({"state": "failed", "build": 5});
    assert_eq!(
        world.deliver("c", &body).await.unwrap(),
        DeliveryFate::Repeated
    );
    assert_eq!(
        world.deliver("d", &body).await.unwrap(),
        DeliveryFate::Fired
    );
    assert_eq!(world.woken().await.len(), 2);
    // More than a hook may keep up.
    let mut refused = 0;
    for number in 0..150 {
        let delivered = world.deliver(&format!("x{number}"), &json!({})).await;
        refused += usize::from(matches!(delivered, Err(TriggerError::TooMany)));
    }
    assert_eq!(refused, 51);
    // What no trigger describes is forgotten, what none sets off is not.
    world.triggers.silence("worker");
    let known = |world: &World| {
        world
            .triggers
            .shared
            .book()
            .state()
            .of_agent("worker")
            .count()
    };
    assert_eq!(known(&world), 1);
    assert!(matches!(
        world.deliver("y", &json!({})).await,
        Err(TriggerError::NotFound { .. })
    ));
    world
        .triggers
        .set("worker", DayBudget::default(), &[])
        .await
        .unwrap();
    assert_eq!(known(&world), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_change_fire_also_while_nobody_served() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let at = |name: &str| files.path().join(name);
    let own = |missed| {
        [TriggerConfig::new(
            "files",
            TriggerSource::Files {
                folder: files.path().to_owned(),
                globs: FileGlobs::new(vec!["*.txt".to_owned()]).unwrap(),
                settle: Duration::from_millis(50),
                missed,
            },
        )]
    };
    let fired = |count| move |status: &TriggerStatus| status.record.fired == count;
    let world = World::open(folder.path(), BEGIN_MS, &own(true)).await;
    world
        .until("files", |status| status.record.mark.fingerprint.is_some())
        .await;
    fs::write(at("a.txt"), "1").unwrap();
    fs::write(at("b.txt"), "1").unwrap();
    fs::write(at("b.png"), "1").unwrap();
    world.until("files", fired(1)).await;
    // A folder that is new is watched too.
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("sub/c.txt"), "1").unwrap();
    world.until("files", fired(2)).await;
    let change =
        |changed: Value| json!({"trigger": "files", "changed": changed, "removed": [], "more": 0});
    let mut expected = vec![
        change(json!(["a.txt", "b.txt"])),
        change(json!(["sub/c.txt"])),
    ];
    assert_eq!(world.woken().await, expected);
    drop(world);

    fs::write(at("d.txt"), "1").unwrap();
    let world = World::open(folder.path(), BEGIN_MS, &own(true)).await;
    world.until("files", fired(3)).await;
    expected.push(json!({"trigger": "files", "changed": [], "removed": [], "unknown": true}));
    assert_eq!(world.woken().await, expected);
    drop(world);
    // Nothing changed in between.
    let world = World::open(folder.path(), BEGIN_MS, &own(true)).await;
    world
        .until("files", |status| status.problem.is_none())
        .await;
    fs::remove_dir_all(at("sub")).unwrap();
    world.until("files", fired(4)).await;
    expected.push(json!({"trigger": "files", "changed": [], "removed": ["sub/c.txt"], "more": 0}));
    assert_eq!(world.woken().await, expected);

    // Other settings find other files, which did not change for that.
    drop(world);
    let mut other = own(true);
    if let TriggerSource::Files { globs, .. } = &mut other[0].source {
        *globs = FileGlobs::default();
    }
    let world = World::open(folder.path(), BEGIN_MS, &other).await;
    world
        .until("files", |status| status.problem.is_none())
        .await;
    assert_eq!(world.status("files").record.fired, 4);

    // More folders than are watched is said, and watched again once there are fewer.
    for number in 0..MAX_FOLDERS {
        fs::create_dir(at(&number.to_string())).unwrap();
    }
    world
        .until("files", |status| {
            let problem = status.problem.as_deref().unwrap_or_default();
            problem.starts_with("there are more than 2000 folders")
        })
        .await;
    for number in 0..MAX_FOLDERS {
        fs::remove_dir(at(&number.to_string())).unwrap();
    }
    world
        .until("files", |status| status.problem.is_none())
        .await;
    assert_eq!(
        world.events("agent.worker.trigger.unwatched").await.len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_on_the_clipboard_fire_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let when = vec![Condition::new("/text", Comparison::matches("^https://").unwrap()).unwrap()];
    let own = [TriggerConfig {
        when,
        ..TriggerConfig::new("copied", TriggerSource::Clipboard)
    }];
    let world = World::open(folder.path(), BEGIN_MS, &own).await;
    let copy = async |text: &str, wanted: &dyn Fn(&TriggerStatus) -> bool| {
        *world.clipboard.0.lock() = Some(text.to_owned());
        world.until("copied", wanted).await;
    };
    let broken = |status: &TriggerStatus| status.problem.as_deref() == Some("it is broken");
    let fired = |count| move |status: &TriggerStatus| status.record.fired == count;
    world.until("copied", broken).await;
    // What was there before the first look does not count.
    copy("https://old", &|status| status.problem.is_none()).await;
    copy("https://a", &fired(1)).await;
    copy("a password", &|status| status.record.held.len() == 1).await;
    copy("broken", &broken).await;
    copy("https://b", &fired(2)).await;
    assert_eq!(
        world.status("copied").record.held,
        [(HeldBack::Condition, 1)].into()
    );
    let copied = |text: &str| json!({"trigger": "copied", "text": text, "cut": false});
    assert_eq!(
        world.woken().await,
        [copied("https://a"), copied("https://b")]
    );
}

#[test]
fn the_largest_record_fits_into_the_log_with_255_others() {
    let name = TriggerName {
        agent: "a".repeat(40),
        trigger: "t".repeat(40),
    };
    let mut book = TriggerBook::default();
    for number in 0..3_000 {
        let fact = TriggerFact::Fired {
            name: name.clone(),
            event: EventId::new(),
            at_ms: BEGIN_MS + number,
            mark: TriggerMark {
                delivery: Some(EventId::new()),
                ..TriggerMark::default()
            },
        };
        crate::ledger::Fold::apply(&mut book, fact);
    }
    let facts = crate::ledger::Fold::facts(&book);
    let bytes = serde_json::to_vec(&facts[0]).unwrap().len();
    assert!(bytes * 256 < 32 << 20, "{bytes}");
}

#[test]
fn what_is_remembered_is_what_its_facts_tell() {
    let mut random = fastrand::Rng::with_seed(17);
    let name = |number: u8| TriggerName {
        agent: format!("agent-{}", number % 3),
        trigger: format!("t{number}"),
    };
    for _ in 0..200 {
        let mut book = TriggerBook::default();
        let mut events = vec![EventId::new()];
        for step in 0..random.i64(1..200) {
            let name = name(random.u8(0..6));
            let event = EventId::derived(&step.to_string());
            let mark = TriggerMark {
                cursor_ms: random.bool().then_some(step),
                fingerprint: random.bool().then(|| step.to_string()),
                values: [(format!("/{}", step % 3), step.to_string())].into(),
                delivery: random.bool().then_some(event),
            };
            let at_ms = BEGIN_MS + step * MINUTE;
            let fact = match random.u8(0..6) {
                0 => TriggerFact::Held {
                    name,
                    why: HeldBack::Condition,
                    at_ms,
                    mark,
                },
                1 => TriggerFact::Marked { name, mark },
                2 => {
                    let event = events[random.usize(..events.len())];
                    let summary = "end".to_owned();
                    TriggerFact::Ended {
                        name,
                        event,
                        useful: random.bool(),
                        summary,
                    }
                }
                3 => TriggerFact::Paused {
                    name,
                    why: "why".to_owned(),
                },
                4 => TriggerFact::Removed { name },
                _ => {
                    events.push(event);
                    TriggerFact::Fired {
                        name,
                        event,
                        at_ms,
                        mark,
                    }
                }
            };
            crate::ledger::Fold::apply(&mut book, fact);
        }
        let mut again = TriggerBook::default();
        for fact in crate::ledger::Fold::facts(&book) {
            let text = serde_json::to_string(&fact).unwrap();
            crate::ledger::Fold::apply(&mut again, serde_json::from_str(&text).unwrap());
        }
        assert_eq!(book.0, again.0);
    }
}

#[test]
fn deliveries_of_a_clock_that_was_ahead_are_forgotten() {
    let name = TriggerName {
        agent: "scribe".to_owned(),
        trigger: "build".to_owned(),
    };
    let mut book = TriggerBook::default();
    let mut take = |number: usize, at_ms| {
        let delivery = Some(EventId::derived(&number.to_string()));
        book.apply(TriggerFact::Held {
            name: name.clone(),
            why: HeldBack::Condition,
            at_ms,
            mark: TriggerMark {
                delivery,
                ..TriggerMark::default()
            },
        });
        let record = book.get(&name).unwrap();
        (record.deliveries(at_ms), record.deliveries(BEGIN_MS))
    };
    let ahead = BEGIN_MS + 365 * 24 * HOUR;
    for number in 0..MAX_REMEMBERED + 1 {
        take(number, ahead);
    }
    assert_eq!(take(MAX_REMEMBERED + 1, ahead), (MAX_REMEMBERED, 0));
    assert_eq!(take(0, BEGIN_MS), (1, 1));
}
