//! The tools of a run, whose number may grow between two cycles.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{Tool, ToolSpec};
use parking_lot::RwLock;

/// The tools of a run: those that it began with, and those that joined it.
pub(crate) struct RunTools {
    present: RwLock<PresentTools>,
}

#[derive(Clone)]
struct PresentTools {
    specs: Arc<Vec<Arc<ToolSpec>>>,
    joined: BTreeMap<String, Arc<dyn Tool>>,
}

impl RunTools {
    pub(crate) fn new(specs: Vec<Arc<ToolSpec>>) -> Self {
        Self {
            present: RwLock::new(PresentTools {
                specs: Arc::new(specs),
                joined: BTreeMap::new(),
            }),
        }
    }

    /// Returns the specifications, by name.
    pub(crate) fn specs(&self) -> Arc<Vec<Arc<ToolSpec>>> {
        self.read().specs
    }

    pub(crate) fn joined(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.read().joined.get(name).cloned()
    }

    pub(crate) fn all_joined(&self) -> Vec<Arc<dyn Tool>> {
        self.read().joined.into_values().collect()
    }

    fn read(&self) -> PresentTools {
        let present = self.present.read();
        present.clone()
    }

    pub(crate) fn join(&self, tools: Vec<Arc<dyn Tool>>) {
        let mut present = self.present.write();
        let mut specs = present.specs.to_vec();
        for tool in tools {
            let name = tool.spec().name.clone();
            specs.push(Arc::new(tool.spec().clone()));
            present.joined.insert(name, tool);
        }
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        present.specs = Arc::new(specs);
    }
}
