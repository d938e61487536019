//! The process that a jail belongs to: it reads lines, and runs those that only read.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    panic,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use gyrus_contract::CommandReading;
use serde::{Deserialize, Serialize};

use super::{Error, doing, fixture::Ground, jail::Jail};
use crate::shell::{Place, read};

/// A reading that takes longer than this is a failure of its own.
const READING_LIMIT: Duration = Duration::from_millis(1500);

/// What a jail is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// The command line.
    pub line: String,
    /// Where it would run.
    pub ground: Ground,
    /// Run it whatever the reading says, to see whether a jail notices what a line does.
    pub run_anyway: bool,
}

/// What a jail answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether the reading says that the line only reads.
    pub only_reads: bool,
    /// Why the reading is no good, whatever it says: it panicked, or took too long.
    pub bad_reading: Option<String>,
    /// What happened, if it was run.
    pub outcome: Option<Outcome>,
}

/// What a line did in its jail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Everything that was not as before, in words.
    pub differences: Vec<String>,
    /// Whether it was killed because its time was over.
    pub timed_out: bool,
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
}

/// Why no jail can be made here, if so. It tries.
pub fn why_not() -> Option<String> {
    let mut command = super::inmate::in_namespaces();
    // An overlay over the root is what a machine refuses first.
    command
        .args(["sh", "-c"])
        .arg(
            "mount -t tmpfs none /mnt && mkdir /mnt/a /mnt/b /mnt/c /mnt/d && \
             mount -t overlay o -o lowerdir=/mnt/a:/,upperdir=/mnt/b,workdir=/mnt/c /mnt/d",
        )
        .stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("no jail can be made here: {}", said.trim()))
        }
        Err(error) => Some(format!("cannot run unshare (of util-linux): {error}")),
    }
}

/// The life of a worker: answers the questions that arrive on standard input, which is a socket,
/// until it closes. To be called by a process that [`Inmate::start`](super::Inmate::start) began.
pub fn work() -> Result<(), Error> {
    let socket = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(doing("take over standard input"))?;
    let mut answers = UnixStream::from(socket);
    let questions = answers.try_clone().map_err(doing("share the socket"))?;
    let mut jail = Jail::build(search_path())?;
    // What a reading panics with is told in the answer.
    panic::set_hook(Box::new(|_| {}));
    for question in BufReader::new(questions).lines() {
        let question = question.map_err(doing("read a question"))?;
        let question: Question =
            serde_json::from_str(&question).map_err(|error| Error::Talk(error.to_string()))?;
        let reply = answer(&mut jail, &question)?;
        let mut text =
            serde_json::to_string(&reply).map_err(|error| Error::Talk(error.to_string()))?;
        text.push('\n');
        answers
            .write_all(text.as_bytes())
            .map_err(doing("answer"))?;
    }
    Ok(())
}

fn answer(jail: &mut Jail, question: &Question) -> Result<Reply, Error> {
    let place = Place {
        folder: PathBuf::from(question.ground.folder()),
        home: Some(PathBuf::from(Ground::HOME)),
    };
    let started = Instant::now();
    let reading = panic::catch_unwind(|| read(&question.line, &place));
    let took = started.elapsed();
    let mut reply = Reply::default();
    let reading = match reading {
        Ok(reading) => reading,
        Err(_) => {
            reply.bad_reading = Some("reading it panics".to_owned());
            CommandReading::default()
        }
    };
    if took > READING_LIMIT {
        reply.bad_reading = Some(format!("reading it takes {} ms", took.as_millis()));
    }
    reply.only_reads = reply.bad_reading.is_none() && reading.only_reads();
    if reply.only_reads || question.run_anyway {
        reply.outcome = Some(jail.run(&question.line, question.ground, &reading.environment)?);
    }
    Ok(reply)
}

/// The `PATH` of a command: this process's own without relative entries, then the usual folders.
fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let all = own.split(':').chain(usual.split(':'));
    let mut folders: Vec<&str> = Vec::new();
    for folder in all.filter(|folder| folder.starts_with('/')) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(":")
}
