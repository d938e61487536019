//! The commands, and which of them this machine can run.

use std::process::{Command, Stdio};

const CORPUS: &str = include_str!("../../../gate/corpus/everyday.txt");

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

/// A line of the corpus.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) section: String,
    pub(crate) text: String,
    /// In the file, from 1.
    pub(crate) number: usize,
}

/// All lines, in the order of the file; what its head says about the format holds.
pub(crate) fn lines() -> Vec<Line> {
    let mut section = String::new();
    let mut lines = Vec::new();
    for (index, line) in CORPUS.lines().enumerate() {
        if line.trim().is_empty() || line == "#" || line.starts_with("# ") {
            continue;
        }
        let name = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = name.filter(|name| SECTIONS.iter().any(|(known, _)| known == name)) {
            section = name.to_owned();
            continue;
        }
        let text = match line.len() > 1 && line.starts_with('"') && line.ends_with('"') {
            true => serde_json::from_str(line).unwrap(),
            false => line.to_owned(),
        };
        lines.push(Line {
            section: section.clone(),
            text,
            number: index + 1,
        });
    }
    lines
}

/// What this machine lacks.
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
            let text = line.text.replace([';', '|', '(', ')', '\n'], " ");
            format!(" {text} ").contains(&format!(" {program} "))
        };
        self.sections.contains(&line.section.as_str())
            || self.programs.iter().any(|program| holds(program))
    }
}

fn is_there(program: &str) -> bool {
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
