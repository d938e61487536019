//! What one touch of a call, or one fact of a command line, adds to a verdict.

use std::path::Path;

use gyrus_contract::{
    CommandFact, Does, Grant, Judgement, Reach, ResolvedCall, ResolvedCommand, Risk, Service,
    Touch, path_in_list,
};

use serde_json::Value;

use crate::{as_user, control, house::House, shell, sinks};

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
    /// No grant reaches it: it is asked about each time.
    pub(crate) each_time: bool,
}

impl Weight {
    pub(crate) fn new(risk: Risk, reason: impl Into<String>) -> Self {
        Self {
            risk,
            reason: reason.into(),
            contained: false,
            within: false,
            changes: false,
            forbidden: false,
            grant: None,
            each_time: false,
        }
    }

    pub(crate) fn critical(reason: impl Into<String>) -> Self {
        Self::new(Risk::Critical, reason)
    }

    pub(crate) fn safe(reason: impl Into<String>) -> Self {
        Self::new(Risk::Safe, reason).contained()
    }

    pub(crate) fn contained(self) -> Self {
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

    pub(crate) fn forbidden(self) -> Self {
        Self {
            forbidden: true,
            ..self
        }
    }

    pub(crate) fn each_time(self) -> Self {
        Self {
            each_time: true,
            ..self
        }
    }

    /// The grant of exact words that it would pass with; no other grant reaches what is critical.
    pub(crate) fn by_words(&self) -> Option<&Grant> {
        let grant = self.grant.as_ref();
        grant.filter(|grant| matches!(grant, Grant::Program { .. }))
    }

    pub(crate) fn unless(self, grant: Grant) -> Self {
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
            // One that need not be there, and is not.
            Touch::Starts(argument)
                if call.command.is_none() && call.arguments.get(argument).is_none() =>
            {
                return Vec::new();
            }
            Touch::Starts(_) => return self.command(),
            Touch::RunsAsUser { arguments, .. } => {
                let command = call.command.as_ref();
                return as_user::weigh(self.house, command, &call.arguments, arguments);
            }
            Touch::Changes(argument) => return self.changes(argument),
            Touch::Compares(argument) => return self.compares(argument),
            Touch::Connects(argument) => {
                self.address(call.arguments[argument].as_str().unwrap_or_default())
            }
            Touch::Clipboard => Weight::new(Risk::High, "uses the clipboard of your desktop")
                .unless(Grant::Tool {
                    tool: call.tool.clone(),
                }),
            Touch::Screen => return self.page(),
            Touch::Evaluates(argument) => {
                let script = call.arguments[argument].as_str().unwrap_or_default();
                match self.under.trusted.contains(&script) {
                    true => Weight::safe("runs the check that you typed in the page"),
                    false => Weight::critical("runs a script that nobody typed").forbidden(),
                }
            }
            Touch::Submits(argument) => {
                let address = call.arguments[argument].as_str().unwrap_or_default();
                match self.under.trusted.contains(&address) {
                    true => Weight::safe(format!("submits to the judge that you named: {address}")),
                    false => Weight::critical("submits to a judge that nobody named").forbidden(),
                }
            }
            Touch::Asks(_) => Weight::safe("asks you a question"),
            Touch::HandsOver(_) => Weight::safe("asks you to take over the browser"),
            Touch::Serves(service) => return self.service(service),
            Touch::Reads(argument) => match call.paths.get(argument) {
                Some(path) => self.reads(&path.real),
                None => not_looked_up(argument),
            },
            Touch::Writes(argument) => match call.paths.get(argument) {
                Some(path) if uses_secret(&call.arguments) => {
                    let what = "writes a secret, which is kept from the model, into a file";
                    let secret = Weight::new(Risk::High, what).within().changes().each_time();
                    return vec![self.writes(&path.real), secret];
                }
                Some(path) => self.writes(&path.real),
                None => not_looked_up(argument),
            },
        }]
    }

    /// Each file has its weight; those of plain ones are one, however many they are.
    fn changes(&self, argument: &str) -> Vec<Weight> {
        let changes = self.call.arguments[argument].as_array();
        let (mut weights, mut plain) = (Vec::new(), 0_usize);
        for (index, change) in changes.into_iter().flatten().enumerate() {
            let name = path_in_list(argument, index);
            let Some(path) = self.call.paths.get(&name) else {
                weights.push(not_looked_up(&name));
                continue;
            };
            let stays = ["content", "diff"]
                .iter()
                .any(|after| change.get(after).is_some_and(|after| !after.is_null()));
            let weight = match stays {
                true => self.writes(&path.real),
                false => self.removes(&path.real),
            };
            match weight.risk == Risk::Moderate && weight.contained {
                true => plain += 1,
                false => weights.push(weight),
            }
        }
        if plain > 0 {
            let what = format!("changes {plain} files in the workspace");
            weights.push(Weight::new(Risk::Moderate, what).contained().changes());
        }
        if uses_secret(&self.call.arguments[argument]) {
            let what = "writes a secret, which is kept from the model, into a file";
            weights.push(Weight::new(Risk::High, what).within().changes().each_time());
        }
        weights
    }

    /// Each file is read; plain readings are one, however many they are.
    fn compares(&self, argument: &str) -> Vec<Weight> {
        let changes = self.call.arguments[argument].as_array();
        let weights = (0..changes.map_or(0, Vec::len)).map(|index| {
            let name = path_in_list(argument, index);
            match self.call.paths.get(&name) {
                Some(path) => self.reads(&path.real),
                None => not_looked_up(&name),
            }
        });
        let (plain, mut weights): (Vec<_>, Vec<_>) =
            weights.partition(|weight| weight.risk == Risk::Safe);
        weights.extend(plain.into_iter().next());
        weights
    }

    /// What a server does is not known here, whatever it says of itself.
    fn service(&self, service: &Service) -> Vec<Weight> {
        let server = &service.server;
        let asks = |reaches: &str| format!("asks the server `{server}`, {reaches}");
        let mut weight = match service.reach {
            Reach::Workspace => {
                let what = "which can change the workspace; what it does is not known here";
                Weight::new(Risk::High, asks(what)).contained().changes()
            }
            Reach::Hosts => {
                let what = "which can change the workspace and reaches hosts that you named for it";
                Weight::new(Risk::High, asks(what)).changes()
            }
            Reach::Elsewhere => {
                let what = "which gyrus neither runs nor contains; what it does is not known here";
                Weight::new(Risk::High, asks(what))
            }
            Reach::Everything => {
                return vec![Weight::critical(asks("and nothing contains what it does"))];
            }
        };
        if service.destructive {
            weight
                .reason
                .push_str("; it says itself that this destroys");
            weight.contained = false;
            weight = weight.each_time();
        } else {
            weight = weight.unless(Grant::Service {
                tool: self.call.tool.clone(),
                definition: service.definition,
            });
        }
        let mut weights = vec![weight];
        if uses_secret(&self.call.arguments) {
            let what = format!("hands a secret, which is kept from the model, to `{server}`");
            weights.push(Weight::critical(what));
        }
        weights
    }

    fn reads(&self, path: &Path) -> Weight {
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        if self.house.holds_own(path) {
            let what =
                format!("reads outside the workspace: {shown}, which holds gyrus's own state");
            return Weight::new(Risk::Critical, what);
        }
        if shell::is_secret(path, self.house.person.as_deref()) {
            return Weight::new(
                Risk::High,
                format!("reads {shown}, where keys or passwords are kept"),
            )
            .each_time();
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
            return match control::obeyed_by(path).is_some() {
                true => weight.each_time(),
                false => weight.unless(Grant::Writes {
                    path: path.to_owned(),
                }),
            };
        };
        let shown = below.display();
        if is_rule(below) {
            let what = format!("changes {shown}, which holds this folder's rules for runs");
            return Weight::new(Risk::Critical, what).changes();
        }
        if has_git_part(below) {
            // That a folder may be lost says nothing of what git runs there as the person.
            let what = format!("writes {shown}, and git runs programs that such files name");
            return Weight::new(Risk::High, what).changes().each_time();
        }
        if let Some(program) = control::obeyed_by(below) {
            let what = format!("writes {shown}, which is obeyed by {program}");
            return Weight::new(Risk::High, what).within().changes().each_time();
        }
        let what = match below.as_os_str().is_empty() {
            true => "writes in the workspace".to_owned(),
            false => format!("writes {shown} in the workspace"),
        };
        Weight::new(Risk::Moderate, what).contained().changes()
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
                    .each_time()
            }
            Ok(below) if is_rule(below) => Weight::new(
                Risk::Critical,
                format!(
                    "removes {}, which holds this folder's rules for runs",
                    below.display()
                ),
            )
            .changes(),
            Ok(below) if has_git_part(below) => Weight::new(
                Risk::High,
                format!(
                    "removes {}, a part of the repository's history",
                    below.display()
                ),
            )
            .within()
            .changes()
            .each_time(),
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
    pub(crate) fn address(&self, address: &str) -> Weight {
        let Some((host, port)) = sinks::place(address) else {
            return Weight::new(Risk::High, format!("connects to {address}"));
        };
        if let Some(why) = sinks::vouched(&host, Some(port), self.under, self.standing) {
            return Weight::safe(format!("reads from {host}; {why}"));
        }
        if self.under.link_was_seen {
            return Weight::safe("follows a link, as it stood in what the run has read");
        }
        let what =
            format!("connects to {host}: an address made up by the model can carry data there");
        let port = sinks::port_of_grant(port);
        Weight::new(Risk::High, what).unless(Grant::Host { host, port })
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

    /// Whether it is a control file, and what a confined command does to it is judged when it ends.
    fn is_judged_afterwards(&self, path: &Path) -> bool {
        let below = path.strip_prefix(self.workspace);
        below.is_ok_and(|below| {
            control::obeyed_by(below).is_some() && !has_git_part(below) && !is_rule(below)
        })
    }

    fn fact(&self, command: &ResolvedCommand, fact: &CommandFact) -> Weight {
        let confined = command.containment.is_some();
        let says = |what: &str| match fact.part.is_empty() {
            true => format!("{what} ({})", fact.why),
            false => format!("`{}` {what} ({})", fact.part, fact.why),
        };
        if confined && self.has_no_rights_for(fact) {
            return fails(says("needs your own rights, which it does not have here"));
        }
        match &fact.does {
            Does::Reads { path } => self.reads_by_command(command, path),
            Does::Writes { path } if self.is_scratch(path) => {
                let weight = Weight::new(Risk::Moderate, "writes a temporary file");
                match confined {
                    // The run's own folder stands there.
                    true => weight.contained(),
                    false => weight,
                }
            }
            Does::Writes { path } if confined && self.is_judged_afterwards(path) => {
                Weight::new(Risk::Moderate, says("writes in the workspace"))
                    .contained()
                    .changes()
            }
            Does::Writes { path } => self.writes(path),
            Does::Removes { path } if self.is_scratch(path) && confined => {
                Weight::new(Risk::Moderate, "removes a temporary file").contained()
            }
            Does::Removes { path }
                if path == self.workspace && shell::PARTLY.contains(&&*fact.why) =>
            {
                Weight::new(Risk::Moderate, says("removes files in the workspace"))
                    .contained()
                    .changes()
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
            Does::GetsPackages | Does::Connects { .. } if confined => {
                connects_later(says("connects, which is judged when it does"))
            }
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
            Does::Hides => by_sandbox(Weight::new(Risk::High, says("cannot be judged")), confined),
        }
    }

    /// Whether the sandbox keeps from it whatever it would take: keys and agents, the machine, the
    /// network. What the person opened could be published to with a key of the workspace.
    fn has_no_rights_for(&self, fact: &CommandFact) -> bool {
        let mut granted = self.under.grants.iter().chain(self.standing);
        let opens = |grant: &Grant| matches!(grant, Grant::PackageRegistries | Grant::Host { .. });
        match fact.does {
            Does::ChangesSystem => true,
            Does::Publishes => !granted.any(opens),
            Does::UsesCredentials | Does::Destroys => shell::BY_ACCOUNT.contains(&&*fact.why),
            Does::Reads { .. }
            | Does::Writes { .. }
            | Does::Removes { .. }
            | Does::ChangesRepository
            | Does::RunsCode
            | Does::GetsPackages
            | Does::Connects { .. }
            | Does::Hides => false,
        }
    }

    /// Whether a folder of the run's own stands there when it is confined.
    fn is_scratch(&self, path: &Path) -> bool {
        let Some(scratch) = SCRATCH.iter().find(|scratch| path.starts_with(scratch)) else {
            return false;
        };
        let first = |path: &Path| {
            let below = path.strip_prefix(scratch).ok()?;
            Some(
                below
                    .components()
                    .next()
                    .map(|part| part.as_os_str().to_owned()),
            )
        };
        // A workspace that lies there itself has neighbours in its folder, which are somebody's.
        let beside = match (first(self.workspace), first(path)) {
            (Some(own), Some(other)) => other.is_none() || own == other,
            (None, _) | (_, None) => false,
        };
        !beside && !self.house.is_own(path)
    }

    fn reads_by_command(&self, command: &ResolvedCommand, path: &Path) -> Weight {
        let weight = self.reads(path);
        if command.containment.is_none() || weight.risk < Risk::High || weight.forbidden {
            return weight;
        }
        if weight.risk == Risk::High && self.is_scratch(path) {
            return Weight::safe("reads the run's own temporary files");
        }
        if is_about_processes(path) {
            return Weight::safe("reads about the run's own processes");
        }
        // So does any code that runs there: the sandbox hides secrets and gyrus's own state.
        if path.parent().is_none() {
            let what = "reads files that are known only when it runs, in the sandbox";
            return Weight::new(Risk::Moderate, what).contained();
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
            .find(|host| sinks::vouched(host, None, self.under, self.standing).is_none());
        match (hosts, refused) {
            ([], _) => Weight::new(Risk::High, what),
            (_, Some(host)) => Weight::new(Risk::High, what).unless(Grant::Host {
                host: host.clone(),
                port: None,
            }),
            (_, None) => Weight::new(
                Risk::Moderate,
                format!("connects to {}, as you allowed", hosts.join(", ")),
            )
            .contained(),
        }
    }
}

/// A connection out of the sandbox is judged when it is made; until then it is code like any other.
fn connects_later(what: String) -> Weight {
    by_sandbox(Weight::new(Risk::Moderate, what), true)
}

/// What the sandbox lets come to nothing, but for what code that it starts does in the workspace.
fn fails(what: String) -> Weight {
    Weight::new(Risk::Moderate, what).contained().changes()
}

fn by_sandbox(weight: Weight, confined: bool) -> Weight {
    match confined {
        true => weight.contained().changes(),
        false => weight.within().changes(),
    }
}

/// Whether an argument names a secret, to be put in its place.
pub(crate) fn uses_secret(arguments: &Value) -> bool {
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

/// The system's folders for temporary files.
const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Whether it lies in one of them.
pub(crate) fn is_scratch(path: &Path) -> bool {
    SCRATCH.iter().any(|scratch| path.starts_with(scratch))
}

/// Whether it is a file of `/proc` about one process. The sandbox has a `/proc` of its own.
fn is_about_processes(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix("/proc") else {
        return false;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    let [process, about] = parts[..] else {
        return false;
    };
    // Its variables may be secret, and links among the rest lead elsewhere.
    process.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(
            about,
            "status" | "stat" | "statm" | "limits" | "cgroup" | "comm" | "cmdline" | "maps"
        )
}

/// Whether git reads its configuration or hooks below this path, in any letter case.
pub(crate) fn has_git_part(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
}

/// Whether a path below the workspace is where a project keeps its rules.
pub(crate) fn is_rule(below: &Path) -> bool {
    let first = below.iter().next();
    first.is_some_and(|part| part.eq_ignore_ascii_case(".gyrus"))
}
