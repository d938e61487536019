//! Encodings of Chinese, Japanese and Korean fonts, which the reader of documents does not know.
//!
//! A font says which characters its codes stand for by a table of its own (`ToUnicode`), or by the
//! name of an encoding. The reader takes a table from fonts that count glyphs (`Identity-H`) alone, so
//! fonts are made such: they get the table that their encoding means.

use std::fmt::Write as _;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, SHIFT_JIS};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

/// Encodings by a part of the name under which fonts have them, the first that fits.
const BY_NAME: [(&str, &Encoding); 7] = [
    ("RKSJ", SHIFT_JIS),
    ("GB", GB18030),
    ("B5", BIG5),
    ("KSC", EUC_KR),
    ("EUC-H", EUC_JP),
    ("EUC-V", EUC_JP),
    ("UHC", EUC_KR),
];

/// Parts of the names of encodings that are UTF-16, and the one of these that the reader knows.
const WIDE: [&str; 2] = ["UCS2", "UTF16"];
const KNOWN: &[u8] = b"UniGB-UTF16-H";

/// Gives the fonts of a document encodings that the reader knows.
pub(super) fn make_readable(document: &mut Document) {
    let is_composite = |font: &&Dictionary| {
        let kind = font.get(b"Subtype").and_then(Object::as_name);
        kind.is_ok_and(|kind| kind == b"Type0")
    };
    let fonts = document.objects.iter().filter_map(|(id, object)| {
        let font = object.as_dict().ok().filter(is_composite)?;
        let name = font.get(b"Encoding").and_then(Object::as_name);
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        Some((*id, font.has(b"ToUnicode"), name))
    });
    let fonts: Vec<(ObjectId, bool, String)> = fonts.collect();
    // Of each encoding one table, whatever many fonts call it.
    let mut tables: Vec<(Codes, ObjectId)> = Vec::new();
    for (id, has_table, name) in fonts {
        let mut table = None;
        let encoding = if has_table {
            b"Identity-H".as_slice()
        } else if WIDE.iter().any(|part| name.contains(part)) {
            KNOWN
        } else if let Some(codes) = Codes::named(&name) {
            let made = tables.iter().find(|(known, _)| *known == codes);
            table = Some(made.map(|(_, id)| *id).unwrap_or_else(|| {
                let stream = Stream::new(Dictionary::new(), codes.table().into_bytes());
                document.add_object(stream)
            }));
            tables.extend(table.map(|id| (codes, id)));
            b"Identity-H"
        } else {
            continue;
        };
        let Ok(font) = document.get_dictionary_mut(id) else {
            continue;
        };
        font.set("Encoding", Object::Name(encoding.to_vec()));
        if let Some(table) = table {
            font.set("ToUnicode", table);
        }
    }
}

/// An encoding of one or two bytes, and the bits that its bytes are without.
#[derive(PartialEq)]
struct Codes(&'static Encoding, u8);

impl Codes {
    /// Returns the encoding that a font has by this name.
    fn named(name: &str) -> Option<Self> {
        match name {
            // The oldest one is without the bit that tells its bytes from ASCII.
            "H" | "V" => Some(Self(EUC_JP, 0x80)),
            _ => BY_NAME
                .iter()
                .find(|(part, _)| name.contains(part))
                .map(|(_, encoding)| Self(encoding, 0)),
        }
    }

    /// Returns the characters of a code in hexadecimal UTF-16.
    fn decoded(&self, code: &[u8]) -> Option<String> {
        let bytes: Vec<u8> = code.iter().map(|byte| byte | self.1).collect();
        let text = self
            .0
            .decode_without_bom_handling_and_without_replacement(&bytes)?;
        Some(
            text.encode_utf16()
                .map(|unit| format!("{unit:04X}"))
                .collect(),
        )
    }

    /// Returns the table of its codes as documents have it.
    fn table(&self) -> String {
        // Bytes that are characters by themselves, and codes with what they stand for.
        let (mut single, mut codes) = (Vec::new(), Vec::new());
        for first in 0..=0xFF_u8 {
            match self.decoded(&[first]) {
                Some(text) if self.1 == 0 => {
                    single.push(format!("<{first:02X}> <{first:02X}>"));
                    codes.push(format!("<{first:02X}> <{text}>"));
                }
                _ => codes.extend((0x21..=0xFE).filter_map(|second: u8| {
                    let text = self.decoded(&[first, second])?;
                    Some(format!("<{first:02X}{second:02X}> <{text}>"))
                })),
            }
        }
        single.push("<0000> <FFFF>".to_owned());
        let mut table = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n\
        /CMapName /Own def\n/CMapType 2 def\n"
            .to_owned();
        for (kind, all) in [("codespacerange", &single), ("bfchar", &codes)] {
            for part in all.chunks(100) {
                let (count, lines) = (part.len(), part.join("\n"));
                let _ = writeln!(table, "{count} begin{kind}\n{lines}\nend{kind}");
            }
        }
        table.push_str("endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n");
        table
    }
}
