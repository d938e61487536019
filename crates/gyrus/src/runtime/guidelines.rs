//! Guidelines for agents that lie in a folder: `AGENTS.md`, or `CLAUDE.md` where there is none.
//!
//! Those of the folder that a run works in and of the folders above it count, up to the root of its
//! repository; the nearest stands last, and has the last word. A line `@FILE` stands for a file of
//! the repository. Once a person trusts exactly this content it instructs; before, it is data like
//! any other file.

use std::path::{Path, PathBuf};

use gyrus_contract::{Digest, Grant, Origin, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, grants};
use gyrus_process::read_regular;

use super::RuntimeError;

/// Names of the file, the preferred one first.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Maximum length of guidelines in bytes: they are part of every prompt. What is longer is cut.
const MAX_BYTES: usize = 32 * 1024;

/// Maximum number of files that guidelines include, and their maximum depth.
const MAX_IMPORTS: u32 = 32;
const MAX_DEPTH: u32 = 4;

/// The guidelines of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guidelines {
    /// The nearest file.
    pub path: PathBuf,
    /// The content of all files, cut to the size that a prompt takes.
    pub text: String,
}

/// A person's word about guidelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuidelineTrust {
    /// The person trusts the guidelines, so they are instructions.
    Trusted,
    Data,
    /// Nobody was asked about this content yet: until then they are data.
    Unasked,
}

impl Guidelines {
    /// Returns the guidelines for runs in `workspace`, a real path. A file that leads out of the
    /// repository, that is no regular file or that cannot be read is none.
    pub fn find(workspace: &Path) -> Option<Self> {
        let is_root = |folder: &&Path| folder.join(".git").exists();
        let root = workspace.ancestors().find(is_root).unwrap_or(workspace);
        let folders = workspace.ancestors();
        let folders = folders.take_while(|folder| folder.starts_with(root));
        let mut imports = MAX_IMPORTS;
        let files = folders.filter_map(|folder| {
            NAMES.iter().find_map(|name| {
                let path = folder.join(name);
                let text = with_imports(&path, root, &mut imports, 0)?;
                (!text.trim().is_empty()).then_some((path, text))
            })
        });
        let files: Vec<(PathBuf, String)> = files.collect();
        let path = files.first()?.0.clone();
        let mut text = String::new();
        for (path, part) in files.iter().rev() {
            if files.len() > 1 {
                let name = path.strip_prefix(root).unwrap_or(path).display();
                text.push_str(&format!("[{name}; what is nearer stands below]\n"));
            }
            text.push_str(part);
            text.push_str(if part.ends_with('\n') { "" } else { "\n" });
        }
        if let [(_, one)] = &files[..] {
            text.clone_from(one);
        }
        if text.len() > MAX_BYTES {
            text = gyrus_text::first_bytes(&text, MAX_BYTES).to_owned();
            text.push_str("\n[cut here: guidelines may be 32 KiB long]");
        }
        Some(Self { path, text })
    }

    /// Returns the person's decision about exactly this content, for runs in `workspace`.
    pub fn trust(&self, store: &Store, workspace: &Path) -> Result<GuidelineTrust, RuntimeError> {
        let standing = grants::in_folder(store, workspace)?;
        // The newest word counts.
        let said = standing.iter().rev().find_map(|standing| {
            if standing.grant == self.grant(true) {
                Some(GuidelineTrust::Trusted)
            } else if standing.grant == self.grant(false) {
                Some(GuidelineTrust::Data)
            } else {
                None
            }
        });
        Ok(said.unwrap_or(GuidelineTrust::Unasked))
    }

    /// Returns the grant by which a person decides whether the guidelines are instructions.
    pub fn grant(&self, instruct: bool) -> Grant {
        Grant::Guidelines {
            content: Digest::of_json(&self.text),
            instruct,
        }
    }

    /// Returns the guidelines as an attachment to the goal of a run in `workspace`.
    pub fn attachment(self, workspace: &Path, trust: GuidelineTrust) -> Attachment {
        let above = workspace.strip_prefix(self.path.parent().unwrap_or(&self.path));
        let steps = above.map_or(0, |above| above.components().count());
        let name = self.path.file_name().unwrap_or_default();
        let origin = Origin::Guidelines {
            path: "../".repeat(steps) + &name.to_string_lossy(),
            trusted: trust == GuidelineTrust::Trusted,
        };
        Attachment::Text(Text::new(self.text, origin))
    }
}

/// Returns a document below `root` with the files that its lines `@FILE` name in their place. A name that
/// leads out of `root`, or nowhere, stands as it is.
fn with_imports(path: &Path, root: &Path, left: &mut u32, depth: u32) -> Option<String> {
    let real = path.canonicalize().ok()?;
    // A stranger's file must not bring what else lies there, such as keys.
    let is_document = real
        .extension()
        .is_some_and(|end| end == "md" || end == "txt");
    let bytes = read_regular(&real)
        .ok()
        .filter(|_| is_document && real.starts_with(root))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.split_inclusive('\n').map(|line| {
        let name = line.trim().trim_start_matches("- ").strip_prefix('@');
        let file = name
            .filter(|_| *left > 0 && depth < MAX_DEPTH)
            .and_then(|name| Some(path.parent()?.join(name)));
        let imported = file.and_then(|file| {
            *left -= 1;
            with_imports(&file, root, left, depth + 1)
        });
        imported.map_or_else(|| line.to_owned(), |text| text.trim_end().to_owned() + "\n")
    });
    Some(lines.collect())
}
