//! Whether a text asks for a secret: a password, a key, a token, a code, a card number.
//!
//! It goes by words in a few languages, so it is an obstacle to a careless server and to a simple
//! attack, not a proof: what a person types is looked at again ([`gyrus_contract::Site`]).

/// Kinds of secrets, each with the long words that are recognised in any spelling: with spaces,
/// digits for letters, in one.
const ANYWHERE: &[(&str, &str)] = &[
    (
        "a password",
        "password passwort kennwort motdepasse contrasena contraseña parola wachtwoord пароль 密码 密碼 パスワード",
    ),
    ("a passphrase", "passphrase"),
    ("a passcode", "passcode"),
    (
        "a recovery phrase",
        "seedphrase recoveryphrase mnemonicphrase",
    ),
    ("a recovery code", "recoverycode"),
    (
        "a key",
        "apikey accesskey secretkey privatekey signingkey encryptionkey sshkey",
    ),
    ("a secret", "clientsecret"),
    ("a token", "accesstoken authtoken bearertoken refreshtoken"),
    ("a cookie", "sessioncookie"),
    ("credentials", "credential"),
    (
        "a card number",
        "creditcard debitcard cardnumber kreditkarte",
    ),
    ("a security code", "securitycode"),
    ("a code", "verificationcode onetimecode"),
    ("a social security number", "socialsecurity"),
];

/// Kinds of secrets, each with words that ask for one wherever they occur as whole words.
const WORDS: &[(&str, &str)] = &[
    ("a password", "passwd pwd senha"),
    ("a token", "token tokens jwt"),
    ("a code", "otp totp"),
    ("a card's code", "cvv cvc"),
    ("an account number", "iban"),
];

/// Kinds of secrets, each with words that ask for one as the name or title of a field.
const NAMES: &[(&str, &str)] = &[
    ("a password", "pass"),
    ("a PIN", "pin"),
    ("a key", "key"),
    ("a secret", "secret"),
    ("a cookie", "cookie"),
    ("a social security number", "ssn"),
    ("a card number", "pan"),
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
    asked(ANYWHERE, |word| plain.contains(word) || read.contains(word))
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

fn among(words: &[String], known: &[(&'static str, &str)]) -> Option<&'static str> {
    asked(known, |word| words.iter().any(|said| said == word))
}

/// Returns the kind of secret of which a word fits.
fn asked(known: &[(&'static str, &str)], fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    let found = known.iter().find(|(_, words)| words.split(' ').any(&fits));
    found.map(|(what, _)| *what)
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
