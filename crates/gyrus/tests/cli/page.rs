//! A run as a page: whatever is in the run, the page says it as text and does nothing.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Said, THREE_STEPS, World, read, said, works};

/// Elements that the page may be made of.
const ELEMENTS: &str = "html head meta link title style body header aside main nav footer section \
                        h1 p div span b i a ul li dl dt dd pre code kbd time details summary \
                        figure figcaption img svg rect input output script";
const ATTRIBUTES: &str = "lang charset http-equiv content name rel href class id title datetime \
                          open hidden type placeholder aria-label viewBox preserveAspectRatio \
                          x y width height src alt loading";

/// A run whose every text wants to be more than text. `address` is where nothing may arrive.
fn hostile(address: &str) -> String {
    let request =
        format!("<img src='http://{address}/picture' onerror=\\\"document.title='taken'\\\">");
    let script = "</script></style></title></textarea><script>document.title='taken'</script>";
    format!(
        r#"
[model]
name = "a<b>\u202Emodel"
[[reply]]
text = "{script}{request} javascript:alert(1) http://{address}/text \u202Eexe.txt\u202C zero\u200Bwidth tag\U000E0041 -->]]>&amp; \u001B[2J\u001B]0;title\u0007 nul:"
[[reply.calls]]
tool = "shell"
[reply.calls.arguments]
command = '''printf '\033[1;31mred\033[0m \033[2J\033]0;title\007 nul:\000 <b>bold</b> \342\200\256 {script}\n'; head -c 1000000 /dev/zero | tr '\0' x'''
[[reply]]
text = "{request}"
calls = [
    {{ tool = "write", arguments = {{ path = "a<svg onload=x>.html", content = "{script}\n" }} }},
    {{ tool = "nosuch\"><script>", arguments = {{ "on\"click='x'" = "{request}" }} }},
    {{ tool = "read", arguments = "[[[[not json" }},
]
[[reply]]
calls = [{{ tool = "finish", arguments = {{ reached = true, answer = "</main>{script}", evidence = [{{ what = "{request}", at = "javascript:alert(1)" }}] }} }}]
"#
    )
}

/// A page, taken apart by the rules of HTML, as far as our own pages need them.
struct Parsed {
    /// All text outside of styles and scripts.
    text: String,
    scripts: usize,
}

/// Panics if there is anything on the page that may not be.
fn parse(page: &str) -> Parsed {
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    let mut scripts = 0;
    let mut rest = page
        .strip_prefix("<!doctype html>\n<!-- a run of gyrus -->\n")
        .expect("it begins like a page");
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let end = end_of_tag(tag);
        let (inside, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "elements are nested");
            continue;
        }
        let (name, attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        assert!(
            ELEMENTS.split_whitespace().any(|one| one == name),
            "<{inside}>"
        );
        check_attributes(attributes);
        match name {
            "meta" | "link" | "img" | "input" => {}
            "style" | "script" => {
                let (body, after) = rest.split_once("</").expect("it ends");
                rest = after
                    .strip_prefix(name)
                    .and_then(|after| after.strip_prefix('>'))
                    .unwrap();
                scripts += usize::from(name == "script");
                assert!(!body.contains("taken") && !body.contains("<!--"));
            }
            name => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let text = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#96;", "`"),
        ("&amp;", "&"),
    ]
    .into_iter()
    .fold(text, |text, (escaped, plain)| text.replace(escaped, plain));
    Parsed { text, scripts }
}

/// Returns the end of a tag: the first `>` outside of quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut quoted = false;
    tag.find(|c| {
        quoted ^= c == '"';
        c == '>' && !quoted
    })
    .expect("tags end")
}

fn check_attributes(attributes: &str) {
    let mut rest = attributes;
    while !rest.is_empty() {
        let name = rest.split(['=', ' ']).next().unwrap();
        assert!(
            ATTRIBUTES.split_whitespace().any(|one| one == name),
            "{attributes}"
        );
        rest = &rest[name.len()..];
        let Some(after) = rest.strip_prefix("=\"") else {
            rest = rest.trim_start();
            continue;
        };
        let (value, after) = after.split_once('"').expect("quotes end");
        assert!(!value.contains(['<', '>']), "{name}={value}");
        match name {
            "href" => assert!(value.starts_with('#') || value == "data:,", "{value}"),
            "src" => assert!(value.starts_with("data:image/"), "{value}"),
            _ => {}
        }
        rest = after.trim_start();
    }
}

/// Whether a character is one that nobody would see.
fn is_unseen(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{e0000}'..='\u{e007f}')
}

#[test]
fn hostile_text_is_only_text() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let world = World::new(&hostile(&listener.local_addr().unwrap().to_string()));
    let goal = "say hello </title><script>document.title='taken'</script> \u{202e}olleh";
    world
        .gyrus(&["run", goal, "--workdir", ".", "--approve", "auto"])
        .exits(0);
    let file = world.path("page.html");
    world
        .gyrus(&["show", "last", "--html", "-o", file.to_str().unwrap()])
        .exits(0);

    let page = read(&file);
    let parsed = parse(&page);
    assert_eq!(parsed.scripts, 1, "only ours");
    for words in [
        goal.trim_end_matches("\u{202e}olleh"),
        "</script></style></title></textarea><script>document.title='taken'</script>",
        "javascript:alert(1)",
        "-->]]>&amp;",
        "⟨U+202E⟩exe.txt⟨U+202C⟩ zero⟨U+200B⟩width tag⟨U+E0041⟩",
        "␛[2J␛]0;title␇ nul:",
        "<b>bold</b> ⟨U+202E⟩",
        "more bytes left out here",
        "claimed",
    ] {
        assert!(parsed.text.contains(words), "`{words}` is not on the page");
    }
    assert_eq!(page.chars().find(|c| is_unseen(*c)), None, "nothing hides");
    assert!(
        page.len() < 200_000,
        "long texts are cut: {} bytes",
        page.len()
    );

    in_a_browser(&world, &file);
    listener.set_nonblocking(true).unwrap();
    assert!(
        listener.accept().is_err(),
        "the page asked somebody for something"
    );
}

/// Loads a page for real, where there is a browser for it.
fn in_a_browser(world: &World, file: &Path) {
    if !works("chromium", &["--version"]) {
        eprintln!("skipped: there is no `chromium`");
        return;
    }
    let load = |arguments: &[&str]| -> Said {
        let mut command = Command::new("timeout");
        command
            .args([
                "-k",
                "1",
                "60",
                "chromium",
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
            ])
            .args(["--enable-logging=stderr", "--disable-dev-shm-usage"])
            .arg(format!(
                "--user-data-dir={}",
                world.path("browser").display()
            ))
            .args(arguments)
            .arg(format!("file://{}", file.display()))
            .env("HOME", world.path("person"))
            .stdin(Stdio::null());
        let said = said(command.output().unwrap()).exits(0);
        assert!(
            !said.err.contains("CONSOLE"),
            "the page complains: {}",
            said.err
        );
        said
    };
    let dom = load(&["--dump-dom"]).out;
    assert!(!dom.contains("<title>taken"), "a script of the run ran");
    assert!(!dom.contains("<nav hidden"), "the page's own script ran");
    assert!(dom.contains("&lt;script&gt;document.title='taken'&lt;/script&gt;"));
    let picture = world.path("page.png");
    load(&[
        "--window-size=1000,1400",
        &format!("--screenshot={}", picture.display()),
    ]);
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_page_goes_where_it_is_sent_and_nowhere_else() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let piped = world.gyrus(&["show", "last", "--html"]).exits(0).out;
    assert!(parse(&piped).text.contains("It says hello."));

    let save = |name: &str| world.gyrus(&["show", "last", "--html", "-o", name]);
    fs::write(world.path("work/mine.html"), "<!doctype html>\nmine").unwrap();
    save("mine.html")
        .exits(2)
        .says("is not a page of gyrus")
        .says("name a new file");
    assert_eq!(world.file("mine.html"), "<!doctype html>\nmine");
    save("page.html").exits(0);
    fs::write(world.path("work/page.html"), &piped[..100]).unwrap();
    save("page.html").exits(0).says("page.html: ");
    assert!(
        world.file("page.html").ends_with("</html>\n"),
        "an older page is replaced"
    );
    save("no/such/folder/page.html")
        .exits(1)
        .says("cannot be written");
    world.gyrus(&["show", "last", "-o", "page.html"]).exits(2);

    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let line = ptsname(&screen, Vec::new()).unwrap();
    let line = File::options()
        .read(true)
        .write(true)
        .open(line.to_str().unwrap())
        .unwrap();
    let mut command = world.command(&["show", "last", "--html"]);
    let output = command
        .stdout(line)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output();
    said(output.unwrap())
        .exits(2)
        .says("-o ")
        .says("a terminal cannot show an HTML page");
}
