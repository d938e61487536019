//! Keys of the terminal, one by one: the modes that this needs, and what the bytes mean. The sequences are those of xterm (ctlseqs, "PC-Style Function Keys" and "Bracketed Paste Mode").

use std::{
    io::{self, Write as _},
    os::fd::OwnedFd,
    thread::JoinHandle,
};

use crate::terminal;
use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr},
};

/// Time after which an escape character without a successor is the key Escape.
const ALONE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 30_000_000,
};

/// Time after which Ctrl-C ends a pasted text whose end never came.
const NO_END: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 300_000_000,
};

/// Maximum bytes of a key; a longer pasted text comes in pieces.
const LONGEST: usize = 64 << 10;

const PASTE: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Enter,
    AltEnter,
    Escape,
    Tab,
    /// The tabulator with Shift.
    BackTab,
    /// Moves up: the arrow, or Ctrl-P.
    Up,
    /// Moves down: the arrow, or Ctrl-N.
    Down,
    /// Interrupts: Ctrl-C, unless it is a signal.
    Interrupt,
    /// Suspends: Ctrl-Z, unless it is a signal.
    Suspend,
    /// Ctrl-D, which ends the input on an empty line.
    EndOfInput,
    /// Ctrl-B: to the character before; while a run works, its command goes on in the background.
    Background,
    /// Ctrl-G, which opens the line in an editor.
    Editor,
    /// Ctrl-R, which searches the earlier lines.
    Search,
    /// A key that changes a line or moves the cursor.
    Edit(LineEdit),
}

/// A change of a line, or a move of the cursor in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEdit {
    /// Inserts characters; a pasted text may have line ends.
    Text(String),
    /// Erases the character before the cursor.
    Backspace,
    /// Erases the character behind the cursor.
    Delete,
    /// Erases the word before the cursor.
    EraseWord,
    /// Erases everything before the cursor.
    EraseBefore,
    /// Erases everything behind the cursor.
    EraseAfter,
    /// Moves to the character before.
    Left,
    /// Moves to the character behind.
    Right,
    /// Moves to the word before.
    WordLeft,
    /// Moves to the end of the next word.
    WordRight,
    /// Moves to the beginning.
    Home,
    /// Moves to the end.
    End,
}

/// Whether Ctrl-C and Ctrl-Z stay signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySignals {
    /// Both keys send signals.
    Sent,
    Keys,
}

/// The modes of the terminal before keys were read one by one.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Reads keys until it is dropped, which restores the terminal's modes and leaves further input to
/// the next reader.
pub struct KeyReader {
    /// A pipe that wakes the thread when it is closed.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl KeyReader {
    /// Whether the terminal's input has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.stop = None;
        // What it has read is sent then, and not lost between two readers.
        let _ = self.thread.take().map(JoinHandle::join);
        restore_modes();
    }
}

/// Passes every key that is typed at this process's terminal to `take`, on a separate thread.
///
/// # Errors
/// The terminal's modes cannot be set, or no thread can be started.
pub fn read_keys(
    signals: KeySignals,
    take: impl Fn(Key) + Send + 'static,
) -> io::Result<KeyReader> {
    let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut reading = KeyReader {
        stop: Some(stop),
        thread: None,
    };
    hold_modes(signals)?;
    let read = move || {
        let mut held = Vec::new();
        while let Ok(true) = more(&mut held, &stopped) {
            take_keys(&mut held).into_iter().for_each(&take);
        }
    };
    let thread = std::thread::Builder::new().name("keys".to_owned());
    reading.thread = Some(thread.spawn(read)?);
    Ok(reading)
}

/// Sets the terminal's modes to deliver keys singly and without echo, if they are not set: a shell
/// that continues a stopped process may have set others.
///
/// # Errors
/// The terminal does not take them.
pub fn hold_modes(signals: KeySignals) -> io::Result<()> {
    let stdin = io::stdin();
    let mut modes = tcgetattr(&stdin)?;
    let mut cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    if signals == KeySignals::Keys {
        cooked |= LocalModes::ISIG;
    }
    if !modes.local_modes.intersects(cooked) || !terminal::can_ask() {
        return Ok(());
    }
    let mut before = BEFORE.lock();
    before.get_or_insert_with(|| modes.clone());
    modes.local_modes.remove(cooked);
    tcsetattr(&stdin, OptionalActions::Now, &modes)?;
    io::stderr().write_all(b"\x1b[?2004h")
}

/// Restores the terminal's earlier modes; also called before this process is ended at once.
pub fn restore_modes() {
    let mut before = BEFORE.lock();
    if let Some(modes) = before.take() {
        // A terminal that is gone needs none.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        let _ = io::stderr().write_all(b"\x1b[?2004l");
    }
}

/// Waits for bytes; `false` when nobody wants any more, or none will come.
fn more(held: &mut Vec<u8>, stopped: &OwnedFd) -> io::Result<bool> {
    let stdin = io::stdin();
    loop {
        let mut waiting = [
            PollFd::new(stopped, PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        let limit = match held.as_slice() {
            b"\x1b" => Some(&ALONE),
            [begun @ .., 0x03] if begun.starts_with(PASTE) => Some(&NO_END),
            _ => None,
        };
        match poll(&mut waiting, limit) {
            Err(Errno::INTR) => continue,
            // The escape key; the byte after it is what nothing else sends.
            Ok(0) => {
                held.extend_from_slice(if held.len() == 1 { b"\0" } else { PASTE_ENDS });
                return Ok(true);
            }
            polled => polled?,
        };
        if !waiting[0].revents().is_empty() {
            return Ok(false);
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&stdin, &mut bytes) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return Ok(false),
            Ok(count) => {
                held.extend_from_slice(&bytes[..count]);
                return Ok(true);
            }
        }
    }
}

/// Parses the keys at the beginning of a buffer and removes their bytes. What may be the beginning
/// of a key stays.
fn take_keys(held: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    loop {
        let Some((length, key)) = first(held) else {
            if held.len() <= LONGEST {
                return keys;
            }
            // However long it is, the lines of a pasted text are not sent one by one.
            if held.starts_with(PASTE) {
                keys.push(first_piece(held));
            } else {
                held.drain(..1);
            }
            continue;
        };
        held.drain(..length);
        keys.extend(key);
    }
}

/// Returns the length of the first key, and the key unless it has no meaning here; `None` if more
/// bytes are needed.
fn first(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let key = match *bytes.first()? {
        b'\x1b' => return escaped(bytes),
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Edit(LineEdit::Backspace),
        0x01 => Key::Edit(LineEdit::Home),
        0x02 => Key::Background,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x05 => Key::Edit(LineEdit::End),
        0x06 => Key::Edit(LineEdit::Right),
        0x07 => Key::Editor,
        b'\t' => Key::Tab,
        0x0b => Key::Edit(LineEdit::EraseAfter),
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x12 => Key::Search,
        0x15 => Key::Edit(LineEdit::EraseBefore),
        0x17 => Key::Edit(LineEdit::EraseWord),
        0x1a => Key::Suspend,
        0x00..0x20 => return Some((1, None)),
        _ => return text(bytes),
    };
    Some((1, Some(key)))
}

fn text(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let control = bytes.iter().position(|byte| *byte < 0x20 || *byte == 0x7f);
    let typed = &bytes[..control.unwrap_or(bytes.len())];
    match std::str::from_utf8(typed) {
        Ok(text) => Some((
            typed.len(),
            Some(Key::Edit(LineEdit::Text(text.to_owned()))),
        )),
        Err(error) if error.valid_up_to() > 0 => text(&bytes[..error.valid_up_to()]),
        Err(error) => match error.error_len() {
            None if control.is_none() => None,
            length => Some((length.unwrap_or(typed.len()), None)),
        },
    }
}

/// A key that begins with an escape character.
fn escaped(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let key = match *bytes.get(1)? {
        0 => Key::Escape,
        b'\r' | b'\n' => Key::AltEnter,
        0x7f | 0x08 => Key::Edit(LineEdit::EraseWord),
        b'b' => Key::Edit(LineEdit::WordLeft),
        b'f' => Key::Edit(LineEdit::WordRight),
        b'[' if bytes.starts_with(PASTE) => return pasted(bytes),
        b'[' | b'O' => {
            let is_end = |byte: &u8| *byte < 0x20 || (0x40..=0x7e).contains(byte);
            let end = 2 + bytes[2..].iter().position(is_end)?;
            if bytes[end] < 0x20 {
                return Some((end, None));
            }
            return Some((end + 1, sequence(&bytes[2..=end])));
        }
        // Two of them: the key, and the beginning of another.
        b'\x1b' => return Some((1, Some(Key::Escape))),
        _ => return Some((2, None)),
    };
    Some((2, Some(key)))
}

fn sequence(bytes: &[u8]) -> Option<Key> {
    Some(match bytes {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"Z" => Key::BackTab,
        b"C" => Key::Edit(LineEdit::Right),
        b"D" => Key::Edit(LineEdit::Left),
        b"H" | b"1~" | b"7~" => Key::Edit(LineEdit::Home),
        b"F" | b"4~" | b"8~" => Key::Edit(LineEdit::End),
        b"3~" => Key::Edit(LineEdit::Delete),
        b"1;5C" | b"1;3C" => Key::Edit(LineEdit::WordRight),
        b"1;5D" | b"1;3D" => Key::Edit(LineEdit::WordLeft),
        b"13;3u" | b"27;3;13~" => Key::AltEnter,
        _ => return None,
    })
}

fn pasted(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let body = &bytes[PASTE.len()..];
    let end = body
        .windows(PASTE_ENDS.len())
        .position(|window| window == PASTE_ENDS)?;
    let length = PASTE.len() + end + PASTE_ENDS.len();
    Some((length, Some(pasted_text(&body[..end]))))
}

/// Removes the first half of what has come of a pasted text, whose end is long enough to be folded, too.
fn first_piece(held: &mut Vec<u8>) -> Key {
    let half = held.len() / 2;
    // No character and no line end is cut in two.
    let is_whole = |at: &usize| held[*at] & 0xc0 != 0x80 && held[*at] != b'\n';
    let end = (half..held.len()).find(is_whole).unwrap_or(half);
    let piece = pasted_text(&held[PASTE.len()..end]);
    held.drain(PASTE.len()..end);
    piece
}

fn pasted_text(bytes: &[u8]) -> Key {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let text = text.replace('\r', "\n");
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    Key::Edit(LineEdit::Text(text.chars().filter(is_kept).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(pieces: &[&[u8]]) -> Vec<Key> {
        let (mut held, mut keys) = (Vec::new(), Vec::new());
        for piece in pieces {
            held.extend_from_slice(piece);
            for key in take_keys(&mut held) {
                match (keys.last_mut(), key) {
                    (Some(Key::Edit(LineEdit::Text(before))), Key::Edit(LineEdit::Text(text))) => {
                        before.push_str(&text);
                    }
                    (_, key) => keys.push(key),
                }
            }
        }
        keys
    }

    #[test]
    fn bytes_mean_the_same_keys_however_they_arrive() {
        let typed = "grüße, 日本\x1b[D\x1b[1;5C\x1b\r\x7f\x17\x1b[200~two\r\nlines\x07\x1b[201~\x1b[Z\x1bOH\n";
        let text = |text: &str| Key::Edit(LineEdit::Text(text.to_owned()));
        let keys = [
            text("grüße, 日本"),
            Key::Edit(LineEdit::Left),
            Key::Edit(LineEdit::WordRight),
            Key::AltEnter,
            Key::Edit(LineEdit::Backspace),
            Key::Edit(LineEdit::EraseWord),
            text("two\nlines"),
            Key::BackTab,
            Key::Edit(LineEdit::Home),
            Key::Enter,
        ];
        assert_eq!(keys_of(&[typed.as_bytes()]), keys);
        for size in 1..9 {
            let pieces: Vec<&[u8]> = typed.as_bytes().chunks(size).collect();
            assert_eq!(keys_of(&pieces), keys, "{size}");
        }
    }

    #[test]
    fn what_no_terminal_sends_harms_nothing() {
        for bytes in [
            &b"\xff\xfea"[..],
            b"\xe6\x97\na",
            b"\x1b[999;999;999Qa",
            b"\x1b[\x1b[Aa",
            b"\x00\x03\x1aa",
        ] {
            let keys = keys_of(&[bytes]);
            assert_eq!(
                keys.last(),
                Some(&Key::Edit(LineEdit::Text("a".to_owned()))),
                "{bytes:?}"
            );
        }
    }
}
