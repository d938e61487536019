//! Showing something to a person, as often as they change it into something that cannot be.

use std::future::Future;

use gyrus_kernel::{Card, Run, Stop};

/// Something that a person decides about, and may change.
pub(crate) trait Matter: Sync {
    /// What comes of a text that the person changed.
    type Edited: Send;

    /// What it is, after an article.
    fn what(&self) -> &'static str;

    /// What the person is shown, with the text that they may change. `wrong` is what was wrong with
    /// the change that they made.
    fn card(&self, wrong: &[String]) -> Card;

    /// Reads what they changed; else all that is wrong with it.
    fn read(
        &self,
        run: &mut Run,
        edited: &str,
    ) -> impl Future<Output = Result<Result<Self::Edited, Vec<String>>, Stop>> + Send;
}

/// What became of it. A person who said something is named.
pub(crate) enum Reviewed<T> {
    /// Yes, as it was shown.
    AsShown { by: String },
    /// Yes, as they changed it.
    Edited { edited: T, by: String },
    /// No. The words go back to the model.
    Rejected { words: String, by: String },
    /// No, and without words there is nothing to do better; `by` nobody, where nobody could be
    /// asked.
    Ended { why: String, by: Option<String> },
}

/// Has a person decide.
pub(crate) async fn review<M: Matter>(
    run: &mut Run,
    matter: &M,
) -> Result<Reviewed<M::Edited>, Stop> {
    let what = matter.what();
    let mut card = matter.card(&[]);
    loop {
        let answer = run.approve(card.clone()).await?;
        let Some(by) = answer.by.map(|person| person.id) else {
            let why = format!("the {what} was to be reviewed, and nobody could be asked");
            return Ok(Reviewed::Ended { why, by: None });
        };
        let text = match (answer.approved, answer.reason) {
            (true, None) => return Ok(Reviewed::AsShown { by }),
            (true, Some(text)) => text,
            (false, Some(words)) => return Ok(Reviewed::Rejected { words, by }),
            (false, None) => {
                let why = format!("a person rejected the {what}");
                return Ok(Reviewed::Ended { why, by: Some(by) });
            }
        };
        match matter.read(run, &text).await? {
            Ok(edited) => return Ok(Reviewed::Edited { edited, by }),
            Err(wrong) => {
                card = matter.card(&wrong);
                card.edit = Some(text);
            }
        }
    }
}

/// What was wrong with a person's change, as reasons of the next card.
pub(crate) fn not_taken(wrong: &[String]) -> impl Iterator<Item = String> {
    wrong
        .iter()
        .map(|why| format!("your edit was not taken: {why}"))
}
