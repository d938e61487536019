//! A second look at a call that the gate allows without understanding it whole: a model is asked,
//! if one is configured for that. Of a call on a screen it sees the last picture.
//!
//! It can only make the run ask a person where nobody would have been asked. Every reply except a
//! plain `same` counts as `higher`: an error, a timeout, text around the answer. The call is shown
//! to it in a box that its text cannot leave, and the model's text stands in a box on the card.

use std::{fmt, sync::Arc, time::Duration};

use gyrus_contract::{
    BoxedFuture, Choice, Containment, Decision, Delta, EffectId, MAX_SILENCE, Message, Model,
    ModelError, Network, Origin, Part, Prompt, Purpose, Reply, ResolvedCall, Risk, RouteQuery,
    Router, Simplification, StopReason, SystemPart, Text, Verdict,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask;
use crate::{Entry, ModelQuestion, Stop, ToolOffer, abandoned::count_abandoned, core::Core};

const WORDS: &str = include_str!("assess.md");

/// Time limit of the answer, after which a person is asked.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum length of the answer in tokens: some models think before they answer.
const OUTPUT: u64 = 2_000;

/// Maximum length of the reason in characters.
const REASON: usize = 200;

/// Maximum size of a call in bytes. A model that sees only a part of it cannot judge its effects.
const CALL: usize = 16 * 1024;

/// Maximum length of the goal with its amendments in characters, before it is cut.
const GOAL: usize = 4_000;

/// Second looks at one call: one for each verdict that was recorded of it.
#[derive(Debug, Default)]
pub(super) struct Looks {
    verdicts: u32,
    recorded: Vec<Entry>,
    /// The opinion on the latest verdict.
    opinion: Option<SecondOpinion>,
}

impl Looks {
    /// Creates the looks with the recorded entries.
    pub(super) fn recorded(recorded: Vec<Entry>) -> Self {
        Self {
            recorded,
            ..Self::default()
        }
    }

    /// Notes another verdict, to which the opinion on the previous one does not apply.
    pub(super) fn judged(&mut self) {
        self.verdicts += 1;
        self.opinion = None;
    }

    /// Makes the verdict stricter if the gate wants a second look and this finds more risk. Returns
    /// the model's text for the card.
    pub(super) async fn again(
        &mut self,
        core: &Core,
        effect: &EffectId,
        call: &ResolvedCall,
        verdict: &mut Verdict,
    ) -> Result<Option<Text>, Stop> {
        let (Decision::Allow, Some(if_doubted)) = (verdict.decision, verdict.if_doubted) else {
            return Ok(None);
        };
        let opinion = match self.opinion.take() {
            Some(opinion) => opinion,
            None => {
                let look = effect.then(self.verdicts).then(1);
                let of_it = |entry: &mut Entry| entry.effect() == Some(&look);
                let past = self.recorded.extract_if(.., of_it).collect();
                look_again(core, look, past, call).await?
            }
        };
        let says = match &opinion {
            SecondOpinion::Same => None,
            SecondOpinion::Doubt { why, says } => {
                verdict.decision = verdict.decision.max(if_doubted);
                verdict.risk = verdict.risk.max(Risk::High);
                verdict.reasons.push(why.clone());
                says.clone()
            }
        };
        self.opinion = Some(opinion);
        Ok(says)
    }

    /// Charges recorded looks that are not used any more, since they were paid for.
    pub(super) fn pay(&mut self, core: &Core) -> Result<(), Stop> {
        count_abandoned(core, &std::mem::take(&mut self.recorded))
    }
}

/// The result of a second look.
#[derive(Debug)]
enum SecondOpinion {
    /// No more risk was found, or no model is configured to look.
    Same,
    /// The model found more risk, so a person is asked.
    Doubt {
        /// The reason, in gyrus's words.
        why: String,
        /// The model's text.
        says: Option<Text>,
    },
}

impl SecondOpinion {
    fn failed(why: impl fmt::Display) -> Self {
        SecondOpinion::Doubt {
            why: format!("a second look at it failed: {why}"),
            says: None,
        }
    }
}

/// Takes a second look at a call, as the effect `look`. `past` are the recorded entries of that
/// effect.
async fn look_again(
    core: &Core,
    look: EffectId,
    past: Vec<Entry>,
    call: &ResolvedCall,
) -> Result<SecondOpinion, Stop> {
    let Some(router) = &core.kernel.organs().assessor else {
        // A model was asked before, and none is configured now.
        return Ok(if past.is_empty() {
            SecondOpinion::Same
        } else {
            SecondOpinion::failed("no model is configured for it any more")
        });
    };
    let shown = shown(call);
    if shown.len() > CALL {
        return Ok(SecondOpinion::failed(format!(
            "the call is longer than {CALL} bytes"
        )));
    }
    let question = ModelQuestion {
        purpose: Purpose::Safety,
        system: vec![SystemPart::cacheable(WORDS.trim_end())],
        lead: vec![question(core, &shown, call)],
        lead_at: 0,
        memory: None,
        tail: Vec::new(),
        tools: ToolOffer::Withheld,
        output_schema: Some(schema()),
        max_output_tokens: OUTPUT,
    };
    let router: Arc<dyn Router> = Arc::new(WithTimeout(router.clone()));
    // Boxed, so that a call that waits for a person does not take up the memory for asking a model.
    let came = Box::pin(ask::once(core, look, past, question, router)).await;
    Ok(match came {
        Ok(reply) => opinion(&reply),
        Err(error) => SecondOpinion::failed(error.handled()?),
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "risk": {"type": "string", "enum": ["same", "higher"]},
            "reason": {"type": "string", "description": "at most 200 characters"},
        },
        "required": ["risk", "reason"],
        "additionalProperties": false,
    })
}

fn question(core: &Core, shown: &str, call: &ResolvedCall) -> Message {
    let mut goal = vec![core.goal.clone()];
    goal.extend(core.shared().state.amendments.iter().cloned());
    let mut text = String::new();
    let mut left = GOAL;
    for words in goal {
        let cut = gyrus_text::first_chars(&words.text, left);
        left -= cut.chars().count();
        if words.origin.is_trusted() {
            text.push_str(&format!("The person's goal:\n{cut}\n\n"))
        } else {
            text.push_str(&format!(
                "The goal, as another program gave it:\n{}\n",
                boxed(cut)
            ))
        }
    }
    text.push_str(&format!("The call:\n{}\n", boxed(shown)));
    let contained = call.command.as_ref().and_then(|command| {
        let containment = command.containment.as_ref()?;
        Some(contains(containment))
    });
    text.push_str("What contains it: ");
    text.push_str(&contained.unwrap_or_else(|| "nothing".to_owned()));
    // The content comes from the run, although gyrus wrote the frame.
    let mut message = Message::user(Text::new(text, Origin::Model));
    if call.aim.is_some() {
        let picture = core.shared().picture.clone();
        message.parts.extend(picture.map(Part::Image));
    }
    message
}

/// Formats the call's arguments, each as it would be passed, and the control that it would use.
fn shown(call: &ResolvedCall) -> String {
    let mut text = format!("tool: {}", call.tool);
    if let Some(aim) = &call.aim {
        text.push_str(&format!("\npage: {}", aim.address));
        if let Some(element) = &aim.element {
            text.push_str(&format!("\ncontrol: {} {:?}", element.role, element.name));
        }
        for field in aim.form.iter().flat_map(|form| &form.words) {
            text.push_str(&format!("\nbeside it: {field}"));
        }
    }
    for (name, value) in call.arguments.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!("\n{name}: {value}"));
    }
    text
}

/// Marks every line of a text, whatever ends it, so that no line can look like gyrus's words.
fn boxed(text: &str) -> String {
    let lines = text
        .split(gyrus_text::ends_line)
        .map(|line| format!("┃ {line}\n"));
    lines.collect()
}

fn contains(containment: &Containment) -> String {
    let folders: Vec<_> = containment
        .writable
        .iter()
        .map(|folder| format!("{folder:?}"))
        .collect();
    let changes = if folders.is_empty() {
        "changes nothing".to_owned()
    } else {
        format!("changes only what is in {}", folders.join(", "))
    };
    let network = match containment.network {
        Network::None => "reaches no network".to_owned(),
        Network::Open => "reaches the network".to_owned(),
        Network::Proxy => {
            "reaches only hosts that the person named or allows when it connects".to_owned()
        }
    };
    format!("a sandbox. It {changes}, {network}, and sees no keys and no other processes.\n")
}

/// The format of the model's answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AssessorAnswer {
    risk: RiskOpinion,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RiskOpinion {
    Same,
    Higher,
}

fn opinion(reply: &Reply) -> SecondOpinion {
    let bad = |what: &str| SecondOpinion::failed(format!("the model {what}"));
    let only_words = |part: &Part| matches!(part, Part::Text(_) | Part::Thinking(_));
    if reply.stop != StopReason::EndOfTurn || !reply.parts.iter().all(only_words) {
        return bad("did not finish its answer");
    }
    // Only the whole reply is parsed: text around an answer may come from the call.
    match serde_json::from_str::<AssessorAnswer>(reply.text().trim()) {
        Err(_) => bad("did not answer as it was asked to"),
        Ok(answer) if answer.reason.chars().count() > REASON => bad("said too much"),
        Ok(AssessorAnswer {
            risk: RiskOpinion::Same,
            ..
        }) => SecondOpinion::Same,
        Ok(AssessorAnswer {
            risk: RiskOpinion::Higher,
            reason,
        }) => SecondOpinion::Doubt {
            why: "a model took a second look and has doubts".to_owned(),
            says: Some(Text::new(
                format!("the model that took a second look says: {reason}"),
                Origin::Model,
            )),
        },
    }
}

/// A router whose models have a limited time to answer.
struct WithTimeout(Arc<dyn Router>);

impl Router for WithTimeout {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn choose(&self, wanted: &RouteQuery<'_>) -> Result<Choice, ModelError> {
        let choice = self.0.choose(wanted)?;
        Ok(Choice {
            model: Arc::new(ModelWithTimeout(choice.model)),
            ..choice
        })
    }

    fn heard(&self, model: &str, came: Result<(), &ModelError>) {
        self.0.heard(model, came);
    }

    fn learned(&self, model: &str, step: Simplification) {
        self.0.learned(model, step);
    }

    fn sees_pictures(&self) -> bool {
        self.0.sees_pictures()
    }

    fn unpriced(&self) -> Option<String> {
        self.0.unpriced()
    }
}

struct ModelWithTimeout(Arc<dyn Model>);

impl Model for ModelWithTimeout {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.0)
    }

    // The reply as a whole has a limit of its own.
    fn max_silence(&self) -> Duration {
        MAX_SILENCE
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let reply = tokio::time::timeout(TIMEOUT, self.0.reply(prompt, deltas)).await;
            // The model may have begun to answer, and may charge for that.
            reply.unwrap_or_else(|_| {
                Err(ModelError::BadOutput {
                    message: format!("no whole answer within {} seconds", TIMEOUT.as_secs()),
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, future};

    use super::*;

    struct Silent;

    impl Model for Silent {
        fn name(&self) -> &str {
            "silent"
        }

        fn reply<'a>(
            &'a self,
            _prompt: &'a Prompt,
            _deltas: &'a mut (dyn FnMut(Delta) + Send),
        ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
            Box::pin(future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_an_error_that_may_be_charged() {
        let prompt = Prompt {
            purpose: Purpose::Safety,
            ordinal: 0,
            system: Vec::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            must_call: false,
            output_schema: None,
            screen: None,
            effort: None,
            plainer: BTreeSet::new(),
            max_output_tokens: 1,
        };
        let model = ModelWithTimeout(Arc::new(Silent));
        let came = model.reply(&prompt, &mut |_| {}).await;
        assert!(
            matches!(came, Err(ModelError::BadOutput { .. })),
            "{came:?}"
        );
    }

    #[test]
    fn nothing_leaves_its_box() {
        let text = "a\nb\r\nc\u{85}d\u{2028}e\u{b}f\u{c}g";
        let lines = boxed(text);
        assert!(lines.lines().all(|line| line.starts_with("┃ ")), "{lines}");
        assert_eq!(lines.lines().count(), 8, "{lines}");
    }
}
