//! Small pieces of text handling that several crates need, each in one place.
//!
//! - `unseen`: the characters that a reader does not see.
//! - `shown`: writes a text so that everything in it is seen ([`visible`], [`readable`]), or as a
//!   quotation that cannot close its own marks ([`quote`]).
//! - `cut`: cuts to characters or bytes.
//! - `columns`: cuts and wraps what is shown in a terminal.
//! - `counted`: numbers with nouns that agree.
//! - `named`: whether a value stands as a whole in what a person typed.
//! - `slips`: whether a name is one that somebody typed a little differently.
//! - `links`: what a program may make a link of, wherever it stands in a text.
//! - `markup`: what programs leave of a text with entities, escapes and tags.
//! - `meant`: the known word that a misspelled one was meant to be.
//! - `tokens`: the estimated size of a text for a model.
//! - `time`: times and durations for people.
//! - `mistake`: mistakes in files that people wrote.
//! - `stars`: patterns with stars.
//! - `yaml`: the settings at the head of a file.
//!
//! Everything here is a pure function of its arguments. This crate stands on no other crate of the
//! workspace and knows nothing of runs, models or terminals.

mod unseen;
mod shown;
mod cut;
mod columns;
mod counted;
mod named;
mod slips;
mod links;
mod percent;
mod markup;
mod meant;
mod tokens;
mod time;
mod mistake;
mod stars;
mod yaml;

pub use columns::{STYLE_MARKS, clip, width, wrap, wrap_marked};
pub use counted::{counted, grouped, plural};
pub use cut::{first_bytes, first_chars, head_and_tail, shorten};
pub use links::{full_addresses, links, may_be_file};
pub use meant::{closest, closest_in};
pub use mistake::{FileMistake, file_mistake, line_of};
pub use named::{folded_name, is_named, is_number_named, number_in};
pub use percent::{percent_decoded, percent_encoded};
pub use shown::{escaped_json, one_line, quote, readable, unseen_when_reading, visible};
pub use slips::is_slip;
pub use stars::fits;
pub use time::{ago, check_http_date, now, on_the_clock, parse_duration, span, utc};
pub use tokens::tokens;
pub use unseen::{Unseen, ends_line, is_unseen, unseen, without_unseen};
pub use yaml::{Yaml, YamlNode, parse_yaml, split_front_matter};
