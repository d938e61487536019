//! An endpoint: its address, its scope, and the types that it takes and answers.

use std::sync::Arc;

use axum::{http::Method, routing::MethodRouter};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::{app::App, tokens::TokenScope};

pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

#[derive(Clone, Copy)]
pub(crate) enum BodyForm {
    Json(SchemaOf),
    Events,
    /// Another form, by its media type.
    Other(&'static str),
    /// No body.
    Empty,
}

#[derive(Clone, Copy)]
pub(crate) struct JsonAnswer {
    pub(crate) status: u16,
    pub(crate) words: &'static str,
    pub(crate) form: BodyForm,
}

pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// The scope that a client needs; `None` if the endpoint answers everybody.
    pub(crate) scope: Option<TokenScope>,
    /// A name for generated clients.
    pub(crate) id: &'static str,
    /// Whether the endpoint answers with a page, errors included.
    pub(crate) is_page: bool,
    /// Whether pages of other origins that the person named may use the endpoint, with a token.
    pub(crate) is_for_origins: bool,
    pub(crate) summary: &'static str,
    pub(crate) query: Option<SchemaOf>,
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answers: Vec<JsonAnswer>,
    pub(crate) route: MethodRouter<Arc<App>>,
}

pub(crate) fn reads(path: &'static str, route: MethodRouter<Arc<App>>) -> Endpoint {
    Endpoint::new(Method::GET, path, TokenScope::Read, route)
}

/// Creates an endpoint that acts in the name of the client.
pub(crate) fn acts(path: &'static str, route: MethodRouter<Arc<App>>) -> Endpoint {
    Endpoint::new(Method::POST, path, TokenScope::Act, route)
}

/// Creates an endpoint that makes a decision for a person.
pub(crate) fn decides(path: &'static str, route: MethodRouter<Arc<App>>) -> Endpoint {
    Endpoint::new(Method::POST, path, TokenScope::Approve, route)
}

impl Endpoint {
    fn new(
        method: Method,
        path: &'static str,
        scope: TokenScope,
        route: MethodRouter<Arc<App>>,
    ) -> Self {
        Self {
            method,
            path,
            scope: Some(scope),
            id: "",
            is_page: false,
            is_for_origins: false,
            summary: "",
            query: None,
            body: None,
            answers: Vec::new(),
            route,
        }
    }

    /// Sets the operation's name in generated clients, and its summary.
    pub(crate) fn named(mut self, id: &'static str, summary: &'static str) -> Self {
        (self.id, self.summary) = (id, summary);
        self
    }

    pub(crate) fn page(mut self) -> Self {
        self.is_page = true;
        self
    }

    /// Sets the method to GET, whatever the scope.
    pub(crate) fn reading(mut self) -> Self {
        self.method = Method::GET;
        self
    }

    /// Sets the method to DELETE, whatever the scope.
    pub(crate) fn deleting(mut self) -> Self {
        self.method = Method::DELETE;
        self
    }

    pub(crate) fn for_everybody(mut self) -> Self {
        self.scope = None;
        self
    }

    /// Allows pages of other origins that the person named to use the endpoint.
    pub(crate) fn for_named_origins(mut self) -> Self {
        self.is_for_origins = true;
        self
    }

    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(T::json_schema);
        self
    }

    /// Sets the form of the body to JSON of this type.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(subschema::<T>);
        self
    }

    pub(crate) fn json<T: JsonSchema>(self, status: u16, words: &'static str) -> Self {
        self.answer(status, words, BodyForm::Json(subschema::<T>))
    }

    pub(crate) fn answer(mut self, status: u16, words: &'static str, form: BodyForm) -> Self {
        self.answers.push(JsonAnswer {
            status,
            words,
            form,
        });
        self
    }
}

fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
