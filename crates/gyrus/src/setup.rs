//! Setting a model up: `gyrus setup`, and the offer of it where somebody needs a model and has none.

mod server;

use std::{
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{ArgGroup, Args};
use gyrus::runtime::Home;
use gyrus_kernel::StandingRun;
use gyrus_models::{
    CallStyle, Catalogue, Effort, MeasuredModels, Measurements, PictureSource, ProbeFinding,
    ProbePictures,
};
use gyrus_process::keeper::{self, KeeperLevel};
use gyrus_runtime::request::ModelFlags;
use gyrus_text::visible;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::Value;
use tokio::runtime::Runtime;
use toml_edit::{DocumentMut, InlineTable, Item, Table, value};

use crate::{
    Gyrus, browser,
    commands::doctor::{DoctorFinding, sandboxed},
    config::Config,
    discover, drive, env,
    exit::Code,
    failure::Failure,
    inside_run,
    keys::{KeyLookup, KeySource},
    measuring::measure,
    model_choice::{self, ModelChoice},
    private_file, procedures,
};
use gyrus_surfaces::{console::Painter, console::put, projection::Tone, terminal};

/// Find or store a key, or name a server of yours, and prove that everything works
///
/// Without arguments, at a terminal, it asks. It never shows a key, and stores none in the
/// configuration itself: only where it is. What it measures of the model is kept, as by `gyrus
/// models check`.
#[derive(Default, Args)]
#[command(group(ArgGroup::new("key").requires("provider")))]
pub(crate) struct SetupCommand {
    /// The address of a server that needs no key, like http://127.0.0.1:8080, and #MODEL if it has
    /// several
    #[arg(conflicts_with_all = ["provider", "key"])]
    address: Option<String>,
    /// The provider whose key is to be stored
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The key is in this environment variable whenever gyrus runs
    #[arg(long, value_name = "NAME", group = "key")]
    key_env: Option<String>,
    /// The key is in this file, which only you may read
    #[arg(long, value_name = "FILE", group = "key")]
    key_file: Option<PathBuf>,
    /// This command prints the key, like `pass show anthropic`
    #[arg(long, value_name = "COMMAND", group = "key")]
    key_command: Option<String>,
    /// Read the key from standard input and keep it in a file that only you can read
    #[arg(long, group = "key")]
    key_stdin: bool,
}

/// Returns the models that the person named or that can be reached without being named, or none:
/// for runs that may never ask one. Does not start the setup.
pub(crate) fn model_if_any(
    runtime: &Runtime,
    gyrus: &Gyrus,
    config: &Config,
    flags: &ModelFlags,
) -> Result<ModelChoice, Failure> {
    if let Some(named) = ModelChoice::named(gyrus, config, flags)? {
        return Ok(named);
    }
    match runtime.block_on(discover::first(gyrus, config))? {
        Some(name) => Ok(ModelChoice::parse([name.as_str()])?.with(flags.effort, flags.tools)),
        None => Ok(ModelChoice::none()),
    }
}

/// Returns the models that the person named, or that can be reached without being named: a provider
/// whose key is set, a server on this machine. At a terminal, the setup starts if there is none.
pub(crate) fn model_choice(
    runtime: &Runtime,
    gyrus: &Gyrus,
    config: &Config,
    flags: &ModelFlags,
) -> Result<ModelChoice, Failure> {
    let found = model_if_any(runtime, gyrus, config, flags)?;
    if !found.is_none() {
        return Ok(found);
    }
    let set_up = if offer(gyrus)? {
        ModelChoice::named(gyrus, &gyrus.config()?, flags)?
    } else {
        None
    };
    set_up.ok_or_else(|| {
        Failure::usage("there is no model to ask").hint(format!(
            "`gyrus setup` finds or stores a key and proves it; or name one: --model PROVIDER, \
             --model http://HOST/v1#NAME, {}=…; `gyrus demo` needs none",
            env::GYRUS_MODEL
        ))
    })
}

/// Returns the models for a new run with this configuration of its loop; a replay needs none.
pub(crate) fn models_for(
    runtime: &Runtime,
    gyrus: &Gyrus,
    config: &Config,
    flags: &ModelFlags,
    loop_config: &Value,
) -> Result<ModelChoice, Failure> {
    let found = if procedures::is_replay(loop_config) {
        model_if_any(runtime, gyrus, config, flags)
    } else {
        model_choice(runtime, gyrus, config, flags)
    };
    Ok(found?.for_goal(loop_config))
}

/// Returns the models for a resumed run: those that are named, else those that the run had.
pub(crate) fn models_again(
    runtime: &Runtime,
    gyrus: &Gyrus,
    config: &Config,
    flags: &ModelFlags,
    before: &StandingRun,
) -> Result<ModelChoice, Failure> {
    let again = ModelChoice::again(flags, before)?;
    if again.is_none() {
        return model_if_any(runtime, gyrus, config, flags);
    }
    Ok(again)
}

/// Offers the setup of a model to a person at a terminal who has none. Returns whether it was done.
fn offer(gyrus: &Gyrus) -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Ok(false);
    }
    put("There is no model to ask yet. Set one up now? (y/n) ")?;
    if !matches!(line()?.as_str(), "y" | "yes") {
        return Ok(false);
    }
    let setup = SetupCommand::default();
    Ok(setup.execute(gyrus)? == Code::Reached)
}

impl SetupCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("store keys")?;
        let home = gyrus.home()?;
        home.store()?;
        let catalogue = model_choice::catalogue(gyrus)?;
        let runtime = drive::runtime()?;
        let painter = Painter::new(&io::stderr(), gyrus.environment.plain);
        let (name, new) = self.named_or_found(gyrus, &catalogue, &runtime)?;
        // What was stored before stays until the new one is proven.
        let config = gyrus.config()?;
        let mut keys = KeyLookup::new(&config.keys);
        if let Some(new) = &new {
            keys = keys.trying(&new.variable, &new.key);
        }
        let plain = gyrus.environment.plain;
        let proven = runtime.block_on(prove_model(&keys, &catalogue, &name, (&painter, plain)))?;
        match &proven {
            Some(measured) => {
                if let Some(new) = &new {
                    new.store(&home, &name)?;
                }
                home.create_state()?;
                MeasuredModels::add(&home.state, &measured.model, measured)?;
                if config.model.is_empty() || self.address.is_some() {
                    store_model(&home, &name)?;
                }
            }
            None => put("nothing was stored\n")?,
        }
        say(&painter, "commands", prove_keeper())?;
        say(&painter, "sandbox", prove_sandbox(gyrus))?;
        say(&painter, "browser", runtime.block_on(prove_browser(&home)))?;
        runtime.shutdown_background();
        if proven.is_none() {
            return Ok(Code::ModelUnreachable);
        }
        put(
            "\nThree to try next:\n  gyrus run \"what is in this folder?\"\n  gyrus                    \
             a line prompt\n  gyrus models check       what the model can really do\n",
        )?;
        Ok(Code::Reached)
    }

    /// Returns the model to test, and the key to store with it: as named, as found on this machine,
    /// or as typed.
    fn named_or_found(
        &self,
        gyrus: &Gyrus,
        catalogue: &Catalogue,
        runtime: &Runtime,
    ) -> Result<(String, Option<NewKey>), Failure> {
        if let Some(address) = &self.address {
            return Ok((
                runtime.block_on(server::model_at(address, catalogue))?,
                None,
            ));
        }
        if let Some(provider) = &self.provider {
            return Ok((provider.clone(), self.new_key(catalogue, provider)?));
        }
        let config = gyrus.config()?;
        let mut found = discover::with_keys(catalogue, &KeyLookup::new(&config.keys));
        found.extend(runtime.block_on(discover::local(catalogue)));
        for one in &found {
            put(&format!("found {}: {}\n", one.name, one.how))?;
        }
        if let Some(one) = found.into_iter().next() {
            return Ok((one.name, None));
        }
        match ask_for_key(catalogue)? {
            Some((provider, key)) => Ok((provider, Some(key))),
            None => Err(
                Failure::usage("no key is set, and no server on this machine answers").hint(
                    "run `gyrus setup` at a terminal, or: gyrus setup --provider NAME --key-stdin; \
                     or name a server: gyrus setup http://HOST:PORT",
                ),
            ),
        }
    }

    fn new_key(&self, catalogue: &Catalogue, provider: &str) -> Result<Option<NewKey>, Failure> {
        let variable = variable(catalogue, provider)?;
        let source = if let Some(name) = &self.key_env {
            let name = shell_word(name)?;
            if env::variable(name).is_none() {
                return Err(Failure::usage(format!("the variable `{name}` is not set"))
                    .hint("set the variable and try again; nothing was stored"));
            }
            // Another variable than the provider's own.
            if name == variable {
                return Ok(None);
            }
            KeySource::Command(format!("printenv {name}"))
        } else if let Some(file) = &self.key_file {
            let file = std::path::absolute(file).map_err(|error| {
                Failure::usage(format!("invalid path {}", file.display())).because(&error)
            })?;
            KeySource::File(file)
        } else if let Some(command) = &self.key_command {
            KeySource::Command(command.clone())
        } else if self.key_stdin {
            let mut key = String::new();
            io::stdin().lock().take(1 << 16).read_to_string(&mut key)?;
            return NewKey::typed(variable, &key).map(Some);
        } else {
            return Ok(None);
        };
        Ok(Some(NewKey {
            key: source.read(&variable)?,
            variable,
            source: Some(source),
        }))
    }
}

struct NewKey {
    variable: String,
    key: String,
    /// The source of the key; `None` for a key that is stored in a file.
    source: Option<KeySource>,
}

impl NewKey {
    fn typed(variable: String, key: &str) -> Result<Self, Failure> {
        let key = key.trim();
        let is_odd = |c: char| gyrus_text::is_unseen(c) || c.is_whitespace();
        if key.is_empty() || key.chars().any(is_odd) {
            return Err(
                Failure::usage("that is not a key: it is empty, or has spaces in it")
                    .hint("copy the whole key, and nothing else"),
            );
        }
        Ok(Self {
            variable,
            key: key.to_owned(),
            source: None,
        })
    }

    fn store(&self, home: &Home, provider: &str) -> Result<(), Failure> {
        if let Some(source) = &self.source {
            return remember(home, &self.variable, source);
        }
        let file = write_key(home, provider, &self.key)?;
        put(&format!(
            "the key is kept in {}, which only you can read\n",
            file.display()
        ))?;
        remember(home, &self.variable, &KeySource::File(file))
    }
}

fn variable(catalogue: &Catalogue, provider: &str) -> Result<String, Failure> {
    match catalogue.key_variables(provider).first() {
        Some(variable) => Ok(variable.clone()),
        None => Err(
            Failure::usage(format!("`{provider}` is not a provider that takes a key")).hint(
                format!(
                    "known are {}",
                    catalogue.providers().collect::<Vec<_>>().join(", ")
                ),
            ),
        ),
    }
}

fn shell_word(name: &str) -> Result<&str, Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        Ok(name)
    } else {
        Err(Failure::usage(format!(
            "`{name}` is not the name of a variable"
        )))
    }
}

/// Asks at the terminal for a provider and its key; `None` without a terminal.
fn ask_for_key(catalogue: &Catalogue) -> Result<Option<(String, NewKey)>, Failure> {
    if !terminal::can_ask() {
        return Ok(None);
    }
    let providers: Vec<&str> = catalogue
        .providers()
        .filter(|provider| !catalogue.without_key().any(|open| open == *provider))
        .collect();
    put("No key is set, and no server on this machine answers.\n")?;
    for (number, provider) in (1..).zip(&providers) {
        put(&format!("  {number}  {provider}\n"))?;
    }
    let provider = loop {
        put("Whose key do you have? (number or name, empty to leave) ")?;
        let given = line()?;
        if given.is_empty() {
            return Ok(None);
        }
        let by_number = given.parse::<usize>().ok();
        let chosen = match by_number {
            Some(number) => providers.get(number.wrapping_sub(1)),
            None => providers.iter().find(|provider| **provider == given),
        };
        match chosen {
            Some(provider) => break *provider,
            None => put("that is none of them\n")?,
        }
    };
    put(&format!("The key for {provider} (it is not shown): "))?;
    let key = without_echo(line)?;
    put("\n")?;
    if key.is_empty() {
        return Ok(None);
    }
    let key = NewKey::typed(variable(catalogue, provider)?, &key)?;
    Ok(Some((provider.to_owned(), key)))
}

pub(crate) fn line() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Calls `read` with the terminal's echo off, for text that nobody should see on the screen.
pub(crate) fn without_echo(read: fn() -> Result<String, Failure>) -> Result<String, Failure> {
    let stdin = io::stdin();
    let before = tcgetattr(&stdin).map_err(io::Error::from)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(io::Error::from)?;
    let read = read();
    tcsetattr(&stdin, OptionalActions::Now, &before).map_err(io::Error::from)?;
    read
}

/// Stores a secret that is not the key of a provider.
pub(crate) fn store_secret(home: &Home, variable: &str, secret: &str) -> Result<PathBuf, Failure> {
    let path = write_key(home, variable, secret)?;
    remember(home, variable, &KeySource::File(path.clone()))?;
    Ok(path)
}

/// Stores a key in a separate file beside the configuration.
pub(crate) fn write_key(home: &Home, provider: &str, key: &str) -> Result<PathBuf, Failure> {
    let path = home.config.with_file_name("keys").join(provider);
    private_file::write(&path, format!("{key}\n").as_bytes()).map_err(|error| {
        Failure::usage(format!("{} cannot be written", path.display())).because(&error)
    })?;
    Ok(path)
}

fn remember(home: &Home, variable: &str, source: &KeySource) -> Result<(), Failure> {
    edit(&home.config, |document| put_key(document, variable, source))
}

/// Writes the place of a key into the configuration.
pub(crate) fn put_key(
    document: &mut DocumentMut,
    variable: &str,
    source: &KeySource,
) -> Result<(), Failure> {
    let mut place = InlineTable::new();
    match source {
        KeySource::File(path) => {
            let path = path.to_str().ok_or_else(|| {
                Failure::usage(format!("the name {} is not valid UTF-8", path.display()))
            })?;
            place.insert("file", path.into());
        }
        KeySource::Command(line) => {
            place.insert("command", line.into());
        }
    }
    let keys = document.entry("keys").or_insert(Item::Table(Table::new()));
    keys[variable] = value(place);
    Ok(())
}

/// Edits the configuration file and preserves the rest of its content, comments included. The
/// result is read as runs read it before it takes the file's place.
pub(crate) fn edit(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!("{} cannot be written", path.display())).because(&error)
    };
    // What cannot be read must not be overwritten.
    Config::read(path)?;
    let text = match gyrus_process::read_regular_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| Failure::usage(error))?;
    change(&mut document)?;
    Config::parse(path, &document.to_string())?;
    private_file::write(path, document.to_string().as_bytes()).map_err(failed)
}

fn store_model(home: &Home, name: &str) -> Result<(), Failure> {
    edit(&home.config, |document| {
        document["model"] = value(name);
        Ok(())
    })?;
    Ok(put(&format!(
        "runs ask {} ({})\n",
        visible(name),
        home.config.display()
    ))?)
}

enum SetupProof {
    Good(String),
    Gap(String),
    Bad(String),
}

fn say(painter: &Painter, what: &str, proof: SetupProof) -> Result<(), Failure> {
    let (paint, mark, words) = match proof {
        SetupProof::Good(words) => (Tone::Call, '✓', words),
        SetupProof::Gap(words) => (Tone::Observation, '!', words),
        SetupProof::Bad(words) => (Tone::Bad, '✗', words),
    };
    let words = visible(&words).into_owned();
    Ok(put(&format!(
        "{} {what}: {words}\n",
        painter.paint(paint, &mark.to_string())
    ))?)
}

/// Measures the model that runs ask most; `None` if it does not answer.
async fn prove_model(
    keys: &KeyLookup<'_>,
    catalogue: &Catalogue,
    name: &str,
    (painter, plain): (&Painter, bool),
) -> Result<Option<Measurements>, Failure> {
    let blobs: Arc<dyn PictureSource> = Arc::new(ProbePictures::new());
    let candidates = match model_choice::connected(name, keys, catalogue, &blobs).await {
        Ok(candidates) => candidates,
        Err(failure) => {
            say(painter, "model", SetupProof::Bad(failure.to_string()))?;
            return Ok(None);
        }
    };
    let Some(candidate) = candidates.into_iter().next() else {
        return Ok(None);
    };
    put(&format!("asking {}\n", visible(candidate.model.name())))?;
    let effort = Effort::default();
    let measured = measure(&*candidate.model, effort, plain, put).await?;
    let name = &measured.model;
    let slow = if measured.is_slow() { ", slowly" } else { "" };
    let proof = match (&measured.answers, measured.calls) {
        (ProbeFinding::Works, Some(CallStyle::Native)) => {
            SetupProof::Good(format!("{name} answers and calls tools{slow}"))
        }
        (ProbeFinding::Works, Some(CallStyle::Prompted | CallStyle::Bound)) => SetupProof::Good(
            format!("{name} answers and calls tools that its prompt describes{slow}"),
        ),
        (ProbeFinding::Works, None) => SetupProof::Gap(format!(
            "{name} answers{slow}; tool calls: {}",
            measured.tools
        )),
        (other, _) => SetupProof::Bad(format!("{name}: {other}")),
    };
    say(painter, "model", proof)?;
    Ok((measured.answers == ProbeFinding::Works).then_some(measured))
}

fn prove_keeper() -> SetupProof {
    match keeper::probe() {
        Ok(KeeperLevel::Namespace) => {
            SetupProof::Good("they run in a process namespace and die with their run".to_owned())
        }
        Ok(KeeperLevel::Subreaper) => SetupProof::Gap(
            "they die with their run, unless both halves of their keeper are killed at once"
                .to_owned(),
        ),
        Err(error) => SetupProof::Bad(error.to_string()),
    }
}

/// Tries the sandbox, and reports each part that does not hold, with the reason.
fn prove_sandbox(gyrus: &Gyrus) -> SetupProof {
    match sandboxed(gyrus) {
        DoctorFinding::Good(words) => SetupProof::Good(words),
        DoctorFinding::Gap(words) => SetupProof::Gap(words),
        DoctorFinding::Bad(failure) => SetupProof::Bad(failure.to_string()),
    }
}

/// Shows an empty page in the browser that runs would have.
async fn prove_browser(home: &Home) -> SetupProof {
    match browser::missing() {
        Some(none) => SetupProof::Gap(none.to_string()),
        None => match browser::prove(home).await {
            Ok(words) => SetupProof::Good(words),
            Err(why) => SetupProof::Gap(why),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn home(folder: &Path) -> Home {
        Home::at(folder.to_owned(), None)
    }

    #[test]
    fn a_key_is_kept_apart_and_the_configuration_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        fs::write(&home.config, "# mine\nloop = \"react\" # as always\n").unwrap();
        let key = NewKey::typed("SOMEONE_API_KEY".to_owned(), " a-key \n").unwrap();
        let path = write_key(&home, "someone", &key.key).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        remember(&home, "SOMEONE_API_KEY", &KeySource::File(path)).unwrap();
        let text = fs::read_to_string(&home.config).unwrap();
        assert!(
            text.starts_with("# mine\nloop = \"react\" # as always\n"),
            "{text}"
        );
        assert!(!text.contains("a-key"));
        let config = Config::read(&home.config).unwrap();
        assert_eq!(
            KeyLookup::new(&config.keys)
                .get("SOMEONE_API_KEY")
                .as_deref(),
            Some("a-key")
        );
        assert!(NewKey::typed(String::new(), "two words").is_err());
        assert!(NewKey::typed(String::new(), "").is_err());
        // A configuration that cannot be read is left alone.
        fs::write(&home.config, "loop = ").unwrap();
        assert!(remember(&home, "X", &KeySource::Command("true".into())).is_err());
        assert_eq!(fs::read_to_string(&home.config).unwrap(), "loop = ");
    }
}
