//! A server of this machine's own, for trying: started with settings that keep every promise, and
//! ended with whoever started it.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Time limit for a server to report its address.
const START: Duration = Duration::from_secs(20);

/// Interval at which the server's messages are checked, since there is no event to wait for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The path of the program `nats-server`.
    pub program: PathBuf,
    /// The folder for the server's configuration, messages and log.
    pub folder: PathBuf,
    /// The name of the server: no two of a cluster have the same.
    pub name: String,
    /// The port for clients; `None` picks a free one.
    pub port: Option<u16>,
    /// The word that clients must give.
    pub token: Option<String>,
    /// Further lines of the server's configuration: other ways in, the servers of its cluster.
    pub more: String,
    /// Whether every message is on disk before it is acknowledged. Without that, it is no server for
    /// a fleet.
    pub syncs_always: bool,
}

/// A server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The server's files cannot be written, or its program cannot be started.
    #[error("the server cannot be started: {what}")]
    Io {
        /// The step that failed.
        what: String,
        source: io::Error,
    },
    /// The server ended at once, or did not report its address.
    #[error("the server did not start: {said}")]
    NotStarted {
        /// The end of the server's log.
        said: String,
    },
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct LocalServer {
    child: Child,
    options: ServerOptions,
    /// The port for clients.
    pub port: u16,
    /// The port of the monitoring page.
    pub monitor: u16,
}

impl LocalServer {
    /// Starts a server and waits until it reports its address.
    pub fn start(options: &ServerOptions) -> Result<Self, ServerError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| ServerError::Io { what, source }
        };
        let ports = options.folder.join("ports");
        for folder in [&options.folder, &ports] {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(folder)
                .map_err(failed("creating its folder"))?;
        }
        let configuration = options.folder.join("server.conf");
        private(&configuration)
            .and_then(|mut file| file.write_all(configured(options).as_bytes()))
            .map_err(failed("writing its configuration"))?;
        let said = options.folder.join("server.log");
        let log = private(&said).map_err(failed("writing its log"))?;
        let mut command = below_this_process(&options.program);
        command
            .arg("-c")
            .arg(&configuration)
            .arg("--ports_file_dir")
            .arg(&ports)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed("writing its log"))?)
            .stderr(log);
        let child = command
            .spawn()
            .map_err(failed(&format!("running {}", options.program.display())))?;
        let mut server = Self {
            child,
            options: options.clone(),
            port: 0,
            monitor: 0,
        };
        let path = ports.join(format!("nats-server_{}.ports", server.child.id()));
        (server.port, server.monitor) = server.wait_for_ports(&path)?;
        Ok(server)
    }

    fn wait_for_ports(&mut self, path: &Path) -> Result<(u16, u16), ServerError> {
        let deadline = Instant::now() + START;
        loop {
            if let Some(ports) = read_ports(path) {
                return Ok(ports);
            }
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended || Instant::now() > deadline {
                let said = fs::read_to_string(self.options.folder.join("server.log"));
                let said = said.unwrap_or_default();
                let last = said.lines().next_back().unwrap_or("it said nothing");
                return Err(ServerError::NotStarted {
                    said: last.to_owned(),
                });
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Returns the address for workers.
    pub fn address(&self) -> String {
        let token = self.options.token.as_ref();
        let token = token.map_or_else(String::new, |token| format!("{token}@"));
        format!(
            "nats://{token}127.0.0.1:{}?monitor={}",
            self.port, self.monitor
        )
    }

    /// Waits until the server has ended by itself.
    ///
    /// # Errors
    /// The operating system cannot wait for the server.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that ends with this process, if the system has a program for that.
fn below_this_process(program: &Path) -> Command {
    const SETPRIV: &str = "/usr/bin/setpriv";
    if !Path::new(SETPRIV).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(SETPRIV);
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    options.open(path)
}

fn configured(options: &ServerOptions) -> String {
    let port = options.port.map_or(-1, i32::from);
    let store = quoted(&options.folder.join("messages").to_string_lossy());
    let sync = if options.syncs_always {
        "sync_interval: always"
    } else {
        ""
    };
    let mut text = format!(
        "# Written by gyrus at every start.\n\
         server_name: {}\n\
         listen: \"127.0.0.1:{port}\"\n\
         http: \"127.0.0.1:-1\"\n\
         jetstream {{ store_dir: {store}, {sync} }}\n",
        quoted(&options.name)
    );
    if let Some(token) = &options.token {
        text.push_str(&format!("authorization {{ token: {} }}\n", quoted(token)));
    }
    text.push_str(&options.more);
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads the ports for clients and for monitoring, once the server has written them.
fn read_ports(path: &Path) -> Option<(u16, u16)> {
    let text = fs::read(path).ok()?;
    let said: Value = serde_json::from_slice(&text).ok()?;
    let port = |kind: &str| {
        let address = said[kind][0].as_str()?;
        address.rsplit(':').next()?.parse().ok()
    };
    Some((port("nats")?, port("monitoring")?))
}
