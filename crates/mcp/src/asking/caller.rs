//! The run's side of a call in progress.

use gyrus_contract::Site;
use gyrus_text::shorten;
use parking_lot::Mutex;

use crate::{definition::clean, login};

/// Maximum number of different notes about requests in a call's result.
const MAX_NOTES: usize = 8;

/// Maximum characters of a note.
const MAX_NOTE: usize = 300;

/// The run's side of a call in progress.
pub(crate) struct Caller<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) site: &'a dyn Site,
    /// The login tokens for the server, which are removed from all texts.
    tokens: Vec<String>,
    /// Notes for the model about the server's requests, each with the number of its occurrences.
    notes: Mutex<Vec<(String, u32)>>,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(
        server: &'a str,
        tool: &'a str,
        site: &'a dyn Site,
        tokens: Vec<String>,
    ) -> Self {
        Self {
            server,
            tool,
            site,
            tokens,
            notes: Mutex::default(),
        }
    }

    /// Passes on the server's words about the progress of the call.
    pub(crate) fn tell(&self, words: &str) {
        self.site.tell(&format!("{}: {words}", self.tool));
    }

    /// Returns the notes for the model about the server's requests; empty if there are none.
    pub(crate) fn notes(&self) -> String {
        let notes = self.notes.lock();
        let notes = notes.iter().map(|(note, times)| match times {
            1 => format!("\n[meanwhile the server asked for {note}]"),
            _ => format!("\n[meanwhile the server asked {times} times for {note}]"),
        });
        notes.collect()
    }

    /// Records a note about the outcome of a request. At most a few different notes are kept.
    pub(super) fn note(&self, note: &str) {
        let note = shorten(note, MAX_NOTE);
        let mut notes = self.notes.lock();
        let has_room = notes.len() < MAX_NOTES;
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, times)) => *times += 1,
            None if has_room => notes.push((note.into_owned(), 1)),
            None => {}
        }
    }

    /// Returns a server's text as a person may read it.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut shown = clean(text);
        login::scrub_text(&mut shown, &self.tokens);
        shown
    }
}
