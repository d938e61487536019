//! Mutations of streams.

use fastrand::Rng;

/// Maximum bytes of a mutated stream.
const MAX_STREAM_BYTES: usize = 256 * 1024;

/// Bytes with a meaning for readers.
const MEANING: &[u8] = b"\"{}[]:,\\\n\r 0-9eE.u\0\xff\xc3\xed\xf0\t";

/// Mutates `stream` in one to four places, seldom in many. `other` is a stream to copy from.
pub(super) fn mutate(stream: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let times = match random.usize(..16) {
        0 => 32,
        few => 1 + few % 4,
    };
    for _ in 0..times {
        if stream.is_empty() || stream.len() > MAX_STREAM_BYTES {
            return;
        }
        once(stream, other, random);
    }
}

fn once(stream: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let at = random.usize(..stream.len());
    match random.usize(..10) {
        0 => stream[at] ^= 1 << random.usize(..8),
        1 => stream[at] = MEANING[random.usize(..MEANING.len())],
        2 => stream.insert(at, MEANING[random.usize(..MEANING.len())]),
        3 => {
            stream.remove(at);
        }
        4 => stream.truncate(at),
        5 => {
            stream.drain(range(stream.len(), at, random));
        }
        6 => {
            let copy = stream[range(stream.len(), at, random)].to_vec();
            let times = match random.usize(..8) {
                0 => 1 + random.usize(..200),
                _ => 1,
            };
            stream.splice(at..at, copy.repeat(times));
        }
        7 => {
            let start = random.usize(..other.len());
            let stolen = other[range(other.len(), start, random)].to_vec();
            stream.splice(at..at, stolen);
        }
        8 => swap_lines(stream, random),
        _ => replace_number(stream, at, random),
    }
}

/// Returns a range from `at` on, mostly short.
fn range(length: usize, at: usize, random: &mut Rng) -> std::ops::Range<usize> {
    let longest = match random.usize(..4) {
        0 => length,
        _ => 16,
    };
    at..(at + 1 + random.usize(..longest)).min(length)
}

/// Swaps two lines of the stream.
fn swap_lines(stream: &mut Vec<u8>, random: &mut Rng) {
    let mut lines: Vec<_> = stream.split(|&byte| byte == b'\n').collect();
    let (first, second) = (random.usize(..lines.len()), random.usize(..lines.len()));
    lines.swap(first, second);
    *stream = lines.join(&b'\n');
}

/// Replaces the next number by an implausible one.
fn replace_number(stream: &mut Vec<u8>, at: usize, random: &mut Rng) {
    const NUMBERS: [&str; 8] = [
        "-1",
        "1e999",
        "1.5",
        "18446744073709551616",
        "9007199254740993",
        "null",
        "-0",
        "true",
    ];
    let Some(start) = stream[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let digits = stream[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let end = start + digits.count();
    stream.splice(start..end, NUMBERS[random.usize(..NUMBERS.len())].bytes());
}
