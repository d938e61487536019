//! `gyrus plugins`

pub(super) mod install;
mod shown;

use clap::{Args, Subcommand};
use gyrus_surfaces::{
    console::{Painter, put},
    output,
    projection::Tone,
};
use gyrus_text::visible;
use serde_json::json;

use self::shown::{parts, whole};
use super::listing::ListFlags;
use crate::{Gyrus, exit::Code, failure::Failure, plugins, plugins::PluginInPlace};

/// Install, see and remove plugins: packages with skills, agents and servers of tools
///
/// A plugin is an npm package, or a package in the form of other agents. What it brings is shown, and
/// you are asked, before any of it is installed. No script of it is ever run.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Plugins {
    #[command(subcommand)]
    verb: Option<PluginsVerb>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum PluginsVerb {
    /// Look through a plugin, show what it brings, and install it once you say yes
    ///
    /// A folder, a .tgz, .tar.gz or .zip, or the name of an npm package, which your own npm fetches.
    Install {
        /// The folder, the archive, or NAME or NAME@VERSION
        #[arg(value_name = "FOLDER|ARCHIVE|NAME")]
        package: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// List the installed plugins with their parts
    List(ListFlags),
    /// Show all about an installed plugin
    Show {
        /// Its name
        name: String,
    },
    /// Remove a plugin, and what you granted it
    Remove {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Plugins {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.verb.unwrap_or(PluginsVerb::List(self.list)) {
            PluginsVerb::Install { package, yes } => install::install(gyrus, &package, yes),
            PluginsVerb::List(flags) => list(gyrus, &flags),
            PluginsVerb::Show { name } => show(gyrus, &name),
            PluginsVerb::Remove { name, yes } => install::remove(gyrus, &name, yes),
        }
    }
}

fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let all = plugins::all(&gyrus.home()?)?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    for standing in &all {
        let plugin = standing.plugin.as_ref();
        let item = json!({
            "plugin": standing.name,
            "version": plugin.ok().and_then(|plugin| plugin.version.clone()),
            "parts": plugin.map(parts).unwrap_or_default(),
            "not_used": standing.note(),
        });
        if !flags.shows(&mut out, &item)? {
            continue;
        }
        let version = plugin.ok().and_then(|plugin| plugin.version.as_deref());
        writeln!(
            out,
            "{}  {}",
            painter.paint(Tone::Strong, &standing.name),
            painter.paint(Tone::Aside, &visible(version.unwrap_or_default()))
        )?;
        match plugin {
            Ok(plugin) => {
                for part in parts(plugin) {
                    writeln!(out, "  {}", visible(&part))?;
                }
            }
            Err(_) => {
                let note = standing.note().unwrap_or_default();
                writeln!(out, "  {}", painter.paint(Tone::Bad, &visible(&note)))?;
            }
        }
    }
    out.flush()?;
    if all.is_empty() && !flags.is_json() {
        put("no plugins are installed; to install one: gyrus plugins install NAME\n")?;
    }
    Ok(Code::Reached)
}

fn show(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    let home = gyrus.home()?;
    let standing = find(plugins::all(&home)?, name)?;
    let text = match &standing.plugin {
        Ok(plugin) => whole(plugin),
        Err(_) => format!("{}\n", standing.note().unwrap_or_default()),
    };
    let mut out = output::standard();
    write!(out, "{}", visible(&text))?;
    writeln!(out, "files: {}", standing.package.display())?;
    Ok(Code::Reached)
}

fn find(all: Vec<PluginInPlace>, name: &str) -> Result<PluginInPlace, Failure> {
    let near = gyrus_text::closest(name, all.iter().map(|standing| standing.name.as_str()));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "to see all: gyrus plugins list".to_owned(),
    };
    let mut all = all.into_iter();
    let found = all.find(|standing| standing.name == name);
    found.ok_or_else(|| Failure::usage(format!("there is no plugin `{name}`")).hint(hint))
}
