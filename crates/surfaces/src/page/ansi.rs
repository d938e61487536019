//! Colours of terminal programs (ECMA-48, "select graphic rendition"). Every other control
//! sequence stays text.
//!
//! No colour can hide text: there are sixteen of them, chosen for the page, and others become the
//! nearest; a background is only a tint; "concealed" is ignored.

use maud::{Markup, PreEscaped, html};

/// Maximum length of an escape sequence that is understood, in bytes.
const SEQUENCE: usize = 64;

const FOREGROUND: [&str; 16] = [
    "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14",
    "f15",
];
const BACKGROUND: [&str; 16] = [
    "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14",
    "b15",
];

/// The sixteen basic colours of most terminals, for finding the nearest one.
const PALETTE: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ansi {
    foreground: Option<usize>,
    background: Option<usize>,
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
    struck: bool,
    reversed: bool,
}

impl Ansi {
    /// Returns the text with its colours, which also apply to the next text.
    pub(super) fn render(&mut self, text: &str) -> Markup {
        let mut html = String::new();
        let mut rest = text;
        let mut from = 0;
        while let Some(at) = rest[from..].find('\x1b').map(|at| from + at) {
            let Some((parameters, length)) = sequence(&rest[at..]) else {
                from = at + 1;
                continue;
            };
            self.push(&mut html, &rest[..at]);
            self.apply(parameters);
            rest = &rest[at + length..];
            from = 0;
        }
        self.push(&mut html, rest);
        PreEscaped(html)
    }

    fn push(&self, html: &mut String, text: &str) {
        if text.is_empty() {
            return;
        }
        if *self == Self::default() {
            html.push_str(&html! { (text) }.0);
            return;
        }
        let colours = [
            self.foreground.map(|colour| FOREGROUND[colour]),
            self.background.map(|colour| BACKGROUND[colour]),
        ];
        let styles = [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "italic"),
            (self.underlined, "underlined"),
            (self.struck, "struck"),
            (self.reversed, "reversed"),
        ];
        let styles = styles
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, class)| *class);
        let classes: Vec<_> = colours.into_iter().flatten().chain(styles).collect();
        html.push_str(&html! { span class=(classes.join(" ")) { (text) } }.0);
    }

    fn apply(&mut self, parameters: &str) {
        let numbers: Vec<usize> = parameters
            .split([';', ':'])
            .map(|number| number.parse().unwrap_or(0))
            .collect();
        let mut rest = numbers.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match *first {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underlined = true,
                7 => self.reversed = true,
                9 => self.struck = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underlined = false,
                27 => self.reversed = false,
                29 => self.struck = false,
                30..=37 => self.foreground = Some(first - 30),
                38 => (self.foreground, rest) = extended(after),
                39 => self.foreground = None,
                40..=47 => self.background = Some(first - 40),
                48 => (self.background, rest) = extended(after),
                49 => self.background = None,
                90..=97 => self.foreground = Some(first - 82),
                100..=107 => self.background = Some(first - 92),
                _ => {}
            }
        }
    }
}

/// The parameters of the sequence at the start of `text`, and its length in bytes; `None` if it is
/// none that is about colours.
fn sequence(text: &str) -> Option<(&str, usize)> {
    let body = text.strip_prefix("\x1b[")?;
    let end = body
        .bytes()
        .take(SEQUENCE)
        .position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))?;
    (body.as_bytes()[end] == b'm').then(|| (&body[..end], end + 3))
}

/// Parses a colour code of several numbers, and returns the numbers after it.
fn extended(numbers: &[usize]) -> (Option<usize>, &[usize]) {
    match numbers {
        [5, index, rest @ ..] => (Some(of_index(*index)), rest),
        [2, red, green, blue, rest @ ..] => (Some(nearest(*red, *green, *blue)), rest),
        _ => (None, &[]),
    }
}

/// Returns the basic colour nearest to one of 256 colours: the sixteen, a cube of six levels, and
/// greys.
fn of_index(index: usize) -> usize {
    let level = |step: usize| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..=15 => index,
        16..=231 => {
            let index = index - 16;
            nearest(level(index / 36), level(index / 6 % 6), level(index % 6))
        }
        _ => {
            let grey = 8 + 10 * (index.min(255) - 232);
            nearest(grey, grey, grey)
        }
    }
}

fn nearest(red: usize, green: usize, blue: usize) -> usize {
    let distance = |(r, g, b): (u8, u8, u8)| {
        let square = |one: u8, other: usize| usize::from(one).abs_diff(other.min(255)).pow(2);
        square(r, red) + square(g, green) + square(b, blue)
    };
    let found = (0..PALETTE.len()).min_by_key(|index| distance(PALETTE[*index]));
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_shown_and_the_rest_is_visible() {
        for (text, html) in [
            ("plain", "plain"),
            ("\x1b[31mred\x1b[0m.", "<span class=\"f1\">red</span>."),
            ("\x1b[1;92;41mx", "<span class=\"f10 b1 bold\">x</span>"),
            ("\x1b[38;5;196mx\x1b[39my", "<span class=\"f9\">x</span>y"),
            (
                "\x1b[38;2;250;10;10;4mx\x1b[m",
                "<span class=\"f9 underlined\">x</span>",
            ),
            ("\x1b[8mnot hidden", "not hidden"),
            ("\x1b[2J", "\x1b[2J"),
            ("\x1b]0;t\x07", "\x1b]0;t\x07"),
            ("\x1b", "\x1b"),
            (
                "\x1b[\x1b[31m<b>",
                "\x1b[<span class=\"f1\">&lt;b&gt;</span>",
            ),
        ] {
            assert_eq!(Ansi::default().render(text).0, html, "{text:?}");
        }
        for parameters in [
            "38",
            "38;5",
            "48;2;1",
            "38;5;999",
            "99999999999999999999",
            ";;;",
        ] {
            let mut ansi = Ansi::default();
            assert_eq!(ansi.render(&format!("\x1b[{parameters}m")).0, "");
        }
    }

    #[test]
    fn a_colour_holds_across_texts() {
        let mut ansi = Ansi::default();
        ansi.render("\x1b[32mone");
        assert_eq!(ansi.render("two").0, "<span class=\"f2\">two</span>");
    }
}
