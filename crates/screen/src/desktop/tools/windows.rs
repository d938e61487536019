//! Starts applications, and switches and closes windows, which are the tabs of a desktop.

use std::path::Path;

use gyrus_contract::{
    ActionVerdict, Aim, AimedElement, CloseTabCall, ElementId, OpenApplicationCall, Starts,
    SwitchTabCall, ToolOutput,
};

use super::{DesktopAction, DesktopCall, acts::closes, told, unknown, whole_desktop};
use crate::{
    desktop::{
        applications::{self, Application},
        effects::DesktopBefore,
        look,
        measure::DesktopSpot,
        session::DesktopSession,
        windows::DesktopWindow,
    },
    input::{InputTarget, UnusableTarget},
    tools::action::ActionFailure,
};

impl DesktopAction for OpenApplicationCall {
    const READS: Option<&'static str> = Some("file");

    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        refuse_own_display(session)?;
        let application = applications::find(&self.application).map_err(ActionFailure::Refused)?;
        Ok(starts(session, &application))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let application = applications::find(&self.application).map_err(ActionFailure::Refused)?;
        if *doing.judged_aim()? != starts(doing.session, &application) {
            return Err(ActionFailure::Refused(format!(
                "refused: “{}” names another program now",
                self.application
            )));
        }
        let file = match (&self.file, doing.call.paths.get("file")) {
            (None, _) => None,
            (Some(_), Some(path)) => Some(path.real.as_path()),
            (Some(_), None) => {
                let why = "refused: the file was not measured and judged";
                return Err(ActionFailure::Refused(why.to_owned()));
            }
        };
        if let Some(missing) = file.filter(|file| !file.exists()) {
            return Err(ActionFailure::Refused(format!(
                "refused: there is no file {}",
                missing.display()
            )));
        }
        let reading = look::read(doing.session).await?;
        let standing = DesktopBefore::of(doing.session, reading, None).await?;
        let words = application.words_with(file);
        doing.session.start(&words, &application.name).await?;
        let effects = doing.session.effects(&standing).await?;
        Ok(told(&format!("Started {}", application.name), &effects))
    }
}

fn refuse_own_display(session: &DesktopSession) -> Result<(), ActionFailure> {
    if session.nested.is_none() {
        return Err(ActionFailure::Refused(
            "refused: programs are started on a desktop of gyrus's own only; use the desktop's own \
             menu"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Returns what starting an application touches.
fn starts(session: &DesktopSession, application: &Application) -> Aim {
    let program = Path::new(&application.words[0]);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let desktop = whole_desktop(session, Vec::new());
    Aim {
        origin: format!("{}/{name}", desktop.origin).to_lowercase(),
        element: Some(AimedElement {
            id: ElementId {
                document: 1,
                number: 0,
            },
            role: "application".to_owned(),
            name: application.name.clone(),
            states: [].into(),
        }),
        starts: vec![Starts::Launches {
            program: application.words[0].clone(),
        }],
        ..desktop
    }
}

impl DesktopCall<'_> {
    /// Finds the judged window again.
    async fn judged_window(
        &mut self,
        number: Option<u32>,
        starts: fn(&DesktopSpot) -> Vec<Starts>,
    ) -> Result<(DesktopSpot, DesktopBefore), ActionFailure> {
        let target = window_of(self.session, number).await?;
        self.judged(target, starts).await
    }
}

/// Returns the window of a number; the active one without a number.
async fn window_of(
    session: &mut DesktopSession,
    number: Option<u32>,
) -> Result<InputTarget, ActionFailure> {
    let reading = look::read(session).await?;
    let document = match number {
        Some(number) => session.numbers.window(number).map(|_| number),
        None => {
            let active = reading.windows.iter().find(|window| window.is_active);
            active.map(|window| session.numbers.document(window.id))
        }
    };
    let document = document.ok_or_else(|| match number {
        Some(number) => {
            ActionFailure::Refused(format!("refused: there is no window {number}; look again"))
        }
        None => UnusableTarget::Nothing.into(),
    })?;
    Ok(InputTarget::Element(ElementId {
        document,
        number: 1,
    }))
}

fn looking(_: &DesktopSpot) -> Vec<Starts> {
    vec![Starts::Looking]
}

fn closing(spot: &DesktopSpot) -> Vec<Starts> {
    vec![closes(&spot.window.title)]
}

impl DesktopAction for SwitchTabCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let target = window_of(session, Some(self.tab)).await?;
        let spot = session.locate(target).await?;
        Ok(spot.aim(looking(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let (spot, standing) = doing.judged_window(Some(self.tab), looking).await?;
        doing
            .session
            .display
            .activate(spot.window.id)
            .map_err(unknown)?;
        let is_in_front = |windows: &[DesktopWindow]| {
            let wanted = |window: &DesktopWindow| window.id == spot.window.id && window.is_active;
            windows.iter().any(wanted)
        };
        let display = &doing.session.display;
        display.until_windows(is_in_front).await.map_err(unknown)?;
        let mut effects = doing.session.effects(&standing).await?;
        if effects.verdict == ActionVerdict::CannotTell {
            effects.verdict = ActionVerdict::Changed;
            effects.words.push("other windows are in front".to_owned());
        }
        let done = format!("Switched to window {} “{}”", self.tab, spot.element.name);
        Ok(told(&done, &effects))
    }
}

impl DesktopAction for CloseTabCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let target = window_of(session, self.tab).await?;
        let spot = session.locate(target).await?;
        Ok(spot.aim(closing(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let (spot, standing) = doing.judged_window(self.tab, closing).await?;
        let display = &doing.session.display;
        let before = display.windows().map_err(unknown)?;
        display.close(spot.window.id).map_err(unknown)?;
        // Its program may ask in a window of its own whether to save.
        let is_answered = |windows: &[DesktopWindow]| {
            let is_new = |window: &DesktopWindow| before.iter().all(|old| old.id != window.id);
            let is_there = windows.iter().any(|window| window.id == spot.window.id);
            !is_there || windows.iter().any(is_new)
        };
        display.until_windows(is_answered).await.map_err(unknown)?;
        let effects = doing.session.effects(&standing).await?;
        let done = format!("Asked the window “{}” to close", spot.element.name);
        Ok(told(&done, &effects))
    }
}
