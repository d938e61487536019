//! Results of the lines, section by section.

use std::fmt;

use crate::{
    corpus::Line,
    desk::{End, Inside},
};

/// Lines of output that are shown where two ends differ.
const SHOWN_LINES: usize = 8;

/// Result of a line.
#[derive(Debug)]
pub(crate) enum Came {
    /// It passed unasked and ended as it does outside.
    Same,
    /// It passed unasked and ended differently.
    Different {
        outside: End,
        inside: End,
        said: String,
    },
    /// A person would have been asked.
    Asked { reasons: Vec<String> },
    /// gyrus itself failed.
    Broke { said: String },
}

impl Came {
    pub(crate) fn of(outside: End, inside: Inside, said_outside: impl FnOnce() -> String) -> Self {
        match inside {
            Inside::Ended { end, .. } if end == outside => Came::Same,
            Inside::Ended { end, said } => Came::Different {
                outside,
                inside: end,
                said: format!(
                    "outside:\n{}\ninside:\n{}",
                    tail(&said_outside()),
                    tail(&said)
                ),
            },
            Inside::Asked { reasons } => Came::Asked { reasons },
            Inside::Broke { said } => Came::Broke { said },
        }
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

/// A line with what came of it.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) line: Line,
    pub(crate) came: Came,
}

/// All that was tried, and what this machine cannot try.
pub(crate) struct Table {
    pub(crate) tried: Vec<Tried>,
    pub(crate) skipped: Vec<Line>,
}

impl Table {
    fn count(&self, section: Option<&str>, is: impl Fn(&Came) -> bool) -> usize {
        let here = |line: &Line| section.is_none_or(|section| line.section == section);
        let tried = self.tried.iter();
        tried
            .filter(|tried| here(&tried.line) && is(&tried.came))
            .count()
    }

    /// Returns the percentage of the tried lines that passed unasked and ended the same.
    fn per_cent(&self) -> f64 {
        let same = self.count(None, |came| matches!(came, Came::Same));
        same as f64 * 100.0 / self.tried.len().max(1) as f64
    }

    /// Panics with everything that is not as it should be if too few lines are.
    pub(crate) fn must_hold(&self, per_cent: f64) {
        assert!(self.per_cent() >= per_cent, "\n{self}");
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Tried { line, came } in &self.tried {
            let told = match came {
                Came::Same => continue,
                Came::Different {
                    outside,
                    inside,
                    said,
                } => format!("ended with {inside}, outside with {outside}\n{said}"),
                Came::Asked { reasons } => format!("asks: {}", reasons.join("; ")),
                Came::Broke { said } => format!("gyrus failed: {said}"),
            };
            let told = told.trim_end().replace('\n', "\n      ");
            writeln!(f, "line {} {:?}\n      {told}", line.number, line.line)?;
        }
        writeln!(
            f,
            "\n| section | tried | skipped | same | different | asked | failed |"
        )?;
        writeln!(f, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
        let mut sections: Vec<&str> = Vec::new();
        for line in self
            .tried
            .iter()
            .map(|tried| &tried.line)
            .chain(&self.skipped)
        {
            if !sections.contains(&line.section.as_str()) {
                sections.push(&line.section);
            }
        }
        for section in sections.into_iter().map(Some).chain([None]) {
            let here = |line: &&Line| section.is_none_or(|section| line.section == section);
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {} |",
                section.unwrap_or("all"),
                self.count(section, |_| true),
                self.skipped.iter().filter(here).count(),
                self.count(section, |came| matches!(came, Came::Same)),
                self.count(section, |came| matches!(came, Came::Different { .. })),
                self.count(section, |came| matches!(came, Came::Asked { .. })),
                self.count(section, |came| matches!(came, Came::Broke { .. })),
            )?;
        }
        write!(
            f,
            "\n{:.1} % of {} everyday commands pass unasked and end as they do outside",
            self.per_cent(),
            self.tried.len()
        )
    }
}
