//! Writing notes: each write is a change that is recorded, applied as a whole, and can be undone.
//!
//! Writers of gyrus take turns. A person's editor does not: what it wrote meanwhile is found out
//! before and after the note is exchanged, and then the change is made again on top of it.

use std::{io, path::PathBuf, thread, time::Duration};

use gyrus_contract::{Digest, EffectId, RunId};
use gyrus_workspace::changeset::{After, ApplyError, FileChange, apply, recover};
use similar::TextDiff;

use crate::{
    front_matter::FrontMatter,
    history::{Author, ChangeEnd, VaultChange, VaultHistory},
    note::{REMEMBERED, UNTRUSTED},
    vault::{MAX_NOTE_BYTES, Vault, VaultError},
};

/// Maximum number of attempts to change a note that other programs change at the same time.
const MAX_ATTEMPTS: u32 = 32;

/// Pause between attempts while another program holds the folder's lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum size of a version that is compared line by line, in bytes.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// Text to write, with its author, time and reason.
#[derive(Debug, Clone)]
pub struct NoteWrite<'a> {
    pub author: Author,
    /// The reason, for the log.
    pub why: &'a str,
    pub text: &'a str,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

impl NoteWrite<'_> {
    fn day(&self) -> String {
        gyrus_text::utc(self.now_ms).chars().take(10).collect()
    }

    /// Returns the text in the form in which it is added to a note, with its origin. What a run
    /// wrote is a block of quoted lines, which its text cannot end.
    fn as_added(&self) -> String {
        match &self.author {
            Author::Person { name } => {
                let note = format!(" %%{}, {}%%", name.replace('%', ""), self.day());
                let text = self.text.trim_end();
                if text.contains('\n') {
                    format!("{text}\n{}\n", note.trim_start())
                } else {
                    format!("- {text}{note}\n")
                }
            }
            author @ (Author::Run { .. } | Author::Gyrus { .. } | Author::Unknown) => {
                let kind = if author.is_untrusted() {
                    UNTRUSTED
                } else {
                    REMEMBERED
                };
                let mut added = format!("> {kind} {}, {}\n", author.in_words(), self.day());
                for line in lines(self.text.trim_end()) {
                    added.push_str(if line.is_empty() { ">" } else { "> " });
                    added.push_str(line);
                    added.push('\n');
                }
                added
            }
        }
    }

    /// Returns the text as a whole note. Of the settings that a run gives only titles, aliases and
    /// tags are kept: whether it is trusted is not for it to say.
    fn as_note(&self) -> String {
        if matches!(self.author, Author::Person { .. }) {
            return self.text.to_owned();
        }
        let (given, body) = FrontMatter::split(self.text);
        let mut note = "---\n".to_owned();
        for key in ["title", "aliases", "tags"] {
            let values = given.as_ref().map_or(&[][..], |given| given.all(key));
            let plain = |value: &String| -> String {
                let kept = value.chars().filter(|c| !c.is_control());
                kept.filter(|c| !"\"\\[],{}".contains(*c)).collect()
            };
            let values: Vec<_> = values
                .iter()
                .map(|value| format!("\"{}\"", plain(value)))
                .collect();
            if !values.is_empty() {
                note.push_str(&format!("{key}: [{}]\n", values.join(", ")));
            }
        }
        if self.author.is_untrusted() {
            note.push_str("trust: untrusted\n");
        }
        note.push_str(&format!(
            "source: \"{}, {}\"\n---\n",
            self.author.in_words(),
            self.day()
        ));
        for line in lines(body.trim_end()) {
            note.push_str(line);
            note.push('\n');
        }
        note
    }
}

/// Splits a text at everything that some program treats as the end of a line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends = [
        '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    text.split("\r\n").flat_map(move |part| part.split(ends))
}

/// Returns the new content of a note from its present one; `None` deletes the note.
pub(crate) type NoteEdit<'a> = dyn Fn(Option<&[u8]>) -> Result<Option<Vec<u8>>, VaultError> + 'a;

/// Note of a change, with the facts for the log.
pub(crate) struct Intention<'a> {
    pub(crate) path: &'a str,
    pub(crate) author: Author,
    pub(crate) why: &'a str,
    pub(crate) now_ms: i64,
}

impl Vault {
    /// Returns the path of the note to write. A name with a folder needs no search.
    fn meant(&self, name: &str) -> Result<String, VaultError> {
        let path = Self::path_of(name)?;
        if path.contains('/') {
            return Ok(path);
        }
        Ok(self.find(name).unwrap_or(path))
    }

    /// Appends a text to a note, which is created if it is missing.
    ///
    /// # Errors
    /// The name is wrong, or the note cannot be written.
    pub fn add(&self, name: &str, writing: &NoteWrite<'_>) -> Result<VaultChange, VaultError> {
        let path = self.meant(name)?;
        let added = writing.as_added();
        self.change(&intention(&path, writing), &|before| {
            let mut content = before.unwrap_or_default().to_vec();
            if !content.is_empty() {
                let ends = content.ends_with(b"\n");
                content.extend_from_slice(if ends { b"\n" } else { b"\n\n" });
            }
            content.extend_from_slice(added.as_bytes());
            Ok(Some(content))
        })
    }

    /// Writes a whole note. With `expected`, only if its content has this digest.
    ///
    /// # Errors
    /// The name is wrong, the note is another one by now, or it cannot be written.
    pub fn replace(
        &self,
        name: &str,
        expected: Option<&Digest>,
        writing: &NoteWrite<'_>,
    ) -> Result<VaultChange, VaultError> {
        let path = self.meant(name)?;
        let note = writing.as_note();
        self.change(&intention(&path, writing), &|before| {
            let is_other = |expected: &Digest| before.map(Digest::of).as_ref() != Some(expected);
            if expected.is_some_and(is_other) {
                let why = format!("`{path}` was changed meanwhile; read it again, then write it");
                return Err(VaultError::Conflict(why));
            }
            Ok(Some(note.clone().into_bytes()))
        })
    }

    /// Returns all changes of the vault, oldest first.
    pub fn log(&self) -> Result<Vec<VaultChange>, VaultError> {
        VaultHistory::read(&self.state).map_err(|error| self.state_error(error))
    }

    /// Returns the change with this number; without one, the newest that a person or a run made.
    ///
    /// # Errors
    /// There is no such change, or the log cannot be read.
    pub fn logged(&self, id: Option<u64>) -> Result<VaultChange, VaultError> {
        let mut changes = self.log()?.into_iter().rev();
        let found = match id {
            Some(id) => changes.find(|change| change.id == id),
            None => changes
                .find(|change| change.end == Some(ChangeEnd::Done) && !change.author.is_gyrus()),
        };
        found.ok_or(VaultError::NoChange(id.unwrap_or(1)))
    }

    /// Returns the difference that a change made, as a patch.
    pub fn diff(&self, change: &VaultChange) -> Result<String, VaultError> {
        let before = self.version(change.before.as_ref())?.unwrap_or_default();
        let after = self.version(change.after.as_ref())?.unwrap_or_default();
        if before.len().max(after.len()) > MAX_DIFF_BYTES {
            return Ok(format!(
                "(from {} to {} bytes, too large to compare)\n",
                before.len(),
                after.len()
            ));
        }
        let (before, after) = (
            String::from_utf8_lossy(&before),
            String::from_utf8_lossy(&after),
        );
        let name = |exists: bool| {
            if exists {
                change.note.as_str()
            } else {
                "/dev/null"
            }
        };
        let diff = TextDiff::from_lines(&*before, &*after);
        let mut patch = diff.unified_diff();
        patch.header(name(change.before.is_some()), name(change.after.is_some()));
        Ok(patch.to_string())
    }

    /// Undoes a change. Added text is removed even if the rest of the note has changed since.
    ///
    /// # Errors
    /// There is nothing to undo, or the note has changed at the same place.
    pub fn undo(
        &self,
        change: &VaultChange,
        author: Author,
        now_ms: i64,
    ) -> Result<VaultChange, VaultError> {
        if change.end == Some(ChangeEnd::Dropped) {
            let why = format!("change {} was never made", change.id);
            return Err(VaultError::Conflict(why));
        }
        let before = self.version(change.before.as_ref())?;
        let after = self.version(change.after.as_ref())?;
        let why = format!("undo of change {}", change.id);
        let intention = Intention {
            path: &change.note,
            author,
            why: &why,
            now_ms,
        };
        self.change(&intention, &|present| {
            if present == after.as_deref() {
                return Ok(before.clone());
            }
            without_added(before.as_deref(), after.as_deref(), present).ok_or_else(|| {
                VaultError::Conflict(format!(
                    "`{}` has changed since at the same place, so nothing was undone; see what it \
                     was: gyrus memory diff {}",
                    change.note, change.id
                ))
            })
        })
    }

    /// Returns the content of a version; `None` stands for no note.
    fn version(&self, digest: Option<&Digest>) -> Result<Option<Vec<u8>>, VaultError> {
        let content = digest.map(|digest| VaultHistory::content(&self.state, digest));
        content.transpose().map_err(|error| self.state_error(error))
    }

    /// Returns the change that a call of a run made, even if it was interrupted; `None` if it made
    /// none.
    ///
    /// # Errors
    /// The log cannot be read, or the note of a change that was cut off.
    pub fn made_by(
        &self,
        run: &RunId,
        effect: &EffectId,
    ) -> Result<Option<VaultChange>, VaultError> {
        if !self.exists() {
            return Ok(None);
        }
        let held = VaultHistory::hold(&self.state, self.pace);
        let mut history = held.map_err(|error| self.state_error(error))?;
        self.settle(&mut history)?;
        let is_it = |change: &&VaultChange| {
            let by = match &change.author {
                Author::Run {
                    run: by,
                    effect: at,
                    ..
                } => by == run && at == effect,
                Author::Person { .. } | Author::Gyrus { .. } | Author::Unknown => false,
            };
            by && change.end != Some(ChangeEnd::Dropped)
        };
        Ok(history.changes().iter().rev().find(is_it).cloned())
    }

    pub(crate) fn change(
        &self,
        intention: &Intention<'_>,
        edit: &NoteEdit<'_>,
    ) -> Result<VaultChange, VaultError> {
        self.make()?;
        let broken = |error: io::Error| self.state_error(error);
        let mut history = VaultHistory::hold(&self.state, self.pace).map_err(broken)?;
        self.settle(&mut history)?;
        history.forget_own().map_err(broken)?;
        let mut conflict = None;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.bytes(intention.path)?;
            let after = edit(before.as_deref())?;
            if before == after {
                return Err(VaultError::Unchanged {
                    note: intention.path.to_owned(),
                });
            }
            let large = |content: &Vec<u8>| content.len() as u64 > MAX_NOTE_BYTES;
            if after.as_ref().is_some_and(large) {
                return Err(VaultError::TooLarge {
                    note: intention.path.to_owned(),
                });
            }
            let store = |content: &Option<Vec<u8>>| {
                let stored = content.as_ref().map(|content| history.store(content));
                stored.transpose().map_err(broken)
            };
            let change = VaultChange {
                id: history.changes().last().map_or(0, |last| last.id) + 1,
                at_ms: intention.now_ms,
                author: intention.author.clone(),
                why: intention.why.to_owned(),
                note: intention.path.to_owned(),
                before: store(&before)?,
                after: store(&after)?,
                end: None,
            };
            history.begin(change.clone()).map_err(broken)?;
            let applied = self.apply(&change, after);
            let end = if applied.is_ok() {
                ChangeEnd::Done
            } else {
                ChangeEnd::Dropped
            };
            history.end(end).map_err(broken)?;
            match applied {
                Ok(()) => {
                    return Ok(VaultChange {
                        end: Some(end),
                        ..change
                    });
                }
                Err(VaultError::Apply(ApplyError::Busy)) => thread::sleep(PAUSE),
                Err(error @ VaultError::Apply(ApplyError::Conflicts(_))) => conflict = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(conflict.unwrap_or(VaultError::Apply(ApplyError::Busy)))
    }

    /// Moves the new version into place, unless the note changed since it was read.
    fn apply(&self, change: &VaultChange, after: Option<Vec<u8>>) -> Result<(), VaultError> {
        let applied = apply(
            self.root()?,
            &[FileChange {
                path: PathBuf::from(&change.note),
                before: change.before,
                after: after.map(|content| After {
                    content,
                    executable: None,
                }),
            }],
        )?;
        if let Some(before) = &change.before
            && Digest::of(&self.replaced()?) != *before
        {
            applied.give_back()?;
            let why = format!("`{}` was changed meanwhile", change.note);
            return Err(ApplyError::Conflicts(vec![why]).into());
        }
        Ok(applied.keep()?)
    }

    /// Completes or drops a change that a crash interrupted.
    fn settle(&self, history: &mut VaultHistory) -> Result<(), VaultError> {
        recover_folder(self)?;
        let Some(last) = history.changes().last().filter(|last| last.end.is_none()) else {
            return Ok(());
        };
        let present = self.bytes(&last.note)?.map(|content| Digest::of(&content));
        let end = if present == last.after {
            ChangeEnd::Done
        } else if present == last.before {
            ChangeEnd::Dropped
        } else {
            ChangeEnd::Unknown
        };
        history.end(end).map_err(|error| self.state_error(error))
    }
}

fn recover_folder(vault: &Vault) -> Result<(), VaultError> {
    let root = vault.root()?;
    for _ in 0..MAX_ATTEMPTS {
        match recover(&root) {
            Err(ApplyError::Busy) => thread::sleep(PAUSE),
            recovered => return Ok(recovered?),
        }
    }
    Err(ApplyError::Busy.into())
}

fn intention<'a>(path: &'a str, writing: &NoteWrite<'a>) -> Intention<'a> {
    Intention {
        path,
        author: writing.author.clone(),
        why: writing.why,
        now_ms: writing.now_ms,
    }
}

/// Returns the present content without the text that a change added at the end; `None` if it added
/// none there, or if that text does not occur exactly once.
fn without_added(
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    present: Option<&[u8]>,
) -> Option<Option<Vec<u8>>> {
    let added = after?.strip_prefix(before.unwrap_or_default())?;
    let present = present?;
    let mut places = present
        .windows(added.len().max(1))
        .enumerate()
        .filter(|(_, window)| *window == added)
        .map(|(place, _)| place);
    let place = places.next().filter(|_| places.next().is_none())?;
    let mut content = present[..place].to_vec();
    content.extend_from_slice(&present[place + added.len()..]);
    Some(Some(content))
}
