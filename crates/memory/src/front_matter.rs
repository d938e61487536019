//! Front matter: the settings between two lines of `---` at the start of a note.
//!
//! Only what notes use is read: `key: value`, `key: [a, b]`, and a list of `- item` lines. Anchors,
//! aliases, tags, merges and blocks of YAML are refused, so nothing can be expanded, and the text
//! is bounded.

/// Maximum bytes of front matter; a longer one is part of the text.
const MAX_BYTES: usize = 64 << 10;

/// Maximum number of items of one list that are read.
const MAX_ITEMS: usize = 1_000;

/// Settings of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontMatter {
    fields: Vec<(String, Vec<String>)>,
    /// Lines that are not understood, counted from 1.
    pub refused: Vec<usize>,
}

impl FrontMatter {
    /// Splits a note into its front matter and the rest. Without front matter the rest is all of it.
    pub fn split(note: &str) -> (Option<Self>, &str) {
        let Some(after) = ["---\n", "---\r\n"]
            .iter()
            .find_map(|start| note.strip_prefix(start))
        else {
            return (None, note);
        };
        let mut length = 0;
        for line in after.split_inclusive('\n') {
            if length > MAX_BYTES {
                break;
            }
            if line.trim_end() == "---" {
                let rest = &after[length + line.len()..];
                return (Some(Self::read(&after[..length])), rest);
            }
            length += line.len();
        }
        (None, note)
    }

    fn read(text: &str) -> Self {
        let mut read = Self::default();
        for (number, line) in (2..).zip(text.lines()) {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            if read.line(line, trimmed).is_none() {
                read.refused.push(number);
            }
        }
        read
    }

    fn line(&mut self, line: &str, trimmed: &str) -> Option<()> {
        if let Some(item) = trimmed
            .strip_prefix("- ")
            .or((trimmed == "-").then_some(""))
        {
            let (_, values) = self.fields.last_mut()?;
            if values.len() < MAX_ITEMS {
                values.push(plain(item)?);
            }
            return Some(());
        }
        if line.starts_with([' ', '\t']) {
            return None;
        }
        let (key, value) = trimmed.split_once(':')?;
        let key = key.trim().to_lowercase();
        if !value.is_empty() && !value.starts_with(' ')
            || key.is_empty()
            || !key
                .chars()
                .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        {
            return None;
        }
        let value = value.trim();
        let values = match value.strip_prefix('[') {
            Some(list) => {
                let list = list.strip_suffix(']')?;
                let items = list
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty());
                items.take(MAX_ITEMS).map(plain).collect::<Option<_>>()?
            }
            None if value.is_empty() => Vec::new(),
            None => vec![plain(value)?],
        };
        // A key that stands twice could mean one thing to a person and another to a program.
        if self.fields.iter().any(|(known, _)| *known == key) {
            return None;
        }
        self.fields.push((key, values));
        Some(())
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

/// Returns a value without its quotes; `None` for what YAML would expand or fold.
fn plain(value: &str) -> Option<String> {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            return inner.strip_suffix(quote).map(str::to_owned);
        }
    }
    let refused = value.starts_with(['&', '*', '!', '|', '>', '%', '@', '`', '{', '[']);
    (!refused).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_lists() {
        let note = "---\ntitle: \"Eve: a friend\"\ntags: [people, Work]\naliases:\n  - E\n- 'Evi'\n\
                    empty:\n---\nbody\n---\n";
        let (read, rest) = FrontMatter::split(note);
        let read = read.unwrap();
        assert_eq!(rest, "body\n---\n");
        assert_eq!(read.first("title"), Some("Eve: a friend"));
        assert_eq!(read.all("tags"), ["people", "Work"]);
        assert_eq!(read.all("aliases"), ["E", "Evi"]);
        assert!(read.all("empty").is_empty() && read.refused.is_empty());
    }

    #[test]
    fn yaml_that_expands_is_refused() {
        let bomb = "---\na: &a [x, x]\nb: [*a, *a]\nc: !!python/object x\n<<: *a\nd: |\n  text\n\
                    e: {x: y}\ntrust: untrusted\ntrust: person\n---\n";
        let (read, rest) = FrontMatter::split(bomb);
        let read = read.unwrap();
        assert_eq!(rest, "");
        assert_eq!(read.refused, [2, 3, 4, 5, 6, 7, 8, 10]);
        assert_eq!(read.first("trust"), Some("untrusted"));
        let endless = format!("---\n{}", "a: b\n".repeat(100_000));
        assert_eq!(FrontMatter::split(&endless), (None, endless.as_str()));
        assert_eq!(FrontMatter::split("--- \nx").0, None);
    }
}
