//! The one builder of HTTP clients.

use std::time::Duration;

use reqwest::{Client, ClientBuilder, Url, redirect};

use crate::{
    address::is_loopback_host,
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
    let builder = Client::builder()
        .user_agent(concat!("gyrus/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_limit)
        .redirect(redirect::Policy::none())
        .referer(false)
        .http1_only()
        .tls_backend_preconfigured(tls);
    // A proxy of the environment must not see what is meant for this machine.
    Ok(match address.host_str() {
        Some(host) if is_loopback_host(host) => builder.no_proxy(),
        _ => builder,
    })
}
