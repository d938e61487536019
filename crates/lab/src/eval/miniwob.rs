//! Pages of MiniWoB++ as tasks: <https://miniwob.farama.org>, in the Python package `miniwob`.
//!
//! A server on loopback hands out the package's folder. To a page it adds a script that draws the
//! episode from a stated seed, starts it at once with a stated clock, and writes the page's own
//! reward where a check finds it. What the page asks for (its utterance) is read by a look at the
//! same episode before the run, and is the run's goal.

use std::{
    fs, io,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    suite::Suite,
    task::{EvalTask, TaskBudget},
};
use crate::LabError;

/// The clock of an episode, in milliseconds. The pages' own 10 s are for programs that act within
/// the page; a run that looks, asks and acts takes longer.
const CLOCK_MS: u32 = 300_000;

/// Budget of a run.
const BUDGET: TaskBudget = TaskBudget {
    steps: 40,
    seconds: Some(300),
};

/// Timeout for a request to arrive.
const SILENCE: Duration = Duration::from_secs(10);

/// Folder of the pages, below that of the package.
const HTML: &str = "html";
const PAGES: &str = "miniwob";

/// The pages of a folder, served until the process ends.
pub(super) struct FolderServer {
    origin: String,
    names: Vec<String>,
}

impl FolderServer {
    pub(super) fn serve(folder: &Path) -> Result<Self, LabError> {
        let failed = |error: io::Error| {
            LabError::usage(format!("{} holds no MiniWoB++", folder.display()))
                .because(error)
                .hint("pip install miniwob --target FOLDER; then name FOLDER/miniwob")
        };
        let html = folder.join(HTML);
        let root = if html.is_dir() {
            html
        } else {
            folder.to_owned()
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(root.join(PAGES)).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            names.extend(name.strip_suffix(".html").map(str::to_owned));
        }
        names.sort();
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let root = root.clone();
                // Whoever asks and goes away gets nothing; that is all.
                thread::spawn(move || answer(stream, &root));
            }
        });
        Ok(Self {
            origin: format!("http://{address}"),
            names,
        })
    }

    /// A task a page. What it is about is known when its episode is.
    pub(super) fn suite(&self, name: &str) -> Suite {
        let check = "js:Number(document.documentElement.dataset.reward) > 0";
        let task = |page: &String| {
            let start = format!("{}/{PAGES}/{page}.html?clock={CLOCK_MS}", self.origin);
            EvalTask::at(page, &start, check, BUDGET)
        };
        Suite {
            name: name.to_owned(),
            tasks: self.names.iter().map(task).collect(),
            files: std::collections::BTreeMap::new(),
        }
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }
}

/// The address of an attempt at a page: its repeat is its seed.
pub(super) fn start(task: &EvalTask, repeat: u32) -> String {
    format!("{}&seed={repeat}", task.start_in(""))
}

/// Returns the request of an episode, in the page's words, as `gyrus` without arguments finds by a
/// look.
pub(super) fn utterance(mut gyrus: Command, start: &str) -> Result<String, LabError> {
    let looked = gyrus
        .args(["look", "--json", &format!("{start}&ask=1")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let seen: Value = serde_json::from_slice(&looked.stdout).unwrap_or_default();
    match seen["title"]
        .as_str()
        .filter(|title| !title.trim().is_empty())
    {
        Some(title) => Ok(title.to_owned()),
        None => Err(LabError::failed(format!("{start} asks for nothing"))),
    }
}

fn answer(stream: TcpStream, root: &Path) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut first = String::new();
    let mut reader = BufReader::new(stream.try_clone()?).take(16 << 10);
    reader.read_line(&mut first)?;
    let mut line = String::from(" ");
    while !line.trim().is_empty() || line == " " {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
    }
    let asked = first.split(' ').nth(1).unwrap_or_default();
    let (path, query) = asked.split_once('?').unwrap_or((asked, ""));
    let found = below(root, path).and_then(|file| Some((fs::read(&file).ok()?, file)));
    let mut stream = stream;
    let Some((bytes, file)) = found else {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
    };
    let kind = match file.extension().and_then(|end| end.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let body = if query.contains("seed=") {
        with_episode(&String::from_utf8_lossy(&bytes), query).into_bytes()
    } else {
        bytes
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

/// Returns the path of a file in the folder, never one outside of it.
fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path.trim_start_matches('/'));
    let is_plain = path
        .components()
        .all(|it| matches!(it, Component::Normal(_)));
    is_plain.then(|| root.join(path))
}

/// Returns the page with a seed set before its first script, and an episode that starts by itself.
fn with_episode(page: &str, query: &str) -> String {
    let number = |name: &str| -> u32 {
        let found = query
            .split('&')
            .find_map(|one| one.strip_prefix(name)?.strip_prefix('='));
        found.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let (seed, clock, asks) = (number("seed"), number("clock"), number("ask") == 1);
    let core = "core/core.js\"></script>";
    let seeded = format!("{core}<script>Math.seedrandom('{seed}')</script>");
    let starts = format!(
        "<script>(() => {{
  Math.seedrandom('{seed}');
  core.EPISODE_MAX_TIME = {clock};
  core.endEpisode = (reward, timed, reason) => {{
    if (core.EP_TIMER === null) return;
    clearTimeout(core.EP_TIMER);
    core.EP_TIMER = null;
    document.documentElement.dataset.reward = reward;
    const over = document.createElement('h1');
    over.textContent = 'The episode is over.';
    setTimeout(() => document.body.replaceChildren(over));
  }};
  addEventListener('load', () => {{
    core.startEpisodeReal();
    const asked = core.getUtterance();
    if ({asks}) document.title = asked.utterance ?? asked;
  }});
}})()</script></body>"
    );
    page.replacen(core, &seeded, 1)
        .replacen("</body>", &starts, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_folder_is_served() {
        let root = Path::new("/pages");
        for (path, expected) in [
            ("/core/core.js", Some("/pages/core/core.js")),
            ("/../secret", None),
            ("/core/../../secret", None),
            ("//etc/passwd", Some("/pages/etc/passwd")),
        ] {
            assert_eq!(below(root, path), expected.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn an_episode_has_its_seed_and_clock() {
        let page = "<script src=\"../core/core.js\"></script><body></body>";
        let page = with_episode(page, "clock=5000&seed=7&ask=1");
        assert!(
            page.contains("core.js\"></script><script>Math.seedrandom('7')</script>"),
            "{page}"
        );
        assert!(
            page.contains("EPISODE_MAX_TIME = 5000;") && page.contains("if (true)"),
            "{page}"
        );
    }
}
