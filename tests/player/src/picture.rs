//! What the player sees in a picture: the largest area of one colour, which is what a person draws
//! on.

/// Left, top, right and bottom, in pixels.
pub(crate) type Area = [f64; 4];

/// A connected area of one colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blob {
    pub(crate) area: Area,
    pub(crate) colour: [u8; 3],
    /// Its pixels.
    pub(crate) count: usize,
}

impl Blob {
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

/// All connected areas of one colour of a PNG, in the order of their uppermost pixels.
pub(crate) fn blobs(png: &[u8]) -> Option<Vec<Blob>> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut pixels).ok()?;
    let (width, height) = (info.width as usize, info.height as usize);
    let samples = info.color_type.samples();
    let colour = |at: usize| {
        let pixel = &pixels[at * samples..(at + 1) * samples];
        [
            pixel[0],
            pixel[samples.min(2) - 1],
            pixel[samples.min(3) - 1],
        ]
    };
    let mut seen = vec![false; width * height];
    let mut blobs = Vec::new();
    let mut open = Vec::new();
    for start in 0..width * height {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let wanted = colour(start);
        let (mut count, mut area) = (0, [usize::MAX, usize::MAX, 0, 0]);
        open.push(start);
        while let Some(at) = open.pop() {
            let (x, y) = (at % width, at / width);
            count += 1;
            area = [
                area[0].min(x),
                area[1].min(y),
                area[2].max(x),
                area[3].max(y),
            ];
            let around = [
                (x > 0).then(|| at - 1),
                (x + 1 < width).then(|| at + 1),
                (y > 0).then(|| at - width),
                (y + 1 < height).then(|| at + width),
            ];
            for next in around.into_iter().flatten() {
                if !seen[next] && colour(next) == wanted {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        blobs.push(Blob {
            area: area.map(|edge| edge as f64),
            colour: wanted,
            count,
        });
    }
    Some(blobs)
}
