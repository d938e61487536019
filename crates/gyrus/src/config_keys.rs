//! Every key of `config.toml`, for people: what it sets, what holds without it, and which variable or
//! flag says the same. A test compares this table with what the file's reader knows.

use std::fmt::Write as _;

use toml::{Table, Value};

use crate::{Gyrus, config::Config, env, failure::Failure};

/// A key of the file.
pub(crate) struct ConfigKey {
    /// Its path; a part in capitals stands for a name that the person chooses.
    pub(crate) path: &'static str,
    pub(crate) example: &'static str,
    /// The value where nothing sets it; empty if there is none.
    pub(crate) default: &'static str,
    /// The variable of the environment that wins over it.
    pub(crate) variable: Option<&'static str>,
    /// The flag of `gyrus run` that wins over both.
    pub(crate) flag: Option<&'static str>,
    pub(crate) meaning: &'static str,
}

/// Begins a row of the table; methods add what few rows have.
const fn key(
    path: &'static str,
    example: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> ConfigKey {
    ConfigKey {
        path,
        example,
        default,
        variable: None,
        flag: None,
        meaning,
    }
}

impl ConfigKey {
    const fn variable(mut self, variable: &'static str) -> Self {
        self.variable = Some(variable);
        self
    }

    const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    /// Whether its value can be a secret, which is never shown.
    fn is_secret(&self) -> bool {
        const SECRET: [&str; 3] = ["mcp.NAME.env", "mcp.NAME.headers", "mcp.NAME.client_secret"];
        SECRET.contains(&self.path)
    }

    fn is_at(&self, path: &[String]) -> bool {
        self.path.split('.').count() == path.len() && self.is_below(path)
    }

    /// Whether it is at or below a path of the file.
    fn is_below(&self, path: &[String]) -> bool {
        let is_name = |part: &str| part.chars().all(|c| c.is_ascii_uppercase());
        let mut own = self.path.split('.');
        let fits = |part| own.next().is_some_and(|own| is_name(own) || own == part);
        path.iter().map(String::as_str).all(fits)
    }
}

/// All keys, in the order of the documentation.
pub(crate) const KEYS: [ConfigKey; 70] = [
    key("model", "\"anthropic\"", "the first that is found", "The models to ask, best first: one name, or a list of them.")
        .variable(env::GYRUS_MODEL).flag("--model"),
    key("assess", "\"anthropic:small\"", "nobody", "The models that take a second look at calls that reading does not explain."),
    key("policy", "\"order\"", "order", "What decides among models of one strength: `order`, `cost`, `latency` or `local-only`."),
    key("effort", "\"low\"", "the model's own", "The effort of thinking: one word, or a section with one for each purpose.").flag("--effort"),
    key("loop", "\"auto\"", "auto", "The loop that thinks: `auto`, `react`, `chain-of-thought`, `single-shot`, `plan`, `changeset`, `reactive`.").flag("--loop"),
    key("language-servers", "[\"gopls\"]", "all that are installed", "Language servers that may say what is wrong after an edit; `[]` is none.")
        .variable(env::GYRUS_LANGUAGE_SERVERS),
    key("approve", "\"ask\"", "ask", "What runs may do unasked: `read-only`, `ask`, `edits` or `never`; `auto` only by the flag.").flag("--approve"),
    key("on-ask", "\"park\"", "wait at a terminal, else deny", "What happens while a question waits: `wait`, `park` or `deny`.").flag("--on-ask"),
    key("reflect", "true", "false", "Whether a run that ends says what later ones can learn.").flag("--reflect"),
    key("limits.steps", "100", "35, 100 or 200 by the goal's size", "The most steps of a run.").flag("--max-steps"),
    key("limits.tokens", "500_000", "50,000 for each step", "The most tokens of a run, prompts and replies together.").flag("--max-tokens"),
    key("limits.cost", "2.50", "", "The most that a run may cost, in US dollars.").flag("--max-cost"),
    key("limits.time", "\"30m\"", "", "The longest that a run may take; waiting for a person does not count.").flag("--max-time"),
    key("engineer.docs", "\"docs\"", "", "The folder that is searched before planning, for runs with a judge.").flag("--docs"),
    key("approvals.expires", "\"24h\"", "24h", "How long an answer to a question counts."),
    key("approvals.notify", "\"notify-send gyrus\"", "", "A command line that is told when a run waits for you."),
    key("keys.VARIABLE.file", "\"/run/keys/a\"", "", "A file with the value of a variable that the environment does not set; readable by you alone."),
    key("keys.VARIABLE.command", "\"pass show a\"", "", "A command line that prints such a value."),
    key("memory.vault", "\"~/Documents/notes\"", "~/Documents/gyrus", "The folder of notes that runs remember by.").variable(env::GYRUS_VAULT),
    key("memory.lessons", "true", "true", "Whether runs are given lessons of earlier ones.").flag("--no-lessons"),
    key("memory.note-runs", "true", "true", "Whether your runs are noted when they end."),
    key("memory.embeddings.url", "\"http://127.0.0.1:8080/v1\"", "", "A server by which notes are found by their meaning; notes are sent to it."),
    key("memory.embeddings.model", "\"nomic-embed-text\"", "", "Its model."),
    key("memory.embeddings.key", "\"EMBEDDINGS_KEY\"", "", "The variable with its key."),
    key("delegate.enabled", "true", "where a goal asks for it or is large", "Whether models may start sub-runs."),
    key("delegate.at-once", "4", "4", "The most sub-runs that work at the same time."),
    key("delegate.runs", "16", "16", "The most runs below one that you began."),
    key("delegate.depth", "1", "1", "Levels of sub-runs: with 1, sub-runs start none."),
    key("delegate.models", "[\"ollama\"]", "", "Models that sub-runs may ask beside the run's own."),
    key("sandbox.env", "[\"DATABASE_URL\"]", "", "Variables that commands see; their values count as secrets.").flag("--env"),
    key("sandbox.env-shown", "[\"CC\"]", "", "Variables that commands see, whose values are no secrets."),
    key("sandbox.ports", "[5432]", "", "Ports of this machine that commands may connect to.").flag("--port"),
    key("sandbox.sockets", "[\"ssh-agent\"]", "", "Sockets of this machine that commands may connect to: `ssh-agent`, `docker`, or a path."),
    key("sandbox.folders", "[\"~/notes:ro\"]", "", "Folders beside the workspace; `:ro` means that one is only read.").flag("--add-dir"),
    key("sandbox.caches", "\"shared\"", "run", "Whether changes of package managers' caches stay with the `run`, or last (`shared`)."),
    key("sandbox.command-time", "\"1h\"", "", "The longest time limit of a command."),
    key("sandbox.background-after", "\"5m\"", "", "The time after which a command at your terminal goes on in the background, as by Ctrl-B."),
    key("sandbox.memory-mb", "4096", "16384", "Megabytes of memory that each process may write to."),
    key("mcp.NAME.command", "\"npx\"", "", "The program of a server whose tools runs have."),
    key("mcp.NAME.args", "[\"-y\"]", "", "Its arguments."),
    key("mcp.NAME.env", "{ A = \"1\" }", "", "Variables for it, besides the few that every server has."),
    key("mcp.NAME.network", "[\"registry.npmjs.org\"]", "", "Hosts that its sandbox opens; `*` is any."),
    key("mcp.NAME.folders", "[\"~/data\"]", "", "Folders beside that of the run which it may change."),
    key("mcp.NAME.url", "\"https://mcp.example.com/mcp\"", "", "The address of a server that gyrus does not start."),
    key("mcp.NAME.headers", "{ A = \"1\" }", "", "Headers of every request to it."),
    key("mcp.NAME.client_id", "\"gyrus\"", "", "The client that you registered for logging in there."),
    key("mcp.NAME.client_secret", "\"secret:NAME\"", "", "Its secret."),
    key("mcp.NAME.timeout", "\"5m\"", "2m", "How long it may say nothing about a call."),
    key("serve.origins", "[\"https://wiki.example\"]", "", "Other origins whose pages may show runs and answer, with a token."),
    key("telemetry.endpoint", "\"http://127.0.0.1:4318\"", "", "Where traces, metrics and logs of runs are sent.")
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT"),
    key("telemetry.service-name", "\"gyrus\"", "gyrus", "The name of this program there.").variable("OTEL_SERVICE_NAME"),
    key("telemetry.content", "false", "false", "Whether prompts and replies are sent.")
        .variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
    key("hooks.NAME.events", "[\"question.asked\"]", "", "Topics that a server tells an address or a command of."),
    key("hooks.NAME.url", "\"https://example.com/hook\"", "", "The address to which each event is posted."),
    key("hooks.NAME.secret", "\"HOOK_SECRET\"", "", "The variable with the secret by which deliveries are signed."),
    key("hooks.NAME.command", "\"notify-send gyrus\"", "", "A command line that gets each event on its standard input."),
    key("chat.telegram.token", "\"TELEGRAM_TOKEN\"", "", "The variable with the token of a bot by which you use a server."),
    key("chat.telegram.workdir", "\"~/notes\"", "", "The folder that its runs work in."),
    key("chat.telegram.options", "{ loop = \"react\" }", "", "Options of `gyrus run` for them, without dashes."),
    key("chat.telegram.groups", "[-100]", "", "Groups that may be used, by their ids."),
    key("chat.telegram.transcribe.url", "\"http://127.0.0.1:8080/v1\"", "", "A server that makes text of voice messages."),
    key("chat.telegram.transcribe.model", "\"whisper\"", "", "Its model."),
    key("chat.telegram.transcribe.key", "\"WHISPER_KEY\"", "", "The variable with its key."),
    key("chat.telegram.url", "\"https://api.telegram.org\"", "the messenger's own", "The address of the messenger's server."),
    key("web-search.provider", "\"searxng\"", "", "The service by which runs search the web: `searxng`, `brave`, `tavily` or `exa`; without it, runs cannot."),
    key("web-search.url", "\"http://127.0.0.1:8888\"", "the provider's own", "The address of its server; SearXNG needs one."),
    key("web-search.key", "\"SEARCH_KEY\"", "`BRAVE_API_KEY` and so on", "The variable with its key."),
    key("update.url", "\"https://example.com/gyrus\"", "", "Where `gyrus update` looks for packages; without it, nothing is ever looked for."),
    key("update.key", "\"ssh-ed25519 AAAA…\"", "", "The key that signs their checksums."),
    key("effort.PURPOSE", "\"high\"", "the model's own", "The effort of thinking for one purpose, such as `plan`.").flag("--effort"),
];

/// A key with the value that is in force, and where that comes from.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(crate) struct SetKey {
    pub(crate) key: String,
    /// As the file would have it; empty if nothing is in force.
    pub(crate) value: String,
    pub(crate) source: String,
}

/// Returns every key with the value that runs have without flags. Keys with a name of the person's
/// are there for each name that the file has.
///
/// # Errors
/// The file cannot be read, or has a mistake.
pub(crate) fn in_force(gyrus: &Gyrus) -> Result<Vec<SetKey>, Failure> {
    let file = gyrus.home()?.config;
    let text = gyrus_process::read_regular_text(&file).unwrap_or_default();
    Config::parse(&file, &text)?;
    let table: Table = toml::from_str(&text).unwrap_or_default();
    let mut written = Vec::new();
    flatten(&table, &mut Vec::new(), &mut written);
    let rows = KEYS.iter().flat_map(|key| set(key, &written));
    Ok(rows.collect())
}

/// Collects the values of the file by their paths, down to those of keys.
fn flatten(table: &Table, at: &mut Vec<String>, written: &mut Vec<(Vec<String>, Value)>) {
    for (name, value) in table {
        at.push(name.clone());
        match value {
            Value::Table(below) if !is_whole(at) => {
                flatten(below, at, written);
            }
            value => written.push((at.clone(), value.clone())),
        }
        at.pop();
    }
}

/// Whether what stands at a path of the file is one value, table or not.
fn is_whole(at: &[String]) -> bool {
    let mut keys = KEYS.iter().filter(|key| key.is_below(at)).peekable();
    keys.peek().is_some() && keys.all(|key| key.is_at(at))
}

fn set(key: &ConfigKey, written: &[(Vec<String>, Value)]) -> Vec<SetKey> {
    let row = |name: String, value: String, source: &str| SetKey {
        key: name,
        value,
        source: source.to_owned(),
    };
    let of_variable = key
        .variable
        .and_then(|name| Some((name, env::variable(name)?)));
    if let Some((name, value)) = of_variable {
        return vec![row(key.path.to_owned(), value, name)];
    }
    let of_file = written.iter().filter(|(path, _)| key.is_at(path));
    let of_file = of_file.map(|(path, value)| {
        let value = if key.is_secret() {
            "(not shown)".to_owned()
        } else {
            value.to_string()
        };
        row(path.join("."), value, "config.toml")
    });
    let of_file: Vec<_> = of_file.collect();
    if !of_file.is_empty() {
        return of_file;
    }
    // What holds for something that nobody named is no value.
    let is_of_named = key.path.starts_with("chat.") || key.path.contains(char::is_uppercase);
    if is_of_named || key.default.is_empty() {
        return vec![row(key.path.to_owned(), String::new(), "")];
    }
    vec![row(key.path.to_owned(), key.default.to_owned(), "default")]
}

/// Returns the page of the documentation about all keys.
pub(crate) fn reference() -> String {
    let mut page = "# Every key of `config.toml`\n\nWritten by `gyrus config --reference`, from the \
                    table by which the program knows them. `gyrus config` shows what is in force \
                    here, and where it comes from; [configuration.md](configuration.md) explains. A \
                    part of a key in capitals is a name of your own. A variable wins over the file, \
                    a flag of `gyrus run` over both.\n\n\
                    | key | such as | without it | variable, flag | what it sets |\n\
                    | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for key in &KEYS {
        let set_by = [key.variable, key.flag].into_iter().flatten();
        let set_by: Vec<_> = set_by.map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            page,
            "| `{}` | `{}` | {} | {} | {} |",
            key.path,
            key.example,
            key.default,
            set_by.join(", "),
            key.meaning
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The file with one key, its names being `x`.
    fn file(key: &ConfigKey) -> String {
        let parts = key.path.split('.').map(|part| match part {
            "VARIABLE" | "NAME" => "x",
            "PURPOSE" => "plan",
            part => part,
        });
        let parts: Vec<_> = parts.collect();
        // Sections whose other keys cannot be left out.
        let beside = match parts[..] {
            ["hooks", _, "events"] => "hooks.x.url = \"http://a\"\n",
            ["hooks", ..] => "hooks.x.events = [\"a\"]\n",
            ["memory", "embeddings", "url"] => "memory.embeddings.model = \"m\"\n",
            ["memory", "embeddings", "model"] => "memory.embeddings.url = \"u\"\n",
            ["memory", "embeddings", _] => {
                "memory.embeddings.url = \"u\"\nmemory.embeddings.model = \"m\"\n"
            }
            ["web-search", "url" | "key"] => "web-search.provider = \"brave\"\n",
            ["chat", _, "token"] => "chat.telegram.workdir = \"/w\"\n",
            ["chat", _, "workdir"] => "chat.telegram.token = \"T\"\n",
            ["chat", _, "transcribe", "url"] => {
                "chat.telegram.transcribe.model = \"m\"\nchat.telegram.token = \"T\"\n\
                 chat.telegram.workdir = \"/w\"\n"
            }
            ["chat", _, "transcribe", "model"] => {
                "chat.telegram.transcribe.url = \"u\"\nchat.telegram.token = \"T\"\n\
                 chat.telegram.workdir = \"/w\"\n"
            }
            ["chat", _, "transcribe", _] => {
                "chat.telegram.transcribe.url = \"u\"\nchat.telegram.transcribe.model = \"m\"\n\
                 chat.telegram.token = \"T\"\nchat.telegram.workdir = \"/w\"\n"
            }
            ["chat", ..] => "chat.telegram.token = \"T\"\nchat.telegram.workdir = \"/w\"\n",
            _ => "",
        };
        format!("{beside}{} = {}\n", parts.join("."), key.example)
    }

    #[test]
    fn every_example_is_read_and_found_again() {
        for key in &KEYS {
            let text = file(key);
            toml::from_str::<Config>(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let mut written = Vec::new();
            flatten(
                &toml::from_str(&text).unwrap(),
                &mut Vec::new(),
                &mut written,
            );
            let found = written.iter().any(|(path, _)| key.is_at(path));
            assert!(found, "{}: {written:?}", key.path);
        }
    }

    /// Whoever adds a key to the file's reader is told to add it here.
    #[test]
    fn no_key_is_missing() {
        let sections = [
            ("", ""),
            ("limits", "limits."),
            ("engineer", "engineer."),
            ("approvals", "approvals."),
            ("memory", "memory."),
            ("memory.embeddings", "memory.embeddings."),
            ("delegate", "delegate."),
            ("sandbox", "sandbox."),
            ("mcp.x", "mcp.NAME."),
            ("serve", "serve."),
            ("telemetry", "telemetry."),
            ("hooks.x", "hooks.NAME."),
            ("chat", "chat."),
            ("chat.telegram", "chat.telegram."),
            ("chat.telegram.transcribe", "chat.telegram.transcribe."),
            ("web-search", "web-search."),
            ("update", "update."),
        ];
        for (section, below) in sections {
            let head = if section.is_empty() {
                String::new()
            } else {
                format!("[{section}]\n")
            };
            let error = toml::from_str::<Config>(&format!("{head}unknown-key-9 = 1\n"));
            let error = error.unwrap_err().message().to_owned();
            let known: BTreeSet<&str> = error.split('`').skip(3).step_by(2).collect();
            assert!(!known.is_empty(), "{error}");
            for name in known {
                let path = format!("{below}{}", name.trim_start_matches("max-"));
                let is_there = KEYS
                    .iter()
                    .any(|key| key.path == path || key.path.starts_with(&format!("{path}.")));
                assert!(is_there, "{path}");
            }
        }
    }

    #[test]
    fn what_is_in_the_file_wins_over_the_default_and_secrets_are_not_shown() {
        let text = "approve = \"edits\"\n[mcp.a]\ncommand = \"x\"\nenv = { K = \"s3cret\" }\n";
        let mut written = Vec::new();
        flatten(
            &toml::from_str(text).unwrap(),
            &mut Vec::new(),
            &mut written,
        );
        let rows: Vec<_> = KEYS.iter().flat_map(|key| set(key, &written)).collect();
        let of = |name: &str| {
            let row = rows.iter().find(|row| row.key == name).unwrap();
            (row.value.as_str(), row.source.as_str())
        };
        assert_eq!(of("approve"), ("\"edits\"", "config.toml"));
        assert_eq!(of("mcp.a.command"), ("\"x\"", "config.toml"));
        assert_eq!(of("mcp.a.env"), ("(not shown)", "config.toml"));
        assert_eq!(of("policy"), ("order", "default"));
        assert_eq!(of("limits.cost"), ("", ""));
    }
}
