//! Lists the models of a server, to choose one.

use gyrus_contract::ModelError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ollama, errors};
use crate::{Connection, client::Protocol, http::Endpoint};

/// Maximum number of models that are listed.
const MAX_MODELS: usize = 1_000;

/// Maximum number of models that are asked about one by one, where the list has no facts about
/// them.
const MAX_LOOK_UPS: usize = 32;

/// A model of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModel {
    /// The server's name of the model: `qwen3:4b`.
    pub name: String,
    /// Its size on disk, in bytes; 0 if it runs elsewhere.
    pub bytes: u64,
    /// Number of parameters, in the server's words: `7.6B`.
    pub parameters: Option<String>,
    /// The host that really runs it, for models that the server only forwards: prompts leave this
    /// machine.
    pub remote_host: Option<String>,
    /// Maximum tokens of prompt and reply that it was made for. Few machines have the memory for
    /// that much, so it is a bound on a window and not one to configure as it is.
    pub longest_window: Option<u64>,
    /// Whether it calls tools by itself.
    pub tools: Option<bool>,
    /// Whether it accepts pictures.
    pub images: Option<bool>,
}

/// Returns the conversational models of the server at `base_url`, in its order (last changed
/// first). Models for embeddings or for generating pictures are left out.
///
/// # Errors
/// [`ModelError::Network`] if there is no answer, [`ModelError::BadOutput`] if the answer is not a
/// list of models.
pub async fn local_models(base_url: &str) -> Result<Vec<LocalModel>, ModelError> {
    let connection = Connection::to_server(base_url);
    let endpoint = Endpoint::new(&connection, Ollama::wire(&connection))?;
    let tags = endpoint.get_json("/api/tags").await;
    let tags = tags.map_err(errors::with_advice)?;
    let mut models = listed(&tags)?;
    let unknown = models.iter_mut().filter(|model| !model.is_known());
    for model in unknown.take(MAX_LOOK_UPS) {
        // Servers before 0.30 do not say it in the list. What stays unknown is not worth failing.
        let question = json!({"model": model.found.name});
        match endpoint.post_json("/api/show", &question).await {
            Ok(shown) => model.learn(&shown),
            Err(_) => break,
        }
    }
    let talking = models.into_iter().filter(|model| model.talks);
    Ok(talking.map(|model| model.found).collect())
}

struct Candidate {
    found: LocalModel,
    talks: bool,
}

/// An entry of the list.
#[derive(Deserialize)]
struct Entry {
    name: String,
    size: Option<u64>,
    remote_host: Option<String>,
    details: Option<Value>,
    capabilities: Option<Value>,
}

fn listed(tags: &Value) -> Result<Vec<Candidate>, ModelError> {
    let bad = |why: &str| ModelError::BadOutput {
        message: format!("the server's list of models cannot be read: {why}"),
    };
    let models = tags["models"]
        .as_array()
        .ok_or_else(|| bad("it has no `models`"))?;
    let candidate = |model: &Value| {
        let entry = Entry::deserialize(model).map_err(|error| bad(&error.to_string()))?;
        Ok(Candidate::new(entry))
    };
    models.iter().take(MAX_MODELS).map(candidate).collect()
}

impl Candidate {
    fn new(entry: Entry) -> Self {
        let details = entry.details.unwrap_or_default();
        let text = |value: &Value| value.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        let mut candidate = Self {
            found: LocalModel {
                name: entry.name,
                bytes: entry.size.unwrap_or(0),
                parameters: text(&details["parameter_size"]),
                remote_host: entry.remote_host.filter(|host| !host.is_empty()),
                longest_window: details["context_length"].as_u64().filter(|&n| n > 0),
                tools: None,
                images: None,
            },
            talks: true,
        };
        candidate.learn_capabilities(&entry.capabilities.unwrap_or_default());
        candidate
    }

    fn is_known(&self) -> bool {
        self.found.tools.is_some() && (self.found.longest_window.is_some() || !self.talks)
    }

    /// Takes facts from the answer of `/api/show`, where the window is under the architecture's
    /// name.
    fn learn(&mut self, shown: &Value) {
        self.learn_capabilities(&shown["capabilities"]);
        let info = &shown["model_info"];
        if let Some(architecture) = info["general.architecture"].as_str() {
            let window = info[&format!("{architecture}.context_length")].as_u64();
            self.found.longest_window = self.found.longest_window.or(window);
        }
    }

    fn learn_capabilities(&mut self, capabilities: &Value) {
        let Some(capabilities) = capabilities.as_array().filter(|list| !list.is_empty()) else {
            return;
        };
        let has = |name: &str| capabilities.iter().any(|capability| capability == name);
        self.found.tools = Some(has("tools"));
        self.found.images = Some(has("vision"));
        self.talks = has("completion");
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        routing::{get, post},
    };
    use tokio::net::TcpListener;

    use super::*;

    async fn serve(app: Router) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        format!("http://{address}/")
    }

    #[tokio::test]
    async fn models_are_listed_with_what_is_known_of_them() {
        let tags = json!({"models": [
            {"name": "new:4b", "size": 7, "capabilities": ["completion", "tools", "vision"],
             "details": {"parameter_size": "4B", "context_length": 40960}},
            {"name": "old:1b", "model": "old:1b", "size": 5, "details": {"parameter_size": ""}},
            {"name": "embed", "size": 1, "capabilities": ["embedding"], "details": null},
            {"name": "far:cloud", "remote_host": "https://elsewhere", "capabilities": ["completion"],
             "details": {"context_length": 9}},
        ]});
        let shown = json!({
            "capabilities": ["completion"],
            "model_info": {"general.architecture": "x", "x.context_length": 8192},
        });
        let show = async move |question: String| {
            assert_eq!(question, r#"{"model":"old:1b"}"#);
            shown.to_string()
        };
        let app = Router::new()
            .route("/api/tags", get(async move || tags.to_string()))
            .route("/api/show", post(show));
        let models = local_models(&serve(app).await).await.unwrap();
        let told: Vec<_> = models.iter().map(|model| format!("{model:?}")).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
LocalModel { name: "new:4b", bytes: 7, parameters: Some("4B"), remote_host: None, longest_window: Some(40960), tools: Some(true), images: Some(true) }
LocalModel { name: "old:1b", bytes: 5, parameters: None, remote_host: None, longest_window: Some(8192), tools: Some(false), images: Some(false) }
LocalModel { name: "far:cloud", bytes: 0, parameters: None, remote_host: Some("https://elsewhere"), longest_window: Some(9), tools: Some(false), images: Some(false) }
"#);
    }

    #[tokio::test]
    async fn what_is_no_list_is_an_error() {
        let answer = async |body: &'static str| {
            let app = Router::new().route("/api/tags", get(async move || body));
            let error = local_models(&serve(app).await).await.unwrap_err();
            error.to_string()
        };
        insta::assert_snapshot!(answer("<html>").await, @"the model's reply could not be read: the answer is not JSON but: <html>");
        insta::assert_snapshot!(answer("{}").await, @"the model's reply could not be read: the server's list of models cannot be read: it has no `models`");
        insta::assert_snapshot!(answer(r#"{"models": [{"size": 1}]}"#).await, @"the model's reply could not be read: the server's list of models cannot be read: missing field `name`");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = local_models(&format!("http://{address}"))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("`ollama serve`"), "{error}");
    }
}
