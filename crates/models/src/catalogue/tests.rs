use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, Uri},
    routing::get,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::{Candidate, NoBlobs};

#[test]
fn what_is_built_in_is_sound() {
    let catalogue = Catalogue::builtin();
    for (name, provider) in &catalogue.providers {
        assert!(!name.contains(['/', ':', '.']), "{name}");
        assert!(provider.base_url.starts_with("http"), "{name}");
        assert!(provider.list.is_some(), "{name} lists no models");
        assert!(!provider.key_variables.is_empty(), "{name}");
    }
    for OriginatedEntry { entry, .. } in &catalogue.models {
        if let Some(price) = entry.price.and_then(|entry| entry.0) {
            assert!(price.output >= price.input, "{:?}", entry.patterns);
            assert!(
                price.cache_read.unwrap_or(0) <= price.input,
                "{:?}",
                entry.patterns
            );
            assert!(
                entry.window.is_some(),
                "{:?}: a price without a window",
                entry.patterns
            );
        }
    }
    let check = |provider, model, tier, input: Option<u64>, window| {
        let known = catalogue.known(provider, model);
        let price = known.facts.price.map(|price| price.input);
        assert_eq!(
            (known.tier, price, known.facts.window),
            (tier, input, window),
            "{model}"
        );
    };
    let large = Some(Tier::Large);
    check(
        "anthropic",
        "claude-opus-5-5",
        large,
        Some(4_000_000),
        Some(1_000_000),
    );
    check(
        "anthropic",
        "claude-haiku-4-5-20251001",
        Some(Tier::Small),
        Some(1_000_000),
        Some(200_000),
    );
    // A model of tomorrow: its strength is known by its family, its price is not guessed.
    check("anthropic", "claude-opus-9", large, None, None);
    check(
        "openai",
        "gpt-6.2-sol",
        Some(Tier::Medium),
        Some(2_000_000),
        Some(272_000),
    );
    check(
        "gemini",
        "gemini-2.5-flash-lite",
        Some(Tier::Small),
        Some(100_000),
        Some(1_048_576),
    );
    check("openrouter", "anthropic/claude-opus-5.5", large, None, None);
    check("groq", "anything", None, None, None);
    let small = catalogue.known("ollama", "llava:7b");
    assert_eq!(
        (small.facts.images, small.facts.tools),
        (Some(true), Some(false))
    );
    assert!(
        catalogue
            .known("ollama", "qwen3-coder:480b-cloud")
            .is_hosted
    );
    assert!(catalogue.known("openai", "gpt-6-realtime").is_other);
}

#[test]
fn a_persons_file_counts_where_it_says_something() {
    let catalogue = Catalogue::builtin()
        .merged(
            r#"
            [providers.anthropic]
            base-url = "https://gateway.example"

            [providers.own]
            protocol = "chat"
            base-url = "http://127.0.0.1:9/v1"

            [[models]]
            match = ["anthropic/*"]
            window = 150000

            [[models]]
            match = ["own/*", "anthropic/claude-haiku-4-5"]
            tier = "large"
            price = { input = 0.03, output = 1, cache-read = 0.003 }
            image-tokens = { each = 700 }

            [[models]]
            match = ["anthropic/claude-opus-5-5"]
            price = "unknown"
            "#,
        )
        .unwrap();
    let anthropic = &catalogue.providers["anthropic"];
    assert_eq!(anthropic.base_url, "https://gateway.example");
    assert_eq!(anthropic.key_variables, ["ANTHROPIC_API_KEY"]);
    assert!(catalogue.providers["own"].key_optional);

    let known = catalogue.known("anthropic", "claude-haiku-4-5");
    assert_eq!(known.facts.window, Some(150_000));
    assert_eq!(known.tier, Some(Tier::Large));
    let price = known.facts.price.unwrap();
    assert_eq!(
        (price.input, price.cache_read, price.cache_write),
        (30_000, Some(3_000), None)
    );
    // Facts that the file does not state stay.
    assert_eq!(known.facts.tools, Some(true));
    assert_eq!(
        known.facts.image_tokens,
        Some(crate::ImageTokens::Each(700))
    );
    assert_eq!(
        catalogue.known("anthropic", "claude-opus-5-5").facts.price,
        None
    );
}

#[test]
fn mistakes_name_line_and_remedy() {
    let check = |text: &str, expected: &str| {
        let error = Catalogue::builtin().merged(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    };
    check("[provider.x]", "line 1: unknown key `provider`, expected");
    check("[provider.x]", "did you mean `providers`?");
    check(
        "\n[[models]]\nmatch = [\"a/*\"]\nwindov = 1",
        "line 4: unknown key `windov`",
    );
    check(
        "[[models]]\nmatch = [\"a/*\"]\nwindov = 1",
        "did you mean `window`?",
    );
    check(
        "[[models]]\nmatch = [\"a\"]",
        "line 2: `a` is not a pattern like provider/model; write */a",
    );
    check(
        "[[models]]\nmatch = [\"a/*\"]\ntier = \"larg\"",
        "did you mean `large`?",
    );
    check(
        "[[models]]\nmatch = [\"a/*\"]\nprice = { input = -1.0, output = 1.0 }",
        "line 3: `-1` is not a price",
    );
    check(
        "[[models]]\nmatch = [\"a/*\"]\nprice = { input = 1.0 }",
        "missing key `output`; a price is",
    );
    check("[[models]]\nmatch = [\"a/*\"]\nprice = \"free\"", "line 3:");
    check(
        "\n[providers.own]\nprotocol = \"chat\"",
        "line 2: the provider `own` has no `base-url`",
    );
    check(
        "[providers.own]\nprotocol = \"chad\"",
        "did you mean `chat`?",
    );
    check("[[models]", "line 1");
}

/// Serves a provider's list on loopback; only requests with the right headers are answered.
async fn lists(models: Value, needed: &'static [(&'static str, &'static str)]) -> SocketAddr {
    let answer = move |uri: Uri, headers: HeaderMap| async move {
        let is_sent =
            |(name, value): &(&str, &str)| headers.get(*name).is_some_and(|sent| sent == value);
        if needed.iter().all(is_sent) {
            Ok(models.to_string())
        } else {
            Err((
                StatusCode::UNAUTHORIZED,
                format!("{{\"error\":{{\"message\":\"who are you? {uri}\"}}}}"),
            ))
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/{*path}", get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn connected(name: &str, variables: &[(&str, String)]) -> Result<Candidate, ConnectError> {
    let variables: BTreeMap<&str, &String> = variables.iter().map(|(k, v)| (*k, v)).collect();
    let environment = |name: &str| variables.get(name).map(|value| (*value).clone());
    connect(name, environment, &Catalogue::builtin(), Arc::new(NoBlobs)).await
}

/// Returns the result in a line.
async fn outcome(name: &str, variables: &[(&str, String)]) -> String {
    match connected(name, variables).await {
        Ok(candidate) => format!(
            "{} {} {:?}{}{}",
            candidate.model.name(),
            candidate.tier.word(),
            candidate.model.price().map(|price| price.input),
            if candidate.is_local { " local" } else { "" },
            if candidate.is_prompted {
                " prompted"
            } else {
                ""
            },
        ),
        Err(error) => format!("error: {error}"),
    }
}

#[tokio::test]
async fn names_become_models() {
    let key = |name: &'static str| vec![(name, "k".to_owned())];
    let host = |host: &str| vec![("OLLAMA_HOST", host.to_owned())];
    let cases = [
        ("anthropic/claude-opus-5-5", key("ANTHROPIC_API_KEY")),
        ("openai/gpt-6-luna", key("OPENAI_API_KEY")),
        ("gemini/gemini-3.8-flash", key("GOOGLE_API_KEY")),
        ("openrouter/some/model:free", key("OPENROUTER_API_KEY")),
        ("ollama/qwen3:8b", vec![]),
        ("ollama/llava:7b", vec![]),
        ("ollama/glm-5:cloud", vec![]),
        ("ollama/qwen3:8b", host("0.0.0.0")),
        ("ollama/qwen3:8b", host("gpu.example:80")),
        ("http://127.0.0.1:8080/v1#qwen", vec![]),
        ("https://llm.example/v1#some/model", vec![]),
        ("anthropic/claude-opus-5-5", vec![]),
        (
            "gemini/gemini-3.8-flash",
            vec![("GEMINI_API_KEY", " ".to_owned())],
        ),
        (
            "claude-opus-5-5",
            vec![("ANTHROPIC_API_KEY", "k".to_owned())],
        ),
        ("gemini-3.8-flash", vec![]),
        ("antropic/claude-opus-5-5", vec![]),
        ("qwen3", vec![]),
        ("ollama:8b", vec![]),
        ("http://", vec![]),
        ("https://me:secret@llm.example/v1#m", vec![]),
        ("ollama/a", host("ftp://gpu.example")),
        ("", vec![]),
    ];
    let mut table = Vec::new();
    for (name, variables) in cases {
        table.push(format!("{name} -> {}", outcome(name, &variables).await));
    }
    insta::assert_snapshot!(table.join("\n"), @r##"
anthropic/claude-opus-5-5 -> anthropic/claude-opus-5-5 large Some(4000000)
openai/gpt-6-luna -> openai/gpt-6-luna small Some(100000)
gemini/gemini-3.8-flash -> gemini/gemini-3.8-flash medium Some(750000)
openrouter/some/model:free -> openrouter/some/model:free medium None
ollama/qwen3:8b -> ollama/qwen3:8b medium Some(0) local
ollama/llava:7b -> ollama/llava:7b medium Some(0) local prompted
ollama/glm-5:cloud -> ollama/glm-5:cloud medium None
ollama/qwen3:8b -> ollama/qwen3:8b medium Some(0) local
ollama/qwen3:8b -> ollama/qwen3:8b medium None
http://127.0.0.1:8080/v1#qwen -> 127.0.0.1:8080/qwen medium None local
https://llm.example/v1#some/model -> llm.example/some/model medium None
anthropic/claude-opus-5-5 -> error: anthropic wants a key: set ANTHROPIC_API_KEY
gemini/gemini-3.8-flash -> error: gemini wants a key: set GEMINI_API_KEY or GOOGLE_API_KEY
claude-opus-5-5 -> anthropic/claude-opus-5-5 large Some(4000000)
gemini-3.8-flash -> error: gemini wants a key: set GEMINI_API_KEY or GOOGLE_API_KEY
antropic/claude-opus-5-5 -> error: no provider is called `antropic`; did you mean `anthropic`?
qwen3 -> error: no provider is called `qwen3`; known are anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, vllm, xai
ollama:8b -> error: `8b` is not a size of a model; write small, medium or large, or `provider/model` for a certain model
http:// -> error: invalid address `http://`, expected https://host: empty host
https://me:secret@llm.example/v1#m -> error: invalid address `https://…@llm.example`, expected https://host: a name or password in an address would be shown; set the key instead
ollama/a -> error: invalid address `ftp://gpu.example`, expected https://host: `ftp` is not spoken here
 -> error: no provider is called ``; known are anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, vllm, xai
"##);
}

#[tokio::test]
async fn models_are_chosen_from_the_providers_own_list() {
    let list = json!({"data": [
        {"id": "text-embedding-3"}, {"id": "gpt-6-luna"}, {"id": "gpt-7-sol"},
        {"id": "gpt-6-astra"}, {"id": "gpt-6.2-sol"}, {"id": "line\nfeed"}, {"id": 5},
    ]});
    let address = lists(list, &[("authorization", "Bearer secret")]).await;
    let variables = [
        ("OPENAI_BASE_URL", format!("http://{address}/v1/")),
        ("OPENAI_API_KEY", "secret".to_owned()),
    ];
    for (name, expected) in [
        ("openai", "openai/gpt-6.2-sol"),
        ("openai:small", "openai/gpt-6-luna"),
        ("openai:large", "openai/gpt-6-astra"),
    ] {
        let candidate = connected(name, &variables).await.unwrap();
        assert_eq!(candidate.model.name(), expected);
    }
    let wrong = [
        variables[0].clone(),
        ("OPENAI_API_KEY", "wrong-one".to_owned()),
    ];
    let error = outcome("openai", &wrong).await;
    assert!(
        error.contains("openai did not say which models it has"),
        "{error}"
    );
    assert!(
        error.contains("who are you?") && !error.contains("wrong-one"),
        "{error}"
    );

    let list = json!({"data": [{"id": "claude-haiku-5-5"}]});
    let needed = &[("x-api-key", "secret"), ("anthropic-version", "2023-06-01")];
    let variables = [
        (
            "ANTHROPIC_BASE_URL",
            format!("http://{}", lists(list, needed).await),
        ),
        ("ANTHROPIC_API_KEY", "secret".to_owned()),
    ];
    let only = connected("anthropic:large", &variables).await.unwrap();
    assert_eq!(only.model.name(), "anthropic/claude-haiku-5-5");

    let list = json!({"models": [
        {"name": "models/gemini-9-flash", "inputTokenLimit": 5000},
        {"name": "models/gemini-embedding-9", "inputTokenLimit": 1},
        {"name": "models/veo-9"},
    ]});
    let address = lists(list, &[("x-goog-api-key", "secret")]).await;
    let variables = [
        ("GEMINI_BASE_URL", format!("http://{address}")),
        ("GEMINI_API_KEY", "secret".to_owned()),
    ];
    let candidate = connected("gemini", &variables).await.unwrap();
    assert_eq!(candidate.model.name(), "gemini/gemini-9-flash");
    assert_eq!(
        (candidate.model.window(), candidate.model.price()),
        (Some(5_000), None)
    );

    let list = json!({"models": [{"name": "nomic-embed-text:latest"}, {"name": "qwen3:4b"}, {"name": "qwen3:70b"}]});
    let variables = [("OLLAMA_HOST", lists(list, &[]).await.to_string())];
    let candidate = connected("ollama:large", &variables).await.unwrap();
    assert_eq!(candidate.model.name(), "ollama/qwen3:70b");
}

#[tokio::test]
async fn an_address_with_one_model_needs_no_name() {
    let key = [("OPENAI_API_KEY", "secret".to_owned())];
    let one = lists(
        json!({"data": [{"id": "qwen", "max_model_len": 4096}]}),
        &[],
    )
    .await;
    let candidate = connected(&format!("http://{one}/v1"), &key).await.unwrap();
    assert_eq!(candidate.model.name(), format!("{one}/qwen"));
    assert_eq!(candidate.model.window(), Some(4_096));

    let two = lists(json!({"data": [{"id": "a"}, {"id": "b"}]}), &[]).await;
    let error = outcome(&format!("http://{two}/v1"), &key).await;
    let expected = format!("name one: http://{two}/v1#a, http://{two}/v1#b");
    assert!(error.contains(&expected), "{error}");

    // No key of the environment is sent to an address that a person typed.
    let asks = lists(json!({"data": []}), &[("authorization", "Bearer secret")]).await;
    let error = outcome(&format!("http://{asks}/v1"), &key).await;
    assert!(error.contains("refused the key"), "{error}");

    let none = lists(json!("no list"), &[]).await;
    let error = outcome(&format!("http://{none}/v1"), &[]).await;
    assert!(error.contains("is not a list of models"), "{error}");
}
