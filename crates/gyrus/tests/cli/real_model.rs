//! A real model, small enough for any machine, drives whole runs.
//!
//! It is installed by hand, as `tests/real-model/README.md` says; `GYRUS_REAL_MODEL` names the
//! folder. Without it the test says so and passes. What such a model says is worth little, so only
//! what holds for every reply is asserted.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use gyrus_kernel::Entry;
use serde_json::Value;

use crate::support::{World, works};

/// The folder with `node_modules/node-llama-cpp` and the model's file.
const GYRUS_REAL_MODEL: &str = "GYRUS_REAL_MODEL";

/// The wrapper that puts the model behind an address.
const WRAPPER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/real-model/server.mjs"
);

/// The installed server and its model.
struct Installed {
    folder: PathBuf,
    file: PathBuf,
}

impl Installed {
    /// Or why it cannot be used.
    fn find() -> Result<Self, String> {
        let folder = env::var_os(GYRUS_REAL_MODEL).filter(|value| !value.is_empty());
        let folder = PathBuf::from(folder.ok_or(format!("{GYRUS_REAL_MODEL} is not set"))?);
        let missing = |what: &str| format!("{} holds no {what}", folder.display());
        if !folder.join("node_modules/node-llama-cpp").is_dir() {
            return Err(missing("node_modules/node-llama-cpp"));
        }
        let file = first_gguf(&folder).ok_or_else(|| missing("file *.gguf"))?;
        if !works("node", &["--version"]) {
            return Err("there is no `node`".to_owned());
        }
        Ok(Self { folder, file })
    }
}

fn first_gguf(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "gguf")
        })
        .min()
}

/// The model behind its address. Dropping it ends it.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(installed: &Installed) -> Self {
        let mut process = Command::new("node")
            .arg(WRAPPER)
            .args([&installed.folder, &installed.file])
            // Its end is the wrapper's, however this test ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = process.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).expect("the wrapper says its address");
        Self {
            process,
            address: said["address"].as_str().unwrap().to_owned(),
        }
    }

    /// As `--model` takes it.
    fn model(&self) -> String {
        format!("{}#smollm2", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_real_model_drives_whole_runs() {
    let installed = match Installed::find() {
        Ok(installed) => installed,
        Err(why) => {
            eprintln!("skipped: {why}; see tests/real-model/README.md");
            return;
        }
    };
    let served = Served::start(&installed);
    let model = served.model();
    is_measured(&model);
    answers(&model);
    acts(&model);
}

/// Its replies are bound to a schema: the question for one invites anything but JSON.
fn is_measured(model: &str) {
    let world = World::new("");
    let said = world.gyrus(&["models", "check", model]).exits(0);
    eprintln!("{}", said.out);
    let came = |tried: &str| {
        let mut lines = said.out.lines();
        let line = lines.find_map(|line| line.trim().strip_prefix(tried));
        line.map(str::trim).unwrap_or_default().to_owned()
    };
    assert_eq!(came("answers"), "yes");
    assert_eq!(came("replies by a schema"), "yes");
}

fn answers(model: &str) {
    let world = World::new("");
    let goal = "What is the capital of France?";
    let run = ["run", goal, "--loop", "single-shot", "--model", model];
    let said = world.gyrus(&run).exits(0);
    eprintln!("{}{}", said.err, said.out);
    assert_ne!(said.out.trim(), "");
    is_sound(&world);
}

/// Nothing measured says that it calls no tools, so its calls are real ones.
fn acts(model: &str) {
    let world = World::new("");
    fs::write(world.work().join("note.txt"), "Buy bread.\n").unwrap();
    let said = world.gyrus(&[
        "run",
        "Read the file note.txt and say what is in it.",
        "--loop",
        "react",
        "--model",
        model,
        "--max-steps",
        "2",
        // A model like this one calls anything.
        "--approve",
        "read-only",
    ]);
    eprintln!("{}{}", said.err, said.out);
    // Reached, failed, a limit, denied, parked, stuck; the model was there, and all was well said.
    assert!(matches!(said.code, Some(0 | 1 | 3..=6)), "{said:#?}");
    let entries = world.entries();
    let called = |entry: &Entry| matches!(entry, Entry::ToolCalled(_));
    assert!(entries.iter().any(called), "{entries:#?}");
    is_sound(&world);
}

/// The only run came to an end, its journal holds, and it can be run again from that alone.
fn is_sound(world: &World) {
    let entries = world.entries();
    let ended = |entry: &Entry| matches!(entry, Entry::RunEnded(_) | Entry::RunParked(_));
    assert!(entries.last().is_some_and(ended), "{entries:#?}");
    world.gyrus(&["runs", "verify"]).exits(0);
    let replayed = world.gyrus(&["replay", "last"]).exits(0);
    assert!(replayed.out.contains("; 0 differences;"), "{replayed:#?}");
}
