//! Programs and their verbs that only read what a person's rights open: what may be granted by its
//! exact words, so that a run that looks twice asks once.
//!
//! A grant covers the same words again, at any later time, unasked. So nothing stands here whose
//! meaning lies in a file that a run could change meanwhile: no option that names a program, a file
//! or an address, none that formats by a program of its own (`--jq` can print the environment),
//! none that opens a page or waits for ever. What is not listed is asked about each time.

struct ReadingVerb {
    /// Names of the program; any of them.
    programs: &'static str,
    /// The first arguments of the command.
    words: &'static str,
    /// The allowed options; one that ends in `=` takes a value.
    options: &'static str,
    operands: AllowedArguments,
}

/// Arguments that are accepted beside the options.
#[derive(Clone, Copy)]
enum AllowedArguments {
    None,
    /// At most this number of words without a slash.
    Words(usize),
    /// At most this number of names, which may have parts: `feature/x`, `pod/web`.
    Names(usize),
}

use AllowedArguments::{Names, None as Nothing, Words};

const fn verb(
    programs: &'static str,
    words: &'static str,
    options: &'static str,
    operands: AllowedArguments,
) -> ReadingVerb {
    ReadingVerb {
        programs,
        words,
        options,
        operands,
    }
}

/// Options of `gh` that choose the items of a list.
const LISTS: &str = "-R= --repo= -L= --limit= -s= --state= -a= --assignee= -A= --author= -l= \
    --label= -B= --base= -H= --head= -m= --milestone= --json= -w= --workflow= -b= --branch= -u= \
    --user= -e= --event= -c= --commit= --status=";

const VERBS: &[ReadingVerb] = &[
    // It changes what the repository remembers of the remote, and no branch.
    verb(
        "git",
        "fetch",
        "--all --prune -p --tags -t --no-tags --dry-run --verbose -v --quiet -q --depth=",
        Names(5),
    ),
    // It also takes over new commits, where nothing of one's own is in their way.
    verb(
        "git",
        "pull --ff-only",
        "--prune -p --tags --no-tags --verbose -v --quiet -q",
        Names(2),
    ),
    verb(
        "git",
        "ls-remote",
        "--heads --branches --tags -t -b --refs --symref --quiet -q --exit-code --get-url",
        Names(3),
    ),
    verb("gh", "pr list", LISTS, Nothing),
    verb(
        "gh",
        "pr view",
        "-R= --repo= --comments -c --json=",
        Names(1),
    ),
    verb("gh", "pr diff", "-R= --repo= --name-only --patch", Names(1)),
    verb(
        "gh",
        "pr checks",
        "-R= --repo= --required --json=",
        Names(1),
    ),
    verb(
        "gh",
        "pr status",
        "-R= --repo= --json= -c --conflict-status",
        Nothing,
    ),
    verb("gh", "issue list", LISTS, Nothing),
    verb(
        "gh",
        "issue view",
        "-R= --repo= --comments -c --json=",
        Names(1),
    ),
    verb("gh", "issue status", "-R= --repo= --json=", Nothing),
    verb("gh", "run list", LISTS, Nothing),
    verb(
        "gh",
        "run view",
        "-R= --repo= -j= --job= --log --log-failed -v --verbose --exit-status -a= --attempt= --json=",
        Names(1),
    ),
    verb("gh", "release list", LISTS, Nothing),
    verb("gh", "release view", "-R= --repo= --json=", Names(1)),
    verb("gh", "repo view", "-b= --branch= --json=", Names(1)),
    verb(
        "docker podman",
        "ps",
        "-a --all -q --quiet -s --size --no-trunc -l --latest -n= --last= -f= --filter= --format=",
        Nothing,
    ),
    verb(
        "docker podman",
        "images",
        "-a --all -q --quiet --no-trunc --digests -f= --filter= --format=",
        Names(1),
    ),
    // Not `--follow`, which never ends.
    verb(
        "docker podman",
        "logs",
        "-t --timestamps --details -n= --tail= --since= --until=",
        Names(1),
    ),
    verb("docker podman", "inspect", "-s --size --type=", Names(8)),
    verb("docker podman", "version", "--format=", Nothing),
    verb("docker podman", "info", "--format=", Nothing),
    verb(
        "kubectl",
        "get",
        "-n= --namespace= -A --all-namespaces -o= --output= -l= --selector= --show-labels \
         --sort-by= --field-selector= --no-headers --context=",
        Names(8),
    ),
    verb(
        "kubectl",
        "describe",
        "-n= --namespace= -A --all-namespaces -l= --selector= --context=",
        Names(8),
    ),
    verb(
        "kubectl",
        "logs",
        "-n= --namespace= -c= --container= --all-containers --tail= --since= --timestamps \
         --previous -p -l= --selector= --context=",
        Names(2),
    ),
    verb("kubectl", "version", "--client -o= --output=", Nothing),
    verb("kubectl", "config current-context", "", Nothing),
    verb("ssh", "-V", "", Nothing),
    verb(
        "gpg gpg2",
        "--list-keys",
        "--keyid-format= --fingerprint",
        Words(1),
    ),
    verb("gpg gpg2", "--version", "", Nothing),
    verb(
        "systemctl",
        "status",
        "--user --no-pager -l --full -a --all -n= --lines=",
        Words(3),
    ),
    verb(
        "systemctl",
        "list-units",
        "--user --no-pager -l --full -a --all --failed -t= --type= --state=",
        Words(1),
    ),
    verb(
        "systemctl",
        "list-timers",
        "--user --no-pager -a --all",
        Words(1),
    ),
    verb("systemctl", "is-active", "--user", Words(3)),
    verb("systemctl", "is-enabled", "--user", Words(3)),
    verb("systemctl", "is-failed", "--user", Words(3)),
    // Of one unit: the whole journal tells of everything that a person does.
    verb(
        "journalctl",
        "-u",
        "--no-pager -n= --lines= -b --boot --since= --until= -p= --priority= -r --reverse",
        Words(1),
    ),
    verb("crontab", "-l", "", Nothing),
    verb("man", "", "", Words(2)),
];

/// Maximum length of a value or an operand, in bytes.
const MAX_WORD_BYTES: usize = 200;

/// Words for confidential data; a call with one of them asks each time.
const KEPT: [&str; 4] = ["secret", "token", "passw", "credential"];

/// Whether a program, given by its bare name, only reads when started with these arguments.
pub(crate) fn reads(program: &str, arguments: &[String]) -> bool {
    VERBS.iter().any(|verb| verb.covers(program, arguments))
}

impl ReadingVerb {
    fn covers(&self, program: &str, arguments: &[String]) -> bool {
        if !self.programs.split(' ').any(|name| name == program) {
            return false;
        }
        let mut rest = arguments.iter().map(String::as_str);
        let mut words = self.words.split_ascii_whitespace();
        words.all(|word| rest.next() == Some(word)) && self.allows(rest)
    }

    fn allows<'a>(&self, mut rest: impl Iterator<Item = &'a str>) -> bool {
        let (most, may_have_parts) = match self.operands {
            AllowedArguments::None => (0, false),
            AllowedArguments::Words(most) => (most, false),
            AllowedArguments::Names(most) => (most, true),
        };
        let mut operands = 0;
        while let Some(word) = rest.next() {
            if !word.starts_with('-') {
                operands += 1;
                if operands > most || !is_name(word, may_have_parts) {
                    return false;
                }
                continue;
            }
            let fits = match self.option(word) {
                Some(OptionArgument::None) => true,
                Some(OptionArgument::Is(value)) => is_value(value),
                Some(OptionArgument::Follows) => rest.next().is_some_and(is_value),
                None => false,
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Meaning of the word as an option of this verb, if it is one.
    fn option<'a>(&self, word: &'a str) -> Option<OptionArgument<'a>> {
        self.options.split_ascii_whitespace().find_map(|option| {
            let Some(name) = option.strip_suffix('=') else {
                return (word == option).then_some(OptionArgument::None);
            };
            match word.strip_prefix(name)? {
                "" => Some(OptionArgument::Follows),
                value if name.starts_with("--") => value.strip_prefix('=').map(OptionArgument::Is),
                value => Some(OptionArgument::Is(value)),
            }
        })
    }
}

enum OptionArgument<'a> {
    None,
    Is(&'a str),
    Follows,
}

/// Whether a word is a plain name: no address, no path that leads out of something or to a file,
/// and no pair of names (`from:to`).
fn is_name(word: &str, may_have_parts: bool) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || "._@#-".contains(c) || c == '/' && may_have_parts;
    is_short(word) && !word.starts_with(['.', '/', '@']) && word.chars().all(plain)
}

fn is_value(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@#-/:,+=%".contains(c);
    is_short(word)
        && !word.starts_with(['.', '/', '-'])
        && !word.contains("://")
        && !word.contains("file")
        && word.chars().all(plain)
}

fn is_short(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    !word.is_empty()
        && word.len() <= MAX_WORD_BYTES
        && !word.contains("..")
        && !KEPT.iter().any(|kept| lower.contains(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_granted(line: &str) -> bool {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        reads(&program, &words.collect::<Vec<_>>())
    }

    #[test]
    fn verbs_that_read() {
        for line in [
            "git fetch",
            "git fetch origin",
            "git fetch --all --prune",
            "git fetch --depth=1 origin feature/x",
            "git fetch --depth 1",
            "git pull --ff-only",
            "git pull --ff-only origin main",
            "git ls-remote --heads origin",
            "gh pr list",
            "gh pr list -R owner/name --state open -L50 --json number,title",
            "gh pr view 12 --comments",
            "gh pr view #12",
            "gh run view 123 --log-failed",
            "gh repo view owner/name",
            "docker ps -a",
            "docker logs --tail 100 web",
            "docker ps --filter status=exited",
            "podman images",
            "kubectl get pods -n web -o wide",
            "kubectl describe pod/web-1",
            "kubectl logs -l app=web --tail=20",
            "ssh -V",
            "gpg --list-keys",
            "systemctl status nginx",
            "systemctl list-units --failed",
            "journalctl -u nginx -n 50 --no-pager",
            "crontab -l",
            "man git",
            "man 5 crontab",
        ] {
            assert!(is_granted(line), "{line}");
        }
    }

    #[test]
    fn whatever_else_is_asked_about_each_time() {
        for line in [
            "git",
            "git push",
            "git pull",
            "git pull origin --ff-only",
            "git pull --ff-only --rebase",
            "git -c core.sshCommand=./x fetch",
            "git -C sub fetch",
            "git fetch --upload-pack=./evil",
            "git fetch --upload-pack ./evil",
            "git fetch --force",
            "git fetch ./evil",
            "git fetch ../evil",
            "git fetch /srv/evil",
            "git fetch https://example.org/x",
            "git fetch git@example.org:x",
            "git fetch ext::sh",
            "git fetch origin main:main",
            "git fetch origin +main",
            "git fetch -o x",
            "git fetch --",
            "git fetch --depth=./x",
            "git fetch --depth --upload-pack=x",
            "git ls-remote --upload-pack=./evil origin",
            "git ls-remote --exec=./evil",
            "git fetcher",
            "Git fetch",
            "gh",
            "gh api user",
            "gh pr",
            "gh pr create",
            "gh pr view --web",
            "gh pr view -w",
            "gh pr list --jq env",
            "gh pr list --template x",
            "gh pr list --search x",
            "gh auth token",
            "gh secret list",
            "docker run x",
            "docker logs -f web",
            "docker --host tcp://x ps",
            "docker ps --host=x",
            "docker exec web sh",
            "kubectl get secrets",
            "kubectl get Secret/x -o yaml",
            "kubectl get -f ./x",
            "kubectl get pods --kubeconfig=x",
            "kubectl get pods -o go-template-file=x",
            "kubectl get pods -w",
            "kubectl exec web -- sh",
            "ssh host",
            "ssh -V host",
            "ssh -oProxyCommand=x -V",
            "gpg --list-keys --homedir x",
            "gpg --sign",
            "systemctl start nginx",
            "systemctl status --root=x",
            "systemctl -H host status",
            "journalctl",
            "journalctl -u nginx --vacuum-time=1d",
            "journalctl --rotate",
            "journalctl -u nginx -f",
            "crontab",
            "crontab x",
            "crontab -l x",
            "man ./x",
            "man sub/x",
            "man -P ./evil git",
            "sh -c x",
            "",
        ] {
            assert!(!is_granted(line), "{line}");
        }
        for word in [
            "",
            " ",
            "a b",
            "a\nb",
            "a;b",
            "$(x)",
            "`x`",
            "größe",
            "\u{202e}x",
            "a\u{200b}",
        ] {
            assert!(!reads("git", &["fetch".into(), word.into()]), "{word:?}");
        }
        let long = "x".repeat(201);
        assert!(!reads("git", &["fetch".into(), long]));
    }
}
