//! Asking a person. The question is an entry, so every surface shows the same card, and after a
//! crash it returns with the same id; the answer is an inbox message that is consumed exactly once.
//!
//! An answer counts for one card, until the card expires. An approval lets one start happen: the
//! question is asked again when the approval expired before the start, when the call has come to
//! mean something else, or when a crash interrupted the call after its start. Answers that do not
//! count are noted and removed from the inbox.

use std::time::Duration;

use gyrus_contract::{Answer, Destination, Digest, EffectId, MessageBody, OnAsk, SurfaceMessage};

use crate::{
    APPROVAL_REFUSED, ApprovalAnswered, ApprovalAsked, ApprovalCard, ApprovalRefused, Ending,
    Entry, Fact, Stop, Validity, approvals, clock::now_ms, core::Core, recorded::diverges,
    run::NumberedEffect,
};

/// Maximum time without a check of the clock while waiting: the wall clock may be set meanwhile.
const LOOK_AT_THE_CLOCK: Duration = Duration::from_secs(60);

/// Asks a question of the loop itself. Its answer is the effect's outcome and does not expire once
/// it is recorded.
pub(crate) async fn perform(
    core: &Core,
    begun: NumberedEffect,
    card: ApprovalCard,
) -> Result<ApprovalAnswered, Stop> {
    let digest = Digest::of_json(&card);
    perform_about(core, begun.effect, begun.past, digest, card).await
}

/// Asks a question about `digest`, or returns the recorded answer.
pub(crate) async fn perform_about(
    core: &Core,
    effect: EffectId,
    recorded: Vec<Entry>,
    digest: Digest,
    card: ApprovalCard,
) -> Result<ApprovalAnswered, Stop> {
    let mut past = PastQuestions::default();
    for entry in recorded {
        past.read(core, &effect, entry, &digest)?;
    }
    match past.answered {
        Some(answered) => Ok(answered),
        None => ask(core, &effect, digest, card, &mut past).await,
    }
}

/// The recorded questions of an effect.
#[derive(Debug, Default)]
pub(crate) struct PastQuestions {
    /// Number of questions of the effect, about anything.
    askings: u32,
    /// The latest question, unless it is void.
    asked: Option<ApprovalAsked>,
    answered: Option<ApprovalAnswered>,
    /// The destination of a command's connection, if the question is about one.
    destination: Option<Destination>,
}

impl PastQuestions {
    /// Begins a new question about a connection.
    pub(super) fn about(destination: Destination) -> Self {
        Self {
            destination: Some(destination),
            ..Self::default()
        }
    }

    /// Reads a recorded entry of a question that was asked while its command ran.
    pub(super) fn take(&mut self, core: &Core, entry: Entry) {
        match entry {
            Entry::ApprovalAsked(past) => {
                self.askings = self.askings.max(past.asking);
                self.destination.clone_from(&past.destination);
                self.asked = Some(past);
                self.answered = None;
            }
            Entry::ApprovalAnswered(past) if self.is_about(&past.digest) => {
                self.take_answer(core, past);
            }
            // Answers that did not count are recorded beside them.
            _ => {}
        }
    }

    fn take_answer(&mut self, core: &Core, answered: ApprovalAnswered) {
        if answered.by.is_none() {
            let asked = self.asked.iter().map(|asked| asked.card.sentence.clone());
            core.shared().state.denied.extend(asked);
        }
        core.grant(&answered.grants);
        self.answered = Some(answered);
    }

    pub(super) fn destination(&self) -> Option<&Destination> {
        self.destination.as_ref()
    }

    pub(super) fn card(&self) -> Option<ApprovalCard> {
        self.asked.as_ref().map(|asked| asked.card.clone())
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.asked.is_some() && self.answered.is_none()
    }

    /// Returns the question and its answer, once there is one.
    pub(super) fn outcome(&self) -> Option<(&ApprovalAsked, &ApprovalAnswered)> {
        self.asked.as_ref().zip(self.answered.as_ref())
    }

    /// Reads a recorded entry of a question about `what`.
    pub(crate) fn read(
        &mut self,
        core: &Core,
        effect: &EffectId,
        entry: Entry,
        what: &Digest,
    ) -> Result<(), Stop> {
        match entry {
            Entry::ApprovalAsked(past)
                if past.digest == ApprovalAsked::digest_of(what, past.asking) =>
            {
                self.askings = self.askings.max(past.asking);
                self.asked = Some(past);
                self.answered = None;
            }
            Entry::ApprovalAnswered(past) if self.is_about(&past.digest) => {
                self.take_answer(core, past);
            }
            Entry::Noted { kind, .. } if kind == APPROVAL_REFUSED => {}
            other => return Err(diverges(effect, &other, format!("asking about {what}"))),
        }
        Ok(())
    }

    fn is_about(&self, digest: &Digest) -> bool {
        let asked = self.asked.as_ref();
        asked.is_some_and(|asked| asked.digest == *digest)
    }

    /// Whether the effect has asked before, about anything.
    pub(crate) fn has_asked(&self) -> bool {
        self.askings > 0
    }

    /// Drops the question and its answer, which were about something else.
    pub(crate) fn forget(&mut self) {
        self.asked = None;
        self.answered = None;
    }

    /// Uses up an approval whose call has begun. An answer in words can be used again.
    pub(crate) fn use_up(&mut self) {
        let asks_for_words = |asked: &ApprovalAsked| asked.card.question;
        if !self.asked.as_ref().is_some_and(asks_for_words) {
            self.forget();
        }
    }

    /// Returns the answer, if it is still valid: no call may begin after an approval has expired.
    pub(crate) fn answer(&self, core: &Core) -> Option<ApprovalAnswered> {
        let (asked, answered) = (self.asked.as_ref()?, self.answered.as_ref()?);
        let leave = answered.approved && !asked.card.question;
        let expired = leave && core.log.is_live() && asked.valid.is_over(now_ms());
        (!expired).then(|| answered.clone())
    }

    /// Returns the question that is waiting for its answer.
    fn open(&self, core: &Core) -> Option<ApprovalAsked> {
        let asked = self.asked.as_ref().filter(|_| self.answered.is_none())?;
        let expired = core.log.is_live() && asked.valid.is_over(now_ms());
        (!expired).then(|| asked.clone())
    }
}

/// Asks the question, or continues to wait for the answer to the earlier one.
pub(crate) async fn ask(
    core: &Core,
    effect: &EffectId,
    what: Digest,
    card: ApprovalCard,
    past: &mut PastQuestions,
) -> Result<ApprovalAnswered, Stop> {
    let asked = match past.open(core) {
        Some(asked) => asked,
        None => put(core, effect, what, card, past).await?,
    };
    let Some(inbox) = &core.inbox else {
        return Err(Stop::EndOfRecord);
    };
    let mut watch = inbox.watch()?;
    let _waits = core.account.wait_for_a_person();
    loop {
        core.obey_messages()?;
        let left = asked.valid.left_ms(now_ms());
        if let Some(answered) = answer_in_inbox(core, &asked, left > 0).await? {
            return record(core, answered, past).await;
        }
        let on_ask = on_ask(core);
        if on_ask == OnAsk::Park || (left == 0 && on_ask == OnAsk::Wait) {
            return Err(Ending::Waiting {
                run: None,
                effect: effect.clone(),
                asking: asked.asking,
                question: asked.card.sentence,
            }
            .into());
        }
        if on_ask == OnAsk::Deny {
            core.shared().state.denied.push(asked.card.sentence);
            let nobody = ApprovalAnswered {
                effect: effect.clone(),
                digest: asked.digest,
                approved: false,
                by: None,
                reason: None,
                grants: Vec::new(),
                message: None,
            };
            return record(core, nobody, past).await;
        }
        core.spares.end_all();
        tokio::select! {
            _ = watch.changed() => {}
            () = tokio::time::sleep(Duration::from_millis(left).min(LOOK_AT_THE_CLOCK)) => {}
            ending = core.controls.paused() => return Err(ending.into()),
        }
    }
}

/// Returns the way to proceed when a person must be asked now.
pub(super) fn on_ask(core: &Core) -> OnAsk {
    match core.settings.on_ask {
        // The screen that the question is about would be closed with this process.
        OnAsk::Park if core.shared().looked => OnAsk::Wait,
        on_ask => on_ask,
    }
}

/// Records the question, and returns once it is on disk.
pub(super) async fn put(
    core: &Core,
    effect: &EffectId,
    what: Digest,
    card: ApprovalCard,
    past: &mut PastQuestions,
) -> Result<ApprovalAsked, Stop> {
    past.askings = past.askings.saturating_add(1);
    let asked = ApprovalAsked {
        effect: effect.clone(),
        card,
        digest: ApprovalAsked::digest_of(&what, past.askings),
        asking: past.askings,
        destination: past.destination.clone(),
        valid: Validity::starting(now_ms(), core.kernel.organs().questions_last),
    };
    core.log.append(asked.clone())?;
    core.log.barrier().await?;
    past.asked = Some(asked.clone());
    past.answered = None;
    Ok(asked)
}

async fn record(
    core: &Core,
    answered: ApprovalAnswered,
    past: &mut PastQuestions,
) -> Result<ApprovalAnswered, Stop> {
    core.log.append(answered.clone())?;
    core.log.barrier().await?;
    core.grant(&answered.grants);
    if let Some(id) = &answered.message {
        core.forget_message(id)?;
    }
    past.answered = Some(answered.clone());
    Ok(answered)
}

/// Returns the oldest answer to this card. Other answers to the same effect are refused, and all of
/// them if the time is over. Answers to other effects stay: they are for cards of other branches.
async fn answer_in_inbox(
    core: &Core,
    asked: &ApprovalAsked,
    in_time: bool,
) -> Result<Option<ApprovalAnswered>, Stop> {
    for (message, digest, answer) in answers(core, &asked.effect)? {
        let why = if digest != asked.digest {
            "it answers an earlier card: that one expired, its yes was used up, or the call means \
             something else by now"
                .to_owned()
        } else if !in_time {
            "the question had expired; it is asked anew when the run is resumed".to_owned()
        } else if let Err(mismatch) = approvals::check(&asked.card, &answer) {
            mismatch.to_string()
        } else {
            let redactor = &core.kernel.organs().redactor;
            let words = answer.text();
            return Ok(Some(ApprovalAnswered {
                effect: asked.effect.clone(),
                digest,
                approved: answer.is_yes(),
                by: Some(message.from),
                reason: words.map(|words| redactor.redact(words).into_owned()),
                grants: if answer.is_wider() {
                    asked.card.wider.clone()
                } else {
                    Vec::new()
                },
                message: Some(message.id),
            }));
        };
        refuse(core, &asked.effect, message, &answer, &why).await?;
    }
    Ok(None)
}

/// Refuses all answers to an effect that no answer can allow any more.
pub(crate) async fn refuse_all(core: &Core, effect: &EffectId, why: &str) -> Result<(), Stop> {
    for (message, _, answer) in answers(core, effect)? {
        refuse(core, effect, message, &answer, why).await?;
    }
    Ok(())
}

/// Returns the waiting answers to an effect with the digests of their cards, oldest first.
fn answers(core: &Core, asking: &EffectId) -> Result<Vec<(SurfaceMessage, Digest, Answer)>, Stop> {
    let answers = core
        .messages()?
        .into_iter()
        .filter_map(|message| match message.body.clone() {
            MessageBody::Answer {
                effect,
                digest,
                answer,
            } if effect == *asking => Some((message, digest, answer)),
            _ => None,
        });
    Ok(answers.collect())
}

/// Records an answer that does not count, and removes it from the inbox.
async fn refuse(
    core: &Core,
    effect: &EffectId,
    message: SurfaceMessage,
    answer: &Answer,
    why: &str,
) -> Result<(), Stop> {
    let refused = ApprovalRefused {
        approved: answer.is_yes(),
        by: message.from,
        text: why.to_owned(),
        message: message.id.clone(),
    };
    let fact = serde_json::to_value(refused).map_err(|error| Stop::Failed(error.to_string()))?;
    core.log.append(Entry::Noted {
        kind: APPROVAL_REFUSED.to_owned(),
        version: 1,
        fact: Fact {
            effect: effect.clone(),
            fact,
        },
    })?;
    core.log.barrier().await?;
    core.forget_message(&message.id)
}
