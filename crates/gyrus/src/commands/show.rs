//! `gyrus show`

use std::{
    io::{BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::log_name;
use gyrus_process::open_regular;
use gyrus_text::width;
use tempfile::NamedTempFile;

use super::run_argument::RunArgument;
use crate::{
    Gyrus,
    exit::Code,
    failure::Failure,
    private_file::{self, Draft},
};
use gyrus_surfaces::{
    console::ConsoleLine,
    console::Painter,
    console::put,
    output, page,
    projection::{Projection, Tone},
};

/// Show what happened in a run, entry by entry, or as a page
#[derive(Args)]
pub(crate) struct ShowCommand {
    #[command(flatten)]
    run: RunArgument,
    /// As one HTML page that needs nothing else, to standard output or to a file
    #[arg(long)]
    html: bool,
    /// Go on showing what happens, as `gyrus follow`
    #[arg(long, conflicts_with = "html")]
    follow: bool,
    /// The file for the page; an older page there is replaced, any other file is left alone
    #[arg(short, long, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
}

impl ShowCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        if self.follow {
            super::follow::follow(gyrus, &store, run, false)
        } else if self.html {
            page(&store, run, self.output.as_deref())
        } else {
            timeline(&store, run, gyrus.environment.plain)
        }
    }
}

pub(crate) fn timeline(store: &Store, run: RunId, plain: bool) -> Result<Code, Failure> {
    let reader = store.reader(&log_name(run))?;
    let mut out = output::standard();
    let painter = Painter::new(&out, plain);
    writeln!(
        out,
        "{}",
        painter.paint(Tone::Strong, &format!("run {run}"))
    )?;
    let mut began_ms = None;
    let mut projection = Projection::new();
    for entry in reader.entries(1)? {
        let entry = entry?;
        let began_ms = *began_ms.get_or_insert(entry.at_ms);
        for happening in projection.take(&entry, &reader) {
            let effect = happening.effect.as_ref().map(ToString::to_string);
            let head = format!(
                "{:>5} {:>9} {:<8} ",
                happening.seq,
                since(happening.at_ms - began_ms),
                effect.unwrap_or_default()
            );
            let indent = " ".repeat(width(&head));
            let text = ConsoleLine::from(&happening).rendered(&indent, &painter);
            let text = text.strip_prefix(&indent).unwrap_or(&text);
            write!(out, "{}{text}", painter.paint(Tone::Aside, &head))?;
        }
    }
    for line in super::undo::lines(store, run)? {
        writeln!(out, "{}", painter.paint(Tone::Strong, &line))?;
    }
    Ok(Code::Reached)
}

/// Seconds since the start, to the millisecond. A clock may have been set back.
fn since(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03}", ms / 1000, ms % 1000)
}

fn page(store: &Store, run: RunId, file: Option<&Path>) -> Result<Code, Failure> {
    let damage = match file {
        Some(path) => {
            let (damage, bytes) = to_file(store, run, path)?;
            put(&format!(
                "{}: {} kB\n",
                path.display(),
                bytes.div_ceil(1024)
            ))?;
            damage
        }
        None if output::standard().is_terminal() => {
            let run = run.short();
            return Err(
                Failure::usage("a terminal cannot show an HTML page").hint(format!(
                    "name a file for it: gyrus show {run} --html -o {run}.html"
                )),
            );
        }
        None => {
            let mut out = output::standard();
            let mut out = BufWriter::new(out.raw());
            let damage = page::write(store, run, &mut out)?;
            out.flush()?;
            damage
        }
    };
    match damage {
        Some(error) => Err(Failure::from(error).hint("the page shows what is before the damage")),
        None => Ok(Code::Reached),
    }
}

/// Writes a page to a file, which appears once it is complete, readable by its owner alone, and
/// replaces nothing but an older page.
fn to_file(
    store: &Store,
    run: RunId,
    path: &Path,
) -> Result<(Option<gyrus_journal::Error>, u64), Failure> {
    if path.exists() && !is_page(path) {
        return Err(Failure::usage(format!(
            "{} exists and is not a page of gyrus",
            path.display()
        ))
        .hint("name a new file"));
    }
    let keep = |file: NamedTempFile| Ok(file.persist(path).map(drop)?);
    let write = |out: &mut Draft| Ok(page::write(store, run, out)?);
    private_file::write_whole(path, write, keep)
}

fn is_page(path: &Path) -> bool {
    let mut start = String::new();
    let length = page::OPENING.len() as u64;
    open_regular(path)
        .and_then(|file| file.take(length).read_to_string(&mut start))
        .is_ok_and(|_| start == page::OPENING)
}
