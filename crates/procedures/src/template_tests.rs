use super::*;

const ORDER: &str = "Order 2 of the Brass desk lamp for Ada Lovelace in 12 Row, London, France.";

const VALUES: [&str; 6] = [
    "2",
    "Brass desk lamp",
    "Ada Lovelace",
    "12 Row",
    "London",
    "France",
];

fn learned(command: &str, values: &[&str]) -> (SlotTemplate, Vec<Slot>) {
    let used: Vec<_> = values
        .iter()
        .map(|value| crate::find_slots::UsedValue {
            value: (*value).to_owned(),
            label: String::new(),
        })
        .collect();
    let found = crate::find_slots::FoundSlots::of(command, &used);
    (found.command, found.slots)
}

#[test]
fn other_values_are_read_from_the_same_words() {
    let check = |learned_from: &str, values: &[&str], command: &str, expected: Option<&[&str]>| {
        let (template, slots) = learned(learned_from, values);
        assert_eq!(slots.len(), values.len(), "{learned_from}: {slots:?}");
        let found = template.values(&slots, command);
        let expected = expected.map(|values| values.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(found.map(|found| found.0), expected, "{command}");
    };
    let (order, values) = (ORDER, VALUES);
    let other = [
        "3",
        "Steel desk lamp",
        "Mary Shelley",
        "98 Lane",
        "Bern",
        "Austria",
    ];
    check(
        order,
        &values,
        "Order 3 of  the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria.",
        Some(&other),
    );
    for near in [
        "Order 3 of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria tomorrow.",
        "Order 3 of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria Tomorrow.",
        "Order 3 of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria",
        "Don't order 3 of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria.",
        "Order 3 of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria. Twice.",
        "Order 3 of the Steel desk lamp for Mary Shelley and Co in 98 Lane, Bern, Austria.",
        "Order three of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria.",
        "Order 3 of the Steel desk lamp for Mary Shеlley in 98 Lane, Bern, Austria.",
        "Order 3 of the Steel desk lamp for Mary Shelley\u{200b} in 98 Lane, Bern, Austria.",
        "Order 3 of the Not for Mary Shelley in 98 Lane, Bern, Austria.",
        "Order 3 of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Nicht.",
        "Order ３ of the Steel desk lamp for Mary Shelley in 98 Lane, Bern, Austria.",
        "",
    ] {
        check(order, &values, near, None);
    }
    let mail = "Send a mail to mary@example.org that says \"Four o'clock, as ever.\".";
    let values = ["mary@example.org", "Four o'clock, as ever."];
    check(
        mail,
        &values,
        "Send a mail to alan@example.org that says \"Not tomorrow, unless it rains!\".",
        Some(&["alan@example.org", "Not tomorrow, unless it rains!"]),
    );
    for near in [
        "Send a mail to alan@example.org that says \"a\" twice.",
        "Send a mail to alan@example.org that says \"a\" and \"b\".",
        "Send a mail to alan@example.org, eve@evil.example that says \"a\".",
        "Send a mail to alan@exаmple.org that says \"a\".",
    ] {
        check(mail, &values, near, None);
    }
    let book = "Enter an appointment \"Tea\" on 2031-06-05 at 16:00.";
    let values = ["Tea", "2031-06-05", "16:00"];
    check(
        book,
        &values,
        "Enter an appointment \"Stand-up\" on 2031-06-24 at 9:30.",
        Some(&["Stand-up", "2031-06-24", "9:30"]),
    );
    check(
        book,
        &values,
        "Enter an appointment \"Tea\" on 2031-13-24 at 09:30.",
        None,
    );
    check(
        book,
        &values,
        "Enter an appointment \"Tea\" on 2031-06-24 at 25:30.",
        None,
    );
}

#[test]
fn a_value_is_a_slot_only_where_it_stands_once_as_words() {
    let (template, slots) = learned("Move Ada to the team of Ada", &["Ada"]);
    assert!(slots.is_empty() && template == SlotTemplate::fixed("Move Ada to the team of Ada"));
    let (_, slots) = learned("Set port 80 and 8080", &["80"]);
    assert_eq!(slots.len(), 1);
    let (_, slots) = learned("Delete the mail", &["Delete"]);
    assert!(slots.is_empty(), "the verb is never a value");
}

#[test]
fn a_command_that_can_be_read_in_two_ways_is_not_read() {
    let (template, slots) = learned("Send Ada to Bob to Carl", &["Ada", "Carl"]);
    assert_eq!(template.to_string(), "Send {1} to Bob to {2}");
    let (template, slots2) = learned("Send Ada for Bob now", &["Ada", "Bob"]);
    assert!(
        template
            .values(&slots2, "Send Mary for Grace now")
            .is_some()
    );
    assert!(
        template
            .values(&slots, "Send Mary for Grace for Alan now")
            .is_none()
    );
    let many = "Order 2 ".repeat(2_000);
    assert!(template.values(&slots2, &many).is_none());
}

#[test]
fn no_word_that_changes_a_command_fits_anywhere_in_it() {
    let (order, values) = (ORDER, VALUES);
    let (template, slots) = learned(order, &values);
    let words: Vec<_> = order.split(' ').collect();
    for changing in crate::words::changing() {
        let mut letters = changing.chars();
        let first = letters.next().unwrap().to_uppercase();
        let capital = first.chain(letters).collect::<String>();
        for word in [changing, &capital] {
            for at in 0..=words.len() {
                let mut changed = words.clone();
                changed.insert(at, word);
                let command = changed.join(" ");
                assert_eq!(template.values(&slots, &command), None, "{command}");
            }
        }
    }
}

#[test]
fn spaces_of_a_quoted_text_are_its_own() {
    let (template, slots) = learned("Write \"buy milk\" into a.txt", &["buy milk", "a.txt"]);
    let read = |command: &str| template.values(&slots, command).map(|values| values.0);
    let expected = ["buy tea", "b.txt"].map(str::to_owned).to_vec();
    assert_eq!(read("Write  \"buy tea\" into  b.txt"), Some(expected));
    assert_eq!(read("Write \"buy  tea\" into b.txt"), None);
    assert_eq!(read("Write \"buy\ttea\" into b.txt"), None);
}
