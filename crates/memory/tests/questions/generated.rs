//! Questions among notes that are alike: numbers, names, short words and dates, with the one note
//! that answers each. The wording of a question is another than that of its note, and each number of
//! one note stands in others with another meaning.

const COLOURS: [&str; 5] = ["white", "yellow", "red", "green", "blue"];
const PLACES: [&str; 6] = [
    "orchard",
    "chapel",
    "river bank",
    "quarry",
    "lime avenue",
    "mill",
];
const CITIES: [&str; 10] = [
    "Z\u{fc}rich",
    "Graz",
    "K\u{f6}ln",
    "Lisbon",
    "New York",
    "Oslo",
    "Malm\u{f6}",
    "Porto",
    "S\u{e3}o Paulo",
    "Bern",
];
const FIRST: [&str; 8] = [
    "Anna",
    "J\u{fc}rgen",
    "Maria",
    "Tom",
    "Zo\u{eb}",
    "Bo",
    "Al",
    "Ines",
];
const LAST: [&str; 8] = [
    "Berg",
    "M\u{fc}ller",
    "Lind",
    "O'Brien",
    "Garc\u{ed}a",
    "Ng",
    "Wu",
    "Novak",
];
const TEAMS: [&str; 6] = ["HR", "IT", "QA", "PR", "Sales", "Legal"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const GUESTS: [&str; 7] = [
    "the plumber",
    "a school class",
    "the auditor",
    "the vet",
    "a buyer from Lyon",
    "the electrician",
    "the mayor",
];

pub(crate) struct Questions {
    /// Path and text of each note.
    pub(crate) notes: Vec<(String, String)>,
    /// Each question with the path of the note that answers it.
    pub(crate) questions: Vec<(String, String)>,
}

pub(crate) fn questions() -> Questions {
    let mut all = Questions {
        notes: Vec::new(),
        questions: Vec::new(),
    };
    all.hives();
    all.people();
    all.days();
    all
}

impl Questions {
    fn note(&mut self, path: String, text: String, questions: &[String]) {
        for question in questions {
            self.questions.push((question.clone(), path.clone()));
        }
        self.notes.push((path, text));
    }

    /// Sixty hives, whose numbers are the weights, yields and frames of others.
    fn hives(&mut self) {
        for number in 70..130_usize {
            let (weight, honey) = (70 + (number * 7) % 60, 20 + (number * 11) % 60);
            let (colour, place) = (COLOURS[number % 5], PLACES[number % 6]);
            let text = format!(
                "The colony stands at the {place}. Its queen is marked {colour}.\n\
                 Last summer: {honey} kg of honey from {} frames; it weighs {weight} kg.\n",
                8 + number % 5
            );
            let asked = [
                format!("how much honey did hive {number} give?"),
                match number % 3 {
                    0 => format!("where can I find hive number {number}"),
                    1 => format!("colour of the queen in hive{number}"),
                    _ => format!("What is the weight of Hive #{number}?"),
                },
            ];
            self.note(format!("Hives/hive-{number}.md"), text, &asked);
        }
    }

    /// Sixty-four people who share first and last names, ten offices, and six teams.
    fn people(&mut self) {
        for (number, city) in CITIES.iter().enumerate() {
            let text = format!(
                "# Office {city}\nOpen from {} to 17:30. The door code is {}. Parking costs {} a day.\n",
                7 + number % 3,
                4_000 + number * 8,
                10 + number
            );
            let plain = city.replace('\u{fc}', "ue").replace('\u{f6}', "oe");
            let asked = [
                format!("what is the door code of the {city} office"),
                format!("until when is the office in {plain} open"),
            ];
            self.note(format!("Offices/{city}.md"), text, &asked);
        }
        for (number, team) in TEAMS.iter().enumerate() {
            let text = format!(
                "# {team}\nThe team meets on {} in room {}.\n",
                ["Monday", "Tuesday", "Friday"][number % 3],
                101 + number * 4
            );
            let asked = [format!("who knows in which room {team} meets?")];
            self.note(format!("Teams/{team}.md"), text, &asked);
        }
        for (place, first) in FIRST.iter().enumerate() {
            for (other, last) in LAST.iter().enumerate() {
                let number = place * 8 + other;
                let (extension, badge) = (4_000 + number, 70 + number);
                let city = CITIES[(number * 3) % 10];
                let text = format!(
                    "{first} {last} works for {} in the office {city}. Extension {extension}, badge \
                     B-{badge}. Likes tea with {} and {}.\n",
                    TEAMS[number % 6],
                    FIRST[(place + 3) % 8],
                    LAST[(other + 5) % 8],
                );
                let plain = format!("{first} {last}").replace('\u{fc}', "ue");
                let asked = [
                    format!("what is {first} {last}'s extension?"),
                    match number % 3 {
                        0 => format!("whose badge is B{badge}"),
                        1 => format!("which team is {plain} in"),
                        _ => format!("who answers the phone at extension {extension}"),
                    },
                ];
                self.note(format!("People/{first} {last}.md"), text, &asked);
            }
        }
    }

    /// Sixty days, with guests who come again and sums that come again on other days.
    fn days(&mut self) {
        for number in 0..60_usize {
            let (month, day) = (1 + number % 12, 1 + number / 12 * 5 + number % 4);
            let (guest, sum) = (GUESTS[number % 7], 1_000 + number * 37);
            let name = MONTHS[month - 1];
            let text = format!(
                "Visit of {guest}. Paid {},{:03} euros for repairs of hive {}.\n",
                sum / 1_000,
                sum % 1_000,
                70 + number
            );
            let asked = [
                match number % 4 {
                    0 => format!("who visited us on {day} {name} 2026?"),
                    1 => format!("what happened on {name} {day}"),
                    2 => format!("who came on {day}.{month}.2026"),
                    _ => format!("visit on {month}/{day}/2026"),
                },
                format!("on which day did we pay {sum} euros"),
            ];
            self.note(format!("Daily/2026-{month:02}-{day:02}.md"), text, &asked);
        }
    }
}
