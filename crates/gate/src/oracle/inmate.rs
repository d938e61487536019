//! The other end of a worker: starts it, asks it, ends it.

use std::{
    io::{BufRead, BufReader, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{Error, Question, Reply, doing};

/// A worker that says nothing for so long is lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worker process with its jail.
pub struct Inmate {
    child: Child,
    questions: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Inmate {
    /// Starts `program` with `arguments` and more `environment`, in namespaces of its own; it has
    /// to call [`work`](super::work).
    pub fn start(
        program: &Path,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(doing("make a socket"))?;
        ours.set_read_timeout(Some(PATIENCE))
            .map_err(doing("set a time limit"))?;
        let child = in_namespaces()
            .arg(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(doing("run unshare (of util-linux)"))?;
        let answers = ours.try_clone().map_err(doing("share the socket"))?;
        Ok(Self {
            child,
            questions: ours,
            answers: BufReader::new(answers),
        })
    }

    /// Asks, and waits for the answer. After an error the worker is of no use any more.
    pub fn ask(&mut self, question: &Question) -> Result<Reply, Error> {
        let talk = |error: String| Error::Talk(error);
        let mut text = serde_json::to_string(question).map_err(|error| talk(error.to_string()))?;
        text.push('\n');
        let sent = self.questions.write_all(text.as_bytes());
        sent.map_err(|error| talk(error.to_string()))?;
        let mut answer = String::new();
        match self.answers.read_line(&mut answer) {
            Ok(0) => Err(talk("it ended without an answer".to_owned())),
            Ok(_) => serde_json::from_str(&answer).map_err(|error| talk(error.to_string())),
            Err(error) => Err(talk(error.to_string())),
        }
    }
}

impl Drop for Inmate {
    fn drop(&mut self) {
        // unshare takes the whole namespace with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The start of a command line that runs the rest in namespaces of its own.
pub(super) fn in_namespaces() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--net", "--ipc", "--uts"]);
    command.arg("--kill-child");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
}
