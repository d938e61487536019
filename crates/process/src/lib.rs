//! Child processes of a run: the keeper that kills a command's whole process tree, the nursery
//! that keepers are forked from, and identities of processes that survive the reuse of numbers.
//!
//! This crate knows nothing of sandboxes: whoever builds one hands the keeper a function that
//! confines it.
