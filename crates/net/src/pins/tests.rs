//! Pins against a real TLS server on loopback, with authorities made for the tests.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData as _,
    date_time_ymd,
};
use reqwest::{Client, Url};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::causes;

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str, above: Option<&Self>) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let names = &mut parameters.distinguished_name;
        names.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = match above {
            None => parameters.self_signed(&key),
            Some(above) => parameters.signed_by(&key, &above.issuer),
        };
        Self {
            certificate: certificate.unwrap(),
            issuer: Issuer::new(parameters, key),
        }
    }

    fn pin(&self) -> KeyPin {
        KeyPin::of(self.certificate.der()).unwrap()
    }
}

/// A server with a certificate for `localhost`.
struct Server {
    address: SocketAddr,
    pin: KeyPin,
    /// Number of bytes of requests that arrived.
    received: Arc<AtomicUsize>,
}

/// Starts a server with a certificate that an authority signed, which sends these further
/// certificates.
async fn server(of: &Authority, others: &[&Authority], expires_in: i32) -> Server {
    let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
    parameters.not_after = date_time_ymd(expires_in, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.signed_by(&key, &of.issuer).unwrap();
    let mut chain = vec![certificate.der().clone()];
    chain.extend(others.iter().map(|one| one.certificate.der().clone()));
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = [0; 1024];
            let read = stream.read(&mut request).await.unwrap_or(0);
            count.fetch_add(read, Ordering::SeqCst);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    Server {
        address,
        pin: KeyPin::of(certificate.der()).unwrap(),
        received,
    }
}

/// Sends a request to a server as a client that trusts one root.
async fn ask(server: &Server, root: &Authority, demand: Demand) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.certificate.der().clone()).unwrap();
    let config = demanding(Arc::new(roots), demand).unwrap();
    let client = Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(config)
        .build()
        .unwrap();
    let url = format!("https://localhost:{}/", server.address.port());
    let request = client.post(Url::parse(&url).unwrap()).body("a secret");
    match request.send().await {
        Ok(response) => Ok(response.text().await.unwrap()),
        Err(error) => Err(causes(&error)),
    }
}

fn one_of(pins: &[KeyPin]) -> Demand {
    Demand::OneOf(pins.to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_on_the_way_to_a_root_vouches_and_no_other() {
    let root = Authority::new("root", None);
    let between = Authority::new("between", Some(&root));
    let other = Authority::new("other", Some(&root));
    let server = server(&between, &[&between], 4_000).await;
    let wrong = other.pin();
    for pins in [
        &[server.pin][..],
        &[between.pin()],
        &[root.pin()],
        &[wrong, server.pin],
        &[wrong, between.pin()],
    ] {
        let said = ask(&server, &root, one_of(pins)).await;
        assert_eq!(said.as_deref(), Ok("hello"), "{pins:?}");
    }
    let before = server.received.load(Ordering::SeqCst);
    let said = ask(&server, &root, one_of(&[wrong])).await.unwrap_err();
    let own = server.pin.to_string();
    assert!(said.contains("none of the 1 pinned keys vouches"), "{said}");
    assert!(
        said.contains(&own) && said.contains("nothing was sent"),
        "{said}"
    );
    assert_eq!(server.received.load(Ordering::SeqCst), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_authority_that_signed_nothing_does_not_vouch() {
    let root = Authority::new("root", None);
    let pinned = Authority::new("pinned", Some(&root));
    let attacker = Authority::new("attacker", Some(&root));
    // A certificate that is trusted, and one of the pinned authority only sent along.
    let server = server(&attacker, &[&attacker, &pinned], 4_000).await;
    let said = ask(&server, &root, one_of(&[pinned.pin()])).await;
    assert!(said.unwrap_err().contains("none of the 1 pinned keys"));
    assert_eq!(server.received.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_makes_nothing_trusted() {
    let root = Authority::new("root", None);
    let strange = Authority::new("strange", None);
    let expired = server(&root, &[], 2_001).await;
    let said = ask(&expired, &root, one_of(&[expired.pin])).await;
    assert!(said.unwrap_err().contains("expired"));
    let unknown = server(&strange, &[&strange], 4_000).await;
    let said = ask(&unknown, &root, one_of(&[unknown.pin, strange.pin()])).await;
    assert!(
        said.unwrap_err()
            .contains("no root certificate that this machine knows")
    );
    for server in [expired, unknown] {
        assert_eq!(server.received.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_that_vouch_are_remembered() {
    let root = Authority::new("root", None);
    let between = Authority::new("between", Some(&root));
    let other = Authority::new("other", Some(&root));
    let server = server(&between, &[&between, &other], 4_000).await;
    let seen = SeenKeys::default();
    ask(&server, &root, Demand::Remember(seen.clone()))
        .await
        .unwrap();
    assert_eq!(seen.take(), [server.pin, between.pin()]);
}

#[test]
fn pins_are_read_as_they_are_written() {
    let pin = Authority::new("one", None).pin();
    assert_eq!(pin.to_string().parse(), Ok(pin));
    let short = format!("{FORM}{}", BASE64_STANDARD.encode([0; 31]));
    for wrong in [
        "",
        "sha256/",
        "sha1/AAAA",
        &short,
        "sha256/!",
        "sha256/AAAA\n",
    ] {
        assert_eq!(wrong.parse::<KeyPin>(), Err(PinError), "{wrong}");
    }
}

/// Checks that a pin is the digest of the whole key field, with its head, as in RFC 7469.
#[test]
fn a_pin_is_the_digest_of_the_whole_key_field() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let whole = digest(&SHA256, &key.subject_public_key_info());
    let pin = KeyPin::of(certificate.der()).unwrap();
    assert_eq!(pin.0, whole.as_ref());
}
