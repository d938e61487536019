//! Tools that join a run at the start of a cycle: of servers that were late, or that got new ones.
//!
//! Each addition is an entry, and the state of a cycle names all before it; so the tools that a
//! model is offered, and that a call finds, follow from the journal. A tool never takes the place
//! of another, and none that a run has changes: what a person allowed stays what it was.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{Arguments, EffectId, FindToolsCall, LateTools, Tool, ToolSpec};

use crate::{Entry, Inline, Stop, ToolsAdded, core::Core};

/// Maximum number of additions to one run. Servers may announce changes without end.
const MAX_ADDITIONS: usize = 16;

/// Maximum number of tools that join one run.
const MAX_TOOLS: usize = 1_000;

impl Core {
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let own = self.kernel.organs().tools.get(name).cloned();
        own.or_else(|| self.tools.joined(name))
    }

    /// Returns the specifications of all tools that a call can name, by name.
    pub(crate) fn callable(&self) -> BTreeMap<String, ToolSpec> {
        let own = self.kernel.organs().tools.values().cloned();
        let all = own.chain(self.tools.all_joined());
        all.map(|tool| (tool.spec().name.clone(), tool.spec().clone()))
            .collect()
    }

    /// Restores the tools that joined before the present cycle.
    pub(crate) fn restore_tools(&self) -> Result<(), Stop> {
        let joined = self.shared().state.added_tools.clone();
        for specs in joined {
            self.join(&specs.load(&self.log)?);
        }
        Ok(())
    }

    fn late(&self) -> Option<Arc<dyn LateTools>> {
        self.kernel.organs().late_tools.clone()
    }

    /// Adds recorded tools to the run, whether their servers are there or not.
    fn join(&self, specs: &[Arc<ToolSpec>]) {
        let Some(late) = self.late() else { return };
        let tools = specs.iter().filter(|spec| self.tool(&spec.name).is_none());
        let tools = tools.filter_map(|spec| late.recorded(ToolSpec::clone(spec)));
        self.tools.join(tools.collect());
    }
}

/// Adds tools at the start of a cycle: those that are recorded, or, if it is live, those that are
/// there now. Their descriptions are untrusted text.
pub(crate) async fn join(
    core: &Core,
    start: &EffectId,
    recorded: Vec<ToolsAdded>,
    is_live: bool,
) -> Result<(), Stop> {
    let mut added = recorded;
    if is_live {
        added.extend(arrived(core, start).await?);
    }
    for ToolsAdded { tools, .. } in added {
        core.join(&tools.load(&core.log)?);
        core.shared().state.added_tools.push(tools);
        core.expose();
    }
    Ok(())
}

/// Records the tools that are there now and that the run lacks.
async fn arrived(core: &Core, start: &EffectId) -> Result<Option<ToolsAdded>, Stop> {
    let Some(late) = core.late() else {
        return Ok(None);
    };
    let before = core.shared().state.added_tools.len();
    let room = MAX_TOOLS.saturating_sub(core.tools.all_joined().len());
    if before >= MAX_ADDITIONS || room == 0 {
        return Ok(None);
    }
    let allowed = |spec: &ToolSpec| {
        let mut skills = core.started.skills.iter();
        skills.all(|skill| skill.allows(spec))
    };
    let is_new = |tool: &Arc<dyn Tool>| {
        let spec = tool.spec();
        let is_of_servers = spec.is_served() || spec.name == FindToolsCall::TOOL;
        is_of_servers && core.tool(&spec.name).is_none() && allowed(spec)
    };
    let present = late.present().await;
    let new = present.into_iter().filter(is_new).take(room);
    let new: Vec<_> = new.map(|tool| Arc::new(tool.spec().clone())).collect();
    if new.is_empty() {
        return Ok(None);
    }
    let added = ToolsAdded {
        effect: start.clone(),
        names: new.iter().map(|spec| spec.name.clone()).collect(),
        tools: Inline::store(&new, &core.log)?,
    };
    core.log.append(Entry::from(added.clone()))?;
    Ok(Some(added))
}
