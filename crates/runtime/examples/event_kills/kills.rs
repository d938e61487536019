//! A process that publishes and receives durable events is killed again and again, and what it said
//! until then is compared with what it says afterwards.
//!
//! The process prints one line for each answer that it got: `published`, `received`,
//! `acknowledged`. A publisher that had no answer publishes the same event again in the next life.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use gyrus_contract::Origin;
use gyrus_journal::Store;
use gyrus_runtime::{
    DurableItem, DurableSubscription, Event, EventBus, EventPosition, HistoryLimits, StartAt,
};
use serde_json::json;

/// The variable with the root of the store, set in the process that is killed.
const ROOT: &str = "GYRUS_TEST_EVENTS";

/// The variable with the number of the next event of each publisher.
const NEXT: &str = "GYRUS_TEST_EVENTS_NEXT";

/// Number of tasks that publish at once.
const PUBLISHERS: usize = 4;

/// Number of lines after which a process is killed at the latest.
const LINES: usize = 400;

/// Time after its start at which a process is killed at the latest, if it is killed by time.
const LIFE: Duration = Duration::from_millis(30);

/// The name of the durable subscriber.
const WORKER: &str = "worker";

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The orders of a process that is going to be killed.
pub(crate) struct Orders {
    root: PathBuf,
    next: Vec<u64>,
}

impl Orders {
    /// Returns the orders of this process; `None` if it is another one.
    pub(crate) fn given() -> Option<Self> {
        let root = std::env::var_os(ROOT)?.into();
        let next = std::env::var(NEXT).ok()?;
        let next = next.split(',').filter_map(|one| one.parse().ok()).collect();
        Some(Self { root, next })
    }
}

/// Short logs, so that they are begun and removed all the time.
fn limits() -> HistoryLimits {
    HistoryLimits {
        log_events: 60,
        keep_bytes: 0,
        duplicate_window: 200,
        ..HistoryLimits::default()
    }
}

fn open(root: &Path) -> Result<EventBus, AnyError> {
    Ok(EventBus::open(&Store::open(root)?, limits())?)
}

/// Returns the event of a publisher with this number, which has the same id in every life.
fn event(publisher: usize, number: u64) -> Result<Event, AnyError> {
    let topic = format!("p.{publisher}").parse()?;
    let mut event = Event::new(
        topic,
        "publisher",
        Origin::Kernel,
        json!([publisher, number]),
    );
    event.id = format!("01900000-0000-7000-8{publisher:03x}-{number:012x}").parse()?;
    Ok(event)
}

async fn subscribe(bus: &EventBus) -> Result<DurableSubscription, AnyError> {
    let all = ["**".parse()?];
    let start = StartAt::Acknowledged;
    Ok(bus.subscribe_durable(WORKER, &all, start).await?)
}

/// Prints a line at once, whole or not at all.
fn print_line(line: &str) {
    let mut output = io::stdout().lock();
    let printed = output.write_all(format!("{line}\n").as_bytes());
    // Whoever listened is gone, and this process goes too.
    let _ = printed.and_then(|()| output.flush());
}

/// Publishes and receives until the process is killed.
pub(crate) fn run_until_killed(orders: &Orders) {
    let runtime = tokio::runtime::Runtime::new();
    let ended = runtime.map_err(AnyError::from).and_then(|runtime| {
        runtime.block_on(async {
            let bus = open(&orders.root)?;
            // Whatever a test runner printed stands on a line of its own.
            print_line("\nopen");
            for (publisher, next) in orders.next.iter().enumerate() {
                tokio::spawn(publish(bus.clone(), publisher, *next));
            }
            receive(&bus).await
        })
    });
    if let Err(error) = ended {
        print_line(&format!("error {error}"));
    }
}

async fn publish(bus: EventBus, publisher: usize, first: u64) {
    for number in first.. {
        let published = match event(publisher, number) {
            Ok(event) => bus.publish_durable(event).await.map_err(AnyError::from),
            Err(error) => Err(error),
        };
        match published {
            Ok(position) => print_line(&format!("published {publisher} {number} {position}")),
            Err(error) => return print_line(&format!("error {error}")),
        }
    }
}

async fn receive(bus: &EventBus) -> Result<(), AnyError> {
    let mut events = subscribe(bus).await?;
    loop {
        let position = print_item(events.next().await?);
        if position.0.is_multiple_of(3) {
            bus.acknowledge(WORKER, position).await?;
            print_line(&format!("acknowledged {position}"));
        }
    }
}

/// Prints what a subscription returned.
fn print_item(item: DurableItem) -> EventPosition {
    match item {
        DurableItem::Event(position, event) => {
            let (publisher, number) = (&event.payload[0], &event.payload[1]);
            print_line(&format!("received {publisher} {number} {position}"));
            position
        }
        DurableItem::Lost { from, to } => {
            print_line(&format!("error lost {from} to {to}"));
            to
        }
    }
}

/// The counts of a series of kills.
pub(crate) struct KillReport {
    kills: u64,
    /// Number of events whose publishers had an answer.
    pub(crate) published: usize,
    /// Number of events that were received more than once.
    repeated: u64,
}

impl fmt::Display for KillReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kills,
            published,
            repeated,
        } = self;
        write!(
            f,
            "{kills} kills: {published} events published, all received, {repeated} more than once"
        )
    }
}

/// Lets a process live and kills it at a random moment, `kills` times. The process is this program
/// with these arguments, and calls [`run_until_killed`].
///
/// # Errors
/// Returns an error when an event that was acknowledged is lost, stored twice or out of order.
pub(crate) fn kill_repeatedly(
    root: &Path,
    kills: u64,
    seed: u64,
    arguments: &[&str],
) -> Result<KillReport, AnyError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut observed = Observed::default();
    for _ in 0..kills {
        let next: Vec<String> = (0..PUBLISHERS)
            .map(|publisher| observed.next(publisher).to_string())
            .collect();
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env(ROOT, root)
            .env(NEXT, next.join(","))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = process.stdout.take().ok_or("the output is piped")?;
        let mut lines = BufReader::new(output);
        observed.begin_life();
        if random.bool() {
            std::thread::sleep(LIFE.mul_f64(random.f64()));
        } else {
            for _ in 0..random.usize(..LINES) {
                let mut line = String::new();
                lines.read_line(&mut line)?;
                observed.read(&line)?;
            }
        }
        process.kill()?;
        process.wait()?;
        let mut rest = String::new();
        lines.read_to_string(&mut rest)?;
        for line in rest.split_inclusive('\n') {
            observed.read(line)?;
        }
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(observed.receive_rest(root))?;
    observed.check_all_received()?;
    Ok(KillReport {
        kills,
        published: observed.published.len(),
        repeated: observed.repeated,
    })
}

/// Everything that the processes have said so far.
#[derive(Default)]
struct Observed {
    /// The positions of events that were published, by publisher and number.
    published: BTreeMap<(usize, u64), u64>,
    /// The events that were received, by position.
    received: BTreeMap<u64, (usize, u64)>,
    acknowledged: u64,
    /// The last position that this life received.
    last: Option<u64>,
    repeated: u64,
}

impl Observed {
    /// Returns the number of the first event of a publisher that had no answer.
    fn next(&self, publisher: usize) -> u64 {
        let last = self.published.range((publisher, 0)..=(publisher, u64::MAX));
        last.last().map_or(0, |((_, number), _)| number + 1)
    }

    fn begin_life(&mut self) {
        self.last = None;
    }

    /// Takes note of a line, and compares it with the earlier ones. A line that was cut says
    /// nothing.
    fn read(&mut self, line: &str) -> Result<(), AnyError> {
        let Some(line) = line.strip_suffix('\n') else {
            return Ok(());
        };
        let numbers = |text: &str| -> Result<Vec<u64>, AnyError> {
            Ok(text.split(' ').map(str::parse).collect::<Result<_, _>>()?)
        };
        match line.split_once(' ') {
            Some(("published", rest)) => {
                let numbers = numbers(rest)?;
                let key = (usize::try_from(numbers[0])?, numbers[1]);
                self.published.insert(key, numbers[2]);
            }
            Some(("received", rest)) => {
                let numbers = numbers(rest)?;
                self.receive(numbers[2], (usize::try_from(numbers[0])?, numbers[1]))?;
            }
            Some(("acknowledged", rest)) => self.acknowledged = numbers(rest)?[0],
            Some(("error", error)) => return Err(error.to_owned().into()),
            _ => {}
        }
        Ok(())
    }

    fn receive(&mut self, position: u64, event: (usize, u64)) -> Result<(), AnyError> {
        let newest = self.received.last_key_value().map_or(0, |(last, _)| *last);
        let is_next = match self.last {
            Some(last) => position == last + 1,
            // A new life may repeat what was not acknowledged, but leaves nothing out.
            None => position > self.acknowledged && position <= newest + 1,
        };
        if !is_next {
            let (last, acknowledged) = (self.last, self.acknowledged);
            return Err(format!(
                "position {position} came after {last:?}, acknowledged {acknowledged}, newest \
                 {newest}"
            )
            .into());
        }
        self.last = Some(position);
        match self.received.insert(position, event) {
            Some(before) if before != event => {
                Err(format!("position {position} is {before:?} and {event:?}").into())
            }
            Some(_) => {
                self.repeated += 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Receives what is left, in this process.
    async fn receive_rest(&mut self, root: &Path) -> Result<(), AnyError> {
        let bus = open(root)?;
        let last = bus.last_position()?.0;
        let mut events = subscribe(&bus).await?;
        self.begin_life();
        let mut reached = bus.durable_subscribers()[0].acknowledged.0;
        while reached < last {
            match events.next().await? {
                DurableItem::Event(position, event) => {
                    let number = |index: usize| event.payload[index].as_u64().unwrap_or(u64::MAX);
                    self.receive(position.0, (usize::try_from(number(0))?, number(1)))?;
                    reached = position.0;
                }
                lost @ DurableItem::Lost { .. } => return Err(format!("{lost:?}").into()),
            }
        }
        Ok(())
    }

    /// Checks that every event that was published was received at its position, and none at two.
    fn check_all_received(&self) -> Result<(), AnyError> {
        for (event, position) in &self.published {
            if self.received.get(position) != Some(event) {
                let found = self.received.get(position);
                return Err(format!("position {position} is {found:?}, not {event:?}").into());
            }
        }
        let mut positions = BTreeMap::new();
        for (position, event) in &self.received {
            if let Some(other) = positions.insert(event, position) {
                return Err(format!("{event:?} is at {other} and at {position}").into());
            }
        }
        Ok(())
    }
}
