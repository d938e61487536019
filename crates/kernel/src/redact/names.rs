//! Which names say that the value beside them is secret.

/// Ends of the last word of a name for something that a person chose.
const PASSWORD_ENDS: [&str; 5] = ["password", "passwd", "passphrase", "passcode", "pwd"];
/// Last words of a name for something that a program made.
const TOKEN_WORDS: [&str; 4] = ["token", "secret", "authorization", "bearer"];
/// Ends of such last words when they are written together.
const TOKEN_ENDS: [&str; 8] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "accountkey",
    "authtoken",
    "accesstoken",
];
/// Words that make a secret of `key` after them.
const KEY_WORDS: [&str; 9] = [
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "encryption",
    "signing",
    "master",
];
/// Words that may follow and change nothing.
const TRAILING_WORDS: &str = "\
    prod production dev staging stage test live local ci value main old new default primary \
    secondary base env";
/// Characters of a name that are looked at.
const MAX_NAME_CHARS: usize = 128;

/// How much a name says about a bare word beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// People choose these: any word will do.
    Password,
    /// Programs make these: they look random.
    Token,
}

/// What a name says of its value; none if it does not name a secret. Words are told apart by `_`,
/// `-`, `.` and capitals.
pub(super) fn class_of(name: &str) -> Option<Class> {
    // The shell's working folders.
    if matches!(name, "PWD" | "OLDPWD") {
        return None;
    }
    let mut words = Vec::<String>::new();
    let mut previous = '_';
    for c in name.chars().take(MAX_NAME_CHARS) {
        if !c.is_ascii_alphanumeric() {
            previous = '_';
            continue;
        }
        if previous == '_' || (c.is_ascii_uppercase() && previous.is_ascii_lowercase()) {
            words.push(String::new());
        }
        words.last_mut()?.push(c.to_ascii_lowercase());
        previous = c;
    }
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
    if ends_with(&PASSWORD_ENDS) || (last == "pass" && !words.is_empty()) {
        Some(Class::Password)
    } else if TOKEN_WORDS.contains(&last)
        || ends_with(&TOKEN_ENDS)
        || (last == "key" && KEY_WORDS.contains(&key_of))
    {
        Some(Class::Token)
    } else {
        None
    }
}
