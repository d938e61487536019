//! Lines as data: attacks on what contains a command, by class, and the corpora of the gate.

use gyrus_lines::corpus;

use crate::Error;

const ATTACKS: &str = include_str!("../lines/attacks.txt");

/// An attack: one line, or several calls in the same run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attack {
    /// Class of the attack; the name of a section.
    pub class: String,
    /// Lines for the shell, one after the other.
    pub lines: Vec<String>,
    /// Milliseconds after which the process of gyrus is killed, if it is.
    pub killed_after: Option<u64>,
}

/// The attacks on what contains a command.
pub fn attacks() -> Result<Vec<Attack>, Error> {
    let mut class = String::new();
    let mut attacks = Vec::new();
    for (index, line) in ATTACKS.lines().enumerate() {
        if line.is_empty() || line.starts_with("# ") {
            continue;
        }
        let name = line
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if let Some(name) = name.filter(is_name) {
            class = name.to_owned();
            continue;
        }
        let told = |error| Error::Lines(format!("attacks.txt line {}: {error}", index + 1));
        let lines = match line.as_bytes() {
            [b'[', b'"', ..] => serde_json::from_str(line).map_err(told)?,
            [b'"', .., b'"'] if line.starts_with("\"python") => {
                vec![serde_json::from_str(line).map_err(told)?]
            }
            _ => vec![line.to_owned()],
        };
        attacks.push(Attack {
            class: class.clone(),
            lines,
            killed_after: None,
        });
    }
    Ok(attacks)
}

/// The corpora, hostile lines first; a class is the corpus with its section.
pub(crate) fn corpora() -> Result<Vec<Attack>, Error> {
    let mut all = Vec::new();
    for (name, text) in [
        ("hostile", corpus::HOSTILE),
        ("doubtful", corpus::DOUBTFUL),
        ("everyday", corpus::EVERYDAY),
        ("reading", corpus::READ_ONLY),
    ] {
        // They were written for a folder with another name.
        let text = text.replace("/home/person/hostile", "/home/person/project");
        let commands = corpus::parse(&text).map_err(|error| Error::Lines(error.to_string()))?;
        all.extend(commands.into_iter().map(|command| Attack {
            class: match name {
                "hostile" => format!("{name}-{}", command.section),
                _ => name.to_owned(),
            },
            lines: vec![command.line],
            killed_after: None,
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_read() {
        let attacks = attacks().unwrap();
        assert!(attacks.len() > 400, "{}", attacks.len());
        assert!(attacks.iter().all(|attack| !attack.class.is_empty()));
        assert!(attacks.iter().any(|attack| attack.lines.len() > 2));
        let python = attacks
            .iter()
            .find(|attack| attack.lines[0].contains("sendto(b\"x\", \"\\0outside"));
        assert!(python.is_some_and(|attack| attack.lines[0].starts_with("python3")));
        assert!(corpora().unwrap().len() > 3_000);
    }
}
