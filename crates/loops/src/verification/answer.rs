//! The form of an answer that a program is to read.

use gyrus_contract::AnswerSchema;
use serde_json::Value;

/// The fence around code in Markdown.
const FENCE: &str = "```";

/// Returns the answer as JSON that fits the schema, or the reason for the model why it does not.
pub(super) fn in_form(answer: &str, schema: &AnswerSchema) -> Result<String, String> {
    let value = read(answer).map_err(|why| {
        format!(
            "The answer must be JSON that fits the schema, and nothing else. It is not JSON: {why}"
        )
    })?;
    let misfits = schema.misfits(&value);
    if misfits.is_empty() {
        return Ok(value.to_string());
    }
    let mut text = "The answer does not fit its schema:".to_owned();
    for misfit in misfits {
        text.push_str(&format!("\n- {misfit}"));
    }
    Err(text)
}

/// Parses JSON that stands alone or in the only fenced block of a text.
fn read(answer: &str) -> Result<Value, serde_json::Error> {
    let answer = answer.trim();
    serde_json::from_str(answer).or_else(|error| {
        let block = fenced(answer).ok_or(error)?;
        serde_json::from_str(block)
    })
}

/// Returns the content of the fenced block of a text, if there is exactly one.
fn fenced(text: &str) -> Option<&str> {
    let mut parts = text.split(FENCE);
    let (_, block, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    // The language stands behind the fence.
    block.split_once('\n').map(|(_, code)| code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_in_their_form_and_others() {
        let schema = json!({"type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "integer"}}});
        let schema = AnswerSchema::try_from(schema).unwrap();
        for fits in [
            "{\"n\": 3}",
            "  {\n\"n\":3}\n",
            "```json\n{\"n\": 3}\n```",
            "Here it is:\n```\n{\"n\": 3}\n```\nThat is all.",
        ] {
            assert_eq!(in_form(fits, &schema).unwrap(), "{\"n\":3}", "{fits}");
        }
        for (other, why) in [
            ("", "is not JSON"),
            ("three", "is not JSON"),
            ("{\"n\": 3} and more", "is not JSON"),
            ("```\n{\"n\": 3}\n```\n```\n{\"n\": 4}\n```", "is not JSON"),
            ("{\"n\": \"3\"}", "- `n` must be of type integer"),
            ("{}", "- `n` is missing"),
            ("[3]", "- the answer must be of type object"),
        ] {
            let said = in_form(other, &schema).unwrap_err();
            assert!(said.contains(why), "{other}: {said}");
        }
    }
}
