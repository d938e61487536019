//! Tasks on real applications, each step by the tools of a run, and its end checked from outside.
//!
//! A file of tasks has a line a step. `task NAME` begins one; a step is `open PATH`, the name of a
//! tool with its arguments, `until SCRIPT` and `run SCRIPT` in the page, `get PATH has TEXT` from
//! the server, `sign` (in, at an administration of Django), `file PATH has TEXT` of the workspace, or `show`. Instead of an id, arguments name
//! an element: `ROLE NAME`, with `~` before a part of the name and `#2` after it for the second;
//! `@0.5,0.2 ROLE NAME` is a point inside it. `?` before a tool says that it may be refused, `+` that it
//! starts something that goes on for seconds, so that later looks show more.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use gyrus_contract::{Element, ElementState, View};
use serde_json::{Value, json};

use crate::{
    applications::{SIGN_IN, SIGNED_IN},
    hands::Hands,
    record::{Count, Input},
    servers, steps,
};

/// Time for the server to come to what a task made.
const LIMIT: Duration = Duration::from_secs(10);

/// Result of the tasks of an application.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tasks: usize,
    pub(crate) done: usize,
    pub(crate) count: Count,
}

/// Does the tasks of a file.
pub(crate) async fn all(file: &Path, installed: &Path) -> anyhow::Result<Done> {
    let text = std::fs::read_to_string(file)?;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let head = lines.next().context("the file is empty")?;
    let [name, server, registry, package] = head.split(", ").collect::<Vec<_>>()[..] else {
        bail!("the first line is not `NAME, SERVER, REGISTRY, PACKAGE`: {head}");
    };
    let mut done = Done {
        name: name.to_owned(),
        version: version(installed, registry, package),
        ..Done::default()
    };
    let server = crate::applications::Server::named(server).context("no such server")?;
    servers::forget(server, installed)?;
    let running = servers::start(server, installed).await?;
    let mut player = None;
    let mut task = "";
    for line in lines {
        if let Some(next) = line.strip_prefix("task ") {
            done.done += usize::from(player.is_some());
            task = next;
            done.tasks += 1;
            // A page that asks whether it may go does not hold up the next task.
            player = Some(Player::new(&running.origin).await?);
        } else if let Some(at) = &player
            && let Err(error) = at.step(line, task, &mut done.count).await
        {
            eprintln!("{name}, {task}: failed at `{line}`: {error:#}");
            player = None;
        }
    }
    done.done += usize::from(player.is_some());
    Ok(done)
}

fn version(installed: &Path, registry: &str, package: &str) -> String {
    let found = match registry {
        "npm" => {
            let file = installed.join("npm/node_modules").join(package);
            let text = std::fs::read(file.join("package.json")).unwrap_or_default();
            let parsed: Value = serde_json::from_slice(&text).unwrap_or_default();
            parsed["version"].as_str().map(str::to_owned)
        }
        _ => steps::python_version(installed, package),
    };
    found.unwrap_or_else(|| "?".to_owned())
}

struct Player {
    hands: Hands,
    origin: String,
}

impl Player {
    async fn new(origin: &str) -> anyhow::Result<Self> {
        let hands = Hands::new(origin)?;
        hands.record().await?;
        Ok(Self {
            hands,
            origin: origin.to_owned(),
        })
    }

    async fn step(&self, line: &str, task: &str, count: &mut Count) -> anyhow::Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "open" => {
                self.hands.browser.open("about:blank").await?;
                let address = format!("{}{rest}", self.origin);
                Ok(self.hands.browser.open(&address).await?)
            }
            "sign" => self.sign().await,
            "until" => steps::until(&self.hands.browser, rest).await,
            "run" => self.hands.evaluate(rest).await.map(drop),
            "get" | "file" => self.has(word, rest).await,
            "show" => {
                eprintln!("{}", text_of(&self.hands.look().await?));
                Ok(())
            }
            tool => {
                let starts_job = tool.starts_with('+');
                let may_fail = tool.starts_with('?');
                let tool = tool.trim_start_matches(['+', '?']);
                let mut arguments = match rest {
                    "" => json!({}),
                    rest => serde_json::from_str(rest).context("its arguments are not JSON")?,
                };
                let by_id = self.resolve(&mut arguments).await?;
                let input = Input {
                    what: format!("{task}: {line}"),
                    tool,
                    by_id,
                    starts_job,
                };
                let output = count.input(&self.hands, input, arguments).await?;
                ensure!(may_fail || !output.is_error, "{}", output.text);
                Ok(())
            }
        }
    }

    /// Signs in by a script, as every task begins with a browser of its own.
    async fn sign(&self) -> anyhow::Result<()> {
        let address = format!("{}/admin/login/", self.origin);
        self.hands.browser.open(&address).await?;
        steps::take(&self.hands.browser, SIGN_IN).await?;
        steps::take(&self.hands.browser, SIGNED_IN).await
    }

    /// Waits until what the server or the workspace holds has the text.
    async fn has(&self, word: &str, rest: &str) -> anyhow::Result<()> {
        let (path, text) = rest.split_once(" has ").context("it lacks ` has `")?;
        let since = std::time::Instant::now();
        loop {
            let held = if word == "file" {
                std::fs::read_to_string(self.hands.path(path)).unwrap_or_default()
            } else {
                steps::get(&self.origin, path).await.unwrap_or_default()
            };
            if held.contains(text) {
                return Ok(());
            }
            ensure!(since.elapsed() < LIMIT, "it has {held:.300}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Puts ids and points in the place of names. Returns whether no point was needed.
    async fn resolve(&self, arguments: &mut Value) -> anyhow::Result<bool> {
        let mut by_id = true;
        if let Some(path) = arguments.get("path").and_then(Value::as_str) {
            std::fs::write(self.hands.path(path), content_of(path))?;
        }
        let view = self.hands.look().await?;
        for key in ["on", "at", "from", "to"] {
            let Some(Value::String(named)) = arguments.get(key).cloned() else {
                continue;
            };
            let place = place(&view, &named);
            let place = place.with_context(|| format!("`{named}` is not there"))?;
            by_id &= place.is_string();
            arguments[key] = place;
        }
        if let Some(Value::Array(via)) = arguments.get_mut("via") {
            for one in via {
                let named = one.as_str().unwrap_or_default().to_owned();
                *one = place(&view, &named).with_context(|| format!("`{named}` is not there"))?;
            }
        }
        Ok(by_id)
    }
}

/// Makes what is uploaded: a picture of one pixel, or a table.
fn content_of(path: &str) -> &'static [u8] {
    if path.ends_with(".gif") {
        b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\xff\xff\xff!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
    } else {
        b"a,b\n1,2\n"
    }
}

/// Returns the text of a view, one line an element.
fn text_of(view: &View) -> String {
    let line = |one: &Element| {
        let states: Vec<_> = one.states.iter().map(|one| format!("{one:?}")).collect();
        format!(
            "{} {} {:?} {:?} {} {:?}",
            one.id,
            one.role,
            one.name,
            one.value.as_deref().unwrap_or_default(),
            states.join(" "),
            one.bounds.map(|at| (at.x, at.y, at.width, at.height)),
        )
    };
    let lines: Vec<_> = view.elements.iter().map(line).collect();
    format!("{:?} {:?}\n{}", view.tabs, view.dialog, lines.join("\n"))
}

/// Returns the id of the element that a text names, or a point in it.
fn place(view: &View, named: &str) -> Option<Value> {
    let (point, named) = match named.strip_prefix('@') {
        Some(rest) => {
            let (point, named) = rest.split_once(' ')?;
            let (x, y) = point.split_once(',')?;
            (
                Some((x.parse::<f64>().ok()?, y.parse::<f64>().ok()?)),
                named,
            )
        }
        None => (None, named),
    };
    let (role, name) = named.split_once(' ')?;
    let (name, number) = match name.rsplit_once(" #") {
        Some((name, number)) => (name, number.parse::<usize>().ok()?),
        None => (name, 1),
    };
    let is_named = |one: &Element| match name.strip_prefix('~') {
        Some(part) => one.name.contains(part),
        None => name == "*" || one.name == name,
    };
    let is_it = |one: &&Element| (role == "*" || one.role == role) && is_named(one);
    let is_covered = |one: &&Element| one.states.contains(&ElementState::Covered);
    let mut found: Vec<&Element> = view.elements.iter().filter(is_it).collect();
    // What is covered may be below something that scrolls away.
    found.sort_by_key(is_covered);
    let element = *found.get(number - 1)?;
    let Some((x, y)) = point else {
        return Some(json!(element.id.to_string()));
    };
    let bounds = element.bounds?;
    Some(json!([
        f64::from(bounds.x) + f64::from(bounds.width) * x,
        f64::from(bounds.y) + f64::from(bounds.height) * y
    ]))
}
