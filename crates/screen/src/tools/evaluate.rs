//! The tool behind `js:` checks. It is not offered to models, and the gate allows only expressions
//! that the person typed.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{
    ActionVerdict, EvaluateCall, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use gyrus_text::shorten;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::action::ActionFailure;
use crate::browser::Browser;

/// Time limit of an expression, promises included.
const LIMIT: Duration = Duration::from_secs(15);

/// Maximum number of characters shown of a value.
const SHOWN: usize = 400;

/// Evaluates expressions in the page.
pub(super) struct Evaluate(pub(super) Arc<Browser>);

impl Evaluate {
    async fn evaluate(&self, expression: &str) -> Result<ToolOutput, ActionFailure> {
        let session = self.0.session(0).await?;
        let tab = session.tab()?;
        // Evaluated in the page's own world: a check may use the page's variables.
        let wanted = json!({
            "expression": format!("(async () => ({expression}\n))()"),
            "awaitPromise": true,
            "returnByValue": true,
            "timeout": u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX),
        });
        let asked = session.cdp.call(&tab.session, "Runtime.evaluate", wanted);
        let answer: ScriptResult = timeout(LIMIT, session.unless_held(&tab, asked))
            .await
            .map_err(|_| ActionFailure::Broke(format!("it took more than {} s", LIMIT.as_secs())))??
            .map_err(|error| ActionFailure::Broke(error.to_string()))?;
        if let Some(thrown) = answer.exception {
            let why = thrown.exception.and_then(|object| object.description);
            let why = why.unwrap_or(thrown.text);
            return Ok(ToolOutput::error(format!(
                "it throws: {}",
                shorten(&why, SHOWN)
            )));
        }
        let value = answer.result.value.unwrap_or(Value::Null);
        let value_text = value.to_string();
        let shown = shorten(&value_text, SHOWN);
        Ok(if is_truthy(&value) {
            ToolOutput::read(format!("it is {shown}"))
        } else {
            ToolOutput::error(format!("it is {shown}"))
        })
    }
}

#[derive(Deserialize)]
struct ScriptResult {
    result: RemoteValue,
    #[serde(rename = "exceptionDetails")]
    exception: Option<Thrown>,
}

#[derive(Deserialize)]
struct RemoteValue {
    value: Option<Value>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Thrown {
    text: String,
    exception: Option<RemoteValue>,
}

/// Whether a value is truthy in JavaScript.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

impl TypedTool for Evaluate {
    type Arguments = EvaluateCall;
    type Failure = ActionFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Evaluates("expression".to_owned())]
    }

    async fn run(
        &self,
        arguments: EvaluateCall,
        _: &ResolvedCall,
        _: &dyn Site,
    ) -> Result<ToolOutput, ActionFailure> {
        let evaluated = self.evaluate(&arguments.expression).await;
        let mut output = evaluated.unwrap_or_else(ToolOutput::from);
        // The effect of the person's expression on the page is unknown.
        output.verdict = ActionVerdict::CannotTell;
        Ok(output)
    }
}
