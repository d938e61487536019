//! A dot on a person's display that shows what runs do, always on top, and the key that stops them.
//!
//! Escape stops everything while a run uses this display; Control, Alt and Escape
//! together stop it at any time. An Escape that a run itself sends does not: the server tells the
//! device of a key. A key of a real keyboard is a person's. Keys of the test device (XTEST) may come
//! from a run, or from a person who looks in from afar, whose server for remote desktops uses the
//! same device; so a run announces each Escape that it sends, and only that one is left out.
//!
//! Control, Alt and G together summon gyrus, as a click on the dot does.
//!
//! The server tells of keys by raw events (X Input Extension 2.2), which come to the dot even while
//! a program has grabbed the keyboard.

use std::{
    collections::BTreeSet,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use x11rb::{
    connection::Connection as _,
    protocol::{
        Event,
        shape::{self, ConnectionExt as _},
        xinput::{self, ConnectionExt as _},
        xproto::{
            Atom, AtomEnum, ChangeWindowAttributesAux, ClipOrdering, ConfigureWindowAux,
            ConnectionExt as _, CreateWindowAux, EventMask, KeyButMask, PropMode, Rectangle,
            StackMode, Visibility, Window, WindowClass,
        },
    },
    wrapper::ConnectionExt as _,
};

use super::{
    display::{Display, DisplayError},
    windows::OWN_WINDOW,
};

/// Diameter of the dot in pixels.
const DIAMETER: u16 = 18;

/// Distance of the dot from the edges of the screen in pixels.
const MARGIN: i16 = 10;

/// The symbol of the Escape key.
pub(super) const ESCAPE: u32 = 0xff1b;

/// The symbol of the key G.
const SUMMONS: u32 = 0x67;

/// The symbols of the keys Control, left and right.
const CONTROLS: [u32; 2] = [0xffe3, 0xffe4];

/// The symbols of the keys Alt, left and right, and Meta, which layouts put there too.
const ALTS: [u32; 4] = [0xffe9, 0xffea, 0xffe7, 0xffe8];

/// The selection whose owner uses the display for a run.
const IN_USE: &str = "_GYRUS_IN_USE";

/// The property of the root window that changes before a run sends an Escape.
const ESCAPES_SENT: &str = "_GYRUS_ESCAPES_SENT";

/// Time within which an announced Escape comes. One that was announced and not sent must not hide
/// a later one of a person.
const ANNOUNCED_FOR: Duration = Duration::from_secs(2);

/// Minimum interval at which the dot is brought to the top: another window may want to be there
/// too.
const RAISE_EVERY: Duration = Duration::from_millis(200);

/// State of a person's runs, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotState {
    /// No run is at work.
    Idle,
    /// A run reads its screen.
    Seeing,
    /// A run waits for its model.
    Thinking,
    /// A run carries out calls.
    Acting,
    /// A run waits for an answer of a person.
    Waiting,
    /// All runs are stopped until a person lifts the stop.
    Stopped,
}

impl DotState {
    /// Returns the state in one word.
    pub fn word(self) -> &'static str {
        match self {
            DotState::Idle => "idle",
            DotState::Seeing => "seeing",
            DotState::Thinking => "thinking",
            DotState::Acting => "acting",
            DotState::Waiting => "waiting",
            DotState::Stopped => "stopped",
        }
    }

    /// Returns the colour, as red, green and blue of 8 bits each.
    fn colour(self) -> u32 {
        match self {
            DotState::Idle => 0x8c_959f,
            DotState::Seeing => 0x21_8bff,
            DotState::Thinking => 0x82_50df,
            DotState::Acting => 0x1a_7f37,
            DotState::Waiting => 0xd4_a72c,
            DotState::Stopped => 0xcf_222e,
        }
    }
}

/// Act of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotEvent {
    /// The person pressed the key that stops everything, at this moment.
    Stop(Instant),
    /// The person clicked the dot, or pressed the key that summons gyrus.
    Summoned,
}

/// A dot on a display.
pub struct StatusDot {
    display: Arc<Display>,
    window: Window,
    events: mpsc::UnboundedReceiver<Result<DotEvent, String>>,
}

/// Reads events of the server on a thread of its own: the stop key waits for nothing else.
struct ServerReader {
    display: Arc<Display>,
    window: Window,
    escapes_sent: Atom,
    in_use: Atom,
    /// The codes of the Escape key.
    escape: Vec<u32>,
    /// The codes of the key that summons.
    summons: Vec<u32>,
    controls: Vec<u32>,
    alts: Vec<u32>,
    /// The keys that are down, according to the events read so far. The state of the server is
    /// another one by the time that it is asked, if this process is slow.
    down: BTreeSet<u32>,
    /// Times at which runs announced an Escape that has not yet arrived.
    announced: Vec<Instant>,
    raised: Option<Instant>,
    told: mpsc::UnboundedSender<Result<DotEvent, String>>,
}

impl StatusDot {
    /// Shows a dot on the display of this name, at its upper right corner.
    ///
    /// # Errors
    /// A message: the display cannot be opened, or lacks the extension SHAPE or XInput.
    pub fn open(name: &str) -> Result<Self, String> {
        let display = Display::connect_only(name)?;
        Self::on(display).map_err(|error| format!("a dot cannot be shown on `{name}`: {error}"))
    }

    fn on(display: Display) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let connection = &display.connection;
        let version = connection.xinput_xi_query_version(2, 2)?.reply()?;
        if (version.major_version, version.minor_version) < (2, 2) {
            return Err("its X Input Extension is older than 2.2".into());
        }
        let root = display.screen.root;
        let keys = xinput::EventMask {
            deviceid: xinput::Device::ALL_MASTER.into(),
            mask: vec![xinput::XIEventMask::RAW_KEY_PRESS | xinput::XIEventMask::RAW_KEY_RELEASE],
        };
        connection.xinput_xi_select_events(root, &[keys])?.check()?;
        let announcements = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        connection.change_window_attributes(root, &announcements)?;
        let window = Self::window(&display)?;
        let (escapes_sent, in_use) = (display.atom(ESCAPES_SENT)?, display.atom(IN_USE)?);
        connection.map_window(window)?.check()?;
        let (display, (told, events)) = (Arc::new(display), mpsc::unbounded_channel());
        let mut listener = ServerReader {
            display: Arc::clone(&display),
            window,
            escapes_sent,
            in_use,
            escape: Vec::new(),
            summons: Vec::new(),
            controls: Vec::new(),
            alts: Vec::new(),
            down: BTreeSet::new(),
            announced: Vec::new(),
            raised: None,
            told,
        };
        listener.read_keys()?;
        thread::Builder::new()
            .name("status dot".to_owned())
            .spawn(move || listener.listen())?;
        Ok(Self {
            display,
            window,
            events,
        })
    }

    /// Creates the window of the dot, not yet mapped.
    fn window(display: &Display) -> Result<Window, Box<dyn std::error::Error + Send + Sync>> {
        let (connection, root) = (&display.connection, display.screen.root);
        let window = connection.generate_id()?;
        let x = i16::try_from(display.screen.width_in_pixels)? - i16::try_from(DIAMETER)? - MARGIN;
        let look = CreateWindowAux::new()
            .background_pixel(DotState::Idle.colour())
            .override_redirect(1)
            .event_mask(EventMask::BUTTON_PRESS | EventMask::VISIBILITY_CHANGE);
        connection.create_window(
            x11rb::COPY_DEPTH_FROM_PARENT,
            window,
            root,
            x,
            MARGIN,
            DIAMETER,
            DIAMETER,
            0,
            WindowClass::INPUT_OUTPUT,
            x11rb::COPY_FROM_PARENT,
            &look,
        )?;
        connection.shape_rectangles(
            shape::SO::SET,
            shape::SK::BOUNDING,
            ClipOrdering::UNSORTED,
            window,
            0,
            0,
            &disc(DIAMETER),
        )?;
        let own = display.atom(OWN_WINDOW)?;
        connection.change_property32(PropMode::REPLACE, window, own, AtomEnum::CARDINAL, &[1])?;
        Ok(window)
    }

    /// Shows a state, with words that say more; `xprop` and screen readers tell them.
    ///
    /// # Errors
    /// A message: the display is gone.
    pub fn show(&self, state: DotState, words: &str) -> Result<(), String> {
        let shown = || -> Result<(), Box<dyn std::error::Error>> {
            let connection = &self.display.connection;
            let look = ChangeWindowAttributesAux::new().background_pixel(state.colour());
            connection.change_window_attributes(self.window, &look)?;
            connection.clear_area(false, self.window, 0, 0, 0, 0)?;
            let title = format!("gyrus: {}{words}", state.word());
            for (property, kind) in [("_NET_WM_NAME", "UTF8_STRING"), ("WM_NAME", "STRING")] {
                connection.change_property8(
                    PropMode::REPLACE,
                    self.window,
                    self.display.atom(property)?,
                    self.display.atom(kind)?,
                    title.as_bytes(),
                )?;
            }
            connection.flush()?;
            Ok(())
        };
        shown().map_err(|error| error.to_string())
    }

    /// Whether a run uses the display now, so that a click there may be the run's.
    ///
    /// # Errors
    /// A message: the display is gone.
    pub fn is_display_used(&self) -> Result<bool, String> {
        is_used(&self.display, self.display.atom(IN_USE)?)
    }

    /// Waits until a person clicks the dot or presses one of its keys.
    ///
    /// # Errors
    /// A message: the display is gone.
    pub async fn next(&mut self) -> Result<DotEvent, String> {
        let told = self.events.recv().await;
        told.unwrap_or_else(|| Err("the display is gone".to_owned()))
    }
}

impl ServerReader {
    /// Listens until the display or the dot is gone.
    fn listen(mut self) {
        loop {
            let event = self.display.connection.wait_for_event().map_err(words);
            let done = event.and_then(|event| self.take(&event)).transpose();
            let Some(done) = done else { continue };
            let is_over = done.is_err();
            if self.told.send(done).is_err() || is_over {
                return;
            }
        }
    }

    fn take(&mut self, event: &Event) -> Result<Option<DotEvent>, DisplayError> {
        match event {
            Event::ButtonPress(press) if press.event == self.window => {
                return Ok(Some(DotEvent::Summoned));
            }
            Event::VisibilityNotify(seen) if seen.state != Visibility::UNOBSCURED => {
                self.raise()?;
            }
            Event::PropertyNotify(changed) if changed.atom == self.escapes_sent => {
                self.announced.push(Instant::now());
            }
            Event::MappingNotify(_) => self.read_keys()?,
            Event::XinputRawKeyRelease(key) => {
                self.down.remove(&key.detail);
            }
            Event::XinputRawKeyPress(key) => {
                self.down.insert(key.detail);
                return self.pressed(key.detail, key.sourceid);
            }
            Event::Error(_) | _ => {}
        }
        Ok(None)
    }

    fn read_keys(&mut self) -> Result<(), DisplayError> {
        let codes = |symbols: &[u32]| -> Result<Vec<u32>, DisplayError> {
            let of_each = symbols.iter().map(|symbol| self.display.codes_of(*symbol));
            Ok(of_each.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let (escape, summons) = (codes(&[ESCAPE])?, codes(&[SUMMONS])?);
        let (controls, alts) = (codes(&CONTROLS)?, codes(&ALTS)?);
        (self.escape, self.summons) = (escape, summons);
        (self.controls, self.alts) = (controls, alts);
        Ok(())
    }

    /// Returns the meaning of a device's key.
    fn pressed(&mut self, key: u32, device: u16) -> Result<Option<DotEvent>, DisplayError> {
        let pressed = Instant::now();
        if self.summons.contains(&key) && self.has_control_and_alt()? {
            return Ok(Some(DotEvent::Summoned));
        }
        if self.escape.contains(&key) && self.is_of_person(device)? && self.is_meant()? {
            return Ok(Some(DotEvent::Stop(pressed)));
        }
        Ok(None)
    }

    /// Whether a person, and not a run, pressed the key of this device.
    fn is_of_person(&mut self, device: u16) -> Result<bool, DisplayError> {
        self.announced.retain(|at| at.elapsed() < ANNOUNCED_FOR);
        if self.announced.is_empty() {
            return Ok(true);
        }
        let asked = self.display.connection.xinput_xi_query_device(device);
        let told = asked.map_err(words)?.reply().map_err(words)?;
        // The names that the server gives its test devices (XTest Extension 2.2 with XInput 2).
        let is_for_tests = told
            .infos
            .iter()
            .any(|one| one.name.ends_with(b"XTEST keyboard"));
        if is_for_tests {
            self.announced.remove(0);
        }
        Ok(!is_for_tests)
    }

    /// Whether an Escape was pressed by a person and is meant for the runs.
    fn is_meant(&self) -> Result<bool, DisplayError> {
        Ok(is_used(&self.display, self.in_use)? || self.has_control_and_alt()?)
    }

    fn has_control_and_alt(&self) -> Result<bool, DisplayError> {
        let are_down = |codes: &[u32]| codes.iter().any(|code| self.down.contains(code));
        if are_down(&self.controls) && are_down(&self.alts) {
            return Ok(true);
        }
        // They may have been down before the dot was there.
        let root = self.display.screen.root;
        let asked = self.display.connection.query_pointer(root).map_err(words)?;
        let held = asked.reply().map_err(words)?.mask;
        let both = KeyButMask::CONTROL | KeyButMask::MOD1;
        Ok(held & both == both)
    }

    fn raise(&mut self) -> Result<(), DisplayError> {
        if self.raised.is_some_and(|at| at.elapsed() < RAISE_EVERY) {
            return Ok(());
        }
        self.raised = Some(Instant::now());
        let above = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
        let connection = &self.display.connection;
        connection
            .configure_window(self.window, &above)
            .map_err(words)?;
        connection.flush().map_err(words)
    }
}

/// Whether a run uses the display.
fn is_used(display: &Display, in_use: Atom) -> Result<bool, DisplayError> {
    let asked = display.connection.get_selection_owner(in_use);
    let owner = asked.map_err(words)?.reply().map_err(words)?.owner;
    Ok(owner != x11rb::NONE)
}

fn words(error: impl std::fmt::Display) -> DisplayError {
    error.to_string()
}

/// Returns a disc of this diameter, line by line.
fn disc(diameter: u16) -> Vec<Rectangle> {
    let radius = f64::from(diameter) / 2.0;
    let line = |y: u16| {
        let from_middle = f64::from(y) + 0.5 - radius;
        let half = (radius * radius - from_middle * from_middle).sqrt();
        // Both lie within the diameter.
        let (x, width) = ((radius - half).round() as i16, (2.0 * half).round() as u16);
        Rectangle {
            x,
            y: y.cast_signed(),
            width,
            height: 1,
        }
    };
    (0..diameter).map(line).collect()
}

impl Display {
    /// Marks the display as used by this connection until it ends.
    pub(super) fn mark_in_use(&self) -> Result<(), DisplayError> {
        if self.in_use.get().is_some() {
            return Ok(());
        }
        let (connection, root) = (&self.connection, self.screen.root);
        let window = connection.generate_id().map_err(words)?;
        let unseen = CreateWindowAux::new();
        connection
            .create_window(
                x11rb::COPY_DEPTH_FROM_PARENT,
                window,
                root,
                0,
                0,
                1,
                1,
                0,
                WindowClass::INPUT_ONLY,
                x11rb::COPY_FROM_PARENT,
                &unseen,
            )
            .map_err(words)?;
        let in_use = self.atom(IN_USE)?;
        connection
            .set_selection_owner(window, in_use, x11rb::CURRENT_TIME)
            .map_err(words)?
            .check()
            .map_err(words)?;
        let _ = self.in_use.set(());
        Ok(())
    }

    /// Announces that the next Escape of the test device is sent by a run.
    pub(super) fn announce_escape(&self) -> Result<(), DisplayError> {
        let sent = self.atom(ESCAPES_SENT)?;
        let root = self.screen.root;
        self.connection
            .change_property32(PropMode::REPLACE, root, sent, AtomEnum::CARDINAL, &[1])
            .map_err(words)
            .map(drop)
    }

    fn codes_of(&self, symbol: u32) -> Result<Vec<u32>, DisplayError> {
        let setup = self.connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let asked = self
            .connection
            .get_keyboard_mapping(first, last - first + 1)
            .map_err(words)?;
        let told = asked.reply().map_err(words)?;
        let keys = told
            .keysyms
            .chunks(usize::from(told.keysyms_per_keycode).max(1));
        let codes = (u32::from(first)..).zip(keys);
        let with_symbol = codes.filter(|(_, symbols)| symbols.contains(&symbol));
        Ok(with_symbol.map(|(code, _)| code).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Child, Command, Stdio},
    };

    use x11rb::{
        connection::RequestConnection as _,
        protocol::{xproto, xtest::ConnectionExt as _},
    };

    use super::*;

    /// The code of the Escape key on the keyboard that the server begins with.
    const ESCAPE_KEY: u8 = 9;

    /// A display that ends with the test.
    struct Bare(Child, String);

    impl Bare {
        fn start() -> Option<Self> {
            let mut server = Command::new("Xvfb")
                .args([
                    "-displayfd",
                    "1",
                    "-screen",
                    "0",
                    "400x300x24",
                    "-nolisten",
                    "tcp",
                ])
                .args(["-noreset"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let mut line = String::new();
            let told = server.stdout.as_mut().expect("it is piped");
            BufReader::new(told)
                .read_line(&mut line)
                .expect("it tells its number");
            Some(Self(server, format!(":{}", line.trim())))
        }
    }

    impl Drop for Bare {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Presses and releases a key of a device; `None` is the test device.
    fn press(display: &Display, key: u8, device: Option<(u8, u8)>) {
        for (core, extended) in [(xproto::KEY_PRESS_EVENT, 1), (xproto::KEY_RELEASE_EVENT, 2)] {
            let (kind, device) = match device {
                Some((device, first_event)) => (first_event + extended, device),
                None => (core, 0),
            };
            let sent = display
                .connection
                .xtest_fake_input(kind, key, 0, x11rb::NONE, 0, 0, device);
            sent.unwrap().check().unwrap();
        }
    }

    /// Returns the device of the keyboard that is no test device, and the first event of devices.
    fn keyboard(display: &Display) -> (u8, u8) {
        let connection = &display.connection;
        let all = connection.xinput_xi_query_device(0_u16).unwrap();
        let all = all.reply().unwrap().infos;
        let real = all.iter().find(|one| {
            one.type_ == xinput::DeviceType::SLAVE_KEYBOARD
                && !one.name.ends_with(b"XTEST keyboard")
        });
        let extension = connection
            .extension_information(xinput::X11_EXTENSION_NAME)
            .unwrap()
            .unwrap();
        let device = real.expect("a keyboard").deviceid;
        (u8::try_from(device).unwrap(), extension.first_event)
    }

    #[tokio::test]
    async fn an_escape_of_a_person_stops_and_one_of_a_run_does_not() {
        let Some(server) = Bare::start() else {
            eprintln!("left out: Xvfb is not installed");
            return;
        };
        let mut dot = StatusDot::open(&server.1).unwrap();
        let run = Display::connect_only(&server.1).unwrap();
        let person = Display::connect_only(&server.1).unwrap();
        // Where no run uses the display, Escape belongs to the programs; the click comes after it.
        press(&person, ESCAPE_KEY, None);
        let click = |display: &Display| {
            for kind in [
                xproto::MOTION_NOTIFY_EVENT,
                xproto::BUTTON_PRESS_EVENT,
                xproto::BUTTON_RELEASE_EVENT,
            ] {
                let detail = u8::from(kind != xproto::MOTION_NOTIFY_EVENT);
                let (x, y) = (400 - 10 - 9, 10 + 9);
                let sent =
                    display
                        .connection
                        .xtest_fake_input(kind, detail, 0, x11rb::NONE, x, y, 0);
                sent.unwrap().check().unwrap();
            }
        };
        click(&person);
        assert_eq!(dot.next().await.unwrap(), DotEvent::Summoned);

        run.mark_in_use().unwrap();
        // A run sends an Escape; a person who looks in from afar uses the same device after it.
        run.announce_escape().unwrap();
        press(&run, ESCAPE_KEY, None);
        click(&person);
        assert_eq!(dot.next().await.unwrap(), DotEvent::Summoned);
        press(&person, ESCAPE_KEY, None);
        assert!(matches!(dot.next().await.unwrap(), DotEvent::Stop(_)));
        // A person's keyboard counts even while a run has announced one of its own.
        run.announce_escape().unwrap();
        press(&person, ESCAPE_KEY, Some(keyboard(&person)));
        assert!(matches!(dot.next().await.unwrap(), DotEvent::Stop(_)));
        // Gyrus's windows are known as such.
        let own = person.own_windows().unwrap();
        assert_eq!((own.len(), own[0].x), (1, 400 - 10 - 18));
        for state in [DotState::Acting, DotState::Stopped] {
            dot.show(state, "; run “böse”").unwrap();
        }
        drop(server);
        assert!(dot.next().await.is_err());
    }
}
