//! The form of a word that is compared: lower case, without accents and without its ending.

/// Minimum number of letters that are left of a word.
const SHORTEST: usize = 3;

/// Returns the form of a word for comparisons, numbers without separators and leading zeros.
pub(crate) fn normal(word: &str) -> String {
    if word.starts_with(|first: char| first.is_ascii_digit()) {
        return number(word);
    }
    let mut plain = String::with_capacity(word.len());
    for character in word.chars().flat_map(char::to_lowercase) {
        match without_accent(character) {
            Some(letters) => plain.push_str(letters),
            None => plain.push(character),
        }
    }
    if let Some((owner, ending)) = plain.rsplit_once(['\'', '\u{2019}'])
        && ending.chars().count() == 1
    {
        plain.truncate(owner.len());
    }
    plain.retain(|character| !matches!(character, '\'' | '\u{2019}'));
    stem(&plain)
}

/// Returns a number without the marks between thousands, and without zeros before it. Numbers that
/// end in cents may have both marks.
fn number(word: &str) -> String {
    if word.contains(char::is_alphabetic) {
        return word.to_lowercase();
    }
    let is_mark = |character: char| !character.is_ascii_digit();
    let marks: Vec<char> = word
        .chars()
        .filter(|character| is_mark(*character))
        .collect();
    let groups: Vec<&str> = word.split(is_mark).collect();
    let is_grouped = |groups: &[&str], marks: &[char]| {
        !marks.is_empty()
            && (1..=3).contains(&groups[0].len())
            && groups[0] != "0"
            && groups[1..].iter().all(|group| group.len() == 3)
            && marks.iter().all(|mark| *mark == marks[0] && *mark != ':')
    };
    let before = marks.len().saturating_sub(1);
    let digits = if is_grouped(&groups, &marks) {
        groups.concat()
    } else if is_grouped(&groups[..groups.len() - 1], &marks[..before]) {
        format!(
            "{}.{}",
            groups[..groups.len() - 1].concat(),
            groups[groups.len() - 1]
        )
    } else {
        word.replace([',', '\'', '\u{2019}'], ".")
    };
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let kept = digits[zeros..].starts_with(|first: char| first.is_ascii_digit());
    digits[if kept { zeros } else { zeros.saturating_sub(1) }..].to_owned()
}

/// Returns the letters that replace one with an accent; empty for an accent alone.
fn without_accent(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{e0}'..='\u{e5}' | '\u{101}' | '\u{103}' | '\u{105}' => "a",
        '\u{e6}' => "ae",
        '\u{e7}' | '\u{107}' | '\u{10d}' => "c",
        '\u{10f}' | '\u{111}' | '\u{f0}' => "d",
        '\u{e8}'..='\u{eb}' | '\u{113}' | '\u{117}' | '\u{119}' | '\u{11b}' => "e",
        '\u{11f}' => "g",
        '\u{ec}'..='\u{ef}' | '\u{12b}' | '\u{131}' => "i",
        '\u{142}' | '\u{13e}' => "l",
        '\u{f1}' | '\u{144}' | '\u{148}' => "n",
        '\u{f2}'..='\u{f6}' | '\u{f8}' | '\u{14d}' | '\u{151}' => "o",
        '\u{153}' => "oe",
        '\u{159}' => "r",
        '\u{15b}' | '\u{15f}' | '\u{161}' | '\u{219}' => "s",
        '\u{df}' => "ss",
        '\u{163}' | '\u{165}' | '\u{21b}' => "t",
        '\u{f9}'..='\u{fc}' | '\u{16b}' | '\u{16f}' | '\u{171}' => "u",
        '\u{fd}' | '\u{ff}' => "y",
        '\u{17a}' | '\u{17c}' | '\u{17e}' => "z",
        '\u{300}'..='\u{36f}' => "",
        _ => return None,
    })
}

/// Returns an English word without its most common endings.
fn stem(word: &str) -> String {
    let cut = |ending: &str| {
        let rest = word.strip_suffix(ending)?;
        (rest.len() >= SHORTEST && !rest.ends_with('s')).then_some(rest)
    };
    if let Some(rest) = cut("ies") {
        return format!("{rest}y");
    }
    let rest = cut("ing").or_else(|| cut("ed")).or_else(|| cut("es"));
    let rest = rest.or_else(|| cut("s")).unwrap_or(word);
    let plain = rest.strip_suffix('e');
    let plain = plain.filter(|plain| plain.len() >= SHORTEST);
    plain.unwrap_or(rest).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_word_have_one_form() {
        for (words, expected) in [
            ("Hives hive HIVE hive's", "hiv"),
            ("don't", "don"),
            ("l'eau", "leau"),
            ("directories directory", "directory"),
            ("creates create creating created", "creat"),
            ("M\u{fc}ller MULLER mu\u{308}ller", "muller"),
            ("pass", "pass"),
            ("is", "is"),
            ("1,234 1.234 1'234 1234 01234", "1234"),
            ("1.234.567 1,234,567 1234567", "1234567"),
            ("1,234.50 1.234,50 1234.50", "1234.50"),
            ("3.5 3,5 03.5", "3.5"),
            ("0.5 0,5", "0.5"),
            ("0 00 000", "0"),
            ("14:30", "14:30"),
            ("10.0.0.1", "10.0.0.1"),
        ] {
            for word in words.split(' ') {
                assert_eq!(normal(word), expected, "{word}");
            }
        }
    }
}
