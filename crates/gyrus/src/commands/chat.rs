//! `gyrus chat`

use std::io::{IsTerminal as _, stdin};

use clap::{Args, Subcommand, ValueEnum};
use gyrus_chat::{PAIRING_MINUTES, is_telegram_token, read_chats};
use gyrus_surfaces::{console::put, output};
use gyrus_text::{counted, one_line, percent_encoded, utc};
use serde_json::json;

use super::listing::ListFlags;
use crate::{
    Gyrus,
    config::{ChatSection, Config},
    drive,
    exit::Code,
    failure::Failure,
    inside_run,
    serve::client::ServerLocation,
    setup,
};

/// Let people use the server from a messenger, and list who may
///
/// A chat is a section of config.toml, such as [chat.telegram]; it begins with `gyrus serve`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ChatArguments {
    #[command(subcommand)]
    command: Option<ChatCommand>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum ChatCommand {
    /// List who may use the chats
    List(ListFlags),
    /// Print a code that pairs whoever sends it to the chat with the server
    ///
    /// It counts once, for ten minutes, and not after five wrong ones. Who is paired may do there
    /// what you may: start and stop runs, and answer their questions.
    Pair {
        /// The messenger
        chat: ChatName,
    },
    /// Take a person's right to use a chat
    Remove {
        /// The messenger
        chat: ChatName,
        /// The person's id, from the list
        #[arg(allow_hyphen_values = true)]
        person: String,
    },
    /// Store the token of a chat's account, read from standard input
    Token {
        /// The messenger
        chat: ChatName,
    },
}

/// The messengers that there are.
#[derive(Clone, Copy, ValueEnum)]
enum ChatName {
    Telegram,
}

impl ChatName {
    fn name(self) -> &'static str {
        match self {
            ChatName::Telegram => "telegram",
        }
    }

    fn section(self, config: &Config) -> Option<&ChatSection> {
        match self {
            ChatName::Telegram => config.chat.telegram.as_ref(),
        }
    }

    /// Returns the variable of the token, unless the configuration names another.
    fn variable(self) -> &'static str {
        match self {
            ChatName::Telegram => "TELEGRAM_TOKEN",
        }
    }

    fn is_person(self, person: &str) -> bool {
        match self {
            ChatName::Telegram => person.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }

    /// Checks a token; the error is text, with a hint.
    fn check_token(self, token: &str) -> Result<(), (&'static str, &'static str)> {
        match self {
            ChatName::Telegram if is_telegram_token(token) => Ok(()),
            ChatName::Telegram => Err((
                "that is not the token of a bot; nothing was stored",
                "it looks like 123456789:AAE…; @BotFather shows it again by /token",
            )),
        }
    }

    fn token_question(self) -> &'static str {
        match self {
            ChatName::Telegram => "The token that @BotFather gave you (it is not shown): ",
        }
    }

    /// Returns the lines of a section that are needed beside the token.
    fn needed(self) -> &'static str {
        match self {
            ChatName::Telegram => "  workdir = \"~/notes\"\n",
        }
    }
}

impl ChatArguments {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            None => list(gyrus, &self.list),
            Some(ChatCommand::List(flags)) => list(gyrus, &flags),
            Some(ChatCommand::Pair { chat }) => pair(gyrus, chat),
            Some(ChatCommand::Remove { chat, person }) => remove(gyrus, chat, &person),
            Some(ChatCommand::Token { chat }) => token(gyrus, chat),
        }
    }
}

fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let chats = read_chats(&gyrus.store()?)
        .map_err(|error| Failure::failed("the chats cannot be read").because(&error))?;
    let mut out = output::standard();
    let mut count = 0;
    for (chat, record) in &chats {
        for person in record.people() {
            count += 1;
            let item = json!({
                "chat": chat,
                "person": person.id,
                "name": person.name,
                "since": utc(person.since_ms),
            });
            if flags.shows(&mut out, &item)? {
                let (id, name) = (&person.id, one_line(&person.name));
                writeln!(out, "{chat}  {id}  {name}, since {}", utc(person.since_ms))?;
            }
        }
        if flags.is_json() {
            continue;
        }
        if record.waiting() > 0 {
            writeln!(
                out,
                "{chat}: {} to be sent",
                counted(record.waiting(), "message")
            )?;
        }
        if record.unknown() > 0 {
            let messages = counted(record.unknown(), "message");
            writeln!(out, "{chat}: the delivery of {messages} is unknown")?;
        }
    }
    if count == 0 && !flags.is_json() {
        writeln!(
            out,
            "nobody is paired with a chat; to pair somebody: gyrus chat pair telegram"
        )?;
    }
    Ok(Code::Reached)
}

fn pair(gyrus: &Gyrus, chat: ChatName) -> Result<Code, Failure> {
    inside_run::refuse("pair people with chats")?;
    let server = ServerLocation::of(&gyrus.home()?);
    let path = format!("/api/chats/{}/codes", chat.name());
    let made = drive::runtime()?.block_on(server.post(&path, &json!({})))?;
    let code = made["code"].as_str().unwrap_or_default();
    writeln!(output::standard(), "/pair {code}")?;
    put(&format!(
        "send this to the bot, in a conversation with it alone; it counts once, within \
         {PAIRING_MINUTES} minutes\n"
    ))?;
    Ok(Code::Reached)
}

fn remove(gyrus: &Gyrus, chat: ChatName, person: &str) -> Result<Code, Failure> {
    inside_run::refuse("change who may use chats")?;
    if !chat.is_person(person) {
        return Err(
            Failure::usage(format!("`{person}` is not the id of a person"))
                .hint("see the list: gyrus chat list"),
        );
    }
    let server = ServerLocation::of(&gyrus.home()?);
    let chat = chat.name();
    let path = format!("/api/chats/{chat}/people/{}", percent_encoded(person));
    drive::runtime()?.block_on(server.delete(&path))?;
    put(&format!("{person} may not use {chat} any more\n"))?;
    Ok(Code::Reached)
}

fn token(gyrus: &Gyrus, chat: ChatName) -> Result<Code, Failure> {
    inside_run::refuse("store tokens")?;
    let config = gyrus.config()?;
    let section = chat.section(&config);
    let variable = section.map_or(chat.variable(), |section| &*section.token);
    if !crate::agent_files::is_variable(variable) {
        return Err(Failure::usage("`token` in config.toml names no variable")
            .hint(format!("write token = \"{}\"", chat.variable())));
    }
    let token = if stdin().is_terminal() {
        put(chat.token_question())?;
        let token = setup::without_echo(setup::line)?;
        put("\n")?;
        token
    } else {
        setup::line()?
    };
    chat.check_token(&token)
        .map_err(|(why, hint)| Failure::usage(why).hint(hint))?;
    let path = setup::store_secret(&gyrus.home()?, variable, &token)?;
    put(&format!("stored in {}\n", path.display()))?;
    if section.is_none() {
        let (name, needed) = (chat.name(), chat.needed());
        put(&format!(
            "now describe the chat in config.toml, and start the server:\n  [chat.{name}]\n  token \
             = \"{variable}\"\n{needed}"
        ))?;
    }
    Ok(Code::Reached)
}
