//! Purposes of programs, as a table.
//!
//! It is for the words on a card, for lines that destroy, and for lines that claim to do nothing but
//! read: those run where nothing can be changed. Nothing is allowed because of it.

use gyrus_contract::Does;

use super::{
    git,
    reader::ShellReader,
    words::{ShellWord, WordKnowledge, host},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramPurpose {
    /// The program changes nothing and opens nothing that its words name.
    Saying,
    /// The program reads the files in its words, after this number of words that are text.
    Reading(usize),
    /// The program writes the files in its words.
    Writing,
    /// The program writes the last file in its words.
    WritingLast,
    /// The program moves all files in its words to the last.
    Moving,
    Removing,
    GettingPackages,
    Connecting,
    /// The program needs keys or logins of the person.
    LoggingIn,
    /// The program affects the machine: services, other processes, another user.
    ChangingTheMachine,
    /// The program starts the program in its words.
    Starting,
    /// A shell, whose option `-c` is followed by a command line.
    Shell,
    Git,
}

/// Names of programs by purpose. A program that is not listed counts as running unknown code.
const PROGRAMS: [(ProgramPurpose, &str); 15] = [
    (
        ProgramPurpose::Saying,
        ": true false echo printf test [ pwd type exit return break continue shift set shopt read \
         unset export readonly declare typeset local umask ulimit wait times jobs sleep seq expr \
         date id whoami groups hostname uname nproc arch tty uptime free ps pgrep which whereis \
         basename dirname yes locale tput clear getconf printenv numfmt factor lscpu lsblk",
    ),
    (
        ProgramPurpose::Reading(0),
        "cat tac nl head tail wc ls dir vdir stat readlink realpath du df file diff diff3 cmp comm \
         cut paste join sort uniq column fold fmt expand unexpand rev tr tsort cksum sum md5sum \
         sha1sum sha224sum sha256sum sha384sum sha512sum b2sum base64 base32 basenc od hexdump hd \
         xxd strings tree less more bat zcat bzcat xzcat cloc tokei find mapfile readarray nm ldd",
    ),
    (
        ProgramPurpose::Reading(1),
        "grep egrep fgrep zgrep rg ag ack sed awk gawk mawk jq",
    ),
    (ProgramPurpose::Writing, "tee touch mkdir mkfifo truncate"),
    (
        ProgramPurpose::Writing,
        "chmod chown chgrp chattr setfacl patch split csplit",
    ),
    (ProgramPurpose::WritingLast, "cp ln link install"),
    (ProgramPurpose::Moving, "mv"),
    (ProgramPurpose::Removing, "rm rmdir unlink shred"),
    (
        ProgramPurpose::GettingPackages,
        "apt apt-get aptitude dnf yum zypper pacman apk snap flatpak brew npx pnpx uvx pipx",
    ),
    (
        ProgramPurpose::Connecting,
        "curl wget aria2c nc ncat netcat socat telnet ftp ping ping6 dig nslookup host whois \
         traceroute openssl http https websocat mail mailx sendmail mutt",
    ),
    (
        ProgramPurpose::LoggingIn,
        "ssh scp sftp sshfs mosh autossh ssh-add ssh-keygen ssh-copy-id gpg gpg2 pass op vault gh \
         glab hub aws gcloud az doctl heroku kubectl helm terraform tofu ansible ansible-playbook \
         docker podman docker-compose nerdctl buildah fly flyctl vercel netlify wrangler psql mysql \
         mongosh redis-cli",
    ),
    (
        ProgramPurpose::ChangingTheMachine,
        "systemctl service kill pkill killall mount umount useradd userdel usermod groupadd passwd \
         chpasswd crontab at batch sysctl iptables nft ufw ip ifconfig reboot shutdown halt poweroff \
         modprobe loginctl dd fdisk sfdisk parted wipefs mkswap losetup dmesg journalctl visudo su \
         pkexec runuser chroot nsenter xdotool launchctl tmux screen",
    ),
    (
        ProgramPurpose::Starting,
        "env nice nohup timeout stdbuf setsid xargs command builtin exec ionice chrt time sudo doas \
         watch flock fakeroot strace ltrace parallel busybox unbuffer",
    ),
    (ProgramPurpose::Shell, "sh bash dash zsh ksh ash"),
    (ProgramPurpose::Git, "git"),
];

/// Options by which a program that usually reads also writes a file or runs another program.
const MORE: [(&str, &[&str]); 14] = [
    ("sed", &["-i", "--in-place", "-Ei", "-ni", "-ri"]),
    ("sort", &["-o", "--output"]),
    ("find", &["-delete", "-exec", "-ok", "-fprint", "-fls"]),
    ("tree", &["-o", "--output"]),
    ("xxd", &["-r"]),
    ("rg", &["--pre"]),
    ("less", &["-o", "-O", "--log-file"]),
    ("file", &["-C", "--compile"]),
    ("date", &["-s", "--set"]),
    ("test", &["-w"]),
    ("[", &["-w"]),
    ("diff", &["--output"]),
    ("gawk", &["-i"]),
    ("awk", &["-i"]),
];

/// Words after which package managers get packages, and publish.
const GETS: [&str; 16] = [
    "install", "i", "ci", "add", "update", "upgrade", "download", "fetch", "get", "sync",
    "restore", "require", "dlx", "exec", "x", "search",
];
const PUBLISHES: [&str; 8] = [
    "publish",
    "unpublish",
    "yank",
    "deploy",
    "login",
    "adduser",
    "deprecate",
    "hex.publish",
];
const MANAGERS: &str = "npm pnpm yarn bun pip pip3 pipx conda mamba uv pdm hatch poetry pipenv cargo \
    rustup go gem bundle composer dotnet mix deno mvn";

/// Maximum number of programs that start each other.
const MAX_STARTING: usize = 8;

const SYSTEM_FOLDERS: [&str; 5] = ["/usr/bin", "/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];

fn is_in(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

impl ShellReader<'_> {
    /// Reads a simple command.
    pub(super) fn program(&mut self, words: &[ShellWord], part: &str) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        let Some(written) = program.literal() else {
            return self.hides(part, "which program it runs is known only when it runs");
        };
        let name = match written.rsplit_once('/') {
            None => written,
            Some((folder, name)) if SYSTEM_FOLDERS.contains(&folder) => name,
            Some(_) => return self.fact(Does::RunsCode, part, "it runs a program by its path"),
        };
        addresses(self, arguments, part);
        let says_what_it_is =
            matches!(arguments, [only] if ["--version", "--help", "-V"].contains(&&*only.text));
        if shell(self, name, arguments, part) || says_what_it_is {
            return;
        }
        if self.starting == MAX_STARTING {
            return self.hides(part, "it is nested too deeply");
        }
        self.starting += 1;
        let mut known = PROGRAMS.into_iter();
        match known.find(|(_, names)| is_in(names, name)) {
            Some((what, _)) => does(self, what, name, arguments, part),
            None => runs(self, name, arguments, part),
        }
        self.starting -= 1;
    }
}

/// Notes the facts about a known program and its arguments.
fn does(
    reader: &mut ShellReader<'_>,
    what: ProgramPurpose,
    name: &str,
    arguments: &[ShellWord],
    part: &str,
) {
    let operands: Vec<&ShellWord> = arguments.iter().filter(|word| !word.is_option()).collect();
    let mut fact = |does, why| reader.fact(does, part, why);
    match what {
        ProgramPurpose::Saying if does_more(name, arguments) => {
            fact(Does::RunsCode, "it does more than say")
        }
        ProgramPurpose::Saying => {}
        ProgramPurpose::GettingPackages => {
            fact(Does::GetsPackages, "it gets packages");
            fact(Does::RunsCode, "it runs what it gets");
        }
        ProgramPurpose::Connecting => {
            let hosts = hosts(arguments);
            fact(Does::Connects { hosts }, "it connects");
        }
        ProgramPurpose::LoggingIn => fact(Does::UsesCredentials, "it acts with a person's account"),
        ProgramPurpose::ChangingTheMachine => fact(Does::ChangesSystem, "it changes the machine"),
        ProgramPurpose::Starting => starts(reader, name, arguments, part),
        ProgramPurpose::Shell => runs_text(reader, arguments, part),
        ProgramPurpose::Git => git::read(reader, arguments, part),
        ProgramPurpose::Reading(_)
            if does_more(name, arguments) || writes_in_its_own_ways(name, &operands) =>
        {
            edits(reader, name, arguments, part);
        }
        ProgramPurpose::Reading(text) => {
            let files = operands.iter().skip(text);
            files.for_each(|word| reader.reads(word, part));
        }
        ProgramPurpose::Writing => {
            // `chmod` and its kin are told something else first.
            let text = usize::from(name.starts_with("ch"));
            let files = operands.iter().skip(text);
            files.for_each(|word| reader.writes(word, part));
            if operands.len() <= text {
                let why = "what it writes is known only when it runs";
                reader.fact(Does::RunsCode, part, why);
            }
        }
        ProgramPurpose::WritingLast | ProgramPurpose::Moving => {
            let Some((last, others)) = operands.split_last() else {
                return;
            };
            if what == ProgramPurpose::Moving {
                others.iter().for_each(|word| reader.removes(word, part));
            }
            reader.writes(last, part);
        }
        ProgramPurpose::Removing => operands.iter().for_each(|word| reader.removes(word, part)),
    }
}

fn does_more(name: &str, arguments: &[ShellWord]) -> bool {
    let more = MORE.iter().filter(|(program, _)| *program == name);
    let mut options = more.flat_map(|(_, options)| *options);
    options.any(|option| arguments.iter().any(|word| word.text.starts_with(option)))
}

/// Handles shell commands that change the state for later commands; returns `false` for others.
fn shell(reader: &mut ShellReader<'_>, name: &str, arguments: &[ShellWord], part: &str) -> bool {
    match name {
        "cd" | "pushd" => {
            let target = arguments.iter().find(|word| !word.is_option());
            reader.enter(target, part);
        }
        "popd" => reader.enter(Some(&ShellWord::open("popd")), part),
        "eval" | "trap" => {
            let texts = arguments.iter().map(|word| word.literal());
            let texts: Option<Vec<&str>> = texts.collect();
            match texts {
                Some(texts) if name == "eval" => reader.text(&texts.join(" ")),
                Some(texts) => reader.apart(texts.first().unwrap_or(&"")),
                None => reader.hides(part, "it runs a text that is known only when it runs"),
            }
        }
        "alias" | "unalias" | "hash" | "enable" | "bind" | "let" | "fc" | "history" | "getopts"
        | "complete" => reader.hides(part, "it gives names another meaning"),
        "source" | "." => reader.fact(Does::RunsCode, part, "it runs a script in this shell"),
        _ => return false,
    }
    true
}

fn runs(reader: &mut ShellReader<'_>, name: &str, arguments: &[ShellWord], part: &str) {
    reader.fact(
        Does::RunsCode,
        part,
        "it runs code of the workspace, or that it is given",
    );
    let verb = |verbs: &[&str]| {
        let mut words = arguments.iter().filter_map(ShellWord::literal).take(4);
        words.any(|word| verbs.contains(&word))
    };
    if is_in(MANAGERS, name) && verb(&GETS) {
        reader.fact(Does::GetsPackages, part, "it gets packages");
    }
    if is_in(MANAGERS, name) && verb(&PUBLISHES) {
        reader.fact(Does::Publishes, part, "it changes what others see");
    }
    if name.starts_with("mkfs") {
        reader.fact(Does::ChangesSystem, part, "it changes the machine");
    }
}

/// Scripts of these programs can do more than print.
fn writes_in_its_own_ways(name: &str, operands: &[&ShellWord]) -> bool {
    let script = operands.first().map_or("", |word| &word.raw);
    match name {
        "sed" => script.contains("w ") || script.ends_with("e'"),
        "awk" | "gawk" | "mawk" => {
            script.contains(['>', '|']) || script.contains("system") || script.contains("getline")
        }
        "uniq" => operands.len() > 1,
        "xxd" => operands.len() > 2,
        _ => false,
    }
}

/// Records the changes of a program that otherwise only reads.
fn edits(reader: &mut ShellReader<'_>, name: &str, arguments: &[ShellWord], part: &str) {
    let operands = || arguments.iter().filter(|word| !word.is_option());
    match name {
        "sed" => operands()
            .skip(1)
            .for_each(|word| reader.writes(word, part)),
        "find" => return find(reader, arguments, part),
        _ => {}
    }
    reader.fact(
        Does::RunsCode,
        part,
        "it writes or runs what its options say",
    );
}

/// `find`, which removes or starts a program.
fn find(reader: &mut ShellReader<'_>, arguments: &[ShellWord], part: &str) {
    let is = |words: &'static str| {
        move |word: &ShellWord| words.split(' ').any(|known| known == word.text)
    };
    let starts = arguments.iter().position(is("-exec -execdir -ok -okdir"));
    let started = starts.map(|at| arguments[at + 1..].iter());
    let started = started.map(|words| words.take_while(|word| !is("; +")(word)));
    let started: Vec<ShellWord> = started.into_iter().flatten().cloned().collect();
    let removes = started.first().is_some_and(is("rm")) || arguments.iter().any(is("-delete"));
    if removes && arguments.iter().any(is(NARROWS)) {
        reader.removes_some(part);
    } else if removes {
        // All that lies there.
        let from = arguments.iter().find(|word| !word.is_option());
        reader.removes(from.unwrap_or(&ShellWord::open("find")), part);
    } else if started.is_empty() {
        reader.fact(Does::RunsCode, part, "it writes what it finds");
    } else {
        reader.program(&started, part);
    }
}

/// Conditions by which `find` selects only a part of the files.
const NARROWS: &str = "-name -iname -path -ipath -regex -newer -mtime -mmin -size -empty -maxdepth \
    -perm -user -inum";

/// Reads the program that another one starts.
fn starts(reader: &mut ShellReader<'_>, name: &str, arguments: &[ShellWord], part: &str) {
    const WITH_VALUE: [&str; 12] = [
        "-n", "-u", "-s", "-k", "-I", "-P", "-L", "-d", "-a", "-c", "-g", "-C",
    ];
    if matches!(name, "sudo" | "doas") {
        reader.fact(Does::ChangesSystem, part, "it acts as another user");
    }
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let takes = WITH_VALUE.contains(&&*word.text) && !(name == "env" && word.text == "-i");
        if word.is_option() && takes && !after.is_empty() {
            rest = &after[1..];
        } else if word.is_option() || word.text.contains('=') || is_number(&word.text) {
            rest = after;
        } else {
            break;
        }
    }
    if let ("flock", Some((file, after))) = (name, rest.split_first()) {
        reader.writes(file, part);
        rest = after;
    }
    let mut words = rest.to_vec();
    match name {
        // What it is given comes from elsewhere.
        "xargs" | "parallel" if !words.is_empty() => {
            let more = ShellWord::open("…");
            reader.names.any = true;
            words.push(more);
        }
        _ => {}
    }
    reader.program(&words, part);
}

/// Reads the text after `-c` of a shell, or its script.
fn runs_text(reader: &mut ShellReader<'_>, arguments: &[ShellWord], part: &str) {
    let is_text = |word: &ShellWord| {
        word.is_option() && !word.text.starts_with("--") && word.text.ends_with('c')
    };
    let Some(at) = arguments.iter().position(is_text) else {
        return if arguments.iter().any(|word| !word.is_option()) {
            reader.fact(Does::RunsCode, part, "it runs a script")
        } else {
            reader.hides(part, "it runs what it is given")
        };
    };
    match arguments.get(at + 1).map(|word| (word.kind, &*word.text)) {
        Some((WordKnowledge::Literal, text)) => {
            let text = text.to_owned();
            reader.apart(&text);
        }
        _ => reader.hides(part, "it runs a text that is known only when it runs"),
    }
}

/// Addresses among the words of any program.
fn addresses(reader: &mut ShellReader<'_>, arguments: &[ShellWord], part: &str) {
    let mut hosts: Vec<String> = arguments
        .iter()
        .filter(|word| word.text.contains("://"))
        .filter_map(|word| host(&word.text))
        .collect();
    hosts.sort();
    hosts.dedup();
    if !hosts.is_empty() {
        reader.fact(Does::Connects { hosts }, part, "it names an address");
    }
}

/// The hosts of a program that connects; none if one is not known.
fn hosts(arguments: &[ShellWord]) -> Vec<String> {
    let named = arguments.iter().filter(|word| {
        let text = &word.text;
        !word.is_option() && (text.contains("://") || text.contains('.') || text == "localhost")
    });
    let hosts: Option<Vec<String>> = named.map(|word| word.literal().and_then(host)).collect();
    hosts.unwrap_or_default()
}
