//! Real servers for the tests. `cargo xtask test` installs the program.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gyrus_fleet::{
    Machine, MachineTime, OsMachine, SharedLog,
    nats::{FleetAddress, FleetConnection, LocalServer, NatsLog, ServerOptions, prepare_streams},
};
use tempfile::TempDir;

/// The server's program, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("target/nats-server/bin/nats-server");
    path.exists().then_some(path)
}

/// The lines of the configuration of one of several servers that are a cluster.
fn cluster(ports: &[u16], number: usize) -> String {
    if ports.len() == 1 {
        return String::new();
    }
    let routes = ports
        .iter()
        .map(|port| format!("\"nats://127.0.0.1:{port}\""));
    format!(
        "cluster {{ name: fleet, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
        ports[number],
        routes.collect::<Vec<_>>().join(", ")
    )
}

/// Servers with what they keep.
pub(crate) struct Servers {
    pub(crate) options: Vec<ServerOptions>,
    pub(crate) running: Vec<Option<LocalServer>>,
    _folder: TempDir,
}

impl Servers {
    /// Starts servers; `None` if the program is not installed.
    pub(crate) fn start(count: usize) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        // Held until all are known, so that no two are the same.
        let held: Vec<TcpListener> = (0..2 * count)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let ports: Vec<u16> = held
            .iter()
            .map(|one| one.local_addr().unwrap().port())
            .collect();
        drop(held);
        let options: Vec<ServerOptions> = (0..count)
            .map(|number| ServerOptions {
                program: program.clone(),
                folder: folder.path().join(number.to_string()),
                name: format!("server-{number}"),
                // A client finds a server of a cluster again by its port.
                port: (count > 1).then(|| ports[count + number]),
                token: Some("secret-of-the-tests".to_owned()),
                more: cluster(&ports[..count], number),
                syncs_always: true,
            })
            .collect();
        let running = options
            .iter()
            .map(|options| Some(LocalServer::start(options).unwrap()))
            .collect();
        Some(Self {
            options,
            running,
            _folder: folder,
        })
    }

    /// Kills a server at once.
    pub(crate) fn kill(&mut self, number: usize) {
        self.running[number] = None;
    }

    pub(crate) fn restart(&mut self, number: usize) {
        self.running[number] = Some(LocalServer::start(&self.options[number]).unwrap());
    }

    pub(crate) fn address(&self) -> FleetAddress {
        let servers = self.running.iter().flatten();
        let hosts: Vec<String> = servers
            .map(|server| format!("secret-of-the-tests@127.0.0.1:{}", server.port))
            .collect();
        FleetAddress::parse(&format!("nats://{}", hosts.join(","))).unwrap()
    }

    pub(crate) async fn connect(&self) -> FleetConnection {
        let connection = FleetConnection::open(&self.address()).await.unwrap();
        // A cluster needs a moment to choose its leader.
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while let Err(error) = prepare_streams(&connection).await {
            assert!(std::time::Instant::now() < deadline, "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        connection
    }

    /// Writes into a log of the fleet as somebody does who knows nothing of gyrus.
    pub(crate) async fn disturb(&self, log: &str) {
        let port = self.running.iter().flatten().next().unwrap().port;
        let options = async_nats::ConnectOptions::with_token("secret-of-the-tests".to_owned());
        let client = options.connect(format!("127.0.0.1:{port}")).await.unwrap();
        for junk in ["hello", "", "{}", "[1]\n", "\n"] {
            let subject = format!("gyrus.main.{log}");
            client.publish(subject, junk.into()).await.unwrap();
        }
        client.flush().await.unwrap();
    }

    pub(crate) async fn log(&self) -> Arc<dyn SharedLog> {
        Arc::new(NatsLog::new(self.connect().await))
    }
}

/// This machine, which remembers until when it would let the process live.
#[derive(Default)]
pub(crate) struct TestMachine {
    pub(crate) lives_until: AtomicU64,
}

#[async_trait::async_trait]
impl Machine for TestMachine {
    fn now(&self) -> MachineTime {
        OsMachine.now()
    }

    async fn sleep_until(&self, time: MachineTime) {
        OsMachine.sleep_until(time).await;
    }

    fn live_until(&self, time: MachineTime) -> Result<(), String> {
        self.lives_until.fetch_max(time.0, Ordering::Relaxed);
        Ok(())
    }
}
