//! Questions of runs, as a client that may answer them gets them.
//!
//! A client that can show something to its person (elicitation) is asked in their words; the answer
//! counts for exactly the card that was shown, by its digest.

use std::sync::Arc;

use gyrus_contract::{Answer, ApprovalScope};
use gyrus_kernel::approvals::{self, ApprovalError, CardId, OpenQuestion, VoidAnswer};
use gyrus_runtime::blocking;
use gyrus_server::{Requester, TokenScope};
use gyrus_surfaces::console::card;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Value, json};

use crate::host::McpHost;

/// The words of a form by which a call is allowed.
const ALLOW: &str = "allow once";
const DENY: &str = "deny";

/// The names of the fields of a form.
const DECISION: &str = "decision";
const WORDS: &str = "answer";

/// Returns the form by which the client's person is asked.
///
/// # Errors
/// The form does not fit the protocol.
pub(crate) fn form(open: &OpenQuestion) -> Result<ElicitRequestParams, serde_json::Error> {
    let (name, field) = if open.card.question {
        (WORDS, json!({"type": "string", "title": "Your answer"}))
    } else {
        let field = json!({"type": "string", "title": "Your decision", "enum": [DENY, ALLOW]});
        (DECISION, field)
    };
    let schema = json!({
        "type": "object",
        "properties": {name: field},
        "required": [name],
    });
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: card::plain_text(open),
        requested_schema: serde_json::from_value(schema)?,
    })
}

/// Returns the answer in a filled-in form; `None` if the person gave none.
pub(crate) fn answer_of(open: &OpenQuestion, given: &ElicitResult) -> Option<Answer> {
    let field = |name: &str| {
        let content = given.content.as_ref()?;
        content.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    match given.action {
        ElicitationAction::Accept if open.card.question => Some(Answer::words(field(WORDS)?)),
        ElicitationAction::Accept => match field(DECISION)?.as_str() {
            ALLOW => Some(Answer::yes(ApprovalScope::Once)),
            DENY => Some(Answer::Deny { reason: None }),
            // A form that was not filled as it asks decides nothing.
            _ => None,
        },
        ElicitationAction::Decline => Some(Answer::Deny { reason: None }),
        // Cancelled, or what a later version of the protocol adds.
        _ => None,
    }
}

/// Returns the open question of a card.
///
/// # Errors
/// A message if the question is not open.
pub(crate) async fn find(host: &Arc<dyn McpHost>, card: CardId) -> Result<OpenQuestion, String> {
    let host = Arc::clone(host);
    let found = blocking(move || approvals::find(host.store(), &card)).await;
    found.map_err(|error| format!("{error}: use `follow` to see what it asks"))
}

/// Gives an answer in the name of whoever asks.
///
/// # Errors
/// A message: the client may not answer, or the answer does not count.
pub(crate) async fn give(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    open: OpenQuestion,
    answer: Answer,
) -> Result<(), String> {
    if !caller.may(TokenScope::Approve) {
        return Err("this client may not answer for a person".to_owned());
    }
    let (host, from) = (Arc::clone(host), caller.principal.clone());
    blocking(move || {
        let given = approvals::answer(host.store(), &open, from, answer);
        given.map_err(|error| match error {
            ApprovalError::Void(void) => in_words(void),
            error => error.to_string(),
        })
    })
    .await
}

/// Returns the reason why an answer does not count, with the next step where the card takes another.
pub(crate) fn in_words(void: VoidAnswer) -> String {
    match void {
        VoidAnswer::Mismatch(mismatch) => format!("{mismatch}: {}", mismatch.hint()),
        void => void.to_string(),
    }
}
