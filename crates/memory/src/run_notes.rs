//! Notes of runs that have ended, by gyrus itself: a line with the goal and how it ended.
//!
//! Both are trusted text: the goal is a person's, and how a run ended is one of a few words. What
//! the run answered is not noted; it stands in its journal.

use gyrus_contract::RunId;

use crate::{
    history::Author,
    vault::{Vault, VaultError},
    write::Intention,
};

/// Notes with the last runs, and with all of a long time, and the maximum number of each; the oldest
/// go first.
const RECENT: (&str, usize) = ("Context/recent-actions.md", 20);
const TASK_LOG: (&str, usize) = ("Tasks/task-log.md", 500);

/// Maximum number of runs in the note of one day.
const MAX_OF_A_DAY: usize = 200;

/// Maximum length of a goal in a note, in characters.
const MAX_GOAL_CHARS: usize = 200;

/// Suffix by which gyrus recognises its own lines. Obsidian hides it.
const MARK: &str = " %%gyrus%%";

impl Vault {
    /// Records the end of a run in the note of the day (of UTC), in that of the last runs, and in
    /// the log of tasks. Does nothing without a vault, and for a run that is recorded already.
    pub fn note_run(
        &self,
        run: RunId,
        goal: &str,
        ending: &str,
        now_ms: i64,
    ) -> Result<(), VaultError> {
        if !self.exists() {
            return Ok(());
        }
        let at = gyrus_text::utc(now_ms);
        let (day, time) = (at.get(..10).unwrap_or(&at), at.get(11..16).unwrap_or(""));
        let goal = goal.replace('%', "");
        let goal = gyrus_text::shorten(&gyrus_text::one_line(&goal), MAX_GOAL_CHARS).into_owned();
        let what = format!("{goal}: {ending} (run {}){MARK}\n", run.short());
        let of_day = (&*format!("Daily/{day}.md"), MAX_OF_A_DAY);
        self.add_line(of_day, &format!("- {time} {what}"), run, now_ms)?;
        for note in [RECENT, TASK_LOG] {
            self.add_line(note, &format!("- {day} {time} {what}"), run, now_ms)?;
        }
        Ok(())
    }

    /// Adds a line to a note, unless it mentions the run, and removes gyrus's oldest lines beyond
    /// the maximum.
    fn add_line(
        &self,
        (path, most): (&str, usize),
        line: &str,
        run: RunId,
        now_ms: i64,
    ) -> Result<(), VaultError> {
        let intention = Intention {
            path,
            author: Author::Gyrus { run },
            why: "a run ended",
            now_ms,
        };
        let named = format!("(run {}){MARK}", run.short());
        let edited = self.change(&intention, &|before| {
            let before = before.unwrap_or_default();
            let Ok(text) = std::str::from_utf8(before) else {
                return Ok(Some(before.to_vec()));
            };
            let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
            if !lines
                .iter()
                .any(|line| is_own(line) && line.contains(&named))
            {
                if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
                    last.push('\n');
                }
                lines.push(line.to_owned());
                let noted = lines.iter().filter(|line| is_own(line)).count();
                let mut surplus = noted.saturating_sub(most);
                lines.retain(|line| {
                    let goes = surplus > 0 && is_own(line);
                    surplus -= usize::from(goes);
                    !goes
                });
            }
            Ok(Some(lines.concat().into_bytes()))
        });
        match edited {
            Ok(_) | Err(VaultError::Unchanged { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether gyrus wrote a line. What runs write is quoted, so none of it is such a line.
pub(crate) fn is_own(line: &str) -> bool {
    line.starts_with("- ") && line.trim_end().ends_with(MARK)
}
