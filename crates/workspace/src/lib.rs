//! The content of a workspace and how it changes: paths that no symbolic link can lead astray,
//! snapshots, change sets, applying them all or nothing, and taking them back.
//!
//! This crate knows nothing of runs, journals or approvals: contents go to and come from whatever
//! store the caller hands it.
