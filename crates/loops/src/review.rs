//! Reviews by a person, repeated as long as the person's edit is invalid.

use std::future::Future;

use gyrus_kernel::{ApprovalCard, EffectError, Run, Stop};

/// A subject that a person reviews, and may edit.
pub(crate) trait ReviewSubject: Sync {
    /// The parsed form of the edited text.
    type Edited: Send;

    /// Returns the name of the subject, which follows an article.
    fn what(&self) -> &'static str;

    /// Returns the card for the person, with the text that they may edit. `wrong` are the mistakes
    /// in their last edit.
    fn card(&self, wrong: &[String]) -> ApprovalCard;

    /// Parses the person's edit.
    fn read(
        &self,
        run: &mut Run,
        edited: &str,
    ) -> impl Future<Output = Result<Self::Edited, EffectError<Vec<String>>>> + Send;
}

/// The result of a review. A person who answered is named.
pub(crate) enum ReviewResult<T> {
    /// The person approved the subject as shown.
    AsShown { by: String },
    /// The person approved the subject with these edits.
    Edited { edited: T, by: String },
    /// The person rejected the subject. The words go back to the model.
    Rejected { words: String, by: String },
    /// The person rejected the subject without words, so that nothing can be improved; `by` is
    /// `None` where nobody could be asked.
    Ended { why: String, by: Option<String> },
}

/// Asks a person to decide.
pub(crate) async fn review<M: ReviewSubject>(
    run: &mut Run,
    subject: &M,
) -> Result<ReviewResult<M::Edited>, Stop> {
    let what = subject.what();
    let mut card = subject.card(&[]);
    loop {
        let answer = run.approve(card.clone()).await?;
        let Some(by) = answer.by.map(|person| person.id) else {
            let why = format!("the {what} was to be reviewed, and nobody could be asked");
            return Ok(ReviewResult::Ended { why, by: None });
        };
        let text = match (answer.approved, answer.reason) {
            (true, None) => return Ok(ReviewResult::AsShown { by }),
            (true, Some(text)) => text,
            (false, Some(words)) => return Ok(ReviewResult::Rejected { words, by }),
            (false, None) => {
                let why = format!("a person rejected the {what}");
                return Ok(ReviewResult::Ended { why, by: Some(by) });
            }
        };
        match subject.read(run, &text).await {
            Ok(edited) => return Ok(ReviewResult::Edited { edited, by }),
            Err(error) => {
                card = subject.card(&error.handled()?);
                card.edit = Some(text);
            }
        }
    }
}

/// Returns the mistakes in a person's edit as reasons of the next card.
pub(crate) fn not_taken(wrong: &[String]) -> impl Iterator<Item = String> {
    wrong
        .iter()
        .map(|why| format!("your edit was not taken: {why}"))
}
