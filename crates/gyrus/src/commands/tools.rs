//! `gyrus tools`

use std::sync::Arc;

use clap::Args;
use gyrus::runtime::{self, Confinement, Home};
use gyrus_contract::{OnAsk, Repeat, ToolSpec, Touch};
use gyrus_text::wrap;
use gyrus_tools::ToolRegistry;
use serde_json::json;

use super::listing::ListFlags;
use crate::{
    Gyrus, browser, drive,
    exit::Code,
    failure::Failure,
    mcp::{ServerSet, StartSurroundings},
    new_run, web_search,
};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Columns of a description in a wide terminal.
const WIDEST: usize = 100;

/// List what runs can do
#[derive(Args)]
pub(crate) struct ToolsCommand {
    #[command(flatten)]
    flags: ListFlags,
}

impl ToolsCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let mut out = output::standard();
        let painter = Painter::new(&out, gyrus.environment.plain);
        let home = gyrus.home()?;
        let screen = browser::BrowserOptions::default().browser(&home);
        let of_screen = gyrus_screen::tools(&screen);
        let mut specs = ToolRegistry::builtin().specs();
        let of_memory = runtime::memory_tools(&home);
        specs.extend(of_memory.iter().map(|tool| tool.spec().clone().into()));
        let of_search = web_search::configured(&gyrus.config()?)?;
        specs.extend(of_search.iter().map(|tool| tool.spec().clone().into()));
        specs.extend(of_screen.iter().map(|tool| tool.spec().clone().into()));
        specs.extend(served(gyrus, &home)?);
        for spec in specs {
            let item = json!({
                "tool": spec.name,
                "description": spec.description,
                "touches": spec.touches.iter().map(Touch::in_words).collect::<Vec<_>>(),
                "repeat": spec.repeat,
                "parameters": spec.parameters,
            });
            if !self.flags.shows(&mut out, &item)? {
                continue;
            }
            let touches: Vec<&str> = spec.touches.iter().map(Touch::in_words).collect();
            let touches = if touches.is_empty() {
                "touches nothing".to_owned()
            } else {
                touches.join(", ")
            };
            let repeat = match spec.repeat {
                Repeat::Freely => "repeated after a crash",
                Repeat::Probe => "looked up after a crash",
                Repeat::Never => "never repeated after a crash",
            };
            writeln!(
                out,
                "{}  {}",
                painter.paint(Tone::Call, &spec.name),
                painter.paint(Tone::Aside, &format!("{touches}; {repeat}"))
            )?;
            for line in wrap(&spec.description, painter.columns.min(WIDEST) - 4) {
                writeln!(out, "    {line}")?;
            }
        }
        Ok(Code::Reached)
    }
}

/// Returns the tools of the servers that are configured for this folder.
fn served(gyrus: &Gyrus, home: &Home) -> Result<Vec<Arc<ToolSpec>>, Failure> {
    let workspace = match new_run::workspace(home, None) {
        Ok(workspace) => workspace,
        // Where no run can work, none has tools of servers.
        Err(_) => return Ok(Vec::new()),
    };
    let config = gyrus.config()?;
    drive::runtime()?.block_on(async {
        let mut connected = ServerSet::start(&StartSurroundings {
            home,
            config: &config,
            workspace: &workspace,
            confinement: Confinement::Sandboxed,
            on_ask: OnAsk::Deny,
        })?;
        let tools = connected.tools().await?;
        connected.leave().await;
        let specs = tools.tools.iter().map(|tool| tool.spec().clone().into());
        Ok(specs.collect())
    })
}
