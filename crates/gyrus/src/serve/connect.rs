//! `gyrus --connect SERVER COMMAND …`: the command is carried out by a process of the server's, on
//! its machine, and what it prints comes here.

use std::{
    env,
    ffi::OsString,
    io::{Read as _, Write as _, stdin},
    process::ExitCode,
};

use gyrus_surfaces::{console::put, output, terminal};

use super::client::ServerLocation;
use crate::{Gyrus, drive, failure::Failure};

/// The flag `--connect`, which may stand anywhere among those of the command.
const FLAG: &str = "--connect";

/// Maximum number of bytes of standard input that are sent along.
const MAX_STDIN: u64 = 1 << 20;

/// Carries out this process's command line at the server that it names; `None` if it names none.
pub(crate) fn elsewhere(gyrus: &Gyrus) -> Option<Result<ExitCode, Failure>> {
    let mut words: Vec<_> = env::args_os().skip(1).collect();
    let server = take_server(&mut words)?;
    let arguments = words.into_iter().map(|word| word.into_string().ok());
    let arguments: Option<Vec<String>> = arguments.collect();
    let arguments = arguments.ok_or_else(|| Failure::usage("a word is not valid UTF-8"));
    Some(server.and_then(|server| at(gyrus, &server, &arguments?)))
}

/// Removes the flag and its server from the words of a command line. What follows `--`, and a
/// command line for the sandbox, are words of their own.
fn take_server(words: &mut Vec<OsString>) -> Option<Result<String, Failure>> {
    if words.first()? == "sandbox" {
        return None;
    }
    let flags = words.split(|word| word == "--").next()?;
    let index = flags.iter().position(|word| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(FLAG));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    let flag = words.remove(index).into_string().ok()?;
    if let Some(server) = flag.strip_prefix(FLAG)?.strip_prefix('=') {
        return Some(Ok(server.to_owned()));
    }
    let is_there = index < words.len();
    let server = is_there.then(|| words.remove(index).into_string().ok());
    Some(server.flatten().ok_or_else(|| {
        Failure::usage("`--connect` needs the address of a server after it")
            .hint("for example: gyrus --connect http://127.0.0.1:7717 runs list")
    }))
}

fn at(gyrus: &Gyrus, server: &str, arguments: &[String]) -> Result<ExitCode, Failure> {
    if arguments.is_empty() {
        return Err(Failure::usage("there is no command for the server")
            .hint("for example: gyrus --connect http://127.0.0.1:7717 runs list"));
    }
    let server = ServerLocation::named(server, gyrus.environment.token.clone())?;
    let mut text = String::new();
    // What is typed at this terminal cannot be read there.
    if !terminal::can_ask() && arguments.iter().any(|word| word == "-") {
        stdin().lock().take(MAX_STDIN).read_to_string(&mut text)?;
    }
    let mut out = output::standard();
    let code = drive::wait_for(server.command(arguments, &text, |is_answer, text| {
        if is_answer {
            if out.is_terminal() {
                write!(out, "{text}")?;
            } else {
                out.raw().write_all(text.as_bytes())?;
            }
            Ok(out.flush()?)
        } else {
            put(text).map_err(Failure::from)
        }
    }))?;
    let code = u8::try_from(code?).unwrap_or(1);
    Ok(ExitCode::from(code))
}
