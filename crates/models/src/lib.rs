//! Clients of model providers, and a scripted model for work without a key.
//!
//! The one idea: a model is reached only over a wire, and that wire is untrusted. Everything that
//! arrives is bounded, and every violation of the protocol becomes a [`ModelError`], never a panic
//! and never half a reply. The scripted model is a server on this machine that speaks the same
//! protocol to the same client, so that what works with it works with a provider.
//!
//! Not here: retries and budgets. Only the run retries; a client asks once and returns the delay
//! that the provider asks for, and a router chooses among models but asks none.
//!
//! [`ModelError`]: gyrus_contract::ModelError

mod connection;
mod facts;
mod client;
mod http;
mod errors;
mod stream;
mod arguments;
mod reading;
mod repetition;
mod blobs;
mod conversation;
mod calls;
mod screen;
mod anthropic;
mod openai;
mod gemini;
mod ollama;
mod script;
mod call_reader;
mod router;
mod catalogue;
mod probe;
mod learned;
mod measured_file;

#[cfg(feature = "sim")]
mod specimen;

pub use anthropic::AnthropicModel;
/// The client for scripts: they are played by its protocol, and contain no vendor's name.
use anthropic::AnthropicModel as MessagesClient;
pub use blobs::{NoBlobs, PictureSource};
pub use call_reader::{CallReader, CallStyle};
pub use catalogue::{
    AddressError, Catalogue, ConnectError, ModelEntryFacts, ModelServer, connect, connect_all,
    find_server,
};
pub use connection::ModelConnection;
pub use facts::{ImageTokens, ModelFacts, Tier, UnknownTier};
pub use gemini::GeminiModel;
pub use learned::{LearnedModels, MeasuredError};
pub use measured_file::MeasuredModels;
pub use ollama::OllamaModel;
pub use openai::{ChatModel, ResponsesModel};
pub use probe::{
    Clicks, ContextLength, ContextProbe, Convention, Effort, Latency, MEASURED_VERSION,
    Measurements, ProbeFinding, ProbePictures, ProbeProgress, ProbeStep, TokenCount, apply, check,
};
pub use router::{Candidate, ModelRouter, RoutingPolicy};
pub use script::{ScriptError, ScriptedModel};
#[cfg(feature = "sim")]
pub use specimen::Specimen;

/// A canonical stream of every protocol.
#[cfg(feature = "sim")]
pub const SPECIMENS: &[Specimen] = &[
    anthropic::SPECIMEN,
    openai::CHAT_SPECIMEN,
    openai::RESPONSES_SPECIMEN,
    gemini::SPECIMEN,
    ollama::SPECIMEN,
];
