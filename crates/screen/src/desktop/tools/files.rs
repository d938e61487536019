//! Gives a file of the workspace to a program, by its own window for choosing one.

use std::time::Duration;

use gyrus_contract::{Aim, Starts, ToolOutput, UploadFileCall};
use x11rb::protocol::xproto::Window;

use super::{DesktopAction, DesktopCall, elsewhere, told, unknown};
use crate::{
    desktop::{
        keyboard::{self, Arrival},
        look,
        measure::DesktopSpot,
        pointer::Button,
        reading::DesktopReading,
        session::DesktopSession,
        windows::DesktopWindow,
    },
    input::{Chord, InputTarget},
    tools::action::ActionFailure,
};

/// Time limit for a program to show its file dialog.
const CHOOSER: Duration = Duration::from_secs(5);

fn starts(call: &UploadFileCall) -> Vec<Starts> {
    let name = call.path.rsplit('/').next().unwrap_or_default().to_owned();
    vec![Starts::Uploads { names: vec![name] }]
}

impl DesktopAction for UploadFileCall {
    const READS: Option<&'static str> = Some("path");

    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::Element(self.on)).await?;
        Ok(spot.aim(starts(self)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let refused = |why: String| ActionFailure::Refused(format!("refused: {why}"));
        let path = doing.call.paths.get("path").map(|path| path.real.clone());
        let path = path.ok_or_else(|| refused("the path was not looked up".to_owned()))?;
        if !path.is_file() {
            return Err(refused(format!("`{}` is not a file", path.display())));
        }
        let Some(text) = path
            .to_str()
            .filter(|text| keyboard::untypable(text).is_none())
        else {
            return Err(refused(format!(
                "the name of `{}` cannot be typed",
                path.display()
            )));
        };
        let (spot, standing) = doing
            .approach(InputTarget::Element(self.on), |_| starts(self))
            .await?;
        let chooser = match chooser_around(doing.session, &spot).await? {
            Some(chooser) => chooser,
            None => doing.open_chooser(&spot).await?,
        };
        doing.enter_path(chooser, text).await?;
        let is_closed =
            |windows: &[DesktopWindow]| windows.iter().all(|window| window.id != chooser);
        let display = &doing.session.display;
        display.until_windows(is_closed).await.map_err(unknown)?;
        let is_open = !is_closed(&display.windows().map_err(unknown)?);
        let effects = doing.session.effects(&standing).await?;
        if is_open {
            return Err(ActionFailure::Broke(format!(
                "the path was typed, but the window for choosing a file is still open. {}",
                effects.say()
            )));
        }
        let done = format!("Gave {} by {} {}", self.path, spot.id(), spot.words());
        Ok(told(&done, &effects))
    }
}

/// Returns the window of an element if it is one for choosing a file.
async fn chooser_around(
    session: &mut DesktopSession,
    spot: &DesktopSpot,
) -> Result<Option<Window>, ActionFailure> {
    let reading = look::read(session).await?;
    let is_chooser = session.is_chooser(&reading, &spot.window);
    Ok(is_chooser.then_some(spot.window.id))
}

impl DesktopSession {
    /// Whether a window is one for choosing a file: toolkits mark its content as such, which is a
    /// dialog inside of the window.
    fn is_chooser(&mut self, reading: &DesktopReading, window: &DesktopWindow) -> bool {
        let document = self.numbers.document(window.id);
        let inside = |element: &&gyrus_contract::Element| {
            element.id.document == document && element.depth > 0
        };
        let mut elements = reading.elements.iter().filter(inside);
        elements.any(|element| element.role == "dialog")
    }
}

impl DesktopCall<'_> {
    /// Clicks a control that asks for a file, and waits for its file dialog.
    async fn open_chooser(&mut self, spot: &DesktopSpot) -> Result<Window, ActionFailure> {
        let before = self.session.display.windows().map_err(unknown)?;
        self.press(spot, (Button::Left, 1), 0).await?;
        let opened = async {
            loop {
                let reading = look::read(self.session).await?;
                let is_new = |window: &&DesktopWindow| {
                    !window.is_popup && before.iter().all(|old| old.id != window.id)
                };
                let new: Vec<_> = reading.windows.iter().filter(is_new).cloned().collect();
                for window in new {
                    let is_same_program = window.process == spot.window.process;
                    if is_same_program && self.session.is_chooser(&reading, &window) {
                        return Ok::<_, ActionFailure>(window.id);
                    }
                }
                self.session
                    .display
                    .wait_for_event()
                    .await
                    .map_err(unknown)?;
            }
        };
        let opened = tokio::time::timeout(CHOOSER, opened).await;
        opened.unwrap_or_else(|_| {
            Err(ActionFailure::Broke(format!(
                "{} was clicked and showed no window for choosing a file; look",
                spot.words()
            )))
        })
    }

    /// Types a path into a file dialog, in place of the present name, and presses Enter.
    async fn enter_path(&mut self, chooser: Window, text: &str) -> Result<(), ActionFailure> {
        let display = &self.session.display;
        display.settle().await.map_err(unknown)?;
        let strike = async |key: &str| {
            let chord = Chord::parse(key).expect("it is a key");
            let struck = display.strike(&chord, chooser).await;
            has_arrived(struck.map_err(unknown)?.map_err(elsewhere)?)
        };
        // Shows the field for a path and gives it the keyboard.
        strike("Control+l").await?;
        display.settle().await.map_err(unknown)?;
        strike("Control+a").await?;
        let mut typing = display.typing(text, chooser).map_err(unknown)?;
        while !typing.is_done() {
            let part = typing.next_part().await.map_err(unknown)?;
            let (_, arrival) = part.map_err(elsewhere)?;
            has_arrived(arrival)?;
        }
        drop(typing);
        // The field looks the path up before it takes it.
        display.settle().await.map_err(unknown)?;
        strike("Enter").await
    }
}

/// Returns the failure for keys that a file dialog has not read.
fn has_arrived(arrival: Arrival) -> Result<(), ActionFailure> {
    match arrival {
        Arrival::Read => Ok(()),
        Arrival::Unknown => Err(ActionFailure::Broke(
            "the window for choosing a file has not said that it read the keys that were sent; look \
             before you repeat it"
                .to_owned(),
        )),
    }
}
