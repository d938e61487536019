//! Converts a server's answer into a tool's output: bounded, with every kind of content.

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::{ActionVerdict, Image, Site, ToolOutput};
use serde_json::Value;

use crate::setup::ReadPicture;

/// Maximum bytes kept from the start of an answer's text.
const HEAD_BYTES: usize = 32 * 1024;

/// Maximum size of the end of a text that is kept, in bytes.
const TAIL_BYTES: usize = 16 * 1024;

/// Maximum bytes of structured content that becomes the value; more is only text.
const MAX_VALUE_BYTES: usize = 256 * 1024;

/// Maximum number of pictures of one answer for the model.
const MAX_PICTURES: usize = 8;

/// Maximum size of a picture for the model, in bytes; models accept no larger ones, so those are
/// only described.
const MAX_PICTURE_BYTES: usize = 5 * 1024 * 1024;

/// Maximum width and height that models accept, in pixels.
const MAX_SIDE: u32 = 8_000;

pub(crate) fn output(answer: &Value, site: &dyn Site, pictures: ReadPicture) -> ToolOutput {
    let mut images = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut show = |part: &Value, data: &str| {
        if images.len() < MAX_PICTURES {
            picture(part, data, (site, pictures), &mut images)
        } else {
            "(another picture, not shown)".to_owned()
        }
    };
    let parts = answer["content"].as_array();
    for part in parts.into_iter().flatten() {
        texts.push(match part["type"].as_str() {
            Some("image") => show(part, "data"),
            _ => in_words(part),
        });
    }
    let contents = answer["contents"].as_array();
    for part in contents.into_iter().flatten() {
        let kind = part["mimeType"].as_str().unwrap_or_default();
        texts.push(if kind.starts_with("image/") && part["blob"].is_string() {
            show(part, "blob")
        } else {
            resource(part)
        });
    }
    let parts = parts.or(contents);
    let structured = &answer["structuredContent"];
    // Most servers repeat structured content as text for older clients: as JSON, or plainly.
    let said = |structured: &Value| {
        let plain = |value: &Value| texts.iter().any(|text| value == text.as_str());
        structured
            .as_object()
            .is_some_and(|object| object.values().all(plain))
            || texts.iter().any(|text| {
                serde_json::from_str::<Value>(text).is_ok_and(|said| said == *structured)
            })
    };
    if !structured.is_null() && !said(structured) {
        texts.push(structured.to_string());
    }
    if parts.is_none() && structured.is_null() {
        texts.push(
            if answer.as_object().is_none_or(|answer| answer.is_empty()) {
                String::new()
            } else {
                answer.to_string()
            },
        );
    }
    let text = match texts.join("\n") {
        text if text.trim().is_empty() => "(the server answered nothing)".to_owned(),
        text => bounded(&text),
    };
    let is_short = |value: &&Value| value.to_string().len() <= MAX_VALUE_BYTES;
    let value = Some(structured).filter(|value| !value.is_null());
    ToolOutput {
        images,
        value: value.filter(is_short).cloned(),
        is_error: answer["isError"] == Value::Bool(true),
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::read(text)
    }
}

/// Describes a part of an answer; a picture is only named.
pub(crate) fn in_words(part: &Value) -> String {
    match part["type"].as_str() {
        Some("text") => text(&part["text"]),
        Some("image") => format!("({}, not shown)", described("picture", part, "data")),
        Some("audio") => format!("({}, not played)", described("audio", part, "data")),
        Some("resource") => resource(&part["resource"]),
        Some("resource_link") => link(part),
        _ => part.to_string(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn described(what: &str, part: &Value, data: &str) -> String {
    let kind = part["mimeType"].as_str().unwrap_or("of no kind");
    let size = part[data].as_str().unwrap_or_default().len() / 4 * 3;
    format!("{what}, {kind}, about {size} bytes")
}

fn picture(
    part: &Value,
    data: &str,
    (site, pictures): (&dyn Site, ReadPicture),
    images: &mut Vec<Image>,
) -> String {
    let what = described("picture", part, data);
    let Ok(bytes) = STANDARD.decode(part[data].as_str().unwrap_or_default()) else {
        return format!("({what}, not shown: it is damaged)");
    };
    let Some(header) = pictures(&bytes) else {
        return format!("({what}, not shown: it is not a PNG, JPEG or WebP)");
    };
    if bytes.len() > MAX_PICTURE_BYTES || header.width.max(header.height) > MAX_SIDE {
        return format!("({what}, not shown: it is too large)");
    }
    match site.keep(&bytes) {
        Ok(blob) => {
            images.push(Image {
                blob,
                media_type: header.media_type.to_owned(),
                width: header.width,
                height: header.height,
            });
            format!("(picture, {} × {} pixels)", header.width, header.height)
        }
        Err(error) => format!("({what}, not shown: it could not be kept: {error})"),
    }
}

fn resource(resource: &Value) -> String {
    let uri = resource["uri"].as_str().unwrap_or("a resource");
    match resource["text"].as_str() {
        Some(text) => format!("{uri}:\n{text}"),
        None => format!(
            "{uri} ({}, not shown)",
            described("bytes", resource, "blob")
        ),
    }
}

fn link(part: &Value) -> String {
    let mut words = format!("resource {}", text(&part["uri"]));
    for name in ["name", "description", "mimeType"] {
        if let Some(value) = part[name].as_str() {
            words.push_str(&format!(", {value}"));
        }
    }
    words
}

pub(crate) fn bounded(text: &str) -> String {
    match gyrus_text::head_and_tail(text, HEAD_BYTES, TAIL_BYTES) {
        None => text.to_owned(),
        Some((head, omitted, tail)) => format!("{head}\n[… {omitted} bytes omitted …]\n{tail}"),
    }
}
