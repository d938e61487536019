//! Files that lay a policy down.

use std::path::{Path, PathBuf};

use gyrus_contract::{Decision, Does};
use gyrus_gate::{
    policy::{
        LineReader, MayName, PathUse, Policy, PolicyError, PolicyOrigin, PolicySubject, SubjectPath,
    },
    shell::{self, ShellPlace},
};
use serde_json::json;

use crate::Target;

const WORKSPACE: &str = "/srv/project";
const HOME: &str = "/srv/people/kim";

/// Every key and every kind of pattern.
const SEED: &str = r#"
[[rule]]
decide = "deny"
why = "the history of main is ours – för immer"
tool = "shell"
command = ["git", ["push", "fetch"], "--force"]
agent = ["main", "re*"]
matches = ["git push --force origin", { command = "git -C x push --force", tool = "shell" }]
not_matches = ["git status"]
[[rule]]
decide = "ask"
why = "x"
path = ["src/**/*.rs", "~/a?b*", "/etc/**", ".env"]
host = ["*.example.com:443", "[::1]", "127.1", "*"]
exposed = true
argument = [{ name = "branch", matches = "ma*n" }]
[[rule]]
decide = "allow"
why = 'built often'
command = ["make"]
[agent.researcher]
tools = ["read", "mcp__*"]
without_asking = ["read"]
mode = "read-only"
"#;

/// The words of the language, and what breaks parsers.
const WORDS: [&str; 44] = [
    "\"",
    "'''",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ",",
    "\n",
    "\0",
    "\u{feff}",
    "\\",
    "**",
    "..",
    "/",
    "~",
    ":",
    "é",
    "\u{202e}",
    "allow",
    "deny",
    "ask",
    "rule",
    "agent",
    "why",
    "1e999",
    "1979-05-27",
    "#",
    "decide = \"allow\"\n",
    "why = \"x\"\n",
    "tool = \"*\"\n",
    "path = [\"**\"]\n",
    "host = [\"*\"]\n",
    "command = [\"git\"]\n",
    "matches = [\"make\"]\n",
    "not_matches = [\"ls\"]\n",
    "[[rule]]\n",
    "[agent.researcher]\n",
    "mode = \"auto\"\n",
    "without_asking = [\"*\"]\n",
    "exposed = false\n",
    "argument = [{ name = \"x\", matches = \"*\" }]\n",
    "\"\"\"",
];

/// Lines that policies are tried on.
const LINES: [&str; 5] = [
    "git push --force",
    "make",
    "make ; git $x",
    "curl http://a.example.com/ ; cat /etc/hosts > src/a/b.rs",
    "ls -la",
];

/// `policy`: a file is refused, with lines of it named, or used; a project's never loosens, and
/// two together are as strict as each.
#[derive(Debug)]
pub struct PolicyFile {
    place: ShellPlace,
    other: Policy,
}

impl PolicyFile {
    /// Creates the policy of a person and a project that exist nowhere.
    pub fn new() -> Self {
        let place = ShellPlace {
            folder: PathBuf::from(WORKSPACE),
            home: Some(PathBuf::from(HOME)),
        };
        let other = parse(&place, SEED, true).expect("the seed is right");
        Self { place, other }
    }

    fn decide(&self, policy: &Policy, line: &str) -> Result<Option<Decision>, String> {
        let reading = shell::read(line, &self.place);
        let (mut paths, mut hosts) = (Vec::new(), Vec::new());
        for fact in &reading.facts {
            match &fact.does {
                Does::Reads { path } => paths.push(subject(path, PathUse::Reads)),
                Does::Writes { path } => paths.push(subject(path, PathUse::Changes)),
                Does::Connects { hosts: named } => hosts.extend(named.iter().cloned()),
                _ => {}
            }
        }
        let arguments = json!({"command": line, "branch": ["main"]});
        let ruling = policy.rule(&PolicySubject {
            tool: "shell",
            service: None,
            trusted: &[],
            arguments: &arguments,
            paths: &paths,
            hosts: &hosts,
            commands: &reading.commands,
            unread: reading.facts.iter().any(|fact| fact.does == Does::Hides),
            exposed: line.contains(';'),
            agent: "researcher",
            may_name: MayName::default(),
        });
        let said = ruling.decision.is_some();
        if said == ruling.rules.is_empty() || said == ruling.reasons.is_empty() {
            Err(format!(
                "{line}: a decision without a rule, or a rule without one"
            ))
        } else {
            Ok(ruling.decision)
        }
    }
}

impl Default for PolicyFile {
    fn default() -> Self {
        Self::new()
    }
}

impl Target for PolicyFile {
    const NAME: &'static str = "policy";

    fn seeds(&self) -> Vec<Vec<u8>> {
        let whole = SEED.as_bytes().to_vec();
        let rules = SEED.split("\n[").skip(1);
        let parts = rules.map(|part| format!("[{part}\n").into_bytes());
        std::iter::once(whole).chain(parts).collect()
    }

    fn words(&self) -> Vec<Vec<u8>> {
        WORDS.map(|word| word.as_bytes().to_vec()).to_vec()
    }

    fn longest(&self) -> usize {
        8 * 1024
    }

    fn check(&self, input: &[u8]) -> Result<(), String> {
        let text = &*String::from_utf8_lossy(input);
        let projects = parse(&self.place, text, false);
        let persons = parse(&self.place, text, true);
        for error in [&projects, &persons]
            .into_iter()
            .filter_map(|of| of.as_ref().err())
        {
            tells_where(error, text)?;
        }
        let Ok(policy) = &persons else {
            // Whatever a project may write, a person may, too.
            return match projects {
                Ok(_) => Err("a project may write what a person may not".to_owned()),
                Err(_) => Ok(()),
            };
        };
        for line in LINES {
            let alone = self.decide(policy, line)?;
            let others = self.decide(&self.other, line)?;
            let strictest = alone.max(others).filter(|of| *of > Decision::Allow);
            let together = self.decide(&policy.clone().and(self.other.clone()), line)?;
            if together < strictest {
                return Err(format!(
                    "{line}: {together:?} together, {alone:?} and {others:?} alone"
                ));
            }
            let Ok(project) = &projects else {
                continue;
            };
            let with_project = self.decide(&policy.clone().and(project.clone()), line)?;
            if self.decide(project, line)? == Some(Decision::Allow) || with_project < alone {
                return Err(format!("{line}: a project loosens"));
            }
        }
        Ok(())
    }
}

fn parse(place: &ShellPlace, text: &str, may_loosen: bool) -> Result<Policy, PolicyError> {
    let origin = PolicyOrigin {
        file: PathBuf::from("policy.toml"),
        may_loosen,
        home: Some(PathBuf::from(HOME)),
    };
    let lines = LineReader {
        workspace: Path::new(WORKSPACE),
        read: &|line| shell::read(line, place),
    };
    Policy::parse(text, &origin, lines)
}

fn tells_where(error: &PolicyError, text: &str) -> Result<(), String> {
    let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
    let told = error.to_string();
    let inside = error
        .problems
        .iter()
        .all(|of| (1..=lines).contains(&of.line));
    if !error.problems.is_empty() && inside && told.contains("policy.toml") {
        Ok(())
    } else {
        Err(format!("the error does not say where: {told}"))
    }
}

fn subject(real: &Path, used: PathUse) -> SubjectPath {
    SubjectPath::new(real.to_owned(), used, Path::new(WORKSPACE))
}
