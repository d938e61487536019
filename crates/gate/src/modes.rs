//! The table of modes: what happens with a call of this risk.

use gyrus_contract::{Decision, Mode, Risk};

/// Limits on the damage that a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamageBounds {
    /// Whether the damage stays within the workspace: by the kind of the effects, by a proven
    /// sandbox, or because the workspace may be lost.
    pub(crate) contained: bool,
    /// Whether the damage can be undone.
    pub(crate) undoable: bool,
}

/// Returns the decision, with the reason that the mode adds.
pub(crate) fn decide(risk: Risk, bounds: DamageBounds, mode: Mode) -> (Decision, Option<String>) {
    let says = |words: &str| Some(format!("mode `{mode}` {words}"));
    let DamageBounds {
        contained,
        undoable,
    } = bounds;
    match (mode, risk) {
        (_, Risk::Safe) => (Decision::Allow, None),
        (Mode::ReadOnly, _) => (Decision::Deny, says("allows only what changes nothing")),
        (Mode::Ask | Mode::Never, Risk::Moderate) if contained && undoable => {
            (Decision::Allow, None)
        }
        (Mode::Never, _) => (
            Decision::Deny,
            says("denies whatever a person would be asked about"),
        ),
        (Mode::Ask, Risk::Moderate) => (
            Decision::Ask,
            says("asks before what is not contained or cannot be undone"),
        ),
        (Mode::Ask, _) => (Decision::Ask, None),
        (Mode::Edits | Mode::Auto, Risk::Moderate) => (Decision::Allow, None),
        (Mode::Edits, Risk::High) => (
            Decision::Ask,
            says("allows only plain changes in the workspace"),
        ),
        (Mode::Auto, Risk::High) if contained => (Decision::Allow, None),
        (Mode::Auto, Risk::High) => (Decision::Ask, says("asks about what no sandbox contains")),
        (Mode::Edits | Mode::Auto, Risk::Critical) => (
            Decision::Ask,
            Some("what is critical is asked every time".into()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Decision::{Allow, Ask, Deny};

    #[test]
    fn every_field_of_the_table() {
        let risks = [Risk::Safe, Risk::Moderate, Risk::High, Risk::Critical];
        // For each mode and each risk: contained and undoable, contained only, neither.
        let table = [
            (
                Mode::ReadOnly,
                [[Allow; 3], [Deny; 3], [Deny; 3], [Deny; 3]],
            ),
            (
                Mode::Ask,
                [[Allow; 3], [Allow, Ask, Ask], [Ask; 3], [Ask; 3]],
            ),
            (Mode::Edits, [[Allow; 3], [Allow; 3], [Ask; 3], [Ask; 3]]),
            (
                Mode::Auto,
                [[Allow; 3], [Allow; 3], [Allow, Allow, Ask], [Ask; 3]],
            ),
            (
                Mode::Never,
                [[Allow; 3], [Allow, Deny, Deny], [Deny; 3], [Deny; 3]],
            ),
        ];
        let bounds = [(true, true), (true, false), (false, false)];
        for (mode, rows) in table {
            for (risk, row) in risks.into_iter().zip(rows) {
                for ((contained, undoable), expected) in bounds.into_iter().zip(row) {
                    let bounds = DamageBounds {
                        contained,
                        undoable,
                    };
                    let (decision, _) = decide(risk, bounds, mode);
                    assert_eq!(decision, expected, "{mode} {risk:?} {bounds:?}");
                }
            }
        }
    }
}
