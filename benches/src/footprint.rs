//! Footprint of gyrus with a model behind a real wire: memory of many runs, time to the first
//! question.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use gyrus_gate::{OwnPaths, PolicyGate};
use gyrus_journal::Store;
use gyrus_kernel::{Ending, Kernel, Organs, SingleModel, redact::Redactor};
use gyrus_models::{ChatModel, ModelConnection, ModelFacts, NoBlobs};
use gyrus_tools::ToolRegistry;

use crate::{
    Row,
    provider::{CALLS, Provider},
    row,
    world::new_run,
};

const RUNS: usize = 1_000;

const STARTS: usize = 20;

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: u64 = line
        .unwrap_or_default()
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(kilobytes * 1024)
}

/// A kernel as the binary has it, but for one model.
fn kernel(home: &Path, base_url: String) -> anyhow::Result<Kernel> {
    let model = ChatModel::new(ModelConnection {
        base_url,
        key: None,
        pins: Vec::new(),
        provider: "bench".to_owned(),
        model: "m".to_owned(),
        facts: ModelFacts::default(),
        blobs: Arc::new(NoBlobs),
    })?;
    let registry = ToolRegistry::builtin();
    let tools = registry
        .specs()
        .iter()
        .filter_map(|spec| registry.get(&spec.name).cloned())
        .collect::<Vec<_>>();
    let organs = Organs::new(
        Arc::new(SingleModel(Arc::new(model))),
        tools,
        Arc::new(PolicyGate::new(OwnPaths {
            own: vec![home.to_owned()],
            person: None,
        })),
        Arc::new(Redactor::new([7; 32], Vec::new())),
        gyrus_loops::factory(),
    );
    Ok(Kernel::new(Store::open(home)?, organs))
}

/// A thousand runs at once, the provider in the same process. The peak is the process's, so
/// this is the first of all benchmarks.
pub(crate) fn thousand() -> anyhow::Result<Vec<Row>> {
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files)?;
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let before = peak_memory()?;
    let time = runtime.block_on(all_at_once(folder.path()))?;
    let peak = peak_memory()?;
    Ok(vec![
        row(
            "peak memory of a process with 1,000 runs at once and their provider",
            format!("{:.0} MB ({:.0} before)", mega(peak), mega(before)),
            "< 300 MB",
        ),
        row(
            "steps a second of these runs, model calls over loopback included",
            format!("{:.0}", (RUNS * CALLS) as f64 / time.as_secs_f64()),
            "reported",
        ),
    ])
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

async fn all_at_once(folder: &Path) -> anyhow::Result<Duration> {
    let mut provider = Provider::start(RUNS).await?;
    let kernel = kernel(&folder.join("home"), provider.base_url())?;
    let since = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..RUNS {
        let workspace = folder.join(format!("work-{number}"));
        std::fs::create_dir(&workspace)?;
        let ready = kernel.create(new_run(&workspace)?)?;
        tasks.push(tokio::spawn(ready.drive()));
    }
    for task in tasks {
        let ending = task.await??.ending;
        anyhow::ensure!(matches!(ending, Ending::Reached { .. }), "{ending:?}");
    }
    let time = since.elapsed();
    let mut asked = 0;
    while provider.asked.try_recv().is_ok() {
        asked += 1;
    }
    anyhow::ensure!(asked == RUNS * CALLS, "{asked} requests came");
    Ok(time)
}

/// From the start of the binary to its first request at the provider.
pub(crate) fn first_request() -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut provider = runtime.block_on(Provider::start(1))?;
    let mut times = Vec::new();
    // The first start reads the binary from the disk and does not count.
    for _ in 0..=STARTS {
        times.push(time_to_request(&mut provider)?);
    }
    times.remove(0);
    times.sort_unstable();
    let [median, slowest] = [times[STARTS / 2], times[STARTS - 1]].map(|time| time.as_secs_f64());
    Ok(vec![row(
        "from the start of the binary to its first request (median, slowest of 20)",
        format!("{:.1} ms, {:.1} ms", median * 1e3, slowest * 1e3),
        "≤ 25 ms",
    )])
}

fn time_to_request(provider: &mut Provider) -> anyhow::Result<Duration> {
    let gyrus = std::env::current_exe()?.with_file_name("gyrus");
    anyhow::ensure!(gyrus.exists(), "build it first: cargo build --profile dist");
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace)?;
    let since = Instant::now();
    let status = Command::new(&gyrus)
        .args(["run", "write a note", "--approve", "auto", "--model"])
        .arg(format!("{}#m", provider.base_url()))
        .arg("--workdir")
        .arg(&workspace)
        .env("GYRUS_HOME", folder.path().join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{} cannot be started", gyrus.display()))?;
    anyhow::ensure!(status.success(), "its run ended with {status}");
    let first = provider.asked.try_recv().context("no request came")?;
    while provider.asked.try_recv().is_ok() {}
    Ok(first.duration_since(since))
}
