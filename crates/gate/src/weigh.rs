//! What one touch of a call, or one fact of a command line, adds to a verdict.

use std::path::Path;

use gyrus_contract::{
    CommandFact, Does, Grant, Judgement, ResolvedCall, ResolvedCommand, Risk, Touch,
};

use serde_json::Value;

use crate::{shell, sinks, warden::House};

/// What one touch adds to a verdict.
#[derive(Debug)]
pub(crate) struct Weight {
    pub(crate) risk: Risk,
    pub(crate) reason: String,
    /// Its damage stays within the workspace.
    pub(crate) contained: bool,
    /// Nothing but the workspace being one that may be lost bounds its damage.
    pub(crate) within: bool,
    /// It changes something that has to be undone.
    pub(crate) changes: bool,
    /// Nobody can allow it.
    pub(crate) forbidden: bool,
    /// What would have to be granted for it to pass.
    pub(crate) grant: Option<Grant>,
}

impl Weight {
    fn new(risk: Risk, reason: impl Into<String>) -> Self {
        Self {
            risk,
            reason: reason.into(),
            contained: false,
            within: false,
            changes: false,
            forbidden: false,
            grant: None,
        }
    }

    fn safe(reason: impl Into<String>) -> Self {
        Self::new(Risk::Safe, reason).contained()
    }

    fn contained(self) -> Self {
        Self {
            contained: true,
            ..self
        }
    }

    fn within(self) -> Self {
        Self {
            within: true,
            ..self
        }
    }

    fn changes(self) -> Self {
        Self {
            changes: true,
            ..self
        }
    }

    fn forbidden(self) -> Self {
        Self {
            forbidden: true,
            ..self
        }
    }

    fn unless(self, grant: Grant) -> Self {
        Self {
            grant: Some(grant),
            ..self
        }
    }
}

/// Weighs the touches of one call.
pub(crate) struct Scales<'a> {
    pub(crate) house: &'a House,
    pub(crate) standing: &'a [Grant],
    pub(crate) call: &'a ResolvedCall,
    pub(crate) workspace: &'a Path,
    pub(crate) under: &'a Judgement<'a>,
}

impl Scales<'_> {
    /// All weights of one touch.
    pub(crate) fn touch(&self, touch: &Touch) -> Vec<Weight> {
        let call = self.call;
        vec![match touch {
            Touch::Starts(_) => return self.command(),
            Touch::Connects(argument) => {
                self.address(call.arguments[argument].as_str().unwrap_or_default())
            }
            Touch::Clipboard => Weight::new(Risk::High, "uses the clipboard of your desktop")
                .unless(Grant::Tool {
                    tool: call.tool.clone(),
                }),
            Touch::Asks(_) => Weight::safe("asks you a question"),
            Touch::Reads(argument) => match call.paths.get(argument) {
                Some(path) => self.reads(&path.real),
                None => not_looked_up(argument),
            },
            Touch::Writes(argument) => match call.paths.get(argument) {
                Some(path) => self.writes(&path.real),
                None => not_looked_up(argument),
            },
        }]
    }

    fn reads(&self, path: &Path) -> Weight {
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        if self.house.state.starts_with(path) {
            let what =
                format!("reads outside the workspace: {shown}, which holds gyrus's own state");
            return Weight::new(Risk::Critical, what);
        }
        if shell::is_secret(path, self.house.person.as_deref()) {
            return Weight::new(
                Risk::High,
                format!("reads {shown}, where keys or passwords are kept"),
            );
        }
        if path.starts_with(self.workspace) {
            return Weight::safe("reads inside the workspace and changes nothing");
        }
        if shell::is_system_path(path) {
            return Weight::safe("reads what the system shows to everybody");
        }
        Weight::new(Risk::High, format!("reads outside the workspace: {shown}")).unless(
            Grant::Reads {
                path: path.to_owned(),
            },
        )
    }

    fn writes(&self, path: &Path) -> Weight {
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        let Ok(below) = path.strip_prefix(self.workspace) else {
            let weight =
                Weight::new(Risk::High, format!("writes outside the workspace: {shown}")).changes();
            return match shell::runs_by_itself(path) {
                true => weight,
                false => weight.unless(Grant::Writes {
                    path: path.to_owned(),
                }),
            };
        };
        let shown = below.display();
        if has_git_part(below) {
            let what = format!("writes {shown}, and git runs programs that such files name");
            return Weight::new(Risk::High, what).within().changes();
        }
        if shell::runs_by_itself(path) {
            let what = format!("writes {shown}, which other programs run by themselves");
            return Weight::new(Risk::High, what).within().changes();
        }
        Weight::new(Risk::Moderate, format!("writes {shown} in the workspace"))
            .contained()
            .changes()
    }

    fn removes(&self, path: &Path) -> Weight {
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        match path.strip_prefix(self.workspace) {
            Ok(below) if below.as_os_str().is_empty() => {
                Weight::new(Risk::High, "removes the whole workspace")
                    .within()
                    .changes()
            }
            Ok(below) if has_git_part(below) => Weight::new(
                Risk::High,
                format!(
                    "removes {}, a part of the repository's history",
                    below.display()
                ),
            )
            .within()
            .changes(),
            Ok(below) => Weight::new(
                Risk::Moderate,
                format!("removes {} in the workspace", below.display()),
            )
            .contained()
            .changes(),
            Err(_) => Weight::new(
                Risk::Critical,
                format!("removes {shown}, outside the workspace"),
            )
            .changes(),
        }
    }

    fn own_state(&self, path: &Path) -> Option<Weight> {
        self.house.is_own(path).then(|| {
            Weight::new(
                Risk::Critical,
                "touches gyrus's own state, which no run may see or change",
            )
            .forbidden()
        })
    }

    /// Reading from an address.
    fn address(&self, address: &str) -> Weight {
        let Some(host) = sinks::host(address) else {
            return Weight::new(Risk::High, format!("connects to {address}"));
        };
        if let Some(why) = sinks::vouched(&host, self.under, self.standing) {
            return Weight::safe(format!("reads from {host}; {why}"));
        }
        if self.under.link_was_seen {
            return Weight::safe("follows a link, as it stood in what the run has read");
        }
        let what =
            format!("connects to {host}: an address made up by the model can carry data there");
        Weight::new(Risk::High, what).unless(Grant::Host { host })
    }

    fn command(&self) -> Vec<Weight> {
        let Some(command) = &self.call.command else {
            return vec![Weight::new(Risk::High, "runs a command that was not read")];
        };
        let mut weights: Vec<_> = command
            .reading
            .facts
            .iter()
            .map(|fact| self.fact(command, fact))
            .collect();
        if uses_secret(&self.call.arguments) {
            let what = "puts a secret, which is kept from the model, into a command";
            weights.push(Weight::new(Risk::Critical, what));
        }
        if weights.is_empty() {
            weights.push(Weight::safe("runs nothing that touches anything"));
        }
        weights
    }

    fn fact(&self, command: &ResolvedCommand, fact: &CommandFact) -> Weight {
        let confined = command.containment.is_some();
        let says = |what: &str| match fact.part.is_empty() {
            true => format!("{what} ({})", fact.why),
            false => format!("`{}` {what} ({})", fact.part, fact.why),
        };
        match &fact.does {
            Does::Reads { path } => self.reads_by_command(command, path),
            Does::Writes { path } if is_scratch(path) => {
                let weight = Weight::new(Risk::Moderate, "writes a temporary file");
                match confined {
                    // The run's own folder stands there.
                    true => weight.contained(),
                    false => weight,
                }
            }
            Does::Writes { path } => self.writes(path),
            Does::Removes { path } if is_scratch(path) && confined => {
                Weight::new(Risk::Moderate, "removes a temporary file").contained()
            }
            Does::Removes { path } => self.removes(path),
            Does::ChangesRepository => by_sandbox(
                Weight::new(Risk::Moderate, says("changes the repository")),
                confined,
            ),
            Does::RunsCode if confined => {
                Weight::new(Risk::Moderate, says("runs code, in the sandbox"))
                    .contained()
                    .changes()
            }
            Does::RunsCode => Weight::new(
                Risk::High,
                says("runs code, and without a sandbox that can do anything you can"),
            )
            .within()
            .changes(),
            Does::GetsPackages => self.gets_packages(says("gets packages from a registry")),
            Does::Connects { hosts } => self.connects(hosts, says("connects")),
            Does::UsesCredentials => {
                Weight::new(Risk::Critical, says("uses keys, passwords or tokens"))
            }
            Does::Publishes => Weight::new(
                Risk::Critical,
                says("acts in your name where others see it"),
            ),
            Does::Destroys => {
                Weight::new(Risk::Critical, says("destroys what nothing brings back")).changes()
            }
            Does::ChangesSystem => Weight::new(Risk::High, says("changes this machine")).changes(),
            Does::Hides => by_sandbox(
                Weight::new(Risk::High, says("cannot be judged")).changes(),
                confined,
            ),
        }
    }

    fn reads_by_command(&self, command: &ResolvedCommand, path: &Path) -> Weight {
        let weight = self.reads(path);
        // What the sandbox hides cannot be read, and the rest of the machine is not secret.
        let temporary = command.containment.is_some() && is_scratch(path);
        if temporary && weight.risk == Risk::High {
            return Weight::safe("reads the run's own temporary files");
        }
        weight
    }

    fn gets_packages(&self, what: String) -> Weight {
        let granted = |grant: &Grant| *grant == Grant::PackageRegistries;
        if self.under.grants.iter().chain(self.standing).any(granted) {
            return Weight::new(Risk::Moderate, format!("{what}, which you allowed"))
                .contained()
                .changes();
        }
        Weight::new(Risk::High, what)
            .changes()
            .unless(Grant::PackageRegistries)
    }

    fn connects(&self, hosts: &[String], what: String) -> Weight {
        let refused = hosts
            .iter()
            .find(|host| sinks::vouched(host, self.under, self.standing).is_none());
        match (hosts, refused) {
            ([], _) => Weight::new(Risk::High, what),
            (_, Some(host)) => {
                Weight::new(Risk::High, what).unless(Grant::Host { host: host.clone() })
            }
            (_, None) => Weight::new(
                Risk::Moderate,
                format!("connects to {}, as you allowed", hosts.join(", ")),
            )
            .contained(),
        }
    }
}

fn by_sandbox(weight: Weight, confined: bool) -> Weight {
    match confined {
        true => weight.contained().changes(),
        false => weight.within().changes(),
    }
}

/// Whether an argument names a secret, to be put in its place.
fn uses_secret(arguments: &Value) -> bool {
    match arguments {
        Value::String(text) => text.contains("⟦secret:"),
        Value::Array(all) => all.iter().any(uses_secret),
        Value::Object(all) => all.values().any(uses_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn not_looked_up(argument: &str) -> Weight {
    Weight::new(
        Risk::High,
        format!("touches `{argument}`, which was not looked up"),
    )
}

/// Where the run has a folder of its own when it is confined.
fn is_scratch(path: &Path) -> bool {
    ["/tmp", "/var/tmp", "/dev/shm"]
        .iter()
        .any(|scratch| path.starts_with(scratch))
}

/// Whether git reads its configuration or hooks below this path, in any letter case.
fn has_git_part(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
}
