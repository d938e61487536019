//! Tests of refusals: their meaning, and that the key goes nowhere else.

use gyrus_contract::ModelError;

use crate::{
    dialect::{Dialect, Refusal},
    dialects,
    prompts::{KEY, ask, client, plain_prompt},
    server::{Answer, Server},
};

async fn refused(dialect: &dyn Dialect, answer: Answer) -> ModelError {
    let (reply, deltas) = ask(dialect, answer).await;
    assert_eq!(deltas, [], "{}", dialect.name());
    reply.expect_err(dialect.name())
}

fn json(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    Answer::new(status, "application/json", body)
}

#[tokio::test]
async fn each_refusal_is_told_from_the_others() {
    for dialect in dialects() {
        let check = async |refusal: Refusal, status: u16, words: &str, kind: &str| {
            let body = dialect.refusal(refusal, words);
            let error = refused(dialect, json(status, body)).await;
            let told = format!("{} {refusal:?} {status}: {error:?}", dialect.name());
            assert!(format!("{error:?}").starts_with(kind), "{told}");
            assert!(error.to_string().contains(words), "{told}");
        };
        let no_money = dialect.no_money_status();
        check(Refusal::RateLimited, 429, "slow down", "RateLimited").await;
        check(Refusal::Overloaded, 503, "too busy", "Overloaded").await;
        check(Refusal::Overloaded, 529, "too busy", "Overloaded").await;
        check(Refusal::ContextTooLong, 400, "", "ContextTooLong").await;
        check(Refusal::BadKey, 401, "who are you", "Auth").await;
        check(Refusal::NoMoney, no_money, "please pay", "Auth").await;
        check(Refusal::NoSuchModel, 404, "no model m", "Refused").await;
    }
}

#[tokio::test]
async fn a_delay_is_read_with_distrust() {
    let longest = Some(31 * 24 * 60 * 60 * 1000);
    for dialect in dialects() {
        let check = async |status: u16, value: &str, expected: Option<u64>| {
            let body = dialect.refusal(Refusal::RateLimited, "slow down");
            let error = refused(dialect, json(status, body).with("retry-after", value)).await;
            assert!(error.is_transient(), "{}: {error}", dialect.name());
            assert_eq!(
                error.retry_after_ms(),
                expected,
                "{} {value}",
                dialect.name()
            );
        };
        check(429, "3", Some(3_000)).await;
        check(429, "-1", None).await;
        check(429, "NaN", None).await;
        check(429, "Thu, 01 Jan 1970 00:00:00 GMT", None).await;
        check(429, "Fri, 06 Nov 2126 08:50:07 GMT", longest).await;
    }
}

#[tokio::test]
async fn the_key_travels_to_its_address_only() {
    for dialect in dialects() {
        let name = dialect.name();
        let elsewhere = Server::start(Vec::new()).await;
        for status in [301, 302, 303, 307, 308] {
            let redirect = json(status, "").with("location", &elsewhere.url);
            let error = refused(dialect, redirect).await;
            let expected = format!("redirects to {}; it is not followed", elsewhere.url);
            assert!(error.to_string().contains(&expected), "{name}: {error}");
            assert!(!error.is_transient(), "{name}: {error}");
        }
        assert!(elsewhere.asked().is_empty(), "{name} followed a redirect");

        let echo = dialect.refusal(Refusal::BadKey, &format!("the key {KEY} is wrong"));
        let error = refused(dialect, json(401, echo)).await;
        assert!(
            error.to_string().contains("the key [the key] is wrong"),
            "{name}: {error}"
        );
        let echo = format!("data: {{\"error\": \"{KEY}\"}}\n\n");
        let error = refused(dialect, Answer::new(200, dialect.content_type(), echo)).await;
        assert!(!error.to_string().contains(KEY), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_page_is_no_reply() {
    let page = "<html>\n<h1>Log in</h1></html>";
    for dialect in dialects() {
        let name = dialect.name();
        let error = refused(dialect, Answer::new(200, "text/html", page)).await;
        assert!(
            matches!(error, ModelError::BadOutput { .. }),
            "{name}: {error}"
        );
        assert!(
            error.to_string().contains("<html> <h1>Log in"),
            "{name}: {error}"
        );
        let error = refused(dialect, Answer::new(502, "text/html", page)).await;
        assert!(
            matches!(error, ModelError::Overloaded { .. }),
            "{name}: {error}"
        );
        // A page that pretends to be a stream.
        let error = refused(dialect, Answer::new(200, dialect.content_type(), page)).await;
        assert!(
            matches!(error, ModelError::BadOutput { .. }),
            "{name}: {error}"
        );
        // A refusal that is too long to be shown.
        let error = refused(dialect, json(400, "x".repeat(1024 * 1024))).await;
        assert!(
            matches!(error, ModelError::Refused { .. }),
            "{name}: {error}"
        );
        assert!(error.to_string().len() < 1200, "{name}");
    }
}

#[tokio::test]
async fn nobody_there_is_a_network_error() {
    for dialect in dialects() {
        let server = Server::start(Vec::new()).await;
        let model = client(dialect, &server.url);
        server.stop().await;
        let error = model.reply(&plain_prompt(), &mut |_| {}).await.unwrap_err();
        assert!(matches!(error, ModelError::Network { .. }), "{error}");
        assert!(
            error.to_string().contains("refused"),
            "{}: {error}",
            dialect.name()
        );
    }
}
