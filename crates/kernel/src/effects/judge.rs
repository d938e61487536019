//! Questions to the gate, under the facts of the moment.

use std::{net::SocketAddr, path::Path};

use gyrus_contract::{
    ChangedPath, Decision, Destination, EffectId, Judgement, Part, ResolvedCall, Risk, Starts,
    ToolCall, ToolSpec, Verdict, WithheldChange,
};

use gyrus_text::{one_line, shorten};

use super::layers;
use crate::{Stop, core::Core, links, mandate::MandateCall};

/// Maximum number of destinations whose origin a card shows.
const MAX_ORIGINS: usize = 8;

/// Characters of a value on a card.
const SHOWN: usize = 120;

/// A verdict, and the call of the mandate that was judged.
pub(crate) struct JudgedCall {
    pub(crate) verdict: Verdict,
    pub(crate) mandated: Option<String>,
}

impl Core {
    /// Judges a call under the present facts. One that is a call of the mandate counts as made by
    /// `effect`, if one is given.
    pub(crate) fn judge(
        &self,
        call: &ToolCall,
        resolved: &ResolvedCall,
        spec: &ToolSpec,
        effect: Option<&EffectId>,
    ) -> Result<JudgedCall, Stop> {
        let opened = resolved.aim.iter().flat_map(|aim| &aim.starts);
        let mut opened = opened.filter_map(|starts| match starts {
            Starts::Opens { address } => Some(address.as_str()),
            _ => None,
        });
        let tools = &self.kernel.organs().tools;
        let link_was_seen = match links::connects(tools, call).or(opened.next_back()) {
            None => false,
            // What the run serves itself leads nowhere else, but in a browser.
            Some(address) if resolved.aim.is_none() && self.background.serves(address) => true,
            Some(address) => self
                .links
                .lock()
                .saw(address, &self.log, tools, || self.given())?,
        };
        let gate = &self.kernel.organs().gate;
        let undoable = layers::is_undoable(self, resolved, spec);
        let mandated = self.mandated(resolved, spec, effect)?;
        let has_mandate = self.provenance.lock().has_mandate();
        let verdict = self.under(link_was_seen, |under| {
            let mandated = mandated.as_deref();
            let under = Judgement {
                undoable,
                mandated,
                has_mandate,
                ..*under
            };
            gate.judge(resolved, spec, &under)
        });
        Ok(JudgedCall { verdict, mandated })
    }

    /// Returns the entry of the mandate that allows this call, if one does.
    fn mandated(
        &self,
        resolved: &ResolvedCall,
        spec: &ToolSpec,
        effect: Option<&EffectId>,
    ) -> Result<Option<String>, Stop> {
        if self.started.meanings.is_none() {
            return Ok(None);
        }
        let meant = self.kernel.organs().gate.meant(resolved, spec);
        let Some(meant) = meant.filter(|meant| meant.action.is_some()) else {
            return Ok(None);
        };
        let trusted = self.trusted();
        let trusted: Vec<&str> = trusted.iter().map(String::as_str).collect();
        let planned = MandateCall {
            arguments: &resolved.arguments,
            meant: &meant,
            trusted: &trusted,
        };
        let mut provenance = self.provenance.lock();
        provenance.read_on(&self.log)?;
        provenance.mandated(planned, effect, &self.log)
    }

    /// Returns sentences for a person about where the destinations of a call were read.
    pub(crate) fn origins(
        &self,
        resolved: &ResolvedCall,
        spec: &ToolSpec,
    ) -> Result<Vec<String>, Stop> {
        // What pages say is not read as data.
        let served = Some(spec).filter(|spec| spec.is_served());
        let meant = served.and_then(|spec| self.kernel.organs().gate.meant(resolved, spec));
        let Some(meant) = meant.filter(|meant| meant.action.is_some()) else {
            return Ok(Vec::new());
        };
        let mut provenance = self.provenance.lock();
        provenance.read_on(&self.log)?;
        let mut told = Vec::new();
        let places = meant.values.iter().filter(|value| value.is_destination());
        for value in places.take(MAX_ORIGINS) {
            let shown = one_line(&shorten(&value.text, SHOWN)).into_owned();
            told.push(
                match provenance.sources(&value.text, &self.log)?.as_slice() {
                    [] => format!("`{shown}` stands in nothing that was read from servers"),
                    sources => format!("`{shown}` comes {}", sources.join(", and ")),
                },
            );
        }
        told.dedup();
        Ok(told)
    }

    /// Returns the changes of a command that may not stay without a person's approval.
    pub(crate) fn withhold(&self, changes: &[ChangedPath]) -> Vec<WithheldChange> {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| gate.withhold(changes, under))
    }

    /// Returns the changes in a folder beside the workspace that may not stay.
    pub(crate) fn withhold_in(
        &self,
        folder: &Path,
        changes: &[ChangedPath],
    ) -> Vec<WithheldChange> {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| {
            let under = Judgement {
                workspace: folder,
                ..*under
            };
            gate.withhold(changes, &under)
        })
    }

    /// Returns the origins to which a page may send, because a call with this risk was allowed.
    pub(crate) fn sends_to(&self, resolved: &ResolvedCall, risk: Risk) -> Vec<String> {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| gate.sends_to(resolved, risk, under))
    }

    /// Judges a connection that the command of a call wants to make.
    pub(crate) fn judge_destination(
        &self,
        to: &Destination,
        resolved: &ResolvedCall,
        spec: &ToolSpec,
    ) -> Verdict {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| {
            gate.judge_destination(to, resolved, spec, under)
        })
    }

    /// Returns the addresses of this machine's loopback that a command finds on its own, each with the
    /// decision about connections.
    pub(crate) fn forwarded(
        &self,
        resolved: &ResolvedCall,
        spec: &ToolSpec,
    ) -> Vec<(SocketAddr, Decision)> {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| gate.forwarded(resolved, spec, under))
    }

    /// Calls the gate with the present facts.
    fn under<T>(&self, link_was_seen: bool, ask: impl FnOnce(&Judgement<'_>) -> T) -> T {
        let trusted = self.trusted();
        let trusted: Vec<&str> = trusted.iter().map(String::as_str).collect();
        let (exposed, grants, undoable) = {
            let shared = self.shared();
            let undoable = shared.state.not_undoable.is_none();
            let mut grants = shared.state.grants.clone();
            // They are not of the session: the next run may follow other skills.
            let of_skills = self.started.skills.iter();
            grants.extend(of_skills.flat_map(|skill| skill.grants.iter().cloned()));
            (shared.state.exposed, grants, undoable)
        };
        ask(&Judgement {
            agent: &self.started.agent,
            workspace: &self.started.workspace,
            mode: self.settings.mode,
            exposed,
            throwaway: self.started.throwaway,
            undoable,
            grants: &grants,
            skills: &self.started.skills,
            trusted: &trusted,
            link_was_seen,
            mandated: None,
            has_mandate: false,
        })
    }

    /// Returns the texts of the goal and its attachments, and those that the person typed.
    fn given(&self) -> Vec<String> {
        let context = self.context.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.clone()),
            _ => None,
        });
        context.chain(self.trusted()).collect()
    }
}
