//! `gyrus teach`

use std::sync::Arc;

use clap::Args;
use gyrus::runtime::{self, Home, RunScreen};
use gyrus_contract::{Arguments as _, OpenUrlCall, ToolCall};
use gyrus_loops::Check;
use gyrus_procedures::{LearnedPlace, NotLearned, RecordedRun, learn};
use gyrus_runtime::procedures::{KeptProcedure, ProcedureSource};
use gyrus_screen::{Browser, GivenBack, Launch, has_display};
use gyrus_surfaces::{console::put, terminal};
use gyrus_text::{one_line, visible};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::take::OpenerPage;
use crate::{
    Gyrus, browser, drive,
    exit::Code,
    failure::Failure,
    inside_run,
    new_run::address,
    procedures::{self, ProcedureUpdate, TeachingParts, TeachingSession},
};

/// Show a task once in the browser, so that it can be done again without a model
///
/// Opens a page that shows a browser and takes your mouse and keyboard. Do there what the command
/// says, with the values that stand in it, and give the screen back. Nothing is kept of fields that
/// hold secrets: where a page needs a login, log in first with `gyrus browser login`.
#[derive(Args)]
pub(crate) struct Teach {
    /// The command that says the same, like "Order 2 brass lamps for Ada"
    command: String,
    /// The page to begin on
    #[arg(long, value_name = "URL")]
    url: String,
    /// The browser profile, with its logins (default: one that is gone afterwards)
    #[arg(long, value_name = "NAME", value_parser = crate::browser::profile_name)]
    profile: Option<String>,
    /// Check that must hold after every replay, as in `gyrus run`
    #[arg(long, value_name = "CHECK")]
    check: Vec<Check>,
}

/// A recorded run, or the reason why there is none.
type RecordedResult = Result<RecordedRun, NotLearned>;

impl Teach {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("teach")?;
        gyrus_screen::sweep_temporary_folders();
        let home = gyrus.home()?;
        let store = home.store()?;
        if self.command.trim().is_empty() {
            return Err(Failure::usage("the command is empty").hint("say what you will do"));
        }
        let runtime = drive::runtime()?;
        let start = address(&self.url)?;
        let shown = runtime.block_on(self.watch_page(&home, &start));
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
        tell(&home, &added)?;
        if terminal::can_ask() {
            procedures::ask(&store, &added, &by)?;
        }
        Ok(Code::Reached)
    }

    async fn watch_page(&self, home: &Home, start: &str) -> Result<RecordedResult, Failure> {
        let Some(origin) = procedures::origin(start) else {
            return Err(Failure::usage(format!("`{start}` is of no site")));
        };
        let opened = browser::browser(home, Launch::default(), self.profile.clone());
        let opened = Arc::new(opened);
        opened.open(start).await.map_err(failed)?;
        let place = LearnedPlace::Site {
            origin,
            start: start.to_owned(),
        };
        let parts = TeachingParts {
            screen: RunScreen::Browser(opened.clone()),
            gate: runtime::bare_gate(home),
            redactor: home.redactor(Vec::new())?,
        };
        let teaching = Arc::new(TeachingSession::new(parts, place));
        teaching.opened(ToolCall::new(OpenUrlCall::TOOL, json!({ "url": start })));
        teaching.look_first().await;
        self.hand_over(home, &opened, &teaching).await?;
        let checks = self.check.iter().map(ToString::to_string).collect();
        Ok(teaching.recorded(&self.command, checks))
    }

    /// Hands the browser to the person until they give it back, and ends it.
    async fn hand_over(
        &self,
        home: &Home,
        browser: &Browser,
        teaching: &Arc<TeachingSession>,
    ) -> Result<(), Failure> {
        let reason = format!(
            "Do this, then give the screen back: {}",
            visible(&self.command)
        );
        let mut page = Ok(None);
        let taken = browser.take_over(Some(&reason), Some(teaching.clone()), |address| {
            page = OpenerPage::open(home, address, has_display()).map(Some);
        });
        let mut terminate = signal(SignalKind::terminate())?;
        let given = tokio::select! {
            given = taken => given.map_err(failed),
            _ = tokio::signal::ctrl_c() => Err(ended()),
            _ = terminate.recv() => Err(ended()),
        };
        browser.leave().await;
        let GivenBack { .. } = given?;
        page.map(drop)
    }
}

fn tell(home: &Home, added: &ProcedureUpdate) -> Result<(), Failure> {
    let name = &added.name;
    let kept = procedures::kept(&home.store()?)?;
    let version = kept.get(name).and_then(KeptProcedure::latest);
    for line in version
        .iter()
        .flat_map(|it| procedures::lines(&it.procedure))
    {
        put(&format!("{}\n", visible(&one_line(&line))))?;
    }
    put(&format!(
        "learned as `{name}`; let it run without a model: gyrus procedures promote {name}\n\
         to make a skill of it: gyrus procedures export {name} --skill\n"
    ))?;
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

/// Returns the failure for a person who ended the command without giving the screen back.
fn ended() -> Failure {
    let failure = Failure::failed(
        "nothing was learned: the command was ended before the screen was given back",
    );
    Failure {
        code: Code::Interrupted,
        ..failure
    }
}

fn not_learned(why: &NotLearned) -> Failure {
    Failure::failed(format!("nothing was learned: {why}"))
        .hint("show the work again; the command must contain the values that you type")
}
