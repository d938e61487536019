//! The streams of a fleet: made if they are missing, and looked at before they are trusted.

use serde_json::{Value, json};

use super::FleetConnection;
use crate::{LogUnreachable, log::REQUEST};

/// The kinds of streams: the first word of a subject names one.
pub(super) const STREAMS: [&str; 4] = ["runs", "blobs", "queue", "inbox"];

/// The error code of a stream that does not exist.
const STREAM_NOT_FOUND: u64 = 10_059;

/// Time for which a server remembers the names of messages, in nanoseconds.
const WINDOW_NS: u64 = 120_000_000_000;

/// A stream of the fleet cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The servers do not answer.
    #[error(transparent)]
    Unreachable(#[from] LogUnreachable),
    #[error("the servers do not make the stream {stream}: {why}")]
    NotMade { stream: String, why: String },
    #[error(
        "the stream {stream} has {setting} = {found}, but must have {wanted}, or what it \
         acknowledged could be lost; somebody changed it, or made it for something else"
    )]
    Unfit {
        stream: String,
        setting: &'static str,
        found: String,
        /// The value that the setting must have.
        wanted: String,
    },
}

/// Creates the fleet's streams if they are missing, and checks them.
///
/// # Errors
/// A stream cannot be created, or has wrong settings.
pub async fn prepare_streams(connection: &FleetConnection) -> Result<(), StreamError> {
    for kind in STREAMS {
        prepare(connection, kind).await?;
    }
    Ok(())
}

pub(super) fn stream_name(fleet: &str, kind: &str) -> String {
    format!("gyrus-{fleet}-{kind}")
}

pub(super) fn server_subject(fleet: &str, subject: &str) -> String {
    format!("gyrus.{fleet}.{subject}")
}

async fn prepare(connection: &FleetConnection, kind: &str) -> Result<(), StreamError> {
    let name = stream_name(&connection.address().name, kind);
    let about = format!("$JS.API.STREAM.INFO.{name}");
    let found = connection.ask(about.clone(), &json!({}), REQUEST).await?;
    let found = match code(&found) {
        None => found,
        // Only this proves that there is none: that nobody answers proves nothing.
        Some(STREAM_NOT_FOUND) => {
            let wanted = settings(connection, kind, &name);
            let make = format!("$JS.API.STREAM.CREATE.{name}");
            let made = connection.ask(make, &wanted, REQUEST).await?;
            if code(&made).is_some() {
                // Another worker may have made it meanwhile.
                let found = connection.ask(about, &json!({}), REQUEST).await?;
                if code(&found).is_some() {
                    return Err(not_made(name, &made));
                }
                found
            } else {
                made
            }
        }
        Some(_) => return Err(not_made(name, &found)),
    };
    check(&name, &found["config"])
}

fn not_made(stream: String, answer: &Value) -> StreamError {
    StreamError::NotMade {
        stream,
        why: description(answer),
    }
}

/// Returns the error code of an answer, if it is an error.
pub(super) fn code(answer: &Value) -> Option<u64> {
    let error = answer.get("error")?;
    Some(error["err_code"].as_u64().unwrap_or(0))
}

pub(super) fn description(answer: &Value) -> String {
    let words = answer["error"]["description"].as_str();
    words.unwrap_or("it does not say why").to_owned()
}

fn settings(connection: &FleetConnection, kind: &str, name: &str) -> Value {
    let address = connection.address();
    let is_cluster = connection.client.server_info().cluster.is_some();
    let replicas = address.replicas.unwrap_or(if is_cluster { 3 } else { 1 });
    json!({
        "name": name,
        "subjects": [server_subject(&address.name, &format!("{kind}.>"))],
        "num_replicas": replicas,
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "max_age": 0,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": -1,
        "duplicate_window": WINDOW_NS,
        "deny_delete": true,
        "deny_purge": true,
        "allow_rollup_hdrs": false,
        "allow_direct": true,
    })
}

/// The settings that prevent the loss of messages, with their required values.
const NEEDED: [(&str, &str); 7] = [
    ("storage", "\"file\""),
    ("retention", "\"limits\""),
    ("discard", "\"new\""),
    ("deny_delete", "true"),
    ("deny_purge", "true"),
    ("allow_direct", "true"),
    ("max_msgs_per_subject", "-1"),
];

/// The settings that must be missing or empty.
const UNWANTED: [&str; 8] = [
    "allow_rollup_hdrs",
    "max_age",
    "mirror",
    "sources",
    "no_ack",
    "sealed",
    "allow_msg_ttl",
    "subject_transform",
];

fn check(stream: &str, config: &Value) -> Result<(), StreamError> {
    let unfit = |setting, found: &Value, wanted: &str| StreamError::Unfit {
        stream: stream.to_owned(),
        setting,
        found: found.to_string(),
        wanted: wanted.to_owned(),
    };
    for (setting, wanted) in NEEDED {
        let found = &config[setting];
        if found.to_string().as_str() != wanted {
            return Err(unfit(setting, found, wanted));
        }
    }
    for setting in UNWANTED {
        let found = &config[setting];
        let says_nothing = match found {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if !says_nothing {
            return Err(unfit(setting, found, "nothing there"));
        }
    }
    if config["persist_mode"] == "async" {
        return Err(unfit("persist_mode", &config["persist_mode"], "default"));
    }
    Ok(())
}
