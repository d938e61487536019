//! Lines of the corpora through the whole gate, with a containment that holds and without one.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{
    CallPlace, Containment, Decision, Gate, Judgement, Mode, Network, Repeat, ResolvedCall,
    ResourceLimits, Risk, RunId, ToolCall, ToolSpec, Touch, Verdict,
};
use gyrus_gate::{OwnPaths, PolicyGate};
use gyrus_lines::{
    corpus::{self, Command, DOUBTFUL, EVERYDAY, HOSTILE, READ_ONLY},
    folders,
};
use serde_json::json;

/// A person's home with gyrus's state, and a workspace in it.
struct World {
    _root: tempfile::TempDir,
    workspace: PathBuf,
    home: PathBuf,
    gate: PolicyGate,
}

impl World {
    /// With the folder that this script lays out as the workspace.
    fn laid_out_by(script: &str) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = root.path().canonicalize().unwrap();
        let workspace = home.join("hostile");
        let laid_out = std::process::Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(&workspace)
            .output()
            .unwrap();
        assert!(laid_out.status.success(), "{laid_out:?}");
        let own = [".local/share/gyrus", ".config/gyrus"].map(|own| home.join(own));
        let own_paths = OwnPaths {
            own: own.to_vec(),
            person: Some(home.clone()),
        };
        let gate = PolicyGate::new(own_paths)
            .confining(Arc::new(|_, workspace: &Path| Ok(holds(workspace))));
        Self {
            _root: root,
            workspace,
            home,
            gate,
        }
    }

    fn own_paths(&self) -> OwnPaths {
        OwnPaths {
            own: [".local/share/gyrus", ".config/gyrus"]
                .map(|own| self.home.join(own))
                .to_vec(),
            person: Some(self.home.clone()),
        }
    }

    /// The verdict in the default mode, for a run that has read untrusted text.
    fn verdict(&self, line: &str) -> Verdict {
        self.verdict_in(line, Mode::Ask)
    }

    fn verdict_in(&self, line: &str, mode: Mode) -> Verdict {
        self.judged(line, mode).1
    }

    fn judged(&self, line: &str, mode: Mode) -> (ResolvedCall, Verdict) {
        let spec = ToolSpec {
            name: "shell".into(),
            description: String::new(),
            parameters: json!({}),
            touches: vec![Touch::Starts("command".into())],
            repeat: Repeat::Never,
        };
        let call = ToolCall::new("shell", json!({ "command": line }));
        let place = CallPlace {
            run: RunId::new(),
            workspace: &self.workspace,
            agent: "main",
            mode,
            skills: &[],
            sandbox: &Default::default(),
        };
        let call = self.gate.resolve(&call, &spec, place).unwrap();
        let under = Judgement {
            agent: "main",
            workspace: &self.workspace,
            mode,
            exposed: true,
            throwaway: false,
            undoable: true,
            grants: &[],
            skills: &[],
            trusted: &[],
            link_was_seen: false,
            mandated: None,
            has_mandate: false,
        };
        let verdict = self.gate.judge(&call, &spec, &under);
        (call, verdict)
    }
}

/// Returns the promises of a sandbox. Nothing is run here.
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
        asked: Vec::new(),
        serves: false,
        sockets: Vec::new(),
        limits: ResourceLimits {
            processes: 64,
            memory_bytes: 1 << 30,
            cpu_seconds: 60,
            file_bytes: 1 << 30,
        },
    }
}

/// Reasons why a line can be asked about although the sandbox holds it.
const ASKED: [&str; 4] = [
    "destroys (",
    "removes the whole workspace",
    "where keys or passwords are kept",
    "gyrus's own state",
];

fn commands(text: &str, home: &Path) -> Vec<Command> {
    let text = text.replace("/home/person", &home.display().to_string());
    corpus::parse(&text).unwrap()
}

/// The sandbox decides: a line passes whatever it is called, but for the few that say themselves
/// that they destroy, show keys, or change what the sandbox leaves open.
#[test]
fn contained_lines_pass_however_they_are_written() {
    let world = World::laid_out_by(folders::HOSTILE);
    let mut told = String::new();
    let mut asked = 0;
    let all = [HOSTILE, DOUBTFUL, EVERYDAY, READ_ONLY].map(|text| commands(text, &world.home));
    let all: Vec<Command> = all.into_iter().flatten().collect();
    for command in &all {
        let verdict = world.verdict(&command.line);
        if verdict.decision == Decision::Allow {
            continue;
        }
        asked += 1;
        let is_known = |reason: &String| ASKED.iter().any(|known| reason.contains(known));
        if !verdict.reasons.iter().any(is_known) {
            told += &format!("\n{:?}: {}", command.line, verdict.reasons.join("; "));
        }
    }
    assert!(told.is_empty(), "asked about:{told}");
    println!("{asked} of {} asked about", all.len());
    assert!(asked * 20 < all.len(), "{asked} of {}", all.len());
}

/// Without a sandbox, what is not plain is asked about each time, in every mode.
#[test]
fn without_a_sandbox_only_plain_lines_pass() {
    let mut world = World::laid_out_by(folders::HOSTILE);
    world.gate = PolicyGate::new(world.own_paths());
    let mut told = String::new();
    for command in commands(HOSTILE, &world.home) {
        let verdict = world.verdict_in(&command.line, Mode::Auto);
        if verdict.decision == Decision::Allow || verdict.risk < Risk::High {
            told += &format!("\n{:?}: {}", command.line, verdict.reasons.join("; "));
        }
    }
    assert!(told.is_empty(), "pass unasked:{told}");
    let passed = |text: &str| {
        let all = commands(text, &world.home);
        let allowed = |command: &&Command| {
            world.verdict_in(&command.line, Mode::Auto).decision == Decision::Allow
        };
        (all.iter().filter(allowed).count(), all.len())
    };
    println!(
        "read-only: {:?}, doubtful: {:?}",
        passed(READ_ONLY),
        passed(DOUBTFUL)
    );
}

/// In `read-only` a line runs where it can change nothing.
#[test]
fn in_read_only_nothing_is_writable() {
    let world = World::laid_out_by(folders::HOSTILE);
    for line in [
        "make",
        "python3 x.py",
        "touch FLAG",
        "rm -rf .",
        "git stash drop",
        "$x",
    ] {
        let (call, verdict) = world.judged(line, Mode::ReadOnly);
        let containment = call.command.unwrap().containment.unwrap();
        assert_eq!(
            (verdict.risk, verdict.decision),
            (Risk::Safe, Decision::Allow),
            "{line}"
        );
        assert!(containment.writable.is_empty(), "{line}");
        assert!(containment.read_only.contains(&world.workspace), "{line}");
    }
    for line in ["cat .env", "ls ~/.local/share/gyrus"] {
        let (_, verdict) = world.judged(line, Mode::ReadOnly);
        assert_eq!(verdict.decision, Decision::Deny, "{line}");
    }
}

/// The gate asks about what a line destroys for good, and not about what undo gives back.
#[test]
fn what_is_lost_for_good_is_asked_about() {
    let world = World::laid_out_by(folders::HOSTILE);
    for (line, asked) in [
        ("rm -rf src", false),
        ("rm -rf *.o build", false),
        ("rm -rf .", true),
        ("rm -rf *", true),
        ("rm -rf ./*", true),
        ("rm -rf ..", true),
        ("rm -rf ~", true),
        ("rm -rf /", true),
        ("cd sub && rm -rf *", false),
        ("sh -c 'rm -rf /'", true),
        ("sudo rm -rf /", true),
        ("find . -delete", true),
        ("find . -name '*.o' -delete", false),
        ("rm -rf .git", false),
        ("rm -rf .gyrus", false),
        ("git reset --hard", false),
        ("git checkout -- .", false),
        ("git clean -fd", false),
        ("git clean -fdx", true),
        ("git clean -nx", false),
        ("git stash drop", true),
        ("git gc --prune=now", true),
        ("git reflog expire --all", true),
        ("git branch -D x", false),
        // It has no rights for that here.
        ("git push --force", false),
        ("mkfs.ext4 /dev/sda", false),
        ("dd if=/dev/zero of=/dev/sda", false),
        ("apt remove x", false),
    ] {
        let verdict = world.verdict(line);
        assert_eq!(
            verdict.decision != Decision::Allow,
            asked,
            "{line}: {:?}",
            verdict.reasons
        );
    }
}
