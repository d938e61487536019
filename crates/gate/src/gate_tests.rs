use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use gyrus_contract::{
    CallPlace,
    Decision::{self, Allow, Ask, Deny},
    Gate, Judgement, Mode, Repeat, ResolvedCall, Risk, RunId, ToolCall, ToolSpec, Touch,
};
use serde_json::{Value, json};

use super::{OwnPaths, PolicyGate};
use crate::{WorkspaceError, check_workspace, is_throwaway, policy};

fn spec(touches: Vec<Touch>) -> ToolSpec {
    ToolSpec {
        name: "tool".into(),
        description: String::new(),
        parameters: json!({}),
        touches,
        repeat: Repeat::Never,
    }
}

fn reads() -> ToolSpec {
    spec(vec![Touch::Reads("path".into())])
}

fn writes() -> ToolSpec {
    spec(vec![Touch::Writes("path".into())])
}

fn starts() -> ToolSpec {
    spec(vec![Touch::Starts("command".into())])
}

fn under(workspace: &Path, mode: Mode, throwaway: bool) -> Judgement<'_> {
    Judgement {
        agent: "main",
        workspace,
        mode,
        exposed: false,
        throwaway,
        undoable: true,
        grants: &[],
        skills: &[],
        trusted: &[],
        link_was_seen: false,
        mandated: None,
        has_mandate: false,
    }
}

/// A temporary folder with a workspace, a state home and the rest of a test's surroundings.
struct World {
    root: tempfile::TempDir,
    gate: PolicyGate,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [
            "work/src",
            "work/.git/hooks",
            "state/runs",
            "elsewhere",
            "beside",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in [
            "work/src/a.rs",
            "state/grants",
            "elsewhere/notes",
            "work/%2e%2e%2fnotes",
        ] {
            fs::write(at(file), "x").unwrap();
        }
        symlink("../elsewhere", at("work/out")).unwrap();
        symlink("../elsewhere/notes", at("work/file-out")).unwrap();
        symlink("../elsewhere/new", at("work/dangling")).unwrap();
        symlink("src/a.rs", at("work/inner")).unwrap();
        symlink("../state", at("work/sly")).unwrap();
        symlink("loop", at("work/loop")).unwrap();
        symlink("work", at("link-to-work")).unwrap();
        fs::hard_link(at("state/grants"), at("work/twin")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("work/fifo"), rustix::fs::Mode::RWXU).unwrap();
        let gate = PolicyGate::new(OwnPaths {
            own: vec![at("state"), at("beside")],
            person: None,
        });
        Self { root, gate }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn resolve(&self, spec: &ToolSpec, arguments: Value) -> Result<ResolvedCall, String> {
        self.gate
            .resolve(
                &ToolCall::new("tool", arguments),
                spec,
                CallPlace {
                    run: RunId::new(),
                    workspace: &self.at("work"),
                    agent: "main",
                    mode: Mode::Ask,
                    skills: &[],
                    sandbox: &Default::default(),
                },
            )
            .map_err(|e| e.reason)
    }

    fn risk(&self, spec: &ToolSpec, path: &str) -> (Risk, Decision) {
        let call = self.resolve(spec, json!({"path": path})).unwrap();
        let workspace = self.at("work");
        let under = under(&workspace, Mode::Auto, true);
        let verdict = self.gate.judge(&call, spec, &under);
        (verdict.risk, verdict.decision)
    }
}

#[test]
fn a_path_that_is_left_out_is_judged_as_the_folder_that_the_schema_names() {
    let world = World::new();
    let parameters = json!({"properties": {"path": {"default": "."}}, "required": []});
    let spec = ToolSpec {
        parameters,
        ..reads()
    };
    let workspace = world.at("work");
    for arguments in [json!({}), json!({"path": null})] {
        let call = world.resolve(&spec, arguments).unwrap();
        assert_eq!(call.paths["path"].real, workspace);
        assert_eq!(call, world.resolve(&spec, json!({"path": "."})).unwrap());
        let verdict = world
            .gate
            .judge(&call, &spec, &under(&workspace, Mode::Auto, true));
        assert!(
            verdict.reasons.iter().any(|reason| reason.contains("read")),
            "{verdict:?}"
        );
    }
    assert!(world.resolve(&reads(), json!({})).is_err());
}

#[test]
fn a_name_that_only_looks_alike_is_the_file_that_is_judged() {
    let world = World::new();
    let name = "caf\u{e9} \u{2019}24 9.41\u{202f}PM.txt";
    fs::write(world.at("work/src").join(name), "").unwrap();
    let typed = "src/cafe\u{301} '24 9.41 PM.txt";
    let found = |spec| world.resolve(&spec, json!({"path": typed})).unwrap().paths["path"].clone();
    for spec in [reads(), writes()] {
        let path = found(spec);
        assert_eq!(path.real, world.at("work/src").join(name));
        assert_eq!(path.given, format!("src/{name}"));
    }
    // Not if several look like it, nor through a link, and an exact name is left alone.
    fs::write(world.at("work/src/caf\u{e9} '24 9.41 PM.txt"), "").unwrap();
    assert_eq!(found(reads()).given, typed);
    symlink("../state", world.at("work/a\u{a0}b")).unwrap();
    let linked = world.resolve(&reads(), json!({"path": "a b"})).unwrap();
    assert_eq!(linked.paths["path"].real, world.at("work/a b"));
    fs::write(world.at("work").join(typed), "").unwrap();
    assert_eq!(found(reads()).real, world.at("work").join(typed));
}

#[test]
fn paths_are_resolved_to_what_they_really_name() {
    let world = World::new();
    let cases = [
        ("src/a.rs", "work/src/a.rs"),
        ("./src//./a.rs", "work/src/a.rs"),
        ("inner", "work/src/a.rs"),
        ("src/new/deep.rs", "work/src/new/deep.rs"),
        ("../elsewhere/notes", "elsewhere/notes"),
        ("a/../notes", ""),
        ("src/.././../elsewhere/notes", "elsewhere/notes"),
        ("out/notes", "elsewhere/notes"),
        ("out/../elsewhere/new", "elsewhere/new"),
        ("file-out", "elsewhere/notes"),
        ("dangling", "elsewhere/new"),
        ("%2e%2e%2fnotes", "work/%2e%2e%2fnotes"),
        ("-rf", "work/-rf"),
        ("name\nwith newline", "work/name\nwith newline"),
        ("trailing. ", "work/trailing. "),
        ("../link-to-work/src/a.rs", "work/src/a.rs"),
        ("/proc/self/root/etc/hosts", "/etc/hosts"),
    ];
    for (given, expected) in cases {
        let resolved = world.resolve(&writes(), json!({"path": given}));
        if expected.is_empty() {
            assert!(resolved.is_err(), "{given}");
            continue;
        }
        let call = resolved.unwrap_or_else(|e| panic!("{given}: {e}"));
        let path = &call.paths["path"];
        assert_eq!(path.real, world.at(expected), "{given}");
        let below = Path::new(expected)
            .strip_prefix("work")
            .ok()
            .map(Path::to_path_buf);
        assert_eq!(path.in_workspace, below, "{given}");
    }
}

#[test]
fn what_cannot_be_resolved_says_what_would_be_right() {
    let world = World::new();
    let long = "x".repeat(300);
    let endless = "x/".repeat(3000);
    let cases = [
        (writes(), json!([]), "must be one JSON object"),
        (
            writes(),
            json!("{\"path\": \"a\"} {}"),
            "must be one JSON object",
        ),
        (writes(), json!({}), "`path` is missing"),
        (writes(), json!({"path": 7}), "`path` must be a text"),
        (writes(), json!({"path": " "}), "must not be empty"),
        (writes(), json!({"path": "a\u{0}b"}), "NUL"),
        (starts(), json!({"command": "ls\u{0}"}), "NUL"),
        (
            starts(),
            json!({"command": ["ls"]}),
            "`command` must be a text",
        ),
        (writes(), json!({"path": "~/x"}), "`~` is not expanded"),
        (
            writes(),
            json!({"path": "src"}),
            "is a folder; name the file",
        ),
        (writes(), json!({"path": "."}), "is a folder"),
        (writes(), json!({"path": "fifo"}), "pipe, socket or device"),
        (reads(), json!({"path": "fifo"}), "pipe, socket or device"),
        (
            reads(),
            json!({"path": "/dev/zero"}),
            "pipe, socket or device",
        ),
        (writes(), json!({"path": "twin"}), "hard links"),
        (writes(), json!({"path": "loop"}), "symbolic links"),
        (
            writes(),
            json!({"path": "src/a.rs/b"}),
            "is a file, so nothing lies below it",
        ),
        (
            writes(),
            json!({"path": "nope/../../elsewhere/x"}),
            "without `..`",
        ),
        (writes(), json!({"path": long}), "cannot be looked at"),
        (writes(), json!({"path": endless}), "longer than 4096 bytes"),
    ];
    for (spec, arguments, words) in cases {
        let error = world.resolve(&spec, arguments.clone()).unwrap_err();
        assert!(error.contains(words), "{arguments}: {error}");
    }
    let text = r#"{"path": "src/a.rs"}"#;
    assert_eq!(
        world.resolve(&reads(), json!(text)).unwrap().arguments["path"],
        "src/a.rs"
    );
}

#[test]
fn risk_follows_from_where_a_path_really_lies() {
    let world = World::new();
    let state = world.at("state/new");
    let state = state.to_str().unwrap();
    let cases = [
        (reads(), "src/a.rs", Risk::Safe, Allow),
        (reads(), "twin", Risk::Safe, Allow),
        (writes(), "src/a.rs", Risk::Moderate, Allow),
        (writes(), "src/new.rs", Risk::Moderate, Allow),
        (writes(), ".git/hooks/pre-commit", Risk::High, Ask),
        (writes(), "sub/.GIT/config", Risk::High, Ask),
        // A workspace that may be lost does not contain what leaves it.
        (reads(), "out/notes", Risk::High, Ask),
        (writes(), "file-out", Risk::High, Ask),
        (writes(), "dangling", Risk::High, Ask),
        (writes(), "../elsewhere/x", Risk::High, Ask),
        (reads(), "..", Risk::Critical, Ask),
        (reads(), "/", Risk::Critical, Ask),
        // gyrus's own state, by every road.
        (reads(), "sly/grants", Risk::Critical, Deny),
        (writes(), "sly/new", Risk::Critical, Deny),
        (reads(), "../state", Risk::Critical, Deny),
        (writes(), state, Risk::Critical, Deny),
        (reads(), "../beside", Risk::Critical, Deny),
        (writes(), "../beside/stopped", Risk::Critical, Deny),
        (reads(), "../work/../state/runs/", Risk::Critical, Deny),
    ];
    for (spec, path, risk, decision) in cases {
        assert_eq!(
            world.risk(&spec, path),
            (risk, decision),
            "{:?} {path}",
            spec.touches
        );
    }
}

#[test]
fn each_file_of_a_changeset_is_judged() {
    let world = World::new();
    let spec = ToolSpec {
        parameters: json!({"required": ["changes"]}),
        ..spec(vec![
            Touch::Changes("changes".into()),
            Touch::Starts("verify".into()),
        ])
    };
    let workspace = world.at("work");
    let judged = |arguments: Value| {
        let call = world.resolve(&spec, arguments)?;
        let verdict = world
            .gate
            .judge(&call, &spec, &under(&workspace, Mode::Edits, true));
        Ok::<_, String>((verdict.risk, verdict.decision))
    };
    let change = |path: &str| json!({"path": path, "content": "x"});
    let plain = || {
        vec![
            change("src/a.rs"),
            json!({"path": "inner"}),
            json!({"path": "new", "diff": ""}),
        ]
    };
    let with = |more: Value| {
        let mut changes = plain();
        changes.push(more);
        judged(json!({"changes": changes}))
    };
    assert_eq!(
        judged(json!({"changes": plain()})),
        Ok((Risk::Moderate, Allow))
    );
    assert_eq!(with(change("out/notes")), Ok((Risk::High, Ask)));
    assert_eq!(with(change(".git/hooks/x")), Ok((Risk::High, Ask)));
    assert_eq!(with(change("⟦secret:KEY⟧")), Ok((Risk::High, Ask)));
    assert_eq!(
        with(json!({"path": "../elsewhere/notes"})),
        Ok((Risk::Critical, Ask))
    );
    let rewritten = json!({"path": "../elsewhere/notes", "diff": "@@ -1 +1 @@"});
    assert_eq!(with(rewritten), Ok((Risk::High, Ask)), "it is not deleted");
    assert_eq!(with(change("sly/new")), Ok((Risk::Critical, Deny)));
    let verified = judged(json!({"changes": plain(), "verify": "make"}));
    assert_eq!(verified, Ok((Risk::Critical, Ask)));
    for (changes, words) in [
        (json!([change("src")]), "`changes/0`: `src` is a folder"),
        (json!([change("a"), "b"]), "`changes/1` must be an object"),
        (json!([{"content": "x"}]), "`changes/0`: `path` is missing"),
        (json!("a"), "`changes` must be a list"),
    ] {
        let refused = judged(json!({"changes": changes})).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn proposing_a_changeset_reads_its_files() {
    let world = World::new();
    fs::write(world.at("work/.env"), "x").unwrap();
    let spec = spec(vec![Touch::Compares("changes".into())]);
    let workspace = world.at("work");
    let judged = |last: &str| {
        let change = |path: &str| json!({"path": path, "content": "x"});
        let changes = json!({"changes": [change("src/a.rs"), change("new"), change(last)]});
        let call = world.resolve(&spec, changes)?;
        let under = under(&workspace, Mode::Ask, false);
        let verdict = world.gate.judge(&call, &spec, &under);
        Ok::<_, String>((verdict.risk, verdict.decision))
    };
    for (path, expected) in [
        ("inner", (Risk::Safe, Allow)),
        // The rules of a folder may be proposed to be others; applying that is another matter.
        (".git/hooks/x", (Risk::Safe, Allow)),
        // Said to the model by the tool, with all else that is wrong.
        ("src", (Risk::Safe, Allow)),
        ("twin", (Risk::Safe, Allow)),
        (".env", world.risk(&reads(), ".env")),
    ] {
        assert_eq!(judged(path), Ok(expected), "{path}");
    }
    assert_eq!(judged(".env"), Ok((Risk::High, Ask)));
    for path in ["out/notes", "dangling", "sly/new", "../elsewhere/x"] {
        let refused = judged(path).unwrap_err();
        let words = format!("`changes/2`: `{path}` is outside the workspace");
        assert_eq!(refused, words);
    }
}

#[test]
fn the_mode_decides() {
    let world = World::new();
    let both = spec(vec![
        Touch::Reads("path".into()),
        Touch::Starts("command".into()),
    ]);
    let nothing = spec(vec![]);
    let call = |path: &str| {
        let arguments = json!({"path": path, "command": "make"});
        world.resolve(&both, arguments).unwrap()
    };
    let (inside, outside, own) = (call("src/a.rs"), call("../elsewhere/x"), call("sly/grants"));
    // In the order of the modes: read-only, ask, edits, auto, auto in a throw-away folder, never.
    let cases = [
        (
            &nothing,
            &inside,
            Risk::Safe,
            [Allow, Allow, Allow, Allow, Allow, Allow],
        ),
        (
            &reads(),
            &inside,
            Risk::Safe,
            [Allow, Allow, Allow, Allow, Allow, Allow],
        ),
        (
            &writes(),
            &inside,
            Risk::Moderate,
            [Deny, Allow, Allow, Allow, Allow, Allow],
        ),
        (
            &starts(),
            &inside,
            Risk::Critical,
            [Deny, Ask, Ask, Ask, Ask, Deny],
        ),
        (
            &both,
            &inside,
            Risk::Critical,
            [Deny, Ask, Ask, Ask, Ask, Deny],
        ),
        (
            &writes(),
            &outside,
            Risk::High,
            [Deny, Ask, Ask, Ask, Ask, Deny],
        ),
        (&both, &own, Risk::Critical, [Deny; 6]),
    ];
    for (spec, call, risk, decisions) in cases {
        decides(&world, spec, call, risk, decisions);
    }
}

/// Judges a call in every mode, in the order of the cases above.
#[track_caller]
fn decides(
    world: &World,
    spec: &ToolSpec,
    call: &ResolvedCall,
    risk: Risk,
    decisions: [Decision; 6],
) {
    let modes = [
        (Mode::ReadOnly, false),
        (Mode::Ask, true),
        (Mode::Edits, true),
        (Mode::Auto, false),
        (Mode::Auto, true),
        (Mode::Never, true),
    ];
    for ((mode, throwaway), decision) in modes.into_iter().zip(decisions) {
        let workspace = world.at("work");
        let under = under(&workspace, mode, throwaway);
        let verdict = world.gate.judge(call, spec, &under);
        assert_eq!(verdict.risk, risk, "{:?} {verdict:?}", spec.touches);
        assert_eq!(
            verdict.decision, decision,
            "{mode} {:?} {verdict:?}",
            spec.touches
        );
        assert!(!verdict.reasons.is_empty());
    }
}

#[test]
fn a_recorded_call_without_its_lookup_is_not_taken_for_safe() {
    let world = World::new();
    let bare = ResolvedCall {
        tool: "tool".into(),
        arguments: json!({}),
        paths: [].into(),
        command: None,
        files: Vec::new(),
        aim: None,
    };
    let workspace = world.at("work");
    let under = Judgement {
        exposed: true,
        ..under(&workspace, Mode::Auto, true)
    };
    let verdict = world.gate.judge(&bare, &reads(), &under);
    assert_eq!((verdict.risk, verdict.decision), (Risk::High, Ask));
    assert!(
        verdict
            .reasons
            .iter()
            .any(|reason| reason.contains("untrusted text"))
    );
}

#[test]
fn only_fit_folders_become_a_workspace() {
    let world = World::new();
    let home = world.at("elsewhere");
    let state = world.at("state");
    let check = |folder: &Path| check_workspace(folder, Some(&home), &state);
    assert_eq!(check(&world.at("link-to-work")).unwrap(), world.at("work"));
    fs::create_dir(world.at("elsewhere/project")).unwrap();
    assert!(check(&world.at("work/out/project")).is_ok());

    let refused = |folder: &Path| check(folder).unwrap_err();
    assert!(matches!(refused(Path::new("/")), WorkspaceError::Root));
    assert!(matches!(
        refused(&world.at("work/out")),
        WorkspaceError::Home { .. }
    ));
    assert!(matches!(
        refused(&world.at("")),
        WorkspaceError::State { .. }
    ));
    assert!(matches!(
        refused(&world.at("work/sly")),
        WorkspaceError::State { .. }
    ));
    assert!(matches!(
        refused(&world.at("state/runs")),
        WorkspaceError::State { .. }
    ));
    assert!(matches!(
        refused(&world.at("work/inner")),
        WorkspaceError::NotAFolder { .. }
    ));
    assert!(matches!(
        refused(&world.at("nope")),
        WorkspaceError::Unreadable { .. }
    ));
    // A state home that does not exist yet lies below its folder all the same.
    let later = check_workspace(&world.at("work"), None, &world.at("work/src/later/state"));
    assert!(matches!(later, Err(WorkspaceError::State { .. })));
}

#[test]
fn a_folder_may_be_lost_if_it_is_temporary_or_empty() {
    let world = World::new();
    assert!(is_throwaway(&world.at("work")));
    assert!(!is_throwaway(&std::env::temp_dir()));
    assert!(!is_throwaway(Path::new("/etc")));
    assert!(!is_throwaway(&world.at("nope")));
    // Elsewhere only emptiness speaks for a folder.
    let here = tempfile::tempdir_in("/var/tmp").unwrap();
    assert!(is_throwaway(here.path()));
    fs::write(here.path().join("kept"), "x").unwrap();
    let temporary = here.path().starts_with(std::env::temp_dir());
    assert_eq!(is_throwaway(here.path()), temporary);
}

#[test]
fn no_rule_gives_an_agent_a_tool_that_it_does_not_have() {
    let world = World::new();
    let text = r#"
        [[rule]]
        decide = "allow"
        why = "writing is fine"
        tool = "tool"

        [agent.main]
        tools = ["read"]
    "#;
    let origin = policy::PolicyOrigin {
        file: "policy.toml".into(),
        may_loosen: true,
        home: None,
    };
    let lines = policy::LineReader {
        workspace: &world.at("work"),
        read: &|_| Default::default(),
    };
    let policy = policy::Policy::parse(text, &origin, lines).unwrap();
    let gate = world.gate.clone().under(policy);
    let call = world
        .resolve(&writes(), json!({"path": "src/a.rs"}))
        .unwrap();
    let workspace = world.at("work");
    let verdict = gate.judge(&call, &writes(), &under(&workspace, Mode::Edits, false));
    assert_eq!(verdict.decision, Deny, "{verdict:?}");
}
