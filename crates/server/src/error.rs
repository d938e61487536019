//! Errors as answers: what happened, to what, and what to do next.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use gyrus_kernel::{
    FindRunError, StandingError,
    approvals::{AnswerMismatch, ApprovalError, VoidAnswer},
};
use gyrus_runtime::{
    BusError, agents::AgentError, queue::QueueError, request::RefusedRequest,
    triggers::TriggerError,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::tokens::TokenError;

/// The body of every answer that is an error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorBody {
    /// The error: what happened, to what.
    pub error: String,
    /// Advice on what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: ErrorBody,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            body: ErrorBody {
                error: error.into(),
                hint: None,
            },
        }
    }

    /// The request is wrong.
    pub fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Creates an error for a name that does not exist.
    pub fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    /// Creates an error for a failure of the server.
    pub fn internal(error: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// Returns the error as one sentence.
    pub fn message(&self) -> &str {
        &self.body.error
    }

    /// Adds advice on the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body.clone())).into_response();
        // A page shows it in its own way.
        response.extensions_mut().insert(self.body);
        response
    }
}

impl From<RefusedRequest> for ApiError {
    fn from(refused: RefusedRequest) -> Self {
        let error = Self::bad_request(refused.message);
        match refused.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<FindRunError> for ApiError {
    fn from(error: FindRunError) -> Self {
        let text = error.to_string();
        match error {
            FindRunError::Journal(_) => Self::internal(text),
            FindRunError::NoRuns
            | FindRunError::NotFound { .. }
            | FindRunError::TooShort { .. } => Self::not_found(text),
            FindRunError::Ambiguous { .. } => Self::conflict(text),
        }
    }
}

impl From<gyrus_journal::Error> for ApiError {
    fn from(error: gyrus_journal::Error) -> Self {
        let text = error.to_string();
        match error {
            gyrus_journal::Error::NotFound { .. } | gyrus_journal::Error::BlobMissing { .. } => {
                Self::not_found(text)
            }
            gyrus_journal::Error::InboxFull { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, text)
            }
            gyrus_journal::Error::BornElsewhere { name } => Self::conflict(text).hint(format!(
                "to begin a new run with what it remembers: gyrus resume {} --workdir FOLDER",
                name.id()
            )),
            gyrus_journal::Error::CopiedStore { .. } => {
                Self::conflict(text).hint("if it is yours: gyrus runs adopt")
            }
            _ => Self::internal(text),
        }
    }
}

impl From<StandingError> for ApiError {
    fn from(error: StandingError) -> Self {
        match error {
            StandingError::Journal(error) => error.into(),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<ApprovalError> for ApiError {
    fn from(error: ApprovalError) -> Self {
        match error {
            ApprovalError::Journal(error) => error.into(),
            ApprovalError::Void(void) => void.into(),
            ApprovalError::Over { .. } => Self::conflict(error.to_string()),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<VoidAnswer> for ApiError {
    fn from(void: VoidAnswer) -> Self {
        let text = void.to_string();
        match void {
            VoidAnswer::Mismatch(mismatch @ AnswerMismatch::TooLong { .. }) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, text).hint(mismatch.hint())
            }
            VoidAnswer::Mismatch(mismatch) => Self::bad_request(text).hint(mismatch.hint()),
            VoidAnswer::NotAsked { .. } => {
                Self::conflict(text).hint("see what is asked: GET /api/questions")
            }
            VoidAnswer::Answered { .. }
            | VoidAnswer::AskedAnew { .. }
            | VoidAnswer::Expired { .. } => Self::conflict(text),
        }
    }
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        let text = error.to_string();
        match error {
            QueueError::NoAnswer => Self::new(StatusCode::SERVICE_UNAVAILABLE, text),
            QueueError::Full => Self::new(StatusCode::TOO_MANY_REQUESTS, text),
            QueueError::TooLarge { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, text),
            QueueError::NotFound { .. } => Self::not_found(text),
            QueueError::Begun { .. } => Self::conflict(text),
            QueueError::Journal(error) => error.into(),
            QueueError::Approval(error) => error.into(),
            QueueError::Bus(_) | QueueError::Ledger(_) => Self::internal(text),
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        let text = error.to_string();
        match error {
            AgentError::NotFound { .. } => Self::not_found(text),
            AgentError::BadName { .. } => Self::bad_request(text),
            AgentError::Exists { .. } | AgentError::Retired { .. } => Self::conflict(text),
            AgentError::TooMany => Self::new(StatusCode::TOO_MANY_REQUESTS, text),
            AgentError::Bus(error) => error.into(),
            AgentError::Ledger(_) => Self::internal(text),
        }
    }
}

impl From<TriggerError> for ApiError {
    fn from(error: TriggerError) -> Self {
        let text = error.to_string();
        match error {
            TriggerError::NotFound { .. } => Self::not_found(text),
            TriggerError::Refused(_) => Self::new(StatusCode::UNAUTHORIZED, text),
            TriggerError::NotJson(_) => Self::bad_request(text),
            TriggerError::NoSecret => Self::new(StatusCode::SERVICE_UNAVAILABLE, text),
            TriggerError::TooMany => Self::new(StatusCode::TOO_MANY_REQUESTS, text),
            TriggerError::Bus(error) => error.into(),
            TriggerError::Ledger(_) => Self::internal(text),
        }
    }
}

impl From<BusError> for ApiError {
    fn from(error: BusError) -> Self {
        let text = error.to_string();
        match error {
            BusError::Event(_) | BusError::Invalid { .. } => Self::bad_request(text),
            _ => Self::internal(text),
        }
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        let text = error.to_string();
        match error {
            TokenError::Exists { .. } => Self::conflict(text),
            TokenError::BadName { .. } | TokenError::Weak => Self::bad_request(text),
            TokenError::TooMany => Self::new(StatusCode::TOO_MANY_REQUESTS, text),
            TokenError::Ledger(_) | TokenError::Journal(_) | TokenError::Random(_) => {
                Self::internal(text)
            }
        }
    }
}
