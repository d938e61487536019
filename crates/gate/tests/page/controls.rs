//! Names of controls.

use gyrus_contract::{ElementState, Starts, Starts::Acts};

use crate::world::{
    Comes::{self, Critical, EachTime, Free, Once, Plain},
    aim, comes, form, within,
};

const GOOD: &str = "https://good.com/room";
const OTHER: &str = "https://other.example/";

#[track_caller]
fn buttons(expected: Comes, names: &[&str]) {
    for name in names {
        assert_eq!(comes(aim(GOOD, "button", name, Acts)), expected, "{name}");
        // A name alone says the same anywhere.
        assert_eq!(
            comes(aim(OTHER, "button", name, Acts)),
            expected,
            "{name} elsewhere"
        );
    }
}

/// A drop is said by what takes a card, not by what the card is called.
#[test]
fn a_drop_is_judged_by_what_takes_it() {
    for (card, zone, expected) in [
        ("Buy rope", "Done", Plain),
        ("Buy rope", "Trash", Critical),
        ("Paint hull", "Drop here to delete", Critical),
        ("Paint hull", "Publish", Once),
    ] {
        let option = zone.to_owned();
        for page in [GOOD, OTHER] {
            let mut aim = aim(page, "generic", card, Acts);
            let states = &mut aim.element.as_mut().unwrap().states;
            states.insert(ElementState::Draggable);
            aim.starts.push(Starts::Chooses {
                option: option.clone(),
            });
            assert_eq!(comes(aim), expected, "{card} on {zone}");
        }
    }
}

#[test]
fn harmless_ones_pass_anywhere() {
    buttons(
        Plain,
        &[
            "Next",
            "Previous",
            "More",
            "Show more",
            "Close",
            "×",
            "",
            "Expand",
            "Collapse all",
            "Menu",
            "Reject all",
            "Accept all cookies",
            "Sort by price",
            "Filter",
            "Search",
            "Page 2",
            "Zoom in",
            "Play",
            "Weiter",
            "Mehr anzeigen",
            "Schließen",
            "Suchen",
            "Ablehnen",
            "Suivant",
            "Fermer",
            "Rechercher",
            "Siguiente",
            "Cerrar",
            "Buscar",
            "Avanti",
            "Chiudi",
            "Seguinte",
            "Fechar",
            "Volgende",
            "Sluiten",
            "Zoeken",
            "Dalej",
            "Zamknij",
            "Szukaj",
            "次へ",
            "閉じる",
            "検索",
            "もっと見る",
            "下一步",
            "关闭",
            "關閉",
            "搜索",
            "Sender",
            "Payload",
            "Postcode",
            "Ascending",
            "Discard changes",
            "Verwerfen",
        ],
    );
    for role in [
        "tab",
        "menuitem",
        "treeitem",
        "switch",
        "disclosure",
        "generic",
        "link",
    ] {
        assert_eq!(comes(aim(GOOD, role, "Details", Acts)), Plain, "{role}");
    }
}

/// A page that was edited: a field beside the control, with something in it.
fn edited(role: &str, name: &str, more: &[&str]) -> gyrus_contract::Aim {
    let fields = [&["+Title:text"], more].concat();
    within(aim(GOOD, role, name, Acts), form("", GOOD, &fields))
}

#[test]
fn what_stands_in_a_grid_is_no_command_unless_it_is_all_that_stands_there() {
    for name in [
        "",
        "42",
        "→",
        "Send reminder to Ann",
        "Payment of 3 March",
        "Отправить завтра",
    ] {
        for role in ["gridcell", "cell", "row", "columnheader"] {
            assert_eq!(comes(edited(role, name, &[])), Plain, "{role} {name}");
        }
    }
    assert_eq!(comes(edited("gridcell", "Delete", &[])), Critical);
    assert_eq!(comes(edited("gridcell", "Send", &[])), Once);
    assert_eq!(comes(edited("button", "", &[])), Once);
    assert_eq!(comes(edited("button", "Send reminder to Ann", &[])), Once);
}

#[test]
fn a_field_without_a_form_is_told_by_the_buttons_beside_it() {
    for name in ["Tags", "", "Send to", "42"] {
        assert_eq!(comes(edited("textbox", name, &[])), Plain, "{name}");
        assert_eq!(
            comes(edited("textbox", name, &["Add:submit"])),
            Plain,
            "{name}"
        );
        assert_eq!(
            comes(edited("textbox", name, &["Send:submit"])),
            Once,
            "{name}"
        );
        assert_eq!(
            comes(edited("textbox", name, &["Pay now:submit"])),
            Critical,
            "{name}"
        );
        assert_eq!(
            comes(edited("textbox", name, &["+Password:password!"])),
            Critical,
            "{name}"
        );
    }
    let elsewhere = within(
        aim(OTHER, "textbox", "Tags", Acts),
        form("", OTHER, &["+Tags:text"]),
    );
    assert_eq!(comes(elsewhere), Once);
}

#[test]
fn a_dialog_about_what_was_not_saved_is_answered() {
    let answered = |words| {
        comes(aim(
            GOOD,
            "confirm",
            words,
            Starts::Answers { accepts: true },
        ))
    };
    for words in [
        "Discard changes?",
        "You have unsaved changes. Leave the page without saving?",
    ] {
        assert_eq!(answered(words), Plain, "{words}");
    }
    for words in [
        "Really?",
        "Send it to all 300 people?",
        "Discard changes and publish?",
    ] {
        assert_eq!(answered(words), Once, "{words}");
    }
    assert_eq!(answered("Delete the page and discard changes?"), Critical);
}

#[test]
fn what_commits_is_asked_once() {
    buttons(
        Once,
        &[
            "Send",
            "Send message",
            "SUBMIT",
            "Post",
            "Publish now",
            "Reply",
            "Share",
            "Invite people",
            "Order",
            "Sign up",
            "Confirm",
            "Subscribe",
            "Allow",
            "Ｓｅｎｄ",
            "S\u{200b}end",
            "Sеnd",
            "sendMessage",
            "Absenden",
            "Nachricht senden",
            "Veröffentlichen",
            "Teilen",
            "Einladen",
            "Bestellen",
            "Kündigen",
            "Buchen",
            "Envoyer",
            "Publier",
            "Partager",
            "Inviter",
            "Commander",
            "Répondre",
            "Enviar",
            "Publicar",
            "Compartir",
            "Invitar",
            "Invia",
            "Pubblica",
            "Condividi",
            "Ordina",
            "Prenota",
            "Enviar mensagem",
            "Compartilhar",
            "Convidar",
            "Verzenden",
            "Plaatsen",
            "Delen",
            "Uitnodigen",
            "Bestellen",
            "Wyślij",
            "Opublikuj",
            "Udostępnij",
            "Zaproś",
            "Zamów",
            "送信",
            "送信する",
            "投稿する",
            "共有",
            "招待する",
            "注文する",
            "予約する",
            "发送",
            "提交",
            "发布",
            "分享",
            "邀请好友",
            "發送訊息",
            "預訂",
        ],
    );
}

#[test]
fn what_pays_deletes_or_authorises_is_asked_each_time() {
    buttons(
        Critical,
        &[
            "Pay",
            "Pay now",
            "Buy now",
            "Place order",
            "Donate",
            "Transfer money",
            "payNow",
            "P a y",
            "Delete",
            "Delete account",
            "Erase everything",
            "Empty trash",
            "Authorize",
            "Authorise app",
            "Approve",
            "Sign in with Google",
            "Change password",
            "Send and pay",
            "Bezahlen",
            "Jetzt kaufen",
            "Zahlungspflichtig bestellen",
            "Überweisen",
            "Löschen",
            "LÖSCHEN",
            "lo\u{308}schen",
            "Konto schließen",
            "Genehmigen",
            "Unterschreiben",
            "Payer",
            "Acheter",
            "Supprimer",
            "Autoriser",
            "Pagar",
            "Comprar ahora",
            "Eliminar",
            "Autorizar",
            "Paga ora",
            "Acquista",
            "Elimina",
            "Autorizza",
            "Finalizar compra",
            "Excluir",
            "Apagar",
            "Aprovar",
            "Betalen",
            "Koop nu",
            "Verwijderen",
            "Goedkeuren",
            "Zapłać",
            "Kup teraz",
            "Usuń",
            "Autoryzuj",
            "購入する",
            "支払う",
            "削除",
            "アカウントを削除",
            "承認",
            "立即购买",
            "支付",
            "删除",
            "刪除",
            "授权",
            "批准",
            "🇵🇦🇾",
            "ᴘᴀʏ",
        ],
    );
}

#[test]
fn what_is_not_read_is_asked_about_where_the_person_named_nothing() {
    for name in [
        "Подробнее",
        "Далее",
        "더보기",
        "المزيد",
        "Περισσότερα",
        "ส่ง",
    ] {
        assert_eq!(comes(aim(GOOD, "button", name, Acts)), Plain, "{name}");
        assert_eq!(comes(aim(OTHER, "button", name, Acts)), Once, "{name}");
        let beside = within(
            aim(GOOD, "button", name, Acts),
            form("", GOOD, &["+Message:text"]),
        );
        assert_eq!(comes(beside), Once, "{name} beside typed data");
    }
}

#[test]
fn typed_data_makes_a_control_weigh_more() {
    let typed = || form("", GOOD, &["+Message:text"]);
    let empty = || form("", GOOD, &["Message:text"]);
    let there = || form("post", OTHER, &["+Message:text"]);
    let login = || form("", GOOD, &["+User:text", "+Password:password!"]);
    for (page, name, form, expected) in [
        (GOOD, "Next", typed(), Plain),
        (GOOD, "", typed(), Once),
        (GOOD, "→", typed(), Once),
        (GOOD, "✉", empty(), Plain),
        (GOOD, "Next", there(), Once),
        (OTHER, "Next", typed(), Once),
        (OTHER, "", typed(), Once),
        (OTHER, "Next", empty(), Plain),
        (GOOD, "Delete", typed(), Critical),
        (GOOD, "Log in", login(), Critical),
        (GOOD, "Next", login(), Critical),
        (
            GOOD,
            "Forgot?",
            form("", GOOD, &["User:text", "Password:password!"]),
            Plain,
        ),
    ] {
        let shown = format!("{page} {name} {form:?}");
        assert_eq!(
            comes(within(aim(page, "button", name, Acts), form)),
            expected,
            "{shown}"
        );
    }
}

#[test]
fn links_are_followed_whatever_they_are_about() {
    let to = |address: &str| Starts::Follows {
        address: address.to_owned(),
    };
    let link = |role, name, address| comes(aim(OTHER, role, name, to(address)));
    for name in [
        "How to delete your account",
        "Pay rises for nurses",
        "Reply",
        "Donate",
        "Share",
        "次へ",
        "Отправить",
        "",
    ] {
        assert_eq!(
            link("link", name, "https://news.example/a?b=c"),
            Free,
            "{name}"
        );
    }
    assert_eq!(link("link", "Delete", "https://x.example/1"), Critical);
    assert_eq!(link("link", "Löschen", "https://x.example/1"), Critical);
    assert_eq!(link("link", "Approve", "https://x.example/1"), Critical);
    assert_eq!(
        link("link", "Item 5", "https://x.example/items/5/delete"),
        Once
    );
    assert_eq!(
        link("link", "Item 5", "https://x.example/?action=delete&id=5"),
        Critical
    );
    assert_eq!(link("link", "Item 5", "https://x.example/?q=delete"), Free);
    assert_eq!(
        link("link", "Item 5", "https://x.example/how-to-delete-a-file"),
        Free
    );
    assert_eq!(link("button", "Send", "https://x.example/1"), Once);
    assert_eq!(
        link("button", "Buy now for less", "https://x.example/1"),
        Critical
    );
    assert_eq!(link("button", "Read on", "https://x.example/1"), Free);
}

#[test]
fn dialogs() {
    let answer =
        |role, message, accepts| comes(aim(OTHER, role, message, Starts::Answers { accepts }));
    assert_eq!(answer("alert", "Hello", true), Free);
    assert_eq!(answer("beforeunload", "", false), Free);
    assert_eq!(answer("beforeunload", "", true), Plain);
    assert_eq!(answer("permission", "may know where you are", false), Free);
    assert_eq!(
        answer("permission", "may know where you are", true),
        EachTime
    );
    assert_eq!(answer("confirm", "Delete 5 items?", false), Plain);
    assert_eq!(answer("confirm", "Delete 5 items?", true), Critical);
    assert_eq!(answer("confirm", "Wirklich bezahlen?", true), Critical);
    assert_eq!(answer("confirm", "Are you sure?", true), Once);
    assert_eq!(answer("prompt", "Your name", true), Once);
    assert_eq!(answer("", "", true), Once);
}
