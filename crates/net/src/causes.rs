//! Errors with their causes as one sentence, and the words for a certificate that is not trusted.

use std::{error::Error, io};

use rustls::{CertificateError, OtherError};

/// Returns the error and its causes as one sentence, since the words of a client alone say little.
/// A cause whose words the sentence already contains is not repeated. If a certificate is why a
/// connection failed, the sentence says that instead, and what can be done. Of a connection that the
/// system could not make, it says where to and what the system said.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let chain = || std::iter::successors(Some(error), |&error| error.source());
    if let Some(wrong) = chain().find_map(invalid_certificate) {
        return in_words(wrong);
    }
    let mut sentence = error.to_string();
    let place = sentence.strip_prefix("error sending request for url (");
    let place = place.and_then(|place| place.strip_suffix(')'));
    let system = chain().filter_map(|error| error.downcast_ref::<io::Error>());
    let system = system.filter(|error| error.raw_os_error().is_some()).last();
    if let (Some(place), Some(system)) = (place, system) {
        return format!("{place}: {system}");
    }
    for cause in chain().skip(1) {
        let words = cause.to_string();
        if !sentence.contains(&words) {
            sentence = format!("{sentence}: {words}");
        }
    }
    sentence
}

/// Returns the fault of a certificate, if this error is or was made from one. An I/O error hides
/// what it was made from: its source is the source of that.
fn invalid_certificate<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a CertificateError> {
    if let Some(wrapped) = error.downcast_ref::<io::Error>() {
        return invalid_certificate(wrapped.get_ref()?);
    }
    match error.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(wrong) => Some(wrong),
        _ => None,
    }
}

fn in_words(wrong: &CertificateError) -> String {
    match wrong {
        CertificateError::UnknownIssuer => "the certificate of the server is not trusted: no \
             root certificate that this machine knows vouches for it; if the server is your own, \
             name the file with its root certificate in SSL_CERT_FILE"
            .to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the server has expired; is the clock of this machine right?"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the server is not valid yet; is the clock of this machine right?"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate of the server is for another name than the address has".to_owned()
        }
        // A demand of our own, in its own words.
        CertificateError::Other(OtherError(own)) => own.to_string(),
        other => format!("the certificate of the server is not trusted: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{words}")]
    struct Failed {
        words: &'static str,
        source: Option<Box<dyn Error + Send + Sync>>,
    }

    fn failed(words: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Failed {
        let source = Some(source.into());
        Failed { words, source }
    }

    #[test]
    fn every_cause_is_said_once() {
        let alone = Failed {
            words: "no answer",
            source: None,
        };
        assert_eq!(causes(&alone), "no answer");
        let refused = io::Error::other("connection refused");
        let said_twice = failed("it failed: connection refused", refused);
        assert_eq!(
            causes(&failed("no answer", said_twice)),
            "no answer: it failed: connection refused"
        );
    }

    #[test]
    fn a_connection_that_was_refused_is_said_once() {
        let refused = io::Error::from_raw_os_error(111);
        let connect = failed(
            "client error (Connect)",
            failed("tcp connect error", refused),
        );
        let sent = failed(
            "error sending request for url (http://127.0.0.1:1/v1)",
            connect,
        );
        assert_eq!(
            causes(&sent),
            "http://127.0.0.1:1/v1: Connection refused (os error 111)"
        );
    }

    #[test]
    fn a_certificate_is_found_behind_other_errors() {
        let wrong = rustls::Error::InvalidCertificate(CertificateError::Expired);
        let hidden = failed("no answer", io::Error::other(io::Error::other(wrong)));
        assert!(causes(&hidden).contains("has expired"), "{hidden:?}");
    }
}
