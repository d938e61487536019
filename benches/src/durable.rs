//! A durable entry beside a bare append and sync of the same size, in turns.

use std::{
    fs::OpenOptions,
    io::Write,
    time::{Duration, Instant},
};

use gyrus_journal::{LogName, NewEntry, Store, Writer};
use serde_json::value::to_raw_value;

use crate::{Row, row};

const ROUNDS: usize = 1_000;
const PAYLOAD: usize = 256;

fn entry() -> anyhow::Result<NewEntry<'static>> {
    let payload = to_raw_value(&"x".repeat(PAYLOAD))?;
    Ok(NewEntry {
        kind: "bench",
        version: 1,
        payload,
    })
}

/// CPU time of this thread: the calls under test run on it.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Calls of `write` and its kind that this process has made.
fn writes() -> anyhow::Result<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("syscw: "));
    Ok(line.unwrap_or_default().parse()?)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// One run: latency, CPU and calls of a durable batch.
pub(crate) fn one_run() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("home"))?;
    let writer = store.create(&LogName::new("runs", "bench")?)?;
    let mut bare = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.path().join("bare"))?;
    let entry = entry()?;
    let line = vec![b'x'; PAYLOAD + 150];

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_cpu, mut their_cpu) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (since, busy) = (Instant::now(), cpu());
        writer.append(std::slice::from_ref(&entry))?;
        writer.barrier_blocking()?;
        ours.push(since.elapsed());
        our_cpu.push(cpu().saturating_sub(busy));

        let (since, busy) = (Instant::now(), cpu());
        bare.write_all(&line)?;
        bare.sync_data()?;
        theirs.push(since.elapsed());
        their_cpu.push(cpu().saturating_sub(busy));
    }
    let before = writes()?;
    for _ in 0..100 {
        writer.append(std::slice::from_ref(&entry))?;
        writer.barrier_blocking()?;
    }
    let calls = writes()?.saturating_sub(before);
    let (ours, theirs) = (median(ours), median(theirs));
    let more = median(our_cpu).saturating_sub(median(their_cpu));
    Ok(vec![
        row(
            "a durable batch beside a bare write and fdatasync (medians)",
            format!(
                "{:.2}× ({} µs beside {} µs)",
                ours.as_secs_f64() / theirs.as_secs_f64(),
                ours.as_micros(),
                theirs.as_micros()
            ),
            "reported with its regime",
        ),
        row(
            "CPU a batch beyond the bare calls",
            format!("{} µs", more.as_micros()),
            "≤ 25 µs",
        ),
        row(
            "system calls a batch",
            format!("{:.2} write + 1 fdatasync", calls as f64 / 100.0),
            "≤ 2",
        ),
    ])
}

/// Returns the number of durable entries that writers make in one second, each on its own task.
async fn rate(writers: Vec<Writer>) -> anyhow::Result<f64> {
    let since = Instant::now();
    let until = since + Duration::from_secs(1);
    let tasks: Vec<_> = writers
        .into_iter()
        .map(|writer| {
            tokio::spawn(async move {
                let entry = entry()?;
                let mut made = 0u64;
                while Instant::now() < until {
                    writer.append(std::slice::from_ref(&entry))?;
                    writer.barrier().await?;
                    made += 1;
                }
                anyhow::Ok(made)
            })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += task.await??;
    }
    Ok(made as f64 / since.elapsed().as_secs_f64())
}

/// Many runs at once, and many branches of one run, beside one of each.
pub(crate) fn many_runs() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("home"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let make = |name: String| -> anyhow::Result<Writer> {
        Ok(store.create(&LogName::new("runs", &name)?)?)
    };
    let alone = make("alone".to_owned())?;
    let many = (0..64)
        .map(|n| make(format!("run-{n}")))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut one, mut sixty_four, mut branches) = (0.0, 0.0, 0.0);
    for _ in 0..3 {
        one += runtime.block_on(rate(vec![alone.clone()]))?;
        sixty_four += runtime.block_on(rate(many.clone()))?;
        branches += runtime.block_on(rate(vec![alone.clone(); 64]))?;
    }
    Ok(vec![
        row(
            "64 runs at once beside one, durable entries a second",
            format!(
                "{:.1}× ({:.0} beside {:.0})",
                sixty_four / one,
                sixty_four / 3.0,
                one / 3.0
            ),
            "≥ 4×",
        ),
        row(
            "64 branches of one run beside one, durable entries a second",
            format!(
                "{:.1}× ({:.0} beside {:.0})",
                branches / one,
                branches / 3.0,
                one / 3.0
            ),
            "> 1×: they share a flush",
        ),
    ])
}
