//! Names that mark the value beside them as secret.

/// Endings of the last word of a name for a value that a person chose.
const PASSWORD_ENDS: [&str; 17] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "pswd",
    "passwort",
    "kennwort",
    "wachtwoord",
    "contrasena",
    "contraseña",
    "senha",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
];
/// Last words of a name for a password that are too short to be endings of other words.
const PASSWORD_WORDS: [&str; 3] = ["pw", "storepass", "keypass"];
/// Last words of a name for a value that a program generated.
const TOKEN_WORDS: [&str; 4] = ["token", "secret", "authorization", "bearer"];
/// Endings of last words that are written together with others.
const TOKEN_ENDS: [&str; 10] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "accountkey",
    "sharedkey",
    "authtoken",
    "accesstoken",
    "clientsecret",
];
/// Words after which `key` names a secret.
const KEY_WORDS: [&str; 14] = [
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "encryption",
    "signing",
    "master",
    "shared",
    "admin",
    "app",
    "application",
    "service",
];
/// Words after which `phrase` names a secret.
const PHRASE_WORDS: [&str; 4] = ["seed", "recovery", "secret", "backup"];
/// Words that may follow a name without changing its class.
const TRAILING_WORDS: &str = "\
    prod production dev staging stage test live local ci value main old new default primary \
    secondary base env confirm confirmation repeat again";
/// Maximum number of characters of a name that are read.
const MAX_NAME_CHARS: usize = 128;

/// The class of a name, which decides which values beside it look like secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameClass {
    /// A value that people choose: any word is possible.
    Password,
    /// A value that programs generate: it looks random.
    Token,
    /// A phrase of a dozen words or more, from which keys are derived.
    Phrase,
}

/// Returns the class of a name; `None` if it does not name a secret. Words are separated by `_`,
/// `-`, `.` and capitals.
pub(super) fn class_of(name: &str) -> Option<NameClass> {
    // Variables of the shell for its working folders.
    if matches!(name, "PWD" | "OLDPWD") {
        return None;
    }
    let mut words = words_of(name);
    let trailing = |word: &String| {
        TRAILING_WORDS.split(' ').any(|trailing| trailing == word)
            || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    while words.len() > 1 && words.last().is_some_and(trailing) {
        words.pop();
    }
    let last = words.pop()?;
    let last = last.trim_end_matches(|c: char| c.is_ascii_digit());
    let ends_with = |ends: &[&str]| ends.iter().any(|end| last.ends_with(end));
    let key_of = words.last().map_or("", String::as_str);
    let is_key = |word: &str| key_of == word || (word.len() > 4 && key_of.ends_with(word));
    if ends_with(&PASSWORD_ENDS)
        || PASSWORD_WORDS.contains(&last)
        || (last == "pass" && !words.is_empty())
    {
        Some(NameClass::Password)
    } else if last == "mnemonic" || (last == "phrase" && PHRASE_WORDS.contains(&key_of)) {
        Some(NameClass::Phrase)
    } else if TOKEN_WORDS.contains(&last)
        || ends_with(&TOKEN_ENDS)
        || (last == "key" && KEY_WORDS.iter().any(|word| is_key(word)))
        || (last == "auth" && name.starts_with('_') && words.is_empty())
    {
        Some(NameClass::Token)
    } else {
        None
    }
}

/// Returns the class of a field by the words that describe it: `Password textbox`,
/// `#login-password-input`, `Your API key`.
pub(super) fn class_of_label(label: &str) -> Option<NameClass> {
    let words = words_of(label);
    let classes = (1..=words.len()).filter_map(|end| class_of(&words[..end].join("_")));
    classes.min_by_key(|class| *class != NameClass::Password)
}

fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::<String>::new();
    let mut previous = '_';
    for c in name.chars().take(MAX_NAME_CHARS) {
        if !c.is_alphanumeric() {
            previous = '_';
            continue;
        }
        if previous == '_' || (c.is_ascii_uppercase() && previous.is_ascii_lowercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    words
}
