//! Costs of runs by day, agent, model, purpose or loop.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State, routing::get};
use gyrus_contract::{RunId, Strength};
use gyrus_kernel::now_ms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::blocking;
use crate::{
    app::App,
    costs::{CallGroup, DAY_MS, RunCosts, Sums},
    endpoint::{Endpoint, reads},
    error::ApiError,
    extract::ApiQuery,
};

/// Number of groups in an answer: the dearest, or the newest days.
const GROUPS: usize = 1_000;

/// Number of days before today of which each is in an answer by day, also without calls.
const DAYS: i64 = 400;

/// Maximum number of days that a query may cover.
const MAX_DAYS: u32 = 100_000;

/// Number of runs among the dearest.
const DEAREST: usize = 20;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/costs", get(show))
            .named(
                "showCosts",
                "Add up the costs of runs by what they have in common",
            )
            .query::<CostsQuery>()
            .json::<CostReport>(200, "The costs."),
    ]
}

/// The common property of the calls of models that are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CostsBy {
    /// The day (UTC) of the call.
    #[default]
    Day,
    /// The agent that the run worked for.
    Agent,
    /// The model that was asked.
    Model,
    /// The purpose of the question.
    Purpose,
    /// The loop of the run.
    Loop,
}

impl CostsBy {
    pub(crate) const ALL: [(CostsBy, &'static str); 5] = [
        (CostsBy::Day, "day"),
        (CostsBy::Agent, "agent"),
        (CostsBy::Model, "model"),
        (CostsBy::Purpose, "purpose"),
        (CostsBy::Loop, "loop"),
    ];
}

/// A selection of costs.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostsQuery {
    /// The property by which costs are added up.
    #[serde(default)]
    pub(crate) by: CostsBy,
    /// Only calls of this many days, today included; all if it is absent.
    #[schemars(range(min = 1, max = MAX_DAYS))]
    pub(crate) days: Option<u32>,
}

/// The costs of a group of calls. Money is in millionths of a US dollar, as far as prices are known.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct CostGroup {
    /// The day, agent, model, purpose or loop.
    pub(crate) key: String,
    /// Number of calls of models, failed attempts included.
    pub(crate) calls: u64,
    /// Number of tokens.
    pub(crate) tokens: u64,
    /// Charges by the provider's own figures.
    pub(crate) settled_microdollars: u64,
    /// Charges of calls of which no figures came: what was reserved for them.
    pub(crate) estimated_microdollars: u64,
    /// Reservations of calls that are under way.
    pub(crate) reserved_microdollars: u64,
    /// Number of runs with such calls; children count with the run that a person started.
    pub(crate) runs: u64,
    /// Number of these runs that answered in words.
    pub(crate) answered: u64,
    /// Number of these runs whose goal is claimed to be reached.
    pub(crate) claimed: u64,
    /// Number of these runs whose goal passed checks.
    pub(crate) checked: u64,
    /// Number of these runs whose goal was verified to be reached.
    pub(crate) verified: u64,
    /// All these costs by the number of verified runs; `null` if there is none.
    pub(crate) per_verified_microdollars: Option<u64>,
}

impl CostGroup {
    /// Returns the sum of everything charged or reserved.
    pub(crate) fn cost(&self) -> u64 {
        let charged = self
            .settled_microdollars
            .saturating_add(self.estimated_microdollars);
        charged.saturating_add(self.reserved_microdollars)
    }

    fn new(key: String, group: &Group) -> Self {
        let sums = &group.sums;
        Self {
            key,
            calls: sums.calls,
            tokens: sums.tokens,
            settled_microdollars: sums.settled,
            estimated_microdollars: sums.estimated,
            reserved_microdollars: sums.reserved,
            runs: group.runs,
            answered: group.outcomes[0],
            claimed: group.outcomes[1],
            checked: group.outcomes[2],
            verified: group.outcomes[3],
            per_verified_microdollars: sums.cost().checked_div(group.outcomes[3]),
        }
    }
}

/// A run and its cost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DearRun {
    /// The run.
    #[schemars(with = "String")]
    pub(crate) run: RunId,
    /// Its cost in millionths of a US dollar, with that of its children.
    pub(crate) cost_microdollars: u64,
    /// Its tokens.
    pub(crate) tokens: u64,
}

/// Costs of runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CostReport {
    /// The costs of all calls.
    pub(crate) total: CostGroup,
    /// The groups: days in their order, others dearest first.
    pub(crate) groups: Vec<CostGroup>,
    /// The dearest runs.
    pub(crate) dearest: Vec<DearRun>,
    /// Number of runs whose journals were not read yet: ask again.
    pub(crate) unread: usize,
    /// Number of runs whose journals cannot be read to their ends; what can be read of them counts.
    pub(crate) damaged: usize,
}

async fn show(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<CostsQuery>,
) -> Result<Json<CostReport>, ApiError> {
    if query
        .days
        .is_some_and(|days| !(1..=MAX_DAYS).contains(&days))
    {
        let error = format!("invalid `days`: 1 to {MAX_DAYS}");
        return Err(ApiError::bad_request(error));
    }
    blocking(move || Ok(Json(report(&app, query.days, &[query.by])?.remove(0)))).await
}

#[derive(Debug, Default)]
struct Group {
    sums: Sums,
    runs: u64,
    /// Number of runs by the evidence for their goals: claimed, checked, verified.
    outcomes: [u64; 4],
}

impl Group {
    fn add(&mut self, sums: &Sums, outcome: Option<Strength>) {
        self.sums.add(sums);
        self.runs += 1;
        if let Some(strength) = outcome {
            let at = match strength {
                Strength::Answered => 0,
                Strength::Claimed => 1,
                Strength::Checked => 2,
                Strength::Verified => 3,
            };
            self.outcomes[at] += 1;
        }
    }
}

/// Returns the costs of the calls of a number of days, summed up in each of these ways.
pub(crate) fn report(
    app: &App,
    days: Option<u32>,
    by: &[CostsBy],
) -> Result<Vec<CostReport>, ApiError> {
    let today = now_ms().div_euclid(DAY_MS);
    let first = days.map_or(i64::MIN, |days| today - i64::from(days) + 1);
    let known = app.costs.now(&app.gateway, &app.heads)?;
    let mut total = Group::default();
    let mut groups: Vec<BTreeMap<String, Group>> = by.iter().map(|_| BTreeMap::new()).collect();
    let mut dearest: Vec<DearRun> = Vec::new();
    let mut earliest = today;
    for (run, costs) in &known.runs {
        let own = || costs.calls.iter().filter(|(calls, _)| calls.day >= first);
        let mut whole = Sums::default();
        for (calls, sums) in own() {
            whole.add(sums);
            earliest = earliest.min(calls.day);
        }
        if whole.calls == 0 {
            continue;
        }
        total.add(&whole, costs.outcome);
        dearest.push(DearRun {
            run: *run,
            cost_microdollars: whole.cost(),
            tokens: whole.tokens,
        });
        for (by, groups) in by.iter().zip(&mut groups) {
            let mut of_run: BTreeMap<String, Sums> = BTreeMap::new();
            for (calls, sums) in own() {
                of_run.entry(key(*by, calls, costs)).or_default().add(sums);
            }
            for (key, sums) in of_run {
                groups.entry(key).or_default().add(&sums, costs.outcome);
            }
        }
    }
    if let Some(at) = by.iter().position(|by| *by == CostsBy::Day) {
        // A day without calls is a day, too.
        for day in earliest.max(today - DAYS)..=today {
            groups[at].entry(date(day)).or_default();
        }
    }
    dearest.sort_by_key(|one| std::cmp::Reverse((one.cost_microdollars, one.tokens, one.run)));
    dearest.truncate(DEAREST);
    let reports = by.iter().zip(groups).map(|(by, groups)| CostReport {
        total: CostGroup::new("all".to_owned(), &total),
        groups: in_order(*by, groups),
        dearest: dearest.clone(),
        unread: known.unread,
        damaged: known.damaged.len(),
    });
    Ok(reports.collect())
}

fn key(by: CostsBy, calls: &CallGroup, run: &RunCosts) -> String {
    match by {
        CostsBy::Day => date(calls.day),
        CostsBy::Agent => run.agent.to_string(),
        CostsBy::Model => calls.model.to_string(),
        CostsBy::Purpose => calls.purpose.to_owned(),
        CostsBy::Loop => run.cognitive_loop.to_string(),
    }
}

fn date(day: i64) -> String {
    let time = gyrus_text::utc(day.saturating_mul(DAY_MS));
    time.split('T').next().unwrap_or_default().to_owned()
}

fn in_order(by: CostsBy, groups: BTreeMap<String, Group>) -> Vec<CostGroup> {
    let groups = groups.into_iter();
    let mut groups: Vec<_> = groups
        .map(|(key, group)| CostGroup::new(key, &group))
        .collect();
    if by == CostsBy::Day {
        let older = groups.len().saturating_sub(GROUPS);
        groups.drain(..older);
    } else {
        groups.sort_by_key(|group| std::cmp::Reverse((group.cost(), group.tokens)));
        groups.truncate(GROUPS);
    }
    groups
}
