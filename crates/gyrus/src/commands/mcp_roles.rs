//! `gyrus mcp roles`: a person says what a server's tools do, and what their arguments stand for.

use clap::Args;
use gyrus_contract::{Digest, Service, ToolSpec, Touch};
use gyrus_gate::{ConfirmedTool, Meanings, ServerMeanings, propose};
use gyrus_surfaces::output;
use gyrus_text::one_line;
use serde_json::json;

use super::roles::{MeaningOrigin, RoleList, RoleRow, correct, forget};
use crate::{drive, exit::Code, failure::Failure, mcp};

/// Say what a server's tools do and what their arguments stand for, so that calls can be judged
///
/// It proposes that from names and schemas, and shows it in one list: read it, correct it, and say
/// yes. A tool that its server describes otherwise later has no roles any more.
#[derive(Args)]
pub(crate) struct Roles {
    /// The server's name
    name: String,
    /// A correction: `TOOL=ACTION` or `TOOL.ARGUMENT=ROLE`
    ///
    /// Actions are reads, creates, changes, sends, pays and deletes. Roles are to (where something
    /// goes), name (one of your own things), page (an address that is asked), password, text,
    /// amount, option (goes nowhere), and none (a place, as everything that nobody described).
    #[arg(long = "set", value_name = "CORRECTION")]
    corrections: Vec<String>,
    /// Say yes beforehand to the list of this digest, as it is shown without it
    #[arg(long, value_name = "DIGEST")]
    content: Option<String>,
    /// Forget what you said of this server
    #[arg(long, conflicts_with_all = ["corrections", "content"])]
    forget: bool,
    /// Print JSON, and confirm nothing
    #[arg(long, conflicts_with = "forget")]
    json: bool,
}

impl Roles {
    pub(super) fn execute(
        self,
        around: &mcp::StartSurroundings<'_>,
        plain: bool,
    ) -> Result<Code, Failure> {
        let folder = around.home.policy_files(around.workspace).meanings();
        let file = Meanings::file(&folder, &self.name);
        if self.forget {
            let what = format!("every call of `{}` is asked about", one_line(&self.name));
            return forget(&file, &what);
        }
        let known = Meanings::read(&folder).map_err(|error| Failure::usage(error.to_string()))?;
        let specs = drive::runtime()?.block_on(mcp::tools_of(around, &self.name))?;
        let setup = specs
            .iter()
            .flat_map(|spec| &spec.touches)
            .find_map(|touch| touch.service()?.setup);
        let Some(setup) = setup else {
            return Err(Failure::usage(format!(
                "the server `{}` has no tools",
                one_line(&self.name)
            )));
        };
        let known = known
            .of_server(&self.name)
            .filter(|known| known.setup == setup);
        let rows = specs.into_iter().filter_map(|spec| row(spec, known));
        let (services, mut rows): (Vec<Service>, Vec<RoleRow>) = rows.unzip();
        for correction in &self.corrections {
            correct(&mut rows, correction)?;
        }
        let wanted = meanings(setup, &services, &rows);
        let text = wanted
            .to_text()
            .map_err(|error| Failure::failed(error.to_string()))?;
        let list = RoleList {
            heading: format!(
                "What the tools of `{}` do, and what their arguments are:",
                self.name
            ),
            rows: &rows,
            one: "tool",
            text,
            file: &file,
            is_confirmed: known == Some(&wanted),
            command: format!("gyrus mcp roles {}", self.name),
            corrections: &self.corrections,
            given: self.content.as_deref(),
        };
        if self.json {
            let content = list.content();
            let shown = json!({"server": self.name, "content": content, "tools": wanted.tools});
            output::standard().json(&shown)?;
            return Ok(Code::Reached);
        }
        list.confirm(plain)
    }
}

fn row(spec: ToolSpec, known: Option<&ServerMeanings>) -> Option<(Service, RoleRow)> {
    let service = spec.touches.iter().find_map(Touch::service)?.clone();
    let confirmed = known.and_then(|known| known.tools.get(&service.tool));
    let (meaning, why) = match confirmed {
        Some(tool) if tool.definition == service.definition => {
            (tool.meaning(), MeaningOrigin::Confirmed)
        }
        Some(_) => (propose(&spec), MeaningOrigin::Changed),
        None => (propose(&spec), MeaningOrigin::Proposed),
    };
    let row = RoleRow {
        name: service.tool.clone(),
        parameters: spec.parameters,
        meaning,
        why,
        about: Vec::new(),
    };
    Some((service, row))
}

fn meanings(setup: Digest, services: &[Service], rows: &[RoleRow]) -> ServerMeanings {
    let tools = services.iter().zip(rows).map(|(service, row)| {
        let tool = ConfirmedTool {
            definition: service.definition,
            action: row.meaning.action,
            arguments: row.meaning.arguments.clone(),
        };
        (service.tool.clone(), tool)
    });
    ServerMeanings {
        setup,
        tools: tools.collect(),
    }
}
