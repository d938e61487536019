//! A server whose certificate nobody vouches for.

use std::{net::SocketAddr, sync::Arc};

use gyrus_contract::{Delta, Message, Model, ModelError, Origin, Prompt, Purpose, Text};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{ChatModel, Connection, Facts, NoBlobs};

/// A server on loopback with a certificate that it made itself.
async fn server() -> SocketAddr {
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
            // The client does not trust the certificate and hangs up in the handshake.
            let _ = acceptor.accept(stream).await;
        }
    });
    address
}

#[tokio::test]
async fn an_unknown_root_is_refused_in_words() {
    let port = server().await.port();
    let model = ChatModel::new(Connection {
        base_url: format!("https://localhost:{port}"),
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
