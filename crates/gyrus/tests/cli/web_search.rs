//! Searching the web by each provider, on a server of the test.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use gyrus_kernel::Entry;

use crate::{http, support::World};

const FINISH: &str =
    "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"ok\" } }]\n";

fn search(query: &str) -> String {
    format!(
        "[[reply]]\ncalls = [{{ tool = \"web_search\", arguments = {{ query = \"{query}\" }} }}]\n"
    )
}

/// Returns what the calls of the only run were told.
fn told(world: &World) -> Vec<String> {
    let entries = world.entries().into_iter();
    let results = entries.filter_map(|entry| match entry {
        Entry::ToolResulted(outcome) => Some(format!("{:?}", outcome.text)),
        _ => None,
    });
    results.collect()
}

fn configured(script: &str, section: &str) -> World {
    let world = World::new(script);
    fs::create_dir_all(world.path("home")).unwrap();
    let config = format!("[web-search]\n{section}\n");
    fs::write(world.path("home/config.toml"), config).unwrap();
    world
}

const KEY: &str = "search-key-hunter22-value";

#[test]
fn each_provider_is_asked_in_its_own_way() {
    let found = |passage: &str| {
        format!(
            r#"[{{"title": "A\npage", "url": "http://127.0.0.1:1/fo\n\nund", "{passage}": "its <b>words</b>"}},
                {{"title": "script", "url": "javascript:alert(1)"}}, 7]"#
        )
    };
    let bodies = [
        ("searxng", format!("{{\"results\": {}}}", found("content"))),
        (
            "brave",
            format!("{{\"web\": {{\"results\": {}}}}}", found("description")),
        ),
        ("tavily", format!("{{\"results\": {}}}", found("content"))),
        ("exa", format!("{{\"results\": {}}}", found("text"))),
    ];
    for (provider, body) in bodies {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        let server = http::serve(move |message| {
            let (method, path) = (message.method(), message.path());
            let asked = format!("{method} {path}\n{}\n{}", message.head, message.text());
            heard.lock().unwrap().push(asked);
            body.clone()
        });
        let section = format!("provider = \"{provider}\"\nurl = \"{server}\"\nkey = \"MY_KEY\"");
        let read = "[[reply]]\ncalls = [{ tool = \"fetch\", arguments = { url = \"http://127.0.0.1:1/found\" } }]\n";
        let world = configured(&(search("two words & more") + read + FINISH), &section);
        let mut run = world.command(&["run", "look", "--workdir", ".", "--on-ask", "deny"]);
        let run = run.env("MY_KEY", KEY).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        let asked = asked.lock().unwrap().join("\n");
        assert!(asked.contains(KEY), "{asked}");
        let is_there = match provider {
            "searxng" => asked.contains("GET /search?format=json&q=two+words+%26+more\n"),
            "brave" => asked.contains("/res/v1/web/search?") && asked.contains("count=8"),
            "tavily" => asked.contains("POST /search\n") && asked.contains("\"max_results\":8"),
            _ => asked.contains("POST /search\n") && asked.contains("\"numResults\":8"),
        };
        assert!(is_there, "{provider}: {asked}");
        let told = told(&world);
        let expected = r"1 result by ";
        assert!(told[0].contains(expected), "{told:?}");
        assert!(told[0].contains("1. A page"), "{told:?}");
        assert!(told[0].contains("127.0.0.1:1/found"), "{told:?}");
        // What is found may be read unasked; that this machine is not fetched from is another matter.
        assert!(
            told[1].contains("is not reached, as its address"),
            "{told:?}"
        );
        let exposed = world.gyrus(&["show", "last"]).out;
        assert!(!exposed.contains(KEY), "{exposed}");
        fs::remove_file(world.path("home/config.toml")).unwrap();
        world.replays();
    }
}

#[test]
fn what_goes_wrong_is_said() {
    let of = |status: u16, body: &'static str| {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = http::Message::read(&stream);
                let _ = http::answer(&stream, status, "text/html", body);
            }
        });
        origin
    };
    // The text is cut within the key.
    let with_key = format!("{}{KEY}", "x".repeat(290)).leak();
    for (provider, status, body, expected) in [
        ("brave", 500, &*with_key, "it said: xxx"),
        ("brave", 401, "{}", "must set BRAVE_API_KEY to a valid key"),
        ("exa", 429, "slow down", "asked too often (status 429)"),
        (
            "tavily",
            500,
            "<h1>oops</h1>",
            "status 500 Internal Server Error; it said: <h1>oops",
        ),
        ("brave", 200, "<html>", "did not answer in JSON, so `url`"),
        ("searxng", 403, "Forbidden", "`search.formats`"),
        (
            "searxng",
            200,
            "{\"results\": {\"a\": 1}}",
            "no list of results; it said: {",
        ),
        ("searxng", 302, "", "status 302"),
    ] {
        let section = format!("provider = \"{provider}\"\nurl = \"{}\"", of(status, body));
        let world = configured(&(search("words") + FINISH), &section);
        let mut run = world.command(&["run", "look", "--workdir", ".", "--on-ask", "deny"]);
        for name in ["BRAVE_API_KEY", "EXA_API_KEY", "TAVILY_API_KEY"] {
            run.env(name, KEY);
        }
        run.output().unwrap();
        let told = told(&world);
        assert!(told[0].contains(expected), "{provider} {status}: {told:?}");
        assert!(!told[0].contains(&KEY[..8]), "{told:?}");
    }
    // Without a key, and without a server.
    let world = configured(&(search("words") + FINISH), "provider = \"brave\"");
    world.run(&[]).exits(0);
    assert!(
        told(&world)[0].contains("Brave has no key"),
        "{:?}",
        told(&world)
    );
    for (section, words) in [
        ("provider = \"searxng\"", "SearXNG needs `url`"),
        (
            "provider = \"exa\"\nurl = \"ftp://x\"",
            "must start with http",
        ),
        (
            "provider = \"exa\"\nkey = \"sk-1\"",
            "`key` is not the name",
        ),
        ("provider = \"brav\"", "did you mean `brave`?"),
    ] {
        configured(FINISH, section).run(&[]).exits(2).says(words);
    }
    // Nothing is offered that is not configured.
    let world = World::new(&(search("words") + FINISH));
    world.run(&[]).exits(0);
    assert!(told(&world).is_empty() || !told(&world)[0].contains("result by"));
    assert!(!world.gyrus(&["tools"]).out.contains("web_search"));
}
