//! `gyrus fleet doctor`: everything that a fleet needs of its servers, tried.

use std::time::{Duration, Instant};

use gyrus_fleet::{
    AppendAnswer, LogSubject, Machine as _, MessageId, OsMachine, SharedLog as _, WriterId,
    nats::{FleetAddress, FleetConnection, NatsLog, prepare_streams, requirements},
};
use serde_json::Value;

use super::{monitor, room};
use crate::{
    commands::doctor::{DoctorFinding, found},
    failure::Failure,
};

/// Difference between two clocks, in milliseconds, from which it is reported.
const SKEW_MS: i64 = 2_000;

/// Time limit for the notification about a message that was stored.
const HEARD: Duration = Duration::from_secs(3);

/// Checks the whole fleet, and returns the findings, each with the name of its subject.
pub(crate) async fn diagnose(address: &FleetAddress) -> Vec<(&'static str, DoctorFinding)> {
    let connection = match FleetConnection::open(address).await {
        Ok(connection) => connection,
        Err(error) => return vec![("servers", DoctorFinding::Bad(error.into()))],
    };
    let mut findings = vec![(
        "servers",
        DoctorFinding::Good(format!("connected to {address}")),
    )];
    if let Err(error) = connection.check_server() {
        findings.push(("server", DoctorFinding::Bad(error.into())));
    }
    findings.extend(servers(address).await);
    let streams = prepare_streams(&connection).await;
    let are_there = streams.is_ok();
    let words = "there, and only a person with all rights can remove messages from them";
    let streams = streams.map(|()| words.to_owned()).map_err(Failure::from);
    findings.push(("streams", found(streams)));
    if are_there {
        findings.push(("fencing", found(try_logs(&connection).await)));
    }
    findings
}

async fn servers(address: &FleetAddress) -> Vec<(&'static str, DoctorFinding)> {
    let seen = match monitor::servers(address).await {
        Ok(seen) => seen,
        Err(error) => return vec![("sync", DoctorFinding::Bad(error.into()))],
    };
    let down = seen.unseen.into_iter();
    let mut findings: Vec<_> = down
        .map(|why| ("server", DoctorFinding::Gap(why)))
        .collect();
    if seen.servers.len() + findings.len() < 3 {
        let text = "fewer than three servers: what they keep is lost with a disk, and nothing goes on \
                    while one is down";
        findings.push(("replicas", DoctorFinding::Gap(text.to_owned())));
    }
    for view in seen.servers {
        match requirements(&view.varz) {
            Ok(held) => findings.extend(
                held.into_iter()
                    .map(|one| (one.name, DoctorFinding::Good(one.found))),
            ),
            Err(error) => findings.push(("server", DoctorFinding::Bad(error.into()))),
        }
        findings.extend(room_of(&view.varz).map(|finding| ("room", finding)));
        if view.ahead_ms.abs() > SKEW_MS {
            let text = format!(
                "{} is {} ms off this machine's clock: runs are safe, but delays and schedules are \
                 off by that",
                view.varz["server_name"].as_str().unwrap_or("a server"),
                view.ahead_ms
            );
            findings.push(("clock", DoctorFinding::Gap(text)));
        }
    }
    findings
}

fn room_of(varz: &Value) -> Option<DoctorFinding> {
    let stream = &varz["jetstream"];
    let room = stream["config"]["max_storage"].as_u64()?;
    let used = stream["stats"]["storage"].as_u64()?;
    let server = varz["server_name"].as_str().unwrap_or("a server");
    let text = format!("{server} keeps {} of {} MB", used >> 20, room >> 20);
    Some(if used > room / 10 * 9 {
        let words = "it is nearly full: give it more room (max_file_store, or a larger disk)";
        DoctorFinding::Gap(format!("{text}; {words}"))
    } else {
        DoctorFinding::Good(text)
    })
}

async fn try_logs(connection: &FleetConnection) -> Result<String, Failure> {
    let mut fastest = Duration::MAX;
    for kind in ["runs", "blobs", "queue", "inbox"] {
        let took = try_log(connection, kind).await.map_err(|why| {
            let failure = Failure::usage(format!("the stream `{kind}` {why}"));
            failure.hint(match room(&why) {
                "" => "to see the rights that a worker needs: gyrus fleet permissions",
                room => room.trim_start_matches("; "),
            })
        })?;
        fastest = fastest.min(took);
    }
    Ok(format!(
        "the second of two writers was refused; an append took {:.1} ms",
        fastest.as_secs_f64() * 1e3
    ))
}

/// Appends to a log as two writers of which only one can be right, and reads and hears it. Returns how
/// long an append took, or what is wrong with the stream.
async fn try_log(connection: &FleetConnection, kind: &str) -> Result<Duration, String> {
    let log = NatsLog::new(connection.clone());
    let name = format!("{kind}.doctor-{}", gyrus_contract::time_ordered_uuid());
    let subject = LogSubject::new(&name).expect("it is a name");
    let mut news = log.news(&subject);
    let until = || OsMachine.now() + Duration::from_secs(10);
    let append = async |writer: u128| {
        let id = MessageId {
            subject: subject.clone(),
            writer: WriterId(writer),
            index: 0,
        };
        let body = b"gyrus fleet doctor".as_slice().into();
        log.append_if(&id, 0, &body, until()).await
    };
    let began = Instant::now();
    let first = append(1).await;
    let took = began.elapsed();
    let position = match first {
        AppendAnswer::Stored { position } => position,
        AppendAnswer::Unknown { why } | AppendAnswer::Impossible { why } => {
            return Err(format!("takes nothing: {why}"));
        }
        other => return Err(format!("takes nothing: {other:?}")),
    };
    let second = append(2).await;
    if second != (AppendAnswer::Refused { last: position }) {
        return Err(format!(
            "did not refuse the second of two writers with the same expectation: {second:?}"
        ));
    }
    let read = log.read_from(&subject, 0, until()).await;
    match read.map_err(|error| format!("cannot be read: {}", error.why))? {
        read if read.len() == 1 => {}
        read => return Err(format!("gave {} messages for one", read.len())),
    }
    // The second message was heard too, so it does not matter if the first one came too early.
    let heard = tokio::time::timeout(HEARD, news.changed()).await;
    if !matches!(heard, Ok(Ok(()))) {
        let complaint = connection.complaint().unwrap_or_default();
        return Err(format!("does not tell of its messages: {complaint}"));
    }
    Ok(took)
}
