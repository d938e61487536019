//! A replay sends what was meant or hands over: whatever the page has become since, and whatever it
//! does while the button is pressed. The list of the bank says what really happened.

use std::{fs, sync::Arc};

use gyrus_contract::{Grant, Principal};
use gyrus_kernel::grants;
use parking_lot::Mutex;

use crate::{
    browsing::{browsing, ended, has_browser},
    http,
    learning::{questions, without_model},
    support::World,
};

const COMMAND: &str = "Record 7 for Alan Turing.";

/// Records an amount, and finishes.
const RECORDS: &str = r#"
[[reply]]
find = { who = '(\w+) combobox "Recipient"', sum = '(\w+) textbox "Amount', press = '(\w+) button "Record it"' }
text = '''{"note": "all at once", "actions": [{"do": "select_option", "on": "{{who}}", "option": "Alan Turing"}, {"do": "type_text", "on": "{{sum}}", "text": "7"}, {"do": "click", "on": "{{press}}"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "It is recorded."}]}'''
"#;

const PAGE: &str = r#"<!doctype html><title>Ledger</title><h2>Record a sum</h2>
<form method=post action=/record><label>Recipient <select name=to><option value="">Choose</option>
<optgroup label=Debtors><option value=98>Alan Turing</option><option value=97>Grace Hopper</option></optgroup>
<optgroup label=Staff><option value=11>Mary Shelley</option></optgroup></select></label>
<label>Amount in EUR <input name=amount placeholder="EUR"></label> <p>Fee: 0.50 EUR</p>
<button>Record it</button></form><h2>Recorded</h2><ul>RECORDED</ul>"#;

/// A ledger whose page is changed: one text stands for another.
struct Ledger {
    address: String,
    recorded: Arc<Mutex<Vec<String>>>,
    change: Arc<Mutex<(&'static str, &'static str)>>,
}

impl Ledger {
    fn open() -> Self {
        let recorded: Arc<Mutex<Vec<String>>> = Arc::default();
        let change = Arc::new(Mutex::new(("", "")));
        let (taken, changed) = (recorded.clone(), change.clone());
        let address = http::serve(move |asked| match asked.method() {
            "POST" => {
                taken.lock().push(asked.text());
                "<!doctype html><title>Thanks</title><p role=status>It is recorded.</p>".to_owned()
            }
            _ => {
                let rows = taken.lock().clone();
                let row = |_: &String| "<li>Alan Turing 7.00 EUR <input type=checkbox></li>";
                let rows: String = rows.iter().map(row).collect();
                let (from, to) = *changed.lock();
                let page = PAGE.replace("RECORDED", &rows);
                if from.is_empty() {
                    page
                } else {
                    page.replace(from, to)
                }
            }
        });
        Self {
            address,
            recorded,
            change,
        }
    }

    fn recorded(&self) -> Vec<String> {
        self.recorded.lock().clone()
    }
}

fn world(ledger: &Ledger) -> World {
    let world = World::new(RECORDS);
    let person = Principal {
        surface: "command line".to_owned(),
        id: "tester".to_owned(),
    };
    let grant = Grant::Origin {
        origin: ledger.address.clone(),
    };
    let work = world.work().canonicalize().unwrap();
    grants::give(&world.store(), &work, &[grant], &person).unwrap();
    world
}

#[test]
fn a_replay_never_sends_what_was_not_meant() {
    if !has_browser() {
        return;
    }
    let ledger = Ledger::open();
    let world = world(&ledger);
    let check = ["--check", "text:It is recorded.", "--require", "checked"];
    let start = ["run", "--approve", "auto", "--url", &ledger.address];
    let arguments = [&start[..], &check, &["--", COMMAND]].concat();
    ended(browsing(&world, &arguments).spawn().unwrap()).exits(0);
    let listed = world.gyrus(&["procedures", "list", "--json"]).exits(0);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let name = listed[0]["name"]
        .as_str()
        .unwrap_or_else(|| panic!("{listed:#}"));
    world
        .gyrus(&["procedures", "promote", name, "--yes"])
        .exits(0);
    fs::write(world.path("script.toml"), "").unwrap();
    let replay = |command: &str| {
        ended(without_model(
            &world,
            &["run", "--approve", "auto", "--", command],
        ))
    };

    // It survives its own effect, and other values.
    replay(COMMAND).exits(0);
    assert_eq!(questions(&world), 0);
    replay("Record 12 for Grace Hopper.").exits(0);
    let meant = ["to=98&amount=7", "to=98&amount=7", "to=97&amount=12"];
    assert_eq!(ledger.recorded(), meant);

    let turing = "<option value=98>Alan Turing</option>";
    for (from, to, told) in [
        (
            turing,
            "<option value=98>Alan Turing</option><option value=12>Alan Turing</option>",
            "fits 2 options",
        ),
        (
            "<option value=11>",
            "<option value=12>Alan Turing</option><option value=11>",
            "fits 2 options",
        ),
        (
            turing,
            "<option value=12>Alan Turing</option>",
            "means another value",
        ),
        ("Debtors", "Creditors", "Creditors: Alan Turing"),
        ("/record", "/transfer", "is sent to"),
        ("Record a sum", "Forgive a debt", "Forgive a debt"),
        ("Amount in EUR", "Amount in thousands", "is not there"),
        (r#"placeholder="EUR""#, r#"placeholder="USD""#, "USD"),
        ("0.50 EUR", "50.00 EUR", "50.00 EUR"),
        (
            "<button>",
            "<label>Copy <input name=cc value=eve></label><button>",
            "Copy",
        ),
        (
            "</form>",
            "</form><script>document.forms[0].onsubmit = () => { document.forms[0].to.value = 11 }</script>",
            "Blocked 1 request",
        ),
    ] {
        *ledger.change.lock() = (from, to);
        let said = replay(COMMAND);
        assert_ne!(said.code, Some(0), "{from}: {said:#?}");
        assert_eq!(ledger.recorded(), meant, "{to}: {said:#?}");
        assert!(said.err.contains(told), "{told}: {said:#?}");
    }
    // What cannot be chosen never counts, nor what stands beside the form.
    for (from, to) in [
        (
            turing,
            "<option value=1 hidden>Alan Turing</option><option value=2 disabled>Alan Turing</option><option value=98>Alan Turing</option>",
        ),
        (
            "<h2>Recorded",
            "<p>Advice: 99.00 EUR <input></p><h2>Recorded",
        ),
    ] {
        *ledger.change.lock() = (from, to);
        replay(COMMAND).exits(0);
    }
    assert_eq!(ledger.recorded()[3..], ["to=98&amount=7", "to=98&amount=7"]);
}
