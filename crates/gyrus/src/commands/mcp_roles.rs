//! `gyrus mcp roles`: a person says what a server's tools do, and what their arguments stand for.

use std::{collections::BTreeMap, fs, io};

use clap::Args;
use gyrus_contract::{ArgumentRole, Digest, Service, ToolAction, ToolMeaning, ToolSpec, Touch};
use gyrus_gate::{ConfirmedTool, Meanings, ServerMeanings, propose};
use gyrus_surfaces::{
    console::Painter,
    output::{self, Output},
    projection::Tone,
    terminal,
};
use gyrus_text::{counted, one_line};
use serde_json::json;

use crate::{
    drive,
    exit::Code,
    failure::Failure,
    mcp::{self, Around},
    private_file,
};

/// Digits of a content that name it.
const NAMED_BY: usize = 8;

/// Say what a server's tools do and what their arguments stand for, so that calls can be judged
///
/// It proposes that from names and schemas, and shows it in one list: read it, correct it, and say
/// yes. A tool that its server describes otherwise later has no roles any more.
#[derive(Args)]
pub(crate) struct Roles {
    /// The server's name
    name: String,
    /// A correction: `TOOL=ACTION` or `TOOL.ARGUMENT=ROLE`
    ///
    /// Actions are reads, creates, changes, sends, pays and deletes. Roles are to (where something
    /// goes), name (one of your own things), page (an address that is asked), password, text,
    /// amount, option (goes nowhere), and none (a place, as everything that nobody described).
    #[arg(long = "set", value_name = "CORRECTION")]
    corrections: Vec<String>,
    /// Say yes beforehand to the list of this digest, as it is shown without it
    #[arg(long, value_name = "DIGEST")]
    content: Option<String>,
    /// Forget what you said of this server
    #[arg(long, conflicts_with_all = ["corrections", "content"])]
    forget: bool,
    /// Print JSON, and confirm nothing
    #[arg(long, conflicts_with = "forget")]
    json: bool,
}

/// A tool with what it is to mean.
struct Row {
    spec: ToolSpec,
    service: Service,
    meaning: ToolMeaning,
    why: Why,
}

/// The origin of a tool's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Confirmed,
    Proposed,
    /// It was confirmed for another description.
    Changed,
}

impl Roles {
    pub(super) fn execute(self, around: &Around<'_>, plain: bool) -> Result<Code, Failure> {
        let folder = around.home.policy_files(around.workspace).meanings();
        let file = Meanings::file(&folder, &self.name);
        if self.forget {
            return forget(&file, &self.name);
        }
        let known = Meanings::read(&folder).map_err(|error| Failure::usage(error.to_string()))?;
        let specs = drive::runtime()?.block_on(mcp::tools_of(around, &self.name))?;
        let setup = specs
            .iter()
            .flat_map(|spec| &spec.touches)
            .find_map(|touch| touch.service()?.setup);
        let Some(setup) = setup else {
            return Err(Failure::usage(format!(
                "the server `{}` has no tools",
                one_line(&self.name)
            )));
        };
        let known = known
            .of_server(&self.name)
            .filter(|known| known.setup == setup);
        let mut rows: Vec<Row> = specs
            .into_iter()
            .filter_map(|spec| row(spec, known))
            .collect();
        for correction in &self.corrections {
            correct(&mut rows, correction)?;
        }
        let wanted = meanings(setup, &rows);
        let text = wanted
            .to_text()
            .map_err(|error| Failure::failed(error.to_string()))?;
        let content = Digest::of(text.as_bytes()).to_string();
        let mut out = output::standard();
        if self.json {
            out.json(&json!({"server": self.name, "content": content, "tools": wanted.tools}))?;
            return Ok(Code::Reached);
        }
        let painter = Painter::new(&out, plain);
        writeln!(
            out,
            "What the tools of `{}` do, and what their arguments are:",
            one_line(&self.name)
        )?;
        show(&mut out, &painter, &rows)?;
        if known == Some(&wanted) {
            writeln!(out, "this is what you confirmed; nothing is to be done")?;
            return Ok(Code::Reached);
        }
        drop(out);
        self.consent(&content)?;
        private_file::write(&file, text.as_bytes()).map_err(|error| {
            Failure::failed(format!("{} cannot be written", file.display())).because(&error)
        })?;
        let mut out = output::standard();
        writeln!(
            out,
            "confirmed for {}; to take it back: gyrus mcp roles {} --forget",
            counted(rows.len(), "tool"),
            self.name
        )?;
        Ok(Code::Reached)
    }

    /// A yes to exactly this list: at the terminal, or by its digest.
    fn consent(&self, content: &str) -> Result<(), Failure> {
        let short = &content[..NAMED_BY];
        let name = &self.name;
        if let Some(given) = &self.content {
            return if given.len() >= NAMED_BY && content.starts_with(given.as_str()) {
                Ok(())
            } else {
                let what = format!("this list is not {}, but {short}", one_line(given));
                Err(Failure::usage(what).hint("look at it again before you confirm it"))
            };
        }
        if !terminal::can_ask() {
            let what = "this needs your yes, and there is no terminal to ask at";
            let mut command = format!("gyrus mcp roles {name}");
            for correction in &self.corrections {
                command.push_str(&format!(" --set {}", one_line(correction)));
            }
            return Err(Failure::usage(what)
                .hint(format!("say it beforehand: {command} --content {short}")));
        }
        if terminal::says_yes("is this what they do? [y/N] ")? {
            return Ok(());
        }
        Err(Failure::usage("nothing was confirmed").hint(format!(
            "correct it: gyrus mcp roles {name} --set TOOL=ACTION --set TOOL.ARGUMENT=ROLE"
        )))
    }
}

fn forget(file: &std::path::Path, name: &str) -> Result<Code, Failure> {
    let mut out = output::standard();
    match fs::remove_file(file) {
        Ok(()) => writeln!(
            out,
            "forgotten; every call of `{}` is asked about",
            one_line(name)
        )?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            writeln!(out, "nothing was confirmed for `{}`", one_line(name))?;
        }
        Err(error) => {
            let what = format!("{} cannot be deleted", file.display());
            return Err(Failure::failed(what).because(&error));
        }
    }
    Ok(Code::Reached)
}

fn row(spec: ToolSpec, known: Option<&ServerMeanings>) -> Option<Row> {
    let service = spec.touches.iter().find_map(Touch::service)?.clone();
    let confirmed = known.and_then(|known| known.tools.get(&service.tool));
    let (meaning, why) = match confirmed {
        Some(tool) if tool.definition == service.definition => (tool.meaning(), Why::Confirmed),
        Some(_) => (propose(&spec), Why::Changed),
        None => (propose(&spec), Why::Proposed),
    };
    Some(Row {
        spec,
        service,
        meaning,
        why,
    })
}

fn meanings(setup: Digest, rows: &[Row]) -> ServerMeanings {
    let tools = rows.iter().map(|row| {
        let tool = ConfirmedTool {
            definition: row.service.definition,
            action: row.meaning.action,
            arguments: row.meaning.arguments.clone(),
        };
        (row.service.tool.clone(), tool)
    });
    ServerMeanings {
        setup,
        tools: tools.collect(),
    }
}

/// Applies a correction of the person: `TOOL=ACTION` or `TOOL.ARGUMENT=ROLE`.
fn correct(rows: &mut [Row], correction: &str) -> Result<(), Failure> {
    let wrong = |what: String| {
        Failure::usage(format!("--set {}: {what}", one_line(correction)))
            .hint("write TOOL=ACTION or TOOL.ARGUMENT=ROLE, as in send_email.cc=to")
    };
    let (what, word) = correction
        .split_once('=')
        .ok_or_else(|| wrong("there is no `=` in it".to_owned()))?;
    // A tool's name may have dots, and so has the path of an argument: the longest tool that fits.
    let mut fitting: Vec<_> = rows
        .iter_mut()
        .filter(|row| {
            let rest = what.strip_prefix(row.service.tool.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .collect();
    fitting.sort_by_key(|row| row.service.tool.len());
    let row = fitting
        .pop()
        .ok_or_else(|| wrong("the server has no such tool".to_owned()))?;
    let argument = what[row.service.tool.len()..].strip_prefix('.');
    match argument {
        None => {
            row.meaning.action = word
                .parse::<ToolAction>()
                .map_err(|error| wrong(error.to_string()))?;
        }
        Some(argument) if !has_argument(&row.spec, argument) => {
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

/// Whether the tool has an argument whose path begins like this one.
fn has_argument(spec: &ToolSpec, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    !path.split('.').any(str::is_empty) && spec.parameters["properties"].get(first).is_some()
}

fn show(out: &mut Output, painter: &Painter, rows: &[Row]) -> Result<(), Failure> {
    let width = rows
        .iter()
        .map(|row| row.service.tool.chars().count())
        .max()
        .unwrap_or(0)
        .min(32);
    for row in rows {
        let tool = one_line(&row.service.tool).into_owned();
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
            Why::Confirmed => "",
            Why::Proposed => "  (proposed)",
            Why::Changed => "  (described otherwise since you confirmed it)",
        };
        writeln!(
            out,
            "  {}  {}  {}{}",
            painter.paint(Tone::Strong, &format!("{tool:width$}")),
            painter.paint(tone, &format!("{action:7}")),
            parts.join(" · "),
            painter.paint(Tone::Aside, note)
        )?;
    }
    Ok(())
}

/// The arguments at the top of the schema of which nothing is said.
fn undescribed(row: &Row) -> Vec<String> {
    let properties = row.spec.parameters["properties"].as_object();
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
