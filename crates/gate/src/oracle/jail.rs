//! A copy of the whole machine that a command may spoil.
//!
//! Above the real file system, which stays untouched, lie the folders of an imagined person, and
//! above these an overlay that takes every change. It is thrown away as soon as something is in it.
//!
//! All of this happens in namespaces of this process's own, of which it is process 1.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString},
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, XattrFlags},
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount},
    process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, wait},
};

use super::{Error, Outcome, confinement, doing, fixture::Ground, overlay};

/// Everything of a jail lies here; every Linux has this folder, and nobody else sees the mount.
const STORE: &str = "/mnt";
const BASE: &str = "/mnt/base";
const BEFORE: &str = "/mnt/before";
const MERGED: &str = "/mnt/merged";

/// Where the imagined person lives, in the jail and, bound there, in the eyes of this process.
const HOMES: &str = "/home";

/// How long a line may run.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// How long what is left of a line may take to end by itself, as the last writers of a pipe do: on a
/// busy machine even `python --version` takes a while.
const GRACE: Duration = Duration::from_secs(2);

/// Device nodes that a jail has: those that hold nothing.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// A jail that lines run in, one after the other.
pub(super) struct Jail {
    /// Counts the overlays; each has folders of its own.
    layer: u64,
    bash: &'static str,
    path: String,
    /// Takes what lines print.
    sink: OwnedFd,
    /// What the network's counters say while nothing happens.
    counters: String,
}

impl Jail {
    /// Builds it: mounts, folders, repositories. `path` is the `PATH` of its commands.
    pub(super) fn build(path: String) -> Result<Self, Error> {
        if std::process::id() != 1 {
            let source = io::Error::other("this process is not the first of a PID namespace");
            return Err(doing("build a jail")(source));
        }
        let size = c"size=1g,mode=755";
        mount("tmpfs", STORE, "tmpfs", MountFlags::empty(), size)
            .map_err(doing("mount a tmpfs"))?;
        let below = |name: &str| PathBuf::from(BASE).join(name);
        for (name, mode, is_opaque) in [
            ("home", 0o755, true),
            ("run", 0o755, true),
            ("tmp", 0o1777, true),
            ("var", 0o755, false),
            ("var/tmp", 0o1777, true),
            ("dev", 0o755, true),
            ("dev/shm", 0o1777, true),
        ] {
            make_folder(&below(name), mode, is_opaque)?;
        }
        for device in DEVICES {
            fs::write(below("dev").join(device), "").map_err(doing("make a device"))?;
        }
        for (name, target) in [
            ("fd", "fd"),
            ("stdin", "fd/0"),
            ("stdout", "fd/1"),
            ("stderr", "fd/2"),
        ] {
            let target = format!("/proc/self/{target}");
            std::os::unix::fs::symlink(target, below("dev").join(name))
                .map_err(doing("make a link"))?;
        }
        mount_bind(below("home"), HOMES).map_err(doing("bind /home"))?;
        super::fixture::lay_out()?;
        unmount(HOMES, UnmountFlags::DETACH).map_err(doing("unbind /home"))?;
        make_folder(Path::new(BEFORE), 0o755, false)?;
        make_folder(Path::new(MERGED), 0o755, false)?;
        let lower = CString::new(format!("lowerdir={BASE}:/")).expect("it holds no NUL");
        mount(
            "overlay",
            BEFORE,
            "overlay",
            MountFlags::RDONLY,
            lower.as_c_str(),
        )
        .map_err(doing("mount an overlay"))?;
        let mut jail = Self {
            layer: 0,
            bash: if Path::new("/usr/bin/bash").exists() {
                "/usr/bin/bash"
            } else {
                "/bin/bash"
            },
            path,
            sink: sink()?,
            counters: counters()?,
        };
        jail.mount()?;
        Ok(jail)
    }

    fn upper(&self) -> PathBuf {
        PathBuf::from(format!("{STORE}/{}/upper", self.layer))
    }

    /// Puts a fresh overlay into place.
    fn mount(&mut self) -> Result<(), Error> {
        self.layer += 1;
        let layer = format!("{STORE}/{}", self.layer);
        for name in ["", "/upper", "/work"] {
            make_folder(Path::new(&format!("{layer}{name}")), 0o755, false)?;
        }
        let options = format!(
            "lowerdir={BASE}:/,upperdir={layer}/upper,workdir={layer}/work,\
             metacopy=off,redirect_dir=off,index=off"
        );
        let options = CString::new(options).expect("it holds no NUL");
        mount(
            "overlay",
            MERGED,
            "overlay",
            MountFlags::empty(),
            options.as_c_str(),
        )
        .map_err(doing("mount an overlay"))?;
        let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        // Read-only as a whole: root may write `sysrq-trigger` without any capability.
        let proc = format!("{MERGED}/proc");
        mount(
            "proc",
            &proc,
            "proc",
            quiet | MountFlags::RDONLY,
            None::<&CStr>,
        )
        .map_err(doing("mount /proc"))?;
        for device in DEVICES {
            let target = format!("{MERGED}/dev/{device}");
            mount_bind(format!("/dev/{device}"), &target).map_err(doing("bind a device"))?;
            // A device may still be written to; its node may not be changed.
            mount_remount(&target, MountFlags::BIND | MountFlags::RDONLY, c"")
                .map_err(doing("protect a device"))?;
        }
        mount_bind(format!("{MERGED}{HOMES}"), HOMES).map_err(doing("bind /home"))
    }

    /// Throws away whatever was changed.
    fn restore(&mut self) -> Result<(), Error> {
        unmount(HOMES, UnmountFlags::DETACH).map_err(doing("unbind /home"))?;
        unmount(MERGED, UnmountFlags::DETACH).map_err(doing("unmount the overlay"))?;
        // What is still held open keeps living; it is deleted with the namespace.
        let _ = fs::remove_dir_all(format!("{STORE}/{}", self.layer));
        self.mount()
    }

    /// Runs a line, and says what it changed. Afterwards all is as it was before.
    pub(super) fn run(
        &mut self,
        line: &str,
        ground: Ground,
        environment: &BTreeMap<String, String>,
    ) -> Result<Outcome, Error> {
        let mut command = Command::new(self.bash);
        let output = || self.sink.try_clone().map_err(doing("share a pipe"));
        command
            .args(["-c", line])
            .env_clear()
            .envs([
                ("PATH", self.path.as_str()),
                ("HOME", Ground::HOME),
                ("USER", "person"),
                ("LANG", "C.UTF-8"),
                ("TERM", "dumb"),
                ("TMPDIR", "/tmp"),
            ])
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?);
        let folder = CString::new(ground.folder()).expect("it holds no NUL");
        let root = CString::new(MERGED).expect("it holds no NUL");
        confinement::confine(&mut command, root, folder);
        let mut outcome = Outcome::default();
        let mut child = match command.spawn() {
            Ok(child) => child,
            // Too long, or with a NUL: no shell can be given it.
            Err(_) => return Ok(outcome),
        };
        drop(command);
        let pid = Pid::from_raw(child.id() as i32).expect("a process has an id");
        outcome.timed_out = !ended(pid, TIME_LIMIT)?;
        if !outcome.timed_out {
            outcome.code = child.wait().map_err(doing("wait for bash"))?.code();
        }
        let stayed = !outcome.timed_out && somebody_stays(GRACE)?;
        end_all()?;
        if stayed {
            outcome
                .differences
                .push("a process stays behind".to_owned());
        }
        let counters = counters()?;
        if counters != self.counters {
            outcome
                .differences
                .push("it tried to reach the network".to_owned());
            self.counters = counters;
        }
        let upper = self.upper();
        if !overlay::is_untouched(&upper).map_err(doing("look at the changes"))? {
            let changes = overlay::differences(&upper, Path::new(BEFORE));
            outcome
                .differences
                .extend(changes.map_err(doing("look at the changes"))?);
            self.restore()?;
        }
        Ok(outcome)
    }
}

/// Whether the process ended within the time.
fn ended(pid: Pid, limit: Duration) -> Result<bool, Error> {
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(doing("watch bash"))?;
    let deadline = Instant::now() + limit;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).expect("the limit is small");
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&rest)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(doing("wait for bash")(error)),
        }
    }
}

/// Whether some other process of this namespace still lives when the time is over.
fn somebody_stays(grace: Duration) -> Result<bool, Error> {
    let deadline = Instant::now() + grace;
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return Ok(false),
            Ok(None) if Instant::now() > deadline => return Ok(true),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(error) => return Err(doing("wait for what is left")(error)),
        }
    }
}

/// Kills whatever lives in this namespace beside this process, and waits for it.
fn end_all() -> Result<(), Error> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return Ok(()),
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(error) => return Err(doing("wait for what is left")(error)),
        }
        // The group of process 1 means everybody but the caller.
        match kill_process_group(Pid::INIT, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(doing("kill what is left")(error)),
        }
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::CHILD | Errno::INTR) => {}
            Err(error) => return Err(doing("wait for what is left")(error)),
        }
    }
}

fn make_folder(path: &Path, mode: u32, is_opaque: bool) -> Result<(), Error> {
    let told = || format!("make the folder {}", path.display());
    match fs::create_dir_all(path) {
        Ok(()) => {}
        Err(error) => return Err(doing(told())(error)),
    }
    rustix::fs::chmod(path, Mode::from_raw_mode(mode)).map_err(doing(told()))?;
    if is_opaque {
        let name = "trusted.overlay.opaque";
        rustix::fs::setxattr(path, name, b"y", XattrFlags::empty()).map_err(doing(told()))?;
    }
    Ok(())
}

/// A pipe that swallows everything.
fn sink() -> Result<OwnedFd, Error> {
    let (mut reader, writer) = io::pipe().map_err(doing("make a pipe"))?;
    std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
    Ok(writer.into())
}

/// The counters of this network namespace. It has no interface that is up, so whatever is sent
/// finds no route, and that is counted.
fn counters() -> Result<String, Error> {
    let read = |name: &str| fs::read_to_string(name).map_err(doing("read the network's counters"));
    let six = fs::read_to_string("/proc/self/net/snmp6").unwrap_or_default();
    Ok(read("/proc/self/net/snmp")? + &six)
}
