//! A server's tool as the tool of a run.

use std::sync::Arc;

use gyrus_contract::{
    ActionVerdict, BoxedFuture, Cleared, ResolvedCall, Service, Site, Tool, ToolOutput, ToolSpec,
    Unresolvable,
};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject};
use serde_json::Value;

use crate::{
    asking::Caller,
    connection::{ServerConnection, UnansweredCall},
    login, pages,
    resources::{self, ResourceTool},
    result,
    server::McpServer,
};

/// A tool as its server described it when the run began.
pub(crate) struct ServerTool {
    pub(crate) spec: ToolSpec,
    pub(crate) service: Service,
    /// The server; `None` if it is no longer configured.
    pub(crate) server: Option<Arc<McpServer>>,
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), Unresolvable> {
        let misfits = self.spec.misfits(arguments);
        if misfits.is_empty() {
            Ok(())
        } else {
            Err(Unresolvable {
                reason: format!("{}; the server was not asked", misfits.join("; ")),
            })
        }
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> BoxedFuture<'a, ToolOutput> {
        Box::pin(async move {
            let called = self.called(&call, site).await;
            let mut output = called.unwrap_or_else(|why| {
                ToolOutput::error(format!("the server was not asked: {why}"))
            });
            let server = self.server.iter();
            let tokens: Vec<String> = server.flat_map(|server| server.setup().tokens()).collect();
            login::scrub_text(&mut output.text, &tokens);
            if let Some(value) = &mut output.value {
                login::scrub(value, &tokens);
            }
            output
        })
    }
}

impl ServerTool {
    /// Returns the outcome, or the reason why the server was not called.
    async fn called(&self, call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, String> {
        let server = self
            .server
            .as_ref()
            .ok_or_else(|| format!("there is no server `{}` here", self.service.server))?;
        let mut arguments = call.arguments.clone();
        reveal(&mut arguments, site)?;
        let Value::Object(arguments) = arguments else {
            return Err("the arguments are not an object".to_owned());
        };
        let connection = server.connection().await?;
        connection.still_says(&self.service).await?;
        let request = match ResourceTool::of(&self.service) {
            Some(ResourceTool::List) => return Ok(listed(&connection, &arguments).await),
            Some(ResourceTool::Read) => resources::reading(&arguments),
            None => {
                let params = CallToolRequestParams::new(self.service.tool.clone());
                let params = params.with_arguments(arguments);
                ClientRequest::CallToolRequest(CallToolRequest::new(params))
            }
        };
        let setup = server.setup();
        let caller = Caller::new(&setup.name, &self.spec.name, site, setup.tokens());
        let answered = connection.ask(request, setup.silence, Some(&caller)).await;
        let mut output = match answered {
            Ok(answer) => result::output(&answer, site, server.setup().pictures),
            Err(none) => ToolOutput {
                verdict: ActionVerdict::CannotTell,
                ..ToolOutput::error(match none {
                    UnansweredCall::Refused(why) => format!("the server refused: {why}"),
                    UnansweredCall::Silent(limit) => format!(
                        "the server said nothing for {} s and was told that nobody waits; it may \
                         have done what was asked, in part or whole. Look before you ask again.",
                        limit.as_secs()
                    ),
                    UnansweredCall::Gone(why) => format!(
                        "the server was lost during the call: {why}; it may have done what was \
                         asked, in part or whole. Look before you ask again."
                    ),
                })
            },
        };
        output.text.push_str(&caller.notes());
        Ok(output)
    }
}

async fn listed(connection: &ServerConnection, arguments: &JsonObject) -> ToolOutput {
    let resources = connection.list_of(pages::RESOURCES).await;
    let templates = connection.list_of(pages::TEMPLATES).await;
    let words = arguments.get("words").and_then(Value::as_str);
    let text = resources::listed(&resources, &templates, words.unwrap_or_default());
    ToolOutput {
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::read(result::bounded(&text))
    }
}

/// Replaces the markers of secrets by their values: the gate has judged that the values are sent.
fn reveal(value: &mut Value, site: &dyn Site) -> Result<(), String> {
    match value {
        Value::String(text) => {
            *text = site.reveal(text).map_err(|error| error.to_string())?;
            Ok(())
        }
        Value::Array(values) => values.iter_mut().try_for_each(|value| reveal(value, site)),
        Value::Object(object) => object
            .values_mut()
            .try_for_each(|value| reveal(value, site)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}
