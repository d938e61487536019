//! Requests that a server makes during a call of one of its tools: a question to the person, or a
//! prompt for a model. The kernel decides what becomes of them ([`Site`](crate::Site)).

use crate::Message;

/// A question of a server to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerQuestion {
    /// The question as one sentence in gyrus's words, without text of the server.
    pub sentence: String,
    /// The facts to know before answering, in gyrus's words.
    pub reasons: Vec<String>,
    /// The server's own text. Untrusted, shown in a marked box.
    pub text: String,
    pub wants: AnswerForm,
}

/// The form of an answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    Words,
    /// A yes or a no.
    Decision,
}

/// The end of a server's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonReply {
    /// The person answered with these words; empty where a yes was asked for.
    Accepted(String),
    /// The person declined the question.
    Declined,
    /// No person was asked, for this reason.
    NotAsked(String),
    /// The person gave no answer that counts, for this reason.
    NoAnswer(String),
}

/// A prompt of a server for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerPrompt {
    /// The question whether a model may answer it: the sentence, the reasons and the whole prompt.
    pub question: ServerQuestion,
    /// The server's instructions for the model.
    pub system: Option<String>,
    /// The messages, oldest first, without pictures.
    pub messages: Vec<Message>,
    /// Maximum length of the reply in tokens.
    pub max_output_tokens: u64,
}
