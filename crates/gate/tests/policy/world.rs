//! A workspace and command lines as simple as a test of policies needs them.

use std::path::{Path, PathBuf};

use gyrus_contract::{CommandFact, CommandReading, CommandWord, Does, SimpleCommand};
use gyrus_gate::policy::{LineReader, PathUse, Policy, PolicyError, PolicyOrigin, SubjectPath};

pub(crate) const WORKSPACE: &str = "/srv/project";
pub(crate) const HOME: &str = "/srv/people/kim";

/// Parts end at `;` and `|`; `> path` writes, `http://host/` connects; a word with `$` or `*` is
/// open, `???` cannot be read.
pub(crate) fn read(line: &str) -> CommandReading {
    let mut reading = CommandReading::default();
    for part in line.split([';', '|']) {
        let mut words = Vec::new();
        let mut given = part.split_whitespace();
        while let Some(word) = given.next() {
            match word {
                ">" => {
                    let path = Path::new(WORKSPACE).join(given.next().unwrap_or_default());
                    reading.facts.push(fact(Does::Writes { path }));
                }
                "???" => reading.facts.push(fact(Does::Hides)),
                _ if word.contains(['$', '*']) => {
                    words.push(CommandWord::Open { open: word.into() })
                }
                _ => words.push(CommandWord::Literal(word.into())),
            }
            if let Some(rest) = word.strip_prefix("http://") {
                let hosts = rest.split('/').take(1).map(str::to_owned).collect();
                reading.facts.push(fact(Does::Connects { hosts }));
            }
        }
        if !words.is_empty() {
            reading.commands.push(SimpleCommand { words });
        }
    }
    reading
}

fn fact(does: Does) -> CommandFact {
    CommandFact {
        does,
        part: String::new(),
        why: String::new(),
    }
}

pub(crate) fn origin(may_loosen: bool) -> PolicyOrigin {
    PolicyOrigin {
        file: PathBuf::from("policy.toml"),
        may_loosen,
        home: Some(PathBuf::from(HOME)),
    }
}

pub(crate) fn parse(text: &str, may_loosen: bool) -> Result<Policy, PolicyError> {
    let lines = LineReader {
        workspace: Path::new(WORKSPACE),
        read: &read,
    };
    Policy::parse(text, &origin(may_loosen), lines)
}

/// A path as it would be looked up; relative ones lie in the workspace.
pub(crate) fn path(text: &str, used: PathUse) -> SubjectPath {
    let real = Path::new(WORKSPACE).join(text);
    SubjectPath::new(real, used, Path::new(WORKSPACE))
}
