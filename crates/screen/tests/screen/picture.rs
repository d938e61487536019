//! The picture has the tree's coordinates and none of the page's secrets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use gyrus_contract::{Bounds, ElementState, LookOptions, Picture, Screen, ViewWithPicture};
use gyrus_screen::{Browser, Launch};
use serde_json::json;

use crate::{
    looking::{named, tree},
    support::{Pages, browser, has_browser},
};

const LOOK: LookOptions = LookOptions {
    frame: true,
    documents: 0,
};

struct Pixels {
    width: usize,
    channels: usize,
    data: Vec<u8>,
}

impl Pixels {
    fn of(picture: &Picture) -> Self {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(&picture.bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut data).unwrap();
        Self {
            width: info.width as usize,
            channels: info.color_type.samples(),
            data,
        }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let pixel = &self.data[(y * self.width + x) * self.channels..];
        [pixel[0], pixel[1], pixel[2]]
    }

    /// Returns the box around all pixels of approximately a colour.
    fn around(&self, colour: [u8; 3]) -> Option<Bounds> {
        let is_near = |pixel: &[u8]| {
            pixel
                .iter()
                .zip(colour)
                .all(|(one, two)| one.abs_diff(two) < 60)
        };
        let (mut left, mut top, mut right, mut bottom) = (i32::MAX, i32::MAX, i32::MIN, i32::MIN);
        for (index, pixel) in self.data.chunks_exact(self.channels).enumerate() {
            if is_near(&pixel[..3]) {
                let x = i32::try_from(index % self.width).unwrap();
                let y = i32::try_from(index / self.width).unwrap();
                (left, top) = (left.min(x), top.min(y));
                (right, bottom) = (right.max(x + 1), bottom.max(y + 1));
            }
        }
        (right > left).then(|| Bounds {
            x: left,
            y: top,
            width: right - left,
            height: bottom - top,
        })
    }
}

fn is_within_two(one: Bounds, other: Bounds) -> bool {
    let near = |one: i32, other: i32| (one - other).abs() <= 2;
    near(one.x, other.x)
        && near(one.y, other.y)
        && near(one.x + one.width, other.x + other.width)
        && near(one.y + one.height, other.y + other.height)
}

/// Checks that coloured boxes are where the tree says.
async fn check(what: &str, browser: &Browser) {
    let ViewWithPicture { view, frame } = browser.look(LOOK).await.unwrap();
    let picture = frame.unwrap_or_else(|| panic!("{what}: no picture: {:?}", view.unread));
    assert_eq!(
        (picture.width, picture.height),
        (view.width, view.height),
        "{what}"
    );
    assert!(picture.width <= 1280, "{what}");
    let pixels = Pixels::of(&picture);
    let colours = [
        ("magenta", [255, 0, 255]),
        ("cyan", [0, 255, 255]),
        ("yellow", [255, 255, 0]),
    ];
    for (name, colour) in colours {
        let told = named(&view, name).bounds.unwrap();
        let painted = pixels
            .around(colour)
            .unwrap_or_else(|| panic!("{what}: no {name}"));
        assert!(
            is_within_two(told, painted),
            "{what}: {name} told {told:?}, painted {painted:?}"
        );
    }
}

#[tokio::test]
async fn boxes_are_where_they_are_painted_at_any_density_and_zoom() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    for (width, density) in [
        (1280, 1.0),
        (1280, 2.0),
        (1920, 1.0),
        (1000, 1.5),
        (1700, 2.0),
    ] {
        let launch = Launch {
            width,
            density,
            ..Launch::default()
        };
        let browser = browser(launch);
        for hash in ["", "#zoomed", "#scrolled"] {
            let what = format!("{width} wide, density {density}, {hash}");
            browser.open("about:blank").await.unwrap();
            browser
                .open(&pages.at(&format!("look-colour.html{hash}")))
                .await
                .unwrap();
            check(&what, &browser).await;
        }
        if density == 1.0 {
            let pinch = json!({"pageScaleFactor": 1.5});
            browser
                .devtools("Emulation.setPageScaleFactor", pinch)
                .await
                .unwrap();
            check(&format!("{width} wide, pinched"), &browser).await;
        }
        // Like a browser's own zoom: fewer and denser pixels in the same window.
        let zoomed = json!({
            "width": width * 4 / 5,
            "height": 640,
            "deviceScaleFactor": density * 1.25,
            "mobile": false,
        });
        browser.open(&pages.at("look-colour.html")).await.unwrap();
        browser
            .devtools("Emulation.setDeviceMetricsOverride", zoomed)
            .await
            .unwrap();
        check(&format!("{width} wide, zoomed by the browser"), &browser).await;
    }
}

#[tokio::test]
async fn a_picture_that_did_not_change_is_the_same_one() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    let browser = browser(Launch::default());
    browser.open(&pages.at("look-colour.html")).await.unwrap();
    let first = browser.look(LOOK).await.unwrap();
    let again = browser.look(LOOK).await.unwrap();
    assert_eq!(first.frame, again.frame);
    assert!(first.view.hash.is_some() && first.view.hash == again.view.hash);
    browser.open(&pages.at("look-form.html")).await.unwrap();
    let other = browser.look(LOOK).await.unwrap();
    assert_ne!(first.view.hash, other.view.hash);
}

#[tokio::test]
async fn secrets_are_in_neither_tree_nor_picture() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    for density in [1.0, 2.0] {
        let launch = Launch {
            density,
            height: 900,
            ..Launch::default()
        };
        let browser = browser(launch);
        browser.open(&pages.at("look-secrets.html")).await.unwrap();
        let ViewWithPicture { view, frame } = browser.look(LOOK).await.unwrap();
        let whole = serde_json::to_string(&view).unwrap();
        let secrets = [
            "hunter2",
            "correct horse",
            "771177",
            "881188",
            "411111",
            "cvc-7-3-7",
            "dotted-secret",
            "in-the-frame",
            "in-the-root",
        ];
        for secret in secrets {
            assert!(!whole.contains(secret), "{secret}: {}", tree(&view));
        }
        for open in ["Ada L", "pine road 4", "visible"] {
            assert!(whole.contains(open), "{open}: {}", tree(&view));
        }
        let pixels = Pixels::of(&frame.unwrap());
        let mut masked = 0;
        for one in &view.elements {
            let Some(bounds) = one
                .bounds
                .filter(|_| one.states.contains(&ElementState::Masked))
            else {
                continue;
            };
            if one.value.as_deref() == Some("") {
                continue;
            }
            masked += 1;
            for x in bounds.x..bounds.x + bounds.width {
                for y in bounds.y..bounds.y + bounds.height {
                    let at = pixels.at(usize::try_from(x).unwrap(), usize::try_from(y).unwrap());
                    assert_eq!(at, [0x40; 3], "{x},{y} of {one:?}");
                }
            }
        }
        assert_eq!(masked, 15, "{}", tree(&view));
        let login = named(&view, "Login").bounds.unwrap();
        let inside = pixels.at(
            usize::try_from(login.x + 5).unwrap(),
            usize::try_from(login.y + 3).unwrap(),
        );
        assert_ne!(inside, [0x40; 3]);
    }
    // An element that is not a password field is covered where its text is recognised as a secret.
    let browser = browser(Launch::default());
    browser.cover(Arc::new(|name, value| {
        name == "Login" && value == Some("ada")
    }));
    browser.open(&pages.at("look-secrets.html")).await.unwrap();
    let ViewWithPicture { view, frame } = browser.look(LOOK).await.unwrap();
    let login = named(&view, "Login").bounds.unwrap();
    let [x, y] = [login.x + 5, login.y + 3].map(|at| usize::try_from(at).unwrap());
    assert_eq!(Pixels::of(&frame.unwrap()).at(x, y), [0x40; 3]);
}
