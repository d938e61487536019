//! Reading command lines.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use gyrus_contract::{CommandReading, Does};
use gyrus_gate::shell::{ShellPlace, read};
use gyrus_lines::{
    corpus::{self, DOUBTFUL, EVERYDAY, HOSTILE, READ_ONLY},
    words,
};
use rustix::time::{ClockId, clock_gettime};

use super::number;
use crate::Target;

/// CPU time for reading one line of at most [`LONGEST`] bytes. It takes a few milliseconds; what
/// grows faster than the line takes seconds.
const MOST_TIME: Duration = Duration::from_millis(if cfg!(guided) { 500 } else { 4_000 });

const LONGEST: usize = 4096;

/// Number of copies of a line in one that must not take more than that many times as long, with
/// room for chance.
const TIMES: u32 = 16;
const ROOM: u32 = 6;

/// Text that may stand around a line (at `@`, or quoted at `%`) and never makes it milder.
const FRAMES: [&str; 16] = [
    "(\n@\n)",
    "{\n@\n}",
    "if true; then\n@\nfi",
    "if\n@\nthen :; fi",
    "while false; do\n@\ndone",
    "for i in 1 2; do\n@\ndone",
    "case x in x)\n@\n;; esac",
    "! {\n@\n}",
    "true && {\n@\n}",
    "{\n@\n} | cat",
    "{\n@\n} > /dev/null 2>&1",
    "echo \"$(\n@\n)\"",
    "bash -c %",
    "env bash -c %",
    "timeout 5 sh -c %",
    "find . -exec sh -c % \\;",
];

/// `shell`: whatever the line is, there is a reading; it takes time in proportion to the line; and
/// what a line does is never lost by what stands before, behind or around it.
#[derive(Debug)]
pub struct Line {
    place: ShellPlace,
}

impl Line {
    /// Lines that would run in a folder that does not exist, so that nothing but the line counts.
    pub fn new() -> Self {
        Self {
            place: ShellPlace {
                folder: PathBuf::from("/home/person/project"),
                home: Some(PathBuf::from("/home/person")),
            },
        }
    }

    fn timed(&self, line: &str) -> (CommandReading, Duration) {
        let start = cpu_time();
        let reading = read(line, &self.place);
        (reading, cpu_time().saturating_sub(start))
    }

    /// The least of some measurements, if the first is more than what is allowed.
    fn slower_than(&self, line: &str, most: Duration) -> Option<Duration> {
        let least = (0..4).map(|_| self.timed(line).1).min()?;
        (least > most).then_some(least)
    }

    fn grows_evenly(&self, line: &str, once: Duration) -> Result<(), String> {
        let many = format!("{line}\n").repeat(TIMES as usize);
        let most = once.max(Duration::from_micros(300)) * TIMES * ROOM;
        if self.timed(&many).1 <= most {
            return Ok(());
        }
        match self.slower_than(&many, most) {
            Some(took) => Err(format!(
                "{TIMES} times the line takes {took:?}, the line {once:?}"
            )),
            None => Ok(()),
        }
    }

    /// Whether the whole still does all of it, or is not understood.
    fn keeps(&self, all: &BTreeSet<&'static str>, whole: &str) -> Result<(), String> {
        let reading = read(whole, &self.place);
        let kept = kinds(&reading);
        if kept.contains("hides") || all.is_subset(&kept) {
            return Ok(());
        }
        Err(format!(
            "{:?} is lost in {whole:?}",
            all.difference(&kept).collect::<Vec<_>>()
        ))
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Target for Line {
    const NAME: &'static str = "shell";

    fn seeds(&self) -> Vec<Vec<u8>> {
        let corpora = [READ_ONLY, HOSTILE, EVERYDAY, DOUBTFUL];
        corpora
            .into_iter()
            .flat_map(|text| corpus::parse(text).expect("the tests read the corpora"))
            .map(|command| command.line.into_bytes())
            .filter(|line| line.len() <= LONGEST)
            .collect()
    }

    fn words(&self) -> Vec<Vec<u8>> {
        words().map(|word| word.as_bytes().to_vec()).collect()
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn check(&self, input: &[u8]) -> Result<(), String> {
        let line = &*String::from_utf8_lossy(input);
        let (reading, took) = self.timed(line);
        if took > MOST_TIME
            && let Some(took) = self.slower_than(line, MOST_TIME)
        {
            return Err(format!("reading it takes {took:?}"));
        }
        is_well_formed(&reading)?;
        let chance = number(input);
        if chance.is_multiple_of(64) && line.len() <= 1024 {
            self.grows_evenly(line, took)?;
        }
        let mut all = kinds(&reading);
        if all.contains("hides") {
            return Ok(());
        }
        for frame in [chance, chance / 16].map(|chance| FRAMES[chance % FRAMES.len()]) {
            let quoted = format!("'{}'", line.replace('\'', r"'\''"));
            self.keeps(&all, &frame.replace('@', line).replace('%', &quoted))?;
        }
        all.insert("writes");
        self.keeps(&all, &format!("{line}\ntouch FLAG"))?;
        self.keeps(&all, &format!("touch FLAG\n{line}"))?;
        // A comment or a here-document would take it in.
        if !line.contains(['#', '\n']) && !line.contains("<<") {
            self.keeps(&all, &format!("{line} ; touch FLAG"))?;
            self.keeps(&all, &format!("touch FLAG ; {line}"))?;
        }
        Ok(())
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("time that passed is not negative")
}

/// The kinds of what it does, other than reading.
fn kinds(reading: &CommandReading) -> BTreeSet<&'static str> {
    let kind = |does: &Does| match does {
        Does::Reads { .. } => None,
        Does::Writes { .. } => Some("writes"),
        Does::Removes { .. } => Some("removes"),
        Does::ChangesRepository => Some("changes the repository"),
        Does::RunsCode => Some("runs code"),
        Does::GetsPackages => Some("gets packages"),
        Does::Connects { .. } => Some("connects"),
        Does::UsesCredentials => Some("uses credentials"),
        Does::Publishes => Some("publishes"),
        Does::Destroys => Some("destroys"),
        Does::ChangesSystem => Some("changes the system"),
        Does::Hides => Some("hides"),
    };
    reading
        .facts
        .iter()
        .filter_map(|fact| kind(&fact.does))
        .collect()
}

/// Checks the properties that a judge of a reading relies on.
fn is_well_formed(reading: &CommandReading) -> Result<(), String> {
    for fact in &reading.facts {
        if let Does::Reads { path } | Does::Writes { path } | Does::Removes { path } = &fact.does {
            let plain = path.components().all(|part| {
                use std::path::Component::{Normal, RootDir};
                matches!(part, RootDir | Normal(_))
            });
            if !path.is_absolute() || !plain {
                return Err(format!("{path:?} is not absolute or has dots"));
            }
        }
        if fact.part.len() > 130 || fact.part.contains('\n') || fact.why.is_empty() {
            return Err(format!("{fact:?} cannot be shown"));
        }
    }
    let empty = |command: &gyrus_contract::SimpleCommand| command.words.is_empty();
    if reading.commands.len() > 2000 || reading.commands.iter().any(empty) {
        Err("too many commands, or one without a word".to_owned())
    } else {
        Ok(())
    }
}
