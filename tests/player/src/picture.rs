//! Recognition of what a picture shows: areas of one colour, with their place, size and form, and
//! dots, lines through them or not.

/// Left, top, right and bottom, in pixels.
pub(crate) type Area = [f64; 4];

/// A connected area of one colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blob {
    pub(crate) area: Area,
    pub(crate) colour: [u8; 3],
    /// Its pixels.
    pub(crate) count: usize,
    /// Distance of its farthest pixel from the mean of its pixels.
    pub(crate) reach: f64,
}

impl Blob {
    fn of(members: &[[f64; 2]], colour: [u8; 3]) -> Self {
        let on = |axis: usize| members.iter().map(move |at| at[axis]);
        let mean = |axis: usize| on(axis).sum::<f64>() / members.len() as f64;
        let least = |axis: usize| on(axis).fold(f64::MAX, f64::min);
        let most = |axis: usize| on(axis).fold(0.0, f64::max);
        let centre = [mean(0), mean(1)];
        let away = |at: &[f64; 2]| (at[0] - centre[0]).hypot(at[1] - centre[1]);
        Self {
            area: [least(0), least(1), most(0), most(1)],
            colour,
            count: members.len(),
            reach: members.iter().map(away).fold(0.0, f64::max),
        }
    }

    /// Returns the share of its box that it fills.
    pub(crate) fn share(&self) -> f64 {
        let [left, top, right, bottom] = self.area;
        self.count as f64 / ((right - left + 1.0) * (bottom - top + 1.0))
    }

    /// The middle of its box.
    pub(crate) fn middle(&self) -> [f64; 2] {
        let [left, top, right, bottom] = self.area;
        [(left + right) / 2.0, (top + bottom) / 2.0]
    }
}

/// The box of the largest connected area of one colour of a PNG.
pub(crate) fn largest_area(png: &[u8]) -> Option<Area> {
    let blobs = blobs(png)?;
    blobs
        .iter()
        .max_by_key(|blob| blob.count)
        .map(|blob| blob.area)
}

/// A picture as colours, row by row.
struct Pixels {
    width: usize,
    height: usize,
    colours: Vec<[u8; 3]>,
}

fn decoded(png: &[u8]) -> Option<Pixels> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().ok()?;
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut bytes).ok()?;
    let (width, height) = (info.width as usize, info.height as usize);
    let samples = info.color_type.samples();
    let colour = |pixel: &[u8]| {
        [
            pixel[0],
            pixel[samples.min(2) - 1],
            pixel[samples.min(3) - 1],
        ]
    };
    let pixels = bytes.chunks_exact(samples).take(width * height);
    Some(Pixels {
        width,
        height,
        colours: pixels.map(colour).collect(),
    })
}

/// Maximum distance of a dot's pixels from its middle.
const DOT: usize = 3;

/// Returns the places where the pixels of a colour lie densest within an area: the middles of dots,
/// lines or not.
pub(crate) fn dots(png: &[u8], colour: [u8; 3], area: Area, count: usize) -> Option<Vec<[f64; 2]>> {
    let pixels = decoded(png)?;
    let [left, top, right, bottom] = area.map(|edge| edge.max(0.0) as usize);
    let (right, bottom) = (right.min(pixels.width), bottom.min(pixels.height));
    let mut left_over: Vec<[usize; 2]> = (top..bottom)
        .flat_map(|y| (left..right).map(move |x| [x, y]))
        .filter(|[x, y]| pixels.colours[y * pixels.width + x] == colour)
        .collect();
    let near = |one: &[usize; 2], other: &[usize; 2], away: usize| {
        one[0].abs_diff(other[0]) <= away && one[1].abs_diff(other[1]) <= away
    };
    let mut found = Vec::new();
    while found.len() < count {
        let around = |at: &[usize; 2]| left_over.iter().filter(|it| near(at, it, DOT)).count();
        let best = *left_over.iter().max_by_key(|at| around(at))?;
        let close: Vec<_> = left_over.iter().filter(|it| near(&best, it, DOT)).collect();
        let middle =
            |axis: usize| close.iter().map(|at| at[axis] as f64).sum::<f64>() / close.len() as f64;
        found.push([middle(0), middle(1)]);
        left_over.retain(|it| !near(&best, it, 4 * DOT));
    }
    Some(found)
}

/// All connected areas of one colour of a PNG, in the order of their uppermost pixels.
pub(crate) fn blobs(png: &[u8]) -> Option<Vec<Blob>> {
    let Pixels {
        width,
        height,
        colours,
    } = decoded(png)?;
    let mut seen = vec![false; width * height];
    let mut blobs = Vec::new();
    let mut open = Vec::new();
    for start in 0..width * height {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let wanted = colours[start];
        let mut members = Vec::new();
        open.push(start);
        while let Some(at) = open.pop() {
            let (x, y) = (at % width, at / width);
            members.push([x as f64, y as f64]);
            let around = [
                (x > 0).then(|| at - 1),
                (x + 1 < width).then(|| at + 1),
                (y > 0).then(|| at - width),
                (y + 1 < height).then(|| at + width),
            ];
            for next in around.into_iter().flatten() {
                if !seen[next] && colours[next] == wanted {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        blobs.push(Blob::of(&members, wanted));
    }
    Some(blobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A white picture of 60 by 40 with these pixels of one colour.
    fn drawn(is_drawn: impl Fn(i32, i32) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 60, 40);
        encoder.set_color(png::ColorType::Rgb);
        let pixels: Vec<u8> = (0..40)
            .flat_map(|y| (0..60).map(move |x| (x, y)))
            .flat_map(|(x, y)| if is_drawn(x, y) { [0; 3] } else { [255; 3] })
            .collect();
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&pixels).unwrap();
        drop(writer);
        bytes
    }

    #[test]
    fn forms_are_told_apart_by_what_they_fill() {
        let disc = drawn(|x, y| (x - 20).pow(2) + (y - 20).pow(2) < 100);
        let triangle = drawn(|x, y| (10..30).contains(&y) && (x - 20).abs() * 2 <= y - 10);
        let share = |png: &[u8]| blobs(png).unwrap().last().unwrap().share();
        assert!((0.65..0.93).contains(&share(&disc)), "{}", share(&disc));
        assert!(share(&triangle) < 0.65, "{}", share(&triangle));
        let found = blobs(&disc).unwrap();
        assert_eq!(found.last().unwrap().middle(), [20.0, 20.0]);
    }

    #[test]
    fn dots_are_found_though_a_line_joins_them() {
        let is_dot = |x: i32, y: i32, at: i32| (x - at).pow(2) + (y - 20).pow(2) <= 9;
        let png =
            drawn(|x, y| is_dot(x, y, 10) || is_dot(x, y, 45) || y == 20 && (10..45).contains(&x));
        let mut found = dots(&png, [0; 3], [0.0, 0.0, 60.0, 40.0], 2).unwrap();
        found.sort_by(|one, other| one[0].total_cmp(&other[0]));
        for ([x, y], at) in found.into_iter().zip([10.0, 45.0]) {
            assert!((x - at).abs() < 1.0 && (y - 20.0).abs() < 1.0, "{x} {y}");
        }
    }
}
