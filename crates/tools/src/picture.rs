//! Pictures that a model can look at: format and size, from a file's header.
//!
//! Nothing is decoded. The formats: PNG (W3C PNG specification, section 5 and 11.2.1), JPEG (ITU-T
//! T.81, annex B), WebP (RFC 9649, section 2) and GIF (version 89a, section 18), of which models see the
//! first frame.

use gyrus_contract::{Image, Site};

use crate::failure::ToolFailure;

/// Maximum bytes of a picture; models accept no larger ones, so those are only described.
pub(crate) const MAX_BYTES: u64 = 5 * 1024 * 1024;

/// Maximum width and height that models accept, in pixels; a prompt with a larger picture would be
/// refused.
pub(crate) const MAX_SIDE: u32 = 8_000;

/// Header of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureHeader {
    kind: ImageKind,
    /// Width in pixels, not 0.
    pub width: u32,
    /// Height in pixels, not 0.
    pub height: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageKind {
    Png,
    Jpeg,
    WebP,
    Gif,
}

impl ImageKind {
    /// Returns the format of a picture, by its first dozen bytes.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if start.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
            Some(Self::WebP)
        } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else {
            None
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::WebP => "WebP",
            Self::Gif => "GIF",
        }
    }
}

impl PictureHeader {
    /// Reads the header of the whole picture `bytes`; the data after it is not examined. `None`: it
    /// is of another kind, or damaged.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let kind = ImageKind::of(bytes)?;
        let (width, height) = match kind {
            ImageKind::Png => png(bytes)?,
            ImageKind::Jpeg => jpeg(bytes)?,
            ImageKind::WebP => webp(bytes)?,
            ImageKind::Gif => gif(bytes)?,
        };
        (width > 0 && height > 0).then_some(Self {
            kind,
            width,
            height,
        })
    }

    /// Returns `image/png`, `image/jpeg`, `image/webp` or `image/gif`.
    pub fn media_type(&self) -> &'static str {
        match self.kind {
            ImageKind::Png => "image/png",
            ImageKind::Jpeg => "image/jpeg",
            ImageKind::WebP => "image/webp",
            ImageKind::Gif => "image/gif",
        }
    }
}

/// Stores the picture for the model, with a description. A picture that models would not accept is
/// only described, without an image.
pub(crate) fn keep(
    header: PictureHeader,
    bytes: &[u8],
    site: &dyn Site,
) -> Result<(String, Option<Image>), ToolFailure> {
    let PictureHeader {
        kind,
        width,
        height,
    } = header;
    let longest = width.max(height);
    let what = format!(
        "{} picture, {width} × {height} pixels, {} bytes",
        kind.name(),
        bytes.len()
    );
    if longest > MAX_SIDE {
        let words = format!(
            "({what}; not shown, as the longest side of {longest} is over {MAX_SIDE} pixels: \
             scale it down in the shell)"
        );
        return Ok((words, None));
    }
    let blob = site.keep(bytes).map_err(|error| {
        ToolFailure::new(format!(
            "the {} picture could not be kept: {error}",
            kind.name()
        ))
    })?;
    let image = Image {
        blob,
        media_type: header.media_type().to_owned(),
        width,
        height,
    };
    Ok((format!("({what}; longest side {longest})"), Some(image)))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |at: usize| {
        let side = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u32::from(u16::from_le_bytes(side)))
    };
    Some((side(6)?, side(8)?))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    // Signature, length of the first chunk, its name.
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    let side = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((side(16)?, side(20)?))
}

fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(2..)?;
    loop {
        rest = rest.strip_prefix(b"\xff")?;
        let (&marker, after) = rest.split_first()?;
        match marker {
            // Filling before a marker.
            0xff => continue,
            // Markers without a segment.
            0x01 | 0xd0..=0xd7 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes(after.get(..2)?.try_into().ok()?));
        let segment = after.get(2..length)?;
        match marker {
            // Frames, without the tables in between (DHT, JPG, DAC).
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let side = |at: usize| {
                    let bytes = segment.get(at..at + 2)?.try_into().ok()?;
                    Some(u32::from(u16::from_be_bytes(bytes)))
                };
                return Some((side(3)?, side(1)?));
            }
            // The picture itself, or its end, and no frame before.
            0xd9 | 0xda => return None,
            _ => rest = &after[length..],
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let chunk = bytes.get(20..)?;
    let u16_at = |at: usize| {
        let bytes = chunk.get(at..at + 2)?.try_into().ok()?;
        Some(u32::from(u16::from_le_bytes(bytes)))
    };
    match bytes.get(12..16)? {
        b"VP8 " => {
            (chunk.get(3..6)? == b"\x9d\x01\x2a").then_some(())?;
            Some((u16_at(6)? & 0x3fff, u16_at(8)? & 0x3fff))
        }
        b"VP8L" => {
            (chunk.first()? == &0x2f).then_some(())?;
            let bits = u16_at(1)? | u16_at(3)? << 16;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let u24_at = |at: usize| Some(u16_at(at)? | u32::from(*chunk.get(at + 2)?) << 16);
            Some((u24_at(4)? + 1, u24_at(7)? + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jpeg_of(segments: &[&[u8]]) -> Vec<u8> {
        [b"\xff\xd8".as_slice(), &segments.concat()].concat()
    }

    fn webp_of(name: &[u8; 4], chunk: &[u8]) -> Vec<u8> {
        [b"RIFF\0\0\0\0WEBP", name.as_slice(), b"\0\0\0\0", chunk].concat()
    }

    #[test]
    fn headers_are_read_and_damage_is_none() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x03\x20\x08\x02\0\0\0".to_vec();
        let comment: &[u8] = b"\xff\xfe\0\x06\xff\xc0hi";
        let table: &[u8] = b"\xff\xc4\0\x03x";
        let frame: &[u8] = b"\xff\xff\xc2\0\x0b\x08\x03\x20\x05\0\x01\x01\x11\0";
        for (kind, bytes) in [
            (ImageKind::Png, png),
            (ImageKind::Jpeg, jpeg_of(&[comment, table, frame])),
            (
                ImageKind::WebP,
                webp_of(b"VP8 ", b"\0\0\0\x9d\x01\x2a\0\x45\x20\x03"),
            ),
            (
                ImageKind::WebP,
                webp_of(b"VP8L", &[0x2f, 0xff, 0xc4, 0xc7, 0x00]),
            ),
            (
                ImageKind::WebP,
                webp_of(b"VP8X", b"\0\0\0\0\xff\x04\0\x1f\x03\0"),
            ),
        ] {
            let header = PictureHeader {
                kind,
                width: 1280,
                height: 800,
            };
            assert_eq!(PictureHeader::read(&bytes), Some(header), "{bytes:?}");
            // Truncated or corrupted headers must not panic.
            for end in 0..bytes.len() {
                let _ = PictureHeader::read(&bytes[..end]);
                let mut bent = bytes.clone();
                bent[end] ^= 0xff;
                let _ = PictureHeader::read(&bent);
            }
        }
        for damaged in [
            jpeg_of(&[b"\xff\xda\0\x02", frame]),
            jpeg_of(&[b"\xff\xe0\0\0", frame]),
            jpeg_of(&[b"\xff\xe0\xff\xff", frame]),
            jpeg_of(&[&b"\xff".repeat(100_000)]),
            webp_of(b"ANIM", &[0; 20]),
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\x03\x20".to_vec(),
            b"GIF89a".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(PictureHeader::read(&damaged), None, "{damaged:?}");
        }
    }
}
