//! The requests of a login: bounded, without redirects, and only to where the server may send us.

use std::{net::SocketAddr, time::Duration};

use gyrus_net::{AddressKind, AddressScope, client_builder, is_loopback_host};
use reqwest::Url;
use rmcp::transport::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use tokio::net::lookup_host;

/// Maximum time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Maximum time of a request.
const LIMIT: Duration = Duration::from_secs(30);

/// Maximum bytes of an answer.
const MAX_BYTES: usize = 256 * 1024;

pub(super) struct Web {
    server: Url,
}

impl Web {
    pub(super) fn new(server: Url) -> Self {
        Self { server }
    }

    /// Returns the addresses of a host, if all of them may be contacted: those on the internet, and
    /// those of the network that the server itself is in.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let addresses = resolve(url).await?;
        let scope = |address: &SocketAddr| AddressKind::of(address.ip()).scope();
        let is_public = |address: &&SocketAddr| scope(address) == AddressScope::Public;
        let inner: Vec<_> = addresses
            .iter()
            .filter(|address| !is_public(address))
            .collect();
        if inner.is_empty() {
            return Ok(addresses);
        }
        let own: Vec<_> = resolve(&self.server).await?.iter().map(scope).collect();
        let strange = inner.into_iter().find(|address| {
            let scope = scope(address);
            scope == AddressScope::Metadata || !own.contains(&scope)
        });
        match strange {
            None => Ok(addresses),
            Some(address) => Err(format!(
                "{} is not reached: its address {} is {}, and the server is not there itself",
                url.host_str().unwrap_or_default(),
                address.ip(),
                AddressKind::of(address.ip())
            )),
        }
    }

    async fn send(
        &self,
        asked: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let (parts, body) = asked.request.into_parts();
        let url = Url::parse(&parts.uri.to_string())?;
        if !is_private_on_the_way(&url) {
            return Err(format!("{url} is neither https nor on this machine").into());
        }
        let addresses = self.addresses(&url).await?;
        // This client follows no redirects.
        let client = client_builder(&url, CONNECT_LIMIT)?
            .resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
            .timeout(LIMIT)
            .build()?;
        let request = client.request(parts.method, url).headers(parts.headers);
        let mut answer = request.body(body).send().await?;
        let mut whole = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            whole.extend_from_slice(&chunk);
            if whole.len() > MAX_BYTES {
                return Err(format!("it answered more than {MAX_BYTES} bytes").into());
            }
        }
        let mut response = http::Response::new(whole);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}

/// Whether a connection to this address cannot be read on the way.
pub(super) fn is_private_on_the_way(address: &Url) -> bool {
    match address.scheme() {
        "https" => true,
        "http" => address.host_str().is_some_and(is_loopback_host),
        _ => false,
    }
}

async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(443);
    let found = lookup_host((bare, port)).await;
    let found: Vec<_> = found.map_err(|error| format!("{host}: {error}"))?.collect();
    if found.is_empty() {
        return Err(format!("{host} has no address"));
    }
    Ok(found)
}

impl OAuthHttpClient for Web {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}
