//! The purposes of `git` subcommands: reading, changing the repository, reaching others, losing
//! what nothing brings back.

use gyrus_contract::Does;

use super::{
    read::OF_OTHERS,
    reader::ShellReader,
    words::{ShellWord, host},
};

/// Subcommands that only read.
const READS: &str = "status log diff show blame annotate ls-files ls-tree cat-file rev-parse \
    rev-list shortlog describe grep name-rev merge-base diff-tree diff-index diff-files for-each-ref \
    show-ref count-objects check-ignore check-attr var version help whatchanged cherry range-diff \
    show-branch verify-commit --version --help --exec-path";

/// Subcommands that only read if their first word is one of these, or if there is none.
const READS_WITH: [(&str, &str); 8] = [
    (
        "branch",
        "-a -r -v -vv -l --list --show-current --contains --merged --no-merged",
    ),
    ("tag", "-l --list -n --contains --points-at"),
    ("remote", "-v show get-url"),
    ("reflog", "show HEAD exists"),
    ("config", "-l --list --get --get-all --get-regexp list get"),
    ("stash", "list show"),
    ("worktree", "list"),
    ("notes", "list show"),
];

/// Subcommands that do more than read even without further words.
const CHANGES_ALONE: &str = "stash config worktree";

/// Subcommands that connect to other machines.
const CONNECTS: &str = "push fetch pull clone ls-remote submodule lfs send-email svn p4";

/// Subcommands that lose data for good: with one of these words, or with any (`*`), but not with
/// one of the last.
const DESTROYS: [(&str, &str, &str); 10] = [
    (
        "clean",
        "-x -X -fx -xf -fX -Xf -fdx -fxd -dfx -dxf -xdf -xfd -fdX -dfX -fXd -ffdx -xffd",
        "-n --dry-run",
    ),
    ("stash", "drop clear", ""),
    ("reflog", "expire delete", "-n --dry-run"),
    ("gc", "--prune=now --prune=all --aggressive", ""),
    ("prune", "*", "-n --dry-run"),
    ("filter-branch", "*", ""),
    ("filter-repo", "*", ""),
    ("update-ref", "-d", ""),
    ("prune-packed", "*", "-n --dry-run"),
    ("lfs", "prune", "--dry-run"),
];

/// Subcommands that take files of the working tree back or away.
const LOSES: [(&str, &str); 8] = [
    ("reset", "--hard --merge --keep"),
    ("clean", "*"),
    ("restore", "*"),
    ("rm", "*"),
    ("mv", "*"),
    ("checkout", "-- -f --force ."),
    ("switch", "-f --force --discard-changes"),
    ("read-tree", "*"),
];

/// Options of `git` itself that are followed by a value.
const WITH_VALUE: [&str; 6] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
];

pub(super) fn read(reader: &mut ShellReader<'_>, arguments: &[ShellWord], part: &str) {
    let folder = reader.folder.clone();
    let mut rest = arguments;
    let mut has_settings = false;
    while let Some((word, after)) = rest.split_first() {
        if !word.is_option() || READS.contains(&*word.text) {
            break;
        }
        has_settings |= word.text == "-c";
        let takes = WITH_VALUE.contains(&&*word.text);
        if let (true, Some(value)) = (takes, after.first()) {
            if word.text == "-C" {
                reader.enter(Some(value), part);
            }
            rest = &after[1..];
        } else {
            rest = after;
        }
    }
    match rest.split_first() {
        None => {}
        Some((subcommand, rest)) => match subcommand.literal() {
            Some(subcommand) => self::subcommand(reader, subcommand, rest, has_settings, part),
            None => reader.hides(part, "which subcommand it runs is known only when it runs"),
        },
    }
    reader.folder = folder;
}

fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

fn subcommand(
    reader: &mut ShellReader<'_>,
    name: &str,
    words: &[ShellWord],
    has_settings: bool,
    part: &str,
) {
    let has = |wanted: &str| wanted == "*" || words.iter().any(|word| listed(wanted, &word.text));
    let first = words.first().map(|word| &*word.text);
    let with = READS_WITH.into_iter().find(|(known, _)| *known == name);
    let reads = listed(READS, name)
        || with.is_some_and(|(_, firsts)| match first {
            Some(first) => listed(firsts, first),
            None => !listed(CHANGES_ALONE, name),
        });
    let writes = words.iter().any(|word| word.text.starts_with("--output"));
    if reads && !writes && !has_settings {
        return;
    }
    reader.fact(Does::ChangesRepository, part, "it changes the repository");
    reader.fact(
        Does::RunsCode,
        part,
        "git runs hooks and programs that the repository names",
    );
    if listed(CONNECTS, name) {
        let addresses = words.iter().filter(|word| word.text.contains([':', '@']));
        let hosts = addresses.filter_map(|word| host(&word.text));
        let hosts = hosts.collect();
        reader.fact(Does::Connects { hosts }, part, "it connects to a remote");
        reader.fact(Does::UsesCredentials, part, "it may log in at the remote");
    }
    if name == "push" {
        reader.fact(Does::Publishes, part, "it changes what others have");
        let overwrites = "--force -f --force-with-lease --mirror --delete -d --prune";
        let forces = |word: &ShellWord| {
            word.text.starts_with(['+', ':']) || word.text.starts_with("--force")
        };
        if has(overwrites) || words.iter().any(forces) {
            reader.fact(Does::Destroys, part, OF_OTHERS);
        }
    }
    let mut destroys = DESTROYS.into_iter().filter(|(known, ..)| *known == name);
    if destroys.any(|(_, with, without)| has(with) && !has(without)) {
        reader.fact(
            Does::Destroys,
            part,
            "neither git nor undo gives back what it removes",
        );
    }
    let mut loses = LOSES.into_iter().filter(|(known, _)| *known == name);
    if loses.any(|(_, with)| has(with)) {
        reader.removes_some(part);
    }
}
