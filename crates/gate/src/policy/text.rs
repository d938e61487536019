//! Patterns of plain text: tool names, agents, values of arguments.

/// A text in which `*` stands for anything, `/` and line ends included. It is matched whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPattern {
    /// The texts between the stars; never empty.
    pieces: Vec<String>,
}

impl TextPattern {
    pub(super) fn new(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// Takes a time that grows with the text and the pattern, not with their product.
    pub(super) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.first().is_some_and(|only| only == text);
        };
        let Some(rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(last.as_str()) else {
            return false;
        };
        for piece in middle {
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }

    /// The text, if there is no star in it.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let matched = TextPattern::new(pattern).matches(text);
            assert_eq!(matched, expected, "{pattern} on {text}");
        };
        check("main", "main", true);
        check("main", "mainly", false);
        check("*", "", true);
        check("a*", "a/b\nc", true);
        check("*main", "main", true);
        check("release-*", "release-", true);
        check("ab*ba", "aba", false); // The two ends must not share a letter.
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-c-b", false);
    }
}
