//! Signatures that `ssh-keygen -Y sign` makes with an Ed25519 key, in the form of PROTOCOL.sshsig
//! of OpenSSH.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use ring::{
    digest,
    signature::{ED25519, UnparsedPublicKey},
};

const MAGIC: &[u8] = b"SSHSIG";
const KIND: &[u8] = b"ssh-ed25519";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// The purpose of the signature: one over the same bytes for something else does not count.
const NAMESPACE: &[u8] = b"gyrus";

/// Checks that `armored` is a signature over `message` by the public key `key`, as OpenSSH writes it.
///
/// # Errors
/// Returns the reason why it is not, in words.
pub(super) fn verify(message: &[u8], armored: &str, key: &str) -> Result<(), String> {
    let key = public_key(key)?;
    let signature =
        read(armored).ok_or("the signature is not one of ssh-keygen, by an Ed25519 key")?;
    if signature.namespace != NAMESPACE {
        return Err("the signature is for something else than gyrus".to_owned());
    }
    if signature.key != key {
        return Err("it is signed by another key than the configured one".to_owned());
    }
    let algorithm = match signature.hash.as_slice() {
        b"sha512" => &digest::SHA512,
        b"sha256" => &digest::SHA256,
        _ => return Err("the signature uses an unknown digest".to_owned()),
    };
    let mut signed = MAGIC.to_vec();
    let digest = digest::digest(algorithm, message);
    for part in [NAMESPACE, &[], &signature.hash, digest.as_ref()] {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        signed.extend(length.to_be_bytes());
        signed.extend(part);
    }
    UnparsedPublicKey::new(&ED25519, &signature.key)
        .verify(&signed, &signature.bytes)
        .map_err(|_| "the signature does not fit the checksums".to_owned())
}

/// Reads a public key: `ssh-ed25519 AAAA… comment`.
fn public_key(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || "`key` in [update] is not a public key: ssh-ed25519 AAAA…".to_owned();
    let mut words = text.split_whitespace();
    let (kind, encoded) = words.next().zip(words.next()).ok_or_else(wrong)?;
    let blob = BASE64_STANDARD.decode(encoded).map_err(|_| wrong())?;
    if kind.as_bytes() != KIND {
        return Err(wrong());
    }
    key_of(&blob).ok_or_else(wrong)
}

/// A signature, as far as it is known before it is checked.
struct SshSignature {
    key: Vec<u8>,
    namespace: Vec<u8>,
    hash: Vec<u8>,
    bytes: Vec<u8>,
}

fn read(armored: &str) -> Option<SshSignature> {
    let (_, rest) = armored.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let body: String = body.split_whitespace().collect();
    let blob = BASE64_STANDARD.decode(body).ok()?;
    let mut rest = blob
        .strip_prefix(MAGIC)?
        .strip_prefix(&1_u32.to_be_bytes())?;
    let key = key_of(string(&mut rest)?)?;
    let namespace = string(&mut rest)?.to_vec();
    let _reserved = string(&mut rest)?;
    let hash = string(&mut rest)?.to_vec();
    let mut signature = string(&mut rest)?;
    let kind = string(&mut signature)?;
    let bytes = string(&mut signature)?.to_vec();
    let is_whole = rest.is_empty() && signature.is_empty() && kind == KIND;
    is_whole.then_some(SshSignature {
        key,
        namespace,
        hash,
        bytes,
    })
}

/// Returns the key of a blob that names its kind first.
fn key_of(mut blob: &[u8]) -> Option<Vec<u8>> {
    let kind = string(&mut blob)?;
    let key = string(&mut blob)?.to_vec();
    (kind == KIND && blob.is_empty() && key.len() == 32).then_some(key)
}

/// Takes the next string: its length in four bytes, then its bytes.
fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (taken, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    fn packed(parts: &[&[u8]]) -> Vec<u8> {
        let mut packed = Vec::new();
        for part in parts {
            packed.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
            packed.extend(*part);
        }
        packed
    }

    fn signed(message: &[u8], namespace: &[u8]) -> (String, String) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let key = packed(&[KIND, pair.public_key().as_ref()]);
        let digest = digest::digest(&digest::SHA512, message);
        let body = packed(&[namespace, b"", b"sha512", digest.as_ref()]);
        let over = [MAGIC, &body].concat();
        let signature = packed(&[KIND, pair.sign(&over).as_ref()]);
        let rest = packed(&[&key, namespace, b"", b"sha512", &signature]);
        let blob = [MAGIC, &1_u32.to_be_bytes(), &rest].concat();
        let armored = format!("{BEGIN}\n{}\n{END}\n", BASE64_STANDARD.encode(blob));
        let key = format!("ssh-ed25519 {} me", BASE64_STANDARD.encode(key));
        (armored, key)
    }

    #[test]
    fn only_a_signature_of_the_key_over_these_bytes_counts() {
        let (armored, key) = signed(b"sums", NAMESPACE);
        assert_eq!(verify(b"sums", &armored, &key), Ok(()));
        let refused =
            |message: &[u8], armored: &str, key: &str| verify(message, armored, key).unwrap_err();
        assert!(refused(b"other", &armored, &key).contains("does not fit"));
        let (elsewhere, _) = signed(b"sums", b"git");
        assert!(refused(b"sums", &elsewhere, &key).contains("something else"));
        let other = packed(&[KIND, &[1; 32]]);
        let other = format!("ssh-ed25519 {}", BASE64_STANDARD.encode(other));
        assert!(refused(b"sums", &armored, &other).contains("another key"));
        assert!(refused(b"sums", "nothing", &key).contains("not one of ssh-keygen"));
        assert!(refused(b"sums", &armored, "ssh-rsa AAAA").contains("not a public key"));
        // Whatever is cut off or changed is refused, and nothing panics.
        for at in 0..armored.len() - END.len() - 2 {
            let cut = format!("{}{}", &armored[..at], END);
            assert!(verify(b"sums", &cut, &key).is_err(), "{at}");
            let mut changed = armored.clone().into_bytes();
            changed[at] = if changed[at] == b'B' { b'C' } else { b'B' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(verify(b"sums", &changed, &key).is_err(), "{at}");
        }
    }
}
