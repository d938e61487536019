//! Settings at the head of a Markdown file, between two lines of `---`, in a small part of YAML:
//! texts, lists and mappings, as a tree with line numbers. Aliases and tags are refused, and depth
//! is bounded.

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::mistake::FileMistake;

/// Maximum depth of lists and mappings.
const DEPTH: usize = 8;

/// A value and the line on which it begins, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    pub line: usize,
    pub value: Yaml,
}

/// A value of YAML.
#[derive(Debug, Clone, PartialEq)]
pub enum Yaml {
    /// A text, with whether it stands without quotes: it may mean a number or a switch then.
    Text(String, bool),
    List(Vec<YamlNode>),
    /// The keys in order, each with its line, and their values.
    Map(Vec<(usize, String, YamlNode)>),
}

/// Splits a file into its front matter and the text below, and returns the number of the text's
/// first line.
///
/// # Errors
/// The file has no front matter.
pub fn split_front_matter(text: &str) -> Result<(&str, &str, usize), FileMistake> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = |what: &str| {
        let message = format!("{what}; settings stand between two lines of `---`");
        mistake(1, message)
    };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err(missing("it does not begin with a line `---`"));
    }
    let mut end = first.len();
    for (number, line) in (2..).zip(lines) {
        if line.trim_end() == "---" {
            let front = &text[first.len()..end];
            return Ok((front, &text[end + line.len()..], number + 1));
        }
        end += line.len();
    }
    Err(missing("there is no second line `---`"))
}

fn mistake(line: usize, message: String) -> FileMistake {
    FileMistake {
        line,
        message,
        nearest: None,
    }
}

/// A list or mapping during its parsing.
struct OpenCollection {
    node: YamlNode,
    /// The key of the next value, with its line.
    key: Option<(usize, String)>,
}

/// Parses a document. `line` is the number of its first line in its file.
///
/// # Errors
/// The text is not YAML, or uses an unsupported part of YAML.
pub fn parse_yaml(text: &str, line: usize) -> Result<YamlNode, FileMistake> {
    let mut open: Vec<OpenCollection> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker().line().max(1) + line - 1;
            mistake(at, format!("invalid YAML: {}", error.info()))
        })?;
        let at = span.start.line().max(1) + line - 1;
        let refuse = |what: &str| Err(mistake(at, format!("{what} are not supported here")));
        let done = match event {
            Event::Alias(_) => return refuse("aliases"),
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => return refuse("tags"),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH => {
                let message = format!("it is nested deeper than {DEPTH}");
                return Err(mistake(at, message));
            }
            Event::Scalar(text, style, ..) => YamlNode {
                line: at,
                value: Yaml::Text(text.into_owned(), style == ScalarStyle::Plain),
            },
            Event::SequenceStart(..) => {
                open.push(OpenCollection::new(at, Yaml::List(Vec::new())));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(OpenCollection::new(at, Yaml::Map(Vec::new())));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(ended) => ended.node,
                None => continue,
            },
            Event::DocumentStart(_) if root.is_some() => return refuse("several documents"),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => continue,
        };
        match open.last_mut() {
            Some(around) => around.take(done)?,
            None => root = Some(done),
        }
    }
    Ok(root.unwrap_or(YamlNode {
        line,
        value: Yaml::Map(Vec::new()),
    }))
}

impl OpenCollection {
    fn new(line: usize, value: Yaml) -> Self {
        Self {
            node: YamlNode { line, value },
            key: None,
        }
    }

    /// Adds the next item of a list, or the next key or value of a mapping.
    fn take(&mut self, node: YamlNode) -> Result<(), FileMistake> {
        match &mut self.node.value {
            Yaml::Text(..) => {}
            Yaml::List(items) => items.push(node),
            Yaml::Map(fields) => match self.key.take() {
                Some((line, key)) => fields.push((line, key, node)),
                None => {
                    let Yaml::Text(key, _) = node.value else {
                        return Err(mistake(node.line, "a key must be a word".to_owned()));
                    };
                    if fields.iter().any(|(_, known, _)| *known == key) {
                        let message = format!("`{key}` is given twice");
                        return Err(mistake(node.line, message));
                    }
                    self.key = Some((node.line, key));
                }
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_instructions_are_told_apart() {
        let text = "---\nname: a\n---\nDo it.\n---\n";
        assert_eq!(
            split_front_matter(text).unwrap(),
            ("name: a\n", "Do it.\n---\n", 4)
        );
        assert!(split_front_matter("name: a").is_err());
        assert!(split_front_matter("---\nname: a\n").is_err());
    }

    #[test]
    fn hostile_settings_are_mistakes() {
        let deep = "- ".repeat(10_000);
        let flow = format!("a: {}", "[".repeat(10_000));
        for text in [
            &*deep,
            &flow,
            "a: &x 1\nb: *x",
            "a: !t 1",
            "a: 1\na: 2",
            "a: [",
            "? [1]\n: 2",
        ] {
            assert!(
                parse_yaml(text, 1).is_err(),
                "{}",
                &text[..text.len().min(40)]
            );
        }
        let node = parse_yaml("a: 1\nb:\n  - x\n", 2).unwrap();
        let Yaml::Map(fields) = node.value else {
            panic!()
        };
        assert_eq!((fields[1].0, &*fields[1].1), (3, "b"));
    }
}
