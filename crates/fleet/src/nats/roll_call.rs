//! Asking who works for a fleet. The question and its answers are plain messages that no server keeps:
//! what holds a run is in the run's log, and this only tells people which machines are there.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};

use super::{FleetConnection, streams::server_subject};
use crate::LogUnreachable;

/// The last word of the question's subject.
const SUBJECT: &str = "roll-call";

/// A worker of the fleet, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    pub name: String,
    pub machine: String,
    /// The labels that a person gave the worker, and others that it reports.
    pub labels: BTreeSet<String>,
    /// Maximum number of the worker's concurrent runs.
    pub at_once: usize,
    /// Length of the worker's leases in milliseconds.
    pub lease_ms: u64,
    /// The version of the worker's program.
    pub build: String,
    /// The time at which the worker started, in UTC milliseconds.
    pub since_ms: i64,
    /// The labels in the request that the worker lacks.
    #[serde(default)]
    pub lacks: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
struct RollCall {
    needs: BTreeSet<String>,
}

/// Answers each roll call, until the future is dropped. `lacks` returns the labels among some that
/// this machine does not have.
pub async fn answer_roll_calls(
    connection: &FleetConnection,
    report: WorkerReport,
    lacks: impl Fn(&BTreeSet<String>) -> BTreeSet<String>,
) {
    let subject = server_subject(&connection.address().name, SUBJECT);
    let Ok(mut calls) = connection.client.subscribe(subject).await else {
        // It works all the same; only nobody sees it.
        return;
    };
    while let Some(call) = calls.next().await {
        let question = serde_json::from_slice::<RollCall>(&call.payload);
        let (Some(reply), Ok(question)) = (call.reply, question) else {
            continue;
        };
        let answer = WorkerReport {
            lacks: lacks(&question.needs),
            ..report.clone()
        };
        if let Ok(body) = serde_json::to_vec(&answer) {
            let _ = connection.client.publish(reply, body.into()).await;
        }
    }
}

/// Asks which workers there are, and which labels of `needs` each lacks. Waits `within` for
/// answers; later ones are left out. Sorted by machine and name.
pub async fn call_the_roll(
    connection: &FleetConnection,
    needs: BTreeSet<String>,
    within: Duration,
) -> Result<Vec<WorkerReport>, LogUnreachable> {
    let unreachable = |why: String| LogUnreachable { why };
    let fleet = &connection.address().name;
    let id = gyrus_contract::time_ordered_uuid().simple();
    let reply = server_subject(fleet, &format!("{SUBJECT}-answers.{id}"));
    let client = &connection.client;
    let answers = client.subscribe(reply.clone()).await;
    let mut answers = answers.map_err(|error| unreachable(error.to_string()))?;
    let question = serde_json::to_vec(&RollCall { needs });
    let question = question.map_err(|error| unreachable(error.to_string()))?;
    let asked = client
        .publish_with_reply(server_subject(fleet, SUBJECT), reply, question.into())
        .await;
    asked.map_err(|error| unreachable(error.to_string()))?;
    let mut workers = BTreeMap::new();
    let collecting = async {
        while let Some(answer) = answers.next().await {
            // What cannot be read is of a newer gyrus, or of nobody.
            if let Ok(report) = serde_json::from_slice::<WorkerReport>(&answer.payload) {
                workers.insert((report.machine.clone(), report.name.clone()), report);
            }
        }
    };
    let _ = tokio::time::timeout(within, collecting).await;
    Ok(workers.into_values().collect())
}
