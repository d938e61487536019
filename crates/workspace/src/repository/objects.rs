//! Copies new objects from a private copy into the real repository.
//!
//! Objects reachable from the new references, and not from the real ones, go through a pipe from
//! one git to another, which computes every name again, checks every object strictly, and only ever
//! adds. Then the real repository alone must have everything that the references need.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Stdio},
    time::Instant,
};

use rustix::{event::PollFlags, fs::OFlags};

use super::{
    RepositoryError,
    carried::CarryError,
    folder::{GitFolder, PathKind},
    git::{Git, GitProcess, TIME_LIMIT, is_ready, too_slow},
    names::ObjectId,
    withheld::MAX_CONTENT,
};

/// Maximum compressed bytes of new objects that one command may add to a repository.
const MAX_STREAM: u64 = 2 << 30;
/// Number of objects from which they are stored as one pack, as by `git push`.
const PACK_FROM: u32 = 100;
/// Maximum number of files with objects in a private copy.
const MAX_FILES: usize = 500_000;

/// The objects of one store, private and real.
pub(super) struct Objects<'a> {
    pub(super) git: &'a Git<'a>,
    pub(super) private: PathBuf,
    pub(super) real: PathBuf,
}

/// Removes from a private store everything that is not an object or a pack: links and devices,
/// lists of other places, and caches by which git would find objects without looking at them.
pub(super) fn sweep(private: &GitFolder, store: &Path) -> Result<(), RepositoryError> {
    let objects = store.join("objects");
    let mut seen = 0;
    for name in private.names(&objects)? {
        let Ok(name) = String::from_utf8(name) else {
            return Err(odd(private, &objects));
        };
        let folder = objects.join(&name);
        let is_hex = |text: &str, length: usize| {
            text.len() == length
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let keeps: &dyn Fn(&str) -> bool = match name.as_str() {
            "pack" => &|file| {
                let (stem, end) = file.rsplit_once('.').unwrap_or_default();
                let digits = stem.strip_prefix("pack-").unwrap_or_default();
                is_hex(digits, 40) && matches!(end, "pack" | "idx")
            },
            _ if is_hex(&name, 2) => &|file| is_hex(file, 38),
            _ => &|_| false,
        };
        if private.kind(&folder)? != PathKind::Folder {
            private.remove_tree(&folder)?;
            continue;
        }
        for file in private.names(&folder)? {
            seen += 1;
            if seen > MAX_FILES {
                let path = private.path().join(&objects);
                return Err(RepositoryError::TooMany {
                    path,
                    limit: MAX_FILES,
                });
            }
            let Ok(file) = String::from_utf8(file) else {
                return Err(odd(private, &folder));
            };
            let path = folder.join(&file);
            if !keeps(&file) || private.kind(&path)? != PathKind::File {
                private.remove_tree(&path)?;
            }
        }
    }
    Ok(())
}

fn odd(private: &GitFolder, path: &Path) -> RepositoryError {
    RepositoryError::Damaged {
        path: private.path().join(path),
        reason: "a name in it is not UTF-8".to_owned(),
    }
}

impl Objects<'_> {
    /// Returns the ids that neither the private nor the real store has.
    pub(super) fn missing(
        &self,
        ids: &BTreeSet<ObjectId>,
    ) -> Result<BTreeSet<ObjectId>, CarryError> {
        let lines = self.look_up("%(objectname)", ids.iter().map(ToString::to_string))?;
        let missing = lines
            .iter()
            .filter_map(|line| ObjectId::parse(line.strip_suffix(" missing")?));
        Ok(missing.collect())
    }

    /// Returns the commit that each of `ids` is, or to which it leads as a tag; `None` for others.
    pub(super) fn commits_of(&self, ids: &[ObjectId]) -> Result<Vec<Option<ObjectId>>, CarryError> {
        let names = ids.iter().map(|id| format!("{id}^{{commit}}"));
        let lines = self.look_up("%(objectname)", names)?;
        Ok(lines.iter().map(|line| ObjectId::parse(line)).collect())
    }

    /// Returns the contents of the objects that a person can be shown.
    pub(super) fn contents(
        &self,
        ids: &BTreeSet<ObjectId>,
    ) -> Result<BTreeMap<ObjectId, Vec<u8>>, CarryError> {
        let names = ids.iter().map(ToString::to_string);
        let lines = self.look_up("%(objectname) %(objectsize)", names)?;
        let small = lines.iter().filter_map(|line| {
            let (id, size) = line.split_once(' ')?;
            let size: u64 = size.parse().ok()?;
            (size <= MAX_CONTENT).then_some((ObjectId::parse(id)?, size))
        });
        let small: BTreeMap<ObjectId, u64> = small.collect();
        let mut contents = BTreeMap::new();
        if small.is_empty() {
            return Ok(contents);
        }
        let deadline = Instant::now() + TIME_LIMIT;
        let mut running = self.cat("--batch", small.keys().map(ToString::to_string))?;
        let mut output = GitOutput::of(&mut running, deadline);
        for (id, size) in small {
            output.until(b'\n')?;
            contents.insert(id, output.exactly(size)?);
            output.until(b'\n')?;
        }
        running.finish(deadline)?;
        Ok(contents)
    }

    /// Returns one line of `git cat-file` for each of these objects.
    fn look_up(
        &self,
        format: &str,
        names: impl Iterator<Item = String>,
    ) -> Result<Vec<String>, CarryError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let mut running = self.cat(&format!("--batch-check={format}"), names)?;
        let mut output = GitOutput::of(&mut running, deadline);
        let mut lines = Vec::new();
        while let Some(line) = output.until(b'\n')? {
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        running.finish(deadline)?;
        Ok(lines)
    }

    fn cat(
        &self,
        option: &str,
        names: impl Iterator<Item = String>,
    ) -> Result<GitProcess, CarryError> {
        let mut command = self
            .git
            .command(&self.private, Some(&self.real), &["cat-file", option]);
        command.stdin(self.git.input("cat-file", names)?);
        command.stdout(Stdio::piped());
        self.git.start(command, "cat-file")
    }

    /// Copies the objects that are reachable from `tips` and not from `known` into the real store.
    pub(super) fn import(
        &self,
        tips: &BTreeSet<ObjectId>,
        known: &BTreeSet<ObjectId>,
    ) -> Result<(), CarryError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let arguments = [
            "pack-objects",
            "--revs",
            "--thin",
            "--stdout",
            "-q",
            "--delta-base-offset",
            "--no-use-bitmap-index",
        ];
        let mut pack = self
            .git
            .command(&self.private, Some(&self.real), &arguments);
        pack.stdin(self.git.input("pack-objects", revisions(tips, known))?)
            .stdout(Stdio::piped());
        let mut pack = self.git.start(pack, "pack-objects")?;
        let mut stream = pack.child.stdout.take().expect("it is piped");
        let mut header = [0; 12];
        if read_header(&mut stream, &mut header, deadline)?.is_none() {
            // Its own error is more specific.
            pack.finish(deadline)?;
            let reason = "`git pack-objects` sent nothing".to_owned();
            return Err(CarryError::Refused { reason });
        }
        let count = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        if count == 0 {
            return pack.finish(deadline);
        }
        let limit = format!("--max-input-size={MAX_STREAM}");
        let (name, arguments) = if count < PACK_FROM {
            (
                "unpack-objects",
                vec!["unpack-objects", "-q", "--strict", &limit],
            )
        } else {
            (
                "index-pack",
                vec!["index-pack", "--stdin", "--strict", "--fix-thin", &limit],
            )
        };
        let mut store = self.git.command(&self.real, None, &arguments);
        store.stdin(Stdio::piped());
        let mut store = self.git.start(store, name)?;
        let target = store.child.stdin.take().expect("it is piped");
        let pumped = pump(&header, stream, target, deadline);
        // The first process that failed has the specific error: a storing git that met a bad
        // object.
        if pumped.is_ok() {
            pack.finish(deadline)?;
        }
        store.finish(deadline)?;
        pumped
    }

    /// Checks that the real store alone has everything newly reachable from `tips`.
    pub(super) fn check(
        &self,
        tips: &BTreeSet<ObjectId>,
        known: &BTreeSet<ObjectId>,
    ) -> Result<(), CarryError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let arguments = ["rev-list", "--objects", "--quiet", "--stdin"];
        let mut command = self.git.command(&self.real, None, &arguments);
        command.stdin(self.git.input("rev-list", revisions(tips, known))?);
        self.git.start(command, "rev-list")?.finish(deadline)
    }
}

/// The output of a git, read in pieces and never beyond a deadline.
pub(super) struct GitOutput {
    reader: BufReader<ChildStdout>,
    deadline: Instant,
}

impl GitOutput {
    pub(super) fn of(running: &mut GitProcess, deadline: Instant) -> Self {
        let output = running.child.stdout.take().expect("it is piped");
        Self {
            reader: BufReader::with_capacity(64 << 10, output),
            deadline,
        }
    }

    /// Reads up to a byte and drops that byte; `None` at the end.
    pub(super) fn until(&mut self, end: u8) -> Result<Option<Vec<u8>>, CarryError> {
        let mut read = Vec::new();
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok((!read.is_empty()).then_some(read));
            }
            let at = piece.iter().position(|byte| *byte == end);
            let length = at.unwrap_or(piece.len());
            read.extend_from_slice(&piece[..length]);
            self.reader.consume(at.map_or(length, |at| at + 1));
            if at.is_some() {
                return Ok(Some(read));
            }
        }
    }

    fn exactly(&mut self, size: u64) -> Result<Vec<u8>, CarryError> {
        let mut read = Vec::new();
        loop {
            let left = usize::try_from(size).unwrap_or(usize::MAX) - read.len();
            let piece = self.piece()?;
            let length = piece.len().min(left);
            if length == 0 {
                return Ok(read);
            }
            read.extend_from_slice(&piece[..length]);
            self.reader.consume(length);
        }
    }

    fn piece(&mut self) -> Result<&[u8], CarryError> {
        let is_empty = self.reader.buffer().is_empty();
        if is_empty && !ready(self.reader.get_ref(), PollFlags::IN, self.deadline)? {
            return Err(too_slow("cat-file or log"));
        }
        self.reader.fill_buf().map_err(broken)
    }
}

pub(super) fn revisions<'a>(
    tips: &'a BTreeSet<ObjectId>,
    known: &'a BTreeSet<ObjectId>,
) -> impl Iterator<Item = String> + 'a {
    let known = known.iter().map(|id| format!("^{id}"));
    tips.iter().map(ToString::to_string).chain(known)
}

fn broken(error: io::Error) -> CarryError {
    CarryError::Refused {
        reason: format!("the stream of objects broke: {error}"),
    }
}

fn ready(
    descriptor: &impl std::os::fd::AsFd,
    flags: PollFlags,
    deadline: Instant,
) -> Result<bool, CarryError> {
    is_ready(descriptor, flags, deadline).map_err(broken)
}

/// Reads the first bytes of a pack; `None` if it is empty.
fn read_header(
    stream: &mut ChildStdout,
    header: &mut [u8; 12],
    deadline: Instant,
) -> Result<Option<()>, CarryError> {
    let mut length = 0;
    while length < header.len() {
        if !ready(stream, PollFlags::IN, deadline)? {
            return Err(too_slow("pack-objects"));
        }
        match stream.read(&mut header[length..]).map_err(broken)? {
            0 => return Ok(None),
            read => length += read,
        }
    }
    Ok(Some(()))
}

/// Pipes a pack from one process to the other, for no longer than until `deadline`.
fn pump(
    header: &[u8],
    mut from: ChildStdout,
    mut to: ChildStdin,
    deadline: Instant,
) -> Result<(), CarryError> {
    rustix::fs::fcntl_setfl(&to, OFlags::NONBLOCK).map_err(|error| broken(error.into()))?;
    let mut buffer = vec![0; 64 << 10];
    buffer[..header.len()].copy_from_slice(header);
    let mut length = header.len();
    let mut total = 0;
    while length > 0 {
        total += length as u64;
        if total > MAX_STREAM {
            let reason = format!("it holds more than {MAX_STREAM} bytes of new objects");
            return Err(CarryError::Refused { reason });
        }
        let mut written = 0;
        while written < length {
            if !ready(&to, PollFlags::OUT, deadline)? {
                return Err(too_slow("index-pack"));
            }
            match to.write(&buffer[written..length]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(broken(error)),
            }
        }
        if !ready(&from, PollFlags::IN, deadline)? {
            return Err(too_slow("pack-objects"));
        }
        length = from.read(&mut buffer).map_err(broken)?;
    }
    Ok(())
}
