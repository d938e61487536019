use std::{net::SocketAddr, path::PathBuf, time::Duration};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use reqwest::{Client, Url};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{causes, client_builder, trusting_client_builder};

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

/// Asks the server at `host` as a client that trusts the certificates that the variables name.
async fn asked(
    host: &str,
    address: SocketAddr,
    environment: &[(&str, OsString)],
) -> Result<String, String> {
    let config = trusting_these(environment).map_err(|error| error.to_string())?;
    let builder = Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(config);
    let url = Url::parse(&format!("https://{host}:{}/", address.port())).unwrap();
    match builder.build().unwrap().get(url).send().await {
        Ok(response) => Ok(response.text().await.unwrap()),
        Err(error) => Err(causes(&error)),
    }
}

fn trusting_these(environment: &[(&str, OsString)]) -> Result<ClientConfig, RootsError> {
    let found = roots(|wanted| {
        let mut all = environment.iter();
        all.find_map(|(name, value)| (*name == wanted).then(|| value.clone()))
    });
    found.map(config)
}

/// A folder with a file, which has this content.
fn folder_with(content: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("root.pem");
    std::fs::write(&file, content).unwrap();
    (folder, file)
}

#[tokio::test]
async fn a_root_that_is_named_is_trusted_for_its_host_alone() {
    let (address, certificate) = server().await;
    let (folder, file) = folder_with(&certificate);
    let by_file = [(FILE, file.into_os_string())];
    let answer = asked("localhost", address, &by_file).await;
    assert_eq!(answer.as_deref(), Ok("hello"));
    let empty = tempfile::tempdir().unwrap();
    let folders = env::join_paths([empty.path(), folder.path()]).unwrap();
    let by_folder = [(FILE, OsString::new()), (FOLDERS, folders)];
    let answer = asked("localhost", address, &by_folder).await;
    assert_eq!(answer.as_deref(), Ok("hello"));

    let wrong_name = asked("127.0.0.1", address, &by_file).await.unwrap_err();
    insta::assert_snapshot!(wrong_name, @"the certificate of the server is for another name than the address has");
    let url = Url::parse(&format!("https://localhost:{}/", address.port())).unwrap();
    let client = client_builder(&url, Duration::from_secs(30)).unwrap();
    let unknown = causes(&client.build().unwrap().get(url).send().await.unwrap_err());
    insta::assert_snapshot!(unknown, @"the certificate of the server is not trusted: no root certificate that this machine knows vouches for it; if the server is your own, name the file with its root certificate in SSL_CERT_FILE");
}

#[test]
fn a_variable_that_names_no_certificate_is_an_error() {
    let error_of =
        |environment: &[(&str, OsString)]| trusting_these(environment).unwrap_err().to_string();
    let (folder, file) = folder_with("no certificate");
    let shown = |error: String| error.replace(folder.path().to_str().unwrap(), "FOLDER");
    let file = (FILE, file.into_os_string());
    insta::assert_snapshot!(shown(error_of(std::slice::from_ref(&file))), @"no root certificate is found in `FOLDER/root.pem`, which SSL_CERT_FILE names; name a file of certificates in PEM form, or unset SSL_CERT_FILE to trust the roots of the system");
    let missing = (FILE, folder.path().join("none.pem").into_os_string());
    insta::assert_snapshot!(shown(error_of(&[missing])), @"no root certificate is found in `FOLDER/none.pem`, which SSL_CERT_FILE names: failed to read PEM from file: No such file or directory (os error 2) at 'FOLDER/none.pem'; name a file of certificates in PEM form, or unset SSL_CERT_FILE to trust the roots of the system");
    let (good, _) = {
        let CertifiedKey { cert, .. } = generate_simple_self_signed(["a".to_owned()]).unwrap();
        folder_with(&cert.pem())
    };
    // One that holds certificates makes up for no other.
    let folders = (FOLDERS, good.path().as_os_str().to_owned());
    assert!(trusting_these(std::slice::from_ref(&folders)).is_ok());
    assert!(shown(error_of(&[file, folders])).contains("which SSL_CERT_FILE names"));
    let folders = (FOLDERS, folder.path().as_os_str().to_owned());
    insta::assert_snapshot!(shown(error_of(&[folders])), @"no root certificate is found in `FOLDER`, which SSL_CERT_DIR names; name folders with certificates in PEM form, or unset SSL_CERT_DIR to trust the roots of the system");
}

#[test]
fn the_system_or_the_bundled_list_has_roots() {
    assert!(trusting_these(&[]).is_ok());
    assert!(trusting_these(&[(FILE, OsString::new())]).is_ok());
}

#[tokio::test]
async fn a_file_that_is_named_is_trusted_and_nothing_else() {
    let (address, pem) = server().await;
    let (_folder, ours) = folder_with(&pem);
    let (_other_folder, theirs) = folder_with(&server().await.1);
    let (_empty_folder, empty) = folder_with("no certificate");
    let url = Url::parse(&format!("https://localhost:{}/", address.port())).unwrap();
    let client = |file: &Path| {
        trusting_client_builder(&url, Duration::from_secs(5), "`ca`", file)
            .map(|builder| builder.build().unwrap())
    };
    let answer = client(&ours).unwrap().get(url.clone()).send().await;
    assert_eq!(answer.unwrap().text().await.unwrap(), "hello");
    let refused = client(&theirs).unwrap().get(url.clone()).send().await;
    let refused = causes(&refused.unwrap_err());
    assert!(refused.contains("certificate"), "{refused}");
    let none = client(&empty).unwrap_err().to_string();
    assert!(none.contains("which `ca` names"), "{none}");
}
