//! What programs do with their arguments. One file a family; most are tables.

mod awk;
mod builtins;
mod code;
mod find;
mod git;
mod git_config;
mod git_settings;
mod network;
mod options;
mod reading;
mod sed;
mod system;
mod wrappers;
mod writers;

use super::{reader::Reader, words::Word};

pub(super) use git::environment as git_environment;

/// Folders whose programs are the system's.
const SYSTEM_FOLDERS: &[&str] = &[
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
];

/// A program with its arguments.
struct Call<'a> {
    name: &'a str,
    args: &'a [Word],
    part: &'a str,
}

/// Reads a simple command.
pub(super) fn read(reader: &mut Reader<'_>, words: &[Word], part: &str) {
    let Some((program, args)) = words.split_first() else {
        return;
    };
    let Some(written) = program.literal() else {
        return reader.hides(part, "which program it runs is known only when it runs");
    };
    let name = match written.rsplit_once('/') {
        None => written.as_str(),
        Some((_, "gyrus")) => "gyrus",
        Some((folder, name)) if SYSTEM_FOLDERS.contains(&folder) => name,
        Some(_) => return reader.runs_code(part, "it runs a program by its path"),
    };
    let call = Call { name, args, part };
    if name == "gyrus" {
        return match reading::asks_about_itself(&call) {
            true => {}
            false => reader.hides(part, "a run must not operate gyrus"),
        };
    }
    let families = [
        builtins::read,
        wrappers::read,
        reading::read,
        find::read,
        sed::read,
        awk::read,
        git::read,
        writers::read,
        code::read,
        network::read,
        system::read,
    ];
    if !families.iter().any(|family| family(reader, &call)) {
        code::secrets(reader, &call);
        reader.hides(part, "a program that is not known");
    }
}
