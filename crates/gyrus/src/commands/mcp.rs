//! `gyrus mcp`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gyrus::runtime::{Confinement, Home};
use gyrus_contract::OnAsk;
use gyrus_mcp::{LeftOut, Offers, PROJECT_FILE, ProjectServers, ServerState};
use gyrus_text::{counted, visible, wrap};
use serde_json::{Value, json};

use gyrus_kernel::grants;

use super::{listing::ListFlags, mcp_login, mcp_roles::Roles};
use crate::{
    Gyrus,
    config::Config,
    drive,
    exit::Code,
    failure::Failure,
    inside_run,
    mcp::{self, ServerCandidates, ServerSet, ServerSource, ServerWish, StartSurroundings},
    new_run, serve, workdir,
};
use gyrus_surfaces::{
    console::Painter,
    console::put,
    output::{self, StandardOutput},
    projection::Tone,
    terminal,
};

/// Maximum number of resources of a server that are shown.
const SHOWN_RESOURCES: usize = 20;

/// Number of digits of a content's hash by which it is named.
const NAMED_BY: usize = 8;

/// See and try the servers whose tools runs have (Model Context Protocol)
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    verb: Option<McpVerb>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum McpVerb {
    /// Start all servers of this folder and list their tools
    List(ListFlags),
    /// Start one server and show everything that there is to know of it
    Test {
        /// Its name
        name: String,
    },
    /// Log in at a server that asks for it
    ///
    /// It shows an address to open in your browser, and waits until you have allowed it there. The
    /// tokens are kept beside your keys, and refreshed by themselves.
    Login {
        /// Its name
        name: String,
    },
    /// Delete the tokens of a server
    Logout {
        /// Its name
        name: String,
    },
    /// Allow the servers of the project's .mcp.json, as the file is now
    ///
    /// It shows what the file would start. If the file changes, its servers are not started until
    /// you allow it again.
    Allow {
        /// Say yes beforehand to the content of this digest, as `gyrus mcp list` shows it
        #[arg(long, value_name = "DIGEST")]
        content: Option<String>,
    },
    Roles(Roles),
    /// Let a client of this protocol start, follow and steer runs
    ///
    /// It speaks on standard input and output. The client may not answer what runs ask, unless the
    /// variable GYRUS_TOKEN holds a token with the scope `approve`: gyrus serve token NAME --scope
    /// read,act,approve. Its runs are parked when it goes. For several clients, and runs that go on
    /// without them: gyrus serve, and its address /mcp.
    Serve {
        /// Folder that its runs work in, or below
        #[arg(long, value_name = "FOLDER")]
        workdir: Option<PathBuf>,
    },
}

/// Places where this command looks for servers.
struct ServerPlaces {
    home: Home,
    config: Config,
    workspace: PathBuf,
}

impl ServerPlaces {
    fn around(&self) -> StartSurroundings<'_> {
        StartSurroundings {
            home: &self.home,
            config: &self.config,
            workspace: &self.workspace,
            confinement: Confinement::Sandboxed,
            on_ask: OnAsk::Deny,
        }
    }
}

impl Mcp {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("use your servers")?;
        let home = gyrus.home()?;
        // Only a server that is tried is started, and may change the folder.
        let starts = matches!(self.verb, Some(McpVerb::Test { .. }));
        let here = |home: Home| {
            let workspace = if starts {
                new_run::workspace(&home, None)?
            } else {
                workdir::here()?
            };
            Ok::<_, Failure>(ServerPlaces {
                workspace,
                config: gyrus.config()?,
                home,
            })
        };
        match self.verb.unwrap_or(McpVerb::List(self.list)) {
            McpVerb::List(flags) => list(gyrus, &here(home)?, &flags),
            McpVerb::Test { name } => test(gyrus, &here(home)?, &name),
            McpVerb::Login { name } => mcp_login::login(&here(home)?.around(), &name),
            McpVerb::Logout { name } => mcp_login::logout(&here(home)?.around(), &name),
            McpVerb::Allow { content } => allow(gyrus, &here(home)?, content.as_deref()),
            McpVerb::Roles(roles) => roles.execute(&here(home)?.around(), gyrus.environment.plain),
            McpVerb::Serve { workdir } => {
                serve::mcp::serve(gyrus, new_run::workspace(&home, workdir.as_deref())?)
            }
        }
    }
}

fn list(gyrus: &Gyrus, here: &ServerPlaces, flags: &ListFlags) -> Result<Code, Failure> {
    let around = here.around();
    let ServerCandidates { wanted, notes } = mcp::find(&around)?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    drive::runtime()?.block_on(async {
        let mut connected = ServerSet::start_these(&around, &wanted, notes)?;
        let states = connected.states(mcp::PATIENCE).await.clone();
        for server in &wanted {
            let state = states.get(&server.name);
            let offers = match state {
                Some(ServerState::Ready { .. }) => connected.offers(&server.name).await,
                Some(ServerState::Missing(_)) | None => Offers::default(),
            };
            let item = listed(server, state, &offers);
            if !flags.shows(&mut out, &item)? {
                continue;
            }
            head(&mut out, &painter, server)?;
            match states.get(&server.name) {
                Some(ServerState::Ready {
                    tools, left_out, ..
                }) => {
                    for tool in tools {
                        writeln!(out, "  {}", painter.paint(Tone::Call, &tool.name))?;
                    }
                    for left in left_out {
                        not_taken(&mut out, &painter, left)?;
                    }
                    for prompt in &offers.prompts {
                        let name = format!("/{}:{}", server.name, visible(&prompt.name));
                        writeln!(out, "  {}", painter.paint(Tone::Call, &name))?;
                    }
                    if !offers.resources.is_empty() {
                        let count = counted(offers.resources.len(), "resource");
                        writeln!(out, "  {}", painter.paint(Tone::Aside, &count))?;
                    }
                }
                Some(ServerState::Missing(why)) => bad(&mut out, &painter, why)?,
                None => {}
            }
        }
        if flags.json {
            connected.leave().await;
            return Ok(Code::Reached);
        }
        for note in connected.notes() {
            writeln!(out, "{}", visible(note))?;
        }
        if let Ok(Some(project)) = ProjectServers::read(&here.workspace) {
            let shown = short(&project);
            writeln!(out, "{PROJECT_FILE} has the content {shown}")?;
        }
        if wanted.is_empty() && connected.notes().is_empty() {
            let path = here.home.config.display();
            writeln!(out, "no servers; name one in {path}: [mcp.NAME]")?;
        }
        connected.leave().await;
        Ok(Code::Reached)
    })
}

/// Returns the tools, prompts and resources of a server, as JSON.
fn listed(server: &ServerWish, state: Option<&ServerState>, offers: &Offers) -> Value {
    let (tools, missing): (Vec<&str>, _) = match state {
        Some(ServerState::Ready { tools, .. }) => {
            (tools.iter().map(|tool| &*tool.name).collect(), None)
        }
        Some(ServerState::Missing(why)) => (Vec::new(), Some(why)),
        None => (Vec::new(), None),
    };
    let prompts: Vec<_> = offers.prompts.iter().map(|prompt| &prompt.name).collect();
    json!({
        "server": server.name,
        "tools": tools,
        "prompts": prompts,
        "resources": offers.resources.len(),
        "missing": missing,
    })
}

fn head(out: &mut StandardOutput, painter: &Painter, server: &ServerWish) -> Result<(), Failure> {
    let whose = match server.source {
        ServerSource::Person => "config.toml",
        ServerSource::Project => PROJECT_FILE,
        ServerSource::Plugin => "a plugin",
        ServerSource::Editor => "the editor",
    };
    let line = format!("{} ({whose})", server.section.shown());
    writeln!(
        out,
        "{}  {}",
        painter.paint(Tone::Strong, &server.name),
        painter.paint(Tone::Aside, &visible(&line))
    )?;
    Ok(())
}

fn bad(out: &mut StandardOutput, painter: &Painter, why: &str) -> Result<(), Failure> {
    let why = format!("not there: {}", visible(why));
    writeln!(out, "  {}", painter.paint(Tone::Bad, &why))?;
    Ok(())
}

fn not_taken(out: &mut StandardOutput, painter: &Painter, left: &LeftOut) -> Result<(), Failure> {
    let line = format!("left out: {}: {}", left.tool, left.why);
    let line = painter.paint(Tone::Bad, &visible(&line));
    writeln!(out, "  {line}")?;
    Ok(())
}

fn test(gyrus: &Gyrus, here: &ServerPlaces, name: &str) -> Result<Code, Failure> {
    let around = here.around();
    let ServerCandidates { wanted, notes } = mcp::find(&around)?;
    let Some(server) = wanted.into_iter().find(|server| server.name == name) else {
        return Err(mcp::no_such_server(name, &notes));
    };
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    head(&mut out, &painter, &server)?;
    drive::runtime()?.block_on(async {
        let mut connected = ServerSet::start_these(&around, &[server], Vec::new())?;
        let state = connected.states(mcp::PATIENCE).await.get(name).cloned();
        let notes = connected.notes().to_vec();
        let code = match state {
            Some(state) => {
                let code = tell(&mut out, &painter, &state)?;
                if code == Code::Reached {
                    let offers = connected.offers(name).await;
                    tell_offers(&mut out, &painter, (name, &offers))?;
                }
                code
            }
            None => {
                bad(&mut out, &painter, &notes.join("; "))?;
                Code::Failed
            }
        };
        connected.leave().await;
        Ok(code)
    })
}

fn tell(out: &mut StandardOutput, painter: &Painter, state: &ServerState) -> Result<Code, Failure> {
    let ServerState::Ready {
        about,
        tools,
        left_out,
        took,
    } = state
    else {
        if let ServerState::Missing(why) = state {
            bad(out, painter, why)?;
        }
        return Ok(Code::Failed);
    };
    writeln!(
        out,
        "  ready after {} ms: {}",
        took.as_millis(),
        visible(about)
    )?;
    for tool in tools {
        let destroys =
            tool.touches(|touch| touch.service().is_some_and(|service| service.destructive));
        let aside = if destroys {
            "it says that it destroys"
        } else {
            ""
        };
        writeln!(
            out,
            "  {}  {}",
            painter.paint(Tone::Call, &tool.name),
            painter.paint(Tone::Bad, aside)
        )?;
        for line in wrap(&tool.description, painter.columns.min(100) - 6) {
            writeln!(out, "      {}", visible(&line))?;
        }
        let names = tool.parameters["properties"].as_object();
        let names: Vec<&str> = names
            .into_iter()
            .flat_map(|names| names.keys().map(String::as_str))
            .collect();
        if !names.is_empty() {
            let line = format!("takes {}", names.join(", "));
            writeln!(out, "      {}", painter.paint(Tone::Aside, &visible(&line)))?;
        }
    }
    for left in left_out {
        not_taken(out, painter, left)?;
    }
    Ok(Code::Reached)
}

/// Prints the prompts and the first resources of a server.
fn tell_offers(
    out: &mut StandardOutput,
    painter: &Painter,
    (server, offers): (&str, &Offers),
) -> Result<(), Failure> {
    for prompt in &offers.prompts {
        let name = format!("/{server}:{}", visible(&prompt.name));
        let takes = prompt.arguments.iter().map(|(name, required)| {
            let optional = if *required { "" } else { " (optional)" };
            format!("{}{optional}", visible(name))
        });
        let takes: Vec<String> = takes.collect();
        let takes = match takes.as_slice() {
            [] => "a prompt".to_owned(),
            takes => format!("a prompt, takes {}", takes.join(", ")),
        };
        let line = painter.paint(Tone::Aside, &takes);
        writeln!(out, "  {}  {line}", painter.paint(Tone::Call, &name))?;
        for line in wrap(&prompt.description, painter.columns.min(100) - 6) {
            writeln!(out, "      {}", visible(&line))?;
        }
    }
    if !offers.resources.is_empty() {
        writeln!(out, "  {}", counted(offers.resources.len(), "resource"))?;
    }
    for line in offers.resources.iter().take(SHOWN_RESOURCES) {
        writeln!(out, "      {}", painter.paint(Tone::Aside, &visible(line)))?;
    }
    if offers.resources.len() > SHOWN_RESOURCES {
        let more = offers.resources.len() - SHOWN_RESOURCES;
        writeln!(out, "      and {more} more")?;
    }
    Ok(())
}

fn short(project: &ProjectServers) -> String {
    project
        .content
        .to_string()
        .chars()
        .take(NAMED_BY * 2)
        .collect()
}

fn allow(gyrus: &Gyrus, here: &ServerPlaces, content: Option<&str>) -> Result<Code, Failure> {
    let Some(project) = ProjectServers::read(&here.workspace)? else {
        let path = here.workspace.join(PROJECT_FILE);
        return Err(Failure::usage(format!("there is no {}", path.display()))
            .hint("servers of your own go into config.toml: [mcp.NAME]"));
    };
    put(&format!(
        "{PROJECT_FILE} of {} starts these programs and reaches these addresses with every run here:\n",
        here.workspace.display()
    ))?;
    for (name, section) in &project.servers {
        let mut line = format!("  {name}: {}", section.shown());
        let given: Vec<_> = section
            .env
            .iter()
            .chain(&section.headers)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !given.is_empty() {
            line.push_str(&format!(" (given {})", given.join(", ")));
        }
        put(&format!("{}\n", visible(&line)))?;
    }
    for left in &project.left_out {
        put(&format!("  {}\n", visible(left)))?;
    }
    consent(&project, content)?;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let store = here.home.store()?;
    grants::give(&store, &here.workspace, &[project.grant()], &person)?;
    put("allowed, as long as the file stays as it is; to take it back: gyrus approvals\n")?;
    Ok(Code::Reached)
}

/// A yes to exactly this content: at the terminal, or by its digest.
fn consent(project: &ProjectServers, content: Option<&str>) -> Result<(), Failure> {
    if let Some(given) = content {
        let is = project.content.to_string();
        return if given.len() >= NAMED_BY && is.starts_with(given) {
            Ok(())
        } else {
            Err(Failure::usage(format!(
                "the file's content is not {given}, but {}",
                short(project)
            ))
            .hint("look at it again before you allow it"))
        };
    }
    if !terminal::can_ask() {
        return Err(
            Failure::usage("this needs your yes, and there is no terminal to ask at").hint(
                format!(
                    "say it beforehand: gyrus mcp allow --content {}",
                    short(project)
                ),
            ),
        );
    }
    if terminal::says_yes("allow them? [y/N] ")? {
        Ok(())
    } else {
        Err(Failure::usage("nothing was allowed"))
    }
}
