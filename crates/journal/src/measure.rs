//! Measurements of a journal's costs on the disk in use.

use std::{fs, io::Write, path::Path, time::Instant};

use serde_json::value::RawValue;

use crate::{Error, LogName, NewEntry, Store};

/// The results of [`journal`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JournalMeasurements {
    /// Processor time of one durable batch beyond that of a bare write and sync of the same
    /// bytes, in microseconds.
    pub batch_overhead_us: f64,
    /// The same for a batch that a task in a tokio runtime waits for.
    pub async_batch_overhead_us: f64,
    /// Time of one durable batch in microseconds.
    pub batch_us: f64,
    /// Time of a bare write and sync in microseconds.
    pub bare_us: f64,
    /// Bytes that a batch of one entry takes beyond its kind and payload.
    pub batch_bytes: f64,
    /// Bytes that any further entry takes beyond its kind and payload.
    pub entry_bytes: f64,
    /// Number of small entries read and verified per second.
    pub entries_read_per_second: f64,
}

/// Size of an ordinary payload in bytes.
const PAYLOAD: usize = 60;

fn entry() -> NewEntry<'static> {
    let text = format!("\"{}\"", "x".repeat(PAYLOAD - 2));
    let payload = RawValue::from_string(text).expect("it is a JSON string");
    NewEntry {
        kind: "tool.call",
        version: 1,
        payload,
    }
}

/// Measures `batches` durable batches of one entry, and reading `entries` entries. `folder` is an
/// empty folder on the disk to measure.
pub fn journal(folder: &Path, batches: u32, entries: u32) -> Result<JournalMeasurements, Error> {
    let store = Store::open(&folder.join("store"))?;
    let name = LogName::new("runs", "batches")?;
    let writer = store.create(&name)?;
    let segment = store.folder(&name).join("000001.jsonl");
    let length = || fs::metadata(&segment).map_err(Error::io("look at", &segment));
    let one = [entry()];
    let content = (one[0].kind.len() + PAYLOAD) as f64;

    let before = length()?.len();
    let (bare_cpu, bare_us) = {
        let path = folder.join("bare");
        let mut file = fs::File::create(&path).map_err(Error::io("create", &path))?;
        let bytes = vec![b'x'; 250];
        timed(batches, || {
            file.write_all(&bytes)
                .and_then(|()| file.sync_data())
                .map_err(Error::io("write", &path))
        })?
    };
    let (cpu, batch_us) = timed(batches, || {
        writer.append(&one)?;
        writer.barrier_blocking().map(drop)
    })?;
    let batch_bytes = (length()?.len() - before) as f64 / f64::from(batches) - content;

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Error::io("start a runtime for", folder))?;
    let (async_cpu, _) = runtime.block_on(async {
        let start = (cpu_us(), Instant::now());
        for _ in 0..batches {
            writer.append(&one)?;
            writer.barrier().await?;
        }
        Ok::<_, Error>(per(batches, start))
    })?;
    drop(runtime);

    let before = length()?.len();
    for _ in 0..entries / 1000 {
        writer.append(&vec![entry(); 1000])?;
    }
    writer.barrier_blocking()?;
    let entry_bytes =
        (length()?.len() - before) as f64 / f64::from(entries / 1000 * 1000) - content;
    let start = Instant::now();
    let mut read = 0;
    for entry in store.reader(&name)?.entries(1)? {
        entry?;
        read += 1;
    }
    Ok(JournalMeasurements {
        batch_overhead_us: cpu - bare_cpu,
        async_batch_overhead_us: async_cpu - bare_cpu,
        batch_us,
        bare_us,
        batch_bytes,
        entry_bytes,
        entries_read_per_second: f64::from(read) / start.elapsed().as_secs_f64(),
    })
}

/// Returns the processor time and the wall time of one of `times` calls, in microseconds.
fn timed(times: u32, mut call: impl FnMut() -> Result<(), Error>) -> Result<(f64, f64), Error> {
    let start = (cpu_us(), Instant::now());
    for _ in 0..times {
        call()?;
    }
    Ok(per(times, start))
}

fn per(times: u32, (cpu, wall): (f64, Instant)) -> (f64, f64) {
    let wall = wall.elapsed().as_secs_f64() * 1e6;
    ((cpu_us() - cpu) / f64::from(times), wall / f64::from(times))
}

/// Returns the processor time that the threads of this process have used, in microseconds; 0 where
/// the system does not report it.
fn cpu_us() -> f64 {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let used = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    used.sum::<u64>() as f64 / 1e3
}
