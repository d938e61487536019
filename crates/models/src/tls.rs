//! TLS: what makes `https://` work, and the words for a certificate that is not trusted.
//!
//! rustls with ring, so nothing is linked from the system. Trusted are the roots of the system;
//! those of `SSL_CERT_FILE` and `SSL_CERT_DIR` (folders joined by colons) instead of them where
//! one of the two is set; and the bundled list of webpki-roots where the system has none, as in a
//! bare container.
//!
//! Not here: a way to trust every certificate. Whoever has an own root names it in `SSL_CERT_FILE`.

use std::{
    env,
    error::Error,
    ffi::OsString,
    io,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use gyrus_contract::ModelError;
use reqwest::{ClientBuilder, Url};
use rustls::{CertificateError, ClientConfig, RootCertStore, crypto::ring};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};

/// What is spoken above TLS: HTTP/1.1, the only version that the clients are built with.
const ALPN: &[u8] = b"http/1.1";

/// Makes a client for `address` able to speak TLS. The roots are read once per process, and only
/// if an address needs them.
///
/// # Errors
/// [`ModelError::Network`] if `SSL_CERT_FILE` or `SSL_CERT_DIR` is set and holds no certificate.
pub(crate) fn configure(
    builder: ClientBuilder,
    address: &Url,
) -> Result<ClientBuilder, ModelError> {
    static OF_THE_SYSTEM: OnceLock<Result<ClientConfig, String>> = OnceLock::new();
    let config = match address.scheme() {
        "https" => OF_THE_SYSTEM
            .get_or_init(|| trusting(|name| env::var_os(name)))
            .clone()
            .map_err(|message| ModelError::Network { message })?,
        // Redirects are not followed, so this client will never speak TLS.
        _ => config(RootCertStore::empty()),
    };
    Ok(builder.tls_backend_preconfigured(config))
}

/// What is wrong with the server's certificate, if that is why a connection failed.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(wrong)) = of_tls(error) {
            return Some(in_words(wrong));
        }
        cause = error.source();
    }
    None
}

/// The error of TLS that this one is or was made from. An I/O error hides what it was made from:
/// its source is the source of that.
fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(wrapped) => of_tls(wrapped.get_ref()?),
        None => error.downcast_ref(),
    }
}

fn in_words(wrong: &CertificateError) -> String {
    match wrong {
        CertificateError::UnknownIssuer => "the certificate of the server is not trusted: no \
             root certificate that this machine knows vouches for it; if the server is your own, \
             name the file with its root certificate in SSL_CERT_FILE"
            .to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the server has expired; is the clock of this machine right?"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the server is not valid yet; is the clock of this machine right?"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate of the server is for another name than the address has".to_owned()
        }
        other => format!("the certificate of the server is not trusted: {other}"),
    }
}

fn trusting(environment: impl Fn(&str) -> Option<OsString>) -> Result<ClientConfig, String> {
    let (file, folders) = (environment("SSL_CERT_FILE"), environment("SSL_CERT_DIR"));
    let named = file.is_some() || folders.is_some();
    let found = match named {
        true => named_certificates(file, folders),
        false => load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 && named {
        let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(format!(
            "SSL_CERT_FILE or SSL_CERT_DIR is set, and no root certificate is found there: {}",
            reasons.join("; ")
        ));
    }
    if added == 0 {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok(config(roots))
}

fn named_certificates(file: Option<OsString>, folders: Option<OsString>) -> CertificateResult {
    let file = file.map(PathBuf::from);
    let mut found = load_certs_from_paths(file.as_deref(), None);
    for folder in folders.iter().flat_map(|folders| env::split_paths(folders)) {
        let more = load_certs_from_paths(None, Some(&folder));
        found.certs.extend(more.certs);
        found.errors.extend(more.errors);
    }
    found
}

fn config(roots: RootCertStore) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

#[cfg(test)]
mod tests;
