//! Programs that connect, and whither.

use gyrus_contract::Does;

use super::{
    Call,
    options::{Parsed, Spec},
};
use crate::shell::{reader::Reader, words::Word};

const CURL: Spec = Spec::strict(
    "sSfLkIivgGjJNOqR#o:X:d:H:A:e:m:u:F:T:x:b:c:w:r:C:D:n0146",
    "silent show-error fail fail-with-body location insecure head include verbose get compressed \
     globoff no-progress-meter no-buffer remote-name remote-header-name remote-name-all output= \
     output-dir= create-dirs request= data= data-raw= data-binary= data-urlencode= data-ascii= json= \
     header= user-agent= referer= max-time= connect-timeout= user= form= form-string= upload-file= \
     proxy= cookie= cookie-jar= write-out= range= continue-at= dump-header= netrc http1.1 http2 ipv4 \
     ipv6 retry= retry-delay= retry-max-time= retry-connrefused retry-all-errors url= max-redirs= \
     oauth2-bearer= limit-rate= tlsv1.2 tlsv1.3 proto= proto-default= max-filesize= disable parallel \
     progress-bar styled-output no-styled-output request-target= no-keepalive",
);

const WGET: Spec = Spec::strict(
    "qcNrnvSO:P:T:t:U:w:l:kpHbEmx",
    "quiet continue no-verbose output-document= directory-prefix= timeout= tries= user-agent= header= \
     no-check-certificate recursive level= spider server-response post-data= method= body-data= \
     user= password= content-disposition show-progress progress= no-clobber timestamping wait= \
     max-redirect= https-only no-parent no-host-directories inet4-only",
);

/// Programs whose first operand, or the one after, is a host.
const TALKS: &str = "nc ncat netcat telnet ping ping6 dig nslookup host whois traceroute tracepath mtr \
    getent ftp tftp lftp nmap arping socat websocat openssl http https xh aria2c httpie httping \
    redis-cli mysql mysqldump psql pg_dump pg_restore mongo mongosh mongodump sqlcmd cqlsh influx \
    ssh-copy-id ssh-keyscan mosh irssi rclone restic borg syncthing ntpdate smbclient ldapsearch \
    grpcurl youtube-dl yt-dlp lynx w3m links elinks iperf3 speedtest tailscale cloudflared ngrok";

/// Of those, the ones that log in.
const LOGS_IN: &str = "ftp lftp redis-cli mysql mysqldump psql pg_dump pg_restore mongo mongosh \
    mongodump sqlcmd cqlsh ssh-copy-id mosh rclone restic borg smbclient ldapsearch tailscale \
    cloudflared ngrok";

/// Programs that act for a person at a service.
const SERVICES: &str = "gh glab hub aws gcloud gsutil bq az kubectl helm oc heroku vercel netlify fly \
    flyctl doctl op vault pass bw terraform tofu pulumi ansible ansible-playbook eksctl s3cmd stripe \
    firebase supabase wrangler railway render linode-cli hcloud scw jira acli slack twilio kaggle \
    huggingface-cli hf wandb modal eas expo sentry-cli circleci travis argocd flux cdk sam serverless \
    secret-tool security keyring aws-vault sops age chamber doppler infisical";

/// What these services only show.
const SHOWS: &[&str] = &[
    "list",
    "ls",
    "view",
    "show",
    "get",
    "describe",
    "status",
    "diff",
    "checks",
    "logs",
    "log",
    "version",
    "--version",
    "help",
    "--help",
    "whoami",
    "top",
    "explain",
    "plan",
    "search",
    "read",
    "validate",
    "fmt",
];

/// Programs that send something to people.
const SENDS: &str = "mail mailx sendmail mutt msmtp swaks twine wall telegram-send notify";

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let listed = |names: &str| names.split_ascii_whitespace().any(|name| name == call.name);
    match call.name {
        "curl" => curl(reader, call),
        "wget" => wget(reader, call),
        "ssh" | "scp" | "sftp" | "slogin" | "sshfs" | "autossh" => ssh(reader, call),
        "rsync" => rsync(reader, call),
        _ if listed(TALKS) => talks(reader, call, listed(LOGS_IN)),
        _ if listed(SERVICES) => service(reader, call),
        _ if listed(SENDS) => {
            connects(reader, call, Vec::new());
            reader.fact(
                Does::UsesCredentials,
                call.part,
                "it acts with a person's account",
            );
            reader.fact(
                Does::Publishes,
                call.part,
                "it sends something in a person's name",
            );
        }
        _ => return false,
    }
    true
}

fn connects(reader: &mut Reader<'_>, call: &Call<'_>, hosts: Vec<String>) {
    reader.fact(Does::Connects { hosts }, call.part, "it connects");
}

/// The host of a URL or of `user@host:path`, in lower case.
fn host(text: &str) -> Option<String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#', '\\']).next()?;
    let rest = rest.rsplit('@').next()?;
    let name = match rest.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        None => rest.split(':').next()?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_lowercase())
}

/// The hosts of all of them, or none if one is not known.
fn hosts<'a>(words: impl Iterator<Item = &'a Word>) -> Vec<String> {
    let all: Option<Vec<String>> = words
        .map(|word| {
            let text = match word.literal() {
                Some(text) => text,
                // `https://host/$path` has its host before what is open.
                None => word.prefix(),
            };
            let ends = word.literal().is_some()
                || text
                    .split_once("://")
                    .is_some_and(|(_, rest)| rest.contains('/'));
            host(&text).filter(|_| ends && !text.contains(['{', '[']) || text.contains("://["))
        })
        .collect();
    let mut all = all.unwrap_or_default();
    all.sort();
    all.dedup();
    all
}

fn curl(reader: &mut Reader<'_>, call: &Call<'_>) {
    if super::reading::asks_about_itself(call) {
        return;
    }
    let parsed = match CURL.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => {
            connects(reader, call, Vec::new());
            return reader.hides(call.part, why);
        }
    };
    let urls = parsed
        .operands
        .iter()
        .chain(parsed.values(&["url", "x", "proxy"]));
    connects(reader, call, hosts(urls));
    for file in parsed.values(&[
        "o",
        "output",
        "output-dir",
        "c",
        "cookie-jar",
        "D",
        "dump-header",
    ]) {
        reader.writes(file, call.part);
    }
    if parsed.has(&["O", "remote-name", "remote-name-all", "J"]) {
        reader.writes(&Word::plain("."), call.part);
    }
    let sent = [
        "d",
        "data",
        "data-binary",
        "data-urlencode",
        "json",
        "F",
        "form",
        "data-ascii",
        "b",
        "cookie",
        "H",
        "header",
        "w",
        "write-out",
    ];
    for value in parsed.values(&sent) {
        let prefix = value.prefix();
        if let Some(at) = prefix.find(['@', '<']) {
            reader.reads_word(&value.after(at + 1), call.part);
        }
    }
    for file in parsed.values(&["T", "upload-file"]) {
        reader.reads_word(file, call.part);
    }
    curl_logs_in(reader, call, &parsed);
}

fn curl_logs_in(reader: &mut Reader<'_>, call: &Call<'_>, parsed: &Parsed) {
    let header = parsed.values(&["H", "header"]).any(|value| {
        let text = value.raw.to_lowercase();
        ["authorization", "token", "key", "cookie", "secret"]
            .iter()
            .any(|part| text.contains(part))
    });
    let logs_in = [
        "u",
        "user",
        "n",
        "netrc",
        "b",
        "cookie",
        "oauth2-bearer",
        "E",
        "cert",
        "key",
    ];
    if header || parsed.has(&logs_in) {
        reader.fact(Does::UsesCredentials, call.part, "it logs in");
    }
    if parsed.has(&["w", "write-out", "proto"]) && call.part.contains("%output") {
        reader.hides(call.part, "it writes where its format says");
    }
}

fn wget(reader: &mut Reader<'_>, call: &Call<'_>) {
    if super::reading::asks_about_itself(call) {
        return;
    }
    let parsed = match WGET.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => {
            connects(reader, call, Vec::new());
            return reader.hides(call.part, why);
        }
    };
    connects(reader, call, hosts(parsed.operands.iter()));
    let named = parsed.values(&["O", "output-document"]).last().cloned();
    let folder = parsed.values(&["P", "directory-prefix"]).last().cloned();
    match named.or(folder) {
        Some(path) if path.literal().as_deref() == Some("-") => {}
        Some(path) => reader.writes(&path, call.part),
        None if parsed.has(&["spider"]) => {}
        None => reader.writes(&Word::plain("."), call.part),
    }
    if parsed.has(&["user", "password", "header"]) {
        reader.fact(Does::UsesCredentials, call.part, "it logs in");
    }
}

fn ssh(reader: &mut Reader<'_>, call: &Call<'_>) {
    let spec = match call.name {
        "scp" | "sftp" => Spec::strict("rpqCv46P:i:o:l:", ""),
        _ => Spec::first("TtnNqvCfxAag46p:i:l:o:L:R:D:W:J:", ""),
    };
    reader.fact(
        Does::UsesCredentials,
        call.part,
        "it logs in with a key or a password",
    );
    let parsed = match spec.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => {
            connects(reader, call, Vec::new());
            return reader.hides(call.part, why);
        }
    };
    let harmless = [
        "stricthostkeychecking=",
        "connecttimeout=",
        "batchmode=",
        "serveralive",
        "port=",
        "user=",
        "loglevel=",
        "connectionattempts=",
    ];
    for option in parsed.values(&["o"]) {
        let text = option.literal().unwrap_or_default().to_lowercase();
        if !harmless.iter().any(|start| text.starts_with(start)) {
            reader.hides(call.part, "an option may make it run other programs");
        }
    }
    if call.name == "scp" {
        return copies(reader, call, &parsed.operands);
    }
    connects(reader, call, hosts(parsed.operands.iter().take(1)));
    if parsed.operands.len() > 1 {
        reader.runs_code(call.part, "it runs a command on another machine");
        reader.fact(Does::Publishes, call.part, "it acts on another machine");
    }
}

/// Whether `scp` and `rsync` take the word for a path on another machine.
fn is_remote(word: &Word) -> bool {
    let text = word.prefix();
    match text.find(':') {
        Some(at) => !text[..at].contains('/'),
        None => false,
    }
}

fn copies(reader: &mut Reader<'_>, call: &Call<'_>, operands: &[Word]) {
    let Some((target, sources)) = operands.split_last() else {
        return;
    };
    let remote = operands.iter().filter(|word| is_remote(word));
    connects(reader, call, hosts(remote));
    for source in sources.iter().filter(|word| !is_remote(word)) {
        reader.reads_word(source, call.part);
    }
    match is_remote(target) {
        true => reader.fact(Does::Publishes, call.part, "it copies to another machine"),
        false => reader.writes(target, call.part),
    }
}

fn rsync(reader: &mut Reader<'_>, call: &Call<'_>) {
    let spec = Spec::strict(
        "avrzPnulptgohWcxHAXS",
        "archive verbose recursive compress progress partial dry-run update links perms times group \
         owner human-readable delete exclude= include= checksum stats info= ignore-existing size-only \
         delete-after delete-excluded filter= exclude-from= no-owner no-group no-perms mkpath",
    );
    let parsed = match spec.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    if parsed
        .operands
        .iter()
        .any(|word| is_remote(word) || word.prefix().contains("://"))
    {
        reader.fact(
            Does::UsesCredentials,
            call.part,
            "it logs in with a key or a password",
        );
        return copies(reader, call, &parsed.operands);
    }
    let Some((target, sources)) = parsed.operands.split_last() else {
        return;
    };
    for source in sources {
        reader.reads_word(source, call.part);
    }
    reader.writes(target, call.part);
    if parsed
        .options
        .iter()
        .any(|(name, _)| name.starts_with("delete"))
    {
        reader.removes(target, call.part);
    }
    // It copies links as they are.
    if let Some(Ok(path)) = target.literal().map(|path| reader.absolute(&path)) {
        reader.links.push(path);
    }
}

fn talks(reader: &mut Reader<'_>, call: &Call<'_>, logs_in: bool) {
    if super::reading::asks_about_itself(call) {
        return;
    }
    let named = call.args.iter().filter(|word| {
        let text = word.prefix();
        !text.starts_with('-')
            && (text.contains('.') || text.contains("://") || text == "localhost")
    });
    let hosts = hosts(named);
    connects(reader, call, hosts);
    if logs_in {
        reader.fact(Does::UsesCredentials, call.part, "it logs in");
    }
    // These can write, run programs and listen; which of it is not read.
    let can_more = !matches!(
        call.name,
        "ping"
            | "ping6"
            | "dig"
            | "nslookup"
            | "host"
            | "whois"
            | "traceroute"
            | "tracepath"
            | "getent"
    );
    if can_more {
        reader.runs_code(call.part, "what else it does is not read");
    }
    let shells = ["-e", "-c", "--exec", "--sh-exec", "EXEC", "SYSTEM"];
    let shell = |word: &Word| {
        let text = word.prefix();
        let letters = text.starts_with('-') && !text.starts_with("--") && text.contains(['e', 'c']);
        shells.iter().any(|option| text.starts_with(option)) || letters
    };
    if matches!(call.name, "nc" | "ncat" | "netcat" | "socat" | "openssl")
        && call.args.iter().any(shell)
    {
        reader.hides(call.part, "it may give a shell to whoever connects");
    }
}

fn service(reader: &mut Reader<'_>, call: &Call<'_>) {
    if super::reading::asks_about_itself(call) {
        return;
    }
    connects(reader, call, Vec::new());
    reader.fact(
        Does::UsesCredentials,
        call.part,
        "it acts with a person's account",
    );
    let mut verbs = call
        .args
        .iter()
        .filter(|word| !word.prefix().starts_with('-'))
        .take(3);
    let shows = verbs.any(|word| {
        word.literal().is_some_and(|verb| {
            SHOWS.contains(&&*verb)
                || verb.starts_with("describe-")
                || verb.starts_with("list-")
                || verb.starts_with("get-")
        })
    });
    let api = call.args.first().and_then(Word::literal).as_deref() == Some("api");
    let sends = call.args.iter().any(|word| {
        let text = word.prefix();
        [
            "-X",
            "--method",
            "-f",
            "-F",
            "--field",
            "--raw-field",
            "--input",
        ]
        .iter()
        .any(|option| text.starts_with(option))
    });
    if !(shows || api && !sends) {
        reader.fact(Does::Publishes, call.part, "it changes what others see");
    }
}

/// The subcommands of `git` that talk to remotes.
pub(super) fn git(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    if !matches!(
        call.name,
        "push" | "fetch" | "pull" | "clone" | "ls-remote" | "send-email"
    ) {
        return false;
    }
    let programs = [
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "-u",
        "-c",
        "--config",
        "--template",
    ];
    let upload = |word: &Word| {
        let text = word.prefix();
        let u = call.name != "push" || !text.starts_with("-u");
        programs.iter().any(|option| text.starts_with(option)) && u || text.starts_with("ext::")
    };
    if call
        .args
        .iter()
        .any(|word| upload(word) || word.may_split())
    {
        reader.hides(call.part, "an option may make it run other programs");
    }
    if call.name == "clone" && copies_here(call) {
        reads_copied(reader, call);
        reader.runs_code(call.part, "git may run programs that the repository names");
        clone(reader, call);
        return true;
    }
    let url = call.args.iter().find(|word| {
        let text = word.prefix();
        !text.starts_with('-') && (text.contains("://") || is_remote(word) && text.contains('@'))
    });
    connects(reader, call, hosts(url.into_iter()));
    reader.fact(
        Does::UsesCredentials,
        call.part,
        "it may log in at the remote",
    );
    match call.name {
        "push" | "send-email" => push(reader, call),
        "clone" => clone(reader, call),
        "ls-remote" => {}
        _ => {
            reader.fact(
                Does::ChangesRepository,
                call.part,
                "it changes the repository",
            );
            reader.runs_code(
                call.part,
                "git may run hooks and other programs that the repository names",
            );
        }
    }
    true
}

/// What a clone of a folder reads.
fn reads_copied(reader: &mut Reader<'_>, call: &Call<'_>) {
    for word in call
        .args
        .iter()
        .filter(|word| !word.prefix().starts_with('-'))
    {
        match word.literal() {
            Some(text) => reader.reads(text.trim_start_matches("file://"), call.part),
            None => reader.reads("/", call.part),
        }
    }
}

/// Whether no word is an address: what it copies is a folder of this machine. Should it be
/// something else after all, it runs without a network.
fn copies_here(call: &Call<'_>) -> bool {
    call.args.iter().all(|word| {
        let text = word.prefix();
        let path = text.strip_prefix("file:///").unwrap_or(&text);
        !path.contains(':') && (word.literal().is_some() || text.starts_with("file://"))
    })
}

fn push(reader: &mut Reader<'_>, call: &Call<'_>) {
    reader.fact(Does::Publishes, call.part, "it publishes commits");
    reader.runs_code(
        call.part,
        "git may run hooks and other programs that the repository names",
    );
    let forces = call.args.iter().any(|word| {
        let text = word.prefix();
        let letters = text.starts_with('-') && !text.starts_with("--");
        text.starts_with("--force")
            || text.starts_with("--del")
            || text.starts_with("--mirror")
            || text.starts_with("--prune")
            || text.starts_with('+')
            || text.starts_with(':')
            || letters && text.contains(['f', 'd'])
    });
    if forces {
        reader.fact(
            Does::Destroys,
            call.part,
            "it overwrites or deletes what others have",
        );
    }
}

fn clone(reader: &mut Reader<'_>, call: &Call<'_>) {
    let operands: Vec<&Word> = call
        .args
        .iter()
        .filter(|word| !word.prefix().starts_with('-'))
        .collect();
    let target = match operands.as_slice() {
        [_, .., target] => (*target).clone(),
        [url] => {
            let text = url.literal().unwrap_or_default();
            let name = text
                .trim_end_matches('/')
                .rsplit(['/', ':'])
                .next()
                .unwrap_or_default();
            match name.trim_end_matches(".git") {
                "" => Word::plain("."),
                name => Word::plain(name),
            }
        }
        [] => Word::plain("."),
    };
    reader.writes(&target, call.part);
    if let Some(Ok(path)) = target.literal().map(|path| reader.absolute(&path)) {
        reader.links.push(path);
    }
}
