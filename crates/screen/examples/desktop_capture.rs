//! Compares looks at a desktop, and whole turns on it, with other ways: `cargo run --release -p
//! gyrus-screen --features desktop --example desktop_capture [PYTHON]`. A window with 500 buttons
//! fills a display of 1280 by 800; each round times, one after the other, a look with its picture, a
//! bare capture by shared memory with the same encoding, scrot, and Python's mss with Pillow (if
//! PYTHON has them), then a press with the look after it beside a press by xdotool, two seconds of
//! waiting and a picture by scrot, as Anthropic's demo of a computer does it. Needs python3-gi,
//! scrot and xdotool. Prints medians, and ratios to the first of each kind.

#![expect(clippy::print_stdout, reason = "a developer reads the output")]

mod desk;

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gyrus_process::keeper;
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    io::pread,
};
use serde_json::json;
use x11rb::{
    connection::Connection as _,
    protocol::{shm::ConnectionExt as _, xproto::ImageFormat},
};

use desk::{Desk, Failed};

/// Number of rounds.
const ROUNDS: usize = 15;

/// The word by which this program is started on the desktop to time one of the other ways.
const OTHERS: &str = "--others";

/// The window, as a program of GTK 3.
const WINDOW: &str = "
import gi
gi.require_version('Gtk', '3.0')
from gi.repository import Gdk, Gtk
style = Gtk.CssProvider()
style.load_from_data(b'button { padding: 0; min-width: 0; min-height: 0 }')
screen = Gdk.Screen.get_default()
Gtk.StyleContext.add_provider_for_screen(screen, style, 800)
window = Gtk.Window(title='Five hundred')
grid = Gtk.Grid(row_homogeneous=True, column_homogeneous=True)
count = Gtk.Label(label='0 presses')
grid.attach(count, 0, 0, 25, 1)
presses = 0
def press(button):
    global presses
    presses += 1
    count.set_text(f'{presses} presses')
for number in range(500):
    button = Gtk.Button(label=str(number))
    button.connect('clicked', press)
    grid.attach(button, number % 25, 1 + number // 25, 1, 1)
scrolled = Gtk.ScrolledWindow()
scrolled.add(grid)
window.add(scrolled)
window.maximize()
window.connect('destroy', Gtk.main_quit)
window.show_all()
Gtk.main()
";

/// A capture by mss and its encoding by Pillow, as milliseconds: the first takes longer, and does
/// not count.
const MSS: &str = "
import io, time, mss
from PIL import Image
with mss.mss() as screen:
    for turn in range(2):
        begun = time.perf_counter()
        shot = screen.grab(screen.monitors[0])
        picture = Image.frombytes('RGB', shot.size, shot.bgra, 'raw', 'BGRX')
        picture.save(io.BytesIO(), 'PNG', compress_level=1)
        took = (time.perf_counter() - begun) * 1000
print(took)
";

fn main() -> Result<(), Failed> {
    keeper::serve_if_asked(|_| Err("nothing is confined here".to_owned()));
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [OTHERS, times, x, y, python] => others(Path::new(times), (x, y), python),
        [] => tokio::runtime::Runtime::new()?.block_on(measure("python3")),
        [python] => tokio::runtime::Runtime::new()?.block_on(measure(python)),
        _ => Err("give no argument, or a Python with mss and Pillow".into()),
    }
}

async fn measure(python: &str) -> Result<(), Failed> {
    let desk = Desk::new(1280, 800)?;
    let measured = measure_on(&desk, python).await;
    desk.desktop.leave().await;
    measured
}

async fn measure_on(desk: &Desk, python: &str) -> Result<(), Failed> {
    fs::write(desk.path("window.py"), WINDOW)?;
    let window = desk.path("window.py").to_string_lossy().into_owned();
    let words = ["/usr/bin/python3".to_owned(), window];
    desk.desktop.start(&words).await?;
    let times = desk.path("times.txt");
    let mut looks = Vec::new();
    let mut turns = Vec::new();
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let seen = desk.look(true).await?;
        looks.push(ms(begun));
        let elements = seen.view.elements;
        let find = |number: usize| {
            let name = number.to_string();
            let mut buttons = elements.iter().filter(|it| it.role == "button");
            let button = buttons.find(|it| it.name == name);
            button.ok_or_else(|| format!("there is no button {name}"))
        };
        let button = find(round * 31 % 400)?;
        let begun = Instant::now();
        let done = desk.act("click", json!({"on": button.id})).await?;
        desk.look(true).await?;
        turns.push(ms(begun));
        if !done.text.contains("presses") {
            return Err(format!("the press did nothing: {}", done.text).into());
        }
        if round == 0 {
            println!("{} elements", elements.len());
        }
        // Waiting for a pointer that is there already would last forever.
        let bounds = find(round * 31 % 400 + 1)?.bounds;
        let bounds = bounds.ok_or("the button has no place")?;
        let (x, y) = (bounds.x + bounds.width / 2, bounds.y + bounds.height / 2);
        let (times, x, y) = (times.to_string_lossy(), x.to_string(), y.to_string());
        desk.on_desktop(&[OTHERS, &times, &x, &y, python]).await?;
    }
    let told = fs::read_to_string(times)?;
    let of = |way: &str| -> Vec<f64> {
        let lines = told.lines().filter_map(|line| line.strip_prefix(way));
        lines.filter_map(|time| time.trim().parse().ok()).collect()
    };
    let own = print("look with picture", looks, None);
    for way in ["bare capture", "scrot", "mss and Pillow"] {
        print(way, of(way), own);
    }
    let own = print("press and look", turns, None);
    print("demo's turn", of("demo's turn"), own);
    Ok(())
}

/// Prints the median of times in milliseconds, and its ratio to another.
fn print(what: &str, mut times: Vec<f64>, own: Option<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    let Some(median) = times.get(times.len() / 2).copied() else {
        println!("{what}: not measured");
        return None;
    };
    let most = times[times.len() - 1];
    match own {
        None => println!("{what}: median {median:.1} ms, longest {most:.1} ms"),
        Some(own) => println!("{what}: median {median:.1} ms, {:.2} times", median / own),
    }
    Some(median)
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1_000.0
}

/// Times the other ways once each, and adds the times to a file.
fn others(times: &Path, at: (&str, &str), python: &str) -> Result<(), Failed> {
    let folder = times.parent().ok_or("the times need a folder")?;
    let picture = folder.join("picture.png");
    let mut file = OpenOptions::new().append(true).create(true).open(times)?;
    writeln!(file, "bare capture {}", bare()?)?;
    let scrot = || run(Command::new("scrot").arg("--overwrite").arg(&picture));
    let begun = Instant::now();
    scrot()?;
    writeln!(file, "scrot {}", ms(begun))?;
    let mss = Command::new(python).args(["-c", MSS]).output()?;
    if mss.status.success() {
        let took = String::from_utf8_lossy(&mss.stdout);
        writeln!(file, "mss and Pillow {}", took.trim())?;
    }
    let begun = Instant::now();
    let press = ["mousemove", "--sync", at.0, at.1, "click", "1"];
    run(Command::new("xdotool").args(press))?;
    // This wait is what is measured.
    std::thread::sleep(Duration::from_secs(2));
    scrot()?;
    fs::read(&picture)?;
    writeln!(file, "demo's turn {}", ms(begun))?;
    Ok(())
}

fn run(command: &mut Command) -> Result<(), Failed> {
    let status = command.stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(())
}

/// Captures the screen by shared memory and encodes it, as gyrus does, and nothing else; returns
/// the milliseconds.
fn bare() -> Result<f64, Failed> {
    let (connection, screen) = x11rb::connect(None)?;
    let screen = &connection.setup().roots[screen];
    let (width, height) = (screen.width_in_pixels, screen.height_in_pixels);
    let mut took = 0.0;
    // The first finds nothing in the caches.
    for _ in 0..2 {
        let begun = Instant::now();
        let size = usize::from(width) * usize::from(height) * 4;
        let memory: OwnedFd = memfd_create("capture", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, size as u64)?;
        let segment = connection.generate_id()?;
        connection.shm_attach_fd(segment, memory.try_clone()?, false)?;
        let format = ImageFormat::Z_PIXMAP.into();
        let (root, all) = (screen.root, !0);
        connection
            .shm_get_image(root, 0, 0, width, height, all, format, segment, 0)?
            .reply()?;
        connection.shm_detach(segment)?;
        let mut bytes = vec![0; size];
        let mut read = 0;
        while read < size {
            read += pread(&memory, &mut bytes[read..], read as u64)?;
        }
        let mut rgb = Vec::with_capacity(size / 4 * 3);
        for pixel in bytes.chunks_exact(4) {
            rgb.extend_from_slice(&[pixel[2], pixel[1], pixel[0]]);
        }
        let mut encoded = Vec::new();
        let (wide, high) = (u32::from(width), u32::from(height));
        let mut encoder = png::Encoder::new(&mut encoded, wide, high);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&rgb)?;
        writer.finish()?;
        took = ms(begun);
    }
    Ok(took)
}
