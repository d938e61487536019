//! Answers to what pages ask the browser's user for: for one origin, and this browser alone.

use std::time::Instant;

use gyrus_contract::{ActionVerdict, AnswerDialogCall, ToolOutput};
use serde::de::IgnoredAny;
use serde_json::json;

use super::action::{ActionCall, ActionFailure};
use crate::{cdp::CdpError, settle::SETTLE_LIMIT, state::PagePermission};

impl ActionCall<'_> {
    pub(super) async fn permit(
        &self,
        call: &AnswerDialogCall,
    ) -> Result<ToolOutput, ActionFailure> {
        let question = self.session.state().question_of(&self.tab).cloned();
        let question = question.ok_or_else(|| {
            ActionFailure::Refused("refused: the page does not ask any more".to_owned())
        })?;
        let grants_position = call.accept && question.asks == PagePermission::Geolocation;
        let position = call.text.as_deref().and_then(position);
        if grants_position && position.is_none() {
            let why = "refused: give the position as `text`: LATITUDE,LONGITUDE";
            return Err(ActionFailure::Refused(why.to_owned()));
        }
        let standing = self.session.watch(&self.tab, None, "").await;
        self.session.state().acted = Some(Instant::now());
        let input = async {
            if let (true, Some((latitude, longitude))) = (grants_position, position) {
                let place = json!({"latitude": latitude, "longitude": longitude, "accuracy": 100});
                let order = "Emulation.setGeolocationOverride";
                self.session.order(&self.tab, order, place).await?;
            }
            let order = json!({
                "permission": {"name": question.asks.name()},
                "setting": if call.accept { "granted" } else { "denied" },
                "origin": question.origin,
            });
            let setting = self.session.cdp.call("", "Browser.setPermission", order);
            setting.await.map(|_: IgnoredAny| ())
        };
        let done: Result<(), CdpError> = input.await;
        done.map_err(|error| ActionFailure::Broke(error.to_string()))?;
        self.session
            .state()
            .questions
            .retain(|one| *one != question);
        let rest = self.session.settle(SETTLE_LIMIT).await;
        let effects = self.session.effects(&self.tab, None, &standing, rest).await;
        let verb = if call.accept { "Granted" } else { "Denied" };
        let done = format!("{verb} {} {}", question.origin, question.asks.name());
        Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..self.told(&done, &effects)
        })
    }
}

/// Reads a latitude and a longitude.
fn position(text: &str) -> Option<(f64, f64)> {
    let (latitude, longitude) = text.split_once(',')?;
    let number = |text: &str, most: f64| {
        let number: f64 = text.trim().parse().ok()?;
        (number.abs() <= most).then_some(number)
    };
    Some((number(latitude, 90.0)?, number(longitude, 180.0)?))
}
