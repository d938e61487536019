//! Pictures for the probes. Their content is known to the pixel.

use gyrus_contract::{BlobId, Image};

use crate::PictureSource;

/// Picture of [`NUMBER`] on white, of the size [`NUMBER_SIZE`].
const NUMBER_PNG: &[u8] = include_bytes!("number.png");

/// Picture of a white screen with the [`TARGETS`], of the size [`SCREEN`].
const SCREEN_PNG: &[u8] = include_bytes!("screen.png");

/// Number in the first picture.
pub(super) const NUMBER: &str = "4719";

/// Size of the first picture, in pixels.
const NUMBER_SIZE: (u32, u32) = (360, 132);

/// Size of the screen with targets, in pixels. Neither side is 1000, so that pixels can be
/// distinguished from thousandths.
pub(super) const SCREEN: (u32, u32) = (1280, 800);

/// Discs on the screen to point at: the common names of their colours, and their centres in pixels.
/// They lie in the corners, where conventions differ most, and near the middle.
pub(super) const TARGETS: [(&str, (u32, u32)); 5] = [
    ("red", (140, 90)),
    ("blue", (1130, 130)),
    ("green", (610, 360)),
    ("orange", (210, 690)),
    ("black", (1040, 650)),
];

/// The store of pictures that a model needs to be measured.
#[derive(Debug, Clone)]
pub struct ProbePictures {
    /// Picture of the number on white.
    pub(super) number: Image,
    /// Picture of a screen with targets.
    pub(super) screen: Image,
}

impl ProbePictures {
    /// Draws the pictures.
    pub fn new() -> Self {
        let image = |png: &[u8], (width, height)| Image {
            blob: BlobId::of(png),
            media_type: "image/png".to_owned(),
            width,
            height,
        };
        Self {
            number: image(NUMBER_PNG, NUMBER_SIZE),
            screen: image(SCREEN_PNG, SCREEN),
        }
    }
}

impl Default for ProbePictures {
    fn default() -> Self {
        Self::new()
    }
}

impl PictureSource for ProbePictures {
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String> {
        let all = [(&self.number, NUMBER_PNG), (&self.screen, SCREEN_PNG)];
        let found = all.into_iter().find(|(image, _)| image.blob == *id);
        found
            .map(|(_, png)| png.to_vec())
            .ok_or_else(|| "it is none of the pictures that measure a model".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: [u8; 3] = [255, 255, 255];

    /// Returns the bytes of an image's pixels.
    fn decoded(image: &Image) -> Vec<u8> {
        let bytes = ProbePictures::new().load(&image.blob).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width, info.height), (image.width, image.height));
        rgb
    }

    #[test]
    fn what_is_shown_is_where_it_is_said_to_be() {
        let pictures = ProbePictures::new();
        let rgb = decoded(&pictures.screen);
        let pixel = |x: u32, y: u32| {
            let at = (y as usize * SCREEN.0 as usize + x as usize) * 3;
            [rgb[at], rgb[at + 1], rgb[at + 2]]
        };
        let colours = [
            [220, 20, 20],
            [20, 60, 220],
            [20, 150, 40],
            [250, 140, 0],
            [0, 0, 0],
        ];
        for ((name, (x, y)), colour) in TARGETS.into_iter().zip(colours) {
            assert_eq!(pixel(x, y), colour, "{name}");
            assert_eq!(pixel(x + 40, y), WHITE);
        }
        assert!(pictures.load(&BlobId::of(b"another")).is_err());
    }

    #[test]
    fn the_number_can_be_read() {
        let pictures = ProbePictures::new();
        let rgb = decoded(&pictures.number);
        // The middles of the squares of which the digits consist.
        let rows = (2..9).map(|y| {
            let dots = (2..29).map(|x| rgb[((y * 12 + 6) * 360 + x * 12 + 6) * 3] == 0);
            dots.map(|dot| if dot { '#' } else { ' ' })
                .collect::<String>()
        });
        let rows: Vec<_> = rows.collect();
        let expected = [
            "   #   #####    #     ###  ",
            "  ##       #   ##    #   # ",
            " # #      #     #    #   # ",
            "#  #     #      #     #### ",
            "#####    #      #        # ",
            "   #     #      #       #  ",
            "   #     #     ###    ##   ",
        ];
        assert_eq!(rows, expected);
    }
}
