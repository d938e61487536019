//! Pins: keys of which one must vouch for a server, beside a root that is trusted.
//!
//! A pin is the SHA-256 of a SubjectPublicKeyInfo, as RFC 7469 has it. It stands for the key of the
//! server itself, or for that of an authority between it and a root, or of the root. A server may
//! send certificates that have nothing to do with its own, so an authority counts only if the
//! server's certificate is valid with that authority as the only root.

use std::{fmt, str::FromStr, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::ring as provider,
    pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime},
};

use crate::roots;

/// The SHA-256 of a public key, which is written as `sha256/` and 44 characters of base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyPin([u8; 32]);

/// A text is no pin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a pin is `sha256/` and 44 characters of base64; `gyrus models pin` prints those of a provider"
)]
pub struct PinError;

/// Beginning of every pin.
const FORM: &str = "sha256/";

impl FromStr for KeyPin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let encoded = text.strip_prefix(FORM).ok_or(PinError)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| PinError)?;
        bytes.try_into().map(Self).map_err(|_| PinError)
    }
}

impl fmt::Display for KeyPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM}{}", BASE64_STANDARD.encode(self.0))
    }
}

impl KeyPin {
    fn of_anchor(anchor: &TrustAnchor<'_>) -> Self {
        // The anchor has the content of the sequence, without its head (X.690, 8.1.3).
        let content = anchor.subject_public_key_info.as_ref();
        let length = content.len().to_be_bytes();
        let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
        let mut whole = vec![0x30];
        if content.len() >= 0x80 {
            whole.push(0x80 | u8::try_from(length.len()).expect("a length has up to eight bytes"));
        }
        whole.extend(length);
        whole.extend(content);
        let digest = digest(&SHA256, &whole);
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Returns the pin of a certificate's key; `None` if it cannot be read.
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let mut store = RootCertStore::empty();
        store.add(certificate.clone().into_owned()).ok()?;
        store.roots.first().map(Self::of_anchor)
    }
}

/// Keys that vouched for a server: its own first, then those of the authorities that it sent.
#[derive(Debug, Clone, Default)]
pub struct SeenKeys(Arc<Mutex<Vec<KeyPin>>>);

impl SeenKeys {
    /// Returns the keys, once a connection was made.
    pub fn take(&self) -> Vec<KeyPin> {
        std::mem::take(&mut self.0.lock())
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Demand {
    /// One of these keys must vouch for the server.
    OneOf(Vec<KeyPin>),
    /// No demand; the server's keys are remembered.
    Remember(SeenKeys),
}

/// Returns a configuration that trusts these roots, and makes a demand on keys.
pub(crate) fn demanding(
    roots: Arc<RootCertStore>,
    demand: Demand,
) -> Result<ClientConfig, rustls::client::VerifierBuilderError> {
    let verifier = PinningVerifier {
        trusted: verifier(Arc::clone(&roots))?,
        roots: Arc::clone(&roots),
        demand,
    };
    let mut config = roots::config(roots);
    config
        .dangerous()
        .set_certificate_verifier(Arc::new(verifier));
    Ok(config)
}

fn verifier(
    roots: Arc<RootCertStore>,
) -> Result<Arc<WebPkiServerVerifier>, rustls::client::VerifierBuilderError> {
    let provider = Arc::new(provider::default_provider());
    WebPkiServerVerifier::builder_with_provider(roots, provider).build()
}

/// Checks certificates as ever, and then keys.
#[derive(Debug)]
struct PinningVerifier {
    trusted: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
    demand: Demand,
}

/// The certificate that a server showed, with all data for checking it.
#[derive(Clone, Copy)]
struct ServerCertificate<'a> {
    own: &'a CertificateDer<'a>,
    others: &'a [CertificateDer<'a>],
    name: &'a ServerName<'a>,
    now: UnixTime,
}

impl ServerCertificate<'_> {
    /// Whether the certificate is valid with these roots only.
    fn is_vouched_for_by(self, roots: RootCertStore) -> bool {
        let verifier = verifier(Arc::new(roots));
        verifier.is_ok_and(|verifier| {
            let checked =
                verifier.verify_server_cert(self.own, self.others, self.name, &[], self.now);
            checked.is_ok()
        })
    }

    fn authorities(self) -> impl Iterator<Item = RootCertStore> {
        self.others.iter().filter_map(|certificate| {
            let mut store = RootCertStore::empty();
            store.add(certificate.clone().into_owned()).ok()?;
            Some(store)
        })
    }
}

impl PinningVerifier {
    fn has_one_of(&self, pins: &[KeyPin], shown: ServerCertificate<'_>) -> bool {
        if KeyPin::of(shown.own).is_some_and(|pin| pins.contains(&pin)) {
            return true;
        }
        let is_pinned = |anchor: &&TrustAnchor<'_>| pins.contains(&KeyPin::of_anchor(anchor));
        let mut pinned = RootCertStore::empty();
        for authority in shown.authorities() {
            pinned
                .roots
                .extend(authority.roots.iter().filter(is_pinned).cloned());
        }
        pinned
            .roots
            .extend(self.roots.roots.iter().filter(is_pinned).cloned());
        !pinned.is_empty() && shown.is_vouched_for_by(pinned)
    }
}

impl ServerCertVerifier for PinningVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        revocation: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .trusted
            .verify_server_cert(own, others, name, revocation, now)?;
        let shown = ServerCertificate {
            own,
            others,
            name,
            now,
        };
        match &self.demand {
            Demand::OneOf(pins) if self.has_one_of(pins, shown) => {}
            Demand::OneOf(pins) => return Err(not_pinned(pins.len(), KeyPin::of(own))),
            Demand::Remember(seen) => {
                let authorities = shown.authorities();
                let vouching = authorities.filter(|one| shown.is_vouched_for_by(one.clone()));
                let keys = vouching
                    .flat_map(|store| store.roots)
                    .map(|one| KeyPin::of_anchor(&one));
                let keys = KeyPin::of(own).into_iter().chain(keys).collect();
                *seen.0.lock() = keys;
            }
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trusted.supported_verify_schemes()
    }
}

/// No pinned key vouches for a server.
#[derive(Debug, thiserror::Error)]
#[error(
    "none of the {count} pinned keys vouches for this server{own}; nothing was sent. If a proxy or a \
     scanner reads your connections, it is that; if the provider has new keys, see which by \
     `gyrus models pin`, and correct `pins`"
)]
struct NotPinned {
    count: usize,
    own: String,
}

fn not_pinned(count: usize, own: Option<KeyPin>) -> Error {
    let own = own.map_or_else(String::new, |pin| format!(", whose own key is {pin}"));
    let why = OtherError(Arc::new(NotPinned { count, own }));
    Error::InvalidCertificate(CertificateError::Other(why))
}

#[cfg(test)]
mod tests;
