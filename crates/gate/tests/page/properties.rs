//! Properties that hold for all inputs.

use gyrus_contract::{
    Aim, Form, Mode, Risk,
    Starts::{self, Acts, Submits, Types},
};

use crate::world::{CHOOSES, Under, aim, call, form, within};

const GOOD: &str = "https://good.com/room";

const NAMES: [&str; 12] = [
    "",
    "→",
    "Next",
    "Send",
    "Pay",
    "Delete",
    "Authorise",
    "Password",
    "q",
    "送信",
    "Отправить",
    "Löschen",
];

const ROLES: [&str; 5] = ["button", "link", "textbox", "switch", "confirm"];

const FIELDS: [&str; 9] = [
    "+q:text",
    "Name:text",
    "+Name:text",
    "+Password:password!",
    "PIN:text",
    "x:file",
    "all:checkbox",
    "Pay:submit",
    "token:hidden",
];

fn risk(aim: Aim) -> Risk {
    Under::default().verdict(&call(Some(aim)), Mode::Ask).risk
}

fn starts() -> [Starts; 6] {
    [
        Types,
        CHOOSES,
        Submits,
        Acts,
        Starts::Answers { accepts: true },
        Starts::Answers { accepts: false },
    ]
}

fn forms() -> [Option<Form>; 9] {
    let elsewhere = "https://pay.example/";
    [
        None,
        Some(form("get", GOOD, &[])),
        Some(form("get", GOOD, &FIELDS[..1])),
        Some(form("get", GOOD, &FIELDS[2..3])),
        Some(form("get", elsewhere, &FIELDS[..1])),
        Some(form("post", GOOD, &FIELDS[..1])),
        Some(form("post", elsewhere, &FIELDS[3..5])),
        Some(form("post", "javascript:x()", &FIELDS[2..3])),
        Some(form("", GOOD, &FIELDS[2..3])),
    ]
}

/// Every combination, on a page that the person named.
fn all_aims() -> impl Iterator<Item = Aim> {
    starts().into_iter().flat_map(|starts| {
        ROLES.iter().flat_map(move |role| {
            let starts = starts.clone();
            NAMES.iter().flat_map(move |name| {
                let plain = aim(GOOD, role, name, starts.clone());
                forms().into_iter().map(move |form| Aim {
                    form,
                    ..plain.clone()
                })
            })
        })
    })
}

#[test]
fn a_place_that_was_not_named_never_weighs_less() {
    let nowhere = Under {
        goal: "",
        ..Under::default()
    };
    let mut count = 0;
    for aim in all_aims() {
        let named = risk(aim.clone());
        let unnamed = nowhere.verdict(&call(Some(aim.clone())), Mode::Ask);
        assert!(unnamed.risk >= named, "{aim:?}: {unnamed:?}");
        count += 1;
    }
    assert!(count > 3_000, "{count}");
}

#[test]
fn a_field_more_never_weighs_less() {
    for aim in all_aims() {
        let Some(form) = &aim.form else { continue };
        let before = risk(aim.clone());
        for field in FIELDS {
            let mut form = form.clone();
            form.fields.extend(self::form("", "", &[field]).fields);
            let more = within(aim.clone(), form);
            assert!(risk(more.clone()) >= before, "{field}: {more:?}");
        }
    }
}

#[test]
fn a_longer_name_never_weighs_less() {
    for aim in all_aims() {
        let element = aim.element.as_ref().unwrap();
        let unnamed = !element.name.chars().any(char::is_alphabetic);
        if unnamed {
            continue;
        }
        let before = risk(aim.clone());
        for (head, tail) in [
            ("", " now"),
            ("Please ", ""),
            ("→ ", " (5)"),
            ("次へ ", ""),
            ("", " и"),
        ] {
            let mut longer = aim.clone();
            let name = format!("{head}{}{tail}", element.name);
            longer.element.as_mut().unwrap().name.clone_from(&name);
            assert!(risk(longer) >= before, "{name}: {aim:?}");
        }
    }
}

/// Whatever a page says, there is a verdict.
#[test]
fn nothing_panics() {
    let odd = [
        "\u{0}",
        "\u{202e}",
        "“”\"",
        "a\u{301}\u{301}",
        "🏳️‍🌈",
        "\u{fdfa}",
        "ſ",
        "İ",
        "ﬁ",
        "ǅ",
        "𝕊",
        "..",
        "://",
        "http://",
        "https://[",
        "http://a:99999",
        "https://%00",
        "x\\y",
        "http://[::1",
        "https://xn--",
        "\u{e0041}",
    ];
    for one in odd {
        for two in odd {
            for start in starts() {
                let mut aim = within(aim(GOOD, one, two, start), form(one, two, &["a:b"]));
                (aim.address, aim.origin) = (one.to_owned(), two.to_owned());
                aim.starts.push(Starts::Follows {
                    address: format!("{one}{two}"),
                });
                aim.starts.push(Starts::Opens {
                    address: format!("{two}{one}"),
                });
                let under = Under {
                    goal: &format!("{one} {two}{one}"),
                    ..Under::default()
                };
                let verdict = under.verdict(&call(Some(aim)), Mode::Auto);
                assert!(verdict.risk > Risk::Safe, "{one} {two}");
            }
        }
    }
}
