//! Filters of runs as a text: `state:waiting outcome:claimed cost>0.5 words`.

use gyrus_contract::Microdollars;
use serde_json::Value;

use crate::{api::runs::RunsQuery, error::ApiError, heads::RunWord};

/// Parses and removes the filters in a text; the words that are left are searched for.
///
/// # Errors
/// A filter has a value that there is not.
pub(super) fn take(text: &str, query: &mut RunsQuery) -> Result<(), ApiError> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        if let Some((name, value)) = word.split_once(':')
            && !value.is_empty()
        {
            match name {
                "state" => query.state = Some(state_of(value)?),
                "outcome" => query.outcome = Some(value.to_owned()),
                "agent" => query.agent = Some(value.to_owned()),
                _ => words.push(word),
            }
        } else if let Some(value) = word.strip_prefix("cost>") {
            query.cost_above_microdollars = Some(microdollars(value)?);
        } else if let Some(value) = word.strip_prefix("cost<") {
            query.cost_below_microdollars = Some(microdollars(value)?);
        } else {
            words.push(word);
        }
    }
    query.text = (!words.is_empty()).then(|| words.join(" "));
    Ok(())
}

/// Returns the state for a word of a page's filter.
///
/// # Errors
/// There is no such state.
pub(super) fn state_of(word: &str) -> Result<RunWord, ApiError> {
    let known = serde_json::from_value(Value::String(word.replace('-', "_")));
    known.map_err(|_| {
        ApiError::bad_request(format!("invalid state: there is none named `{word}`"))
            .hint("there are running, waiting, parked, cut-off and over")
    })
}

/// Reads an amount in dollars: `0.5`, `$2`.
fn microdollars(text: &str) -> Result<u64, ApiError> {
    let cost: Result<Microdollars, String> = text.parse();
    cost.map(|cost| cost.0)
        .map_err(|why| ApiError::bad_request(format!("invalid cost: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_words_are_told_apart() {
        let mut query = RunsQuery::default();
        let text = "state:cut-off fix  cost>0.5 outcome:claimed cost<$2 http://x agent:scribe the:";
        take(text, &mut query).unwrap();
        assert_eq!(query.state, Some(RunWord::CutOff));
        assert_eq!(query.outcome.as_deref(), Some("claimed"));
        assert_eq!(query.agent.as_deref(), Some("scribe"));
        assert_eq!(query.cost_above_microdollars, Some(500_000));
        assert_eq!(query.cost_below_microdollars, Some(2_000_000));
        assert_eq!(query.text.as_deref(), Some("fix http://x the:"));
        for wrong in [
            "state:sleepy",
            "cost>",
            "cost>-1",
            "cost>1e9",
            "cost<9999999999",
            "cost>٣",
        ] {
            assert!(take(wrong, &mut RunsQuery::default()).is_err(), "{wrong}");
        }
    }
}
