//! Pictures for the probes: drawn here, so that their content is known to the pixel.

use std::collections::BTreeMap;

use gyrus_contract::{BlobId, Image};

use crate::Blobs;

/// Number in the first picture.
pub(super) const NUMBER: &str = "4719";

/// Size of the screen with targets, in pixels. Neither side is 1000, so that pixels can be
/// distinguished from thousandths.
pub(super) const SCREEN: (u32, u32) = (1280, 800);

/// A disc on the screen.
pub(super) struct Target {
    /// Common name of its colour.
    pub(super) name: &'static str,
    /// Red, green and blue.
    colour: [u8; 3],
    /// Centre, in pixels.
    pub(super) at: (u32, u32),
}

/// Targets to point at: in the corners, where conventions differ most, and near the middle.
pub(super) const TARGETS: [Target; 5] = [
    Target {
        name: "red",
        colour: [220, 20, 20],
        at: (140, 90),
    },
    Target {
        name: "blue",
        colour: [20, 60, 220],
        at: (1130, 130),
    },
    Target {
        name: "green",
        colour: [20, 150, 40],
        at: (610, 360),
    },
    Target {
        name: "orange",
        colour: [250, 140, 0],
        at: (210, 690),
    },
    Target {
        name: "black",
        colour: [0, 0, 0],
        at: (1040, 650),
    },
];

/// Radius of a target, in pixels. All targets are further from the edges.
const RADIUS: u32 = 22;

const WHITE: [u8; 3] = [255, 255, 255];
const BLACK: [u8; 3] = [0, 0, 0];

/// The digits of [`NUMBER`], five squares wide and seven high.
const DIGITS: [(char, [&str; 7]); 4] = [
    (
        '4',
        [
            "...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#.",
        ],
    ),
    (
        '7',
        [
            "#####", "....#", "...#.", "..#..", "..#..", "..#..", "..#..",
        ],
    ),
    (
        '1',
        [
            "..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###.",
        ],
    ),
    (
        '9',
        [
            ".###.", "#...#", "#...#", ".####", "....#", "...#.", ".##..",
        ],
    ),
];

/// The pictures, as the store that a model must have to be measured.
#[derive(Debug, Clone)]
pub struct Pictures {
    bytes: BTreeMap<BlobId, Vec<u8>>,
    /// Picture of the number on white.
    pub(super) number: Image,
    /// Picture of the screen with its targets.
    pub(super) screen: Image,
}

impl Pictures {
    /// Draws the pictures.
    pub fn new() -> Self {
        let mut bytes = BTreeMap::new();
        let mut keep = |canvas: Canvas| {
            let png = canvas.as_png();
            let image = Image {
                blob: BlobId::of(&png),
                media_type: "image/png".to_owned(),
                width: canvas.width,
                height: canvas.height,
            };
            bytes.insert(image.blob, png);
            image
        };
        Self {
            number: keep(number()),
            screen: keep(screen()),
            bytes,
        }
    }
}

impl Default for Pictures {
    fn default() -> Self {
        Self::new()
    }
}

impl Blobs for Pictures {
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String> {
        let bytes = self.bytes.get(id).cloned();
        bytes.ok_or_else(|| "it is none of the pictures that measure a model".to_owned())
    }
}

fn number() -> Canvas {
    const SQUARE: u32 = 12;
    let mut canvas = Canvas::white(7 * SQUARE * 4 + 2 * SQUARE, 11 * SQUARE);
    for (place, digit) in (0_u32..).zip(NUMBER.chars()) {
        let rows = DIGITS.iter().find(|(known, _)| *known == digit);
        let rows = rows.map(|(_, rows)| rows).into_iter().flatten();
        for (y, row) in (0_u32..).zip(rows) {
            for (x, _) in (0_u32..).zip(row.chars()).filter(|(_, c)| *c == '#') {
                let left = (2 + place * 7 + x) * SQUARE;
                canvas.rectangle((left, (2 + y) * SQUARE), (SQUARE, SQUARE), BLACK);
            }
        }
    }
    canvas
}

fn screen() -> Canvas {
    let mut canvas = Canvas::white(SCREEN.0, SCREEN.1);
    for target in TARGETS {
        canvas.disc(target.at, target.colour);
    }
    canvas
}

/// Pixels to draw on.
struct Canvas {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Canvas {
    fn white(width: u32, height: u32) -> Self {
        let pixels = width as usize * height as usize;
        Self {
            width,
            height,
            rgb: vec![WHITE[0]; pixels * 3],
        }
    }

    fn set(&mut self, x: u32, y: u32, colour: [u8; 3]) {
        let at = (y as usize * self.width as usize + x as usize) * 3;
        if let Some(pixel) = self.rgb.get_mut(at..at + 3)
            && x < self.width
        {
            pixel.copy_from_slice(&colour);
        }
    }

    fn rectangle(&mut self, (left, top): (u32, u32), (width, height): (u32, u32), colour: [u8; 3]) {
        for y in top..top + height {
            for x in left..left + width {
                self.set(x, y, colour);
            }
        }
    }

    fn disc(&mut self, (x, y): (u32, u32), colour: [u8; 3]) {
        let radius = i64::from(RADIUS);
        for (dy, row) in (-radius..=radius).zip(y - RADIUS..) {
            for (dx, column) in (-radius..=radius).zip(x - RADIUS..) {
                if dx * dx + dy * dy <= radius * radius {
                    self.set(column, row, colour);
                }
            }
        }
    }

    fn as_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&self.rgb))
            .expect("a whole canvas is written to memory");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_where_it_is_said_to_be() {
        let pictures = Pictures::new();
        let bytes = pictures.load(&pictures.screen.blob).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width, info.height), SCREEN);
        let pixel = |x: u32, y: u32| {
            let at = (y as usize * SCREEN.0 as usize + x as usize) * 3;
            [rgb[at], rgb[at + 1], rgb[at + 2]]
        };
        for target in TARGETS {
            let (x, y) = target.at;
            assert_eq!(pixel(x, y), target.colour, "{}", target.name);
            assert_eq!(pixel(x + 40, y), WHITE);
        }
        assert!(pictures.load(&BlobId::of(b"another")).is_err());
        let digits: Vec<_> = DIGITS.iter().map(|(digit, _)| *digit).collect();
        assert!(NUMBER.chars().all(|digit| digits.contains(&digit)));
    }
}
