//! The start and the end of an output of any length, in bounded memory.

use std::collections::VecDeque;

use gyrus_contract::CapturedOutput;

/// Collects output, and keeps its first and its last bytes.
#[derive(Debug)]
pub struct Capture {
    head_bytes: usize,
    tail_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted_bytes: u64,
}

impl Capture {
    /// Keeps this many bytes of the start and of the end.
    pub fn new(head_bytes: usize, tail_bytes: usize) -> Self {
        Self {
            head_bytes,
            tail_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            omitted_bytes: 0,
        }
    }

    /// Takes more output.
    pub fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..surplus);
        self.omitted_bytes += surplus as u64;
    }

    /// Returns the text, cut between characters: a character that does not fit whole into the head
    /// goes to the tail if they touch, and is left out if they do not.
    pub fn finish(self) -> CapturedOutput {
        let Self {
            mut head,
            tail,
            mut omitted_bytes,
            ..
        } = self;
        let mut tail = Vec::from(tail);
        let started = head.split_off(head.len() - unfinished_bytes(&head));
        if omitted_bytes == 0 {
            tail.splice(..0, started);
        } else {
            let continued = tail
                .iter()
                .take(3)
                .take_while(|byte| is_continuation(**byte))
                .count();
            tail.drain(..continued);
            omitted_bytes += (started.len() + continued) as u64;
        }
        let mut invalid_bytes = 0;
        CapturedOutput {
            head: text(&head, &mut invalid_bytes),
            tail: text(&tail, &mut invalid_bytes),
            omitted_bytes,
            invalid_bytes,
        }
    }
}

/// Returns the text with each byte that is not UTF-8 as `\xNN`, and counts these bytes.
fn text(bytes: &[u8], invalid_bytes: &mut u64) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            *invalid_bytes += 1;
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns the length of an incomplete UTF-8 character at the end of `bytes`.
fn unfinished_bytes(bytes: &[u8]) -> usize {
    let Some(back) = bytes
        .iter()
        .rev()
        .take(4)
        .position(|byte| !is_continuation(*byte))
    else {
        return 0;
    };
    let have = back + 1;
    let need = match bytes[bytes.len() - have] {
        0b1100_0000..=0b1101_1111 => 2,
        0b1110_0000..=0b1110_1111 => 3,
        0b1111_0000..=0b1111_0111 => 4,
        _ => 1,
    };
    if have < need { have } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], head_bytes: usize, tail_bytes: usize, expected: (&str, &str, u64)) {
        // However the output arrives, the same is kept.
        for chunk in 1..=input.len().max(1) {
            let mut capture = Capture::new(head_bytes, tail_bytes);
            input.chunks(chunk).for_each(|bytes| capture.push(bytes));
            assert!(capture.head.len() <= head_bytes && capture.tail.len() <= tail_bytes);
            let CapturedOutput {
                head,
                tail,
                omitted_bytes,
                ..
            } = capture.finish();
            assert_eq!(
                (head.as_str(), tail.as_str(), omitted_bytes),
                expected,
                "chunk {chunk}"
            );
        }
    }

    #[test]
    fn keeps_head_and_tail() {
        check(b"", 4, 4, ("", "", 0));
        check(b"abcd", 4, 4, ("abcd", "", 0));
        check(b"abcdefgh", 4, 4, ("abcd", "efgh", 0));
        check(b"abcdefghi", 4, 4, ("abcd", "fghi", 1));
        check(b"abcdef", 0, 2, ("", "ef", 4));
        check(b"abcdef", 2, 0, ("ab", "", 4));
    }

    #[test]
    fn cuts_between_characters() {
        // é is two bytes, 漢 three, 🦀 four.
        check("aé".as_bytes(), 2, 4, ("a", "é", 0));
        check("漢漢漢".as_bytes(), 4, 4, ("漢", "漢", 3));
        check("🦀🦀🦀".as_bytes(), 5, 5, ("🦀", "🦀", 4));
        check("🦀🦀".as_bytes(), 5, 3, ("🦀", "🦀", 0));
        check("ééé".as_bytes(), 3, 2, ("é", "é", 2));
    }

    #[test]
    fn shows_bytes_that_are_not_text() {
        check(b"a\xffb", 8, 8, (r"a\xFFb", "", 0));
        check(b"\xff\xff\xff\xff", 1, 1, (r"\xFF", r"\xFF", 2));
        // Ends in the middle of a character for good.
        check(b"ab\xe6\xbc", 8, 8, ("ab", r"\xE6\xBC", 0));
        let mut capture = Capture::new(8, 8);
        capture.push(b"caf\xe9 \xff!");
        assert_eq!(capture.finish().invalid_bytes, 2);
    }
}
