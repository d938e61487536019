//! `gyrus agents`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gyrus_runtime::triggers::HookSecret;
use gyrus_server::agents_on_disk;
use gyrus_surfaces::{console::put, output};
use gyrus_text::{counted, one_line};
use serde_json::{Value, json};

use super::listing::ListFlags;
use crate::{
    Gyrus,
    agent_files::{self, AgentFileResult},
    drive,
    exit::Code,
    failure::Failure,
    inside_run,
    serve::{client::ServerLocation, listen},
    setup,
};

/// List the agents that live in the server, pause them, and tell them something
///
/// An agent is a file in the folder `agents` of the configuration: settings in YAML between two
/// lines of `---`, and what it is to do with each event below them.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArguments {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum AgentsCommand {
    /// List agents
    List(ListFlags),
    /// Print everything about an agent as JSON
    Show {
        /// The agent
        name: String,
    },
    /// Let an agent's events wait; the one in progress is finished
    Pause {
        /// The agent
        name: String,
        /// Reason, for whoever looks at it
        #[arg(long, value_name = "WORDS")]
        why: Option<String>,
    },
    /// Go on with an agent that is paused or quarantined, and with its paused triggers
    Resume {
        /// The agent
        name: String,
    },
    /// Give up the first event that waits for an agent
    Skip {
        /// The agent
        name: String,
    },
    /// Tell an agent something, which it makes a run of
    Send {
        /// The agent
        name: String,
        /// Text to tell it
        text: String,
    },
    /// Fire a trigger of an agent by hand, whatever its conditions, pauses and budgets say
    Fire {
        /// The agent
        name: String,
        /// The trigger
        trigger: String,
    },
    /// Make and store a secret for webhooks, and print it once
    ///
    /// The sender gets it too. A server takes it when an agent file changes, or when it starts.
    Secret {
        /// Name that agent files give in `webhook`, like BUILD_HOOK
        variable: String,
    },
    /// Say what is wrong with agent files
    Check {
        /// File to check (default: all in the folder)
        file: Option<PathBuf>,
    },
}

impl AgentsArguments {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            None => list(gyrus, &self.list),
            Some(AgentsCommand::List(flags)) => list(gyrus, &flags),
            Some(AgentsCommand::Show { name }) => show(gyrus, &name),
            Some(AgentsCommand::Check { file }) => check(gyrus, file),
            Some(AgentsCommand::Pause { name, why }) => {
                tell(gyrus, &name, "pause", &json!({"why": why}))
            }
            Some(AgentsCommand::Resume { name }) => tell(gyrus, &name, "resume", &json!({})),
            Some(AgentsCommand::Fire { name, trigger }) => fire(gyrus, &name, &trigger),
            Some(AgentsCommand::Secret { variable }) => secret(gyrus, &variable),
            Some(AgentsCommand::Skip { name }) => tell(gyrus, &name, "skip", &json!({})),
            Some(AgentsCommand::Send { name, text }) => {
                tell(gyrus, &name, "inbox", &json!({"text": text}))
            }
        }
    }
}

/// Returns the agents, from the server if there is one, else from their logs.
fn all(gyrus: &Gyrus) -> Result<Vec<Value>, Failure> {
    let home = gyrus.home()?;
    let listed = drive::runtime()?.block_on(async {
        if listen::connect(&home).await.is_err() {
            return Ok(None);
        }
        ServerLocation::of(&home).get("/api/agents").await.map(Some)
    })?;
    if let Some(Value::Array(agents)) = listed {
        return Ok(agents);
    }
    let agents =
        agents_on_disk(&home.store()?).map_err(|error| Failure::failed(error.message()))?;
    Ok(agents.into_iter().map(|agent| json!(agent)).collect())
}

fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let mut out = output::standard();
    let agents = all(gyrus)?;
    for agent in &agents {
        if !flags.shows(&mut out, agent)? {
            continue;
        }
        let text = |key: &str| one_line(agent[key].as_str().unwrap_or_default()).into_owned();
        let number = |key: &str| agent[key].as_u64().unwrap_or_default();
        let why = match text("why") {
            why if why.is_empty() => why,
            why => format!(": {why}"),
        };
        writeln!(out, "{}  {}{why}", text("name"), text("stage"))?;
        let waiting = usize::try_from(number("waiting")).unwrap_or(usize::MAX);
        let runs = usize::try_from(number("runs_today")).unwrap_or(usize::MAX);
        writeln!(
            out,
            "  {} waiting; today {}, {} tokens, ${:.2}",
            counted(waiting, "event"),
            counted(runs, "run"),
            number("tokens_today"),
            number("cost_microdollars_today") as f64 / 1e6,
        )?;
        if agent["last_summary"].is_string() {
            writeln!(out, "  last: {}", text("last_summary"))?;
        }
        for trigger in agent["triggers"].as_array().into_iter().flatten() {
            writeln!(out, "  {}", trigger_line(trigger))?;
        }
    }
    if agents.is_empty() && !flags.json {
        let folder = agent_files::folder(&gyrus.home()?);
        writeln!(
            out,
            "there are no agents; write one: {}",
            folder.join("NAME.md").display()
        )?;
    }
    let invalid = read_all(gyrus)?
        .iter()
        .filter(|one| one.agent.is_err())
        .count();
    if invalid > 0 {
        let files = counted(invalid, "agent file");
        put(&format!("{files} cannot be used: gyrus agents check\n"))?;
    }
    Ok(Code::Reached)
}

fn trigger_line(trigger: &Value) -> String {
    let text = |key: &str| {
        trigger[key]
            .as_str()
            .map(|text| one_line(text).into_owned())
    };
    let number = |key: &str| {
        trigger[key]
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
    };
    let name = text("name").unwrap_or_default();
    let kind = text("kind")
        .map(|kind| format!(" ({kind})"))
        .unwrap_or_default();
    let wakes = counted(number("wakes_today").unwrap_or(0), "wake");
    let mut line = format!("trigger {name}{kind}: {wakes} today");
    if let Some(next) = trigger["next_ms"].as_i64() {
        line.push_str(&format!("; next {}", gyrus_text::utc(next)));
    }
    if let Some(last) = trigger["last_ms"].as_i64() {
        let result = text("last_result").unwrap_or_else(|| "no end yet".to_owned());
        line.push_str(&format!("; last {}, {result}", gyrus_text::utc(last)));
    }
    let held: Vec<String> = trigger["held"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(why, count)| format!("{count} {}", why.replace('_', " ")))
        .collect();
    if !held.is_empty() {
        line.push_str(&format!("; did not fire: {}", held.join(", ")));
    }
    for (key, word) in [("paused", "paused"), ("problem", "cannot fire")] {
        if let Some(why) = text(key) {
            line.push_str(&format!("; {word}: {why}"));
        }
    }
    line
}

fn fire(gyrus: &Gyrus, name: &str, trigger: &str) -> Result<Code, Failure> {
    if gyrus_runtime::agents::Agents::check_name(trigger).is_err() {
        let error = format!("the agent `{name}` has no trigger `{trigger}`");
        return Err(Failure::usage(error).hint("see the list: gyrus agents"));
    }
    tell(gyrus, name, &format!("triggers/{trigger}/fire"), &json!({}))
}

fn secret(gyrus: &Gyrus, variable: &str) -> Result<Code, Failure> {
    inside_run::refuse("make secrets")?;
    if !agent_files::is_variable(variable) {
        let error = format!("invalid name `{variable}` of a secret");
        return Err(Failure::usage(error).hint("write it like BUILD_HOOK"));
    }
    let secret = HookSecret::random().map_err(Failure::failed)?;
    let path = setup::store_secret(&gyrus.home()?, variable, &secret)?;
    writeln!(output::standard(), "{secret}")?;
    put(&format!(
        "it is not shown again; it is in {}\n",
        path.display()
    ))?;
    Ok(Code::Reached)
}

fn show(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    let agents = all(gyrus)?;
    let shown = agents.into_iter().find(|agent| agent["name"] == name);
    let shown = shown.ok_or_else(|| {
        Failure::usage(format!("there is no agent `{name}`")).hint("see the list: gyrus agents")
    })?;
    let home = gyrus.home()?;
    let detail = drive::runtime()?.block_on(async {
        if listen::connect(&home).await.is_err() {
            return Ok(shown);
        }
        ServerLocation::of(&home)
            .get(&format!("/api/agents/{name}"))
            .await
    })?;
    output::standard().json(&detail)?;
    Ok(Code::Reached)
}

fn tell(gyrus: &Gyrus, name: &str, what: &str, body: &Value) -> Result<Code, Failure> {
    inside_run::refuse("tell agents what to do")?;
    if gyrus_runtime::agents::Agents::check_name(name).is_err() {
        return Err(Failure::usage(format!("there is no agent `{name}`")));
    }
    let server = ServerLocation::of(&gyrus.home()?);
    let path = format!("/api/agents/{name}/{what}");
    drive::runtime()?.block_on(server.post(&path, body))?;
    Ok(Code::Reached)
}

fn read_all(gyrus: &Gyrus) -> Result<Vec<AgentFileResult>, Failure> {
    agent_files::read_all(gyrus, &gyrus.home()?)
        .map_err(|error| Failure::usage("the agent files cannot be read").because(&error))
}

fn check(gyrus: &Gyrus, file: Option<PathBuf>) -> Result<Code, Failure> {
    let readings = match file {
        Some(path) => vec![AgentFileResult {
            agent: agent_files::read(gyrus, &gyrus.home()?, &path),
            path,
        }],
        None => read_all(gyrus)?,
    };
    let mut out = output::standard();
    let mut mistakes = 0;
    for AgentFileResult { path, agent } in &readings {
        for mistake in agent.as_ref().err().into_iter().flatten() {
            let text = format!("{}, {mistake}", path.display());
            writeln!(out, "{}", one_line(&text))?;
            mistakes += 1;
        }
    }
    if mistakes > 0 {
        let mistakes = counted(mistakes, "mistake");
        return Err(Failure::usage(format!("{mistakes} in agent files")));
    }
    put(&format!("{} fine\n", counted(readings.len(), "agent file")))?;
    for remark in agent_files::remarks(gyrus, &readings) {
        put(&format!("{}\n", one_line(&remark)))?;
    }
    Ok(Code::Reached)
}
