//! Tests of requests: providers accept them.

use std::sync::Arc;

use gyrus_contract::{Message, Part, Role};

use crate::{
    dialects,
    prompts::{KEY, client, keyless_client, plain_prompt, rich_prompt, streamed},
    server::Server,
};

#[tokio::test]
async fn a_rich_conversation_passes_the_providers_own_checks() {
    for dialect in dialects() {
        let name = dialect.name();
        let canonical = || streamed(dialect, dialect.canonical());
        let server = Server::start(vec![canonical(), canonical(), canonical()]).await;
        let model = client(dialect, &server.url);
        let reply = model.reply(&plain_prompt(), &mut |_| {}).await.unwrap();
        let prompt = rich_prompt(reply.clone());
        let again = model.reply(&prompt, &mut |_| {}).await.unwrap();
        // The conversation continues after it, too.
        let mut longer = prompt.clone();
        longer.messages.push(Arc::new(Message {
            role: Role::Assistant,
            parts: again.parts,
        }));
        model.reply(&longer, &mut |_| {}).await.unwrap();

        let asked = server.asked();
        for asked in &asked {
            assert_eq!(asked.uri, dialect.path(), "{name}");
            let (header, prefix) = dialect.key_header();
            assert_eq!(asked.headers[header], format!("{prefix}{KEY}"), "{name}");
            assert_eq!(asked.headers["content-type"], "application/json", "{name}");
            for (header, value) in dialect.headers() {
                assert_eq!(asked.headers[*header], value, "{name}");
            }
            assert!(
                asked.headers["user-agent"]
                    .to_str()
                    .unwrap()
                    .starts_with("gyrus/")
            );
            let of_scripts =
                |header: &&axum::http::HeaderName| header.as_str().starts_with("x-gyrus");
            assert_eq!(asked.headers.keys().find(of_scripts), None, "{name}");
            if let Err(violation) = dialect.check(&asked.body) {
                panic!("{name}: {violation}\n{:#}", asked.body);
            }
        }
        // Thinking goes back as it came, and only to the provider that wants it.
        let thinking = reply.parts.iter().filter_map(|part| match part {
            Part::Thinking(block) => Some(block.to_string()),
            _ => None,
        });
        let thinking: Vec<_> = thinking.collect();
        assert_eq!(!thinking.is_empty(), dialect.returns_thinking(), "{name}");
        let body = asked[1].body.to_string();
        assert!(!body.contains("of nobody"), "{name}: {body}");

        // The same prompt gives the same bytes, or no cache would work.
        let server = Server::start(vec![canonical()]).await;
        let fresh = client(dialect, &server.url);
        fresh.reply(&prompt, &mut |_| {}).await.unwrap();
        assert_eq!(server.asked()[0].body, asked[1].body, "{name}");
    }
}

#[tokio::test]
async fn each_provider_would_refuse_what_is_broken() {
    for dialect in dialects() {
        let name = dialect.name();
        let canonical = || streamed(dialect, dialect.canonical());
        let server = Server::start(vec![canonical(), canonical()]).await;
        let model = client(dialect, &server.url);
        let reply = model.reply(&plain_prompt(), &mut |_| {}).await.unwrap();
        let prompt = rich_prompt(reply);
        model.reply(&prompt, &mut |_| {}).await.unwrap();
        let body = &server.asked()[1].body;
        let refused = |body: &serde_json::Value| dialect.check(body).is_err();
        assert!(!refused(body), "{name}");
        // The checker must detect an unknown field, and each missing one.
        let mut broken = body.clone();
        broken["of_nobody"] = 1.into();
        assert!(refused(&broken), "{name} takes an unknown field");
        for list in ["messages", "input", "contents"] {
            let Some(items) = body.get(list).and_then(|list| list.as_array()) else {
                continue;
            };
            let mut broken = body.clone();
            broken[list].as_array_mut().unwrap().clear();
            assert!(refused(&broken), "{name} takes an empty conversation");
            // A call without its result must be detected.
            let mut broken = body.clone();
            broken[list]
                .as_array_mut()
                .unwrap()
                .truncate(items.len() - 1);
            let picture = broken.to_string().replacen("base64,", "base64,?", 1);
            let picture = picture.replacen("\"data\":\"", "\"data\":\"?", 1);
            let picture = picture.replacen("\"images\":[\"", "\"images\":[\"?", 1);
            assert!(
                refused(&serde_json::from_str(&picture).unwrap()),
                "{name} takes a broken picture"
            );
        }
    }
}

#[tokio::test]
async fn a_key_that_is_not_there_is_not_sent() {
    for dialect in dialects() {
        let server = Server::start(vec![streamed(dialect, dialect.canonical())]).await;
        let model = keyless_client(dialect, &server.url);
        model.reply(&plain_prompt(), &mut |_| {}).await.unwrap();
        let (header, _) = dialect.key_header();
        assert_eq!(
            server.asked()[0].headers.get(header),
            None,
            "{}",
            dialect.name()
        );
    }
}
