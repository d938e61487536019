//! An independent look: a model that did not do the work rates from 0 to 100 how well the screen
//! shows that the goal is reached.
//!
//! Its input was written by pages and by another model, so its answer strengthens a claim only
//! together with facts that words cannot create: that the run changed something, or that the quoted
//! words were seen; and never where it quotes words that were not, where the page is empty, or where
//! the page addresses a judge.

use gyrus_contract::{
    Claim, MemoryExtent, Message, Origin, Part, Purpose, Reply, Role, SystemPart, Text, View,
};
use gyrus_kernel::{EffectError, ModelQuestion, Run, ToolOffer};
use gyrus_text::shorten;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::{says, text_of};
use crate::{
    goal,
    reactive::{
        shown,
        words::{clean, lines_of_data},
    },
};

/// The model's instructions for the look.
pub(crate) const VERIFY: &str = include_str!("verify.md");

/// Minimum score with which the look passes.
pub(super) const PASSES: u8 = 70;

/// Maximum number of tokens of a tree.
const TREE: usize = 900;

/// Maximum number of tokens of the claim.
const CLAIM: usize = 600;

/// Maximum length of the answer in tokens: some models think before they answer.
const OUTPUT: u64 = 2_000;

/// Maximum number of reasons, and of characters of each.
const REASONS: usize = 5;
const REASON: usize = 240;

/// Maximum number of views that are searched for a quotation.
pub(super) const VIEWS: usize = 40;

/// The opinion of a model, as far as it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct VerifierOpinion {
    /// The score, from 0 to 100.
    pub(super) score: u8,
    /// The reasons, in the model's words.
    pub(super) reasons: Vec<String>,
    /// The quotation from the screen on which the opinion is based.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) quotation: String,
    /// The reason why the opinion does not strengthen the claim despite its score, by gyrus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) does_not_count: Option<String>,
    /// Whether the model saw the picture.
    pub(super) with_picture: bool,
}

pub(super) struct Material<'a> {
    pub(super) claim: &'a Claim,
    /// The present view of the screen.
    pub(super) now: &'a View,
    /// The views so far, the first one first.
    pub(super) seen: &'a [View],
    /// Whether any input was made on a page.
    pub(super) acted: bool,
}

#[derive(Deserialize)]
struct VerifierReply {
    score: f64,
    #[serde(default)]
    reasons: Vec<String>,
    #[serde(default)]
    asks: bool,
    #[serde(default)]
    quotation: String,
}

/// Requests an opinion from the model; the error is the reason in words why there is none.
pub(super) async fn perform(
    run: &mut Run,
    material: &Material<'_>,
) -> Result<VerifierOpinion, EffectError<String>> {
    let mut why = String::new();
    // A model that sees no pictures judges by the trees.
    for with_picture in [true, false] {
        if with_picture && material.now.frame.is_none() {
            continue;
        }
        match run.consult(question(run, material, with_picture)).await {
            Err(error) => why = error.handled()?.to_string(),
            Ok(reply) => match read(&reply) {
                Err(wrong) => why = wrong,
                Ok(said) => return Ok(weigh(said, material, with_picture)),
            },
        }
    }
    Err(EffectError::Failed(why))
}

fn question(run: &Run, material: &Material<'_>, with_picture: bool) -> ModelQuestion<'static> {
    let perception = run.perception();
    let now = material.now;
    let mut parts = Vec::new();
    let mut say = |text: String, origin| parts.push(Part::Text(Text::new(text, origin)));
    say(
        format!(
            "=== the claim (data) ===\n{}",
            lines_of_data(&material.claim.answer, CLAIM)
        ),
        Origin::Model,
    );
    if let Some(before) = material.seen.first() {
        let tree = shown(before, TREE / 2);
        say(
            format!("=== the screen before (data) ===\n{tree}"),
            of_screen(),
        );
    }
    let tree = shown(now, TREE);
    say(
        format!("=== the screen now (data) ===\n{tree}"),
        of_screen(),
    );
    if with_picture && let Some(picture) = &now.frame {
        parts.push(Part::Image(picture.clone()));
    }
    let mut lead = goal::goal_with(&perception, MemoryExtent::Digest);
    lead.push(Message {
        role: Role::User,
        parts,
    });
    ModelQuestion {
        purpose: Purpose::Verify,
        system: vec![SystemPart::cacheable(VERIFY.trim_end())],
        lead,
        lead_at: 0,
        memory: None,
        tail: Vec::new(),
        tools: ToolOffer::Withheld,
        output_schema: Some(schema()),
        max_output_tokens: OUTPUT,
    }
}

fn of_screen() -> Origin {
    Origin::Tool {
        name: "screen".to_owned(),
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "score": {"type": "integer", "description": "0 to 100"},
            "reasons": {"type": "array", "items": {"type": "string"}},
            "asks": {"type": "boolean", "description": "whether the goal asks for information"},
            "quotation": {"type": "string", "description": "exact words of the screen, or empty"},
        },
        "required": ["score", "reasons", "asks", "quotation"],
        "additionalProperties": false,
    })
}

/// Parses the only object in a reply, ignoring text around it.
fn read(reply: &Reply) -> Result<VerifierReply, String> {
    let text = reply.text();
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return Err("its answer holds no JSON object".to_owned());
    };
    let inside = text.get(start..=end).unwrap_or_default();
    let said: VerifierReply = serde_json::from_str(inside)
        .map_err(|error| format!("its answer cannot be read: {error}"))?;
    if (0.0..=100.0).contains(&said.score) {
        Ok(said)
    } else {
        Err(format!("its score is {}, not 0 to 100", said.score))
    }
}

fn weigh(said: VerifierReply, material: &Material<'_>, with_picture: bool) -> VerifierOpinion {
    let quotation = shorten(&clean(&said.quotation), REASON).into_owned();
    let quotes = !said.quotation.trim().is_empty();
    let seen = quotes && was_seen(material, &said.quotation);
    let does_not_count = if let Some(words) = speaks_to_a_judge(material.now) {
        Some(format!("the page speaks to whoever judges it: “{words}”"))
    } else if text_of(material.now).trim().is_empty() {
        Some("the page is empty".to_owned())
    } else if quotes && !seen {
        Some("the words that it quotes were never seen".to_owned())
    } else if said.asks && !seen {
        Some("no words that were seen prove the answer".to_owned())
    } else if !material.acted && !seen {
        Some("nothing was done, and no words that were seen prove it".to_owned())
    } else {
        None
    };
    // Checked above to be between 0 and 100.
    // Bounded.
    let score = said.score.round() as u8;
    VerifierOpinion {
        score,
        reasons: said
            .reasons
            .iter()
            .take(REASONS)
            .map(|reason| shorten(&clean(reason), REASON).into_owned())
            .collect(),
        quotation: if seen { quotation } else { String::new() },
        does_not_count,
        with_picture,
    }
}

fn was_seen(material: &Material<'_>, quotation: &str) -> bool {
    // A single character occurs anywhere.
    let long_enough = quotation.chars().filter(|c| c.is_alphanumeric()).count() >= 2;
    long_enough
        && material
            .seen
            .iter()
            .chain([material.now])
            .any(|view| says(view, quotation))
}

/// Returns words of a page that address a judging model, if there are any. If an honest page is
/// taken for such a one, a claim only stays unverified.
fn speaks_to_a_judge(view: &View) -> Option<String> {
    /// Words that address a judge if both occur near each other.
    const PAIRS: &[(&str, &[&str])] = &[
        (
            "score",
            &[
                "100",
                "give",
                "return",
                "output",
                "must be",
                "respond",
                "answer with",
            ],
        ),
        (
            "verif",
            &[
                "model",
                "agent",
                "assistant",
                "score",
                "must",
                "report",
                "instruction",
            ],
        ),
        (
            "evaluat",
            &["model", "agent", "assistant", "score", "instruction"],
        ),
        (
            "ignore",
            &["previous", "prior", "above", "instruction", "earlier"],
        ),
        (
            "disregard",
            &["previous", "prior", "above", "instruction", "earlier"],
        ),
        ("judge", &["model", "assistant", "score", "instruction"]),
        ("grader", &["score", "model", "assistant", "pass"]),
        ("\"score\"", &[":"]),
        ("system prompt", &[""]),
        ("you are an ai", &[""]),
        ("language model", &[""]),
        ("bewert", &["100", "punkte", "anweisung", "modell"]),
        ("puntua", &["100", "instruc", "modelo"]),
        ("ignor", &["anweisung", "instruc", "istruzion", "consigne"]),
    ];
    const NEAR: usize = 80;
    let text = clean(&text_of(view)).to_lowercase();
    for (word, others) in PAIRS {
        for (at, _) in text.match_indices(word) {
            let around: String = {
                let before = text[..at].chars().rev().take(NEAR).collect::<Vec<_>>();
                let after = text[at..].chars().take(NEAR + word.len());
                before.into_iter().rev().chain(after).collect()
            };
            if others.iter().any(|other| around.contains(other)) {
                return Some(shorten(around.trim(), 120).into_owned());
            }
        }
    }
    None
}
