//! Corrections of GTK 4.8, which tells some things otherwise than others: it calls only windows shown, names elements without a
//! name by their class, and one with a label by the label twice.

use super::{
    accessible::{AccessibleItem, BusProgram},
    roles,
};

/// The name of the toolkit; GTK 3 has small letters.
const TOOLKIT: &str = "GTK";

impl BusProgram {
    /// Whether a program with this toolkit and these elements is one of GTK 4.8.
    pub(super) fn is_gtk4(&self, toolkit: &str) -> bool {
        let is_window = |item: &AccessibleItem| matches!(item.role, 16 | 23 | roles::WINDOW);
        let mut inside = self.items.iter().filter(|item| !is_window(item));
        toolkit == TOOLKIT && inside.all(|item| !roles::is_shown(item.states))
    }

    /// Corrects the states and names of a GTK 4 program's elements.
    pub(super) fn correct_gtk4(&mut self) {
        for item in &mut self.items {
            if roles::is_visible(item.states) {
                item.states.show();
            }
            item.name = real_name(&item.name).to_owned();
        }
    }
}

/// Returns the name, or an empty text for a placeholder.
fn real_name(name: &str) -> &str {
    let is_class = |prefix: &&str| {
        let rest = name.strip_prefix(*prefix).unwrap_or_default();
        rest.starts_with(char::is_uppercase) && rest.chars().all(char::is_alphanumeric)
    };
    if ["Gtk", "Adw"].iter().any(is_class) {
        return "";
    }
    let half = name.len() / 2;
    match (name.get(..half), name.get(half + 1..)) {
        (Some(first), Some(second)) if first == second && name[half..].starts_with(' ') => first,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_for_a_person() {
        for (said, expected) in [
            ("", ""),
            ("GtkMenuButton", ""),
            ("AdwLeaflet", ""),
            ("Gtk", "Gtk"),
            ("Gtk+ 4", "Gtk+ 4"),
            ("Save", "Save"),
            ("7 7", "7"),
            ("÷ ÷", "÷"),
            ("New File New File", "New File"),
            ("7 8", "7 8"),
            ("77", "77"),
        ] {
            assert_eq!(real_name(said), expected, "{said}");
        }
    }
}
