//! The weight that one touch of a call, or one fact of a command line, adds to a verdict.

use std::path::Path;

use gyrus_contract::{
    CommandFact, CommandReading, Containment, Does, Grant, Judgement, MeantCall, ResolvedCall,
    ResolvedPath, Risk, Service, Touch, path_in_list,
};

use gyrus_text::counted;

use crate::{
    as_user, control, destinations,
    own_paths::OwnPaths,
    resolve::{is_blank, leaves_file},
    service::ServiceScales,
    shell,
    weight::{TouchWeight, uses_secret},
};

/// Computes the weights of the touches of one call.
pub(crate) struct Scales<'a> {
    pub(crate) own_paths: &'a OwnPaths,
    pub(crate) standing: &'a [Grant],
    pub(crate) call: &'a ResolvedCall,
    pub(crate) workspace: &'a Path,
    pub(crate) under: &'a Judgement<'a>,
    /// The reason why commands run unsandboxed, where they do.
    pub(crate) why_unsandboxed: &'a str,
    /// The analysed call, if it is one of a server's tool.
    pub(crate) meant: Option<&'a MeantCall>,
}

impl Scales<'_> {
    pub(crate) fn touch(&self, touch: &Touch) -> Vec<TouchWeight> {
        let call = self.call;
        vec![match touch {
            // One that need not be there, and is not.
            Touch::Starts(argument)
                if call
                    .arguments
                    .as_object()
                    .is_none_or(|all| is_blank(all, argument)) =>
            {
                return Vec::new();
            }
            Touch::Starts(_) => return self.command(),
            Touch::RunsAsUser { arguments, .. } => {
                let command = call.command.as_ref();
                return as_user::weigh(self.own_paths, command, &call.arguments, arguments);
            }
            Touch::Changes(argument) => return self.changes(argument),
            Touch::Compares(argument) => return self.compares(argument),
            Touch::Connects(argument) => {
                self.address(call.arguments[argument].as_str().unwrap_or_default())
            }
            Touch::Searches { host, .. } => TouchWeight::safe(format!(
                "searches by {host}, the service that you configured"
            )),
            Touch::Clipboard => TouchWeight::new(Risk::High, "uses the clipboard of your desktop")
                .unless(Grant::Tool {
                    tool: call.tool.clone(),
                }),
            Touch::Recalls => TouchWeight::safe("reads your memory"),
            // It keeps every earlier version itself, so there is a way back wherever the run works.
            Touch::Remembers => {
                let what = "writes into your memory, where it can be undone";
                TouchWeight::new(Risk::Moderate, what).contained()
            }
            Touch::Screen | Touch::Desktop => return self.page(),
            Touch::Evaluates(argument) => {
                let safe = "runs the check that you typed in the page";
                self.typed(argument, safe, "runs a script that nobody typed")
            }
            Touch::Submits(argument) => {
                let safe = "submits to the judge that you named";
                self.typed(argument, safe, "submits to a judge that nobody named")
            }
            Touch::Asks(_) => TouchWeight::safe("asks you a question"),
            Touch::HandsOver(_) => TouchWeight::safe("asks you to take over the browser"),
            Touch::Serves(service) => return self.service(service),
            Touch::Reads(argument) => match call.paths.get(argument) {
                Some(path) => self.reads(&path.real),
                None => not_looked_up(argument),
            },
            Touch::Writes(argument) => match call.paths.get(argument) {
                Some(path) if uses_secret(&call.arguments) => {
                    let what = "writes a secret, which is kept from the model, into a file";
                    let secret = TouchWeight::new(Risk::High, what)
                        .within()
                        .changes()
                        .each_time();
                    return vec![self.writes(path), secret];
                }
                Some(path) => self.writes(path),
                None => not_looked_up(argument),
            },
        }]
    }

    /// Weighs the use of a text that only a person may type.
    fn typed(&self, argument: &str, safe: &str, otherwise: &str) -> TouchWeight {
        let text = self.call.arguments[argument].as_str().unwrap_or_default();
        if self.under.trusted.contains(&text) {
            TouchWeight::safe(safe)
        } else {
            TouchWeight::critical(otherwise).forbidden()
        }
    }

    fn service(&self, service: &Service) -> Vec<TouchWeight> {
        let scales = self.meant.map(|meant| ServiceScales {
            service,
            call: self.call,
            meant,
            under: self.under,
            standing: self.standing,
        });
        scales.map_or_else(Vec::new, |scales| scales.weigh())
    }

    /// Returns a weight for each changed file, with one for all plain files together.
    fn changes(&self, argument: &str) -> Vec<TouchWeight> {
        let changes = self.call.arguments[argument].as_array();
        let (mut weights, mut plain) = (Vec::new(), 0_usize);
        for (index, change) in changes.into_iter().flatten().enumerate() {
            let name = path_in_list(argument, index);
            let Some(path) = self.call.paths.get(&name) else {
                weights.push(not_looked_up(&name));
                continue;
            };
            let weight = if leaves_file(change) {
                self.writes(path)
            } else {
                self.removes(path)
            };
            if weight.risk == Risk::Moderate && weight.contained {
                plain += 1
            } else {
                weights.push(weight)
            }
        }
        if plain > 0 {
            let what = format!("changes {} in the workspace", counted(plain, "file"));
            weights.push(TouchWeight::new(Risk::Moderate, what).contained().changes());
        }
        if uses_secret(&self.call.arguments[argument]) {
            let what = "writes a secret, which is kept from the model, into a file";
            weights.push(
                TouchWeight::new(Risk::High, what)
                    .within()
                    .changes()
                    .each_time(),
            );
        }
        weights
    }

    /// Returns a weight for each file that is read, with one for all plain readings together.
    fn compares(&self, argument: &str) -> Vec<TouchWeight> {
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

    fn reads(&self, path: &Path) -> TouchWeight {
        if let Some(skill) = self.skill_of(path) {
            return TouchWeight::safe(format!("reads a file of the skill `{skill}`"));
        }
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        if self.own_paths.holds_own(path) {
            let what =
                format!("reads outside the workspace: {shown}, which holds gyrus's own state");
            return TouchWeight::new(Risk::Critical, what);
        }
        if shell::is_secret(path, self.own_paths.person.as_deref()) {
            return TouchWeight::new(
                Risk::High,
                format!("reads {shown}, where keys or passwords are kept"),
            )
            .each_time();
        }
        if path.starts_with(self.workspace) {
            return TouchWeight::safe("reads inside the workspace and changes nothing");
        }
        if shell::is_system_path(path) {
            return TouchWeight::safe("reads what the system shows to everybody");
        }
        TouchWeight::new(Risk::High, format!("reads outside the workspace: {shown}")).unless(
            Grant::Reads {
                path: path.to_owned(),
            },
        )
    }

    fn writes(&self, resolved: &ResolvedPath) -> TouchWeight {
        let path = resolved.real.as_path();
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        let Ok(below) = path.strip_prefix(self.workspace) else {
            let weight =
                TouchWeight::new(Risk::High, format!("writes outside the workspace: {shown}"))
                    .changes();
            return if control::obeyed_by(path).is_some() {
                weight.each_time()
            } else {
                weight.unless(Grant::Writes {
                    path: path.to_owned(),
                })
            };
        };
        let shown = below.display();
        if is_rule(below) {
            let what = format!("changes {shown}, which holds this folder's rules for runs");
            return TouchWeight::new(Risk::Critical, what).changes();
        }
        if control::has_git_part(below) {
            // That a folder may be lost says nothing of what git runs there as the person.
            let what = format!("writes {shown}, and git runs programs that such files name");
            return TouchWeight::new(Risk::High, what).changes().each_time();
        }
        if let Some(reason) = &resolved.withheld {
            let what = format!("writes {shown}: {reason}");
            return TouchWeight::new(Risk::High, what)
                .within()
                .changes()
                .each_time();
        }
        let what = if below.as_os_str().is_empty() {
            "writes in the workspace".to_owned()
        } else {
            format!("writes {shown} in the workspace")
        };
        TouchWeight::new(Risk::Moderate, what).contained().changes()
    }

    fn removes(&self, resolved: &ResolvedPath) -> TouchWeight {
        let path = resolved.real.as_path();
        if let Some(forbidden) = self.own_state(path) {
            return forbidden;
        }
        let shown = path.display();
        match path.strip_prefix(self.workspace) {
            Ok(below) if below.as_os_str().is_empty() => {
                TouchWeight::new(Risk::High, "removes the whole workspace")
                    .within()
                    .changes()
                    .each_time()
            }
            Ok(below) if is_rule(below) => TouchWeight::new(
                Risk::Critical,
                format!(
                    "removes {}, which holds this folder's rules for runs",
                    below.display()
                ),
            )
            .changes(),
            Ok(below) if control::has_git_part(below) => TouchWeight::new(
                Risk::High,
                format!(
                    "removes {}, a part of the repository's history",
                    below.display()
                ),
            )
            .within()
            .changes()
            .each_time(),
            Ok(below) if let Some(reason) = &resolved.withheld => {
                TouchWeight::new(Risk::High, format!("removes {}: {reason}", below.display()))
                    .within()
                    .changes()
                    .each_time()
            }
            Ok(below) => TouchWeight::new(
                Risk::Moderate,
                format!("removes {} in the workspace", below.display()),
            )
            .contained()
            .changes(),
            Err(_) => TouchWeight::new(
                Risk::Critical,
                format!("removes {shown}, outside the workspace"),
            )
            .changes(),
        }
    }

    /// Returns the name of the followed skill that the file belongs to.
    fn skill_of(&self, path: &Path) -> Option<&str> {
        let mut skills = self.under.skills.iter();
        let skill = skills.find(|skill| {
            let folder = skill.folder.as_ref();
            folder.is_some_and(|folder| path.starts_with(folder))
        });
        skill.map(|skill| skill.name.as_str())
    }

    fn own_state(&self, path: &Path) -> Option<TouchWeight> {
        self.own_paths.is_own(path).then(|| {
            TouchWeight::new(
                Risk::Critical,
                "touches gyrus's own state, which no run may see or change",
            )
            .forbidden()
        })
    }

    pub(crate) fn address(&self, address: &str) -> TouchWeight {
        let Some((host, port)) = destinations::place(address) else {
            return TouchWeight::new(Risk::High, format!("connects to {address}"));
        };
        if let Some(why) = destinations::why_trusted(&host, Some(port), self.under, self.standing) {
            return TouchWeight::safe(format!("reads from {host}; {why}"));
        }
        if self.under.link_was_seen {
            return TouchWeight::safe("follows a link, as it stood in what the run has read");
        }
        let what =
            format!("connects to {host}: an address made up by the model can carry data there");
        let port = destinations::port_of_grant(port);
        TouchWeight::new(Risk::High, what).unless(Grant::Host { host, port })
    }

    fn command(&self) -> Vec<TouchWeight> {
        let Some(command) = &self.call.command else {
            return vec![TouchWeight::new(
                Risk::High,
                "runs a command that was not read",
            )];
        };
        let mut weights = match &command.containment {
            Some(containment) => self.contained(&command.reading, containment),
            None => self.unsandboxed(&command.reading),
        };
        if uses_secret(&self.call.arguments) {
            let what = "puts a secret, which is kept from the model, into a command";
            weights.push(TouchWeight::new(Risk::Critical, what));
        }
        weights
    }

    /// Weighs a line that runs in the sandbox, which limits the line however it is written; what
    /// the line says of itself can only make it weigh more.
    fn contained(&self, reading: &CommandReading, containment: &Containment) -> Vec<TouchWeight> {
        let changes = |what: String| {
            if containment.writable.is_empty() {
                TouchWeight::safe(what)
            } else {
                TouchWeight::new(Risk::Moderate, what).contained().changes()
            }
        };
        let mut weights = vec![changes(if containment.writable.is_empty() {
            "runs in the sandbox, where it can change nothing".to_owned()
        } else {
            "runs in the sandbox, and can change the workspace".to_owned()
        })];
        for fact in &reading.facts {
            let stricter = if containment.writable.is_empty() {
                self.reads_plainly(fact, containment)
            } else {
                self.reads_plainly(fact, containment)
                    .or_else(|| self.changes_plainly(fact))
            };
            weights.push(stricter.unwrap_or_else(|| changes(told(fact))));
        }
        weights
    }

    /// Weighs an effect that no containment makes harmless: handing keys to the model.
    fn reads_plainly(&self, fact: &CommandFact, containment: &Containment) -> Option<TouchWeight> {
        let (Does::Reads { path } | Does::Writes { path } | Does::Removes { path }) = &fact.does
        else {
            return None;
        };
        let reads = matches!(fact.does, Does::Reads { .. });
        if reads && self.skill_of(path).is_some() {
            return None;
        }
        if let Some(forbidden) = self.own_state(path) {
            return Some(forbidden);
        }
        let is_hidden = containment
            .hidden
            .iter()
            .any(|hidden| path.starts_with(hidden));
        let is_secret = shell::is_secret(path, self.own_paths.person.as_deref());
        let in_workspace = path.starts_with(self.workspace);
        (reads && in_workspace && is_secret && !is_hidden).then(|| self.reads(path))
    }

    /// Weighs a change by which the person would lose something for good.
    fn changes_plainly(&self, fact: &CommandFact) -> Option<TouchWeight> {
        let loses = |what: String| {
            if self.under.throwaway {
                TouchWeight::new(Risk::Moderate, what).contained().changes()
            } else {
                TouchWeight::critical(what).changes()
            }
        };
        match &fact.does {
            Does::Destroys if fact.why == shell::OF_OTHERS => None,
            Does::Destroys => Some(loses(told(fact))),
            Does::Removes { path }
                if self.workspace.starts_with(path) && fact.why != shell::SOME =>
            {
                Some(loses(format!(
                    "`{}` removes the whole workspace",
                    fact.part
                )))
            }
            Does::Removes { .. }
            | Does::Writes { .. }
            | Does::Reads { .. }
            | Does::ChangesRepository
            | Does::RunsCode
            | Does::GetsPackages
            | Does::Connects { .. }
            | Does::UsesCredentials
            | Does::Publishes
            | Does::ChangesSystem
            | Does::Hides => None,
        }
    }

    /// Weighs unsandboxed code, which could do whatever the person can, even answer for them: it is
    /// asked about each time, in every mode, wherever it runs, unless its line is plain.
    fn unsandboxed(&self, reading: &CommandReading) -> Vec<TouchWeight> {
        let is_own = |fact: &CommandFact| match &fact.does {
            Does::Reads { path } if self.skill_of(path).is_some() => None,
            Does::Reads { path } | Does::Writes { path } | Does::Removes { path } => {
                self.own_state(path)
            }
            Does::ChangesRepository
            | Does::RunsCode
            | Does::GetsPackages
            | Does::Connects { .. }
            | Does::UsesCredentials
            | Does::Publishes
            | Does::Destroys
            | Does::ChangesSystem
            | Does::Hides => None,
        };
        if let Some(forbidden) = reading.facts.iter().find_map(is_own) {
            return vec![forbidden];
        }
        if !reading.plain {
            let what = format!("would run outside the sandbox: {}", self.why_unsandboxed);
            let words = reading.facts.iter();
            let words = words.map(|fact| TouchWeight::new(Risk::High, told(fact)));
            return std::iter::once(TouchWeight::critical(what))
                .chain(words)
                .collect();
        }
        let reads = reading.facts.iter().filter_map(|fact| match &fact.does {
            Does::Reads { path } => Some(self.reads(path)),
            _ => None,
        });
        std::iter::once(TouchWeight::safe(
            "prints what plain files hold, and no more",
        ))
        .chain(reads)
        .collect()
    }
}

/// Describes a part of a line for a card.
fn told(fact: &CommandFact) -> String {
    let place = |path: &Path| path.display().to_string();
    let does = match &fact.does {
        Does::Reads { path } => format!("reads {}", place(path)),
        Does::Writes { path } => format!("writes {}", place(path)),
        Does::Removes { .. } if fact.why == shell::SOME => "removes files".to_owned(),
        Does::Removes { path } => format!("removes {}", place(path)),
        Does::ChangesRepository => "changes the repository".to_owned(),
        Does::RunsCode => "runs code".to_owned(),
        Does::GetsPackages => {
            "gets packages, and each connection is judged when it is made".to_owned()
        }
        Does::Connects { .. } => "connects, which is judged when it does".to_owned(),
        Does::UsesCredentials | Does::Publishes | Does::ChangesSystem => {
            format!("needs your own rights ({})", fact.why)
        }
        Does::Destroys => format!("destroys ({})", fact.why),
        Does::Hides => format!("is not understood ({})", fact.why),
    };
    if fact.part.is_empty() {
        does
    } else {
        format!("`{}` {does}", fact.part)
    }
}

fn not_looked_up(argument: &str) -> TouchWeight {
    TouchWeight::new(
        Risk::High,
        format!("touches `{argument}`, which was not looked up"),
    )
}

/// Whether a path below the workspace is a place for a project's rules.
pub(crate) fn is_rule(below: &Path) -> bool {
    let first = below.iter().next();
    first.is_some_and(|part| part.eq_ignore_ascii_case(".gyrus"))
}
