//! Happenings of models: questions, answers, and what gyrus tells them.

use std::collections::BTreeSet;

use gyrus_contract::{
    Message, ModelError, Origin, Part as MessagePart, Purpose, StopReason, Usage,
};
use gyrus_journal::LogReader;
use gyrus_kernel::{
    AttemptResult, Inline, LONGEST_DELAY_MS, MessagesAppended, ModelCall, ModelReply,
};
use gyrus_text::{counted, grouped, on_the_clock};

use super::{Happening, HappeningPart, HappeningSubject, TextForm, Tone, stored};

pub(super) fn request(asked: ModelCall) -> Happening {
    let purpose = match asked.purpose {
        Purpose::Agent => "",
        Purpose::Plan => " to plan",
        Purpose::Mandate => " to state the mandate",
        Purpose::Reflect => " to look back",
        Purpose::Verify => " to verify",
        Purpose::Safety => " to judge a call",
        Purpose::Summarise => " to summarise",
        Purpose::Sampling => " for a server",
    };
    let headline = format!("asks {}{purpose}", asked.model);
    // What is left out is news for a person when it is left out first.
    let is_first = asked.attempt > 1 || asked.ordinal == 0;
    let left_out = asked.plainer.words();
    let mut happening = if is_first && !left_out.is_empty() {
        let headline = format!("{headline} with {left_out}");
        Happening::main(HappeningSubject::Request, Tone::Aside, headline)
    } else {
        Happening::detail(HappeningSubject::Request, headline)
    };
    let mut remark = |text| {
        happening
            .parts
            .push(HappeningPart::Badge(Tone::Aside, text))
    };
    if asked.attempt > 1 {
        remark(format!("attempt {}", asked.attempt));
    }
    if !asked.why.is_empty() {
        remark(format!("because {}", asked.why));
    }
    let messages = asked.to.saturating_sub(asked.from);
    if messages > 0 {
        remark(format!("{} of memory", counted(messages, "message")));
    }
    happening
}

/// Returns the numbers of tokens of a request and its reply.
fn counts(usage: Usage) -> String {
    let (sent, written) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
    match usage.cached_tokens {
        0 => format!("{sent} in, {written} out"),
        cached => format!("{sent} in, {written} out, {} cached", grouped(cached)),
    }
}

/// Returns the time of the next attempt after an error that names one, as the end of a sentence.
fn asked_again(error: &ModelError, at_ms: i64) -> String {
    let after_ms = error
        .retry_after_ms()
        .filter(|after| *after > LONGEST_DELAY_MS);
    let Some(after_ms) = after_ms.and_then(|after| i64::try_from(after).ok()) else {
        return String::new();
    };
    let time = on_the_clock(at_ms.saturating_add(after_ms));
    format!("; it is asked again at {time}")
}

pub(super) fn reply(reply: ModelReply, at_ms: i64, reader: &LogReader) -> Happening {
    let mut remarks = Vec::new();
    let mut texts = Vec::new();
    let (subject, headline, mut tokens) = match &reply.came {
        AttemptResult::Reply { reply } => match stored(reply, reader) {
            Ok(reply) => {
                if reply.stop == StopReason::MaxTokens {
                    let cut = "the reply was cut at the output limit".to_owned();
                    texts.push(HappeningPart::Text(TextForm::Wrong, cut));
                }
                let text = reply.text();
                let form = if text.trim_start().starts_with('{') {
                    TextForm::Code
                } else {
                    TextForm::Prose
                };
                if !text.trim().is_empty() {
                    texts.push(HappeningPart::Text(form, text));
                }
                let headline = format!("answered by {}", reply.model);
                (HappeningSubject::Reply, headline, reply.usage.map(counts))
            }
            Err(gone) => (HappeningSubject::Reply, gone, None),
        },
        AttemptResult::Error { error } => {
            let attempt = reply.attempt;
            let again = asked_again(error, at_ms);
            let headline = format!("attempt {attempt} of asking the model failed: {error}{again}");
            (HappeningSubject::ReplyFailed, headline, None)
        }
        AttemptResult::CutOff => {
            let headline = "the request was cut off; it may have been answered and charged";
            (HappeningSubject::ReplyFailed, headline.to_owned(), None)
        }
    };
    if tokens.is_none() && reply.charged.tokens > 0 {
        tokens = Some(counted(reply.charged.tokens, "token"));
    }
    remarks.extend(tokens);
    if reply.charged.cost.0 > 0 {
        remarks.push(reply.charged.cost.to_string());
    }
    if reply.estimated {
        remarks.push("estimated".to_owned());
    }
    let mut happening = match (subject, &reply.came) {
        // Whether it was cut off by the person or by a crash, the next entry says it.
        (HappeningSubject::ReplyFailed, AttemptResult::Error { .. }) => {
            Happening::main(subject, Tone::Bad, headline)
        }
        _ => Happening::detail(subject, headline),
    };
    let remarks = remarks
        .into_iter()
        .map(|text| HappeningPart::Badge(Tone::Aside, text));
    happening.parts = remarks.chain(texts).collect();
    happening.charged = reply.charged;
    happening.took_ms = Some(reply.took_ms);
    happening
}

/// Returns the messages that gyrus itself sent to the model: texts of its own, and results of calls
/// that the loop did not execute. Such words are short; what stands in a blob came from somewhere
/// that is shown already.
pub(super) fn told(appended: &MessagesAppended, called: &BTreeSet<String>) -> Vec<Happening> {
    let items = appended.items.iter().filter_map(|item| match item {
        Inline::Is(item) => Some(&item.message),
        Inline::Blob(_) => None,
    });
    items.flat_map(|message| told_by(message, called)).collect()
}

fn told_by<'a>(
    message: &'a Message,
    called: &'a BTreeSet<String>,
) -> impl Iterator<Item = Happening> + 'a {
    let is_own = |part: &MessagePart| matches!(part, MessagePart::Text(text) if text.origin == Origin::Kernel);
    // Beside texts of others, its own words only say what those are.
    let is_lead = !message.parts.iter().all(is_own);
    message.parts.iter().filter_map(move |part| {
        if let MessagePart::Text(text) = part
            && text.origin == Origin::Kernel
        {
            let happening = if is_lead {
                Happening::detail(HappeningSubject::Told, "")
            } else {
                Happening::main(HappeningSubject::Told, Tone::Aside, "")
            };
            Some(happening.with(HappeningPart::prose(text.text.as_str())))
        } else if let MessagePart::ToolResult(result) = part
            && result.text.origin == Origin::Kernel
            && !called.contains(&result.call_id)
        {
            let headline = format!("a call was not made: {}", result.text.text);
            Some(Happening::main(HappeningSubject::Told, Tone::Bad, headline))
        } else {
            None
        }
    })
}
