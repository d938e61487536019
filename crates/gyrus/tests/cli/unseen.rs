//! Untrusted text is printed so that everything in it is seen.

use gyrus_text::is_unseen;

use crate::support::{Said, World};

/// Each of these is told from the others by its name: two ways to command a terminal, a turned
/// text, a blank letter, a tag, a selector out of place.
const UNSEEN: &str = "\u{9b}2J \u{1b}[2J \u{202e}x \u{3164} \u{e0041} a\u{fe0f}\u{e0100}";

fn is_clean(said: &Said) {
    for text in [&said.out, &said.err] {
        let raw: Vec<_> = text
            .chars()
            .filter(|c| *c != '\n' && is_unseen(*c) && *c != '\u{fe0f}')
            .collect();
        assert!(raw.is_empty(), "{raw:x?} in {text}");
        assert!(!text.contains("a\u{fe0f}"), "{text}");
    }
}

#[test]
fn nothing_that_is_printed_hides() {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let (thought, told) = (format!("I ❤️ it. {UNSEEN}"), format!("❤️ {UNSEEN}"));
    let script = format!(
        r#"
[[reply]]
text = {}
calls = [{{ tool = "write", arguments = {{ path = {}, content = {} }} }}]
[[reply]]
calls = [{{ tool = "list", arguments = {{ path = "." }} }}]
[[reply]]
calls = [{{ tool = "write", arguments = {{ path = ".envrc", content = {} }} }}]
[[reply]]
calls = [{{ tool = "finish", arguments = {{ reached = true, answer = "done" }} }}]
"#,
        quoted(&thought),
        quoted(&format!("one {UNSEEN}.txt")),
        quoted(&told),
        quoted(&told),
    );
    let world = World::new(&script);
    let said = world.gyrus(&["run", &told, "--on-ask", "park"]).exits(5);
    is_clean(&said);
    assert!(said.err.contains("I ❤\u{fe0f} it."), "{}", said.err);
    // What a person decides on is shown to the last selector.
    let card = "┃ +❤<U+FE0F> <U+009B>2J ␛[2J <U+202E>x <U+3164> <U+E0041> \
                a<U+FE0F><U+E0100>";
    assert!(said.err.contains(card), "{}", said.err);
    let listed = world.gyrus(&["approvals"]).exits(0);
    is_clean(&listed);
    assert!(listed.out.contains(card), "{}", listed.out);

    let trace = world.gyrus(&["trace", "last"]).exits(0);
    is_clean(&trace);
    assert!(trace.out.contains("❤\\ufe0f"), "{}", trace.out);
    let step = trace.out.lines().next().unwrap();
    let step: serde_json::Value = serde_json::from_str(step).unwrap();
    assert_eq!(step["thought"], thought.as_str());

    let line = format!("cat 'a {told}'");
    let last = ["show", "last"];
    for (arguments, code) in [
        (&last[..], 0),
        (&["show", &told], 2),
        (&["runs", "list"], 0),
        (&["runs", "show", "last"], 0),
        (&["undo", "last"], 0),
        (&["policy", "explain", &line], 0),
    ] {
        let said = world.gyrus(arguments).exits(code);
        is_clean(&said);
        let text = said.out + &said.err;
        assert!(text.contains("<U+202E>"), "{arguments:?}: {text}");
    }
}
