//! The chats of a server: those that the configuration describes.

use std::sync::Arc;

use gyrus_chat::{
    ChatAccount, ChatError, ChatHost, ChatSettings, ChatTasks, Messenger, Telegram, Transcription,
};
use gyrus_contract::{BoxedFuture, Origin, Principal, RunId};
use gyrus_kernel::latch::Latch;
use gyrus_runtime::{Event, EventId, queue::Gateway};
use gyrus_server::HostProgram;
use gyrus_surfaces::console::put;

use super::around::ServerProgram;
use crate::{
    Gyrus,
    agent_files::is_variable,
    config::{ChatSection, ModelServerSection},
    failure::Failure,
    keys::KeyLookup,
};

pub(super) struct ConfiguredChat {
    messenger: Arc<dyn Messenger>,
    settings: ChatSettings,
}

/// Reads the chats of the configuration. One without a token that can be used is left out, and the
/// person is told: everything else works without it.
pub(super) fn configured(gyrus: &Gyrus, latch: &Latch) -> Result<Vec<ConfiguredChat>, Failure> {
    let config = gyrus.config()?;
    let keys = KeyLookup::new(&config.keys);
    let mut chats = Vec::new();
    for (name, section) in [("telegram", &config.chat.telegram)] {
        let Some(section) = section else { continue };
        let wrong = |why: String| Failure::usage(format!("[chat.{name}] in config.toml: {why}"));
        let settings = settings(gyrus, latch, &keys, name, section).map_err(wrong)?;
        let token = token(&keys, name, &section.token).map_err(wrong)?;
        match token.and_then(|token| telegram(section, &token)) {
            Ok(messenger) => chats.push(ConfiguredChat {
                messenger,
                settings,
            }),
            Err(why) => put(&format!("chat {name} does not begin: {why}\n"))?,
        }
    }
    Ok(chats)
}

fn telegram(section: &ChatSection, token: &str) -> Result<Arc<dyn Messenger>, String> {
    let server = section.url.as_deref().unwrap_or(Telegram::SERVER);
    Ok(Arc::new(Telegram::new(server, token)?))
}

/// Ends the chats, each after the message in progress.
pub(super) async fn stop(chats: Vec<ChatTasks>) {
    for chat in chats {
        chat.stop().await;
    }
}

/// Starts the chats, and reports each.
pub(super) async fn begin(
    chats: Vec<ConfiguredChat>,
    gateway: &Gateway,
    around: &Arc<ServerProgram>,
) -> Result<Vec<ChatTasks>, Failure> {
    let (mut all, mut accounts) = (Vec::new(), Vec::new());
    for chat in chats {
        let host: Arc<dyn ChatHost> = around.clone();
        let begun = ChatAccount::begin(chat.messenger, chat.settings, gateway, host).await;
        let (account, tasks) = begun?;
        let surface = account.surface();
        put(&match account.people().len() {
            0 => format!("chat {surface} begins; nobody is paired: gyrus chat pair {surface}\n"),
            1 => format!("chat {surface} begins for 1 person\n"),
            people => format!("chat {surface} begins for {people} people\n"),
        })?;
        all.push(tasks);
        accounts.push(account);
    }
    let _ = around.chats.set(accounts);
    Ok(all)
}

fn settings(
    gyrus: &Gyrus,
    latch: &Latch,
    keys: &KeyLookup<'_>,
    name: &str,
    section: &ChatSection,
) -> Result<ChatSettings, String> {
    let home = gyrus.home().map_err(|failure| failure.message)?;
    let workdir = match (section.workdir.strip_prefix("~"), &home.person) {
        (Ok(rest), Some(person)) => person.join(rest),
        (Ok(_), None) => {
            return Err("invalid `workdir`: HOME is not set, or not absolute".to_owned());
        }
        (Err(_), _) => section.workdir.clone(),
    };
    if !workdir.is_absolute() {
        return Err("invalid `workdir`: it begins neither with / nor with ~/".to_owned());
    }
    if let Some(refused) = &section.options.refused {
        return Err(format!("`options`: {refused}"));
    }
    let transcription = section.transcribe.as_ref();
    let transcription = transcription.map(|section| transcribing(keys, section));
    Ok(ChatSettings {
        workdir,
        options: section.options.clone(),
        groups: section.groups.iter().map(ToString::to_string).collect(),
        latch: latch.clone(),
        transcription: transcription.transpose()?,
        folder: home.state.join("chats").join(name),
    })
}

fn transcribing(
    keys: &KeyLookup<'_>,
    section: &ModelServerSection,
) -> Result<Transcription, String> {
    let key = section.key.as_deref().map(|variable| {
        let key = keys.get(variable);
        key.ok_or_else(|| format!("`transcribe`: the key {variable} {}", why_unset(keys)))
    });
    let key = key.transpose()?;
    Transcription::new(&section.url, &section.model, key.as_deref())
        .map_err(|why| format!("`transcribe`: {why}"))
}

/// Reads the token of a chat; the inner error is about the token, not about the configuration.
fn token(
    keys: &KeyLookup<'_>,
    chat: &str,
    variable: &str,
) -> Result<Result<String, String>, String> {
    if !is_variable(variable) {
        // It may be the token itself, and is not shown.
        return Err(format!(
            "`token` names the variable with the token, like {}_TOKEN; the token itself is stored \
             by: gyrus chat token {chat}",
            chat.to_ascii_uppercase()
        ));
    }
    Ok(keys.get(variable).ok_or_else(|| {
        let why = why_unset(keys);
        format!("the token {variable} {why}; store it: gyrus chat token {chat}")
    }))
}

fn why_unset(keys: &KeyLookup<'_>) -> String {
    match keys.failure() {
        Some(failure) => format!("cannot be used: {}", failure.message),
        None => "is not set".to_owned(),
    }
}

impl ChatHost for ServerProgram {
    fn picture(&self, run: RunId) -> BoxedFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let picture = HostProgram::picture(self, run).await;
            picture.map_err(|error| error.message().to_owned())
        })
    }

    fn tell_agent<'a>(
        &'a self,
        agent: &'a str,
        words: &'a str,
        id: EventId,
        by: &'a Principal,
    ) -> BoxedFuture<'a, Result<(), String>> {
        let told = self.agents.tell(agent, move |topic| Event {
            id,
            ..Event::new(topic, &*by.id, Origin::Person, words.into())
        });
        Box::pin(async move { told.await.map(|_| ()).map_err(|error| error.to_string()) })
    }

    fn say(&self, text: &str) {
        // A server whose standard error is closed goes on.
        let _ = put(text);
    }
}

impl From<ChatError> for Failure {
    fn from(error: ChatError) -> Self {
        Self::failed("the chats cannot be used").because(&error)
    }
}
