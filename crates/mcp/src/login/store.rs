//! The file of a server's tokens. It names the server's address: for another one there are none.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
};

use async_trait::async_trait;
use rmcp::transport::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
struct StoredLogins {
    url: String,
    credentials: StoredCredentials,
}

#[derive(Clone)]
pub(super) struct LoginFile {
    file: PathBuf,
    url: String,
}

impl LoginFile {
    pub(super) fn new(file: PathBuf, url: String) -> Self {
        Self { file, url }
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let stored: StoredLogins = serde_json::from_slice(&bytes)?;
        Ok((stored.url == self.url).then_some(stored.credentials))
    }

    /// Returns the stored tokens, or none if they cannot be read.
    pub(super) fn tokens(&self) -> Vec<String> {
        let stored = self.read().ok().flatten();
        let response = stored.map(|stored| serde_json::to_value(stored.token_response));
        let Some(Ok(response)) = response else {
            return Vec::new();
        };
        let token = |name: &str| Some(response.get(name)?.as_str()?.to_owned());
        let tokens = ["access_token", "refresh_token"]
            .into_iter()
            .filter_map(token);
        tokens.filter(|token| !token.is_empty()).collect()
    }

    /// Writes beside the file and then in its place, so that tokens are never half there.
    fn write(&self, credentials: StoredCredentials) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let new = self
            .file
            .with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new);
        let stored = serde_json::to_value(StoredLogins {
            url: self.url.clone(),
            credentials,
        });
        let mut file = private().create_new(true).open(&new)?;
        write!(file, "{}", stored.unwrap_or(Value::Null))?;
        file.sync_all()?;
        fs::rename(&new, &self.file)
    }

    fn lock(&self) -> io::Result<File> {
        let lock = private()
            .create(true)
            .open(self.file.with_extension("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn failed(error: &io::Error) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for LoginFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read().map_err(|error| failed(&error))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials).map_err(|error| failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&error)),
            _ => Ok(()),
        }
    }

    /// A refresh token counts once: two processes must not use the same one.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let file = self.clone();
        let locked = tokio::task::spawn_blocking(move || file.lock()).await;
        let locked = locked.map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        let lock = locked.map_err(|error| failed(&error))?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}
