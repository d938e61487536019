//! Asking a person: waiting, parking, denying, and answers that count once.

use std::time::{Duration, SystemTime};

use gyrus_conformance::{
    recording::Cut,
    scenario::{ASKS, Bench, Scenario},
    script::{Script, Turn},
    world::{FINISH, PUT, value},
};
use gyrus_contract::{
    Answer, ApprovalScope, Digest, EffectId, Grant, MessageBody, Mode, OnAsk, Principal,
};
use gyrus_kernel::{
    APPROVAL_REFUSED, ApprovalAsked, ApprovalCard, CallEnd, Ending, Entry, KernelError,
    QUESTIONS_LAST, ResumeChanges,
    approvals::{self, AnswerMismatch},
    log_name,
};
use serde_json::json;

/// A task whose one change needs a person's yes. It says honestly whether it got it.
fn asking(on_ask: OnAsk) -> Scenario {
    let script = Script::rule(|prompt| {
        let last = prompt.messages.last().unwrap().text();
        match prompt.messages.len() {
            1 => Turn::call(PUT, value("colour", "green")),
            _ => Turn::call(FINISH, json!({"reached": last == "done", "answer": last})),
        }
    });
    let mut scenario = Scenario::new("react", script);
    scenario.policy = ASKS;
    scenario.new.on_ask = on_ask;
    scenario
}

/// The card that waits for an answer.
fn asked(bench: &Bench) -> Option<(EffectId, Digest)> {
    bench
        .recording()
        .entries()
        .rev()
        .find_map(|entry| match entry {
            Entry::ApprovalAsked(asked) => Some((asked.effect.clone(), asked.digest)),
            _ => None,
        })
}

fn yes(bench: &Bench) -> MessageBody {
    let (effect, digest) = asked(bench).unwrap();
    MessageBody::Answer {
        effect,
        digest,
        answer: Answer::yes(ApprovalScope::Once),
    }
}

#[tokio::test]
async fn parks_and_the_answer_takes_it_up() {
    let bench = asking(OnAsk::Park).bench();
    let parked = bench.start().await.unwrap();
    assert!(
        matches!(parked.ending, Ending::Waiting { .. }),
        "{parked:?}"
    );
    // A yes to something else is not a yes.
    let (effect, _) = asked(&bench).unwrap();
    let digest = Digest::of(b"another card");
    bench.send(MessageBody::Answer {
        effect,
        digest,
        answer: Answer::yes(ApprovalScope::Once),
    });
    let parked = bench.again().resume().await.unwrap();
    assert!(
        matches!(parked.ending, Ending::Waiting { .. }),
        "{parked:?}"
    );
    assert!(bench.world.deeds().is_empty());

    bench.send(yes(&bench));
    let ended = bench.again().resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    assert_eq!(bench.world.state().values["colour"], "green");
    assert_eq!(
        bench.recording().count("approval.asked"),
        1,
        "it was asked again"
    );
    assert_eq!(bench.recording().count("approval.answered"), 1);
}

#[tokio::test]
async fn waits_for_the_answer_in_place() {
    let bench = asking(OnAsk::Wait).bench();
    let ready = bench.create();
    let answering = async {
        let reader = bench.store.reader(&log_name(bench.run())).unwrap();
        let mut follower = reader.follow(1).unwrap();
        while follower.next().await.unwrap().kind != "approval.asked" {}
        bench.send(yes(&bench));
    };
    let (ended, ()) = tokio::join!(ready.drive(), answering);
    assert!(matches!(ended.unwrap().ending, Ending::Reached { .. }));
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn a_denial_reaches_the_model_with_its_words() {
    let bench = asking(OnAsk::Park).bench();
    bench.start().await.unwrap();
    let (effect, digest) = asked(&bench).unwrap();
    bench.send(MessageBody::Answer {
        effect,
        digest,
        answer: Answer::no("I like it red"),
    });
    let next = bench.again();
    let ended = next.resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Failed { .. }), "{ended:?}");
    let told = next.model.heard()[0].messages.last().unwrap().text();
    assert!(told.contains("I like it red"), "{told}");
    assert!(bench.world.state().values.is_empty());
}

#[tokio::test]
async fn with_nobody_to_ask_it_is_denied_and_the_run_says_so_even_after_a_crash() {
    let scenario = asking(OnAsk::Deny);
    let bench = scenario.bench();
    let ended = bench.start().await.unwrap();
    let Ending::Failed { denied, .. } = &ended.ending else {
        panic!("{ended:?}")
    };
    assert_eq!(denied.len(), 1);
    let whole = bench.recording();
    for cut in whole
        .cuts()
        .into_iter()
        .filter(|cut| cut.entries < whole.lines.len())
    {
        let next = scenario.bench_after(Vec::new());
        whole.cut(cut).plant(&bench.store, &next.store);
        let again = next.resume().await.unwrap();
        assert_eq!(again.ending, ended.ending, "after {} entries", cut.entries);
    }
}

#[tokio::test]
async fn a_yes_allows_nothing_in_a_folder_that_took_the_place_of_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let (workspace, aside, other) = (
        real.join("workspace"),
        real.join("aside"),
        real.join("other"),
    );
    for folder in [&workspace, &other] {
        std::fs::create_dir(folder).unwrap();
    }
    let mut scenario = asking(OnAsk::Park);
    scenario.new.workspace.clone_from(&workspace);
    let bench = scenario.bench();
    bench.start().await.unwrap();
    bench.send(yes(&bench));
    // The same call would mean another file now.
    std::fs::rename(&workspace, &aside).unwrap();
    std::os::unix::fs::symlink(&other, &workspace).unwrap();
    let refused = bench.again().resume().await;
    assert!(matches!(refused, Err(KernelError::Moved(_))), "{refused:?}");
    assert!(bench.world.deeds().is_empty(), "done in another folder");
    std::fs::remove_file(&workspace).unwrap();
    std::fs::rename(&aside, &workspace).unwrap();
    let ended = bench.again().resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
}

#[tokio::test]
async fn a_recorded_verdict_allows_nothing_later() {
    let mut scenario = asking(OnAsk::Deny);
    scenario.policy = "";
    let bench = scenario.bench();
    bench.start().await.unwrap();
    let whole = bench.recording();
    for kind in ["gate.verdict", "tool.started"] {
        let entries = 1 + whole
            .kinds()
            .iter()
            .position(|found| *found == kind)
            .unwrap();
        let next = scenario.bench_after(Vec::new());
        whole
            .cut(Cut {
                entries,
                of_child: None,
            })
            .plant(&bench.store, &next.store);
        let stricter = ResumeChanges {
            mode: Some(Mode::ReadOnly),
            ..ResumeChanges::default()
        };
        next.resume_with(stricter).await.unwrap();
        assert!(
            next.world.state().values.is_empty(),
            "after `{kind}` it was done all the same"
        );
        let recording = next.recording();
        let refused = recording.entries().any(|entry| {
            matches!(entry, Entry::ToolResulted(result) if result.settled == CallEnd::Refused)
        });
        assert!(refused, "after `{kind}`");
    }
}

/// The process dies between a yes and what it allows, or just after that began.
#[tokio::test]
async fn a_yes_lets_one_start_happen_and_none_after_its_time() {
    for (kind, lasts) in [
        ("approval.answered", Duration::from_secs(1)),
        ("tool.started", QUESTIONS_LAST),
    ] {
        let mut scenario = asking(OnAsk::Park);
        scenario.questions_last = lasts;
        let bench = scenario.bench();
        bench.start().await.unwrap();
        bench.send(yes(&bench));
        bench.again().resume().await.unwrap();
        let whole = bench.recording();
        let first = whole.kinds().iter().position(|found| *found == kind);
        let cut = Cut {
            entries: 1 + first.unwrap(),
            of_child: None,
        };
        scenario.questions_last = QUESTIONS_LAST;
        let next = scenario.bench_after(Vec::new());
        whole.cut(cut).plant(&bench.store, &next.store);
        let valid = asked_last(&next).valid;
        while kind == "approval.answered" && !valid.is_over(now_ms()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for _ in 0..2 {
            let parked = next.again().resume().await.unwrap();
            assert!(
                matches!(parked.ending, Ending::Waiting { asking: 2, .. }),
                "after `{kind}`: {parked:?}"
            );
            assert!(next.world.deeds().is_empty(), "done on an old yes");
        }
        // A yes to the first asking is none to the second.
        let (effect, _) = asked(&bench).unwrap();
        let MessageBody::Answer { digest, .. } = yes(&bench) else {
            panic!("it is a yes");
        };
        next.send(MessageBody::Answer {
            effect,
            digest,
            answer: Answer::yes(ApprovalScope::Once),
        });
        next.again().resume().await.unwrap();
        assert!(next.world.deeds().is_empty(), "done on an old yes");
        assert_eq!(next.recording().count(APPROVAL_REFUSED), 1);
        assert_eq!(next.waiting(), 0);

        next.send(yes(&next));
        let ended = next.again().resume().await.unwrap();
        assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
        assert_eq!(next.world.deeds().len(), 2, "the one change, and the end");
    }
}

fn asked_last(bench: &Bench) -> ApprovalAsked {
    let recording = bench.recording();
    let asked = recording.entries().rev().find_map(|entry| match entry {
        Entry::ApprovalAsked(asked) => Some(asked.clone()),
        _ => None,
    });
    asked.unwrap()
}

fn now_ms() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A message that a program writes into the inbox by hand gets no more than a surface allows.
#[tokio::test]
async fn a_message_that_the_card_does_not_take_is_void() {
    for (kind, fields, mismatch) in [
        (
            "approve",
            json!({"words": "if it is safe"}),
            AnswerMismatch::UnaskedWords,
        ),
        (
            "approve",
            json!({"scope": "session"}),
            AnswerMismatch::OnlyOnce,
        ),
        (
            "approve",
            json!({"scope": "always"}),
            AnswerMismatch::OnlyOnce,
        ),
        (
            "deny",
            json!({"reason": "x".repeat(300 << 10)}),
            AnswerMismatch::TooLong { limit: 256 << 10 },
        ),
    ] {
        let bench = asking(OnAsk::Park).bench();
        bench.start().await.unwrap();
        let (effect, digest) = asked(&bench).unwrap();
        let id = gyrus_contract::time_ordered_uuid().to_string();
        let mut message = json!({
            "id": id, "from": {"surface": "by hand", "id": "a program"},
            "type": kind, "effect": effect, "digest": digest,
        });
        let fields = fields.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(fields);
        bench.put(&id, &message.to_string());
        // To the surfaces the question is still open, and they take the same no better.
        let open = approvals::unanswered(&bench.store, bench.run()).unwrap();
        let answer: Answer = serde_json::from_value(message).unwrap();
        assert_eq!(approvals::check(&open[0].card, &answer), Err(mismatch));
        let by = Principal {
            surface: "test".to_owned(),
            id: "ann".to_owned(),
        };
        let said = approvals::answer(&bench.store, &open[0], by, answer).unwrap_err();
        assert_eq!(said.to_string(), mismatch.to_string());

        let parked = bench.again().resume().await.unwrap();
        assert!(
            matches!(parked.ending, Ending::Waiting { .. }),
            "{parked:?}"
        );
        assert!(bench.world.deeds().is_empty(), "done by {mismatch}");
        assert_eq!(bench.waiting(), 0);
        let recording = bench.recording();
        let noted = recording.entries().find_map(|entry| match entry {
            Entry::Noted { kind, fact, .. } if kind == APPROVAL_REFUSED => Some(&fact.fact),
            _ => None,
        });
        assert_eq!(noted.unwrap()["text"], mismatch.to_string());

        bench.send(yes(&bench));
        let ended = bench.again().resume().await.unwrap();
        assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    }
}

/// The rule as a table: which answers each kind of card takes.
#[test]
fn each_kind_of_card_takes_its_answers() {
    use AnswerMismatch::{EmptyText, OnlyOnce, UnaskedWords, WordsMissing};
    let plain = ApprovalCard::default();
    let wider = ApprovalCard {
        wider: vec![Grant::PackageRegistries],
        ..ApprovalCard::default()
    };
    let question = ApprovalCard {
        question: true,
        ..ApprovalCard::default()
    };
    let plan = ApprovalCard {
        edit: Some("1. look".to_owned()),
        ..ApprovalCard::default()
    };
    let (once, words) = (Answer::yes(ApprovalScope::Once), Answer::words("as I say"));
    let session = Answer::yes(ApprovalScope::Session);
    let always = Answer::yes(ApprovalScope::Always);
    let blank = Answer::words(" ");
    for (name, card, taken) in [
        (
            "plain",
            &plain,
            [
                Ok(()),
                Err(UnaskedWords),
                Err(OnlyOnce),
                Err(OnlyOnce),
                Err(UnaskedWords),
            ],
        ),
        (
            "wider",
            &wider,
            [Ok(()), Err(UnaskedWords), Ok(()), Ok(()), Err(UnaskedWords)],
        ),
        // A person may say nothing at a take-over.
        (
            "question",
            &question,
            [
                Err(WordsMissing),
                Ok(()),
                Err(WordsMissing),
                Err(WordsMissing),
                Ok(()),
            ],
        ),
        (
            "plan",
            &plan,
            [Ok(()), Ok(()), Err(OnlyOnce), Err(OnlyOnce), Err(EmptyText)],
        ),
    ] {
        let answers = [&once, &words, &session, &always, &blank];
        assert_eq!(
            answers.map(|answer| approvals::check(card, answer)),
            taken,
            "{name}"
        );
        assert_eq!(
            approvals::check(card, &Answer::no("not now")),
            Ok(()),
            "{name}"
        );
    }
}
