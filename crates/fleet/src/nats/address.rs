//! The address of a fleet: everything that a worker needs to know, in one text.
//!
//! `nats://[user:password@]host[:port][,host…][?name=…&monitor=…&creds=…&nkey=…&ca=…&cert=…&key=…&replicas=…]`;
//! `tls://` demands TLS, and so does naming a certificate.

use std::{fmt, path::PathBuf};

use crate::LogSubject;

/// The default port of a server.
const PORT: u16 = 4222;

#[derive(Clone, PartialEq, Eq)]
pub struct FleetAddress {
    /// The servers, each as `nats://host:port`.
    pub servers: Vec<String>,
    /// The credentials of this machine: the same for all servers.
    pub login: Option<FleetLogin>,
    /// Whether connections must be encrypted.
    pub demands_tls: bool,
    /// The name of the fleet: several can share the servers.
    pub name: String,
    /// The addresses of the servers' monitoring pages, or their port.
    pub monitors: Vec<String>,
    /// A file with credentials, as the servers' tools write it.
    pub credentials: Option<PathBuf>,
    /// A file with the seed of a key.
    pub seed: Option<PathBuf>,
    /// A file with the certificate of an authority to trust.
    pub authority: Option<PathBuf>,
    /// The files of the certificate by which this machine is known, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Number of servers that store each message; `None` means as many as are good for the cluster.
    pub replicas: Option<u8>,
}

/// The credentials of a machine.
#[derive(Clone, PartialEq, Eq)]
pub enum FleetLogin {
    /// A name and a password.
    Password { user: String, password: String },
    /// A token that all machines know.
    Token(String),
}

/// A text is not the address of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not the address of a fleet: {why}")]
pub struct BadFleetAddress {
    /// The invalid text, without its password.
    pub given: String,
    pub why: String,
}

impl FleetAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// The text is not one.
    pub fn parse(text: &str) -> Result<Self, BadFleetAddress> {
        Self::read(text).map_err(|why| BadFleetAddress {
            given: without_password(text),
            why,
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("it begins with nats:// or tls://")?;
        let demands_tls = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err("it begins with nats:// or tls://".to_owned()),
        };
        let (servers, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (servers, login) = read_servers(servers.trim_end_matches('/'))?;
        let mut address = Self {
            servers,
            login,
            demands_tls,
            name: "main".to_owned(),
            monitors: Vec::new(),
            credentials: None,
            seed: None,
            authority: None,
            certificate: None,
            replicas: None,
        };
        let (mut certificate, mut key) = (None, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option
                .split_once('=')
                .filter(|(_, value)| !value.is_empty())
                .ok_or_else(|| format!("`{option}` has no value"))?;
            match name {
                "name" => address.name = fleet_name(value)?,
                "monitor" => address.monitors.push(value.to_owned()),
                "creds" => address.credentials = Some(value.into()),
                "nkey" => address.seed = Some(value.into()),
                "ca" => address.authority = Some(value.into()),
                "cert" => certificate = Some(value.into()),
                "key" => key = Some(value.into()),
                "replicas" => {
                    let number = value.parse().ok().filter(|number| (1..=5).contains(number));
                    address.replicas = Some(number.ok_or("`replicas` is from 1 to 5")?);
                }
                _ => {
                    return Err(format!(
                        "`{name}` is unknown; known are name, monitor, creds, nkey, ca, cert, key \
                         and replicas"
                    ));
                }
            }
        }
        address.certificate = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("`cert` and `key` go together".to_owned()),
        };
        // Otherwise somebody between here and the servers could say that they have no TLS.
        address.demands_tls |= address.authority.is_some() || address.certificate.is_some();
        Ok(address)
    }

    /// Returns the monitoring pages, as addresses.
    pub fn monitor_addresses(&self) -> Vec<String> {
        let mut addresses = Vec::new();
        for monitor in &self.monitors {
            if monitor.contains("://") {
                addresses.push(monitor.trim_end_matches('/').to_owned());
                continue;
            }
            for server in &self.servers {
                let host = server.rsplit('/').next().unwrap_or_default();
                let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
                addresses.push(format!("http://{host}:{monitor}"));
            }
        }
        addresses
    }
}

/// Formats the address without passwords.
impl fmt::Debug for FleetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for FleetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.servers.join(","), self.name)
    }
}

fn read_servers(text: &str) -> Result<(Vec<String>, Option<FleetLogin>), String> {
    let mut login = None;
    let mut servers = Vec::new();
    for text in text.split(',') {
        let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
        if !user.is_empty() {
            let given = read_login(user);
            let before = login.replace(given.clone());
            if before.is_some_and(|before| before != given) {
                return Err("it names several logins; all servers get the same".to_owned());
            }
        }
        servers.push(server(host)?);
    }
    Ok((servers, login))
}

fn read_login(text: &str) -> FleetLogin {
    match text.split_once(':') {
        Some((user, password)) => FleetLogin::Password {
            user: user.to_owned(),
            password: password.to_owned(),
        },
        None => FleetLogin::Token(text.to_owned()),
    }
}

fn server(host: &str) -> Result<String, String> {
    if host.is_empty() {
        return Err("it names no server".to_owned());
    }
    let has_port = match host.rsplit_once(':') {
        // The colons of an address of version 6 stand in brackets.
        Some((before, port)) if !port.contains(']') => {
            if before.is_empty() || port.parse::<u16>().is_err() {
                return Err(format!("`{host}` is not a host and a port"));
            }
            true
        }
        _ => false,
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:%".contains(&byte);
    if !host.bytes().all(is_host) {
        return Err(format!("`{host}` is not a host"));
    }
    let port = if has_port {
        String::new()
    } else {
        format!(":{PORT}")
    };
    Ok(format!("nats://{host}{port}"))
}

fn fleet_name(value: &str) -> Result<String, String> {
    match LogSubject::new(value) {
        Some(_) if !value.contains('.') && value.len() <= 32 => Ok(value.to_owned()),
        _ => Err(format!(
            "the name `{value}` is not of the letters a-z, digits and dashes, at most 32"
        )),
    }
}

fn without_password(text: &str) -> String {
    let (address, options) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let hosts: Vec<&str> = rest
        .split(',')
        .map(|server| server.rsplit('@').next().unwrap_or_default())
        .collect();
    let options = if options.is_empty() {
        String::new()
    } else {
        format!("?{options}")
    };
    format!("{scheme}{}{options}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_passwords_never_shown() {
        let text = "tls://me:secret@a.example,[::1]:9,b:4223?name=blue&monitor=8222&replicas=3";
        let address = FleetAddress::parse(text).unwrap();
        assert_eq!(
            address.servers,
            ["nats://a.example:4222", "nats://[::1]:9", "nats://b:4223"]
        );
        assert!(address.demands_tls && address.name == "blue");
        let word = FleetAddress::parse("nats://secret@a,secret@b").unwrap();
        assert!(word.login == Some(FleetLogin::Token("secret".to_owned())));
        assert_eq!(
            address.monitor_addresses(),
            [
                "http://a.example:8222",
                "http://[::1]:8222",
                "http://b:8222"
            ]
        );
        assert!(!format!("{address} {address:?}").contains("secret"));
        for wrong in [
            "",
            "127.0.0.1:4222",
            "http://me:secret@host",
            "nats://",
            "nats://me:secret@",
            "nats://host:port",
            "nats://ho st",
            "nats://a?name=Blue",
            "nats://a?name=a.b",
            "nats://a?replicas=0",
            "nats://a?replicas=9",
            "nats://a?cert=x",
            "nats://a?colour=x",
            "nats://a?creds=",
            "nats://me:secret@a,you:secret@b",
        ] {
            let error = FleetAddress::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
