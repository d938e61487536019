//! Questions to the gate, under the facts of the moment.

use std::net::SocketAddr;

use gyrus_contract::{
    ChangedPath, Destination, Judgement, Part, ResolvedCall, Risk, Starts, ToolCall, ToolSpec,
    Verdict, WithheldChange,
};

use super::layers;
use crate::{Stop, core::Core, links};

impl Core {
    /// Judges a call under the present facts.
    pub(crate) fn judge(
        &self,
        call: &ToolCall,
        resolved: &ResolvedCall,
        spec: &ToolSpec,
    ) -> Result<Verdict, Stop> {
        let opened = resolved.aim.iter().flat_map(|aim| &aim.starts);
        let mut opened = opened.filter_map(|starts| match starts {
            Starts::Opens { address } => Some(address.as_str()),
            _ => None,
        });
        let tools = &self.kernel.organs().tools;
        let link_was_seen = match links::connects(tools, call).or(opened.next_back()) {
            None => false,
            Some(address) => self
                .links()
                .saw(address, &self.log, tools, || self.given())?,
        };
        let gate = &self.kernel.organs().gate;
        let undoable = layers::is_undoable(self, resolved, spec);
        Ok(self.under(link_was_seen, |under| {
            let under = Judgement { undoable, ..*under };
            gate.judge(resolved, spec, &under)
        }))
    }

    /// Returns the changes of a command that may not stay without a person's approval.
    pub(crate) fn withhold(&self, changes: &[ChangedPath]) -> Vec<WithheldChange> {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| gate.withhold(changes, under))
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

    /// Returns the addresses of this machine's loopback that a command finds on its own.
    pub(crate) fn forwarded(&self, resolved: &ResolvedCall, spec: &ToolSpec) -> Vec<SocketAddr> {
        let gate = &self.kernel.organs().gate;
        self.under(false, |under| gate.forwarded(resolved, spec, under))
    }

    /// Calls the gate with the present facts.
    fn under<T>(&self, link_was_seen: bool, ask: impl FnOnce(&Judgement<'_>) -> T) -> T {
        let trusted = self.trusted();
        let trusted: Vec<&str> = trusted.iter().map(String::as_str).collect();
        let (exposed, grants, undoable) = {
            let shared = self.shared();
            let undoable = shared.not_undoable.is_none();
            let mut grants = shared.grants.clone();
            // They are not of the session: the next run may follow other skills.
            let of_skills = self.started.skills.iter();
            grants.extend(of_skills.flat_map(|skill| skill.grants.iter().cloned()));
            (shared.exposed, grants, undoable)
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
        })
    }

    /// Returns the texts that came with the goal, and those that the person typed.
    fn given(&self) -> Vec<String> {
        let context = self.context.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.clone()),
            _ => None,
        });
        context.chain(self.trusted()).collect()
    }
}
