//! Start of a server: confined as the commands of runs are, with a folder of its own.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus::runtime::{
    self, Confinement, Home,
    sandbox::{self, FixedHosts, Proxy},
};
use gyrus_contract::{CommandSpec, Containment, DEFAULT_AGENT, KeeperError, Network, OnAsk, Reach};
use gyrus_kernel::redact::Secret;
use gyrus_mcp::{
    JudgeStart, LoginClient, PictureFormat, RequestPolicy, RunServer, ServerLogin, ServerSection,
    ServerSetup, ServerValue, ServerWay, server_value,
};
use gyrus_process::{
    Programs,
    keeper::{Keeper, KeeperSandbox},
};
use gyrus_tools::PictureHeader;
use tempfile::TempDir;

use super::{
    folders,
    judged_start::{KeeperOfServer, WorkspaceBefore},
};
use crate::{config::Config, env, keys::KeyLookup};

/// Variables of gyrus's environment that a server gets, beside those configured for it.
const VARIABLES: [&str; 5] = ["HOME", "USER", "LANG", "LC_ALL", "TZ"];

/// The prefix of the names of servers' folders, before the id of the process that they belong to.
const PREFIX: &str = "mcp-";

#[derive(Clone, Copy)]
pub(crate) struct StartSurroundings<'a> {
    pub(crate) home: &'a Home,
    pub(crate) config: &'a Config,
    /// The folder that runs work in, real.
    pub(crate) workspace: &'a Path,
    pub(crate) confinement: Confinement,
    pub(crate) on_ask: OnAsk,
}

pub(crate) struct ServerWish {
    pub(crate) name: String,
    pub(crate) section: ServerSection,
    pub(crate) source: ServerSource,
    /// The folder of the server's plugin, which the server can read and not change.
    pub(crate) package: Option<PathBuf>,
}

/// Places that name servers, which decide what a server may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerSource {
    /// The person's own configuration: it gets at the environment and at the keys.
    Person,
    /// The file of a project that the person allowed: the server gets at the environment.
    Project,
    /// A plugin that the person installed: the server gets at the environment, and runs in the
    /// sandbox or not at all.
    Plugin,
    /// The settings of an editor, into which a project may have written: it gets at nothing, and
    /// runs in the sandbox or not at all.
    Editor,
}

/// Returns the setup of a server, and its folder if it has one; the error is the reason why it
/// cannot be started.
pub(crate) fn setup(
    around: &StartSurroundings<'_>,
    wanted: &ServerWish,
    keys: &KeyLookup<'_>,
    secrets: &mut Vec<Secret>,
) -> Result<(ServerSetup, Option<TempDir>), String> {
    let section = &wanted.section;
    let mut values = |written| values(written, wanted.source, keys, secrets);
    let whole = |way, reach| ServerSetup {
        name: wanted.name.clone(),
        way,
        reach,
        digest: section.digest(),
        silence: section.silence(),
        pictures: picture,
        requests: requests(around),
        judge_start: None,
    };
    if let Some(url) = &section.url {
        let headers = values(&section.headers)?;
        let secret = section.client_secret.iter();
        let secret = secret
            .map(|secret| (String::new(), secret.clone()))
            .collect();
        let secret = values(&secret)?.into_values().next();
        let login = login(around.home, wanted, &headers, secret);
        secrets.extend(
            login
                .iter()
                .flat_map(|login| tokens(login, (&wanted.name, url))),
        );
        let way = ServerWay::Http {
            url: url.clone(),
            headers,
            login,
        };
        return Ok((whole(way, Reach::Elsewhere), None));
    }
    let mut environment = environment();
    let programs = Programs::of_this_process();
    environment.extend(values(&section.env)?);
    let program = program(programs, section.command.as_deref().unwrap_or_default())?;
    let folder = folder(around.home)?;
    let keeper = KeeperOfServer::default();
    let (run, reach, pipes) = kept(around, &folder, wanted, &keeper)?;
    check_reach(wanted.source, reach)?;
    let way = ServerWay::Process {
        program,
        arguments: section.args.clone(),
        environment,
        folder: around.workspace.to_owned(),
        pipes,
        run,
    };
    let setup = ServerSetup {
        judge_start: Some(judge_start(around, &wanted.name, keeper)?),
        ..whole(way, reach)
    };
    Ok((setup, Some(folder)))
}

/// Checks that a server which the person did not describe is contained.
fn check_reach(source: ServerSource, reach: Reach) -> Result<(), String> {
    let names_it = match source {
        ServerSource::Editor => "an editor names",
        ServerSource::Plugin => "a plugin brings",
        ServerSource::Person | ServerSource::Project => return Ok(()),
    };
    if reach != Reach::Everything {
        return Ok(());
    }
    Err(format!(
        "a server that {names_it} runs in the sandbox alone, and there is none here; describe it \
         in config.toml as your own"
    ))
}

/// Returns the function that judges a server's changes of the workspace during its start.
fn judge_start(
    around: &StartSurroundings<'_>,
    name: &str,
    keeper: KeeperOfServer,
) -> Result<JudgeStart, String> {
    let (home, workspace) = (around.home, around.workspace);
    let wrong = |error: &dyn std::error::Error| error.to_string();
    let store = home.store().map_err(|error| wrong(&error))?;
    let confinement = Confinement::Unsandboxed;
    let gate = runtime::gate(home, &store, workspace, DEFAULT_AGENT, confinement);
    let gate = gate.map_err(|error| wrong(&error))?;
    let trash = home.state.join("trash");
    let (workspace, name) = (workspace.to_owned(), name.to_owned());
    Ok(Arc::new(move || {
        let unique = gyrus_contract::time_ordered_uuid();
        let trash = trash.join(format!("mcp-{name}-{unique}"));
        Ok(WorkspaceBefore::look(&workspace, trash, gate.clone(), keeper.clone())?.end())
    }))
}

/// Returns whether servers may ask the person: a call waits for the answer, so a run that does not
/// wait offers nothing.
fn requests(around: &StartSurroundings<'_>) -> RequestPolicy {
    match around.on_ask {
        OnAsk::Wait => RequestPolicy::Offered,
        OnAsk::Park | OnAsk::Deny => RequestPolicy::Refused,
    }
}

/// Returns the values of variables or headers in the form that a server gets.
fn values(
    written: &BTreeMap<String, String>,
    source: ServerSource,
    keys: &KeyLookup<'_>,
    secrets: &mut Vec<Secret>,
) -> Result<BTreeMap<String, String>, String> {
    let lookup = |name: &str| match source {
        ServerSource::Person => keys.get(name),
        ServerSource::Project | ServerSource::Plugin => env::variable(name),
        ServerSource::Editor => None,
    };
    if source == ServerSource::Editor {
        // The editor has put in whatever its settings refer to.
        return Ok(written.clone());
    }
    let mut read = BTreeMap::new();
    for (name, text) in written {
        let text = match server_value(text, &lookup)? {
            ServerValue::Plain(text) => text,
            ServerValue::Secret { name, value } => {
                secrets.push(Secret {
                    name,
                    value: value.clone(),
                });
                value
            }
        };
        read.insert(name.clone(), text);
    }
    Ok(read)
}

/// Returns the means to log in at a server, unless its headers authorize the client.
fn login(
    home: &Home,
    wanted: &ServerWish,
    headers: &BTreeMap<String, String>,
    secret: Option<String>,
) -> Option<ServerLogin> {
    let authorizes = |name: &String| name.eq_ignore_ascii_case("authorization");
    if headers.keys().any(authorizes) {
        return None;
    }
    let client = wanted.section.client_id.clone();
    Some(ServerLogin {
        file: login_file(home, &wanted.name),
        client: client.map(|id| LoginClient { id, secret }),
    })
}

/// Returns the tokens by which the person is logged in at a server, which no run may see.
fn tokens<'a>(
    login: &ServerLogin,
    (server, url): (&'a str, &str),
) -> impl Iterator<Item = Secret> + 'a {
    let tokens = login.tokens(url).into_iter();
    tokens.map(move |value| Secret {
        name: format!("MCP_TOKEN_{}", server.to_ascii_uppercase()),
        value,
    })
}

/// The file of the tokens by which the person is logged in at a server, beside their keys.
fn login_file(home: &Home, server: &str) -> PathBuf {
    home.config
        .with_file_name("keys")
        .join(format!("mcp-{server}.json"))
}

/// Returns the program that starts a server: the file that an absolute path names, or a program
/// that no run can have put there.
fn program(programs: &Programs, command: &str) -> Result<String, String> {
    if Path::new(command).is_absolute() {
        return Ok(command.to_owned());
    }
    let found = programs.find(command).map_err(|error| error.to_string())?;
    Ok(found.path.display().to_string())
}

pub(crate) fn environment() -> BTreeMap<String, String> {
    let variables = VARIABLES.into_iter();
    let variables = variables.filter_map(|name| Some((name.to_owned(), env::variable(name)?)));
    // What it starts by name has its keys, too.
    let path = ("PATH".to_owned(), Programs::of_this_process().path());
    variables.chain([path]).collect()
}

fn picture(bytes: &[u8]) -> Option<PictureFormat> {
    let header = PictureHeader::read(bytes)?;
    Some(PictureFormat {
        media_type: header.media_type(),
        width: header.width,
        height: header.height,
    })
}

/// Creates a folder for a server of this process. Those that a crash left behind are removed when a
/// run is driven.
pub(crate) fn folder(home: &Home) -> Result<TempDir, String> {
    let below = home.state.join("sandbox");
    let wrong = |error: std::io::Error| format!("{}: {error}", below.display());
    fs::create_dir_all(&below).map_err(wrong)?;
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .tempdir_in(&below)
        .map_err(wrong)
}

/// Returns the keeper of the server, the server's reach, and the folder of its pipes.
fn kept(
    around: &StartSurroundings<'_>,
    folder: &TempDir,
    wanted: &ServerWish,
    kept_by: &KeeperOfServer,
) -> Result<(RunServer, Reach, PathBuf), String> {
    let kept_by = kept_by.clone();
    let confined = match around.confinement {
        Confinement::Sandboxed => sandbox::holds(around.home).is_ok(),
        Confinement::Unsandboxed => false,
    };
    if !confined {
        let run: RunServer = Arc::new(move |command| {
            let kept_by = kept_by.clone();
            Box::pin(async move { run(command, None, &kept_by).await })
        });
        return Ok((run, Reach::Everything, folder.path().to_owned()));
    }
    let mut containment = sandbox::plan(around.home, folder.path(), around.workspace)?;
    gyrus_gate::protect_from_server(around.workspace, &mut containment);
    containment.read_only.extend(wanted.package.clone());
    if wanted.source == ServerSource::Person {
        let program = folders::of_program(&wanted.section, around.workspace);
        containment.read_only.extend(program);
    }
    let given = folders::given(&wanted.section, around.home)?;
    containment.writable.extend(given);
    let hosts = wanted.section.network.as_slice();
    let reach = if hosts.is_empty() {
        Reach::Workspace
    } else {
        containment.network = Network::Proxy;
        Reach::Hosts
    };
    let pipes = containment.temporary.clone();
    let hosts = hosts
        .iter()
        .map(|host| host.trim_end_matches('.').to_ascii_lowercase());
    let within = Arc::new((containment, FixedHosts(hosts.collect())));
    let run: RunServer = Arc::new(move |command| {
        let (within, kept_by) = (within.clone(), kept_by.clone());
        Box::pin(async move { run(command, Some(&within), &kept_by).await })
    });
    Ok((run, reach, pipes))
}

async fn run(
    command: CommandSpec,
    within: Option<&(Containment, FixedHosts)>,
    kept_by: &KeeperOfServer,
) -> Result<gyrus_contract::CommandOutcome, KeeperError> {
    let keeper = tokio::task::spawn_blocking(Keeper::start).await;
    let keeper = keeper.map_err(|error| KeeperError::Keeper {
        reason: error.to_string(),
    })??;
    let identity = keeper.identity().clone();
    *kept_by.lock() = Some(identity);
    let Some((containment, policy)) = within else {
        return keeper.run(command).await;
    };
    let sandbox = KeeperSandbox {
        containment,
        outlet: &Proxy,
        policy,
        ended: None,
    };
    let (outcome, _keeper) = keeper.run_in(command, Some(sandbox)).await?;
    Ok(outcome)
}
