//! Mirrors and replicas on the simulated disk: each call fails in turn, or the power goes at it.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fastrand::Rng;
use gyrus_contract::{BlobId, Digest};
use gyrus_journal::{
    Error, LockWait, LogName, Mirror, NewEntry, Replica, ReplicaBatch, ReplicaDone, Replicas,
    Store, Writer,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;

use super::{Fault, SimDisk};

const FAULTS: [Fault; 4] = [
    Fault::PowerCut,
    Fault::Io,
    Fault::NoSpace,
    Fault::ShortWrite,
];

/// Size of segments in bytes, small so that logs have many of them.
const SEGMENT_BYTES: u64 = 3000;

fn open(disk: &SimDisk) -> Result<Store, Error> {
    Store::open_with(Arc::new(disk.clone()), Path::new("/home"), SEGMENT_BYTES)
}

fn name() -> LogName {
    LogName::new("runs", "a").unwrap()
}

/// Appends an entry that is longer than a block of the disk now and then.
fn append(writer: &Writer, random: &mut Rng) -> Result<u64, Error> {
    let text = format!("\"{}\"", "x".repeat(random.usize(..600)));
    writer.append(&[NewEntry {
        kind: "test.entry",
        version: 1,
        payload: RawValue::from_string(text).unwrap(),
    }])
}

/// A log that is written elsewhere: its lines, their ends, and the hash of each entry.
struct Source {
    lines: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<Digest>,
}

impl Source {
    fn new(seed: u64, entries: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let memory = Memory::default();
        let store = open(&SimDisk::new()).unwrap();
        let store = store.with_replicas(Arc::new(memory.clone()));
        let writer = store.create(&name()).unwrap();
        for _ in 0..entries {
            append(&writer, &mut random).unwrap();
            if random.u8(..3) > 0 {
                writer.barrier_blocking().unwrap();
            }
        }
        writer.barrier_blocking().unwrap();
        let lines = memory.copy().lines.clone();
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', &lines)
            .map(|at| at + 1)
            .collect();
        let mut start = 0;
        let hash = |end: &usize| {
            let line = std::str::from_utf8(&lines[start..end - 1]).unwrap();
            start = *end;
            let (_, hash) = line.rsplit_once(",\"hash\":\"").unwrap();
            hash.trim_end_matches("\"}").parse().unwrap()
        };
        let hashes = ends.iter().map(hash).collect();
        Self {
            hashes,
            ends,
            lines,
        }
    }

    fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the lines of the entries after `from` up to `to`.
    fn lines(&self, from: u64, to: u64) -> &[u8] {
        let end = |seq: u64| match usize::try_from(seq).unwrap() {
            0 => 0,
            seq => self.ends[seq - 1],
        };
        &self.lines[end(from)..end(to)]
    }

    fn hash(&self, seq: u64) -> Digest {
        match usize::try_from(seq).unwrap() {
            0 => "0".repeat(32).parse().unwrap(),
            seq => self.hashes[seq - 1],
        }
    }

    /// Whether a log that ends so is a part of the source from its beginning.
    fn has(&self, (seq, hash): (u64, Digest)) -> bool {
        seq <= self.count() && self.hash(seq) == hash
    }
}

/// The progress of a copy.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The last entry that was said to be on disk, which the source has.
    synced: u64,
    /// The last entry that may be there.
    written: u64,
}

/// The blob that an entry of the source is meant to name.
fn blob(seq: u64) -> Vec<u8> {
    vec![u8::try_from(seq % 200).unwrap(); 100]
}

/// Copies the rest of the source in random portions.
fn copy(
    mirror: &mut Mirror,
    source: &Source,
    progress: &mut Progress,
    random: &mut Rng,
) -> Result<(), Error> {
    while mirror.end().0 < source.count() {
        let end = mirror.end().0;
        let most = if random.u8(..4) == 0 { 20 } else { 3 };
        let next = (end + random.u64(1..=most)).min(source.count());
        for seq in (end + 1..=next).filter(|seq| seq % 3 == 0) {
            mirror.put_blob(&blob(seq))?;
        }
        progress.written = next;
        mirror.append(source.lines(end, next))?;
        if random.u8(..3) == 0 {
            mirror.sync()?;
            progress.synced = next;
        }
    }
    mirror.sync()?;
    progress.synced = source.count();
    Ok(())
}

/// Checks a log after a crash, and returns how it ends; `None` if there is none.
fn look(store: &Store, what: &str) -> Option<(u64, Digest)> {
    if !store.exists(&name()) {
        return None;
    }
    let verified = store
        .verify(&name())
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let reader = store.reader(&name()).unwrap();
    let forwards: Vec<_> = reader
        .entries(1)
        .unwrap()
        .map(|e| e.unwrap().hash)
        .collect();
    let mut back: Vec<_> = reader
        .entries_back()
        .unwrap()
        .map(|e| e.unwrap().hash)
        .collect();
    back.reverse();
    assert_eq!(forwards, back, "{what}");
    assert_eq!(forwards.len() as u64, verified.entries, "{what}");
    assert_eq!(reader.end().unwrap(), verified.entries, "{what}");
    Some((verified.entries, verified.head))
}

/// Copies the source to the end on a disk after a crash, and checks that it is all there.
fn finish(disk: &SimDisk, source: &Source, cut: Option<u64>, random: &mut Rng, what: &str) {
    let store = open(disk).unwrap();
    let mut mirror = store
        .mirror(&name())
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    if let Some(seq) = cut.filter(|_| !source.has(mirror.end())) {
        mirror.cut(seq, source.hash(seq)).unwrap();
    }
    assert!(source.has(mirror.end()), "{what}");
    copy(&mut mirror, source, &mut Progress::default(), random)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let end = (source.count(), source.hash(source.count()));
    assert_eq!(mirror.end(), end, "{what}");
    drop((mirror, store));
    let disk = disk.crash(random.u64(..));
    let store = open(&disk).unwrap();
    assert_eq!(look(&store, what), Some(end), "{what}");
    for seq in (1..=source.count()).filter(|seq| seq % 3 == 0) {
        let bytes = store.reader(&name()).unwrap().blob(&BlobId::of(&blob(seq)));
        assert_eq!(bytes.unwrap(), blob(seq), "{what}");
    }
    let (writer, _) = store.take(&name(), LockWait::IfFree).unwrap();
    append(&writer, random).unwrap();
    assert_eq!(writer.barrier_blocking().unwrap(), source.count() + 1);
}

/// Fails each call of a copy in turn.
#[test]
fn a_copy_is_a_part_of_its_source_whenever_it_ends() {
    let (mut absent, mut parts, mut tails) = (0, 0, 0);
    for (seed, fault) in (0..).zip(FAULTS) {
        let source = Source::new(seed, 24);
        let mut call = 0;
        loop {
            call += 1;
            let disk = SimDisk::new();
            let store = open(&disk).unwrap();
            let mut random = Rng::with_seed(seed);
            let mut progress = Progress::default();
            disk.fail_at(disk.calls() + call, fault);
            let copied = store
                .mirror(&name())
                .and_then(|mut mirror| copy(&mut mirror, &source, &mut progress, &mut random));
            let over = disk.fired() == 0;
            if over {
                copied.unwrap();
            }
            let crashes: Vec<_> = (0..3).map(|seed| disk.crash(seed)).collect();
            for (number, disk) in crashes.into_iter().chain([disk.kill()]).enumerate() {
                let what = format!("{fault:?} at call {call}, source {seed}, crash {number}");
                let store = open(&disk).unwrap();
                let end = look(&store, &what);
                let (seq, hash) = end.unwrap_or((0, source.hash(0)));
                assert!(source.has((seq, hash)), "{what}: not a part of the source");
                assert!(progress.synced <= seq && seq <= progress.written, "{what}");
                for named in (1..=seq).filter(|seq| seq % 3 == 0) {
                    let id = BlobId::of(&blob(named));
                    let bytes = store.reader(&name()).unwrap().blob(&id).unwrap();
                    assert_eq!(bytes, blob(named), "{what}");
                }
                absent += u64::from(end.is_none());
                parts += u64::from(end.is_some() && seq < source.count());
                tails += u64::from(end.is_some() && store.verify(&name()).unwrap().tail.is_some());
                drop(store);
                finish(&disk, &source, None, &mut random, &what);
            }
            if over {
                break;
            }
        }
    }
    assert!(
        absent > 50 && parts > 200 && tails > 20,
        "{absent} {parts} {tails}"
    );
}

/// Writes entries on top of a part of the source that the source does not have, in several takings.
fn diverge(store: &Store, random: &mut Rng) {
    for _ in 0..random.u64(1..4) {
        let (writer, _) = store.take(&name(), LockWait::IfFree).unwrap();
        for _ in 0..random.u64(1..4) {
            append(&writer, random).unwrap();
            if random.bool() {
                writer.barrier_blocking().unwrap();
            }
        }
    }
}

/// Fails each call of a cut in turn.
#[test]
fn a_cut_that_was_interrupted_is_cut_again() {
    let mut between = 0;
    for (seed, fault) in (0..8).zip(FAULTS.into_iter().cycle()) {
        let source = Source::new(seed, 12);
        let mut random = Rng::with_seed(seed);
        let disk = SimDisk::new();
        let store = open(&disk).unwrap();
        let common = random.u64(1..12);
        let mut mirror = store.mirror(&name()).unwrap();
        for seq in (1..=common).filter(|seq| seq % 3 == 0) {
            mirror.put_blob(&blob(seq)).unwrap();
        }
        mirror.append(source.lines(0, common)).unwrap();
        mirror.sync().unwrap();
        drop(mirror);
        diverge(&store, &mut random);
        if random.bool() {
            // A segment that was rewritten counts as a whole, whatever its successor says.
            store.erase(&name(), &[1, common + 1]).unwrap();
        }
        let before = look(&store, "before the cut").unwrap();
        let cut = random.u64(common.saturating_sub(3)..=common);
        drop(store);
        let mut call = 0;
        loop {
            call += 1;
            let disk = disk.kill();
            let store = open(&disk).unwrap();
            disk.fail_at(disk.calls() + call, fault);
            let done = store
                .mirror(&name())
                .and_then(|mut mirror| mirror.cut(cut, source.hash(cut)));
            let over = disk.fired() == 0;
            if over {
                done.as_ref().unwrap();
            }
            drop(store);
            let crashes: Vec<_> = (0..3).map(|seed| disk.crash(seed)).collect();
            for (number, disk) in crashes.into_iter().chain([disk.kill()]).enumerate() {
                let what = format!("{fault:?} at call {call}, source {seed}, crash {number}");
                let store = open(&disk).unwrap();
                let (seq, hash) = look(&store, &what).unwrap();
                assert!(cut <= seq && seq <= before.0, "{what}: {seq}");
                assert!(
                    done.is_err() || (seq, hash) == (cut, source.hash(cut)),
                    "{what}"
                );
                between += u64::from(cut < seq && seq < before.0);
                let at_cut = store.reader(&name()).unwrap().entry(cut).unwrap();
                assert!(
                    at_cut.is_none_or(|entry| entry.hash == source.hash(cut)),
                    "{what}"
                );
                drop(store);
                finish(&disk, &source, Some(cut), &mut random, &what);
            }
            if over {
                break;
            }
        }
    }
    assert!(between > 0);
}

/// Fails each call of a new beginning in turn.
#[test]
fn a_copy_that_begins_anew_is_the_old_one_or_none() {
    let source = Source::new(1, 6);
    for fault in FAULTS {
        let mut call = 0;
        loop {
            call += 1;
            let disk = SimDisk::new();
            let store = open(&disk).unwrap();
            drop(store.create(&name()).unwrap());
            diverge(&store, &mut Rng::with_seed(1));
            let before = look(&store, "before");
            let mirror = store.mirror(&name()).unwrap();
            disk.fail_at(disk.calls() + call, fault);
            let anew = mirror.reset();
            let over = disk.fired() == 0;
            let done = anew.is_ok();
            drop((anew, store));
            let crashes: Vec<_> = (0..3).map(|seed| disk.crash(seed)).collect();
            for (number, disk) in crashes.into_iter().chain([disk.kill()]).enumerate() {
                let what = format!("{fault:?} at call {call}, crash {number}");
                let store = open(&disk).unwrap();
                let found = look(&store, &what);
                assert!(found.is_none() || (found == before && !done), "{what}");
                let mut mirror = store.mirror(&name()).unwrap();
                if found.is_some() {
                    mirror = mirror.reset().unwrap();
                }
                drop((mirror, store));
                finish(&disk, &source, None, &mut Rng::with_seed(2), &what);
            }
            if over {
                assert!(done);
                break;
            }
        }
    }
}

/// A replica in memory that answers at once.
#[derive(Debug, Clone, Default)]
struct Memory {
    copy: Arc<Mutex<Copy>>,
    /// The number of the batch that is refused, counted down to 0.
    refuse_in: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Default)]
struct Copy {
    lines: Vec<u8>,
    seq: u64,
    head: Option<Digest>,
    blobs: BTreeMap<BlobId, Vec<u8>>,
}

impl Memory {
    fn copy(&self) -> MutexGuard<'_, Copy> {
        self.copy.lock()
    }

    /// Returns another replica that has the same, and refuses nothing.
    fn fork(&self) -> Self {
        Self {
            copy: Arc::new(Mutex::new(self.copy().clone())),
            refuse_in: Arc::default(),
        }
    }
}

impl Replica for Memory {
    fn store(&self, batch: ReplicaBatch, done: ReplicaDone) {
        let left = self.refuse_in.load(Ordering::Relaxed);
        self.refuse_in
            .store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 1 {
            return done.failed("refused");
        }
        let mut blobs = BTreeMap::new();
        for id in &batch.blobs {
            match batch.blob(id) {
                Ok(bytes) => blobs.insert(*id, bytes),
                // The simulated disk failed.
                Err(error) => return done.failed(error.to_string()),
            };
        }
        let mut copy = self.copy();
        assert_eq!(batch.first_seq, copy.seq + 1);
        assert!(copy.head.is_none_or(|head| head == batch.previous));
        copy.lines.extend_from_slice(&batch.lines);
        copy.blobs.extend(blobs);
        (copy.seq, copy.head) = (batch.last_seq, Some(batch.head));
        drop(copy);
        done.stored();
    }

    fn has(&self) -> Result<u64, String> {
        Ok(self.copy().seq)
    }
}

impl Replicas for Memory {
    fn replica_of(&self, _: &LogName) -> Option<Arc<dyn Replica>> {
        Some(Arc::new(self.clone()))
    }
}

/// Writes a log with a replica. Returns the last entry that was said to be durable, also after an
/// error.
fn write(store: &Store, random: &mut Rng, durable: &mut u64) -> Result<(), Error> {
    let log = store.prepare(&name())?;
    log.put_blob(&blob(0))?;
    let payload = RawValue::from_string("1".to_owned()).unwrap();
    let first = NewEntry {
        kind: "test.first",
        version: 1,
        payload,
    };
    let mut writer = log.publish(&[first])?;
    *durable = 1;
    for _ in 0..6 {
        writer.put_blob(&blob(random.u64(1..6)))?;
        append(&writer, random)?;
        match random.u8(..4) {
            0 => {}
            1 => {
                drop(writer);
                writer = store.take(&name(), LockWait::IfFree)?.0;
                *durable = writer.next_seq() - 1;
            }
            _ => *durable = writer.barrier_blocking()?,
        }
    }
    *durable = writer.barrier_blocking()?;
    Ok(())
}

/// Fails each call of a log with a replica in turn, and a batch of it too.
#[test]
fn a_replica_never_has_what_the_local_disk_lost() {
    let mut sent = 0;
    for (seed, fault) in (0..).zip(FAULTS) {
        let mut call = 0;
        loop {
            call += 1;
            let disk = SimDisk::new();
            let memory = Memory::default();
            let mut random = Rng::with_seed(seed);
            memory.refuse_in.store(call % 16, Ordering::Relaxed);
            let store = open(&disk).unwrap().with_replicas(Arc::new(memory.clone()));
            disk.fail_at(disk.calls() + call, fault);
            let mut durable = 0;
            let written = write(&store, &mut random, &mut durable);
            let over = disk.fired() == 0 && written.is_ok();
            drop((store, written));
            memory.refuse_in.store(0, Ordering::Relaxed);
            let had = memory.copy().seq;
            assert!(durable <= had, "{fault:?} at call {call}");
            let crashes: Vec<_> = (0..3).map(|seed| disk.crash(seed)).collect();
            for (number, disk) in crashes.into_iter().chain([disk.kill()]).enumerate() {
                let what = format!("{fault:?} at call {call}, writer {seed}, crash {number}");
                let memory = memory.fork();
                let store = open(&disk).unwrap().with_replicas(Arc::new(memory.clone()));
                let Some((end, _)) = look(&store, &what) else {
                    // The replica may have the first entries of a log that did not get its name.
                    assert!(durable == 0 && had <= 1, "{what}");
                    continue;
                };
                assert!(had <= end, "{what}: the replica has {had}, the disk {end}");
                let (writer, _) = store.take(&name(), LockWait::IfFree).unwrap();
                sent += memory.copy().seq - had;
                append(&writer, &mut random).unwrap();
                writer.put_blob(&blob(7)).unwrap();
                append(&writer, &mut random).unwrap();
                assert_eq!(writer.barrier_blocking().unwrap(), end + 2, "{what}");
                drop((writer, store));
                is_copy(&memory, &disk, &what);
            }
            if over && call > 16 {
                break;
            }
        }
    }
    assert!(sent > 20, "{sent}");
}

/// Copies what a replica has to an empty disk, and checks that it is the log.
fn is_copy(memory: &Memory, disk: &SimDisk, what: &str) {
    let store = open(disk).unwrap();
    let elsewhere = open(&SimDisk::new()).unwrap();
    let mut mirror = elsewhere.mirror(&name()).unwrap();
    let copy = memory.copy();
    for bytes in copy.blobs.values() {
        mirror.put_blob(bytes).unwrap();
    }
    mirror.append(&copy.lines).unwrap();
    let here = store.verify(&name()).unwrap();
    let there = elsewhere.verify(&name()).unwrap();
    assert_eq!(
        (here.entries, here.head),
        (there.entries, there.head),
        "{what}"
    );
    assert!(there.blobs <= here.blobs, "{what}");
}
