//! Everyday work that a command must be able to do as if there were no sandbox.

use std::process::Command;

use super::{
    start::{Around, User},
    world::World,
};

/// Each a script that succeeds without a sandbox, if its program is there, and has to within.
const EVERYDAY: &[(&str, &str)] = &[
    (
        "bash",
        "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln a/d a/e && ln -s d a/f && rm -r a",
    ),
    (
        "bash",
        "cat /dev/null < /dev/zero | head -c 1; echo x > /dev/stdout; echo y > /dev/null; cat <(echo z)",
    ),
    (
        "bash",
        "t=$(mktemp) && echo x > $t && cat $t && touch /dev/shm/x /var/tmp/y && ls /tmp /proc /sys /etc",
    ),
    (
        "bash",
        "touch x && chmod 755 x && touch -d yesterday x && mkfifo p && (echo x > p &) && cat p",
    ),
    (
        "bash",
        "cat $WORLD/cache/lower && echo new > $WORLD/cache/lower && [ \"$(cat $WORLD/cache/lower)\" = new ]",
    ),
    (
        "git",
        "git init -q r && cd r && echo x > f && git add f && git -c user.name=a -c user.email=b commit -qm x && git log --oneline && git clone -q . ../s && git gc -q && git worktree add -q ../w",
    ),
    (
        "tar",
        "mkdir t && echo x > t/x && tar -cf t.tar --owner=1234 --group=1234 t && rm -r t && tar -xf t.tar && cat t/x",
    ),
    (
        "make",
        "printf 'all: a b\\na:\\n\\ttouch a\\nb:\\n\\ttouch b\\n' > Makefile && make -j2",
    ),
    (
        "cc",
        "echo 'int main(){return 0;}' > a.c && cc a.c && ./a.out",
    ),
    (
        "python3",
        "python3 -c 'import subprocess, threading, multiprocessing as m; m.Lock(); m.Pool(2).map(abs, [1, 2]); subprocess.check_call([\"true\"])'",
    ),
    (
        "python3",
        "python3 -c 'import os, pty; m, s = pty.openpty(); os.write(s, b\"x\"); print(os.ttyname(s), os.read(m, 1))'",
    ),
    (
        "python3",
        "python3 -c 'import socket as s; l = s.create_server((\"127.0.0.1\", 0)); c = s.create_connection(l.getsockname()); l.accept()[0].send(b\"x\"); print(c.recv(1))'",
    ),
    (
        "python3",
        "python3 -c 'import socket as s; l = s.create_server((\"::1\", 0), family=s.AF_INET6); s.create_connection(l.getsockname()[:2])'",
    ),
    (
        "python3",
        "python3 -c 'import socket as s; l = s.socket(s.AF_UNIX); l.bind(\"sock\"); l.listen(); c = s.socket(s.AF_UNIX); c.connect(\"sock\")'",
    ),
    (
        "node",
        "node -e 'require(\"child_process\").execSync(\"true\"); new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'",
    ),
    (
        "node",
        "node -e 'const fs = require(\"fs\"); fs.watch(\".\", () => process.exit(0)); fs.writeFileSync(\"w\", \"x\"); setTimeout(() => process.exit(1), 5000)'",
    ),
    (
        "python3",
        "python3 -c '
import multiprocessing as m
if __name__ == \"__main__\":
    for way in \"fork\", \"spawn\", \"forkserver\":
        c = m.get_context(way)
        with c.Manager() as manager:
            shared = manager.list([1])
            p = c.Process(target=shared.append, args=(2,)); p.start(); p.join()
            assert list(shared) == [1, 2]
' || exit 1; cat > l.py <<.
import multiprocessing.connection as c, os
for address in \"\\0gyrus\" + str(os.getpid()), \"listener\":
    with c.Listener(address, \"AF_UNIX\") as l, c.Client(address, \"AF_UNIX\") as client, l.accept() as server:
        client.send(1); assert server.recv() == 1
.
python3 l.py",
    ),
    (
        "python3",
        "cat > a.py <<.
import asyncio
async def main():
    async def echo(r, w):
        w.write(await r.readline()); w.close()
    async with await asyncio.start_unix_server(echo, \"asy\"):
        for _ in range(20):
            r, w = await asyncio.open_unix_connection(\"asy\")
            w.write(b\"x\\n\"); assert await r.readline() == b\"x\\n\"; w.close()
asyncio.run(main())
.
python3 a.py",
    ),
    (
        "ssh-agent",
        "eval $(ssh-agent -s) && ssh-keygen -qN '' -t ed25519 -f k && ssh-add -q k && ssh-add -l && ssh-agent -k",
    ),
    (
        "node",
        "cat > u.js <<.
const net = require(\"net\"), child = require(\"child_process\");
if (process.send) { process.on(\"message\", m => { process.send(m); process.disconnect(); }); }
else {
  const forked = child.fork(__filename); forked.send(\"x\");
  forked.on(\"message\", () => {
    const s = net.createServer(c => c.pipe(c)).listen(\"u\", () => {
      const c = net.connect(\"u\", () => c.write(\"x\"));
      c.on(\"data\", () => { c.end(); s.close(); });
    });
  });
}
.
node u.js",
    ),
    ("npm", "npm --version && npm init -y && npm pack"),
    (
        "cargo",
        // A workspace of its own: `cargo init` would enter itself into ours.
        "mkdir -p c/src && cd c && printf '[package]\\nname=\"tiny\"\\nedition=\"2021\"\\n[workspace]\\n' >Cargo.toml && echo 'fn main() {}' >src/main.rs && cargo run -q --offline && cargo test -q --offline",
    ),
    (
        "perl",
        "perl -e 'my $p = fork; exit 3 unless $p; wait; exit $? >> 8 != 3'",
    ),
    (
        "ps",
        "ps ax && id && uname -a && df . && free && nproc && env && locale",
    ),
    ("script", "script -qc true /dev/null"),
    (
        "setpriv",
        "[ $(id -u) != 0 ] || setpriv --reuid 1234 --regid 1234 --clear-groups true",
    ),
    ("openssl", "openssl rand -hex 8 && openssl version"),
    (
        "xargs",
        "seq 20 | xargs -P 4 -n 1 echo && seq 5 | parallel echo 2>/dev/null || true",
    ),
    (
        "flock",
        "flock lock true && timeout 5 nice -n 5 true && time true",
    ),
    (
        "sqlite3",
        "sqlite3 x.db 'create table a(b); insert into a values(1); select * from a'",
    ),
];

/// Work that fails without namespaces: caches with layers, folders that all users share, a
/// terminal, and programs that nobody may look into.
const NOT_ALONE: &[&str] = &[
    "/dev/shm/x",
    "$WORLD/cache/lower",
    "m.Lock()",
    "pty.openpty()",
    "script -qc",
    "ssh-agent",
];

pub(crate) fn works_as_outside(user: User, around: Around) {
    works(user, around, |_| {});
}

/// As above, in worlds that `change` has changed.
pub(crate) fn works(user: User, around: Around, change: impl Fn(&mut World)) {
    let mut tried = 0;
    for (program, script) in EVERYDAY {
        if !around.has_namespaces() && NOT_ALONE.iter().any(|not| script.contains(not)) {
            continue;
        }
        let outside = World::new(user, around);
        let has = format!("command -v {program} >/dev/null || exit 99\n{script}");
        let mut command = Command::new("/bin/bash");
        command
            .args(["-c", &has])
            .current_dir(outside.path("workspace"))
            .env_clear()
            .envs(outside.environment());
        if user == User::Other {
            use std::os::unix::process::CommandExt;
            command.uid(super::start::OTHER).gid(super::start::OTHER);
        }
        let expected = command.output().expect("bash starts");
        // Not there, or not for this user.
        if !expected.status.success() {
            continue;
        }
        let mut inside = World::new(user, around);
        change(&mut inside);
        let ran = inside.script(&has);
        assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
        tried += 1;
    }
    // With fewer the test would say nothing.
    assert!(tried > EVERYDAY.len() / 2, "only {tried} programs are here");
}

/// Changes that a command makes in a layer stay there for the next one, and nowhere else.
pub(crate) fn layers_keep_changes(user: User, around: Around) {
    let world = World::new(user, around);
    let ran =
        world.script("echo mine > $WORLD/cache/new && rm $WORLD/cache/lower && mkdir /tmp/kept");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.script("cat $WORLD/cache/new; ls $WORLD/cache /tmp");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.output.starts_with("mine\n") && ran.output.contains("kept\n"),
        "{ran:?}"
    );
    assert!(!ran.output.contains("lower"), "{ran:?}");
    // Another command has the changes now.
    let lock = std::fs::File::open(world.path("changes/upper")).unwrap();
    lock.lock().unwrap();
    let ran = world.script("cat $WORLD/cache/lower && ! touch $WORLD/cache/new 2>/dev/null");
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "as it was"));
    world.check_unchanged();
}
