//! The tool `read_journal`: how earlier runs in the same folder went. It reads their journals; what
//! is found was redacted when it was written, and is data like every other result.

use std::{
    fmt::Write as _,
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus::runtime::Home;
use gyrus_contract::{
    BuiltIn, ReadJournalCall, Repeat, ResolvedCall, RunId, Site, Tool, ToolOutput, Touch, TypedTool,
};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{Ending, Entry, RUNS, Stop, is_record, log_name, summary};
use gyrus_loops::{LESSON, REFLECTION, WENT_RIGHT};
use gyrus_search::{Index, IndexDocument, IndexField, QueryWords, SourceStamp};
use gyrus_text::{counted, shorten};

use crate::{failure::Failure, time::now_ms};

/// Maximum number of runs that are described.
const SHOWN: usize = 5;

/// Maximum length of a goal, an outcome or a lesson, in characters.
const CHARACTERS: usize = 1_500;

/// Notes that runs write for later ones: the kind of the note, its field, and a word for the field.
const LEARNED: [(&str, &str, &str); 5] = [
    (LESSON, "worked", "what worked"),
    (LESSON, "did_not", "what did not"),
    (WENT_RIGHT, "text", "what went right"),
    (REFLECTION, "worked", "what worked"),
    (REFLECTION, "did_not", "what did not"),
];

pub(crate) struct ReadJournal {
    store: Store,
    /// The folder of the index over the journals, which can be deleted at any time.
    index: PathBuf,
}

impl ReadJournal {
    pub(crate) fn tool(home: &Home, store: &Store) -> Arc<dyn Tool> {
        let index = home.state.join("search").join("runs");
        let store = store.clone();
        Arc::new(BuiltIn::new(Self { store, index }))
    }
}

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
        let (store, index) = (self.store.clone(), self.index.clone());
        let workspace = site.workspace().to_owned();
        let told = tokio::task::spawn_blocking(move || tell(&store, &index, &workspace, &query));
        Ok(match told.await {
            Ok(Ok(text)) => ToolOutput::read(text),
            Ok(Err(failure)) => ToolOutput::error(failure.message),
            Err(error) => ToolOutput::error(format!("the journals were not read: {error}")),
        })
    }
}

fn tell(store: &Store, index: &Path, workspace: &Path, query: &str) -> Result<String, Failure> {
    let broken = |error: std::io::Error| {
        Failure::failed(format!("the index of runs in {}", index.display())).because(&error)
    };
    let mut runs = Index::open(index)?;
    let listed = listed(store)?;
    runs.refresh(&listed, |id| {
        // A journal that cannot be read tells nothing, and the others are still read.
        let run = of(store, id.parse().ok()?).ok().flatten()?;
        let place = listed.binary_search_by(|(known, _)| known.as_str().cmp(id));
        Some((run.document(), listed[place.ok()?].1))
    })
    .map_err(broken)?;
    let folder = workspace.to_string_lossy();
    let ended: Vec<String> = {
        let ended = runs.linking_to(&folder).map_err(broken)?;
        ended.into_iter().map(str::to_owned).collect()
    };
    let best = if QueryWords::new(query).is_empty() {
        ended.iter().rev().take(SHOWN).cloned().collect()
    } else {
        let found = runs.search_linking_to(&folder, query, SHOWN, now_ms());
        let found = found.map_err(broken)?.into_iter();
        found.map(|hit| hit.path).collect::<Vec<_>>()
    };
    let mut text = String::new();
    for id in &best {
        let run = id
            .parse()
            .ok()
            .and_then(|run| of(store, run).ok().flatten());
        if let Some(run) = run {
            let _ = writeln!(text, "{}", run.text);
        }
    }
    let _ = match (ended.len(), best.len()) {
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

/// Returns the runs that people started, each with a stamp of its journal's state, which changes
/// when a run begins, is resumed, or is sealed.
fn listed(store: &Store) -> Result<Vec<(String, SourceStamp)>, Failure> {
    let entries = match fs::read_dir(store.root().join(RUNS)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        let is_root = id.parse::<RunId>().is_ok_and(RunId::is_root);
        // It may have been removed meanwhile.
        let Some(folder) = entry.metadata().ok().filter(|_| is_root) else {
            continue;
        };
        let stamp = SourceStamp {
            size: folder.len(),
            inode: folder.ino(),
            modified: nanoseconds(folder.mtime(), folder.mtime_nsec()),
            changed: nanoseconds(folder.ctime(), folder.ctime_nsec()),
        };
        listed.push((id, stamp));
    }
    listed.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(listed)
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

struct PastRun {
    workspace: PathBuf,
    goal: String,
    text: String,
}

impl PastRun {
    fn document(&self) -> IndexDocument {
        let mut document = IndexDocument::default();
        document.add(IndexField::Title, &self.goal);
        document.add(IndexField::Body, &self.text);
        document.link(&self.workspace.to_string_lossy());
        document
    }
}

/// Summarises the goal and outcome of a run, if it is over.
fn of(store: &Store, run: RunId) -> Result<Option<PastRun>, Failure> {
    if is_record(store, run) {
        // The folder that it names is none of this machine.
        return Ok(None);
    }
    let reader = store.reader(&log_name(run))?;
    let mut back = reader.entries_back()?;
    let last = back.next().transpose()?;
    let Some(Ok(Entry::RunEnded(ended))) = last.map(|last| gyrus_kernel::parse(&last)) else {
        return Ok(None);
    };
    let Some(Ok(Entry::RunStarted(started))) =
        reader.entry(1)?.map(|first| gyrus_kernel::parse(&first))
    else {
        return Ok(None);
    };
    let goal = started
        .goal
        .read(|id| reader.blob(id).map_err(Stop::from))
        .map_or_else(|_| "(gone)".to_owned(), |goal| goal.text);
    let goal = shorten(&goal, CHARACTERS).into_owned();
    let mut text = format!("run {} ({})\n", run.short(), started.cognitive_loop);
    let _ = writeln!(text, "goal: {goal}");
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
    Ok(Some(PastRun {
        workspace: started.workspace,
        goal,
        text,
    }))
}

fn outcome(ending: &Ending) -> String {
    let how = summary(ending);
    match ending {
        Ending::Reached { claim, .. } => format!("{how}: {}", claim.answer),
        _ => how,
    }
}

/// The last words of this kind.
fn noted(reader: &LogReader, kind: &str, field: &str) -> Result<Option<String>, Failure> {
    let note = reader.last(kind)?;
    Ok(match note.map(|note| gyrus_kernel::parse(&note)) {
        Some(Ok(Entry::Noted { fact, .. })) => {
            let words = fact.fact[field].as_str();
            words.filter(|words| !words.is_empty()).map(str::to_owned)
        }
        _ => None,
    })
}
