//! Starts commands that are confined: this program starts itself again, which confines itself.

use std::{
    collections::BTreeMap,
    io::{self, IoSliceMut, Write},
    iter,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Command, Output, Stdio},
};

use gyrus_contract::{Containment, Listeners};
use gyrus_gate::sandbox::{Gap, confine};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::process;

/// Asks this program to confine itself and run a command.
pub(crate) const ARGUMENT: &str = "--confined-command";

/// Around what the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Around {
    /// A PID namespace, as a keeper has it.
    Namespace,
    /// Nothing, and nobody may make namespaces.
    Nothing,
    /// As `Nothing`, and no way to take descriptors of other processes, as in many containers.
    Container,
}

impl Around {
    pub(crate) fn has_namespaces(self) -> bool {
        self == Self::Namespace
    }
}

/// A command to run and its surroundings.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    containment: Containment,
    around: Around,
    program: String,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    folder: std::path::PathBuf,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) gaps: Vec<Gap>,
}

/// The user who runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Current,
    /// The user `nobody`.
    Other,
}

/// The number of the other user.
pub(crate) const OTHER: u32 = 65_534;

/// Everything a test says of a command.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    pub(crate) containment: &'a Containment,
    pub(crate) around: Around,
    pub(crate) user: User,
    pub(crate) folder: &'a Path,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Start<'_> {
    /// Runs a program; what listens inside goes to `serve` before the program starts.
    pub(crate) fn run(
        &self,
        program: &str,
        arguments: &[&str],
        serve: impl FnOnce(Option<Listeners>),
    ) -> Ran {
        let order = Order {
            containment: self.containment.clone(),
            around: self.around,
            program: program.to_owned(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            environment: self.environment.clone(),
            folder: self.folder.to_owned(),
        };
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(ARGUMENT)
            .arg(serde_json::to_string(&order).expect("an order is data"))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.user == User::Other {
            command.uid(OTHER).gid(OTHER);
        }
        let child = command.spawn().expect("this program starts");
        drop(command);
        // If it ended before, its output says why.
        let (gaps, listeners) = receive(&ours).unwrap_or_default();
        serve(listeners);
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().expect("it ends");
        let mut output = String::from_utf8_lossy(&stdout).into_owned();
        output.push_str(&String::from_utf8_lossy(&stderr));
        Ran {
            code: status.code(),
            output,
            gaps,
        }
    }

    /// Runs a script of the shell.
    pub(crate) fn script(&self, script: &str) -> Ran {
        self.run("/bin/bash", &["-c", script], drop)
    }
}

/// More sockets than any test forwards.
const SOCKETS: usize = 4;

fn receive(socket: &UnixStream) -> io::Result<(Vec<Gap>, Option<Listeners>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = vec![0; 64 * 1024];
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut text)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let listeners = fds.next().map(|proxy| Listeners {
        proxy,
        forwarded: fds.collect(),
        dialer: None,
    });
    Ok((serde_json::from_slice(&text[..received.bytes])?, listeners))
}

fn send(socket: &UnixStream, gaps: &[Gap], listeners: Option<&Listeners>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let all = listeners
        .iter()
        .flat_map(|all| iter::once(&all.proxy).chain(&all.forwarded));
    let fds: Vec<_> = all.map(AsFd::as_fd).collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let text = serde_json::to_vec(gaps)?;
    sendmsg(
        socket,
        &[io::IoSlice::new(&text)],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// The other side: confines itself, then runs the command.
pub(crate) fn obey(order: &str) -> i32 {
    let order: Order = serde_json::from_str(order).expect("an order");
    let serve = || match serve(&order) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "harness: {error}");
            254
        }
    };
    match order.around {
        Around::Namespace => {
            process::enter().expect("a namespace");
            process::in_child(serve).expect("a child")
        }
        Around::Nothing | Around::Container => {
            process::refuse_namespaces(match order.around {
                Around::Container => &[libc::SYS_pidfd_getfd],
                Around::Namespace | Around::Nothing => &[],
            });
            // The parent of a keeper's process has the same user, as it has not always here.
            process::in_child(serve).expect("a child")
        }
    }
}

fn serve(order: &Order) -> Result<i32, Box<dyn std::error::Error>> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut confined = confine(&order.containment)?;
    send(&control, &confined.gaps, confined.listeners.as_ref())?;
    // Only the listeners go to others; the rest is kept for the command.
    drop(confined.listeners.take());
    let mut command = Command::new(&order.program);
    if let Some(rules) = confined.command_rules.take() {
        process::enter_rules(&mut command, rules);
    }
    let status = command
        .args(&order.arguments)
        .current_dir(&order.folder)
        .env_clear()
        .envs(&order.environment)
        .envs(confined.environment.iter().cloned())
        .process_group(0)
        .stdin(Stdio::null())
        .status()?;
    use std::os::unix::process::ExitStatusExt;
    Ok(status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
