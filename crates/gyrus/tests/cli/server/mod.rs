//! `gyrus serve`, as programs meet it.

mod cards;
mod accessible;
mod chromium;
mod document_000;
mod dashboard;
pub(crate) mod agents;
pub(crate) mod guard;
mod hooks;
mod killed;
mod libraries;
pub(crate) mod live;
mod long_runs;
mod run_pages;
mod places;
pub(crate) mod runs;
mod service;
pub(crate) mod triggers;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use gyrus_kernel::log_name;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::support::{TIMEOUT, World};

/// The secret of these tests.
pub(crate) const TOKEN: &str = "the-secret-of-these-tests-0123456789";

/// A server of a world. Dropping it kills it, and whatever drives a run of that world.
pub(crate) struct Server<'w> {
    world: &'w World,
    child: Child,
    /// Host and port.
    pub(crate) host: String,
    /// The code of the printed address.
    pub(crate) code: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl<'w> Server<'w> {
    pub(crate) fn start(world: &'w World) -> Self {
        Self::start_with(world, &[])
    }

    pub(crate) fn start_with(world: &'w World, more: &[&str]) -> Self {
        Self::start_in(world, more, &[])
    }

    /// Starts one with these variables in its environment.
    pub(crate) fn start_in(world: &'w World, more: &[&str], variables: &[(&str, &str)]) -> Self {
        let arguments = [&["serve", "--port", "0", "--token", TOKEN], more].concat();
        let mut command = world.command(&arguments);
        command.envs(variables.iter().copied());
        Self::of(world, command)
    }

    /// Starts the server that this command is.
    pub(crate) fn of(world: &'w World, mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").expect("an address");
        let (host, code) = address.split_once("/#").unwrap();
        Self {
            world,
            child,
            host: host.to_owned(),
            code: code.to_owned(),
        }
    }

    /// The process of the server.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends exactly this, and reads the answer to its end.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server may refuse before it has read everything.
        let _ = stream.write_all(request);
        read_answer(&mut stream)
    }

    /// Sends a request with these fields in its head.
    pub(crate) fn send(&self, method: &str, path: &str, head: &str, body: &str) -> Answer {
        let host = &self.host;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             content-length: {length}\r\n{head}\r\n{body}"
        );
        self.raw(request.as_bytes())
    }

    /// Returns the answer to a GET as it came.
    pub(crate) fn connect_and_read(&self, path: &str) -> Vec<u8> {
        let mut stream = self.connect();
        let host = &self.host;
        let head = bearer(TOKEN);
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &bearer(TOKEN), "")
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &bearer(TOKEN), "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_as(TOKEN, path, body)
    }

    pub(crate) fn post_as(&self, token: &str, path: &str, body: &Value) -> Answer {
        let head = format!("{}content-type: application/json\r\n", bearer(token));
        self.send("POST", path, &head, &body.to_string())
    }

    /// Starts a run for this goal, with these options, in the working folder.
    pub(crate) fn run(&self, goal: &str, options: &Value) -> Value {
        let workdir = self.world.work();
        let body = json!({"goal": goal, "workdir": workdir, "options": options});
        self.post("/api/runs", &body).is(202).json()
    }

    /// Waits until a command is as wanted; its view.
    #[track_caller]
    pub(crate) fn wait(&self, command: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/commands/{}", command["id"].as_str().unwrap());
        let since = std::time::Instant::now();
        loop {
            let view = self.get(&path).is(200).json();
            if wanted(&view["stage"]) {
                return view;
            }
            assert!(since.elapsed() < TIMEOUT, "{view:#}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until something holds that is asked of the server.
    #[track_caller]
    pub(crate) fn until(&self, holds: impl Fn() -> bool) {
        let since = std::time::Instant::now();
        while !holds() {
            assert!(since.elapsed() < TIMEOUT, "it never holds");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a command is over; its view.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, command: &Value) -> Value {
        self.wait(command, |stage| {
            stage["state"] == "ended" || stage["state"] == "cancelled"
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it, and leaves what it started.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // Nothing is dropped, so nothing else is killed.
        std::mem::forget(self);
    }

    /// Waits until it has ended by itself; its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let store = self.world.store();
        for run in self.world.runs() {
            if let Ok(Some(holder)) = store.holder(&log_name(run)) {
                let _ = holder.process.kill();
            }
        }
    }
}

pub(crate) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A reset after the answer takes nothing of it back.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    Answer {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: if is_chunked {
            unchunked(body)
        } else {
            body.to_owned()
        },
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        text.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}
