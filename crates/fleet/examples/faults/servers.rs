//! Three servers that are a cluster, whose ways to each other are links.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::proxy::Link;

/// Number of servers.
pub(crate) const COUNT: usize = 3;

/// The word that clients must give.
const TOKEN: &str = "word-of-the-test";

/// Time within which a server must answer after its start.
const START: Duration = Duration::from_secs(30);

/// The servers.
pub(crate) struct Servers {
    program: PathBuf,
    folder: PathBuf,
    ports: Vec<Ports>,
    children: Vec<Mutex<Option<Child>>>,
    /// The way from one server to another; `None` from one to itself.
    pub(crate) routes: Vec<Vec<Option<Link>>>,
}

/// The ports of a server.
#[derive(Debug, Clone, Copy)]
struct Ports {
    clients: u16,
    routes: u16,
    monitor: u16,
}

impl Servers {
    /// Starts the servers.
    pub(crate) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let held: Vec<_> = (0..3 * COUNT)
            .map(|_| std::net::TcpListener::bind("127.0.0.1:0"))
            .collect::<Result<_, _>>()?;
        let mut free = Vec::new();
        for listener in &held {
            free.push(listener.local_addr()?.port());
        }
        drop(held);
        let ports: Vec<Ports> = free
            .chunks(3)
            .map(|ports| Ports {
                clients: ports[0],
                routes: ports[1],
                monitor: ports[2],
            })
            .collect();
        let mut routes = Vec::new();
        for from in 0..COUNT {
            let mut row = Vec::new();
            for (to, ports) in ports.iter().enumerate() {
                row.push(if to == from {
                    None
                } else {
                    Some(Link::open(ports.routes).await?)
                });
            }
            routes.push(row);
        }
        let servers = Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            ports,
            children: (0..COUNT).map(|_| Mutex::new(None)).collect(),
            routes,
        };
        for number in 0..COUNT {
            servers.write(number)?;
            servers.run(number)?;
        }
        Ok(servers)
    }

    /// Returns the ports for clients.
    pub(crate) fn client_ports(&self) -> Vec<u16> {
        self.ports.iter().map(|ports| ports.clients).collect()
    }

    /// Returns the address of the fleet for whoever reaches the servers by these ports.
    pub(crate) fn address(&self, ports: &[u16]) -> String {
        let hosts: Vec<String> = ports
            .iter()
            .map(|port| format!("{TOKEN}@127.0.0.1:{port}"))
            .collect();
        let monitors: Vec<String> = self
            .ports
            .iter()
            .map(|ports| format!("monitor=http://127.0.0.1:{}", ports.monitor))
            .collect();
        format!("nats://{}?{}", hosts.join(","), monitors.join("&"))
    }

    /// Returns the options and addresses of a client that is no part of gyrus.
    pub(crate) async fn client(&self) -> anyhow::Result<async_nats::Client> {
        let addresses: Vec<String> = self
            .client_ports()
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        let options = async_nats::ConnectOptions::new().token(TOKEN.to_owned());
        Ok(options.connect(addresses).await?)
    }

    fn home(&self, number: usize) -> PathBuf {
        self.folder.join(format!("server-{number}"))
    }

    fn write(&self, number: usize) -> anyhow::Result<()> {
        let home = self.home(number);
        fs::create_dir_all(&home)?;
        let Ports {
            clients,
            routes,
            monitor,
        } = self.ports[number];
        let others: Vec<String> = self.routes[number]
            .iter()
            .flatten()
            .map(|link| format!("\"nats://127.0.0.1:{}\"", link.port))
            .collect();
        // Nobody is told a real address: neither clients, nor the other servers.
        let text = format!(
            "server_name: server-{number}\n\
             listen: \"127.0.0.1:{clients}\"\n\
             http: \"127.0.0.1:{monitor}\"\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always }}\n\
             authorization {{ token: \"{TOKEN}\" }}\n\
             cluster {{ name: fleet, listen: \"127.0.0.1:{routes}\", advertise: \"127.0.0.1:1\", \
             no_advertise: true, routes: [{}] }}\n",
            home.join("messages").display(),
            others.join(", ")
        );
        Ok(fs::write(home.join("server.conf"), text)?)
    }

    fn run(&self, number: usize) -> anyhow::Result<()> {
        let home = self.home(number);
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(home.join("server.log"))?;
        let child = bound_to_this_thread(&self.program)
            .arg("-c")
            .arg(home.join("server.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("running {}", self.program.display()))?;
        *self.child(number) = Some(child);
        Ok(())
    }

    fn child(&self, number: usize) -> parking_lot::MutexGuard<'_, Option<Child>> {
        self.children[number].lock()
    }

    /// Kills a server.
    pub(crate) fn kill(&self, number: usize) {
        if let Some(mut child) = self.child(number).take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal to a server.
    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        let pid = self.child(number).as_ref().map(Child::id);
        let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    /// Starts a server again, and returns when it answers.
    pub(crate) async fn restart(&self, number: usize) -> anyhow::Result<()> {
        self.run(number)?;
        self.answers(number).await
    }

    /// Returns when a server answers.
    pub(crate) async fn answers(&self, number: usize) -> anyhow::Result<()> {
        let until = Instant::now() + START;
        let port = self.ports[number].clients;
        while tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
        {
            let log = self.home(number).join("server.log");
            ensure!(
                Instant::now() < until,
                "server {number} does not answer; {} says why",
                log.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for number in 0..COUNT {
            self.kill(number);
        }
    }
}

/// Returns a command that ends with the thread that starts it.
pub(crate) fn bound_to_this_thread(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}
