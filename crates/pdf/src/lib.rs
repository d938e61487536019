//! The text of PDF documents, as it stands in them: no layout, no pictures, no forms.
//!
//! Documents come from anywhere. What a small one may grow into is bounded, and a fault of its
//! reader ends nothing but the reading.

mod fonts;

use icu_normalizer::ComposingNormalizerBorrowed;
use lopdf::{Document, LoadOptions};

/// The bytes that every document begins with.
pub const MAGIC: &[u8] = b"%PDF-";

/// Maximum bytes of a document.
pub const MAX_BYTES: usize = 32 << 20;

/// Maximum size of a part of a document when it is unpacked, in bytes.
const MAX_PART: usize = 16 << 20;

/// Maximum bytes of text; pages after it are left out.
const MAX_TEXT: usize = 4 << 20;

/// Returns the text of a document, each page after a line with its number. It takes a while, so
/// asynchronous callers run it elsewhere.
///
/// # Errors
/// The document cannot be read; the text says why.
pub fn text_of(bytes: &[u8]) -> Result<String, String> {
    let read = std::panic::catch_unwind(|| read(bytes));
    read.unwrap_or_else(|_| Err("it is damaged in a way that cannot be read".to_owned()))
}

fn read(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("it is larger than {} MB", MAX_BYTES >> 20));
    }
    let options = LoadOptions {
        max_decompressed_size: Some(MAX_PART),
        ..LoadOptions::default()
    };
    let document = Document::load_mem_with_options(bytes, options);
    let mut document = document.map_err(|error| format!("it cannot be read: {error}"))?;
    if document.is_encrypted() {
        return Err("it needs a password".to_owned());
    }
    fonts::make_readable(&mut document);
    let pages = document.get_pages();
    let normal = ComposingNormalizerBorrowed::new_nfkc();
    let mut text = String::new();
    for number in pages.keys() {
        text.push_str(&format!("[page {number} of {}]\n", pages.len()));
        // One broken part of a page leaves the others.
        let parts = document.extract_text_chunks_with_limit(&[*number], MAX_PART);
        for part in parts.into_iter().flatten() {
            text.push_str(&normal.normalize(&part));
        }
        text.push('\n');
        if text.len() > MAX_TEXT {
            text.push_str("[the rest is left out: it is too large]\n");
            break;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = "%PDF-1.4\n\
        1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
        2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
        4 0 obj<</Length 57>>stream\n\
        BT /F 18 Tf 20 99 Td (Total: 42 EUR) Tj T* (Ada) Tj ET   \n\
        endstream endobj\n\
        5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n\
        trailer<</Root 1 0 R/Size 6>>\n";

    /// Reads fonts as printers write them, with the encoding of their country.
    #[test]
    fn fonts_of_east_asia_are_read() {
        for (encoding, codes) in [
            ("UniJIS-UCS2-H", "8ACB6C4266F80041"),
            ("UniJIS-UTF16-H", "8ACB6C4266F80041"),
            ("90ms-RKSJ-H", "90BF8B818F9141"),
            ("EUC-H", "C0C1B5E1BDF141"),
            ("GBK-EUC-H", "D588C7F395F841"),
            ("ETen-B5-V", "BDD0A844AED141"),
        ] {
            let font = format!("/Type0/BaseFont/Own/Encoding/{encoding}");
            let paper = PAPER.replace("/Type1/BaseFont/Helvetica", &font);
            let paper = paper.replace("(Total: 42 EUR)", &format!("<{codes}>"));
            let text = text_of(paper.as_bytes()).unwrap();
            assert!(text.contains("請求書"), "{encoding}: {text}");
        }
    }

    #[test]
    fn the_words_of_each_page_are_read_whatever_else_is_damaged() {
        let text = text_of(PAPER.as_bytes());
        assert_eq!(text.as_deref(), Ok("[page 1 of 1]\nTotal: 42 EUR\nAda\n\n"));
        for broken in ["", "%PDF-1.7", "<html>not one</html>"] {
            assert!(text_of(broken.as_bytes()).is_err(), "{broken}");
        }
        // Neither a cut nor a changed byte ends the program.
        for at in 0..PAPER.len() {
            let mut changed = PAPER.as_bytes().to_vec();
            changed[at] = changed[at].wrapping_add(1);
            let _ = (text_of(&PAPER.as_bytes()[..at]), text_of(&changed));
        }
    }
}
