//! What the demo found out, for a person or as JSON.

use gyrus_text::wrap;
use serde::Serialize;

use crate::{
    exit::Code,
    failure::Failure,
    output,
    show::paint::{Paint, Painter},
};

/// One thing that was to hold.
#[derive(Serialize)]
struct Finding<'a> {
    finding: &'a str,
    held: bool,
    detail: &'a str,
}

/// Says what is found, as it is found.
pub(super) struct Report {
    json: bool,
    painter: Painter,
    failed: u32,
}

impl Report {
    pub(super) fn new(json: bool, plain: bool) -> Self {
        Self {
            json,
            painter: Painter::new(&output::standard(), plain),
            failed: 0,
        }
    }

    /// Words for a person.
    pub(super) fn say(&self, paint: Paint, text: &str) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let mut out = output::standard();
        writeln!(out, "{}", self.painter.paint(paint, text))?;
        Ok(out.flush()?)
    }

    /// A part of the demo begins.
    pub(super) fn part(&self, text: &str) -> Result<(), Failure> {
        self.say(Paint::Plain, "")?;
        self.say(Paint::Strong, text)
    }

    /// Something was to hold, and did or did not.
    pub(super) fn found(&mut self, finding: &str, held: bool, detail: &str) -> Result<(), Failure> {
        self.failed += u32::from(!held);
        let mut out = output::standard();
        if self.json {
            out.json(&Finding {
                finding,
                held,
                detail,
            })?;
        } else {
            let (paint, mark) = if held {
                (Paint::Call, "✓")
            } else {
                (Paint::Bad, "✗")
            };
            let columns = self.painter.columns.saturating_sub(4);
            let mark = self.painter.paint(paint, mark);
            for (number, line) in wrap(detail, columns).iter().enumerate() {
                writeln!(out, "  {} {line}", if number == 0 { &mark } else { " " })?;
            }
        }
        Ok(out.flush()?)
    }

    /// How the demo ends.
    pub(super) fn code(&self) -> Code {
        if self.failed == 0 {
            Code::Reached
        } else {
            Code::Failed
        }
    }
}
