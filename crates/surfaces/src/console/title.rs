//! The title of the terminal's window, and notifications where the terminal shows some. Both have words of
//! ours and the name of a folder alone: nothing that a model or a page says reaches them.

use std::{
    io::{self, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use gyrus_text::{clip, one_line};

/// Columns of a title.
const COLUMNS: usize = 60;

static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Lets a conversation set the title; the terminal keeps the one before.
pub fn begin_titles() {
    IS_SHOWN.store(true, Ordering::Relaxed);
    write("\x1b[22;2t");
}

/// Gives the terminal the title back that it had.
pub fn end_titles() {
    write("\x1b[23;2t");
    IS_SHOWN.store(false, Ordering::Relaxed);
}

/// Sets the title.
pub fn set_title(words: &str) {
    let words = clip(&one_line(words), COLUMNS);
    write(&format!("\x1b]2;gyrus {words}\x07"));
}

/// Tells the person that they are waited for, as xterm's control 9 does in many terminals.
pub(super) fn notify() {
    set_title("asks you");
    write("\x1b]9;gyrus waits for your answer\x07");
}

/// Writes a sequence, if titles are shown. Errors mean that the terminal is gone.
fn write(sequence: &str) {
    if IS_SHOWN.load(Ordering::Relaxed) {
        let mut stream = io::stderr().lock();
        let _ = stream.write_all(sequence.as_bytes());
        let _ = stream.flush();
    }
}
