//! Cards of runs: shown whole, answered once, from whatever phone.

use super::{
    OWNER, STRANGER,
    bot_api::{Fault, Person, Shown},
    pair, paired, start,
};
use crate::{
    server::runs::ASKS,
    serving::{SERVER, allow},
    support::World,
};

const OTHER: Person = Person(6_000_000_007);

/// Asks a person for words.
const QUESTION: &str = r#"
[[reply]]
calls = [{ tool = "ask_person", arguments = { question = "Which colour?" } }]
[[reply]]
when = "green"
calls = [{ tool = "finish", arguments = { reached = true, answer = "It is green." } }]
"#;

/// Waits until the buttons of a message are gone; returns it.
#[track_caller]
fn settled(bot: &super::BotApi, card: &Shown) -> Shown {
    bot.waits("the buttons are gone", |bot| {
        let shown = bot.shown().into_iter().find(|shown| shown.id == card.id)?;
        (shown.buttons.is_empty() && shown.text.contains("\n— ")).then_some(shown)
    })
}

fn principals(world: &World) -> Vec<String> {
    let entries = world.entries().into_iter();
    let answers = entries.filter_map(|entry| match entry {
        gyrus_kernel::Entry::ApprovalAnswered(answered) => {
            let by = answered.by.unwrap();
            Some(format!("{} {} {}", answered.approved, by.surface, by.id))
        }
        _ => None,
    });
    answers.collect()
}

#[test]
fn a_card_is_answered_by_its_buttons_once() {
    let (world, bot) = paired(ASKS, "");
    let _server = start(&world);
    pair(&world, &bot, OTHER);
    bot.says(OWNER, "write it");
    let card = bot.waits_for("Allow it once, or deny it?");
    for part in [
        "Approval 1.",
        "┃ ",
        ".envrc",
        "hello",
        "as written by the model (unverified):",
    ] {
        assert!(card.text.contains(part), "{part} is not in {}", card.text);
    }
    // A stranger, a forged button, and one of another message.
    bot.presses(STRANGER, &card, "Allow once");
    bot.waits("the stranger is refused", |bot| {
        bot.toasts()
            .contains(&"This is not yours to answer.".to_owned())
            .then_some(())
    });
    let (_, data) = card.buttons[0].clone();
    let mark = data.rsplit(':').next().unwrap();
    let forged = data.replace(mark, &"0".repeat(mark.len()));
    let status = bot.waits_for("write it\n");
    for (shown, data) in [
        (&card, forged.as_str()),
        (&card, "allow:999999:0"),
        (&card, "allow"),
        (&card, ""),
        (&status, data.as_str()),
    ] {
        let before = bot.toasts().len();
        bot.presses_data(OWNER, shown, data);
        bot.waits("the press is acknowledged", |bot| {
            (bot.toasts().len() > before).then_some(())
        });
    }
    // A reply is no answer to it.
    bot.replies(OWNER, card.id, "yes");
    bot.waits_for("press one of its buttons");
    assert_eq!(principals(&world), Vec::<String>::new());
    // Two phones press at once.
    bot.presses(OWNER, &card, "Allow once");
    bot.presses(OTHER, &card, "Deny");
    let shown = settled(&bot, &card);
    bot.waits_for_exactly("done");
    let answers = principals(&world);
    assert_eq!(answers.len(), 1, "{answers:?}");
    let first = match answers[0].as_str() {
        "true telegram 5000000042" => "approved by 5000000042 (telegram)",
        "false telegram 6000000007" => "denied by 6000000007 (telegram)",
        other => panic!("{other}"),
    };
    // Whichever press settles the card says who was first.
    assert!(shown.text.ends_with(first), "{}", shown.text);
    bot.waits("both are told who was first", |bot| {
        let toasts = bot.toasts();
        (toasts.iter().filter(|toast| toast.contains(first)).count() == 2).then_some(())
    });
    // A button that somebody still sees says the same.
    bot.presses(OTHER, &card, "Deny");
    bot.waits("it is told again", |bot| {
        let toasts = bot.toasts();
        (toasts.iter().filter(|toast| toast.contains(first)).count() == 3).then_some(())
    });
    assert_eq!(principals(&world).len(), 1);
}

#[test]
fn a_card_that_is_answered_elsewhere_says_so() {
    let (world, bot) = paired(ASKS, "");
    let _server = start(&world);
    bot.says(OWNER, "write it");
    let card = bot.waits_for("Allow it once, or deny it?");
    world.gyrus(&["deny", "last"]).exits(0);
    let shown = settled(&bot, &card);
    assert!(
        shown.text.ends_with("\n— denied by tester (command line)"),
        "{}",
        shown.text
    );
    bot.waits_for_exactly("done");
    bot.presses(OWNER, &card, "Allow once");
    bot.waits("who was first", |bot| {
        let toasts = bot.toasts();
        toasts
            .iter()
            .any(|toast| toast.contains("denied by tester (command line)"))
            .then_some(())
    });
    assert_eq!(world.file(".envrc"), "");
}

#[test]
fn a_card_is_denied_with_words_by_a_reply() {
    let (world, bot) = paired(ASKS, "");
    let _server = start(&world);
    bot.says(OWNER, "write it");
    let card = bot.waits_for("Allow it once, or deny it?");
    bot.replies(OWNER, card.id, "No: put it into a note, please");
    let shown = settled(&bot, &card);
    assert!(
        shown
            .text
            .ends_with("\n— answered by 5000000042 (telegram)"),
        "{shown:?}"
    );
    bot.waits_for_exactly("done");
    let answered = world.entries().into_iter().find_map(|entry| match entry {
        gyrus_kernel::Entry::ApprovalAnswered(answered) => answered.reason,
        _ => None,
    });
    assert_eq!(answered.as_deref(), Some("put it into a note, please"));
    assert_eq!(world.file(".envrc"), "");
}

#[test]
fn a_question_is_answered_by_a_reply() {
    let (world, bot) = paired(QUESTION, "");
    let _server = start(&world);
    bot.says(OWNER, "paint it");
    let card = bot.waits_for("Reply to this message to answer.");
    assert!(
        card.text.contains("┃ Which colour?") || card.text.contains("Which colour?"),
        "{card:?}"
    );
    assert!(card.buttons.is_empty());
    bot.replies(OWNER, card.id, "green");
    bot.waits_for("It is green.");
    assert_eq!(principals(&world), ["true telegram 5000000042"]);
    // One more is too late.
    bot.replies(OWNER, card.id, "red");
    bot.waits("who was first", |bot| {
        let shown = bot.shown().into_iter();
        let mut late = shown.filter(|shown| shown.id != card.id);
        late.any(|shown| shown.text.starts_with("approved by 5000000042 (telegram)"))
            .then_some(())
    });
}

#[test]
fn a_servers_question_is_answered_by_a_reply() {
    let script = "[[reply]]\ncalls = [{ tool = \"srv__asks\", arguments = {} }]\n\
                  [[reply]]\nwhen = \"branch.:.main\"\n\
                  calls = [{ tool = \"finish\", arguments = { reached = true, answer = \"It is main.\" } }]\n";
    // A run of a chat waits for the answer only if it is told to.
    let more = "options = { approve = \"auto\", on-ask = \"wait\" }\n\
                [mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"asking\"]\n";
    let (world, bot) = paired(script, more);
    std::fs::copy(SERVER, world.work().join("server.sh")).unwrap();
    allow(&world, "srv__*");
    let _server = start(&world);
    bot.says(OWNER, "ask");
    let card = bot.waits_for("asks you for 1 field (`branch`)");
    bot.replies(OWNER, card.id, "main");
    bot.waits_for("It is main.");
}

#[test]
fn questions_of_runs_from_elsewhere_are_shown_when_asked_for() {
    let (world, bot) = paired(ASKS, "");
    world
        .gyrus(&["run", "write it", "--workdir", ".", "--on-ask", "park"])
        .exits(5);
    let _server = start(&world);
    bot.says(OWNER, "/approve");
    let card = bot.waits_for("Allow it once, or deny it?");
    bot.presses(OWNER, &card, "Deny");
    let shown = settled(&bot, &card);
    assert!(
        shown.text.ends_with("\n— denied by 5000000042 (telegram)"),
        "{}",
        shown.text
    );
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(principals(&world), ["false telegram 5000000042"]);
}

#[test]
fn a_card_that_arrived_though_nobody_knew_is_answered_by_its_buttons() {
    let (world, bot) = paired(ASKS, "");
    let _server = start(&world);
    // The second message is the card; the first is its run's.
    bot.fails("sendMessage", Fault::Nothing);
    bot.fails("sendMessage", Fault::DoneInSilence);
    bot.says(OWNER, "write it");
    let card = bot.waits_for("Allow it once, or deny it?");
    bot.waits_for("Nobody knows whether this message arrived: “Approval");
    bot.presses(OWNER, &card, "Deny");
    settled(&bot, &card);
    bot.waits_for_exactly("done");
    assert_eq!(principals(&world), ["false telegram 5000000042"]);
    bot.says(OWNER, "/status");
    let status = bot.waits_for(", 0 waiting.");
    assert!(!status.text.contains("unknown"), "{status:?}");
}

#[test]
fn a_press_counts_once_across_a_kill() {
    let (world, bot) = paired(ASKS, "");
    let server = start(&world);
    bot.says(OWNER, "write it");
    let card = bot.waits_for("Allow it once, or deny it?");
    bot.waits("it is known", |_| super::is_all_said(&world).then_some(()));
    bot.presses(OWNER, &card, "Deny");
    bot.waits_until_read();
    server.kill();
    let _server = start(&world);
    let shown = settled(&bot, &card);
    assert!(
        shown.text.ends_with("\n— denied by 5000000042 (telegram)"),
        "{}",
        shown.text
    );
    bot.waits_for_exactly("done");
    assert_eq!(principals(&world), ["false telegram 5000000042"]);
}

#[test]
fn a_card_that_is_too_long_comes_as_a_file_whole() {
    let content = "a line that nobody would read here\\n".repeat(1_000);
    let script = ASKS.replace("hello\\n", &content);
    let (world, bot) = paired(&script, "");
    let _server = start(&world);
    bot.says(OWNER, "write much");
    let card = bot.waits_for("The whole card is in the file above.");
    let mut files = bot.shown().into_iter().filter_map(|shown| shown.file);
    let (name, bytes) = files.next_back().unwrap();
    assert!(name.starts_with("question-1."), "{name}");
    let text = String::from_utf8(bytes).unwrap();
    let asked = world.gyrus(&["approvals", "--json"]).exits(0).out;
    let asked: serde_json::Value = serde_json::from_str(&asked).unwrap();
    let details = asked["card"]["details"].as_array().unwrap();
    let lines = details
        .iter()
        .flat_map(|detail| detail["text"].as_str().unwrap().lines());
    assert!(lines.clone().count() > 100, "{asked}");
    for line in lines {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    bot.presses(OWNER, &card, "Deny");
    settled(&bot, &card);
    bot.waits_for_exactly("done");
}
