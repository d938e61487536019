//! What a server is, before it is one: how it is started or reached.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use gyrus_contract::{Boxed, CommandOutcome, CommandSpec, KeeperError, Reach};

/// Characters of a server's name: it stands before those of every tool, of which providers take
/// 64.
const MAX_NAME: usize = 24;

/// Runs a server's process until it ends; dropping the future ends it with all that it started.
/// `TMPDIR` in its environment is [`Way::Process::pipes`], by whatever name the process sees that.
pub type RunServer =
    Arc<dyn Fn(CommandSpec) -> Boxed<'static, Result<CommandOutcome, KeeperError>> + Send + Sync>;

/// What the first bytes of a picture say of it; `None`: models take no such picture.
pub type ReadPicture = fn(&[u8]) -> Option<Picture>;

/// What a picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// `image/png`, `image/webp` or `image/jpeg`.
    pub media_type: &'static str,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// A server, as it was configured.
#[derive(Clone)]
pub struct Setup {
    /// Its name, see [`is_server_name`].
    pub name: String,
    /// How it is had.
    pub way: Way,
    /// What it can reach.
    pub reach: Reach,
    /// How long it may say nothing about a call.
    pub silence: Duration,
    /// How pictures in answers are looked at.
    pub pictures: ReadPicture,
}

impl Setup {
    /// That it was not ready within `limit`, in words.
    pub(crate) fn too_slow(&self, limit: Duration) -> String {
        let network = match self.reach {
            Reach::Workspace => {
                "; if it waits for the network: it has none, but for hosts that are \
                                 named for it"
            }
            Reach::Hosts | Reach::Elsewhere | Reach::Everything => "",
        };
        format!("it was not ready within {} s{network}", limit.as_secs())
    }
}

/// How a server is had.
#[derive(Clone)]
pub enum Way {
    /// It is started, and spoken to over its standard input and output.
    Process {
        /// The program, absolute or on the `PATH` of `environment`.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its whole environment.
        environment: BTreeMap<String, String>,
        /// The folder that it starts in.
        folder: PathBuf,
        /// A folder of its own, where its pipes are laid.
        pipes: PathBuf,
        /// What runs it.
        run: RunServer,
    },
    /// It is somewhere, and spoken to by streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// What is sent along with everything; their values are secrets.
        headers: BTreeMap<String, String>,
    },
}

/// Whether a server can be called so: `a-z`, `0-9` and `-`, at most 24 of them.
pub fn is_server_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain)
}
