//! The tool `read_journal`: how earlier runs in the same folder went. It reads their journals; what
//! is found was redacted when it was written, and is data like every other result.

use std::{fmt::Write as _, path::Path};

use gyrus_contract::{
    ReadJournalCall, Repeat, ResolvedCall, RunId, Site, ToolOutput, Touch, TypedTool,
};
use gyrus_journal::{Reader, Store};
use gyrus_kernel::{Ending, Entry, Stop, log_name, summary};
use gyrus_loops::{LESSON, REFLECTION, WENT_RIGHT};
use gyrus_text::{counted, shorten};
use gyrus_tools::Ranking;

use crate::failure::Failure;

/// Runs that are looked at, newest first, those in other folders included.
const MAX_RUNS: usize = 500;

/// Runs that are told of.
const SHOWN: usize = 5;

/// Maximum length of a goal, an outcome or a lesson, in characters.
const CHARACTERS: usize = 1_500;

/// Notes that runs write for later ones: the kind of the note, its field, and what that is.
const LEARNED: [(&str, &str, &str); 5] = [
    (LESSON, "worked", "what worked"),
    (LESSON, "did_not", "what did not"),
    (WENT_RIGHT, "text", "what went right"),
    (REFLECTION, "worked", "what worked"),
    (REFLECTION, "did_not", "what did not"),
];

/// Reads the journals of past runs.
pub(crate) struct ReadJournal(pub(crate) Store);

impl TypedTool for ReadJournal {
    type Arguments = ReadJournalCall;
    type Failure = ToolOutput;
    const REPEAT: Repeat = Repeat::Freely;

    fn description(&self) -> String {
        format!(
            "Tells of earlier runs in this folder: their goals, how they ended, and what was \
             learned in them. At most {SHOWN}, those most about the query first; without a \
             query the newest."
        )
    }

    fn touches(&self) -> Vec<Touch> {
        Vec::new()
    }

    async fn run(
        &self,
        arguments: ReadJournalCall,
        _: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolOutput> {
        let query = arguments.query.unwrap_or_default();
        let (store, workspace) = (self.0.clone(), site.workspace().to_owned());
        let told = tokio::task::spawn_blocking(move || tell(&store, &workspace, &query));
        Ok(match told.await {
            Ok(Ok(text)) => ToolOutput::read(text),
            Ok(Err(failure)) => ToolOutput::error(failure.message),
            Err(error) => ToolOutput::error(format!("the journals were not read: {error}")),
        })
    }
}

fn tell(store: &Store, workspace: &Path, query: &str) -> Result<String, Failure> {
    let runs = gyrus_kernel::runs(store)?;
    let roots = runs.iter().rev().filter(|run| run.is_root());
    // A journal that cannot be read tells nothing, and the others are still read.
    let told = roots
        .take(MAX_RUNS)
        .filter_map(|run| of(store, *run, workspace).ok().flatten());
    let told: Vec<String> = told.collect();
    let mut ranking = Ranking::new(query);
    let best = if ranking.asks_nothing() {
        (0..told.len()).collect()
    } else {
        told.iter().for_each(|run| ranking.add(run));
        ranking.best()
    };
    let mut text = String::new();
    for number in best.iter().take(SHOWN) {
        let _ = writeln!(text, "{}", told[*number]);
    }
    let _ = match (told.len(), best.len()) {
        (0, _) => writeln!(text, "(no run in this folder has ended before this one)"),
        (ended, 0) => writeln!(
            text,
            "({ended} in this folder ended, none about these words)",
            ended = counted(ended, "run")
        ),
        (ended, _) => writeln!(text, "[{} in this folder ended]", counted(ended, "run")),
    };
    Ok(text)
}

/// Summarises the goal and outcome of a run, if it was in this folder and is over.
fn of(store: &Store, run: RunId, workspace: &Path) -> Result<Option<String>, Failure> {
    let reader = store.reader(&log_name(run))?;
    let Some(Ok(Entry::RunStarted(started))) =
        reader.entry(1)?.map(|first| gyrus_kernel::parse(&first))
    else {
        return Ok(None);
    };
    if started.workspace != workspace {
        return Ok(None);
    }
    let mut back = reader.entries_back()?;
    let last = back.next().transpose()?;
    let Some(Ok(Entry::RunEnded(ended))) = last.map(|last| gyrus_kernel::parse(&last)) else {
        return Ok(None);
    };
    let goal = started
        .goal
        .read(|id| reader.blob(id).map_err(Stop::from))
        .map_or_else(|_| "(gone)".to_owned(), |goal| goal.text);
    let mut text = format!("run {} ({})\n", run.short(), started.cognitive_loop);
    let _ = writeln!(text, "goal: {}", shorten(&goal, CHARACTERS));
    let _ = writeln!(
        text,
        "outcome: {}",
        shorten(&outcome(&ended.ending), CHARACTERS)
    );
    for (kind, field, what) in LEARNED {
        if let Some(words) = noted(&reader, kind, field)? {
            let _ = writeln!(text, "{what}: {}", shorten(&words, CHARACTERS));
        }
    }
    Ok(Some(text))
}

fn outcome(ending: &Ending) -> String {
    let how = summary(ending);
    match ending {
        Ending::Reached { claim, .. } => format!("{how}: {}", claim.answer),
        _ => how,
    }
}

/// The last words of this kind.
fn noted(reader: &Reader, kind: &str, field: &str) -> Result<Option<String>, Failure> {
    let note = reader.last(kind)?;
    Ok(match note.map(|note| gyrus_kernel::parse(&note)) {
        Some(Ok(Entry::Noted { fact, .. })) => {
            let words = fact.fact[field].as_str();
            words.filter(|words| !words.is_empty()).map(str::to_owned)
        }
        _ => None,
    })
}
