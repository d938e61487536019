//! `gyrus look`

use std::{fs, path::PathBuf};

use clap::Args;
use gyrus_contract::{
    Bounds, Element, ElementState, LookOptions as Wanted, Screen, ViewWithPicture,
};
use gyrus_screen::Launch;
use gyrus_text::readable;

use crate::{Gyrus, browser, exit::Code, failure::Failure, new_run::address, state_folder};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Show what a run would see of a page or a desktop: everything that can be read or used, with its
/// place
#[derive(Args)]
pub(crate) struct LookCommand {
    /// The page's address
    #[arg(value_name = "URL", required_unless_present = "screen")]
    address: Option<String>,

    /// Look at a desktop in place of a page
    #[arg(long, value_name = "SCREEN", conflicts_with_all = ["address", "profile", "visible", "density"])]
    screen: Option<DesktopWord>,

    /// With --screen x11: the display that you work at, as `:0`; one that nobody sees if none is
    /// named
    #[arg(long, requires = "screen", conflicts_with_all = ["address", "program", "size"])]
    display: Option<String>,

    /// With --screen x11: a program to start there, with its arguments
    #[arg(
        last = true,
        value_name = "PROGRAM",
        requires = "screen",
        conflicts_with = "address"
    )]
    program: Vec<String>,

    /// Save the picture, as PNG
    #[arg(long, value_name = "FILE")]
    frame: Option<PathBuf>,

    /// One JSON object instead of text
    #[arg(long)]
    json: bool,

    /// The browser profile to use; one that is gone afterwards if none is named
    #[arg(long, value_name = "NAME", value_parser = crate::browser::profile_name)]
    profile: Option<String>,

    /// Show the browser's window
    #[arg(long)]
    visible: bool,

    /// Size of the page in CSS pixels, or of the desktop
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x800", value_parser = size)]
    size: (u32, u32),

    /// Device pixels for each CSS pixel
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = density)]
    density: f64,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match sides {
        Some((width @ 100..=4096, height @ 100..=4096)) => Ok((width, height)),
        _ => Err("a size is two numbers from 100 to 4096, as 1280x800".to_owned()),
    }
}

fn density(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if (0.5..=4.0).contains(&ratio) => Ok(ratio),
        _ => Err("a ratio is a number from 0.5 to 4".to_owned()),
    }
}

impl LookCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let runtime = crate::drive::runtime()?;
        let seen = match (&self.screen, &self.address) {
            (Some(DesktopWord::X11), _) => runtime.block_on(desktop::look(&self))?,
            (None, Some(address)) => runtime.block_on(self.page(gyrus, address))?,
            (None, None) => return Err(Failure::usage("there is nothing to look at")),
        };
        if let (Some(file), Some(picture)) = (&self.frame, &seen.frame) {
            fs::write(file, &picture.bytes).map_err(|error| {
                Failure::failed(format!("{} cannot be written", file.display())).because(&error)
            })?;
        }
        if self.json {
            output::standard().json(&seen.view)?
        } else {
            print(gyrus, &seen)?
        }
        Ok(Code::Reached)
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            frame: self.frame.is_some(),
            documents: 0,
        }
    }

    async fn page(&self, gyrus: &Gyrus, given: &str) -> Result<ViewWithPicture, Failure> {
        let home = state_folder::find(&gyrus.environment)?;
        let address = address(given)?;
        let launch = Launch {
            visible: self.visible,
            width: self.size.0,
            height: self.size.1,
            density: self.density,
            ..Launch::default()
        };
        let browser = browser::browser(&home, launch, self.profile.clone());
        let seen = match browser.open(&address).await {
            Ok(_) => browser.look(self.wanted()).await,
            Err(error) => Err(error),
        };
        browser.leave().await;
        seen.map_err(|error| Failure::failed(error.to_string()))
    }
}

/// Values of `--screen` where nothing but a desktop is named by it.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DesktopWord {
    X11,
}

#[cfg(not(feature = "desktop"))]
mod desktop {
    use super::{Failure, LookCommand, ViewWithPicture};

    /// Returns the failure with the advice how to get a gyrus that sees desktops.
    pub(super) async fn look(_: &LookCommand) -> Result<ViewWithPicture, Failure> {
        let failure = Failure::usage("this gyrus was built without desktops");
        Err(failure.hint("build it with them: cargo build --release --features desktop"))
    }
}

#[cfg(feature = "desktop")]
mod desktop {
    use gyrus_contract::Screen as _;
    use gyrus_screen::{Desktop, DesktopPlace, Enclosure};

    use super::{Failure, LookCommand, ViewWithPicture, browser};

    /// Looks at a desktop, once the named program shows its elements.
    pub(super) async fn look(options: &LookCommand) -> Result<ViewWithPicture, Failure> {
        let place = match &options.display {
            Some(display) => DesktopPlace::Own {
                display: display.clone(),
            },
            None => DesktopPlace::Nested {
                width: u16::try_from(options.size.0).unwrap_or(u16::MAX),
                height: u16::try_from(options.size.1).unwrap_or(u16::MAX),
                // A person named the program, and it is theirs.
                enclosure: Enclosure::opener(browser::under_a_keeper(None)),
            },
        };
        let desktop = Desktop::new(place);
        let started = if options.program.is_empty() {
            Ok(())
        } else {
            desktop.start(&options.program).await
        };
        let seen = match started {
            Ok(()) => desktop.look(options.wanted()).await,
            Err(error) => Err(error),
        };
        desktop.leave().await;
        seen.map_err(|error| Failure::failed(error.to_string()))
    }
}

fn print(gyrus: &Gyrus, seen: &ViewWithPicture) -> Result<(), Failure> {
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    let view = &seen.view;
    let line = |text: &str| readable(text).into_owned();
    writeln!(out, "{}", painter.paint(Tone::Call, &line(&view.title)))?;
    writeln!(out, "{}", painter.paint(Tone::Aside, &line(&view.address)))?;
    for element in &view.elements {
        let indent = "  ".repeat(usize::from(element.depth.min(20)));
        writeln!(
            out,
            "{indent}{} {}{}",
            painter.paint(Tone::Aside, &element.id.to_string()),
            line(&words(element)),
            painter.paint(Tone::Aside, &place(element.bounds)),
        )?;
    }
    for unread in &view.unread {
        writeln!(out, "not read: {}", line(unread))?;
    }
    Ok(())
}

fn words(element: &Element) -> String {
    let mut words = element.role.clone();
    if !element.name.is_empty() {
        words.push_str(&format!(" \"{}\"", element.name));
    }
    if let Some(value) = &element.value {
        words.push_str(&format!(" = \"{value}\""));
    }
    for state in &element.states {
        words.push_str(&format!(" {}", state_word(*state)));
    }
    words
}

fn state_word(state: ElementState) -> String {
    let value = serde_json::to_value(state).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

fn place(bounds: Option<Bounds>) -> String {
    match bounds {
        Some(Bounds {
            x,
            y,
            width,
            height,
        }) => format!(" {x},{y} {width}x{height}"),
        None => String::new(),
    }
}
