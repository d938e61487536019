//! Logging in by OAuth, at servers that behave and at servers that do not.

use std::{collections::HashMap, fs, os::unix::fs::PermissionsExt, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{RawQuery, State as Shared},
    http::{HeaderMap, Response},
    response::{IntoResponse, Redirect},
    routing::{get as getting, post},
};
use gyrus_mcp::{McpServer, ServerLogin, ServerSetup, ServerState, ServerWay, Servers};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{TIMEOUT, World, named};

/// A server with its own authorization server, and what they were sent.
#[derive(Clone)]
struct Web {
    how: &'static str,
    base: String,
    seen: Arc<Mutex<Vec<String>>>,
    /// Number of tokens given; the last one is valid.
    given: Arc<Mutex<u32>>,
}

impl Web {
    async fn serve(how: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Self {
            how,
            base: format!("http://{}", listener.local_addr().unwrap()),
            seen: Arc::default(),
            given: Arc::default(),
        };
        let app = Router::new()
            .route("/mcp", post(answer))
            .route(
                "/.well-known/oauth-protected-resource/mcp",
                getting(resource),
            )
            .route("/.well-known/oauth-authorization-server", getting(metadata))
            .route("/register", post(register))
            .route("/authorize", getting(authorize))
            .route("/token", post(token))
            .with_state(web.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        web
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    fn note(&self, what: String) {
        self.seen.lock().push(what);
    }

    fn seen(&self) -> String {
        self.seen.lock().join("\n")
    }
}

fn plain(value: &Value) -> Response<Body> {
    let builder = Response::builder().header("content-type", "application/json");
    builder.body(Body::from(value.to_string())).unwrap()
}

async fn resource(Shared(web): Shared<Web>) -> Response<Body> {
    let base = &web.base;
    let (resource, server) = match web.how {
        "of another" => ("https://bank.example/mcp".to_owned(), base.clone()),
        "into the cloud" => (web.url(), "http://169.254.169.254/latest".to_owned()),
        "by plain http" => (web.url(), "http://login.example".to_owned()),
        _ => (web.url(), base.clone()),
    };
    plain(&json!({"resource": resource, "authorization_servers": [server]}))
}

async fn metadata(Shared(web): Shared<Web>) -> Response<Body> {
    let base = &web.base;
    let issuer = match web.how {
        "other issuer" => "https://honest.example",
        _ => base,
    };
    let page = match web.how {
        "plain page" => "http://login.example/authorize".to_owned(),
        _ => format!("{base}/authorize"),
    };
    plain(&json!({
        "issuer": issuer,
        "authorization_endpoint": page,
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": if web.how == "no pkce" { ["plain"] } else { ["S256"] },
        "authorization_response_iss_parameter_supported": web.how == "says who",
    }))
}

async fn register(Shared(web): Shared<Web>, body: String) -> Response<Body> {
    let said: Value = serde_json::from_str(&body).unwrap();
    web.note(format!("register {said}"));
    plain(&json!({"client_id": "c1", "redirect_uris": said["redirect_uris"]}))
}

async fn authorize(Shared(web): Shared<Web>, RawQuery(query): RawQuery) -> Redirect {
    let asked = reqwest::Url::parse(&format!("http://x/?{}", query.unwrap())).unwrap();
    let asked: HashMap<String, String> = asked.query_pairs().into_owned().collect();
    web.note(format!("authorize {}", asked["resource"]));
    let (back, state) = (&asked["redirect_uri"], &asked["state"]);
    let answer = match web.how {
        "refuses" => "error=access_denied&error_description=not%20today".to_owned(),
        "says who" => "code=k1&iss=https%3A%2F%2Fevil.example".to_owned(),
        _ => "code=k1".to_owned(),
    };
    Redirect::to(&format!("{back}?{answer}&state={state}"))
}

async fn token(Shared(web): Shared<Web>, body: String) -> Response<Body> {
    web.note(format!("token {body}"));
    if web.how == "elsewhere" {
        return Redirect::temporary("http://127.0.0.1:9/token").into_response();
    }
    let number = {
        let mut given = web.given.lock();
        *given += 1;
        *given
    };
    // The first has expired when it arrives, so that the next use has to refresh it.
    let lasts = if web.how == "short" && number == 1 {
        0
    } else {
        3600
    };
    plain(&json!({
        "access_token": format!("secret-token-{number}"),
        "refresh_token": format!("secret-refresh-{number}"),
        "token_type": "Bearer",
        "expires_in": lasts,
    }))
}

async fn answer(Shared(web): Shared<Web>, headers: HeaderMap, body: String) -> Response<Body> {
    let message: Value = serde_json::from_str(&body).unwrap();
    let given = headers
        .get("authorization")
        .map(|value| value.to_str().unwrap().to_owned());
    let valid = format!("Bearer secret-token-{}", web.given.lock());
    let builder = Response::builder();
    if given.as_ref() != Some(&valid) {
        let challenge = format!(
            "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
            web.base
        );
        let mut refused = builder.status(401);
        if web.how != "bare" {
            refused = refused.header("www-authenticate", challenge);
        }
        return refused.body(Body::empty()).unwrap();
    }
    if message.get("id").is_none() {
        return builder.status(202).body(Body::empty()).unwrap();
    }
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "echo", "description": "d", "inputSchema": {"type": "object"}},
        ]}),
        _ => json!({"content": [{"type": "text", "text": format!("you are {valid}")}]}),
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let answered = builder
        .status(200)
        .header("content-type", "application/json");
    answered.body(Body::from(reply.to_string())).unwrap()
}

fn login(world: &World) -> ServerLogin {
    ServerLogin {
        file: world.work("keys/mcp-srv.json"),
        client: None,
    }
}

fn setup(world: &World, url: &str) -> ServerSetup {
    let mut setup = world.at(url, &[]);
    if let ServerWay::Http { login: means, .. } = &mut setup.way {
        *means = Some(login(world));
    }
    setup
}

/// Asks as a browser would.
async fn get(url: &str) -> reqwest::Response {
    let url = reqwest::Url::parse(url).unwrap();
    let client = gyrus_net::client_builder(&url, TIMEOUT).unwrap().build();
    client.unwrap().get(url).send().await.unwrap()
}

/// Logs in as a person would, in a browser.
async fn log_in(world: &World, web: &Web) -> Result<(), String> {
    let challenge = McpServer::challenge(&setup(world, &web.url())).await?;
    let attempt = login(world).begin(&web.url(), &challenge).await?;
    let page = attempt.address().clone();
    let back = page
        .query_pairs()
        .find(|(name, _)| name == "redirect_uri")
        .unwrap()
        .1;
    let guess = format!("{back}?code=stolen&state=guessed");
    let finished = tokio::spawn(attempt.finish());
    // Another page that guesses is turned away, and the login goes on.
    assert_eq!(get(&guess).await.status(), 400);
    let there = get(page.as_str()).await;
    let back = there.headers()["location"].to_str().unwrap();
    assert_eq!(get(back).await.status(), 200);
    tokio::time::timeout(TIMEOUT, finished)
        .await
        .unwrap()
        .unwrap()
}

async fn state(world: &World, url: &str) -> (Servers, ServerState) {
    let mut servers = Servers::start(vec![setup(world, url)]);
    let state = servers.states(TIMEOUT).await["srv"].clone();
    (servers, state)
}

#[tokio::test]
async fn a_person_logs_in_and_the_tokens_stay_secret() {
    let (world, web) = (World::new(), Web::serve("good").await);
    let (_, before) = state(&world, &web.url()).await;
    let ServerState::Missing(why) = before else {
        panic!("{before:?}");
    };
    assert_eq!(why, "it asks for a login; log in: gyrus mcp login srv");
    assert_eq!(web.seen(), "", "a run begins no login");
    log_in(&world, &web).await.unwrap();
    let seen = web.seen();
    let resource = format!("authorize {}", web.url());
    assert!(
        seen.contains(&resource) && seen.contains("code_verifier="),
        "{seen}"
    );
    let file = world.work("keys/mcp-srv.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let (servers, _) = state(&world, &web.url()).await;
    let tools = servers.tools();
    let output = world.call(named(&tools, "srv__echo"), json!({})).await;
    assert_eq!(output.text, "you are Bearer (a token of this server)");
    // A server at another address gets nothing, whatever its name is.
    let other = Web::serve("good").await;
    let (_, there) = state(&world, &other.url()).await;
    assert!(matches!(there, ServerState::Missing(_)), "{there:?}");
    assert!(!other.seen().contains("secret"), "{}", other.seen());
    assert!(login(&world).forget().unwrap());
    assert!(!login(&world).forget().unwrap());
}

/// Some servers refuse without saying how to log in.
#[tokio::test]
async fn a_server_that_only_refuses_is_asked_what_it_publishes() {
    let (world, web) = (World::new(), Web::serve("bare").await);
    let (_, before) = state(&world, &web.url()).await;
    assert!(
        matches!(&before, ServerState::Missing(why) if why.contains("mcp login srv")),
        "{before:?}"
    );
    log_in(&world, &web).await.unwrap();
    let (_, ready) = state(&world, &web.url()).await;
    assert!(matches!(ready, ServerState::Ready { .. }), "{ready:?}");
}

#[tokio::test]
async fn tokens_are_refreshed_by_themselves() {
    let (world, web) = (World::new(), Web::serve("short").await);
    log_in(&world, &web).await.unwrap();
    let (servers, ready) = state(&world, &web.url()).await;
    assert!(matches!(ready, ServerState::Ready { .. }), "{ready:?}");
    let seen = web.seen();
    assert!(seen.contains("grant_type=refresh_token"), "{seen}");
    assert!(seen.contains("refresh_token=secret-refresh-1"), "{seen}");
    assert_eq!(seen.matches("resource=").count(), 2, "{seen}");
    let kept = fs::read_to_string(world.work("keys/mcp-srv.json")).unwrap();
    assert!(!kept.contains("secret-token-1"), "{kept}");
    servers.leave().await;
}

#[tokio::test]
async fn what_is_not_safe_is_refused_before_a_token_is_given() {
    for (how, words) in [
        ("of another", "resource mismatch"),
        ("other issuer", "issuer"),
        ("into the cloud", "authorization server"),
        ("by plain http", "http"),
        ("plain page", "neither https nor on this machine"),
        ("no pkce", "PKCE"),
        ("says who", "issuer"),
        ("refuses", "it was refused: access_denied: not today"),
        ("elsewhere", "token exchange"),
    ] {
        let (world, web) = (World::new(), Web::serve(how).await);
        let error = log_in(&world, &web).await.unwrap_err();
        assert!(
            error.to_lowercase().contains(&words.to_lowercase()),
            "{how}: {error}"
        );
        assert!(!world.work("keys/mcp-srv.json").exists(), "{how}");
        assert_eq!(*web.given.lock(), 0, "{how}: {}", web.seen());
    }
    // A token for an address that others can listen to is not asked for at all.
    let world = World::new();
    let error = login(&world).begin("http://mcp.example/mcp", "").await;
    assert!(
        error
            .err()
            .unwrap()
            .contains("neither https nor on this machine")
    );
}
