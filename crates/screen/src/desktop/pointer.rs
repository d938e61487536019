//! The mouse of a desktop, by the XTEST extension: the server treats what it is sent as if it came
//! from a device.

use x11rb::protocol::{
    xproto::{self, Window},
    xtest::ConnectionExt as _,
};

use super::display::{Display, DisplayError, NotSentReason};

/// Number of positions of the pointer between two points of a drag.
const STEPS: i32 = 10;

/// A point of the screen in pixels.
pub(super) type ScreenPoint = (i32, i32);

/// A button of the mouse, as the server numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Button {
    Left = 1,
    Middle = 2,
    Right = 3,
    WheelUp = 4,
    WheelDown = 5,
    WheelLeft = 6,
    WheelRight = 7,
}

impl Display {
    /// Sends an event of a device.
    pub(super) fn fake(
        &self,
        kind: u8,
        detail: u8,
        (x, y): ScreenPoint,
    ) -> Result<(), DisplayError> {
        self.mark_in_use()?;
        let within = |at: i32| i16::try_from(at.clamp(0, i32::from(i16::MAX))).unwrap_or(i16::MAX);
        self.connection
            .xtest_fake_input(kind, detail, 0, self.screen.root, within(x), within(y), 0)
            .map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Waits until the server has carried out all requests of this connection.
    pub(super) fn sync(&self) -> Result<(), DisplayError> {
        use x11rb::protocol::xproto::ConnectionExt as _;
        let asked = self.connection.get_input_focus();
        let answer = asked.map_err(|error| error.to_string())?.reply();
        answer.map(drop).map_err(|error| error.to_string())
    }

    pub(super) fn point_at(&self, at: ScreenPoint) -> Result<(), DisplayError> {
        self.fake(xproto::MOTION_NOTIFY_EVENT, 0, at)?;
        self.sync()
    }

    /// Presses and releases a button at a point where the pointer is, `count` times, if this window
    /// is the uppermost there.
    pub(super) fn press(
        &self,
        (button, count): (Button, u32),
        at: ScreenPoint,
        window: Window,
    ) -> Result<Result<(), NotSentReason>, DisplayError> {
        self.with_pointer_at(at, window, || {
            for _ in 0..count {
                self.fake(xproto::BUTTON_PRESS_EVENT, button as u8, (0, 0))?;
                self.fake(xproto::BUTTON_RELEASE_EVENT, button as u8, (0, 0))?;
            }
            Ok(())
        })
    }

    /// Presses the left button at the start of a path, if this window is the uppermost there, and
    /// releases it at the last point, once what lies there has reacted to the pointer.
    pub(super) async fn drag(
        &self,
        start: ScreenPoint,
        window: Window,
        path: &[ScreenPoint],
    ) -> Result<Result<(), NotSentReason>, DisplayError> {
        self.point_at(start)?;
        let press = || self.fake(xproto::BUTTON_PRESS_EVENT, Button::Left as u8, (0, 0));
        if let Err(why) = self.with_pointer_at(start, window, press)? {
            return Ok(Err(why));
        }
        let held = ButtonHold(self);
        let mut from = start;
        for to in path {
            for step in 1..=STEPS {
                let part = |from: i32, to: i32| from + (to - from) * step / STEPS;
                self.point_at((part(from.0, to.0), part(from.1, to.1)))?;
            }
            from = *to;
            self.settle().await?;
        }
        drop(held);
        self.sync().map(Ok)
    }
}

/// The left button held down; dropping the value releases it, even if the drag is given up.
struct ButtonHold<'a>(&'a Display);

impl Drop for ButtonHold<'_> {
    fn drop(&mut self) {
        let button = Button::Left as u8;
        let _ = self.0.fake(xproto::BUTTON_RELEASE_EVENT, button, (0, 0));
        let _ = self.0.sync();
    }
}
