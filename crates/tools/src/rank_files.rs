//! The tool `rank_files`: ranks the files of a project to read before working on a goal.
//!
//! Guidelines come first, because they apply to every goal. The content of the files is not
//! returned: reading one is a call of its own, which the gate judges.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_contract::{
    RankFilesCall, RankedFile, RankedFiles, Repeat, ResolvedCall, Site, ToolOutput, Touch,
    TypedTool, WhyRanked,
};

use gyrus_search::Ranking;

use crate::{
    background::{self, Deadline},
    documents::Documents,
    failure::ToolFailure,
    place::AccessPlace,
};

/// Maximum number of files that are listed.
const MAX_LISTED: usize = 200;

/// Default size of the chosen files, in tokens.
const DEFAULT_TOKENS: u64 = 20_000;

/// Estimated bytes of a token. Tokenisers differ; four is the usual estimate.
const BYTES_A_TOKEN: u64 = 4;

/// Weight of the words in a path relative to those in the content: a file is named for its subject.
const WORTH_OF_PATH: usize = 4;

/// Name of the file with a project's guidelines for agents, in any folder.
const GUIDELINE: &str = "AGENTS.md";

/// Name of a folder whose documents are guidelines.
const GUIDELINES: &str = "blueprints";

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Ranks files for a goal.
pub struct RankFiles;

impl TypedTool for RankFiles {
    type Arguments = RankFilesCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn description(&self) -> String {
        format!(
            "Lists the text files of a folder that are most about a goal, by its words, \
             guidelines (`{GUIDELINE}`, `{GUIDELINES}/`) first, as JSON with their sizes. \
             `chosen` are those that fit together into `max_tokens`."
        )
    }

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Reads("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: RankFilesCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let RankFilesCall {
            query, max_tokens, ..
        } = arguments;
        let ranking = Ranking::new(&query);
        if ranking.asks_nothing() {
            let words =
                "`query` has no word in it; give the goal, or words that the files would have";
            return Err(ToolFailure::new(words));
        }
        let place = AccessPlace::of(call, site.workspace())?;
        let documents = Documents::below(&place)?;
        let Some(start) = place.in_workspace().map(Path::to_owned) else {
            let words = format!("`{}` is outside the workspace", place.given());
            return Err(ToolFailure::new(words));
        };
        let most = max_tokens.unwrap_or(DEFAULT_TOKENS);
        let answer = background::work(TIME_LIMIT, move |deadline| {
            Candidates::of(ranking, documents, &start, deadline).within(most)
        });
        let ranked = answer.await;
        Ok(ToolOutput::read(serde_json::to_string(&ranked)?).with_value(&ranked))
    }
}

struct Candidates {
    ranking: Ranking,
    files: Vec<(PathBuf, u64)>,
    considered: usize,
}

impl Candidates {
    fn of(
        mut ranking: Ranking,
        mut documents: Documents,
        start: &Path,
        deadline: &Deadline,
    ) -> Self {
        let mut files = Vec::new();
        while let Some(document) = documents.next(deadline) {
            let path = start.join(&document.path);
            let mut text = format!("{} ", path.display()).repeat(WORTH_OF_PATH);
            text.push_str(&document.text);
            ranking.add(&text);
            files.push((path, document.text.len() as u64));
        }
        Self {
            ranking,
            files,
            considered: documents.found(),
        }
    }

    /// Orders the files: guidelines first, then the best, as long as they fit; then those that do
    /// not.
    fn within(&self, most: u64) -> RankedFiles {
        let best = self.ranking.best();
        let always = (0..self.files.len()).filter(|number| {
            let path = &self.files[*number].0;
            path.file_name().is_some_and(|name| name == GUIDELINE)
        });
        let mut always: Vec<_> = always.collect();
        // Those that hold for more of the project first.
        always.sort_by_key(|number| self.files[*number].0.components().count());
        let ranked = best.into_iter().filter(|number| !always.contains(number));
        let in_order = always.iter().copied().chain(ranked);
        let mut left = most;
        let files = in_order.filter_map(|number| {
            let (path, bytes) = &self.files[number];
            let is_guideline = always.contains(&number)
                || path
                    .parent()
                    .is_some_and(|above| above.iter().any(|folder| folder == GUIDELINES));
            Some(RankedFile {
                // Another name could not be said in arguments.
                path: path.to_str()?.to_owned(),
                bytes: *bytes,
                tokens: bytes.div_ceil(BYTES_A_TOKEN),
                why: if is_guideline {
                    WhyRanked::Guideline
                } else {
                    WhyRanked::AboutTheGoal
                },
                chosen: false,
            })
        });
        let mut files: Vec<_> = files.collect();
        // The order of equals is kept.
        files.sort_by_key(|file| file.why);
        for file in &mut files {
            if file.tokens <= left {
                left -= file.tokens;
                file.chosen = true;
            }
        }
        files.sort_by_key(|file| !file.chosen);
        files.truncate(MAX_LISTED);
        RankedFiles {
            files,
            considered: self.considered,
        }
    }
}
