//! The provider on loopback: one thread a connection, one request a connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    calls::{self, Said},
    play::{Figures, Turn, episode},
    prompt::Prompt,
    task::Task,
    tokens,
    wire::{self, Request, Usage},
};

/// The longest request, in bytes.
const LONGEST: u64 = 64 << 20;

/// Timeout for a silent connection.
const SILENCE: Duration = Duration::from_secs(30);

/// Words of the instructions of the question what can be learned from a run.
const LOOKS_BACK: &str = "Write down for later runs what can be learned";

/// A player that answers. It plays until the process ends.
#[derive(Debug)]
pub struct Player {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tasks: Vec<Task>,
    figures: Mutex<Figures>,
}

impl Player {
    /// Starts one that knows these tasks, on a free port of this machine.
    ///
    /// # Errors
    /// If nothing can listen.
    pub fn start(tasks: Vec<Task>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = format!("http://{}/v1", listener.local_addr()?);
        let shared = Arc::new(Shared {
            tasks,
            figures: Mutex::default(),
        });
        let heard = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = heard.clone();
                // Whoever asks and goes away gets no answer; that is all.
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// As `--model` takes it.
    #[must_use]
    pub fn model(&self) -> String {
        format!("{}#player", self.address)
    }

    /// Returns the figures so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let figures = self.shared.figures.lock();
        figures.clone()
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(LONGEST.min(length)).read_to_end(&mut body)?;
    let (kind, said) = if first.starts_with("POST") {
        (
            "text/event-stream",
            shared.answer(&serde_json::from_slice(&body)?),
        )
    } else {
        ("application/json", wire::models())
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
        said.len()
    )
}

impl Shared {
    fn answer(&self, body: &Value) -> String {
        let request = Request::read(body);
        let prompt = Prompt::read(&request.instructions, &request.said);
        // Notes of earlier runs stand in the prompt, too, and name other goals.
        let begins = prompt.said.split_once("The goal:\n");
        let is_asked = |task: &&Task| match begins {
            Some((_, goal)) => goal.trim_start().starts_with(task.goal.trim()),
            None => prompt.said.contains(&task.goal),
        };
        let known = self.tasks.iter().filter(is_asked);
        let known = known.max_by_key(|task| task.goal.len()).cloned();
        if request.instructions.contains(LOOKS_BACK) {
            return looks_back(&request, &prompt);
        }
        let mut figures = self.figures.lock();
        let shown = prompt
            .picture
            .map_or(0, |(width, height)| tokens::of_picture(width, height));
        let fresh = tokens::of_text(&request.said) + shown;
        let cached = tokens::of_text(&request.instructions) + tokens::of_text(&request.tools);
        figures.prompts += 1;
        figures.pictures += u64::from(prompt.picture.is_some());
        figures.fresh_tokens += fresh;
        figures.fixed_tokens += cached;
        figures.unusable += u64::from(prompt.said.contains("Your reply could not be used"));
        let picture = request.picture.as_deref();
        let usage = |output| Usage {
            cached,
            fresh,
            output,
            number: request.calls,
        };
        if let Some(task) = known.as_ref().filter(|task| calls::has_calls(task)) {
            let said = calls::next(task, request.calls);
            let output = tokens::of_text(&said.text());
            return wire::stream(&said, usage(output));
        }
        let made = match known {
            Some(task) => Turn {
                task: &task,
                prompt: &prompt,
                picture,
                figures: &mut figures,
            }
            .play(),
            None => episode(goal(&prompt), &prompt, picture, &mut figures),
        };
        let reply = made.json();
        let text = reply.to_string();
        let output = tokens::of_text(&text);
        wire::stream(&Said::Words(text), usage(output))
    }
}

/// The goal in a prompt.
/// Answers the question what can be learned from a run, with as many words as it may have.
fn looks_back(request: &Request, prompt: &Prompt) -> String {
    let worked = format!(
        "For “{}” the controls that the goal names stood on the page in the order in which they \
         were needed; each was used once, by its role and its name. What was out of view came by \
         scrolling. The end could be seen on the page before the work was ended.",
        goal(prompt)
    );
    let did_not = "Nothing failed; waiting longer than the page needed was in vain.";
    let text = serde_json::json!({ "worked": worked, "did_not": did_not }).to_string();
    let usage = Usage {
        cached: tokens::of_text(&request.instructions),
        fresh: tokens::of_text(&request.said),
        output: tokens::of_text(&text),
        number: 0,
    };
    wire::stream(&Said::Words(text), usage)
}

fn goal(prompt: &Prompt) -> &str {
    let goal = prompt.said.split_once("The goal:\n");
    goal.and_then(|(_, goal)| goal.lines().next())
        .map_or("", str::trim)
}
