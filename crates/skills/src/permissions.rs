//! The tools and rights that a skill asks for, in gyrus's words or in those of other agents.
//!
//! A tool that is named narrows: a run that follows the skill has the named tools, and those that
//! read, ask and finish. A right widens what passes unasked, if a person granted it when the skill
//! was installed. What could never be granted is told, and has no effect.

use std::fmt;

const MAX_WORDS: usize = 100;

/// A right that a person can grant to a skill at its installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantableRight {
    /// Commands that begin with these words.
    Command(Vec<String>),
    /// Reading this file or folder, absolute or below `~/`, with all that is in it.
    Reads(String),
    /// Getting packages from the registries of packages.
    Registries,
    /// The clipboard of the desktop.
    Clipboard,
}

impl fmt::Display for GrantableRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantableRight::Command(words) => {
                write!(f, "commands that begin with `{}`", words.join(" "))
            }
            GrantableRight::Reads(path) => write!(f, "reading {path}"),
            GrantableRight::Registries => {
                f.write_str("getting packages from the package registries")
            }
            GrantableRight::Clipboard => f.write_str("using the clipboard of your desktop"),
        }
    }
}

/// One word in a skill that asks for a tool or a right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPermission {
    /// The word, as written in the skill.
    pub word: String,
    /// The tool that the word names, or a group: `screen`, `network`.
    pub tool: Option<String>,
    /// The right that the word asks for.
    pub widening: Option<GrantableRight>,
    /// The reason why a part of the word has no effect.
    pub no_effect: Option<&'static str>,
}

const CRITICAL: &str = "what is critical is asked about each time, whatever a skill says";
const OF_TEXT: &str = "a place that the text of a skill names counts as nobody's word";
const OUTSIDE: &str = "changes outside of the workspace are asked about each time";
const NOT_KNOWN: &str = "it is neither a tool nor a right that gyrus knows";
const NOT_PLAIN: &str = "a right names plain words or one absolute path";

impl SkillPermission {
    /// Parses words separated by spaces, commas or lines; those in brackets belong together.
    pub fn read(text: &str) -> Vec<Self> {
        let mut words = vec![String::new()];
        let mut depth = 0_u32;
        for letter in text.chars() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (letter.is_whitespace() || letter == ',') {
                words.push(String::new());
            } else if let Some(word) = words.last_mut() {
                word.push(letter);
            }
        }
        let words = words.into_iter().filter(|word| !word.is_empty());
        words.take(MAX_WORDS).map(Self::of).collect()
    }

    fn of(word: String) -> Self {
        let (name, inside) = match word.split_once('(') {
            Some((name, inside)) => (name, Some(inside.trim_end_matches(')').trim())),
            None => (word.as_str(), None),
        };
        let tool = tool_of(name);
        let inside = inside.filter(|inside| !matches!(*inside, "" | "*" | "**"));
        let asks = |widening| Self {
            word: word.clone(),
            tool: Some(tool.clone()),
            widening: Some(widening),
            no_effect: None,
        };
        let without = |tool, why| Self {
            word: word.clone(),
            tool,
            widening: None,
            no_effect: Some(why),
        };
        match (tool.as_str(), inside) {
            ("run_as_user" | "sudo" | "root", _) => without(None, CRITICAL),
            ("clipboard", _) => asks(GrantableRight::Clipboard),
            ("registries", _) => Self {
                tool: Some("shell".to_owned()),
                ..asks(GrantableRight::Registries)
            },
            ("shell", Some(inside)) => match command(inside) {
                Some(words) => asks(GrantableRight::Command(words)),
                None => without(Some(tool.clone()), NOT_PLAIN),
            },
            ("read" | "search" | "glob" | "list", Some(path)) => match outside(path) {
                Outside::No => Self::plain(&word, tool),
                Outside::At(path) => asks(GrantableRight::Reads(path)),
                Outside::Unclear => without(Some(tool.clone()), NOT_PLAIN),
            },
            ("write" | "edit", Some(path)) => match outside(path) {
                Outside::No => Self::plain(&word, tool),
                Outside::At(_) | Outside::Unclear => without(Some(tool.clone()), OUTSIDE),
            },
            ("fetch" | "network" | "screen", Some(_)) => without(Some(tool.clone()), OF_TEXT),
            (_, None) if is_tool_name(&tool) => Self::plain(&word, tool),
            _ => without(None, NOT_KNOWN),
        }
    }

    fn plain(word: &str, tool: String) -> Self {
        Self {
            word: word.to_owned(),
            tool: Some(tool),
            widening: None,
            no_effect: None,
        }
    }

    /// Returns the meaning of the word for a run that follows the skill.
    pub fn meaning(&self) -> String {
        let mut parts = Vec::new();
        if let Some(tool) = &self.tool {
            parts.push(format!("the run may use `{tool}`"));
        }
        if let Some(widening) = &self.widening {
            parts.push(format!("allowed without being asked about: {widening}"));
        }
        if let Some(why) = self.no_effect {
            parts.push(format!("has no effect otherwise: {why}"));
        }
        parts.join("; ")
    }
}

/// Returns gyrus's name of a tool, which other agents may call otherwise.
fn tool_of(name: &str) -> String {
    let plain = name.trim().to_lowercase();
    let own = match plain.as_str() {
        "bash" | "terminal" | "run" | "execute" => "shell",
        "multiedit" | "notebookedit" => "edit",
        "grep" => "search",
        "ls" => "list",
        "webfetch" => "fetch",
        "websearch" => "network",
        "browser" | "desktop" | "mouse" | "keyboard" => "screen",
        "packages" | "package-registries" => "registries",
        "askuserquestion" => "ask_person",
        other => other,
    };
    own.to_owned()
}

fn is_tool_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    !name.is_empty() && name.chars().all(plain)
}

/// Returns the words of `git add:*`, `git add *` or `git add`, if they are plain.
fn command(inside: &str) -> Option<Vec<String>> {
    let inside = inside.trim_end_matches('*').trim_end_matches([':', ' ']);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._/+=@-".contains(letter);
    let words: Vec<String> = inside.split_whitespace().map(str::to_owned).collect();
    let are_plain = words.iter().all(|word| word.chars().all(plain));
    (are_plain && (1..=8).contains(&words.len())).then_some(words)
}

/// The place of the path in a right, relative to the workspace.
enum Outside {
    /// In the workspace, where a path needs no right.
    No,
    At(String),
    Unclear,
}

fn outside(path: &str) -> Outside {
    let path = path.trim_end_matches('*').trim_end_matches('/');
    let path = path.strip_prefix("//").map_or_else(
        || path.to_owned(),
        |absolute| format!("/{}", absolute.trim_start_matches('/')),
    );
    let mut parts = path.split('/');
    if path.contains(['*', '?', '[', '{', '$', '\\']) || parts.any(|part| part == "..") {
        Outside::Unclear
    } else if path.starts_with('/') || path.starts_with("~/") {
        Outside::At(path)
    } else if path.starts_with('~') || path.is_empty() {
        // All of the home folder, or of the machine, is more than a skill needs.
        Outside::Unclear
    } else {
        Outside::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_agents_are_read() {
        let text = "Read, Bash(git log:*) Bash\nEdit(src/**) Write(/etc/x) Read(~/Notes/**) \
                    WebFetch(domain:example.com) run_as_user clipboard mcp__mail__send Bash(rm -rf $HOME) \
                    Read(~) Read(../x) registries network «x» shell(*)";
        let said: Vec<String> = SkillPermission::read(text)
            .iter()
            .map(|one| format!("{}: {}", one.word, one.meaning()))
            .collect();
        let no = |why: &str| format!("has no effect otherwise: {why}");
        let asked = "allowed without being asked about";
        let expected = [
            "Read: the run may use `read`".to_owned(),
            format!(
                "Bash(git log:*): the run may use `shell`; {asked}: commands that begin with `git log`"
            ),
            "Bash: the run may use `shell`".to_owned(),
            "Edit(src/**): the run may use `edit`".to_owned(),
            format!("Write(/etc/x): the run may use `write`; {}", no(OUTSIDE)),
            format!("Read(~/Notes/**): the run may use `read`; {asked}: reading ~/Notes"),
            format!(
                "WebFetch(domain:example.com): the run may use `fetch`; {}",
                no(OF_TEXT)
            ),
            format!("run_as_user: {}", no(CRITICAL)),
            format!(
                "clipboard: the run may use `clipboard`; {asked}: using the clipboard of your desktop"
            ),
            "mcp__mail__send: the run may use `mcp__mail__send`".to_owned(),
            format!(
                "Bash(rm -rf $HOME): the run may use `shell`; {}",
                no(NOT_PLAIN)
            ),
            format!("Read(~): the run may use `read`; {}", no(NOT_PLAIN)),
            format!("Read(../x): the run may use `read`; {}", no(NOT_PLAIN)),
            format!(
                "registries: the run may use `shell`; {asked}: getting packages from the package registries"
            ),
            "network: the run may use `network`".to_owned(),
            format!("«x»: {}", no(NOT_KNOWN)),
            "shell(*): the run may use `shell`".to_owned(),
        ];
        assert_eq!(said, expected);
    }
}
