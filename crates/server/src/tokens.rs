//! Tokens of people and programs, of which only a hash is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gyrus_contract::Principal;
use gyrus_journal::Store;
use gyrus_runtime::ledger::{Fold, Ledger, LedgerError};
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gyrus_kernel::now_ms;

const ID: &str = "main";

/// Number of random bytes in a secret.
const SECRET_BYTES: usize = 32;

/// Time for which a one-time code can be exchanged, in milliseconds.
const CODE_LASTS_MS: i64 = 10 * 60 * 1000;

/// Time in milliseconds after which a browser has to log in again.
const COOKIE_LASTS_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Maximum number of tokens, of browsers with a cookie, and of unused codes.
const MAX_TOKENS: usize = 1_000;

/// A right of the holder of a token. Everybody may read who may do more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// See runs, agents and events.
    Read,
    /// Start, steer, pause and stop runs, and whatever else does not need approval.
    Act,
    /// Answer questions of runs, in a person's name.
    Approve,
}

impl TokenScope {
    /// Returns all scopes.
    pub fn all() -> BTreeSet<Self> {
        [TokenScope::Read, TokenScope::Act, TokenScope::Approve].into()
    }
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRecord {
    /// The name by which it can be revoked; what is done with it is done in this name.
    pub name: String,
    /// The scopes.
    pub scopes: BTreeSet<TokenScope>,
    /// The time at which it was made, in UTC milliseconds.
    pub made_ms: i64,
    /// The time at which it ends, in UTC milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// Whether it is the cookie of a browser.
    #[serde(default)]
    pub is_browser: bool,
}

/// A fact about tokens.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum TokenFact {
    #[serde(rename = "token.made")]
    Made {
        /// The hash of the token's secret.
        hash: String,
        token: TokenRecord,
    },
    /// The token with this hash no longer counts.
    #[serde(rename = "token.revoked")]
    Revoked {
        /// The hash of the cookie's secret.
        hash: String,
    },
}

/// All tokens, by the hash of their secret.
#[derive(Debug, Default)]
pub struct TokenList(BTreeMap<String, TokenRecord>);

impl TokenList {
    fn holder(&self, secret: &str, is_cookie: bool) -> Option<Requester> {
        // Whoever compares the time that this takes learns about hashes, not about secrets.
        let token = self.0.get(&hash(secret))?;
        let holds = token.until_ms.is_none_or(|until| until > now_ms());
        (holds && token.is_browser == is_cookie).then(|| Requester {
            principal: Principal {
                surface: if is_cookie { "dashboard" } else { "token" }.to_owned(),
                id: token.name.clone(),
            },
            scopes: token.scopes.clone(),
        })
    }
}

impl Fold for TokenList {
    const LOG_KIND: &'static str = "tokens";
    type Fact = TokenFact;

    fn apply(&mut self, fact: TokenFact) {
        match fact {
            TokenFact::Made { hash, token } => {
                self.0.insert(hash, token);
            }
            TokenFact::Revoked { hash } => {
                self.0.remove(&hash);
            }
        }
    }

    fn facts(&self) -> Vec<TokenFact> {
        let made = |(hash, token): (&String, &TokenRecord)| TokenFact::Made {
            hash: hash.clone(),
            token: token.clone(),
        };
        self.0.iter().map(made).collect()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The log of tokens cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The log cannot be written.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    #[error("the system gives no random numbers")]
    Random(#[source] getrandom::Error),
    #[error("there are {MAX_TOKENS} tokens already; revoke some")]
    TooMany,
    #[error("there is a token `{name}` already; revoke it first, or take another name")]
    Exists { name: String },
    /// The name is not usable.
    #[error("invalid name `{name}`: 1 to 64 letters, digits, `-`, `_` and `.`")]
    BadName { name: String },
    /// The given secret is too short to be one.
    #[error("invalid token: at least 20 characters without spaces")]
    Weak,
}

/// The person or program behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// The name under which the requester acts.
    pub principal: Principal,
    scopes: BTreeSet<TokenScope>,
}

impl Requester {
    /// Returns the identity of the owner of the state folder.
    pub fn owner(principal: Principal) -> Self {
        Self {
            principal,
            scopes: TokenScope::all(),
        }
    }

    /// Returns an identity with these scopes.
    pub fn new(principal: Principal, scopes: BTreeSet<TokenScope>) -> Self {
        Self { principal, scopes }
    }

    /// Whether the requester has this scope.
    pub fn may(&self, scope: TokenScope) -> bool {
        scope == TokenScope::Read || self.scopes.contains(&scope)
    }
}

/// The tokens of a server, and the codes that let browsers in.
#[derive(Debug)]
pub struct AccessTokens {
    ledger: Mutex<Ledger<TokenList>>,
    /// One-time codes, by their hash, with the scopes that they give and their expiry.
    codes: Mutex<HashMap<String, (BTreeSet<TokenScope>, i64)>>,
}

impl AccessTokens {
    /// Opens the tokens of a store; no other process may have them open.
    ///
    /// # Errors
    /// Another process has them, or they cannot be read.
    pub fn open(store: &Store) -> Result<Self, TokenError> {
        Ok(Self {
            ledger: Mutex::new(Ledger::open(store, ID)?),
            codes: Mutex::default(),
        })
    }

    pub fn list(store: &Store) -> Result<Vec<TokenRecord>, TokenError> {
        let list: TokenList = Ledger::read(store, ID)?;
        Ok(list.0.into_values().collect())
    }

    /// Creates a token, and returns its secret, which is not stored.
    ///
    /// # Errors
    /// There is one of this name, or it cannot be written.
    pub async fn make(
        &self,
        name: &str,
        scopes: BTreeSet<TokenScope>,
    ) -> Result<String, TokenError> {
        let secret = random()?;
        self.insert(name, scopes, &secret).await?;
        Ok(secret)
    }

    /// Creates a token with a secret that a person chose, and replaces an earlier one of this name.
    ///
    /// # Errors
    /// The secret is too short, or it cannot be written.
    pub async fn set(
        &self,
        name: &str,
        scopes: BTreeSet<TokenScope>,
        secret: &str,
    ) -> Result<(), TokenError> {
        if secret.len() < 20 || secret.contains(char::is_whitespace) {
            return Err(TokenError::Weak);
        }
        self.revoke(name).await?;
        self.insert(name, scopes, secret).await
    }

    async fn insert(
        &self,
        name: &str,
        scopes: BTreeSet<TokenScope>,
        secret: &str,
    ) -> Result<(), TokenError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            return Err(TokenError::BadName {
                name: name.chars().take(64).collect(),
            });
        }
        let token = TokenRecord {
            name: name.to_owned(),
            scopes,
            made_ms: now_ms(),
            until_ms: None,
            is_browser: false,
        };
        let writer = {
            let mut ledger = self.ledger();
            let list = &ledger.state().0;
            if list.len() >= MAX_TOKENS {
                return Err(TokenError::TooMany);
            }
            if list
                .values()
                .any(|token| token.name == name && !token.is_browser)
            {
                return Err(TokenError::Exists {
                    name: name.to_owned(),
                });
            }
            let hash = hash(secret);
            ledger.append(vec![TokenFact::Made { hash, token }])?;
            ledger.writer()
        };
        writer.barrier().await?;
        Ok(())
    }

    /// Revokes the tokens of a name, and returns how many there were.
    pub async fn revoke(&self, name: &str) -> Result<usize, TokenError> {
        let (count, writer) = {
            let mut ledger = self.ledger();
            let named = ledger
                .state()
                .0
                .iter()
                .filter(|(_, token)| token.name == name);
            let revoked: Vec<TokenFact> = named
                .map(|(hash, _)| TokenFact::Revoked { hash: hash.clone() })
                .collect();
            let count = revoked.len();
            ledger.append(revoked)?;
            (count, ledger.writer())
        };
        writer.barrier().await?;
        Ok(count)
    }

    /// Returns a code that admits one browser, once, within ten minutes.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn code(&self, scopes: BTreeSet<TokenScope>) -> Result<String, TokenError> {
        let code = random()?;
        let now = now_ms();
        let mut codes = self.codes.lock();
        codes.retain(|_, (_, until)| *until > now);
        if codes.len() >= MAX_TOKENS {
            return Err(TokenError::TooMany);
        }
        codes.insert(hash(&code), (scopes, now + CODE_LASTS_MS));
        Ok(code)
    }

    /// Exchanges a code for the secret of a cookie; `None` if the code does not count.
    pub async fn exchange(&self, code: &str) -> Result<Option<String>, TokenError> {
        let now = now_ms();
        let taken = {
            let mut codes = self.codes.lock();
            codes.remove(&hash(code))
        };
        let Some((scopes, _)) = taken.filter(|(_, until)| *until > now) else {
            return Ok(None);
        };
        let secret = random()?;
        let token = TokenRecord {
            name: "browser".to_owned(),
            scopes,
            made_ms: now,
            until_ms: Some(now + COOKIE_LASTS_MS),
            is_browser: true,
        };
        let writer = {
            let mut ledger = self.ledger();
            let mut facts: Vec<TokenFact> = surplus(&ledger.state().0, now);
            let hash = hash(&secret);
            facts.push(TokenFact::Made { hash, token });
            ledger.append(facts)?;
            ledger.writer()
        };
        writer.barrier().await?;
        Ok(Some(secret))
    }

    /// Returns the identity that belongs to a secret.
    pub fn identify(&self, secret: &str, is_cookie: bool) -> Option<Requester> {
        self.ledger().state().holder(secret, is_cookie)
    }

    /// Returns the identity that belongs to the secret of a token in a store, whatever process has
    /// the tokens open.
    pub fn holder(store: &Store, secret: &str) -> Result<Option<Requester>, TokenError> {
        let list: TokenList = Ledger::read(store, ID)?;
        Ok(list.holder(secret, false))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger<TokenList>> {
        // A panic elsewhere leaves the ledger whole.
        let mut ledger = self.ledger.lock();
        // A disk that still refuses says so to whoever writes.
        let _ = ledger.go_on();
        ledger
    }
}

/// Returns facts that revoke expired cookies, and the oldest of too many.
fn surplus(list: &BTreeMap<String, TokenRecord>, now: i64) -> Vec<TokenFact> {
    let mut cookies: Vec<_> = list.iter().filter(|(_, token)| token.is_browser).collect();
    cookies.sort_by_key(|(_, token)| std::cmp::Reverse(token.made_ms));
    let revoked = cookies.iter().enumerate().filter(|(number, (_, token))| {
        *number + 1 >= MAX_TOKENS || token.until_ms.is_some_and(|until| until <= now)
    });
    revoked
        .map(|(_, (hash, _))| TokenFact::Revoked {
            hash: (*hash).clone(),
        })
        .collect()
}

/// Returns a new secret in hexadecimal digits.
fn random() -> Result<String, TokenError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the hash of a secret, which is random, so that it needs no salt and may be fast.
fn hash(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}
