//! Duration of one verdict of the gate on a command line: reading it, looking its paths up,
//! judging. The lines are those of the corpora, alone and joined to longer ones.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gyrus_contract::{
    CallPlace, DEFAULT_AGENT, Gate, Judgement, Mode, Repeat, RunId, ToolCall, ToolSpec, Touch,
};
use gyrus_gate::{OwnPaths, PolicyGate};
use gyrus_lines::corpus::{EVERYDAY, HOSTILE, READ_ONLY};
use serde_json::json;

use crate::{Row, row};

/// Joined lines of each length.
const SAMPLES: usize = 200;

pub(crate) fn verdicts() -> anyhow::Result<Vec<Row>> {
    let lines = lines();
    let folder = tempfile::tempdir()?;
    let bench = Bench::new(folder.path());
    let alone: Vec<_> = lines.iter().map(|line| bench.judge(line)).collect();
    let joined = |bytes: usize, samples: usize| -> Vec<Duration> {
        let mut next = lines.iter().cycle();
        (0..samples)
            .map(|_| {
                let mut line = String::new();
                while line.len() < bytes {
                    if !line.is_empty() {
                        line.push_str("; ");
                    }
                    line.extend(next.next().map(String::as_str));
                }
                line.truncate(line.floor_char_boundary(bytes));
                bench.judge(&line)
            })
            .collect()
    };
    Ok(vec![
        row(
            "one verdict, lines of the corpora",
            shown(alone),
            "p99 ≤ 2 ms",
        ),
        row(
            "lines of 4 KB",
            shown(joined(4 << 10, SAMPLES)),
            "p99 ≤ 2 ms",
        ),
        row("lines of 64 KB", shown(joined(64 << 10, 20)), "linear"),
        row("lines of 1 MB", shown(joined(1 << 20, 10)), "linear"),
    ])
}

fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    for text in [EVERYDAY, READ_ONLY, HOSTILE] {
        let kept = |line: &&str| !line.is_empty() && !line.starts_with(['#', '[', '"']);
        lines.extend(text.lines().filter(kept).map(str::to_owned));
    }
    lines
}

struct Bench {
    gate: PolicyGate,
    spec: ToolSpec,
    workspace: PathBuf,
}

impl Bench {
    fn new(workspace: &Path) -> Self {
        let gate = PolicyGate::new(OwnPaths {
            own: vec![workspace.with_extension("state")],
            person: Some(workspace.with_extension("home")),
        });
        let spec = ToolSpec {
            name: "shell".to_owned(),
            description: String::new(),
            parameters: json!({}),
            touches: vec![Touch::Starts("command".to_owned())],
            repeat: Repeat::Never,
        };
        Self {
            gate,
            spec,
            workspace: workspace.to_owned(),
        }
    }

    fn judge(&self, line: &str) -> Duration {
        let call = ToolCall::new("shell", json!({"command": line}));
        let since = Instant::now();
        let place = CallPlace {
            run: RunId::new(),
            workspace: &self.workspace,
            agent: gyrus_contract::DEFAULT_AGENT,
            mode: gyrus_contract::Mode::Ask,
            skills: &[],
            sandbox: &gyrus_contract::SandboxOptions::default(),
        };
        if let Ok(resolved) = self.gate.resolve(&call, &self.spec, place) {
            let under = Judgement {
                agent: DEFAULT_AGENT,
                workspace: &self.workspace,
                mode: Mode::Ask,
                exposed: true,
                throwaway: false,
                undoable: true,
                grants: &[],
                skills: &[],
                trusted: &[],
                link_was_seen: false,
                mandated: None,
                has_mandate: false,
            };
            std::hint::black_box(self.gate.judge(&resolved, &self.spec, &under));
        }
        since.elapsed()
    }
}

fn shown(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    format!("median {:.2} ms, p99 {:.2} ms", at(50), at(99))
}
