//! Connections of programs that outlive the calls that use them, as those on a desktop do. No call
//! waits for them, so nobody is asked: a connection is made if the gate allows it, and else refused.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, Weak},
};

use gyrus_contract::{
    BoxedFuture, ConnectionPolicy, Decision, Destination, ResolvedCall, ToolSpec, Touch,
};
use serde_json::json;

use crate::core::Core;

/// Decides about connections by the present facts of a run, while the run is driven.
pub(super) struct ProgramConnections {
    core: Weak<Core>,
    spec: Arc<ToolSpec>,
    call: ResolvedCall,
}

/// Makes the gate decide about the connections of programs on the run's desktop, if it has one.
pub(crate) fn hand_to_screen(core: &Arc<Core>) {
    let organs = core.kernel.organs();
    let mut tools = organs.tools.values();
    let uses_desktop = |spec: &ToolSpec| spec.touches(|touch| matches!(touch, Touch::Desktop));
    let tool = tools.find(|tool| uses_desktop(tool.spec()));
    if let (Some(screen), Some(tool)) = (&organs.screen, tool) {
        screen.connect_by(Arc::new(ProgramConnections {
            core: Arc::downgrade(core),
            spec: Arc::new(tool.spec().clone()),
            call: ResolvedCall {
                tool: tool.spec().name.clone(),
                arguments: json!({}),
                paths: Default::default(),
                command: None,
                files: Vec::new(),
                aim: None,
            },
        }));
    }
}

impl ConnectionPolicy for ProgramConnections {
    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(self.decision(to)))
    }

    fn socket(&self, to: &Destination) -> Option<OwnedFd> {
        self.core.upgrade()?.background.socket(to)
    }
}

impl ProgramConnections {
    /// Decides for a process that this call started.
    pub(super) fn of_process(core: Weak<Core>, spec: &ToolSpec, call: &ResolvedCall) -> Self {
        Self {
            core,
            spec: Arc::new(spec.clone()),
            call: call.clone(),
        }
    }

    fn decision(&self, to: &Destination) -> Result<(), String> {
        let over = || "the run is over".to_owned();
        let core = self.core.upgrade().ok_or_else(over)?;
        if core.may_act().is_err() {
            return Err("all runs were stopped".to_owned());
        }
        if core.background.socket(to).is_some() {
            return Ok(());
        }
        let verdict = core.judge_destination(to, &self.call, &self.spec);
        match verdict.decision {
            Decision::Allow => Ok(()),
            Decision::Deny => Err(verdict.reasons.join("; ")),
            Decision::Ask => Err(format!(
                "{}; what goes on by itself reaches what the goal names, or a grant or a rule allows",
                verdict.reasons.join("; ")
            )),
        }
    }
}
