//! The checks after a crash: the whole store, before and after recovery, and whether damage to
//! durable data is reported.

use std::{io, path::Path, sync::Arc};

use fastrand::Rng;
use gyrus_journal::{Disk, Error, LockWait, LogName, NewEntry, Store};
use serde_json::{Value, value::RawValue};

use super::{SimDisk, disk::read_whole, oracle::Oracle};

/// Segment size in bytes, small so that logs have many segments.
const SEGMENT_BYTES: u64 = 1500;

/// Opens the store on a disk.
pub(super) fn open(disk: &SimDisk) -> Result<Store, Error> {
    Store::open_with(Arc::new(disk.clone()), Path::new("/home"), SEGMENT_BYTES)
}

/// Compares a disk with the oracle, before and after recovery.
pub(super) fn check(disk: &SimDisk, oracle: &mut Oracle, random: &mut Rng) -> Result<(), String> {
    let on = |what: &'static str| move |error: Error| format!("{what} after a crash: {error}");
    let store = open(disk).map_err(on("opening"))?;
    let Some(end) = oracle.check(&store)? else {
        return Ok(());
    };
    let name = oracle.name.clone();
    let tail = store.verify(&name).map_err(on("verifying"))?.tail;
    let (writer, recovery) = store.take(&name, LockWait::IfFree).map_err(on("taking"))?;
    if writer.next_seq() != end + 1 || recovery.set_aside != tail {
        return Err(format!(
            "{end} entries and {tail:?} became {recovery:?} and {writer:?}"
        ));
    }
    oracle.recovered(end)?;
    let payload = RawValue::from_string("true".to_owned()).expect("it is JSON");
    let appended = writer
        .append(&[NewEntry {
            kind: "test.after",
            version: 1,
            payload,
        }])
        .and_then(|_| writer.barrier_blocking())
        .map_err(on("appending"))?;
    oracle.appended("true".to_owned());
    oracle.passed(appended)?;
    drop(writer);
    if random.bool() {
        store.sweep().map_err(on("sweeping"))?;
    }
    oracle.check(&store)?;
    if random.bool() {
        damage(disk, &store, &name, random)
    } else {
        Ok(())
    }
}

/// Flips a bit in data that is proven to have been on disk, and expects it to be reported.
fn damage(disk: &SimDisk, store: &Store, name: &LogName, random: &mut Rng) -> Result<(), String> {
    let on = |what: &'static str| move |error: Error| format!("{what} for damage: {error}");
    // Taking the log once more proves all entries before.
    drop(store.take(name, LockWait::IfFree).map_err(on("taking"))?);
    let text = |error: io::Error| error.to_string();
    let folder = store.folder(name);
    let is_segment = |name: &String| name.ends_with(".jsonl");
    let last = disk.list(&folder).map_err(text)?;
    let last = last.into_iter().filter(is_segment).count() as u64;
    let number = 1 + random.u64(..last);
    let path = |number: u64| folder.join(format!("{number:06}.jsonl"));
    let (header, mut counts) = segment(disk, &path(number)).map_err(text)?;
    if number < last && header["rewritten"] != true {
        let (next, _) = segment(disk, &path(number + 1)).map_err(text)?;
        counts = next["previous"]["bytes"].as_u64().unwrap_or(counts);
    }
    let bit = random.u64(..counts * 8);
    disk.flip(&path(number), bit).map_err(text)?;
    match store.verify(name) {
        Err(Error::Corrupt { .. }) => {}
        result => {
            return Err(format!(
                "bit {bit} of segment {number} flipped gave {result:?}"
            ));
        }
    }
    let read: Result<Vec<_>, Error> = store
        .reader(name)
        .and_then(|reader| reader.entries(1)?.collect());
    if number < last || read.is_err() {
        return match read {
            Err(Error::Corrupt { .. }) => Ok(()),
            other => Err(format!("reading over a flipped bit gave {other:?}")),
        };
    }
    Ok(())
}

/// Reads the first line of a segment, and its length in bytes.
fn segment(disk: &SimDisk, path: &Path) -> io::Result<(Value, u64)> {
    let bytes = read_whole(disk.open(path)?.as_ref())?;
    let line = bytes.split(|byte| *byte == b'\n').next();
    let header = serde_json::from_slice(line.unwrap_or_default())?;
    Ok((header, bytes.len() as u64))
}
