//! The gate itself: looks a call up, and judges it.
//!
//! Two facts make one verdict: what a call does, and what contains it. The mode that the person
//! chose, their grants and their policy say what follows from that. Looking and judging are apart:
//! `resolve` touches the file system, `judge` is pure.

mod destination;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{
    CallPlace, ChangedPath, CommandFact, CommandReading, CommandWord, Containment, Decision,
    Destination, Does, Gate, Grant, Judgement, MeantCall, Mode, Network, ResolvedCall,
    ResolvedCommand, Risk, RunId, ToolCall, ToolMeaning, ToolSpec, Touch, Unresolvable, Verdict,
    WithheldChange,
};
use parking_lot::Mutex;

use gyrus_process::Programs;

use crate::{
    added, as_user,
    control::{self, ChangeSite, WorkspaceLook, WorkspaceState},
    destinations::{USUAL_PORTS, grants_connection},
    modes::{DamageBounds, decide},
    named_files,
    own_paths::OwnPaths,
    page,
    policy::{
        CallTrust, MayName, PathUse, Policy, PolicyRuling, PolicySubject, ServiceArguments,
        SubjectPath,
    },
    protected, resolve,
    risk::Scales,
    second_look, service,
    shell::{self, names::PossiblePaths},
    weight::TouchWeight,
};

/// Returns the containment of the commands of a run in this folder; in words why nothing confines
/// them. Called once for each run.
pub type Contain = dyn Fn(RunId, &Path) -> Result<Containment, String> + Send + Sync;

/// Judges calls by the policy, the grants and the risk of what they touch.
#[derive(Clone)]
pub struct PolicyGate {
    own_paths: OwnPaths,
    policy: Policy,
    standing: Vec<Grant>,
    /// Real paths of the folders in which the person's shell looks for programs.
    programs: Vec<PathBuf>,
    /// Finds the programs that are started with the person's own rights.
    finder: Arc<Programs>,
    contain: Arc<Contain>,
    contained: Arc<Mutex<BTreeMap<RunId, Result<Containment, String>>>>,
    /// The state of each workspace before the calls in progress.
    before: Arc<Mutex<BTreeMap<PathBuf, WorkspaceState>>>,
    /// The last look at each workspace, by the workspace's path.
    looks: Arc<Mutex<BTreeMap<PathBuf, WorkspaceLook>>>,
}

impl fmt::Debug for PolicyGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyGate")
            .field("own_paths", &self.own_paths)
            .field("policy", &self.policy)
            .field("standing", &self.standing)
            .finish_non_exhaustive()
    }
}

impl PolicyGate {
    /// A gate without policy, grants and sandbox.
    pub fn new(own_paths: OwnPaths) -> Self {
        Self {
            own_paths: own_paths.real(),
            finder: Arc::clone(Programs::of_this_process()),
            policy: Policy::default(),
            standing: Vec::new(),
            programs: Vec::new(),
            contain: Arc::new(|_, _| Err("the sandbox is turned off".to_owned())),
            contained: Arc::default(),
            before: Arc::default(),
            looks: Arc::default(),
        }
    }

    /// Returns the gate under this policy.
    #[must_use]
    pub fn under(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Returns the gate with the grants that are valid for good.
    #[must_use]
    pub fn with_grants(self, standing: Vec<Grant>) -> Self {
        Self { standing, ..self }
    }

    /// Returns the gate with the folders (real paths) in which the person's shell looks for
    /// programs: files that a command leaves in one of them are withheld.
    #[must_use]
    pub fn finding_programs_in(self, programs: Vec<PathBuf>) -> Self {
        Self { programs, ..self }
    }

    /// Returns the gate with `contain` as the function that confines commands.
    #[must_use]
    pub fn confining(self, contain: Arc<Contain>) -> Self {
        Self { contain, ..self }
    }

    fn containment(&self, place: CallPlace<'_>) -> Result<Containment, String> {
        let mut known = self.contained.lock();
        known
            .entry(place.run)
            .or_insert_with(|| (self.contain)(place.run, place.workspace))
            .clone()
    }

    /// Returns the reason why commands run unsandboxed, where they do: that of the newest run.
    fn why_unsandboxed(&self) -> Option<String> {
        let known = self.contained.lock();
        known
            .values()
            .rev()
            .find_map(|contained| contained.clone().err())
    }

    /// Reads a command line, and plans its containment.
    fn command(&self, tool: &str, line: &str, place: CallPlace<'_>) -> ResolvedCommand {
        let home = self.own_paths.person.clone();
        let read = shell::read_whole(
            line,
            &shell::ShellPlace {
                folder: place.workspace.to_owned(),
                home: home.clone(),
            },
        );
        let mut reading = read.reading;
        resolve::follow_links(&self.own_paths, &mut reading);
        self.name_paths(&read.names, place, &mut reading);
        let containment = self.containment(place).ok();
        let containment = containment.map(|mut containment| {
            added::add(place.sandbox, &mut containment);
            protected::protect_programs(place.workspace, &self.programs, &mut containment);
            self.mask(tool, place, &mut reading, &mut containment);
            let folders = place.skills.iter().filter_map(|skill| skill.folder.clone());
            containment.read_only.extend(folders);
            let mode = self.policy.mode(place.agent, place.mode);
            if reading.only_reads() || mode == Mode::ReadOnly {
                // Should the reading be wrong, it still changes nothing.
                containment.read_only.append(&mut containment.writable);
                containment.sockets.clear();
            }
            if !reading.facts.iter().any(|fact| builds(&fact.does)) {
                // Laying them takes longer than all the rest.
                containment.layered.clear();
            }
            // Whatever the line says: each connection is judged when it is made.
            containment.network = Network::Proxy;
            reading.environment.clear();
            containment
        });
        ResolvedCommand {
            reading,
            containment,
            program: None,
        }
    }

    /// Records the paths that the words of a line may stand for, if rules are about paths.
    fn name_paths(
        &self,
        names: &PossiblePaths,
        place: CallPlace<'_>,
        reading: &mut CommandReading,
    ) {
        if !self.policy.asks_about_paths() {
            return;
        }
        let home = self.own_paths.person.as_deref();
        let mut paths = names.paths(home);
        let found = names.found(home);
        reading.named.any = names.any || found.is_none();
        paths.extend(found.into_iter().flatten());
        paths.retain(|path| {
            let path = SubjectPath::new(path.clone(), PathUse::Reads, place.workspace);
            self.policy.asks_about(&path)
        });
        reading.named.paths.extend(paths);
    }

    /// Keeps a command from the paths that the policy denies, whatever its line says.
    fn mask(
        &self,
        tool: &str,
        place: CallPlace<'_>,
        reading: &mut CommandReading,
        containment: &mut Containment,
    ) {
        let mask = self.policy.mask(tool, place.agent, place.workspace);
        containment.hidden.extend(mask.hidden);
        containment.writable.extend(mask.fixed);
        containment.read_only.extend(mask.read_only);
        if mask.is_partial {
            reading.facts.push(CommandFact {
                does: Does::Hides,
                part: String::new(),
                why: TOO_MUCH_TO_MASK.to_owned(),
            });
        }
    }

    /// Returns the paths that a call is known to touch, including those in its command line.
    fn paths(call: &ResolvedCall, spec: &ToolSpec, workspace: &Path) -> Vec<SubjectPath> {
        let mut paths = Vec::new();
        let subject_path = |real: &Path, used| SubjectPath::new(real.to_owned(), used, workspace);
        for argument in spec.touches.iter().filter_map(Touch::paths) {
            let used = if argument.is_changed {
                PathUse::Changes
            } else {
                PathUse::Reads
            };
            let of_list = format!("{}/", argument.name);
            let is_named = |name: &String| name == argument.name || name.starts_with(&of_list);
            let named = call.paths.iter().filter(|(name, _)| is_named(name));
            paths.extend(named.map(|(_, path)| {
                let mut subject = subject_path(&path.real, used);
                subject.obeyed |= path.withheld.is_some();
                subject
            }));
        }
        let facts = call
            .command
            .iter()
            .flat_map(|command| &command.reading.facts);
        for fact in facts.filter(|fact| fact.why != shell::SOME) {
            match &fact.does {
                Does::Reads { path } => paths.push(subject_path(path, PathUse::Reads)),
                Does::Writes { path } | Does::Removes { path } => {
                    paths.push(subject_path(path, PathUse::Changes));
                }
                _ => {}
            }
        }
        paths
    }

    fn ruling(
        &self,
        call: &ResolvedCall,
        spec: &ToolSpec,
        meant: Option<&MeantCall>,
        under: &Judgement<'_>,
    ) -> PolicyRuling {
        let paths = Self::paths(call, spec, under.workspace);
        let mut hosts = Vec::new();
        let mut unread = false;
        let mut commands = &[][..];
        let is_contained = |command: &ResolvedCommand| command.containment.is_some();
        let contained = call.command.as_ref().is_some_and(is_contained);
        let (mut named, mut names_any, mut masked) = (Vec::new(), false, contained);
        if let Some(command) = &call.command {
            let may_touch =
                |real: &PathBuf, used| SubjectPath::new(real.clone(), used, under.workspace);
            let words = command.reading.named.paths.iter();
            named.extend(words.map(|path| may_touch(path, PathUse::Reads)));
            names_any = command.reading.named.any;
            commands = &command.reading.commands;
            for fact in &command.reading.facts {
                match &fact.does {
                    Does::Connects { .. } if contained => {}
                    Does::Connects { hosts: named } if named.is_empty() => {
                        hosts.push(String::new());
                    }
                    Does::Connects { hosts: named } => hosts.extend(named.iter().cloned()),
                    Does::Hides => unread = true,
                    Does::Removes { path } if fact.why == shell::SOME => {
                        named.push(may_touch(path, PathUse::Changes));
                    }
                    _ => {}
                }
                masked &= fact.why != TOO_MUCH_TO_MASK;
            }
        }
        match (meant, call.arguments["url"].as_str()) {
            (Some(meant), _) => hosts.extend(service::hosts(meant)),
            (None, Some(url)) => hosts.extend(crate::destinations::host(url)),
            (None, None) => {}
        }
        hosts.extend(call.aim.iter().flat_map(page::hosts));
        let subject = PolicySubject {
            tool: &call.tool,
            arguments: &call.arguments,
            service: meant.map(|meant| ServiceArguments {
                values: &meant.values,
                // The hosts of a page are known, and a rule must speak of them.
                is_meant: meant.action.is_some() && spec.is_served(),
            }),
            trusted: under.trusted,
            paths: &paths,
            hosts: &hosts,
            commands,
            unread,
            exposed: under.exposed,
            agent: under.agent,
            may_name: MayName {
                paths: &named,
                any: names_any,
                masked,
            },
        };
        if contained {
            self.policy.rule_before_connecting(&subject)
        } else {
            self.policy.rule(&subject)
        }
    }
}

impl Gate for PolicyGate {
    fn keeps_secrets(&self, path: &Path) -> bool {
        shell::is_secret(path, self.own_paths.person.as_deref())
    }

    fn resolve(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        place: CallPlace<'_>,
    ) -> Result<ResolvedCall, Unresolvable> {
        let mut resolved = resolve::call(&self.own_paths, call, spec, place)?;
        let mut lines = spec.touches.iter().filter_map(Touch::command_line);
        let line = lines.find_map(|argument| {
            let line = resolved.arguments[argument].as_str()?;
            (!line.trim().is_empty()).then_some(line)
        });
        resolved.command = match line.map(|line| self.command(&call.tool, line, place)) {
            Some(command) => Some(command),
            None => as_user::look_up(
                &self.own_paths,
                &self.finder,
                &spec.touches,
                &resolved.arguments,
                place,
            )?,
        };
        let (own_paths, finder) = (&self.own_paths, &self.finder);
        let folder = place.workspace;
        resolved.files = named_files::look_up(own_paths, finder, &resolved, spec, folder);
        self.look_before(&mut resolved, spec, place.workspace);
        Ok(resolved)
    }

    fn judge(&self, call: &ResolvedCall, spec: &ToolSpec, under: &Judgement<'_>) -> Verdict {
        let why_unsandboxed = self.why_unsandboxed();
        let meant = self.meant(call, spec);
        let scales = Scales {
            meant: meant.as_ref(),
            own_paths: &self.own_paths,
            standing: &self.standing,
            call,
            workspace: under.workspace,
            under,
            why_unsandboxed: &why_unsandboxed.unwrap_or_default(),
        };
        let mut weights: Vec<_> = spec
            .touches
            .iter()
            .filter(|touch| !resolve::reads_nothing(touch, call, spec))
            .flat_map(|touch| scales.touch(touch))
            .collect();
        let ungranted = weights.iter().map(|weight| weight.risk).max();
        let granted = self.reweigh(&mut weights, call, under);
        let risk = weights.iter().map(|weight| weight.risk).max();
        let risk = risk.unwrap_or(Risk::Safe);
        let bounds = DamageBounds {
            contained: weights
                .iter()
                .all(|weight| weight.contained || (weight.within && under.throwaway)),
            undoable: under.undoable || granted || !weights.iter().any(|weight| weight.changes),
        };
        let forbidden = weights.iter().any(|weight| weight.forbidden);
        let asks = spec.touches(|touch| touch.question().is_some());
        let mode = self.policy.mode(under.agent, under.mode);
        let (decision, why) = match mode {
            _ if forbidden => (Decision::Deny, None),
            Mode::Never if asks => (Decision::Deny, Some("mode `never` asks nobody".to_owned())),
            Mode::ReadOnly | Mode::Ask | Mode::Edits | Mode::Auto if asks => (Decision::Ask, None),
            // High as it is, it is what the person said yes to, to the word.
            mode if is_granted_by_words(&weights) => decide(Risk::Moderate, AS_GRANTED, mode),
            mode => decide(risk, bounds, mode),
        };
        let wider = wider(call, risk, &weights);
        let mut verdict = Verdict {
            risk,
            decision,
            reasons: reasons(weights, risk),
            wider,
            if_doubted: None,
            ungranted: ungranted.filter(|bare| *bare > risk),
        };
        if under.exposed && risk >= Risk::High {
            let exposed = "the run has read untrusted text";
            verdict.reasons.push(exposed.to_owned());
        }
        verdict.reasons.extend(why);
        if let Some(skill) = under.skills.iter().find(|skill| !skill.allows(spec)) {
            verdict.decision = Decision::Deny;
            let why = format!("the skill `{}` works without `{}`", skill.name, spec.name);
            verdict.reasons.push(why);
            return verdict;
        }
        let mut is_trusted = false;
        if !forbidden && !asks {
            let ruling = self.ruling(call, spec, meant.as_ref(), under);
            is_trusted = self.apply_policy(&mut verdict, ruling, &call.tool, mode, under);
        }
        if verdict.decision == Decision::Allow && under.exposed && !is_trusted {
            verdict.if_doubted = second_look::is_due(call).then(|| when_doubted(mode));
        }
        verdict
    }

    fn meant(&self, call: &ResolvedCall, spec: &ToolSpec) -> Option<MeantCall> {
        let Some(service) = spec.touches.iter().find_map(Touch::service) else {
            return self.policy.forms().meant(call.aim.as_ref()?);
        };
        let meaning = self.policy.meaning(service);
        Some(service::take_apart(call, spec, meaning.as_ref()))
    }

    fn forms(&self, trusted: &[&str]) -> Vec<(ToolSpec, ToolMeaning)> {
        self.policy.forms().tools(trusted)
    }

    fn meaning(&self, spec: &ToolSpec) -> Option<ToolMeaning> {
        let service = spec.touches.iter().find_map(Touch::service)?;
        self.policy.meaning(service)
    }

    fn withhold(&self, changes: &[ChangedPath], under: &Judgement<'_>) -> Vec<WithheldChange> {
        if changes.is_empty() {
            return Vec::new();
        }
        let mut surroundings = self.look(under.workspace);
        let before = self.before.lock();
        if let Some(before) = before.get(under.workspace) {
            surroundings.extend(before);
        }
        control::withheld(changes, &self.around(under.workspace, &surroundings))
    }

    fn sends_to(&self, call: &ResolvedCall, risk: Risk, under: &Judgement<'_>) -> Vec<String> {
        page::sends_to(call.aim.as_ref(), risk, under, &self.standing)
    }

    fn judge_destination(
        &self,
        to: &Destination,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> Verdict {
        self.connection(to, call, spec, under)
    }

    fn forwarded(
        &self,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> Vec<(SocketAddr, Decision)> {
        self.loopback(call, spec, under)
    }
}

impl PolicyGate {
    fn look(&self, workspace: &Path) -> WorkspaceState {
        let mut looks = self.looks.lock();
        let look = looks.entry(workspace.to_owned()).or_default();
        if !look.is_still_true() {
            let home = self.own_paths.person.as_deref();
            *look = WorkspaceLook::at(workspace, home, self.policy.control_files());
        }
        look.surroundings.clone()
    }

    fn around<'a>(
        &'a self,
        workspace: &'a Path,
        surroundings: &'a WorkspaceState,
    ) -> ChangeSite<'a> {
        ChangeSite {
            workspace,
            programs: &self.programs,
            added: self.policy.control_files(),
            surroundings,
        }
    }

    /// Looks at a workspace before a call changes it, and notes which files named by the call need
    /// a person's approval to change.
    pub(crate) fn look_before(&self, call: &mut ResolvedCall, spec: &ToolSpec, workspace: &Path) {
        if !spec.touches(|touch| touch.changes_workspace() || touch.paths().is_some()) {
            return;
        }
        let mut surroundings = self.look(workspace);
        {
            // What was there at any time counts: what lies beside it now may hide it.
            let mut before = self.before.lock();
            let known = before.entry(workspace.to_owned()).or_default();
            known.extend(&surroundings);
            surroundings.clone_from(known);
        }
        let written = resolve::written(call, spec);
        let below = written.iter().filter_map(|(name, stays)| {
            let below = call.paths.get(name)?.in_workspace.clone()?;
            Some((name, (below, *stays)))
        });
        let (names, files): (Vec<_>, Vec<_>) = below.unzip();
        let reasons = control::withheld_writes(&files, &self.around(workspace, &surroundings));
        for (name, reason) in names.into_iter().zip(reasons) {
            if let Some(path) = call.paths.get_mut(name) {
                path.withheld = path.withheld.take().or(reason);
            }
        }
    }

    /// Applies grants, and whether the effects can be undone, to the weights. Returns whether a
    /// grant applied.
    fn reweigh(
        &self,
        weights: &mut [TouchWeight],
        call: &ResolvedCall,
        under: &Judgement<'_>,
    ) -> bool {
        let mut granted = false;
        for weight in weights {
            if weight.by_words().is_some() && self.is_granted(call, weight, under.grants) {
                granted = true;
                weight.risk = Risk::High;
                weight.reason.push_str(", which you allowed in these words");
            } else if weight.risk == Risk::High && self.is_granted(call, weight, under.grants) {
                granted = true;
                weight.risk = Risk::Moderate;
                weight.contained = true;
                weight.reason.push_str(", which you allowed");
            } else if weight.risk == Risk::Moderate
                && weight.grant.is_some()
                && self.is_granted(call, weight, under.grants)
            {
                granted = true;
                weight.contained = true;
                weight.reason.push_str(", which you allowed");
            } else if weight.risk == Risk::Moderate && weight.changes && !under.undoable {
                weight.risk = Risk::High;
                weight.reason.push_str(", which cannot be undone here");
            }
        }
        granted
    }

    fn is_granted(&self, call: &ResolvedCall, weight: &TouchWeight, grants: &[Grant]) -> bool {
        if weight.each_time {
            return false;
        }
        let mut all = grants.iter().chain(&self.standing);
        match &weight.grant {
            Some(Grant::Reads { path }) => all.any(
                |grant| matches!(grant, Grant::Reads { path: granted } | Grant::Writes { path: granted } if path.starts_with(granted)),
            ),
            Some(Grant::Writes { path }) => all.any(
                |grant| matches!(grant, Grant::Writes { path: granted } if path.starts_with(granted)),
            ),
            Some(Grant::Host { host, port }) => {
                let ports = port.map_or(USUAL_PORTS.to_vec(), |port| vec![port]);
                let covers = |port: &u16| {
                    let mut all = all.clone();
                    all.any(|grant| grants_connection(grant, host, *port))
                };
                ports.iter().all(covers)
            }
            Some(wanted) => all.any(|grant| grant == wanted),
            None => command_is_granted(call, grants.iter().chain(&self.standing)),
        }
    }

    /// Applies the person's rules and trust settings. Rules may allow what would be asked about,
    /// but never what is critical. Returns whether they make the call trusted.
    fn apply_policy(
        &self,
        verdict: &mut Verdict,
        ruling: PolicyRuling,
        tool: &str,
        mode: Mode,
        under: &Judgement<'_>,
    ) -> bool {
        match self.policy.trust(under.agent, tool, verdict.risk) {
            CallTrust::Blocked { why } => {
                verdict.decision = Decision::Deny;
                verdict.reasons.push(why);
                // No rule gives an agent a tool that it does not have.
                return false;
            }
            CallTrust::AutoApproved { why } if ruling.decision.is_none() => {
                allow(verdict, mode, vec![why]);
                return true;
            }
            CallTrust::AutoApproved { .. } | CallTrust::NotNeeded | CallTrust::Person => {}
        }
        match ruling.decision {
            Some(Decision::Allow) => {
                allow(verdict, mode, ruling.reasons);
                return true;
            }
            Some(stricter) => {
                verdict.decision = verdict.decision.max(stricter);
                verdict.reasons.extend(ruling.reasons);
            }
            None => {}
        }
        false
    }
}

/// Limits of the damage of a call that was granted by its exact words, in the table of modes.
const AS_GRANTED: DamageBounds = DamageBounds {
    contained: true,
    undoable: true,
};

/// Whether everything worse than a plain change was granted by its exact words.
fn is_granted_by_words(weights: &[TouchWeight]) -> bool {
    let mut worse = weights
        .iter()
        .filter(|weight| weight.risk >= Risk::High)
        .peekable();
    worse.peek().is_some()
        && worse.all(|weight| weight.risk == Risk::High && weight.by_words().is_some())
}

fn when_doubted(mode: Mode) -> Decision {
    match mode {
        Mode::ReadOnly | Mode::Never => Decision::Deny,
        Mode::Ask | Mode::Edits | Mode::Auto => Decision::Ask,
    }
}

/// Allows the call for these reasons, if the mode leaves anything to allow.
fn allow(verdict: &mut Verdict, mode: Mode, why: Vec<String>) {
    let may = match mode {
        Mode::ReadOnly => false,
        Mode::Ask | Mode::Edits | Mode::Auto | Mode::Never => verdict.risk < Risk::Critical,
    };
    if may && verdict.decision != Decision::Allow {
        verdict.decision = Decision::Allow;
        verdict.reasons.extend(why);
    }
}

/// Returns the reasons, those for the risk first; reasons of safe touches only if there are no
/// others.
fn reasons(mut weights: Vec<TouchWeight>, risk: Risk) -> Vec<String> {
    /// A card is read by a person.
    const MOST: usize = 6;
    if risk > Risk::Safe {
        weights.retain(|weight| weight.risk > Risk::Safe);
    }
    weights.sort_by_key(|weight| std::cmp::Reverse(weight.risk));
    let mut reasons: Vec<String> = Vec::new();
    for weight in weights {
        if !reasons.contains(&weight.reason) {
            reasons.push(weight.reason);
        }
    }
    if reasons.is_empty() {
        reasons.push("touches nothing outside the run".to_owned());
    }
    if reasons.len() > MOST {
        let more = reasons.len() - MOST;
        reasons.truncate(MOST);
        reasons.push(format!("and {more} more"));
    }
    reasons
}

/// Grants that would allow this call and similar ones.
fn wider(call: &ResolvedCall, risk: Risk, weights: &[TouchWeight]) -> Vec<Grant> {
    if risk == Risk::Critical {
        let critical = weights
            .iter()
            .filter(|weight| weight.risk == Risk::Critical);
        let grants: Option<Vec<_>> = critical.map(|weight| weight.by_words().cloned()).collect();
        return grants.unwrap_or_default();
    }
    if risk == Risk::Safe {
        return Vec::new();
    }
    // What is moderate asks only where nothing contains it; what was allowed is contained.
    let asks =
        |weight: &&TouchWeight| weight.risk == risk && (risk > Risk::Moderate || !weight.contained);
    let high = || weights.iter().filter(asks);
    if risk == Risk::Moderate && high().any(|weight| weight.grant.is_none()) {
        return Vec::new();
    }
    if high().any(|weight| weight.each_time) {
        return Vec::new();
    }
    let grants: Option<Vec<_>> = high().map(|weight| weight.grant.clone()).collect();
    let mut grants = match grants {
        Some(grants) => grants,
        None => family(call).into_iter().collect(),
    };
    grants.dedup();
    grants
}

/// Returns a grant of the program and subcommand of a line that is one command with known words.
fn family(call: &ResolvedCall) -> Option<Grant> {
    let reading = &call.command.as_ref()?.reading;
    let [simple] = &reading.commands[..] else {
        return None;
    };
    let understood = !reading.facts.iter().any(|fact| fact.does == Does::Hides);
    let words: Vec<_> = simple
        .words
        .iter()
        .map_while(CommandWord::literal)
        .collect();
    let subcommand = words.get(1).filter(|word| !word.starts_with('-'))?;
    understood.then(|| Grant::Command {
        words: vec![words[0].to_owned(), (*subcommand).to_owned()],
    })
}

/// Whether every command of the line begins as one that was granted.
fn command_is_granted<'a>(
    call: &ResolvedCall,
    grants: impl Iterator<Item = &'a Grant> + Clone,
) -> bool {
    let Some(command) = &call.command else {
        return false;
    };
    let begins = |simple: &gyrus_contract::SimpleCommand, wanted: &[String]| {
        let mut words = simple.words.iter().map(CommandWord::literal);
        wanted
            .iter()
            .all(|word| words.next() == Some(Some(word.as_str())))
    };
    let granted = |simple| {
        grants
            .clone()
            .any(|grant| matches!(grant, Grant::Command { words } if begins(simple, words)))
    };
    let reading = &command.reading;
    !reading.commands.is_empty()
        && !reading.facts.iter().any(|fact| fact.does == Does::Hides)
        && reading.commands.iter().all(granted)
}

/// Whether a tool runs code that needs the caches of packages.
fn builds(does: &Does) -> bool {
    matches!(does, Does::RunsCode | Does::GetsPackages | Does::Hides)
}

/// The message for a policy that the sandbox alone cannot enforce.
const TOO_MUCH_TO_MASK: &str = "not all that your policy denies can be kept from it: the folder is too large, or denied as a whole";

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
