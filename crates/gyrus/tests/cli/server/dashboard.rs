//! The dashboard, as a person meets it in a real Chromium, and without scripts.

use serde_json::json;

use super::{Server, chromium::Chromium, guard::cookie_of};
use crate::{browsing::has_browser, support::World};

/// Asks for approval of a file, then waits for a file `go`. All of its texts want to be elements.
const HOSTILE: &str = r#"
[[reply]]
text = "May I? <img src=x onerror=\"document.title='taken'\"></section><script>document.title='taken'</script>"
calls = [{ tool = "write", arguments = { path = ".envrc", content = "one\u202E\n<script>document.title='taken'</script>\nlast line\n" } }]
[[reply]]
text = "Now I wait."
calls = [{ tool = "shell", arguments = { command = "touch 'a<svg onload=x>.html'; ls; printf '<script>document.title=1</script>\n'; until [ -e go ]; do sleep 0.01; done" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "It is <b>done</b>." } }]
"#;

/// The number of elements that only a text of a run could have made.
const TAKEN: &str = "document.title.includes('taken') ? -1 : \
     document.querySelectorAll('main script, main img, main svg, main b b, main iframe').length";

#[test]
fn a_run_is_started_followed_answered_by_keyboard_and_steered() {
    if !has_browser() {
        return;
    }
    let world = World::new(HOSTILE);
    let server = Server::start(&world);
    let mut browser = Chromium::start(&world);
    let address = |path: &str| format!("http://{}{path}", server.host);
    browser.open(&address("/"));
    browser.shows("gyrus serve open");
    browser.open(&address(&format!("/#{}", "0".repeat(64))));
    browser.shows("Not let in: the code does not count");
    browser.open(&address(&format!("/?#{}", server.code)));
    browser.shows("No run is like this.");
    assert!(
        !browser
            .value("location.href")
            .to_string()
            .contains(&server.code)
    );
    browser.is_live();

    let goal = "write it </title><script>document.title='taken'</script>";
    let fill = json!([goal, world.work()]);
    browser.value(&format!(
        "(([goal, folder]) => {{ const form = document.querySelector('.new form'); \
         form.goal.value = goal; form.workdir.value = folder; form.requestSubmit(); }})({fill})"
    ));
    browser.wait("document.querySelector('.runs .state.waiting')");
    browser.wait("document.title.startsWith('(1) ')");
    assert_eq!(browser.value(TAKEN), 0);

    // The card is whole, what is unseen on it is named, and the keyboard is enough.
    browser.open(&address("/waiting"));
    browser.shows("one⟨U+202E⟩");
    browser.shows("last line");
    browser.is_live();
    assert_eq!(browser.value(TAKEN), 0);
    let run = browser.value("document.querySelector('.question a').getAttribute('href')");
    let run = run.as_str().unwrap().to_owned();
    browser.press("q", 81, "q");
    browser.wait("document.activeElement.value === 'once'");
    browser.press("Enter", 13, "\r");
    // It stays, unless the run has read the answer before the page is drawn.
    browser.wait("/answered: approved by browser|Nothing waits/.test(document.body.innerText)");

    // The page grows while the run does.
    browser.open(&address(&run));
    browser.shows("approved by browser (dashboard)");
    browser.shows("Now I wait.");
    browser.is_live();
    browser.value(
        "(() => { const form = document.querySelector('.steer'); form.text.value = 'and be kind'; \
         form.requestSubmit(); })()",
    );
    browser.wait("document.querySelector('.steer textarea')?.value === ''");
    browser.is_live();
    std::fs::write(world.work().join("go"), "").unwrap();
    browser.wait("document.querySelector('.heading .word.claimed')");
    browser.shows("and be kind");
    browser.shows("It is <b>done</b>.");
    browser.shows("a<svg onload=x>.html");
    browser.wait("!document.querySelector('.steer')");
    assert_eq!(browser.value(TAKEN), 0);
    let ids = "[...document.querySelectorAll('.row')].map((row) => row.id)";
    assert_eq!(
        browser.value(&format!("{ids}.length")),
        browser.value(&format!("new Set({ids}).size")),
        "no row is there twice"
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
    assert_eq!(world.file(".envrc").lines().count(), 3);
}

#[test]
fn pages_work_without_scripts_and_refuse_forms_of_others() {
    let world = World::new(HOSTILE);
    let server = Server::start(&world);
    let refused = server.send("GET", "/", "", "").is(401);
    assert!(refused.body.contains("gyrus serve open"), "{refused:?}");
    let cookie = cookie_of(&server);
    let ask = |method: &str, path: &str, more: &str, body: &str| {
        let form = "content-type: application/x-www-form-urlencoded\r\n";
        server.send(
            method,
            path,
            &format!("cookie: {cookie}\r\n{form}{more}"),
            body,
        )
    };
    let own = format!("origin: http://{}\r\n", server.host);
    let folder = world.work().display().to_string();
    let body = format!("goal=write+%3Cb%3Eit&workdir={folder}&max-steps=9&model=&loop=");
    ask("POST", "/runs", "origin: http://127.0.0.1:1\r\n", &body).is(403);
    ask("POST", "/runs", "origin: null\r\n", &body).is(403);
    let wrong = ask("POST", "/runs", &own, "goal=x&workdir=nowhere").body;
    assert!(wrong.contains("That was not done"), "{wrong}");
    ask("POST", "/runs", &own, &body).is(303);
    let since = std::time::Instant::now();
    let card = loop {
        let page = ask("GET", "/waiting", "", "").is(200).body;
        if page.contains("/answer") {
            break page;
        }
        assert!(since.elapsed() < crate::support::TIMEOUT, "{page}");
    };
    assert!(
        card.contains("&lt;script&gt;") && card.contains("last line"),
        "{card}"
    );
    let action = card
        .split("action=\"")
        .find(|rest| rest.contains("/answer\""));
    let action = action.unwrap().split('"').next().unwrap();
    ask("POST", action, &own, "answer=perhaps").is(400);
    let no = "answer=no&words=use+another&back=%2F%2Fevil.example";
    let answered = ask("POST", action, &own, no).is(303);
    assert!(answered.head.contains("location: /waiting"), "{answered:?}");
    let again = ask("POST", action, &own, no);
    assert!(
        again.status == 409 && again.body.contains("<h1>"),
        "{again:?}"
    );

    let listed = ask(
        "GET",
        "/?state=over&outcome=&agent=&text=write&before=",
        "",
        "",
    );
    listed.is(200);
    ask("GET", "/?state=nonsense", "", "").is(400);
    let page = ask("GET", "/runs/last?before=3", "", "").is(200).body;
    assert!(page.contains("write &lt;b&gt;it"), "{page}");
    assert!(!page.contains("data-after"), "earlier steps do not change");
    let style = page.split("href=\"/web/").nth(1).unwrap();
    let style = format!("/web/{}", style.split('"').next().unwrap());
    let style = server.send("GET", &style, "", "").is(200);
    assert!(style.head.contains("immutable"), "{}", style.head);
    let document = server.get("/openapi.json").is(200).body;
    assert!(
        !document.contains("/waiting"),
        "pages stand in the document of the API"
    );
}
