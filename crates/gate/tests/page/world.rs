use std::{collections::BTreeMap, path::Path, sync::LazyLock};

use gyrus_contract::{
    Aim, AimedElement, Decision, ElementId, ElementState, Field, Form, Gate, Grant, Judgement,
    Mode, Repeat, ResolvedCall, ResolvedPath, Risk, Starts, ToolSpec, Touch, Verdict,
};
use gyrus_gate::{OwnPaths, PolicyGate};
use serde_json::json;

pub(crate) const CHOOSES: Starts = Starts::Chooses {
    option: String::new(),
};

pub(crate) const GOAL: &str = "Book the room on https://good.com, and look at shop.example.";

static GATE: LazyLock<PolicyGate> = LazyLock::new(|| {
    PolicyGate::new(OwnPaths {
        own: vec![],
        person: Some("/home/p".into()),
    })
});

/// Outcome of an input, in the modes read-only, ask, edits, auto and never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Comes {
    /// Passes in every mode.
    Free,
    /// Moderate: passes but in read-only.
    Plain,
    /// High: asked, with a wider answer.
    Once,
    /// High: asked, without one.
    EachTime,
    /// Critical: asked each time.
    Critical,
    /// No approval can allow it.
    Never,
}

pub(crate) fn aim(page: &str, role: &str, name: &str, starts: Starts) -> Aim {
    let origin = page
        .match_indices('/')
        .nth(2)
        .map_or(page, |(end, _)| &page[..end]);
    Aim {
        address: page.to_owned(),
        origin: origin.to_owned(),
        element: Some(AimedElement {
            id: ElementId {
                document: 1,
                number: 1,
            },
            role: role.to_owned(),
            name: name.to_owned(),
            states: [].into(),
        }),
        form: None,
        starts: vec![starts],
        fills: Vec::new(),
    }
}

pub(crate) fn masked(mut aim: Aim) -> Aim {
    aim.element
        .as_mut()
        .unwrap()
        .states
        .insert(ElementState::Masked);
    aim
}

pub(crate) fn within(aim: Aim, form: Form) -> Aim {
    Aim {
        form: Some(form),
        ..aim
    }
}

/// Fields as `name:kind`, filled ones with a `+` before, secret ones with a `!` after.
pub(crate) fn form(method: &str, action: &str, fields: &[&str]) -> Form {
    let field = |text: &&str| {
        let (name, kind) = text.split_once(':').unwrap();
        Field {
            name: name.trim_start_matches('+').to_owned(),
            kind: kind.trim_end_matches('!').to_owned(),
            filled: name.starts_with('+'),
            secret: kind.ends_with('!'),
        }
    };
    Form {
        action: action.to_owned(),
        method: method.to_owned(),
        fields: fields.iter().map(field).collect(),
        words: Vec::new(),
        sends: None,
    }
}

pub(crate) struct Under<'a> {
    pub(crate) goal: &'a str,
    pub(crate) grants: &'a [Grant],
    pub(crate) link_was_seen: bool,
    pub(crate) undoable: bool,
}

impl Default for Under<'_> {
    fn default() -> Self {
        Self {
            goal: GOAL,
            grants: &[],
            link_was_seen: false,
            undoable: false,
        }
    }
}

pub(crate) fn call(aim: Option<Aim>) -> ResolvedCall {
    ResolvedCall {
        tool: "click".into(),
        arguments: json!({"on": "a1"}),
        paths: BTreeMap::new(),
        command: None,
        files: Vec::new(),
        aim,
    }
}

pub(crate) fn file(mut call: ResolvedCall, real: &str) -> ResolvedCall {
    let path = ResolvedPath {
        given: real.to_owned(),
        real: real.into(),
        in_workspace: Path::new(real)
            .strip_prefix("/srv/work")
            .ok()
            .map(Path::to_path_buf),
        withheld: None,
    };
    call.paths.insert("path".into(), path);
    call
}

impl Under<'_> {
    pub(crate) fn verdict(&self, call: &ResolvedCall, mode: Mode) -> Verdict {
        self.verdict_of(&GATE, call, mode)
    }

    pub(crate) fn verdict_of(&self, gate: &PolicyGate, call: &ResolvedCall, mode: Mode) -> Verdict {
        let spec = ToolSpec {
            name: call.tool.clone(),
            description: String::new(),
            parameters: json!({}),
            touches: vec![Touch::Screen],
            repeat: Repeat::Never,
        };
        gate.judge(
            call,
            &spec,
            &Judgement {
                agent: "main",
                workspace: Path::new("/srv/work"),
                mode,
                exposed: true,
                // Neither says anything of what happens on a page.
                throwaway: true,
                undoable: self.undoable,
                grants: self.grants,
                skills: &[],
                trusted: &[self.goal],
                link_was_seen: self.link_was_seen,
                mandated: None,
                has_mandate: false,
            },
        )
    }

    /// Returns the outcome of a call, by its verdicts in every mode.
    #[track_caller]
    pub(crate) fn comes(&self, call: &ResolvedCall) -> Comes {
        use Decision::{Allow, Ask, Deny};
        let verdicts: Vec<Verdict> = Mode::ALL
            .iter()
            .map(|(mode, _)| self.verdict(call, *mode))
            .collect();
        let decisions: Vec<Decision> = verdicts.iter().map(|verdict| verdict.decision).collect();
        let verdict = &verdicts[1];
        match (verdict.risk, verdict.wider.is_empty(), &decisions[..]) {
            (Risk::Safe, true, [Allow, Allow, Allow, Allow, Allow]) => Comes::Free,
            (Risk::Moderate, true, [Deny, Allow, Allow, Allow, Allow]) => Comes::Plain,
            (Risk::High, false, [Deny, Ask, Ask, Ask, Deny]) => Comes::Once,
            (Risk::High, true, [Deny, Ask, Ask, Ask, Deny]) => Comes::EachTime,
            (Risk::Critical, true, [Deny, Ask, Ask, Ask, Deny]) => Comes::Critical,
            (Risk::Critical, true, [Deny, Deny, Deny, Deny, Deny]) => Comes::Never,
            _ => panic!("{decisions:?} {verdict:?}"),
        }
    }
}

/// Returns the outcome of an aim under the goal alone.
#[track_caller]
pub(crate) fn comes(aim: Aim) -> Comes {
    Under::default().comes(&call(Some(aim)))
}
