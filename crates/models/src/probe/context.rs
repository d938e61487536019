//! Measures the longest prompt of a model: a word at the start of a prompt, a lot of text, and the
//! question for the word.
//!
//! Some servers silently cut long prompts, so the absence of an error is not enough.

use gyrus_contract::ModelError;

use super::{
    ask::{ProbeDialogue, ProbeQuestion, REPLY_TOKENS},
    measured::ContextLength,
};

/// Bounds of the search. Each request costs up to `most_tokens` tokens of input, so that all of it
/// costs at most the product of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextProbe {
    /// Maximum length of a tried prompt, in tokens.
    pub most_tokens: u64,
    /// Maximum number of requests.
    pub most_requests: u32,
}

/// The word to remember.
const WORD: &str = "heliotrope-48213";

/// Filler text between the word to remember and the question.
const FILLER: &str = "The harbour was quiet, and the boats lay where they had been left. ";

/// Estimated bytes of the filler per token, until the provider has counted some.
const BYTES_A_TOKEN: f64 = 4.5;

/// The search ends when the result is known to this fraction of the shortest prompt that is too
/// long.
const PRECISION: u64 = 16;

/// Searches for the longest prompt that the model remembers, longest first.
pub(super) async fn measure(
    asked: &mut ProbeDialogue<'_>,
    probe: ContextProbe,
) -> Result<ContextLength, String> {
    let (mut held, mut too_long) = (None::<u64>, None::<u64>);
    let mut bytes_a_token = BYTES_A_TOKEN;
    let mut wanted = probe.most_tokens.saturating_sub(REPLY_TOKENS).max(1);
    for _ in 0..probe.most_requests {
        let reply = asked.ask(question(wanted, bytes_a_token)).await;
        match reply {
            Ok(reply) if reply.text().contains(WORD) => {
                let counted = reply.usage.map(|usage| usage.input_tokens);
                let counted = counted.filter(|&tokens| tokens > 0);
                if let Some(counted) = counted {
                    bytes_a_token *= wanted as f64 / counted as f64;
                    bytes_a_token = bytes_a_token.clamp(1.0, 10.0);
                }
                held = held.max(Some(counted.unwrap_or(wanted)));
            }
            // An answer without the word has lost it.
            Ok(_)
            | Err(
                ModelError::ContextTooLong { .. }
                | ModelError::Declined { .. }
                | ModelError::Refused { .. },
            ) => too_long = Some(too_long.map_or(wanted, |known| known.min(wanted))),
            // The results so far remain valid.
            Err(_) if held.is_some() => break,
            Err(error) => return Err(error.to_string()),
        }
        let (low, Some(high)) = (held.unwrap_or(0), too_long) else {
            break;
        };
        if high.saturating_sub(low) <= (high / PRECISION).max(1) {
            break;
        }
        wanted = low + (high - low) / 2;
    }
    match (held, too_long) {
        (Some(holds), too_long) => Ok(ContextLength { holds, too_long }),
        (None, Some(tried)) => Err(format!(
            "no prompt was both taken and remembered to its beginning, not even one of {tried} tokens"
        )),
        (None, None) => Err("no request was allowed".to_owned()),
    }
}

fn question(tokens: u64, bytes_a_token: f64) -> ProbeQuestion {
    let bytes = (tokens as f64 * bytes_a_token) as usize;
    let filler = FILLER.repeat(bytes / FILLER.len() + 1);
    ProbeQuestion {
        text: format!(
            "Remember this word: {WORD}\n\n{filler}\n\nWhich word were you asked to remember at \
             the very beginning? Answer with that word only."
        ),
        ..ProbeQuestion::default()
    }
}
