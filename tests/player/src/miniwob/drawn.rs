//! Pages whose things have no words: they are told apart by colour and form in the picture. All
//! stand in the upper left of the page, below what it asks for.

use serde_json::{Value, json};

use super::{
    Deed, Sight,
    sight::{between, click, fill_and_click},
};
use crate::picture::{Blob, blobs};

/// The part of a page where its task is, in pixels.
pub(super) const WIDE: f64 = 160.0;
pub(super) const HIGH: f64 = 212.0;
pub(super) const QUERY: f64 = 50.0;

/// The names of colours on these pages.
pub(super) const COLOURS: [(&str, [u8; 3]); 22] = [
    ("red", [255, 0, 0]),
    ("blue", [0, 0, 255]),
    ("olive", [128, 128, 0]),
    ("lime", [0, 255, 0]),
    ("black", [0, 0, 0]),
    ("white", [255, 255, 255]),
    ("grey", [128, 128, 128]),
    ("purple", [128, 0, 128]),
    ("orange", [255, 165, 0]),
    ("yellow", [255, 255, 0]),
    ("cyan", [0, 255, 255]),
    ("pink", [255, 192, 203]),
    ("magenta", [255, 0, 255]),
    ("aqua", [0, 255, 255]),
    ("gray", [128, 128, 128]),
    ("green", [0, 128, 0]),
    ("maroon", [128, 0, 0]),
    ("navy", [0, 0, 128]),
    ("silver", [192, 192, 192]),
    ("teal", [0, 128, 128]),
    ("gold", [255, 215, 0]),
    ("violet", [238, 130, 238]),
];

/// Returns the areas in the part of the picture where the task is; `None` without a picture.
pub(super) fn seen(sight: &Sight<'_>) -> Option<Vec<Blob>> {
    sight.prompt.picture?;
    let all = blobs(sight.picture?)?;
    let inside = all.into_iter().filter(|blob| {
        let [left, top, right, bottom] = blob.area;
        left >= 0.0 && right <= WIDE && top >= QUERY - 2.0 && bottom <= HIGH
    });
    Some(inside.collect())
}

pub(super) fn look() -> Deed {
    Deed::Do(vec![json!({"do": "take_screenshot"})])
}

fn at([x, y]: [f64; 2]) -> Value {
    json!({"do": "click", "at": [x.round(), y.round()]})
}

/// A point, and then the button.
pub(super) fn pointed(sight: &Sight<'_>, point: [f64; 2]) -> Option<Deed> {
    Some(match sight.note() {
        "there" => Deed::Do(vec![click(sight.one("button", "Submit")?)]),
        _ => Deed::Now(vec![at(point)], "there".to_owned()),
    })
}

/// `Click on the lime colored box.`
pub(super) fn colour(sight: &Sight<'_>) -> Option<Deed> {
    let name = between(sight.asked, "Click on the ", " colored box")?;
    let (_, colour) = COLOURS.iter().find(|(known, _)| *known == name)?;
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let is_box = |blob: &&Blob| blob.colour == *colour && (2000..4000).contains(&blob.count);
    Some(Deed::Do(vec![at(blobs.iter().rfind(is_box)?.middle())]))
}

/// `Select all the shades of red and press Submit.`
pub(super) fn shades(sight: &Sight<'_>) -> Option<Deed> {
    let wanted = ["red", "green", "blue"]
        .iter()
        .position(|name| sight.asked.contains(name))?;
    let mut points: Vec<[f64; 2]> = Vec::new();
    for pair in sight.note().split(';').filter(|pair| !pair.is_empty()) {
        let (x, y) = pair.split_once(' ')?;
        points.push([x.parse().ok()?, y.parse().ok()?]);
    }
    if sight.note() == "none" || (points.is_empty() && !sight.note().is_empty()) {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    if sight.note().is_empty() {
        let Some(blobs) = seen(sight) else {
            return Some(look());
        };
        let main = |colour: [u8; 3]| (0..3).max_by_key(|at| colour[*at]);
        let is_shade = |blob: &&Blob| {
            let [least, most] = [blob.colour.iter().min(), blob.colour.iter().max()];
            (80..300).contains(&blob.count) && most > least && main(blob.colour) == Some(wanted)
        };
        points = blobs.iter().filter(is_shade).map(Blob::middle).collect();
    } else {
        points.drain(..points.len().min(sight.prompt.verdicts.len()));
    }
    if points.is_empty() {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    let note: Vec<String> = points.iter().map(|[x, y]| format!("{x} {y}")).collect();
    let actions = points.iter().take(4).map(|point| at(*point)).collect();
    Some(Deed::Now(actions, note.join(";")))
}

/// A shade of the colour that is asked for, among the small boxes of an open palette.
pub(super) fn from_palette(sight: &Sight<'_>) -> Option<Deed> {
    let shades = [
        ("red", [0xe6, 0, 0]),
        ("orange", [0xff, 0x99, 0]),
        ("yellow", [255, 255, 0]),
        ("green", [0, 0x8a, 0]),
        ("blue", [0, 0x66, 0xcc]),
        ("purple", [0x99, 0x33, 255]),
    ];
    let (_, rest) = sight.asked.rsplit_once(" color ")?;
    let (_, colour) = shades.iter().find(|(name, _)| rest.starts_with(name))?;
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let is_box = |blob: &&Blob| blob.colour == *colour && blob.count > 60;
    let point = blobs.iter().find(is_box)?.middle();
    Some(Deed::Now(vec![at(point)], "there".to_owned()))
}

/// `Click on the grid coordinate (-1,0).`
pub(super) fn grid(sight: &Sight<'_>) -> Option<Deed> {
    let (x, y) = between(sight.asked, "(", ")")?.split_once(',')?;
    let (x, y): (f64, f64) = (x.trim().parse().ok()?, y.trim().parse().ok()?);
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let dots = blobs
        .iter()
        .filter(|blob| blob.colour == [0, 0, 255] && blob.count > 12);
    let middles: Vec<[f64; 2]> = dots.map(Blob::middle).collect();
    let edge = |pick: fn(f64, f64) -> f64, of: usize| middles.iter().map(|it| it[of]).reduce(pick);
    let (left, right) = (edge(f64::min, 0)?, edge(f64::max, 0)?);
    let (top, bottom) = (edge(f64::min, 1)?, edge(f64::max, 1)?);
    let point = [
        left + (right - left) * (x + 2.0) / 4.0,
        bottom - (bottom - top) * (y + 2.0) / 4.0,
    ];
    Some(Deed::Do(vec![at(point)]))
}

/// Between the two black points.
pub(super) fn midpoint(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let mut dots = blobs.iter().filter(|blob| {
        let [left, top, right, bottom] = blob.area;
        blob.colour == [0, 0, 0] && blob.count >= 16 && right - left < 9.0 && bottom - top < 9.0
    });
    let (one, two) = (dots.next()?.middle(), dots.next()?.middle());
    pointed(sight, [(one[0] + two[0]) / 2.0, (one[1] + two[1]) / 2.0])
}

/// `Draw a vertical line that runs through the dot, then press submit.`
pub(super) fn line(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let dot = blobs
        .iter()
        .find(|blob| blob.colour == [128, 0, 128] && blob.count > 12)?;
    let [x, y] = dot.middle().map(f64::round);
    let (from, to) = if sight.asked.contains("vertical") {
        ([x, y - 24.0], [x, y + 24.0])
    } else {
        ([x - 24.0, y], [x + 24.0, y])
    };
    let drag = json!({"do": "drag", "from": from, "to": to});
    Some(Deed::Now(vec![drag], "there".to_owned()))
}

/// The blocks are counted.
pub(super) fn blocks(sight: &Sight<'_>) -> Option<Deed> {
    let (field, submit) = (
        *sight.all("textbox").first()?,
        sight.one("button", "Submit")?,
    );
    if !field.value.is_empty() {
        return Some(Deed::Do(vec![click(submit)]));
    }
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let blocks = blobs
        .iter()
        .filter(|blob| blob.colour == [0x7f, 0xb0, 0xff] && blob.count > 60);
    Some(Deed::Do(fill_and_click(
        field,
        &blocks.count().to_string(),
        submit,
    )))
}

/// The largest thing that is drawn.
fn figure(blobs: &[Blob]) -> Option<&Blob> {
    let is_figure = |blob: &&Blob| (150..3000).contains(&blob.count) && blob.area[3] < 175.0;
    // The faces of buttons are light, and so are some figures.
    let is_light = |blob: &Blob| blob.colour.iter().all(|part| *part > 200);
    let figures = blobs.iter().filter(is_figure);
    figures.max_by_key(|blob| (!is_light(blob), blob.count))
}

/// A figure by how much of its box it fills.
pub(super) fn form(sight: &Sight<'_>) -> Option<Deed> {
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let figure = figure(&blobs)?;
    let name = match figure.share() {
        share if share > 0.9 => "Rectangle",
        share if share > 0.65 => "Circle",
        _ => "Triangle",
    };
    Some(Deed::Do(vec![click(sight.one("button", name)?)]))
}

/// `Drag the circle right then press Submit.`
pub(super) fn dragged(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let [x, y] = figure(&blobs)?.middle().map(f64::round);
    let asked = sight.asked;
    let to = if asked.contains(" left") {
        [x - 18.0, y]
    } else if asked.contains(" right") {
        [x + 18.0, y]
    } else if asked.contains(" up") {
        [x, y - 18.0]
    } else {
        [x, y + 18.0]
    };
    let drag = json!({"do": "drag", "from": [x, y], "to": to});
    Some(Deed::Now(vec![drag], "there".to_owned()))
}
