//! The root certificates that are trusted.
//!
//! rustls with ring, so nothing is linked from the system. Trusted are the roots of the system;
//! those of `SSL_CERT_FILE` (one file) and `SSL_CERT_DIR` (folders joined by colons) instead of
//! them where one of the two is set and not empty; and the bundled list of webpki-roots where the
//! system has none, as in a bare container. There is no way to trust every certificate.

use std::{
    env,
    ffi::OsString,
    path::Path,
    sync::{Arc, OnceLock},
    time::{SystemTime, UNIX_EPOCH},
};

use rustls::{
    ClientConfig, RootCertStore, crypto::ring, pki_types::UnixTime, time_provider::TimeProvider,
};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};

/// Protocol above TLS: HTTP/1.1, the only version that the clients are built with.
const ALPN: &[u8] = b"http/1.1";

const FILE: &str = "SSL_CERT_FILE";
const FOLDERS: &str = "SSL_CERT_DIR";

/// A variable of the environment, or of an address, names roots that are not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no root certificate is found in `{named}`, which {variable} names{reasons}; name {wanted} in \
     PEM form, or unset {variable} to trust the roots of the system"
)]
pub struct RootsError {
    variable: &'static str,
    named: String,
    /// Reasons for failed readings, after a colon; empty if there were none.
    reasons: String,
    /// Kind of file or folder that the variable should name.
    wanted: &'static str,
}

pub(crate) fn trusting_environment() -> Result<ClientConfig, RootsError> {
    static CONFIG: OnceLock<Result<ClientConfig, RootsError>> = OnceLock::new();
    CONFIG.get_or_init(|| Ok(config(of_environment()?))).clone()
}

/// Returns the roots of the environment and the system, which are read once per process.
pub(crate) fn of_environment() -> Result<Arc<RootCertStore>, RootsError> {
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, RootsError>> = OnceLock::new();
    ROOTS
        .get_or_init(|| Ok(Arc::new(roots(|name| env::var_os(name))?)))
        .clone()
}

/// Returns the certificates of a file, which `named_by` names.
pub(crate) fn of_file(named_by: &'static str, file: &Path) -> Result<RootCertStore, RootsError> {
    let mut roots = RootCertStore::empty();
    let found = load_certs_from_paths(Some(file), None);
    let file = file.as_os_str().to_owned();
    add(&mut roots, found, named_by, &file, "a file of certificates")?;
    Ok(roots)
}

pub(crate) fn trusting_nobody() -> ClientConfig {
    config(RootCertStore::empty())
}

fn roots(environment: impl Fn(&str) -> Option<OsString>) -> Result<RootCertStore, RootsError> {
    let set = |name| environment(name).filter(|value| !value.is_empty());
    let mut roots = RootCertStore::empty();
    match (set(FILE), set(FOLDERS)) {
        (None, None) => {
            let (added, _) = roots.add_parsable_certificates(load_native_certs().certs);
            if added == 0 {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
        (file, folders) => {
            if let Some(file) = file {
                roots = of_file(FILE, Path::new(&file))?;
            }
            if let Some(folders) = folders {
                let mut found = CertificateResult::default();
                for folder in env::split_paths(&folders) {
                    let more = load_certs_from_paths(None, Some(&folder));
                    found.certs.extend(more.certs);
                    found.errors.extend(more.errors);
                }
                add(
                    &mut roots,
                    found,
                    FOLDERS,
                    &folders,
                    "folders with certificates",
                )?;
            }
        }
    }
    Ok(roots)
}

/// Adds the certificates that a variable names: there must be one.
fn add(
    roots: &mut RootCertStore,
    found: CertificateResult,
    variable: &'static str,
    named: &OsString,
    wanted: &'static str,
) -> Result<(), RootsError> {
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(());
    }
    let reasons = found.errors.iter().map(|error| format!(": {error}"));
    Err(RootsError {
        variable,
        named: named.to_string_lossy().into_owned(),
        reasons: reasons.collect(),
        wanted,
    })
}

/// The wall clock of certificates. A clock before 1970 counts as absent, and then no certificate is valid;
/// the default clock of rustls panics.
#[derive(Debug)]
struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(UnixTime::since_unix_epoch(since))
    }
}

pub(crate) fn config(roots: impl Into<Arc<RootCertStore>>) -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(WallClock))
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

#[cfg(test)]
mod tests;
