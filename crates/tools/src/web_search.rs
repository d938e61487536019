//! The tool `web_search`: asks the search service that the person configured.
//!
//! A provider is a row of a table. The query leaves the machine, to that service only; what it
//! answers is untrusted text. The service may have any address, as the person named it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    time::Duration,
};

use gyrus_contract::{Arguments, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool};
use gyrus_text::{counted, first_bytes};
use reqwest::{Method, Url, header::CONTENT_TYPE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    failure::ToolFailure,
    fetch::visit::{self, FetchAnswer, VisitError},
};

const DEFAULT_RESULTS: usize = 8;

const MAX_RESULTS: usize = 20;

/// Maximum bytes of a query.
const MAX_QUERY_BYTES: usize = 400;

/// Maximum bytes of the title, the address and the passage of a result.
const MAX_FIELD_BYTES: [usize; 3] = [200, 1_000, 700];

/// Time limit of one search.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A service that searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchProvider {
    Searxng,
    Brave,
    Tavily,
    Exa,
}

/// The address of a provider, the form of its requests, and the place of its results.
struct ProviderShape {
    name: &'static str,
    /// The address of its server; empty if everybody has their own.
    server: &'static str,
    path: &'static str,
    /// The variable that usually has the key.
    variable: &'static str,
    /// The header with the key, and what stands before the key there.
    header: [&'static str; 2],
    /// `GET` sends the fields in the address, `POST` as JSON.
    method: Method,
    query: &'static str,
    /// The field with the number of results; empty if it cannot be chosen.
    count: &'static str,
    /// Other fields, as a JSON object.
    fixed: &'static str,
    /// The place of the list of results, as a JSON pointer.
    results: &'static str,
    /// The field with the passage of a result.
    passage: &'static str,
}

const SEARXNG: ProviderShape = ProviderShape {
    name: "SearXNG",
    server: "",
    path: "/search",
    variable: "SEARXNG_API_KEY",
    header: ["Authorization", "Bearer "],
    method: Method::GET,
    query: "q",
    count: "",
    fixed: r#"{"format": "json"}"#,
    results: "/results",
    passage: "content",
};

const BRAVE: ProviderShape = ProviderShape {
    name: "Brave",
    server: "https://api.search.brave.com",
    path: "/res/v1/web/search",
    variable: "BRAVE_API_KEY",
    header: ["X-Subscription-Token", ""],
    count: "count",
    fixed: r#"{"text_decorations": "false"}"#,
    results: "/web/results",
    passage: "description",
    ..SEARXNG
};

const TAVILY: ProviderShape = ProviderShape {
    name: "Tavily",
    server: "https://api.tavily.com",
    variable: "TAVILY_API_KEY",
    method: Method::POST,
    query: "query",
    count: "max_results",
    fixed: "{}",
    ..SEARXNG
};

const EXA: ProviderShape = ProviderShape {
    name: "Exa",
    server: "https://api.exa.ai",
    variable: "EXA_API_KEY",
    header: ["x-api-key", ""],
    count: "numResults",
    fixed: r#"{"contents": {"text": {"maxCharacters": 700}}}"#,
    passage: "text",
    ..TAVILY
};

impl SearchProvider {
    fn shape(self) -> ProviderShape {
        match self {
            SearchProvider::Searxng => SEARXNG,
            SearchProvider::Brave => BRAVE,
            SearchProvider::Tavily => TAVILY,
            SearchProvider::Exa => EXA,
        }
    }

    /// Returns the variable that has the provider's key unless another one is configured.
    pub fn variable(self) -> &'static str {
        self.shape().variable
    }
}

/// Searches the web.
pub struct WebSearch {
    shape: ProviderShape,
    server: Url,
    variable: String,
    key: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Searches the web. Returns titles, addresses and passages of pages; read a page with `fetch`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchArguments {
    /// A few words. It is sent to a search service: nothing private belongs in it.
    query: String,
    /// Default: 8.
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: Option<usize>,
}

impl Arguments for WebSearchArguments {
    const TOOL: &'static str = "web_search";
    const EXAMPLE: &'static str = r#"{"query": "rust async trait object safety"}"#;
}

#[derive(Serialize)]
struct WebResult {
    title: String,
    url: String,
    passage: String,
}

impl WebSearch {
    /// Creates the tool. `server` replaces the provider's own server; `variable` names the variable
    /// of the key, and `key` reads it when it is first needed.
    ///
    /// # Errors
    /// A message about an address that is missing or invalid.
    pub fn new(
        provider: SearchProvider,
        server: Option<&str>,
        variable: String,
        key: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let shape = provider.shape();
        let server = server.unwrap_or(shape.server);
        if server.is_empty() {
            return Err(format!(
                "{} needs `url`, the address of your server",
                shape.name
            ));
        }
        let address = format!("{}{}", server.trim_end_matches('/'), shape.path);
        let server = visit::parse(&address).map_err(|error| error.to_string())?;
        Ok(Self {
            shape,
            server,
            variable,
            key: Box::new(key),
        })
    }

    fn host(&self) -> &str {
        let host = self.server.host_str().unwrap_or_default();
        host.trim_matches(['[', ']'])
    }

    async fn ask(&self, query: &str, count: usize) -> Result<FetchAnswer, ToolFailure> {
        let shape = &self.shape;
        let key = (self.key)();
        if key.is_none() && !shape.server.is_empty() {
            return Err(self.without_key("has no key"));
        }
        let mut fields: Map<String, Value> =
            serde_json::from_str(shape.fixed).expect("the table has JSON");
        fields.insert(shape.query.to_owned(), query.into());
        if !shape.count.is_empty() {
            fields.insert(shape.count.to_owned(), count.into());
        }
        let mut url = self.server.clone();
        let is_post = shape.method == Method::POST;
        if !is_post {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in &fields {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                pairs.append_pair(name, &value);
            }
        }
        let allowed = BTreeSet::from([self.host().to_owned()]);
        let sent = visit::send(&url, shape.method.clone(), &allowed, |mut request| {
            if let Some(key) = &key {
                let [name, before] = shape.header;
                request = request.header(name, format!("{before}{key}"));
            }
            if is_post {
                let body = Value::Object(fields).to_string();
                request = request.header(CONTENT_TYPE, "application/json").body(body);
            }
            request
        });
        let seconds = TIME_LIMIT.as_secs();
        let answer = tokio::time::timeout(TIME_LIMIT, sent).await.map_err(|_| {
            let name = shape.name;
            ToolFailure::new(format!("{name} did not answer within {seconds} seconds"))
        })?;
        // Its address has the query in it.
        let without_query =
            |error: VisitError| error.to_string().replace(url.as_str(), self.host());
        let mut answer = answer.map_err(|error| self.failed(&without_query(error)))?;
        // Texts are cut, and a part of the key is recognised as a secret no more.
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            let said = String::from_utf8_lossy(&answer.body);
            answer.body = said.replace(&key, "(the key)").into_bytes();
        }
        Ok(answer)
    }

    fn failed(&self, what: &str) -> ToolFailure {
        ToolFailure::new(format!("the search by {} failed: {what}", self.shape.name))
    }

    fn without_key(&self, what: &str) -> ToolFailure {
        ToolFailure::new(format!(
            "{} {what}: the person must set {} to a valid key, in the environment or under [keys] \
             of config.toml. Go on without searching, and say so",
            self.shape.name, self.variable
        ))
    }

    /// Returns the list of results in an answer.
    fn results(&self, answer: &FetchAnswer) -> Result<Vec<WebResult>, ToolFailure> {
        let said = String::from_utf8_lossy(&answer.body);
        let said = one_line(&said, 300);
        let status = answer.status;
        match status.as_u16() {
            200..=299 => {}
            403 if self.shape.server.is_empty() => {
                let what = "it does not answer in JSON; `search.formats` of its settings.yml must \
                            name `json`, which the person can set";
                return Err(self.failed(what));
            }
            401 | 403 => return Err(self.without_key("refused the key")),
            429 => {
                let what = "it was asked too often (status 429); search later, and less";
                return Err(self.failed(what));
            }
            _ => return Err(self.failed(&format!("status {status}; it said: {said}"))),
        }
        let body: Value = serde_json::from_slice(&answer.body).map_err(|_| {
            self.failed(&format!(
                "{} did not answer in JSON, so `url` in [web-search] may be wrong; it said: {said}",
                self.host()
            ))
        })?;
        let listed = body.pointer(self.shape.results).and_then(Value::as_array);
        // Brave leaves the list out where nothing is found, and says which query that was.
        if listed.is_none() && !body["query"].is_object() {
            let what = format!("its answer has no list of results; it said: {said}");
            return Err(self.failed(&what));
        }
        let results = listed.into_iter().flatten().filter_map(|result| {
            let [title, url, passage] = MAX_FIELD_BYTES;
            let text = |name: &str, most| one_line(result[name].as_str().unwrap_or_default(), most);
            // As it is written anew: the parser passes over line breaks, which could begin a result.
            let address = String::from(visit::parse(result["url"].as_str()?).ok()?);
            (address.len() <= url).then(|| WebResult {
                title: text("title", title),
                url: address,
                passage: text(self.shape.passage, passage),
            })
        });
        Ok(results.collect())
    }
}

/// Returns the start of a text as one line, which cannot pass for another result.
fn one_line(text: &str, most: usize) -> String {
    let words = first_bytes(text, 4 * most).split_whitespace();
    first_bytes(&words.collect::<Vec<_>>().join(" "), most).to_owned()
}

impl TypedTool for WebSearch {
    type Arguments = WebSearchArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Searches {
            query: "query".to_owned(),
            host: self.host().to_owned(),
        }]
    }

    async fn run(
        &self,
        arguments: WebSearchArguments,
        _call: &ResolvedCall,
        _site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let query = arguments.query.trim();
        if query.is_empty() || query.len() > MAX_QUERY_BYTES {
            let words = format!("`query` must have between 1 and {MAX_QUERY_BYTES} bytes");
            return Err(ToolFailure::new(words));
        }
        if query.contains("⟦secret:") {
            return Err(ToolFailure::new("a secret must not stand in `query`"));
        }
        let most = arguments.max_results.unwrap_or(DEFAULT_RESULTS);
        let most = most.clamp(1, MAX_RESULTS);
        let mut results = self.results(&self.ask(query, most).await?)?;
        results.truncate(most);
        let mut text = format!(
            "{} by {}\n",
            counted(results.len(), "result"),
            self.shape.name
        );
        for (number, result) in (1..).zip(&results) {
            let WebResult {
                title,
                url,
                passage,
            } = result;
            let _ = write!(text, "\n{number}. {title}\n   {url}\n   {passage}\n");
        }
        Ok(ToolOutput::read(text).with_value(&BTreeMap::from([("results", &results)])))
    }
}
