//! What stands in single entries, cut to what a page takes of it.

use gyrus_contract::StopReason;
use gyrus_journal::{Payload, Reader};
use gyrus_kernel::{ApprovalCard, AttemptResult, GateVerdict, ModelReply, Stop};
use gyrus_text::grouped;
use serde_json::Value;

use super::{
    step::{Answer, Argument, Item, Judged, Raw, Reply, What},
    words::{Words, brief, briefs},
};

/// JSON that is longer than this, in bytes, is not laid out: indenting what is deeply nested
/// would make it many times longer.
const LAYOUT_LIMIT: usize = 64 << 10;

/// Arguments of a call that the page has.
const ARGUMENTS: usize = 40;

/// Bytes of an entry's payload that the page has, at its start and its end.
const RAW: (usize, usize) = (4 << 10, 512);

/// A value as JSON, laid out for reading.
pub(super) fn pretty(value: &Value) -> Words {
    Words::of(&layout(value, &value.to_string()))
}

fn layout(value: &Value, compact: &str) -> String {
    if compact.len() <= LAYOUT_LIMIT
        && let Ok(pretty) = serde_json::to_string_pretty(value)
    {
        return pretty;
    }
    compact.to_owned()
}

/// An entry as it stands in the journal.
pub(super) fn raw(entry: &gyrus_journal::Entry) -> Raw {
    let text = match &entry.payload {
        // What is nested too deep for us is still text.
        Payload::Json(json) => serde_json::from_str(json.get()).map_or_else(
            |_| json.get().to_owned(),
            |value: Value| layout(&value, json.get()),
        ),
        Payload::Erased(hash) => format!("erased; its hash was {hash}"),
    };
    Raw {
        seq: entry.seq,
        at_ms: entry.at_ms,
        kind: entry.kind.clone(),
        payload: Words::within(&text, RAW),
    }
}

/// The arguments of a call: texts as they are, everything else as JSON. The short ones first.
pub(super) fn arguments(arguments: &Value) -> Vec<Argument> {
    let Some(object) = arguments.as_object() else {
        return vec![Argument {
            name: String::new(),
            value: pretty(arguments),
            is_text: false,
        }];
    };
    let mut taken: Vec<Argument> = object
        .iter()
        .take(ARGUMENTS)
        .map(|(name, value)| Argument {
            name: brief(name),
            value: value.as_str().map_or_else(|| pretty(value), Words::of),
            is_text: value.is_string(),
        })
        .collect();
    taken.sort_by_key(|argument| !argument.value.is_line());
    if object.len() > ARGUMENTS {
        let others = grouped(object.len() - ARGUMENTS);
        taken.push(Argument {
            name: "…".to_owned(),
            value: Words::of(&format!("and {others} more")),
            is_text: false,
        });
    }
    taken
}

/// What the gate said.
pub(super) fn judged(judged: &GateVerdict) -> Judged {
    let places: Vec<String> = judged
        .paths
        .values()
        .map(|path| path.real.display().to_string())
        .collect();
    Judged {
        risk: judged.verdict.risk,
        decision: judged.verdict.decision,
        reasons: briefs(judged.verdict.reasons.iter().map(String::as_str)),
        places: briefs(places.iter().map(String::as_str)),
    }
}

/// The model's words on a card.
pub(super) fn details(card: &ApprovalCard) -> Vec<Words> {
    let details = card.details.iter().take(ARGUMENTS);
    details.map(|text| Words::of(&text.text)).collect()
}

/// A fact that was noted down.
pub(super) fn noted(kind: String, fact: &Value) -> What {
    let words = fact.as_str().or_else(|| fact["text"].as_str());
    match (kind.as_str(), words) {
        ("thought" | "reflection", Some(words)) => What::Thought {
            is_reflection: kind == "reflection",
            words: Words::of(words),
        },
        (_, Some(words)) => What::Noted {
            kind,
            words: Words::of(words),
            is_json: false,
        },
        (_, None) => What::Noted {
            kind,
            words: pretty(fact),
            is_json: true,
        },
    }
}

/// What came of an attempt at asking a model.
pub(super) fn reply(reply: &ModelReply, reader: &Reader) -> Reply {
    let answer = match &reply.came {
        AttemptResult::Reply { reply } => {
            match reply.read(|id| reader.blob(id).map_err(Stop::from)) {
                Ok(reply) => Answer::Words {
                    words: Words::of(&reply.text()),
                    model: brief(&reply.model),
                    usage: reply.usage,
                    cut: reply.stop == StopReason::MaxTokens,
                },
                Err(error) => Answer::Gone(error.to_string()),
            }
        }
        AttemptResult::Error { error } => Answer::Error(brief(&error.to_string())),
        AttemptResult::CutOff => Answer::CutOff,
    };
    Reply {
        took_ms: reply.took_ms,
        charged: reply.charged,
        estimated: reply.estimated,
        answer,
    }
}

/// A loop notes down what the model said as a thought: then the reply need not say it again.
pub(super) fn drop_repeated_words(items: &mut [Item]) {
    let thoughts: Vec<Words> = items
        .iter()
        .filter_map(|item| match &item.what {
            What::Thought { words, .. } => Some(words.clone()),
            _ => None,
        })
        .collect();
    for item in items {
        let What::Asked(attempts) = &mut item.what else {
            continue;
        };
        for attempt in attempts {
            if let Some(Reply {
                answer: Answer::Words { words, .. },
                ..
            }) = &mut attempt.came
                && thoughts.contains(words)
            {
                *words = Words::default();
            }
        }
    }
}
