//! Calls of servers' tools: what they reach and what they say of themselves, in every mode.

use gyrus_contract::{
    CallPlace, Decision, Digest, Gate, Grant, Judgement, Mode, Reach, Repeat, ResolvedCall, Risk,
    RunId, Service, ToolCall, ToolSpec, Touch, Verdict,
};
use gyrus_gate::{OwnPaths, PolicyGate};
use serde_json::json;
use tempfile::TempDir;

/// A tool of a server.
fn tool(reach: Reach, destructive: bool) -> ToolSpec {
    ToolSpec {
        name: "srv__t".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        touches: vec![Touch::Serves(Service {
            server: "srv".to_owned(),
            tool: "t".to_owned(),
            reach,
            destructive,
            definition: Digest::of(b"first"),
            setup: None,
            returns: Vec::new(),
        })],
        repeat: Repeat::Never,
    }
}

/// A folder, and the gate.
struct World {
    folder: TempDir,
    gate: PolicyGate,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let own_paths = OwnPaths {
            own: Vec::new(),
            person: None,
        };
        Self {
            folder: folder.expect("a folder"),
            gate: PolicyGate::new(own_paths),
        }
    }

    fn verdict(&self, spec: &ToolSpec, argument: &str, mode: Mode, grants: &[Grant]) -> Verdict {
        let call = ToolCall::new(spec.name.clone(), json!({"a": argument}));
        let place = CallPlace {
            run: RunId::new(),
            workspace: self.folder.path(),
            agent: "main",
            mode: Mode::Ask,
            skills: &[],
            sandbox: &Default::default(),
        };
        let call: ResolvedCall = self.gate.resolve(&call, spec, place).expect("a call");
        let under = Judgement {
            agent: "main",
            workspace: self.folder.path(),
            mode,
            exposed: true,
            throwaway: false,
            undoable: true,
            grants,
            skills: &[],
            trusted: &[],
            link_was_seen: false,
            mandated: None,
            has_mandate: false,
        };
        self.gate.judge(&call, spec, &under)
    }
}

#[test]
fn every_reach_in_every_mode() {
    use Decision::{Ask, Deny};
    let world = World::new();
    // In the order of the modes.
    for (reach, destructive, risk, expected) in [
        (
            Reach::Workspace,
            false,
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            Reach::Workspace,
            true,
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (Reach::Hosts, false, Risk::High, [Deny, Ask, Ask, Ask, Deny]),
        (
            Reach::Elsewhere,
            false,
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            Reach::Elsewhere,
            true,
            Risk::High,
            [Deny, Ask, Ask, Ask, Deny],
        ),
        (
            Reach::Everything,
            false,
            Risk::Critical,
            [Deny, Ask, Ask, Ask, Deny],
        ),
    ] {
        for ((mode, word), expected) in Mode::ALL.into_iter().zip(expected) {
            let verdict = world.verdict(&tool(reach, destructive), "x", mode, &[]);
            assert_eq!(
                (verdict.decision, verdict.risk),
                (expected, risk),
                "{reach:?} {destructive} {word}: {verdict:?}"
            );
        }
    }
}

#[test]
fn a_grant_is_for_what_was_described() {
    let world = World::new();
    let spec = tool(Reach::Elsewhere, false);
    let asked = world.verdict(&spec, "x", Mode::Ask, &[]);
    let granted = world.verdict(&spec, "x", Mode::Ask, &asked.wider);
    assert_eq!(granted.decision, Decision::Allow, "{granted:?}");
    let mut other = spec.clone();
    let [Touch::Serves(service)] = other.touches.as_mut_slice() else {
        panic!("{other:?}");
    };
    service.definition = Digest::of(b"second");
    let changed = world.verdict(&other, "x", Mode::Ask, &asked.wider);
    assert_eq!(changed.decision, Decision::Ask, "{changed:?}");
    // A name alone is not a yes, and what destroys is asked about each time.
    let by_name = Grant::Tool {
        tool: spec.name.clone(),
    };
    let named = world.verdict(&spec, "x", Mode::Ask, &[by_name]);
    assert_eq!(named.decision, Decision::Ask, "{named:?}");
    let destroys = tool(Reach::Elsewhere, true);
    let still = world.verdict(&destroys, "x", Mode::Ask, &asked.wider);
    assert_eq!(still.decision, Decision::Ask, "{still:?}");
    assert!(still.wider.is_empty());
}

#[test]
fn a_secret_is_asked_about_each_time() {
    let world = World::new();
    for reach in [Reach::Workspace, Reach::Elsewhere] {
        let verdict = world.verdict(&tool(reach, false), "⟦secret:KEY⟧", Mode::Auto, &[]);
        assert_eq!(verdict.decision, Decision::Ask);
        assert_eq!(verdict.risk, Risk::Critical);
        assert!(verdict.wider.is_empty(), "{verdict:?}");
    }
}
