//! Gyrus works where namespaces are refused, and says what does not hold.

use std::{
    fs,
    net::TcpListener,
    os::unix::{net::UnixListener, process::CommandExt},
    process::Command,
};

use serde_json::Value;

use crate::{
    changing::{self, GOAL, propose, renames, shape},
    refusing::refuse,
    support::{Said, World, said},
};

fn refused(world: &World, arguments: &[&str]) -> Said {
    let mut command = world.command(arguments);
    refuse(&mut command, &world.path(""));
    said(command.output().unwrap())
}

#[test]
fn the_demo_holds_there() {
    let world = World::new("");
    let said = refused(&world, &["demo", "--json"]).exits(0);
    let findings: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        findings.iter().all(|finding| finding["held"] == true),
        "{said:?}"
    );
    let first = &findings[0];
    assert_eq!(first["finding"], "commands_are_contained", "{said:?}");
    assert!(
        first["detail"].as_str().unwrap().contains("can be seen"),
        "{said:?}"
    );
    assert_eq!(findings.len(), 9, "{said:?}");
}

#[test]
fn doctor_says_what_stands_in_for_them() {
    let world = World::new("");
    let said = refused(&world, &["doctor"]);
    let sandbox = said
        .out
        .lines()
        .find(|line| line.contains("sandbox  "))
        .unwrap();
    assert!(
        sandbox.contains("namespaces are refused here, so Landlock"),
        "{said:?}"
    );
    assert!(
        sandbox.contains("What does not hold: names and sizes"),
        "{said:?}"
    );
    assert!(
        said.out.contains("--security-opt seccomp=unconfined"),
        "{said:?}"
    );
}

#[test]
fn a_commit_goes_through_a_private_copy() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"shell\", arguments = { command = \"sh code.sh\" } }]\n\
         [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"ok\" } }]\n",
    );
    let work = world.work();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=p", "-c", "user.email=p@example.org"])
            .args(["-c", "safe.directory=*"])
            .args(arguments)
            .current_dir(&work)
            .env("HOME", &work);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    fs::write(work.join("file"), "one\n").unwrap();
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "file"]);
    git(&["commit", "-qm", "first"]);
    fs::write(
        work.join("code.sh"),
        "set -e\necho two > file; echo x > new\ngit add new file\n\
         git -c user.name=a -c user.email=b commit -qm second\ngit log --format=%s | head -1\n\
         ! echo planted > .git/hooks/post-commit\n! git config -f .git/config core.fsmonitor x\n\
         echo done > ledger.txt\n",
    )
    .unwrap();
    let said = refused(&world, &["run", "go", "--workdir", "."]).exits(0);
    assert_eq!(world.file("ledger.txt"), "done\n", "{said:#?}");
    assert_eq!(git(&["log", "--format=%s", "-1"]), "second", "{said:#?}");
    assert_eq!(
        git(&["status", "--short"]),
        "?? code.sh\n?? ledger.txt",
        "{said:#?}"
    );
    git(&["fsck", "--full", "--strict"]);
    assert!(!work.join(".git/hooks/post-commit").exists());
}

/// Everyday commands, each line ended by `&&`.
const EVERYDAY: &str = "
    mkdir -p src && echo 'x = 1' > src/a && sed -i s/1/2/ src/a && grep -q 2 src/a && cp -a src copy &&
    mv copy moved && chmod 700 moved && touch -d yesterday moved/a && rm -r moved && tar cf t.tar src &&
    tar xf t.tar && t=$(mktemp) && echo y > $t && cat $t && git init -q repo && cd repo && echo z > f &&
    git add f && git -c user.name=a -c user.email=b commit -qm one && git log --oneline && cd .. &&
    (setsid sleep 4715 & setsid sleep 4715 >/dev/null 2>&1 </dev/null &) && echo worked >> ledger.txt
";

/// Each succeeds only if something outside was read, changed or reached.
const ATTACKS: &[&str] = &[
    "cat PERSON/.ssh/id_ed25519",
    "cat HOME/journal/*/*/*",
    "echo x > PERSON/new",
    "chmod 777 PERSON/known",
    "touch -d yesterday PERSON/known",
    "mv PERSON/known .",
    "ln PERSON/known known && echo x >> known",
    "echo x > /tmp/gyrus-planted",
    "kill -0 OUTSIDE",
    "cat /proc/OUTSIDE/environ",
    "prlimit --pid OUTSIDE --nofile=9",
    "(exec 3<>/dev/tcp/127.0.0.1/PORT)",
    "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"SOCKET\")) or exit 1'",
    "perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0) or exit 1'",
    "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); listen(S, 1) or exit 1'",
    "unshare --user true",
];

#[test]
fn commands_work_and_reach_nothing_outside() {
    let world = World::new("");
    fs::create_dir_all(world.path("person/.ssh")).unwrap();
    fs::write(world.path("person/.ssh/id_ed25519"), "decoy").unwrap();
    fs::write(world.path("person/known"), "as it was").unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = UnixListener::bind(world.path("socket")).unwrap();
    let mut outside = Command::new("sleep");
    outside.arg("600");
    if rustix::process::geteuid().is_root() {
        outside.uid(65_534).gid(65_534);
    }
    let mut outside = outside.spawn().unwrap();
    let mut script = format!("{{ {} || echo BROKEN: everyday; }}\n", EVERYDAY.trim());
    for attack in ATTACKS {
        let attack = attack
            .replace("PERSON", &world.path("person").display().to_string())
            .replace("HOME", &world.path("home").display().to_string())
            .replace("SOCKET", &world.path("socket").display().to_string())
            .replace("PORT", &port.local_addr().unwrap().port().to_string())
            .replace("OUTSIDE", &outside.id().to_string());
        let quoted = attack.replace('\'', r"'\''");
        script.push_str(&format!(
            "if bash -c '{quoted}' >/dev/null 2>&1; then echo 'BROKEN: {quoted}'; fi\n"
        ));
    }
    script.push_str("echo attacked >> ledger.txt\n");
    fs::write(world.work().join("go.sh"), script).unwrap();
    fs::write(
        world.path("script.toml"),
        "[[reply]]\ncalls = [{ tool = \"shell\", arguments = { command = \"bash go.sh\" } }]\n\
         [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"ok\" } }]\n",
    )
    .unwrap();
    let said = refused(&world, &["run", "say hello", "--workdir", "."]).exits(0);
    assert!(!said.err.contains("BROKEN"), "{said:#?}");
    assert_eq!(world.file("ledger.txt"), "worked\nattacked\n", "{said:#?}");
    assert_eq!(
        fs::read_to_string(world.path("person/known")).unwrap(),
        "as it was"
    );
    port.set_nonblocking(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    assert!(port.accept().is_err() && socket.accept().is_err());
    assert_eq!(
        outside.try_wait().unwrap(),
        None,
        "it was killed with the command"
    );
    outside.kill().unwrap();
    outside.wait().unwrap();
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        line == b"sleep\x004715\0"
    });
    assert_eq!(left.count(), 0);
}

/// Without layers a verify command changes the folder itself, and that is said.
#[test]
fn what_a_failing_verify_command_wrote_is_still_there_and_said_to_be() {
    let again = || propose(&renames(&[]), "");
    let world = changing::world(&[again(), again(), again(), again()]);
    let verify = "echo x > new.txt; false";
    let arguments = ["run", GOAL, "--approve", "auto", "--review", "none"];
    let said = refused(&world, &[&arguments[..], &["--verify", verify]].concat()).exits(1);
    let left = "and other files that the command wrote are still there";
    assert!(said.err.contains(left), "{}", said.err);
    assert_eq!(world.file("new.txt"), "x\n");
    assert!(world.file(&shape(7)).contains("Point {"));
}
