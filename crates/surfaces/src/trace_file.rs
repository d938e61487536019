//! The file behind `--trace`: it only grows, by one line a step, and resuming a run goes on where
//! it ended.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use gyrus_contract::RunId;
use gyrus_journal::{LogEntry, LogReader, Store};
use gyrus_kernel::log_name;
use gyrus_text::escaped_json;
use rustix::fs::OFlags;
use serde::Deserialize;

use crate::{
    error::SurfaceError,
    trace::{TraceCollector, TraceStep},
};

/// Name of the trace that every run has beside its journal.
const OWN_TRACE: &str = "agent_trace.jsonl";

/// Opens the trace that a run has beside its journal.
pub fn open_own(store: &Store, run: RunId) -> Result<TraceFile, SurfaceError> {
    let path = store.folder(&log_name(run)).join(OWN_TRACE);
    TraceFile::open(&path, TracePurpose::Resumed)
}

/// Brings the trace that a run has beside its journal up to date.
pub fn write_own(store: &Store, run: RunId) -> Result<(), SurfaceError> {
    let (mut trace, reader) = (open_own(store, run)?, store.reader(&log_name(run))?);
    for entry in reader.entries(1)? {
        trace.entry(&entry?, &reader)?;
    }
    Ok(())
}

/// An open trace.
pub struct TraceFile {
    path: PathBuf,
    file: File,
    trace: TraceCollector,
    /// Number of the last step that the file contains.
    written: u32,
}

/// Purpose of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracePurpose {
    /// A run that begins: whatever stands in the file is older.
    NewRun,
    /// The trace of a resumed run: its earlier steps may stand in the file.
    Resumed,
}

impl TraceFile {
    /// Opens or creates the file.
    pub fn open(path: &Path, what_for: TracePurpose) -> Result<Self, SurfaceError> {
        let failed = |error: io::Error| SurfaceError::Usage {
            message: format!("the trace {} cannot be written", path.display()),
            source: Some(error),
            hint: None,
        };
        let not_a_trace = || SurfaceError::Usage {
            message: format!("{} is not a trace", path.display()),
            source: None,
            hint: Some("name a new file, or one that --trace wrote"),
        };
        // Opening a pipe that nobody reads would wait.
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).expect("it is one bit");
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .custom_flags(nonblocking)
            .open(path)
            .map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(not_a_trace());
        }
        let Some((end, last, torn)) = complete(&mut file).map_err(failed)? else {
            return Err(not_a_trace());
        };
        // Only what a crash of ours left may go.
        if torn {
            file.set_len(end).map_err(failed)?;
        }
        let written = if what_for == TracePurpose::Resumed {
            last
        } else {
            0
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            trace: TraceCollector::default(),
            written,
        })
    }

    /// Adds the next entry.
    pub fn entry(&mut self, entry: &LogEntry, reader: &LogReader) -> Result<(), SurfaceError> {
        match self.trace.take(entry, reader) {
            Some(step) if step.step > self.written => self.write(&step),
            _ => Ok(()),
        }
    }

    fn write(&mut self, step: &TraceStep) -> Result<(), SurfaceError> {
        let line = serde_json::to_string(step).map_err(SurfaceError::Json)?;
        let line = format!("{}\n", escaped_json(&line));
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|source| SurfaceError::File {
            message: format!("the trace {} cannot be written", self.path.display()),
            source,
            hint: Some("the run itself is complete in its journal: gyrus trace RUN"),
        })?;
        self.written = step.step;
        Ok(())
    }
}

/// Beginning of every line.
const LINE_START: &[u8] = b"{\"step\":";

/// Returns the byte offset at which the last complete line ends, its step, and whether the
/// beginning of another follows; `None` if a line is not one of a trace.
fn complete(file: &mut File) -> io::Result<Option<(u64, u32, bool)>> {
    #[derive(Deserialize)]
    struct NumberedStep {
        step: u32,
    }
    file.seek(SeekFrom::Start(0))?;
    let mut lines = BufReader::new(file);
    let (mut end, mut last, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        let start = lines.fill_buf()?;
        let start = &start[..start.len().min(LINE_START.len())];
        if !LINE_START.starts_with(start) {
            return Ok(None);
        }
        let length = lines.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(Some((end, last, !line.is_empty())));
        }
        end += length as u64;
        last = serde_json::from_slice(&line).map_or(last, |NumberedStep { step }| step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_no_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        std::fs::write(&path, "{\"step\":1}\n{\"step\":2}\n{\"ste").unwrap();
        let trace = TraceFile::open(&path, TracePurpose::Resumed).unwrap();
        assert_eq!(trace.written, 2);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"step\":1}\n{\"step\":2}\n"
        );
        assert_eq!(
            TraceFile::open(&path, TracePurpose::NewRun)
                .unwrap()
                .written,
            0
        );
        assert!(TraceFile::open(folder.path(), TracePurpose::NewRun).is_err());

        for text in ["a file\nof the person", "a file\n", "{\"step\":1}\nnotes\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(
                TraceFile::open(&path, TracePurpose::NewRun).is_err(),
                "{text}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(TraceFile::open(&pipe, TracePurpose::NewRun).is_err());
    }
}
