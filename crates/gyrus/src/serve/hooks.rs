//! Hooks: addresses and commands of the person that are told of events.
//!
//! Each hook is a durable subscriber: what happens while it cannot be reached, or while nobody
//! serves, it is told later, in order. An event that it does not take in about two hours is given
//! up, so that one bad event does not hold up all others.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_kernel::now_ms;
use gyrus_net::{causes, client_builder};
use gyrus_runtime::{
    BusError, DurableItem, Event, EventBus, StartAt, TopicPattern, triggers::HookSecret,
};
use gyrus_server::HookFailure;
use gyrus_surfaces::{console::put, notify::NotifyCommand};
use parking_lot::Mutex;
use reqwest::{Client, StatusCode, Url, header::CONTENT_TYPE};
use tokio::task::JoinSet;

use crate::{Gyrus, config::HookSection, failure::Failure, keys::KeyLookup};

/// Beginning of the names under which hooks subscribe.
const SUBSCRIBER: &str = "hook.";

/// Time for one delivery.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Times after which a delivery that failed is tried again, in seconds.
const AGAIN_AFTER: [u64; 8] = [1, 5, 30, 120, 300, 900, 1_800, 3_600];

pub(super) struct EventHook {
    name: String,
    patterns: Vec<TopicPattern>,
    way: HookDelivery,
}

enum HookDelivery {
    Post(Box<Post>),
    Command(NotifyCommand),
}

struct Post {
    client: Client,
    url: Url,
    secret: Option<HookSecret>,
}

/// The reason why an event was not delivered.
enum DeliveryError {
    /// A later attempt may succeed.
    Again(String),
    /// The receiver will never accept the event.
    Refused(String),
}

/// The last failure of each hook, for pages that show it.
pub(super) type HookFailures = Arc<Mutex<BTreeMap<String, HookFailure>>>;

pub(super) fn configured(gyrus: &Gyrus) -> Result<Vec<EventHook>, Failure> {
    let config = gyrus.config()?;
    let keys = KeyLookup::new(&config.keys);
    let hooks = config.hooks.into_iter().map(|(name, section)| {
        hook(gyrus, &keys, &name, section)
            .map_err(|why| Failure::usage(format!("[hooks.{name}] in config.toml: {why}")))
    });
    hooks.collect()
}

/// Begins to deliver events to hooks, and removes the subscriptions of earlier ones. Dropping the
/// tasks ends it.
pub(super) async fn begin(
    hooks: Vec<EventHook>,
    bus: &EventBus,
    failures: &HookFailures,
) -> Result<JoinSet<()>, Failure> {
    for known in bus.durable_subscribers() {
        let hook = known.name.strip_prefix(SUBSCRIBER);
        if hook.is_some_and(|hook| hooks.iter().all(|one| one.name != hook)) {
            bus.unsubscribe_durable(&known.name).await?;
        }
    }
    let mut tasks = JoinSet::new();
    for hook in hooks {
        let (bus, failures) = (bus.clone(), Arc::clone(failures));
        tasks.spawn(async move {
            let name = hook.name.clone();
            if let Err(error) = follow(&bus, hook, &failures).await {
                say(&format!(
                    "the hook `{name}` is told of nothing more: {error}\n"
                ));
            }
        });
    }
    Ok(tasks)
}

fn hook(
    gyrus: &Gyrus,
    keys: &KeyLookup<'_>,
    name: &str,
    section: HookSection,
) -> Result<EventHook, String> {
    let patterns = section.events.iter().map(|pattern| pattern.parse());
    let patterns: Result<Vec<TopicPattern>, _> = patterns.collect();
    let patterns = patterns.map_err(|error| error.to_string())?;
    if patterns.is_empty() {
        return Err("`events` names no topics, as in [\"question.asked\"]".to_owned());
    }
    let way = match (section.url, section.command, section.secret) {
        (Some(url), None, secret) => {
            let url: Url = url
                .parse()
                .map_err(|error| format!("invalid `url`: {error}"))?;
            if !matches!(url.scheme(), "http" | "https") {
                return Err("invalid `url`: it begins with http:// or https://".to_owned());
            }
            let builder = client_builder(&url, TIME_LIMIT).map_err(|error| causes(&error))?;
            let client = builder.timeout(TIME_LIMIT).build();
            HookDelivery::Post(Box::new(Post {
                client: client.map_err(|error| causes(&error))?,
                url,
                secret: secret.map(|variable| read(keys, &variable)).transpose()?,
            }))
        }
        (None, Some(line), None) => HookDelivery::Command(gyrus.persons_command(line)),
        (None, Some(_), Some(_)) => return Err("`secret` belongs to a `url`".to_owned()),
        _ => return Err("give either `url` or `command`".to_owned()),
    };
    Ok(EventHook {
        name: name.to_owned(),
        patterns,
        way,
    })
}

fn read(keys: &KeyLookup<'_>, variable: &str) -> Result<HookSecret, String> {
    let text = keys.get(variable).ok_or_else(|| {
        let failure = keys.failure().map(|failure| failure.message);
        let why = failure.unwrap_or_else(|| "it is not set".to_owned());
        format!("the secret {variable} cannot be used: {why}; gyrus agents secret {variable}")
    })?;
    HookSecret::new(&text).map_err(|error| error.to_string())
}

async fn follow(bus: &EventBus, hook: EventHook, failures: &HookFailures) -> Result<(), BusError> {
    let subscriber = format!("{SUBSCRIBER}{}", hook.name);
    let mut known = bus.durable_subscribers().into_iter();
    // One that is new hears of what happens from now on.
    let start = if known.any(|one| one.name == subscriber) {
        StartAt::Acknowledged
    } else {
        StartAt::Next
    };
    let patterns = &hook.patterns;
    let mut events = bus.subscribe_durable(&subscriber, patterns, start).await?;
    loop {
        match events.next().await? {
            DurableItem::Event(position, event) => {
                if let Err(why) = deliver(&hook, &event, failures).await {
                    let (name, id) = (&hook.name, event.id);
                    say(&format!(
                        "the hook `{name}` was not told of event {id}: {why}\n"
                    ));
                }
                events.acknowledge(position).await?;
            }
            DurableItem::Lost { from, to } => say(&format!(
                "the hook `{}` was not told of events {} to {}: they are not kept any more\n",
                hook.name, from.0, to.0
            )),
        }
    }
}

async fn deliver(
    hook: &EventHook,
    event: &Arc<Event>,
    failures: &HookFailures,
) -> Result<(), String> {
    let body = serde_json::to_string(&**event).map_err(|error| error.to_string())?;
    let mut waits = AGAIN_AFTER.iter();
    loop {
        let undelivered = match hook.way.tell(event, &body).await {
            Ok(()) => return Ok(()),
            Err(undelivered) => undelivered,
        };
        let (why, is_final) = match undelivered {
            DeliveryError::Refused(why) => (why, true),
            DeliveryError::Again(why) => (why, false),
        };
        note(failures, &hook.name, &why);
        if is_final {
            return Err(why);
        }
        let Some(seconds) = waits.next() else {
            return Err(why);
        };
        tokio::time::sleep(Duration::from_secs(*seconds)).await;
    }
}

fn note(failures: &HookFailures, hook: &str, why: &str) {
    let failure = HookFailure {
        at_ms: now_ms(),
        why: why.to_owned(),
    };
    let mut known = failures.lock();
    known.insert(hook.to_owned(), failure);
}

impl HookDelivery {
    async fn tell(&self, event: &Event, body: &str) -> Result<(), DeliveryError> {
        match self {
            HookDelivery::Post(post) => post.tell(event, body).await,
            HookDelivery::Command(command) => {
                let ran = command.clone().run(body.to_owned()).await;
                ran.map_err(|why| DeliveryError::Again(format!("its command {why}")))
            }
        }
    }
}

impl Post {
    async fn tell(&self, event: &Event, body: &str) -> Result<(), DeliveryError> {
        let (id, at) = (event.id.to_string(), (now_ms() / 1_000).to_string());
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", &at);
        if let Some(secret) = &self.secret {
            let signature = secret.sign(&id, &at, body.as_bytes());
            request = request.header("webhook-signature", signature);
        }
        let answer = request.body(body.to_owned()).send().await;
        // The address may hold a secret, and is not shown.
        let answer = answer.map_err(|error| DeliveryError::Again(causes(&error.without_url())))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status @ (StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS) => Err(DeliveryError::Again(answered(status))),
            status if status.is_server_error() => Err(DeliveryError::Again(answered(status))),
            status => Err(DeliveryError::Refused(answered(status))),
        }
    }
}

fn answered(status: StatusCode) -> String {
    format!("it answered {status}")
}

/// Writes to standard error; a failure is ignored, since nobody may be left to read it.
fn say(text: &str) {
    let _ = put(text);
}
