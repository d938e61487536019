//! Holding a log, tested between real processes. This test binary starts itself as the holder.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
};

use gyrus_journal::{Error, LockWait, LogName, NewEntry, Store};
use serde_json::value::RawValue;

/// The variable that holds the store's root, set in the process that plays the holder.
const ROLE: &str = "GYRUS_TEST_HOLD";

fn name() -> LogName {
    LogName::new("runs", "held").unwrap()
}

/// Holds the log until the process's input ends or it is killed. Not a test of its own.
#[test]
fn hold() {
    let Ok(root) = std::env::var(ROLE) else {
        return;
    };
    let store = Store::open(Path::new(&root)).unwrap();
    let writer = match store.create(&name()) {
        Err(Error::Exists { .. }) => store.take(&name(), LockWait::IfFree).unwrap().0,
        created => created.unwrap(),
    };
    let payload = RawValue::from_string("1".to_owned()).unwrap();
    writer
        .append(&[NewEntry {
            kind: "test.held",
            version: 1,
            payload,
        }])
        .unwrap();
    writer.barrier_blocking().unwrap();
    println!("\nholding");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn holder(root: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold", "--nocapture"])
        .env(ROLE, root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.by_ref().lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "holding"));
    // The process continues to print until it ends.
    child.stdout = Some(output.into_inner());
    child
}

#[test]
fn a_holder_is_left_alone_or_killed_even_if_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    for stopped in [false, true] {
        let mut child = holder(store.root());
        let Err(Error::Held { holder, .. }) = store.take(&name(), LockWait::IfFree) else {
            panic!("it is held")
        };
        assert_eq!(holder.process.pid, child.id());
        assert_eq!(store.holder(&name()).unwrap(), Some(*holder.clone()));
        assert!(matches!(store.remove(&name()), Err(Error::Held { .. })));
        if stopped {
            let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        }
        let (writer, recovery) = store.take(&name(), LockWait::KillHolder).unwrap();
        assert_eq!(recovery.previous, Some(*holder));
        assert_eq!(writer.next_seq(), 2 + u64::from(stopped));
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let me = store.holder(&name()).unwrap().unwrap();
        assert_eq!(me.process.pid, std::process::id());
        // A process never kills itself for a log that it holds.
        assert!(matches!(
            store.take(&name(), LockWait::KillHolder),
            Err(Error::Held { .. })
        ));
        drop(writer);
        assert_eq!(store.holder(&name()).unwrap(), None);
    }
}

#[test]
fn whoever_is_written_in_a_free_lock_is_never_killed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut child = holder(store.root());
    let record = std::fs::read(store.folder(&name()).join("lock")).unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    // The lock of a log that nobody holds names an unrelated process.
    let mut bystander = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let text = String::from_utf8(record).unwrap();
    let identity = gyrus_process::ProcessIdentity::of(bystander.id());
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    record["process"] = serde_json::to_value(identity.unwrap().unwrap()).unwrap();
    std::fs::write(store.folder(&name()).join("lock"), record.to_string()).unwrap();
    assert_eq!(store.holder(&name()).unwrap(), None);
    drop(store.take(&name(), LockWait::KillHolder).unwrap());
    assert_eq!(bystander.try_wait().unwrap(), None, "it was killed");
    drop(bystander.stdin.take());
    bystander.wait().unwrap();
}
