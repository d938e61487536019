//! Pairing: a code that the console shows makes whoever sends it a person of the chat. It counts
//! once, for ten minutes, and is forgotten after a few wrong ones.

use std::{
    io,
    time::{Duration, Instant},
};

/// Number of minutes for which a code counts.
pub const PAIRING_MINUTES: u64 = 10;

/// Number of wrong codes after which the right one is rejected too.
const ATTEMPTS: u32 = 5;

/// Number of characters of a code.
const LENGTH: usize = 8;

/// Characters of codes, none of which is easily mistaken for another.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The code that is valid at this moment, if there is one.
#[derive(Debug, Default)]
pub(crate) struct CurrentPairing(Option<OpenCode>);

#[derive(Debug)]
struct OpenCode {
    hash: blake3::Hash,
    until: Instant,
    attempts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeTried {
    /// The code was right, and is used up now.
    Right,
    Wrong,
    /// No code is valid at present.
    NoneOpen,
}

impl CurrentPairing {
    /// Creates a code, which replaces the previous one.
    pub(crate) fn begin(&mut self) -> io::Result<String> {
        let mut random = [0; LENGTH];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        // 256 is a multiple of 32, so no character is likelier than another.
        let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
        let code: String = random.into_iter().map(letter).collect();
        self.0 = Some(OpenCode {
            hash: blake3::hash(code.as_bytes()),
            until: Instant::now() + Duration::from_secs(PAIRING_MINUTES * 60),
            attempts: 0,
        });
        Ok(code)
    }

    pub(crate) fn try_code(&mut self, given: &str) -> CodeTried {
        let Some(open) = self.0.as_mut().filter(|open| Instant::now() < open.until) else {
            self.0 = None;
            return CodeTried::NoneOpen;
        };
        let given = given.trim().to_ascii_uppercase();
        // Hashes are compared in constant time.
        if blake3::hash(given.as_bytes()) == open.hash {
            self.0 = None;
            return CodeTried::Right;
        }
        open.attempts += 1;
        if open.attempts >= ATTEMPTS {
            self.0 = None;
        }
        CodeTried::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_counts_once_and_not_after_a_few_wrong_ones() {
        let mut pairing = CurrentPairing::default();
        assert_eq!(pairing.try_code(""), CodeTried::NoneOpen);
        let code = pairing.begin().unwrap();
        assert_eq!(code.len(), LENGTH);
        assert_eq!(pairing.try_code("WRONG"), CodeTried::Wrong);
        let typed = format!(" {} ", code.to_lowercase());
        assert_eq!(pairing.try_code(&typed), CodeTried::Right);
        assert_eq!(pairing.try_code(&code), CodeTried::NoneOpen);

        let first = pairing.begin().unwrap();
        let code = pairing.begin().unwrap();
        assert_eq!(pairing.try_code(&first), CodeTried::Wrong);
        for _ in 1..ATTEMPTS {
            assert_eq!(pairing.try_code("WRONG"), CodeTried::Wrong);
        }
        assert_eq!(pairing.try_code(&code), CodeTried::NoneOpen);
    }
}
