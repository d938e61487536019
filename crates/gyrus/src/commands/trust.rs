//! `gyrus trust`

use std::path::PathBuf;

use clap::Args;
use gyrus::runtime::Guidelines;
use gyrus_text::{counted, visible};

use crate::{
    Gyrus, agent_files, agreement, exit::Code, failure::Failure, hooks::ProjectHooks, inside_run,
    new_run,
};
use gyrus_surfaces::console::put;

/// Let runs follow the guidelines of a folder (AGENTS.md or CLAUDE.md) and its roles, and run its hooks
///
/// Before that, runs read the guidelines as data, and neither roles of `.claude/agents` nor hooks of
/// `.claude/settings.json` and `.gyrus/hooks.json` are used. It holds for the content as it is now; to take it back: gyrus
/// approvals.
#[derive(Args)]
pub(crate) struct TrustCommand {
    /// The folder that runs work in (default: the current one)
    folder: Option<PathBuf>,
    /// Runs shall read the guidelines as data and not use the roles, and nobody is asked again
    #[arg(long)]
    as_data: bool,
    /// The hooks shall not be run, and nobody is asked again
    #[arg(long)]
    no_hooks: bool,
}

impl TrustCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("trust guidelines")?;
        let home = gyrus.home()?;
        let workspace = new_run::workspace(&home, self.folder.as_deref()).map_err(|failure| {
            failure.hint("name the folder that runs work in: gyrus trust FOLDER")
        })?;
        let shown = visible(&workspace.display().to_string()).into_owned();
        let found = Guidelines::find(&workspace);
        let place = (gyrus, &home, &*workspace);
        let hooks = ProjectHooks::read(&workspace)
            .map_err(|why| Failure::usage("the hooks of this folder cannot be used").hint(why))?;
        let (roles, _) = agent_files::proposed_roles(&workspace);
        if found.is_none() && hooks.is_none() && roles.is_empty() {
            let what = format!("there are no guidelines, roles or hooks in {shown}");
            let hint = "guidelines stand in AGENTS.md or CLAUDE.md, hooks in .claude/settings.json";
            return Err(Failure::usage(what).hint(hint));
        }
        if let Some(found) = found {
            agreement::say(place, |follow| found.grant(follow), !self.as_data)?;
            let do_with = if self.as_data {
                "read as data by runs"
            } else {
                "followed by runs"
            };
            put(&format!(
                "{} ({}) is {do_with} in {shown}, as long as it stays as it is\n",
                visible(&found.path.display().to_string()),
                counted(found.text.lines().count(), "line"),
            ))?;
        }
        if !roles.is_empty() {
            let grant = |follow| agent_files::grant_of_roles(&roles, follow);
            agreement::say(place, grant, !self.as_data)?;
            let are = if self.as_data { "not used" } else { "used" };
            let names: Vec<&str> = roles.keys().map(String::as_str).collect();
            let names = names.join(", ");
            put(&format!(
                "roles of .claude/agents that are {are} in {shown}, as long as they stay as they are: {names}\n"
            ))?;
        }
        if let Some(hooks) = hooks {
            agreement::say(place, |agreed| hooks.grant(agreed), !self.no_hooks)?;
            let are = if self.no_hooks { "are not" } else { "are" };
            put(&format!(
                "these hooks {are} run in {shown}, in the sandbox, as long as they stay as they are:\n{}",
                hooks.in_words()
            ))?;
        }
        Ok(Code::Reached)
    }
}
