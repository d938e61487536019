//! Keys of a US keyboard as the protocol names them.

use gyrus_contract::HeldKey;
use serde_json::{Value, json};

/// Modifier keys and their bits.
const MODIFIERS: [(&str, &str, u32, u32); 4] = [
    ("Alt", "AltLeft", 18, 1),
    ("Control", "ControlLeft", 17, 2),
    ("Meta", "MetaLeft", 91, 4),
    ("Shift", "ShiftLeft", 16, 8),
];

/// Returns the bits of [`MODIFIERS`] for keys that are held.
pub(crate) fn held_bits(keys: &[HeldKey]) -> u32 {
    let [alt, control, meta, shift] = MODIFIERS.map(|(.., bit)| bit);
    keys.iter().fold(0, |held, key| {
        held | match key {
            HeldKey::Shift => shift,
            HeldKey::Control => control,
            HeldKey::Alt => alt,
            HeldKey::Meta => meta,
        }
    })
}

/// Name, code, Windows key code, and the text that the key types.
const NAMED: [(&str, &str, u32, &str); 18] = [
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("Insert", "Insert", 45, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("Space", "Space", 32, " "),
    ("ContextMenu", "ContextMenu", 93, ""),
    ("CapsLock", "CapsLock", 20, ""),
    ("Pause", "Pause", 19, ""),
];

/// Plain and shifted character, code, Windows key code.
const SIGNS: [(char, char, &str, u32); 21] = [
    ('0', ')', "Digit0", 48),
    ('1', '!', "Digit1", 49),
    ('2', '@', "Digit2", 50),
    ('3', '#', "Digit3", 51),
    ('4', '$', "Digit4", 52),
    ('5', '%', "Digit5", 53),
    ('6', '^', "Digit6", 54),
    ('7', '&', "Digit7", 55),
    ('8', '*', "Digit8", 56),
    ('9', '(', "Digit9", 57),
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    ('`', '~', "Backquote", 192),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
];

/// Editing commands of Control and a letter. They must be sent along: keys of the protocol do not
/// trigger the browser's own shortcuts.
const COMMANDS: [(&str, &str); 7] = [
    ("a", "selectAll"),
    ("c", "copy"),
    ("v", "paste"),
    ("x", "cut"),
    ("z", "undo"),
    ("Z", "redo"),
    ("y", "redo"),
];

/// A key and its modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chord {
    key: String,
    code: String,
    number: u32,
    text: String,
    /// Bits of the held [`MODIFIERS`].
    held: u32,
}

/// A step of typing a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stroke {
    Key(Chord),
    /// Text that no key of this keyboard types.
    Text(String),
}

impl Stroke {
    /// Splits a text into strokes. `lines`: a line ends with Enter, or else it is text as any
    /// other.
    pub(crate) fn of(text: &str, lines: bool) -> Vec<Self> {
        let mut strokes: Vec<Self> = Vec::new();
        for letter in text.chars() {
            let chord = match letter {
                '\n' if lines => Chord::parse("Enter").ok(),
                _ => Chord::of_letter(letter),
            };
            match (chord, strokes.last_mut()) {
                (Some(chord), _) => strokes.push(Stroke::Key(chord)),
                (None, Some(Stroke::Text(text))) => text.push(letter),
                (None, _) => strokes.push(Stroke::Text(letter.to_string())),
            }
        }
        strokes
    }
}

impl Chord {
    /// Parses a key like `Control+a`, `Shift+Tab`, `Enter`, `é`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let unknown = || {
            let text = gyrus_text::shorten(text, 40);
            format!(
                "invalid key `{text}`: a key is a character, or one of Enter, Tab, Escape, Backspace, Delete, Home, End, PageUp, PageDown, ArrowLeft, ArrowUp, ArrowRight, ArrowDown, Space, F1 … F12, with Control+, Shift+, Alt+ or Meta+ before it"
            )
        };
        let mut held = 0;
        let mut rest = text;
        // A plus sign may be the key itself.
        while let Some((modifier, after)) =
            rest.split_once('+').filter(|(_, after)| !after.is_empty())
        {
            let known = MODIFIERS.iter().find(|(name, ..)| {
                name.eq_ignore_ascii_case(modifier)
                    || (*name == "Control" && modifier.eq_ignore_ascii_case("ctrl"))
            });
            held |= known.ok_or_else(unknown)?.3;
            rest = after;
        }
        let mut letters = rest.chars();
        let mut chord = match (letters.next(), letters.next()) {
            (Some(letter), None) => Self::of_letter(letter).unwrap_or_else(|| Self {
                key: rest.to_owned(),
                code: String::new(),
                number: 0,
                text: rest.to_owned(),
                held: 0,
            }),
            _ => Self::named(rest).ok_or_else(unknown)?,
        };
        chord.held |= held;
        // Shift and a letter is the capital one.
        if chord.held & 8 != 0 && chord.key.len() == 1 {
            chord.key = chord.key.to_uppercase();
            chord.text = chord.text.to_uppercase();
        }
        Ok(chord)
    }

    /// Returns the name of the key in its canonical form.
    pub(crate) fn name(&self) -> String {
        let held = MODIFIERS.iter().filter(|(.., bit)| self.held & bit != 0);
        let mut name: String = held.map(|(name, ..)| format!("{name}+")).collect();
        name.push_str(match self.key.as_str() {
            " " => "Space",
            other => other,
        });
        name
    }

    /// Returns the key without its modifiers: a character, or a name.
    #[cfg(feature = "desktop")]
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the bits of the [`MODIFIERS`] that are held.
    #[cfg(feature = "desktop")]
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    fn named(name: &str) -> Option<Self> {
        let alias = match name.to_ascii_lowercase().as_str() {
            "return" => "Enter".to_owned(),
            "esc" => "Escape".to_owned(),
            "del" => "Delete".to_owned(),
            "left" | "right" | "up" | "down" => format!("Arrow{name}"),
            _ => name.to_owned(),
        };
        let modifiers = MODIFIERS
            .iter()
            .map(|(name, code, number, _)| (*name, *code, *number, ""));
        let mut all = NAMED.iter().copied().chain(modifiers);
        if let Some((key, code, number, text)) =
            all.find(|(key, ..)| key.eq_ignore_ascii_case(&alias))
        {
            return Some(Self {
                key: if key == "Space" { " " } else { key }.to_owned(),
                code: code.to_owned(),
                number,
                text: text.to_owned(),
                held: 0,
            });
        }
        let function: u32 = name.strip_prefix(['F', 'f'])?.parse().ok()?;
        (1..=12).contains(&function).then(|| Self {
            key: format!("F{function}"),
            code: format!("F{function}"),
            number: 111 + function,
            text: String::new(),
            held: 0,
        })
    }

    fn of_letter(letter: char) -> Option<Self> {
        let chord = |code: String, number: u32, held: u32| Self {
            key: letter.to_string(),
            code,
            number,
            text: letter.to_string(),
            held,
        };
        let upper = letter.to_ascii_uppercase();
        if upper.is_ascii_uppercase() {
            let shift = if letter.is_ascii_uppercase() { 8 } else { 0 };
            return Some(chord(format!("Key{upper}"), u32::from(upper), shift));
        }
        if letter == ' ' {
            return Some(chord("Space".to_owned(), 32, 0));
        }
        let sign = SIGNS
            .iter()
            .find(|(plain, shifted, ..)| letter == *plain || letter == *shifted);
        sign.map(|(plain, _, code, number)| {
            let shift = if letter == *plain { 0 } else { 8 };
            chord((*code).to_owned(), *number, shift)
        })
    }

    /// Returns the events of the keyboard, with those of the modifiers around them.
    pub(crate) fn events(&self) -> Vec<Value> {
        // Held keys of a single capital letter are part of the letter.
        let told = |bit: u32| bit != 8 || self.text.is_empty() || self.held != 8;
        let around: Vec<_> = MODIFIERS
            .iter()
            .filter(|(.., bit)| self.held & bit != 0 && told(*bit))
            .collect();
        let mut events = Vec::new();
        let mut down = 0;
        for (key, code, number, bit) in &around {
            down |= bit;
            events.push(json!({
                "type": "rawKeyDown", "key": key, "code": code,
                "windowsVirtualKeyCode": number, "modifiers": down,
            }));
        }
        let types = !self.text.is_empty() && self.held & 7 == 0;
        let mut press = json!({
            "type": if types { "keyDown" } else { "rawKeyDown" },
            "key": self.key, "code": self.code,
            "windowsVirtualKeyCode": self.number, "modifiers": self.held,
        });
        if types {
            press["text"] = json!(self.text);
            press["unmodifiedText"] = json!(self.text);
        }
        if self.held & 6 != 0 && self.held & 1 == 0 {
            let command = COMMANDS.iter().find(|(key, _)| *key == self.key);
            if let Some((_, command)) = command {
                press["commands"] = json!([command]);
            }
        }
        events.push(press);
        events.push(json!({
            "type": "keyUp", "key": self.key, "code": self.code,
            "windowsVirtualKeyCode": self.number, "modifiers": self.held,
        }));
        for (key, code, number, bit) in around.iter().rev() {
            down &= !bit;
            events.push(json!({
                "type": "keyUp", "key": key, "code": code,
                "windowsVirtualKeyCode": number, "modifiers": down,
            }));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        for (given, name) in [
            ("Control+a", "Control+a"),
            ("ctrl+A", "Control+Shift+A"),
            ("Shift+Tab", "Shift+Tab"),
            ("esc", "Escape"),
            ("down", "ArrowDown"),
            ("Control++", "Control+Shift++"),
            ("+", "Shift++"),
            ("é", "é"),
            ("Space", "Space"),
            (" ", "Space"),
            ("F5", "F5"),
        ] {
            assert_eq!(Chord::parse(given).unwrap().name(), name, "{given}");
        }
        for wrong in ["", "Return; touch FLAG", "Hyper+a", "F13", "Control+"] {
            assert!(Chord::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_no_key_types_comes_as_text() {
        let strokes = Stroke::of("a世界\n", false);
        assert_eq!(strokes.len(), 2, "{strokes:?}");
        assert_eq!(strokes[1], Stroke::Text("世界\n".to_owned()));
        assert_eq!(Stroke::of("a\n", true).len(), 2);
    }

    #[test]
    fn editing_comes_with_its_command() {
        let events = Chord::parse("Control+a").unwrap().events();
        assert_eq!(events.len(), 4);
        assert_eq!(events[1]["commands"], json!(["selectAll"]));
        assert_eq!(events[1].get("text"), None);
        let shifted = Chord::parse("A").unwrap().events();
        assert_eq!(shifted.len(), 2);
        assert_eq!(shifted[0]["text"], "A");
    }
}
