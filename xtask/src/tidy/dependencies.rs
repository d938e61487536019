//! Rules on which crates may depend on which.

use super::Finding;
use crate::repository::{Dependency, Package};

/// Each crate with the crates of this workspace that it may depend on, also for its tests and its
/// build. A crate of neither list is an error.
const ALLOWED: [(&str, &[&str]); 31] = [
    ("gyrus-contract", &[]),
    ("gyrus-text", &[]),
    ("gyrus-net", &[]),
    ("gyrus-search", &[]),
    ("gyrus-pdf", &[]),
    ("gyrus-procedures", &["gyrus-contract", "gyrus-text"]),
    ("gyrus-process", &["gyrus-contract", "gyrus-text"]),
    (
        "gyrus-journal",
        &["gyrus-contract", "gyrus-text", "gyrus-process"],
    ),
    ("gyrus-workspace", &["gyrus-contract", "gyrus-text"]),
    (
        "gyrus-kernel",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-journal",
            "gyrus-process",
            "gyrus-workspace",
        ],
    ),
    (
        "gyrus-loops",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-procedures",
            "gyrus-kernel",
        ],
    ),
    ("gyrus-models", ORGAN),
    ("gyrus-tools", ORGAN_OF_FILES),
    ("gyrus-gate", ORGAN_OF_FILES),
    ("gyrus-screen", ORGAN_OF_PROCESSES),
    (
        "gyrus-mcp",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-net",
            "gyrus-search",
            "gyrus-process",
        ],
    ),
    ("gyrus-memory", ORGAN_OF_FILES),
    ("gyrus-skills", ORGAN),
    (
        "gyrus-plugins",
        &["gyrus-text", "gyrus-process", "gyrus-mcp", "gyrus-skills"],
    ),
    ("gyrus-player", &[]),
    ("gyrus-lines", &[]),
    (
        "gyrus-simulation",
        &[
            "gyrus-contract",
            "gyrus-journal",
            "gyrus-process",
            "gyrus-models",
            "gyrus-fleet",
        ],
    ),
    (
        "gyrus-runtime",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-procedures",
            "gyrus-journal",
            "gyrus-process",
            "gyrus-kernel",
        ],
    ),
    ("gyrus-surfaces", ABOVE_RUNTIME),
    (
        "gyrus-telemetry",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-net",
            "gyrus-journal",
            "gyrus-kernel",
        ],
    ),
    (
        "gyrus-server",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-journal",
            "gyrus-process",
            "gyrus-kernel",
            "gyrus-runtime",
            "gyrus-surfaces",
        ],
    ),
    (
        "gyrus-acp",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-journal",
            "gyrus-kernel",
            "gyrus-runtime",
            "gyrus-surfaces",
        ],
    ),
    (
        "gyrus-chat",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-net",
            "gyrus-journal",
            "gyrus-kernel",
            "gyrus-runtime",
            "gyrus-surfaces",
        ],
    ),
    (
        "gyrus-mcp-server",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-journal",
            "gyrus-kernel",
            "gyrus-runtime",
            "gyrus-server",
            "gyrus-surfaces",
        ],
    ),
    ("gyrus-fleet", ABOVE_RUNTIME),
    (
        "gyrus-lab",
        &[
            "gyrus-contract",
            "gyrus-text",
            "gyrus-journal",
            "gyrus-process",
            "gyrus-kernel",
            "gyrus-loops",
            "gyrus-screen",
            "gyrus-surfaces",
        ],
    ),
];
/// Organs never see each other, nor what is above them.
const ORGAN: &[&str] = &["gyrus-contract", "gyrus-text", "gyrus-net"];
/// These also start processes.
const ORGAN_OF_PROCESSES: &[&str] = &[
    "gyrus-contract",
    "gyrus-text",
    "gyrus-net",
    "gyrus-process",
    "gyrus-pdf",
];
/// These also change files and start processes.
const ORGAN_OF_FILES: &[&str] = &[
    "gyrus-contract",
    "gyrus-text",
    "gyrus-net",
    "gyrus-search",
    "gyrus-pdf",
    "gyrus-process",
    "gyrus-workspace",
];
const ABOVE_RUNTIME: &[&str] = &[
    "gyrus-contract",
    "gyrus-text",
    "gyrus-journal",
    "gyrus-process",
    "gyrus-kernel",
    "gyrus-runtime",
];

/// Data, helpers and simulated worlds: the tests of every crate may use them.
const FOR_TESTS: [&str; 3] = ["gyrus-lines", "gyrus-player", "gyrus-simulation"];

/// Wiring: it may depend on everything, and nothing depends on it but on the library of `gyrus`, as
/// an embedder does.
const TOP_LEVEL: [&str; 7] = [
    "gyrus",
    "gyrus-bench",
    "gyrus-conformance",
    "gyrus-fuzz",
    "gyrus-oracle",
    "gyrus-replays",
    "xtask",
];

/// Checks the dependencies between the members of the workspace.
pub(super) fn check(members: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in members {
        let manifest = manifest(&package.name);
        let allowed = ALLOWED
            .iter()
            .find(|(name, _)| *name == package.name)
            .map(|(_, may)| *may);
        let is_top_level = TOP_LEVEL.contains(&package.name.as_str());
        if allowed.is_none() && !is_top_level {
            findings.push(Finding::new(
                &manifest,
                None,
                "this crate is not listed; list what it may depend on in xtask/src/tidy/dependencies.rs",
            ));
        }
        for Dependency { name, kind } in &package.dependencies {
            let is_member = members.iter().any(|member| member.name == *name);
            let for_tests = kind.as_deref() == Some("dev") && FOR_TESTS.contains(&name.as_str());
            let may = match allowed {
                Some(may) => for_tests || may.contains(&name.as_str()),
                None => name == "gyrus" || !TOP_LEVEL.contains(&name.as_str()),
            };
            // A crate's own tests may name it.
            if is_member && !may && *name != package.name {
                let kind = kind.as_deref().unwrap_or("normal");
                let message = match allowed {
                    Some([]) => format!("{kind} dependency on {name}: it may have none of ours"),
                    Some(may) => {
                        format!(
                            "{kind} dependency on {name}: it may only have {}",
                            may.join(", ")
                        )
                    }
                    None => format!("{kind} dependency on {name}, on which nothing may depend"),
                };
                findings.push(Finding::new(&manifest, None, message));
            }
        }
    }
    findings
}

/// Returns the path of a member's manifest, by the workspace's own convention.
fn manifest(package: &str) -> String {
    match package {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        "gyrus-bench" => "benches/Cargo.toml".to_owned(),
        "gyrus-conformance" => "tests/conformance/Cargo.toml".to_owned(),
        "gyrus-fuzz" => "tests/fuzz/Cargo.toml".to_owned(),
        "gyrus-lines" => "tests/lines/Cargo.toml".to_owned(),
        "gyrus-oracle" => "tests/oracle/Cargo.toml".to_owned(),
        "gyrus-player" => "tests/player/Cargo.toml".to_owned(),
        "gyrus-replays" => "tests/replays/Cargo.toml".to_owned(),
        "gyrus-simulation" => "tests/simulation/Cargo.toml".to_owned(),
        name => format!(
            "crates/{}/Cargo.toml",
            name.strip_prefix("gyrus-").unwrap_or(name)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).into(),
            kind: kind.map(Into::into),
        };
        Package {
            name: name.into(),
            version: "0.1.0".into(),
            license: None,
            source: None,
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn dependencies_are_checked() {
        let check = |from: &str, to: &str, kind: Option<&str>, expected: Option<&str>| {
            let members = [
                package(from, &[(to, kind), ("serde", None)]),
                package("gyrus-contract", &[]),
                package("gyrus-kernel", &[]),
                package("gyrus-journal", &[]),
                package("gyrus-models", &[]),
                package("gyrus-lines", &[]),
                package("gyrus", &[]),
                package("gyrus-oracle", &[]),
            ];
            let found: Vec<_> = super::check(&members)
                .into_iter()
                .map(|f| format!("{} {f}", f.path))
                .collect();
            match expected {
                None => assert!(found.is_empty(), "{found:?}"),
                Some(part) => assert!(found.len() == 1 && found[0].contains(part), "{found:?}"),
            }
        };
        check("gyrus-tools", "gyrus-contract", None, None);
        check(
            "gyrus-tools",
            "gyrus-models",
            None,
            Some("crates/tools/Cargo.toml"),
        );
        check(
            "gyrus-tools",
            "gyrus-kernel",
            Some("dev"),
            Some("dev dependency on gyrus-kernel"),
        );
        check("gyrus-tools", "gyrus-lines", Some("dev"), None);
        check("gyrus-tools", "gyrus-lines", None, Some("gyrus-lines"));
        check("gyrus-loops", "gyrus-kernel", None, None);
        check("gyrus-loops", "gyrus-journal", None, Some("gyrus-journal"));
        check("gyrus-runtime", "gyrus", None, Some("dependency on gyrus:"));
        check("xtask", "gyrus-kernel", None, None);
        check("gyrus-oracle", "gyrus", None, None);
        check("xtask", "gyrus-oracle", None, Some("nothing may depend"));
        check("gyrus-liver", "gyrus-contract", None, Some("is not listed"));
    }

    #[test]
    fn the_contract_stands_on_nothing() {
        let members = [
            package("gyrus-contract", &[("gyrus-journal", Some("dev"))]),
            package("gyrus-journal", &[("gyrus-contract", None)]),
        ];
        assert_eq!(check(&members).len(), 1);
    }
}
