//! Series of inputs on a nested desktop: `cargo run --release -p gyrus-screen --features desktop
//! --example desktop_series -- CLICKS [scale=2] [monitors=2]`. Of so many clicks a third each go to
//! random digits of a calculator (galculator), rows of a list (zenity), also those out of view, and
//! menus of an editor (mousepad), and each is checked by what the program shows then. Types 5,000
//! characters of twenty scripts into the editor and compares what it saves. `scale` is the pixel
//! ratio of the programs; with two monitors the list is on the second.

#![expect(clippy::print_stdout, reason = "a developer reads the output")]

mod desk;

use std::time::Instant;

use gyrus_contract::{Element, ElementId, ElementState};
use gyrus_process::keeper;
use serde_json::json;
use x11rb::{
    connection::Connection as _,
    protocol::{
        randr::{ConnectionExt as _, MonitorInfo},
        xproto::{AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask},
    },
};

use desk::{Desk, Failed};

/// Number of characters that are typed.
const CHARACTERS: usize = 5_000;

/// Number of digits that the calculator shows at a time.
const DIGITS: usize = 10;

/// Number of rows of the list.
const ROWS: usize = 60;

/// The size of a monitor at pixel ratio 1.
const WIDTH: u16 = 1280;
const HEIGHT: u16 = 800;

/// The words by which this program is started on the desktop: to divide the screen into monitors,
/// and to move the window in front.
const DIVIDE: &str = "--divide";
const MOVE: &str = "--move";

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

struct Series {
    desk: Desk,
    /// The pixel ratio, and the number of monitors.
    scale: u16,
    monitors: u16,
}

impl Series {
    async fn elements(&self) -> Result<Vec<Element>, Failed> {
        Ok(self.desk.look(false).await?.view.elements)
    }

    /// Starts a program at the pixel ratio.
    async fn start(&self, words: &[&str]) -> Result<(), Failed> {
        let scale = format!("GDK_SCALE={}", self.scale);
        let words = ["env", &scale].into_iter().chain(words.iter().copied());
        let words: Vec<String> = words.map(str::to_owned).collect();
        Ok(self.desk.desktop.start(&words).await?)
    }

    /// Closes the window in front.
    async fn close(&self) -> Result<(), Failed> {
        self.desk.act("close_tab", json!({})).await.map(drop)
    }

    async fn click(&self, on: ElementId, times: &mut Vec<u128>) -> Result<(), Failed> {
        let begun = Instant::now();
        self.desk.act("click", json!({"on": on})).await?;
        times.push(begun.elapsed().as_millis());
        Ok(())
    }

    /// Clicks random digits; returns the number of those that the calculator did not show.
    async fn click_digits(&self, clicks: usize, times: &mut Vec<u128>) -> Result<usize, Failed> {
        self.start(&["galculator"]).await?;
        let mut wrong = 0;
        for _ in 0..clicks.div_ceil(DIGITS) {
            self.desk.act("press_key", json!({"key": "Escape"})).await?;
            let elements = self.elements().await?;
            let digits: Vec<u8> = (0..DIGITS).map(|_| fastrand::u8(1..=9)).collect();
            for digit in &digits {
                let is_meant =
                    |one: &&Element| one.role == "button" && one.name == digit.to_string();
                let button = elements.iter().find(is_meant);
                let button = button.ok_or_else(|| format!("there is no button {digit}"))?;
                self.click(button.id, times).await?;
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
        self.close().await?;
        Ok(wrong)
    }

    /// Clicks random rows of a list; returns the number of those that were not chosen by it.
    async fn click_rows(&self, clicks: usize, times: &mut Vec<u128>) -> Result<usize, Failed> {
        let rows: Vec<String> = (1..=ROWS).map(|row| format!("row {row}")).collect();
        let mut words = vec!["zenity", "--list", "--column=Rows"];
        words.extend(rows.iter().map(String::as_str));
        self.start(&words).await?;
        if self.monitors == 2 {
            let right = (WIDTH * self.scale + 100).to_string();
            self.desk.on_desktop(&[MOVE, &right, "100"]).await?;
        }
        let mut wrong = 0;
        for _ in 0..clicks {
            let name = &rows[fastrand::usize(..ROWS)];
            let row = async || {
                let elements = self.elements().await?;
                let found = elements.into_iter().find(|one| one.name == *name);
                found.ok_or_else(|| Failed::from(format!("there is no {name}")))
            };
            let before = row().await?;
            if before.states.contains(&ElementState::OutOfView) {
                self.desk.act("scroll_to", json!({"on": before.id})).await?;
            }
            self.click(before.id, times).await?;
            if !row().await?.states.contains(&ElementState::Selected) {
                wrong += 1;
            }
        }
        self.close().await?;
        Ok(wrong)
    }

    /// Clicks random menus; returns the number of those that did not open.
    async fn click_menus(&self, clicks: usize, times: &mut Vec<u128>) -> Result<usize, Failed> {
        self.start(&["mousepad"]).await?;
        let elements = self.elements().await?;
        let menus = elements.iter().filter(|one| one.role == "menu");
        let menus: Vec<_> = menus.map(|one| one.id).collect();
        let mut wrong = 0;
        for _ in 0..clicks {
            let menu = menus[fastrand::usize(..menus.len())];
            self.click(menu, times).await?;
            let elements = self.elements().await?;
            let at = elements.iter().position(|one| one.id == menu);
            let next = at.and_then(|at| elements.get(at + 1));
            // What follows a menu that is open is in it.
            if next.is_none_or(|next| next.depth <= elements[at.unwrap_or(0)].depth) {
                wrong += 1;
            }
            self.desk.act("press_key", json!({"key": "Escape"})).await?;
        }
        self.close().await?;
        Ok(wrong)
    }

    /// Clicks at random elements; returns the number of clicks that did not land.
    async fn click_all(&self, clicks: usize) -> Result<usize, Failed> {
        let (each, mut times) = (clicks.div_ceil(3), Vec::new());
        let digits = self.click_digits(each, &mut times).await?;
        let rows = self.click_rows(each, &mut times).await?;
        let menus = self.click_menus(each, &mut times).await?;
        times.sort_unstable();
        println!(
            "{} clicks at pixel ratio {}, monitors: {}; {digits} digits, {rows} rows and {menus} \
             menus did not land; {} ms each in the median",
            times.len(),
            self.scale,
            self.monitors,
            times[times.len() / 2]
        );
        Ok(digits + rows + menus)
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
        std::fs::write(self.desk.path("letter.txt"), "")?;
        let file = self.desk.path("letter.txt");
        self.start(&["mousepad", &file.to_string_lossy()]).await?;
        // The keyboard comes to the text a moment after the window is shown.
        self.elements().await?;
        let begun = Instant::now();
        self.desk.act("type_text", json!({"text": text})).await?;
        let took = begun.elapsed().as_millis();
        self.desk
            .act("press_key", json!({"key": "Control+s"}))
            .await?;
        let saved = std::fs::read_to_string(self.desk.path("letter.txt"))?;
        let is_same = saved.trim_end() == text.trim_end();
        println!("{CHARACTERS} characters in {took} ms, exactly: {is_same}");
        // The window manager reads the keyboard again for each change of it, before it shows more.
        let begun = Instant::now();
        let started = self.start(&["galculator"]).await;
        let (took, is_shown) = (begun.elapsed().as_millis(), started.is_ok());
        println!("a program that was started then showed a window after {took} ms: {is_shown}");
        Ok(is_same)
    }
}

/// Divides the screen into two monitors, side by side.
fn divide() -> Result<(), Failed> {
    let (connection, screen) = x11rb::connect(None)?;
    let screen = &connection.setup().roots[screen];
    let (root, half) = (screen.root, screen.width_in_pixels / 2);
    let resources = connection.randr_get_screen_resources(root)?.reply()?;
    for (number, place) in (0..).zip(["left", "right"]) {
        let name = connection.intern_atom(false, place.as_bytes())?.reply()?;
        let monitor = MonitorInfo {
            name: name.atom,
            primary: number == 0,
            automatic: false,
            x: number * half.cast_signed(),
            y: 0,
            width: half,
            height: screen.height_in_pixels,
            width_in_millimeters: 300,
            height_in_millimeters: 200,
            outputs: if number == 0 {
                resources.outputs.clone()
            } else {
                Vec::new()
            },
        };
        connection.randr_set_monitor(root, monitor)?.check()?;
    }
    Ok(())
}

/// Moves the window in front.
fn move_to(x: u32, y: u32) -> Result<(), Failed> {
    let (connection, screen) = x11rb::connect(None)?;
    let root = connection.setup().roots[screen].root;
    let atom = |name: &str| -> Result<u32, Failed> {
        Ok(connection
            .intern_atom(false, name.as_bytes())?
            .reply()?
            .atom)
    };
    let active = atom("_NET_ACTIVE_WINDOW")?;
    let active = connection
        .get_property(false, root, active, AtomEnum::ANY, 0, 1)?
        .reply()?;
    let window = active.value32().and_then(|mut all| all.next());
    let window = window.ok_or("no window is in front")?;
    // By a pager, with x and y (EWMH).
    let data = [2 << 12 | 3 << 8, x, y, 0, 0];
    let message = ClientMessageEvent::new(32, window, atom("_NET_MOVERESIZE_WINDOW")?, data);
    let masks = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
    connection
        .send_event(false, root, masks, message)?
        .check()?;
    Ok(())
}

fn main() -> Result<(), Failed> {
    keeper::serve_if_asked(|_| Err("nothing is confined here".to_owned()));
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [DIVIDE] => divide(),
        [MOVE, x, y] => move_to(x.parse()?, y.parse()?),
        _ => tokio::runtime::Runtime::new()?.block_on(measure(&words)),
    }
}

async fn measure(words: &[String]) -> Result<(), Failed> {
    let clicks = words.first().map_or(Ok(1_000), |text| text.parse())?;
    let option = |name: &str| {
        let mut found = words.iter().filter_map(|word| word.strip_prefix(name));
        found.next().map_or(Ok(1), str::parse::<u16>)
    };
    let (scale, monitors) = (option("scale=")?, option("monitors=")?);
    let desk = Desk::new(WIDTH * scale * monitors, HEIGHT * scale)?;
    let series = Series {
        desk,
        scale,
        monitors,
    };
    let done = async {
        if monitors == 2 {
            series.desk.on_desktop(&[DIVIDE]).await?;
        }
        Ok::<_, Failed>((series.click_all(clicks).await?, series.write().await?))
    };
    let done = done.await;
    series.desk.desktop.leave().await;
    match done? {
        (0, true) => Ok(()),
        _ => Err("something did not arrive".into()),
    }
}
