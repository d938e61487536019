//! The pages about a run as a whole: its outcome with the evidence, its cost, and its relatives.
//! Reads the whole journal.

use std::collections::BTreeMap;

use gyrus_contract::{Microdollars, RunId};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::log_name;
use gyrus_text::{counted, grouped};
use maud::{Markup, html};

use super::{
    head,
    item::{ItemDrawer, StepContext},
    markup::step_address,
    moment::{TimeOrigin, duration},
    picture::PagePictures,
    plot, prompt,
    step::StepItem,
    survey::{self, Survey},
};
use crate::{
    phases::Phases,
    projection::{Happening, HappeningSubject, Projection},
    usage::RunUsage,
};

/// Kinds of facts that show whether the goal was reached.
const PROOFS: [&str; 3] = ["verification.check", "verification.look", "judge.verdict"];

/// Maximum number of checks and looks on the page.
const MAX_PROOFS: usize = 200;

/// Maximum number of child runs on the page.
const MAX_CHILDREN: usize = 500;

/// A run that was read to its end.
pub struct WholeRun {
    survey: Survey,
    reader: LogReader,
    usage: RunUsage,
    phases: Phases,
    proofs: Vec<Happening>,
    children: Vec<Happening>,
    forks: Vec<survey::ForkLink>,
}

impl WholeRun {
    pub fn read(store: &Store, run: RunId) -> Result<Self, gyrus_journal::Error> {
        let reader = store.reader(&log_name(run))?;
        let mut whole = Self {
            survey: Survey::read(store, run, &reader)?,
            usage: RunUsage::default(),
            phases: Phases::default(),
            proofs: Vec::new(),
            children: Vec::new(),
            forks: survey::forks(store, run)?,
            reader,
        };
        let mut projection = Projection::new();
        // Damage was met by the survey, which says it.
        for entry in whole.reader.entries(1)?.map_while(Result::ok) {
            whole.phases.take(&entry);
            if let Ok(parsed) = gyrus_kernel::parse(&entry) {
                whole.usage.take(&parsed, &whole.reader);
            }
            let is_proof = PROOFS.contains(&entry.kind.as_str());
            for happening in projection.take(&entry, &whole.reader) {
                if is_proof && whole.proofs.len() < MAX_PROOFS {
                    whole.proofs.push(happening);
                } else if matches!(
                    happening.subject,
                    HappeningSubject::Child | HappeningSubject::ChildEnded
                ) && whole.children.len() < MAX_CHILDREN
                {
                    whole.children.push(happening);
                }
            }
        }
        Ok(whole)
    }

    /// Draws the outcome: what the model claims, with its evidence, against what checks and
    /// independent looks found.
    pub fn outcome(&self) -> Markup {
        let name = self.survey.run.short();
        html! {
            div.outcome-tab {
                (head::outcome(&self.survey.standing, &name, "the whole text is in the journal"))
                @if let Some(damage) = &self.survey.damage {
                    p.damage { "The journal cannot be read to its end: " (damage) }
                }
                section {
                    h2 { "Checks and independent looks" }
                    @if self.proofs.is_empty() {
                        p.aside { "None was made: what the run says is a claim." }
                    }
                    (self.items(&self.proofs))
                }
            }
        }
    }

    /// Draws child runs and forks.
    pub fn relatives(&self) -> Markup {
        let run = self.survey.run;
        html! {
            section {
                h2 { "Child runs" }
                @if self.children.is_empty() { p.aside { "It has started none." } }
                (self.items(&self.children))
            }
            section {
                h2 { "Forks" }
                @if self.forks.is_empty() { p.aside { "No run was forked from it." } }
                ul.forks {
                    @for fork in &self.forks {
                        li {
                            a href={ "/runs/" (fork.run) } { "run " (fork.run.short()) }
                            " after step " (fork.step) " · "
                            a href={ "/compare?runs=" (run) "," (fork.run) } { "compare" }
                        }
                    }
                }
            }
        }
    }

    fn items(&self, happenings: &[Happening]) -> Markup {
        let run = self.survey.run;
        let context = StepContext {
            number: 0,
            run,
            start: TimeOrigin {
                at_ms: self.survey.began_ms,
            },
            children: &BTreeMap::new(),
        };
        let drawing = ItemDrawer {
            context: &context,
            reader: &self.reader,
            rest: "the whole text is in the journal",
        };
        let mut pictures = PagePictures::served(run);
        html! {
            @for happening in happenings {
                div.found {
                    (drawing.item(&StepItem::of(happening.clone()), &mut pictures))
                    a href=(step_address(run, happening.seq)) { "its step" }
                }
            }
        }
    }

    /// Draws the use of the run: by purpose and model, by phase, by step and by use of time.
    pub fn cost(&self) -> Markup {
        let run = self.survey.run;
        html! {
            div.cost-tab {
                (self.models())
                div.plots {
                    (plot::strip(&self.survey.shares))
                    (plot::by_step(&self.survey.steps, &|_, seq| step_address(run, seq)))
                }
                (self.by_phase())
                (self.by_step())
            }
        }
    }

    fn models(&self) -> Markup {
        let tokens = |tokens: u64| grouped(tokens);
        html! {
            h2 { "By purpose and model" }
            @if self.usage.is_empty() { p.aside { "No model was asked." } } @else {
                div.scrolls tabindex="0" role="group" aria-label="Use of models" { table {
                    thead { tr {
                        th { "purpose" } th { "model" } th.n { "tokens in" } th.n { "tokens out" }
                        th.n { "settled" } th.n { "estimated" } th.n { "reserved" }
                        th.n { "time" } th.n { "requests" } th.n { "failed" } th.n { "cached" }
                    } }
                    tbody { @for (purpose, model, row) in self.usage.rows() { tr {
                        th scope="row" { (prompt::purpose(purpose)) }
                        td { (super::excerpt::brief(model)) }
                        td.n { (tokens(row.input)) } td.n { (tokens(row.output)) }
                        td.n { (money(row.settled.cost)) } td.n { (money(row.estimated.cost)) }
                        td.n { (money(row.reserved.cost)) } td.n { (duration(row.took_ms)) }
                        td.n { (tokens(row.requests)) } td.n { (tokens(row.failed)) }
                        td.n { (tokens(row.cached)) }
                    } } }
                    tfoot { tr {
                        th scope="row" colspan="4" { "cost in all" }
                        td.n colspan="3" { (money(self.all())) }
                        td colspan="4" {}
                    } }
                } }
                p.aside {
                    "Each request is counted once. Estimated is what was reserved for requests whose "
                    "usage nobody reported; reserved belongs to requests in flight."
                    @if self.usage.children.tokens > 0 {
                        " Child runs used " (counted(self.usage.children.tokens, "token"))
                        (self.usage.children.cost.after(", ")) " beside it."
                    }
                }
            }
        }
    }

    fn all(&self) -> Microdollars {
        let costs = self.usage.rows().map(|(_, _, row)| row.cost());
        costs.fold(Microdollars(0), |sum, cost| sum + cost)
    }

    fn by_phase(&self) -> Markup {
        let totals = self.phases.totals().into_iter();
        html! {
            h2 { "By phase of the cycle" }
            div.scrolls tabindex="0" role="group" aria-label="Time by phase" { table.narrow {
                thead { tr { th { "phase" } th.n { "entered" } th.n { "time" } } }
                tbody { @for (phase, ms, times) in totals.filter(|(_, _, times)| *times > 0) { tr {
                    th scope="row" { (phase.name()) }
                    td.n { (grouped(times)) }
                    td.n { (duration(ms)) }
                } } }
            } }
        }
    }

    fn by_step(&self) -> Markup {
        let mut dearest: Vec<_> = self.survey.steps.iter().collect();
        dearest.sort_by_key(|figures| std::cmp::Reverse((figures.cost.0, figures.tokens)));
        html! {
            h2 { "Dearest steps" }
            div.scrolls tabindex="0" role="group" aria-label="Dearest steps" { table.narrow {
                thead { tr { th { "step" } th.n { "tokens" } th.n { "cost" } } }
                tbody { @for figures in dearest.iter().take(DEAREST) { tr {
                    th scope="row" {
                        a href=(step_address(self.survey.run, figures.seq)) { "step " (figures.step) }
                    }
                    td.n { (grouped(figures.tokens)) }
                    td.n { (money(figures.cost)) }
                } } }
            } }
        }
    }
}

/// Steps in the table of the dearest.
const DEAREST: usize = 10;

/// Formats an amount of money; a dash for zero.
fn money(cost: Microdollars) -> String {
    match cost.0 {
        0 => "–".to_owned(),
        _ => cost.to_string(),
    }
}
