//! `gyrus doctor`

use std::{env, path::Path};

use clap::Args;
use gyrus::runtime::sandbox;
use gyrus_contract::Limits;
use gyrus_gate::{namespaces, sandbox::Wall};
use gyrus_journal::os::watch;
use gyrus_process::keeper::{self, KeeperLevel};
use gyrus_runtime::request::ModelFlags;
use gyrus_text::counted;

use super::upgrade;
use crate::{
    Gyrus, browser, discover, drive, exit::Code, failure::Failure, model_choice::ModelChoice,
    plugins,
};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Show what is in force, try it, and name what is missing
#[derive(Args)]
pub(crate) struct Doctor {
    /// Read the whole state folder as this version does, and say what it would change
    #[arg(long)]
    upgrade: bool,
}

pub(crate) enum DoctorFinding {
    Good(String),
    /// The part works, with a gap that one should know of.
    Gap(String),
    Bad(Failure),
}

impl Doctor {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        if self.upgrade {
            let findings = upgrade::findings(gyrus).into_iter();
            let findings = findings.map(|(name, tried)| (name, found(tried)));
            return show(gyrus, findings.collect());
        }
        let mut findings = vec![
            ("state", state(gyrus)),
            ("configuration", configuration(gyrus)),
            ("model", model(gyrus)),
            ("keeper", keeper()),
            ("sandbox", sandboxed(gyrus)),
            ("browser", browses(gyrus)),
        ];
        findings.extend(plugins(gyrus).map(|finding| ("plugins", finding)));
        findings.extend(watches().map(|finding| ("watches", finding)));
        show(gyrus, findings)
    }
}

/// Shows the results of checks, to the exit code.
pub(crate) fn show(gyrus: &Gyrus, findings: Vec<(&str, DoctorFinding)>) -> Result<Code, Failure> {
    // Lines after the first stand under it.
    const INDENT: &str = "\n                 ";
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    let mut code = Code::Reached;
    for (name, finding) in findings {
        let (paint, mark, text) = match finding {
            DoctorFinding::Good(text) => (Tone::Call, "✓", text),
            DoctorFinding::Gap(text) => (Tone::Observation, "!", text),
            DoctorFinding::Bad(failure) => {
                code = failure.code;
                (Tone::Bad, "✗", failure.to_string())
            }
        };
        let text = text.replace('\n', INDENT);
        writeln!(out, "{} {name:<14} {text}", painter.paint(paint, mark))?;
    }
    Ok(code)
}

fn state(gyrus: &Gyrus) -> DoctorFinding {
    let tried = || {
        let home = gyrus.home()?;
        let store = home.store()?;
        home.redactor(Vec::new())?;
        store.check_not_copied()?;
        let runs = counted(gyrus_kernel::runs(&store)?.len(), "run");
        let file_system = file_system(&home.state);
        Ok(format!(
            "{}: {runs}, writable, {file_system}",
            home.state.display()
        ))
    };
    found(tried())
}

fn configuration(gyrus: &Gyrus) -> DoctorFinding {
    let tried = || {
        let home = gyrus.home()?;
        let config = gyrus.config()?;
        let mode = config.approve.unwrap_or_default();
        let limits = match config.limits.limits() {
            limits if limits == Limits::default() => "no limits".to_owned(),
            limits => format!(
                "limits {}",
                serde_json::to_string(&limits).unwrap_or_default()
            ),
        };
        let is_there = if home.config.exists() {
            "read"
        } else {
            "none, which is fine"
        };
        Ok(format!(
            "{}: {is_there}; mode `{mode}`, {limits}",
            home.config.display()
        ))
    };
    found(tried())
}

/// Whether all installed plugins are as the person agreed to; `None` if there are none.
fn plugins(gyrus: &Gyrus) -> Option<DoctorFinding> {
    match gyrus.home().and_then(|home| plugins::doubts(&home)) {
        Ok((0, _)) => None,
        Ok((count, notes)) if notes.is_empty() => Some(DoctorFinding::Good(format!(
            "{}, as you agreed to",
            counted(count, "plugin")
        ))),
        Ok((_, notes)) => Some(DoctorFinding::Gap(notes.join("\n"))),
        Err(failure) => Some(DoctorFinding::Bad(failure)),
    }
}

/// Checks that answers, steering and new runs are seen at once; `None` if they are.
fn watches() -> Option<DoctorFinding> {
    watch::probe().err()?;
    // The system's own words name the wrong cause: open files, or room on the disk.
    Some(DoctorFinding::Gap(
        "folders cannot be watched, so answers, steering and new runs are seen up to a second \
         late; other programs use up what one user may watch (inotify): `sysctl -w \
         fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288` gives more"
            .to_owned(),
    ))
}

fn model(gyrus: &Gyrus) -> DoctorFinding {
    let tried = || {
        let config = gyrus.config()?;
        if let Some(choice) = ModelChoice::named(gyrus, &config, &ModelFlags::default())? {
            return Ok(DoctorFinding::Good(choice.to_string()));
        }
        let runtime = drive::runtime()?;
        let found = runtime.block_on(discover::first(gyrus, &config))?;
        Ok::<_, Failure>(match found {
            Some(name) => DoctorFinding::Good(format!("{name}, found by itself")),
            None => DoctorFinding::Gap(
                "none: `gyrus setup` finds or stores a key; `gyrus demo` needs none".to_owned(),
            ),
        })
    };
    tried().unwrap_or_else(DoctorFinding::Bad)
}

fn keeper() -> DoctorFinding {
    match keeper::probe() {
        Ok(KeeperLevel::Namespace) => DoctorFinding::Good(
            "process namespaces: when gyrus dies, everything its commands started dies".to_owned(),
        ),
        Ok(KeeperLevel::Subreaper) => DoctorFinding::Gap(
            "no process namespaces here, so a subreaper kills what commands leave behind; if \
             both its processes are killed in one instant, something may stay"
                .to_owned(),
        ),
        Err(error) => DoctorFinding::Bad(
            Failure::failed("commands cannot be started")
                .because(&error)
                .hint(format!(
                    "was the program {} replaced since it started?",
                    env::current_exe().unwrap_or_default().display()
                )),
        ),
    }
}

/// Tries whether runs can look at pages.
fn browses(gyrus: &Gyrus) -> DoctorFinding {
    if let Some(none) = browser::missing() {
        return DoctorFinding::Gap(none.to_string());
    }
    let tried = gyrus.home().and_then(|home| {
        let proven = drive::runtime()?.block_on(browser::prove(&home));
        proven.map_err(Failure::failed)
    });
    match tried {
        Ok(words) => DoctorFinding::Good(words),
        Err(failure) => {
            let mut text = failure.to_string();
            if !namespaces::remedy().is_empty() {
                text.push_str(
                    "\nIts own sandbox needs namespaces, too. With --browser-without-its-sandbox it \
                     runs without one: a page that breaks the browser then has your rights.",
                );
            }
            DoctorFinding::Gap(text)
        }
    }
}

/// Tries the sandbox and reports the promises that it kept.
pub(crate) fn sandboxed(gyrus: &Gyrus) -> DoctorFinding {
    let proof = gyrus
        .home()
        .and_then(|home| sandbox::try_now(&home).map_err(Failure::failed));
    let proof = match proof {
        Ok(proof) => proof,
        Err(failure) => {
            let first = format!(
                "there is no sandbox here ({failure}), so commands that run code need your approval"
            );
            return DoctorFinding::Gap([vec![first], namespaces::remedy()].concat().join("\n"));
        }
    };
    let ways = proof.findings.len();
    const KEPT: &str = "commands change only the workspace, see no keys, and reach no network and \
                        no other process";
    if proof.is_whole() {
        return DoctorFinding::Good(format!("tried just now in {ways} ways: {KEPT}"));
    }
    let remedy = match proof.wall {
        Wall::Landlock => namespaces::remedy(),
        Wall::Namespaces | Wall::Nothing => Vec::new(),
    };
    let broken: Vec<_> = proof
        .broken()
        .map(|found| format!("{} ({})", found.attempt, found.detail))
        .collect();
    let broken = broken.join("; ");
    let first = match (sandbox::suffices(&proof), proof.wall) {
        (Ok(()), Wall::Landlock) => format!(
            "namespaces are refused here, so Landlock, a filter and a supervisor stand in for them. \
             Tried just now in {ways} ways: {KEPT}. What does not hold: {}. There is also no /tmp \
             of their own, no /dev/shm and no terminal.",
            namespaces::shortcomings(&proof).join("; ")
        ),
        (Ok(()), Wall::Namespaces | Wall::Nothing) => {
            format!("tried just now in {ways} ways: {KEPT}. What does not hold: {broken}")
        }
        (Err(_), _) => format!(
            "the sandbox does not hold here, so commands that run code need your approval: {broken}"
        ),
    };
    DoctorFinding::Gap([vec![first], remedy].concat().join("\n"))
}

pub(crate) fn found(tried: Result<String, Failure>) -> DoctorFinding {
    tried.map_or_else(DoctorFinding::Bad, DoctorFinding::Good)
}

/// Returns the kind of file system by its number, as listed in `statfs(2)`.
fn file_system(path: &Path) -> String {
    const KNOWN: [(i64, &str); 7] = [
        (0xEF53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x0102_1994, "tmpfs, which a reboot empties"),
        (0x794C_7630, "overlayfs"),
        (0x2FC1_2FC1, "zfs"),
        (0xF2F5_2010, "f2fs"),
    ];
    let Ok(found) = rustix::fs::statfs(path) else {
        return "on an unknown file system".to_owned();
    };
    let magic = found.f_type;
    let name = KNOWN
        .iter()
        .find(|(number, _)| *number == magic)
        .map(|(_, name)| *name);
    name.map_or_else(
        || format!("on a file system of type {magic:#x}"),
        |name| format!("on {name}"),
    )
}
