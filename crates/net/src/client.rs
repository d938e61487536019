//! The one builder of HTTP clients, also of those that look at a server's keys.

use std::{path::Path, time::Duration};

use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::{ClientConfig, client::VerifierBuilderError};

use crate::{
    address::is_loopback_host,
    pins::{self, Demand, KeyPin, SeenKeys},
    roots::{self, RootsError},
};

/// Returns a builder of a client for the host of `address`. What is set: HTTP/1.1, our user agent,
/// the trusted roots if the address needs TLS, no proxy of the environment for this machine, no
/// `Referer`, and no redirects, so that what is sent to one address goes to no other. A connection
/// must be made within `connect_limit`.
///
/// # Errors
/// [`RootsError`] if the address needs TLS and the environment names roots that are not there.
pub fn client_builder(address: &Url, connect_limit: Duration) -> Result<ClientBuilder, RootsError> {
    let tls = match address.scheme() {
        "https" => roots::trusting_environment()?,
        // Redirects are not followed, so this client never speaks TLS.
        _ => roots::trusting_nobody(),
    };
    Ok(builder(address, connect_limit, tls))
}

/// Returns a builder as [`client_builder`] does, of a client that trusts only the certificates of
/// this file, which `named_by` names.
///
/// # Errors
/// [`RootsError`] if the file has none.
pub fn trusting_client_builder(
    address: &Url,
    connect_limit: Duration,
    named_by: &'static str,
    file: &Path,
) -> Result<ClientBuilder, RootsError> {
    let tls = roots::config(roots::of_file(named_by, file)?);
    Ok(builder(address, connect_limit, tls))
}

/// Reason why a client that checks keys cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinnedError {
    /// The roots cannot be read.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// Certificates cannot be checked with these roots.
    #[error("certificates cannot be checked: {0}")]
    Verifier(#[from] VerifierBuilderError),
    #[error("a server without TLS has no keys to pin: `{0}` does not begin with https")]
    NoTls(Url),
}

/// Returns a builder as [`client_builder`] does, of a client that speaks only to a server for which
/// one of these pins vouches: anything else ends the connection before a request is sent.
///
/// # Errors
/// [`PinnedError`].
pub fn pinned_client_builder(
    address: &Url,
    connect_limit: Duration,
    pins: &[KeyPin],
) -> Result<ClientBuilder, PinnedError> {
    demanding(address, connect_limit, Demand::OneOf(pins.to_vec()))
}

/// Returns a builder as [`client_builder`] does, of a client that remembers the keys that vouch for
/// the server in `seen`.
///
/// # Errors
/// [`PinnedError`].
pub fn remembering_client_builder(
    address: &Url,
    connect_limit: Duration,
    seen: &SeenKeys,
) -> Result<ClientBuilder, PinnedError> {
    demanding(address, connect_limit, Demand::Remember(seen.clone()))
}

fn demanding(
    address: &Url,
    connect_limit: Duration,
    demand: Demand,
) -> Result<ClientBuilder, PinnedError> {
    if address.scheme() != "https" {
        return Err(PinnedError::NoTls(address.clone()));
    }
    let tls = pins::demanding(roots::of_environment()?, demand)?;
    Ok(builder(address, connect_limit, tls))
}

fn builder(address: &Url, connect_limit: Duration, tls: ClientConfig) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(concat!("gyrus/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_limit)
        .redirect(redirect::Policy::none())
        .referer(false)
        .http1_only()
        .tls_backend_preconfigured(tls);
    // A proxy of the environment must not see what is meant for this machine.
    match address.host_str() {
        Some(host) if is_loopback_host(host) => builder.no_proxy(),
        _ => builder,
    }
}
