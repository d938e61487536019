//! `gyrus teach`

use std::sync::Arc;

use clap::Args;
use gyrus::runtime::{self, Home};
use gyrus_loops::Check;
use gyrus_procedures::{LearnedPlace, NotLearned, RecordedRun, learn};
use gyrus_runtime::procedures::ProcedureSource;
use gyrus_screen::{Launch, has_display};
use gyrus_surfaces::{console::put, terminal};
use gyrus_text::visible;

use super::take::Page;
use crate::{
    Gyrus, browser, drive,
    exit::Code,
    failure::Failure,
    inside_run,
    new_run::address,
    procedures::{self, Teaching, TeachingParts},
};

/// Show a task once in the browser, so that it can be done again without a model
///
/// Opens a page that shows a browser and takes your mouse and keyboard. Do there what the command
/// says, with the values that stand in it, and give the browser back. Nothing is kept of fields that
/// hold secrets: where a login is needed, log in first with `gyrus browser login`.
#[derive(Args)]
pub(crate) struct Teach {
    /// The command that says the same, like "Order 2 brass lamps for Ada"
    command: String,
    /// The page to begin on
    #[arg(long, value_name = "URL")]
    url: String,
    /// The browser profile, with its logins (default: one that is gone afterwards)
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Check that must hold after every replay, as in `gyrus run`
    #[arg(long, value_name = "CHECK")]
    check: Vec<Check>,
}

impl Teach {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("teach")?;
        let home = gyrus.home()?;
        let store = home.store()?;
        let start = address(&self.url)?;
        if self.command.trim().is_empty() {
            return Err(Failure::usage("the command is empty").hint("say what you will do"));
        }
        let runtime = drive::runtime()?;
        let shown = runtime.block_on(self.watch(&home, &start));
        let learned = shown.map(|shown| shown.and_then(|run| learn(&run)));
        // The page has its last answer by now.
        runtime.shutdown_background();
        let procedure = learned?.map_err(|why| not_learned(&why))?;
        let by = terminal::person(gyrus.environment.user.as_deref(), "command line");
        let source = ProcedureSource::Taught { by: by.clone() };
        let added = match procedures::keep(&store, procedure, source, None)? {
            Ok(added) => added,
            Err(why) => return Err(not_learned(&why)),
        };
        put(&format!(
            "learned as `{0}`; see what it does, and let it run: gyrus procedures promote {0}\n",
            added.name
        ))?;
        if terminal::can_ask() {
            procedures::ask(&store, &added, &by)?;
        }
        Ok(Code::Reached)
    }

    /// Has the person do it.
    async fn watch(
        &self,
        home: &Home,
        start: &str,
    ) -> Result<Result<RecordedRun, NotLearned>, Failure> {
        let Some(origin) = procedures::origin(start) else {
            return Err(Failure::usage(format!("`{start}` is of no site")));
        };
        let opened = browser::browser(home, Launch::default(), self.profile.clone());
        let opened = Arc::new(opened);
        opened.open(start).await.map_err(failed)?;
        let parts = TeachingParts {
            tools: gyrus_screen::tools(&opened),
            gate: runtime::bare_gate(home),
            redactor: home.redactor(Vec::new())?,
            browser: opened.clone(),
        };
        let teaching = Arc::new(Teaching::begin(parts, start).await);
        let reason = format!(
            "Do this, then give the browser back: {}",
            visible(&self.command)
        );
        let mut page = Ok(None);
        let given = opened
            .take_over_watched(Some(&reason), teaching.clone(), |address| {
                page = Page::open(home, address, has_display()).map(Some);
            })
            .await;
        opened.leave().await;
        given.map_err(failed)?;
        page?;
        let place = LearnedPlace::Site {
            origin,
            start: start.to_owned(),
        };
        let checks = self.check.iter().map(ToString::to_string).collect();
        Ok(teaching.recorded(&self.command, place, checks))
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

fn not_learned(why: &NotLearned) -> Failure {
    Failure::failed(format!("nothing was learned: {why}"))
        .hint("show it again; the values that you type must stand in the command")
}
