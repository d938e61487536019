//! The signature of a webhook, as <https://www.standardwebhooks.com> describes it: HMAC-SHA256 with
//! a shared secret over id, time and body.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{hmac, rand::SecureRandom as _};

/// Time by which the sender's clock may differ, in seconds.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// Minimum and maximum size of a secret in bytes.
const MIN_SECRET: usize = 16;
const MAX_SECRET: usize = 512;

/// Maximum size of a delivery's id in bytes.
const MAX_ID: usize = 256;

/// Maximum number of signatures of one request, such as two while a secret is replaced.
const MAX_SIGNATURES: usize = 8;

/// The secret shared by a sender and a trigger.
#[derive(Clone)]
pub struct HookSecret {
    key: hmac::Key,
    /// A hash that distinguishes secrets.
    hash: blake3::Hash,
}

impl PartialEq for HookSecret {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl std::fmt::Debug for HookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookSecret")
    }
}

/// The reason why a text is not a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HookSecretError {
    /// The text is too short for a secret, or too long.
    #[error("invalid secret: it must have {MIN_SECRET} to {MAX_SECRET} bytes")]
    Size,
    #[error("invalid secret: what stands behind `whsec_` is not base64")]
    Base64,
    #[error("the system gives no random numbers")]
    Random,
}

impl HookSecret {
    /// Parses a secret: `whsec_` and base64, or any other text, whose bytes are the key.
    ///
    /// # Errors
    /// The secret is not base64, too short or too long.
    pub fn new(text: &str) -> Result<Self, HookSecretError> {
        let bytes = match text.strip_prefix("whsec_") {
            Some(rest) => STANDARD.decode(rest).map_err(|_| HookSecretError::Base64)?,
            None => text.as_bytes().to_vec(),
        };
        if !(MIN_SECRET..=MAX_SECRET).contains(&bytes.len()) {
            return Err(HookSecretError::Size);
        }
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            hash: blake3::hash(&bytes),
        })
    }

    /// Returns the text of a new secret.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn random() -> Result<String, HookSecretError> {
        let mut bytes = [0; 32];
        let random = ring::rand::SystemRandom::new();
        random
            .fill(&mut bytes)
            .map_err(|_| HookSecretError::Random)?;
        Ok(format!("whsec_{}", STANDARD.encode(bytes)))
    }

    fn message(id: &str, timestamp: &str, body: &[u8]) -> Vec<u8> {
        [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat()
    }

    /// Returns the value of `webhook-signature` for a delivery.
    pub fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let tag = hmac::sign(&self.key, &Self::message(id, timestamp, body));
        format!("v1,{}", STANDARD.encode(tag.as_ref()))
    }
}

/// The head of a delivery: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
#[derive(Debug, Clone, Copy)]
pub struct HookHead<'h> {
    /// The id of the delivery, which a repeated one has as well.
    pub id: &'h str,
    /// The time of the attempt, in seconds since 1970.
    pub timestamp: &'h str,
    /// Signatures, separated by spaces.
    pub signature: &'h str,
}

/// The reason why a delivery is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HookRefusal {
    /// None of the signatures is valid.
    #[error("the signature is missing or wrong")]
    Signature,
    /// The signature is valid, but too old or too new.
    #[error("the time of the delivery is not within 5 minutes of this server's clock")]
    Time,
}

/// Checks a delivery, in constant time for all signatures of a length.
pub(super) fn check(
    secret: &HookSecret,
    head: HookHead<'_>,
    body: &[u8],
    now_ms: i64,
) -> Result<(), HookRefusal> {
    let is_id = (1..=MAX_ID).contains(&head.id.len())
        && head
            .id
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'.');
    let seconds = head.timestamp.parse::<i64>().ok();
    let seconds = seconds.filter(|_| head.timestamp.bytes().all(|byte| byte.is_ascii_digit()));
    let (true, Some(seconds)) = (is_id, seconds) else {
        return Err(HookRefusal::Signature);
    };
    let message = HookSecret::message(head.id, head.timestamp, body);
    let given = head.signature.split(' ').take(MAX_SIGNATURES);
    let is_signed = given
        .filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok())
        .any(|tag| hmac::verify(&secret.key, &message, &tag).is_ok());
    if !is_signed {
        return Err(HookRefusal::Signature);
    }
    if now_ms.div_euclid(1000).abs_diff(seconds) > TOLERANCE_SECONDS.unsigned_abs() {
        return Err(HookRefusal::Time);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: &str = "1614265330";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = HookSecret::new(SECRET).unwrap();
        assert_eq!(secret.sign(ID, AT, BODY), SIGNATURE);
        let now = 1_614_265_330_000;
        let head = HookHead {
            id: ID,
            timestamp: AT,
            signature: SIGNATURE,
        };
        assert_eq!(check(&secret, head, BODY, now), Ok(()));
        let several = format!("v1,AAAA v2,{} {SIGNATURE}", &SIGNATURE[3..]);
        let signature = several.as_str();
        assert_eq!(
            check(&secret, HookHead { signature, ..head }, BODY, now),
            Ok(())
        );

        for forged in [
            HookHead {
                id: "msg_other",
                ..head
            },
            HookHead { id: "", ..head },
            HookHead {
                timestamp: "1614265331",
                ..head
            },
            HookHead {
                timestamp: "+1614265330",
                ..head
            },
            HookHead {
                signature: "",
                ..head
            },
            HookHead {
                signature: "v1,",
                ..head
            },
            HookHead {
                signature: &SIGNATURE[3..],
                ..head
            },
        ] {
            assert_eq!(
                check(&secret, forged, BODY, now),
                Err(HookRefusal::Signature),
                "{forged:?}"
            );
        }
        assert_eq!(
            check(&secret, head, b"{}", now),
            Err(HookRefusal::Signature)
        );
        let other = HookSecret::new("another secret of length").unwrap();
        assert_eq!(check(&other, head, BODY, now), Err(HookRefusal::Signature));
        for (seconds, expected) in [
            (300, Ok(())),
            (301, Err(HookRefusal::Time)),
            (-300, Ok(())),
            (-301, Err(HookRefusal::Time)),
        ] {
            assert_eq!(
                check(&secret, head, BODY, now + seconds * 1000),
                expected,
                "{seconds}"
            );
        }
    }

    #[test]
    fn weak_secrets_are_refused() {
        assert_eq!(HookSecret::new("short").unwrap_err(), HookSecretError::Size);
        assert_eq!(
            HookSecret::new("whsec_AAAA").unwrap_err(),
            HookSecretError::Size
        );
        assert_eq!(
            HookSecret::new("whsec_!").unwrap_err(),
            HookSecretError::Base64
        );
    }
}
