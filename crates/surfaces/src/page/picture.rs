//! Pictures of a run that may stand in its page: what they are is read from their bytes, never
//! from what an entry says of them.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::{BlobId, Image, RunId};
use gyrus_journal::LogReader;
use maud::{Markup, html};

use super::markup::PageAnchor;

/// Maximum size of a picture on a page, in bytes.
const PICTURE_LIMIT: usize = 4 << 20;

/// Maximum size of all pictures of a page together, in bytes.
const PAGE_LIMIT: usize = 24 << 20;

/// A picture of a kind that browsers show and that cannot carry a program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SafePicture {
    media_type: &'static str,
    bytes: Vec<u8>,
}

/// Returns the media type of a picture, by its first bytes: PNG, JPEG or WebP. Nothing else is ever
/// shown as what it may be.
pub fn picture_media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, rest @ ..] if rest.starts_with(b"WEBP") => {
            Some("image/webp")
        }
        _ => None,
    }
}

impl SafePicture {
    /// The picture that these bytes are, if they begin like a PNG, JPEG or WebP file.
    fn of(bytes: Vec<u8>) -> Option<Self> {
        let media_type = picture_media_type(&bytes)?;
        Some(Self { media_type, bytes })
    }

    /// Returns the picture as an address that needs no request.
    fn data_uri(&self) -> String {
        format!(
            "data:{};base64,{}",
            self.media_type,
            STANDARD.encode(&self.bytes)
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PictureState {
    /// The picture itself, with an anchor, so that it is sent only once.
    Here(SafePicture, PageAnchor),
    /// An earlier place of the page has the picture.
    Before(PageAnchor),
    /// The reason why the picture is not shown.
    Not(String),
}

/// The pictures of a page, each included once.
#[derive(Debug, Default)]
pub struct PagePictures {
    taken: BTreeMap<BlobId, PageAnchor>,
    bytes: usize,
    /// The run whose pictures a server delivers; without it they are part of the page.
    served: Option<RunId>,
}

impl PagePictures {
    /// Creates the pictures of a page whose server also serves the run's blobs.
    pub(super) fn served(run: RunId) -> Self {
        Self {
            served: Some(run),
            ..Self::default()
        }
    }

    /// Whether a server shows the page, so that it may link to other pages.
    pub(super) fn are_served(&self) -> bool {
        self.served.is_some()
    }

    /// Draws a picture of the run that `reader` reads, a link to its earlier place on the page, or
    /// the reason why it is not shown.
    pub fn figure(&mut self, image: &Image, reader: &LogReader) -> Markup {
        let caption = format!("{} × {}", image.width, image.height);
        if let Some(run) = self.served {
            let blob = image.blob;
            return html! {
                figure {
                    img src={ "/api/runs/" (run) "/blobs/" (blob) } alt="a picture of the run"
                        loading="lazy" width=(image.width) height=(image.height);
                    figcaption { (caption) }
                }
            };
        }
        match self.take(image, reader) {
            PictureState::Here(picture, anchor) => html! {
                figure id=(anchor) {
                    img src=(picture.data_uri()) alt="a picture of the run" loading="lazy";
                    figcaption { (caption) }
                }
            },
            PictureState::Before(anchor) => html! {
                p.aside { a href={ "#" (anchor) } { "the same picture as before" } }
            },
            PictureState::Not(why) => html! {
                p.aside { "a picture (" (caption) ") is not shown: " (why) }
            },
        }
    }

    fn take(&mut self, image: &Image, reader: &LogReader) -> PictureState {
        if let Some(anchor) = self.taken.get(&image.blob) {
            return PictureState::Before(*anchor);
        }
        let bytes = match reader.blob(&image.blob) {
            Ok(bytes) => bytes,
            Err(error) => return PictureState::Not(format!("it cannot be read: {error}")),
        };
        let length = bytes.len();
        if length > PICTURE_LIMIT || self.bytes + length > PAGE_LIMIT {
            return PictureState::Not(format!(
                "it has {} kB, more than this page takes; it is the blob {} of the run",
                length / 1024,
                image.blob
            ));
        }
        let Some(picture) = SafePicture::of(bytes) else {
            return PictureState::Not("its content is neither PNG, JPEG nor WebP".to_owned());
        };
        let number = u32::try_from(self.taken.len() + 1).unwrap_or(u32::MAX);
        let anchor = PageAnchor::Picture(number);
        self.taken.insert(image.blob, anchor);
        self.bytes += length;
        PictureState::Here(picture, anchor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_are_pictures() {
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x01\x02\x03\x04WAVE", None),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
            (b"\x89PNG", None),
            (b"GIF89a", None),
            (b"", None),
        ] {
            let picture = SafePicture::of(bytes.to_vec());
            assert_eq!(picture.map(|picture| picture.media_type), media_type);
        }
        let picture = SafePicture::of(b"\xff\xd8\xff\xe0".to_vec()).unwrap();
        assert_eq!(picture.data_uri(), "data:image/jpeg;base64,/9j/4A==");
    }
}
