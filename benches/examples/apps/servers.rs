//! The servers of the applications, on loopback, each on a port that was free.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use axum::{
    Router,
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::applications::Server;

/// Until a server answers. The first start of a Python program compiles it.
const START_LIMIT: Duration = Duration::from_secs(120);

const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/apps");

/// Makes the data of Datasette: a table with a foreign key, of enough rows for several pages.
const SHOP: &str = "import sqlite3
c = sqlite3.connect('shop.db')
c.executescript('''create table if not exists cities (id integer primary key, name text);
create table if not exists orders (id integer primary key, city integer references cities(id), sum real, note text);
delete from orders; delete from cities;''')
c.executemany('insert into cities values (?, ?)', enumerate(['Oslo', 'Bari', 'Lyon']))
c.executemany('insert into orders values (?, ?, ?, ?)', [(n, n % 3, n * 1.5, f'Note {n}') for n in range(300)])
c.commit()";

/// A running server.
pub(crate) struct Running {
    pub(crate) origin: String,
    /// Killed when this is dropped.
    _child: Option<Child>,
}

/// Starts the server of an application; `installed` is where the packages are.
pub(crate) async fn start(server: Server, installed: &Path) -> anyhow::Result<Running> {
    if server == Server::Files {
        return files(installed).await;
    }
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await?
        .local_addr()?
        .port();
    let work = installed.join("work");
    std::fs::create_dir_all(&work)?;
    let program = |name: &str| {
        let mut command = Command::new(installed.join("venv/bin").join(name));
        command
            .current_dir(&work)
            .env("HOME", &work)
            .stdin(Stdio::null());
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    };
    let mut command = match server {
        Server::Django => {
            let mut command = program("python");
            command
                .arg(format!("{OURS}/admin.py"))
                .arg(port.to_string());
            command
        }
        Server::Jupyter => {
            let notebooks = work.join("notebooks");
            std::fs::create_dir_all(&notebooks)?;
            std::fs::write(notebooks.join("demo.ipynb"), notebook())?;
            std::fs::write(notebooks.join("notes.md"), "# Notes\n")?;
            let mut command = program("jupyter");
            let options = [
                "lab",
                "--no-browser",
                "--allow-root",
                "--IdentityProvider.token=",
                "--LabApp.news_url=",
            ];
            command
                .args(options)
                .arg(format!("--port={port}"))
                .arg("--ServerApp.port_retries=0")
                .current_dir(notebooks);
            command
        }
        Server::Datasette | Server::Files => {
            let made = program("python").args(["-c", SHOP]).status().await?;
            ensure!(made.success(), "the tables of Datasette could not be made");
            let mut command = program("datasette");
            command.args(["serve", "shop.db", "--port", &port.to_string()]);
            command
        }
    };
    let child = command
        .spawn()
        .with_context(|| format!("{server:?} does not start"))?;
    let since = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .is_err()
    {
        ensure!(since.elapsed() < START_LIMIT, "{server:?} does not answer");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(Running {
        origin: format!("http://127.0.0.1:{port}"),
        _child: Some(child),
    })
}

fn notebook() -> String {
    let cell = |kind: &str, text: &str| serde_json::json!({"cell_type": kind, "metadata": {}, "source": text});
    let code = |text: &str| {
        let mut cell = cell("code", text);
        cell["outputs"] =
            serde_json::json!([{"output_type": "stream", "name": "stdout", "text": "42\n"}]);
        cell["execution_count"] = 1.into();
        cell
    };
    let cells = [
        cell("markdown", "# Sums\nSee [the plan](plan.md)."),
        code("print(6 * 7)"),
        code("import math\nmath.pi"),
        cell("markdown", "Done"),
    ];
    serde_json::json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
        .to_string()
}

/// `/pages` are ours, `/npm` the packages', `/built` what was bundled of both.
async fn files(installed: &Path) -> anyhow::Result<Running> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address: SocketAddr = listener.local_addr()?;
    let installed = installed.to_path_buf();
    let router = Router::new().route(
        "/{*path}",
        get(move |uri: Uri| {
            let installed = installed.clone();
            async move { file(&installed, uri.path()) }
        }),
    );
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Running {
        origin: format!("http://{address}"),
        _child: None,
    })
}

fn file(installed: &Path, path: &str) -> Response {
    let path = path.replace("%40", "@");
    let place: Option<PathBuf> = [
        ("/pages/", PathBuf::from(OURS).join("pages")),
        ("/npm/", installed.join("npm/node_modules")),
        ("/built/", installed.join("built")),
    ]
    .into_iter()
    .find_map(|(start, folder)| Some(folder.join(path.strip_prefix(start)?)));
    let Some(bytes) = place.and_then(|place| std::fs::read(place).ok()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = match path.rsplit_once('.').map(|(_, end)| end) {
        Some("js" | "mjs") => "text/javascript",
        Some("css") => "text/css",
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    ([(CONTENT_TYPE, kind)], bytes).into_response()
}
