//! Inputs that nothing comes between: for the moment from the last check to the input the server
//! serves nobody else, so no window can open, move or take the keyboard.

use x11rb::{
    connection::Connection as _,
    protocol::xproto::{ConnectionExt as _, Window},
};

use super::{
    display::{Display, DisplayError, NotSentReason},
    pointer::ScreenPoint,
};

/// Maximum depth of windows inside of others.
const MAX_DEPTH: usize = 32;

/// Grab of the server, which serves no other client until this value is dropped; it ends when this
/// is dropped.
struct Exclusive<'a>(&'a Display);

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        let _ = self.0.connection.ungrab_server();
        let _ = self.0.connection.flush();
    }
}

impl Display {
    /// Sends an input to `window` if that window has the keyboard.
    pub(super) fn with_keyboard_in(
        &self,
        window: Window,
        input: impl FnOnce() -> Result<(), DisplayError>,
    ) -> Result<Result<(), NotSentReason>, DisplayError> {
        let _exclusive = self.exclusive()?;
        if !self.has_keyboard(window)? {
            return Ok(Err("the keyboard is in another window now".to_owned()));
        }
        input()?;
        // Whatever is reached is reached before others are served again.
        self.sync().map(Ok)
    }

    /// Sends an input to the window under the pointer, if the pointer is at this point and the
    /// uppermost window there is this one.
    pub(super) fn with_pointer_at(
        &self,
        point: ScreenPoint,
        window: Window,
        input: impl FnOnce() -> Result<(), DisplayError>,
    ) -> Result<Result<(), NotSentReason>, DisplayError> {
        let _exclusive = self.exclusive()?;
        let asked = self.connection.query_pointer(self.screen.root);
        let pointer = asked.map_err(|error| error.to_string())?.reply();
        let pointer = pointer.map_err(|error| error.to_string())?;
        if (i32::from(pointer.root_x), i32::from(pointer.root_y)) != point {
            return Ok(Err("something else moved the pointer".to_owned()));
        }
        if !self.is_under_pointer(window)? {
            return Ok(Err("another window came to lie there".to_owned()));
        }
        input()?;
        self.sync().map(Ok)
    }

    fn exclusive(&self) -> Result<Exclusive<'_>, DisplayError> {
        let grabbed = self.connection.grab_server();
        grabbed.map_err(|error| error.to_string())?;
        Ok(Exclusive(self))
    }

    /// Whether keys reach `window` or a part of it.
    fn has_keyboard(&self, window: Window) -> Result<bool, DisplayError> {
        let asked = self.connection.get_input_focus();
        let focus = asked.map_err(|error| error.to_string())?.reply();
        let mut at = focus.map_err(|error| error.to_string())?.focus;
        for _ in 0..MAX_DEPTH {
            // None, or wherever the pointer is, or the background.
            if at <= 1 || at == self.screen.root {
                return Ok(false);
            }
            if at == window {
                return Ok(true);
            }
            let asked = self.connection.query_tree(at);
            match asked.map_err(|error| error.to_string())?.reply() {
                Ok(tree) => at = tree.parent,
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Whether `window` is under the pointer, from the uppermost window to its innermost part.
    fn is_under_pointer(&self, window: Window) -> Result<bool, DisplayError> {
        let mut at = self.screen.root;
        for _ in 0..MAX_DEPTH {
            let asked = self.connection.query_pointer(at);
            let Ok(pointer) = asked.map_err(|error| error.to_string())?.reply() else {
                return Ok(false);
            };
            at = pointer.child;
            if at == window {
                return Ok(true);
            }
            if at == x11rb::NONE {
                return Ok(false);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

    use x11rb::protocol::{
        Event,
        xproto::{CreateWindowAux, EventMask, InputFocus, WindowClass},
    };

    use super::*;
    use crate::desktop::pointer::Button;

    /// Returns a mapped window that receives events of keys and buttons.
    fn window(display: &Display) -> Window {
        let (connection, root) = (&display.connection, display.screen.root);
        let window = connection.generate_id().unwrap();
        let events = EventMask::BUTTON_PRESS | EventMask::KEY_PRESS;
        let look = CreateWindowAux::new()
            .override_redirect(1)
            .event_mask(events);
        let (parent, kind) = (x11rb::COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_OUTPUT);
        let visual = x11rb::COPY_FROM_PARENT;
        connection
            .create_window(parent, window, root, 0, 0, 50, 50, 0, kind, visual, &look)
            .unwrap();
        connection.map_window(window).unwrap();
        display.sync().unwrap();
        window
    }

    /// Returns the windows that received an event.
    fn heard(display: &Display) -> Vec<Window> {
        display.sync().unwrap();
        let mut heard = Vec::new();
        while let Ok(Some(event)) = display.connection.poll_for_event() {
            match event {
                Event::ButtonPress(press) => heard.push(press.event),
                Event::KeyPress(press) => heard.push(press.event),
                _ => {}
            }
        }
        heard
    }

    #[test]
    fn inputs_reach_the_window_that_was_looked_at_or_none() {
        let server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "400x300x24"])
            .args(["-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut server) = server else { return };
        let mut number = String::new();
        let said = server.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut number).unwrap();
        let display = Display::connect_only(&format!(":{}", number.trim())).unwrap();

        let judged = window(&display);
        display.point_at((20, 20)).unwrap();
        let press = |window| display.press((Button::Left, 1), (20, 20), window).unwrap();
        press(judged).unwrap();
        assert_eq!(heard(&display), [judged]);
        // Another comes to lie over it.
        let over = window(&display);
        assert!(press(judged).unwrap_err().contains("came to lie there"));
        press(over).unwrap();
        assert_eq!(heard(&display), [over]);
        // A person moves the pointer.
        display.point_at((21, 20)).unwrap();
        assert!(press(over).unwrap_err().contains("moved the pointer"));

        let keys = |window| {
            let tap = || display.fake(2, 38, (0, 0)).and(display.fake(3, 38, (0, 0)));
            display.with_keyboard_in(window, tap).unwrap()
        };
        let focus = |window| {
            let focused =
                display
                    .connection
                    .set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME);
            focused.unwrap().check().unwrap();
        };
        focus(judged);
        keys(judged).unwrap();
        focus(over);
        assert!(keys(judged).unwrap_err().contains("another window"));
        // Wherever the pointer is.
        focus(1);
        keys(judged).unwrap_err();
        assert_eq!(heard(&display), [judged]);
        server.kill().unwrap();
        server.wait().unwrap();
    }
}
