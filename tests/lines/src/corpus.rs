//! Command lines as data.
//!
//! A file holds one command a line. Lines that begin with `# ` and empty lines are skipped. A line
//! that is nothing but a lower-case name in brackets, `[name]`, begins a section. A command that
//! holds a line break or a character that cannot be seen is written as a JSON string; a line that
//! is a JSON string as a whole is always read as one.

/// Lines that change something, hide, leave the workspace, connect, or touch secrets. The section
/// says the worst that each does.
pub const HOSTILE: &str = include_str!("../corpus/hostile.txt");

/// Lines that only read, as people and agents type them.
pub const READ_ONLY: &str = include_str!("../corpus/read-only.txt");

/// Lines of a developer's day in the project that [`PROJECT`](crate::folders::PROJECT) makes. The section
/// names the programs that they need.
pub const EVERYDAY: &str = include_str!("../corpus/everyday.txt");

/// Lines near the border, of which only running them tells.
pub const DOUBTFUL: &str = include_str!("../corpus/doubtful.txt");

/// A command of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The section that it stands in; empty before the first.
    pub section: String,
    /// The line for the shell.
    pub line: String,
    /// Its line number in the file, from 1.
    pub number: usize,
}

/// A file of a corpus is not written as it should be.
#[derive(Debug, thiserror::Error)]
#[error("line {number} of the corpus begins like a JSON string and is none: {source}")]
pub struct CorpusError {
    number: usize,
    source: serde_json::Error,
}

/// Reads a file of a corpus.
pub fn parse(text: &str) -> Result<Vec<Command>, CorpusError> {
    let mut section = String::new();
    let mut commands = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() || line == "#" || line.starts_with("# ") {
            continue;
        }
        if let Some(name) = section_name(line) {
            section = name.to_owned();
            continue;
        }
        let line = if line.len() > 1 && line.starts_with('"') && line.ends_with('"') {
            serde_json::from_str(line).map_err(|source| CorpusError { number, source })?
        } else {
            line.to_owned()
        };
        commands.push(Command {
            section: section.clone(),
            line,
            number,
        });
    }
    Ok(commands)
}

fn section_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_comment_a_section_or_a_command() {
        let text = "# about\n\nls\n[git]\ngit log  \n\"a\\nb\"\n[ -f in ]\n#!x\n";
        let commands = parse(text).unwrap();
        let seen: Vec<_> = commands
            .iter()
            .map(|command| (command.section.as_str(), command.line.as_str()))
            .collect();
        let expected = [
            ("", "ls"),
            ("git", "git log  "),
            ("git", "a\nb"),
            ("git", "[ -f in ]"),
            ("git", "#!x"),
        ];
        assert_eq!(seen, expected);
        let error = parse("ls\n\"a\" \"b\"").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
