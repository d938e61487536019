//! Cost of a run's prompts, ours and those of a loop with a history.
//!
//! Both see the same: the screen as our prompt shows it, with the picture where ours has one. Ours
//! pays each turn anew for everything behind the cached prefix. The other one keeps every view and
//! every reply, writes each into the provider's cache once and reads it from there ever after; it
//! keeps no memo and no log, so none is counted for it.

use gyrus_contract::{Image, Part, Price};
use gyrus_models::{Catalogue, ModelFacts};
use serde_json::Value;

use super::player::Asked;

/// No provider is known to cache a shorter prefix.
const SHORTEST_CACHED: u64 = 1_024;

/// A provider's way to count and charge.
pub(super) struct Provider {
    pub(super) name: &'static str,
    facts: ModelFacts,
    price: Price,
}

impl Provider {
    /// One model of each provider whose formulas and prices are known.
    pub(super) fn all() -> Vec<Self> {
        let catalogue = Catalogue::builtin();
        let names = [
            "anthropic/claude-sonnet-5-5",
            "openai/gpt-6.2-sol",
            "gemini/gemini-3.8-flash",
        ];
        let known = |name: &'static str| {
            let (provider, model) = name.split_once('/')?;
            let facts = catalogue.known(provider, model).facts;
            let price = facts.price?;
            Some(Self { name, facts, price })
        };
        names.into_iter().filter_map(known).collect()
    }

    /// In tokens of fresh input, which is what they cost.
    fn billed(&self, read: u64, written: u64, fresh: u64, output: u64) -> u64 {
        let Price {
            input,
            output: output_price,
            cache_read,
            cache_write,
        } = self.price;
        let sum = read * cache_read.unwrap_or(input)
            + written * cache_write.unwrap_or(input)
            + fresh * input
            + output * output_price;
        sum / input.max(1)
    }
}

/// One turn in tokens.
#[derive(Clone)]
pub(super) struct Turn {
    /// Instructions and schema.
    pub(super) prefix: u64,
    /// The goal.
    goal: u64,
    /// Everything behind the goal, without the picture.
    text: u64,
    /// Tokens of that for the screen.
    screen: u64,
    /// The picture.
    pub(super) picture: Option<Image>,
    /// The reply.
    reply: u64,
    /// The reply without what is written into the memo.
    plain_reply: u64,
}

/// Cost of a run.
pub(super) struct Cost {
    /// All input tokens that were sent, cached or not.
    pub(super) raw: u64,
    /// Input and output, in tokens of fresh input.
    pub(super) billed: u64,
}

fn tokens(text: &str) -> u64 {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text) as u64
}

impl Turn {
    pub(super) fn of(asked: &Asked) -> Self {
        let prompt = &asked.prompt;
        let system: u64 = prompt.system.iter().map(|part| tokens(&part.text)).sum();
        let schema = prompt.output_schema.as_ref().map(Value::to_string);
        let text = |message: &gyrus_contract::Message| tokens(&message.text());
        let (turn, lead) = match prompt.messages.split_last() {
            Some((turn, lead)) => (Some(turn), lead),
            None => (None, &[][..]),
        };
        let words = turn.map(|turn| turn.text()).unwrap_or_default();
        let screen = words.find("=== the screen").map_or("", |at| &words[at..]);
        let parts = turn.iter().flat_map(|turn| &turn.parts);
        let mut pictures = parts.filter_map(|part| match part {
            Part::Image(image) => Some(image.clone()),
            _ => None,
        });
        let mut plain: Value = serde_json::from_str(&asked.reply).unwrap_or_default();
        plain["memo"] = Value::Array(Vec::new());
        Self {
            prefix: system + schema.map_or(0, |schema| tokens(&schema)),
            goal: lead.iter().map(|message| text(message)).sum(),
            text: tokens(&words),
            screen: tokens(screen),
            picture: pictures.next_back(),
            reply: tokens(&asked.reply),
            plain_reply: tokens(&plain.to_string()),
        }
    }

    fn of_picture(&self, provider: &Provider) -> u64 {
        let picture = self.picture.as_ref();
        picture.map_or(0, |picture| provider.facts.image_tokens(picture))
    }

    /// Returns the tokens of it that are not cached.
    pub(super) fn fresh(&self, provider: &Provider) -> u64 {
        self.goal + self.text + self.of_picture(provider)
    }
}

/// As the loop does it.
pub(super) fn ours(run: &[Turn], provider: &Provider) -> Cost {
    let mut cost = Cost { raw: 0, billed: 0 };
    for (number, turn) in run.iter().enumerate() {
        let fresh = turn.fresh(provider);
        cost.raw += turn.prefix + fresh;
        cost.billed += match (turn.prefix < SHORTEST_CACHED, number) {
            (true, _) => provider.billed(0, 0, turn.prefix + fresh, turn.reply),
            (false, 0) => provider.billed(0, turn.prefix, fresh, turn.reply),
            (false, _) => provider.billed(turn.prefix, 0, fresh, turn.reply),
        };
    }
    cost
}

/// With a history that is cached as it grows.
pub(super) fn history(run: &[Turn], provider: &Provider) -> Cost {
    let mut cost = Cost { raw: 0, billed: 0 };
    let mut cached = 0;
    let mut last_reply = 0;
    for (number, turn) in run.iter().enumerate() {
        let begins = if number == 0 {
            turn.prefix + turn.goal
        } else {
            0
        };
        let new = begins + last_reply + turn.screen + turn.of_picture(provider);
        cost.raw += cached + new;
        cost.billed += provider.billed(cached, new, 0, turn.plain_reply);
        cached += new;
        last_reply = turn.plain_reply;
    }
    cost
}
