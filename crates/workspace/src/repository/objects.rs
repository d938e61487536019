//! Copies new objects from a private copy into the real repository.
//!
//! Objects reachable from the new references, and not from the real ones, go through a pipe from
//! one git to another, which computes every name again, checks every object strictly, and only ever
//! adds. Then the real repository alone must have everything that the references need.

use std::{
    collections::BTreeSet,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Stdio},
    time::Instant,
};

use rustix::{event::PollFlags, fs::OFlags};

use super::{
    RepositoryError,
    carried::CarryError,
    folder::{GitFolder, Kind},
    git::{Git, TIME_LIMIT, is_ready, too_slow},
    names::ObjectId,
};

/// Maximum bytes of new objects that one command may add to a repository, compressed.
const MAX_STREAM: u64 = 2 << 30;
/// Number of objects from which on they are kept as one pack, as by `git push`.
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
        if private.kind(&folder)? != Kind::Folder {
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
            if !keeps(&file) || private.kind(&path)? != Kind::File {
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
    /// Returns those of `ids` that neither the private nor the real store has.
    pub(super) fn missing(
        &self,
        ids: &BTreeSet<ObjectId>,
    ) -> Result<BTreeSet<ObjectId>, CarryError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let arguments = ["cat-file", "--batch-check=%(objectname)"];
        let mut command = self
            .git
            .command(&self.private, Some(&self.real), &arguments);
        command.stdin(self.git.input(ids.iter().map(ToString::to_string))?);
        command.stdout(Stdio::piped());
        let mut running = self.git.start(command, "cat-file")?;
        let mut output = BufReader::new(running.child.stdout.take().expect("it is piped"));
        let mut missing = BTreeSet::new();
        // Git prints one short line for each.
        for _ in ids {
            let mut line = String::new();
            if output.buffer().is_empty() && !ready(output.get_ref(), PollFlags::IN, deadline)? {
                return Err(too_slow("cat-file"));
            }
            output.read_line(&mut line).map_err(broken)?;
            let found = line
                .trim_end()
                .strip_suffix(" missing")
                .and_then(ObjectId::parse);
            missing.extend(found);
        }
        running.finish(deadline)?;
        Ok(missing)
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
        pack.stdin(self.git.input(revisions(tips, known))?)
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

    /// Checks that the real store alone has everything that is reachable from `tips`, as far as it
    /// was not so before.
    pub(super) fn check(
        &self,
        tips: &BTreeSet<ObjectId>,
        known: &BTreeSet<ObjectId>,
    ) -> Result<(), CarryError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let arguments = ["rev-list", "--objects", "--quiet", "--stdin"];
        let mut command = self.git.command(&self.real, None, &arguments);
        command.stdin(self.git.input(revisions(tips, known))?);
        self.git.start(command, "rev-list")?.finish(deadline)
    }
}

fn revisions<'a>(
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

/// Reads the first bytes of a pack; `None` if there are none.
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

/// Pipes a pack from one process to the other. Neither can block this beyond `deadline`.
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
