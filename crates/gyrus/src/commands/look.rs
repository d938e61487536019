//! `gyrus look`

use std::{fs, path::PathBuf};

use clap::Args;
use gyrus_contract::{Bounds, Element, ElementState, Look as Wanted, Screen, Seen};
use gyrus_screen::Launch;
use gyrus_text::readable;

use crate::{Gyrus, browser, exit::Code, failure::Failure, new_run::address, state_folder};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Show what a run would see of a page: everything that can be read or used, with its place
#[derive(Args)]
pub(crate) struct Look {
    /// The page's address
    #[arg(value_name = "URL")]
    address: String,

    /// Save the picture, as PNG
    #[arg(long, value_name = "FILE")]
    frame: Option<PathBuf>,

    /// One JSON object instead of text
    #[arg(long)]
    json: bool,

    /// The browser profile to use; one that is gone afterwards if none is named
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Show the browser's window
    #[arg(long)]
    visible: bool,

    /// Size of the page, in CSS pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x800", value_parser = size)]
    size: (u32, u32),

    /// Device pixels a CSS pixel
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

impl Look {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = state_folder::find(&gyrus.environment)?;
        let address = address(&self.address)?;
        let launch = Launch {
            visible: self.visible,
            width: self.size.0,
            height: self.size.1,
            density: self.density,
            ..Launch::default()
        };
        let seen = crate::drive::runtime()?.block_on(async {
            let browser = browser::browser(&home, launch, self.profile);
            browser.open(&address).await?;
            let wanted = Wanted {
                frame: self.frame.is_some(),
                documents: 0,
            };
            let seen = browser.look(wanted).await;
            browser.leave().await;
            seen
        });
        let seen = seen.map_err(|error| Failure::failed(error.to_string()))?;
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
}

fn print(gyrus: &Gyrus, seen: &Seen) -> Result<(), Failure> {
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
