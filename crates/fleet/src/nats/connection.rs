//! A connection to the servers of a fleet, and requests over it.

use std::{fs, io, iter, path::Path, sync::Arc, time::Duration};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Request, rustls};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;

use super::{FleetAddress, FleetLogin};
use crate::LogUnreachable;

/// Time limit for a server to accept a connection. The kernel also accepts connections for a server
/// that is stopped, so this is the time until the next server is tried.
const CONNECT: Duration = Duration::from_secs(3);

/// Time without data after which a connection is checked. The library leaves a server that did not
/// answer two of these looks at the time of the third: after 3 s, so that with the default lease a
/// run's driver finds another server before its lease is over.
const PING: Duration = Duration::from_secs(1);

/// The fleet cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum FleetConnectError {
    #[error("no server of the fleet answers at {address}: {why}; is one running there?")]
    Unreachable { address: String, why: String },
    #[error("the servers at {address} do not accept who this is: {why}")]
    Refused { address: String, why: String },
    /// No encrypted connection comes about.
    #[error("the servers at {address} and this machine do not agree on TLS: {why}")]
    Encryption { address: String, why: String },
    #[error("{path} cannot be read")]
    File { path: String, source: io::Error },
}

/// A connection to the servers of a fleet. Clones are the same connection.
#[derive(Clone)]
pub struct FleetConnection {
    pub(super) client: Client,
    address: Arc<FleetAddress>,
    /// The last error that a server reported.
    complaint: watch::Sender<Option<String>>,
}

impl FleetConnection {
    /// Connects to a server of the fleet. The connection is made again by itself when it breaks.
    ///
    /// # Errors
    /// No server can be reached, or none accepts this machine.
    pub async fn open(address: &FleetAddress) -> Result<Self, FleetConnectError> {
        let complaint = watch::Sender::default();
        let options = options(address, &complaint)?;
        let client = options
            .connect(&address.servers)
            .await
            .map_err(|error| explain(address, &error))?;
        Ok(Self {
            client,
            address: Arc::new(address.clone()),
            complaint,
        })
    }

    pub fn address(&self) -> &FleetAddress {
        &self.address
    }

    /// Returns the last error that a server reported, such as a missing permission.
    pub fn complaint(&self) -> Option<String> {
        self.complaint.borrow().clone()
    }

    /// Sends a request to the servers' own interface, and returns the unchecked answer, even an
    /// error.
    pub(super) async fn ask(
        &self,
        subject: String,
        body: &Value,
        within: Duration,
    ) -> Result<Value, LogUnreachable> {
        let request = Request::new()
            .payload(body.to_string().into())
            .timeout(Some(within));
        self.request(subject, request).await
    }

    pub(super) async fn publish(
        &self,
        subject: String,
        headers: HeaderMap,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Value, LogUnreachable> {
        let request = Request::new()
            .headers(headers)
            .payload(body.into())
            .timeout(Some(within));
        self.request(subject, request).await
    }

    async fn request<T: DeserializeOwned>(
        &self,
        subject: String,
        request: Request,
    ) -> Result<T, LogUnreachable> {
        let unreachable = |why: String| LogUnreachable { why };
        let answer = self.unless_forbidden(&subject, async {
            let answer = self.client.send_request(subject.clone(), request).await;
            answer.map_err(|error| unreachable(error.to_string()))
        });
        serde_json::from_slice(&answer.await?.payload)
            .map_err(|error| unreachable(format!("the answer cannot be read: {error}")))
    }

    /// Waits for the answer to a message published to `subject`; `None` if the servers report that
    /// this machine lacks the permission.
    pub(super) async fn unless_forbidden<T>(
        &self,
        subject: &str,
        answer: impl Future<Output = Result<T, LogUnreachable>>,
    ) -> Result<T, LogUnreachable> {
        let forbids = format!("Permissions Violation for Publish to \"{subject}\"");
        let mut complaints = self.complaint.subscribe();
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return answer,
                Ok(()) = complaints.changed() => {
                    let said = complaints.borrow_and_update().clone().unwrap_or_default();
                    if said.contains(&forbids) {
                        return Err(LogUnreachable { why: said });
                    }
                }
            }
        }
    }
}

/// Returns the beginning of the subjects to which the servers answer: one of the fleet's own, since
/// whoever may hear `_INBOX.>` hears the answers to everybody.
pub(super) fn inbox_prefix(fleet: &str) -> String {
    format!("_INBOX_gyrus_{fleet}")
}

fn options(
    address: &FleetAddress,
    complaint: &watch::Sender<Option<String>>,
) -> Result<ConnectOptions, FleetConnectError> {
    let heard = complaint.clone();
    let mut options = ConnectOptions::new()
        .name("gyrus")
        .ping_interval(PING)
        .connection_timeout(CONNECT)
        .require_tls(address.demands_tls)
        .custom_inbox_prefix(inbox_prefix(&address.name))
        .event_callback(move |event| {
            let heard = heard.clone();
            async move {
                let said = match event {
                    Event::ServerError(error) => Some(error.to_string()),
                    Event::ClientError(error) => Some(error.to_string()),
                    Event::Connected => None,
                    _ => return,
                };
                heard.send_replace(said);
            }
        });
    options = match address.login.clone() {
        Some(FleetLogin::Password { user, password }) => options.user_and_password(user, password),
        Some(FleetLogin::Token(token)) => options.token(token),
        None => options,
    };
    if let Some(path) = &address.credentials {
        let text = read(path)?;
        options = options
            .credentials(&text)
            .map_err(|source| file_error(path, source))?;
    }
    if let Some(path) = &address.seed {
        options = options.nkey(read(path)?.trim().to_owned());
    }
    if let Some(path) = &address.authority {
        // The library reads it later, and would say less.
        read(path)?;
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &address.certificate {
        read(certificate)?;
        read(key)?;
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

fn read(path: &Path) -> Result<String, FleetConnectError> {
    fs::read_to_string(path).map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> FleetConnectError {
    FleetConnectError::File {
        path: path.display().to_string(),
        source,
    }
}

fn explain(address: &FleetAddress, error: &async_nats::ConnectError) -> FleetConnectError {
    let (address, why) = (address.to_string(), reason(error));
    let is_tls = error.kind() == ConnectErrorKind::Tls;
    match (error.kind(), tls_error(error)) {
        (ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation, _) => {
            FleetConnectError::Refused { address, why }
        }
        (_, Some(why)) => FleetConnectError::Encryption { address, why },
        (_, None) if is_tls => FleetConnectError::Encryption { address, why },
        (_, None) => FleetConnectError::Unreachable { address, why },
    }
}

fn tls_error(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut causes = iter::successors(Some(error), |error| error.source());
    let found = causes.find_map(|cause| {
        let inside = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let inside = inside.and_then(|inside| inside.downcast_ref::<rustls::Error>());
        cause.downcast_ref::<rustls::Error>().or(inside)
    });
    Some(match found? {
        rustls::Error::InvalidMessage(_) => "what answers there does not speak TLS".to_owned(),
        error => error.to_string(),
    })
}

/// Returns an error with its causes as text.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
