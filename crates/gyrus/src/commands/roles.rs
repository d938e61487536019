//! Lists of what tools, or forms of pages, mean: shown in one list, corrected, confirmed by a person.

use std::{collections::BTreeMap, fs, io, path::Path};

use gyrus_contract::{ArgumentRole, Digest, ToolAction, ToolMeaning};
use gyrus_surfaces::{
    console::Painter,
    output::{self, StandardOutput},
    projection::Tone,
    terminal,
};
use gyrus_text::{counted, one_line};

use crate::{exit::Code, failure::Failure, private_file};

/// Number of digits of a content's hash by which it is named.
const NAMED_BY: usize = 8;

/// A tool or a form, with the meaning that is to be confirmed.
pub(super) struct RoleRow {
    pub(super) name: String,
    pub(super) parameters: serde_json::Value,
    pub(super) meaning: ToolMeaning,
    pub(super) why: MeaningOrigin,
    /// Lines by which a person recognises the tool or form, beside its name.
    pub(super) about: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeaningOrigin {
    Confirmed,
    Proposed,
    /// The meaning was confirmed for another description.
    Changed,
}

pub(super) struct RoleList<'a> {
    pub(super) heading: String,
    pub(super) rows: &'a [RoleRow],
    /// The word for one row, such as `tool`.
    pub(super) one: &'static str,
    /// The text of the file once the list is confirmed.
    pub(super) text: String,
    pub(super) file: &'a Path,
    /// Whether the person confirmed exactly this list before.
    pub(super) is_confirmed: bool,
    pub(super) command: String,
    pub(super) corrections: &'a [String],
    /// The digest of a list that the person confirmed beforehand.
    pub(super) given: Option<&'a str>,
}

impl RoleList<'_> {
    pub(super) fn content(&self) -> String {
        Digest::of(self.text.as_bytes()).to_string()
    }

    /// Shows the list, asks for confirmation, and stores the confirmed list.
    pub(super) fn confirm(&self, plain: bool) -> Result<Code, Failure> {
        let mut out = output::standard();
        let painter = Painter::new(&out, plain);
        writeln!(out, "{}", one_line(&self.heading))?;
        show(&mut out, &painter, self.rows)?;
        if self.is_confirmed {
            writeln!(out, "this is what you confirmed; nothing is to be done")?;
            return Ok(Code::Reached);
        }
        drop(out);
        self.ask()?;
        private_file::write(self.file, self.text.as_bytes()).map_err(|error| {
            Failure::failed(format!("{} cannot be written", self.file.display())).because(&error)
        })?;
        writeln!(
            output::standard(),
            "confirmed for {}; to take it back: {} --forget",
            counted(self.rows.len(), self.one),
            self.command
        )?;
        Ok(Code::Reached)
    }

    /// Returns once the person has confirmed exactly this list, at the terminal or by its digest.
    fn ask(&self) -> Result<(), Failure> {
        let content = self.content();
        let short = &content[..NAMED_BY];
        if let Some(given) = self.given {
            if given.len() >= NAMED_BY && content.starts_with(given) {
                return Ok(());
            }
            let what = format!("this list is not {}, but {short}", one_line(given));
            return Err(Failure::usage(what).hint("look at it again before you confirm it"));
        }
        if !terminal::can_ask() {
            let what = "this needs your yes, and there is no terminal to ask at";
            let mut command = self.command.clone();
            for correction in self.corrections {
                command.push_str(&format!(" --set {}", one_line(correction)));
            }
            return Err(Failure::usage(what)
                .hint(format!("say it beforehand: {command} --content {short}")));
        }
        if terminal::says_yes("is this what they do? [y/N] ")? {
            return Ok(());
        }
        Err(Failure::usage("nothing was confirmed").hint(format!(
            "correct it: {} --set NAME=ACTION --set NAME.ARGUMENT=ROLE",
            self.command
        )))
    }
}

/// Deletes a file of meanings. `forgotten` says what follows.
pub(super) fn forget(file: &Path, forgotten: &str) -> Result<Code, Failure> {
    let mut out = output::standard();
    match fs::remove_file(file) {
        Ok(()) => writeln!(out, "forgotten; {forgotten}")?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            writeln!(out, "nothing was confirmed")?;
        }
        Err(error) => {
            let what = format!("{} cannot be deleted", file.display());
            return Err(Failure::failed(what).because(&error));
        }
    }
    Ok(Code::Reached)
}

/// Applies a correction of the person: `NAME=ACTION` or `NAME.ARGUMENT=ROLE`.
pub(super) fn correct(rows: &mut [RoleRow], correction: &str) -> Result<(), Failure> {
    let wrong = |what: String| {
        Failure::usage(format!("--set {}: {what}", one_line(correction)))
            .hint("write NAME=ACTION or NAME.ARGUMENT=ROLE, as in send_email.cc=to")
    };
    let (what, word) = correction
        .split_once('=')
        .ok_or_else(|| wrong("there is no `=` in it".to_owned()))?;
    // A tool's name may have dots, and so has the path of an argument: the longest tool that fits.
    let mut fitting: Vec<_> = rows
        .iter_mut()
        .filter(|row| {
            let rest = what.strip_prefix(row.name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .collect();
    fitting.sort_by_key(|row| row.name.len());
    let row = fitting
        .pop()
        .ok_or_else(|| wrong("nothing in the list has this name".to_owned()))?;
    let argument = what[row.name.len()..].strip_prefix('.');
    match argument {
        None => {
            row.meaning.action = word
                .parse::<ToolAction>()
                .map_err(|error| wrong(error.to_string()))?;
        }
        Some(argument) if !has_argument(row, argument) => {
            return Err(wrong(format!(
                "it has no argument `{}`",
                one_line(argument)
            )));
        }
        Some(argument) if word == "none" => {
            row.meaning.arguments.remove(argument);
        }
        Some(argument) => {
            let role = word
                .parse::<ArgumentRole>()
                .map_err(|error| wrong(error.to_string()))?;
            row.meaning.arguments.insert(argument.to_owned(), role);
        }
    }
    Ok(())
}

/// Whether the row has an argument whose path begins with this one.
fn has_argument(row: &RoleRow, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    !path.split('.').any(str::is_empty) && row.parameters["properties"].get(first).is_some()
}

fn show(out: &mut StandardOutput, painter: &Painter, rows: &[RoleRow]) -> Result<(), Failure> {
    let width = rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(32);
    for row in rows {
        let tool = one_line(&row.name).into_owned();
        let action = row.meaning.action.to_string();
        let tone = match row.meaning.action {
            ToolAction::Reads => Tone::Aside,
            ToolAction::Creates | ToolAction::Changes => Tone::Call,
            ToolAction::Sends | ToolAction::Pays | ToolAction::Deletes => Tone::Bad,
        };
        let mut by_role: BTreeMap<ArgumentRole, Vec<String>> = BTreeMap::new();
        for (name, role) in &row.meaning.arguments {
            by_role
                .entry(*role)
                .or_default()
                .push(one_line(name).into_owned());
        }
        let mut parts: Vec<String> = by_role
            .into_iter()
            .map(|(role, names)| format!("{role}: {}", names.join(", ")))
            .collect();
        let open = undescribed(row);
        if !open.is_empty() {
            parts.push(format!("not described, so a place: {}", open.join(", ")));
        }
        let note = match row.why {
            MeaningOrigin::Confirmed => "",
            MeaningOrigin::Proposed => "  (proposed)",
            MeaningOrigin::Changed => "  (described otherwise since you confirmed it)",
        };
        writeln!(
            out,
            "  {}  {}  {}{}",
            painter.paint(Tone::Strong, &format!("{tool:width$}")),
            painter.paint(tone, &format!("{action:7}")),
            parts.join(" · "),
            painter.paint(Tone::Aside, note)
        )?;
        for line in &row.about {
            writeln!(out, "      {}", painter.paint(Tone::Aside, &one_line(line)))?;
        }
    }
    Ok(())
}

/// Returns the top-level arguments of the schema without a description.
fn undescribed(row: &RoleRow) -> Vec<String> {
    let properties = row.parameters["properties"].as_object();
    let names = properties.into_iter().flatten().map(|(name, _)| name);
    let is_open = |name: &&String| {
        let mut described = row.meaning.arguments.keys();
        !described.any(|path| path.split('.').next() == Some(name.as_str()))
    };
    names
        .filter(is_open)
        .map(|name| one_line(name).into_owned())
        .collect()
}
