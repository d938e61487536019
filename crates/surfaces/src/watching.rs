//! Watching a run while it is driven: its durable entries, and those of its children, go to the
//! console, to standard output as JSON, and to the trace.
//!
//! The watcher is a task of its own, so a slow terminal never holds up a run.

use std::time::Duration;

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{StandingChange, approvals::OpenQuestion};
use tokio::{
    sync::{mpsc, oneshot},
    task::{self, JoinHandle},
};

use crate::{
    card_editor,
    console::{Console, clear_status},
    error::SurfaceError,
    json,
    keys::{self, Key, KeyReader, KeySignals},
    notify::Notifier,
    output,
    terminal::{self, TerminalEvent, TerminalReader},
    trace_file::TraceFile,
    tree_follower::{TreeEntry, TreeFollower},
};

pub use crate::live_replies::{LiveReplies, ReplyPiece, live_replies};

/// Interval at which the time in the status line is updated.
const TICK: Duration = Duration::from_millis(500);

/// Views that show the entries of a run.
pub struct Views {
    pub person: Person,
    /// The notifier for a person who does not watch.
    pub notifier: Notifier,
    /// The file that gets a line a step.
    pub trace: Option<TraceFile>,
    /// The trace beside the run's journal. The run does not depend on it.
    pub own_trace: Option<TraceFile>,
    /// The editor in which the person at the console changes a text.
    pub editor: Option<String>,
}

/// A view of the entries for a person.
pub enum Person {
    Console(Box<Console>),
    /// A program at standard output.
    Program,
}

/// A watcher at work.
pub struct WatchAtWork {
    task: JoinHandle<Result<(), SurfaceError>>,
    finish: oneshot::Sender<Until>,
}

/// The condition under which a watcher ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After the output of this entry of the run.
    Entry(u64),
    /// After the output of the entries known by now, because the journal failed.
    Now,
}

enum WatchEvent {
    Entry(TreeEntry),
    Typed(TerminalEvent),
    Key(Key),
    Reply(ReplyPiece),
    Tick,
}

impl WatchAtWork {
    /// Watches `run` from entry `from` on. `open` are the questions that are unanswered by then.
    pub fn start(
        store: Store,
        run: RunId,
        from: u64,
        open: Vec<OpenQuestion>,
        views: Views,
        replies: LiveReplies,
    ) -> Self {
        let (lines, typed) = mpsc::channel(1);
        let (typing, keys) = mpsc::unbounded_channel();
        let (finish, finished) = oneshot::channel();
        let watcher = RunWatcher {
            run,
            views,
            lines,
            terminal: None,
            typing,
            keys: None,
            until: None,
            shown: 0,
        };
        let mut entries = TreeFollower::new(&store);
        entries.follow(run, from);
        let task = tokio::spawn(watcher.watch(open, entries, (typed, keys), replies, finished));
        Self { task, finish }
    }

    /// Waits until everything is shown; returns the first error.
    pub async fn finish(self, until: Until) -> Result<(), SurfaceError> {
        // A watcher that failed is gone already and says so.
        let _ = self.finish.send(until);
        let watched = self.task.await;
        // Also where it failed: whoever writes next has the terminal to themselves.
        let cleared = clear_status();
        watched
            .unwrap_or_else(|error| Err(SurfaceError::Watcher(error)))
            .and(cleared)
    }
}

struct RunWatcher {
    run: RunId,
    views: Views,
    lines: mpsc::Sender<TerminalEvent>,
    /// Reader of the terminal's lines, once a line was needed.
    terminal: Option<TerminalReader>,
    typing: mpsc::UnboundedSender<Key>,
    /// Keys of the terminal, where a person can type all the time.
    keys: Option<KeyReader>,
    until: Option<Until>,
    /// Sequence number of the last entry shown.
    shown: u64,
}

impl RunWatcher {
    async fn watch(
        mut self,
        open: Vec<OpenQuestion>,
        mut entries: TreeFollower,
        (mut typed, mut keys): (mpsc::Receiver<TerminalEvent>, mpsc::UnboundedReceiver<Key>),
        mut replies: LiveReplies,
        mut finished: oneshot::Receiver<Until>,
    ) -> Result<(), SurfaceError> {
        if let Person::Console(console) = &mut self.views.person {
            for question in open {
                console.asked(question)?;
            }
        }
        self.read_terminal_if_asking()?;
        loop {
            let event = tokio::select! {
                biased;
                line = typed.recv() => line.map(WatchEvent::Typed),
                entry = entries.next() => Some(WatchEvent::Entry(entry?)),
                key = keys.recv() => key.map(WatchEvent::Key),
                piece = replies.recv() => piece.map(WatchEvent::Reply),
                () = self.tick() => Some(WatchEvent::Tick),
                until = &mut finished, if self.until.is_none() => {
                    self.until = Some(until.unwrap_or(Until::Now));
                    None
                }
            };
            if let Some(event) = event {
                if !matches!(event, WatchEvent::Reply(_)) {
                    // What was said before an entry was written is known before it is shown.
                    while let Ok(piece) = replies.try_recv() {
                        self.event(WatchEvent::Reply(piece))?;
                    }
                }
                self.event(event)?;
            }
            let done = match self.until {
                Some(Until::Entry(last)) => self.shown >= last,
                Some(Until::Now) => entries.is_empty(),
                None => false,
            };
            if done {
                self.keys = None;
                while let Ok(key) = keys.try_recv() {
                    self.event(WatchEvent::Key(key))?;
                }
                self.views.notifier.finish().await;
                return Ok(());
            }
        }
    }

    /// Waits until the status line must be updated; forever if there is none.
    async fn tick(&self) {
        match &self.views.person {
            Person::Console(console) if console.has_status() => {
                tokio::time::sleep(TICK).await;
            }
            Person::Console(_) | Person::Program => std::future::pending().await,
        }
    }

    fn event(&mut self, event: WatchEvent) -> Result<(), SurfaceError> {
        match event {
            WatchEvent::Entry(followed) => {
                self.entry(&followed)?;
                if followed.run == self.run {
                    self.shown = followed.entry.seq;
                }
                Ok(())
            }
            WatchEvent::Typed(TerminalEvent::Line(line)) => self.typed(&line),
            WatchEvent::Typed(TerminalEvent::End) => match &mut self.views.person {
                Person::Console(console) => console.no_terminal(),
                Person::Program => Ok(()),
            },
            WatchEvent::Key(key) => match &mut self.views.person {
                Person::Console(console) => match console.key(key)? {
                    Some(line) => self.typed(&line),
                    None => Ok(()),
                },
                Person::Program => Ok(()),
            },
            WatchEvent::Reply(piece) => match &mut self.views.person {
                Person::Console(console) => console.reply_piece(&piece),
                Person::Program => Ok(()),
            },
            WatchEvent::Tick => match &mut self.views.person {
                Person::Console(console) => {
                    if self.keys.is_some() {
                        // A terminal that does not take them is used as it is.
                        let _ = keys::hold_modes(KeySignals::Sent);
                    }
                    console.show_status()
                }
                Person::Program => Ok(()),
            },
        }
    }

    fn typed(&mut self, line: &str) -> Result<(), SurfaceError> {
        let Person::Console(console) = &mut self.views.person else {
            return Ok(());
        };
        let Some(card) = console.to_edit(line) else {
            return console.typed(line);
        };
        // The editor reads the terminal now.
        (self.terminal, self.keys) = (None, None);
        clear_status()?;
        let editor = self.views.editor.as_deref();
        let came = task::block_in_place(|| card_editor::in_editor(&card, editor));
        console.show_status()?;
        console.edited(came)?;
        self.read_terminal_if_asking()
    }

    fn entry(&mut self, followed: &TreeEntry) -> Result<(), SurfaceError> {
        let TreeEntry {
            run,
            entry,
            reader,
            change,
        } = followed;
        let run = *run;
        match &mut self.views.person {
            Person::Console(console) => console.entry(run, entry, reader)?,
            Person::Program => {
                let mut out = output::standard();
                out.json(&json::line(run, entry))?;
                out.flush()?;
            }
        }
        if run == self.run {
            if let Some(trace) = &mut self.views.own_trace
                && trace.entry(entry, reader).is_err()
            {
                self.views.own_trace = None;
            }
            if let Some(trace) = &mut self.views.trace {
                trace.entry(entry, reader)?;
            }
        }
        match change {
            Some(StandingChange::Parked(ending)) if run == self.run => {
                self.views.notifier.parked(run, ending);
            }
            Some(StandingChange::Asked(open)) => self.views.notifier.asked(open, reader),
            _ => {}
        }
        self.read_terminal_if_asking()
    }

    fn read_terminal_if_asking(&mut self) -> Result<(), SurfaceError> {
        let Person::Console(console) = &self.views.person else {
            return Ok(());
        };
        if console.has_input_area() {
            if self.keys.is_none() {
                self.keys = Some(self.read_keys()?);
            }
        } else if console.is_asking() && self.terminal.is_none() {
            self.terminal = Some(terminal::read_lines(self.lines.clone())?);
        }
        Ok(())
    }

    fn read_keys(&self) -> std::io::Result<KeyReader> {
        let typing = self.typing.clone();
        keys::read_keys(KeySignals::Sent, move |key| {
            // If nobody listens any more, nobody needs to know.
            let _ = typing.send(key);
        })
    }
}
