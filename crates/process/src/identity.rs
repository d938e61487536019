//! Identifies processes across reuse of pids and across reboots.
//!
//! A pid alone is not a stable name: the kernel reuses it, and starts again after a reboot.
//! Together with the start time and the boot it names one process for good, so it can be recorded
//! and looked up later. Everything done *to* a process goes through a pidfd that was opened before
//! the identity was compared, so a signal can never reach a successor.
//!
//! Identities are those of this process's PID namespace. Not here: starting processes.

use std::{
    fs, io,
    os::fd::OwnedFd,
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};
use tokio::io::{Interest, unix::AsyncFd};

/// Identity of a process, which no other process ever has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Pid of the process during its life.
    pub pid: u32,
    /// Start time, in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_time: u64,
    /// Boot during which the process was started (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

impl ProcessIdentity {
    /// Returns the identity of the calling process.
    pub fn current() -> io::Result<Self> {
        Self::of(std::process::id())?.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "this process is not in /proc; mount it",
            )
        })
    }

    /// Returns the process that has `pid` now, a zombie included; `None` if there is none.
    pub fn of(pid: u32) -> io::Result<Option<Self>> {
        let stat = match fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat,
            // A process that ends between opening and reading gives ESRCH.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    || error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let start_time = start_time(&stat).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("/proc/{pid}/stat has no start time as its field 22"),
            )
        })?;
        Ok(Some(Self {
            pid,
            start_time,
            boot_id: boot_id()?,
        }))
    }

    /// Whether the process still runs. A zombie does not.
    pub fn is_alive(&self) -> io::Result<bool> {
        match self.open()? {
            Some(process) => Ok(!has_ended(&process, Duration::ZERO)?),
            None => Ok(false),
        }
    }

    /// Sends SIGKILL to the process, and never to another that got its pid. A process that is
    /// already gone is not an error. It may still be dying on return: see [`Self::wait_gone`].
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Sends SIGINT to the process, as Ctrl-C at its terminal does, and never to another process
    /// with the same pid. A process that is already gone is not an error.
    pub fn interrupt(&self) -> io::Result<()> {
        self.signal(Signal::INT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(process) = self.open()? else {
            return Ok(());
        };
        match pidfd_send_signal(&process, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits at most `limit` until the process has ended. Blocks the thread. Returns whether it is
    /// gone.
    pub fn wait_gone(&self, limit: Duration) -> io::Result<bool> {
        match self.open()? {
            Some(process) => has_ended(&process, limit),
            None => Ok(true),
        }
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// The process cannot be watched.
    pub async fn ended(&self) -> io::Result<()> {
        let Some(process) = self.open()? else {
            return Ok(());
        };
        #[expect(
            deprecated,
            reason = "it is unsound for types that do not keep their descriptor, which this one does"
        )]
        let process = AsyncFd::with_interest(process, Interest::READABLE)?;
        // A pidfd becomes readable when its process has ended, and stays so.
        process.readable().await.map(drop)
    }

    /// Returns a handle to this process that stays valid even if its pid is reused; `None` if it is
    /// gone and reaped. A process started between opening and comparing has another start time, so
    /// a match proves that the handle is the right one.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(Errno::SRCH) => return Ok(None),
            // A thread of some other process has the number now.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok((Self::of(self.pid)?.as_ref() == Some(self)).then_some(process))
    }
}

/// Parses field 22 of a `stat` line, in clock ticks. The command name, field 2, stands in
/// parentheses and may itself hold parentheses, blanks and newlines, so fields are counted from the
/// last `)`.
fn start_time(stat: &[u8]) -> Option<u64> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after_name..]).ok()?;
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

fn boot_id() -> io::Result<String> {
    // The boot id cannot change while this process lives.
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    if let Some(known) = BOOT_ID.get() {
        return Ok(known.clone());
    }
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT_ID.get_or_init(|| read.trim().to_owned()).clone())
}

/// Waits until the process and all its threads have ended, when its pidfd becomes readable.
fn has_ended(process: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now().checked_add(limit);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A limit that the clock or the kernel cannot represent means to wait without a limit.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(process, PollFlags::IN)], timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// Starts a process that lives until its standard input closes.
    fn sleeper() -> (Child, ProcessIdentity) {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap().unwrap();
        (child, identity)
    }

    #[test]
    fn start_time_is_found_whatever_the_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21\n";
        for name in ["cat", "a) R 1 2 3", "((", "))", "x\ny z", ""] {
            let stat = format!("42 ({name}) {rest}");
            assert_eq!(start_time(stat.as_bytes()), Some(777), "{name:?}");
        }
        for broken in ["", "42 cat S 1", "42 (cat", "42 (cat) S 1 2"] {
            assert_eq!(start_time(broken.as_bytes()), None, "{broken:?}");
        }
    }

    #[test]
    fn a_process_is_known_until_it_ends() {
        let me = ProcessIdentity::current().unwrap();
        assert_eq!(me.pid, std::process::id());
        assert!(me.is_alive().unwrap());
        assert!(!me.wait_gone(Duration::from_millis(1)).unwrap());

        let (mut child, identity) = sleeper();
        let copy = serde_json::from_str(&serde_json::to_string(&identity).unwrap()).unwrap();
        assert_eq!(identity, copy);
        assert!(identity.is_alive().unwrap());
        identity.kill().unwrap();
        assert!(identity.wait_gone(LONG).unwrap());
        // A zombie: still in /proc, but counted as gone.
        assert_eq!(
            ProcessIdentity::of(identity.pid).unwrap(),
            Some(identity.clone())
        );
        assert!(!identity.is_alive().unwrap());
        identity.kill().unwrap();
        child.wait().unwrap();
        assert!(!identity.is_alive().unwrap());
        assert!(identity.wait_gone(Duration::ZERO).unwrap());
        identity.kill().unwrap();
    }

    #[test]
    fn a_successor_with_the_same_pid_is_never_hit() {
        let (mut child, identity) = sleeper();
        let others = [
            ProcessIdentity {
                start_time: identity.start_time - 1,
                ..identity.clone()
            },
            ProcessIdentity {
                boot_id: "an earlier boot".to_owned(),
                ..identity.clone()
            },
        ];
        for other in others {
            assert!(!other.is_alive().unwrap());
            other.kill().unwrap();
            assert!(other.wait_gone(Duration::ZERO).unwrap());
        }
        assert!(
            identity.is_alive().unwrap(),
            "the process that has the pid now was hit"
        );
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "it ended by itself");
    }

    #[test]
    fn numbers_that_are_no_process() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            let nobody = ProcessIdentity {
                pid,
                start_time: 1,
                boot_id: String::new(),
            };
            assert!(!nobody.is_alive().unwrap(), "{pid}");
            nobody.kill().unwrap();
        }
    }
}
