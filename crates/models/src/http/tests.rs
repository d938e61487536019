//! Tests of settings that cannot work. Behaviour on the wire is tested with every protocol in
//! `tests/wire`.

use std::sync::Arc;

use super::*;
use crate::{ModelFacts, NoBlobs};

fn endpoint(base_url: &str, key: &str) -> Result<ProviderEndpoint, ModelError> {
    let connection = ModelConnection {
        base_url: base_url.into(),
        key: Some(key.into()),
        pins: Vec::new(),
        provider: "p".into(),
        model: "m".into(),
        facts: ModelFacts::default(),
        blobs: Arc::new(NoBlobs),
    };
    let wire = Wire::new("/path", |refusal| refusal.error(None, refusal.body));
    ProviderEndpoint::new(&connection, wire)
}

#[test]
fn wrong_settings_are_noticed_at_once() {
    let told = |url: &str, key: &str| endpoint(url, key).err().map(|error| error.to_string());
    assert_eq!(told("https://api.example.com/v1/", " key\n"), None);
    insta::assert_snapshot!(told("api.example.com", "key").unwrap(), @"the model could not be reached: `api.example.com` is not an address like https://host: relative URL without a base");
    insta::assert_snapshot!(told("file:///etc", "key").unwrap(), @"the model could not be reached: `file:///etc` is not an address like https://host: `file` is not spoken here");
    insta::assert_snapshot!(told("https://api.example.com", "se\ncret").unwrap(), @"the model's provider refused the key: the key holds characters that cannot be sent; was it copied whole?");
}

#[test]
fn the_key_stands_in_no_error() {
    let endpoint = endpoint("http://127.0.0.1:1", "a-long-key").unwrap();
    let echo = bad("is a-long-key yours? a-long-key!");
    assert_eq!(
        endpoint.without_key(echo),
        bad("is [the key] yours? [the key]!")
    );
    assert!(!format!("{:?}", endpoint.headers).contains("a-long-key"));
}

#[test]
fn only_a_provider_on_this_machine_may_begin_late() {
    let minutes = |url: &str| endpoint(url, "").unwrap().start_limit.as_secs() / 60;
    for local in [
        "http://127.0.0.1:11434",
        "http://localhost:8080/v1",
        "http://[::1]:80",
    ] {
        assert_eq!(minutes(local), 10, "{local}");
    }
    for other in ["https://api.example.com/v1", "http://192.168.1.7:11434"] {
        assert_eq!(minutes(other), 2, "{other}");
    }
}
