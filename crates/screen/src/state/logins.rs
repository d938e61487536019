//! Logins that a site asks the browser itself for (HTTP authentication).
//!
//! The request waits, and its tab shows a dialog of the kind [`KIND`]: a person answers it at the
//! screen, or a run does with a secret. What was answered is given again where the same site asks,
//! and kept beside a named profile, in a file that only gyrus reads.

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::held::InterceptedRequest;

/// Kind of the dialog; pages cannot open one of it.
pub(crate) const KIND: &str = "login";

const MAX_LOGINS: usize = 100;

/// A user name and a password for a part of a site.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SiteLogin {
    origin: String,
    realm: String,
    pub(super) user: String,
    pub(super) password: String,
    /// Whether the login was given in this session: a site that asks again has refused it.
    #[serde(skip)]
    pub(super) is_given: bool,
}

impl fmt::Debug for SiteLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login for {}", self.origin)
    }
}

#[derive(Debug, Clone)]
pub(super) struct LoginRequest {
    pub(super) request: InterceptedRequest,
    pub(super) tab: u32,
    pub(super) origin: String,
    pub(super) realm: String,
}

/// The logins of a browser, and the requests that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    known: Vec<SiteLogin>,
    pub(super) wanted: Vec<LoginRequest>,
    /// File of the stored logins; `None` if they are in memory only.
    file: Option<PathBuf>,
    /// Whether the browser has a window and asks the person at it itself.
    pub(super) has_window: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum LoginAnswer {
    /// Leaves the request to the browser.
    Default,
    /// Gives no login: the site shows what it shows without one.
    Cancel,
    /// A user name and a password.
    Give { user: String, password: String },
}

impl fmt::Debug for LoginAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoginAnswer::Default => "Default",
            LoginAnswer::Cancel => "Cancel",
            LoginAnswer::Give { .. } => "Give",
        })
    }
}

impl LoginAnswer {
    /// Returns the parameters of `Fetch.continueWithAuth`.
    pub(crate) fn order(&self, request: &str) -> Value {
        let response = match self {
            LoginAnswer::Default => json!({"response": "Default"}),
            LoginAnswer::Cancel => json!({"response": "CancelAuth"}),
            LoginAnswer::Give { user, password } => json!({
                "response": "ProvideCredentials", "username": user, "password": password,
            }),
        };
        json!({"requestId": request, "authChallengeResponse": response})
    }
}

impl Logins {
    /// Reads the logins stored in a file, which may not exist yet.
    pub(crate) fn new(file: Option<PathBuf>, has_window: bool) -> Self {
        let known = file.as_ref().and_then(|file| fs::read(file).ok());
        let known = known.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            known: known.unwrap_or_default(),
            wanted: Vec::new(),
            file,
            has_window,
        }
    }

    /// Returns a login that was not tried yet.
    pub(super) fn next(&mut self, origin: &str, realm: &str) -> Option<&mut SiteLogin> {
        let mut known = self.known.iter_mut();
        known.find(|one| one.origin == origin && one.realm == realm && !one.is_given)
    }

    pub(super) fn forget(&mut self, origin: &str, realm: &str) {
        self.known
            .retain(|one| one.origin != origin || one.realm != realm);
    }

    /// Stores a login that was given to a site.
    pub(super) fn learn(
        &mut self,
        wanted: &LoginRequest,
        user: &str,
        password: &str,
    ) -> io::Result<()> {
        self.forget(&wanted.origin, &wanted.realm);
        self.known.push(SiteLogin {
            origin: wanted.origin.clone(),
            realm: wanted.realm.clone(),
            user: user.to_owned(),
            password: password.to_owned(),
            is_given: true,
        });
        if self.known.len() > MAX_LOGINS {
            self.known.remove(0);
        }
        self.save()
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let bytes = serde_json::to_vec(&self.known).map_err(io::Error::other)?;
        write_privately(file, &bytes)
    }
}

fn write_privately(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_extension("logins-new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&new)?.write_all(bytes)?;
    fs::rename(new, file)
}
