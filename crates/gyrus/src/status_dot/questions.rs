//! The questions of runs, as notifications that can be answered there.

use std::collections::BTreeMap;

use gyrus_contract::{Answer, ApprovalScope, Digest, RunId};
use gyrus_journal::Store;
use gyrus_kernel::approvals::{self, ApprovalError, OpenQuestion};
use gyrus_screen::{ChosenNotification, NotificationChoice, NotificationService};
use gyrus_surfaces::{
    console::{card, put},
    terminal,
};
use gyrus_text::{one_line, readable};

use crate::{Gyrus, failure::Failure};

/// Maximum number of questions shown at a time.
const MAX_SHOWN: usize = 5;

/// Maximum length of a card that can be allowed in a notification, in characters: services cut what
/// is longer, and nobody is to allow what they have not seen.
const MAX_CARD: usize = 500;

const ALLOW: &str = "allow";
const DENY: &str = "deny";

pub(super) struct QuestionNotices {
    /// `None` until there is a service, and after it failed.
    notifications: Option<NotificationService>,
    store: Store,
    shown: BTreeMap<u32, (Digest, OpenQuestion)>,
}

pub(super) struct AnsweredQuestion {
    open: OpenQuestion,
    answer: Answer,
}

impl QuestionNotices {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            notifications: None,
            store: store.clone(),
            shown: BTreeMap::new(),
        }
    }

    /// Shows the questions of these runs, and removes those that are no longer open. Where a run
    /// uses the display, a notification can only be clicked to open gyrus.
    ///
    /// # Errors
    /// A message if the service is missing or refuses a question; the next call tries it again.
    pub(super) async fn show(
        &mut self,
        waiting: &[RunId],
        is_display_used: bool,
    ) -> Result<(), String> {
        // One that fails is not put back.
        let notifications = match self.notifications.take() {
            Some(notifications) => notifications,
            None => self.connected().await?,
        };
        let open = waiting.iter().flat_map(|run| {
            // A run that is removed meanwhile asks nothing.
            approvals::unanswered(&self.store, *run).unwrap_or_default()
        });
        let open: Vec<(Digest, OpenQuestion)> = open
            .map(|open| {
                (
                    Digest::of_json(&(&open.run, &open.card, &open.id.to_string())),
                    open,
                )
            })
            .collect();
        let is_open = |digest: &Digest| open.iter().any(|(known, _)| known == digest);
        let gone = self
            .shown
            .iter()
            .filter(|(_, (digest, _))| !is_open(digest));
        let gone: Vec<u32> = gone.map(|(notification, _)| *notification).collect();
        for notification in gone {
            self.shown.remove(&notification);
            notifications.close(notification).await;
        }
        for (digest, open) in open {
            let is_shown = self.shown.values().any(|(known, _)| *known == digest);
            if is_shown || self.shown.len() >= MAX_SHOWN {
                continue;
            }
            let body = body(&open);
            let choices = choices(&open, &body, is_display_used);
            let summary = format!("gyrus asks (run {})", open.run.short());
            let number = notifications.show(&summary, &body, &choices).await?;
            self.shown.insert(number, (digest, open));
        }
        self.notifications = Some(notifications);
        Ok(())
    }

    /// Connects to the service, and takes away what an earlier connection showed.
    async fn connected(&mut self) -> Result<NotificationService, String> {
        let notifications = NotificationService::connect().await?;
        for notification in std::mem::take(&mut self.shown).into_keys() {
            notifications.close(notification).await;
        }
        Ok(notifications)
    }

    /// Waits for an answer; `None` if the person wants to see the question.
    pub(super) async fn answered(&mut self) -> Option<AnsweredQuestion> {
        let Some(notifications) = &mut self.notifications else {
            return std::future::pending().await;
        };
        let ChosenNotification {
            notification,
            choice,
        } = notifications.next().await;
        let answer = match choice.as_str() {
            ALLOW => Answer::yes(ApprovalScope::Once),
            DENY => Answer::Deny { reason: None },
            _ => return None,
        };
        let (_, open) = self.shown.get(&notification)?;
        Some(AnsweredQuestion {
            open: open.clone(),
            answer,
        })
    }
}

impl AnsweredQuestion {
    pub(super) fn send(self, gyrus: &Gyrus, store: &Store) -> Result<(), Failure> {
        let person = terminal::person(gyrus.environment.user.as_deref(), "notification");
        let (id, run) = (&self.open.id, self.open.run.short());
        let told = match approvals::answer(store, &self.open, person, self.answer) {
            Err(ApprovalError::Void(void)) => {
                format!("{id} of run {run} was not answered: {void}\n")
            }
            given => {
                given?;
                format!("{id} of run {run} was answered in a notification\n")
            }
        };
        Ok(put(&told)?)
    }
}

/// Returns the whole card, in lines. What is not in gyrus's words is marked.
fn body(open: &OpenQuestion) -> String {
    let card = &open.card;
    let mut lines = vec![card.sentence.clone()];
    lines.extend(card.reasons.iter().map(|reason| format!("- {reason}")));
    if !card.details.is_empty() {
        lines.push(format!("{}:", card::whose(card)));
    }
    let details = card.details.iter().flat_map(|detail| detail.text.lines());
    lines.extend(details.map(|line| format!("┃ {line}")));
    let lines = lines
        .iter()
        .map(|line| readable(&one_line(line)).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn choices(
    open: &OpenQuestion,
    body: &str,
    is_display_used: bool,
) -> Vec<NotificationChoice<'static>> {
    let card = &open.card;
    let mut choices = vec![("default", "Look")];
    if is_display_used || card.question || card.edit.is_some() {
        return choices;
    }
    if body.chars().count() <= MAX_CARD {
        choices.push((ALLOW, "Allow once"));
    }
    choices.push((DENY, "Deny"));
    choices
}
