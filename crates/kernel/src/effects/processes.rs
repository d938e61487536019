//! The state of the processes that go on beside the calls of a run: their output, and the addresses
//! that they serve.

use std::{
    collections::BTreeMap, fs::File, mem, net::SocketAddr, os::fd::OwnedFd, sync::Arc,
    time::Duration,
};

use gyrus_contract::{
    BoxedFuture, ConnectionPolicy, Destination, EffectId, Exit, Listeners, Outlet, ProcessReport,
};
use gyrus_process::keeper::Dialer;
use gyrus_text::shorten;
use gyrus_workspace::layer::CallLayer;
use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{Instant, timeout_at},
};

use crate::{live::LONG_LINE, redact::Redactor};

/// Maximum bytes of output that wait to be read; older lines are dropped.
pub(super) const UNREAD_BYTES: usize = 64 * 1024;

/// Bytes read at once.
pub(super) const CHUNK_BYTES: usize = 16 * 1024;

/// Characters of a command line in a list.
const SHOWN: usize = 80;

/// The processes of one run.
#[derive(Default)]
pub(crate) struct Background {
    pub(super) processes: Mutex<BTreeMap<EffectId, Arc<BackgroundProcess>>>,
}

pub(super) struct BackgroundProcess {
    pub(super) line: String,
    /// `None` for one that began as the command of a call.
    pub(super) input: Option<File>,
    pub(super) output: Mutex<Unread>,
    /// Announces output and the end.
    pub(super) moved: watch::Sender<()>,
    pub(super) task: Mutex<Option<JoinHandle<()>>>,
    pub(super) dialer: Mutex<Option<Dialer>>,
    pub(super) layer: Mutex<Option<CallLayer>>,
    /// Tasks that lead the run's browser to the process's servers.
    pub(super) doors: Mutex<JoinSet<()>>,
}

/// Unread output of a process.
#[derive(Default)]
pub(super) struct Unread {
    text: String,
    /// The beginning of a character.
    rest: Vec<u8>,
    omitted_bytes: u64,
    pub(super) ended: Option<Result<Exit, String>>,
}

impl Background {
    /// Returns the addresses of loopback that processes serve.
    pub(super) fn served(&self) -> Vec<SocketAddr> {
        let processes = self.processes.lock();
        let served = processes.values().filter_map(|process| {
            let mut dialer = process.dialer.lock();
            dialer.as_mut()?.served().ok()
        });
        served.flatten().collect()
    }

    /// Whether a process serves this address of a page.
    pub(super) fn serves(&self, address: &str) -> bool {
        let rest = address.strip_prefix("http://").unwrap_or_default();
        let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let port = place.strip_prefix("localhost:");
        let port = port.and_then(|port| port.parse::<u16>().ok());
        let at = place.parse::<SocketAddr>().ok();
        (port.is_some() || at.is_some())
            && (self.served().iter()).any(|one| Some(one.port()) == port || Some(*one) == at)
    }

    /// Returns a socket to a destination at which a process listens.
    pub(super) fn socket(&self, to: &Destination) -> Option<OwnedFd> {
        let at = SocketAddr::new(to.host.parse().ok()?, to.port);
        self.processes.lock().values().find_map(|process| {
            let mut dialer = process.dialer.lock();
            let dialer = dialer.as_mut()?;
            dialer
                .served()
                .ok()?
                .contains(&at)
                .then(|| dialer.socket(at).ok())?
        })
    }

    pub(super) fn find(&self, name: &str) -> Result<(EffectId, Arc<BackgroundProcess>), String> {
        let processes = self.processes.lock();
        let named = processes
            .iter()
            .find(|(effect, _)| effect.to_string() == name);
        if let Some((effect, process)) = named {
            return Ok((effect.clone(), Arc::clone(process)));
        }
        let list = processes.iter().map(|(effect, process)| {
            let ended = process.output.lock().ended.is_some();
            let state = if ended { "has ended" } else { "goes on" };
            format!("{effect} {state}: {}", shorten(&process.line, SHOWN))
        });
        let list: Vec<String> = list.collect();
        Err(if list.is_empty() {
            format!(
                "process `{name}` does not go on: it ended, at the latest with the gyrus process that \
                 kept it, and what nobody saw it change was dropped"
            )
        } else {
            format!(
                "there is no process `{name}`; there are:\n{}",
                list.join("\n")
            )
        })
    }
}

impl BackgroundProcess {
    pub(super) fn new(line: String, input: Option<File>) -> Self {
        Self {
            line,
            input,
            output: Mutex::default(),
            moved: watch::Sender::new(()),
            task: Mutex::default(),
            dialer: Mutex::default(),
            layer: Mutex::default(),
            doors: Mutex::default(),
        }
    }

    /// Ends the process with all processes that it started.
    pub(super) async fn end(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.abort();
            // Its end is that of the whole tree.
            let _ = task.await;
        }
        self.doors.lock().abort_all();
        let ended = Err("it was ended".to_owned());
        self.output.lock().ended.get_or_insert(ended);
    }

    /// Collects output until the pipe fails.
    pub(super) async fn pump(&self, output: &mut pipe::Receiver, whole_texts: bool) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = output.read(&mut chunk).await {
            self.output.lock().push(&chunk[..count], whole_texts);
            self.moved.send_replace(());
        }
        // Without output it goes on all the same.
        std::future::pending::<()>().await;
    }

    /// Waits for output, for `until` in the output, or for the process's end.
    pub(super) async fn wait(&self, redactor: &Redactor, until: Option<&str>, within: Duration) {
        let deadline = Instant::now() + within;
        let mut moved = self.moved.subscribe();
        loop {
            {
                let unread = self.output.lock();
                let ready = unread.ready(redactor);
                let found = match until {
                    Some(until) => redactor.redact(ready).contains(until),
                    None => !ready.is_empty(),
                };
                if found || unread.ended.is_some() {
                    return;
                }
            }
            if timeout_at(deadline, moved.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Takes the output that is ready to be read.
    pub(super) fn read(&self, redactor: &Redactor) -> ProcessReport {
        let mut unread = self.output.lock();
        let ready = unread.ready(redactor).len();
        let rest = unread.text.split_off(ready);
        ProcessReport {
            output: mem::replace(&mut unread.text, rest),
            omitted_bytes: mem::take(&mut unread.omitted_bytes),
            ended: unread.ended.clone(),
        }
    }
}

impl Unread {
    /// Returns the part of the output in which secrets can be recognised, whatever follows.
    fn ready(&self, redactor: &Redactor) -> &str {
        if self.ended.is_some() {
            &self.text
        } else if redactor.needs_whole_text() {
            ""
        } else {
            &self.text[..redactor.separable(&self.text, LONG_LINE)]
        }
    }

    /// Returns the last whole line in which secrets can be recognised.
    pub(super) fn last_line(&self, redactor: &Redactor) -> Option<String> {
        let ready = self.ready(redactor);
        let lines = ready.rfind('\n').map(|end| &ready[..end])?;
        let last = lines.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(shorten(last, SHOWN).into_owned())
    }

    /// Adds output. If there is too much, whole lines are dropped, since the end of a secret alone
    /// is not recognised as one.
    pub(super) fn push(&mut self, bytes: &[u8], whole_texts: bool) {
        self.rest.extend(bytes);
        let rest = mem::take(&mut self.rest);
        let mut chunks = rest.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && invalid.len() < 4 && bytes.ends_with(invalid) {
                self.rest = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let Some(over) = self
            .text
            .len()
            .checked_sub(UNREAD_BYTES)
            .filter(|over| *over > 0)
        else {
            return;
        };
        let line = self.text.as_bytes()[over..]
            .iter()
            .position(|byte| *byte == b'\n');
        let cut = match line {
            Some(line) if !whole_texts => over + line + 1,
            _ => self.text.len(),
        };
        self.omitted_bytes += cut as u64;
        self.text.drain(..cut);
    }
}

/// Serves the proxy of a process, and keeps the connection to its servers.
pub(super) struct ProcessOutlet<'a> {
    pub(super) outlet: Option<Arc<dyn Outlet>>,
    pub(super) process: &'a BackgroundProcess,
}

impl Outlet for ProcessOutlet<'_> {
    fn serve<'a>(
        &'a self,
        mut listeners: Listeners,
        policy: &'a dyn ConnectionPolicy,
    ) -> BoxedFuture<'a, ()> {
        let dialer = listeners.dialer.take();
        *self.process.dialer.lock() = dialer.and_then(|channel| Dialer::new(channel).ok());
        Box::pin(async move {
            if let Some(outlet) = &self.outlet {
                outlet.serve(listeners, policy).await;
            }
        })
    }
}
