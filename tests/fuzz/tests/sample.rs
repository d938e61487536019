//! A sample of each target, the same every time. `cargo xtask fuzz` goes on from there.

use gyrus_fuzz::{
    Target,
    campaign::{Until, run},
    targets::{Editor, Line, PolicyFile, Redaction},
};

fn holds<T: Target>(target: &T, inputs: u64) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let note = folder.path().join("last");
    let report = run(target, 1, Until::Tried(inputs), &note).expect("a note can be written");
    if let Some(failure) = report.failure {
        let input = String::from_utf8_lossy(&failure.input);
        panic!("{}: {}\n  {input:?}", T::NAME, failure.why);
    }
}

#[test]
fn command_lines() {
    holds(&Line::new(), 400);
}

#[test]
fn editors() {
    let editor = Editor::new().expect("a place for journals");
    holds(&editor, 300);
    assert!(editor.messages() > 1_000, "{}", editor.messages());
}

#[test]
fn policies() {
    holds(&PolicyFile::new(), 2_000);
}

#[test]
fn redaction() {
    holds(&Redaction::new(), 2_000);
}
