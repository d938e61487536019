//! The program around an editor: what its sessions can choose, and the runs of its prompts.
//!
//! `turn` drives one run on threads of its own, whose tools respect what is not saved (`unsaved`).

mod turn;
mod unsaved;

use std::path::{Path, PathBuf};

use gyrus::runtime::{self, Home};
use gyrus_acp::{
    AcpHost, SessionSettings, SettingChoice, SettingChoices, TurnAtWork, TurnControls, TurnRequest,
};
use gyrus_contract::{BoxedFuture, Mode, Origin, Principal, RunId, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, Ending};
use gyrus_loops::ThinkingStrategy;
use gyrus_runtime::request::{Approve, RunFlags, RunRequest};
use gyrus_surfaces::terminal;

use crate::{
    Gyrus, attachments, discover, exit, failure::Failure, keys::KeyLookup, model_choice,
    new_run::RunBuilder, serve, skills, which_loop,
};

/// Names of the sizes of a provider's models.
const TIERS: [&str; 3] = ["small", "medium", "large"];

pub(crate) struct Editor {
    gyrus: Gyrus,
    home: Home,
    store: Store,
    flags: RunFlags,
    processes: serve::Processes,
}

impl Editor {
    pub(crate) fn new(gyrus: &Gyrus, flags: RunFlags) -> Result<Self, Failure> {
        let home = gyrus.home()?;
        Ok(Self {
            gyrus: gyrus.clone(),
            store: home.store()?,
            home,
            flags,
            processes: serve::Processes::new(None, Vec::new()),
        })
    }

    fn flags_of(&self, folder: &Path, settings: &SessionSettings) -> Result<RunFlags, Failure> {
        let mut flags = self.flags.clone();
        let mode: Mode = settings
            .mode
            .parse()
            .map_err(|error: gyrus_contract::ModeError| Failure::usage(error.to_string()))?;
        // A word that means more than its mode holds as long as the mode is the same.
        if flags.approvals.mode() != Some(mode) {
            flags.approvals.approve = Some(Approve::Mode(mode));
        }
        flags.cognitive_loop = Some(settings.cognitive_loop.clone());
        if !settings.model.is_empty() {
            flags.model.names = vec![settings.model.clone()];
        }
        flags.workdir = Some(folder.to_owned());
        Ok(flags)
    }

    fn try_choices(&self) -> Result<SettingChoices, Failure> {
        let config = self.gyrus.config()?;
        let mode = self.flags.approvals.mode().or(config.approve);
        let named = self.flags.cognitive_loop.as_ref();
        let named = named.or(config.cognitive_loop.as_ref());
        let mut models = vec![choice("", "As configured", "")];
        models.extend(config.model.iter().map(|name| choice(name, name, "")));
        let catalogue = model_choice::catalogue(&self.gyrus)?;
        for found in discover::with_keys(&catalogue, &KeyLookup::new(&config.keys)) {
            for tier in TIERS {
                let name = format!("{}:{tier}", found.name);
                models.push(choice(&name, &name, &found.how));
            }
        }
        let loops = ThinkingStrategy::ALL
            .map(|strategy| choice(strategy.loop_name(), strategy.loop_name(), ""));
        let auto = choice(which_loop::AUTO, which_loop::AUTO, "chosen by the goal");
        Ok(SettingChoices {
            chosen: SessionSettings {
                mode: mode.unwrap_or_default().to_string(),
                cognitive_loop: named.map_or(which_loop::AUTO, String::as_str).to_owned(),
                model: String::new(),
            },
            modes: Mode::ALL
                .map(|(mode, name)| choice(name, name, about(mode)))
                .to_vec(),
            loops: [auto].into_iter().chain(loops).collect(),
            models,
        })
    }

    fn try_check(&self, folder: &Path, settings: &SessionSettings) -> Result<(), Failure> {
        let flags = self.flags_of(folder, settings)?;
        if !settings.model.is_empty() {
            model_choice::ModelChoice::parse([settings.model.as_str()])?;
        }
        let config = self.gyrus.config()?;
        let request = RunRequest::with_flags(Text::new("", Origin::Kernel), flags);
        let builder = RunBuilder::new(&self.gyrus, &self.home, &config, &request);
        builder.new_run().map(drop)
    }
}

fn choice(value: &str, name: &str, about: &str) -> SettingChoice {
    SettingChoice {
        value: value.to_owned(),
        name: name.to_owned(),
        about: about.to_owned(),
    }
}

fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::ReadOnly => "Only what changes nothing",
        Mode::Ask => {
            "Changes that can be undone, and code in the sandbox; asks for everything else"
        }
        Mode::Edits => "As `ask`, also where there is no undo",
        Mode::Auto => "Asks before running code outside the sandbox, and for what is critical",
        Mode::Never => "As `ask`, but denies what it would have to ask for",
    }
}

impl AcpHost for Editor {
    fn store(&self) -> &Store {
        &self.store
    }

    fn person(&self) -> Principal {
        terminal::person(self.gyrus.environment.user.as_deref(), "editor")
    }

    fn choices(&self) -> Result<SettingChoices, String> {
        self.try_choices().map_err(|failure| failure.in_words())
    }

    fn folder(&self, given: &Path) -> Result<PathBuf, String> {
        let folder = runtime::workspace(&self.home, given).map_err(Failure::from);
        folder.map_err(|failure| failure.in_words())
    }

    fn check(&self, folder: &Path, settings: &SessionSettings) -> Result<(), String> {
        let checked = self.try_check(folder, settings);
        checked.map_err(|failure| failure.in_words())
    }

    fn skills(&self, folder: &Path) -> Vec<(String, String)> {
        // Whatever is wrong with them is said when a run would follow one.
        skills::names(&self.home, folder).unwrap_or_default()
    }

    fn picture(&self, bytes: Vec<u8>) -> Result<Attachment, String> {
        let picture = attachments::picture_of(bytes, "a picture");
        picture.map_err(|failure| failure.in_words())
    }

    fn begin(&self, request: TurnRequest, controls: TurnControls) -> TurnAtWork {
        turn::begin(
            &self.gyrus,
            self.flags_of(&request.folder, &request.settings),
            request,
            controls,
        )
    }

    fn ending(&self, run: RunId, ending: &Ending) -> Option<String> {
        let said = exit::say(ending, &run.short())?;
        Some(gyrus_text::readable(&format!("{}\n\n{}", said.what, said.next)).into_owned())
    }

    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>> {
        Box::pin(async move { serve::printed(&self.processes, &arguments).await })
    }
}
