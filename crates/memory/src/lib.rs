//! The memory of runs: a folder of Markdown notes, its versions, and the search over it.
//!
//! The one idea: memory is files that a person can read, edit and delete with any program. What
//! gyrus needs besides (the log of changes, old versions, the index) lies in its own state folder;
//! the index can be deleted at any time.
//!
//! This crate never decides whether a run may write: its tools are called through the gate like all
//! others. It never trusts a text because of what it says: what a run wrote after it had read
//! untrusted text is marked, and stays marked when it is read again.

mod front_matter;
mod note;
mod watch;
mod kept;
mod vault;
mod history;
mod write;
mod embedding;
mod recall;
mod context;
mod run_notes;
mod tools;

pub use context::{MAX_CONTEXT_TOKENS, MAX_DIGEST_TOKENS, MemoryContext};
pub use embedding::Embedder;
pub use front_matter::FrontMatter;
pub use history::{Author, ChangeEnd, VaultChange};
pub use note::{Note, NotePiece};
pub use recall::{NoteExcerpt, Searcher};
pub use tools::tools;
pub use vault::{MAX_NOTE_BYTES, Vault, VaultError};
pub use write::NoteWrite;
