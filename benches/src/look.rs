//! Cost of a look beside what the browser offers itself: its accessibility tree, and a bare
//! capture. Taken in turns on the same page; both go through the same connection.

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use axum::{Router, response::Html, routing::get};
use gyrus_contract::{CapturedOutput, CommandOutcome, CommandSpec, Exit, KeeperError, LookOptions};
use gyrus_screen::{Browser, Launch, ProfileChoice, RunCommand, find_program};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command};

use crate::{Row, row, tokens::pages};

mod iteration;

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
pub(crate) fn run() -> RunCommand {
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
                output: CapturedOutput::default(),
            })
        })
    })
}

/// Returns the median time: the first turns, which warm things up, are left out.
fn median(times: &[Duration], warming: usize) -> Duration {
    let mut times = times[warming..].to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

const fn look(frame: bool) -> LookOptions {
    LookOptions {
        frame,
        documents: 0,
    }
}

/// Reading the tree, tree and picture together, and a whole turn without the model.
pub(crate) fn looks() -> anyhow::Result<Vec<Row>> {
    if let Err(error) = find_program(None) {
        eprintln!("left out: {error}");
        return Ok(Vec::new());
    }
    tokio::runtime::Runtime::new()?.block_on(measured())
}

async fn measured() -> anyhow::Result<Vec<Row>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = format!("http://{}/", listener.local_addr()?);
    let router = Router::new().route("/", get(|| async { Html(page()) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let browser = Browser::new(Launch::default(), ProfileChoice::Ephemeral, run());
    browser.open(&address).await?;
    let mut rows = vec![trees(&browser).await?];
    let (both, bare) = pictures(&browser, TURNS).await?;
    rows.push(row(
        "tree and picture of that page, beside a bare capture",
        format!(
            "{both:.0?} beside {bare:.0?}: {:.2} times",
            ratio(both, bare)
        ),
        "1.3 times",
    ));
    rows.push(small_pages(&browser).await?);
    rows.extend(iteration::turns(&browser).await?);
    Ok(rows)
}

async fn trees(browser: &Browser) -> anyhow::Result<Row> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut told, mut listed) = (0, 0);
    for _ in 0..TURNS + WARMING {
        let since = Instant::now();
        told = browser.glance(look(false)).await?.view.elements.len();
        ours.push(since.elapsed());
        let since = Instant::now();
        let tree = browser
            .devtools("Accessibility.getFullAXTree", json!({}))
            .await?;
        theirs.push(since.elapsed());
        listed = tree["nodes"].as_array().context("no tree")?.len();
    }
    let (ours, theirs) = (median(&ours, WARMING), median(&theirs, WARMING));
    Ok(row(
        "the tree of a page of 5,600 elements, beside getFullAXTree",
        format!(
            "{ours:.0?} for {told} beside {theirs:.0?} for {listed}: {:.1} times faster",
            ratio(theirs, ours)
        ),
        "5 times faster",
    ))
}

/// A look with a picture, and a bare capture.
async fn pictures(browser: &Browser, turns: usize) -> anyhow::Result<(Duration, Duration)> {
    let (mut both, mut bare) = (Vec::new(), Vec::new());
    for turn in 0..turns + WARMING {
        apart(turn).await;
        let since = Instant::now();
        browser.glance(look(true)).await?;
        both.push(since.elapsed());
        apart(turn + 1).await;
        let since = Instant::now();
        let order = json!({"format": "png", "optimizeForSpeed": true});
        let _: Value = browser.devtools("Page.captureScreenshot", order).await?;
        bare.push(since.elapsed());
    }
    Ok((median(&both, WARMING), median(&bare, WARMING)))
}

/// Captures wait for the next frames of the browser; what is measured begins anywhere between two.
async fn apart(turn: usize) {
    let pause = u64::try_from(turn * 7 % 17).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(pause)).await;
}

async fn small_pages(browser: &Browser) -> anyhow::Result<Row> {
    let mut ratios = Vec::new();
    let pages = pages::serve().await?;
    for address in &pages {
        browser.open(address).await?;
        let (both, bare) = pictures(browser, 10).await?;
        let name = address.rsplit('/').next().unwrap_or(address);
        ratios.push((ratio(both, bare), both, bare, name));
    }
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let [.., worst] = &ratios[..] else {
        anyhow::bail!("there are no small pages");
    };
    let middle = &ratios[ratios.len() / 2];
    Ok(row(
        format!(
            "tree and picture of {} small pages, beside a bare capture",
            ratios.len()
        ),
        format!(
            "median {:.2} times ({:.0?} beside {:.0?}); most {:.2} times ({})",
            middle.0, middle.1, middle.2, worst.0, worst.3
        ),
        "1.3 times",
    ))
}
