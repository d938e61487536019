//! The sandbox that a run in a folder would have, for commands outside of runs. What they change in
//! the folder is thrown away, and connections that would be asked about are refused.

use std::{net::SocketAddr, path::Path, sync::Arc};

use gyrus::runtime::{self, Confinement, Home, sandbox, sandbox_folders};
use gyrus_contract::{
    BoxedFuture, CallPlace, CommandOutcome, CommandSpec, ConnectionPolicy, DEFAULT_AGENT, Decision,
    Destination, Gate as _, Judgement, Layer, Mode, ResolvedCall, RunId, ToolCall, ToolSpec,
};
use gyrus_gate::PolicyGate;
use gyrus_tools::ToolRegistry;
use serde_json::json;

use crate::{failure::Failure, sandbox_settings::RunSandbox};

pub(crate) struct TrialSandbox {
    home: Home,
    policy: Arc<TrialPolicy>,
}

/// Decides about the connections of a command, as for a run, without asking anybody.
struct TrialPolicy {
    gate: PolicyGate,
    /// The call for which a run would ask.
    call: ResolvedCall,
    spec: ToolSpec,
    workspace: Box<Path>,
    allowed: RunSandbox,
    /// Called with the reason when a connection is refused.
    refused: fn(&str),
}

impl TrialSandbox {
    pub(crate) fn new(
        home: &Home,
        workspace: &Path,
        allowed: RunSandbox,
        refused: fn(&str),
    ) -> Result<Self, Failure> {
        let (store, sandboxed) = (home.store()?, Confinement::Sandboxed);
        let gate = runtime::gate(home, &store, workspace, DEFAULT_AGENT, sandboxed)?;
        let spec = ToolRegistry::builtin();
        let spec = spec.get("shell").map(|tool| tool.spec().clone());
        let spec = spec.ok_or_else(|| Failure::failed("there is no tool for commands"))?;
        let call = ToolCall::new("shell", json!({"command": ":"}));
        let place = place(RunId::new(), workspace, &allowed);
        let call = gate.resolve(&call, &spec, place);
        let call = call.map_err(|error| Failure::usage(error.reason))?;
        Ok(Self {
            home: home.clone(),
            policy: Arc::new(TrialPolicy {
                gate,
                call,
                spec,
                workspace: workspace.into(),
                allowed,
                refused,
            }),
        })
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.policy.workspace
    }

    /// Runs a command in the sandbox.
    ///
    /// # Errors
    /// There is no sandbox on this machine, or the command could not be started.
    pub(crate) async fn run(&self, command: CommandSpec) -> Result<CommandOutcome, Failure> {
        let (policy, run) = (&self.policy, RunId::new());
        let place = place(run, &policy.workspace, &policy.allowed);
        let call = ToolCall::new("shell", json!({"command": ":"}));
        let resolved = policy.gate.resolve(&call, &policy.spec, place);
        let resolved = resolved.map_err(|error| Failure::usage(error.reason))?;
        let containment = resolved.command.and_then(|command| command.containment);
        let mut containment = containment.ok_or_else(|| {
            Failure::failed("there is no sandbox here").hint("see why: gyrus doctor")
        })?;
        let changes = sandbox_folders::of_trial(&self.home, run);
        containment
            .writable
            .retain(|folder| **folder != *policy.workspace);
        containment.layered.push(Layer {
            lower: policy.workspace.to_path_buf(),
            upper: changes.join("changes"),
            work: changes.join("work"),
            required: true,
        });
        (containment.forwarded, containment.asked) = policy.loopback();
        // The line that was judged in place of the command needs none.
        containment.sockets.clone_from(&self.home.sockets);
        let ran = sandbox::run_connected(containment, policy.clone())(command).await;
        sandbox_folders::remove(&self.home, &[run]);
        ran.map_err(|error| Failure::failed("the command did not run").because(&error))
    }
}

fn place<'a>(run: RunId, workspace: &'a Path, allowed: &'a RunSandbox) -> CallPlace<'a> {
    CallPlace {
        run,
        workspace,
        agent: DEFAULT_AGENT,
        mode: Mode::default(),
        skills: &[],
        sandbox: &allowed.options,
    }
}

impl TrialPolicy {
    fn under<T>(&self, ask: impl FnOnce(&Judgement<'_>) -> T) -> T {
        let trusted: Vec<&str> = self.allowed.trusted.iter().map(String::as_str).collect();
        ask(&Judgement {
            exposed: false,
            grants: &self.allowed.grants,
            trusted: &trusted,
            ..Judgement::outside_of_runs(&self.workspace)
        })
    }

    fn loopback(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let judged = self.under(|under| self.gate.forwarded(&self.call, &self.spec, under));
        let (allowed, asked): (Vec<_>, Vec<_>) = judged
            .into_iter()
            .partition(|(_, decision)| *decision == Decision::Allow);
        let addresses = |judged: Vec<_>| judged.into_iter().map(|(at, _)| at).collect();
        (addresses(allowed), addresses(asked))
    }
}

impl ConnectionPolicy for TrialPolicy {
    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        let verdict = self.under(|under| {
            self.gate
                .judge_destination(to, &self.call, &self.spec, under)
        });
        let decided = if verdict.decision == Decision::Allow {
            Ok(())
        } else {
            let why = verdict.reasons.join("; ");
            (self.refused)(&why);
            Err(why)
        };
        Box::pin(std::future::ready(decided))
    }
}
