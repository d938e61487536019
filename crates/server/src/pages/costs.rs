//! The costs of runs, added up in several ways, each as a drawing, a table and a file.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    response::{Html, IntoResponse, Response},
};
use gyrus_contract::Microdollars;
use gyrus_surfaces::page::{Bar, plot};
use gyrus_text::{counted, grouped};
use maud::{Markup, html};
use serde::Deserialize;

use super::{frame::NavigationPlace, runs::outcome};
use crate::{
    api::{
        costs::{CostGroup, CostReport, CostsBy, CostsQuery, report},
        runs::{blocking, overview},
    },
    app::App,
    error::ApiError,
    extract::ApiQuery,
};

/// The selectable periods, in days; 0 stands for all.
const PERIODS: [(u32, &str); 4] = [(7, "7 days"), (30, "30 days"), (90, "90 days"), (0, "all")];

/// Number of days of a plot, and of groups of a table.
const BARS: usize = 120;
const ROWS: usize = 30;

#[derive(Debug, Deserialize)]
pub(super) struct CostsPart {
    #[serde(default = "month")]
    days: u32,
}

fn month() -> u32 {
    30
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    ApiQuery(part): ApiQuery<CostsPart>,
) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let days = (part.days > 0).then_some(part.days);
        let reports = report(&app, days, &CostsBy::ALL.map(|(by, _)| by))?;
        let first = &reports[0];
        let main = html! {
            div.heading { h1 { "Costs" } (periods(part.days)) }
            section #costs data-live {
                (told(first))
                (tiles(first))
                @for ((by, name), report) in CostsBy::ALL.iter().zip(&reports) {
                    (grouped_by(*by, name, report, part.days))
                }
                (dearest(&app, first))
            }
        };
        Ok(NavigationPlace::Costs.page(&app, "Costs", &main))
    })
    .await
}

fn periods(chosen: u32) -> Markup {
    html! {
        nav.periods aria-label="Period" {
            @for (days, words) in PERIODS {
                a href={ "/costs?days=" (days) } aria-current=[(days == chosen).then_some("true")] { (words) }
            }
        }
    }
}

/// Draws a remark about costs that the figures do not include.
fn told(report: &CostReport) -> Markup {
    html! {
        @if report.unread > 0 {
            p.warning role="status" { "Still being added up: " (counted(report.unread, "older run")) " not read yet." }
        }
        @if report.damaged > 0 {
            p.warning { (counted(report.damaged, "journal")) " cannot be read to the end; what can be read counts. " a href="/health" { "Health" } }
        }
        @if !is_priced(report) {
            p.aside.told-beside { "No price of these models is known, so tokens stand for money." }
        }
    }
}

fn money(amount: u64) -> String {
    Microdollars(amount).to_string()
}

/// Returns an amount of a group in words: where tokens were used and nothing was charged, no price is
/// known.
fn amount(group: &CostGroup, amount: u64) -> String {
    if group.cost() == 0 && group.tokens > 0 {
        return "unknown".to_owned();
    }
    money(amount)
}

/// A figure about a group: its name and its value.
type Figure = (&'static str, fn(&CostGroup) -> String);

/// The figures of a group, the ones that matter most first: a narrow screen shows those.
const FIGURES: [Figure; 8] = [
    ("settled", |one| amount(one, one.settled_microdollars)),
    ("tokens", |one| grouped(one.tokens)),
    ("verified", |one| grouped(one.verified)),
    ("per verified", |one| {
        one.per_verified_microdollars.map_or("–".to_owned(), money)
    }),
    ("runs", |one| grouped(one.runs)),
    ("calls", |one| grouped(one.calls)),
    ("estimated", |one| amount(one, one.estimated_microdollars)),
    ("reserved", |one| amount(one, one.reserved_microdollars)),
];

/// The figures of which nothing can be said without a price.
const MONEY: [&str; 4] = ["settled", "per verified", "estimated", "reserved"];

fn figures(is_priced: bool) -> impl Iterator<Item = &'static Figure> {
    let is_known = move |(name, _): &&Figure| is_priced || !MONEY.contains(name);
    FIGURES.iter().filter(is_known)
}

fn is_priced(report: &CostReport) -> bool {
    report.total.cost() > 0 || report.total.tokens == 0
}

fn tiles(report: &CostReport) -> Markup {
    html! {
        dl.tiles.costs { @for (name, value) in figures(is_priced(report)) {
            div { dt { (name) } dd { (value(&report.total)) } }
        } }
    }
}

fn grouped_by(by: CostsBy, name: &str, report: &CostReport, days: u32) -> Markup {
    let is_priced = is_priced(report);
    let groups = &report.groups;
    let is_by_day = by == CostsBy::Day;
    let highest = groups.iter().map(worth).max().unwrap_or(0).max(1);
    html! {
        section.by {
            div.heading.small {
                h2 { "By " (name) }
                a.csv href={ "/costs.csv?by=" (name) (period(days)) } { "CSV" }
            }
            @if groups.is_empty() { p.nothing { "No model was asked." } }
            @else if is_by_day {
                (by_day(groups))
                details {
                    summary { "The same as a table" }
                    (table(name, groups.iter().rev().take(BARS), None, is_priced))
                }
            } @else {
                (table(name, groups.iter().take(ROWS), Some(highest), is_priced))
                @if groups.len() > ROWS { p.aside { (counted(groups.len() - ROWS, "cheaper group")) " in the file" } }
            }
        }
    }
}

fn period(days: u32) -> String {
    match days {
        0 => String::new(),
        days => format!("&days={days}"),
    }
}

/// Returns the value that the length of a bar represents: money, or tokens where no price is known.
fn worth(group: &CostGroup) -> u64 {
    match group.cost() {
        0 => group.tokens,
        cost => cost,
    }
}

fn by_day(groups: &[CostGroup]) -> Markup {
    let groups = &groups[groups.len().saturating_sub(BARS)..];
    let is_money = groups.iter().any(|group| group.cost() > 0);
    let bars: Vec<Bar> = groups
        .iter()
        .map(|group| Bar {
            href: format!("#day-{}", group.key),
            title: format!(
                "{}: {}, {}",
                group.key,
                money(group.cost()),
                counted(group.tokens, "token")
            ),
            parts: if is_money {
                vec![
                    ("settled", group.settled_microdollars),
                    ("estimated", group.estimated_microdollars),
                    ("reserved", group.reserved_microdollars),
                ]
            } else {
                vec![("tokens-bar", group.tokens)]
            },
        })
        .collect();
    let (caption, words): (&str, &dyn Fn(u64) -> String) = if is_money {
        ("money by day", &money)
    } else {
        ("tokens by day", &|tokens| counted(tokens, "token"))
    };
    html! {
        (plot("by-day", caption, &bars, words))
        p.span { @if let (Some(first), Some(last)) = (groups.first(), groups.last()) {
            span { (first.key) } @if first.key != last.key { span { (last.key) } }
        } }
        @if is_money {
            ul.legend.inline {
                @for word in ["settled", "estimated", "reserved"] { li { i class=(word) {} span { (word) } } }
            }
        }
    }
}

fn table<'a>(
    name: &str,
    groups: impl Iterator<Item = &'a CostGroup>,
    highest: Option<u64>,
    is_priced: bool,
) -> Markup {
    html! {
        div.scrolls tabindex="0" role="group" aria-label={ "Costs by " (name) } {
            table.grid.costs-table {
                thead { tr {
                    th scope="col" { (name) }
                    @if highest.is_some() { th scope="col" { span.said { "Share" } } }
                    @for (name, _) in figures(is_priced) { th.number scope="col" { (name) } }
                } }
                tbody { @for group in groups { (row(group, highest, is_priced)) } }
            }
        }
    }
}

fn row(group: &CostGroup, highest: Option<u64>, is_priced: bool) -> Markup {
    html! {
        tr id=[highest.is_none().then(|| format!("day-{}", group.key))] {
            td.name { @if group.key.is_empty() { "none" } @else { (group.key) } }
            @if let Some(highest) = highest {
                td.share { svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                    rect.bar x="0" y="0" height="10" width=(worth(group).saturating_mul(100).div_ceil(highest)) {}
                } }
            }
            @for (_, value) in figures(is_priced) { td.number { (value(group)) } }
        }
    }
}

fn dearest(app: &App, report: &CostReport) -> Markup {
    let is_priced = is_priced(report);
    html! {
        h2 { "Dearest runs" }
        @if report.dearest.is_empty() { p.nothing { "No run asked a model." } }
        @else {
            div.scrolls tabindex="0" role="group" aria-label="Dearest runs" { table.grid {
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "Goal" } th scope="col" { "Outcome" }
                    @if is_priced { th.number scope="col" { "Cost" } }
                    th.number scope="col" { "Tokens" }
                } }
                tbody { @for one in &report.dearest {
                    @let run = overview(app, one.run).ok();
                    tr {
                        td { a href={ "/runs/" (one.run) } { (one.run.short()) } }
                        td.name { @if let Some(run) = &run { (gyrus_text::clip(&run.goal, 120)) } }
                        td { @if let Some(run) = &run { (outcome(run)) } }
                        @if is_priced { td.number {
                            @if one.cost_microdollars == 0 && one.tokens > 0 { "unknown" }
                            @else { (money(one.cost_microdollars)) }
                        } }
                        td.number { (grouped(one.tokens)) }
                    }
                } }
            } }
        }
    }
}

pub(super) async fn csv(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<CostsQuery>,
) -> Result<Response, ApiError> {
    blocking(move || {
        let report = report(&app, query.days, &[query.by])?.remove(0);
        let by = CostsBy::ALL.iter().find(|(by, _)| *by == query.by);
        let name = by.map_or("", |(_, name)| name);
        let mut text = format!(
            "{name},calls,tokens,settled_dollars,estimated_dollars,reserved_dollars,runs,claimed,checked,verified\r\n"
        );
        for group in &report.groups {
            let figures = [
                group.calls.to_string(),
                group.tokens.to_string(),
                dollars(group.settled_microdollars),
                dollars(group.estimated_microdollars),
                dollars(group.reserved_microdollars),
                group.runs.to_string(),
                group.claimed.to_string(),
                group.checked.to_string(),
                group.verified.to_string(),
            ];
            text.push_str(&format!("{},{}\r\n", field(&group.key), figures.join(",")));
        }
        let attachment = format!("attachment; filename=\"costs-by-{name}.csv\"");
        let headers = [
            (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
            (CONTENT_DISPOSITION, attachment),
        ];
        Ok((headers, text).into_response())
    })
    .await
}

fn dollars(microdollars: u64) -> String {
    format!(
        "{}.{:06}",
        microdollars / 1_000_000,
        microdollars % 1_000_000
    )
}

/// Returns a text as a field. A spreadsheet would compute what begins like a formula.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = gyrus_text::visible(text).replace('"', "\"\"");
    format!("\"{}{text}\"", if is_formula { "'" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::{dollars, field};

    #[test]
    fn fields_compute_nothing_and_end_where_they_should() {
        assert_eq!(field("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(dollars(1_020_003), "1.020003");
    }
}
