//! The store that pictures are read from.

use std::{io::Cursor, sync::Arc};

use gyrus_contract::BlobId;
use png::{Decoder, Encoder, Transformations};

/// Source of the bytes of pictures.
pub trait PictureSource: Send + Sync {
    /// Returns the content with this id, or the reason why there is none.
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String>;
}

/// A store without any content, for runs that show no pictures.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBlobs;

impl PictureSource for NoBlobs {
    fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
        Err("this run has no blob store".to_owned())
    }
}

/// Longest side to which a picture is scaled down, in pixels.
const LONGEST_SIDE: u32 = 768;

/// The pictures of a store at half their size until they have at most [`LONGEST_SIDE`] pixels. One
/// that is not a PNG stays as it is.
pub(crate) struct SmallerPictures(pub(crate) Arc<dyn PictureSource>);

impl PictureSource for SmallerPictures {
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String> {
        let bytes = self.0.load(id)?;
        Ok(smaller(&bytes).unwrap_or(bytes))
    }
}

/// Returns the picture scaled down, with each pixel the mean of a square; `None` if it cannot be
/// read.
fn smaller(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut pixels).ok()?;
    let (width, height) = (info.width as usize, info.height as usize);
    let samples = info.color_type.samples();
    let longest = info.width.max(info.height);
    let side = longest.div_ceil(LONGEST_SIDE).max(2).next_power_of_two() as usize;
    let (wide, high) = (width.div_ceil(side), height.div_ceil(side));
    let mut small = Vec::with_capacity(wide * high * samples);
    for (y, x) in (0..high).flat_map(|y| (0..wide).map(move |x| (y * side, x * side))) {
        let (rows, columns) = (y..height.min(y + side), x..width.min(x + side));
        let count = rows.len() * columns.len();
        for sample in 0..samples {
            let square = rows
                .clone()
                .flat_map(|row| columns.clone().map(move |column| (row, column)));
            let at = |(row, column)| usize::from(pixels[(row * width + column) * samples + sample]);
            let mean = square.map(at).sum::<usize>() / count.max(1);
            small.push(u8::try_from(mean).unwrap_or(u8::MAX));
        }
    }
    let mut encoded = Vec::new();
    let mut encoder = Encoder::new(
        &mut encoded,
        u32::try_from(wide).ok()?,
        u32::try_from(high).ok()?,
    );
    encoder.set_color(info.color_type);
    encoder.set_depth(info.bit_depth);
    encoder.write_header().ok()?.write_image_data(&small).ok()?;
    Some(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: &[u8]) -> (u32, u32) {
        let reader = Decoder::new(Cursor::new(bytes)).read_info().unwrap();
        reader.info().size()
    }

    #[test]
    fn pictures_become_smaller_and_anything_else_stays() {
        let picture = include_bytes!("probe/screen.png");
        let (width, height) = size(picture);
        let small = smaller(picture).unwrap();
        assert_eq!(size(&small), (width.div_ceil(2), height.div_ceil(2)));
        assert!(small.len() < picture.len() * 4);
        assert_eq!(smaller(b"\xff\xd8\xff\xe0 no png"), None);
        assert_eq!(smaller(&picture[..picture.len() / 2]), None);
    }
}
