//! The hooks that a project's files propose.

use std::{fs, io, path::Path};

use gyrus::runtime::Home;
use gyrus_contract::{Digest, Grant};
use gyrus_surfaces::console::put;
use gyrus_text::{one_line, visible};

use super::file::{HookRule, read_rules};
use crate::{Gyrus, agreement, failure::Failure};

/// The files that may propose hooks, relative to the project's folder.
const FILES: [&str; 3] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".gyrus/hooks.json",
];

/// Folders with the scripts of such hooks. A yes holds for their content, too.
const SCRIPTS: [&str; 2] = [".claude/hooks", ".gyrus/hooks"];

/// Maximum number of files in these folders, and of their bytes in all.
const MAX_SCRIPTS: usize = 200;
const MAX_BYTES: u64 = 4 << 20;

pub(crate) struct ProjectHooks {
    pub(super) rules: Vec<HookRule>,
    left_out: Vec<String>,
    content: Digest,
}

impl ProjectHooks {
    /// Reads the hooks that a folder proposes; `None` if there are none.
    ///
    /// # Errors
    /// A message with the reason why none of the hooks can be used.
    pub(crate) fn read(workspace: &Path) -> Result<Option<Self>, String> {
        let (mut rules, mut left_out, mut contents) = (Vec::new(), Vec::new(), Vec::new());
        for name in FILES {
            let text = match gyrus_process::read_regular_text(&workspace.join(name)) {
                Ok(text) => text,
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(format!("{name}: {error}")),
            };
            let (more, not) = read_rules(&text).map_err(|why| format!("{name}: {why}"))?;
            rules.extend(more);
            left_out.extend(not);
            contents.push((name.to_owned(), Digest::of(text.as_bytes())));
        }
        if rules.is_empty() {
            return Ok(None);
        }
        let mut left = MAX_BYTES;
        for folder in SCRIPTS {
            scripts(&workspace.join(folder), folder, &mut contents, &mut left)?;
        }
        Ok(Some(Self {
            rules,
            left_out,
            content: Digest::of_json(&contents),
        }))
    }

    pub(crate) fn grant(&self, agreed: bool) -> Grant {
        Grant::Hooks {
            content: self.content,
            agreed,
        }
    }

    /// Asks the person at the terminal, unless they were asked before, or prints how to agree.
    pub(super) fn settle(
        &self,
        place: (&Gyrus, &Home, &Path),
        at_terminal: bool,
    ) -> Result<(), Failure> {
        let notice = "the hooks of this folder are not run, because nobody agreed to them; look at \
                      them: gyrus trust\n";
        let question = format!(
            "This folder has hooks, which may refuse what runs do here, and never allow more:\n{}\
             Shall they be run, in the sandbox, as they are now? [y/N] ",
            self.in_words()
        );
        let grant = |agreed| self.grant(agreed);
        agreement::settle(place, at_terminal, grant, (notice, &question)).map(drop)
    }

    /// Returns the hooks as text, one a line, with those that are left out.
    pub(crate) fn in_words(&self) -> String {
        let rules = self.rules.iter().map(HookRule::in_words);
        let left_out = self.left_out.iter().map(|why| format!("not run: {why}"));
        let lines = rules.chain(left_out);
        lines
            .map(|line| format!("  {}\n", visible(&one_line(&line))))
            .collect()
    }
}

/// Adds the digests of all files below a folder, in the order of their names.
fn scripts(
    folder: &Path,
    name: &str,
    contents: &mut Vec<(String, Digest)>,
    left: &mut u64,
) -> Result<(), String> {
    let wrong = |error: io::Error| format!("{name}: {error}");
    let entries = match fs::read_dir(folder) {
        Err(error) if is_missing(&error) => return Ok(()),
        entries => entries.map_err(wrong)?,
    };
    let mut entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(wrong)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().map_err(wrong)?;
        if kind.is_dir() {
            scripts(&entry.path(), &name, contents, left)?;
            continue;
        }
        if contents.len() >= MAX_SCRIPTS {
            return Err(format!("there are more than {MAX_SCRIPTS} files of hooks"));
        }
        if !kind.is_file() {
            return Err(format!("{name} is not a regular file"));
        }
        let size = entry.metadata().map_err(wrong)?.len();
        *left = left
            .checked_sub(size)
            .ok_or_else(|| format!("the files of hooks are larger than {MAX_BYTES} bytes"))?;
        let bytes = fs::read(entry.path()).map_err(wrong)?;
        contents.push((name, Digest::of(&bytes)));
    }
    Ok(())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Prints the reason why the hooks of a folder cannot be used.
pub(super) fn tell_unusable(why: &str) -> Result<(), Failure> {
    Ok(put(&format!(
        "the hooks of this folder are not run: {}\n",
        visible(&one_line(why))
    ))?)
}
