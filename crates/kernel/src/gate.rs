//! The smallest true gate: it looks up the paths that a call names and judges by them alone.
//!
//! It understands no commands, knows no sandbox and no undo. So every command is of high risk, and
//! nothing counts as contained except in a workspace that the person named as one that may be
//! lost. gyrus's own state is out of bounds in every mode.
//!
//! Looking and judging are apart: [`PlainGate`]'s `resolve` touches the file system, its `judge`
//! is pure. Between the two and the execution the world can still change; a tool therefore opens
//! the *real* path without following links. What a command or another process reaches by itself is
//! the sandbox's business, not this module's.

mod paths;
mod workspace;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gyrus_contract::{
    Decision, Gate, Judgement, Mode, ResolvedCall, ResolvedPath, Risk, ToolCall, ToolSpec, Touch,
    Unresolvable, Verdict,
};
use serde_json::{Map, Value};

use self::paths::{FileKind, real_path};
pub use self::workspace::{WorkspaceError, check_workspace, is_throwaway};

/// A gate that knows files, commands and gyrus's own state, and nothing else.
#[derive(Debug, Clone)]
pub struct PlainGate {
    state_home: PathBuf,
}

impl PlainGate {
    /// A gate that keeps every call away from `state_home`, an absolute path that need not exist
    /// yet.
    pub fn new(state_home: PathBuf) -> Self {
        let state_home = real_path(&state_home).unwrap_or(state_home);
        Self { state_home }
    }

    fn resolve_path(
        &self,
        given: &str,
        argument: &str,
        workspace: &Path,
        writes: bool,
    ) -> Result<ResolvedPath, Unresolvable> {
        let wrong = |what: String| Unresolvable {
            reason: format!("`{argument}`: {what}"),
        };
        if given == "~" || given.starts_with("~/") {
            return Err(wrong(format!(
                "`~` is not expanded; write the absolute path, or a path relative to the \
                 workspace {} (`./~` for a file of that name)",
                workspace.display()
            )));
        }
        let mut real = real_path(&workspace.join(given)).map_err(|e| wrong(e.to_string()))?;
        if let Some(below) = paths::below_same_folder(&real, &self.state_home) {
            // Reached by another name (a bind mount, another letter case): judged by its own.
            real = if below.as_os_str().is_empty() {
                self.state_home.clone()
            } else {
                self.state_home.join(below)
            };
        }
        match paths::kind(&real)
            .map_err(|e| wrong(format!("`{given}` cannot be looked at: {e}")))?
        {
            FileKind::Special => {
                return Err(wrong(format!(
                    "`{given}` is a pipe, socket or device; only files and folders can be named"
                )));
            }
            FileKind::Folder if writes => {
                return Err(wrong(format!(
                    "`{given}` is a folder; name the file to write"
                )));
            }
            FileKind::File { names } if writes && names > 1 => {
                return Err(wrong(format!(
                    "`{given}` is one of {names} hard links to the same file, so writing it could \
                     change a file elsewhere; write a new file instead"
                )));
            }
            FileKind::Folder | FileKind::File { .. } | FileKind::Missing => {}
        }
        let in_workspace = real.strip_prefix(workspace).ok().map(Path::to_path_buf);
        Ok(ResolvedPath {
            given: given.to_owned(),
            real,
            in_workspace,
        })
    }

    /// The risk of one touch of a resolved call, why, and whether it stays within the workspace.
    fn weigh(&self, touch: &Touch, call: &ResolvedCall) -> Weight {
        let (argument, writes) = match touch {
            Touch::Starts(_) => {
                return Weight::new(
                    Risk::High,
                    "runs a command; without a sandbox it can do anything you can",
                )
                .contained();
            }
            Touch::Connects(argument) => {
                let url = call.arguments[argument].as_str().unwrap_or_default();
                return Weight::new(Risk::High, format!("connects to {url}"));
            }
            Touch::Clipboard => {
                return Weight::new(Risk::High, "uses the clipboard of your desktop");
            }
            Touch::Asks(_) => return Weight::new(Risk::Safe, "asks you a question"),
            Touch::Reads(argument) => (argument, false),
            Touch::Writes(argument) => (argument, true),
        };
        let Some(path) = call.paths.get(argument) else {
            return Weight::new(
                Risk::High,
                format!("touches `{argument}`, which was not looked up"),
            );
        };
        if path.real.starts_with(&self.state_home) {
            return Weight::new(
                Risk::Critical,
                "touches gyrus's own state, which no run may see or change",
            )
            .forbidden();
        }
        let shown = path.real.display();
        match (&path.in_workspace, writes) {
            (Some(below), true) if has_git_part(below) => Weight::new(
                Risk::High,
                format!(
                    "writes {}, and git runs programs that such files name",
                    below.display()
                ),
            )
            .contained(),
            (Some(below), true) => Weight::new(
                Risk::Moderate,
                format!("writes {} in the workspace", below.display()),
            )
            .contained(),
            (Some(_), false) => {
                Weight::new(Risk::Safe, "reads inside the workspace and changes nothing")
                    .contained()
            }
            (None, true) => {
                Weight::new(Risk::High, format!("writes outside the workspace: {shown}"))
            }
            (None, false) if self.state_home.starts_with(&path.real) => Weight::new(
                Risk::Critical,
                format!("reads outside the workspace: {shown}, which holds gyrus's own state"),
            ),
            (None, false) => {
                Weight::new(Risk::High, format!("reads outside the workspace: {shown}"))
            }
        }
    }
}

impl Gate for PlainGate {
    fn resolve(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        workspace: &Path,
    ) -> Result<ResolvedCall, Unresolvable> {
        let arguments = object(&call.arguments)?;
        let workspace = real_path(workspace).map_err(|e| Unresolvable {
            reason: format!(
                "the workspace {} cannot be looked up: {e}",
                workspace.display()
            ),
        })?;
        let mut paths = BTreeMap::new();
        for touch in &spec.touches {
            match touch {
                Touch::Starts(argument) | Touch::Connects(argument) | Touch::Asks(argument) => {
                    text(&arguments, argument)?;
                }
                Touch::Clipboard => {}
                Touch::Reads(argument) | Touch::Writes(argument) => {
                    let writes = matches!(touch, Touch::Writes(_));
                    let given = text(&arguments, argument)?;
                    let resolved = self.resolve_path(given, argument, &workspace, writes)?;
                    paths.insert(argument.clone(), resolved);
                }
            }
        }
        Ok(ResolvedCall {
            tool: call.tool.clone(),
            arguments: Value::Object(arguments),
            paths,
        })
    }

    fn judge(&self, call: &ResolvedCall, spec: &ToolSpec, under: &Judgement) -> Verdict {
        let weights: Vec<_> = spec
            .touches
            .iter()
            .map(|touch| self.weigh(touch, call))
            .collect();
        let risk = weights
            .iter()
            .map(|weight| weight.risk)
            .max()
            .unwrap_or(Risk::Safe);
        let contained = under.throwaway && weights.iter().all(|weight| weight.contained);
        let forbidden = weights.iter().any(|weight| weight.forbidden);
        let mut reasons: Vec<_> = weights.into_iter().map(|weight| weight.reason).collect();
        if reasons.is_empty() {
            reasons.push("touches nothing outside the run".to_owned());
        }
        reasons.dedup();
        if under.exposed && risk >= Risk::High {
            reasons.push("the run has read text that nobody vouches for".to_owned());
        }
        let asks = |touch: &Touch| matches!(touch, Touch::Asks(_));
        let (decision, why) = if forbidden {
            (Decision::Deny, None)
        } else if spec.touches.iter().any(asks) {
            match under.mode {
                Mode::Never => (Decision::Deny, Some("mode `never` asks nobody".to_owned())),
                Mode::ReadOnly | Mode::Ask | Mode::Edits | Mode::Auto => (Decision::Ask, None),
            }
        } else {
            decide(risk, contained, under.mode)
        };
        reasons.extend(why);
        Verdict {
            risk,
            decision,
            reasons,
        }
    }
}

/// What one touch adds to a verdict.
struct Weight {
    risk: Risk,
    reason: String,
    /// A workspace that may be lost bounds the damage.
    contained: bool,
    /// Nobody can allow it.
    forbidden: bool,
}

impl Weight {
    fn new(risk: Risk, reason: impl Into<String>) -> Self {
        Self {
            risk,
            reason: reason.into(),
            contained: false,
            forbidden: false,
        }
    }

    fn contained(self) -> Self {
        Self {
            contained: true,
            ..self
        }
    }

    fn forbidden(self) -> Self {
        Self {
            forbidden: true,
            ..self
        }
    }
}

/// The table of modes, with what the mode itself adds to the reasons.
fn decide(risk: Risk, contained: bool, mode: Mode) -> (Decision, Option<String>) {
    let says = |words: &str| Some(format!("mode `{mode}` {words}"));
    match (mode, risk) {
        (_, Risk::Safe) => (Decision::Allow, None),
        (Mode::ReadOnly, _) => (Decision::Deny, says("allows only what changes nothing")),
        (Mode::Never, _) => (
            Decision::Deny,
            says("denies whatever a person would be asked about"),
        ),
        (Mode::Ask, _) => (Decision::Ask, says("asks before anything that is not safe")),
        (Mode::Edits | Mode::Auto, Risk::Moderate) => (Decision::Allow, None),
        (Mode::Edits, Risk::High) => (
            Decision::Ask,
            says("allows only plain changes of files in the workspace"),
        ),
        (Mode::Auto, Risk::High) if contained => (
            Decision::Allow,
            Some(
                "the workspace was named as one that may be lost, and counts as containment".into(),
            ),
        ),
        (Mode::Auto, Risk::High) => (Decision::Ask, says("asks for what nothing contains")),
        (Mode::Edits | Mode::Auto, Risk::Critical) => (
            Decision::Ask,
            Some("what is critical is asked every time".into()),
        ),
    }
}

/// Whether git reads its configuration or hooks below this path, in any letter case.
fn has_git_part(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
}

/// The arguments as an object. Some models send the object as a string.
fn object(arguments: &Value) -> Result<Map<String, Value>, Unresolvable> {
    let parsed = match arguments {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    parsed.ok_or_else(|| Unresolvable {
        reason: "the arguments must be one JSON object, such as {\"path\": \"notes.txt\"}".into(),
    })
}

/// The argument as a text that can name something.
fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, Unresolvable> {
    let wrong = |what: &str| {
        Err(Unresolvable {
            reason: format!("`{name}` {what}"),
        })
    };
    match arguments.get(name) {
        None => wrong("is missing; it must be a text"),
        Some(Value::String(text)) if text.trim().is_empty() => wrong("must not be empty"),
        Some(Value::String(text)) if text.contains('\0') => {
            wrong("contains a NUL character; leave it out")
        }
        Some(Value::String(text)) => Ok(text),
        Some(_) => wrong("must be a text in quotes"),
    }
}

#[cfg(test)]
mod tests;
