//! The library for Python, and what it stands on: files that a run left.

use std::path::Path;

use serde_json::json;

use super::{Server, TOKEN, runs::ASKS};
use crate::support::{THREE_STEPS, World, said};

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
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python/src");
    let mut python = std::process::Command::new("python3");
    python
        .args(["-c", program, &format!("http://{}", server.host)])
        .arg(world.work())
        .env("PYTHONPATH", library)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GYRUS_TOKEN", TOKEN);
    said(python.output().unwrap()).exits(0);
}
