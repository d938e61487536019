//! The OpenAPI document, from the table of endpoints.

use gyrus_runtime::request::options;
use schemars::{
    Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, ReplaceBoolSchemas},
};
use serde_json::{Map, Value, json};

use crate::{
    endpoint::{BodyForm, Endpoint, JsonAnswer},
    error::ErrorBody,
};

/// Errors that every endpoint may answer, with their meaning.
const ERRORS: [(u16, &str); 11] = [
    (400, "The request is malformed."),
    (401, "There is no token, or it does not count."),
    (
        403,
        "The token may not do this, or the request comes from a strange place.",
    ),
    (404, "There is no such thing."),
    (405, "The thing exists, but not with this method."),
    (408, "The request did not arrive in time."),
    (409, "It cannot be done in the present state."),
    (413, "The request is too large."),
    (415, "The body is not JSON."),
    (429, "Too many requests, or too much is waiting."),
    (500, "The server failed."),
];

pub(crate) fn document(endpoints: &[Endpoint]) -> Value {
    // Generators of clients expect an object where a schema may also be `true`.
    let mut objects = ReplaceBoolSchemas::default();
    objects.skip_additional_properties = true;
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .with_transform(objects)
        .with_transform(RecursiveTransform(words_as_enum));
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &mut generator, &json!(error));
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.as_str().to_lowercase()] = operation;
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("RunOptions".to_owned(), options::schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "gyrus",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of agents: start, follow, steer and answer them.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    })
}

/// Replaces a choice among described words by one enumeration: generators of clients make a type of
/// each word otherwise.
fn words_as_enum(schema: &mut Schema) {
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let words: Option<Vec<&str>> = choices.iter().map(|one| one["const"].as_str()).collect();
    let Some(words) = words else { return };
    let described = choices.iter().zip(&words).filter_map(|(one, word)| {
        let description = one["description"].as_str()?;
        Some(format!("- `{word}`: {description}"))
    });
    let own = schema.get("description").and_then(Value::as_str);
    let lines: Vec<String> = own
        .map(str::to_owned)
        .into_iter()
        .chain(described)
        .collect();
    let whole = json!({"type": "string", "enum": words, "description": lines.join("\n")});
    if let Ok(whole) = Schema::try_from(whole) {
        *schema = whole;
    }
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator, error: &Value) -> Value {
    let mut parameters: Vec<Value> = path_parameters(endpoint.path);
    if let Some(query) = endpoint.query {
        let schema = json!(query(generator));
        let required: Vec<&str> = strings(&schema["required"]);
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            parameters.push(json!({
                "name": name,
                "in": "query",
                "required": required.contains(&name.as_str()),
                "schema": of,
            }));
        }
    }
    let mut responses = Map::new();
    for (status, words) in ERRORS {
        if endpoint.scope.is_none() && matches!(status, 401 | 409) {
            continue;
        }
        let content = json!({"application/json": {"schema": error}});
        let response = json!({"description": words, "content": content});
        responses.insert(status.to_string(), response);
    }
    for answer in &endpoint.answers {
        responses.insert(answer.status.to_string(), response(answer, generator));
    }
    let mut operation = json!({
        "operationId": endpoint.id,
        "tags": [tag(endpoint.path)],
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(scope) = endpoint.scope {
        operation["description"] = json!(format!("Needs a token with the scope {}.", json!(scope)));
    } else {
        operation["security"] = json!([]);
    }
    if let Some(body) = endpoint.body {
        let content = json!({"application/json": {"schema": body(generator)}});
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}

/// Returns the group of an endpoint: what stands behind `/api/`.
fn tag(path: &str) -> &str {
    let named = path.strip_prefix("/api/").unwrap_or("server");
    named.split('/').next().unwrap_or(named)
}

fn response(answer: &JsonAnswer, generator: &mut SchemaGenerator) -> Value {
    let content = match answer.form {
        BodyForm::Json(schema) => {
            // Also of a type that admits everything, an object.
            let schema = schema(generator).as_object().cloned().unwrap_or_default();
            json!({"application/json": {"schema": schema}})
        }
        BodyForm::Events => json!({"text/event-stream": {"schema": {"type": "string"}}}),
        BodyForm::Other(media) => json!({media: {"schema": {"type": "string"}}}),
        BodyForm::Empty => return json!({"description": answer.words}),
    };
    json!({"description": answer.words, "content": content})
}

fn path_parameters(path: &str) -> Vec<Value> {
    let parts = path.split('/');
    let names = parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| {
            json!({
                "name": name,
                "in": "path",
                "required": true,
                "schema": {"type": "string", "minLength": 1},
            })
        })
        .collect()
}

fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}
