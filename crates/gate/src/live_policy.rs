//! The gate under the policy as it stands at this moment.
//!
//! A run may wait for a person for hours, and the person may make the policy stricter meanwhile.
//! So before each verdict the policy files are read again; where they differ from what the process
//! began with, a call is judged under both, and the stricter verdict wins. What was loosened holds
//! from the next process on.

use std::{net::SocketAddr, path::Path, sync::Arc};

use gyrus_contract::{
    CallPlace, ChangedPath, Decision, Destination, Gate, Judgement, MeantCall, ResolvedCall, Risk,
    ToolCall, ToolMeaning, ToolSpec, Unresolvable, Verdict, WithheldChange,
};
use parking_lot::Mutex;

use crate::{
    PolicyGate,
    policy::{PolicyFileError, PolicyFiles},
};

/// Contents of the policy files at the last reading, valid or not.
type Texts = Vec<Option<Vec<u8>>>;

/// Returns the message for a person about an invalid policy file.
type PolicyComplaint = fn(PolicyFileError) -> String;

/// A gate, with the files of its policy.
pub struct LivePolicy {
    gate: PolicyGate,
    files: PolicyFiles,
    explain: PolicyComplaint,
    began_with: Texts,
    /// The texts read last and the gate under their policy, if they differ from the valid ones.
    last: Mutex<Option<(Texts, Under)>>,
}

/// The gate under the present files, or the reason why they cannot be read.
type Under = Arc<Result<PolicyGate, String>>;

impl LivePolicy {
    /// Creates a live policy whose files `make` reads.
    pub fn over<E>(
        files: PolicyFiles,
        explain: PolicyComplaint,
        make: impl FnOnce(&PolicyFiles) -> Result<PolicyGate, E>,
    ) -> Result<Self, E> {
        // Read before they are used, so that no change falls in between.
        let began_with = files.texts();
        Ok(Self {
            gate: make(&files)?,
            files,
            explain,
            began_with,
            last: Mutex::new(None),
        })
    }

    /// Returns the gate under the changed policy; `None` if it was not.
    fn since(&self) -> Option<Under> {
        let now = self.files.texts();
        if now == self.began_with {
            return None;
        }
        let mut last = self.last.lock();
        if let Some((texts, under)) = &*last
            && *texts == now
        {
            return Some(under.clone());
        }
        let policy = self.files.policy().map_err(self.explain);
        let under = Arc::new(policy.map(|policy| self.gate.clone().under(policy)));
        *last = Some((now, under.clone()));
        Some(under)
    }
}

impl Gate for LivePolicy {
    fn keeps_secrets(&self, path: &Path) -> bool {
        self.gate.keeps_secrets(path)
    }

    fn resolve(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        place: CallPlace<'_>,
    ) -> Result<ResolvedCall, Unresolvable> {
        let mut resolved = self.gate.resolve(call, spec, place)?;
        if let Some(Ok(gate)) = self.since().as_deref() {
            gate.look_before(&mut resolved, spec, place.workspace);
        }
        Ok(resolved)
    }

    fn judge(&self, call: &ResolvedCall, spec: &ToolSpec, under: &Judgement<'_>) -> Verdict {
        self.strictest(|gate| gate.judge(call, spec, under))
    }

    fn meant(&self, call: &ResolvedCall, spec: &ToolSpec) -> Option<MeantCall> {
        self.gate.meant(call, spec)
    }

    fn meaning(&self, spec: &ToolSpec) -> Option<ToolMeaning> {
        self.gate.meaning(spec)
    }

    fn forms(&self, trusted: &[&str]) -> Vec<(ToolSpec, ToolMeaning)> {
        self.gate.forms(trusted)
    }

    fn sends_to(&self, call: &ResolvedCall, risk: Risk, under: &Judgement<'_>) -> Vec<String> {
        self.gate.sends_to(call, risk, under)
    }

    fn withhold(&self, changes: &[ChangedPath], under: &Judgement<'_>) -> Vec<WithheldChange> {
        let mut withheld = self.gate.withhold(changes, under);
        if let Some(Ok(gate)) = self.since().as_deref() {
            withheld.extend(gate.withhold(changes, under));
            withheld.sort_by_key(|one| one.index);
            withheld.dedup_by_key(|one| one.index);
        }
        withheld
    }

    fn judge_destination(
        &self,
        to: &Destination,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> Verdict {
        self.strictest(|gate| gate.judge_destination(to, call, spec, under))
    }

    fn forwarded(
        &self,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> Vec<(SocketAddr, Decision)> {
        // What is stricter today is found when something connects there.
        self.gate.forwarded(call, spec, under)
    }
}

impl LivePolicy {
    /// The stricter of two verdicts: under what the process began with, and under what was laid
    /// down since.
    fn strictest(&self, judge: impl Fn(&PolicyGate) -> Verdict) -> Verdict {
        let mut verdict = judge(&self.gate);
        let Some(since) = self.since() else {
            return verdict;
        };
        match &*since {
            Ok(gate) => {
                let today = judge(gate);
                if today.decision > verdict.decision {
                    today
                } else {
                    verdict
                }
            }
            // Nobody knows what it would say. What changes nothing goes on.
            Err(reason) if verdict.risk > Risk::Safe => {
                verdict.decision = Decision::Deny;
                verdict.reasons = vec![reason.clone()];
                verdict
            }
            Err(_) => verdict,
        }
    }
}
