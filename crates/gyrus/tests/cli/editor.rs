//! An editor at `gyrus acp`, for tests: it writes lines, and reads them on a thread.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};

use crate::support::{TIMEOUT, World};

/// An editor that has started the agent.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// All that was heard, in order.
    pub(crate) heard: Vec<Value>,
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Editor {
    /// Starts the agent with these flags; nothing is said yet.
    pub(crate) fn silent(world: &World, flags: &[&str]) -> Self {
        let mut command = world.command(&[&["acp"], flags].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            last: 0,
            heard: Vec::new(),
        }
    }

    /// Starts the agent and introduces itself with these capabilities.
    pub(crate) fn with(world: &World, flags: &[&str], capabilities: &Value) -> Self {
        let mut editor = Self::silent(world, flags);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        editor.call("initialize", &params).unwrap();
        editor
    }

    pub(crate) fn start(world: &World, flags: &[&str]) -> Self {
        Self::with(world, flags, &json!({}))
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request; returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Answers a request of the agent.
    pub(crate) fn answer(&mut self, request: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Answers a permission request by one of its options.
    pub(crate) fn choose(&mut self, request: &Value, option: &str) {
        let options = request["params"]["options"].as_array().unwrap();
        assert!(
            options.iter().any(|one| one["optionId"] == option),
            "{option}: {request:#}"
        );
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.answer(request, &outcome);
    }

    /// Reads until a message is wanted.
    #[track_caller]
    pub(crate) fn hears(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => line,
                Err(why) => panic!("{why}; it said {:#?}", self.heard),
            };
            let message: Value = serde_json::from_str(&line).expect("only messages stand there");
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(crate) fn result(&mut self, id: u64) -> Result<Value, Value> {
        let answers = |message: &Value| message["id"] == id && message["method"].is_null();
        let message = self.hears(answers);
        match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(message["error"].clone()),
        }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.ask(method, params);
        self.result(id)
    }

    /// Opens a session in the working folder; returns its id.
    #[track_caller]
    pub(crate) fn session(&mut self, world: &World) -> String {
        let params = json!({"cwd": world.work(), "mcpServers": []});
        let new = self.call("session/new", &params).unwrap();
        new["sessionId"].as_str().unwrap().to_owned()
    }

    /// Prompts with words; returns the id of the request.
    pub(crate) fn prompt(&mut self, session: &str, words: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": words}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        self.ask("session/prompt", &params)
    }

    /// Waits for the end of a turn; returns the stop reason.
    #[track_caller]
    pub(crate) fn ends(&mut self, prompt: u64) -> String {
        let result = self.result(prompt);
        let reason = result.as_ref().map(|end| end["stopReason"].as_str());
        match reason {
            Ok(Some(reason)) => reason.to_owned(),
            _ => panic!("{result:?}"),
        }
    }

    /// Waits for a request of the agent.
    #[track_caller]
    pub(crate) fn asked(&mut self, method: &str) -> Value {
        self.hears(|message| message["method"] == method)
    }

    /// The updates of a session of one kind.
    pub(crate) fn updates(&self, session: &str, kind: &str) -> Vec<&Value> {
        let updates = self.heard.iter().filter(|message| {
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        });
        let updates = updates.map(|message| &message["params"]["update"]);
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// The text of the updates of one kind.
    pub(crate) fn text(&self, session: &str, kind: &str) -> String {
        let updates = self.updates(session, kind).into_iter();
        let texts = updates.map(|update| update["content"]["text"].as_str().unwrap());
        texts.collect()
    }

    /// Returns the words of the agent to the person.
    pub(crate) fn words(&self, session: &str) -> String {
        self.text(session, "agent_message_chunk")
    }

    /// Closes the input, and waits for the end of the process; returns its exit code.
    pub(crate) fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}
