use std::{net::SocketAddr, path::Path};

use gyrus_contract::{Delta, Message, Model, Origin, Prompt, Purpose, Text};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use reqwest::Client;
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{ChatModel, Connection, Facts, NoBlobs};

/// A server on loopback with a certificate that it made itself, which it returns as PEM.
async fn server() -> (SocketAddr, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust the certificate hangs up in the handshake.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let answer =
                    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (address, cert.pem())
}

fn url(address: SocketAddr, host: &str) -> Url {
    Url::parse(&format!("https://{host}:{}/", address.port())).unwrap()
}

/// What the server says to a client that trusts what `file` holds.
async fn asked(url: Url, file: &Path) -> Result<String, String> {
    let path = file.as_os_str().to_owned();
    let config = trusting(|name| (name == "SSL_CERT_FILE").then(|| path.clone()))?;
    let builder = Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(config);
    let response = builder.build().unwrap().get(url).send().await;
    match response {
        Ok(response) => Ok(response.text().await.unwrap()),
        Err(error) => Err(explain(&error).unwrap_or_else(|| format!("{error:?}"))),
    }
}

#[tokio::test]
async fn an_unknown_root_is_refused_in_words() {
    let (address, _) = server().await;
    let model = ChatModel::new(Connection {
        base_url: url(address, "localhost").to_string(),
        key: Some("a-key-that-must-not-leave".into()),
        provider: "p".into(),
        model: "m".into(),
        facts: Facts::default(),
        blobs: Arc::new(NoBlobs),
    })
    .unwrap();
    let prompt = Prompt {
        purpose: Purpose::Agent,
        ordinal: 0,
        system: Vec::new(),
        messages: vec![Arc::new(Message::user(Text::new("hi", Origin::Person)))],
        tools: Vec::new(),
        output_schema: None,
        screen: None,
        max_output_tokens: 10,
    };
    let error = model.reply(&prompt, &mut |_: Delta| {}).await.unwrap_err();
    assert!(matches!(error, ModelError::Network { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"the model could not be reached: the certificate of the server is not trusted: no root certificate that this machine knows vouches for it; if the server is your own, name the file with its root certificate in SSL_CERT_FILE");
}

#[tokio::test]
async fn a_root_that_is_named_is_trusted_for_its_host_alone() {
    let (address, certificate) = server().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("root.pem");
    std::fs::write(&file, certificate).unwrap();

    let answer = asked(url(address, "localhost"), &file).await;
    assert_eq!(answer.as_deref(), Ok("hello"));
    let wrong_name = asked(url(address, "127.0.0.1"), &file).await.unwrap_err();
    insta::assert_snapshot!(wrong_name, @"the certificate of the server is for another name than the address has");

    // What is named counts alone: nothing of it, and nobody is trusted.
    std::fs::write(&file, "no certificate").unwrap();
    let error = asked(url(address, "localhost"), &file).await.unwrap_err();
    assert!(
        error.starts_with("SSL_CERT_FILE or SSL_CERT_DIR is set, and no root"),
        "{error}"
    );
}

#[test]
fn folders_of_roots_are_read_and_the_system_has_some() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, .. } = generate_simple_self_signed(["a".to_owned()]).unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("a.pem"), cert.pem()).unwrap();
    let folders = env::join_paths([folder.path(), &inner]).unwrap();
    assert!(trusting(|name| (name == "SSL_CERT_DIR").then(|| folders.clone())).is_ok());
    assert!(trusting(|_| None).is_ok());
}
