//! `gyrus take`, and what it shares with `gyrus browser login`

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use clap::Args;
use gyrus::runtime::Home;
use gyrus_contract::{Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{StandingRun, check_not_record, log_name};
use gyrus_process::Programs;
use gyrus_screen::has_display;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

use super::run_argument::RunArgument;
use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    inside_run, new_run,
    takeover::{self, VisitorMessage, VisitorRequest},
};
use gyrus_surfaces::{console::put, output, terminal};

/// Time in which a run without an effect in progress answers.
const SOON: Duration = Duration::from_secs(1);

/// Take a run's screen over: log in, solve a captcha, do a step yourself
///
/// Opens a page that shows the run's browser or desktop and takes your mouse and keyboard. The run does
/// nothing until you give it back, there or by ending this command; nothing that you see or type
/// is kept.
#[derive(Args)]
pub(crate) struct TakeCommand {
    #[command(flatten)]
    run: RunArgument,
    /// Only print the page's address, for this person at a dashboard
    #[arg(long = "for", value_name = "PERSON", hide = true)]
    at_dashboard: Option<String>,
}

impl TakeCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("take a screen over")?;
        let (home, store) = (gyrus.home()?, gyrus.store()?);
        let run = if self.run.is_given() {
            root(&store, self.run.find(gyrus, &store)?)?
        } else {
            new_run::at_work_in(&store, &new_run::workspace(&home, None)?)?
        };
        let name = run.short();
        if store.holder(&log_name(run))?.is_none() {
            return Err(Failure::usage(format!("run {name} is not at work"))
                .hint(format!("let it go on first: gyrus resume {name}")));
        }
        let taking = match self.at_dashboard {
            Some(person) => TakeoverVisitor {
                by: terminal::person(Some(&person), "dashboard"),
                opens: false,
            },
            None => TakeoverVisitor {
                by: terminal::person(gyrus.environment.user.as_deref(), "page"),
                opens: has_display(),
            },
        };
        let taken = drive::wait_for(take(&home, run, taking))?;
        taken?;
        put(&format!("run {name} has its screen again\n"))?;
        Ok(Code::Reached)
    }
}

/// Returns the run that a person started, above `run`.
fn root(store: &Store, mut run: RunId) -> Result<RunId, Failure> {
    check_not_record(store, run)?;
    while let Some(parent) = StandingRun::read(store, run)?.started.parent {
        run = parent.run;
    }
    Ok(run)
}

/// A person who takes over a screen.
struct TakeoverVisitor {
    by: Principal,
    /// Whether the page is also opened here, rather than only printed.
    opens: bool,
}

async fn take(
    home: &Home,
    run: RunId,
    TakeoverVisitor { by, opens }: TakeoverVisitor,
) -> Result<(), Failure> {
    let name = run.short();
    let stream = takeover::knock(home, run).await.map_err(|error| {
        Failure::failed(format!("run {name} has no screen to take over"))
            .because(&error)
            .hint("a run has a screen if it was started with --screen or --url")
    })?;
    let (reader, mut writer) = stream.into_split();
    let text = serde_json::to_string(&VisitorRequest::TakeOver { by })
        .map_err(|error| Failure::failed("the request is not JSON").because(&error))?;
    writer.write_all(format!("{text}\n").as_bytes()).await?;
    let mut lines = BufReader::new(reader).lines();
    let mut page = None;
    loop {
        let next = match timeout(SOON, lines.next_line()).await {
            Ok(line) => line?,
            Err(_) if page.is_none() => {
                put("waiting until the run has finished what is in progress …\n")?;
                lines.next_line().await?
            }
            Err(_) => lines.next_line().await?,
        };
        let told = next.and_then(|line| serde_json::from_str(&line).ok());
        match told {
            Some(VisitorMessage::At(address)) => {
                page = Some(OpenerPage::open(home, &address, opens)?)
            }
            Some(VisitorMessage::GivenBack { .. }) => return Ok(()),
            Some(VisitorMessage::No { why }) => {
                return Err(Failure::failed(format!(
                    "the screen of run {name} is not yours: {why}"
                )));
            }
            Some(VisitorMessage::Picture { .. }) | None => {
                return Err(
                    Failure::failed(format!("the process of run {name} has gone"))
                        .hint(format!("to go on with it: gyrus resume {name}")),
                );
            }
        }
    }
}

/// A page that a person is asked to open; dropping it removes the file that leads there.
pub(super) struct OpenerPage {
    /// A file that leads to the page. A program's arguments can be read by everybody, and the
    /// address lets in.
    way: Option<PathBuf>,
}

impl Drop for OpenerPage {
    fn drop(&mut self) {
        if let Some(way) = &self.way {
            let _ = fs::remove_file(way);
        }
    }
}

impl OpenerPage {
    pub(super) fn open(home: &Home, address: &str, opens: bool) -> Result<Self, Failure> {
        writeln!(output::standard(), "{address}")?;
        put("open this page; the screen is yours until you give it back there, or end this\n")?;
        let way = if opens {
            way_to(home, address).ok()
        } else {
            None
        };
        if let Some(way) = &way {
            // Whoever has no opener opens it by hand.
            let programs = Programs::of_this_process();
            if let Ok(opener) = programs.find("xdg-open") {
                let _ = programs
                    .command(&opener.path)
                    .arg(way)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn();
            }
        }
        Ok(Self { way })
    }
}

/// Creates a file for this user alone that leads to an address.
fn way_to(home: &Home, address: &str) -> io::Result<PathBuf> {
    let folder = takeover::folder(home);
    fs::create_dir_all(&folder)?;
    let way = folder.join(format!("{}.html", gyrus_contract::time_ordered_uuid()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&way)?;
    writeln!(
        file,
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={address}\">"
    )?;
    Ok(way)
}
