//! Encodings of Chinese, Japanese and Korean fonts, which the reader of documents does not know. It
//! takes the table of characters (`ToUnicode`) from fonts with the encoding `Identity-H` alone, so
//! fonts get that, and the table that their own encoding means.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, SHIFT_JIS};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

/// Encodings by a part of the name under which fonts have them, the first that fits.
const BY_NAME: [(&str, &Encoding); 6] = [
    ("RKSJ", SHIFT_JIS),
    ("GB", GB18030),
    ("B5", BIG5),
    ("KSC", EUC_KR),
    ("EUC-", EUC_JP),
    ("UHC", EUC_KR),
];

/// Gives the fonts of a document encodings that the reader knows.
pub(super) fn make_readable(document: &mut Document) {
    let fonts = document.objects.iter().filter_map(|(id, object)| {
        let font = object.as_dict().ok()?;
        let kind = font.get(b"Subtype").and_then(Object::as_name).ok()?;
        let name = font.get(b"Encoding").and_then(Object::as_name);
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        (kind == b"Type0").then(|| (*id, font.has(b"ToUnicode"), name))
    });
    let fonts: Vec<(ObjectId, bool, String)> = fonts.collect();
    // One table for each encoding, however many fonts use it.
    let mut tables: Vec<(&'static Encoding, ObjectId)> = Vec::new();
    for (id, has_table, name) in fonts {
        let mut encoding = b"Identity-H".as_slice();
        let mut table = None;
        if has_table {
            // The reader takes it with that encoding.
        } else if name.contains("UCS2") || name.contains("UTF16") {
            // The one of these that the reader knows.
            encoding = b"UniGB-UTF16-H";
        } else if let Some((_, means)) = BY_NAME.iter().find(|(part, _)| name.contains(part)) {
            if !tables.iter().any(|(known, _)| known == means) {
                let stream = Stream::new(Dictionary::new(), table_of(means).into_bytes());
                tables.push((means, document.add_object(stream)));
            }
            table = tables.iter().find(|(known, _)| known == means);
        } else {
            continue;
        }
        if let Ok(font) = document.get_dictionary_mut(id) {
            font.set("Encoding", Object::Name(encoding.to_vec()));
            if let Some((_, table)) = table {
                font.set("ToUnicode", *table);
            }
        }
    }
}

/// Returns the table of an encoding of one or two bytes, as documents have it.
fn table_of(encoding: &'static Encoding) -> String {
    let decoded = |code: &[u8]| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(code)?;
        let units = text.encode_utf16().map(|unit| format!("{unit:04X}"));
        Some(units.collect::<String>())
    };
    // Bytes that are characters by themselves, and codes with what they stand for.
    let (mut single, mut codes) = (vec!["<0000> <FFFF>".to_owned()], Vec::new());
    for first in 0..=0xFF_u8 {
        if let Some(text) = decoded(&[first]) {
            single.push(format!("<{first:02X}> <{first:02X}>"));
            codes.push(format!("<{first:02X}> <{text}>"));
        } else {
            codes.extend((0x21..=0xFE).filter_map(|second: u8| {
                let text = decoded(&[first, second])?;
                Some(format!("<{first:02X}{second:02X}> <{text}>"))
            }));
        }
    }
    let mut table =
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /Own def\n"
            .to_owned();
    for (kind, all) in [("codespacerange", &single), ("bfchar", &codes)] {
        for part in all.chunks(100) {
            table += &format!(
                "{} begin{kind}\n{}\nend{kind}\n",
                part.len(),
                part.join("\n")
            );
        }
    }
    table + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
}
