//! Properties that a durable agent runtime must hold, as tests that can fail.
//!
//! The one idea: a crash leaves a prefix of the journal and some state of the world, so every
//! crash can be made by planting that prefix into a fresh store and building that world. No
//! process is killed, nothing is timed, and every entry of every recording is a place to die.
//!
//! Reading order: [`world`] and [`script`] (what is acted on, who is asked), [`scenario`] (a task),
//! [`recording`] (prefixes), [`matrix`] (every crash).

pub mod world;
pub mod script;
pub mod sketch;
pub mod workflow;
pub mod scenario;
pub mod recording;
pub mod matrix;
pub mod subject;
pub mod properties;
pub mod ours;
