//! Whether a text asks for a secret: a password, a key, a token, a code, a card number.
//!
//! It goes by words in a few languages, so it is an obstacle to a careless server and to a simple
//! attack, not a proof: what a person types is looked at again ([`gyrus_contract::Site`]).

/// Long words that are recognised in any spelling: with spaces, digits for letters, in one.
const ANYWHERE: &[(&str, &str)] = &[
    ("password", "a password"),
    ("passwort", "a password"),
    ("kennwort", "a password"),
    ("motdepasse", "a password"),
    ("contrasena", "a password"),
    ("contraseña", "a password"),
    ("parola", "a password"),
    ("wachtwoord", "a password"),
    ("пароль", "a password"),
    ("密码", "a password"),
    ("密碼", "a password"),
    ("パスワード", "a password"),
    ("passphrase", "a passphrase"),
    ("passcode", "a passcode"),
    ("seedphrase", "a recovery phrase"),
    ("recoveryphrase", "a recovery phrase"),
    ("recoverycode", "a recovery code"),
    ("mnemonicphrase", "a recovery phrase"),
    ("apikey", "a key"),
    ("accesskey", "a key"),
    ("secretkey", "a key"),
    ("privatekey", "a key"),
    ("signingkey", "a key"),
    ("encryptionkey", "a key"),
    ("sshkey", "a key"),
    ("clientsecret", "a secret"),
    ("accesstoken", "a token"),
    ("authtoken", "a token"),
    ("bearertoken", "a token"),
    ("refreshtoken", "a token"),
    ("sessioncookie", "a cookie"),
    ("credential", "credentials"),
    ("creditcard", "a card number"),
    ("debitcard", "a card number"),
    ("cardnumber", "a card number"),
    ("kreditkarte", "a card number"),
    ("securitycode", "a security code"),
    ("verificationcode", "a code"),
    ("onetimecode", "a code"),
    ("socialsecurity", "a social security number"),
];

/// Words that ask for a secret wherever they occur as whole words.
const WORDS: &[(&str, &str)] = &[
    ("passwd", "a password"),
    ("pwd", "a password"),
    ("senha", "a password"),
    ("token", "a token"),
    ("tokens", "a token"),
    ("jwt", "a token"),
    ("otp", "a code"),
    ("totp", "a code"),
    ("cvv", "a card's code"),
    ("cvc", "a card's code"),
    ("iban", "an account number"),
];

/// Words that ask for a secret as the name or title of a field.
const NAMES: &[(&str, &str)] = &[
    ("pass", "a password"),
    ("pin", "a PIN"),
    ("key", "a key"),
    ("secret", "a secret"),
    ("cookie", "a cookie"),
    ("ssn", "a social security number"),
    ("pan", "a card number"),
];

/// Returns the kind of secret that a message or description asks for.
pub(super) fn wanted(text: &str) -> Option<&'static str> {
    if let Some(mixed) = mixes_scripts(text) {
        return Some(mixed);
    }
    let words = words(text);
    if let Some(wanted) = among(&words, WORDS) {
        return Some(wanted);
    }
    let plain = words.concat();
    let read = plain.chars().map(letter_of).collect::<String>();
    let stands = |(word, _): &&(&str, &str)| plain.contains(word) || read.contains(word);
    ANYWHERE.iter().find(stands).map(|(_, what)| *what)
}

/// Returns the kind of secret that the name or title of a field asks for.
pub(super) fn named(name: &str) -> Option<&'static str> {
    wanted(name).or_else(|| {
        let words = words(name);
        match words.last().map(String::as_str) {
            // The key of an issue is none, one that is called so is.
            Some("key") if words.len() > 1 => None,
            _ => among(&words, NAMES),
        }
    })
}

fn among(words: &[String], known: &[(&'static str, &'static str)]) -> Option<&'static str> {
    let found = known
        .iter()
        .find(|(word, _)| words.iter().any(|said| said == word));
    found.map(|(_, what)| *what)
}

/// Returns the words in lower case, without joining characters: `apiKey` and `API_KEY` are two.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_small = false;
    for c in text.chars().filter(|c| !gyrus_text::is_unseen(*c)) {
        let c = narrow(c);
        let begins = c.is_uppercase() && before_is_small;
        if begins || !(c.is_alphanumeric() || matches!(c, '@' | '$')) {
            words.push(String::new());
        }
        before_is_small = c.is_lowercase();
        if c.is_alphanumeric() || matches!(c, '@' | '$') {
            let last = words.last_mut().expect("there is one from the start");
            last.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns a full-width letter as the usual one.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
}

/// Returns the letter for which a digit or sign is often written.
fn letter_of(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

/// Describes a word that mixes Latin letters with lookalikes of another alphabet, if there is one.
fn mixes_scripts(text: &str) -> Option<&'static str> {
    let looks_alike = |c: char| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{531}'..='\u{58f}');
    let mixed = text
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| word.chars().any(looks_alike) && word.chars().any(|c| c.is_ascii_alphabetic()));
    mixed.then_some("something in letters that only look like others")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_however_they_are_written() {
        for text in [
            "Your password, please",
            "PASSWORD",
            "p a s s w o r d",
            "p4ssw0rd",
            "p@$$word",
            "pass\u{200b}word",
            "ｐａｓｓｗｏｒｄ",
            "раssword",
            "Enter your API key",
            "api_key",
            "apiKey",
            "API-KEY",
            "the access token of your account",
            "Paste the GitHub token here",
            "credit card number",
            "card_number",
            "CVV",
            "The code from your authenticator (TOTP)",
            "one-time code",
            "Ihr Passwort",
            "mot de passe",
            "пароль",
            "密码",
        ] {
            assert!(wanted(text).is_some(), "{text}");
        }
        for name in ["pin", "PIN", "key", "secret", "userPass", "pass", "ssn"] {
            assert!(named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn ordinary_questions_are_not() {
        for text in [
            "Which branch should be used?",
            "Please provide inputs for the following fields:",
            "Your favorite integer (do not give us your phone number, pin, or other sensitive info)",
            "How many passengers travel?",
            "Compass direction",
            "Ключевое слово",
            "",
        ] {
            assert_eq!(wanted(text), None, "{text}");
        }
        for name in [
            "issue_key",
            "issueKey",
            "name",
            "keyword",
            "monkey",
            "pinned",
            "email",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
    }
}
