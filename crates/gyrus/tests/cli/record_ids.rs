//! Pages of records have addresses with ids: a replay follows the id of the link that it clicked,
//! and a model that takes over in the middle goes on from there.

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

const COMMAND: &str = "Note \"likes tea\" for Ada Lovelace.";

const NOTES: &str = r#"
[[reply]]
find = { link = '(\w+) link "Ada Lovelace"' }
text = '''{"note": "her page", "actions": [{"do": "click", "on": "{{link}}"}]}'''
[[reply]]
find = { note = '(\w+) textbox "Note"', save = '(\w+) button "Save"' }
text = '''{"note": "all at once", "actions": [{"do": "type_text", "on": "{{note}}", "text": "likes tea"}, {"do": "click", "on": "{{save}}"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "It is noted."}]}'''
"#;

/// Presses the button that has another name now, and finishes.
const FINISHES: &str = r#"
[[reply]]
find = { save = '(\w+) button "Fix it"' }
text = '''{"note": "only that is left", "actions": [{"do": "click", "on": "{{save}}"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "It is noted."}]}'''
"#;

/// The people of the office: their names, and where the links lead.
type People = Arc<Mutex<Vec<(&'static str, &'static str)>>>;

struct Office {
    address: String,
    people: People,
    button: Arc<Mutex<&'static str>>,
    /// The path and the body of what was sent.
    notes: Arc<Mutex<Vec<String>>>,
}

impl Office {
    fn open() -> Self {
        let ada = vec![("Ada Lovelace", "/people/3/edit")];
        let people: People = Arc::new(Mutex::new(ada));
        let button = Arc::new(Mutex::new("Save"));
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let (listed, named, taken) = (people.clone(), button.clone(), notes.clone());
        let address = http::serve(move |asked| {
            let path = asked.path().to_owned();
            if asked.method() == "POST" {
                let sent = format!("{path} {}", asked.text());
                taken.lock().push(sent);
                return "<!doctype html><title>Done</title><p role=status>It is noted.</p>".into();
            }
            if path == "/" {
                let people = listed.lock();
                let rows = people
                    .iter()
                    .map(|(name, to)| format!("<li><a href='{to}'>{name}</a></li>"));
                let rows = rows.collect::<String>();
                return format!("<!doctype html><title>People</title><ul>{rows}</ul>");
            }
            // A page may put itself at the address of another record.
            let moved = match path.strip_suffix("?as=7") {
                Some(_) => "<script>history.replaceState(0, '', '/people/7/edit')</script>",
                None => "",
            };
            format!(
                "<!doctype html><title>Person</title><form method=post>\
                 <label>Note <input name=note></label><button>{}</button></form>{moved}",
                named.lock()
            )
        });
        Self {
            address,
            people,
            button,
            notes,
        }
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().clone()
    }
}

/// A world that learned to note something, and may do it again.
fn taught(office: &Office) -> World {
    let world = World::new(NOTES);
    let person = Principal {
        surface: "command line".to_owned(),
        id: "tester".to_owned(),
    };
    let grant = Grant::Origin {
        origin: office.address.clone(),
    };
    let work = world.work().canonicalize().unwrap();
    grants::give(&world.store(), &work, &[grant], &person).unwrap();
    let fixed = ["run", "--approve", "auto", "--url", &office.address];
    let checks = ["--check", "text:It is noted.", "--require", "checked"];
    let arguments = [&fixed[..], &checks, &["--", COMMAND]].concat();
    ended(browsing(&world, &arguments).spawn().unwrap()).exits(0);
    assert_eq!(office.notes(), ["/people/3/edit note=likes+tea"]);
    world
        .gyrus(&["procedures", "promote", "note", "--yes"])
        .exits(0);
    world
}

#[test]
fn a_replay_follows_the_id_of_the_link_that_it_clicked() {
    if !has_browser() {
        return;
    }
    let office = Office::open();
    let world = taught(&office);
    let asks = |who: &str| {
        let command = format!("Note \"is 3 years old\" for {who}.");
        let arguments = ["run", "--approve", "auto", "--", &command];
        ended(without_model(&world, &arguments))
    };
    *office.people.lock() = vec![
        ("Mary Shelleys", "/people/40/edit"),
        ("Mary Shelley", "/people/41/edit"),
        ("Grace Hopper", "/people/9/delete"),
        ("Alan Turing", "/people/5/edit?as=7"),
        ("Ada Lovelace", "/people/3/edit"),
        ("Ada Lovelace", "/people/4/edit"),
        ("Emmy Noether", "/people/new/edit"),
    ];
    asks("Mary Shelley").exits(0);
    assert_eq!(questions(&world), 0);
    assert_eq!(office.notes()[1..], ["/people/41/edit note=is+3+years+old"]);
    // Another deed, a page of another record, two of one name, and no id at all.
    for who in [
        "Grace Hopper",
        "Alan Turing",
        "Ada Lovelace",
        "Emmy Noether",
    ] {
        asks(who).exits(7);
    }
    assert_eq!(office.notes().len(), 2);
}

#[test]
fn a_model_finishes_from_where_the_replay_stood() {
    if !has_browser() {
        return;
    }
    let office = Office::open();
    let world = taught(&office);
    *office.people.lock() = vec![("Mary Shelley", "/people/41/edit")];
    *office.button.lock() = "Fix it";
    fs::write(world.path("script.toml"), FINISHES).unwrap();
    let command = "Note \"likes coffee\" for Mary Shelley.";
    let arguments = [
        "run",
        "--approve",
        "auto",
        "--require",
        "checked",
        "--",
        command,
    ];
    let said = ended(browsing(&world, &arguments).spawn().unwrap()).exits(0);
    assert!(said.err.contains("at step 3 of 3"), "{said:#?}");
    // The model pressed one button: what was typed before stayed, and was sent once.
    assert_eq!(office.notes()[1..], ["/people/41/edit note=likes+coffee"]);
}
