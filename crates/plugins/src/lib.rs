//! Plugins: packages with skills, agents and servers of tools, as npm and other agents know them.
//!
//! A plugin is read once, from files that were looked through already. Nothing in it is ever run to
//! find out what it is, and nothing that it says about itself gives it a right: what it brings is
//! shown to a person, who decides. Paths in it stay within it.
//!
//! Reading order: `plugin` (what a plugin brings), `manifest` (its files of JSON), `agent` and `server` (its parts beside skills),
//! `npm` (how a package is fetched by its name), `dependencies` (the packages that a server needs),
//! `installed` (what stands on disk, with the digest of all of it); then `import` (what other agents
//! have that gyrus can use).
//!
//! Not here: whether a person agreed to it, and where it lies. That is the program's.

mod manifest;
mod plugin;
mod agent;
mod server;
mod npm;
mod dependencies;
mod installed;
pub mod import;

pub use agent::PluginAgent;
pub use dependencies::Dependencies;
pub use installed::{InstalledError, InstalledPlugin, PACKAGE};
pub use manifest::PluginError;
pub use npm::{NpmError, NpmSpec};
pub use plugin::Plugin;
pub use server::PluginServer;
