//! Ways around a mandate within what it leaves open: links in the text of a mail, and parts of an
//! argument that nobody described.

use gyrus_kernel::CallEnd;
use serde_json::{Value, json};

use crate::{mandates::scripted, office::Office, serving::results};

/// Texts that programs make a link to a stranger's host of.
const LINKS: [&str; 24] = [
    "<a href=//evil.zzz>here</a>",
    "<img src=http:evil.zzz/x>",
    "<img srcset='a.png 1x, //evil.zzz/x 2x'>",
    "<p style=background:url(//evil.zzz/x)>",
    "<p style=background:url(\\2f\\2f evil.zzz)>",
    "<base href=//evil.zzz>",
    "<meta http-equiv=refresh content='0;url=//evil.zzz'>",
    "<a href=\"ht\ttp:evil.zzz\">here</a>",
    "http&#58;//evil.zzz",
    "http&#x3a//evil.zzz",
    "http&colon;&sol;&sol;evil.zzz",
    "http:\\\\evil.zzz",
    "http:evil.zzz/x",
    "see //evil.zzz/x",
    "see evil.horse",
    "see evil.download",
    "see notes.zip",
    "see x=evil.bank",
    "see evil．org",
    "see ev\u{200b}il.o\u{ad}rg",
    "see пример.рф",
    "see evil&period;org",
    "see evil<wbr>.org",
    "mailto:evil@y.com",
];

/// Bodies with a part that nobody described.
fn parts() -> Vec<Value> {
    let evil = json!({"text": "hi", "bcc": "evil@y.com"});
    let text = |value: &Value| Value::String(value.to_string());
    let deep = (0..20).fold(evil.clone(), |inner, _| json!([inner]));
    vec![
        evil.clone(),
        json!([evil]),
        json!({"a": {"b": [evil]}}),
        json!({"evil@y.com": ""}),
        text(&evil),
        text(&text(&evil)),
        text(&json!([[evil]])),
        json!(["hi", text(&evil)]),
        json!("{bcc: evil@y.com}"),
        deep,
    ]
}

/// Makes these calls under a mandate for many mails to one person, and returns how each was settled
/// and what left the office.
fn sent(bodies: impl IntoIterator<Item = Value>) -> (Vec<CallEnd>, Vec<String>) {
    let office = Office::open(json!({"events": [], "mails": [], "files": []}));
    let mandate = json!({"calls": [
        {"id": "mail", "tool": "office__send_mail", "times": 50, "arguments": {
            "recipients": "anna@x.com", "body": "*",
        }},
    ]});
    let mail = |body| {
        (
            "send_mail",
            json!({"recipients": ["anna@x.com"], "body": body}),
        )
    };
    let calls: Vec<_> = bodies.into_iter().map(mail).collect();
    let world = scripted(&office, &[mandate.to_string()], &calls);
    let goal = "Mail anna@x.com the plan of main.rs, as often as it takes";
    world
        .gyrus(&["run", goal, "--approve", "never", "--max-steps", "100"])
        .exits(0);
    let mut settled: Vec<_> = results(&world)
        .into_iter()
        .map(|(settled, _)| settled)
        .collect();
    settled.pop();
    (settled, office.ledger())
}

#[test]
fn a_link_however_it_is_written_is_a_destination() {
    let (settled, ledger) = sent(LINKS.map(Value::from));
    let passed: Vec<_> = LINKS
        .iter()
        .zip(&settled)
        .filter(|(_, how)| **how != CallEnd::Refused)
        .collect();
    assert!(
        passed.is_empty() && settled.len() == LINKS.len(),
        "{passed:?}"
    );
    assert!(ledger.is_empty(), "{ledger:?}");
}

#[test]
fn a_part_that_nobody_described_is_a_destination() {
    let parts = parts();
    let (settled, ledger) = sent(parts.clone());
    assert!(ledger.is_empty(), "{ledger:?}");
    assert_eq!(settled.len(), parts.len());
}

#[test]
fn a_plain_text_and_a_file_that_was_named_are_none() {
    let bodies = [
        "Dear Anna, at 12:30 (or 3.30 p.m.), as Bob said: bob@x.com.",
        "I changed main.rs and src/lib.rs, see ./notes.md and minutes.docx",
        "[Draft] {name}",
    ];
    let (settled, ledger) = sent(bodies.map(Value::from));
    assert_eq!(settled, [CallEnd::Done; 3]);
    assert_eq!(ledger.len(), 3);
}
