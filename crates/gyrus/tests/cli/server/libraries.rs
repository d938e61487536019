//! The libraries for Python and TypeScript, and what they stand on: files that a run left.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::{Server, TOKEN, runs::ASKS};
use crate::support::{THREE_STEPS, World, said, works};

#[test]
fn files_that_a_run_left_are_listed_and_returned_and_no_others() {
    let world = World::new(THREE_STEPS);
    let server = Server::start(&world);
    std::fs::write(world.work().join("mine.txt"), "mine").unwrap();
    let accepted = server.run("say hello", &json!({"approve": "auto"}));
    server.wait_for_end(&accepted);
    let run = accepted["run"].as_str().unwrap();
    let files = server.get(&format!("/api/runs/{run}/files")).is(200).json();
    let files = files["files"].to_string();
    assert!(
        files.contains("\"out.txt\"") && !files.contains("mine"),
        "{files}"
    );
    let file = |path: &str| server.get(&format!("/api/runs/{run}/file?path={path}"));
    assert_eq!(file("out.txt").is(200).body, "hello\n");
    for path in [
        "mine.txt",
        "../person",
        "/etc/passwd",
        "",
        "out.txt/..",
        "%00",
    ] {
        file(path).is(404);
    }
    // A link that somebody put in its place leads nowhere.
    std::fs::remove_file(world.work().join("out.txt")).unwrap();
    std::os::unix::fs::symlink("mine.txt", world.work().join("out.txt")).unwrap();
    file("out.txt").is(404);
}

#[test]
fn the_library_for_python_starts_follows_answers_and_takes_the_result() {
    let world = World::new(ASKS);
    let server = Server::start(&world);
    let program = r#"
import sys
from gyrus_client import Gyrus, GyrusError
gyrus = Gyrus(sys.argv[1])
run = gyrus.start("go", sys.argv[2])
asked = []
def answer(question):
    asked.append(question.card["sentence"])
    question.approve()
result = run.wait(answer)
assert len(asked) == 1, asked
assert result.reached and result.answer == "done", result
assert run.files() == [".envrc"] and run.read_file(".envrc") == b"hello\n", run.files()
assert "+hello" in run.diff()
try:
    gyrus.start("go", "relative")
    raise AssertionError("a relative folder is refused")
except GyrusError as error:
    assert error.status == 400, error
"#;
    let mut python = python(&world);
    python.args(["-c", program, &format!("http://{}", server.host)]);
    said(python.arg(world.work()).output().unwrap()).exits(0);
}

/// The replies to the example of the README, which is told no once.
const COUNTS: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = ".envrc", content = "x" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "{\"lines\": 3}" } }]
[[reply]]
goal = "wait"
calls = [{ tool = "shell", arguments = { command = "until [ -e go ]; do sleep 0.01; done" } }]
"#;

fn client(name: &str) -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients");
    clients.join(name).canonicalize().unwrap()
}

fn python(world: &World) -> Command {
    let mut python = Command::new("python3");
    python
        .env("PYTHONPATH", client("python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GYRUS_TOKEN", TOKEN)
        .current_dir(world.path("."));
    python
}

/// Returns the example of a client's README, for this server and this folder.
fn example(name: &str, language: &str, world: &World, server: &Server<'_>) -> String {
    let readme = fs::read_to_string(client(name).join("README.md")).unwrap();
    let (_, code) = readme.split_once(&format!("```{language}\n")).unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let here = format!("Gyrus(\"http://{}\")", server.host);
    code.replace("Gyrus()", &here)
        .replace("/srv/notes", world.work().to_str().unwrap())
}

#[test]
fn the_example_of_the_library_for_python_runs_as_it_stands() {
    let world = World::new(COUNTS);
    let server = Server::start(&world);
    let program = example("python", "python", &world, &server);
    let ran = said(python(&world).args(["-c", &program]).output().unwrap()).exits(0);
    assert!(ran.out.ends_with("over {'lines': 3} []\n"), "{ran:?}");
    assert!(!world.work().join(".envrc").exists());
}

#[test]
fn the_library_for_typescript_is_installed_from_its_folder_and_its_example_runs() {
    if !works("npm", &["--version"]) {
        return;
    }
    let world = World::new(COUNTS);
    let server = Server::start(&world);
    let empty = world.path("empty");
    fs::create_dir(&empty).unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund"])
        .arg(client("typescript"))
        .env("HOME", world.path("."))
        .current_dir(&empty);
    said(npm.output().unwrap()).exits(0);
    // Node reads no types before its version 22.
    let program = example("typescript", "typescript", &world, &server)
        .replace("<{ lines: number }>", "")
        + "const other = await gyrus.start(\"wait\", process.argv[2]);\nawait other.stop();\n\
           await other.wait();\nconsole.log((await other.result()).state);\n";
    fs::write(empty.join("example.mjs"), program).unwrap();
    let mut node = Command::new("node");
    node.arg("example.mjs")
        .arg(world.work())
        .env("GYRUS_TOKEN", TOKEN)
        .current_dir(&empty);
    let ran = said(node.output().unwrap()).exits(0);
    assert!(ran.out.starts_with("over 3 []\n"), "{ran:?}");
    let types = empty.join("node_modules/gyrus-client/dist/index.d.ts");
    assert!(
        fs::read_to_string(types)
            .unwrap()
            .contains("follow(after?: number)")
    );
}
