//! Tools of a run: the [`ToolRegistry`], and the tools that every run has.
//!
//! The one idea: a tool does exactly what the gate judged. It takes a `Cleared` call only, reaches
//! files only through the paths that were resolved before the verdict (see the module `place`),
//! connects only to addresses that it checked itself, and starts processes only through its site.
//! Its messages are for a model: bounded, and an error says what to do differently.
//!
//! Not here: whether a call is allowed, redaction, journals. No state is kept between calls.

mod registry;
mod failure;
mod place;
mod background;
mod walk;
mod read;
mod listing;
mod notebook;
mod picture;
mod list;
mod glob;
mod search;
mod documents;
mod search_docs;
mod rank_files;
mod exact;
mod edit;
mod likeness;
mod write;
mod replace;
mod terminal;
mod shell;
mod run_as_user;
mod changeset;
mod fetch;
mod judge;
mod web_search;
mod clipboard;
mod ask_person;
mod finish;

pub use ask_person::AskPerson;
pub use changeset::{ApplyChangeset, ProposeChangeset};
pub use clipboard::Clipboard;
pub use edit::Edit;
pub use fetch::Fetch;
pub use finish::Finish;
pub use glob::Glob;
pub use judge::PostToJudge;
pub use list::List;
pub use picture::PictureHeader;
pub use rank_files::RankFiles;
pub use read::Read;
pub use registry::{DuplicateTool, ToolRegistry};
pub use run_as_user::RunAsUser;
pub use search::Search;
pub use search_docs::SearchDocs;
pub use shell::Shell;
pub use web_search::{SearchProvider, WebSearch};
pub use write::Write;
