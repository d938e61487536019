//! A whole turn of an agent without its model: press a button, wait for rest, look with a picture.
//! Beside how a well-known demonstration does it (wait two seconds, then a picture by the
//! browser's command line), and beside Playwright where there is one.

use std::{
    env,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use axum::{Router, response::Html, routing::get};
use gyrus_screen::{Browser, find_program};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command};

use super::{WARMING, look, median, ratio};
use crate::{Row, row};

/// Turns of ours, and of Playwright's.
const TURNS: usize = 20;

/// Each takes seconds.
const TURNS_OF_DEMO: usize = 3;

/// Time that the demonstration waits after each action.
const FIXED_WAIT: Duration = Duration::from_secs(2);

/// Names a `node_modules` folder in which `playwright-core` is.
const PLAYWRIGHT: &str = "GYRUS_BENCH_PLAYWRIGHT";

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/playwright.mjs");

/// A list that a button adds to; the button stays where it is.
const PAGE: &str = r#"<!doctype html><title>List</title><h1>Shopping</h1>
<button id="add" style="position: fixed; right: 40px; top: 40px; width: 90px; height: 40px">Add</button>
<form><label>Name <input></label> <label><input type="checkbox"> Urgent</label></form><ul id="list"></ul>
<script>
  const put = () => { const item = document.createElement("li"); item.textContent = "Item " + list.childElementCount; list.append(item); };
  for (let at = 0; at < 25; at += 1) put();
  add.addEventListener("click", () => { list.firstChild.remove(); put(); });
</script>"#;

/// The middle of the button.
const BUTTON: (f64, f64) = (1195.0, 60.0);

pub(super) async fn turns(browser: &Browser) -> anyhow::Result<Vec<Row>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = format!("http://{}/", listener.local_addr()?);
    let router = Router::new().route("/", get(|| async { Html(PAGE) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    browser.open(&address).await?;
    let mut ours = Vec::new();
    for _ in 0..TURNS + WARMING {
        ours.push(turn(browser).await?);
    }
    let ours = median(&ours, WARMING);
    let mut demo = Vec::new();
    for _ in 0..TURNS_OF_DEMO {
        demo.push(FIXED_WAIT + command_line(&address).await?);
    }
    let demo = median(&demo, 0);
    let mut rows = vec![row(
        "press, rest, tree and picture, beside a wait of 2 s and a picture by the command line",
        format!(
            "{ours:.0?} beside {demo:.2?}: {:.0} times less",
            ratio(demo, ours)
        ),
        "15 times less",
    )];
    match env::var_os(PLAYWRIGHT) {
        Some(modules) => {
            let theirs = playwright(Path::new(&modules), &address).await?;
            rows.push(row(
                "press, rest, tree and picture, beside Playwright's click, screenshot and ariaSnapshot",
                format!(
                    "{ours:.0?} beside {theirs:.0?}: {:.2} times less",
                    ratio(theirs, ours)
                ),
                "reported",
            ));
        }
        None => eprintln!(
            "left out: Playwright; {PLAYWRIGHT}=FOLDER names a node_modules folder with playwright-core"
        ),
    }
    Ok(rows)
}

async fn turn(browser: &Browser) -> anyhow::Result<Duration> {
    let since = Instant::now();
    let mouse = |kind: &str| {
        json!({
            "type": kind, "x": BUTTON.0, "y": BUTTON.1, "button": "left", "clickCount": 1,
        })
    };
    let method = "Input.dispatchMouseEvent";
    let _: Value = browser.devtools(method, mouse("mousePressed")).await?;
    browser.rest_after(method, mouse("mouseReleased")).await?;
    let seen = browser.glance(look(true)).await?;
    let took = since.elapsed();
    ensure!(
        seen.frame.is_some() && seen.view.elements.len() > 25,
        "the page could not be seen: {:?}",
        seen.view.unread
    );
    Ok(took)
}

/// A browser of its own for each picture, as it is started by hand.
async fn command_line(address: &str) -> anyhow::Result<Duration> {
    let folder = tempfile::tempdir()?;
    let picture = folder.path().join("picture.png");
    let since = Instant::now();
    let status = Command::new(find_program(None)?)
        .args(["--headless", "--no-sandbox", "--window-size=1280,800"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(address)
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await?;
    let took = since.elapsed();
    ensure!(
        status.success() && picture.exists(),
        "the browser's command line made no picture ({status})"
    );
    Ok(took)
}

/// The median of its turns, which it measures itself.
async fn playwright(modules: &Path, address: &str) -> anyhow::Result<Duration> {
    let output = Command::new("node")
        .arg(PEER)
        .arg(modules)
        .arg(find_program(None)?)
        .args([address, &TURNS.to_string(), &WARMING.to_string()])
        .kill_on_drop(true)
        .output()
        .await
        .context("node cannot be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let ms: f64 = said.trim().parse().with_context(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("Playwright's side did not tell a time: {said}{complaint}")
    })?;
    Ok(Duration::from_secs_f64(ms / 1000.0))
}
