//! Judging one connection that a command wants to make out of its sandbox.
//!
//! Where it goes is known exactly here, and nothing of the command's text is needed to know it. A
//! host without a port means 443 and 80 wherever a person names one.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

use gyrus_contract::{
    Decision, Destination, Does, Grant, Judgement, ResolvedCall, Risk, ToolSpec, Verdict,
};
use gyrus_net::{AddressKind, AddressScope};
use gyrus_process::serving;

use super::PolicyGate;
use crate::{
    destinations::{self, LOOPBACK},
    modes::{DamageBounds, decide},
    policy::{MayName, PolicyRuling, PolicySubject},
    weight::TouchWeight,
};

/// Maximum number of loopback ports that are considered; those that a person named come first.
const MAX_PORTS: usize = 32;

impl PolicyGate {
    pub(super) fn connection(
        &self,
        to: &Destination,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> Verdict {
        let weight = self.weigh(to, under);
        let bounds = DamageBounds {
            contained: weight.contained,
            undoable: true,
        };
        let mode = self.policy.mode(under.agent, under.mode);
        let (decision, why) = if weight.forbidden {
            (Decision::Deny, None)
        } else {
            decide(weight.risk, bounds, mode)
        };
        let mut verdict = Verdict {
            risk: weight.risk,
            decision,
            reasons: vec![weight.reason],
            wider: weight.grant.into_iter().collect(),
            if_doubted: None,
            ungranted: None,
        };
        if under.exposed && verdict.risk >= Risk::High {
            let exposed = "the run has read untrusted text";
            verdict.reasons.push(exposed.to_owned());
        }
        verdict.reasons.extend(why);
        let ruling = self.connection_ruling(to, call, spec, under);
        self.apply_policy(&mut verdict, ruling, &call.tool, mode, under);
        verdict
    }

    fn weigh(&self, to: &Destination, under: &Judgement<'_>) -> TouchWeight {
        let why_trusted =
            |host: &str| destinations::why_trusted(host, Some(to.port), under, &self.standing);
        let grant = |host: &str| Grant::Host {
            host: host.to_owned(),
            port: Some(to.port),
        };
        let allowed = |why: String| {
            TouchWeight::new(Risk::Moderate, format!("connects to {to}; {why}")).contained()
        };
        let address = to.host.parse::<IpAddr>();
        let place = match &address {
            Ok(address) => AddressKind::of(*address).scope(),
            Err(_) if destinations::is_this_machine(&to.host) => AddressScope::Machine,
            Err(_) if destinations::is_near(&to.host) => AddressScope::Private,
            Err(_) => AddressScope::Public,
        };
        if place == AddressScope::Metadata {
            let what = format!("connects to {to}, where machines are given their own keys");
            return TouchWeight::critical(what);
        }
        if place == AddressScope::Machine && self.own_paths.is_own_port(to.port) {
            let what = format!("connects to {to}, where gyrus's own server listens");
            return TouchWeight::critical(what).forbidden();
        }
        if let Some(why) = why_trusted(&to.host) {
            return allowed(why);
        }
        // Only a name that can belong to nobody else speaks for an address of its network.
        let near = to.name.as_deref();
        let near =
            near.filter(|name| place == AddressScope::Private && destinations::is_near(name));
        if let Some(why) = near.and_then(why_trusted) {
            return allowed(why);
        }
        let (why, grant) = match place {
            AddressScope::Machine => ("which is this machine, and which", grant(&to.host)),
            AddressScope::Private => (
                "which is on this machine's network, and which",
                grant(near.unwrap_or(&to.host)),
            ),
            AddressScope::Public if destinations::is_registry(&to.host, to.port) => (
                "a registry of packages, to which data can be carried, and which",
                Grant::PackageRegistries,
            ),
            AddressScope::Public | AddressScope::Metadata => {
                ("where data can be carried, and which", grant(&to.host))
            }
        };
        TouchWeight::new(
            Risk::High,
            format!("connects to {to}, {why} you did not name"),
        )
        .unless(grant)
    }

    /// Returns the policy's ruling on a connection, under every spelling of the host.
    fn connection_ruling(
        &self,
        to: &Destination,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> PolicyRuling {
        let reading = call.command.as_ref().map(|command| &command.reading);
        let facts = || reading.into_iter().flat_map(|reading| &reading.facts);
        let paths = Self::paths(call, spec, under.workspace);
        let at_port = |host: &str| {
            if host.contains(':') {
                format!("[{host}]:{}", to.port)
            } else {
                format!("{host}:{}", to.port)
            }
        };
        let rule = |host: &str| {
            let mut hosts = vec![at_port(host)];
            hosts.extend(to.name.as_deref().map(at_port));
            self.policy.rule_connection(&PolicySubject {
                tool: &call.tool,
                arguments: &call.arguments,
                service: None,
                trusted: under.trusted,
                paths: &paths,
                hosts: &hosts,
                commands: reading.map_or(&[], |reading| &reading.commands),
                unread: facts().any(|fact| fact.does == Does::Hides),
                exposed: under.exposed,
                agent: under.agent,
                may_name: MayName::default(),
            })
        };
        let rulings = destinations::spellings(&to.host).into_iter().map(rule);
        let strictest = rulings.max_by_key(|ruling| ruling.decision);
        strictest.unwrap_or_default()
    }

    /// Returns the loopback addresses of this machine with a listener, each with the decision about
    /// a command that connects there. Ports that the system picks are left out, unless one was
    /// named.
    pub(super) fn loopback(
        &self,
        call: &ResolvedCall,
        spec: &ToolSpec,
        under: &Judgement<'_>,
    ) -> Vec<(SocketAddr, Decision)> {
        let texts = under.trusted.iter();
        let named = texts.flat_map(|text| {
            let hosts = LOOPBACK.into_iter();
            hosts.flat_map(|host| destinations::ports_named(text, host))
        });
        let granted = under.grants.iter().chain(&self.standing);
        let granted = granted.flat_map(|grant| match grant {
            Grant::Host { host, port } if LOOPBACK.contains(&host.as_str()) => {
                port.map_or(destinations::USUAL_PORTS.to_vec(), |port| vec![port])
            }
            _ => Vec::new(),
        });
        let by_policy = self.policy.loopback_ports();
        let mut ports: Vec<u16> = named.chain(granted).chain(by_policy).collect();
        ports.extend(serving::fixed_ports());
        let mut known = BTreeSet::new();
        ports.retain(|port| *port > 0 && known.insert(*port));
        ports.truncate(MAX_PORTS);
        let judged = serving::on_loopback(&ports).into_iter().map(|at| {
            let to = Destination {
                host: at.ip().to_string(),
                port: at.port(),
                name: None,
            };
            (at, self.connection(&to, call, spec, under).decision)
        });
        judged.collect()
    }
}
