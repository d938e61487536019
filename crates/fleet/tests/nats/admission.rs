//! Ways in at real servers: keys, credentials files, and only the rights that are printed for a worker.

use std::{fs, path::Path, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::{FutureExt as _, StreamExt as _};
use gyrus_fleet::{
    AppendAnswer, LogSubject, Machine as _, MessageId, OsMachine, SharedLog as _, WriterId,
    nats::{
        FleetAddress, FleetConnectError, FleetConnection, FleetPermissions, LocalServer, NatsLog,
        ServerOptions, WorkerReport, answer_roll_calls, call_the_roll, prepare_streams,
    },
};
use nkeys::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::servers::program;

/// Time for what a server does at once.
const SOON: Duration = Duration::from_secs(20);

/// Starts a server that lets clients in as its configuration says; `None` if its program is not
/// installed.
fn server(folder: &TempDir, configuration: String) -> Option<LocalServer> {
    let options = ServerOptions {
        program: program()?,
        folder: folder.path().join("server"),
        name: "alone".to_owned(),
        port: None,
        token: None,
        more: configuration,
        syncs_always: true,
    };
    Some(LocalServer::start(&options).unwrap())
}

async fn open(server: &LocalServer, more: &str) -> Result<FleetConnection, FleetConnectError> {
    let address = format!("nats://127.0.0.1:{}?{more}", server.port);
    FleetConnection::open(&FleetAddress::parse(&address).unwrap()).await
}

/// Does everything that a worker asks of the servers.
async fn works(connection: &FleetConnection) {
    prepare_streams(connection).await.unwrap();
    let log = NatsLog::new(connection.clone());
    for kind in ["runs", "blobs", "queue", "inbox"] {
        let subject = LogSubject::new(&format!("{kind}.tried")).unwrap();
        let mut news = log.news(&subject);
        let until = OsMachine.now() + SOON;
        // The subscription is made before the message is sent, on the same connection.
        tokio::task::yield_now().await;
        let id = MessageId {
            subject: subject.clone(),
            writer: WriterId(1),
            index: 1,
        };
        let body: Arc<[u8]> = Arc::from(b"message".as_slice());
        let stored = log.append_if(&id, 0, &body, until).await;
        assert!(matches!(stored, AppendAnswer::Stored { .. }), "{stored:?}");
        let read = log.read_from(&subject, 0, until).await.unwrap();
        assert_eq!(read.len(), 1, "{kind}");
        assert!(log.last_ms(&subject, SOON).await.unwrap().is_some());
        tokio::time::timeout(SOON, news.changed())
            .await
            .unwrap()
            .unwrap();
    }
    let report = WorkerReport {
        name: "worker".to_owned(),
        machine: "here".to_owned(),
        labels: [].into(),
        at_once: 1,
        lease_ms: 1,
        build: String::new(),
        since_ms: 0,
        lacks: [].into(),
    };
    let answering = {
        let connection = connection.clone();
        tokio::spawn(async move { answer_roll_calls(&connection, report, |_| [].into()).await })
    };
    let until = OsMachine.now() + SOON;
    loop {
        let within = Duration::from_millis(100);
        let found = call_the_roll(connection, [].into(), within).await.unwrap();
        if found.len() == 1 {
            break;
        }
        assert!(OsMachine.now() < until, "nobody answers");
    }
    answering.abort();
    assert_eq!(connection.complaint(), None);
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_worker_with_a_key_and_the_printed_rights_can_work_and_remove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (key, person, stranger) = (
        KeyPair::new_user(),
        KeyPair::new_user(),
        KeyPair::new_user(),
    );
    let admission = format!(
        "authorization {{ users: [ {{ nkey: {}, {} }}, {{ nkey: {} }} ] }}",
        key.public_key(),
        FleetPermissions::of("main").configuration(),
        person.public_key()
    );
    let Some(server) = server(&folder, admission) else {
        return;
    };
    let seed = written(folder.path(), "seed", &key.seed().unwrap());
    let connection = open(&server, &format!("nkey={seed}")).await.unwrap();
    works(&connection).await;

    // The same rights in the hands of somebody who wants to harm the fleet.
    let attacker = async_nats::ConnectOptions::with_nkey(key.seed().unwrap())
        .custom_inbox_prefix("_INBOX_gyrus_main")
        .request_timeout(Some(Duration::from_millis(300)));
    let address = format!("127.0.0.1:{}", server.port);
    let attacker = attacker.connect(&address).await.unwrap();
    for (request, body) in [
        ("STREAM.DELETE.gyrus-main-runs", json!({})),
        ("STREAM.PURGE.gyrus-main-runs", json!({})),
        ("STREAM.MSG.DELETE.gyrus-main-runs", json!({"seq": 1})),
        (
            "STREAM.UPDATE.gyrus-main-runs",
            json!({"name": "gyrus-main-runs", "max_age": 1}),
        ),
        (
            "STREAM.CREATE.other",
            json!({"name": "other", "subjects": ["x"]}),
        ),
        ("STREAM.NAMES", json!({})),
    ] {
        let subject = format!("$JS.API.{request}");
        let answer = attacker.request(subject, body.to_string().into()).await;
        assert!(answer.is_err(), "{request}: {answer:?}");
    }
    // What may be asked for changes nothing about a stream that is there.
    let again =
        json!({"name": "gyrus-main-runs", "subjects": ["gyrus.main.runs.>"], "max_msgs": 1});
    let subject = "$JS.API.STREAM.CREATE.gyrus-main-runs";
    let answer = attacker.request(subject, again.to_string().into()).await;
    let answer: Value = serde_json::from_slice(&answer.unwrap().payload).unwrap();
    assert!(answer["error"].is_object(), "{answer}");
    works_still(&connection).await;

    // What the servers answer to a person is not heard.
    let mut overheard = attacker.subscribe("_INBOX.>").await.unwrap();
    attacker.flush().await.unwrap();
    let person = async_nats::ConnectOptions::with_nkey(person.seed().unwrap());
    let person = person.connect(&address).await.unwrap();
    let mut heard = person.subscribe("_INBOX.>").await.unwrap();
    person.publish("_INBOX.one", "secret".into()).await.unwrap();
    heard.next().await.unwrap();
    // The servers answer this after everything that they sent before.
    let subject = "$JS.API.STREAM.INFO.gyrus-main-runs";
    attacker.request(subject, "".into()).await.unwrap();
    assert!(overheard.next().now_or_never().flatten().is_none());

    let wrong = written(folder.path(), "stranger", &stranger.seed().unwrap());
    let refused = open(&server, &format!("nkey={wrong}")).await;
    assert!(matches!(refused, Err(FleetConnectError::Refused { .. })));
    let nobody = open(&server, "").await;
    assert!(matches!(nobody, Err(FleetConnectError::Refused { .. })));
    for broken in ["SUnoseed", "", "UABC"] {
        let path = written(folder.path(), "broken", broken);
        let error = open(&server, &format!("nkey={path}")).await.err().unwrap();
        assert!(!error.to_string().contains("SUnoseed"), "{error}");
    }
}

/// Looks for the message that [`works`] left.
async fn works_still(connection: &FleetConnection) {
    prepare_streams(connection).await.unwrap();
    let log = NatsLog::new(connection.clone());
    let subject = LogSubject::new("runs.tried").unwrap();
    let read = log.read_from(&subject, 0, OsMachine.now() + SOON).await;
    assert_eq!(read.unwrap().len(), 1);
}

#[tokio::test]
async fn a_worker_is_let_in_by_a_credentials_file() {
    let folder = tempfile::tempdir().unwrap();
    let (operator, system, account) = (
        KeyPair::new_operator(),
        KeyPair::new_account(),
        KeyPair::new_account(),
    );
    let unlimited = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let of_account = |key: &KeyPair, limits: &Value| {
        let claims = json!({"type": "account", "version": 2, "limits": limits});
        token(&operator, key, claims)
    };
    // An account that runs the servers may store nothing.
    let mut bare = unlimited.clone();
    for limit in ["mem_storage", "disk_storage", "streams", "consumer"] {
        bare.as_object_mut().unwrap().remove(limit);
    }
    let admission = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\n\
         resolver_preload: {{ {}: {}, {}: {} }}",
        token(
            &operator,
            &operator,
            json!({"type": "operator", "version": 2, "system_account": system.public_key()})
        ),
        system.public_key(),
        system.public_key(),
        of_account(&system, &bare),
        account.public_key(),
        of_account(&account, &unlimited)
    );
    let Some(server) = server(&folder, admission) else {
        return;
    };
    let rights = FleetPermissions::of("main");
    let claims = json!({
        "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
        "pub": {"allow": rights.publish}, "sub": {"allow": rights.subscribe},
    });
    let credentials = |issuer: &KeyPair, claims: &Value| {
        let user = KeyPair::new_user();
        format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            token(issuer, &user, claims.clone()),
            user.seed().unwrap()
        )
    };
    let path = written(
        folder.path(),
        "worker.creds",
        &credentials(&account, &claims),
    );
    let connection = open(&server, &format!("creds={path}")).await.unwrap();
    works(&connection).await;

    // Signed by somebody else.
    let stranger = credentials(&KeyPair::new_account(), &claims);
    let path = written(folder.path(), "stranger.creds", &stranger);
    let refused = open(&server, &format!("creds={path}")).await;
    assert!(matches!(refused, Err(FleetConnectError::Refused { .. })));
    // Without the right to make streams, the servers say which one is missing.
    let mut poor = claims.clone();
    poor["pub"]["allow"] = json!(["gyrus.main.>"]);
    let path = written(folder.path(), "poor.creds", &credentials(&account, &poor));
    let connection = open(&server, &format!("creds={path}")).await.unwrap();
    let error = prepare_streams(&connection).await.unwrap_err().to_string();
    assert!(error.contains("STREAM.INFO"), "{error}");
    let path = written(folder.path(), "no.creds", "nothing of that kind");
    let error = open(&server, &format!("creds={path}")).await.err().unwrap();
    assert!(error.to_string().contains("no.creds"), "{error}");
}

/// Returns claims about a key, signed by another: a token as the servers' tool `nsc` writes it
/// (JSON Web Token with the algorithm `ed25519-nkey`).
fn token(issuer: &KeyPair, about: &KeyPair, claims: Value) -> String {
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = encoded(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let body = encoded(&json!({
        "jti": "of-the-tests",
        "iat": 1_700_000_000,
        "iss": issuer.public_key(),
        "sub": about.public_key(),
        "name": "tests",
        "nats": claims,
    }));
    let signed = format!("{head}.{body}");
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}
