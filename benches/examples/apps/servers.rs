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
    let mut command = match server {
        Server::Django => {
            let mut command = python(installed, &work, "python");
            command
                .arg(format!("{OURS}/admin.py"))
                .arg(port.to_string());
            command
        }
        Server::Jupyter => jupyter(installed, &work, port)?,
        Server::Streamlit
        | Server::Gradio
        | Server::NiceGui
        | Server::Wagtail
        | Server::NodeRed => drawn(server, installed, &work, port).await?,
        Server::TiddlyWiki => {
            let wiki = work.join("wiki");
            if !wiki.exists() {
                let mut init = node(installed, &work, "tiddlywiki");
                let made = init.arg(&wiki).args(["--init", "server"]).status().await?;
                ensure!(made.success(), "the wiki could not be made");
            }
            let mut command = node(installed, &work, "tiddlywiki");
            command
                .arg(&wiki)
                .arg("--listen")
                .arg(format!("port={port}"));
            command
        }
        Server::Etherpad => etherpad(installed, &work, port)?,
        Server::Datasette | Server::Files => {
            let mut make = python(installed, &work, "python");
            let made = make.args(["-c", SHOP]).status().await?;
            ensure!(made.success(), "the tables of Datasette could not be made");
            let mut command = python(installed, &work, "datasette");
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

fn quiet(program: PathBuf, work: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(work)
        .env("HOME", work)
        .stdin(Stdio::null());
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

fn python(installed: &Path, work: &Path, name: &str) -> Command {
    quiet(installed.join("venv/bin").join(name), work)
}

fn node(installed: &Path, work: &Path, name: &str) -> Command {
    quiet(installed.join("npm/node_modules/.bin").join(name), work)
}

fn jupyter(installed: &Path, work: &Path, port: u16) -> anyhow::Result<Command> {
    let notebooks = work.join("notebooks");
    std::fs::create_dir_all(&notebooks)?;
    std::fs::write(notebooks.join("demo.ipynb"), notebook())?;
    std::fs::write(notebooks.join("notes.md"), "# Notes\n")?;
    let options = [
        "lab",
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        "--LabApp.news_url=",
    ];
    let mut command = python(installed, work, "jupyter");
    command
        .args(options)
        .arg(format!("--port={port}"))
        .arg("--ServerApp.port_retries=0")
        .current_dir(notebooks);
    Ok(command)
}

/// Makes a site of Wagtail with one administrator.
const SITE: &str = "wagtail start shop wagtail && cd wagtail && python manage.py migrate && \
    python manage.py shell -c \"from django.contrib.auth.models import User; \
    User.objects.create_superuser('admin', 'admin@shop.example', 'admin')\"";

/// Applications whose server draws the page, or keeps what is drawn.
async fn drawn(
    server: Server,
    installed: &Path,
    work: &Path,
    port: u16,
) -> anyhow::Result<Command> {
    let site = work.join("wagtail");
    if server == Server::Wagtail && !site.exists() {
        std::fs::create_dir_all(&site)?;
        let path = installed.join("venv/bin").display().to_string() + ":/usr/bin:/bin";
        let mut make = quiet("/bin/sh".into(), work);
        let made = make.args(["-c", SITE]).env("PATH", path).status().await?;
        ensure!(made.success(), "the site of Wagtail could not be made");
    }
    if server == Server::NodeRed {
        let folder = work.join("nodered");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("settings.js"), include_str!("nodered.js"))?;
        std::fs::write(folder.join("flows.json"), include_str!("flows.json"))?;
        let mut command = node(installed, work, "node-red");
        command.arg("--userDir").arg(folder);
        command.args(["--port", &port.to_string(), "flows.json"]);
        return Ok(command);
    }
    let mut command = python(installed, work, "python");
    match server {
        Server::Streamlit => {
            command.args(["-m", "streamlit", "run"]);
            command.arg(format!("{OURS}/widgets_streamlit.py"));
            command.args(["--server.headless=true", "--browser.gatherUsageStats=false"]);
            command.arg(format!("--server.port={port}"));
        }
        Server::Gradio => {
            command.arg(format!("{OURS}/widgets_gradio.py"));
            command.arg(port.to_string());
            command.env("GRADIO_ANALYTICS_ENABLED", "False");
        }
        Server::NiceGui => {
            command.arg(format!("{OURS}/widgets_nicegui.py"));
            command.arg(port.to_string());
        }
        _ => {
            command.args(["manage.py", "runserver", "--noreload"]);
            command.arg(port.to_string()).current_dir(site);
        }
    }
    Ok(command)
}

/// Etherpad finds itself only as `src`, with itself among the modules beside it.
fn etherpad(installed: &Path, work: &Path, port: u16) -> anyhow::Result<Command> {
    let base = installed.join("npm/etherpad");
    let modules = base.join("node_modules");
    if !modules.exists() {
        std::fs::create_dir_all(&base)?;
        let package = installed.join("npm/node_modules/ep_etherpad-lite");
        let mut copy = std::process::Command::new("cp");
        let copied = copy.arg("-r").arg(package).arg(base.join("src")).status()?;
        ensure!(copied.success(), "Etherpad could not be copied");
        std::fs::create_dir_all(&modules)?;
        std::os::unix::fs::symlink("../src", modules.join("ep_etherpad-lite"))?;
        // What it serves of its libraries it looks for in its own folder.
        for name in ["js-cookie", "security", "tinycon", "underscore", "unorm"] {
            let library = base.join("src/node_modules").join(name);
            if !library.exists() {
                std::os::unix::fs::symlink(installed.join("npm/node_modules").join(name), library)?;
            }
        }
    }
    let folder = work.join("etherpad");
    std::fs::create_dir_all(&folder)?;
    let settings = serde_json::json!({
        "ip": "127.0.0.1", "port": port, "requireAuthentication": false,
        "dbType": "dirty", "dbSettings": {"filename": folder.join("pads.db")}, "defaultPadText": "Welcome",
    });
    let file = folder.join("settings.json");
    std::fs::write(&file, settings.to_string())?;
    let mut command = quiet("node".into(), &folder);
    command.arg(base.join("src/node/server.js"));
    command.arg("--settings").arg(file);
    Ok(command)
}

/// Removes what earlier tasks made.
pub(crate) fn forget(server: Server, installed: &Path) -> anyhow::Result<()> {
    let made = match server {
        Server::TiddlyWiki => "wiki",
        Server::Etherpad => "etherpad",
        Server::NodeRed => "nodered",
        Server::Wagtail => "wagtail",
        Server::Jupyter => "notebooks",
        Server::Django => "admin.sqlite3",
        Server::NiceGui => ".nicegui",
        Server::Datasette | Server::Streamlit | Server::Gradio | Server::Files => return Ok(()),
    };
    let made = installed.join("work").join(made);
    if made.is_dir() {
        std::fs::remove_dir_all(&made)?;
    } else if made.exists() {
        std::fs::remove_file(&made)?;
    }
    Ok(())
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
