//! Attacks that a command must not be able to carry out.

use std::{os::unix::process::CommandExt, process::Command};

use gyrus_contract::{Network, ResourceLimits};

use super::{
    start::{Around, OTHER, User},
    world::{ROOMY, World},
};

/// Each a script that succeeds only if an attempt worked.
const ATTACKS: &[(&str, &str)] = &[
    ("make a file outside", "touch $WORLD/outside/new"),
    ("append outside", "echo x >> $WORLD/outside/file"),
    ("truncate outside", ": > $WORLD/outside/file"),
    ("delete outside", "rm -f $WORLD/outside/file"),
    ("move in", "mv $WORLD/outside/file here"),
    ("move out", "touch x && mv x $WORLD/outside/new"),
    ("link in", "ln $WORLD/outside/file here"),
    ("link out", "touch y && ln y $WORLD/outside/new"),
    ("through a link", "ln -s $WORLD/outside l && touch l/new"),
    ("through dots", "touch ../outside/new"),
    (
        "through /proc",
        "cd $WORLD/outside && echo x >> /proc/self/cwd/file",
    ),
    (
        "write to a named pipe outside",
        "timeout 1 bash -c 'echo x > $WORLD/outside/fifo'",
    ),
    ("make a folder at the root", "mkdir /new"),
    ("read a secret", "cat $WORLD/secret/file"),
    (
        "read a secret through /proc",
        "cat /proc/self/root$WORLD/secret/file",
    ),
    (
        "read a secret by its file's number",
        "perl -e 'open(F, \"<\", \"$ENV{WORLD}/secret/file\") or exit 1'",
    ),
    (
        "change the lower layer",
        "[ \"$(stat -c %m $WORLD/cache)\" = / ] && touch $WORLD/cache/new",
    ),
    ("see into the keeper", "cat /proc/1/environ"),
    (
        "take the keeper's descriptors",
        "readlink /proc/1/fd/0 || : < /proc/1/fd/0 || : > /proc/1/fd/1",
    ),
    (
        "trace",
        "perl -e 'exit(syscall($ENV{PTRACE}, 0, 0, 0, 0) == -1)'",
    ),
    ("enter a user namespace", "unshare --user true"),
    ("enter a mount namespace", "unshare --mount true"),
    (
        "enter a namespace through clone",
        "unshare --user --fork --pid true",
    ),
    ("enter the keeper's namespaces", "nsenter -t 1 -m true"),
    ("mount", "mkdir -p m && mount -t tmpfs none m"),
    ("mount again, writable", "mount -o remount,rw,bind /"),
    ("unmount what hides", "umount $WORLD/secret"),
    ("change the root folder", "chroot . /"),
    ("make a device", "mknod disk b 7 0"),
    ("make a setuid program", "cp /bin/true s && chmod u+s s"),
    (
        "make a setuid program at once",
        "perl -e 'use Fcntl; sysopen(F, \"t\", O_CREAT|O_WRONLY, 04755) or exit 1'",
    ),
    (
        "set a setting of the kernel",
        "s=/proc/sys/kernel/core_uses_pid; v=$(cat $s); echo $v > $s",
    ),
    ("press a key of the system", "echo h > /proc/sysrq-trigger"),
    (
        "write to the kernel's device tree",
        "touch /sys/kernel/x || : > /sys/kernel/mm/ksm/run",
    ),
    (
        "use a raw socket",
        "perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) or exit 1'",
    ),
    (
        "use a packet socket",
        "perl -e 'socket(S, 17, 3, 0) or exit 1'",
    ),
    (
        "reach a virtual machine's host",
        "perl -e 'socket(S, 40, 1, 0) or exit 1'",
    ),
    (
        "use a socket of the kernel's own",
        "perl -e 'socket(S, 16, 3, 15) or exit 1'",
    ),
    (
        "connect to a service",
        "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) and connect(S, sockaddr_un(\"$ENV{WORLD}/outside/socket\")) or exit 1'",
    ),
    (
        "send without a way",
        "perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0) and connect(S, sockaddr_in(9, inet_aton(\"192.0.2.1\"))) or exit 1'",
    ),
    ("name the machine", "hostname other"),
    ("set the clock", "date -s \"$(date)\""),
    ("read the kernel's messages", "dmesg"),
    (
        "take a key",
        "perl -e 'exit(syscall($ENV{KEYCTL}, 0, -3, 1) == -1)'",
    ),
    ("signal a process outside", "kill -0 $OUTER"),
    (
        "find a socket of a service",
        "[ -n \"$(find /run /tmp /var/tmp /dev/shm -type s 2>/dev/null)\" ]",
    ),
];

/// Tried where there is nothing but Landlock and seccomp. What these do not stop is in the gaps.
const NOT_ALONE: &[&str] = &[
    // The process that would be seen is this test's own.
    "see into the keeper",
    "take the keeper's descriptors",
    "find a socket of a service",
];

pub(crate) fn all_fail(user: User, around: Around) {
    let world = World::new(user, around);
    let [ptrace, keyctl] = [libc::SYS_ptrace, libc::SYS_keyctl].map(|call| call.to_string());
    let outer = std::process::id();
    let mut script = format!("export PTRACE={ptrace} KEYCTL={keyctl} OUTER={outer}\n");
    for (name, attack) in ATTACKS {
        if !around.has_namespaces() && NOT_ALONE.contains(name) {
            continue;
        }
        // Each in a shell of its own, so that none can spare the next ones.
        let quoted = attack.replace('\'', r"'\''");
        let name = name.replace('\'', r"'\''");
        script.push_str(&format!(
            "if bash -c '{quoted}' >/dev/null 2>&1; then echo 'BROKEN: {name}'; fi\n"
        ));
    }
    script.push_str("echo done\n");
    let ran = world.script(&script);
    assert_eq!(ran.output, "done\n", "{ran:?}");
    world.check_unchanged();
    let whole = around.has_namespaces();
    assert_eq!(ran.gaps.is_empty(), whole, "{:?}", ran.gaps);
}

/// One process swaps a folder and a link while another writes through it.
pub(crate) fn races_lead_nowhere(user: User, around: Around) {
    let world = World::new(user, around);
    let ran = world.script(
        "mkdir d
         (for i in $(seq 200); do mv d e; ln -s $WORLD/outside d; rm d; mv e d; done) &
         for i in $(seq 400); do echo x 2>/dev/null > d/new; done 2>/dev/null
         wait; echo done",
    );
    assert!(ran.output.ends_with("done\n"), "{ran:?}");
    world.check_unchanged();
}

/// Links that a command leaves in places of its own do not lead the next sandbox astray.
pub(crate) fn planted_links_are_not_followed(user: User, around: Around) {
    let world = World::new(user, around);
    let planted =
        world.script("mkdir inner && rmdir inner && ln -s $WORLD/outside inner && echo done");
    assert_eq!(planted.output, "done\n", "{planted:?}");
    let mut containment = world.containment();
    containment.writable.push(world.path("workspace/inner"));
    let ran = world.start(|start| {
        let mut start = start.clone();
        start.containment = &containment;
        start.script("touch inner/new; echo started")
    });
    assert!(ran.output.contains("workspace/inner"), "{ran:?}");
    assert!(!ran.output.contains("started"), "{ran:?}");
    world.check_unchanged();
}

pub(crate) fn limits_hold(user: User, around: Around) {
    let mut world = World::new(user, around);
    world.limits = ResourceLimits {
        processes: 40,
        memory_bytes: 1 << 29,
        cpu_seconds: 1,
        file_bytes: 1 << 21,
    };
    for (name, attack) in [
        (
            "start many processes",
            "perl -e 'for (1..400) { my $p = fork; if (!defined $p) { kill 9, @k; exit 1 } if (!$p) { sleep 60; exit } push @k, $p } kill 9, @k'",
        ),
        ("write a long file", "head -c 4000000 /dev/zero > long"),
        ("take much memory", "perl -e '$x = \"a\" x 2**30'"),
        ("compute for long", "perl -e 'alarm 20; 1 while 1'"),
    ] {
        // That the shell is alive to say so is half of the test.
        let ran = world.script(&format!(
            "if bash -c {} 2>/dev/null; then echo BROKEN; fi; echo done",
            quote(attack)
        ));
        assert!(
            ran.output.contains("done\n") && !ran.output.contains("BROKEN"),
            "{name}: {ran:?}"
        );
    }
    world.limits = ROOMY;
}

/// Processes that a command starts end with it, however they hide and multiply; others do not.
pub(crate) fn nothing_is_left_behind(user: User, around: Around) {
    let world = World::new(user, around);
    let mut bystander = Command::new("sleep");
    bystander.arg("600");
    if user == User::Other {
        bystander.uid(OTHER).gid(OTHER);
    }
    let mut bystander = bystander.spawn().unwrap();
    // Long enough that they would be seen.
    let seconds = 600_000 + std::process::id();
    let sleep = format!("sleep {seconds} </dev/null >/dev/null 2>&1");
    for script in [
        format!("for i in $(seq 20); do (setsid {sleep} &); done; echo done"),
        format!(
            "setsid {sleep} & kill -9 $PPID && echo BROKEN; kill -STOP $PPID && echo BROKEN;
             kill -STOP $(ps -o ppid= $PPID) && echo BROKEN; kill -9 -1; echo done"
        ),
        format!("f() {{ (setsid {sleep} & sleep 0.01; f; f) & }}; f; sleep 0.1; echo done"),
    ] {
        let ran = world.script(&format!("exec 2>/dev/null; {script}"));
        assert_eq!(ran.output, "done\n", "{script}");
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let living = processes.filter(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            line.starts_with(format!("sleep\0{seconds}").as_bytes())
        });
        assert_eq!(living.count(), 0, "{script}: {ran:?}");
    }
    assert_eq!(
        bystander.try_wait().unwrap(),
        None,
        "a bystander was killed"
    );
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// With the machine's network, the rest has to hold still.
pub(crate) fn open_network_opens_no_more(user: User, around: Around) {
    let mut world = World::new(user, around);
    world.network = Network::Open;
    let ran = world.script(
        "for attack in 'touch $WORLD/outside/new' 'cat $WORLD/secret/file' 'unshare --net true' 'ip link set lo down'; do
           if bash -c \"$attack\" >/dev/null 2>&1; then echo \"BROKEN: $attack\"; fi
         done
         perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0) and connect(S, sockaddr_in(9, inet_aton(\"127.0.0.1\"))) or exit 1' && echo done",
    );
    assert_eq!(ran.output, "done\n", "{ran:?}");
    world.check_unchanged();
}
