//! Programs that misbehave on a desktop, for tests: this test program, started again there.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::{env, error::Error, fs, path::Path, thread, time::Duration};

use x11rb::{
    COPY_DEPTH_FROM_PARENT, COPY_FROM_PARENT, CURRENT_TIME, connect,
    connection::Connection as _,
    protocol::{
        Event,
        randr::{self, ConnectionExt as _},
        xinput::{self, ConnectionExt as _},
        xproto::{
            AtomEnum, ConnectionExt as _, CreateWindowAux, EventMask, GrabMode, InputFocus,
            PropMode, Window, WindowClass,
        },
    },
    rust_connection::RustConnection,
    wrapper::ConnectionExt as _,
};

/// The variable that names what a stand-in does.
const DOES: &str = "GYRUS_TEST_STAND_IN";

/// The variable that names the folder by which a test and a stand-in speak.
const FOLDER: &str = "GYRUS_TEST_FOLDER";

/// Returns the words that start a stand-in on a desktop. It shows a window at once, and does what
/// it is for when [`say`] says so.
pub(crate) fn words(does: &str, folder: &Path) -> Vec<String> {
    let own = env::current_exe().unwrap();
    let script = format!(
        "{DOES}={does} {FOLDER}='{}' exec '{}' --exact desktop_stand_ins::stands_in_where_a_test_started_it",
        folder.display(),
        own.display()
    );
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

/// Says something to a stand-in.
pub(crate) fn say(folder: &Path, word: &str) {
    fs::write(folder.join(word), "").unwrap();
}

/// Waits until a stand-in has said something, and returns it.
pub(crate) fn wait_for(folder: &Path, word: &str) -> String {
    for _ in 0..1_000 {
        if let Ok(said) = fs::read_to_string(folder.join(word)) {
            return said;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody said {word}");
}

type Failed = Box<dyn Error>;

/// A client of the desktop.
struct StandIn {
    connection: RustConnection,
    root: Window,
    width: u16,
    height: u16,
    folder: std::path::PathBuf,
}

/// Is no test of its own: other tests start it on a desktop of theirs.
#[test]
fn stands_in_where_a_test_started_it() {
    let Ok(does) = env::var(DOES) else { return };
    let folder = env::var(FOLDER).unwrap().into();
    let (connection, screen) = connect(None).unwrap();
    let screen = &connection.setup().roots[screen];
    let (root, width, height) = (screen.root, screen.width_in_pixels, screen.height_in_pixels);
    let stand_in = StandIn {
        connection,
        root,
        width,
        height,
        folder,
    };
    // The desktop ends under it.
    let _ = stand_in.does(&does);
}

impl StandIn {
    fn does(&self, what: &str) -> Result<(), Failed> {
        match what {
            "lock" => self.locks(),
            "steal" => self.steals(),
            "resize" => self.resizes(),
            _ => Ok(()),
        }
    }

    fn window(
        &self,
        (x, y, width, height): (i16, i16, u16, u16),
        is_managed: bool,
        name: &str,
    ) -> Result<Window, Failed> {
        let window = self.connection.generate_id()?;
        let look = CreateWindowAux::new()
            .background_pixel(0x33_6699)
            .override_redirect(u32::from(!is_managed))
            .event_mask(
                EventMask::KEY_PRESS | EventMask::BUTTON_PRESS | EventMask::STRUCTURE_NOTIFY,
            );
        self.connection.create_window(
            COPY_DEPTH_FROM_PARENT,
            window,
            self.root,
            x,
            y,
            width,
            height,
            0,
            WindowClass::INPUT_OUTPUT,
            COPY_FROM_PARENT,
            &look,
        )?;
        let class = format!("{name}\0{name}\0");
        let text = AtomEnum::STRING;
        for (property, value) in [(AtomEnum::WM_CLASS, &*class), (AtomEnum::WM_NAME, name)] {
            self.connection.change_property8(
                PropMode::REPLACE,
                window,
                property,
                text,
                value.as_bytes(),
            )?;
        }
        self.connection.map_window(window)?;
        self.connection.flush()?;
        loop {
            if let Event::MapNotify(mapped) = self.connection.wait_for_event()?
                && mapped.window == window
            {
                return Ok(window);
            }
        }
    }

    fn says(&self, word: &str, what: &str) {
        // Under another name first, so that it is read whole.
        let unfinished = self.folder.join("unfinished");
        fs::write(&unfinished, what).unwrap();
        fs::rename(unfinished, self.folder.join(word)).unwrap();
    }

    fn stays(&self) -> Result<(), Failed> {
        loop {
            self.connection.wait_for_event()?;
        }
    }

    /// Locks the screen, as lockers do: a window over all of it, and all keys.
    fn locks(&self) -> Result<(), Failed> {
        self.window((0, 0, 100, 50), true, "stand-in")?;
        wait_for(&self.folder, "lock");
        let lock = self.window((0, 0, self.width, self.height), false, "i3lock")?;
        let now = CURRENT_TIME;
        let mode = GrabMode::ASYNC;
        let grabbed = self.connection.grab_keyboard(true, lock, now, mode, mode)?;
        grabbed.reply()?;
        self.says("locked", "");
        wait_for(&self.folder, "unlock");
        self.connection.destroy_window(lock)?;
        self.connection.ungrab_keyboard(now)?;
        self.connection.get_input_focus()?.reply()?;
        self.says("unlocked", "");
        self.stays()
    }

    /// Takes the keyboard with a window of its own once 500 keys were pressed, and counts those that
    /// come to it.
    fn steals(&self) -> Result<(), Failed> {
        let window = self.window((900, 0, 100, 50), true, "stand-in")?;
        self.connection.xinput_xi_query_version(2, 2)?.reply()?;
        let keys = xinput::EventMask {
            deviceid: xinput::Device::ALL_MASTER.into(),
            mask: vec![xinput::XIEventMask::RAW_KEY_PRESS],
        };
        self.connection
            .xinput_xi_select_events(self.root, &[keys])?;
        self.connection.flush()?;
        let (mut pressed, mut stolen) = (0, 0);
        loop {
            match self.connection.wait_for_event()? {
                Event::XinputRawKeyPress(_) => pressed += 1,
                Event::KeyPress(_) => stolen += 1,
                _ => continue,
            }
            if pressed == 500 {
                self.connection
                    .set_input_focus(InputFocus::PARENT, window, CURRENT_TIME)?;
                self.connection.get_input_focus()?.reply()?;
            }
            self.says("stolen", &stolen.to_string());
        }
    }

    /// Makes the screen smaller, as when another monitor is connected.
    fn resizes(&self) -> Result<(), Failed> {
        self.window((0, 0, 100, 50), true, "stand-in")?;
        wait_for(&self.folder, "resize");
        let told = self.connection.randr_get_screen_resources(self.root)?;
        let told = told.reply()?;
        let (crtc, time) = (told.crtcs[0], told.config_timestamp);
        let as_it_is = randr::Rotation::ROTATE0;
        // What is shown must fit into a screen, so the monitor is off meanwhile.
        self.connection
            .randr_set_crtc_config(crtc, CURRENT_TIME, time, 0, 0, 0, as_it_is, &[])?
            .reply()?;
        self.connection
            .randr_set_screen_size(self.root, 800, 600, 300, 200)?
            .check()?;
        self.says("resized", "800×600");
        self.stays()
    }
}
