//! Claims and holds over a real server.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gyrus_contract::Digest;
use gyrus_fleet::{
    AppendAnswer, ClaimError, ClaimWords, Claimant, EntryLines, Hold, HoldError, LogSubject,
    Machine, MessageId, RunMessage, RunMessageKind, RunReading, SharedLog, Wait, WriterId, claim,
};

use crate::servers::{Servers, TestMachine};

/// Long enough for a machine that does much else.
const LEASE: Duration = Duration::from_secs(5);

pub(crate) struct Worker {
    pub(crate) log: Arc<dyn SharedLog>,
    pub(crate) machine: Arc<TestMachine>,
    pub(crate) name: &'static str,
    pub(crate) entries: Vec<String>,
}

impl Worker {
    async fn new(servers: &Servers, name: &'static str) -> Self {
        Self {
            log: servers.log().await,
            machine: Arc::default(),
            name,
            entries: Vec::new(),
        }
    }

    async fn claim(&mut self, run: &LogSubject, wait: Wait) -> Result<Hold, ClaimError> {
        let machine: Arc<dyn Machine> = self.machine.clone();
        let claimant = Claimant {
            log: &self.log,
            machine: &machine,
            writer: WriterId(gyrus_contract::time_ordered_uuid().as_u128()),
            claimed: ClaimWords {
                worker: self.name.to_owned(),
                lease_ms: u64::try_from(LEASE.as_millis()).unwrap(),
                build: "test".to_owned(),
            },
        };
        let mut reading = RunReading::new(run.clone());
        self.entries.clear();
        let entries = &mut self.entries;
        let mut sink = |message: &RunMessage| {
            if let RunMessageKind::Entries(lines) = &message.kind {
                entries.push(String::from_utf8_lossy(&lines.lines).into_owned());
            }
            Ok(())
        };
        let until = machine.now() + LEASE * 4;
        claim(claimant, &mut reading, &mut sink, wait, until).await
    }
}

impl Worker {
    /// Claims a run whose holder is dead, however long the servers take.
    async fn claim_in_the_end(&mut self, run: &LogSubject) -> Hold {
        let deadline = self.machine.now() + Duration::from_secs(60);
        loop {
            match self.claim(run, Wait::Dead).await {
                Ok(hold) => return hold,
                Err(error) => assert!(self.machine.now() < deadline, "{error}"),
            }
        }
    }
}

fn entry(number: u64) -> EntryLines {
    EntryLines {
        first: number,
        last: number,
        previous: Digest::of(&(number - 1).to_be_bytes()),
        head: Digest::of(&number.to_be_bytes()),
        lines: format!("entry {number}\n").into_bytes().into(),
        blobs: Vec::new(),
        large_blobs: Vec::new(),
        lines_in: None,
    }
}

fn subject(name: &str) -> LogSubject {
    LogSubject::new(name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_at_a_time_and_the_next_one_has_everything() {
    let Some(servers) = Servers::start(1) else {
        return eprintln!("nats-server is not installed");
    };
    let run = subject("runs.a.a");
    let (mut one, mut two) = (
        Worker::new(&servers, "one").await,
        Worker::new(&servers, "two").await,
    );
    let mut hold = one.claim(&run, Wait::No).await.unwrap();
    for number in 1..=300 {
        hold.append(entry(number)).await.unwrap();
        if number % 100 == 0 {
            servers.disturb(run.as_str()).await;
        }
    }
    // While the first is alive, nobody gets it.
    assert!(matches!(
        two.claim(&run, Wait::No).await,
        Err(ClaimError::Held { .. })
    ));
    let waiting = tokio::spawn(async move {
        let took = two.claim(&run, Wait::Succeed { seen: None }).await;
        (two, took, run)
    });
    while !waiting.is_finished() {
        hold.renew().await.unwrap();
        tokio::time::sleep(LEASE / 4).await;
    }
    let (mut two, took, run) = waiting.await.unwrap();
    assert!(matches!(took, Err(ClaimError::Held { .. })));
    // It says nothing more: the next one waits until it must be dead, and has all its entries.
    hold.append(entry(301)).await.unwrap();
    let deadline = hold.deadline();
    assert_eq!(
        one.machine.lives_until.load(Ordering::Relaxed),
        deadline.0,
        "the machine ends it then"
    );
    let mut next = two.claim(&run, Wait::Succeed { seen: None }).await.unwrap();
    assert!(two.machine.now() > deadline);
    assert_eq!(two.entries.len(), 301);
    assert_eq!(two.entries[300], "entry 301\n");
    next.append(entry(302)).await.unwrap();
    // What the first one says now is refused, and it is told by whom.
    let lost = hold.append(entry(302)).await.unwrap_err();
    assert!(
        matches!(&lost, HoldError::Late { .. }) || lost.to_string().contains("two"),
        "{lost}"
    );
    assert_eq!(hold.renew().await, Err(HoldError::Lost));
    // A run that was let go is free at once.
    next.release().await.unwrap();
    one.claim(&run, Wait::No).await.unwrap();
    assert_eq!(one.entries.len(), 302);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_of_the_server_are_told_apart() {
    let Some(servers) = Servers::start(1) else {
        return eprintln!("nats-server is not installed");
    };
    let worker = Worker::new(&servers, "one").await;
    let subject = subject("runs.b.b");
    let id = |writer, index| MessageId {
        subject: subject.clone(),
        writer: WriterId(writer),
        index,
    };
    let body: Arc<[u8]> = b"text".as_slice().into();
    let until = worker.machine.now() + Duration::from_secs(5);
    let append = async |id, expected, body: &Arc<[u8]>| {
        worker.log.append_if(&id, expected, body, until).await
    };
    let AppendAnswer::Stored { position } = append(id(1, 0), 0, &body).await else {
        panic!("it is the first")
    };
    assert_eq!(
        append(id(2, 0), 0, &body).await,
        AppendAnswer::Refused { last: position }
    );
    // The same name is the same message. Servers differ in which they look at first: the name or the
    // number.
    let again = append(id(1, 0), 0, &body).await;
    let refused = AppendAnswer::Refused { last: position };
    assert!(again == AppendAnswer::Stored { position } || again == refused);
    let large: Arc<[u8]> = vec![b'x'; 2 << 20].into();
    assert!(matches!(
        append(id(2, 1), position, &large).await,
        AppendAnswer::Impossible { .. }
    ));
    assert!(matches!(
        append(id(2, 2), position, &body).await,
        AppendAnswer::Stored { .. }
    ));
    let read = worker.log.read_from(&subject, 0, until).await.unwrap();
    assert_eq!(read.len(), 2);
    let read = worker
        .log
        .read_from(&subject, read[1].position, until)
        .await;
    assert_eq!(read.unwrap(), []);
    let other = LogSubject::new("runs.never").unwrap();
    assert_eq!(worker.log.read_from(&other, 0, until).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_while_each_server_of_a_cluster_is_killed_in_turn() {
    let Some(mut servers) = Servers::start(3) else {
        return eprintln!("nats-server is not installed");
    };
    let run = subject("runs.c.c");
    let mut worker = Worker::new(&servers, "one").await;
    let mut hold = worker.claim(&run, Wait::No).await.unwrap();
    let mut acknowledged = 0;
    for victim in 0..3 {
        for _ in 0..20 {
            hold.append(entry(acknowledged + 1)).await.unwrap();
            acknowledged += 1;
        }
        servers.kill(victim);
        // A cluster needs longer for another leader than this lease is: a run is let go of then,
        // and taken again.
        let appended = hold.append(entry(acknowledged + 1)).await;
        servers.restart(victim);
        if appended.is_ok() {
            acknowledged += 1;
        }
        drop(hold);
        hold = worker.claim_in_the_end(&run).await;
        let entries = worker.entries.len() as u64;
        assert!(entries == acknowledged || entries == acknowledged + 1 && appended.is_err());
        for (number, line) in (1..).zip(&worker.entries) {
            assert_eq!(line, &format!("entry {number}\n"));
        }
        acknowledged = entries;
    }
    hold.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_writers_only_one_is_ever_right() {
    let Some(servers) = Servers::start(1) else {
        return eprintln!("nats-server is not installed");
    };
    let worker = Worker::new(&servers, "one").await;
    let body: Arc<[u8]> = b"text".as_slice().into();
    let mut wrong = 0;
    for kind in ["runs", "queue", "inbox", "blobs"] {
        for number in 0..25 {
            let subject = subject(&format!("{kind}.race-{number}"));
            let until = worker.machine.now() + Duration::from_secs(5);
            let append = async |writer, expected| {
                let id = MessageId {
                    subject: subject.clone(),
                    writer: WriterId(writer),
                    index: 0,
                };
                worker.log.append_if(&id, expected, &body, until).await
            };
            let AppendAnswer::Stored { position } = append(1, 0).await else {
                panic!("it is the first")
            };
            let second = append(2, 0).await;
            if second != (AppendAnswer::Refused { last: position }) {
                eprintln!("{kind} {number}: {position} {second:?}");
                wrong += 1;
            }
        }
    }
    assert_eq!(wrong, 0);
}
