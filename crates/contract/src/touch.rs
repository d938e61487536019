//! Touches: what a call of a tool may read, change or start, as its description declares it.
//!
//! A new kind of touch is added here, and in the gate, which resolves and weighs it.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// An effect of a call on something that an argument names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// Reads the file or folder at the path in this argument.
    Reads(String),
    /// Creates or changes the file at the path in this argument.
    Writes(String),
    /// Creates, changes or deletes files: this argument is a list of objects, each with a `path`,
    /// and with a `content` or a `diff` unless the file is deleted. Their resolved paths are named
    /// by [`path_in_list`].
    Changes(String),
    /// Reads the files of the workspace that a list as in [`Touch::Changes`] would change, without
    /// changing any.
    Compares(String),
    /// Starts processes, with this argument as the command line. Nothing is started when it is
    /// missing and the schema does not require it.
    Starts(String),
    /// Starts one program with the person's own rights, outside of the sandbox and without a shell.
    /// These arguments are its name or absolute path, and the list of its own arguments.
    RunsAsUser {
        /// The argument that names the program.
        program: String,
        /// The argument that lists the program's own arguments.
        arguments: String,
    },
    /// Connects to the host of the URL in this argument and reads from it.
    Connects(String),
    /// Sends the query in an argument to a search service that the person configured, and reads its
    /// results.
    Searches {
        /// The argument with the query.
        query: String,
        /// The host of the service.
        host: String,
    },
    /// Reads or changes the clipboard of the person's desktop, by a helper program.
    Clipboard,
    /// Reads notes of the person's memory.
    Recalls,
    /// Writes a note of the person's memory, which keeps every earlier version.
    Remembers,
    /// Makes an input on a page of the screen.
    Screen,
    /// Uses the programs of a desktop, which may change files of the workspace.
    Desktop,
    /// Runs the script in this argument in the page of the screen. For checks that a person
    /// typed: no model is offered such a tool.
    Evaluates(String),
    /// Sends to the judge at the URL in this argument, and reads what it says. For a judge that a
    /// person typed: no model is offered such a tool.
    Submits(String),
    /// Asks a person the question in this argument; the answer's words are the result.
    Asks(String),
    /// Asks a person to take the screen over, for the reason in this argument; their words are the
    /// result.
    HandsOver(String),
    /// Calls a tool of a server that is not part of gyrus; its further effects are not known here.
    Serves(Service),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MayChange {
    Nothing,
    /// Things other than files of the workspace.
    Outside,
    Workspace,
}

/// An argument with a path, or with a list of objects with paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathArgument<'a> {
    pub name: &'a str,
    /// Whether the argument is a list, whose paths [`path_in_list`] names.
    pub is_list: bool,
    /// Whether the files are changed, not only read.
    pub is_changed: bool,
}

impl Touch {
    /// Returns a phrase for people, and what the touch may change.
    fn meaning(&self) -> (&'static str, MayChange) {
        use MayChange::{Nothing, Outside, Workspace};
        match self {
            Touch::Reads(_) => ("reads files", Nothing),
            Touch::Writes(_) => ("writes files", Workspace),
            Touch::Changes(_) => ("changes files, all or none", Workspace),
            Touch::Compares(_) => ("reads the files that it would change", Nothing),
            Touch::Starts(_) => ("starts processes", Workspace),
            Touch::RunsAsUser { .. } => ("starts programs with your own rights", Workspace),
            Touch::Connects(_) => ("connects to a host", Nothing),
            Touch::Searches { .. } => ("asks a search service", Nothing),
            Touch::Clipboard => ("uses the clipboard", Outside),
            Touch::Recalls => ("reads your memory", Nothing),
            Touch::Remembers => ("writes into your memory", Outside),
            Touch::Screen => ("uses the screen", Outside),
            Touch::Desktop => ("uses programs on a desktop", Workspace),
            Touch::Evaluates(_) => ("runs a check that you typed in the page", Outside),
            Touch::Submits(_) => ("submits to a judge that you named", Outside),
            Touch::Asks(_) => ("asks you", Nothing),
            Touch::HandsOver(_) => ("asks you to take over the browser", Nothing),
            Touch::Serves(service) => {
                let may_change = match service.reach {
                    Reach::Elsewhere => Outside,
                    Reach::Workspace | Reach::Hosts | Reach::Everything => Workspace,
                };
                ("asks a server; what that does is not known", may_change)
            }
        }
    }

    /// Returns a description for a person, as a phrase that follows the tool's name.
    pub fn in_words(&self) -> &'static str {
        self.meaning().0
    }

    /// Whether the call may change anything, in the workspace or elsewhere.
    pub fn changes_world(&self) -> bool {
        self.meaning().1 != MayChange::Nothing
    }

    /// Whether the call may change files in the workspace.
    pub fn changes_workspace(&self) -> bool {
        self.meaning().1 == MayChange::Workspace
    }

    /// Whether files in the workspace may change without a record by which they can be restored,
    /// where there are no snapshots: a server changes them at any time, and a program with the
    /// person's rights can change them from anywhere.
    pub fn changes_unrecorded(&self) -> bool {
        let escapes = self.service().is_some() || self.program().is_some();
        escapes && self.changes_workspace()
    }

    /// Whether the call starts processes, which need a keeper.
    pub fn starts_processes(&self) -> bool {
        match self {
            Touch::Starts(_) | Touch::RunsAsUser { .. } | Touch::Clipboard => true,
            Touch::Reads(_)
            | Touch::Writes(_)
            | Touch::Changes(_)
            | Touch::Compares(_)
            | Touch::Connects(_)
            | Touch::Searches { .. }
            | Touch::Recalls
            | Touch::Remembers
            | Touch::Screen
            | Touch::Desktop
            | Touch::Evaluates(_)
            | Touch::Submits(_)
            | Touch::Asks(_)
            | Touch::HandsOver(_)
            | Touch::Serves(_) => false,
        }
    }

    /// Whether the call is an input to a screen, whose effect is measured before it is made.
    pub fn is_screen_input(&self) -> bool {
        matches!(self, Touch::Screen | Touch::Desktop)
    }

    /// Whether the tool is only for texts that a person typed, and is never offered to a model.
    pub fn is_for_person_only(&self) -> bool {
        matches!(self, Touch::Evaluates(_) | Touch::Submits(_))
    }

    /// Returns the argument with the paths of files, if there is one.
    pub fn paths(&self) -> Option<PathArgument<'_>> {
        let (name, is_list, is_changed) = match self {
            Touch::Reads(name) => (name, false, false),
            Touch::Writes(name) => (name, false, true),
            Touch::Compares(name) => (name, true, false),
            Touch::Changes(name) => (name, true, true),
            Touch::Starts(_)
            | Touch::RunsAsUser { .. }
            | Touch::Connects(_)
            | Touch::Searches { .. }
            | Touch::Clipboard
            | Touch::Recalls
            | Touch::Remembers
            | Touch::Screen
            | Touch::Desktop
            | Touch::Evaluates(_)
            | Touch::Submits(_)
            | Touch::Asks(_)
            | Touch::HandsOver(_)
            | Touch::Serves(_) => return None,
        };
        Some(PathArgument {
            name,
            is_list,
            is_changed,
        })
    }

    /// Whether the call reads from the network by a tool of its own.
    pub fn reads_network(&self) -> bool {
        matches!(self, Touch::Connects(_) | Touch::Searches { .. })
    }

    /// Returns the argument with a command line, if there is one.
    pub fn command_line(&self) -> Option<&str> {
        let Touch::Starts(argument) = self else {
            return None;
        };
        Some(argument)
    }

    /// Returns the arguments that name a program and list its arguments.
    pub fn program(&self) -> Option<(&str, &str)> {
        let Touch::RunsAsUser { program, arguments } = self else {
            return None;
        };
        Some((program, arguments))
    }

    /// Returns the argument with the address to read, if there is one.
    pub fn address(&self) -> Option<&str> {
        let Touch::Connects(argument) = self else {
            return None;
        };
        Some(argument)
    }

    /// Returns the argument with a query to a search service, if there is one.
    pub fn query(&self) -> Option<&str> {
        let Touch::Searches { query, .. } = self else {
            return None;
        };
        Some(query)
    }

    /// Returns the argument with a question to a person, if there is one.
    pub fn question(&self) -> Option<&str> {
        let (Touch::Asks(argument) | Touch::HandsOver(argument)) = self else {
            return None;
        };
        Some(argument)
    }

    /// Returns the tool of a server.
    pub fn service(&self) -> Option<&Service> {
        let Touch::Serves(service) = self else {
            return None;
        };
        Some(service)
    }
}

/// Returns the name of a path of [`Touch::Changes`] or [`Touch::Compares`] in
/// [`ResolvedCall::paths`](crate::ResolvedCall::paths).
pub fn path_in_list(argument: &str, index: usize) -> String {
    format!("{argument}/{index}")
}

/// A tool of a server that the person connected, or a project with their approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The server, as the configuration names it.
    pub server: String,
    /// The tool's name at the server: any text.
    pub tool: String,
    /// The access of the server.
    pub reach: Reach,
    /// Whether the server describes the tool as destructive. A statement that it is not is ignored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub destructive: bool,
    /// The digest of the server's whole description of the tool.
    pub definition: Digest,
    /// The digest of how the server is started or reached; `None` in runs of before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Digest>,
    /// The paths of a result's fields, as named by the server: names joined by dots, with `[]`
    /// after those of lists. Empty if it does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returns: Vec<String>,
}

/// The access of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Runs in the sandbox, without a network.
    Workspace,
    /// Runs in the sandbox, and reaches the hosts that the person named.
    Hosts,
    /// Runs on another machine or outside of gyrus's control, with unknown access.
    Elsewhere,
    /// Runs on this machine without a sandbox.
    Everything,
}
