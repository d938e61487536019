//! A journal as it was recorded, and any prefix of it planted into a store: what a crash leaves.

use std::collections::BTreeSet;

use gyrus_contract::{BlobId, EffectId, Repeat, RunId};
use gyrus_journal::{LogReader, NewEntry, Payload, Store};
use gyrus_kernel::{AttemptResult, CallEnd, Entry, log_name, parse};
use serde_json::value::RawValue;

use crate::world::{APPEND, APPLY, Deed, HOLD, PUT};

/// One line of a journal.
#[derive(Debug, Clone)]
pub struct Line {
    /// As it was written.
    pub payload: Box<RawValue>,
    /// The parsed entry.
    pub entry: Entry,
}

/// A run's journal, with those of its children.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The run.
    pub run: RunId,
    /// Its entries; the first has seq 1.
    pub lines: Vec<Line>,
    /// The children that exist, in the order they were started.
    pub children: Vec<Recording>,
}

/// Place at which a crash cuts a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Number of entries of the run that are left.
    pub entries: usize,
    /// Number of entries that are left of the child that is at work then; `None` if its log does
    /// not exist yet.
    pub of_child: Option<usize>,
}

impl Recording {
    /// Reads a run and its children.
    pub fn read(store: &Store, run: RunId) -> Self {
        let reader = store.reader(&log_name(run)).expect("the run exists");
        let lines: Vec<_> = reader
            .entries(1)
            .expect("the journal can be read")
            .map(|entry| {
                let entry = entry.expect("the chain holds");
                let parsed = parse(&entry).expect("every entry can be read");
                let Payload::Json(payload) = entry.payload else {
                    panic!("entry {} was erased", entry.seq)
                };
                Line {
                    payload,
                    entry: parsed,
                }
            })
            .collect();
        let children = lines
            .iter()
            .filter_map(|line| match &line.entry {
                Entry::ChildStarted(started) => Some(started.child),
                _ => None,
            })
            .filter(|child| store.exists(&log_name(*child)))
            .map(|child| Recording::read(store, child))
            .collect();
        Self {
            run,
            lines,
            children,
        }
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.lines.iter().map(|line| &line.entry)
    }

    /// The kinds of all entries, for a failing test's message.
    pub fn kinds(&self) -> Vec<&str> {
        self.entries().map(Entry::kind).collect()
    }

    /// Returns the number of entries of this kind.
    pub fn count(&self, kind: &str) -> usize {
        self.entries().filter(|entry| entry.kind() == kind).count()
    }

    /// Every way in which a crash can cut it: after each entry, and while a child is at work,
    /// after each of the child's.
    pub fn cuts(&self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let entries = index + 1;
            cuts.push(Cut {
                entries,
                of_child: None,
            });
            if let Entry::ChildStarted(started) = &line.entry
                && let Some(child) = self.child(started.child)
            {
                let inner = 0..=child.lines.len();
                cuts.extend(inner.map(|of_child| Cut {
                    entries,
                    of_child: Some(of_child),
                }));
            }
        }
        cuts
    }

    fn child(&self, run: RunId) -> Option<&Recording> {
        self.children.iter().find(|child| child.run == run)
    }

    /// Returns what is left of it after the cut.
    pub fn cut(&self, cut: Cut) -> Self {
        let lines = self.lines[..cut.entries].to_vec();
        let mut children = Vec::new();
        for line in &lines {
            let Entry::ChildStarted(started) = &line.entry else {
                continue;
            };
            let Some(child) = self.child(started.child) else {
                continue;
            };
            let over = lines.iter().any(
                |line| matches!(&line.entry, Entry::ChildEnded(ended) if ended.child == child.run),
            );
            if over {
                children.push(child.clone());
            } else if let Some(left) = cut.of_child {
                children.push(child.cut(Cut {
                    entries: left,
                    of_child: None,
                }));
            }
        }
        Self {
            run: self.run,
            lines,
            children,
        }
    }

    /// The same with every `from` in its entries replaced: for a workspace that is elsewhere now.
    pub fn rewritten(&self, from: &str, to: &str) -> Self {
        let line = |line: &Line| {
            let payload = line.payload.get().replace(from, to);
            let (kind, version) = (line.entry.kind(), line.entry.version());
            Line {
                entry: Entry::parse(kind, version, &payload).expect("only a path was replaced"),
                payload: RawValue::from_string(payload).expect("only a path was replaced"),
            }
        };
        Self {
            run: self.run,
            lines: self.lines.iter().map(line).collect(),
            children: self
                .children
                .iter()
                .map(|child| child.rewritten(from, to))
                .collect(),
        }
    }

    /// Writes it into a store, as its own writers would have, with the blobs that it names.
    pub fn plant(&self, from: &Store, to: &Store) {
        for child in &self.children {
            child.plant(from, to);
        }
        let name = log_name(self.run);
        let reader = from.reader(&name).expect("the recording's store has it");
        let writer = to.create(&name).expect("the store does not have it yet");
        let mut planted = BTreeSet::new();
        for line in &self.lines {
            plant_blobs(
                &reader,
                &writer,
                line.payload.get().as_bytes(),
                &mut planted,
            );
            let entry = NewEntry {
                kind: line.entry.kind(),
                version: line.entry.version(),
                payload: line.payload.clone(),
            };
            writer
                .append(&[entry])
                .expect("it was appended once before");
        }
        writer.barrier_blocking().expect("the disk works");
    }

    /// Whether the run itself, or a child, executed `deed` and recorded its outcome.
    pub fn has_settled(&self, deed: &Deed) -> bool {
        let called = self.entries().any(|entry| {
            matches!(entry, Entry::ToolCalled(called) if called.effect == deed.effect
                && called.call.tool == deed.tool
                && called.call.arguments == deed.arguments)
        });
        let settled = self.entries().any(|entry| {
            matches!(entry, Entry::ToolResulted(result) if result.effect == deed.effect
                && result.settled == CallEnd::Done)
        });
        (called && settled) || self.children.iter().any(|child| child.has_settled(deed))
    }

    /// The calls that began and have no outcome: they may or may not have happened.
    pub fn in_flight(&self) -> Vec<Deed> {
        let settled: BTreeSet<&EffectId> = self
            .entries()
            .filter_map(|entry| match entry {
                Entry::ToolResulted(result) => Some(&result.effect),
                _ => None,
            })
            .collect();
        let call = |effect: &EffectId| {
            self.entries().find_map(|entry| match entry {
                Entry::ToolCalled(called) if called.effect == *effect => Some(&called.call),
                _ => None,
            })
        };
        let own = self.entries().filter_map(|entry| match entry {
            Entry::ToolStarted(started) if !settled.contains(&started.effect) => {
                let call = call(&started.effect)?;
                let (tool, arguments) = (call.tool.clone(), call.arguments.clone());
                Some(Deed {
                    effect: started.effect.clone(),
                    tool,
                    arguments,
                })
            }
            _ => None,
        });
        let mut open: Vec<Deed> = own.collect();
        open.dedup();
        open.extend(self.children.iter().flat_map(Recording::in_flight));
        open
    }

    /// Tokens that the entries say were charged, in this run and its children.
    pub fn charged_tokens(&self) -> u64 {
        let own = self.entries().map(|entry| match entry {
            Entry::ModelReply(reply) => reply.charged.tokens,
            _ => 0,
        });
        own.sum::<u64>()
            + self
                .children
                .iter()
                .map(Recording::charged_tokens)
                .sum::<u64>()
    }

    /// The replies that were recorded: run, purpose as text, ordinal.
    pub fn replies(&self) -> BTreeSet<(RunId, String, u64)> {
        let mut replies = BTreeSet::new();
        for entry in self.entries() {
            let Entry::ModelReply(reply) = entry else {
                continue;
            };
            if !matches!(reply.came, AttemptResult::Reply { .. }) {
                continue;
            }
            let call = self.entries().find_map(|entry| match entry {
                Entry::ModelCall(call) if call.effect == reply.effect => Some(call),
                _ => None,
            });
            let call = call.expect("a reply has its call");
            replies.insert((self.run, format!("{:?}", call.purpose), call.ordinal));
        }
        replies.extend(self.children.iter().flat_map(Recording::replies));
        replies
    }
}

/// Returns whether a call of this tool that a crash cut off may be repeated.
pub fn repeat_of(tool: &str) -> Repeat {
    match tool {
        APPEND | HOLD => Repeat::Never,
        PUT | APPLY => Repeat::Probe,
        _ => Repeat::Freely,
    }
}

/// Copies every blob whose id stands in `text`, and those that stand in them.
fn plant_blobs(
    from: &LogReader,
    to: &gyrus_journal::Writer,
    text: &[u8],
    planted: &mut BTreeSet<BlobId>,
) {
    let mut start = 0;
    for end in 0..=text.len() {
        if text.get(end).is_some_and(u8::is_ascii_hexdigit) {
            continue;
        }
        let word = std::str::from_utf8(&text[start..end]).ok();
        start = end + 1;
        let Some(id) = word.and_then(|word| word.parse::<BlobId>().ok()) else {
            continue;
        };
        if !planted.insert(id) {
            continue;
        }
        let Ok(bytes) = from.blob(&id) else { continue };
        to.put_blob(&bytes).expect("the disk works");
        plant_blobs(from, to, &bytes, planted);
    }
}
