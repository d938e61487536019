//! `gyrus policy`

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gyrus::runtime::{self, Confinement, Home};
use gyrus_contract::{
    CallPlace, Containment, DEFAULT_AGENT, Decision, Does, Gate, Grant, Judgement, Network, OnAsk,
    Risk, RunId, ToolCall, ToolSpec,
};
use gyrus_kernel::grants;
use gyrus_runtime::request::{Approve, confinement};
use gyrus_text::one_line;
use gyrus_tools::ToolRegistry;
use serde_json::{Value, json};

use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    mcp::{self, StartSurroundings},
    new_run, workdir,
};
use gyrus_surfaces::output;

/// Check the rules of your policy, and ask what the gate would say
#[derive(Args)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Subcommand)]
enum PolicyCommand {
    Check(PolicyCheck),
    Explain(PolicyExplain),
}

impl PolicyArguments {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            PolicyCommand::Check(check) => check.execute(gyrus),
            PolicyCommand::Explain(explain) => explain.execute(gyrus),
        }
    }
}

/// Load the policy, try its examples, and say what is wrong with it
#[derive(Args)]
struct PolicyCheck {
    /// A policy file (default: yours, and the one of the folder)
    file: Option<PathBuf>,
    /// The folder that runs would work in (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
}

impl PolicyCheck {
    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = gyrus.home()?;
        let workspace = place(&home, self.workdir.as_deref())?;
        let policy_files = home.policy_files(&workspace);
        let mut out = output::standard();
        let files = match self.file {
            Some(file) => vec![(file, true)],
            None => policy_files.paths().to_vec(),
        };
        let given = files.len() == 1;
        for (file, may_loosen) in files {
            match policy_files.read(&file, may_loosen)? {
                Some(_) => writeln!(out, "{}: good", file.display())?,
                None if given => {
                    return Err(Failure::usage(format!("there is no {}", file.display())));
                }
                None => writeln!(out, "{}: absent", file.display())?,
            }
        }
        Ok(Code::Reached)
    }
}

/// Say what the gate would do about a command line or another call, and why
///
/// Nothing is run. For a tool of a server, the server is started and asked for its tools.
#[derive(Args)]
struct PolicyExplain {
    /// The command line, as one argument, or as its words behind `--`
    #[arg(required_unless_present = "tool", conflicts_with_all = ["tool", "arguments"])]
    line: Vec<String>,
    /// A call of this tool, in place of a command line
    #[arg(long, value_name = "TOOL", requires = "arguments")]
    tool: Option<String>,
    /// The arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    arguments: Option<String>,
    /// The goal that a person would have typed
    #[arg(long, value_name = "TEXT", default_value = "")]
    goal: String,
    /// The mode that a run would have
    #[arg(
        long,
        alias = "permission-mode",
        value_name = "MODE",
        default_value = "ask"
    )]
    approve: Approve,
    /// Agent under whose trust a run would work
    #[arg(long, value_name = "NAME", default_value = DEFAULT_AGENT)]
    agent: String,
    /// The folder that a run would work in (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// As if commands were confined, or not
    #[arg(long, value_name = "WHAT", value_parser = confinement())]
    sandbox: Option<Confinement>,
    /// Print JSON: risk, decision, reasons, containment, parse
    #[arg(long)]
    json: bool,
}

impl PolicyExplain {
    fn under<'a>(
        &'a self,
        workspace: &'a Path,
        grants: &'a [Grant],
        trusted: &'a [&'a str],
    ) -> Judgement<'a> {
        Judgement {
            agent: &self.agent,
            mode: self.approve.mode(),
            grants,
            trusted,
            ..Judgement::outside_of_runs(workspace)
        }
    }

    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = gyrus.home()?;
        let workspace = place(&home, self.workdir.as_deref())?;
        let store = home.store()?;
        let given = self.sandbox;
        let confinement = given.unwrap_or(self.approve.confinement());
        let gate = runtime::gate(&home, &store, &workspace, &self.agent, confinement)?;
        let (spec, arguments) = self.call(gyrus, &home, &workspace)?;
        let call = ToolCall::new(spec.name.clone(), arguments);
        let place = CallPlace {
            run: RunId::new(),
            workspace: &workspace,
            agent: &self.agent,
            mode: self.approve.mode(),
            skills: &[],
            sandbox: &Default::default(),
        };
        let resolved = gate
            .resolve(&call, &spec, place)
            .map_err(|error| Failure::usage(error.reason))?;
        let standing = grants::in_folder(&store, &workspace)
            .map_err(|error| Failure::failed("the grants cannot be read").because(&error))?;
        let grants: Vec<Grant> = standing.into_iter().map(|one| one.grant).collect();
        let trusted = [self.goal.as_str()];
        let under = self.under(&workspace, &grants, &trusted);
        let verdict = gate.judge(&resolved, &spec, &under);
        let command = resolved.command.as_ref();
        let containment = command.and_then(|command| command.containment.as_ref());
        let mut out = output::standard();
        if self.json {
            let explained = json!({
                "risk": verdict.risk,
                "decision": verdict.decision,
                "reasons": verdict.reasons,
                "wider": verdict.wider,
                "containment": contained(containment),
                "parse": command.map(|command| &command.reading),
            });
            out.json(&explained)?;
            return Ok(Code::Reached);
        }
        writeln!(
            out,
            "{} risk, {}",
            risk(verdict.risk),
            decision(verdict.decision)
        )?;
        for reason in &verdict.reasons {
            writeln!(out, "  - {}", one_line(reason))?;
        }
        let Some(command) = command else {
            return Ok(Code::Reached);
        };
        writeln!(out, "runs {}", one_line(&words(containment)))?;
        for fact in &command.reading.facts {
            let does = name(&fact.does);
            writeln!(out, "  {}: `{}`", one_line(&does), one_line(&fact.part))?;
        }
        Ok(Code::Reached)
    }
}

impl PolicyExplain {
    /// Returns the tool and the arguments that the person asks about.
    fn call(
        &self,
        gyrus: &Gyrus,
        home: &Home,
        workspace: &Path,
    ) -> Result<(ToolSpec, Value), Failure> {
        let registry = ToolRegistry::builtin();
        let Some(name) = &self.tool else {
            let shell = registry
                .get("shell")
                .ok_or_else(|| Failure::failed("there is no tool for commands"))?;
            return Ok((
                shell.spec().clone(),
                json!({"command": self.line.join(" ")}),
            ));
        };
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let arguments: Value = serde_json::from_str(arguments)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| Failure::usage("--arguments is not a JSON object"))?;
        if let Some(tool) = registry.get(name) {
            return Ok((tool.spec().clone(), arguments));
        }
        let around = StartSurroundings {
            home,
            config: &gyrus.config()?,
            workspace,
            confinement: Confinement::Sandboxed,
            on_ask: OnAsk::Deny,
        };
        let server = name.split_once("__").map_or("", |(server, _)| server);
        let specs = drive::runtime()?.block_on(mcp::tools_of(&around, server))?;
        let spec = specs
            .into_iter()
            .find(|spec| spec.name == *name)
            .ok_or_else(|| {
                Failure::usage(format!(
                    "the server `{server}` has no tool `{}`",
                    one_line(name)
                ))
                .hint(format!("see which there are: gyrus mcp test {server}"))
            })?;
        let misfits = spec.misfits(&arguments);
        if misfits.is_empty() {
            Ok((spec, arguments))
        } else {
            Err(Failure::usage(one_line(&misfits.join("; "))))
        }
    }
}

fn contained(containment: Option<&Containment>) -> Value {
    match containment {
        None => Value::Null,
        Some(containment) => json!({
            "writable": containment.writable,
            "network": containment.network,
            "hidden": containment.hidden.len(),
        }),
    }
}

fn words(containment: Option<&Containment>) -> String {
    let Some(containment) = containment else {
        return "with your own rights, unconfined".to_owned();
    };
    let network = match containment.network {
        Network::None => "no network".to_owned(),
        Network::Open => "the network".to_owned(),
        Network::Proxy => "each connection is judged when it is made".to_owned(),
    };
    let writable: Vec<_> = containment
        .writable
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if writable.is_empty() {
        format!("in the sandbox: changes nothing, {network}")
    } else {
        format!(
            "in the sandbox: changes only {}, {network}",
            writable.join(", ")
        )
    }
}

fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::Safe => "no",
        Risk::Moderate => "moderate",
        Risk::High => "high",
        Risk::Critical => "critical",
    }
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allowed unasked",
        Decision::Ask => "you are asked",
        Decision::Deny => "denied",
    }
}

fn name(does: &Does) -> String {
    match does {
        Does::Reads { path } => format!("reads {}", path.display()),
        Does::Writes { path } => format!("writes {}", path.display()),
        Does::Removes { path } => format!("removes {}", path.display()),
        Does::ChangesRepository => "changes the repository".to_owned(),
        Does::RunsCode => "runs code".to_owned(),
        Does::GetsPackages => "gets packages".to_owned(),
        Does::Connects { hosts } if hosts.is_empty() => "connects".to_owned(),
        Does::Connects { hosts } => format!("connects to {}", hosts.join(", ")),
        Does::UsesCredentials => "uses credentials".to_owned(),
        Does::Publishes => "publishes".to_owned(),
        Does::Destroys => "destroys".to_owned(),
        Does::ChangesSystem => "changes the machine".to_owned(),
        Does::Hides => "not understood".to_owned(),
    }
}

/// Returns the folder in which a run would work: the given one, or the current one.
fn place(home: &Home, given: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(given) => new_run::workspace(home, Some(given)),
        None => workdir::here(),
    }
}
