//! Passwords in a command line that no name marks: `mysql -pVALUE`, `curl -u user:VALUE`, `echo
//! VALUE | sudo -S`.

use std::ops::Range;

use gyrus_text::first_bytes;
use regex::Regex;

use super::{
    context::KIND,
    pass::{FreeText, HitName, SecretHit},
    plausible::is_placeholder,
};

/// Minimum length of a password in bytes; a shorter word is a number or a letter of an option.
const MIN_BYTES: usize = 4;
/// Maximum number of bytes of a command that are read.
const MAX_COMMAND_BYTES: usize = 4096;

/// The way in which an option carries a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carries {
    /// The next word is the password.
    Next,
    /// The rest of the same word is the password.
    Attached,
    /// Either of these two is the password.
    Both,
    /// The password is behind this character in the next word or the rest of the same one.
    After(char),
    /// The password is behind `pass:` in the next word.
    AfterPass,
}
use Carries::{After, AfterPass, Attached, Both, Next};

type SecretProgram = (
    &'static str,
    &'static str,
    &'static [(&'static str, Carries)],
);

/// Programs, a word that must follow somewhere if it is not empty, and their options.
const PROGRAMS: [SecretProgram; 16] = [
    (
        "mysql mysqldump mysqladmin mysqlimport mariadb mariadb-dump mycli",
        "",
        &[("-p", Attached)],
    ),
    ("sshpass", "", &[("-p", Both)]),
    (
        "redis-cli valkey-cli keydb-cli",
        "",
        &[("-a", Next), ("--pass", Next)],
    ),
    (
        "curl",
        "",
        &[
            ("-u", After(':')),
            ("--user", After(':')),
            ("-U", After(':')),
            ("--proxy-user", After(':')),
        ],
    ),
    (
        "http https xh",
        "",
        &[("-a", After(':')), ("--auth", After(':'))],
    ),
    ("lftp", "", &[("-u", After(','))]),
    ("smbclient rpcclient smbmap", "", &[("-U", After('%'))]),
    (
        "docker podman nerdctl buildah skopeo oras helm crane az oc",
        "login",
        &[("-p", Next)],
    ),
    (
        "ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldappasswd",
        "",
        &[("-w", Both)],
    ),
    ("sqlcmd bcp ipmitool", "", &[("-P", Both)]),
    (
        "mongo mongosh mongodump mongorestore mongoimport mongoexport",
        "",
        &[("-p", Next)],
    ),
    ("zip unzip", "", &[("-P", Next)]),
    ("7z 7za 7zz 7zr rar unrar", "", &[("-p", Attached)]),
    (
        "openssl",
        "",
        &[
            ("-passin", AfterPass),
            ("-passout", AfterPass),
            ("-pass", AfterPass),
            ("-k", Next),
        ],
    ),
    ("sqlplus", "", &[("", After('/'))]),
    ("kubectl", "secret", &[("--from-literal", After('='))]),
];

/// Matches a text that is piped into a program that reads a password.
const PIPED: &str = r#"(?x) \b (?:echo|printf) [\ \t]+ (?: -n [\ \t]+ | '%s' [\ \t]+ | "%s" [\ \t]+ )?
    ["']? ([^\s"'|]+) ["']? [\ \t]* \| [\ \t]*
    (?: sudo [\ \t]+ -S | [^|\n]* --password-stdin | passwd [\ \t]+ --stdin
      | (?: sudo [\ \t]+ )? chpasswd | [^|\n]* --with-token )"#;

pub(super) struct Commands {
    programs: Regex,
    piped: Regex,
}

impl Commands {
    pub(super) fn new() -> Self {
        let names: Vec<&str> = PROGRAMS
            .iter()
            .flat_map(|(names, _, _)| names.split(' '))
            .collect();
        let programs = format!(r"(?-u)\b(?:{})[ \t]", names.join("|"));
        Self {
            programs: Regex::new(&programs).expect("the pattern is valid"),
            piped: Regex::new(PIPED).expect("the pattern is valid"),
        }
    }

    /// Whether a text contains a word that could begin a command with a password.
    pub(super) fn names_one(&self, text: &str) -> bool {
        self.programs.is_match(text) || text.contains("echo") || text.contains("printf")
    }

    pub(super) fn find(&self, piece: &FreeText<'_>) -> Vec<SecretHit> {
        let mut found = Vec::new();
        // The end of the last command of each row, so that a line full of names is read once for
        // each row.
        let mut ends = [0; PROGRAMS.len()];
        for program in self.programs.find_iter(piece.text) {
            let name = program.as_str().trim_end();
            let rows = PROGRAMS.iter().zip(&mut ends);
            for ((names, word, options), end) in rows {
                let is_row = names.split(' ').any(|known| known == name);
                if is_row && *end <= program.start() {
                    *end = in_command(piece, program.end(), word, options, &mut found);
                }
            }
        }
        let piped = if piece.text.contains('|') {
            piece.text
        } else {
            ""
        };
        for captures in self.piped.captures_iter(piped) {
            if let Some(value) = captures.get(1) {
                let user = if captures.get_match().as_str().ends_with("chpasswd") {
                    value.as_str().find(':').map_or(0, |at| at + 1)
                } else {
                    0
                };
                found.push(value.start() + user..value.end());
            }
        }
        found.retain(|at| {
            let value = &piece.text[at.clone()];
            value.len() >= MIN_BYTES && !is_placeholder(value)
        });
        found.sort_unstable_by_key(|at| (at.start, at.end));
        found.dedup_by(|next, kept| next.start < kept.end);
        let hit = |at| SecretHit {
            at,
            name: HitName::Found(KIND),
        };
        found.into_iter().map(hit).collect()
    }
}

/// Finds the values that the options of a command carry; returns the end of the command.
fn in_command(
    piece: &FreeText<'_>,
    start: usize,
    needed: &str,
    options: &[(&str, Carries)],
    found: &mut Vec<Range<usize>>,
) -> usize {
    let words = words(piece, start);
    let end = words.last().map_or(start, |word| word.end);
    let text = |at: &Range<usize>| &piece.text[at.clone()];
    if !needed.is_empty() && !words.iter().any(|word| text(word) == needed) {
        return end;
    }
    let after = |at: &Range<usize>, sign: &str| {
        let start = at.start + text(at).find(sign)? + sign.len();
        Some(start..at.end)
    };
    for (number, word) in words.iter().enumerate() {
        for (option, carries) in options {
            let Some(rest) = text(word).strip_prefix(option) else {
                continue;
            };
            let rest = rest.trim_start_matches('=');
            let next = words.get(number + 1);
            // A quoted word right behind the option.
            let glued = next.is_some_and(|next| {
                next.start == word.end + 1 && text(&(word.end..next.start)) != " "
            });
            let is_next = rest.is_empty() && !glued;
            let value = if rest.is_empty() {
                next.cloned()
            } else {
                Some(word.end - rest.len()..word.end)
            };
            let Some(value) = value else { continue };
            let value = match carries {
                Next if is_next => Some(value),
                Attached if !is_next => Some(value),
                Both => Some(value),
                After(sign) => after(&value, sign.encode_utf8(&mut [0; 4])),
                AfterPass if is_next => {
                    let is_literal = text(&value).starts_with("pass:");
                    is_literal.then(|| value.start + "pass:".len()..value.end)
                }
                Next | Attached | AfterPass => None,
            };
            // An option is not a value of another.
            found.extend(value.filter(|at| !text(at).starts_with('-')));
        }
    }
    end
}

/// Returns the words of a command, without quotation marks around them; `-p'…'` is two. A word that
/// a marker cuts off is left out.
fn words(piece: &FreeText<'_>, start: usize) -> Vec<Range<usize>> {
    let rest = &piece.text[start..];
    let rest = first_bytes(rest, MAX_COMMAND_BYTES);
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        let blank = |c: char| c.is_whitespace() && !matches!(c, '\n' | '\r');
        at += rest[at..].len() - rest[at..].trim_start_matches(blank).len();
        let Some(first) = rest[at..].chars().next() else {
            return words;
        };
        if "\n\r;|&)`".contains(first) {
            return words;
        }
        let quote = Some(first).filter(|c| "\"'".contains(*c));
        let inside = at + quote.map_or(0, char::len_utf8);
        let ends = |c: char| match quote {
            Some(quote) => c == quote || c == '\n',
            None => c.is_whitespace() || "\"';|&`".contains(c),
        };
        let Some(length) = rest[inside..].find(ends) else {
            if piece.ends_text || start + rest.len() < piece.text.len() {
                words.push(start + inside..start + rest.len());
            }
            return words;
        };
        words.push(start + inside..start + inside + length);
        at = inside + length + usize::from(quote.is_some());
    }
}
