//! A small part of YAML as a tree with line numbers: texts, lists and mappings. Anchors, aliases and
//! tags are refused, and depth is bounded.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::mistake::Mistake;

/// Maximum depth of lists and mappings.
const DEPTH: usize = 8;

/// A value and the line on which it begins, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Yaml,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    /// A text, and whether it stands without quotes: it may mean a number or a switch then.
    Text(String, bool),
    List(Vec<Node>),
    /// Keys, each with its line, and their values, in their order.
    Map(Vec<(usize, String, Node)>),
}

/// A list or mapping that is being read.
struct Open {
    node: Node,
    /// The key whose value comes next, and its line.
    key: Option<(usize, String)>,
}

/// Reads a document. `line` is the number of its first line in its file.
pub(super) fn parse(text: &str, line: usize) -> Result<Node, Mistake> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker().line().max(1) + line - 1;
            Mistake::new(at, format!("invalid YAML: {}", error.info()))
        })?;
        let at = span.start.line().max(1) + line - 1;
        let refuse = |what: &str| Err(Mistake::new(at, format!("{what} are not supported here")));
        let done = match event {
            Event::Alias(_) => return refuse("aliases"),
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => return refuse("tags"),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH => {
                let message = format!("it is nested deeper than {DEPTH}");
                return Err(Mistake::new(at, message));
            }
            Event::Scalar(text, style, ..) => Node {
                line: at,
                value: Yaml::Text(text.into_owned(), style == ScalarStyle::Plain),
            },
            Event::SequenceStart(..) => {
                open.push(Open::new(at, Yaml::List(Vec::new())));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::new(at, Yaml::Map(Vec::new())));
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
    Ok(root.unwrap_or(Node {
        line,
        value: Yaml::Map(Vec::new()),
    }))
}

impl Open {
    fn new(line: usize, value: Yaml) -> Self {
        Self {
            node: Node { line, value },
            key: None,
        }
    }

    /// Takes the next item of a list, or the next key or value of a mapping.
    fn take(&mut self, node: Node) -> Result<(), Mistake> {
        match &mut self.node.value {
            Yaml::Text(..) => {}
            Yaml::List(items) => items.push(node),
            Yaml::Map(fields) => match self.key.take() {
                Some((line, key)) => fields.push((line, key, node)),
                None => {
                    let Yaml::Text(key, _) = node.value else {
                        return Err(Mistake::new(node.line, "a key must be a word".to_owned()));
                    };
                    if fields.iter().any(|(_, known, _)| *known == key) {
                        let message = format!("`{key}` is given twice");
                        return Err(Mistake::new(node.line, message));
                    }
                    self.key = Some((node.line, key));
                }
            },
        }
        Ok(())
    }
}
