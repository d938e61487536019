//! Bringing a page to a state, with the mouse and the keyboard of the protocol.

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use gyrus_contract::{
    CapturedOutput, CommandOutcome, CommandSpec, Exit, KeeperError, LookOptions, Screen as _,
};
use gyrus_screen::{Browser, RunCommand};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::applications::Step;

/// For a page to come to a state.
const LIMIT: Duration = Duration::from_secs(20);

/// Without a keeper: the browser ends by itself when its pipe closes.
pub(crate) fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| {
        Box::pin(async move {
            let failed = |error: std::io::Error| KeeperError::Keeper {
                reason: error.to_string(),
            };
            let mut command = Command::new(&spec.program);
            command
                .args(&spec.arguments)
                .current_dir(&spec.folder)
                .env_clear()
                .envs(&spec.environment);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true);
            let status = command.status().await.map_err(failed)?;
            Ok(CommandOutcome {
                exit: Exit::Code(status.code().unwrap_or(-1)),
                output: CapturedOutput::default(),
            })
        })
    })
}

pub(crate) async fn take(browser: &Browser, step: Step) -> anyhow::Result<()> {
    match step {
        Step::Click(selector) => click(browser, selector, "left").await?,
        Step::Menu(selector) => click(browser, selector, "right").await?,
        Step::Key(name, code, modifiers) => {
            for kind in ["rawKeyDown", "keyUp"] {
                let order = json!({"type": kind, "key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers});
                browser.devtools("Input.dispatchKeyEvent", order).await?;
            }
        }
        Step::Run(script) => drop(evaluate(browser, script).await?),
        Step::Until(condition) => return until(browser, condition).await,
    }
    browser
        .look(LookOptions {
            frame: false,
            documents: 0,
        })
        .await?;
    Ok(())
}

/// A page that goes away takes its answer with it, so each is asked for shortly.
pub(crate) async fn until(browser: &Browser, condition: &str) -> anyhow::Result<()> {
    let script = format!(
        "new Promise((done) => {{ const until = performance.now() + 2000; const look = async () => {{ \
         if (await ({condition})) done(true); else if (performance.now() > until) done(false); \
         else setTimeout(look, 50); }}; look(); }})"
    );
    let since = Instant::now();
    while since.elapsed() < LIMIT {
        if evaluate(browser, &script)
            .await
            .is_ok_and(|done| done == true)
        {
            return Ok(());
        }
    }
    bail!("it does not come to that")
}

pub(crate) async fn evaluate(browser: &Browser, script: &str) -> anyhow::Result<Value> {
    let order = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
    let answered = browser.devtools("Runtime.evaluate", order).await?;
    if !answered["exceptionDetails"].is_null() {
        bail!(
            "{}",
            answered["exceptionDetails"]["exception"]["description"]
        );
    }
    Ok(answered["result"]["value"].clone())
}

async fn click(browser: &Browser, selector: &str, button: &str) -> anyhow::Result<()> {
    let script = format!(
        "(() => {{ const one = [...document.querySelectorAll({selector:?})].find((at) => at.getClientRects().length); \
         one.scrollIntoView({{ block: 'nearest', behavior: 'instant' }}); const at = one.getBoundingClientRect(); \
         return [at.x + at.width / 2, at.y + at.height / 2]; }})()"
    );
    let place = evaluate(browser, &script).await?;
    let (x, y) = (
        place[0].as_f64().context("nothing there")?,
        place[1].as_f64().context("nothing there")?,
    );
    for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
        let order = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        browser.devtools("Input.dispatchMouseEvent", order).await?;
    }
    Ok(())
}

/// Returns a server's answer to a request for a path.
pub(crate) async fn get(origin: &str, path: &str) -> anyhow::Result<String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "5"]);
    let answered = command.arg(format!("{origin}{path}")).output().await?;
    Ok(String::from_utf8_lossy(&answered.stdout).into_owned())
}

/// The version of an installed package of Python.
pub(crate) fn python_version(installed: &std::path::Path, package: &str) -> Option<String> {
    let libraries = std::fs::read_dir(installed.join("venv/lib")).ok()?;
    let packages = libraries
        .flatten()
        .map(|one| one.path().join("site-packages"));
    let entries = packages
        .filter_map(|one| std::fs::read_dir(one).ok())
        .flatten();
    let names = entries
        .flatten()
        .map(|one| one.file_name().to_string_lossy().into_owned());
    names
        .filter_map(|name| {
            let version = name.strip_prefix(&format!("{package}-"))?;
            Some(version.strip_suffix(".dist-info")?.to_owned())
        })
        .next()
}
