//! Stating a mandate: a model is shown what the person typed and the tools alone, whatever else the
//! run has read, and what it states is checked and recorded.

use std::collections::BTreeMap;

use gyrus_contract::{Message, Origin, Purpose, Role, SystemPart, Text, ToolAction, ToolMeaning};
use serde_json::json;

use super::request::{ModelQuestion, ToolOffer};
use crate::{
    ApprovalCard, EffectError, Entry, Mandate, MandateSet, Run, Stop,
    core::Core,
    mandate::{self, MeantTools},
    recorded::diverges,
    run::NumberedEffect,
};

/// Maximum number of times that a model may restate a mandate that is not valid.
const REPAIRS: u32 = 2;

/// Maximum length of the reply in tokens.
const OUTPUT: u64 = 4_000;

/// Whether a person is to approve the mandate before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MandateReview {
    /// A card shows the mandate, which takes effect once a person approves it.
    Wanted,
    /// The mandate takes effect at once.
    Unwanted,
}

/// The calls that a mandate can cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MandateSubject {
    /// Calls of servers' tools.
    Tools,
    /// Submissions of forms on pages.
    Forms,
}

impl Run {
    /// Asks a model to state the mandate of the goal, if the run began with tools or forms whose
    /// meaning a person confirmed, and none was stated for the present goal. `instructions` say how
    /// it is written. A model that states none, or none that holds, leaves the run without.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn state_mandate(
        &mut self,
        instructions: &str,
        subject: MandateSubject,
        review: MandateReview,
    ) -> Result<(), Stop> {
        let Some(meanings) = &self.core.started.meanings else {
            return Ok(());
        };
        let trusted = self.core.trusted();
        let count = u32::try_from(trusted.len()).unwrap_or(u32::MAX);
        if self.core.shared().state.mandate_for == count {
            return Ok(());
        }
        let meanings = meanings.load(&self.core.log)?;
        let tools = match subject {
            MandateSubject::Tools => meant_tools(&self.core, meanings),
            MandateSubject::Forms => meant_forms(&self.core, &meanings)?,
        };
        let mut actions = tools.values().map(|(_, meaning)| meaning.action);
        if actions.all(|action| action == ToolAction::Reads) {
            return Ok(());
        }
        let stating = self.ask_for_mandate(instructions, &trusted, &tools);
        let mut mandate = stating.await?;
        if review == MandateReview::Wanted && !mandate.calls.is_empty() {
            let answer = self.approve(card(&mandate)).await?;
            if !answer.approved {
                let words = answer.reason.unwrap_or_default();
                self.refused(&[format!("no person approved it {words}").trim().to_owned()])?;
                mandate = Mandate::default();
            }
        }
        let begun = self.begin(|| "setting the mandate".to_owned())?;
        let done = set(&self.core, begun, mandate);
        self.core.shared().state.mandate_for = count;
        self.end(done)
    }

    /// Returns the mandate that a model states. Of one that is still invalid after all repairs,
    /// only the valid calls are kept.
    async fn ask_for_mandate(
        &mut self,
        instructions: &str,
        trusted: &[String],
        tools: &MeantTools,
    ) -> Result<Mandate, Stop> {
        let trusted: Vec<&str> = trusted.iter().map(String::as_str).collect();
        let Some(question) = mandate::question(tools, &trusted) else {
            self.refused(&[format!("the {} tools are too many to show", tools.len())])?;
            return Ok(Mandate::default());
        };
        let mut talk = vec![Message::user(Text::new(question, Origin::Kernel))];
        let mut rest = Mandate::default();
        for _ in 0..=REPAIRS {
            let ask = ModelQuestion {
                purpose: Purpose::Mandate,
                system: vec![SystemPart::cacheable(instructions)],
                lead: Vec::new(),
                lead_at: 0,
                memory: None,
                tail: talk.clone(),
                tools: ToolOffer::Withheld,
                output_schema: Some(mandate::schema()),
                max_output_tokens: OUTPUT,
            };
            let reply = match self.consult(ask).await {
                Ok(reply) => reply,
                Err(EffectError::Stop(stop)) => return Err(stop),
                Err(EffectError::Failed(error)) => {
                    self.refused(&[error.to_string()])?;
                    break;
                }
            };
            match mandate::read(&reply.text(), tools, &trusted) {
                Ok(mandate) => return Ok(mandate),
                Err(refused) => {
                    let mandate::BrokenMandate { wrong, rest: held } = refused;
                    rest = held;
                    self.refused(&wrong)?;
                    if !reply.parts.is_empty() {
                        talk.push(Message {
                            role: Role::Assistant,
                            parts: reply.parts,
                        });
                    }
                    let words = format!(
                        "This does not hold:\n- {}\nState all of it anew, without what cannot be \
                         stated: the person is asked about that when it comes to it.",
                        wrong.join("\n- ")
                    );
                    talk.push(Message::user(Text::new(words, Origin::Kernel)));
                }
            }
        }
        Ok(rest)
    }

    fn refused(&mut self, wrong: &[String]) -> Result<(), Stop> {
        let fact = json!({"text": wrong.join("; "), "wrong": wrong});
        self.note("mandate.refused", 1, &fact)
    }
}

fn card(mandate: &Mandate) -> ApprovalCard {
    let calls = mandate.calls.iter();
    let lines = calls.map(|call| Text::new(mandate::describe_call(call), Origin::Model));
    ApprovalCard {
        sentence: "The run means to make these calls without asking you again".to_owned(),
        reasons: vec![
            "a place is a word that you typed, or a field of what an earlier call returns"
                .to_owned(),
        ],
        details: lines.collect(),
        ..ApprovalCard::default()
    }
}

/// Returns the tools that the run began with and whose meaning a person confirmed.
fn meant_tools(core: &Core, meanings: BTreeMap<String, ToolMeaning>) -> MeantTools {
    let meant = meanings.into_iter().filter_map(|(name, meaning)| {
        let specs = core.kernel.organs().specs.iter();
        let spec = specs
            .filter(|spec| spec.is_served())
            .find(|spec| spec.name == name)?;
        Some((name, (spec.as_ref().clone(), meaning)))
    });
    meant.collect()
}

/// Returns the forms, as tools, that a person had described when the run began.
fn meant_forms(core: &Core, meanings: &BTreeMap<String, ToolMeaning>) -> Result<MeantTools, Stop> {
    let Some(forms) = &core.started.forms else {
        return Ok(MeantTools::new());
    };
    let forms = forms.load(&core.log)?.into_iter();
    let meant = forms.filter_map(|spec| {
        let meaning = meanings.get(&spec.name)?.clone();
        Some((spec.name.clone(), (spec, meaning)))
    });
    Ok(meant.collect())
}

fn set(core: &Core, begun: NumberedEffect, mandate: Mandate) -> Result<(), Stop> {
    let set = Entry::from(MandateSet {
        effect: begun.effect.clone(),
        text: mandate::describe(&mandate),
        mandate,
        extends: false,
    });
    match begun.past.first() {
        None => core.log.append(set).map(|_| ()),
        Some(recorded) if *recorded == set => Ok(()),
        Some(recorded) => Err(diverges(&begun.effect, recorded, "setting the mandate")),
    }
}
