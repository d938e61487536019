//! The file behind `--trace`: it only grows, by one line a step, and resuming a run goes on where
//! it ended.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use gyrus_journal::{Entry, Reader};
use gyrus_text::escaped_json;
use serde::Deserialize;

use crate::{
    error::SurfaceError,
    trace::{Step, Trace},
};

/// An open trace.
pub struct TraceFile {
    path: PathBuf,
    file: File,
    trace: Trace,
    /// Steps up to this one are in the file already.
    written: u32,
}

/// Purpose of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// A run that begins: whatever stands in the file is older.
    NewRun,
    /// A run that goes on: its earlier steps may stand in the file.
    Resumed,
}

impl TraceFile {
    /// Opens or creates the file.
    pub fn open(path: &Path, what_for: For) -> Result<Self, SurfaceError> {
        let failed = |error: io::Error| SurfaceError::Usage {
            message: format!("the trace {} cannot be written", path.display()),
            source: Some(error),
            hint: None,
        };
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .map_err(failed)?;
        let (end, last, torn) = complete(&mut file).map_err(failed)?;
        if !torn.is_empty() {
            // Only what a crash of ours left may go.
            if !torn.starts_with(LINE_START) && !LINE_START.starts_with(&torn) {
                return Err(SurfaceError::Usage {
                    message: format!("{} is not a trace", path.display()),
                    source: None,
                    hint: Some("name a new file, or one that --trace wrote"),
                });
            }
            file.set_len(end).map_err(failed)?;
        }
        let written = if what_for == For::Resumed { last } else { 0 };
        Ok(Self {
            path: path.to_owned(),
            file,
            trace: Trace::default(),
            written,
        })
    }

    /// Takes in the next entry.
    pub fn entry(&mut self, entry: &Entry, reader: &Reader) -> Result<(), SurfaceError> {
        match self.trace.take(entry, reader) {
            Some(step) if step.step > self.written => self.write(&step),
            _ => Ok(()),
        }
    }

    fn write(&mut self, step: &Step) -> Result<(), SurfaceError> {
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

/// Returns the byte offset at which the last complete line ends, its step, and the rest of the
/// file.
fn complete(file: &mut File) -> io::Result<(u64, u32, Vec<u8>)> {
    #[derive(Deserialize)]
    struct Numbered {
        step: u32,
    }
    file.seek(SeekFrom::Start(0))?;
    let mut lines = BufReader::new(file);
    let (mut end, mut last, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        let length = lines.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok((end, last, line));
        }
        end += length as u64;
        last = serde_json::from_slice(&line).map_or(last, |Numbered { step }| step);
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
        let trace = TraceFile::open(&path, For::Resumed).unwrap();
        assert_eq!(trace.written, 2);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"step\":1}\n{\"step\":2}\n"
        );
        assert_eq!(TraceFile::open(&path, For::NewRun).unwrap().written, 0);
        assert!(TraceFile::open(folder.path(), For::NewRun).is_err());

        std::fs::write(&path, "a file\nof the person").unwrap();
        assert!(TraceFile::open(&path, For::NewRun).is_err());
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "a file\nof the person"
        );
    }
}
