//! `gyrus setup ADDRESS`: the model of a server that a person runs.

use gyrus_models::{AddressError, Catalogue, ModelServer, find_server};
use gyrus_surfaces::{console::put, terminal};
use gyrus_text::{closest, visible};

use crate::failure::Failure;

/// Maximum number of models in a list.
const SHOWN: usize = 50;

/// Returns the name of the model at an address: the one that stands behind `#`, the only one, or the
/// one that the person chooses.
pub(super) async fn model_at(address: &str, catalogue: &Catalogue) -> Result<String, Failure> {
    let server = find_server(address, catalogue).await.map_err(not_found)?;
    let models = &server.models;
    let chosen = match (&server.named, &models[..]) {
        (Some(named), _) => models.iter().find(|model| *model == named).ok_or_else(|| {
            let nearest = closest(named, models.iter().map(String::as_str));
            let nearest = nearest.or(models.first().map(String::as_str));
            Failure::usage(format!(
                "the server at {} has no model `{named}`",
                server.base_url
            ))
            .hint(format!(
                "name one that it has: gyrus setup {}",
                server.name_of(nearest.unwrap_or("MODEL"))
            ))
        })?,
        (None, [only]) => only,
        (None, _) => choose(&server)?,
    };
    put(&format!(
        "found {} at {}\n",
        visible(chosen),
        server.base_url
    ))?;
    Ok(server.name_of(chosen))
}

/// Asks at the terminal which of several models to use.
fn choose(server: &ModelServer) -> Result<&String, Failure> {
    let models = &server.models;
    if !terminal::can_ask() {
        let names = models.iter().take(SHOWN).map(String::as_str);
        return Err(Failure::usage(format!(
            "the server at {} has {} models: {}",
            server.base_url,
            models.len(),
            names.collect::<Vec<_>>().join(", ")
        ))
        .hint(format!(
            "name one: gyrus setup {}",
            server.name_of(&models[0])
        )));
    }
    for (number, model) in (1..).zip(models.iter().take(SHOWN)) {
        put(&format!("  {number:>2}  {}\n", visible(model)))?;
    }
    loop {
        let given = terminal::answer("Which model is meant? (number or name, empty to leave) ")?;
        if given.is_empty() {
            return Err(Failure::usage("no model was chosen; nothing was stored"));
        }
        let by_number = given.parse::<usize>().ok();
        let by_number = by_number.and_then(|number| models.get(number.wrapping_sub(1)));
        let by_name = || {
            models
                .iter()
                .find(|model| model.eq_ignore_ascii_case(&given))
        };
        match by_number.or_else(by_name) {
            Some(model) => return Ok(model),
            None => put("that is none of them\n")?,
        }
    }
}

fn not_found(error: AddressError) -> Failure {
    let hint = match &error {
        AddressError::Address(_) => {
            "write it like http://127.0.0.1:8080; a provider is set up by: gyrus setup --provider NAME"
        }
        AddressError::Silent { .. } => {
            "start the server, or name its port: llama.cpp listens on 8080, Ollama on 11434, LM \
             Studio on 1234, vLLM on 8000"
        }
        AddressError::Locked { .. } => {
            "name it as a provider with `key-variables` in models.toml (docs/configuration.md), then: \
             gyrus setup --provider NAME --key-stdin"
        }
        AddressError::Other { .. } => {
            "name the address of an API that is compatible with OpenAI's, which often ends in /v1"
        }
        AddressError::Empty { .. } => "load a model in the server, then try again",
    };
    match error {
        AddressError::Silent { .. } | AddressError::Locked { .. } => Failure::unreachable(&error),
        AddressError::Address(_) | AddressError::Other { .. } | AddressError::Empty { .. } => {
            Failure::usage(&error)
        }
    }
    .hint(hint)
}
