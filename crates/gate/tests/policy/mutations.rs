//! Files that were damaged at random are refused or used, and never break anything.

use gyrus_contract::Decision;
use gyrus_gate::policy::{PathUse, Policy, Subject};
use serde_json::json;

use crate::world::{parse, path, read};

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

/// What is put in: the words of the language, and what breaks parsers.
const PIECES: [&str; 28] = [
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
    "rule",
    "agent",
    "why",
    "1e999",
    "1979-05-27",
    "#",
];

/// What must hold whatever a file contains.
fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let projects = parse(&text, false);
    let persons = parse(&text, true);
    for error in [&projects, &persons]
        .into_iter()
        .filter_map(|of| of.as_ref().err())
    {
        let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
        assert!(!error.problems.is_empty() && !error.to_string().is_empty());
        assert!(
            error
                .problems
                .iter()
                .all(|of| (1..=lines).contains(&of.line))
        );
    }
    let both = |one: &Policy, other: &Policy| one.clone().and(other.clone());
    let Ok(policy) = &persons else {
        // Whatever a project may lay down, a person may, too.
        assert!(projects.is_err());
        return;
    };
    let other = parse(SEED, true).expect("the seed is right");
    for line in [
        "git push --force",
        "make",
        "make ; git $x",
        "make http://a.example.com/ ???",
    ] {
        let alone = decide(policy, line);
        let strictest = alone.max(decide(&other, line));
        let together = decide(&both(policy, &other), line);
        assert!(
            together >= strictest.filter(|of| *of > Decision::Allow),
            "{line}"
        );
        if let Ok(project) = &projects {
            assert_ne!(decide(project, line), Some(Decision::Allow), "{line}");
            assert!(decide(&both(policy, project), line) >= alone);
        }
    }
}

fn decide(policy: &Policy, line: &str) -> Option<Decision> {
    let reading = read(line);
    let hosts = ["a.example.com".to_owned()];
    let paths = [
        path("src/a/b.rs", PathUse::Changes),
        path("/etc", PathUse::Reads),
    ];
    let arguments = json!({"command": line, "branch": ["main"]});
    let ruling = policy.rule(&Subject {
        tool: "shell",
        arguments: &arguments,
        paths: &paths[..usize::from(line.contains("git"))],
        hosts: &hosts[..usize::from(line.contains("http"))],
        commands: &reading.commands,
        unread: line.contains("???"),
        exposed: line.contains(';'),
        agent: "researcher",
    });
    assert_eq!(ruling.decision.is_some(), !ruling.rules.is_empty());
    assert_eq!(ruling.decision.is_some(), !ruling.reasons.is_empty());
    ruling.decision
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("smaller than the bound")
    }
}

fn mutate(dice: &mut Dice, seed: &[u8]) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=dice.below(2) {
        let at = dice.below(data.len() + 1);
        let end = at + dice.below((data.len() - at).min(40) + 1);
        match dice.below(4) {
            0 => drop(data.drain(at..end)),
            1 => drop(data.splice(at..at, PIECES[dice.below(PIECES.len())].bytes())),
            2 => data.extend_from_within(at..end),
            _ if at < data.len() => data[at] = u8::try_from(32 + dice.below(96)).expect("a byte"),
            _ => data.clear(),
        }
    }
    data
}

#[test]
fn damaged_files_are_refused_or_used() {
    parse(SEED, true).expect("the seed is right");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut used = 0;
    for _ in 0..4_000 {
        let data = mutate(&mut dice, SEED.as_bytes());
        used += usize::from(parse(&String::from_utf8_lossy(&data), true).is_ok());
        fuzz(&data);
    }
    // Otherwise the mutations would only try the parser of TOML.
    assert!((200..3_800).contains(&used), "{used} were used");
}
