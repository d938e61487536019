//! Inputs made from inputs.

use fastrand::Rng;

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
    random: &mut Rng,
) -> Vec<u8> {
    let mut data = input.to_vec();
    for _ in 0..=random.usize(..MOST_STEPS) {
        step(&mut data, others, words, random);
        data.truncate(longest);
    }
    data
}

fn step(data: &mut Vec<u8>, others: &[Vec<u8>], words: &[Vec<u8>], random: &mut Rng) {
    let at = random.usize(..=data.len());
    let end = at + random.usize(..=(data.len() - at).min(MOST_BYTES));
    match random.usize(..12) {
        0 => drop(data.drain(at..end)),
        1 => {
            let copied = data[at..end].to_vec();
            let to = random.usize(..=data.len());
            data.splice(to..to, copied);
        }
        2 | 3 => {
            let other = one(random, others);
            let from = random.usize(..=other.len());
            let part = &other[from..];
            let part = &part[..random.usize(..=part.len())];
            data.splice(at..end, part.iter().copied());
        }
        4 => data.truncate(at),
        5 if at < data.len() => data[at] ^= 1 << random.usize(..8),
        6 => data.insert(at, random.u8(..)),
        7 => {
            // What stands between two of the same kind: quotes, brackets, blanks.
            let byte = *one(random, b"'\"`$(){}[]<>|&;\\ \n\t#*?~=:/-.");
            data.insert(at, byte);
            data.insert((end + 1).min(data.len()), byte);
        }
        8 => {
            let again = data[at..end].repeat(1 + random.usize(..8));
            data.splice(at..at, again);
        }
        _ => {
            let word = one(random, words).iter().copied();
            match random.usize(..2) {
                0 => drop(data.splice(at..at, word)),
                _ => drop(data.splice(at..end, word)),
            }
        }
    }
}

/// One of the list, which is not empty.
pub(crate) fn one<'a, T>(random: &mut Rng, list: &'a [T]) -> &'a T {
    &list[random.usize(..list.len())]
}
