//! Compares the view of a nested desktop with the tree that programs tell on the accessibility bus:
//! `cargo run --release -p gyrus-screen --features desktop --example desktop_tree -- PROGRAM …`.
//! Counts the elements that are shown and have a name or an action, and prints those that the view
//! lacks, or has more than two pixels elsewhere. The tree is read child by child, as the view is
//! not.

#![expect(clippy::print_stdout, reason = "a developer reads the output")]

use std::{env, fs, sync::Arc};

use futures_util::future::BoxFuture;
use gyrus_contract::{Bounds, CommandSpec, Element, LookOptions, Screen as _};
use gyrus_process::keeper::{self, Keeper};
use gyrus_screen::{Desktop, DesktopPlace, Enclosure, RunCommand};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use zbus::{Connection, DynamicType, OwnedObjectPath, OwnedVariant, Type, connection::Builder};

type Failed = Box<dyn std::error::Error>;

/// The word by which this program is started on the desktop, to read the tree.
const READ: &str = "--read-into";

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";

/// Maximum difference of a place in pixels.
const NEAR: i32 = 2;

/// An element that the tree has.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    role: String,
    name: String,
    place: (i32, i32, i32, i32),
}

type Reference = (String, OwnedObjectPath);

struct Bus(Connection);

impl Bus {
    async fn ask<T: DeserializeOwned + Type>(
        &self,
        of: (&str, &str),
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Option<T> {
        let asked = self
            .0
            .call_method(Some(of.0), of.1, Some(interface), method, body);
        let reply = asked.await.ok()?;
        reply.body().deserialize_ignore_signature().ok()
    }

    /// Reads what is shown below an element.
    fn below<'a>(
        &'a self,
        of: Reference,
        depth: u32,
        told: &'a mut Vec<Told>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let at = (of.0.as_str(), of.1.as_str());
            let children: Option<Vec<Reference>> =
                self.ask(at, ACCESSIBLE, "GetChildren", &()).await;
            for child in children.unwrap_or_default() {
                let at = (child.0.as_str(), child.1.as_str());
                let states: Option<Vec<u32>> = self.ask(at, ACCESSIBLE, "GetState", &()).await;
                let low = states.and_then(|words| words.first().copied()).unwrap_or(0);
                let is_shown = low & (1 << 25) != 0 && low & (1 << 30) != 0;
                if !is_shown && depth > 0 || depth > 60 {
                    continue;
                }
                if let Some(one) = self.told(at).await.filter(|_| depth > 1) {
                    told.push(one);
                }
                self.below(child, depth + 1, told).await;
            }
        })
    }

    /// Returns an element that has a name or an action, and a place.
    async fn told(&self, at: (&str, &str)) -> Option<Told> {
        let properties = "org.freedesktop.DBus.Properties";
        let asked = (ACCESSIBLE, "Name");
        let name: Option<OwnedVariant> = self.ask(at, properties, "Get", &asked).await;
        let name = name.and_then(|name| String::try_from(name).ok())?;
        let interfaces: Vec<String> = self.ask(at, ACCESSIBLE, "GetInterfaces", &()).await?;
        let has_action = interfaces.iter().any(|one| one.ends_with(".Action"));
        let component = "org.a11y.atspi.Component";
        let place = self.ask(at, component, "GetExtents", &0_u32).await?;
        let role = self.ask(at, ACCESSIBLE, "GetRoleName", &()).await?;
        let (x, y, width, height): (i32, i32, i32, i32) = place;
        // What is scrolled out of view has the smallest number for its place.
        let is_drawn = width > 0 && height > 0 && x > -30_000 && y > -30_000;
        let counts = is_drawn && (has_action || !name.trim().is_empty());
        counts.then_some(Told { role, name, place })
    }
}

/// Reads the tree of all programs on this desktop into a file.
async fn read(file: &str) -> Result<(), Failed> {
    let session = Builder::session().build().await?;
    let asked = session
        .call_method(
            Some("org.a11y.Bus"),
            "/org/a11y/bus",
            Some("org.a11y.Bus"),
            "GetAddress",
            &(),
        )
        .await?;
    let address: String = asked.body().deserialize()?;
    let bus = Bus(Builder::address(address.as_str()).build().await?);
    let root = (
        "org.a11y.atspi.Registry".to_owned(),
        OwnedObjectPath::try_from("/org/a11y/atspi/accessible/root")?,
    );
    let mut told = Vec::new();
    bus.below(root, 0, &mut told).await;
    fs::write(file, serde_json::to_vec(&told)?)?;
    Ok(())
}

fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| Box::pin(async { Keeper::start_beside().await?.run(spec).await }))
}

/// The result of seeking an element of the tree in the view.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Same,
    /// Its name is there, at another place.
    Elsewhere(Option<Bounds>),
    Missing,
}

fn find(told: &Told, elements: &[Element]) -> Found {
    let (x, y, width, height) = told.place;
    let is_near = |bounds: Bounds| {
        [
            bounds.x - x,
            bounds.y - y,
            bounds.width - width,
            bounds.height - height,
        ]
        .iter()
        .all(|apart| apart.abs() <= NEAR)
    };
    let name = gyrus_text::shorten(told.name.trim(), 400);
    let named = || elements.iter().filter(|one| one.name == name);
    if named().any(|one| one.bounds.is_some_and(is_near)) {
        Found::Same
    } else if let (Some(one), false) = (named().next(), name.is_empty()) {
        Found::Elsewhere(one.bounds)
    } else {
        Found::Missing
    }
}

fn main() -> Result<(), Failed> {
    keeper::serve_if_asked(|_| Err("nothing is confined here".to_owned()));
    tokio::runtime::Runtime::new()?.block_on(compare())
}

async fn compare() -> Result<(), Failed> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [first, file] = &words[..]
        && first == READ
    {
        return read(file).await;
    }
    let place = DesktopPlace::Nested {
        width: 1280,
        height: 800,
        enclosure: Enclosure::opener(run()),
    };
    let desktop = Desktop::new(place);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tree").to_string_lossy().into_owned();
    let own = env::current_exe()?.to_string_lossy().into_owned();
    desktop.start(&words).await?;
    desktop.start(&[own, READ.to_owned(), file.clone()]).await?;
    let told: Vec<Told> = serde_json::from_slice(&fs::read(&file)?)?;
    let look = LookOptions {
        frame: false,
        documents: 0,
    };
    let view = desktop.look(look).await?.view;
    let mut same = 0;
    for one in &told {
        match find(one, &view.elements) {
            Found::Same => same += 1,
            other => println!("{other:?}: {one:?}"),
        }
    }
    println!(
        "{}: of {} elements with a name or an action {same} are in the view of {} elements, within \
         {NEAR} pixels ({:.1} %)",
        words.join(" "),
        told.len(),
        view.elements.len(),
        100.0 * f64::from(same) / f64::from(u32::try_from(told.len().max(1))?)
    );
    desktop.leave().await;
    Ok(())
}
