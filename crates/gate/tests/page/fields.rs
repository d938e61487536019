//! Fields, forms, files, and what a card says.

use gyrus_contract::{
    Grant, Mode,
    Starts::{self, Acts, Submits, Types},
};

use crate::world::{
    CHOOSES,
    Comes::{Critical, EachTime, Once, Plain},
    Under, aim, call, comes, file, form, masked, within,
};

const GOOD: &str = "https://good.com/room";
const OTHER: &str = "https://other.example/";

#[test]
fn fields() {
    for (role, name, starts, good, other) in [
        ("textbox", "Name", Types, Plain, Once),
        ("textbox", "Send to", Types, Plain, Once),
        ("textbox", "", Types, Plain, Once),
        ("searchbox", "Search", Types, Plain, Once),
        ("combobox", "Country", CHOOSES, Plain, Once),
        ("checkbox", "Send me news", CHOOSES, Plain, Once),
        ("switch", "Dark", CHOOSES, Plain, Once),
        ("switch", "Share with everybody", CHOOSES, Once, Once),
        ("switch", "Make public", CHOOSES, Critical, Critical),
        ("textbox", "Password", Types, Critical, Critical),
        ("textbox", "Passwort wiederholen", Types, Critical, Critical),
        ("textbox", "Mot de passe", Types, Critical, Critical),
        ("textbox", "Contraseña", Types, Critical, Critical),
        ("textbox", "Senha", Types, Critical, Critical),
        ("textbox", "Wachtwoord", Types, Critical, Critical),
        ("textbox", "Hasło", Types, Critical, Critical),
        ("textbox", "パスワード", Types, Critical, Critical),
        ("textbox", "验证码", Types, Critical, Critical),
        ("textbox", "One-time code", Types, Critical, Critical),
        ("textbox", "Kartennummer", Types, Critical, Critical),
        ("textbox", "CVC", Types, Critical, Critical),
    ] {
        let at = |page| comes(aim(page, role, name, starts.clone()));
        assert_eq!((at(GOOD), at(OTHER)), (good, other), "{role} {name}");
    }
    assert_eq!(comes(masked(aim(GOOD, "textbox", "Name", Types))), Critical);
    let told = within(
        aim(GOOD, "textbox", "X", Types),
        form("post", GOOD, &["X:text!"]),
    );
    assert_eq!(comes(told), Critical);
    let mut secret = call(Some(aim(GOOD, "textbox", "Name", Types)));
    secret.arguments["text"] = "⟦secret:TOKEN⟧".into();
    assert_eq!(Under::default().comes(&secret), Critical);
}

#[test]
fn forms() {
    let search = ["+q:text"];
    let there = "https://other.example/send";
    for (page, name, form, expected) in [
        (GOOD, "Search", form("get", GOOD, &search), Plain),
        (
            GOOD,
            "Go",
            form("get", GOOD, &["+Site search:text", "lang:hidden"]),
            Plain,
        ),
        (
            GOOD,
            "Go",
            form("get", GOOD, &["+Anything:search", "all:checkbox"]),
            Plain,
        ),
        (GOOD, "Go", form("get", GOOD, &["size:select"]), Plain),
        (GOOD, "Go", form("post", GOOD, &search), Once),
        (GOOD, "Go", form("", GOOD, &search), Once),
        (
            GOOD,
            "Go",
            form("get", GOOD, &["+q:text", "Note:text"]),
            Once,
        ),
        (GOOD, "Go", form("get", GOOD, &["+Comment:text"]), Once),
        (GOOD, "Go", form("get", GOOD, &["+q:text", "x:file"]), Once),
        (GOOD, "Go", form("get", there, &search), Once),
        (GOOD, "Send", form("get", GOOD, &search), Once),
        (GOOD, "Pay", form("get", GOOD, &search), Critical),
        (
            GOOD,
            "",
            form("get", GOOD, &["+q:text", "Pay:submit"]),
            Critical,
        ),
        (OTHER, "Search", form("get", OTHER, &search), Once),
        (GOOD, "", form("post", GOOD, &["+Name:text"]), Once),
        (GOOD, "Go", form("post", there, &["+Name:text"]), Once),
        (
            GOOD,
            "Go",
            form("post", "http://good.com/x", &["+Name:text"]),
            Once,
        ),
        (
            GOOD,
            "Go",
            form("post", "mailto:a@b.example", &["+Name:text"]),
            EachTime,
        ),
        (
            GOOD,
            "Go",
            form("post", "javascript:x()", &["+Name:text"]),
            EachTime,
        ),
        (
            GOOD,
            "Go",
            form("post", "no address", &["+Name:text"]),
            EachTime,
        ),
        (
            GOOD,
            "Go",
            form("post", GOOD, &["Name:text", "Password:password"]),
            Critical,
        ),
        (
            GOOD,
            "Go",
            form("post", GOOD, &["+Card number:text"]),
            Critical,
        ),
        (GOOD, "Go", form("get", GOOD, &["+q:text!"]), Critical),
        (GOOD, "Delete", form("post", GOOD, &[]), Critical),
    ] {
        let shown = format!("{page} {name} {form:?}");
        assert_eq!(
            comes(within(aim(page, "button", name, Submits), form)),
            expected,
            "{shown}"
        );
    }
    // By a key in a field, whose name says what it holds.
    let enter = within(
        aim(GOOD, "textbox", "Pay to", Submits),
        form("post", GOOD, &["+Pay to:text"]),
    );
    assert_eq!(comes(enter), Once);
    assert_eq!(comes(aim(GOOD, "button", "Go", Submits)), Once);
}

#[test]
fn a_form_that_goes_elsewhere_needs_both_places() {
    let sends = within(
        aim(GOOD, "button", "Go", Submits),
        form("post", "https://pay.example/in", &["+Name:text"]),
    );
    let sends = call(Some(sends));
    let verdict = Under::default().verdict(&sends, Mode::Ask);
    assert!(
        verdict.reasons.iter().any(|reason| {
            reason == "sends a form from https://good.com to another place: https://pay.example"
        }),
        "{verdict:?}"
    );
    let origin = |origin: &str| Grant::Origin {
        origin: origin.to_owned(),
    };
    let both = [origin("https://good.com"), origin("https://pay.example")];
    assert_eq!(verdict.wider, both);
    for (grants, expected) in [(&both[..1], Once), (&both[1..], Once), (&both[..], Plain)] {
        let under = Under {
            grants,
            ..Under::default()
        };
        assert_eq!(under.comes(&sends), expected, "{grants:?}");
    }
}

#[test]
fn files() {
    let uploads = |page, path: &str| {
        let names = vec![path.to_owned()];
        let aim = aim(page, "button", "Choose", Starts::Uploads { names });
        Under::default().comes(&file(call(Some(aim)), path))
    };
    assert_eq!(uploads(GOOD, "/srv/work/a.pdf"), Once);
    assert_eq!(uploads(OTHER, "/srv/work/a.pdf"), Once);
    assert_eq!(uploads(GOOD, "/srv/other/a.pdf"), Critical);
    assert_eq!(uploads(GOOD, "/home/p/.ssh/id_ed25519"), Critical);
    let names = vec!["a".to_owned()];
    assert_eq!(
        comes(aim(GOOD, "button", "Choose", Starts::Uploads { names })),
        Critical
    );
}

#[test]
fn what_was_not_measured() {
    let under = Under::default();
    assert_eq!(under.comes(&call(None)), Critical);
    let mut nothing = aim(GOOD, "button", "Next", Acts);
    nothing.starts.clear();
    assert_eq!(comes(nothing), EachTime);
    let mut several = aim(GOOD, "textbox", "Name", Types);
    several.starts.push(Submits);
    assert_eq!(comes(several), Once);
    let mut point = aim(GOOD, "", "", Acts);
    point.element = None;
    assert_eq!(comes(point), Plain);
    // That the workspace can be undone says nothing of a page.
    let undoable = Under {
        undoable: true,
        ..Under::default()
    };
    assert_eq!(
        undoable.comes(&call(Some(aim(GOOD, "textbox", "Name", Types)))),
        Plain
    );
}

#[test]
fn a_card_says_what_and_where_in_our_words() {
    let reasons = |aim| {
        Under::default()
            .verdict(&call(Some(aim)), Mode::Ask)
            .reasons
    };
    let send = within(
        aim(OTHER, "button", "Send", Submits),
        form(
            "post",
            OTHER,
            &["+Email:email", "+Message:text", "Copy:checkbox"],
        ),
    );
    assert_eq!(
        reasons(send),
        [
            "sends a form by “Send”, with what stands in “Email”, “Message” on \
         https://other.example, which you did not name",
            "uses “Send”, whose name says that it sends, publishes, orders or takes part, on \
         https://other.example, which you did not name",
            "the run has read untrusted text",
        ]
    );
    assert_eq!(
        reasons(aim(GOOD, "textbox", "Name", Types)),
        ["types into “Name” on https://good.com, which you named",]
    );
    let name = format!(
        "a” on https://good.com\n\u{1b}[2J\u{202e}{}",
        "x".repeat(500)
    );
    let [first, ..] = &reasons(aim(OTHER, "textbox", &name, Types))[..] else {
        panic!("no reason");
    };
    assert_eq!(
        first,
        &format!(
            "types into “a' on https://good.com ␛[2J<U+202E>{}…” on \
             https://other.example, which you did not name",
            "x".repeat(32)
        )
    );
    let long = format!("https://{}good.com.evil.example/", "a.".repeat(200));
    let [first, ..] = &reasons(aim(&long, "textbox", "Name", Types))[..] else {
        panic!("no reason");
    };
    assert!(
        first.len() < 250 && first.contains("good.com.evil.example"),
        "{first}"
    );
}
