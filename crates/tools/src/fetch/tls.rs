//! Whom to believe that they are who they say: the system's roots (or those that `SSL_CERT_FILE`
//! and `SSL_CERT_DIR` name), else the list of webpki-roots, as in a bare container.

use std::sync::{Arc, OnceLock};

use reqwest::Url;
use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// The configuration of a client for this one address. The roots are read once in a process, and
/// only if an address needs them.
pub(super) fn config(address: &Url) -> ClientConfig {
    static TRUSTING: OnceLock<ClientConfig> = OnceLock::new();
    match address.scheme() {
        "https" => TRUSTING.get_or_init(|| believing(roots())).clone(),
        // It will never speak TLS, but is not built without.
        _ => believing(RootCertStore::empty()),
    }
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn believing(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
