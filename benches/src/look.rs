//! What a look costs beside what the browser offers itself: its accessibility tree, and a bare
//! capture. Taken in turns on the same page; both go through the same connection.

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use axum::{Router, response::Html, routing::get};
use gyrus_contract::{Captured, CommandOutcome, CommandSpec, Exit, KeeperError, Look};
use gyrus_screen::{Browser, Launch, ProfileChoice, RunCommand, find_program};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command};

use crate::{Row, row};

/// Turns that are measured; the first ones, which warm things up, are not.
const TURNS: usize = 25;
const WARMING: usize = 5;

/// Parts of the page, of 16 elements each.
const PARTS: usize = 350;

const PART: &str = r#"<div class="card"><div><h3>Item N</h3><p>Some words about <b>item</b> N and
<a href="/i/N">more</a></p></div><ul><li>One</li><li>Two <span>x</span></li></ul>
<label>Amount <input value="N"></label><button><svg width="16" height="16"><path d="M0 0h9"/></svg>
<span>Buy N</span></button></div>"#;

fn page() -> String {
    let parts: String = (0..PARTS)
        .map(|number| PART.replace('N', &number.to_string()))
        .collect();
    format!(
        "<!doctype html><title>Shop</title><style>.card {{ display: flex; gap: 4px }}</style><main>{parts}</main>"
    )
}

/// Without a keeper: the browser ends by itself when its pipe closes.
fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| {
        Box::pin(async move {
            let failed = |error: std::io::Error| KeeperError::Keeper {
                reason: error.to_string(),
            };
            let status = Command::new(&spec.program)
                .args(&spec.arguments)
                .current_dir(&spec.folder)
                .env_clear()
                .envs(&spec.environment)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .status()
                .await
                .map_err(failed)?;
            Ok(CommandOutcome {
                exit: Exit::Code(status.code().unwrap_or(-1)),
                output: Captured::default(),
            })
        })
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn compared(times: Vec<(Duration, Duration)>) -> (Duration, Duration) {
    let (ours, theirs) = times.into_iter().skip(WARMING).unzip();
    (median(ours), median(theirs))
}

/// Reading the tree, and tree and picture together.
pub(crate) fn looks() -> anyhow::Result<Vec<Row>> {
    if let Err(error) = find_program(None) {
        eprintln!("left out: {error}");
        return Ok(Vec::new());
    }
    tokio::runtime::Runtime::new()?.block_on(measured())
}

async fn measured() -> anyhow::Result<Vec<Row>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/", get(|| async { Html(page()) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let browser = Browser::new(Launch::default(), ProfileChoice::Ephemeral, run());
    browser.open(&format!("http://{address}/")).await?;
    let look = |frame| Look {
        frame,
        documents: 0,
    };
    let (mut trees, mut pictures) = (Vec::new(), Vec::new());
    let (mut told, mut listed) = (0, 0);
    for _ in 0..TURNS + WARMING {
        let since = Instant::now();
        told = browser.glance(look(false)).await?.view.elements.len();
        let ours = since.elapsed();
        let since = Instant::now();
        let tree = browser
            .devtools("Accessibility.getFullAXTree", json!({}))
            .await?;
        trees.push((ours, since.elapsed()));
        listed = tree["nodes"].as_array().context("no tree")?.len();
        let since = Instant::now();
        browser.glance(look(true)).await?;
        let ours = since.elapsed();
        let since = Instant::now();
        let order = json!({"format": "png", "optimizeForSpeed": true});
        let _: Value = browser.devtools("Page.captureScreenshot", order).await?;
        pictures.push((ours, since.elapsed()));
    }
    let (ours, theirs) = compared(trees);
    let (both, bare) = compared(pictures);
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    Ok(vec![
        row(
            "the tree of a page of 5,600 elements, beside getFullAXTree",
            format!(
                "{ours:.0?} for {told} beside {theirs:.0?} for {listed}: {:.1} times faster",
                ratio(theirs, ours)
            ),
            "5 times faster",
        ),
        row(
            "tree and picture of that page, beside a bare capture",
            format!(
                "{both:.0?} beside {bare:.0?}: {:.2} times",
                ratio(both, bare)
            ),
            "1.3 times",
        ),
    ])
}
