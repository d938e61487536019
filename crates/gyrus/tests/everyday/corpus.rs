//! The commands, and which of them this machine can run.

use std::process::{Command, Stdio};

pub(crate) use gyrus_lines::corpus::Command as Line;
use gyrus_lines::corpus::EVERYDAY;

/// Programs without which a section means nothing.
const SECTIONS: [(&str, &[&str]); 7] = [
    ("shell", &["bash"]),
    ("git", &["git"]),
    ("make", &["make", "cc"]),
    ("cargo", &["cargo", "rustc"]),
    ("python3", &["python3"]),
    ("node", &["node"]),
    ("npm", &["npm"]),
];

/// Programs that single lines need and a machine may lack.
const OPTIONAL: [&str; 14] = [
    "jq",
    "xxd",
    "file",
    "bzip2",
    "xz",
    "iconv",
    "column",
    "flock",
    "pgrep",
    "ps",
    "patch",
    "gcc",
    "pip",
    "cargo clippy",
];

/// All lines, in the order of the file.
pub(crate) fn lines() -> Vec<Line> {
    gyrus_lines::corpus::parse(EVERYDAY).unwrap()
}

/// Sections and programs that this machine lacks.
pub(crate) struct Missing {
    sections: Vec<&'static str>,
    programs: Vec<&'static str>,
}

impl Missing {
    pub(crate) fn look() -> Self {
        let lacks = |program: &&str| !is_there(program);
        Self {
            sections: SECTIONS
                .iter()
                .filter(|(_, needed)| needed.iter().any(lacks))
                .map(|(name, _)| *name)
                .collect(),
            programs: OPTIONAL.into_iter().filter(lacks).collect(),
        }
    }

    /// Whether the line needs something of it.
    pub(crate) fn keeps_from(&self, line: &Line) -> bool {
        let holds = |program: &str| {
            let text = line.line.replace([';', '|', '(', ')', '\n'], " ");
            format!(" {text} ").contains(&format!(" {program} "))
        };
        self.sections.contains(&line.section.as_str())
            || self.programs.iter().any(|program| holds(program))
    }
}

pub(crate) fn is_there(program: &str) -> bool {
    let script = match program.split_once(' ') {
        Some(_) => format!("{program} --version"),
        None => format!("command -v {program}"),
    };
    Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
