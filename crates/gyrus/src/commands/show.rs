//! `gyrus show`

use std::io::{Write, stdout};

use clap::Args;
use gyrus_kernel::log_name;

use crate::{
    Gyrus,
    exit::Code,
    failure::Failure,
    select,
    show::{
        line,
        paint::{Paint, Painter},
        visible,
    },
};

/// Show what happened in a run, entry by entry
#[derive(Args)]
pub(crate) struct Show {
    /// The run: `last`, its id, or the start or end of it
    run: String,
}

impl Show {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = select::find(&store, &self.run)?;
        let reader = store.reader(&log_name(run))?;
        let mut out = stdout().lock();
        let painter = Painter::new(&out, gyrus.environment.plain);
        writeln!(
            out,
            "{}",
            painter.paint(Paint::Strong, &format!("run {run}"))
        )?;
        let mut began_ms = None;
        for entry in reader.entries(1)? {
            let entry = entry?;
            let began_ms = *began_ms.get_or_insert(entry.at_ms);
            let line = line::of(&entry, &reader);
            let effect = line
                .effect
                .as_ref()
                .map_or_else(String::new, ToString::to_string);
            let head = format!(
                "{:>5} {:>9} {effect:<8}",
                entry.seq,
                since(entry.at_ms - began_ms)
            );
            let columns = painter.columns.saturating_sub(visible::width(&head) + 3);
            let text = visible::clip(&line.text, columns);
            writeln!(
                out,
                "{} {}",
                painter.paint(Paint::Aside, &head),
                painter.paint(line.paint, &format!("{} {text}", line.mark))
            )?;
        }
        Ok(Code::Reached)
    }
}

/// Seconds since the start, to the millisecond. A clock may have been set back.
fn since(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03}", ms / 1000, ms % 1000)
}
