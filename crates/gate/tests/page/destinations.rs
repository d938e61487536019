//! Places where an input is made, and destinations to which it leads.

use std::path::Path;

use gyrus_contract::{
    Decision, ElementState, Gate as _, Grant, Mode,
    Starts::{self, Looking, Opens, Types},
};
use gyrus_gate::{OwnPaths, PolicyGate, policy};

use crate::world::{
    Comes::{self, EachTime, Free, Never, Once, Plain},
    Under, aim, call, comes, form, within,
};

const GOOD: &str = "https://good.com/room";

fn typed_at(goal: &str, page: &str) -> Comes {
    let under = Under {
        goal,
        ..Under::default()
    };
    under.comes(&call(Some(aim(page, "textbox", "Name", Types))))
}

#[test]
fn typing_is_free_only_where_the_person_named_the_origin() {
    for (goal, page, expected) in [
        ("at good.com", "https://good.com/", Plain),
        ("at GOOD.com.", "https://good.com/a/b?c", Plain),
        ("at https://good.com:443/x", "https://good.com/", Plain),
        ("at http://good.com/", "https://good.com/", Plain),
        ("at http://good.com/", "http://good.com/", Plain),
        ("at good.com:8443", "https://good.com:8443/", Plain),
        ("at http://localhost:3000", "http://localhost:3000/x", Plain),
        ("at localhost:3000", "http://localhost:3000/x", Plain),
        ("at http://[::1]:9/", "http://[::1]:9/", Plain),
        ("at bücher.de", "https://xn--bcher-kva.de/", Plain),
        // Another scheme, port or host is another place.
        ("at good.com", "http://good.com/", Once),
        ("at https://good.com", "http://good.com/", Once),
        ("at good.com", "https://good.com:8443/", Once),
        ("at http://localhost:3000", "http://localhost:3001/", Once),
        ("at http://localhost", "http://localhost:3000/", Once),
        ("at localhost", "http://localhost/", Once),
        ("at good.com", "https://good.com./", Once),
        ("at good.com", "https://www.good.com/", Once),
        ("at good.com", "https://good.com.evil.com/", Once),
        ("at good.com.evil.com", "https://good.com/", Once),
        ("at good.com", "https://notgood.com/", Once),
        ("at notgood.com", "https://good.com/", Once),
        ("at my-good.com", "https://good.com/", Once),
        ("at a.good.com", "https://good.com/", Once),
        ("at good.community", "https://good.com/", Once),
        ("at http://good.com@evil.com/", "http://good.com/", Once),
        ("at http://good.com@evil.com/", "http://evil.com/", Once),
        ("mail joe@good.com", "https://good.com/", Once),
        (
            "at https://a.com/?to=https://good.com",
            "https://good.com/",
            Once,
        ),
        ("at gооd.com", "https://good.com/", Once), // with two Cyrillic о
        ("at good.com", "https://xn--gd-jbca.com/", Once),
        ("open main.rs", "https://main.rs/", Once),
        ("nothing", "https://good.com/", Once),
    ] {
        assert_eq!(typed_at(goal, page), expected, "{goal}: {page}");
    }
}

#[test]
fn what_has_no_origin_is_asked_about_each_time() {
    for (origin, address) in [
        ("null", "https://good.com/"),
        ("https://good.com", "https://evil.com/"),
        ("https://good.com/", "https://good.com/"),
        ("HTTPS://GOOD.COM", "https://good.com/"),
        ("null", "about:blank"),
        ("null", "data:text/html,x"),
        ("file://", "file:///etc/passwd"),
        ("", "https://good.com/"),
    ] {
        let mut aim = aim(GOOD, "textbox", "Name", Types);
        (aim.origin, aim.address) = (origin.to_owned(), address.to_owned());
        assert_eq!(comes(aim), EachTime, "{origin} {address}");
    }
    for address in [
        "chrome://settings",
        "chrome-extension://x/",
        "devtools://x",
        "view-source:x",
    ] {
        let mut aim = aim(GOOD, "textbox", "Name", Types);
        aim.address = address.to_owned();
        assert_eq!(comes(aim.clone()), Never, "{address}");
        aim.starts = vec![Looking];
        assert_eq!(comes(aim), Free, "{address}");
    }
}

#[test]
fn a_grant_is_for_one_origin() {
    let granted = [Grant::Origin {
        origin: "https://other.example".to_owned(),
    }];
    let under = Under {
        grants: &granted,
        ..Under::default()
    };
    let at = |page, name, starts| under.comes(&call(Some(aim(page, "button", name, starts))));
    let send = |page| at(page, "Send", Starts::Acts);
    assert_eq!(at("https://other.example/", "Name", Types), Plain);
    assert_eq!(send("https://other.example/"), Plain);
    assert_eq!(at("https://other.example/", "", Starts::Submits), Plain);
    assert_eq!(send("https://other.example:1/"), Once);
    assert_eq!(send("http://other.example/"), Once);
    assert_eq!(send("https://a.other.example/"), Once);
    assert_eq!(
        at("https://other.example/", "Pay", Starts::Acts),
        Comes::Critical
    );
    assert_eq!(
        at("https://other.example/", "Delete", Starts::Acts),
        Comes::Critical
    );
    // One for connections is none for typing.
    let granted = [Grant::Host {
        host: "other.example".to_owned(),
        port: None,
    }];
    let under = Under {
        grants: &granted,
        ..Under::default()
    };
    let typed = aim("https://other.example/", "textbox", "Name", Types);
    assert_eq!(under.comes(&call(Some(typed))), Once);
}

#[test]
fn addresses_that_are_opened() {
    let opens = |address: &str, link_was_seen| {
        let under = Under {
            link_was_seen,
            ..Under::default()
        };
        let starts = Opens {
            address: address.to_owned(),
        };
        under.comes(&call(Some(aim("about:blank", "", "", starts))))
    };
    for (address, seen, expected) in [
        ("https://good.com/any?q=1", false, Free),
        ("http://good.com/", false, Free), // named as a host, for reading
        ("https://other.example/x", true, Free),
        ("https://other.example/x?leak=1", false, Once),
        ("https://good.com@evil.example/", false, EachTime),
        ("https://good.com@evil.example/", true, EachTime),
        ("https://good.com.evil.example/", false, Once),
        ("https://good.com\\.evil.example/", false, Free), // a path, to any browser
        ("https://xn--gd-jbca.com/", false, Once),
        ("http://127.0.0.1:9222/json", true, Once),
        ("http://2130706433/", true, Once),
        ("http://[::ffff:169.254.169.254]/latest", true, Once),
        ("http://router/", true, Once),
        ("about:blank", false, Free),
        ("about:config", false, Never),
        ("javascript:alert(1)", true, Never),
        ("java\nscript:alert(1)", true, Never),
        (" JavaScript:alert(1)", true, Never),
        ("data:text/html,x", true, Never),
        ("file:///etc/passwd", true, Never),
        ("chrome://settings", true, Never),
        ("view-source:https://good.com", true, Never),
        ("blob:https://good.com/1", true, Never),
        ("mailto:a@b.example", true, Never),
        ("good.com", false, EachTime),
        ("", false, EachTime),
    ] {
        assert_eq!(opens(address, seen), expected, "{address} {seen}");
    }
}

#[test]
fn links_that_are_followed() {
    let follows = |page: &str, address: &str| {
        let starts = Starts::Follows {
            address: address.to_owned(),
        };
        comes(aim(page, "link", "Here", starts))
    };
    for (page, address, expected) in [
        (GOOD, "https://good.com/2", Free),
        (GOOD, "https://other.example/?q=1", Free),
        ("https://other.example/", "http://third.example/", Free),
        ("https://other.example/", "http://localhost:8080/", Once),
        ("https://other.example/", "http://192.168.0.1/reboot", Once),
        ("http://localhost:8080/", "http://localhost:8080/2", Free),
        ("http://localhost:8080/", "http://localhost:8081/2", Once),
        (GOOD, "javascript:void(0)", Never),
        (GOOD, "data:text/html,x", Never),
        (GOOD, "file:///etc/passwd", Never),
        (GOOD, "chrome://settings", Never),
        (GOOD, "tel:123", Never),
        (GOOD, "https://user:pw@other.example/", EachTime),
        (GOOD, "//other.example", EachTime),
    ] {
        assert_eq!(follows(page, address), expected, "{page} {address}");
    }
}

#[test]
fn rules_about_hosts_are_about_pages_too() {
    let text = r#"
        [[rule]]
        decide = "deny"
        host = "*.evil.example"
        why = "not there"
        [[rule]]
        decide = "allow"
        tool = "click"
        host = ["shop.example", "other.example"]
        why = "mine"
    "#;
    let origin = policy::PolicyOrigin {
        file: "policy.toml".into(),
        may_loosen: true,
        home: None,
    };
    let lines = policy::LineReader {
        workspace: Path::new("/srv/work"),
        read: &|_| Default::default(),
    };
    let policy = policy::Policy::parse(text, &origin, lines).unwrap();
    let own_paths = OwnPaths {
        own: vec![],
        person: None,
    };
    let gate = PolicyGate::new(own_paths).under(policy);
    let follows = |address: &str| Starts::Follows {
        address: address.to_owned(),
    };
    let sends = |action: &str| {
        let aim = aim("https://other.example/", "button", "Go", Starts::Submits);
        within(aim, form("post", action, &["+Name:text"]))
    };
    let pays = aim("https://other.example/", "button", "Pay", Starts::Acts);
    let to = |address| aim("https://other.example/", "link", "Here", follows(address));
    for (aim, expected) in [
        (to("https://a.evil.example/"), Decision::Deny),
        (to("https://third.example/"), Decision::Allow),
        (sends("https://other.example/"), Decision::Allow),
        (sends("https://shop.example/"), Decision::Allow),
        (sends("https://third.example/"), Decision::Ask),
        (sends("https://a.evil.example/"), Decision::Deny),
        (sends("mailto:a@b.example"), Decision::Deny), // any host, so that one
        (pays, Decision::Ask),
    ] {
        let shown = format!("{aim:?}");
        let verdict = Under::default().verdict_of(&gate, &call(Some(aim)), Mode::Ask);
        assert_eq!(verdict.decision, expected, "{shown} {verdict:?}");
    }
}

#[test]
fn letting_a_held_request_go_is_asked_once_for_its_origin() {
    let sends = |method: &str, address: &str| Starts::Sends {
        method: method.to_owned(),
        address: address.to_owned(),
        bytes: Some(1_240),
    };
    for (page, method, address, expected) in [
        (GOOD, "POST", "https://evil.com/x", Once),
        ("https://evil.com/", "POST", "https://evil.com/x", Once),
        (GOOD, "POST", "https://good.com/x", Plain),
        (GOOD, "DELETE", "https://good.com/x", Comes::Critical),
        (GOOD, "DELETE", "https://evil.com/x", Comes::Critical),
        (
            GOOD,
            "POST",
            "https://evil.com/?action=delete",
            Comes::Critical,
        ),
        (GOOD, "POST", "ftp://evil.com/", EachTime),
        (GOOD, "POST", "", EachTime),
    ] {
        let mut aim = aim(page, "", "", sends(method, address));
        aim.element = None;
        let came = Under::default().comes(&call(Some(aim)));
        assert_eq!(came, expected, "{method} {address}");
    }
}

#[test]
fn what_a_link_sends_is_asked_as_what_it_says() {
    let post = Starts::Sends {
        method: "POST".to_owned(),
        address: "https://good.com/x".to_owned(),
        bytes: None,
    };
    for (name, expected) in [
        ("Next page", Once),
        ("Share", Once),
        ("Pay 500 EUR now", Comes::Critical),
        ("Grant admin rights", Comes::Critical),
    ] {
        assert_eq!(
            comes(aim(GOOD, "link", name, post.clone())),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_link_that_is_an_order_is_asked_about_and_one_that_is_about_it_is_not() {
    let goes = || Starts::Follows {
        address: "https://good.com/x".to_owned(),
    };
    for (name, listens, expected) in [
        ("Delete Delete", false, Comes::Critical),
        ("Delete row", false, Comes::Critical),
        ("Grant admin rights", false, Comes::Critical),
        ("Pay 500 EUR now", false, Comes::Critical),
        ("Payments", false, Comes::Free),
        ("Order status", false, Comes::Free),
        ("How to delete a file in Linux", false, Comes::Free),
        ("Place order", true, Comes::Critical),
        ("Share", true, Once),
        ("Details", true, Comes::Free),
    ] {
        let mut aim = aim(GOOD, "link", name, goes());
        let states = &mut aim.element.as_mut().unwrap().states;
        states.extend(listens.then_some(ElementState::Clickable));
        assert_eq!(comes(aim), expected, "{name}");
    }
}

#[test]
fn pages_send_where_the_person_named_and_where_a_yes_was_given() {
    let gate = PolicyGate::new(OwnPaths {
        own: vec![],
        person: None,
    });
    let grants = [Grant::Origin {
        origin: "https://granted.com".to_owned(),
    }];
    let under = gyrus_contract::Judgement {
        agent: gyrus_contract::DEFAULT_AGENT,
        workspace: Path::new("/srv/work"),
        mode: Mode::Ask,
        exposed: true,
        throwaway: false,
        undoable: false,
        grants: &grants,
        skills: &[],
        trusted: &["book on https://good.com"],
        link_was_seen: false,
        mandated: None,
        has_mandate: false,
    };
    let form = || form("post", "https://forms.com/send", &["+Name:text"]);
    let check = |starts, risk, expected: &[&str]| {
        let aim = within(aim("https://page.com/x", "button", "Go", starts), form());
        let origins = gate.sends_to(&call(Some(aim)), risk, &under);
        assert_eq!(origins, expected);
    };
    use gyrus_contract::Risk::{High, Moderate};
    let named = ["https://good.com", "https://granted.com"];
    check(Starts::Acts, Moderate, &named);
    let with_page = [
        "https://good.com",
        "https://granted.com",
        "https://page.com",
    ];
    // To type there is not to send to where the form goes.
    check(Types, High, &with_page);
    let all = [
        "https://forms.com",
        "https://good.com",
        "https://granted.com",
        "https://page.com",
    ];
    check(Starts::Submits, High, &all);
}
