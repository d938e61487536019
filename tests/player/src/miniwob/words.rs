//! Pages that are read: words, numbers, small sums, a terminal, an editor.

use serde_json::{Value, json};

use super::{
    Deed, Sight,
    sight::{between, click, extract, fill, fill_and_click},
    steps,
};
use crate::{
    prompt::{Line, plain},
    task::Step,
};

/// Words that mean alike.
const ALIKE: [&str; 34] = [
    "big large huge enormous gigantic",
    "small tiny little mini petite",
    "red scarlet crimson vermillion",
    "happy cheerful joyful gleeful delighted",
    "sad unhappy sorrowful miserable tragic",
    "angry mad furious irritated",
    "evil wicked immoral sinful corrupt depraved",
    "wrong incorrect mistaken erroneous",
    "real genuine actual",
    "strange odd peculiar unusual weird",
    "stop cease halt end finish",
    "scared terrified panicked fearful frightened afraid",
    "quiet calm peaceful serene mild",
    "old aged archaic",
    "love like adore favor",
    "kill murder assassinate",
    "keep retain preserve sustain maintain",
    "hide conceal camouflage",
    "hate despise loathe detest dislike",
    "funny humorous amusing comical laughable",
    "fat fleshy plump chubby",
    "stupid dumb dull unwise",
    "delicious savory delectable appetizing",
    "cut slice carve chop",
    "brave courageous fearless",
    "begin start initiate launch",
    "answer reply response",
    "television televisions TV TVs",
    "house home houses homes",
    "fire flame fires flames",
    "pig pork swine pig",
    "rabbit rabbits bunny bunnies",
    "car cars automobile automobiles vehicle vehicles",
    "water",
];

/// A number over seven rows of four boxes, as the pages' example shows it.
const DIGITS: [&str; 10] = [
    "0110 1001 1001 1001 1001 1001 0110",
    "0010 0110 0010 0010 0010 0010 0010",
    "0110 1001 1001 0010 0100 1000 1111",
    "0110 1001 0001 0110 0001 1001 0110",
    "1000 1010 1010 1111 0010 0010 0010",
    "1111 1000 1000 1110 0001 1001 0110",
    "0110 1001 1000 1110 1001 1001 0110",
    "1111 1001 0001 0010 0010 0100 0100",
    "0110 1001 1001 0110 1001 1001 0110",
    "0110 1001 1001 0111 0001 1001 0110",
];

/// Decides by the page's words, which are read first.
fn reading(sight: &Sight<'_>, decide: impl FnOnce(&[String]) -> Option<Deed>) -> Option<Deed> {
    match sight.words() {
        None => Some(Deed::Do(vec![extract()])),
        Some(words) => decide(&words),
    }
}

/// A text into the first field, and the button.
fn answered(sight: &Sight<'_>, text: &str) -> Option<Deed> {
    let field = *sight.all("textbox").first()?;
    Some(Deed::Do(fill_and_click(
        field,
        text,
        sight.one("button", "Submit")?,
    )))
}

fn letters(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Returns the field of the answer, if it holds one.
fn submitted(sight: &Sight<'_>) -> Option<Deed> {
    let field = *sight.all("textbox").first()?;
    let submit = sight.one("button", "Submit")?;
    (!field.value.is_empty()).then(|| Deed::Do(vec![click(submit)]))
}

/// `Find the 4th word in the paragraph, type that into the textbox and press "Submit".`
pub(super) fn nth(sight: &Sight<'_>) -> Option<Deed> {
    if let Some(deed) = submitted(sight) {
        return Some(deed);
    }
    let nth: String = between(sight.asked, "Find the ", " word")?
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let nth: usize = nth.parse().ok()?;
    reading(sight, |words| {
        let paragraph = words.iter().max_by_key(|line| line.len())?;
        answered(sight, &letters(paragraph.split_whitespace().nth(nth - 1)?))
    })
}

/// `Highlight the text in the 2nd paragraph and click submit.`
pub(super) fn selected(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    reading(sight, |words| {
        let paragraphs: Vec<&String> = words.iter().filter(|line| *line != "Submit").collect();
        let nth = ["1st", "2nd", "3rd"]
            .iter()
            .position(|word| sight.asked.contains(word));
        let text = paragraphs.get(nth.unwrap_or(0))?;
        let select = json!({"do": "select_text", "text": text});
        Some(Deed::Now(vec![select], "there".to_owned()))
    })
}

/// The last word of a field that holds more than a line shows.
pub(super) fn last(sight: &Sight<'_>) -> Option<Deed> {
    let fields = sight.all("textbox");
    let [long, short] = fields.as_slice() else {
        return None;
    };
    if !short.value.is_empty() {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    let Some(lines) = sight.read() else {
        return Some(Deed::Do(vec![json!({"do": "extract", "on": long.id})]));
    };
    let word = lines
        .iter()
        .rev()
        .find_map(|line| line.split_whitespace().next_back())?;
    let submit = sight.one("button", "Submit")?;
    Some(Deed::Do(fill_and_click(short, &letters(word), submit)))
}

/// `Select words similar to unhappy, happy and click Submit.`
pub(super) fn alike(sight: &Sight<'_>) -> Option<Deed> {
    let wanted: Vec<&str> = between(sight.asked, "similar to ", " and click")?
        .split(", ")
        .collect();
    let is_alike = |name: &str| {
        ALIKE.iter().any(|group| {
            let group: Vec<&str> = group.split(' ').collect();
            group.contains(&name) && wanted.iter().any(|word| group.contains(word))
        })
    };
    let boxes = sight.all("checkbox");
    let open = boxes
        .iter()
        .filter(|line| is_alike(&line.name) && !line.states.contains("on"));
    let mut actions: Vec<Value> = open.map(|line| click(line)).take(4).collect();
    if actions.is_empty() {
        actions.push(click(sight.one("button", "Submit")?));
    }
    Some(Deed::Do(actions))
}

/// `5 x 8 =`, and `x + 3 = 50`.
pub(super) fn solved(sight: &Sight<'_>) -> Option<Deed> {
    if let Some(deed) = submitted(sight) {
        return Some(deed);
    }
    reading(sight, |words| {
        let sum = words
            .iter()
            .find(|line| line.contains('=') && line.chars().any(|c| c.is_ascii_digit()))?;
        let (left, right) = sum.split_once('=')?;
        let parts: Vec<&str> = left.split_whitespace().collect();
        let [first, sign, second] = parts.as_slice() else {
            return None;
        };
        let number = |part: &str| part.parse::<i64>().ok();
        let result = number(right.split_whitespace().next().unwrap_or_default());
        let answer = match (number(first), *sign, number(second), result) {
            (Some(a), "+", Some(b), _) => a + b,
            (Some(a), "-", Some(b), _) => a - b,
            (Some(a), "x", Some(b), _) => a * b,
            (None, "+", Some(b), Some(c)) => c - b,
            (Some(a), "+", None, Some(c)) => c - a,
            (None, "-", Some(b), Some(c)) => c + b,
            (Some(a), "-", None, Some(c)) => a - c,
            _ => return None,
        };
        answered(sight, &answer.to_string())
    })
}

/// Each number is odd or even.
pub(super) fn parity(sight: &Sight<'_>) -> Option<Deed> {
    reading(sight, |words| {
        let numbers = words.iter().filter_map(|line| line.parse::<i64>().ok());
        let mut plan: Vec<Step> = (1..)
            .zip(numbers)
            .map(|(nth, number)| Step {
                nth: Some(nth),
                ..steps::click(if number % 2 == 0 {
                    "button Even"
                } else {
                    "button Odd"
                })
            })
            .collect();
        plan.push(steps::click("button Submit"));
        Some(Deed::Plan(plan))
    })
}

/// Letters that stand askew, each for itself.
pub(super) fn letters_of(sight: &Sight<'_>) -> Option<Deed> {
    if let Some(deed) = submitted(sight) {
        return Some(deed);
    }
    reading(sight, |words| {
        let lines = words.iter().filter(|line| *line != "Submit");
        let text: String = lines.flat_map(|line| line.split_whitespace()).collect();
        answered(sight, &text)
    })
}

/// `Generate a number greater than 3, then press submit.`
pub(super) fn generated(sight: &Sight<'_>) -> Option<Deed> {
    reading(sight, |words| {
        let shown = words.iter().find_map(|line| line.parse::<i64>().ok());
        let asked = sight.asked;
        let bound = |start: &str| between(asked, start, ",").and_then(|it| it.parse::<i64>().ok());
        let fits = |number: i64| match (bound("less than "), bound("greater than ")) {
            (Some(most), _) => number < most,
            (_, Some(least)) => number > least,
            _ => (number % 2 == 0) == asked.contains("even"),
        };
        let name = if shown.is_some_and(fits) {
            "Submit"
        } else {
            "Generate"
        };
        Some(Deed::Do(vec![click(sight.one("button", name)?)]))
    })
}

/// The number is guessed by halves; the page says whether it is higher or lower.
pub(super) fn guessed(sight: &Sight<'_>) -> Option<Deed> {
    let note: Vec<i64> = sight
        .note()
        .split(' ')
        .filter_map(|it| it.parse().ok())
        .collect();
    let field = *sight.all("spinbutton").first()?;
    let guess = |least: i64, most: i64| {
        let guess = (least + most) / 2;
        let actions = vec![fill(field, &guess.to_string())];
        Some(Deed::Now(actions, format!("{least} {most} {guess} typed")))
    };
    if sight.note().ends_with("typed") {
        let note = sight.note().trim_end_matches(" typed").to_owned();
        let submit = sight.one("button", "Submit")?;
        return Some(Deed::Now(vec![click(submit)], note));
    }
    let [least, most, guessed] = note.as_slice() else {
        return guess(0, 9);
    };
    let says = |word: &str| sight.prompt.says(word);
    if says("number is lower than") {
        guess(*least, guessed - 1)
    } else if says("number is higher than") {
        guess(guessed + 1, *most)
    } else {
        // The words of a search are never the same twice: what is repeated is taken for stuck.
        let words = format!("than {guessed}");
        Some(Deed::Do(vec![json!({"do": "find", "text": words})]))
    }
}

/// The card with the greatest number.
pub(super) fn greatest(sight: &Sight<'_>) -> Option<Deed> {
    let number = |line: &Line| line.name.parse::<i64>().ok();
    let best = sight
        .all("generic")
        .into_iter()
        .max_by_key(|line| number(line))?;
    Some(Deed::Steps(vec![
        steps::click(format!("generic {}", best.name)),
        steps::click("button Submit"),
    ]))
}

/// Letters and digits can be read; a shape has no name.
pub(super) fn shape(sight: &Sight<'_>) -> Option<Deed> {
    let figure = sight
        .all("generic")
        .into_iter()
        .find(|line| !line.name.is_empty());
    let Some(figure) = figure else {
        return super::drawn::form(sight);
    };
    let name = match figure.name.chars().next()? {
        c if c.is_ascii_digit() => "Number",
        _ => "Letter",
    };
    Some(Deed::Do(vec![click(sight.one("button", name)?)]))
}

/// `Use the terminal below to delete a file ending with the extension .png`
pub(super) fn terminal(sight: &Sight<'_>) -> Option<Deed> {
    let field = *sight.all("textbox").first()?;
    let typed =
        |text: &str| json!({"do": "type_text", "on": field.id, "text": text, "submit": true});
    if sight.note() != "listed" {
        return Some(Deed::Now(vec![typed("ls")], "listed".to_owned()));
    }
    let Some(words) = sight.read() else {
        return Some(Deed::Do(vec![extract()]));
    };
    let ends = sight
        .asked
        .rsplit_once("extension ")
        .map(|(_, end)| end.trim_end_matches('.'));
    let ends = ends.filter(|end| end.starts_with('.'));
    let lines = words.iter().skip_while(|line| !line.contains("ls"));
    let is_file = |word: &&str| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let mut files = lines
        .flat_map(|line| line.split_whitespace())
        .filter(is_file);
    let file = files.find(|file| match ends {
        Some(end) => file.ends_with(end),
        None => !file.contains('.') && *file != "ls",
    })?;
    Some(Deed::Do(vec![typed(&format!("rm {file}"))]))
}

/// `Using the text editor, give the text Neque the style bold and press Submit.`
pub(super) fn styled(sight: &Sight<'_>) -> Option<Deed> {
    let asked = sight.asked;
    let submit = || Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    // The signs of the bar have no names: colour, bold, italic, underlined; a colour's list opens.
    let signs = ["color", "bold", "italics", "underlined"];
    let sign = signs.iter().position(|sign| asked.contains(sign))?;
    let bar: Vec<&Line> = sight.usable().filter(|line| line.name.is_empty()).collect();
    match (sight.note(), sign) {
        ("", _) => {
            let editor = *sight.all("textbox").first()?;
            let mut select = json!({"do": "select_text", "on": editor.id});
            if let Some(word) = between(asked, "give the text ", " the ") {
                select["text"] = word.into();
            }
            Some(Deed::Now(vec![select], "selected".to_owned()))
        }
        ("selected", 0) => Some(Deed::Now(vec![click(bar.first()?)], "open".to_owned())),
        ("selected", _) => {
            let buttons = bar.iter().filter(|line| line.role == "button");
            let button = buttons.copied().nth_back(3 - sign)?;
            Some(Deed::Now(vec![click(button)], "there".to_owned()))
        }
        ("open", _) => super::drawn::from_palette(sight),
        (_, _) => submit(),
    }
}

/// Drawn with boxes: `Draw the number "2" in the checkboxes …`
pub(super) fn drawn_number(sight: &Sight<'_>) -> Option<Deed> {
    let digit: usize = between(sight.asked, "number \"", "\"")?.parse().ok()?;
    let wanted = DIGITS.get(digit)?.chars().filter(|c| *c != ' ');
    let boxes = sight.all("checkbox");
    let open = boxes
        .iter()
        .zip(wanted)
        .filter(|(line, mark)| *mark == '1' && !line.states.contains("on"));
    let mut actions: Vec<Value> = open.map(|(line, _)| click(line)).take(5).collect();
    if actions.is_empty() {
        actions.push(click(sight.one("button", "Submit")?));
    }
    Some(Deed::Do(actions))
}

/// Bought when the price that is read is low enough; it may change before the click arrives.
pub(super) fn bought(sight: &Sight<'_>) -> Option<Deed> {
    let most: f64 = sight
        .asked
        .rsplit_once('$')?
        .1
        .trim_end_matches('.')
        .parse()
        .ok()?;
    let Some(words) = sight.words() else {
        return Some(Deed::Do(vec![extract()]));
    };
    let all = plain(&words.join(" "));
    let price: f64 = all.rsplit_once('$')?.1.split(' ').next()?.parse().ok()?;
    Some(Deed::Do(if price < most {
        vec![click(sight.one("button", "Buy")?)]
    } else {
        vec![extract()]
    }))
}
