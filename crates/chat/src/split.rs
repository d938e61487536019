//! Long texts as several messages: cut between lines where that is possible, never within a
//! character, and with every block of code closed and opened again.

/// The line that begins and ends a block of code.
const FENCE: &str = "```";

/// Maximum length of a fence's first line for it to be repeated in the next message.
const FENCE_LINE: usize = 40;

/// Splits a text into parts of at most `most`, as `length` counts it. No part is blank; a blank
/// text has none.
pub(crate) fn split(text: &str, most: usize, length: impl Fn(&str) -> usize) -> Vec<String> {
    // Every part leaves room for the end of a block.
    let room = most.saturating_sub(FENCE.len() + 1).max(1);
    let mut parts = MessageParts {
        done: Vec::new(),
        part: String::new(),
        fence: None,
    };
    for line in text.lines() {
        let mut rest = line;
        loop {
            let used = length(&parts.part) + usize::from(!parts.part.is_empty());
            if used + length(rest) <= room {
                parts.add(rest);
                break;
            }
            if !parts.is_at_beginning() {
                parts.end();
                continue;
            }
            let (head, tail) = cut(rest, room.saturating_sub(used), &length);
            parts.add(head);
            parts.end();
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        if let Some(after) = line.trim_start().strip_prefix(FENCE) {
            let opens = parts.fence.is_none();
            let short = after.len() <= FENCE_LINE;
            parts.fence = opens.then(|| format!("{FENCE}{}", if short { after } else { "" }));
        }
    }
    parts.fence = None;
    parts.end();
    parts.done
}

struct MessageParts {
    done: Vec<String>,
    part: String,
    /// The first line of the open block of code.
    fence: Option<String>,
}

impl MessageParts {
    fn add(&mut self, line: &str) {
        if !self.part.is_empty() {
            self.part.push('\n');
        }
        self.part.push_str(line);
    }

    /// Whether the part contains nothing but its opening.
    fn is_at_beginning(&self) -> bool {
        self.part.is_empty() || self.fence.as_ref() == Some(&self.part)
    }

    fn end(&mut self) {
        let mut part = std::mem::take(&mut self.part);
        if let Some(fence) = &self.fence {
            match part.strip_suffix(fence.as_str()) {
                // A block that has only begun begins in the next part.
                Some(before) if before.is_empty() || before.ends_with('\n') => {
                    part.truncate(before.len());
                }
                Some(_) | None => {
                    part.push('\n');
                    part.push_str(FENCE);
                }
            }
            self.part.clone_from(fence);
        }
        let part = part.trim_end();
        if !part.is_empty() {
            self.done.push(part.to_owned());
        }
    }
}

/// Cuts the longest beginning off a line that fits: after a space in its second half if there is
/// one, and never between signs that make one character.
fn cut<'a>(line: &'a str, most: usize, length: &impl Fn(&str) -> usize) -> (&'a str, &'a str) {
    let (mut used, mut end) = (0, 0);
    let mut last_space = 0;
    let mut buffer = [0; 4];
    for (at, sign) in line.char_indices() {
        let wide = length(sign.encode_utf8(&mut buffer));
        if used + wide > most {
            break;
        }
        used += wide;
        let next = at + sign.len_utf8();
        if may_cut(line, next) {
            end = next;
            if sign == ' ' {
                last_space = next;
            }
        }
    }
    if last_space > end / 2 {
        end = last_space;
    }
    if end == 0 {
        // Signs without end that all belong to one character are cut anyway.
        let fits = line
            .char_indices()
            .take_while(|(at, sign)| length(&line[..at + sign.len_utf8()]) <= most);
        end = fits.last().map_or(0, |(at, sign)| at + sign.len_utf8());
        end = end.max(line.chars().next().map_or(0, char::len_utf8));
    }
    line.split_at(end)
}

/// Whether a line may be cut before this byte.
fn may_cut(line: &str, at: usize) -> bool {
    let before = line[..at].chars().next_back();
    let Some(next) = line[at..].chars().next() else {
        return true;
    };
    let is_modifier = ('\u{1f3fb}'..='\u{1f3ff}').contains(&next);
    let is_flag = |sign: char| ('\u{1f1e6}'..='\u{1f1ff}').contains(&sign);
    let in_flag = is_flag(next)
        && line[..at]
            .chars()
            .rev()
            .take_while(|sign| is_flag(*sign))
            .count()
            % 2
            == 1;
    let mut buffer = [0; 4];
    let is_mark = gyrus_text::width(next.encode_utf8(&mut buffer)) == 0;
    before != Some('\u{200d}') && !is_mark && !is_modifier && !in_flag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> usize {
        text.encode_utf16().count()
    }

    #[track_caller]
    fn check(text: &str, most: usize, expected: &[&str]) {
        let parts = split(text, most, units);
        assert_eq!(parts, expected);
        for part in &parts {
            assert!(units(part) <= most, "{part:?}");
        }
    }

    #[test]
    fn texts_are_cut_between_lines_and_words() {
        check("", 20, &[]);
        check(" \n\n", 20, &[]);
        check("short", 20, &["short"]);
        check(
            "one two\nthree\nfour five",
            16,
            &["one two", "three", "four five"],
        );
        check("one two three four", 14, &["one two", "three four"]);
        check(
            "aaaaaaaaaaaaaaaaaaaaaa",
            14,
            &["aaaaaaaaaa", "aaaaaaaaaa", "aa"],
        );
    }

    #[test]
    fn blocks_of_code_are_closed_and_opened_again() {
        check(
            "so:\n```sh\nmake one\nmake two\n```\nend",
            22,
            &["so:\n```sh\nmake one\n```", "```sh\nmake two\n```", "end"],
        );
        // A block that has only begun goes to the next message as a whole.
        check(
            "twelve chars\n```\ncode\n```",
            20,
            &["twelve chars", "```\ncode\n```"],
        );
    }

    #[test]
    fn characters_stay_whole() {
        let family = "👩‍👩‍👧‍👦";
        for unit in [family, "e\u{301}", "👍🏽", "🇩🇪", "한", "ก้"] {
            let text = unit.repeat(300);
            for most in [16, 17, 31, 64] {
                let parts = split(&text, most, units);
                assert_eq!(parts.concat(), text);
                for part in parts {
                    assert!(units(&part) <= most);
                    assert!(
                        part.len().is_multiple_of(unit.len()),
                        "{unit} {most}: {part}"
                    );
                }
            }
        }
        // Marks without end.
        let parts = split(&"\u{301}".repeat(1_000), 20, units);
        assert!(parts.iter().all(|part| units(part) <= 20));
    }
}
