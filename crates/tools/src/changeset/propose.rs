//! The tool `propose_changeset`: shows a changeset as one diff that a person can review and cut.
//!
//! It changes nothing. Everything that would prevent the changeset from being applied is reported
//! here at once, because the proposing model can fix it.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use gyrus_contract::{
    Boxed, Cleared, Digest, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use gyrus_workspace::Root;
use serde::Deserialize;
use serde_json::json;

use super::{
    CHANGES, MAX_CHANGES,
    paths::Paths,
    proposal::{self, Becomes, File},
    secrets::Secrets,
};
use crate::{
    arguments, background,
    failure::{self, Failure},
};

/// Time limit for comparing old files with new ones.
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
    /// The raw path is not used; the resolved path of the call is.
    #[serde(rename = "path")]
    _path: String,
    reason: String,
    /// Digest of the file that `diff` was made for.
    before: Option<Digest>,
    content: Option<String>,
    edits: Option<Vec<Edit>>,
    delete: Option<bool>,
    /// Diff from a proposal that a person has cut. It is not described to models, because they
    /// write hunks that do not fit.
    diff: Option<String>,
    executable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    new: String,
}

impl Proposed {
    /// Returns the file with the values of its secrets. The error describes the invalid change.
    fn read(self, path: PathBuf, secrets: &mut Secrets, site: &dyn Site) -> Result<File, String> {
        let wrong = |what: &str| format!("`{}` {what}", path.display());
        let mut reveal = |text: &str| {
            let revealed = secrets.reveal(text, site);
            revealed.map_err(|error| wrong(&error.to_string()))
        };
        if path.to_string_lossy().contains(char::is_control) {
            return Err(format!("{path:?} has a control character in its name"));
        }
        let edits = self.edits.unwrap_or_default();
        let delete = self.delete == Some(true);
        let becomes = match (self.content, &edits[..], delete, self.diff) {
            (Some(content), [], false, None) => Becomes::Content(reveal(&content)?),
            (None, [], false, Some(diff)) => Becomes::Patched(reveal(&diff)?),
            (None, [], true, None) => Becomes::Deleted,
            (None, [_, ..], false, None) => {
                let revealed = edits
                    .iter()
                    .map(|edit| Ok((reveal(&edit.old)?, reveal(&edit.new)?)));
                Becomes::Edited(revealed.collect::<Result<_, String>>()?)
            }
            (None, [], false, None) if self.executable.is_some() => Becomes::Same,
            _ => {
                let what = "needs exactly one of `content`, `edits` and `delete`: true";
                return Err(wrong(what));
            }
        };
        Ok(File {
            reason: self.reason,
            before: self.before,
            executable: self.executable,
            becomes,
            path,
        })
    }
}

impl ProposeChangeset {
    /// Creates the tool.
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
    let mut secrets = Secrets::default();
    for (index, change) in changes.into_iter().enumerate() {
        let file = paths
            .take(index)
            .and_then(|path| change.read(path, &mut secrets, site));
        match file {
            Ok(file) => files.push(file),
            Err(why) => wrong.push(why),
        }
    }
    let root = Root::open(site.workspace())?;
    let until = Instant::now() + TIME_LIMIT;
    let diff = background::work(TIME_LIMIT, move |_| {
        proposal::diff(&root, &summary, &files, wrong, until)
    });
    match diff.await {
        Ok(diff) => Ok(ToolOutput::read(secrets.hide(&diff))),
        Err(wrong) => Err(Failure::new(secrets.hide(&wrong))),
    }
}
