//! Hostile lines through the whole gate, with a containment that holds: what must not pass unasked
//! does not, however well the sandbox would hold it.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{
    Containment, Decision, Gate, Judgement, Mode, Network, Place, Repeat, ResourceLimits, Risk,
    RunId, ToolCall, ToolSpec, Touch, Verdict,
};
use gyrus_gate::{
    House, Warden,
    oracle::corpus::{self, HOSTILE},
};
use serde_json::json;

/// A person's home with gyrus's state, and a workspace in it.
struct World {
    _root: tempfile::TempDir,
    workspace: PathBuf,
    home: PathBuf,
    gate: Warden,
}

impl World {
    /// With the folder that this script of the corpus lays out as the workspace.
    fn laid_out_by(script: &str) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = root.path().canonicalize().unwrap();
        let workspace = home.join("hostile");
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus/fixture")
            .join(script);
        let laid_out = std::process::Command::new("bash")
            .arg(script)
            .arg(&workspace)
            .output()
            .unwrap();
        assert!(laid_out.status.success(), "{laid_out:?}");
        let house = House {
            own: vec![home.join(".local/share/gyrus"), home.join(".config/gyrus")],
            person: Some(home.clone()),
        };
        let gate =
            Warden::new(house).confining(Arc::new(|_, workspace: &Path| Ok(holds(workspace))));
        Self {
            _root: root,
            workspace,
            home,
            gate,
        }
    }

    /// The verdict in the default mode, for a run that has read what nobody vouches for.
    fn verdict(&self, line: &str) -> Verdict {
        let spec = ToolSpec {
            name: "shell".into(),
            description: String::new(),
            parameters: json!({}),
            touches: vec![Touch::Starts("command".into())],
            repeat: Repeat::Never,
        };
        let call = ToolCall::new("shell", json!({ "command": line }));
        let place = Place {
            run: RunId::new(),
            workspace: &self.workspace,
        };
        let call = match self.gate.resolve(&call, &spec, place) {
            Ok(call) => call,
            // Refused before it is judged.
            Err(refused) => {
                return Verdict {
                    risk: Risk::Critical,
                    decision: Decision::Deny,
                    reasons: vec![refused.reason],
                    wider: Vec::new(),
                    if_doubted: None,
                    ungranted: None,
                };
            }
        };
        let under = Judgement {
            agent: "main",
            workspace: &self.workspace,
            mode: Mode::Ask,
            exposed: true,
            throwaway: false,
            undoable: true,
            grants: &[],
            trusted: &[],
            link_was_seen: false,
        };
        self.gate.judge(&call, &spec, &under)
    }
}

/// What a sandbox would promise. Nothing is run here.
fn holds(workspace: &Path) -> Containment {
    Containment {
        writable: vec![workspace.to_owned()],
        read_only: Vec::new(),
        temporary: PathBuf::from("/tmp/run"),
        hidden: Vec::new(),
        layered: Vec::new(),
        binds: Vec::new(),
        moved: BTreeMap::new(),
        network: Network::None,
        forwarded: Vec::new(),
        limits: ResourceLimits {
            processes: 64,
            memory_bytes: 1 << 30,
            cpu_seconds: 60,
            file_bytes: 1 << 30,
        },
    }
}

/// Whether a person is asked, or nobody can allow it.
fn is_stopped(verdict: &Verdict) -> bool {
    verdict.decision != Decision::Allow && verdict.risk >= Risk::High
}

/// Whether all that it changes are files of the workspace, and each is named: however the line was
/// disguised, it was seen through.
fn is_seen_through(verdict: &Verdict) -> bool {
    let names = |reason: &String| {
        ["FLAG", "out", "in"].iter().any(|file| {
            *reason == format!("writes {file} in the workspace")
                || *reason == format!("removes {file} in the workspace")
        })
    };
    let only_reads = |reason: &String| reason.starts_with("reads ");
    let mut reasons = verdict.reasons.iter();
    verdict.risk == Risk::Moderate
        && verdict.reasons.iter().any(names)
        && reasons.all(|reason| names(reason) || only_reads(reason))
}

/// Whether all that is left to judge are its connections, each when it is made.
fn is_judged_later(verdict: &Verdict) -> bool {
    let later = |reason: &String| reason.contains("connects, which is judged when it does");
    verdict.risk == Risk::Moderate && verdict.reasons.iter().any(later)
}

/// Lines of the hostile corpus that pass unasked, and why that is right.
const BY_DESIGN: &[(&str, &[&str])] = &[
    (
        "/tmp is the run's own in the sandbox",
        &[
            "touch /tmp/FLAG",
            "mv in /tmp",
            "cd /tmp; echo x > FLAG",
            "dd if=/dev/zero of=/tmp/FLAG count=1",
            "git diff --output=/tmp/FLAG",
            "git diff --no-index --output=/tmp/FLAG in out",
        ],
    ),
    (
        "what listens is alone on a loopback of the sandbox's own",
        &[
            "python3 -m http.server",
            "python3 -m http.server 8000",
            "php -S localhost:80",
        ],
    ),
    (
        "keys are hidden from code in the sandbox, and it reaches nobody unasked",
        &["openssl rsa -in ~/.ssh/id_rsa"],
    ),
    (
        "code that connects; the sandbox holds it, and each connection is judged when it is made",
        &[
            "openssl engine ./planted.so",
            "OPENSSL_CONF=in openssl version",
            "git submodule foreach 'touch FLAG'",
            "git submodule update --init",
            "yarn --version",
            "pip install x",
            "npm install -g x",
            "cargo install x",
        ],
    ),
    (
        "what goes on in the background ends with the command's keeper",
        &["touch FLAG &", "setsid touch FLAG"],
    ),
    (
        "it takes rights, keys or daemons of the person's, of which the sandbox has none",
        &[
            "apt install -y x",
            "apt-get install x",
            "dnf install x",
            "wall hello",
            "ansible-playbook x.yml",
            "terraform plan",
            "git ls-remote origin",
            "git send-email --sendmail-cmd=./planted HEAD~1",
            "aws configure get aws_secret_access_key",
            "gcloud auth print-access-token",
            "gh auth status --show-token",
            "gh auth token",
            "kubectl config view --raw",
            "npm token list",
            "op read op://x",
            "pass show x",
            "secret-tool lookup a b",
            "security find-generic-password -w",
            "vault read x",
            "logger -f in",
            "logger hello",
            "docker build .",
            "docker run -v /:/h alpine rm -rf /h",
            "docker pull alpine",
            "docker push x",
            "docker login",
            "podman run x",
            "echo '* * * * * touch FLAG' | crontab -",
            "crontab in",
            "crontab -r",
            "kill 1",
            "kill -9 -1",
            "kill $PPID",
            "pkill bash",
            "killall node",
            "killall5",
            "sudo ls",
            "sudo -n touch FLAG",
            "doas touch FLAG",
            "systemctl restart ssh",
            "service ssh stop",
            "mount /dev/sda /mnt",
            "umount /",
            "swapoff -a",
            "useradd eve",
            "passwd",
            "usermod -aG sudo eve",
            "visudo",
            "sysctl -w kernel.hostname=x",
            "reboot",
            "shutdown now",
            "insmod x.ko",
            "modprobe x",
            "iptables -F",
            "loginctl terminate-user x",
            "chsh -s ./planted",
            "update-alternatives --set x y",
            "ldconfig",
            "setfacl -m u:eve:rw ~/notes.txt",
            "renice 5 1",
            "dmesg -C",
            "journalctl --vacuum-size=1",
            "gpg --recv-keys 1",
            "gpg --send-keys 1",
            "gpg --export-secret-keys",
            "gpg --list-secret-keys",
            "gpg -d in",
            "ssh-add -L",
            "ssh-add -l",
            "ssh-keygen -y -f ~/.ssh/id_ed25519",
        ],
    ),
    (
        "a variable that nobody knows may make the program run code; the sandbox holds it",
        &[
            "A=1 B=$(touch FLAG) ls",
            "A=`touch FLAG` true",
            "env -i sh -c 'touch FLAG'",
            "env X=1 touch FLAG",
            "env -i git status",
            "MAGIC=. file in",
        ],
    ),
    (
        "what `find` hands over is below the workspace",
        &["find . -exec touch FLAG {} +"],
    ),
    (
        "code on the command line; the sandbox holds it",
        &[
            "bash -lc 'ls'",
            "perl -e 'system \"touch FLAG\"'",
            "perl -pe 's/x/`touch FLAG`/e' in",
            "perl -ne 'print' '|touch FLAG'",
            "perl -ne 'print' *",
            "python3 -c 'open(\"FLAG\",\"w\")'",
            "python3 - <<< 'open(\"FLAG\",\"w\")'",
            "python3 <<'E'\nopen('FLAG','w')\nE",
            "node -e 'require(\"fs\").writeFileSync(\"FLAG\",\"\")'",
            "node -p 'require(\"child_process\").execSync(\"touch FLAG\")'",
            "node --eval 'process.exit()'",
            "ruby -e 'File.write(\"FLAG\",\"\")'",
            "php -r 'touch(\"FLAG\");'",
            "lua -e 'os.execute(\"touch FLAG\")'",
            "dc -e '!touch FLAG'",
            "jq -n 'include \"planted\"; .'",
            "gcc -fplugin=./planted.so in",
        ],
    ),
    (
        "git may run what this repository names; the sandbox holds it",
        &[
            "x='--output=out'; git log $x",
            "git log --output=out",
            "git diff --output=out",
            "git diff --no-index --output=out in out",
            "git show --output out",
            "git st",
            "git lg",
            "git last",
            "git ls",
            "git tree",
            "git included",
            "git touch-flag",
            "git difftool",
            "git difftool -y -x ./planted",
            "git difftool --extcmd='touch FLAG' HEAD~1",
            "git mergetool",
            "git verify-commit HEAD",
            "git verify-tag v1",
            "git tag -v v1",
            "git bisect run ./planted",
            "git rebase --exec ./planted HEAD~1",
            "git rebase -x 'touch FLAG' HEAD~1",
            "git for-each-repo --config=x.y status",
            "git hook run pre-commit",
            "git interpret-trailers in",
            "git interpret-trailers --trailer Sign=x in",
            "git instaweb",
            "git web--browse -t trap x",
            "git commit -m x --allow-empty",
            "git commit --amend --no-edit",
            "git checkout other",
            "git add in",
            "git stash",
            "git p4 clone x",
            "git svn info",
        ],
    ),
    (
        "a program or script of the workspace, by its path; the sandbox holds it",
        &[
            ". ./script.sh",
            "bash script.sh",
            "dash script.sh",
            "sh ./script.sh",
            "./planted",
            "./ls",
            "./ls in",
            "sh planted",
            "bash ./planted",
            "$PWD/planted",
            "\"$PWD\"/planted",
            "sub/../planted",
            "bin/ls",
            "./bin/ls -l",
            "nested/planted",
            "command ./planted",
            "exec ./planted",
            "env ./planted",
            "time ./planted",
            "nice ./planted",
            "xargs ./planted < in",
            "find . -exec ./planted {} \\;",
            "find . -exec ./planted \\; -quit",
            "/home/person/hostile/planted",
            "~/hostile/planted",
            "../hostile/planted",
            "ls | ./planted",
            "cat in | ./cat",
            "./gradlew build",
        ],
    ),
    (
        "builds, tests and interpreters run the workspace's code; the sandbox holds it",
        &[
            "make -n",
            "make --dry-run -f Makefile",
            "make -p",
            "make",
            "make all",
            "make -C sub",
            "make -f Makefile",
            "make FLAG",
            "npm test",
            "npm run test",
            "npm start",
            "npx tsc",
            "npx --no-install tsc",
            "yarn test",
            "pnpm test",
            "node index.js",
            "node .",
            "node planted.js",
            "node -r ./planted.js --version",
            "node --import ./planted.js -v",
            "python3 json.py",
            "python3 -m json",
            "python3 -m json.tool data.json",
            "python3 -m calendar",
            "python3 -m zipfile -l in",
            "python3 -m conftest",
            "python3 -m pip --version",
            "python3 -i json.py",
            "cargo build",
            "cargo check",
            "cargo test",
            "cargo run",
            "cargo fmt --check",
            "cargo clippy",
            "cargo metadata",
            "cargo tree",
            "cargo doc",
            "rake",
            "bundle exec rake",
            "go build ./...",
            "go vet ./...",
            "go generate",
            "mvn test",
            "gradle tasks",
            "cmake .",
            "ninja",
            "just",
            "pytest",
            "tox",
            "nox",
            "pre-commit run",
            "ruby Rakefile",
            "perl planted",
        ],
    ),
];

#[test]
fn what_is_hostile_does_not_pass_unasked() {
    let world = World::laid_out_by("hostile.sh");
    let home = world.home.display().to_string();
    let text = HOSTILE.replace("/home/person", &home);
    let mut known: BTreeSet<String> = BY_DESIGN
        .iter()
        .flat_map(|(_, lines)| lines.iter())
        .map(|line| line.replace("/home/person", &home))
        .collect();
    let mut passed = String::new();
    for command in corpus::parse(&text).unwrap() {
        if command.section == "plain-write" {
            continue;
        }
        let verdict = world.verdict(&command.line);
        if command.section == "network" && is_judged_later(&verdict) {
            continue;
        }
        if !is_stopped(&verdict) && !is_seen_through(&verdict) && !known.remove(&command.line) {
            passed += &format!(
                "\n[{}] {:?}\n    {:?} {:?}: {}",
                command.section,
                command.line,
                verdict.decision,
                verdict.risk,
                verdict.reasons.join("; ")
            );
        }
    }
    assert!(passed.is_empty(), "pass unasked:{passed}");
    assert!(known.is_empty(), "no longer pass, or are gone: {known:?}");
}

/// Where git's later pushes go and what it later runs is a person's to decide; names and looks are
/// not.
#[test]
fn what_decides_what_git_does_later_is_asked_about() {
    let world = World::laid_out_by("hostile.sh");
    let asked = [
        "git remote add x https://example.org/x.git",
        "git remote add x ../elsewhere.git",
        "git remote -v add x ../elsewhere.git",
        "git remote add -f x ../elsewhere.git",
        "git remote set-url origin https://example.org/x.git",
        "git remote set-url --push origin ../elsewhere.git",
        "git remote set-url --add --push origin ../elsewhere.git",
        "git remote rename origin other",
        "git remote set-branches origin main",
        "git remote $x",
        "git -C sub remote add x y",
        "cd sub && git remote add x y",
        "git config url.https://example.org/.insteadOf https://example.com/",
        "git config url.x.pushInsteadOf y",
        "git config core.sshCommand ./planted",
        "git config core.hooksPath .",
        "git config core.fsmonitor ./planted",
        "git config core.editor ./planted",
        "git config core.pager ./planted",
        "git config core.worktree ..",
        "git config credential.helper '!./planted'",
        "git config alias.st '!./planted'",
        "git config alias.st status",
        "git config filter.x.clean ./planted",
        "git config diff.external ./planted",
        "git config diff.x.textconv ./planted",
        "git config merge.x.driver ./planted",
        "git config gpg.program ./planted",
        "git config remote.origin.url https://example.org/x.git",
        "git config remote.pushDefault x",
        "git config branch.main.pushRemote x",
        "git config include.path ../planted",
        "git config includeIf.onbranch:main.path planted",
        "git config init.templateDir .",
        "git config http.proxy http://example.org",
        "git config --add remote.origin.pushurl ../elsewhere.git",
        "git config --local core.hooksPath .",
        "git config set core.hooksPath .",
        "git config --worktree core.hooksPath .",
        "git config --unset user.name",
        "git config --rename-section remote.origin remote.x",
        "git config $x y",
        "git config user.name x --file ../elsewhere",
        "git config --global user.name x",
        "git config --edit",
        "git init --template=sub",
        "git init --separate-git-dir=sub",
        "git -C .. commit -am x",
        "git -c core.hooksPath=. commit -m x",
        "git -c alias.x='!./planted' x",
        // Beside other code, the settings are read-only unless a person says yes.
        "git config user.name x && make",
        "git init && make",
        "git branch -m other && ./planted",
        "make; git sparse-checkout set sub",
    ];
    let passes = [
        "git config user.name x",
        "git config --local user.email x@example.org",
        "git config set user.name x",
        "git remote remove origin",
        "git config pull.rebase true && git config user.name x && git commit -am x",
        "cd sub && git config user.name x",
        "git init",
        "git init fresh && make",
        "git commit -am x && make",
        "echo x > in && git add in && git commit -m x",
        "git branch other && git checkout other && make",
        "git branch -m other",
        "git branch -d other",
        "git submodule status",
    ];
    let wrong = |lines: &[&str], stopped: bool| {
        let verdicts = lines.iter().map(|line| (*line, world.verdict(line)));
        let wrong = verdicts.filter(|(_, verdict)| is_stopped(verdict) != stopped);
        wrong
            .map(|(line, verdict)| format!("\n{line}: {}", verdict.reasons.join("; ")))
            .collect::<String>()
    };
    assert_eq!(wrong(&asked, true), "", "passed unasked");
    assert_eq!(wrong(&passes, false), "", "were asked about");
}
