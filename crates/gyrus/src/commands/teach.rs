//! `gyrus teach`

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use gyrus::runtime::{self, Home, RunScreen};
use gyrus_contract::{Arguments as _, OpenUrlCall, ToolCall};
use gyrus_loops::Check;
use gyrus_procedures::{LearnedPlace, NotLearned, RecordedRun, learn};
use gyrus_runtime::procedures::{KeptProcedure, ProcedureSource};
use gyrus_screen::{GivenBack, Launch, has_display};
use gyrus_surfaces::{console::put, terminal};
use gyrus_text::{one_line, visible};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{look::DesktopWord, take::OpenerPage};
use crate::{
    Gyrus, browser, drive,
    exit::Code,
    failure::Failure,
    inside_run,
    new_run::address,
    procedures::{self, ProcedureUpdate, TeachingParts, TeachingSession},
};

/// Show a task once, in the browser or on a desktop, so that it can be done again without a model
///
/// Opens a page that shows a browser or a desktop and takes your mouse and keyboard. Do there what the
/// command says, with the values that stand in it, and give the screen back. Nothing is kept of
/// fields that hold secrets: where a page needs a login, log in first with `gyrus browser login`.
#[derive(Args)]
pub(crate) struct Teach {
    /// The command that says the same, like "Order 2 brass lamps for Ada"
    command: String,
    /// The page to begin on
    #[arg(long, value_name = "URL", required_unless_present = "screen")]
    url: Option<String>,
    /// The browser profile, with its logins (default: one that is gone afterwards)
    #[arg(long, value_name = "NAME", value_parser = crate::browser::profile_name)]
    profile: Option<String>,
    /// Show it on a desktop that nobody else sees, with a program in the folder
    #[arg(long, value_name = "SCREEN", conflicts_with_all = ["url", "profile"], requires = "program")]
    screen: Option<DesktopWord>,
    /// With --screen x11: the folder (default: this one)
    #[arg(long, value_name = "FOLDER", requires = "screen")]
    workdir: Option<PathBuf>,
    /// Check that must hold after every replay, as in `gyrus run`
    #[arg(long, value_name = "CHECK")]
    check: Vec<Check>,
    /// With --screen x11: the program, with a file of the folder if it is to open one
    #[arg(last = true, value_name = "PROGRAM", num_args = 1..=2, requires = "screen")]
    program: Vec<String>,
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
        let shown = match (&self.screen, &self.url) {
            (Some(DesktopWord::X11), _) => runtime.block_on(desktop::watch(&self, &home)),
            (None, Some(url)) => {
                let start = address(url)?;
                runtime.block_on(self.watch_page(&home, &start))
            }
            (None, None) => Err(Failure::usage("there is nothing to show it on")),
        };
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
        let teaching = teaching(home, RunScreen::Browser(opened.clone()), place)?;
        teaching.opened(ToolCall::new(OpenUrlCall::TOOL, json!({ "url": start })));
        teaching.look_first().await;
        let given = self
            .hand_over(home, RunScreen::Browser(opened), &teaching)
            .await;
        given.map(|()| self.recorded(&teaching))
    }

    /// Hands the screen to the person until they give it back, and ends it.
    async fn hand_over(
        &self,
        home: &Home,
        screen: RunScreen,
        teaching: &Arc<TeachingSession>,
    ) -> Result<(), Failure> {
        let reason = format!(
            "Do this, then give the screen back: {}",
            visible(&self.command)
        );
        let mut page = Ok(None);
        let taken = screen.take_over(Some(&reason), Some(teaching.clone()), |address| {
            page = OpenerPage::open(home, address, has_display()).map(Some);
        });
        let mut terminate = signal(SignalKind::terminate())?;
        let given = tokio::select! {
            given = taken => given.map_err(failed),
            _ = tokio::signal::ctrl_c() => Err(ended()),
            _ = terminate.recv() => Err(ended()),
        };
        screen.leave().await;
        let GivenBack { .. } = given?;
        page.map(drop)
    }

    fn recorded(&self, teaching: &TeachingSession) -> RecordedResult {
        let checks = self.check.iter().map(ToString::to_string).collect();
        teaching.recorded(&self.command, checks)
    }
}

fn teaching(
    home: &Home,
    screen: RunScreen,
    place: LearnedPlace,
) -> Result<Arc<TeachingSession>, Failure> {
    let parts = TeachingParts {
        screen,
        gate: runtime::bare_gate(home),
        redactor: home.redactor(Vec::new())?,
    };
    Ok(Arc::new(TeachingSession::new(parts, place)))
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

#[cfg(not(feature = "desktop"))]
mod desktop {
    use super::{Failure, Home, RecordedResult, Teach};

    /// Returns the failure with the advice how to get a gyrus with desktops.
    pub(super) async fn watch(_: &Teach, _: &Home) -> Result<RecordedResult, Failure> {
        Err(crate::screen::without_desktops())
    }
}

#[cfg(feature = "desktop")]
mod desktop {
    use std::path::Path;

    use gyrus::runtime::Confinement;
    use gyrus_contract::OpenApplicationCall;

    use super::*;
    use crate::{
        new_run::workspace,
        screen::{DesktopKind, DesktopOptions},
    };

    pub(super) async fn watch(teach: &Teach, home: &Home) -> Result<RecordedResult, Failure> {
        let (program, file) = match &teach.program[..] {
            [program] => (program, None),
            [program, file] => (program, Some(file)),
            _ => return Err(Failure::usage("a program and at most one file are named")),
        };
        let workspace = workspace(home, teach.workdir.as_deref())?;
        let path = file.map(|file| file_of(&workspace, file)).transpose()?;
        let options = DesktopOptions {
            desktop: DesktopKind::X11,
            display: None,
        };
        options.check()?;
        let screen = options.screen(home, &workspace, Confinement::Sandboxed)?;
        let RunScreen::Desktop(desktop) = &screen else {
            return Err(Failure::failed("a desktop is needed"));
        };
        let place = LearnedPlace::Desktop {
            workspace: workspace.to_string_lossy().into_owned(),
        };
        let teaching = teaching(home, screen.clone(), place)?;
        teaching.look_first().await;
        let mut call = json!({ "application": program });
        if let Some(file) = file {
            call["file"] = json!(file);
        }
        teaching.opened(ToolCall::new(OpenApplicationCall::TOOL, call));
        let started = desktop.start_application(program, path.as_deref()).await;
        if let Err(why) = started {
            screen.leave().await;
            return Err(failed(why));
        }
        teaching.look_first().await;
        let given = teach.hand_over(home, screen, &teaching).await;
        given.map(|()| teach.recorded(&teaching))
    }

    fn file_of(workspace: &Path, file: &str) -> Result<PathBuf, Failure> {
        let path = workspace.join(file).canonicalize().map_err(|error| {
            Failure::usage(format!("there is no file `{file}`")).because(&error)
        })?;
        if !path.is_file() || !path.starts_with(workspace) {
            let failure = Failure::usage(format!("`{file}` is not a file of the folder"));
            return Err(failure.hint(format!("name one that lies in {}", workspace.display())));
        }
        Ok(path)
    }
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
