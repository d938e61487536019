//! The findings of the demo, for a person or as JSON.

use gyrus_text::wrap;
use serde::Serialize;

use crate::{LabConsole, LabError, TrialEnd};
use gyrus_surfaces::projection::Tone;

#[derive(Serialize)]
struct DemoFinding<'a> {
    finding: &'a str,
    held: bool,
    detail: &'a str,
}

pub(super) struct DemoReport<'a> {
    json: bool,
    pub(super) console: &'a LabConsole,
    failed: u32,
}

impl<'a> DemoReport<'a> {
    pub(super) fn new(json: bool, console: &'a LabConsole) -> Self {
        Self {
            json,
            console,
            failed: 0,
        }
    }

    pub(super) fn say(&self, tone: Tone, text: &str) -> Result<(), LabError> {
        if self.json {
            return Ok(());
        }
        let text = self.console.paint(tone, text);
        Ok(self.console.print(&format!("{text}\n"))?)
    }

    pub(super) fn part(&self, text: &str) -> Result<(), LabError> {
        self.say(Tone::Plain, "")?;
        self.say(Tone::Strong, text)
    }

    /// Reports whether the run reached its goal, by the exit code of its process.
    pub(super) fn reached(&mut self, code: Option<i32>) -> Result<(), LabError> {
        let detail = format!(
            "the run reached its goal (exit code {})",
            code.unwrap_or(-1)
        );
        self.found("the_run_reaches_its_goal", code == Some(0), &detail)
    }

    pub(super) fn found(
        &mut self,
        finding: &str,
        held: bool,
        detail: &str,
    ) -> Result<(), LabError> {
        self.failed += u32::from(!held);
        if self.json {
            let finding = DemoFinding {
                finding,
                held,
                detail,
            };
            let line = serde_json::to_string(&finding).map_err(LabError::failed)?;
            return Ok(self.console.print_json(&line)?);
        }
        let (tone, mark) = if held {
            (Tone::Call, "✓")
        } else {
            (Tone::Bad, "✗")
        };
        let columns = self.console.columns().saturating_sub(4);
        let mark = self.console.paint(tone, mark);
        let mut text = String::new();
        for (number, line) in wrap(detail, columns).iter().enumerate() {
            let mark = if number == 0 { &mark } else { " " };
            text.push_str(&format!("  {mark} {line}\n"));
        }
        Ok(self.console.print(&text)?)
    }

    pub(super) fn end(&self) -> TrialEnd {
        if self.failed == 0 {
            TrialEnd::Passed
        } else {
            TrialEnd::Failed
        }
    }
}
