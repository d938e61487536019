//! Kills, duplicates, and a server that misbehaves.

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    OWNER,
    bot_api::{BotApi, Fault, TOKEN},
    configure, paired, start,
};
use crate::{
    disks::{fill, on_small_disk},
    support::{UNTIL_GO, World},
};

const AUTO: &str = "options = { approve = \"auto\", loop = \"react\" }";

/// Finishes at once.
const AT_ONCE: &str = r#"
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

fn results(bot: &BotApi) -> usize {
    let shown = bot.shown().into_iter();
    shown.filter(|shown| shown.text == "finished").count()
}

/// The goals of all runs, which must differ.
fn goals(world: &World) -> BTreeSet<String> {
    let runs = world.runs();
    let goals: BTreeSet<String> = runs
        .iter()
        .map(|run| {
            let reader = world.store().reader(&gyrus_kernel::log_name(*run)).unwrap();
            let first = gyrus_kernel::parse(&reader.entry(1).unwrap().unwrap()).unwrap();
            let gyrus_kernel::Entry::RunStarted(started) = first else {
                panic!("{first:?}")
            };
            gyrus_surfaces::projection::goal(&started.goal, &reader)
        })
        .collect();
    assert_eq!(goals.len(), runs.len(), "{goals:?}");
    goals
}

/// Sends goals while the server is killed again and again: each becomes one run.
fn commands_across_kills(commands: usize, kills: usize) {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let mut sent = 0;
    for kill in 0..=kills {
        let server = start(&world);
        let until = commands * (kill + 1) / (kills + 1);
        while sent < until {
            sent += 1;
            let message = bot.message(OWNER, &format!("goal {sent}"));
            bot.send(message.clone());
            if sent % 7 == 0 {
                // The same once more, and again under another id.
                bot.send(message);
            }
        }
        if kill < kills {
            // At a moment that differs from kill to kill.
            let seen = results(&bot) + kill % 3;
            bot.waits("some results", |bot| {
                (results(bot) >= seen.min(sent)).then_some(())
            });
            server.kill();
        } else {
            bot.waits_until_read();
            let until = Instant::now() + Duration::from_secs(1_200);
            let is_done =
                || results(&bot) + unknown(&bot) >= commands && goals(&world).len() >= commands;
            while !is_done() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(server);
        }
    }
    let expected: BTreeSet<String> = (1..=commands)
        .map(|number| format!("goal {number}"))
        .collect();
    assert_eq!(goals(&world), expected);
    let (results, unknown) = (results(&bot), unknown(&bot));
    eprintln!("{commands} commands, {kills} kills: {results} results, {unknown} unknown");
    assert!(results + unknown >= commands, "{results} {unknown}");
    assert!(results <= commands, "{results}");
}

/// The number of messages that were said to be of unknown delivery.
fn unknown(bot: &BotApi) -> usize {
    let shown = bot.shown().into_iter();
    shown
        .filter(|shown| shown.text.contains("Nobody knows"))
        .count()
}

#[test]
fn goals_on_a_full_disk_are_reached_once_there_is_room() {
    let (world, bot) = (World::new(UNTIL_GO), BotApi::start());
    configure(&world, &bot, AUTO);
    let Some((server, filler)) = on_small_disk(&world, "", &[("TELEGRAM_TOKEN", TOKEN)]) else {
        return;
    };
    let code = server.post("/api/chats/telegram/codes", &json!({})).json();
    bot.says(OWNER, &format!("/pair {}", code["code"].as_str().unwrap()));
    bot.waits_for("You are paired");
    bot.says(OWNER, "goal 1");
    let begun = |path| bot.waits("it begins", |_| world.path(path).exists().then_some(()));
    begun("work/ledger.txt");
    fill(&filler);
    for number in 2..=4 {
        bot.says(OWNER, &format!("goal {number}"));
    }
    fs::write(world.path("work/go"), "").unwrap();
    bot.waits("the server is in want", |_| {
        (server.get("/healthz").status == 503).then_some(())
    });
    fs::remove_file(&filler).unwrap();
    bot.waits("all results", |bot| (results(bot) >= 4).then_some(()));
    assert_eq!(results(&bot), 4);
    assert_eq!(world.file("ledger.txt").matches("done").count(), 4);
}

/// A longer one: `GYRUS_TEST_COMMANDS=1000` takes a quarter of an hour, with 50 kills.
#[test]
fn no_command_is_lost_or_done_twice_across_kills() {
    match std::env::var("GYRUS_TEST_COMMANDS") {
        Ok(commands) => commands_across_kills(commands.parse().unwrap(), 50),
        Err(_) => commands_across_kills(14, 4),
    }
}

#[test]
fn a_server_that_refuses_for_a_while_is_asked_again() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let conflict = json!({"ok": false, "error_code": 500, "description": "Internal Server Error"});
    bot.fails("getUpdates", Fault::BadGateway);
    bot.fails("getUpdates", Fault::Answer(500, conflict));
    let slow = json!({"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 2",
        "parameters": {"retry_after": 2}});
    bot.fails("sendMessage", Fault::BadGateway);
    bot.fails("sendMessage", Fault::Answer(429, slow));
    let _server = start(&world);
    let since = Instant::now();
    bot.says(OWNER, "goal");
    bot.waits_for("finished");
    assert!(since.elapsed() >= Duration::from_secs(3));
    assert_eq!(results(&bot), 1);
    assert_eq!(goals(&world).len(), 1);
}

#[test]
fn a_second_program_that_reads_is_said() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let conflict = json!({"ok": false, "error_code": 409,
        "description": "Conflict: terminated by other getUpdates request"});
    bot.fails("getUpdates", Fault::Answer(409, conflict));
    let mut command = world.command(&["serve", "--port", "0"]);
    let mut serving = crate::support::Running::of(command.env("TELEGRAM_TOKEN", super::TOKEN));
    serving.hears("another program reads the same account: Conflict: terminated");
}

#[test]
fn a_message_whose_delivery_is_unknown_is_shown_as_that_and_not_repeated() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let _server = start(&world);
    bot.says(OWNER, "first");
    bot.waits_for("finished");
    bot.fails("sendMessage", Fault::DoneInSilence);
    bot.says(OWNER, "/help");
    let notice =
        bot.waits_for("Nobody knows whether this message arrived: “Write what is to be done");
    let help = |bot: &BotApi| {
        let shown = bot.shown().into_iter();
        shown
            .filter(|shown| shown.text.starts_with("Write what is"))
            .count()
    };
    assert_eq!(help(&bot), 1);
    bot.says(OWNER, "/status");
    bot.waits_for("The delivery of 1 message is unknown.");
    bot.presses(OWNER, &notice, "Send it again");
    bot.waits("it is sent again", |bot| (help(bot) == 2).then_some(()));
    bot.presses(OWNER, &notice, "Send it again");
    bot.says(OWNER, "/agents");
    bot.waits_for("there are no agents");
    assert_eq!(help(&bot), 2);
}

#[test]
fn updates_that_come_twice_out_of_order_or_anew_are_taken_once() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let server = start(&world);
    let (first, second) = (bot.message(OWNER, "goal 1"), bot.message(OWNER, "goal 2"));
    bot.update(json!({"update_id": 2_002, "message": second}));
    bot.update(json!({"update_id": 2_001, "message": first}));
    bot.update(json!({"update_id": 2_003, "message": first}));
    bot.waits("both", |bot| (results(bot) == 2).then_some(()));
    bot.waits_until_read();
    // Odd ones hold nothing up.
    for odd in [
        json!({"update_id": 2_004}),
        json!({"update_id": 2_005, "message": {"message_id": "x"}}),
        json!({"update_id": 2_006, "message": {"message_id": 1, "chat": {"id": 1, "type": "private"}}}),
        json!({"update_id": 2_007, "callback_query": {"id": "1", "from": {"id": 5_000_000_042_i64}}}),
        json!({"update_id": 2_008, "poll": {}}),
    ] {
        bot.update(odd);
    }
    bot.waits_until_read();
    bot.waits("all is said", |_| super::is_all_said(&world).then_some(()));
    drop(server);
    // After a restart the same updates may come again.
    bot.update(json!({"update_id": 2_009, "message": first}));
    bot.begin_ids_at(2_009);
    let _server = start(&world);
    bot.says(OWNER, "goal 3");
    bot.waits("the third", |_| (world.runs().len() == 3).then_some(()));
    bot.waits("all results", |bot| (results(bot) == 3).then_some(()));
    assert_eq!(goals(&world).len(), 3);
}

#[test]
fn files_of_a_goal_are_fetched_after_a_kill() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let server = start(&world);
    bot.keep_file("f1", b"the notes");
    for _ in 0..3 {
        bot.fails("getFile", Fault::BadGateway);
    }
    let mut message = bot.message(OWNER, "");
    message["caption"] = json!("goal 1");
    message["document"] = json!({"file_id": "f1", "file_name": "notes.txt"});
    bot.send(message.clone());
    bot.waits_for("goal 1\naccepted");
    bot.waits_until_read();
    server.kill();
    bot.send(message);
    let _server = start(&world);
    bot.waits_for_exactly("finished");
    assert_eq!(goals(&world).len(), 1);
    let entries = format!("{:?}", world.entries());
    assert!(entries.contains("the notes"), "{entries}");
}

#[test]
fn words_for_a_run_are_added_once_across_a_kill() {
    let (world, bot) = paired(crate::support::UNTIL_GO, AUTO);
    let server = start(&world);
    bot.says(OWNER, "wait");
    let status = bot.waits_for("wait\n");
    world.wait_for_file("ledger.txt", "begun");
    bot.replies(OWNER, status.id, "be quick");
    bot.waits_until_read();
    server.kill();
    let _server = start(&world);
    bot.waits("it is told, or nobody knows", |bot| {
        bot.has_said("is told").then_some(())
    });
    std::fs::write(world.work().join("go"), "").unwrap();
    bot.waits_for_exactly("finished");
    let entries = world.entries().into_iter();
    let words = entries.filter_map(|entry| match entry {
        gyrus_kernel::Entry::Steered(steered) => Some(steered.messages.len()),
        _ => None,
    });
    assert_eq!(words.sum::<usize>(), 1);
}

#[test]
fn a_run_that_waits_for_its_turn_is_taken_back() {
    let (world, bot) = paired(crate::support::UNTIL_GO, AUTO);
    let variables = [("TELEGRAM_TOKEN", super::TOKEN)];
    let _server = crate::server::Server::start_in(&world, &["--at-once", "1"], &variables);
    bot.says(OWNER, "the first");
    world.wait_for_file("ledger.txt", "begun");
    bot.says(OWNER, "the second");
    let second = bot.waits_for("the second\naccepted");
    bot.replies(OWNER, second.id, "be quick");
    bot.waits_for("has not begun yet. Say it again when it has.");
    bot.replies(OWNER, second.id, "/stop");
    bot.waits_for("is taken back; it had not begun.");
    bot.waits_for(": taken back by 5000000042 (telegram)");
    std::fs::write(world.work().join("go"), "").unwrap();
    bot.waits_for_exactly("finished");
    assert_eq!(goals(&world).len(), 1);
    // It never was, so there is nothing to go on from.
    bot.replies(OWNER, second.id, "again");
    bot.waits_for("again\naccepted");
    bot.waits("a run of its own", |_| {
        (goals(&world).len() == 2).then_some(())
    });
}

#[test]
fn a_server_that_is_stopped_leaves_nothing_unknown() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    for goal in ["goal 1", "goal 2", "goal 3"] {
        let server = start(&world);
        bot.says(OWNER, goal);
        bot.waits_for(&format!("{goal}\n"));
        server.signal(rustix::process::Signal::INT);
        assert_eq!(server.end(), Some(0));
    }
    let _server = start(&world);
    bot.waits("all results", |bot| (results(bot) == 3).then_some(()));
    assert_eq!(unknown(&bot), 0);
}

#[test]
fn a_messenger_that_cannot_be_reached_is_said_and_tried_again() {
    let world = World::new(AT_ONCE);
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bot = BotApi::start();
    super::configure(&world, &bot, AUTO);
    let config = world.path("home/config.toml");
    let text = crate::support::read(&config);
    let nowhere = format!("http://{}", address.local_addr().unwrap());
    drop(address);
    std::fs::write(&config, text.replace(&bot.address, &nowhere)).unwrap();
    let mut command = world.command(&["serve", "--port", "0"]);
    let mut serving = crate::support::Running::of(command.env("TELEGRAM_TOKEN", super::TOKEN));
    serving.hears("chat telegram: error sending request");
    serving.signal(rustix::process::Signal::INT);
    let said = serving.end().exits(0);
    let secret = super::TOKEN.split_once(':').unwrap().1;
    assert!(!said.err.contains(secret), "{said:?}");
}

#[test]
fn a_server_that_does_not_wait_is_not_asked_all_the_time() {
    let (world, bot) = paired(AT_ONCE, AUTO);
    let nothing = json!({"ok": true, "result": []});
    for _ in 0..3 {
        bot.fails("getUpdates", Fault::Answer(200, nothing.clone()));
    }
    let since = Instant::now();
    let _server = start(&world);
    bot.says(OWNER, "goal 1");
    bot.waits_for("goal 1\n");
    assert!(since.elapsed() >= Duration::from_secs(3));
}

/// Lets everything go wrong now and then, and the server be stopped and killed: whatever happens,
/// nothing is lost and nothing comes twice. `GYRUS_TEST_SEED` is another course of events.
#[test]
fn nothing_is_lost_or_doubled_whatever_goes_wrong() {
    let seed = std::env::var("GYRUS_TEST_SEED").ok();
    let seed = seed.map_or(2_463_534_242, |seed| seed.parse().unwrap());
    let (world, bot) = paired(AT_ONCE, AUTO);
    bot.fails_by_chance(seed);
    let expected: BTreeSet<String> = (1..=9).map(|number| format!("goal {number}")).collect();
    for (index, goals) in Vec::from_iter(&expected).chunks(3).enumerate() {
        let server = start(&world);
        for goal in goals {
            bot.says(OWNER, goal);
        }
        bot.waits_until_read();
        if index == 0 {
            server.kill();
        }
    }
    let _server = start(&world);
    bot.waits("all results", |bot| {
        let shown = bot.shown().into_iter();
        let notices = shown.filter(|shown| shown.text.ends_with("arrived: “finished”"));
        let results = results(bot) + notices.count();
        let is_done = results >= expected.len() && super::is_all_said(&world);
        (is_done && world.runs().len() >= expected.len()).then_some(())
    });
    assert_eq!(goals(&world), expected);
    assert!(results(&bot) <= expected.len());
}
