//! A server's prompt for a model: text alone, without anything of the run.
//!
//! Tools, pictures, sound and the context of other servers are not offered. Wishes about the model,
//! the temperature and the like are ignored: the run's router chooses.

#![expect(
    deprecated,
    reason = "the protocol's next version drops sampling; servers of today have it"
)]

use gyrus_contract::{
    AnswerForm, Message, Origin, Part, Role, ServerPrompt, ServerQuestion, StopReason, Text,
};
use gyrus_text::{counted, grouped};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role as Author, SamplingMessage,
    SamplingMessageContentBlock,
};

use super::caller::Caller;

/// Maximum number of messages of a prompt.
const MAX_MESSAGES: usize = 50;

/// Maximum bytes of a prompt's text: a person has to read it.
const MAX_PROMPT: usize = 32 * 1024;

/// Maximum length of the reply in tokens.
const MAX_TOKENS: u32 = 4_000;

/// Asks a model to answer a server's prompt, if the person allows it.
///
/// # Errors
/// A message with the reason why there is no reply.
pub(super) async fn sampled(
    caller: &Caller<'_>,
    params: &CreateMessageRequestParams,
) -> Result<CreateMessageResult, String> {
    let prompt = prompt(caller, params)?;
    let tokens = prompt.max_output_tokens;
    let reply = caller.site.ask_model(prompt).await?;
    caller.note(&format!(
        "a model for its own prompt, which a person allowed (at most {})",
        counted(tokens, "token")
    ));
    let stopped = match reply.stop {
        StopReason::EndOfTurn | StopReason::ToolCalls => CreateMessageResult::STOP_REASON_END_TURN,
        StopReason::MaxTokens => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
    };
    let message = SamplingMessage::assistant_text(reply.text());
    Ok(CreateMessageResult::new(message, reply.model).with_stop_reason(stopped))
}

fn prompt(
    caller: &Caller<'_>,
    params: &CreateMessageRequestParams,
) -> Result<ServerPrompt, String> {
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err("it wants to give the model tools, which gyrus does not offer".to_owned());
    }
    if params.messages.is_empty() || params.messages.len() > MAX_MESSAGES {
        return Err(format!("it has no messages, or more than {MAX_MESSAGES}"));
    }
    if params.max_tokens == 0 {
        return Err("it asks for a reply of no tokens".to_owned());
    }
    let origin = Origin::Tool {
        name: caller.tool.to_owned(),
    };
    let system = params.system_prompt.as_deref().map(|it| caller.shown(it));
    let mut shown = system
        .as_ref()
        .map_or_else(String::new, |words| format!("instructions: {words}\n"));
    let mut messages = Vec::new();
    for message in &params.messages {
        let (role, who) = match message.role {
            Author::User => (Role::User, "user"),
            Author::Assistant => (Role::Assistant, "model"),
        };
        let mut parts = Vec::new();
        for block in message.content.iter() {
            let SamplingMessageContentBlock::Text(text) = block else {
                return Err("it holds more than text, which gyrus does not offer".to_owned());
            };
            let text = caller.shown(&text.text);
            shown.push_str(&format!("{who}: {text}\n"));
            parts.push(Part::Text(Text::new(text, origin.clone())));
        }
        messages.push(Message { role, parts });
    }
    if shown.len() > MAX_PROMPT {
        return Err(format!("it is longer than {MAX_PROMPT} bytes"));
    }
    let tokens = params.max_tokens.min(MAX_TOKENS);
    Ok(ServerPrompt {
        question: ServerQuestion {
            sentence: format!(
                "The server `{}` asks for a reply of a model to its own prompt, of at most {} \
                 tokens, during its call {}",
                caller.server,
                grouped(u64::from(tokens)),
                caller.tool
            ),
            reasons: vec![
                "it is charged to this run, and the reply goes to that server".to_owned(),
                "the model is shown this prompt alone: nothing of the run, and no tools".to_owned(),
            ],
            text: shown,
            wants: AnswerForm::Decision,
        },
        system,
        messages,
        max_output_tokens: u64::from(tokens),
    })
}
