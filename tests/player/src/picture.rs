//! What the player sees in a picture: the largest area of one colour, which is what a person draws
//! on.

/// Left, top, right and bottom, in pixels.
pub(crate) type Area = [f64; 4];

/// The box of the largest connected area of one colour of a PNG.
pub(crate) fn largest_area(png: &[u8]) -> Option<Area> {
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
    let mut best: Option<(usize, Area)> = None;
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
        if best.as_ref().is_none_or(|(most, _)| count > *most) {
            best = Some((count, area.map(|edge| edge as f64)));
        }
    }
    best.map(|(_, area)| area)
}
