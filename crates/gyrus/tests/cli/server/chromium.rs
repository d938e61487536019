//! A real Chromium, spoken to over its pipe.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{TIMEOUT, World};

/// A browser with one tab. Dropping it ends it.
pub(crate) struct Chromium {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    number: u64,
    /// Complaints of the tab: violations of the policy, and errors of scripts.
    pub(crate) complaints: Vec<String>,
}

impl Chromium {
    pub(crate) fn start(world: &World) -> Self {
        // The shell gives it the pipes under the numbers that it wants.
        let mut child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 1>/dev/null 2>&1", "-"])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!(
                "--user-data-dir={}",
                world.path("chromium").display()
            ))
            .arg("about:blank")
            .env("HOME", world.path("person"))
            .env("TMPDIR", world.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            number: 0,
            complaints: Vec::new(),
        };
        let targets = browser.call("Target.getTargets", &json!({}));
        let tab = targets["targetInfos"].as_array().unwrap().iter();
        let tab = tab.clone().find(|one| one["type"] == "page").unwrap();
        let attach = json!({"targetId": tab["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let mut order = json!({"id": self.number, "method": method, "params": params});
        if !self.session.is_empty() {
            order["sessionId"] = json!(self.session);
        }
        self.to
            .write_all(format!("{order}\0").as_bytes())
            .expect("the browser lives");
        loop {
            let mut message = Vec::new();
            self.from.read_until(0, &mut message).unwrap();
            assert_eq!(message.pop(), Some(0), "the browser ended");
            let message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == self.number {
                // An expression that leaves the page may have no value any more.
                let has_left =
                    message["error"]["message"] == "Inspected target navigated or closed";
                assert!(
                    message["error"].is_null() || has_left,
                    "{method}: {message}"
                );
                return message["result"].clone();
            }
            let params = message["params"].to_string();
            let is_network = message["params"]["entry"]["source"] == "network";
            if message["method"] == "Runtime.exceptionThrown"
                || message["method"] == "Log.entryAdded" && !is_network
            {
                self.complaints.push(params);
            }
        }
    }

    /// Returns the value of an expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let order = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &order);
        answer["result"]["value"].clone()
    }

    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", &json!({"url": address}));
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let since = Instant::now();
        while self.value(&format!("Boolean({expression})")) != true {
            if since.elapsed() > TIMEOUT {
                let text = self.value("document.body.innerText");
                panic!("{expression}\n{:?}\n{text}", self.complaints);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the page shows these words.
    #[track_caller]
    pub(crate) fn shows(&mut self, words: &str) {
        self.wait(&format!(
            "document.body.innerText.includes({})",
            json!(words)
        ));
    }

    /// Waits until the page shows what is there as soon as it is there.
    #[track_caller]
    pub(crate) fn is_live(&mut self) {
        self.wait("document.querySelector('.connection')?.textContent === 'live'");
    }

    /// Presses and releases a key that types `text`.
    pub(crate) fn press(&mut self, key: &str, code: u32, text: &str) {
        let event = |kind: &str, text: &str| json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text});
        self.call("Input.dispatchKeyEvent", &event("keyDown", text));
        self.call("Input.dispatchKeyEvent", &event("keyUp", ""));
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
