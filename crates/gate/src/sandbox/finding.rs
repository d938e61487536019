//! The findings of trying to break a sandbox.

use std::io;

use serde::{Deserialize, Serialize};

use super::Promise;

/// An attempt, and whether the sandbox held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFinding {
    /// The tested promise.
    pub promise: Promise,
    pub attempt: String,
    /// Whether the attempt ended as promised.
    pub held: bool,
    /// The operating system's answer.
    pub detail: String,
}

/// Kind of sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// Namespaces, and all other means behind them.
    Namespaces,
    /// Landlock, a filter of system calls and a supervisor: namespaces are refused here.
    Landlock,
    /// No sandbox.
    Nothing,
}

#[derive(Default)]
pub(super) struct AttemptCollector(pub(super) Vec<SandboxFinding>);

impl AttemptCollector {
    /// Records an attempt that must fail.
    pub(super) fn forbidden<T, E: ToString>(
        &mut self,
        promise: Promise,
        what: &str,
        done: Result<T, E>,
    ) {
        let (held, detail) = match done {
            Ok(_) => (false, "it worked".to_owned()),
            Err(error) => (true, error.to_string()),
        };
        self.add(promise, what, held, detail);
    }

    /// Records an attempt that must succeed for the sandbox to be of use.
    pub(super) fn needed<T>(&mut self, promise: Promise, what: &str, done: io::Result<T>) {
        let (held, detail) = match done {
            Ok(_) => (true, "it worked".to_owned()),
            Err(error) => (false, error.to_string()),
        };
        self.add(promise, what, held, detail);
    }

    pub(super) fn add(&mut self, promise: Promise, what: &str, held: bool, detail: String) {
        self.0.push(SandboxFinding {
            promise,
            attempt: what.to_owned(),
            held,
            detail,
        });
    }
}
