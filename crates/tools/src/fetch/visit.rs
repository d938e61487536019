//! Gets the content of an address: each host looked up and checked, connected to at exactly the
//! addresses that were checked, redirects followed by the same rules as long as they stay on that
//! host.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::Site;
use gyrus_net::{AddressKind, causes, client_builder};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, LOCATION},
};
use tokio::net::{TcpListener, TcpSocket};

/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Maximum bytes of an address.
const MAX_URL_BYTES: usize = 4_000;

/// Maximum bytes taken of an answer, as sent.
pub(crate) const MAX_BODY_BYTES: usize = 5 * 1024 * 1024;

/// Time for which a door to a process stays open.
const DOOR_WITHIN: Duration = Duration::from_secs(60);

/// Time limit of one connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct FetchAnswer {
    /// Final address, after redirects.
    pub(crate) url: Url,
    /// Addresses that redirected, in order.
    pub(crate) redirected_from: Vec<Url>,
    /// Target of a redirect to another host, which was not followed.
    pub(crate) leads_to: Option<Url>,
    pub(crate) status: StatusCode,
    /// Content type as sent; empty if missing.
    pub(crate) content_type: String,
    /// Content encoding as sent, in lower case; empty if missing.
    pub(crate) encoding: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body was larger than [`MAX_BODY_BYTES`].
    pub(crate) is_cut: bool,
}

/// Reason why nothing was received; the message is for a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VisitError {
    #[error("invalid address `{url}`: {reason}")]
    Address { url: String, reason: String },
    #[error(
        "`{host}` is not reached, as its address {address} is {kind}; only public hosts are \
         fetched, use the shell if the person wants this one"
    )]
    Forbidden {
        host: String,
        address: IpAddr,
        kind: AddressKind,
    },
    #[error("the name `{host}` cannot be looked up: {reason}")]
    Unknown { host: String, reason: String },
    #[error("`{url}` cannot be fetched: {reason}")]
    Network { url: String, reason: String },
    #[error("`{url}` is redirected more than {MAX_REDIRECTS} times")]
    Redirects { url: String },
}

/// Parses an address and checks that it may be visited, as far as its text shows.
pub(crate) fn parse(given: &str) -> Result<Url, VisitError> {
    let wrong = |reason: &str| VisitError::Address {
        url: gyrus_text::shorten(given, 200).into_owned(),
        reason: reason.to_owned(),
    };
    if given.len() > MAX_URL_BYTES {
        return Err(wrong("it is too long"));
    }
    if given.contains("⟦secret:") {
        return Err(wrong("a secret must not stand in it; use the shell"));
    }
    let url = Url::parse(given.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not hold a user name or password"));
    }
    Ok(url)
}

/// Gets the content of `url`. The hosts in `allowed` may have any address.
pub(crate) async fn visit(
    mut url: Url,
    allowed: &BTreeSet<String>,
    site: &dyn Site,
) -> Result<FetchAnswer, VisitError> {
    let mut redirected_from = Vec::new();
    loop {
        let response = get(&url, allowed, site).await?;
        let next = redirect(&url, &response)?;
        let Some(next) = next.filter(|next| same_site(&url, next)) else {
            let leads_to = redirect(&url, &response)?;
            let page = take(url, redirected_from, response).await?;
            return Ok(FetchAnswer { leads_to, ..page });
        };
        if redirected_from.len() == MAX_REDIRECTS {
            let url = redirected_from.swap_remove(0).into();
            return Err(VisitError::Redirects { url });
        }
        redirected_from.push(std::mem::replace(&mut url, next));
    }
}

/// Whether a redirect stays on the site that the call was allowed for. A trusted site may redirect
/// the data in an address to any other host.
fn same_site(one: &Url, other: &Url) -> bool {
    let bare = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).to_owned()
    };
    bare(one) == bare(other)
}

fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, VisitError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = url.join(&location).map_err(|error| VisitError::Address {
        url: gyrus_text::shorten(&location, 200).into_owned(),
        reason: format!("{error}; {url} redirects to it"),
    })?;
    parse(next.as_str()).map(Some)
}

/// Sends a request that `fill` completes, and returns the answer. Redirects are not followed: data
/// approved for one address is not sent to another.
pub(crate) async fn send(
    url: &Url,
    method: Method,
    allowed: &BTreeSet<String>,
    fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
) -> Result<FetchAnswer, VisitError> {
    let request = client(url, allowed).await?.request(method, url.clone());
    let request = fill(request.header(ACCEPT, "application/json"));
    let response = request.send().await.map_err(|error| failed(url, error))?;
    take(url.clone(), Vec::new(), response).await
}

async fn get(
    url: &Url,
    allowed: &BTreeSet<String>,
    site: &dyn Site,
) -> Result<Response, VisitError> {
    let wanted = "text/html, text/plain, application/json, */*;q=0.5";
    let request = match door(url, site).await {
        Some(door) => {
            let own = BTreeSet::from([Ipv4Addr::LOCALHOST.to_string()]);
            let host = url.host_str().unwrap_or_default();
            let port = url.port().map(|port| format!(":{port}"));
            let authority = format!("{host}{}", port.unwrap_or_default());
            let request = client(&door, &own).await?.get(door);
            request.header(HOST, authority)
        }
        None => client(url, allowed).await?.get(url.clone()),
    };
    let request = request
        .header(ACCEPT, wanted)
        .header(ACCEPT_ENCODING, "gzip");
    request.send().await.map_err(|error| failed(url, error))
}

/// Opens a door for one connection to what a process of the run serves at an address, in a network of its
/// own. Returns the address of the door.
async fn door(url: &Url, site: &dyn Site) -> Option<Url> {
    let port = url
        .port_or_known_default()
        .filter(|_| url.scheme() == "http")?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let addresses: Vec<IpAddr> = match host {
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        host => vec![host.parse().ok()?],
    };
    let (at, socket) = addresses.into_iter().find_map(|address| {
        let at = SocketAddr::new(address, port);
        site.served(at).map(|socket| (at, socket))
    })?;
    let socket = TcpSocket::from_std_stream(std::net::TcpStream::from(socket));
    let mut server = socket.connect(at).await.ok()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.ok()?;
    let mut door = url.clone();
    let here = listener.local_addr().ok()?;
    door.set_ip_host(here.ip()).ok()?;
    door.set_port(Some(here.port())).ok()?;
    tokio::spawn(tokio::time::timeout(DOOR_WITHIN, async move {
        if let Ok((mut client, _)) = listener.accept().await {
            // An end is seen at the other side.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    }));
    Some(door)
}

fn failed(url: &Url, error: reqwest::Error) -> VisitError {
    VisitError::Network {
        url: url.to_string(),
        reason: causes(&error.without_url()),
    }
}

/// Returns a client that connects only to the checked addresses of the host of `url`.
async fn client(url: &Url, allowed: &BTreeSet<String>) -> Result<Client, VisitError> {
    let checked = CheckedAddresses(look_up(url, allowed).await?);
    let builder = client_builder(url, CONNECT_WITHIN).map_err(|error| VisitError::Network {
        url: url.to_string(),
        reason: error.to_string(),
    })?;
    let builder = builder
        // A proxy would connect elsewhere than was checked.
        .no_proxy()
        .dns_resolver(Arc::new(checked));
    builder.build().map_err(|error| failed(url, error))
}

/// Returns all addresses of the host, after checking each.
async fn look_up(url: &Url, allowed: &BTreeSet<String>) -> Result<Vec<SocketAddr>, VisitError> {
    let given = url.host_str().unwrap_or_default();
    let host = given.trim_start_matches('[').trim_end_matches(']');
    let unknown = |reason: String| VisitError::Unknown {
        host: host.to_owned(),
        reason,
    };
    let port = url.port_or_known_default().unwrap_or(80);
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        Err(_) => tokio::net::lookup_host((host, port))
            .await
            .map_err(|error| unknown(error.to_string()))?
            .collect(),
    };
    if addresses.is_empty() {
        return Err(unknown("it has no address".to_owned()));
    }
    if allowed.contains(host) {
        return Ok(addresses);
    }
    for address in &addresses {
        let kind = AddressKind::of(address.ip());
        if !kind.is_public() {
            return Err(VisitError::Forbidden {
                host: host.to_owned(),
                address: address.ip(),
                kind,
            });
        }
    }
    Ok(addresses)
}

/// Resolves every name to the checked addresses: a second lookup of the same name could have
/// another result.
struct CheckedAddresses(Vec<SocketAddr>);

impl Resolve for CheckedAddresses {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(async { Ok(addresses) })
    }
}

async fn take(
    url: Url,
    redirected_from: Vec<Url>,
    mut response: Response,
) -> Result<FetchAnswer, VisitError> {
    let header = |name: HeaderName| {
        let value = response.headers().get(name);
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
    };
    let content_type = header(CONTENT_TYPE).unwrap_or_default();
    let encoding = header(CONTENT_ENCODING).unwrap_or_default();
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| VisitError::Network {
            url: url.to_string(),
            reason: format!(
                "after {} bytes: {}",
                body.len(),
                causes(&error.without_url())
            ),
        })?
    {
        let room = MAX_BODY_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(FetchAnswer {
        url,
        redirected_from,
        leads_to: None,
        status: response.status(),
        content_type,
        encoding: encoding.to_ascii_lowercase(),
        body,
        is_cut,
    })
}
