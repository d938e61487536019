//! Cost of a turn on a screen: real runs of the reactive loop on real pages, every prompt as the
//! loop made it, counted by the providers' own formulas, beside a loop that keeps its history and
//! has it cached.
//!
//! The model plays: it scrolls, presses, types and looks for things, so that verdicts, memo and log
//! are those of real turns. Text is counted with the encoding `o200k`, which is one provider's own
//! and stands in for those of the others, who publish none; pictures by the formulas and money by
//! the prices of the catalogue. The pages are ours and every site to practise on; addresses given
//! behind the benchmark's name are looked at in their place.

mod cost;
pub(crate) mod pages;
mod player;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, future::try_join_all, stream};
use gyrus_contract::{Limits, OnAsk, Origin, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Kernel, NewRun, Organs, SingleModel, redact::Redactor};
use gyrus_lab::sites::{self, SiteServer};
use gyrus_loops::{CognitiveConfig, PerceptionMode};
use gyrus_screen::{Browser, Launch, ProfileChoice, find_program, tools};
use parking_lot::Mutex;

use crate::{Row, look, row, world};
use cost::{Provider, Turn};
use player::{Asked, Player};

/// Turns of a run.
const TURNS: u64 = 20;

/// A run that takes longer is counted as far as it came.
const TIMEOUT: Duration = Duration::from_secs(180);

const GOAL: &str = "Find the cheapest brass lamp that is in stock and put two of them into the \
                    cart. Do not order.";

const MODES: [(PerceptionMode, &str, &str); 3] = [
    (PerceptionMode::Vision, "vision", "≤ 1,650"),
    (PerceptionMode::Auto, "auto", "≤ 1,000"),
    (PerceptionMode::Tree, "tree", ""),
];

/// Measures the cost of every turn on every page.
pub(crate) fn turns() -> anyhow::Result<Vec<Row>> {
    if let Err(error) = find_program(None) {
        eprintln!("left out: {error}");
        return Ok(Vec::new());
    }
    tokio::runtime::Runtime::new()?.block_on(measured())
}

async fn measured() -> anyhow::Result<Vec<Row>> {
    let given = std::env::args().filter(|argument| argument.contains("://"));
    let mut addresses: Vec<String> = given.collect();
    let site = SiteServer::start(None).await?;
    if addresses.is_empty() {
        addresses = pages::serve().await?;
        let world = format!("{}/w/tokens", site.address());
        addresses.extend(sites::sites().map(|(name, _)| format!("{world}/{name}/")));
    }
    let providers = Provider::all();
    let mut runs = [const { Vec::new() }; 3];
    // Tokens are counted, not time: several at once.
    let runs_of = |address: String| async move {
        let came = try_join_all(MODES.map(|(mode, ..)| run(&address, mode))).await;
        came.map(|came| (address, came))
    };
    let mut all = stream::iter(addresses).map(runs_of).buffered(2);
    while let Some((address, came)) = all.try_next().await? {
        for ((runs, asked), (_, mode, _)) in runs.iter_mut().zip(came).zip(MODES) {
            let turns: Vec<_> = asked.iter().map(Turn::of).collect();
            let fresh = providers
                .iter()
                .map(|provider| median(turns.iter().map(|turn| turn.fresh(provider)).collect()));
            let fresh: Vec<_> = fresh.collect();
            eprintln!("{address}, {mode}, {} turns: {fresh:?}", turns.len());
            runs.push(turns);
        }
    }
    let rows = MODES.iter().zip(&runs).flat_map(|((_, name, aim), runs)| {
        let of = |provider| compared(runs, provider, name, aim);
        providers.iter().flat_map(of).collect::<Vec<_>>()
    });
    Ok(rows.collect())
}

fn compared(runs: &[Vec<Turn>], provider: &Provider, mode: &str, aim: &'static str) -> Vec<Row> {
    let turns = || runs.iter().flatten();
    let fresh = turns().map(|turn| turn.fresh(provider)).collect();
    let prefix = turns().map(|turn| turn.prefix).collect();
    let pictures = turns().filter(|turn| turn.picture.is_some()).count();
    let median_of = |of: &dyn Fn(&[Turn]) -> u64| median(runs.iter().map(|run| of(run)).collect());
    let told = format!(
        "{} fresh beside {} cached; {pictures} of {} turns with a picture",
        median(fresh),
        median(prefix),
        turns().count(),
    );
    let raw = |run: &[Turn]| cost::ours(run, provider).raw;
    let raw_theirs = |run: &[Turn]| cost::history(run, provider).raw;
    let billed = |run: &[Turn]| cost::ours(run, provider).billed;
    let theirs = |run: &[Turn]| cost::history(run, provider).billed;
    // The same turns once more and once more: what a run of three times the length would cost.
    let long = |of: &dyn Fn(&[Turn]) -> u64| median_of(&|run| of(&[run; 3].concat()));
    let told_of_runs = format!(
        "raw {} beside {}; billed {} beside {}; three times as long: raw {} beside {}, billed {} \
         beside {}; cheaper from turn {}",
        median_of(&raw),
        median_of(&raw_theirs),
        median_of(&billed),
        median_of(&theirs),
        long(&raw),
        long(&raw_theirs),
        long(&billed),
        long(&theirs),
        shown(cheaper_from(runs, provider)),
    );
    let name = provider.name;
    vec![
        row(
            format!("{mode}, {name}: a turn's input tokens, medians"),
            told,
            aim,
        ),
        row(
            format!("{mode}, {name}: a run of {TURNS} turns beside one with its history cached"),
            told_of_runs,
            "reported",
        ),
    ]
}

/// The first length of a run, up to three times as long as measured, from which on ours is cheaper
/// in the median.
fn cheaper_from(runs: &[Vec<Turn>], provider: &Provider) -> Option<usize> {
    let runs: Vec<_> = runs.iter().map(|run| [&run[..]; 3].concat()).collect();
    let longest = runs.iter().map(Vec::len).max()?;
    let is_dearer = |length: usize| {
        let ours = |run: &Vec<Turn>| cost::ours(&run[..length.min(run.len())], provider).billed;
        let theirs =
            |run: &Vec<Turn>| cost::history(&run[..length.min(run.len())], provider).billed;
        median(runs.iter().map(ours).collect()) > median(runs.iter().map(theirs).collect())
    };
    let last_dearer = (1..=longest).rev().find(|length| is_dearer(*length));
    match last_dearer {
        None => Some(1),
        Some(length) if length == longest => None,
        Some(length) => Some(length + 1),
    }
}

fn shown(turn: Option<usize>) -> String {
    turn.map_or_else(|| "none".to_owned(), |turn| turn.to_string())
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

/// Returns what the model was asked in one run.
async fn run(address: &str, mode: PerceptionMode) -> anyhow::Result<Vec<Asked>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace)?;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let browser = Browser::new(Launch::default(), ProfileChoice::Ephemeral, look::run());
    let kernel = kernel(
        &folder.path().join("home"),
        Arc::new(browser),
        asked.clone(),
    )?;
    let ready = kernel.create(new_run(address, mode, workspace)?)?;
    // A run that is stuck parks; what it asked until then counts.
    let driven = tokio::time::timeout(TIMEOUT, ready.drive()).await;
    if let Ok(driven) = driven {
        driven?;
    }
    let asked = std::mem::take(&mut *asked.lock());
    Ok(asked)
}

fn kernel(
    home: &Path,
    browser: Arc<Browser>,
    asked: Arc<Mutex<Vec<Asked>>>,
) -> anyhow::Result<Kernel> {
    let mut organs = Organs::new(
        Arc::new(SingleModel(Arc::new(Player::new(asked)))),
        tools(&browser),
        Arc::new(world::Open { asks: false }),
        Arc::new(Redactor::new([7; 32], Vec::new())),
        gyrus_loops::factory(),
    );
    organs.screen = Some(browser);
    Ok(Kernel::new(Store::open(home)?, organs))
}

fn new_run(address: &str, mode: PerceptionMode, workspace: PathBuf) -> anyhow::Result<NewRun> {
    let config = CognitiveConfig {
        perception: mode,
        ..CognitiveConfig::reactive().with_start_url(address)
    };
    Ok(NewRun {
        goal: Text::new(GOAL, Origin::Person),
        cognitive_loop: config.strategy.loop_name().to_owned(),
        loop_config: serde_json::to_value(&config)?,
        on_ask: OnAsk::Deny,
        limits: Limits {
            steps: Some(TURNS),
            ..Limits::default()
        },
        ..world::new_run(&workspace)?
    })
}
