//! `gyrus plugins install` and `gyrus plugins remove`.
//!
//! A package is read once, shown, and written by one rename after the person's word about it is on
//! disk, as packages of skills are. Whenever this is killed, one version stands there whole.

use std::path::Path;

use gyrus_kernel::grants;

use gyrus_plugins::{
    Dependencies, InstalledPlugin, NpmError, NpmSpec, PACKAGE, Plugin, PluginAgent,
};
use gyrus_skills::{Package, SKILL_FILE, SkillFile, SkillFiles, looks_like, read_package};
use gyrus_surfaces::{console::put, output, terminal};
use gyrus_text::{counted, visible};

use super::shown::whole;
use crate::{
    Gyrus,
    commands::skills::{
        here::SkillPlaces,
        install::{PackageInPlace, alone, check, described, is_refused, pins},
    },
    exit::Code,
    failure::Failure,
    inside_run, plugins, question, skill_places, skill_trust,
};

pub(super) fn install(gyrus: &Gyrus, package: &str, yes: bool) -> Result<Code, Failure> {
    inside_run::refuse("install plugins")?;
    let here = SkillPlaces::of(gyrus)?;
    let plugin = read(package)?;
    let installed = PackageInPlace::at(&here.home, &plugin.name);
    let before = InstalledPlugin::read(&installed.folder).ok();
    check_names(gyrus, &here, &plugin)?;
    check_texts(&plugin)?;
    let dependencies = if plugin.needs_dependencies() {
        put("fetching the packages that its servers depend on; no script of them is run\n")?;
        Some(Dependencies::fetch(&plugin.dependencies).map_err(|error| of_npm(&error))?)
    } else {
        None
    };
    let mut shown = whole(&plugin);
    if let Some(fetched) = &dependencies {
        let packages = counted(fetched.packages, "package");
        shown.push_str(&format!(
            "its servers depend on {packages} of npm, kept beside it; their scripts were not run\n"
        ));
    }
    if let Some(before) = &before {
        shown.push_str(&changes(&before.plugin, &plugin));
    }
    shown.push('\n');
    for one in &plugin.skills {
        shown.push_str(&described(one, &installed, &here.library));
    }
    for agent in &plugin.agents {
        let (of, name, text) = (&plugin.name, &agent.name, &agent.instructions);
        shown.push_str(&format!("\nthe agent {of}:{name} is told:\n{text}\n"));
    }
    writeln!(output::standard(), "{}", visible(&shown))?;
    let name = &plugin.name;
    question::confirm(&format!("install the plugin `{name}`, as shown"), yes)?;
    keep(gyrus, &here, &installed, (&plugin, dependencies.as_ref()))?;
    Ok(Code::Reached)
}

/// Records that the person agreed to a plugin, and writes the plugin into its place.
pub(in crate::commands) fn keep(
    gyrus: &Gyrus,
    here: &SkillPlaces,
    installed: &PackageInPlace,
    (plugin, dependencies): (&Plugin, Option<&Dependencies>),
) -> Result<(), Failure> {
    let (home, name) = (&here.home, plugin.name.as_str());
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let pins = pins(home, name, &plugin.skills);
    let store = home.store()?;
    let _alone = alone(home)?;
    let pin = plugins::pin(&plugin.digest(dependencies));
    grants::give(
        &store,
        &skill_places::installed_folder(home),
        &pins,
        &person,
    )?;
    let scope = plugins::scope(home, name);
    grants::give(&store, &scope, std::slice::from_ref(&pin), &person)?;
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Failure::failed(format!("`{name}` cannot be written")).because(error)
    };
    let replaced = installed.put(&plugin.skills, |made| {
        let package = made.join(PACKAGE);
        let written = plugin.files.write_into(&package);
        written.map_err(|error| failed(&error))?;
        let copied = dependencies.map_or(Ok(()), |fetched| fetched.write_into(&package));
        copied.map_err(|error| failed(&error))
    })?;
    skill_trust::unpin(home, name, &pins, &person)?;
    for standing in grants::in_folder(&store, &scope)? {
        if standing.grant != pin {
            grants::revoke(&store, &standing, &person)?;
        }
    }
    installed.say(&format!("`{name}`"), replaced)
}

pub(super) fn remove(gyrus: &Gyrus, name: &str, yes: bool) -> Result<Code, Failure> {
    inside_run::refuse("remove plugins")?;
    let home = gyrus.home()?;
    if !plugins::is_installed(&home, name) {
        return Err(Failure::usage(format!("there is no plugin `{name}`"))
            .hint("to see all: gyrus plugins list"));
    }
    question::confirm(
        &format!("remove the plugin `{name}` and what you granted it"),
        yes,
    )?;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let installed = PackageInPlace::at(&home, name);
    let store = home.store()?;
    let _alone = alone(&home)?;
    for standing in grants::in_folder(&store, &plugins::scope(&home, name))? {
        grants::revoke(&store, &standing, &person)?;
    }
    skill_trust::unpin(&home, name, &[], &person)?;
    installed.remove()
}

/// Reads the plugin at a path, or fetches it by its name in npm.
fn read(package: &str) -> Result<Plugin, Failure> {
    let path = Path::new(package);
    let of = |path: &Path| {
        let unusable = |error: &(dyn std::error::Error + 'static)| {
            Failure::usage(format!("{package} cannot be installed: {error}"))
        };
        let files = read_package(path).map_err(|error| unusable(&error))?;
        Plugin::read(files).map_err(|error| unusable(&error))
    };
    if path.exists() {
        return of(path);
    }
    let Some(spec) = NpmSpec::parse(package) else {
        return Err(Failure::usage(format!("there is no {package}"))
            .hint("name a folder, an archive, or a package of npm as NAME or NAME@VERSION"));
    };
    let folder = tempfile::Builder::new().prefix("gyrus-npm-").tempdir()?;
    let archive = spec.fetch(folder.path()).map_err(|error| {
        let mut failure = of_npm(&error);
        failure.message = format!("`{spec}` cannot be fetched: {}", failure.message);
        failure
    })?;
    let plugin = of(&archive)?;
    let npm: Option<serde_json::Value> = plugin
        .files
        .text("package.json")
        .and_then(|text| serde_json::from_str(text).ok());
    match npm.as_ref().and_then(|npm| npm["name"].as_str()) {
        Some(name) if name == spec.name => Ok(plugin),
        name => Err(Failure::failed(format!(
            "`{spec}` is another package than its name says: `{}`",
            name.unwrap_or_default()
        ))
        .hint("nothing was installed")),
    }
}

fn of_npm(error: &NpmError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        NpmError::Program(cause) => failure.because(cause),
        NpmError::Io(cause) => failure.because(cause),
        NpmError::Failed(_) | NpmError::Timeout | NpmError::Dependency { .. } => {
            failure.hint("nothing was installed")
        }
    }
}

/// Refuses names that are taken, or easily confused with others.
fn check_names(gyrus: &Gyrus, here: &SkillPlaces, plugin: &Plugin) -> Result<(), Failure> {
    let name = plugin.name.as_str();
    let refuse = |what: String| Err(Failure::failed(what).hint("nothing was installed"));
    let others = plugins::all(&here.home)?;
    let others: Vec<_> = others.iter().filter(|other| other.name != name).collect();
    let names = others.iter().map(|other| other.name.as_str());
    if let Some(known) = looks_like(name, names) {
        return refuse(format!(
            "the name `{name}` is easily taken for `{known}`, which is installed"
        ));
    }
    let config = gyrus.config()?;
    for server in &plugin.servers {
        let taken = config.mcp.keys().any(|own| *own == server.name);
        let mut plugins = others.iter();
        let of_plugin = plugins.find(|other| {
            let plugin = other.plugin.as_ref();
            plugin.is_ok_and(|plugin| plugin.servers.iter().any(|one| one.name == server.name))
        });
        let whose = match (taken, of_plugin) {
            (true, _) => format!("your own, [mcp.{}]", server.name),
            (false, Some(other)) => format!("one of the plugin `{}`", other.name),
            (false, None) => continue,
        };
        return refuse(format!(
            "the server `{}` of `{name}` has the name of another one: {whose}",
            server.name
        ));
    }
    Ok(())
}

/// Scans the skills and agents, and prints the findings.
fn check_texts(plugin: &Plugin) -> Result<(), Failure> {
    let package = Package {
        plugin: Some(plugin.name.clone()),
        skills: Vec::new(),
        left_behind: 0,
    };
    check(&package, &plugin.name)?;
    for one in &plugin.skills {
        check_part(&one.skill.name, &one.files, &plugin.name)?;
    }
    for agent in &plugin.agents {
        check_part(&agent.name, &text_of(agent), &plugin.name)?;
    }
    Ok(())
}

fn text_of(agent: &PluginAgent) -> SkillFiles {
    let mut files = SkillFiles::default();
    let text = format!("{}\n\n{}", agent.description, agent.instructions);
    let file = SkillFile {
        bytes: text.into_bytes(),
        is_executable: false,
    };
    files
        .add(SKILL_FILE.to_owned(), file)
        .expect("an agent's text is smaller than a file may be");
    files
}

fn check_part(part: &str, files: &SkillFiles, plugin: &str) -> Result<(), Failure> {
    if is_refused(part, files)? {
        let what = format!("`{part}` of `{plugin}` holds what no skill or agent may hold");
        return Err(Failure::failed(what).hint("nothing was installed"));
    }
    Ok(())
}

/// Lists the changes that another version of a plugin makes.
fn changes(before: &Plugin, after: &Plugin) -> String {
    let version = |plugin: &Plugin| plugin.version.clone().unwrap_or_default();
    let mut said = format!("it takes the place of version {}\n", version(before));
    let paths = before.files.iter().chain(after.files.iter());
    let paths: std::collections::BTreeSet<&str> = paths.map(|(path, _)| path).collect();
    for path in paths {
        let what = match (before.files.get(path), after.files.get(path)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(_), Some(_)) => "changes",
            (None, _) => "adds",
            (Some(_), None) => "removes",
        };
        said.push_str(&format!("  {what} {path}\n"));
    }
    said
}
