//! The tool `propose_changeset`: what a changeset would do, as one diff that a person can review
//! and cut.
//!
//! It changes nothing. Whatever would keep the changeset from being applied is said here, all of it
//! at once, because the one who proposes is the one who can mend it.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gyrus_contract::{
    Boxed, Cleared, Digest, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use rustix::fs::{FileType, Stat};
use serde::Deserialize;
use serde_json::json;

use super::{
    AT_ONCE, CHANGES, MAX_CHANGES,
    apply::EXECUTE,
    diff, first_of,
    paths::Paths,
    prepare::{ancestors, parents},
    root::Root,
};
use crate::{
    arguments, background,
    exact::{ExactError, MAX_FILE_BYTES, Replacement},
    failure::{self, Failure},
};

/// A person reads the whole diff, so it is never shortened; a larger one is refused.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// Shown of one file that is deleted, and of all together, in bytes: that is for reading only.
const MAX_DELETED_BYTES: usize = 16 << 10;
const MAX_ALL_DELETED_BYTES: usize = 128 << 10;

/// Larger files are not deleted, in bytes: their digest says which file was meant.
const MAX_GONE_BYTES: u64 = 256 << 20;

/// For comparing old files with new ones.
const TIME_LIMIT: Duration = Duration::from_secs(10);

const EXAMPLE: &str = r#"{"summary": "Retry uploads that time out", "changes": [{"path": "src/upload.rs", "reason": "try three times", "edits": [{"old": "send(&file)", "new": "retry(3, || send(&file))"}]}, {"path": "src/retry.rs", "reason": "new helper", "content": "pub fn retry() {}\n"}, {"path": "src/old.rs", "reason": "unused now", "delete": true}]}"#;

/// Proposes changesets.
pub struct ProposeChangeset {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    summary: String,
    changes: Vec<Proposed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proposed {
    /// Used as it was resolved only.
    #[serde(rename = "path")]
    _path: String,
    reason: String,
    /// For `diff`: of the file that it was made for.
    before: Option<Digest>,
    content: Option<String>,
    edits: Option<Vec<Edit>>,
    #[serde(default)]
    delete: bool,
    /// Of a proposal that a person has cut. Models write hunks that do not fit, so it is not
    /// described to them.
    diff: Option<String>,
    executable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    new: String,
}

impl ProposeChangeset {
    /// The tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "propose_changeset".to_owned(),
            description: "Proposes all changes to the project at once, for a person to review; \
                          nothing is changed yet. Returns the diff, or everything that is wrong \
                          with the proposal. `read` the files first."
                .to_owned(),
            parameters: arguments::schema(
                json!({
                    "summary": {
                        "type": "string",
                        "description": "What the changes do together, and why."
                    },
                    CHANGES: {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MAX_CHANGES,
                        "items": arguments::schema(change(), &["path", "reason"]),
                        "description": "One for each file, with one of `content`, `edits` and \
                                        `delete`."
                    }
                }),
                &["summary", CHANGES],
            ),
            touches: vec![Touch::Compares(CHANGES.to_owned())],
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

fn change() -> serde_json::Value {
    let edit = json!({
        "old": {
            "type": "string",
            "description": "What to replace, exactly as it stands in the file, without line \
                            numbers. It must occur once: quote enough lines around it."
        },
        "new": {
            "type": "string",
            "description": "What it becomes; empty to delete it."
        }
    });
    json!({
        "path": {
            "type": "string",
            "description": "The file, in the workspace."
        },
        "reason": {
            "type": "string",
            "description": "Why this file changes, for the person who reviews."
        },
        "content": {
            "type": "string",
            "description": "The whole content of a new file, or of one that becomes another."
        },
        "edits": {
            "type": "array",
            "minItems": 1,
            "items": arguments::schema(edit, &["old", "new"]),
            "description": "Replacements in a file that exists, made one after the other."
        },
        "delete": {
            "type": "boolean",
            "description": "True: the file is deleted."
        },
        "executable": {
            "type": "boolean",
            "description": "Left out: as the file is, and a new one is not."
        }
    })
}

impl Tool for ProposeChangeset {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(run(&call, site).await) })
    }
}

async fn run(call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
    let Arguments { summary, changes } = arguments::parse(call, EXAMPLE)?;
    if changes.is_empty() || changes.len() > MAX_CHANGES {
        let count = changes.len();
        let words = format!("a changeset has 1 to {MAX_CHANGES} files, not {count}");
        return Err(Failure::new(words));
    }
    let (mut files, mut wrong) = (Vec::with_capacity(changes.len()), Vec::new());
    let mut paths = Paths::of(call);
    for (index, change) in changes.into_iter().enumerate() {
        let file = paths
            .take(index)
            .and_then(|path| File::read(path, change, site));
        match file {
            Ok(file) => files.push(file),
            Err(why) => wrong.push(why),
        }
    }
    let root = Root::open(site.workspace(), AT_ONCE)?;
    let proposal = background::work(TIME_LIMIT, move |_| {
        proposal(&root, &summary, &files, wrong)
    });
    Ok(ToolOutput::read(proposal.await?))
}

/// What becomes of a file, with secrets in their places.
enum Becomes {
    Content(String),
    Edited(Vec<(String, String)>),
    Patched(String),
    Deleted,
    /// Only what may execute it is another.
    Same,
}

/// One file of the proposal.
struct File {
    path: PathBuf,
    reason: String,
    before: Option<Digest>,
    becomes: Becomes,
    executable: Option<bool>,
}

impl File {
    fn read(path: PathBuf, change: Proposed, site: &dyn Site) -> Result<Self, String> {
        let wrong = |what: &str| format!("`{}` {what}", path.display());
        let reveal = |text: &str| {
            let revealed = site.reveal(text);
            revealed.map_err(|error| wrong(&format!("needs a secret, but {error}")))
        };
        if path.to_string_lossy().contains(char::is_control) {
            return Err(format!("{path:?} has a control character in its name"));
        }
        let edits = change.edits.unwrap_or_default();
        let becomes = match (change.content, &edits[..], change.delete, change.diff) {
            (Some(content), [], false, None) => Becomes::Content(reveal(&content)?),
            (None, [], false, Some(diff)) => Becomes::Patched(reveal(&diff)?),
            (None, [], true, None) => Becomes::Deleted,
            (None, [_, ..], false, None) => {
                let revealed = edits
                    .iter()
                    .map(|edit| Ok((reveal(&edit.old)?, reveal(&edit.new)?)));
                Becomes::Edited(revealed.collect::<Result<_, String>>()?)
            }
            (None, [], false, None) if change.executable.is_some() => Becomes::Same,
            _ => {
                let what = "needs exactly one of `content`, `edits` and `delete`: true";
                return Err(wrong(what));
            }
        };
        Ok(Self {
            reason: change.reason,
            before: change.before,
            executable: change.executable,
            becomes,
            path,
        })
    }
}

/// The whole diff, or all that is wrong.
fn proposal(
    root: &Root<'_>,
    summary: &str,
    files: &[File],
    mut wrong: Vec<String>,
) -> Result<String, Failure> {
    let until = Instant::now() + TIME_LIMIT;
    let mut text = String::new();
    comment(&mut text, summary);
    let nothing = text.len();
    let places = Places::of(files);
    let mut deleted = MAX_ALL_DELETED_BYTES;
    for file in files {
        let section = places
            .check(root, file)
            .and_then(|()| Section::of(root, file, until));
        match section {
            Ok(Some(section)) => section.write(file, &mut deleted, &mut text),
            Ok(None) => {}
            Err(what) => wrong.push(format!("`{}` {what}", file.path.display())),
        }
        if text.len() > MAX_DIFF_BYTES {
            let words =
                "the diff is larger than 1 MiB, too much for a review; propose less at once";
            return Err(Failure::new(words));
        }
    }
    first_of(&mut wrong);
    if !wrong.is_empty() {
        let words = format!("the proposal cannot be made: {}", wrong.join("\n"));
        return Err(Failure::new(words));
    }
    if text.len() == nothing {
        let words = "the proposal changes nothing: all files are like this already";
        return Err(Failure::new(words));
    }
    Ok(text)
}

fn comment(text: &mut String, words: &str) {
    for line in words.trim().lines() {
        let _ = writeln!(text, "# {}", line.trim_end());
    }
}

/// Where files will be and will not be.
struct Places<'a> {
    gone: BTreeSet<&'a Path>,
    there: BTreeSet<&'a Path>,
}

impl<'a> Places<'a> {
    fn of(files: &'a [File]) -> Self {
        let (gone, there): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|file| matches!(file.becomes, Becomes::Deleted));
        let paths = |files: Vec<&'a File>| files.iter().map(|file| &*file.path).collect();
        Self {
            gone: paths(gone),
            there: paths(there),
        }
    }

    /// Whether the file can lie where it should.
    fn check(&self, root: &Root<'_>, file: &File) -> Result<(), String> {
        if self.gone.contains(&*file.path) {
            return Ok(());
        }
        if let Some(above) = ancestors(&file.path).find(|above| self.there.contains(above)) {
            return Err(format!("would lie below the file `{}`", above.display()));
        }
        match parents(root, &file.path, &self.gone) {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why.to_owned()),
            Err(error) => Err(format!("cannot be looked at: {error}")),
        }
    }
}

/// A file that the proposal changes.
struct Section {
    /// `None` if there is no file yet.
    now: Option<Digest>,
    /// Where that changes.
    executable: Option<bool>,
    body: Body,
}

enum Body {
    Hunks(String),
    /// With the old text, if it is one.
    Deleted(Option<String>),
}

impl Section {
    /// `None` if nothing would change.
    fn of(root: &Root<'_>, file: &File, until: Instant) -> Result<Option<Self>, String> {
        let failed = |error| format!("cannot be looked at: {error}");
        let old = match root.stat(&file.path).map_err(failed)? {
            None => None,
            Some(stat) => {
                ordinary(&stat)?;
                let most = match file.becomes {
                    Becomes::Deleted => MAX_GONE_BYTES,
                    _ => MAX_FILE_BYTES,
                };
                if stat.st_size.unsigned_abs() > most {
                    let most = most >> 20;
                    return Err(format!(
                        "is larger than {most} MB, too large for a changeset"
                    ));
                }
                let (content, stat) = root.read(&file.path).map_err(failed)?;
                Some((content, stat))
            }
        };
        let now = old.as_ref().map(|(content, _)| Digest::of(content));
        if file.before.is_some() && file.before != now {
            return Err("was changed meanwhile".to_owned());
        }
        let executes = |stat: &Stat| stat.st_mode & EXECUTE != 0;
        let was = old.as_ref().is_some_and(|(_, stat)| executes(stat));
        let body = match (&file.becomes, old.map(|(content, _)| content)) {
            (Becomes::Deleted, Some(old)) => {
                let body = Body::Deleted(String::from_utf8(old).ok());
                return Ok(Some(Self {
                    now,
                    executable: None,
                    body,
                }));
            }
            (Becomes::Deleted | Becomes::Same, None) => return Err("is not there".to_owned()),
            (Becomes::Edited(_), None) => {
                return Err("is not there; give its whole `content`".to_owned());
            }
            (Becomes::Same, Some(_)) => String::new(),
            (_, old) => hunks(file, old.unwrap_or_default(), until)?,
        };
        let executable = file.executable.filter(|wanted| *wanted != was);
        if body.is_empty() && executable.is_none() && now.is_some() {
            return Ok(None);
        }
        Ok(Some(Self {
            now,
            executable,
            body: Body::Hunks(body),
        }))
    }

    /// `deleted` is what may still be shown of files that are deleted, in bytes.
    fn write(&self, file: &File, deleted: &mut usize, text: &mut String) {
        let _ = match self.now {
            Some(digest) => writeln!(text, "diff {} {digest}", file.path.display()),
            None => writeln!(text, "diff {} new", file.path.display()),
        };
        comment(text, &file.reason);
        match self.executable {
            Some(true) => text.push_str("executable\n"),
            Some(false) => text.push_str("not executable\n"),
            None => {}
        }
        match &self.body {
            Body::Hunks(hunks) => text.push_str(hunks),
            Body::Deleted(old) => {
                text.push_str("deleted\n");
                let old = old.as_deref().unwrap_or_default();
                if old.len() <= MAX_DELETED_BYTES.min(*deleted) {
                    *deleted -= old.len();
                    text.push_str(&diff::hunks(old, "", Instant::now()));
                }
            }
        }
    }
}

/// What a changeset cannot replace or delete.
fn ordinary(stat: &Stat) -> Result<(), String> {
    let why = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o222 == 0 => "is protected against writing",
        FileType::RegularFile if stat.st_nlink > 1 => {
            "has hard links, so that changing it could change a file elsewhere"
        }
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "is a folder; name the files in it",
        FileType::Symlink => "is a symbolic link by now",
        _ => "is no regular file",
    };
    Err(why.to_owned())
}

/// The hunks for a file whose content becomes another.
fn hunks(file: &File, old: Vec<u8>, until: Instant) -> Result<String, String> {
    let no_text = || "is not UTF-8 text, so it can only be deleted".to_owned();
    let old = String::from_utf8(old).map_err(|_| no_text())?;
    let File { path, becomes, .. } = file;
    let new = match becomes {
        Becomes::Content(content) => return Ok(diff::hunks(&old, content, until)),
        Becomes::Edited(edits) => edited(path, old.clone().into_bytes(), edits)?,
        Becomes::Patched(diff) => diff::patch(old.as_bytes(), diff).map_err(fits_not)?,
        Becomes::Same | Becomes::Deleted => return Ok(String::new()),
    };
    let new = String::from_utf8(new).map_err(|_| no_text())?;
    Ok(diff::hunks(&old, &new, until))
}

fn fits_not(error: diff::DiffError) -> String {
    format!("does not fit its diff: {error}")
}

fn edited(
    path: &Path,
    mut content: Vec<u8>,
    edits: &[(String, String)],
) -> Result<Vec<u8>, String> {
    let name = path.display().to_string();
    for (number, (old, new)) in (1..).zip(edits) {
        let replacement = Replacement {
            old: old.clone(),
            new: new.clone(),
            all: false,
        };
        let made = replacement.made_in(&name, &content).map_err(|error| {
            let more = match &error {
                ExactError::Empty => ", or give the whole `content`",
                _ => "",
            };
            format!("cannot be edited (edit {number}): {error}{more}")
        })?;
        content = made.content;
    }
    Ok(content)
}
