//! One screen of what happened.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::check::{
    effects::Effects, mistakes::Mistake, queue::Commands, run::RunFindings, takeovers::Times,
};

/// Maximum number of findings that are printed.
const SHOWN: usize = 20;

/// The figures that are told at the end.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    /// Numbers of runs, of their calls, and of workers.
    pub(crate) asked: (usize, usize, usize),
    pub(crate) seconds: f64,
    pub(crate) faults: BTreeMap<String, u64>,
    /// The numbers of faults that were asked for, by what they were to harm.
    pub(crate) wanted: [(&'static str, u64, u64); 3],
    pub(crate) worker_starts: (u64, u64),
    pub(crate) messages: BTreeMap<&'static str, usize>,
    pub(crate) seen: usize,
    pub(crate) commands: Commands,
    pub(crate) times: Times,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) appends: Appends,
    pub(crate) entries: u64,
    pub(crate) effects: Effects,
    pub(crate) taken_after: BTreeMap<String, usize>,
    pub(crate) runs_over: usize,
    pub(crate) left_over: usize,
    pub(crate) wrong: Vec<String>,
}

/// Numbers of conditional appends.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Appends {
    pub(crate) messages: usize,
    pub(crate) stored: usize,
    pub(crate) refused: usize,
    pub(crate) unknown: usize,
    pub(crate) stale: usize,
}

impl Report {
    /// Adds what a run's log says.
    pub(crate) fn add(&mut self, findings: &RunFindings) {
        self.entries += findings.entries;
        self.runs_over += usize::from(findings.is_over);
        let Effects {
            lines,
            done,
            interrupted,
            interrupted_with_line,
            answers,
            other,
        } = findings.effects;
        self.effects.lines += lines;
        self.effects.done += done;
        self.effects.interrupted += interrupted;
        self.effects.interrupted_with_line += interrupted_with_line;
        self.effects.answers += answers;
        self.effects.other += other;
        for kind in &findings.taken_after {
            *self.taken_after.entry(kind.clone()).or_default() += 1;
        }
    }

    /// Returns it as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (runs, calls, workers) = self.asked;
        let Effects {
            lines,
            done,
            interrupted,
            interrupted_with_line,
            answers,
            other,
        } = self.effects;
        writeln!(text, "seed {}", self.seed)?;
        writeln!(
            text,
            "{runs} runs with {calls} calls on {workers} workers in {:.0} s, {:.1} steps/s",
            self.seconds,
            lines as f64 / self.seconds
        )?;
        for (name, done, wanted) in self.wanted {
            writeln!(text, "{name}: {done} of {wanted}")?;
        }
        for (kind, count) in &self.faults {
            writeln!(text, "  {count:>4} {kind}")?;
        }
        let (starts, refused) = self.worker_starts;
        writeln!(
            text,
            "workers started {starts} times, {refused} of them in vain; commands begun {} times, \
             rested {} times",
            self.commands.begun, self.commands.rests
        )?;
        for (end, count) in &self.commands.ends {
            writeln!(text, "  {count:>4} {end}")?;
        }
        writeln!(
            text,
            "effects: {lines} in the ledgers, {done} done by the log, {interrupted} interrupted \
             ({interrupted_with_line} of them in a ledger), {other} others; {answers} answers of \
             people used"
        )?;
        self.write_takeovers(text)?;
        writeln!(
            text,
            "compared: {} messages seen stored with {:?}; {} entries of {} chains, {} of them at \
             their end",
            self.seen, self.messages, self.entries, runs, self.runs_over
        )?;
        let Appends {
            messages,
            stored,
            refused,
            unknown,
            stale,
        } = self.appends;
        writeln!(
            text,
            "appends: {messages} messages ({stale} with a condition that was false), answers: \
             {stored} stored, {refused} refused, {unknown} unknown"
        )?;
        let found = self
            .mistakes
            .iter()
            .filter(|(_, found)| *found == Some(true));
        let made = self.mistakes.iter().filter(|(_, found)| found.is_some());
        writeln!(
            text,
            "mistakes made on purpose in what was compared: {} of {} found",
            found.count(),
            made.count()
        )?;
        writeln!(text, "processes left over: {}", self.left_over)?;
        for wrong in self.wrong.iter().take(SHOWN) {
            writeln!(text, "WRONG: {wrong}")?;
        }
        writeln!(text, "{} violations", self.wrong.len())
    }

    fn write_takeovers(&self, text: &mut String) -> std::fmt::Result {
        let Times {
            quiet,
            with_quorum,
            slow,
            excluded,
            longest,
        } = &self.times;
        let in_words = |times: &[i64]| match times {
            [] => "none".to_owned(),
            times => format!(
                "{}, median {} ms, longest {} ms",
                times.len(),
                times[times.len() / 2],
                times[times.len() - 1]
            ),
        };
        writeln!(
            text,
            "takeovers with nothing in the way: {}",
            in_words(quiet)
        )?;
        writeln!(
            text,
            "takeovers while servers were harmed and took messages all the time: {}",
            in_words(with_quorum)
        )?;
        for (faults, count) in slow {
            writeln!(
                text,
                "  {count:>4} of these over twice the lease, during {faults}"
            )?;
        }
        for (reason, count) in excluded {
            writeln!(text, "other takeovers: {count}: {reason}")?;
        }
        writeln!(text, "  the longest of all took {longest} ms")?;
        writeln!(text, "  after the entries: {:?}", self.taken_after)
    }
}
