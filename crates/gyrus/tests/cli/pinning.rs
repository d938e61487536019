//! Pinned keys of a provider's server: `gyrus models pin`, and `pins` in `models.toml`.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, ServerConnection, Stream, crypto::ring, pki_types::PrivateKeyDer};

use crate::support::{Said, World, said};

/// A provider with TLS on loopback that refuses every request.
struct Provider {
    address: SocketAddr,
    /// Its certificate, as PEM.
    certificate: String,
    /// Number of bytes of requests that arrived.
    received: Arc<AtomicUsize>,
}

impl Provider {
    fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&received);
        thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = Stream::new(&mut connection, &mut socket);
                let mut request = [0; 4096];
                // A client that refuses the key hangs up.
                let read = stream.read(&mut request).unwrap_or(0);
                count.fetch_add(read, Ordering::SeqCst);
                let answer =
                    "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self {
            address,
            certificate: cert.pem(),
            received,
        }
    }

    fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }
}

/// A configuration with the provider as `office`.
struct Office {
    world: World,
    provider: Provider,
}

impl Office {
    fn new() -> Self {
        let (world, provider) = (World::new(""), Provider::start());
        fs::write(world.path("root.pem"), &provider.certificate).unwrap();
        fs::create_dir(world.path("home")).unwrap();
        let office = Self { world, provider };
        office.configure("");
        office
    }

    fn configure(&self, pins: &str) {
        let port = self.provider.address.port();
        let text = format!(
            "[providers.office]\nprotocol = \"chat\"\nbase-url = \"https://localhost:{port}/v1\"\n\
             key-variables = [\"OFFICE_KEY\"]\n{pins}\n"
        );
        fs::write(self.world.path("home/models.toml"), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(arguments);
        command.env("SSL_CERT_FILE", self.world.path("root.pem"));
        command.env("OFFICE_KEY", "a-key-of-the-office");
        command
    }

    fn pin(&self) -> Said {
        said(self.command(&["models", "pin", "office"]).output().unwrap())
    }

    fn run(&self) -> Said {
        let run = ["run", "say hello", "--workdir", ".", "--on-ask", "deny"];
        let mut command = self.command(&run);
        command.args(["--model", "office/large"]);
        said(command.output().unwrap())
    }
}

#[test]
fn nothing_is_sent_to_a_server_of_another_key() {
    let office = Office::new();
    let shown = office.pin().exits(0).out;
    let pins = shown.lines().filter(|line| !line.starts_with('['));
    let pins = pins.collect::<Vec<_>>().join("\n");
    assert!(pins.contains("\"sha256/"), "{shown}");

    office.configure(&pins);
    let before = office.provider.received();
    office.run().exits(7).says("key");
    assert!(office.provider.received() > before, "it was asked");
    assert!(office.pin().exits(0).out.contains("(pinned)"));

    // That of another server.
    let other = format!("pins = [\"sha256/{}=\"]", "A".repeat(43));
    office.configure(&other);
    let before = office.provider.received();
    office
        .run()
        .exits(7)
        .says("none of the 1 pinned keys vouches for this server");
    assert_eq!(office.provider.received(), before);
    office
        .pin()
        .exits(2)
        .says("none of the keys that are pinned for office is among them");
}

#[test]
fn a_pin_that_cannot_be_used_is_named() {
    let office = Office::new();
    office.configure("pins = [\"sha256/short\"]");
    office.run().exits(2).says("a pin is `sha256/`");
    office.configure("pins = \"sha256/short\"");
    office.run().exits(2).says("expected a sequence");
    office.configure("");
    let unknown = ["models", "pin", "offise"];
    said(office.command(&unknown).output().unwrap())
        .exits(2)
        .says("no provider is called `offise`");
    // A server without TLS has no key.
    let port = office.provider.address.port();
    let plain = format!(
        "[providers.office]\nprotocol = \"chat\"\nbase-url = \"http://127.0.0.1:{port}/v1\"\n"
    );
    fs::write(office.world.path("home/models.toml"), plain).unwrap();
    office.pin().exits(2).says("without TLS");
}
