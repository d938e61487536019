//! Goals, words for runs, and what is said about them.

use serde_json::json;

use super::{
    OWNER, STRANGER, Server, TOKEN,
    bot_api::{BotApi, Fault, Shown},
    configure, pair, paired, start,
};
use crate::support::{THREE_STEPS, UNTIL_GO, World};

const AUTO: &str = "options = { approve = \"auto\" }";

#[test]
fn a_goal_becomes_a_run_and_its_result_a_message() {
    let (world, bot) = paired(THREE_STEPS, AUTO);
    let _server = start(&world);
    bot.waits_until_read();
    let since = std::time::Instant::now();
    let asked = bot.says(OWNER, "say hello");
    let first = bot.waits_for("say hello\n");
    let took = first.at.duration_since(since);
    assert_eq!(first.reply_to, Some(asked));
    let result = bot.waits_for("It says hello.");
    assert_eq!(result.reply_to, Some(asked));
    assert_eq!(world.file("ledger.txt"), "hello\n");
    let status = bot.waits("the last state", |bot| {
        let shown = bot.shown().into_iter().find(|shown| shown.id == first.id)?;
        shown.text.ends_with("\nclaimed").then_some(shown)
    });
    let run = world.runs()[0];
    assert!(
        status
            .text
            .starts_with(&format!("Run {}: say hello", run.short()))
    );
    eprintln!("first reaction after {took:?}");

    // A file that it left is sent when it is asked for.
    assert!(
        result
            .buttons
            .iter()
            .any(|(label, _)| label == "📄 out.txt"),
        "{result:?}"
    );
    bot.presses(OWNER, &result, "📄 out.txt");
    let file = bot.waits("the file", |bot| {
        let mut shown = bot.shown().into_iter();
        shown.find_map(|shown| shown.file)
    });
    assert_eq!(file, ("out.txt".to_owned(), b"hello\n".to_vec()));

    // A reply goes on from it, as a run of its own.
    bot.replies(OWNER, result.id, "and again");
    bot.waits_for("and again\n");
    bot.waits("the second run", |_| {
        (world.runs().len() == 2).then_some(())
    });
}

#[test]
fn a_reply_to_a_run_at_work_is_added_to_it_and_stop_stops_it() {
    let (world, bot) = paired(UNTIL_GO, AUTO);
    let _server = start(&world);
    bot.says(OWNER, "/run wait");
    let status = bot.waits_for("wait\n");
    world.wait_for_file("ledger.txt", "begun");
    bot.replies(OWNER, status.id, "be quick");
    bot.waits_for("is told.");
    bot.says(OWNER, "/status");
    bot.waits_for("1 run at work, 0 waiting.");
    // Neither a forwarded message nor an edited one is a command.
    let mut forwarded = bot.message(OWNER, "/stop");
    forwarded["forward_origin"] =
        json!({"type": "hidden_user", "sender_user_name": "x", "date": 1});
    bot.send(forwarded);
    bot.waits_for("A forwarded message is not followed");
    let mut old = bot.message(OWNER, "/stop");
    old["forward_date"] = json!(1);
    bot.send(old);
    let edited = bot.message(OWNER, "/stop");
    bot.update(json!({"edited_message": edited}));
    bot.says(STRANGER, "/stop");
    bot.waits_until_read();
    assert!(!world.gyrus(&["runs"]).out.contains("stopped"));
    bot.replies(OWNER, status.id, "/stop");
    bot.waits_for("is told to stop.");
    bot.waits_for(": stopped by 5000000042 (telegram)");
    let entries = world.entries();
    let steered = entries
        .iter()
        .any(|entry| matches!(entry, gyrus_kernel::Entry::Steered(_)));
    assert!(!steered, "it was stopped within its first step");

    // A reply resumes it.
    let stopped = bot.waits_for("A reply to this goes on with it.");
    std::fs::write(world.work().join("go"), "").unwrap();
    bot.replies(OWNER, stopped.id, "now go on");
    bot.waits_for("\ngoes on");
    bot.waits_for_exactly("finished");
    let entries = world.entries();
    let words: Vec<String> = entries
        .iter()
        .filter_map(|entry| match entry {
            gyrus_kernel::Entry::Steered(steered) => Some(format!("{:?}", steered.messages)),
            _ => None,
        })
        .collect();
    let words = words.concat();
    assert!(
        words.contains("be quick") && words.contains("now go on"),
        "{words}"
    );
    assert_eq!(world.runs().len(), 1);
    // Files come only with a goal, and a spoken reply is no answer.
    let mut file = bot.message(OWNER, "");
    file["voice"] = json!({"file_id": "v1"});
    file["reply_to_message"] = json!({"message_id": status.id, "from": {"id": 110_201_543}});
    bot.send(file);
    bot.waits_for("To answer, or to add to a run, write.");
    // One that replies to what is not known is no goal.
    bot.replies(OWNER, 999_999, "what is this");
    bot.waits_for("is not known here");
}

#[test]
fn stop_alone_stops_everything_and_latches() {
    let (world, bot) = paired(UNTIL_GO, AUTO);
    let _server = start(&world);
    bot.says(OWNER, "wait");
    world.wait_for_file("ledger.txt", "begun");
    bot.says(OWNER, "/stop");
    bot.waits_for("Everything is stopped");
    bot.waits_for(": stopped by");
    // What comes after it waits for a person at the machine.
    bot.says(OWNER, "another");
    bot.waits_for("another\nwaits: everything is stopped");
    bot.says(OWNER, "/status");
    bot.waits_for("\nEverything is stopped: gyrus rearm");
    world.gyrus(&["rearm", "--yes"]).exits(0);
    bot.waits("the next run", |_| (world.runs().len() == 2).then_some(()));
}

#[test]
fn files_and_pictures_come_with_a_goal() {
    let (world, bot) = paired(THREE_STEPS, AUTO);
    let _server = start(&world);
    let document = |id: &str, name: &str, bytes: &[u8]| {
        bot.keep_file(id, bytes);
        json!({"file_id": id, "file_unique_id": id, "file_name": name, "file_size": bytes.len()})
    };
    // One without words waits for them, also one that was forwarded; its words are not followed.
    let mut forwarded = bot.message(OWNER, "");
    forwarded["caption"] = json!("/stop");
    forwarded["forward_origin"] = json!({"type": "user", "date": 1});
    forwarded["document"] = document("f1", "../../notes.txt", b"the notes");
    bot.send(forwarded);
    bot.waits_for("1 file kept");
    let mut message = bot.message(OWNER, "");
    message["caption"] = json!("look at these");
    message["document"] = document("f2", "data.bin", &[0xff, 0, 0xfe]);
    message["photo"] = json!([document("small", "", b"x"), document("f3", "", PICTURE)]);
    bot.send(message);
    bot.waits_for("It says hello.");
    let entries = world.entries();
    let Some(gyrus_kernel::Entry::RunStarted(started)) = entries.first() else {
        panic!("{entries:?}")
    };
    let text = serde_json::to_string(&started.context).unwrap();
    assert!(text.contains("the notes"), "{text}");
    assert!(text.contains("image/png"), "{text}");
    let goal = serde_json::to_string(&started.goal).unwrap();
    let run = world.runs()[0].short();
    assert!(goal.contains(&format!("received/{run}-data.bin")), "{goal}");
    assert_eq!(
        std::fs::read(world.work().join(format!("received/{run}-data.bin"))).unwrap(),
        [0xff, 0, 0xfe]
    );
    // Nothing is left of it.
    let kept = world.path("home/chats/telegram/in");
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 0);

    // A path that leads elsewhere is not followed.
    let elsewhere =
        json!({"ok": true, "result": {"file_id": "f4", "file_path": "../../bot/getMe"}});
    bot.fails("getFile", Fault::Answer(200, elsewhere));
    let mut astray = bot.message(OWNER, "");
    astray["caption"] = json!("astray");
    astray["document"] = document("f4", "a.txt", b"x");
    bot.send(astray);
    bot.waits_for("the server gave no usable path for the file");

    // One that is too large is refused, whether it is said or not.
    let mut large = bot.message(OWNER, "");
    large["caption"] = json!("too large");
    large["document"] = json!({"file_id": "f9", "file_size": 20_000_001});
    bot.send(large);
    bot.waits_for("A file is larger than 20 MB.");
    bot.keep_file("f10", &vec![b'x'; 20_000_001]);
    let mut large = bot.message(OWNER, "");
    large["caption"] = json!("too large again");
    large["document"] = json!({"file_id": "f10"});
    bot.send(large);
    bot.waits_for("could not begin: a file cannot be fetched: it is larger than");
}

/// The smallest PNG.
const PICTURE: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

#[test]
fn a_voice_message_is_a_goal_once_it_is_transcribed() {
    let (world, bot) = paired(THREE_STEPS, AUTO);
    let heard = crate::http::serve(|asked| {
        let body = asked.text();
        assert_eq!(asked.path(), "/v1/audio/transcriptions");
        assert!(
            body.contains("name=\"model\"\r\n\r\nwhisper-1\r\n"),
            "{body}"
        );
        assert!(body.contains("OggS-bytes"), "{body}");
        r#"{"text": " say hello\u202e "}"#.to_owned()
    });
    let voice = || {
        bot.keep_file("v1", b"OggS-bytes");
        let mut message = bot.message(OWNER, "");
        message["voice"] = json!({"file_id": "v1", "file_size": 10});
        bot.send(message);
    };
    let server = start(&world);
    voice();
    bot.waits_for("Voice messages need a server");
    drop(server);
    let config = world.path("home/config.toml");
    let text = crate::support::read(&config);
    let more = format!("transcribe = {{ url = \"{heard}/v1\", model = \"whisper-1\" }}\n");
    std::fs::write(&config, text + &more).unwrap();
    let _server = start(&world);
    voice();
    let heard = bot.waits_for("Heard: say hello<U+202E>");
    let result = bot.waits_for("It says hello.");
    assert!(heard.at < result.at);
    let entries = world.entries();
    let Some(gyrus_kernel::Entry::RunStarted(started)) = entries.first() else {
        panic!("{entries:?}")
    };
    let goal = serde_json::to_string(&started.goal).unwrap();
    assert!(goal.contains("transcription"), "{goal}");
}

#[test]
fn what_is_typed_is_understood() {
    let (world, bot) = paired("", "");
    let _server = start(&world);
    for (typed, answered) in [
        ("/help", "Write what is to be done"),
        ("/start", "Write what is to be done"),
        ("/rum", "There is no command “/rum”"),
        ("/run", "Write the goal behind it"),
        ("/approve", "Nothing waits for an answer."),
        ("/screenshot", "No run is at work here"),
        ("/agents", "there are no agents"),
        ("/memory", "Write words to search for"),
        ("/memory -x --help", "no note has these words"),
        ("/stop it", "That names no run."),
        ("/pair ABC", "You are paired already."),
    ] {
        let before = bot.shown().len();
        let asked = bot.says(OWNER, typed);
        let shown: Shown = bot.waits(typed, |bot| {
            let shown = bot.shown();
            shown[before..]
                .iter()
                .find(|shown| shown.text.contains(answered))
                .cloned()
        });
        assert_eq!(shown.reply_to, Some(asked), "{typed}");
    }
    assert!(world.runs().is_empty());
}

#[test]
fn a_long_answer_is_a_file_with_its_beginning() {
    let answer = "Zeile mit ünïcode 👩‍👩‍👧‍👦\\n".repeat(1_500);
    let script = format!(
        "[[reply]]\ncalls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = \"{answer}\" }} }}]\n"
    );
    let (world, bot) = paired(&script, AUTO);
    let _server = start(&world);
    bot.says(OWNER, "say much");
    bot.waits_for("… (the rest is in the file)");
    let files = bot.shown().into_iter().filter_map(|shown| shown.file);
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0, format!("answer-{}.md", world.runs()[0].short()));
    let text = String::from_utf8(files[0].1.clone()).unwrap();
    assert_eq!(text.lines().count(), 1_500);
}

#[test]
fn a_screenshot_is_a_picture_of_the_browser() {
    if !crate::browsing::has_browser() {
        return;
    }
    let (world, site) = (
        World::new(crate::taking_over::ASKS),
        crate::taking_over::site(),
    );
    let bot = BotApi::start();
    let options = format!("options = {{ url = \"{site}\", require = \"claimed\" }}");
    configure(&world, &bot, &options);
    let browser = crate::server::live::browser();
    let variables = [("TELEGRAM_TOKEN", TOKEN), ("GYRUS_BROWSER", &*browser)];
    let _server = Server::start_in(&world, &[], &variables);
    pair(&world, &bot, OWNER);
    bot.says(OWNER, &format!("see who I am at {site}"));
    bot.waits_for("Reply to this message to answer.");
    bot.says(OWNER, "/screenshot");
    let shown = bot.waits("the picture", |bot| {
        bot.shown().into_iter().find(|shown| shown.is_picture)
    });
    let (name, bytes) = shown.file.unwrap();
    assert_eq!(name, "screen.png");
    assert!(bytes.starts_with(b"\x89PNG"));
}

#[test]
fn an_agent_is_told_something_from_a_chat() {
    let (world, bot) = paired("[[reply]]\ntext = \"It is watered.\"\n", AUTO);
    std::fs::create_dir_all(world.path("home/agents")).unwrap();
    std::fs::create_dir(world.path("person/garden")).unwrap();
    let agent = "---\nworkdir: ~/garden\n---\nDo in the garden what you are told.\n";
    std::fs::write(world.path("home/agents/gardener.md"), agent).unwrap();
    let _server = start(&world);
    bot.waits_until_read();
    bot.says(OWNER, "/agents nobody water the lime tree");
    bot.waits_for("there is no agent `nobody`");
    bot.says(OWNER, "/agents gardener");
    bot.waits_for("Write behind the name what it is to be told");
    bot.says(OWNER, "/agents gardener water the lime tree");
    bot.waits_for("The agent gardener was told.");
    bot.waits("the agent's run", |_| {
        (!world.runs().is_empty()).then_some(())
    });
    let shown = world.gyrus(&["show", "last", "--anywhere"]).out;
    assert!(shown.contains("water the lime tree"), "{shown}");
}
