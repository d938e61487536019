//! The rules of runs: grants, the policy, and what the gate would say.

use std::{path::PathBuf, sync::Arc};

use axum::{extract::State, response::Html};
use gyrus_contract::{Mode, Risk};
use gyrus_surfaces::page::whole_text;
use gyrus_text::counted;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{
    forms::typed,
    frame::{NavigationPlace, age},
};
use crate::{
    api::{
        rules::{self, GateAnswer, GateQuestion, GrantView},
        runs::blocking,
    },
    app::App,
    error::{ApiError, ErrorBody},
    extract::{ApiForm, ApiQuery},
    surroundings::{PolicyFileView, ServerSettings},
};

/// Maximum number of characters of a policy that are shown.
const POLICY: usize = 20_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RulesPart {
    workdir: String,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    ApiQuery(part): ApiQuery<RulesPart>,
) -> Result<Html<String>, ApiError> {
    let question = RuleQuestion {
        workdir: part.workdir,
        ..RuleQuestion::default()
    };
    page(app, question, None).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RuleQuestion {
    command: String,
    workdir: String,
    mode: String,
}

pub(super) async fn ask(
    State(app): State<Arc<App>>,
    ApiForm(question): ApiForm<RuleQuestion>,
) -> Result<Html<String>, ApiError> {
    let asked = GateQuestion {
        command: question.command.replace("\r\n", "\n"),
        workdir: question.workdir.trim().into(),
        mode: typed(question.mode.clone()),
        agent: None,
    };
    let answer = rules::asked(&app, asked).await;
    page(app, question, Some(answer.map_err(|error| error.body))).await
}

async fn page(
    app: Arc<App>,
    question: RuleQuestion,
    answer: Option<Result<GateAnswer, ErrorBody>>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let folder = typed(question.workdir.clone()).map(|folder| PathBuf::from(folder.trim()));
        let (set, wrong) = match rules::configured(&app, folder.as_deref()) {
            Ok(set) => (Ok(set), None),
            Err(error) => (app.program.configured(None), Some(error.body)),
        };
        let set = set?;
        let main = html! {
            div.heading { h1 { "Rules" } p.aside { "runs that say nothing else begin in the mode "
                b { (set.mode) } } }
            @if let Some(problem) = &set.problem {
                p.failed role="alert" { code { (set.config.display()) } ": " (problem) }
            }
            (gate(&app, &question, answer.as_ref()))
            section #grants data-live { (grants(&rules::all(&app)?)) }
            (policies(&set, &question.workdir, wrong.as_ref().filter(|_| answer.is_none())))
            (models(&set))
        };
        Ok(NavigationPlace::Rules.page(&app, "Rules", &main))
    })
    .await
}

fn gate(
    app: &App,
    question: &RuleQuestion,
    answer: Option<&Result<GateAnswer, ErrorBody>>,
) -> Markup {
    let mode = if question.mode.is_empty() {
        Mode::default().to_string()
    } else {
        question.mode.clone()
    };
    let folders = gyrus_kernel::Register::read(&app.store)
        .unwrap_or_default()
        .workspaces(20);
    let folder = if question.workdir.is_empty() {
        let first = folders.first().map(|folder| folder.display().to_string());
        first.unwrap_or_default()
    } else {
        question.workdir.clone()
    };
    html! {
        section #gate {
            h2 { "What would the gate say to …" }
            form.gate method="post" action="/rules/gate" {
                label.wide { "Command line"
                    textarea name="command" rows="2" required spellcheck="false" { (question.command) } }
                label.wide { "Folder that the run would work in"
                    input name="workdir" required value=(folder) list="folders" autocomplete="off" spellcheck="false"; }
                datalist #folders { @for folder in &folders { option value=(folder.display()) {} } }
                label { "Mode" select name="mode" {
                    @for (_, name) in Mode::ALL { option value=(name) selected[*name == mode] { (name) } }
                } }
                button.primary { "Ask" }
            }
            @match answer {
                Some(Ok(answer)) => (verdict(answer)),
                Some(Err(error)) => {
                    p.failed role="alert" { (error.error) }
                    @if let Some(hint) = &error.hint { p { (hint) } }
                },
                None => {},
            }
        }
    }
}

fn verdict(answer: &GateAnswer) -> Markup {
    let (class, decision) = match answer.decision.as_str() {
        "allow" => ("good", "allowed without asking"),
        "ask" => ("ask", "a person is asked"),
        "deny" => ("deny", "denied"),
        other => ("ask", other),
    };
    let risk = match answer.risk {
        Risk::Safe => "no risk",
        Risk::Moderate => "moderate risk",
        Risk::High => "high risk",
        Risk::Critical => "critical risk",
    };
    let facts = answer.parse["facts"].as_array();
    html! {
        div.gate-answer class=(class) role="status" {
            p { b { (decision) } ", " (risk) }
            ul { @for reason in &answer.reasons { li { (reason) } } }
            p.aside { @match &answer.containment {
                None => "It would run with your own rights, in no sandbox.",
                Some(sandbox) => {
                    "It would run in the sandbox: "
                    @if sandbox.writable.is_empty() { "it changes nothing, " }
                    @else {
                        "it changes only "
                        @for path in &sandbox.writable { code { (path.display()) } ", " }
                    }
                    @match sandbox.network.as_str() {
                        "none" => "has no network,",
                        "proxy" => "each connection is judged when it is made,",
                        _ => "has the network,",
                    }
                    " and " (counted(sandbox.hidden, "place")) " with keys and secrets are hidden."
                },
            } }
            @if let Some(facts) = facts.filter(|facts| !facts.is_empty()) {
                details { summary { "How the line was understood" }
                    ul { @for fact in facts {
                        li { code { (text(&fact["part"])) } ": " (text(&fact["why"])) }
                    } }
                }
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn grants(grants: &[GrantView]) -> Markup {
    html! {
        h2 { "Always allowed" }
        @if grants.is_empty() {
            p.nothing { "Nothing is always allowed. \"Yes, always in this folder\" on a question adds to this." }
        } @else {
            div.scrolls tabindex="0" role="group" aria-label="Grants" { table.grid {
                thead { tr {
                    th scope="col" { "Allowed" } th scope="col" { "In the folder" }
                    th scope="col" { "By" } th scope="col" { "Since" }
                    th scope="col" { span.said { "Revoke" } }
                } }
                tbody { @for grant in grants { tr {
                    td.name { (grant.grant) }
                    td.name { code { (grant.workspace.display()) } }
                    td { (grant.by) " (" (grant.surface) ")" }
                    td { (age(grant.given_ms)) }
                    td { form method="post" action={ "/rules/grants/" (grant.id) "/revoke" } {
                        button.danger aria-label={ "Revoke: " (grant.grant) } { "Revoke" }
                    } }
                } } }
            } }
            p.aside { "A run reads them when it begins. When a grant was last used is not recorded." }
        }
    }
}

fn policies(set: &ServerSettings, workdir: &str, wrong: Option<&ErrorBody>) -> Markup {
    html! {
        section #policy {
            h2 { "Policy in force" }
            form.filters method="get" action="/rules" {
                label.wide { "For runs in the folder"
                    input name="workdir" value=(workdir) placeholder="any folder without a policy of its own" autocomplete="off"; }
                button { "Show" }
            }
            @if let Some(wrong) = wrong { p.failed role="alert" { (wrong.error) } }
            @for file in &set.policies { (policy(file)) }
        }
    }
}

fn policy(file: &PolicyFileView) -> Markup {
    let whose = if file.may_loosen {
        "Yours; it may allow more than what holds without it."
    } else {
        "The project's; it may only forbid more."
    };
    html! {
        div.policy {
            p { b { code { (file.path.display()) } } " " span.aside { (whose) } }
            @if let Some(problem) = &file.problem {
                p.failed role="alert" { "No run begins until this is fixed: " (problem) }
            }
            @match &file.text {
                None if file.may_loosen => p.aside { "There is no such file, so what comes with gyrus holds." },
                None => p.aside { "There is no such file." },
                Some(text) => div.untrusted tabindex="0" role="group" aria-label="Policy" {
                    (whole_text(gyrus_text::first_chars(text, POLICY)))
                },
            }
        }
    }
}

fn models(set: &ServerSettings) -> Markup {
    html! {
        section #models {
            h2 { "Models" }
            @if set.models.is_empty() {
                p.aside { "None is configured; a run takes the first that is found. " code { "gyrus models" } " lists them." }
            } @else {
                ol.names { @for model in &set.models { li { code { (model) } } } }
                p.aside { "as " code { (set.config.display()) } " and the environment say. " code { "gyrus models check" } " tries them." }
            }
            h2 { "Servers of tools" }
            @if set.tool_servers.is_empty() { p.aside { "None is configured." } }
            @else {
                table.grid { thead { tr { th scope="col" { "Name" } th scope="col" { "Starts or reaches" } th scope="col" { "From" } } }
                    tbody { @for server in &set.tool_servers { tr {
                        td { (server.name) } td.name { code { (server.starts) } }
                        td { @if server.of_project { ".mcp.json of the folder" } @else { "config.toml" } }
                    } } }
                }
                p.aside { code { "gyrus mcp list" } " starts each and lists its tools." }
            }
            @for note in &set.notes { p.warning { (note) } }
        }
    }
}
