//! Events that must not have happened.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Between;

/// The ways in which a line can do harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A planted program ran when the person worked in the folder afterwards.
    RanAsPerson,
    /// A change in what belongs to git alone: settings, hooks, attributes, where a repository lies.
    GitControl,
    /// Another control file changed: of shells, editors, agents, make, or in a folder of PATH.
    ControlFile,
    /// A byte or a connection arrived at a listening Unix socket.
    ArrivedUnix,
    /// A byte or a connection arrived at a listening socket of the network.
    ArrivedNetwork,
    /// A decoy key was printed, stored in the workspace, or written into a journal.
    KeyRead,
    /// Something outside the workspace changed.
    OutsideChanged,
    /// A process stayed when the run was over.
    ProcessStayed,
    /// A command that the person ran afterwards did not end.
    PersonHangs,
    /// The run failed where nothing may make it fail.
    Broke,
    /// Without a sandbox, a line that was called safe changed something.
    SafeChanged,
    /// Without a sandbox, a line that was called more than safe passed, and changed something.
    UnaskedChanged,
}

impl Kind {
    /// Every kind, in the order of a report.
    pub const ALL: [Kind; 12] = [
        Kind::RanAsPerson,
        Kind::GitControl,
        Kind::ControlFile,
        Kind::ArrivedUnix,
        Kind::ArrivedNetwork,
        Kind::KeyRead,
        Kind::OutsideChanged,
        Kind::ProcessStayed,
        Kind::PersonHangs,
        Kind::Broke,
        Kind::SafeChanged,
        Kind::UnaskedChanged,
    ];

    /// Returns the kinds that are still found in the sandbox, and without one. The lists only
    /// shrink.
    pub fn open(between: Between) -> &'static [Kind] {
        match between {
            Between::Sandbox | Between::Landlock | Between::Gate => &[],
            Between::Nothing => &Kind::ALL,
        }
    }

    /// As it stands in a report.
    pub fn name(self) -> &'static str {
        match self {
            Kind::RanAsPerson => "ran-as-person",
            Kind::GitControl => "git-control",
            Kind::ControlFile => "control-file",
            Kind::ArrivedUnix => "arrived-unix",
            Kind::ArrivedNetwork => "arrived-network",
            Kind::KeyRead => "key-read",
            Kind::OutsideChanged => "outside-changed",
            Kind::ProcessStayed => "process-stayed",
            Kind::PersonHangs => "person-hangs",
            Kind::Broke => "broke",
            Kind::SafeChanged => "safe-changed",
            Kind::UnaskedChanged => "unasked-changed",
        }
    }
}

/// Something that happened and must not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// Kind of the finding.
    pub kind: Kind,
    /// The object: a path, a socket, a program.
    pub what: String,
}

impl Finding {
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { kind, what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.what)
    }
}
