//! Pages about points, angles, circles and boxes, which only the picture shows.

use std::f64::consts::TAU;

use serde_json::json;

use super::{
    Deed, Sight,
    drawn::{COLOURS, HIGH, QUERY, WIDE, look, pointed, seen},
    sight::{between, click},
};
use crate::picture::{Area, Blob, dots};

const BLACK: [u8; 3] = [0, 0, 0];
const BLUE: [u8; 3] = [0, 0, 255];

/// Area in which these pages draw.
const ROOM: Area = [2.0, QUERY + 2.0, 148.0, 176.0];

/// Whether a point can be clicked there.
fn is_inside([x, y]: [f64; 2]) -> bool {
    x > ROOM[0] + 3.0 && x < ROOM[2] - 3.0 && y > ROOM[1] + 3.0 && y < ROOM[3] - 3.0
}

/// From one point to another, of length 1.
fn towards(from: [f64; 2], to: [f64; 2]) -> [f64; 2] {
    let (x, y) = (to[0] - from[0], to[1] - from[1]);
    let length = x.hypot(y).max(1.0);
    [x / length, y / length]
}

/// The first point on this way, or on the opposite one, that can be clicked.
fn along(from: [f64; 2], way: [f64; 2], lengths: &[f64]) -> Option<[f64; 2]> {
    let points = lengths
        .iter()
        .map(|it| [from[0] + way[0] * it, from[1] + way[1] * it]);
    points.into_iter().find(|point| is_inside(*point))
}

/// Nothing while there is no picture.
fn dots_of(sight: &Sight<'_>, colour: [u8; 3], count: usize) -> Option<Vec<[f64; 2]>> {
    sight.prompt.picture?;
    dots(sight.picture?, colour, ROOM, count)
}

/// `Add a third point to create a right angle, then press submit.`
pub(super) fn right_angle(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let (Some(black), Some(blue)) = (dots_of(sight, BLACK, 1), dots_of(sight, BLUE, 1)) else {
        return Some(look());
    };
    let [x, y] = towards(blue[0], black[0]);
    let lengths = [30.0, -30.0, 18.0, -18.0, 10.0, -10.0];
    pointed(sight, along(blue[0], [-y, x], &lengths)?)
}

/// `Create a line that bisects the angle evenly in two, then press submit.`
pub(super) fn bisected(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let (Some(black), Some(blue)) = (dots_of(sight, BLACK, 2), dots_of(sight, BLUE, 1)) else {
        return Some(look());
    };
    let (one, two) = (towards(blue[0], black[0]), towards(blue[0], black[1]));
    let way = towards(
        [0.0, 0.0],
        [10.0 * (one[0] + two[0]), 10.0 * (one[1] + two[1])],
    );
    pointed(sight, along(blue[0], way, &[30.0, 20.0, 12.0])?)
}

/// `Find and click on the center of the circle, then press submit.`
pub(super) fn centre(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let is_disc = |blob: &&Blob| blob.count > 1000 && (0.7..0.85).contains(&blob.share());
    pointed(sight, blobs.iter().find(is_disc)?.middle())
}

/// Radius of the circle around the marked point, and the number of its points.
const RADIUS: f64 = 22.0;
const AROUND: u32 = 24;

/// `Draw a circle centered around the marked point by dragging the mouse.`
pub(super) fn circled(sight: &Sight<'_>) -> Option<Deed> {
    if sight.note() == "there" {
        return pointed(sight, [0.0, 0.0]);
    }
    let Some(found) = dots_of(sight, [0, 128, 0], 1) else {
        return Some(look());
    };
    let [x, y] = *found.first()?;
    let at = |step: u32| {
        let angle = TAU * f64::from(step) / f64::from(AROUND);
        let (sine, cosine) = angle.sin_cos();
        [(x + RADIUS * cosine).round(), (y + RADIUS * sine).round()]
    };
    let via: Vec<_> = (1..AROUND).map(at).collect();
    let drag = json!({"do": "drag", "from": at(0), "via": via, "to": at(AROUND)});
    Some(Deed::Now(vec![drag], "there".to_owned()))
}

/// `Press the button that correctly denotes how many sides the shape has.`: of the circle around
/// it, a shape covers the more the more sides it has.
pub(super) fn sides(sight: &Sight<'_>) -> Option<Deed> {
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let is_inner = |blob: &&Blob| blob.reach < 45.0 && blob.count > 800;
    let inner = blobs
        .iter()
        .filter(is_inner)
        .max_by_key(|blob| blob.count)?;
    let covers = inner.count as f64 / (inner.reach + 0.5).powi(2);
    let of = |sides: u32| f64::from(sides) / 2.0 * (TAU / f64::from(sides)).sin();
    let away = |sides: &u32| (of(*sides) - covers).abs();
    let sides = (3..=7).min_by(|one, other| away(one).total_cmp(&away(other)))?;
    let name = sides.to_string();
    let is_it = |line: &&crate::prompt::Line| {
        line.name
            .split(|c: char| !c.is_ascii_digit())
            .any(|it| it == name)
    };
    let button = sight.all("button").into_iter().find(is_it)?;
    Some(Deed::Do(vec![click(button)]))
}

/// The form of a figure of a few pixels.
fn form(blob: &Blob) -> &'static str {
    match blob.share() {
        share if share > 0.93 => "rectangles",
        share if share > 0.65 => "circles",
        _ => "triangles",
    }
}

/// `Drag all circles into the black box.`, and into two boxes by form or colour.
pub(super) fn boxed(sight: &Sight<'_>) -> Option<Deed> {
    let Some(blobs) = seen(sight) else {
        return Some(look());
    };
    let size = |blob: &Blob| (blob.area[2] - blob.area[0], blob.area[3] - blob.area[1]);
    let is_box = |blob: &&Blob| blob.colour == BLACK && size(blob).0 > 60.0 && size(blob).1 > 40.0;
    let mut boxes: Vec<Area> = blobs.iter().filter(is_box).map(|blob| blob.area).collect();
    boxes.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let is_figure = |blob: &&Blob| {
        let (width, height) = size(blob);
        blob.colour != [255, 255, 255] && width.max(height) < 24.0 && blob.count > 70
    };
    let is_in =
        |area: &Area, [x, y]: [f64; 2]| x > area[0] && x < area[2] && y > area[1] && y < area[3];
    let asked = sight.asked;
    let what = between(asked, "Drag all ", " into")?;
    let wanted = |blob: &Blob| match what.strip_suffix(" shapes") {
        Some(colour) => COLOURS
            .iter()
            .any(|(name, known)| *name == colour && *known == blob.colour),
        None => form(blob) == what,
    };
    let figures: Vec<&Blob> = blobs.iter().filter(is_figure).collect();
    let target = |blob: &Blob| match (wanted(blob), boxes.as_slice()) {
        (true, [first, ..]) => Some(*first),
        (false, [_, second]) => Some(*second),
        (_, _) => None,
    };
    let open = figures.iter().find_map(|blob| {
        let area = target(blob)?;
        (!is_in(&area, blob.middle())).then_some((*blob, area))
    });
    let Some((blob, area)) = open else {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    };
    let [from_x, from_y] = blob.middle().map(f64::round);
    // Beside each other, so that none hides another.
    let there = figures
        .iter()
        .filter(|it| is_in(&area, it.middle()))
        .count() as f64;
    let x = (area[0] + 12.0 + 18.0 * there).min(area[2] - 10.0);
    let y = (area[1] + area[3]) / 2.0;
    let drag = json!({"do": "drag", "from": [from_x, from_y], "to": [x.round(), y.round()]});
    Some(Deed::Do(vec![drag]))
}

/// `Select red with the color picker and hit Submit.`; the other page shows the colour.
pub(super) fn picked(sight: &Sight<'_>) -> Option<Deed> {
    let field = *sight.all("textbox").first()?;
    let submit = sight.one("button", "Submit")?;
    match sight.note() {
        // The palette lies over the button; keys reach it all the same.
        "chosen" => {
            let leave = super::sight::press(field, "Tab");
            return Some(Deed::Now(vec![leave], "left".to_owned()));
        }
        "left" => return Some(Deed::Do(vec![super::sight::press(submit, "Enter")])),
        _ => {}
    }
    let colour = match between(sight.asked, "Select ", " with the color") {
        Some(name) if !name.contains(' ') => COLOURS.iter().find(|(known, _)| *known == name)?.1,
        _ => {
            sight.prompt.picture?;
            let blobs = crate::picture::blobs(sight.picture?)?;
            let is_sample = |blob: &&Blob| {
                blob.count == 100 && blob.area[0] < WIDE && blob.area[3] < QUERY + 10.0
            };
            blobs.iter().find(is_sample)?.colour
        }
    };
    let [red, green, blue] = colour;
    let hex = format!("{red:02X}{green:02X}{blue:02X}");
    let fill = super::sight::fill(field, &hex);
    Some(Deed::Now(vec![fill], "chosen".to_owned()))
}

/// `Find and click on the HOT area.`: pointed at place after place until it is not ice cold.
pub(super) fn warm(sight: &Sight<'_>) -> Option<Deed> {
    if sight.prompt.picture.is_none() {
        return Some(look());
    }
    let tried: u32 = sight.note().parse().unwrap_or(0);
    let place = |nth: u32| {
        let (x, y) = (f64::from(nth % 4), f64::from(nth / 4));
        [22.0 + 39.0 * x, QUERY + 20.0 + 36.0 * y]
    };
    let is_warm = sight.prompt.says("cold") && !sight.prompt.says("ice cold")
        || sight
            .prompt
            .lines
            .iter()
            .any(|line| ["HOT", "WARM"].contains(&line.name.as_str()));
    if tried > 0 && is_warm {
        let at = place(tried - 1);
        return Some(Deed::Do(vec![json!({"do": "click", "at": at})]));
    }
    let at = place(tried);
    (at[1] < HIGH - 40.0 + QUERY).then(|| {
        let hover = json!({"do": "hover", "at": at});
        Deed::Now(vec![hover], (tried + 1).to_string())
    })
}
