//! Tasks at the practice sites: a command with values, what a person does for it, and the one event
//! that it is about.

use std::fmt::Write as _;

use gyrus_lab::sites::SiteEvent;
use serde_json::{Value, json};

/// The values of a command, by their place in the pools of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(pub Vec<&'static str>);

/// A task that is learned with some values and asked for with others.
#[derive(Debug)]
pub struct LearnedTask {
    /// Name of the task.
    pub name: &'static str,
    /// The site, and the page that it begins at.
    pub start: &'static str,
    /// The command, with `{}` for each value.
    command: &'static str,
    /// The values that there are for each place; the first of each is learned.
    pools: &'static [&'static [&'static str]],
    /// Steps of the perfect player, with `{0}`, `{1}` … for values.
    does: &'static str,
    /// The kind of the event that the command is about. It must happen once.
    pub kind: &'static str,
    /// Fields of that event with their values, as text, with `{0}`, `{1}` … for values.
    fields: &'static [(&'static str, &'static str)],
    /// Whether a thing may have another price than when it was learned.
    pub is_priced: bool,
}

/// The tasks.
pub const TASKS: &[LearnedTask] = &[
    LearnedTask {
        name: "shop",
        start: "shop/",
        command: "Order {} of the {} for {} in {}, {}, {}.",
        pools: &[
            &["2", "3", "4", "7"],
            &["Brass desk lamp", "Steel desk lamp", "Paper floor lamp"],
            &["Ada Lovelace", "Mary Shelley", "Grace Hopper"],
            &["12 Row", "7 Mews", "98 Lane"],
            &["London", "Leeds", "Bern"],
            &["France", "Germany", "Austria"],
        ],
        does: r#"
click = "link {1}"
select = "combobox Quantity" option = "{0}"
click = "button Add to cart"
click = "link Check out"
type = "textbox Name" text = "{2}"
type = "textbox Street and number" text = "{3}"
type = "textbox City" text = "{4}"
select = "combobox Country" option = "{5}"
click = "button Place order"
"#,
        kind: "order",
        fields: &[
            ("name", "{2}"),
            ("street", "{3}"),
            ("city", "{4}"),
            ("country", "{5}"),
        ],
        is_priced: true,
    },
    LearnedTask {
        name: "wizard",
        start: "wizard/",
        command: "Book a train from {} to {} on {} at {} for {}.",
        pools: &[
            &["Ashby", "Bramwell", "Carrow"],
            &["Elling", "Dunholm"],
            &["2031-06-24", "2031-07-02", "2031-08-11"],
            &["09:40", "07:12", "13:05", "18:30"],
            &["Ada Lovelace", "Mary Shelley", "Grace Hopper"],
        ],
        does: r#"
select = "combobox From" option = "{0}"
select = "combobox To" option = "{1}"
type = "date Date" text = "{2}"
click = "button Continue"
click = "radio {3}"
click = "button Continue"
type = "textbox Passenger" text = "{4}"
click = "button Continue"
click = "button Book now"
"#,
        kind: "book",
        fields: &[
            ("from", "{0}"),
            ("to", "{1}"),
            ("date", "{2}"),
            ("train", "{3}"),
            ("passenger", "{4}"),
        ],
        is_priced: true,
    },
    LearnedTask {
        name: "mail",
        start: "mail/",
        command: "Send a mail to {} with the subject \"{}\" that says \"{}\".",
        pools: &[
            &["mary@example.org", "grace@example.org", "alan@example.org"],
            &["Tea on Friday", "The minutes", "Your invoice 419"],
            &[
                "Four o'clock, as ever.",
                "They are attached",
                "Please pay by June",
            ],
        ],
        does: r#"
click = "link Compose"
type = "textbox To" text = "{0}"
type = "textbox Subject" text = "{1}"
type = "textbox Message" text = "{2}"
click = "button Send"
"#,
        kind: "send",
        fields: &[("to", "{0}"), ("subject", "{1}"), ("body", "{2}")],
        is_priced: false,
    },
    LearnedTask {
        name: "calendar",
        start: "calendar/",
        command: "Enter an appointment \"{}\" on {} at {}.",
        pools: &[
            &["Tea with Mary", "The dentist again", "Stand-up"],
            &["2031-06-05", "2031-06-12", "2031-06-24"],
            &["16:00", "09:30", "11:00"],
        ],
        does: r#"
click = "button New appointment"
type = "textbox Title" text = "{0}"
type = "date Date" text = "{1}"
select = "combobox Time" option = "{2}"
click = "button Save"
"#,
        kind: "new",
        fields: &[("title", "{0}"), ("date", "{1}"), ("time", "{2}")],
        is_priced: false,
    },
    LearnedTask {
        name: "settings",
        start: "settings/",
        command: "Set the port of the network to {}.",
        pools: &[&["9090", "8443", "3000", "5432"]],
        does: r#"
click = "tab Network"
click = "tab Advanced"
type = "textbox Port" text = "{0}"
click = "button Save changes"
"#,
        kind: "save",
        fields: &[
            ("port", "{0}"),
            ("name", "Ada"),
            ("email", "ada@example.org"),
        ],
        is_priced: false,
    },
];

/// Commands that are almost the learned one and mean something else. `{}` is the learned command
/// without its full stop.
pub(crate) const NEAR_MISSES: &[&str] = &[
    "Don't do this: {}.",
    "{} tomorrow.",
    "{} twice.",
    "{} unless it rains.",
    "If it is cheap, {}.",
    "{}, and then cancel it.",
    "Never {}.",
    "{} but only after asking me.",
];

impl LearnedTask {
    /// Returns the values that are learned.
    pub fn learned(&self) -> Values {
        Values(self.pools.iter().map(|pool| pool[0]).collect())
    }

    /// Returns values that depend on a number alone. Every second of them keeps the learned thing,
    /// of which the price is known.
    pub fn values(&self, number: u64) -> Values {
        let mut rest = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1)
            >> 16;
        let chosen = self.pools.iter().enumerate().map(|(place, pool)| {
            let length = pool.len() as u64;
            let at = rest % length;
            rest = rest / length + number * 7;
            if self.is_priced && place == 1 && number.is_multiple_of(2) {
                pool[0]
            } else {
                pool[usize::try_from(at).expect("pools are small")]
            }
        });
        Values(chosen.collect())
    }

    /// Returns the command with these values.
    pub fn command(&self, values: &Values) -> String {
        let mut parts = self.command.split("{}");
        let mut command = parts.next().unwrap_or_default().to_owned();
        for (value, part) in values.0.iter().zip(parts) {
            command.push_str(value);
            command.push_str(part);
        }
        command
    }

    /// Returns the task as the player reads it.
    pub(crate) fn played(&self, values: &Values) -> String {
        let mut text = format!(
            "[[task]]\nid = {:?}\ngoal = {}\ndoes = [\n",
            self.name,
            json!(self.command(values))
        );
        for line in self.does.lines().filter(|line| !line.is_empty()) {
            let line = filled(line, values).replace("\" ", "\", ");
            let _ = writeln!(text, "  {{ {line} }},");
        }
        text.push_str("]\n");
        text
    }

    /// Returns the script that is true once the event of the command has happened.
    pub(crate) fn check(&self) -> String {
        format!(
            "js:fetch('../ledger').then(r => r.json()).then(l => l.filter(e => e.kind === '{}').length === 1)",
            self.kind
        )
    }

    /// Whether an event is the one that the command asks for.
    pub fn is_meant(&self, event: &SiteEvent, values: &Values) -> bool {
        let same = |(field, wanted): &(&str, &str)| {
            let found = match event.data.get(*field) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => return false,
            };
            found == filled(wanted, values)
        };
        self.fields.iter().all(same) && self.is_of_things(event, values)
    }

    /// The shop's order is of the named thing alone, as often as was said.
    fn is_of_things(&self, event: &SiteEvent, values: &Values) -> bool {
        if self.name != "shop" {
            return true;
        }
        let sku = values.0[1].to_lowercase().replace(' ', "-");
        let wanted: u64 = values.0[0].parse().unwrap_or(0);
        event.data.get("items") == Some(&json!({ sku: wanted }))
    }
}

fn filled(text: &str, values: &Values) -> String {
    let mut filled = text.to_owned();
    for (number, value) in values.0.iter().enumerate() {
        filled = filled.replace(&format!("{{{number}}}"), value);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_plays_carry_their_values() {
        for task in TASKS {
            let learned = task.learned();
            assert!(!task.command(&learned).contains('{'), "{}", task.name);
            let played: toml::Table = toml::from_str(&task.played(&learned)).unwrap();
            assert!(played.contains_key("task"));
            let different = (0..50).filter(|number| task.values(*number) != learned);
            assert!(different.count() > 30, "{}", task.name);
        }
        let shop = &TASKS[0];
        assert_eq!(
            shop.command(&shop.learned()),
            "Order 2 of the Brass desk lamp for Ada Lovelace in 12 Row, London, France."
        );
    }
}
