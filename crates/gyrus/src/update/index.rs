//! The address of updates, and what lies there.

use std::time::Duration;

use gyrus_net::{causes, client_builder, is_loopback_host};
use ring::digest;
use url::Url;

use super::signature;
use crate::{config::UpdateSection, failure::Failure};

const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Time limit of one download.
const LIMIT: Duration = Duration::from_secs(600);

/// Maximum bytes of the checksums and of their signature.
const MAX_INDEX: usize = 1 << 20;
/// Maximum bytes of an archive.
const MAX_ARCHIVE: usize = 256 << 20;

const CHECKSUMS: &str = "SHA256SUMS";

/// Numbers of a version. Versions with other parts are not updates.
type Version = (u64, u64, u64);

/// The place of updates, and the key that signs them.
#[derive(Debug)]
pub(crate) struct Address {
    url: Url,
    key: String,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) version: String,
    /// Name of the file, and of the folder in it.
    name: String,
    sha256: String,
}

impl Address {
    /// Reads the section of the configuration.
    ///
    /// # Errors
    /// It says nothing, or nothing that can be used.
    pub(crate) fn of(section: &UpdateSection) -> Result<Self, Failure> {
        let (Some(url), Some(key)) = (&section.url, &section.key) else {
            return Err(Failure::usage("no place for updates is configured").hint(
                "name it and the key that signs them in config.toml: [update] with url and key",
            ));
        };
        let wrong =
            |why: &str| Failure::usage(format!("invalid address `{url}` of updates: {why}"));
        let slash = if url.ends_with('/') { "" } else { "/" };
        let parsed =
            Url::parse(&format!("{url}{slash}")).map_err(|error| wrong(&error.to_string()))?;
        let is_here = parsed.host_str().is_some_and(is_loopback_host);
        match parsed.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return Err(wrong("it must begin with https://")),
        }
        Ok(Self {
            url: parsed,
            key: key.clone(),
        })
    }

    /// Returns the newest package for this machine that the signed checksums name.
    ///
    /// # Errors
    /// They cannot be had, are not signed by the key, or name no package for this machine.
    pub(crate) async fn newest(&self) -> Result<Package, Failure> {
        let sums = self.get(CHECKSUMS, MAX_INDEX).await?;
        let signature = self.get(&format!("{CHECKSUMS}.sig"), MAX_INDEX).await?;
        let signature = String::from_utf8_lossy(&signature);
        signature::verify(&sums, &signature, &self.key).map_err(|why| {
            Failure::failed(format!("the updates at {} are refused: {why}", self.url))
        })?;
        let sums = String::from_utf8_lossy(&sums);
        let packages = sums.lines().filter_map(package);
        let newest = packages.max_by_key(|(version, _)| *version);
        newest.map(|(_, package)| package).ok_or_else(|| {
            let machine = format!("linux-{}", architecture());
            Failure::failed(format!("{} has no package for {machine}", self.url))
        })
    }

    /// Returns the bytes of a package, whose checksum is as it was signed.
    ///
    /// # Errors
    /// It cannot be had, or is another one.
    pub(crate) async fn archive(&self, package: &Package) -> Result<Vec<u8>, Failure> {
        let bytes = self.get(&package.name, MAX_ARCHIVE).await?;
        let digest = digest::digest(&digest::SHA256, &bytes);
        let hex: String = digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if hex == package.sha256 {
            return Ok(bytes);
        }
        Err(Failure::failed(format!(
            "{} is not the file that was signed: its checksum is another one",
            package.name
        )))
    }

    async fn get(&self, name: &str, limit: usize) -> Result<Vec<u8>, Failure> {
        let url = self
            .url
            .join(name)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let failed = |why: String| Failure::failed(format!("{url} cannot be had: {why}"));
        let client = client_builder(&url, CONNECT_LIMIT)
            .map_err(|error| failed(error.to_string()))?
            .timeout(LIMIT)
            .build()
            .map_err(|error| failed(causes(&error)))?;
        let response = client.get(url.clone()).send().await;
        let mut response = response.map_err(|error| failed(causes(&error.without_url())))?;
        if !response.status().is_success() {
            return Err(failed(format!("the server says {}", response.status())));
        }
        let mut bytes = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .map_err(|error| failed(causes(&error)))?
        {
            if bytes.len() + part.len() > limit {
                return Err(failed(format!("it is larger than {limit} bytes")));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }
}

impl Package {
    /// Whether it is newer than this program.
    pub(crate) fn is_newer(&self) -> bool {
        version(&self.version) > version(env!("CARGO_PKG_VERSION"))
    }

    /// Returns the folder that its archive consists of.
    pub(super) fn folder(&self) -> &str {
        self.name.trim_end_matches(ENDING)
    }
}

const ENDING: &str = ".tar.gz";

/// Returns the name of this machine's kind in the names of packages.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Reads a line of the checksums; nothing if it names no package for this machine.
fn package(line: &str) -> Option<(Version, Package)> {
    let (sha256, name) = line.split_once(char::is_whitespace)?;
    let name = name.trim_start().trim_start_matches('*');
    let end = format!("-linux-{}{ENDING}", architecture());
    let written = name.strip_prefix("gyrus-")?.strip_suffix(&end)?;
    let numbers = version(written)?;
    Some((
        numbers,
        Package {
            version: written.to_owned(),
            name: name.to_owned(),
            sha256: sha256.to_ascii_lowercase(),
        },
    ))
}

fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse().ok())?
    });
    let version = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_this_machine_are_found() {
        let line = |name: &str| package(&format!("AB01  {name}")).map(|(version, _)| version);
        let own = |version: &str| format!("gyrus-{version}-linux-{}.tar.gz", architecture());
        assert_eq!(line(&own("0.10.2")), Some((0, 10, 2)));
        assert!(line(&own("0.10.2")) > line(&own("0.9.9")));
        for other in [
            "1", "1.2", "1.2.3.4", "1.2.x", "1.-2.3", "+1.2.3", "../1.2.3", "",
        ] {
            assert_eq!(line(&own(other)), None, "{other}");
        }
        assert_eq!(line("gyrus-1.2.3-linux-mips.tar.gz"), None);
        assert_eq!(line("gyrus_1.2.3_amd64.deb"), None);
        assert_eq!(package(""), None);
    }

    #[test]
    fn updates_come_by_tls_or_from_this_machine() {
        let of = |url: &str| {
            let section = UpdateSection {
                url: Some(url.to_owned()),
                key: Some("k".to_owned()),
            };
            Address::of(&section)
                .map(|address| address.url.to_string())
                .map_err(|it| it.to_string())
        };
        assert_eq!(of("https://a.example/b").unwrap(), "https://a.example/b/");
        assert!(of("http://127.0.0.1:1/b").is_ok());
        for wrong in ["http://a.example", "file:///a", "a", ""] {
            assert!(
                of(wrong).unwrap_err().contains("invalid address"),
                "{wrong}"
            );
        }
        let nothing = Address::of(&UpdateSection::default())
            .unwrap_err()
            .to_string();
        assert!(nothing.contains("no place for updates"), "{nothing}");
    }
}
