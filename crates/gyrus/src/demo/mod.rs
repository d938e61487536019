//! `gyrus demo`: a task, a crash in the middle of it, and everything that holds after it.
//!
//! The demo is a person at a second terminal: it starts gyrus as a process, watches it through
//! its journal, kills it, resumes it, and then looks for itself: at the process table, at the
//! shop's own ledger, at the journal. Nothing is asserted that was not looked at.

mod actor;
mod browser;
mod folder;
mod ground;
mod person;
mod report;
mod shop;

use self::{ground::Ground, report::Report};
use crate::{
    Gyrus, drive, exit::Code, failure::Failure, home::Home, namespaces, sandbox, show::paint::Paint,
};

/// How it is wanted.
pub(crate) struct Wanted {
    /// One line of JSON a finding, and no questions.
    pub(crate) json: bool,
    /// Leave the folder behind.
    pub(crate) keep: bool,
    /// Install the browser if there is none, without asking.
    pub(crate) install: bool,
    /// What to order.
    pub(crate) item: Option<String>,
}

/// Plays it. The exit code says whether everything held.
pub(crate) fn play(gyrus: &Gyrus, wanted: &Wanted) -> Result<Code, Failure> {
    let item = wanted.item.as_deref().map(shop::on_sale).transpose()?;
    let mut report = Report::new(wanted.json, gyrus.environment.plain);
    report.say(
        Paint::Strong,
        "Scripted: the model's replies, nothing else. Real: what comes of them, the gate, the \
         crash, the resume, the checks.",
    )?;
    // Questions come before the runtime, which would keep Ctrl-C from whoever is asked.
    let has_browser = browser::installed(&report, wanted)?;
    let item = match item {
        None if has_browser && !wanted.json => shop::ask()?,
        named => named.unwrap_or_else(shop::default_item),
    };
    let ground = Ground::make()?;
    let home = ground.gyrus_home(&gyrus.environment)?;
    let contained = contains(&home, &mut report)?;
    let runtime = drive::runtime()?;
    let stage = Stage {
        store: home.store()?,
        home,
        ground,
        seen: !wanted.json,
    };
    let played = runtime.block_on(async {
        let play = async {
            match has_browser && browser::works(&stage.home, &report).await? {
                true => shop::play(&stage, &mut report, item).await,
                false => folder::play(&stage, &mut report).await,
            }
        };
        tokio::select! {
            played = play => played.map(Some),
            // Dropping the play kills what it started.
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    runtime.shutdown_background();
    match played? {
        Some(next) => stage.farewell(&report, &next, wanted.keep, contained),
        None => Ok(Code::Interrupted),
    }
}

/// Whether commands are contained here; in words why not. Says what does not hold of what there is.
fn contains(home: &Home, report: &mut Report) -> Result<Result<(), String>, Failure> {
    let proof = match sandbox::proof(home) {
        Ok(proof) => proof,
        Err(why) => return Ok(Err(why)),
    };
    let contained = sandbox::suffices(&proof);
    let missing = namespaces::shortcomings(&proof);
    if contained.is_ok() && !missing.is_empty() {
        let detail = format!(
            "commands are contained, but for this: {}; `gyrus doctor` says what helps",
            missing.join("; ")
        );
        report.found("commands_are_contained", true, &detail)?;
    }
    Ok(contained)
}

/// Where it happens.
struct Stage {
    ground: Ground,
    home: Home,
    store: gyrus_journal::Store,
    /// The console of the runs is shown.
    seen: bool,
}

/// What a person can type next.
struct Next {
    /// Where the folder stays; `GYRUS_HOME` is set.
    here: Vec<String>,
    /// In any case.
    own: Vec<String>,
}

impl Stage {
    /// Says how it went and what to try next.
    fn farewell(
        self,
        report: &Report,
        next: &Next,
        keep: bool,
        contained: Result<(), String>,
    ) -> Result<Code, Failure> {
        let code = report.code();
        let everything = match (code, contained) {
            (Code::Reached, _) => "Everything held.".to_owned(),
            (_, Ok(())) => {
                "Not everything held. That is a fault of gyrus: please report it.".to_owned()
            }
            (_, Err(why)) => format!(
                "Not everything held: nothing contains commands here, so each is asked about, and \
                 the demo has nobody to ask ({why}). `gyrus doctor` says what helps."
            ),
        };
        report.part(&everything)?;
        for line in &next.own {
            report.say(Paint::Plain, line)?;
        }
        if keep {
            let home = self.ground.home.display().to_string();
            let folder = self.ground.keep();
            report.say(
                Paint::Plain,
                &format!(
                    "\nThe folder stays: {}. In it:\n  export GYRUS_HOME={home}",
                    folder.display()
                ),
            )?;
            for line in &next.here {
                report.say(Paint::Plain, &format!("  {line}"))?;
            }
        } else {
            let gone = "\nThe folder of all this is gone. To look around in it: gyrus demo --keep";
            report.say(Paint::Aside, gone)?;
        }
        Ok(code)
    }
}
