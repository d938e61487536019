//! Pixels of a picture: covers secrets, and computes the average hash.

use std::io::Cursor;

use gyrus_contract::Bounds;
use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Transformations};

/// Distance between the pixels that enter the hash, which has 64 cells for a whole screen.
const STRIDE: usize = 4;

/// Grey value that covers secrets.
const PAINT: u8 = 0x40;

/// A decoded picture.
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Bytes per pixel.
    channels: usize,
    colour: ColorType,
    data: Vec<u8>,
}

impl Pixels {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut decoder = Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
        let size = reader.output_buffer_size().ok_or("it is too large")?;
        let mut data = vec![0; size];
        let info = reader
            .next_frame(&mut data)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            width: info.width,
            height: info.height,
            channels: info.color_type.samples(),
            colour: info.color_type,
            data,
        })
    }

    /// Creates a picture from red, green and blue bytes, row by row.
    #[cfg(feature = "desktop")]
    pub(crate) fn rgb(width: u32, height: u32, data: Vec<u8>) -> Self {
        Self {
            width,
            height,
            channels: 3,
            colour: ColorType::Rgb,
            data,
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(self.colour);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
        writer
            .write_image_data(&self.data)
            .map_err(|error| error.to_string())?;
        writer.finish().map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// Paints over a rectangle, clipped to the picture.
    pub(crate) fn cover(&mut self, bounds: Bounds) {
        let within =
            |at: i32, most: u32| usize::try_from(at.clamp(0, i32::try_from(most).unwrap_or(0)));
        let (Ok(left), Ok(right), Ok(top), Ok(bottom)) = (
            within(bounds.x, self.width),
            within(bounds.x + bounds.width, self.width),
            within(bounds.y, self.height),
            within(bounds.y + bounds.height, self.height),
        ) else {
            return;
        };
        let row = self.width as usize * self.channels;
        let has_alpha = matches!(self.colour, ColorType::Rgba | ColorType::GrayscaleAlpha);
        for line in self.data.chunks_exact_mut(row).take(bottom).skip(top) {
            for pixel in
                line[left * self.channels..right * self.channels].chunks_exact_mut(self.channels)
            {
                pixel.fill(PAINT);
                if has_alpha && let Some(alpha) = pixel.last_mut() {
                    *alpha = 0xff;
                }
            }
        }
    }

    /// Returns the number of pixels in which a picture of the same size differs, within a rectangle.
    #[cfg(feature = "desktop")]
    pub(crate) fn differing(&self, other: &Self, within: Bounds) -> usize {
        if (self.width, self.height) != (other.width, other.height) {
            return usize::MAX;
        }
        let clamp = |at: i32, most: u32| at.clamp(0, most as i32) as usize;
        let rows = clamp(within.y, self.height)..clamp(within.y + within.height, self.height);
        let columns = clamp(within.x, self.width)..clamp(within.x + within.width, self.width);
        rows.map(|row| {
            let start = row * self.width as usize;
            let [from, to] = [columns.start, columns.end].map(|x| (start + x) * self.channels);
            let own = self.data[from..to].chunks_exact(self.channels);
            let pairs = own.zip(other.data[from..to].chunks_exact(self.channels));
            pairs.filter(|(one, other)| one != other).count()
        })
        .sum()
    }

    /// Returns the average hash: a bit for each of 8 by 8 cells, row by row from the highest bit,
    /// set if lighter than the mean.
    pub(crate) fn average_hash(&self) -> u64 {
        let (width, height) = (self.width as usize, self.height as usize);
        let mut cells = [(0_u64, 0_u64); 64];
        for y in (0..height).step_by(STRIDE) {
            let line = &self.data[y * width * self.channels..][..width * self.channels];
            for x in (0..width).step_by(STRIDE) {
                let pixel = &line[x * self.channels..][..self.channels];
                let light = match pixel {
                    [red, green, blue, ..] => {
                        (u64::from(*red) * 299 + u64::from(*green) * 587 + u64::from(*blue) * 114)
                            / 1000
                    }
                    [grey, ..] => u64::from(*grey),
                    [] => 0,
                };
                let cell = &mut cells[y * 8 / height * 8 + x * 8 / width];
                *cell = (cell.0 + light, cell.1 + 1);
            }
        }
        // Thousandths, so that cells of slightly different sizes compare.
        let of = |(sum, count): (u64, u64)| sum * 1000 / count.max(1);
        let mean = of(cells
            .iter()
            .fold((0, 0), |all, cell| (all.0 + cell.0, all.1 + cell.1)));
        cells
            .iter()
            .fold(0, |hash, cell| hash << 1 | u64::from(of(*cell) > mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(width: u32, height: u32, light: impl Fn(u32, u32) -> u8) -> Pixels {
        let data = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Pixels {
            width,
            height,
            channels: 3,
            colour: ColorType::Rgb,
            data: data.flat_map(|(x, y)| [light(x, y); 3]).collect(),
        }
    }

    #[test]
    fn the_hash_tells_light_from_dark_cells() {
        let left_is_light = grey(64, 64, |x, _| if x < 32 { 255 } else { 0 });
        assert_eq!(left_is_light.average_hash(), 0xf0f0_f0f0_f0f0_f0f0);
        assert_eq!(grey(64, 64, |_, _| 9).average_hash(), 0);
    }

    #[test]
    fn what_is_painted_over_is_gone_after_encoding() {
        let mut pixels = grey(40, 20, |_, _| 200);
        pixels.cover(Bounds {
            x: -5,
            y: 5,
            width: 15,
            height: 100,
        });
        let again = Pixels::decode(&pixels.encode().unwrap()).unwrap();
        for (x, y, light) in [(0, 4, 200), (0, 5, PAINT), (9, 19, PAINT), (10, 19, 200)] {
            assert_eq!(again.data[(y * 40 + x) * 3], light, "{x},{y}");
        }
    }
}
