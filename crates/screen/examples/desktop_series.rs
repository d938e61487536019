//! Series of inputs on a nested desktop: `cargo run --release -p gyrus-screen --features desktop
//! --example desktop_series -- CLICKS`. Clicks so many random digits of a calculator (galculator)
//! and compares what it shows; types 5,000 characters of twenty scripts into an editor (mousepad)
//! and compares what it saves.

#![expect(clippy::print_stdout, reason = "a developer reads the output")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use gyrus_contract::{
    BlobId, Boxed, Cleared, CommandOutcome, CommandSpec, EffectId, Element, KeeperError, Look,
    ResolvedCall, ResolvedPath, Screen as _, Site, Tool, ToolCall, ToolOutput, UnknownSecret,
};
use gyrus_process::keeper::{self, Keeper};
use gyrus_screen::{Desktop, DesktopPlace, Enclosure, RunCommand, desktop_tools};
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error>;

/// Number of characters that are typed.
const CHARACTERS: usize = 5_000;

/// Number of digits that the calculator shows at a time.
const DIGITS: usize = 10;

/// The scripts: the first and the last letter of a part of each.
const SCRIPTS: [(char, char); 20] = [
    ('!', '~'),
    ('À', 'ÿ'),
    ('Α', 'Ρ'),
    ('А', 'я'),
    ('Ա', 'Ֆ'),
    ('ა', 'ჰ'),
    ('א', 'ת'),
    ('ب', 'غ'),
    ('क', 'ह'),
    ('ক', 'ন'),
    ('க', 'ங'),
    ('క', 'న'),
    ('ก', 'ฮ'),
    ('ກ', 'ຂ'),
    ('က', 'အ'),
    ('ក', 'អ'),
    ('ሀ', 'ሏ'),
    ('ぁ', 'ん'),
    ('가', '깋'),
    ('一', '龥'),
];

fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| Box::pin(async { Keeper::start_beside().await?.run(spec).await }))
}

struct Folder(tempfile::TempDir);

impl Site for Folder {
    fn workspace(&self) -> &Path {
        self.0.path()
    }

    fn answer(&self) -> Option<&str> {
        None
    }

    fn sends_to(&self) -> &[String] {
        &[]
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        Ok(text.to_owned())
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        Ok(BlobId::of(bytes))
    }

    fn run_command(&self, _: CommandSpec) -> Boxed<'_, Result<CommandOutcome, KeeperError>> {
        unreachable!("no tool of a desktop runs a command")
    }
}

struct Desk {
    desktop: Arc<Desktop>,
    tools: Vec<Arc<dyn Tool>>,
    site: Folder,
}

impl Desk {
    fn path(&self, name: &str) -> PathBuf {
        self.site.0.path().join(name)
    }

    /// Measures and acts, as the kernel does.
    async fn act(&self, name: &str, arguments: Value) -> Result<ToolOutput, Failed> {
        let mut tools = self.tools.iter();
        let tool = tools.find(|tool| tool.spec().name == name);
        let tool = tool.ok_or("there is no such tool")?;
        let call = ToolCall::new(name, arguments.clone());
        let aim = tool.aim(&call).await.map_err(|error| error.reason)?;
        let file = arguments["file"].as_str().map(|given| {
            let path = ResolvedPath {
                given: given.to_owned(),
                real: self.path(given),
                in_workspace: Some(given.into()),
            };
            ("file".to_owned(), path)
        });
        let call = ResolvedCall {
            tool: name.to_owned(),
            arguments,
            paths: BTreeMap::from_iter(file),
            command: None,
            aim,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the example stands in for the kernel"
        )]
        let cleared = Cleared::mint(call, EffectId::cycle(1).then(1));
        let done = tool.call(cleared, &self.site).await;
        if done.is_error {
            return Err(done.text.into());
        }
        Ok(done)
    }

    async fn elements(&self) -> Result<Vec<Element>, Failed> {
        let look = Look {
            frame: false,
            documents: 0,
        };
        Ok(self.desktop.look(look).await?.view.elements)
    }

    /// Clicks random digits; returns the number of those that the calculator did not show.
    async fn click(&self, clicks: usize) -> Result<usize, Failed> {
        self.act("open_application", json!({"application": "galculator"}))
            .await?;
        let mut wrong = 0;
        let mut times = Vec::new();
        for _ in 0..clicks.div_ceil(DIGITS) {
            self.act("press_key", json!({"key": "Escape"})).await?;
            let elements = self.elements().await?;
            let digits: Vec<u8> = (0..DIGITS).map(|_| fastrand::u8(1..=9)).collect();
            for digit in &digits {
                let is_meant =
                    |one: &&Element| one.role == "button" && one.name == digit.to_string();
                let button = elements.iter().find(is_meant);
                let button = button.ok_or_else(|| format!("there is no button {digit}"))?;
                let begun = Instant::now();
                self.act("click", json!({"on": button.id})).await?;
                times.push(begun.elapsed().as_millis());
            }
            let shown: String = digits.iter().map(u8::to_string).collect();
            let elements = self.elements().await?;
            let says = |one: &Element| {
                let plain = |text: &str| text.replace([',', ' ', '\''], "").contains(&shown);
                plain(&one.name) || one.value.as_deref().is_some_and(plain)
            };
            if !elements.iter().any(says) {
                wrong += DIGITS;
            }
        }
        times.sort_unstable();
        println!(
            "{} clicks, {wrong} in series that do not show; {} ms each in the median",
            times.len(),
            times[times.len() / 2]
        );
        Ok(wrong)
    }

    /// Types; returns whether the saved file is the same.
    async fn write(&self) -> Result<bool, Failed> {
        let letter = || {
            let (first, last) = SCRIPTS[fastrand::usize(..SCRIPTS.len())];
            loop {
                let found = char::from_u32(fastrand::u32(u32::from(first)..=u32::from(last)));
                if let Some(letter) = found.filter(|letter| letter.is_alphanumeric()) {
                    return letter;
                }
            }
        };
        let text: String = (0..CHARACTERS)
            .map(|at| if at % 80 == 79 { '\n' } else { letter() })
            .collect();
        std::fs::write(self.path("letter.txt"), "")?;
        let editor = json!({"application": "mousepad", "file": "letter.txt"});
        self.act("open_application", editor).await?;
        let begun = Instant::now();
        self.act("type_text", json!({"text": text})).await?;
        let took = begun.elapsed().as_millis();
        self.act("press_key", json!({"key": "Control+s"})).await?;
        let saved = std::fs::read_to_string(self.path("letter.txt"))?;
        let is_same = saved.trim_end() == text.trim_end();
        println!("{CHARACTERS} characters in {took} ms, exactly: {is_same}");
        Ok(is_same)
    }
}

fn main() -> Result<(), Failed> {
    keeper::serve_if_asked(|_| Err("nothing is confined here".to_owned()));
    tokio::runtime::Runtime::new()?.block_on(measure())
}

async fn measure() -> Result<(), Failed> {
    let clicks = std::env::args()
        .nth(1)
        .map_or(Ok(1_000), |text| text.parse())?;
    let place = DesktopPlace::Nested {
        width: 1280,
        height: 800,
        enclosure: Enclosure::opener(run()),
    };
    let desktop = Arc::new(Desktop::new(place));
    let desk = Desk {
        tools: desktop_tools(&desktop),
        desktop,
        site: Folder(tempfile::tempdir()?),
    };
    let done = async { Ok::<_, Failed>((desk.click(clicks).await?, desk.write().await?)) };
    let done = done.await;
    desk.desktop.leave().await;
    match done? {
        (0, true) => Ok(()),
        _ => Err("something did not arrive".into()),
    }
}
