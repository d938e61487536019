//! Inputs made from inputs.

use crate::random::Random;

/// Steps from one input to the next, at most.
const MOST_STEPS: usize = 5;

/// Bytes that a step copies, takes away or moves, at most.
const MOST_BYTES: usize = 64;

/// Makes an input from one of these and from the words of the target.
pub(crate) fn mutate(
    input: &[u8],
    others: &[Vec<u8>],
    words: &[Vec<u8>],
    longest: usize,
    random: &mut Random,
) -> Vec<u8> {
    let mut data = input.to_vec();
    for _ in 0..=random.below(MOST_STEPS) {
        step(&mut data, others, words, random);
        data.truncate(longest);
    }
    data
}

fn step(data: &mut Vec<u8>, others: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) {
    let at = random.below(data.len() + 1);
    let end = at + random.below((data.len() - at).min(MOST_BYTES) + 1);
    match random.below(12) {
        0 => drop(data.drain(at..end)),
        1 => {
            let copied = data[at..end].to_vec();
            let to = random.below(data.len() + 1);
            data.splice(to..to, copied);
        }
        2 | 3 => {
            let other = random.one(others);
            let from = random.below(other.len() + 1);
            let part = &other[from..];
            let part = &part[..random.below(part.len() + 1)];
            data.splice(at..end, part.iter().copied());
        }
        4 => data.truncate(at),
        5 if at < data.len() => data[at] ^= 1 << random.below(8),
        6 => data.insert(at, random.byte()),
        7 => {
            // What stands between two of the same kind: quotes, brackets, blanks.
            let byte = *random.one(b"'\"`$(){}[]<>|&;\\ \n\t#*?~=:/-.");
            data.insert(at, byte);
            data.insert((end + 1).min(data.len()), byte);
        }
        8 => {
            let again = data[at..end].repeat(1 + random.below(8));
            data.splice(at..at, again);
        }
        _ => {
            let word = random.one(words).iter().copied();
            match random.below(2) {
                0 => drop(data.splice(at..at, word)),
                _ => drop(data.splice(at..end, word)),
            }
        }
    }
}
