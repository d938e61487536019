//! Chats of a server, by a Bot API on loopback.

mod bot_api;
mod cards;
mod conversations;
mod failing;
mod phone;
mod pairing;

use std::fs;

use self::bot_api::{BotApi, Person, TOKEN};
use crate::{server::Server, support::World};

/// The person who is paired.
const OWNER: Person = Person(5_000_000_042);

/// Somebody else.
const STRANGER: Person = Person(777);

/// Writes the section of a chat with these further lines.
fn configure(world: &World, bot: &BotApi, more: &str) {
    let home = world.path("home");
    fs::create_dir_all(&home).unwrap();
    let work = world.work();
    let (work, address) = (work.display(), &bot.address);
    let text = format!(
        "[chat.telegram]\ntoken = \"TELEGRAM_TOKEN\"\nworkdir = \"{work}\"\nurl = \"{address}\"\n{more}\n"
    );
    fs::write(home.join("config.toml"), text).unwrap();
}

/// Starts the server of a world whose chat is configured.
fn start(world: &World) -> Server<'_> {
    Server::start_in(world, &[], &[("TELEGRAM_TOKEN", TOKEN)])
}

/// Pairs a person by a code of the console.
fn pair(world: &World, bot: &BotApi, person: Person) {
    let line = world.gyrus(&["chat", "pair", "telegram"]).exits(0).out;
    let before = bot.shown().len();
    bot.says(person, line.trim());
    bot.waits("You are paired", |bot| {
        let shown = bot.shown();
        let mut new = shown[before..].iter();
        new.any(|shown| shown.text.starts_with("You are paired"))
            .then_some(())
    });
}

/// Whether it is on disk that everything was said: a kill leaves nothing unknown then.
fn is_all_said(world: &World) -> bool {
    let chats = gyrus_chat::read_chats(&world.store()).unwrap();
    chats.iter().all(|(_, record)| record.waiting() == 0)
}

/// A world with a chat that begins, whose owner is paired.
fn paired(script: &str, more: &str) -> (World, BotApi) {
    let (world, bot) = (World::new(script), BotApi::start());
    configure(&world, &bot, more);
    let server = start(&world);
    pair(&world, &bot, OWNER);
    bot.waits("all is said", |_| is_all_said(&world).then_some(()));
    drop(server);
    (world, bot)
}
