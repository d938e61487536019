//! The state of a changeset, as it stands while its run is parked or over.
//!
//! The loop records the states that it passes through (`docs/changeset.md`). Whatever stops the run
//! leaves the files consistent and no changeset in progress, so the state is `IDLE` then, without an
//! entry of its own; a resumed run goes on in the state that was recorded last.

use gyrus_journal::{LogEntry, LogReader};
use gyrus_kernel::Ending;
use serde_json::Value;

use super::{Happening, HappeningSubject, Tone};

const IDLE: &str = "IDLE";
const APPLYING: &str = "APPLYING_CHANGESET";

#[derive(Debug, Default)]
pub(super) struct ChangesetFold {
    /// The last recorded state; empty before the first.
    recorded: String,
    is_stopped: bool,
    has_begun: bool,
}

impl ChangesetFold {
    /// Prepares for an entry. A projection may begin where a process took
    /// the run up: the state until then is in the journal.
    pub(super) fn prepare(&mut self, entry: &LogEntry, reader: &LogReader) {
        if std::mem::replace(&mut self.has_begun, true) || entry.kind != "run.resumed" {
            return;
        }
        // Of a journal that cannot be read more is told than this.
        let Ok(Some(last)) = reader.last("changeset.state") else {
            return;
        };
        if let Ok(gyrus_kernel::Entry::Noted { fact, .. }) = gyrus_kernel::parse(&last)
            && last.seq < entry.seq
        {
            self.recorded(&fact.fact);
            self.is_stopped = self.recorded != IDLE;
        }
    }

    pub(super) fn recorded(&mut self, fact: &Value) {
        let state = fact["to"].as_str().unwrap_or_default();
        state.clone_into(&mut self.recorded);
        self.is_stopped = false;
    }

    /// Adds the run's ending, or the reason why the run has stopped for now. Returns what it tells
    /// about the changeset.
    pub(super) fn stopped(&mut self, ending: &Ending) -> Option<Happening> {
        let stays = match ending {
            // A question or a time is waited for in that state.
            Ending::Waiting { .. } | Ending::Sleeping { .. } => true,
            // The files could be neither changed nor put back.
            Ending::Stuck { .. } => self.recorded == APPLYING,
            Ending::Reached { .. }
            | Ending::Failed { .. }
            | Ending::Limit { .. }
            | Ending::ModelUnreachable { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => false,
        };
        let is_open = !self.recorded.is_empty() && self.recorded != IDLE && !self.is_stopped;
        if stays || !is_open {
            return None;
        }
        self.is_stopped = true;
        let how = if ending.is_final() {
            "ended"
        } else {
            "stopped"
        };
        Some(state(format!("{IDLE}: the run {how} in {}", self.recorded)))
    }

    /// Adds the resumption of the run. Returns what it tells about the changeset.
    pub(super) fn resumed(&mut self) -> Option<Happening> {
        let again = std::mem::take(&mut self.is_stopped);
        again.then(|| state(format!("{}: taken up again", self.recorded)))
    }
}

fn state(headline: String) -> Happening {
    Happening::main(HappeningSubject::Note, Tone::Aside, headline)
}
