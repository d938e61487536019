//! The mandate of a run, which loops have stated before they read anything.

use gyrus_kernel::{MandateReview, MandateSubject, Run, Stop};

use crate::{CognitiveConfig, Review};

/// The instructions for stating a mandate.
pub(crate) const PROMPT: &str = include_str!("prompts/mandate.md");

/// Obtains a mandate for the present goal, if the run needs one and has none.
pub(crate) async fn state(
    run: &mut Run,
    config: &CognitiveConfig,
    subject: MandateSubject,
) -> Result<(), Stop> {
    let review = if config.reviews(Review::Mandate) {
        MandateReview::Wanted
    } else {
        MandateReview::Unwanted
    };
    run.state_mandate(PROMPT, subject, review).await
}
