//! `gyrus context`

use clap::Args;
use gyrus_contract::{Origin, Part, Prompt, Role};
use gyrus_journal::{LogName, Store};
use gyrus_kernel::{AttemptResult, Entry, ModelCall, Stop, log_name, parse, prompt_of};
use gyrus_surfaces::{console::put, output, projection::stored};
use gyrus_text::{counted, grouped};
use serde::Serialize;

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure};

/// Show what fills a model's window
///
/// The last request of a run, by what it is made of, in tokens. What the provider counted is divided
/// by size, so each line is an estimate.
#[derive(Args)]
pub(crate) struct ContextCommand {
    #[command(flatten)]
    run: RunArgument,
    /// Print the summary that stands for the older part of the conversation
    #[arg(long, conflicts_with = "json")]
    summary: bool,
    /// Print one JSON object, for programs
    #[arg(long)]
    json: bool,
}

impl ContextCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let request = LastRequest::read(&store, &log_name(run))?;
        if self.summary {
            writeln!(output::standard(), "{}", request.summary()?)?;
        } else if self.json {
            output::standard().json(&request)?;
        } else {
            put(&request.table())?;
        }
        Ok(Code::Reached)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct LastRequest {
    model: String,
    /// The context window in tokens, if known.
    window: Option<u64>,
    /// Number of tokens, as counted by the provider or estimated.
    tokens: u64,
    /// Whether the provider counted them.
    counted: bool,
    /// The parts with their tokens, in the order in which they are sent.
    parts: Vec<(&'static str, u64)>,
    /// The summary of the older part of the conversation, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

/// Parts of a request, in the order of the table.
const PARTS: [&str; 7] = [
    "instructions",
    "tools",
    "the person's words",
    "what came with them",
    "the model's words and calls",
    "results of tools",
    "pictures",
];

/// Estimated number of bytes of a token, if no provider counted them.
const TOKEN_BYTES: u64 = 4;

/// Bytes of text that take as many tokens as a picture, about.
const PICTURE_BYTES: usize = 4_000;

impl LastRequest {
    /// Returns a description of how full the window is, if known.
    pub(crate) fn fullness(&self) -> Option<String> {
        let window = self.window.filter(|window| *window > 0)?;
        Some(format!("window {} %", self.tokens * 100 / window))
    }

    /// Returns the summary of the older part of the conversation.
    ///
    /// # Errors
    /// Returns an error when there is none.
    pub(crate) fn summary(&self) -> Result<&str, Failure> {
        self.summary.as_deref().ok_or_else(|| {
            Failure::usage("this conversation holds no summary yet")
                .hint("a summary is made near the end of the window, or by: gyrus run -c --compact")
        })
    }

    /// Reads the last request from the journal of a run.
    ///
    /// # Errors
    /// Returns an error when no model was asked yet, or when the journal cannot be read.
    pub(crate) fn read(store: &Store, log: &LogName) -> Result<Self, Failure> {
        let reader = store.reader(log)?;
        let mut last: Option<(u64, ModelCall)> = None;
        let mut usage = None;
        for entry in reader.entries(1)? {
            let entry = entry?;
            match entry.kind.as_str() {
                "model.call" => {
                    if let Entry::ModelCall(call) = parse(&entry).map_err(Stop::from)? {
                        last = Some((entry.seq, call));
                        usage = None;
                    }
                }
                "model.reply" => {
                    if let Entry::ModelReply(reply) = parse(&entry).map_err(Stop::from)?
                        && let AttemptResult::Reply { reply } = reply.came
                    {
                        let reply = stored(&reply, &reader).ok();
                        usage = reply
                            .and_then(|reply| reply.usage)
                            .map(|it| it.input_tokens);
                    }
                }
                _ => {}
            }
        }
        let Some((seq, call)) = last else {
            return Err(Failure::usage("this run has not asked a model yet"));
        };
        let prompt = prompt_of(&reader, seq)?;
        let sizes = sizes(&prompt);
        let bytes: u64 = sizes.iter().sum();
        let estimate = bytes / TOKEN_BYTES;
        let tokens = usage.unwrap_or(estimate);
        let share = |size: u64| u128::from(size) * u128::from(tokens) / u128::from(bytes.max(1));
        let shares = sizes.map(|size| u64::try_from(share(size)).unwrap_or(u64::MAX));
        Ok(Self {
            model: call.model,
            window: call.window,
            tokens,
            counted: usage.is_some(),
            parts: PARTS.into_iter().zip(shares).collect(),
            summary: gyrus_loops::summary_in(&prompt).map(str::to_owned),
        })
    }

    pub(crate) fn table(&self) -> String {
        let about = if self.counted { "" } else { "about " };
        let of = self.window.map_or(String::new(), |window| {
            let percent = self.tokens.saturating_mul(100) / window.max(1);
            format!(" of {} ({percent} %)", grouped(window))
        });
        let tokens = counted(self.tokens, "token");
        let mut text = format!("{}: {about}{tokens}{of}\n", self.model);
        for (part, tokens) in self.parts.iter().filter(|(_, tokens)| *tokens > 0) {
            let share = tokens.saturating_mul(100) / self.tokens.max(1);
            text.push_str(&format!("{:>10} {share:>3} %  {part}\n", grouped(*tokens)));
        }
        text
    }
}

/// Returns the bytes of each part of a request, in the order of [`PARTS`].
fn sizes(prompt: &Prompt) -> [u64; 7] {
    let mut sizes = [0_u64; 7];
    let mut add = |part: usize, bytes: usize| {
        sizes[part] = sizes[part].saturating_add(bytes as u64);
    };
    prompt
        .system
        .iter()
        .for_each(|part| add(0, part.text.len()));
    for tool in &prompt.tools {
        let parameters = tool.told_parameters().to_string();
        add(
            1,
            tool.name.len() + tool.description.len() + parameters.len(),
        );
    }
    for message in &prompt.messages {
        for part in &message.parts {
            match part {
                Part::Text(text) if message.role == Role::Assistant => add(4, text.text.len()),
                Part::Text(text) if text.origin == Origin::Person => add(2, text.text.len()),
                Part::Text(text) => add(3, text.text.len()),
                Part::Thinking(block) => add(4, block.to_string().len()),
                Part::ToolCall(call) => add(4, call.tool.len() + call.arguments.to_string().len()),
                Part::ToolResult(result) => {
                    add(5, result.text.text.len());
                    add(6, result.images.len() * PICTURE_BYTES);
                }
                Part::Image(_) => add(6, PICTURE_BYTES),
            }
        }
    }
    sizes
}
