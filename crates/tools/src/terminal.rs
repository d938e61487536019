//! The output of a command as a terminal would show it in the end: progress bars overwrite
//! themselves, and escape sequences are obeyed or dropped.
//!
//! A terminal of endless width is played, in which every character is one cell wide. The result is
//! never longer than the output.

use std::{iter::Peekable, str::Chars};

/// Returns the final state of each line of a program's output.
pub(crate) fn folded(output: &str) -> String {
    let mut screen = TerminalScreen {
        lines: vec![Vec::new()],
        line: 0,
        column: 0,
    };
    let mut rest = output.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\n' => screen.down(1, true),
            // The end of a line, however many precede it.
            '\r' => screen.column = 0,
            '\u{8}' => screen.column = screen.column.saturating_sub(1),
            '\u{7}' => {}
            '\u{1b}' => screen.escape(&mut rest),
            letter => screen.put(letter),
        }
    }
    let line = |line: Vec<char>| String::from_iter(line);
    let lines: Vec<String> = screen.lines.into_iter().map(line).collect();
    lines.join("\n")
}

struct TerminalScreen {
    lines: Vec<Vec<char>>,
    line: usize,
    column: usize,
}

impl TerminalScreen {
    fn put(&mut self, letter: char) {
        let line = &mut self.lines[self.line];
        match line.get_mut(self.column) {
            Some(cell) => *cell = letter,
            None => line.push(letter),
        }
        self.column += 1;
    }

    /// Moves the cursor down, beyond the last line only if `makes` is set.
    fn down(&mut self, lines: usize, makes: bool) {
        self.line = self.line.saturating_add(lines);
        if makes {
            self.column = 0;
            if self.line == self.lines.len() {
                self.lines.push(Vec::new());
            }
        }
        self.line = self.line.min(self.lines.len() - 1);
        self.column = self.column.min(self.lines[self.line].len());
    }

    fn up(&mut self, lines: usize) {
        self.line = self.line.saturating_sub(lines);
        self.column = self.column.min(self.lines[self.line].len());
    }

    /// Obeys the sequence behind an escape character, if it moves the cursor or erases.
    fn escape(&mut self, rest: &mut Peekable<Chars<'_>>) {
        match rest.next() {
            Some('[') => {
                let mut parameters = String::new();
                while let Some(letter) = rest.next_if(|letter| (' '..='?').contains(letter)) {
                    parameters.push(letter);
                }
                if let Some(last) = rest.next_if(|letter| ('@'..='~').contains(letter)) {
                    self.control(&parameters, last);
                }
            }
            // A title or a link, up to the bell or the terminator. Of one that is cut off, the line
            // is shown.
            Some(']' | 'P' | '_' | '^') => {
                let end = |letter: &char| matches!(letter, '\u{7}' | '\u{1b}' | '\n');
                while rest.next_if(|letter| !end(letter)).is_some() {}
                if rest.next_if(|letter| *letter != '\n') == Some('\u{1b}') {
                    rest.next_if_eq(&'\\');
                }
            }
            Some('(' | ')' | '#') => drop(rest.next()),
            Some(_) | None => {}
        }
    }

    fn control(&mut self, parameters: &str, last: char) {
        let number = parameters.split(';').next_back().unwrap_or_default();
        let number: usize = number.parse().unwrap_or(0);
        let length = self.lines[self.line].len();
        match last {
            'A' | 'F' => self.up(number.max(1)),
            'B' | 'E' => self.down(number.max(1), false),
            'C' => self.column = self.column.saturating_add(number.max(1)).min(length),
            'D' => self.column = self.column.saturating_sub(number.max(1)),
            'G' => self.column = number.saturating_sub(1).min(length),
            'J' if number != 1 => {
                self.lines.truncate(self.line + 1);
                self.lines[self.line].truncate(self.column);
            }
            'K' if number == 0 => self.lines[self.line].truncate(self.column),
            'K' => {
                self.lines[self.line].clear();
                self.column = 0;
            }
            _ => {}
        }
        if matches!(last, 'E' | 'F') {
            self.column = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_a_terminal_shows_them() {
        let check =
            |output: &str, expected: &str| assert_eq!(folded(output), expected, "{output:?}");
        check("", "");
        check("a\r\nb\r\n", "a\nb\n");
        check("  1%\r 50%\r100%\ndone", "100%\ndone");
        // What is not overwritten stays.
        check("100%\r7", "700%");
        check("long\r\u{1b}[Kab\rc", "cb");
        check("a\u{8}b\u{8}\u{8}\u{8}c", "c");
        check(
            "\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;https://a.example/\u{1b}\\link\u{1b}]8;;\u{7}",
            "red link",
        );
        check(
            "one: 1\ntwo: 1\n\u{1b}[2A\u{1b}[2Kone: 2\n\u{1b}[2Ktwo: 2\n",
            "one: 2\ntwo: 2\n",
        );
        check("a\nb\nc\u{1b}[2F\u{1b}[Jd", "d");
        check("\u{1b}(Bplain\u{1b}=\u{7}", "plain");
        // Cut off, or absurd.
        check("a\u{1b}", "a");
        check("a\u{1b}[12", "a");
        check("a\u{1b}]0;title\nb", "a\nb");
        check(
            "a\u{1b}[99999999999999999999Bb\u{1b}[18446744073709551615Cc",
            "abc",
        );
        check("\u{1b}[18446744073709551615A\u{1b}[Da", "a");
        check("über\ré", "éber");
    }
}
