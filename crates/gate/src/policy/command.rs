//! Patterns of commands: the first words of a simple command, each one of several.
//!
//! Allow rules take the words as they stand. Deny and ask rules look for the command in every
//! spelling: by any path of the program, behind `sudo` and its like, with options anywhere and
//! with words that only the running shell knows. They rather match too much.

use gyrus_contract::{CommandWord, SimpleCommand};

/// Programs that run the command that follows in their words.
const WRAPPERS: [&str; 34] = [
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "doas",
    "env",
    "eval",
    "exec",
    "fakeroot",
    "flock",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "pkexec",
    "proxychains",
    "runuser",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "time",
    "timeout",
    "toybox",
    "unshare",
    "watch",
    "xargs",
];

/// Shells, whose option `-c` makes the next word a command line.
const SHELLS: [&str; 7] = ["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Maximum number of words behind a wrapper among which a program is looked for. Farther away, it
/// is taken to be there.
const MAX_WRAPPER_WORDS: usize = 1_000;

/// Maximum number of words in a pattern, one bit each in a set of positions.
pub(super) const MAX_ELEMENTS: usize = 32;

/// Beginning of a command: at each position one of these words. The first is the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandPattern {
    elements: Vec<Vec<String>>,
}

impl CommandPattern {
    /// Returns a pattern of 1 to [`MAX_ELEMENTS`] elements, each with at least one word.
    pub(super) fn new(elements: Vec<Vec<String>>) -> Self {
        Self { elements }
    }

    /// Whether the command certainly begins with the pattern's words.
    pub(super) fn surely_matches(&self, command: &SimpleCommand) -> bool {
        command.words.len() >= self.elements.len()
            && self
                .elements
                .iter()
                .zip(&command.words)
                .all(|(element, word)| {
                    word.literal()
                        .is_some_and(|word| element.iter().any(|one| one == word))
                })
    }

    /// Whether the command could begin with the pattern's words.
    pub(super) fn may_match(&self, command: &SimpleCommand) -> bool {
        let Some((first, rest)) = command.words.split_first() else {
            return false;
        };
        let Some(program) = first.literal() else {
            return true;
        };
        if self.is_program(program) && self.arguments_may_match(rest) {
            return true;
        }
        let name = base_name(program);
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if WRAPPERS.iter().any(|known| is(known)) {
            return self.may_be_behind(rest);
        }
        // `sh -c "$x"`: the text is known only when it runs.
        SHELLS.iter().any(|known| is(known))
            && matches!(rest, [CommandWord::Literal(option), CommandWord::Open { .. }, ..]
                if option.starts_with('-') && option.ends_with('c'))
    }

    fn is_program(&self, program: &str) -> bool {
        let name = base_name(program);
        self.elements
            .first()
            .is_some_and(|element| element.iter().any(|one| same_program(one, name)))
    }

    /// Whether a word behind a wrapper may be the program.
    fn may_be_behind(&self, words: &[CommandWord]) -> bool {
        let words = &apart(words);
        let mut seen_program = false;
        for (at, word) in words.iter().enumerate() {
            if at == MAX_WRAPPER_WORDS {
                return true;
            }
            match word.literal() {
                None if seen_program => {}
                None => return true,
                Some(word) if self.is_program(word) => {
                    if self.arguments_may_match(&words[at + 1..]) {
                        return true;
                    }
                    seen_program = true;
                }
                // Options, numbers and assignments come before the program.
                Some(word) => {
                    seen_program |= !word.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                        && !word.contains('=');
                }
            }
        }
        false
    }

    /// Whether the arguments may match: options at any place, all else in order, with options and
    /// their values between.
    fn arguments_may_match(&self, words: &[CommandWord]) -> bool {
        let open = words.iter().any(|word| word.literal().is_none());
        let in_order: Vec<&Vec<String>> = self.elements[1..]
            .iter()
            .filter(|element| {
                let mut options = element.iter().filter(|one| is_option(one));
                !options.any(|option| open || has_option(words, option))
            })
            .collect();
        // Bit n: the first n elements are found.
        let mut found: u64 = 1;
        let all: u64 = 1 << in_order.len();
        let mut after_option = false;
        for word in words {
            if found & all != 0 {
                return true;
            }
            let Some(word) = word.literal() else {
                // It may be several words, so all that is missing.
                return true;
            };
            let mut next = 0;
            for (index, element) in in_order.iter().enumerate() {
                let is_next = found & (1 << index) != 0;
                if is_next && element.iter().any(|one| one == word) {
                    next |= 1 << (index + 1);
                }
            }
            let option = is_option(word);
            if option || after_option || word.starts_with('+') || word.contains('=') {
                next |= found;
            }
            after_option = option && word != "--" && !word.contains('=');
            found = next;
            if found == 0 {
                return false;
            }
        }
        found & all != 0
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Returns the words, with those that are command lines themselves split: `su -c "git push"`.
fn apart(words: &[CommandWord]) -> Vec<CommandWord> {
    let parts = words.iter().flat_map(|word| match word.literal() {
        Some(text) => text
            .split([' ', '\t', '\n', ';', '&', '|'])
            .filter(|part| !part.is_empty())
            .map(|part| CommandWord::Literal(part.to_owned()))
            .collect(),
        None => vec![word.clone()],
    });
    // One more than is looked at, so that the end is seen.
    parts.take(MAX_WRAPPER_WORDS + 1).collect()
}

/// Whether an option is among the words, in any usual spelling: with a value attached, a long one
/// cut short or with one dash, short ones joined or apart.
fn has_option(words: &[CommandWord], option: &str) -> bool {
    let given = || {
        words
            .iter()
            .filter_map(CommandWord::literal)
            .filter(|word| is_option(word))
    };
    let (name, value) = split_value(option);
    let bare = name.trim_start_matches('-');
    let spelled = |word: &str| {
        let (given, with) = split_value(word);
        let same_value = value.is_none() || with.is_none() || value == with;
        let given_bare = given.trim_start_matches('-');
        let cut_short = given.starts_with("--") && !given_bare.is_empty();
        let same = given_bare == bare && (bare.len() > 1 || given == name);
        same_value
            && (same || (cut_short && name.starts_with("--") && bare.starts_with(given_bare)))
    };
    if given().any(spelled) {
        return true;
    }
    // More letters than these are one name, as in `find -delete`.
    let joined = !option.starts_with("--") && (1..=3).contains(&bare.len());
    joined
        && bare
            .chars()
            .all(|letter| given().any(|word| !word.starts_with("--") && word[1..].contains(letter)))
}

fn split_value(option: &str) -> (&str, Option<&str>) {
    match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    }
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn same_program(one: &str, name: &str) -> bool {
    base_name(one).eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` parts alternatives in a pattern; a word with `$` or `*` is open.
    fn check(pattern: &str, line: &str, sure: bool, may: bool) {
        let elements = pattern.split(' ').map(|element| {
            let words = element.split('|').map(str::to_owned);
            words.collect()
        });
        let pattern = CommandPattern::new(elements.collect());
        let words = line.split(' ').map(|word| {
            if word.contains(['$', '*']) {
                CommandWord::Open { open: word.into() }
            } else {
                CommandWord::Literal(word.into())
            }
        });
        let command = SimpleCommand {
            words: words.collect(),
        };
        assert_eq!(pattern.surely_matches(&command), sure, "sure of {line}");
        assert_eq!(pattern.may_match(&command), may, "may be {line}");
    }

    #[test]
    fn allow_takes_words_as_they_stand() {
        check("git push|fetch origin", "git fetch origin main", true, true);
        check("git push|fetch origin", "git fetch", false, false);
        check("git status", "git status --short $x", true, true);
        check("git status", "git $x", false, true);
        check("git status", "$x status", false, true);
        check("git status", "/usr/bin/git status", false, true);
        check("git status", "./git status", false, true);
        check("./deploy.sh", "./deploy.sh now", true, true);
    }

    #[test]
    fn deny_finds_every_spelling() {
        check("git push", "git -C dir push", false, true);
        check("git push", "git -C push status", false, true); // `push` could be either.
        check("git push", "git --git-dir=x --no-pager push", false, true);
        check("git push", "git -C $d status", false, true);
        check("git push", "git add push", false, false);
        check("git push", "git add $x", false, false);
        check("git push", "git", false, false);
        check("git push", "GIT push", false, true);
        check("git push origin", "git push --force origin", false, true);
        check("git push origin", "git push -o x origin", false, true);
        check("git push origin", "git push upstream origin", false, false);
        check("cargo publish", "cargo +nightly publish", false, true);
        check("make deploy", "make -j4 X=1 deploy", false, true);
    }

    #[test]
    fn options_are_found_anywhere_and_in_any_spelling() {
        check(
            "git push --force",
            "git push origin main --force",
            false,
            true,
        );
        check("git push --force", "git push --forc origin", false, true);
        check("git push --force", "git push --follow-tags", false, false);
        check("git push --force", "git push --force=x", false, true);
        check("git push --force|-f", "git push -uf origin", false, true);
        check("git push --force|-f|+main", "git push origin", false, false);
        check("git push --force", "git push origin $x", false, true);
        check("git push --force", "git status --force", false, false);
        check("rm -rf", "rm -r -v -f x", false, true);
        check("rm -rf", "rm -fr x", false, true);
        check("rm -rf", "rm -r x", false, false);
        check("rm -rf", "rm *", false, true);
        check("find -delete", "find . -name x -delete", false, true);
        check("find -delete", "find . -type d -ls -depth", false, false);
        check(
            "terraform -auto-approve",
            "terraform apply --auto-approve",
            false,
            true,
        );
    }

    #[test]
    fn deny_looks_behind_what_runs_a_command() {
        check("git push", "sudo -u kim git push", false, true);
        check("git push", "sudo env A=1 /usr/bin/git push", false, true);
        check("git push", "timeout 5 git status", false, false);
        check("git push", "xargs -n 1 $x", false, true);
        check("git push", "xargs -n 1 grep $x", false, false);
        check("git push", "eval $x", false, true);
        check("git push", "su -c cd;git\tpush", false, true);
        check("git push", "bash -c $x", false, true);
        check("git push", "bash script.sh $x", false, false);
        check("git push", "echo git push", false, false);
        check("rm", "git rm x", false, false);
    }
}
