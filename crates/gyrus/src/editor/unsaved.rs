//! Tools that respect what a person has not saved: a file with such changes is not changed, because
//! one side's work would be lost.
//!
//! The files on disk stay what runs work on. The editor is only asked whether it shows something
//! else, after the call was judged; what it answers is compared and not kept.

use std::{path::Path, sync::Arc};

use gyrus_acp::EditorBuffers;
use gyrus_contract::{
    Aim, BoxedFuture, Cleared, Probe, ResolvedCall, Site, Tool, ToolCall, ToolOutput, ToolSpec,
    Unresolvable,
};
use serde_json::Value;

/// Tools that change files named in their arguments.
const CHANGING: [&str; 3] = ["edit", "write", "apply_changeset"];

/// Tools that read a file named in their arguments.
const READING: [&str; 1] = ["read"];

/// Wraps the tools that read or change files, so that they respect these buffers.
pub(super) fn respecting(
    tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    buffers: &EditorBuffers,
) -> Vec<Arc<dyn Tool>> {
    let mut respecting: Vec<Arc<dyn Tool>> = Vec::new();
    for tool in tools {
        let name = tool.spec().name.as_str();
        let use_of_file = if CHANGING.contains(&name) {
            UseOfFile::Changes
        } else if READING.contains(&name) {
            UseOfFile::Reads
        } else {
            continue;
        };
        let buffers = buffers.clone();
        respecting.push(Arc::new(UnsavedGuard {
            tool,
            buffers,
            use_of_file,
        }));
    }
    respecting
}

/// Returns the paths in a call of which the editor shows something else than the file on disk.
async fn unsaved(call: &ResolvedCall, buffers: &EditorBuffers) -> Vec<String> {
    let mut found = Vec::new();
    for path in call.paths.values() {
        if path.real.is_dir() {
            continue;
        }
        if let Some(shown) = buffers.text(&path.real).await
            && differs(&shown, &path.real)
        {
            found.push(format!("`{}`", path.given));
        }
    }
    found
}

/// Whether a buffer's text differs from that of a file. Ends of lines are the editor's own affair.
fn differs(shown: &str, path: &Path) -> bool {
    let plain = |text: &str| {
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        text.trim_end_matches('\n').to_owned()
    };
    match gyrus_process::read_regular_text(path) {
        Ok(text) => plain(shown) != plain(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => !shown.is_empty(),
        // What is not text is in no buffer.
        Err(_) => false,
    }
}

/// The way in which a tool uses the files named in its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UseOfFile {
    /// The tool changes the files, and is refused while one of them has unsaved changes.
    Changes,
    /// The tool reads the files, and its result mentions that one has unsaved changes.
    Reads,
}

/// A tool that asks the editor before it uses files.
struct UnsavedGuard {
    tool: Arc<dyn Tool>,
    buffers: EditorBuffers,
    use_of_file: UseOfFile,
}

impl UnsavedGuard {
    async fn carry_out(&self, call: Cleared<ResolvedCall>, site: &dyn Site) -> ToolOutput {
        let unsaved = unsaved(&call, &self.buffers).await;
        if unsaved.is_empty() {
            return self.tool.call(call, site).await;
        }
        match self.use_of_file {
            UseOfFile::Changes => ToolOutput::error(format!(
                "{} has changes in the person's editor that are not saved, so nothing was changed. \
                 Ask them to save or to discard these first, then read the file again.",
                unsaved.join(", ")
            )),
            UseOfFile::Reads => {
                let mut output = self.tool.call(call, site).await;
                output.text.push_str(
                    "\n[the person's editor has changes in this file that are not saved; they are \
                     not shown here]",
                );
                output
            }
        }
    }
}

impl Tool for UnsavedGuard {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> BoxedFuture<'a, ToolOutput> {
        Box::pin(self.carry_out(call, site))
    }

    fn check(&self, arguments: &Value) -> Result<(), Unresolvable> {
        self.tool.check(arguments)
    }

    fn preview(&self, call: &ResolvedCall, workspace: &Path) -> Option<String> {
        self.tool.preview(call, workspace)
    }

    fn aim<'a>(&'a self, call: &'a ToolCall) -> BoxedFuture<'a, Result<Option<Aim>, Unresolvable>> {
        self.tool.aim(call)
    }

    fn probe<'a>(&'a self, call: &'a ResolvedCall, site: &'a dyn Site) -> BoxedFuture<'a, Probe> {
        self.tool.probe(call, site)
    }
}
