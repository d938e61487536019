//! Keys without a meaning of their own, and the characters that they stand for while a text is typed.
//!
//! Every change makes all programs read the keyboard again, some of them slowly. So each key stands
//! for two characters, one of them with Shift, and keeps them for as long as no other is needed.

use std::collections::{BTreeMap, BTreeSet};

/// A pressed key, and whether Shift is held.
pub(super) type PressedKey = (u8, bool);

/// Keys that temporarily type other characters.
pub(super) struct LentKeys {
    places: Vec<KeyPosition>,
    /// The number of the part of the text that is being typed.
    part: u32,
    changed: BTreeSet<u8>,
}

/// A key with or without Shift, and the character that it types.
struct KeyPosition {
    key: PressedKey,
    /// The keysym; 0 for none.
    symbol: u32,
    /// The last part of the text in which the key was used.
    used_in: u32,
}

impl LentKeys {
    /// Begins with these keys, without a meaning. Without a Shift key each stands for one character.
    pub(super) fn new(codes: &[u8], shift: Option<u8>) -> Self {
        let levels = [Some(false), shift.map(|_| true)];
        let keys = codes
            .iter()
            .flat_map(|code| levels.into_iter().flatten().map(|shifted| (*code, shifted)));
        let places = keys.map(|key| KeyPosition {
            key,
            symbol: 0,
            used_in: 0,
        });
        Self {
            places: places.collect(),
            part: 0,
            changed: BTreeSet::new(),
        }
    }

    /// Begins another part of the text, after the program has read the previous one.
    pub(super) fn begin_part(&mut self) {
        self.part += 1;
    }

    /// Returns the key for a keysym; `None` if all are needed for others of this part.
    pub(super) fn key(&mut self, symbol: u32) -> Option<PressedKey> {
        let part = self.part;
        let known = self.places.iter().position(|place| place.symbol == symbol);
        let free = || {
            let places = self.places.iter().enumerate();
            let free = places.filter(|(_, place)| place.used_in < part);
            let oldest = free.min_by_key(|(_, place)| place.used_in);
            oldest.map(|(at, _)| at)
        };
        let at = known.or_else(free)?;
        let place = &mut self.places[at];
        if place.symbol != symbol {
            place.symbol = symbol;
            self.changed.insert(place.key.0);
        }
        place.used_in = part;
        Some(place.key)
    }

    /// Returns the meanings of the keys that changed since the last call, without and with Shift.
    pub(super) fn changes(&mut self) -> BTreeMap<u8, [u32; 2]> {
        let mut changes = BTreeMap::new();
        for code in std::mem::take(&mut self.changed) {
            let places = self.places.iter().filter(|place| place.key.0 == code);
            let mut symbols = places.map(|place| place.symbol);
            let plain = symbols.next().unwrap_or(0);
            let shifted = symbols.next().filter(|symbol| *symbol != 0);
            changes.insert(code, [plain, shifted.unwrap_or(plain)]);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_characters_until_others_are_needed() {
        let mut lent = LentKeys::new(&[8, 93], Some(50));
        lent.begin_part();
        let keys: Vec<_> = (1..=5).map(|symbol| lent.key(symbol)).collect();
        let [first, second] = [Some((8, false)), Some((8, true))];
        let [third, fourth] = [Some((93, false)), Some((93, true))];
        assert_eq!(keys, [first, second, third, fourth, None]);
        assert_eq!(lent.changes(), [(8, [1, 2]), (93, [3, 4])].into());
        // What is known needs no change; what is new takes the place of what was needed least lately.
        lent.begin_part();
        assert_eq!([lent.key(3), lent.key(1)], [third, first]);
        assert_eq!(lent.changes(), [].into());
        assert_eq!(lent.key(5), second);
        assert_eq!(lent.changes(), [(8, [1, 5])].into());
        assert_eq!([lent.key(6), lent.key(7)], [fourth, None]);
        // One character alone stands on both levels.
        let mut lent = LentKeys::new(&[8], Some(50));
        lent.begin_part();
        lent.key(9);
        assert_eq!(lent.changes(), [(8, [9, 9])].into());
        let mut lent = LentKeys::new(&[8], None);
        lent.begin_part();
        assert_eq!([lent.key(1), lent.key(2)], [first, None]);
        assert_eq!(LentKeys::new(&[], None).key(1), None);
    }
}
