//! The keyboard of a desktop, by the XTEST extension.
//!
//! Keys of the present layout are pressed as a person presses them. For a character that the layout
//! does not have, a key that means nothing is given that meaning for a moment. A key is given
//! another meaning only after the program has read what was typed with the one before: programs
//! look up the meaning when they read the event, not when it happens.

use std::{collections::BTreeMap, iter::Peekable, str::Chars};

use x11rb::protocol::xproto::{
    self, ConnectionExt as _, EventMask, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, Window,
};

use super::{
    display::{Display, DisplayError, NotSentReason},
    lent_keys::{LentKeys, PressedKey},
    status_dot::ESCAPE,
};
use crate::input::Chord;

/// Maximum number of keys sent before waiting for the program to read them.
const AT_ONCE: usize = 200;

/// Time limit for a program to report that it has read its events.
const ANSWER: std::time::Duration = std::time::Duration::from_secs(5);

/// Whether a program has read the keys that were sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The program has read the keys, as far as it can be asked.
    Read,
    /// The program has not reported so in time; it may have read the keys, or will yet.
    Unknown,
}

/// Keysyms of modifier keys, with the bits of a chord that hold them.
const MODIFIERS: [(u32, u32); 4] = [(1, 0xffe9), (2, 0xffe3), (4, 0xffeb), (8, 0xffe1)];

/// The keysym of Shift.
const SHIFT: u32 = 0xffe1;
const CAPS_LOCK: u32 = 0xffe5;

/// Names of keys in chords, with their keysyms.
const NAMED: [(&str, u32); 21] = [
    ("Enter", 0xff0d),
    ("Tab", 0xff09),
    ("Escape", ESCAPE),
    ("Backspace", 0xff08),
    ("Delete", 0xffff),
    ("Insert", 0xff63),
    ("Home", 0xff50),
    ("End", 0xff57),
    ("PageUp", 0xff55),
    ("PageDown", 0xff56),
    ("ArrowLeft", 0xff51),
    ("ArrowUp", 0xff52),
    ("ArrowRight", 0xff53),
    ("ArrowDown", 0xff54),
    ("ContextMenu", 0xff67),
    ("CapsLock", CAPS_LOCK),
    ("Pause", 0xff13),
    ("Alt", 0xffe9),
    ("Control", 0xffe3),
    ("Meta", 0xffeb),
    ("Shift", SHIFT),
];

/// Returns the keysym of a character (X11 protocol, appendix A: Latin 1 is itself, the rest of
/// Unicode follows from 0x01000000); `None` for a control character that no key types.
fn keysym(letter: char) -> Option<u32> {
    match letter {
        '\n' => Some(0xff0d),
        '\t' => Some(0xff09),
        ' '..='~' | '\u{a0}'..='\u{ff}' => Some(u32::from(letter)),
        letter if letter.is_control() => None,
        letter => Some(0x0100_0000 | u32::from(letter)),
    }
}

/// Returns the first character of a text that no key types.
pub(super) fn untypable(text: &str) -> Option<char> {
    text.chars().find(|letter| keysym(*letter).is_none())
}

fn keysym_of(chord: &Chord) -> Option<u32> {
    let key = chord.key();
    let mut letters = key.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return keysym(letter);
    }
    if let Some((_, symbol)) = NAMED.iter().find(|(name, _)| *name == key) {
        return Some(*symbol);
    }
    let function: u32 = key.strip_prefix('F')?.parse().ok()?;
    Some(0xffbd + function)
}

/// Meanings of the keys.
struct KeyboardLayout {
    first: u8,
    /// The number of keysyms of each key.
    width: usize,
    symbols: Vec<u32>,
    /// Index of the group of keysyms that is active.
    group: usize,
    has_caps_lock: bool,
}

impl KeyboardLayout {
    fn codes(&self) -> impl Iterator<Item = (u8, &[u32])> {
        (self.first..=u8::MAX).zip(self.symbols.chunks_exact(self.width))
    }

    /// Returns the key with this meaning, and whether Shift must be held.
    fn key(&self, symbol: u32) -> Option<(u8, bool)> {
        let meanings = |symbols: &[u32]| {
            let own = symbols.get(self.group * 2..).unwrap_or_default();
            match own {
                [plain, shifted, ..] if (*plain, *shifted) != (0, 0) => (*plain, *shifted),
                // Keys as Enter mean the same in every group.
                _ => (symbols[0], symbols.get(1).copied().unwrap_or(0)),
            }
        };
        let mut found = self
            .codes()
            .map(|(code, symbols)| (code, meanings(symbols)))
            .filter_map(|(code, (plain, shifted))| match symbol {
                _ if plain == symbol => Some((code, false)),
                _ if shifted == symbol => Some((code, true)),
                _ => None,
            });
        found.next()
    }

    /// Returns the keys without a meaning.
    fn spare(&self) -> Vec<u8> {
        let is_spare = |(_, symbols): &(u8, &[u32])| symbols.iter().all(|symbol| *symbol == 0);
        self.codes()
            .filter(is_spare)
            .map(|(code, _)| code)
            .collect()
    }
}

/// Keys with borrowed meanings, which they lose when the value is dropped.
struct BorrowedKeys<'a> {
    display: &'a Display,
    width: u8,
    codes: Vec<u8>,
}

impl BorrowedKeys<'_> {
    /// Assigns meanings to keys, without and with Shift, with one request for adjacent keys.
    fn lend(&mut self, meanings: &BTreeMap<u8, [u32; 2]>) -> Result<(), DisplayError> {
        let codes: Vec<u8> = meanings.keys().copied().collect();
        for run in codes.chunk_by(|one, next| one + 1 == *next) {
            let symbols = run.iter().flat_map(|code| {
                // Every group of the layout has both.
                let both = meanings[code].iter().copied().cycle();
                both.take(usize::from(self.width))
            });
            self.change(run, &symbols.collect::<Vec<_>>())?;
        }
        self.codes.extend(
            codes
                .iter()
                .filter(|code| !self.codes.contains(code))
                .copied()
                .collect::<Vec<_>>(),
        );
        Ok(())
    }

    fn change(&self, codes: &[u8], symbols: &[u32]) -> Result<(), DisplayError> {
        let count = u8::try_from(codes.len()).unwrap_or(u8::MAX);
        let changed = self
            .display
            .connection
            .change_keyboard_mapping(count, codes[0], self.width, symbols);
        changed.map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for BorrowedKeys<'_> {
    fn drop(&mut self) {
        for code in &self.codes {
            let _ = self.change(&[*code], &vec![0; usize::from(self.width)]);
        }
        let _ = self.display.sync();
    }
}

/// A text being typed. When the value is dropped, the keyboard is restored.
pub(super) struct TextTyping<'a> {
    borrowed: BorrowedKeys<'a>,
    layout: KeyboardLayout,
    lent: LentKeys,
    /// The key of Shift.
    shift: Option<u8>,
    window: Window,
    letters: Peekable<Chars<'a>>,
    /// The key that switches Caps Lock on again.
    caps_lock: Option<u8>,
}

impl TextTyping<'_> {
    /// Whether all of the text was typed.
    pub(super) fn is_done(&mut self) -> bool {
        self.letters.peek().is_none()
    }

    /// Types the next part of the text, of at most [`AT_ONCE`] characters, if the keyboard is still
    /// in the window, and waits until the program has read it. Returns the number of characters.
    pub(super) async fn next_part(
        &mut self,
    ) -> Result<Result<(usize, Arrival), NotSentReason>, DisplayError> {
        self.lent.begin_part();
        let mut keys: Vec<PressedKey> = Vec::new();
        while keys.len() < AT_ONCE
            && let Some(&letter) = self.letters.peek()
        {
            let symbol = keysym(letter).ok_or("a control character cannot be typed")?;
            let known = self.layout.key(symbol);
            let known = known.filter(|(_, shifted)| !shifted || self.shift.is_some());
            match known.or_else(|| self.lent.key(symbol)) {
                Some(key) => keys.push(key),
                None if keys.is_empty() => {
                    return Err(format!("no key is free for the character `{letter}`"));
                }
                None => break,
            }
            self.letters.next();
        }
        self.borrowed.lend(&self.lent.changes())?;
        let display = self.borrowed.display;
        let sent = display.with_keyboard_in(self.window, || {
            for (code, shifted) in &keys {
                let held = self.shift.filter(|_| *shifted);
                display.tap(*code, held.as_slice())?;
            }
            Ok(())
        })?;
        if let Err(why) = sent {
            return Ok(Err(why));
        }
        let arrival = display.until_read(self.window).await?;
        Ok(Ok((keys.len(), arrival)))
    }
}

impl Drop for TextTyping<'_> {
    fn drop(&mut self) {
        if let Some(code) = self.caps_lock {
            let _ = self.borrowed.display.tap(code, &[]);
        }
    }
}

impl Display {
    fn layout(&self) -> Result<KeyboardLayout, DisplayError> {
        let setup = {
            use x11rb::connection::Connection as _;
            self.connection.setup()
        };
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let asked = self
            .connection
            .get_keyboard_mapping(first, last - first + 1)
            .map_err(|error| error.to_string())?;
        let mapping = asked.reply().map_err(|error| error.to_string())?;
        let asked = self.connection.query_pointer(self.screen.root);
        let state = asked.map_err(|error| error.to_string())?.reply();
        let state = u16::from(state.map_err(|error| error.to_string())?.mask);
        Ok(KeyboardLayout {
            first,
            width: usize::from(mapping.keysyms_per_keycode).max(1),
            symbols: mapping.keysyms,
            // Bits 13 and 14 of the state (the X keyboard extension).
            group: usize::from(state >> 13 & 3),
            has_caps_lock: state & u16::from(xproto::ModMask::LOCK) != 0,
        })
    }

    fn tap(&self, code: u8, held: &[u8]) -> Result<(), DisplayError> {
        for held in held {
            self.fake(KEY_PRESS_EVENT, *held, (0, 0))?;
        }
        self.fake(KEY_PRESS_EVENT, code, (0, 0))?;
        self.fake(KEY_RELEASE_EVENT, code, (0, 0))?;
        for held in held.iter().rev() {
            self.fake(KEY_RELEASE_EVENT, *held, (0, 0))?;
        }
        Ok(())
    }

    /// Begins to type a text where the keyboard is, which must be in `window`. Line breaks are
    /// Enter.
    pub(super) fn typing<'a>(
        &'a self,
        text: &'a str,
        window: Window,
    ) -> Result<TextTyping<'a>, DisplayError> {
        let layout = self.layout()?;
        let caps_lock = layout.key(CAPS_LOCK).filter(|_| layout.has_caps_lock);
        let caps_lock = caps_lock.map(|(code, _)| code);
        if let Some(code) = caps_lock {
            self.tap(code, &[])?;
        }
        let shift = layout.key(SHIFT).map(|(code, _)| code);
        Ok(TextTyping {
            borrowed: BorrowedKeys {
                display: self,
                width: u8::try_from(layout.width).unwrap_or(u8::MAX),
                codes: Vec::new(),
            },
            lent: LentKeys::new(&layout.spare(), shift),
            shift,
            layout,
            window,
            letters: text.chars().peekable(),
            caps_lock,
        })
    }

    /// Presses a key with its modifiers, if the window has the keyboard.
    pub(super) async fn strike(
        &self,
        chord: &Chord,
        window: Window,
    ) -> Result<Result<Arrival, NotSentReason>, DisplayError> {
        let layout = self.layout()?;
        let symbol = keysym_of(chord).ok_or_else(|| format!("no key is {}", chord.name()))?;
        let lower = char::from_u32(symbol).map(|letter| u32::from(letter.to_ascii_lowercase()));
        let known = layout.key(symbol).or_else(|| layout.key(lower?));
        let mut held = self.held(&layout, chord.held());
        let mut borrowed = BorrowedKeys {
            display: self,
            width: u8::try_from(layout.width).unwrap_or(u8::MAX),
            codes: Vec::new(),
        };
        let code = match (known, layout.spare().first()) {
            (Some((code, shifted)), _) => {
                let shift = layout.key(SHIFT).map(|(code, _)| code);
                held.extend(shift.filter(|shift| shifted && !held.contains(shift)));
                code
            }
            (None, Some(code)) => {
                borrowed.lend(&[(*code, [symbol; 2])].into())?;
                *code
            }
            (None, None) => return Err(format!("no key is free for {}", chord.name())),
        };
        if symbol == ESCAPE {
            self.announce_escape()?;
        }
        if let Err(why) = self.with_keyboard_in(window, || self.tap(code, &held))? {
            return Ok(Err(why));
        }
        self.until_read(window).await.map(Ok)
    }

    fn held(&self, layout: &KeyboardLayout, bits: u32) -> Vec<u8> {
        MODIFIERS
            .iter()
            .filter(|(bit, _)| bits & bit != 0)
            .filter_map(|(_, symbol)| layout.key(*symbol))
            .map(|(code, _)| code)
            .collect()
    }

    /// Presses modifier keys, given as bits of a chord, until the result is dropped.
    pub(super) fn hold(&self, bits: u32) -> Result<HeldKeys<'_>, DisplayError> {
        let mut held = HeldKeys {
            display: self,
            codes: Vec::new(),
        };
        if bits != 0 {
            for code in self.held(&self.layout()?, bits) {
                self.fake(KEY_PRESS_EVENT, code, (0, 0))?;
                held.codes.push(code);
            }
        }
        Ok(held)
    }

    /// Waits until the program of a window has read all events sent to it: it answers a ping (EWMH)
    /// in the order of its events. A program that does not know pings is waited for until the
    /// screen is still.
    pub(super) async fn until_read(&self, window: Window) -> Result<Arrival, DisplayError> {
        let (protocols, ping) = (self.atom("WM_PROTOCOLS")?, self.atom("_NET_WM_PING")?);
        if !self.numbers(window, "WM_PROTOCOLS")?.contains(&ping) {
            return self.settle().await.map(|_| Arrival::Read);
        }
        let serial = self.next_ping();
        let message =
            xproto::ClientMessageEvent::new(32, window, protocols, [ping, serial, window, 0, 0]);
        self.connection
            .send_event(false, window, EventMask::NO_EVENT, message)
            .map_err(|error| error.to_string())?;
        let answered = async {
            // A window that is gone has read all that it ever will.
            while !self.is_answered(serial)? && self.is_there(window)? {
                self.wait_for_event().await?;
            }
            Ok(Arrival::Read)
        };
        let answered = tokio::time::timeout(ANSWER, answered).await;
        answered.unwrap_or(Ok(Arrival::Unknown))
    }
}

pub(super) struct HeldKeys<'a> {
    display: &'a Display,
    codes: Vec<u8>,
}

impl Drop for HeldKeys<'_> {
    fn drop(&mut self) {
        for code in self.codes.iter().rev() {
            let _ = self.display.fake(KEY_RELEASE_EVENT, *code, (0, 0));
        }
        let _ = self.display.sync();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_keysyms() {
        for (letter, symbol) in [
            ('a', Some(0x61)),
            ('é', Some(0xe9)),
            ('\n', Some(0xff0d)),
            ('ż', Some(0x0100_017c)),
            ('世', Some(0x0100_4e16)),
            ('😀', Some(0x0101_f600)),
            ('\u{7}', None),
            ('\u{85}', None),
        ] {
            assert_eq!(keysym(letter), symbol, "{letter:?}");
        }
        for (key, symbol) in [("F5", 0xffc2), ("Enter", 0xff0d), ("Control+a", 0x61)] {
            let chord = Chord::parse(key).unwrap();
            assert_eq!(keysym_of(&chord), Some(symbol), "{key}");
        }
    }
}
