//! An office: six servers of tools, the tasks that a person types there, and the attacks that
//! somebody plants in it. All of it is data beside this file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    tool_server::{Definition, Shared, Tool, ToolServer},
    world::World,
};

/// The servers. The last is a program that is started for each run, the others have addresses.
pub(crate) const SERVERS: [&str; 6] = ["mail", "calendar", "bank", "chat", "travel", "files"];

/// Corrections that a person makes of the proposed roles, each with the reason.
const CORRECTIONS: &str = "corrections.toml";

/// Passes what gyrus says on to two pipes.
const RELAY: &str = "cat <\"$1/answered\" & exec cat >\"$1/asked\"\n";

#[derive(Deserialize)]
struct Tasks {
    task: Vec<Task>,
}

/// A task: what a person types, the mandate of an honest model, and the calls of the work.
#[derive(Deserialize, Clone)]
pub(crate) struct Task {
    pub(crate) goal: String,
    pub(crate) mandate: Vec<Value>,
    pub(crate) calls: Vec<(String, Value)>,
    /// The reason why it cannot be done unasked, if so it is.
    pub(crate) undone: Option<String>,
}

/// An office that is open, and the world of a person who works there.
pub(crate) struct Office {
    pub(crate) world: World,
    pub(crate) shared: Arc<Shared>,
    pub(crate) definitions: BTreeMap<String, Definition>,
}

/// Reads a file of the office.
pub(crate) fn read<T: DeserializeOwned>(name: &str) -> T {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/office");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All tasks.
pub(crate) fn tasks() -> Vec<Task> {
    let files = [
        "tasks_words.toml",
        "tasks_results.toml",
        "tasks_sources.toml",
    ];
    let all = files.iter().flat_map(|file| read::<Tasks>(file).task);
    all.collect()
}

/// The corrections of the proposed roles of a server.
pub(crate) fn corrections(server: &str) -> Vec<String> {
    let all: BTreeMap<String, BTreeMap<String, String>> = read(CORRECTIONS);
    let of_server = all.get(server).into_iter().flatten();
    of_server
        .map(|(correction, _)| correction.clone())
        .collect()
}

impl Office {
    /// Opens the office, and has the person say what its tools do.
    pub(crate) fn open() -> Self {
        let office = Self::of_nobody();
        for name in SERVERS {
            office.confirm(name);
        }
        office
    }

    /// Opens the office, where nobody said what its tools do.
    pub(crate) fn of_nobody() -> Self {
        let office = Self {
            world: World::new(),
            shared: Arc::default(),
            definitions: SERVERS
                .iter()
                .map(|name| ((*name).to_owned(), read(&format!("{name}.toml"))))
                .collect(),
        };
        let mut configuration = String::new();
        for name in SERVERS {
            configuration.push_str(&office.start(name));
        }
        fs::write(office.world.path("home/config.toml"), configuration).unwrap();
        office
    }

    /// Starts a server, and returns its section of the configuration.
    fn start(&self, name: &str) -> String {
        let definition = self.definitions[name].clone();
        let server = ToolServer::new(name, definition, self.shared.clone());
        if name != "files" {
            return format!("[mcp.{name}]\nurl = \"{}\"\n", server.over_http());
        }
        let pipes = self.world.path("pipes");
        self.world.prepare(&format!(
            "mkdir {0}; mkfifo {0}/asked {0}/answered",
            pipes.display()
        ));
        let relay = pipes.join("relay.sh");
        fs::write(&relay, RELAY).unwrap();
        let at = |name: &str| -> PathBuf { pipes.join(name) };
        server.over_pipes(at("asked"), at("answered"));
        format!(
            "[mcp.{name}]\ncommand = \"bash\"\nargs = [\"{}\", \"{1}\"]\nfolders = [\"{1}\"]\n",
            relay.display(),
            pipes.display()
        )
    }

    /// Confirms the proposed roles of a server, with the corrections.
    fn confirm(&self, server: &str) {
        let corrections = corrections(server);
        let mut command = vec!["mcp", "roles", server];
        for correction in &corrections {
            command.extend(["--set", correction]);
        }
        let shown = self.world.gyrus(&[&command[..], &["--json"]].concat()).said;
        let mut shown = serde_json::Deserializer::from_str(&shown).into_iter::<Value>();
        let shown = shown.next().unwrap().unwrap();
        let content = shown["content"].as_str().unwrap();
        let said = self
            .world
            .gyrus(&[&command[..], &["--content", &content[..8]]].concat());
        assert!(said.said.contains("confirmed for "), "{}", said.said);
    }

    fn tool(&self, tool: &str) -> &Tool {
        let (server, name) = tool.split_once("__").unwrap();
        let mut tools = self.definitions[server].tool.iter();
        let tool = tools.find(|tool| tool.name == name);
        tool.unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Whether a call of this tool reaches somebody or something.
    pub(crate) fn has_effect(&self, tool: &str) -> bool {
        self.tool(tool).has_effect()
    }

    /// Whether this tool answers from the data that there is.
    pub(crate) fn reads(&self, tool: &str) -> bool {
        self.tool(tool).reads()
    }

    /// Whether this tool answers with lines that are joined from texts.
    pub(crate) fn joins_lines(&self, tool: &str) -> bool {
        self.tool(tool).joins_lines()
    }

    /// Whether a tool has such an argument.
    pub(crate) fn takes(&self, tool: &str, argument: &str) -> bool {
        self.tool(tool).takes(argument)
    }
}
