//! Requests that a server makes during a call of its tool: questions to the person, and prompts for
//! a model.
//!
//! Each step of them is an effect within the call, `2.3.0.0.1` the first of call `2.3`: a question,
//! or a model's reply. The call waits for them, so nothing is asked where the run would have to park
//! for the answer. A call that was cut off is never made again with the same answers: what is
//! recorded of its requests counts for the budget, and an answer that comes late is refused.
//!
//! An answer goes to the server alone. It vouches for nothing in the run, because the question was
//! not the run's. A prompt gets nothing of the run: no goal, no memory, no tools.

use gyrus_contract::{
    AnswerForm, Digest, EffectId, OnAsk, Origin, PersonReply, Purpose, Reply, ServerPrompt,
    ServerQuestion, SystemPart, Text, ToolSpec,
};
use tokio::sync::{Mutex, MutexGuard};

use super::{approval, ask};
use crate::{
    ApprovalAnswered, ApprovalCard, EffectError, Entry, ModelQuestion, Stop, ToolOffer, core::Core,
};

/// Maximum number of questions of servers that a person is asked in one call; further ones are
/// refused.
const MAX_QUESTIONS: u32 = 8;

/// Maximum length of a model's reply to a server in tokens.
const MAX_OUTPUT_TOKENS: u64 = 4_000;

/// The branch of a call in which its own questions are numbered, and in that the branch of these
/// requests.
const BRANCH: u32 = 0;

/// The beginning of a marker in the place of a secret.
const SECRET_MARK: &str = "⟦secret:";

/// The requests of one call, in this process or an earlier one.
#[derive(Debug)]
pub(super) struct CallRequests {
    branch: EffectId,
    /// The number of the last effect.
    last: u32,
    /// The number of questions asked in this process.
    asked: u32,
    /// The questions without an answer.
    unanswered: Vec<EffectId>,
}

impl CallRequests {
    /// Takes the entries of these requests from `recorded`, and also returns them, because their
    /// cost counts.
    pub(super) fn recorded(call: &EffectId, recorded: &mut Vec<Entry>) -> (Self, Vec<Entry>) {
        let branch = call.then(BRANCH).then(BRANCH);
        let is_own = |entry: &mut Entry| entry.effect().is_some_and(|id| id.is_within(&branch));
        let entries: Vec<Entry> = recorded.extract_if(.., is_own).collect();
        let mut requests = Self {
            branch,
            last: 0,
            asked: 0,
            unanswered: Vec::new(),
        };
        for entry in &entries {
            let number = entry.effect().and_then(|effect| effect.path().last());
            requests.last = requests.last.max(number.copied().unwrap_or_default());
            match entry {
                Entry::ApprovalAsked(asked) => requests.unanswered.push(asked.effect.clone()),
                Entry::ApprovalAnswered(answered) => requests.is_answered(&answered.effect),
                // Replies of models are paid for, and nothing else is kept of them.
                _ => {}
            }
        }
        (requests, entries)
    }

    /// Refuses answers to questions that were open when the call ended.
    pub(super) async fn refuse_answers(&self, core: &Core) -> Result<(), Stop> {
        for question in &self.unanswered {
            let why = "the server that asked this does not wait for it any more";
            approval::refuse_all(core, question, why).await?;
        }
        Ok(())
    }

    fn next(&mut self) -> EffectId {
        self.last = self.last.saturating_add(1);
        self.branch.then(self.last)
    }

    fn is_answered(&mut self, question: &EffectId) {
        self.unanswered.retain(|open| open != question);
    }
}

/// Handles the requests of a server while its tool is called, one after the other.
pub(super) struct RequestHandler<'a> {
    core: &'a Core,
    tool: &'a str,
    requests: Mutex<&'a mut CallRequests>,
}

impl<'a> RequestHandler<'a> {
    /// Returns the handler for a call of a server's tool; `None` for other tools.
    pub(super) fn of(
        core: &'a Core,
        tool: &'a ToolSpec,
        requests: &'a mut CallRequests,
    ) -> Option<Self> {
        tool.is_served().then(|| Self {
            core,
            tool: &tool.name,
            requests: Mutex::new(requests),
        })
    }

    pub(super) async fn ask_person(&self, question: ServerQuestion) -> PersonReply {
        let mut requests = self.requests.lock().await;
        self.put(&mut requests, question).await
    }

    async fn put(
        &self,
        requests: &mut MutexGuard<'_, &'a mut CallRequests>,
        question: ServerQuestion,
    ) -> PersonReply {
        let core = self.core;
        if let Err(why) = self.may_ask(requests) {
            return PersonReply::NotAsked(why);
        }
        requests.asked += 1;
        let effect = requests.next();
        let redactor = &core.kernel.organs().redactor;
        let origin = Origin::Tool {
            name: self.tool.to_owned(),
        };
        let card = ApprovalCard {
            sentence: question.sentence,
            reasons: question.reasons,
            details: vec![Text::new(redactor.redact(&question.text), origin)],
            question: question.wants == AnswerForm::Words,
            ..ApprovalCard::default()
        };
        let what = Digest::of_json(&(&effect, &card));
        requests.unanswered.push(effect.clone());
        let mut past = approval::PastQuestions::default();
        let asking = approval::ask(core, &effect, what, card, &mut past);
        let answered = match Box::pin(asking).await {
            Ok(answered) => answered,
            // The journal has failed, which ends the run soon, or:
            Err(_) => {
                return PersonReply::NoAnswer(
                    "nobody answered in time, or the run was told to pause".to_owned(),
                );
            }
        };
        requests.is_answered(&effect);
        reply(answered)
    }

    /// Checks that a person can be asked while the call waits.
    fn may_ask(&self, requests: &CallRequests) -> Result<(), String> {
        if requests.asked >= MAX_QUESTIONS {
            return Err(format!(
                "a server may ask {MAX_QUESTIONS} times in one call, and this one has"
            ));
        }
        match approval::on_ask(self.core) {
            OnAsk::Wait => Ok(()),
            OnAsk::Park => Err(
                "the run does not wait for a person during a call; with --on-ask \
                                wait it would"
                    .to_owned(),
            ),
            OnAsk::Deny => Err("nobody can be asked".to_owned()),
        }
    }

    /// Lets the run's model answer a prompt of the server, if the person allows it.
    pub(super) async fn ask_model(&self, prompt: ServerPrompt) -> Result<Reply, String> {
        let mut requests = self.requests.lock().await;
        match self.put(&mut requests, prompt.question).await {
            PersonReply::Accepted(_) => {}
            PersonReply::Declined => return Err("a person did not allow it".to_owned()),
            PersonReply::NotAsked(why) | PersonReply::NoAnswer(why) => return Err(why),
        }
        let core = self.core;
        let redactor = &core.kernel.organs().redactor;
        let mut messages = prompt.messages;
        for text in messages.iter_mut().flat_map(|message| message.texts_mut()) {
            text.text = redactor.redact(&text.text).into_owned();
        }
        let system = prompt.system.map(|words| SystemPart {
            text: redactor.redact(&words).into_owned(),
            cacheable: false,
            brief: None,
        });
        let question = ModelQuestion {
            purpose: Purpose::Sampling,
            system: system.into_iter().collect(),
            lead: messages,
            lead_at: 0,
            memory: None,
            tail: Vec::new(),
            tools: ToolOffer::Withheld,
            output_schema: None,
            max_output_tokens: prompt.max_output_tokens.min(MAX_OUTPUT_TOKENS),
        };
        let router = core.router();
        let effect = requests.next();
        let came = Box::pin(ask::once(core, effect, Vec::new(), question, router)).await;
        came.map_err(|error| match error {
            EffectError::Failed(error) => format!("the model did not answer: {error}"),
            // The same ends the run at its next step, if it still holds then.
            EffectError::Stop(_) => "the run may not ask a model now".to_owned(),
        })
    }
}

/// Returns a person's answer in the form that the server gets.
fn reply(answered: ApprovalAnswered) -> PersonReply {
    match (answered.approved, answered.by) {
        (true, _) => {
            let words = answered.reason.unwrap_or_default();
            if words.contains(SECRET_MARK) {
                PersonReply::NoAnswer(
                    "the answer held a secret, and secrets are not sent to a server by an answer"
                        .to_owned(),
                )
            } else {
                PersonReply::Accepted(words)
            }
        }
        (false, Some(_)) => PersonReply::Declined,
        (false, None) => PersonReply::NotAsked("nobody can be asked".to_owned()),
    }
}
