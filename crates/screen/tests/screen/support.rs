//! A browser without a keeper, and a server of pages.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "only tests use it"
)]

use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    extract::Path,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use gyrus_contract::{CommandOutcome, CommandSpec, Exit, KeeperError, LookOptions, Screen, View};
use gyrus_screen::{Browser, Launch, ProfileChoice, RunCommand, find_program};
use tokio::{net::TcpListener, process::Command};

/// Whether there is a browser to test with; prints a note if there is none.
pub(crate) fn has_browser() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| match find_program(None) {
        Ok(_) => true,
        Err(error) => {
            eprintln!("left out: {error}");
            false
        }
    })
}

/// A group of processes, which ends when this is dropped.
struct Group(rustix::process::Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(self.0, rustix::process::Signal::KILL);
    }
}

/// Runs a command without a keeper: dropping the future kills its group of processes, and a browser
/// ends by itself when its pipe closes.
pub(crate) fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| {
        Box::pin(async move {
            let failed = |error: std::io::Error| KeeperError::Keeper {
                reason: error.to_string(),
            };
            let child = Command::new(&spec.program)
                .args(&spec.arguments)
                .current_dir(&spec.folder)
                .env_clear()
                .envs(&spec.environment)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .map_err(failed)?;
            let process = child
                .id()
                .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
            let _group = process.map(Group);
            let output = child.wait_with_output().await.map_err(failed)?;
            let mut outcome = CommandOutcome {
                exit: Exit::Code(output.status.code().unwrap_or(-1)),
                output: gyrus_contract::CapturedOutput::default(),
            };
            outcome.output.tail = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok(outcome)
        })
    })
}

/// Returns a browser with these options.
pub(crate) fn browser(launch: Launch) -> Browser {
    Browser::new(launch, ProfileChoice::Ephemeral, run())
}

/// Returns a browser with a profile of this name below a folder.
pub(crate) fn browser_with_profile(below: &std::path::Path, name: &str) -> Browser {
    let choice = ProfileChoice::Named {
        below: below.to_owned(),
        name: name.to_owned(),
    };
    Browser::new(Launch::default(), choice, run())
}

/// Pages of `tests/pages`, under any host name of this machine.
pub(crate) struct Pages {
    address: SocketAddr,
}

impl Pages {
    pub(crate) async fn serve() -> Self {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/{*path}", get(page));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address }
    }

    /// Returns the address of a page at this machine's first loopback address.
    pub(crate) fn at(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.address.port())
    }
}

/// Serves a page; `OTHER` in it is replaced by another site on this machine.
pub(crate) async fn page(
    Path(path): Path<String>,
    headers: axum::http::HeaderMap,
) -> impl IntoResponse {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages");
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let port = host
        .and_then(|host| host.rsplit_once(':'))
        .map_or("", |(_, port)| port);
    match std::fs::read_to_string(format!("{folder}/{path}")) {
        Ok(text) => {
            let kind = match path.rsplit_once('.') {
                Some((_, "js")) => "text/javascript",
                Some((_, "css")) => "text/css",
                Some((_, "svg")) => "image/svg+xml",
                _ => "text/html; charset=utf-8",
            };
            let text = text.replace("OTHER", &format!("http://127.0.0.2:{port}"));
            (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the view of a page.
pub(crate) async fn view(browser: &Browser, address: &str) -> View {
    browser.open(address).await.unwrap();
    let look = LookOptions {
        frame: false,
        documents: 0,
    };
    browser.look(look).await.unwrap().view
}
