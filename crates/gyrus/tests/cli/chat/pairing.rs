//! The people who may use a chat.

use serde_json::json;

use super::{
    OWNER, STRANGER,
    bot_api::{BotApi, Fault},
    configure, pair, paired, start,
};
use crate::support::World;

#[test]
fn nobody_but_who_is_paired_is_answered() {
    let (world, bot) = (World::new(""), BotApi::start());
    configure(&world, &bot, "groups = [-1001234]");
    let server = start(&world);
    // Whatever a stranger sends, at most /start gets a sentence.
    for text in ["/help", "/run x", "/stop", "hello", "/pair AAAAAAAA", ""] {
        bot.says(STRANGER, text);
    }
    bot.says(STRANGER, "/start");
    bot.says(STRANGER, "/start");
    bot.waits_for("for the people who are paired");
    bot.waits_until_read();
    assert_eq!(bot.shown().len(), 1, "{:?}", bot.shown());

    // A wrong code, then the right one in a group and forwarded: none of it counts.
    let line = world.gyrus(&["chat", "pair", "telegram"]).exits(0).out;
    bot.says(STRANGER, "/pair WRONGONE");
    let mut in_group = bot.message(STRANGER, line.trim());
    in_group["chat"] = json!({"id": -1_001_234, "type": "supergroup"});
    bot.send(in_group);
    let mut forwarded = bot.message(STRANGER, line.trim());
    forwarded["forward_origin"] = json!({"type": "user", "date": 1});
    bot.send(forwarded);
    let edited = bot.message(STRANGER, line.trim());
    bot.update(json!({"edited_message": edited}));
    bot.waits_until_read();
    assert!(!bot.has_said("You are paired"));
    bot.says(OWNER, line.trim());
    bot.waits_for("You are paired");
    // It counts once.
    bot.says(STRANGER, line.trim());
    bot.says(STRANGER, "/status");
    bot.waits_until_read();
    let listed = world.gyrus(&["chat", "list", "--json"]).exits(0).out;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("\"person\":\"5000000042\""), "{listed}");
    drop(server);
}

#[test]
fn a_person_who_is_removed_is_a_stranger_again() {
    let (world, bot) = paired("", "");
    let server = start(&world);
    bot.says(OWNER, "/help");
    bot.waits_for("/screenshot: a picture");
    let said = world.gyrus(&["chat", "remove", "telegram", "12"]).exits(2);
    assert!(said.err.contains("`12` is not paired"), "{said:?}");
    world
        .gyrus(&["chat", "remove", "telegram", "5000000042"])
        .exits(0);
    let before = bot.shown().len();
    bot.says(OWNER, "/status");
    bot.waits_until_read();
    assert_eq!(bot.shown().len(), before);
    let listed = world.gyrus(&["chat"]).exits(0).out;
    assert!(listed.contains("nobody is paired"), "{listed}");
    // Being paired outlives the server, a code does not.
    let line = world.gyrus(&["chat", "pair", "telegram"]).exits(0).out;
    drop(server);
    let server = start(&world);
    bot.says(OWNER, line.trim());
    bot.waits_until_read();
    assert_eq!(bot.shown().len(), before);
    pair(&world, &bot, OWNER);
    drop(server);
    let _server = start(&world);
    bot.says(OWNER, "/status");
    bot.waits_for("0 runs at work");
}

#[test]
fn groups_are_used_where_a_person_allowed_them() {
    let (world, bot) = paired("", "groups = [-1001234]");
    let _server = start(&world);
    let in_group = |chat: i64, text: &str| {
        let mut message = bot.message(OWNER, text);
        message["chat"] = json!({"id": chat, "type": "supergroup", "title": "same title"});
        bot.send(message);
    };
    in_group(-1_009_999, "/status");
    in_group(-1_001_234, "/status@another_bot");
    in_group(-1_001_234, "we talk about something else");
    let mut anonymous = bot.message(OWNER, "/status");
    anonymous["chat"] = json!({"id": -1_001_234, "type": "supergroup"});
    anonymous["sender_chat"] = json!({"id": -1_001_234, "type": "supergroup"});
    bot.send(anonymous);
    in_group(-1_001_234, "/status@G_Bot");
    let shown = bot.waits_for("0 runs at work");
    bot.waits_until_read();
    assert_eq!(shown.chat, -1_001_234);
    let in_groups = bot.shown().into_iter().filter(|shown| shown.chat < 0);
    assert_eq!(in_groups.count(), 1);
    // It becomes a supergroup, which an answer to a message may say first.
    let moved = json!({"ok": false, "error_code": 400, "description": "Bad Request: group chat was \
        upgraded to a supergroup chat", "parameters": {"migrate_to_chat_id": -1_005_678}});
    bot.fails("sendMessage", Fault::Answer(400, moved));
    in_group(-1_001_234, "/agents");
    let shown = bot.waits_for("there are no agents");
    assert_eq!((shown.chat, shown.reply_to), (-1_005_678, None));
    let mut moved = bot.message(OWNER, "");
    moved["chat"] = json!({"id": -1_001_234, "type": "group"});
    moved["migrate_to_chat_id"] = json!(-1_005_678);
    bot.send(moved);
    in_group(-1_005_678, "/help");
    let shown = bot.waits("the group that moved", |bot| {
        let mut shown = bot.shown().into_iter();
        shown.find(|shown| shown.text.starts_with("Write what") && shown.chat < 0)
    });
    assert_eq!(shown.chat, -1_005_678);
}

#[test]
fn a_token_that_cannot_be_used_is_said_and_ends_nothing() {
    let (world, bot) = (World::new(""), BotApi::start());
    configure(&world, &bot, "");
    let mut serving = world.start(&["serve", "--port", "0"]);
    serving.hears("the token TELEGRAM_TOKEN is not set");
    serving.hears("open this address");
    let said = world.gyrus(&["chat", "pair", "telegram"]).exits(2);
    assert!(
        said.err.contains("this server has no chat `telegram`"),
        "{said:?}"
    );
    drop(serving);

    let mut wrong = world.command(&["serve", "--port", "0"]);
    let other = "110201543:BBHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";
    let mut serving = crate::support::Running::of(wrong.env("TELEGRAM_TOKEN", other));
    serving.hears("the token is not accepted");
    world.gyrus(&["chat", "pair", "telegram"]).exits(0);
    serving.signal(rustix::process::Signal::INT);
    let said = serving.end();
    assert!(!said.err.contains("BBHdq"), "{said:?}");

    // The token itself in the configuration is refused, and not shown.
    let config = world.path("home/config.toml");
    let text = crate::support::read(&config).replace("TELEGRAM_TOKEN", other);
    std::fs::write(config, text).unwrap();
    let said = world.gyrus(&["serve", "--port", "0"]).exits(2);
    assert!(said.err.contains("`token` names the variable"), "{said:?}");
    assert!(!said.err.contains("BBHdq"), "{said:?}");
}
