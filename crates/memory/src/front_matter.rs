//! Front matter: the settings between two lines of `---` at the start of a note.
//!
//! Texts and lists of texts are read, with the reader that all front matter of gyrus has: it expands
//! nothing, and its depth is bounded. If any of it is refused, none of it counts.

use gyrus_text::{Yaml, parse_yaml, split_front_matter};

/// Maximum bytes of front matter; a longer one is part of the text.
const MAX_BYTES: usize = 64 << 10;

/// Maximum number of items of one list that are read.
const MAX_ITEMS: usize = 1_000;

/// Settings of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontMatter {
    fields: Vec<(String, Vec<String>)>,
    /// Whether there are settings that cannot be parsed.
    pub is_refused: bool,
}

impl FrontMatter {
    /// Splits a note into its front matter and the rest, which is the whole note if it has none.
    pub fn split(note: &str) -> (Option<Self>, &str) {
        match split_front_matter(note) {
            Ok((front, rest, _)) if front.len() <= MAX_BYTES => (Some(Self::read(front)), rest),
            Ok(_) | Err(_) => (None, note),
        }
    }

    fn read(text: &str) -> Self {
        let mut read = Self::default();
        match parse_yaml(text, 1).map(|root| root.value) {
            Ok(Yaml::Map(fields)) => {
                for (_, key, node) in fields {
                    match values(node.value) {
                        Some(values) => read.fields.push((key.trim().to_lowercase(), values)),
                        None => read.is_refused = true,
                    }
                }
            }
            Ok(Yaml::Text(..) | Yaml::List(_)) | Err(_) => read.is_refused = true,
        }
        read
    }

    /// Returns the values of a field; none if it is absent.
    pub fn all(&self, key: &str) -> &[String] {
        let mut fields = self.fields.iter();
        fields
            .find(|(known, _)| known == key)
            .map_or(&[], |(_, values)| values)
    }

    /// Returns the first value of a field.
    pub fn first(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }
}

/// Returns a text, or the texts of a list; `None` for what is neither.
fn values(value: Yaml) -> Option<Vec<String>> {
    match value {
        Yaml::Text(text, is_plain) if is_plain && matches!(&*text, "" | "~") => Some(Vec::new()),
        Yaml::Text(text, _) => Some(vec![text]),
        Yaml::List(items) => {
            let texts = items.into_iter().map(|item| match item.value {
                Yaml::Text(text, _) => Some(text),
                Yaml::List(_) | Yaml::Map(_) => None,
            });
            texts.take(MAX_ITEMS).collect()
        }
        Yaml::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_lists() {
        let note = "---\ntitle: \"Eve: a friend\"\ntags: [people, Work]\naliases:\n- E\n- 'Evi'\n\
                    empty:\nDue: 2026-11-24\n---\nbody\n---\n";
        let (read, rest) = FrontMatter::split(note);
        let read = read.unwrap();
        assert_eq!(rest, "body\n---\n");
        assert_eq!(read.first("title"), Some("Eve: a friend"));
        assert_eq!(read.all("tags"), ["people", "Work"]);
        assert_eq!(read.all("aliases"), ["E", "Evi"]);
        assert_eq!(read.first("due"), Some("2026-11-24"));
        assert!(read.all("empty").is_empty() && !read.is_refused);
    }

    #[test]
    fn settings_that_expand_are_refused() {
        for bomb in [
            "a: &a [x, x]\nb: [*a, *a]",
            "a: !!python/object x",
            "trust: untrusted\ntrust: person",
            "a: {x: y}",
            "a: [[x]]",
            "- a",
            "a: [",
        ] {
            let note = format!("---\n{bomb}\n---\nbody");
            let (read, rest) = FrontMatter::split(&note);
            assert!(read.unwrap().is_refused && rest == "body", "{bomb}");
        }
        let endless = format!("---\n{}", "a: b\n".repeat(100_000));
        assert_eq!(FrontMatter::split(&endless), (None, endless.as_str()));
        assert_eq!(FrontMatter::split("--- \nx").0, None);
    }
}
