//! `gyrus procedures`

use std::{fs, io::Write as _};

use clap::{Args, Subcommand};
use gyrus_contract::{Origin, Text};
use gyrus_kernel::log_name;
use gyrus_procedures::{Procedure, SlotValues, learn};
use gyrus_runtime::procedures::{KeptProcedure, ProcedureFact, ProcedureSource, ProcedureVersion};
use gyrus_skills::{Library, SkillPlace};
use gyrus_surfaces::{
    console::{Painter, put},
    output,
    projection::Tone,
    terminal,
};
use gyrus_text::{counted, one_line, visible, wrap};
use gyrus_workspace::patch;
use serde_json::json;

use super::run::Run;
use super::run_argument::RunArgument;
use gyrus_runtime::request::RunFlags;

use crate::{
    Gyrus, exit::Code, failure::Failure, flags::OutputFlags, inside_run, procedures, question,
    skill_places, time,
};

/// Columns of a command in a wide terminal.
const WIDEST: usize = 100;

/// See, promote and run procedures: tasks that are done again without a model
///
/// A procedure is learned from a run whose goal you typed and that ended checked or verified, or from
/// what you show with `gyrus teach`. It is replayed once you have promoted it, when a command equals
/// the learned one outside of its slots, on the same site or in the same folder.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Procedures {
    #[command(subcommand)]
    verb: Option<ProceduresVerb>,
    /// Print one JSON array, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum ProceduresVerb {
    /// List all procedures
    List {
        /// Print one JSON array, for programs
        #[arg(long)]
        json: bool,
    },
    /// Show what a procedure does, step by step
    Show {
        /// Its name
        name: String,
        /// The version (default: the latest)
        #[arg(long, value_name = "NUMBER")]
        version: Option<u32>,
    },
    /// Let a procedure be replayed without a model, from now on
    Promote {
        /// Its name
        name: String,
        /// The version (default: the latest)
        #[arg(long, value_name = "NUMBER")]
        version: Option<u32>,
        /// Say yes beforehand to what is shown
        #[arg(long)]
        yes: bool,
    },
    /// Run a procedure with these values of its slots
    Run(RunProcedure),
    /// Compare two versions of a procedure
    Diff {
        /// Its name
        name: String,
        /// The older version (default: the one before the newer)
        #[arg(long, value_name = "NUMBER")]
        from: Option<u32>,
        /// The newer version (default: the latest)
        #[arg(long, value_name = "NUMBER")]
        to: Option<u32>,
    },
    /// Print a procedure as JSON, or make a skill of it
    Export {
        /// Its name
        name: String,
        /// Write it as a skill into your folder of skills
        #[arg(long)]
        skill: bool,
    },
    /// Say what a run taught, or why it taught nothing
    Why {
        #[command(flatten)]
        run: RunArgument,
    },
    /// Forget a procedure with all its versions
    Forget {
        /// Its name
        name: String,
    },
}

/// The words of `gyrus procedures run`.
#[derive(Args)]
struct RunProcedure {
    /// Its name
    name: String,
    /// The values of its slots, in the order of `gyrus procedures show`
    values: Vec<String>,
    #[command(flatten)]
    flags: Box<RunFlags>,
    #[command(flatten)]
    output: OutputFlags,
}

impl Procedures {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let alone = ProceduresVerb::List { json: self.json };
        match self.verb.unwrap_or(alone) {
            ProceduresVerb::List { json } => list(gyrus, json),
            ProceduresVerb::Show { name, version } => show(gyrus, &name, version),
            ProceduresVerb::Promote { name, version, yes } => promote(gyrus, &name, version, yes),
            ProceduresVerb::Run(run) => run.execute(gyrus),
            ProceduresVerb::Diff { name, from, to } => diff(gyrus, &name, from, to),
            ProceduresVerb::Export { name, skill: false } => export(gyrus, &name),
            ProceduresVerb::Export { name, skill: true } => export_skill(gyrus, &name),
            ProceduresVerb::Why { run } => why(gyrus, &run),
            ProceduresVerb::Forget { name } => forget(gyrus, &name),
        }
    }
}

/// Returns the state of a procedure for a list: whether it is replayed.
fn state(kept: &KeptProcedure) -> String {
    let counts = kept.counts();
    let replays = format!(
        "replayed {}, handed over {}, failed {}",
        counts.replayed, counts.handed_over, counts.failed
    );
    let latest = kept.latest().map_or(0, |latest| latest.version);
    match &kept.promotion {
        Some(promotion) if promotion.version == latest => format!("promoted; {replays}"),
        Some(promotion) => format!(
            "promoted in version {}, and version {latest} waits for your yes; {replays}",
            promotion.version
        ),
        None => "not promoted".to_owned(),
    }
}

fn list(gyrus: &Gyrus, is_json: bool) -> Result<Code, Failure> {
    let kept = procedures::kept(&gyrus.store()?)?;
    let mut out = output::standard();
    if is_json {
        let items = kept.all().filter_map(|(name, kept)| {
            let latest = kept.latest()?;
            Some(json!({
                "name": name,
                "command": procedures::command(&latest.procedure),
                "version": latest.version,
                "versions": kept.versions.len(),
                "promoted": kept.promotion,
                "place": latest.procedure.place,
                "source": latest.source,
                "counts": kept.counts(),
            }))
        });
        out.json(&items.collect::<Vec<_>>())?;
        out.flush()?;
        return Ok(Code::Reached);
    }
    let painter = Painter::new(&out, gyrus.environment.plain);
    for (name, kept) in kept.all() {
        let Some(latest) = kept.latest() else {
            continue;
        };
        let aside = painter.paint(Tone::Aside, &visible(&state(kept)));
        writeln!(out, "{}  {aside}", painter.paint(Tone::Call, name))?;
        let command = procedures::command(&latest.procedure);
        for line in wrap(&visible(&command), painter.columns.min(WIDEST) - 4) {
            writeln!(out, "    {line}")?;
        }
    }
    out.flush()?;
    if kept.all().next().is_none() {
        put("no procedure was learned yet; runs with --check teach one: see docs/procedures.md\n")?;
    }
    Ok(Code::Reached)
}

/// Returns a version, by default the latest.
fn version_of<'a>(
    kept: &'a KeptProcedure,
    name: &str,
    version: Option<u32>,
) -> Result<&'a ProcedureVersion, Failure> {
    let found = match version {
        Some(version) => kept.version(version),
        None => kept.latest(),
    };
    found.ok_or_else(|| {
        let versions = kept.versions.iter().map(|kept| kept.version.to_string());
        let versions: Vec<String> = versions.collect();
        Failure::usage(format!("`{name}` has no such version"))
            .hint(format!("there are: {}", versions.join(", ")))
    })
}

fn print(version: &ProcedureVersion, kept: &KeptProcedure) -> Result<(), Failure> {
    let mut out = output::standard();
    let source = match &version.source {
        ProcedureSource::Run { run } => format!("learned from run {}", run.short()),
        ProcedureSource::Taught { by } => format!("taught by {}", by.id),
    };
    writeln!(
        out,
        "{}, version {}, {source}, {}; {}",
        version.procedure.name,
        version.version,
        time::ago(version.at_ms),
        state(kept)
    )?;
    for line in procedures::lines(&version.procedure) {
        writeln!(out, "{}", visible(&one_line(&line)))?;
    }
    Ok(out.flush()?)
}

fn show(gyrus: &Gyrus, name: &str, version: Option<u32>) -> Result<Code, Failure> {
    let kept = procedures::kept(&gyrus.store()?)?;
    let kept = procedures::named(&kept, name)?;
    print(version_of(kept, name, version)?, kept)?;
    for (run, outcome) in kept.replays.iter().rev().take(5) {
        let outcome = serde_json::to_value(outcome).unwrap_or_default();
        let what = outcome["outcome"].as_str().unwrap_or_default();
        let reason = outcome["reason"].as_str().unwrap_or_default();
        put(&format!(
            "run {}: {} {}\n",
            run.short(),
            what.replace('_', " "),
            one_line(reason)
        ))?;
    }
    Ok(Code::Reached)
}

fn promote(gyrus: &Gyrus, name: &str, version: Option<u32>, yes: bool) -> Result<Code, Failure> {
    inside_run::refuse("promote procedures")?;
    let store = gyrus.store()?;
    let known = procedures::kept(&store)?;
    let kept = procedures::named(&known, name)?;
    let version = version_of(kept, name, version)?;
    print(version, kept)?;
    question::confirm(
        &format!("let `{name}` run without a model from now on"),
        yes,
    )?;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    procedures::promote(&store, name, version.version, &person)?;
    put(&format!(
        "such commands replay `{name}` from now on; to leave it out once: --no-procedure; to take \
         it back: gyrus procedures forget {name}\n"
    ))?;
    Ok(Code::Reached)
}

impl RunProcedure {
    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let known = procedures::kept(&store)?;
        let name = &self.name;
        let kept = procedures::named(&known, name)?;
        let Some(version) = kept.promoted() else {
            return Err(Failure::usage(format!("`{name}` is not promoted"))
                .hint(format!("see what it does: gyrus procedures promote {name}")));
        };
        let command = command_with(&version.procedure, &self.values)?;
        Run::replaying(command, name.clone(), *self.flags, self.output).execute(gyrus)
    }
}

fn command_with(procedure: &Procedure, values: &[String]) -> Result<Text, Failure> {
    let slots = procedure.slots.len();
    let usage = || format!("its command is: {}", procedures::command(procedure));
    if values.len() != slots {
        let what = format!(
            "`{}` has {}, and {} given",
            procedure.name,
            counted(slots, "slot"),
            if values.len() == 1 {
                "1 value was".to_owned()
            } else {
                format!("{} were", counted(values.len(), "value"))
            }
        );
        return Err(Failure::usage(what).hint(usage()));
    }
    let values = SlotValues(values.to_vec());
    let command = procedure.command.filled(&values);
    if procedure.command.values(&procedure.slots, &command) != Some(values) {
        let what = format!("`{}` cannot be run with these values", procedure.name);
        return Err(Failure::usage(what).hint(usage()));
    }
    Ok(Text::new(command, Origin::Person))
}

fn diff(gyrus: &Gyrus, name: &str, from: Option<u32>, to: Option<u32>) -> Result<Code, Failure> {
    let known = procedures::kept(&gyrus.store()?)?;
    let kept = procedures::named(&known, name)?;
    let newer = version_of(kept, name, to)?;
    let before = kept.versions.iter().rev();
    let before = before
        .map(|kept| kept.version)
        .find(|version| *version < newer.version);
    let Some(from) = from.or(before) else {
        put(&format!("`{name}` has one version\n"))?;
        return Ok(Code::Reached);
    };
    let older = version_of(kept, name, Some(from))?;
    let text = |version: &ProcedureVersion| {
        let lines = procedures::lines(&version.procedure);
        let lines = lines.iter().map(|line| format!("{}\n", one_line(line)));
        lines.collect::<String>()
    };
    let (older, newer) = (text(older), text(newer));
    let [older, newer] = [&older, &newer].map(|text| {
        Some(patch::FileVersion {
            mode: 0o100_644,
            content: text.as_bytes(),
        })
    });
    let patch = patch::of_file(name.as_bytes(), older, newer);
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    for line in painter.patch(&patch) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(Code::Reached)
}

fn export(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    let known = procedures::kept(&gyrus.store()?)?;
    let version = version_of(procedures::named(&known, name)?, name, None)?;
    let mut out = output::standard();
    out.json(&version.procedure)?;
    out.flush()?;
    Ok(Code::Reached)
}

fn export_skill(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    inside_run::refuse("make skills")?;
    let home = gyrus.home()?;
    let known = procedures::kept(&home.store()?)?;
    let version = version_of(procedures::named(&known, name)?, name, None)?;
    let folder = skill_places::user_folder(&home).join(name);
    let file = folder.join("SKILL.md");
    let text = skill(&version.procedure);
    if let Err(mistakes) = Library::check(&file, SkillPlace::User, &text) {
        let said = mistakes
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        return Err(Failure::failed(format!(
            "`{name}` cannot be written as a skill: {said}"
        )));
    }
    fs::create_dir_all(&folder)?;
    let created = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file);
    let mut created = created.map_err(|error| {
        Failure::usage(format!("{} is there already", file.display()))
            .because(&error)
            .hint("move it away, and try again")
    })?;
    created.write_all(text.as_bytes())?;
    writeln!(output::standard(), "{}", file.display())?;
    Ok(Code::Reached)
}

/// Returns a procedure as the text of a skill. Names of a page are quoted in it as they are, in one
/// line each: the person reads it before they use it.
fn skill(procedure: &Procedure) -> String {
    let command = one_line(&procedures::command(procedure)).into_owned();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let description = gyrus_text::shorten(
        &format!("Does this: {command} Written from a procedure that was learned."),
        900,
    )
    .into_owned();
    let mut text = format!(
        "---\nname: {}\ndescription: {}\n---\n",
        procedure.name,
        quoted(&description)
    );
    text.push_str(&procedures::numbered(procedure));
    text
}

fn why(gyrus: &Gyrus, run: &RunArgument) -> Result<Code, Failure> {
    let store = gyrus.store()?;
    let run = run.find_own(gyrus, &store)?;
    let known = procedures::kept(&store)?;
    let source = ProcedureSource::Run { run };
    let mut out = output::standard();
    for (name, kept) in known.all() {
        let of_run = kept.versions.iter().find(|kept| kept.source == source);
        if let Some(version) = of_run {
            writeln!(out, "it taught version {} of `{name}`", version.version)?;
            return Ok(out.flush()?).map(|()| Code::Reached);
        }
    }
    let reader = store.reader(&log_name(run))?;
    match procedures::recorded(&reader)?.and_then(|run| learn(&run)) {
        Ok(procedure) => {
            let command = procedures::command(&procedure);
            writeln!(out, "it shows how to do this: {}", visible(&command))?;
            match known.same_as(&procedure) {
                Some(name) => writeln!(out, "`{name}` does that already")?,
                None => writeln!(out, "the procedure was not stored, or was forgotten since")?,
            }
        }
        Err(why) => writeln!(out, "it taught nothing: {}", visible(&why.to_string()))?,
    }
    out.flush()?;
    Ok(Code::Reached)
}

fn forget(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    inside_run::refuse("forget procedures")?;
    let store = gyrus.store()?;
    procedures::named(&procedures::kept(&store)?, name)?;
    let by = terminal::person(gyrus.environment.user.as_deref(), "command line");
    procedures::change(&store, |_| {
        vec![ProcedureFact::Forgotten {
            name: name.to_owned(),
            by: by.clone(),
        }]
    })?;
    put(&format!(
        "`{name}` is forgotten; the runs that taught it stay\n"
    ))?;
    Ok(Code::Reached)
}
