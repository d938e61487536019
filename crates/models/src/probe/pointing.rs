//! Measures where a model clicks: five targets at known places, and the coordinates that it
//! returns.

use serde_json::Value;

use super::{
    ProbePictures,
    ask::{ProbeDialogue, ProbeQuestion, finding},
    fails,
    measured::{Clicks, Convention, ProbeFinding},
    pictures::{SCREEN, TARGETS},
    start_of,
};

/// Maximum median error in pixels with which a model counts as able to point.
const FARTHEST: f64 = 100.0;

/// Shows the screen and compares the answers.
pub(super) async fn measure(
    asked: &mut ProbeDialogue<'_>,
    pictures: &ProbePictures,
) -> Result<Clicks, ProbeFinding> {
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    let question = ProbeQuestion {
        text: format!(
            "The picture is a screen, {} pixels wide and {} pixels high, with five discs. Where \
             would you click to hit the middle of each? Answer with JSON only, in the form \
             {{\"{}\": {{\"x\": 0, \"y\": 0}}, …}}, for these discs: {}.",
            SCREEN.0,
            SCREEN.1,
            names[0],
            names.join(", ")
        ),
        image: Some(pictures.screen.clone()),
        ..ProbeQuestion::default()
    };
    let reply = asked.ask(question).await.map_err(|error| finding(&error))?;
    let text = reply.text();
    let points = points(&text)
        .ok_or_else(|| fails(format!("it gave no coordinates: {}", start_of(&text))))?;
    let clicks = best(&points);
    if clicks.median_error <= FARTHEST {
        Ok(clicks)
    } else {
        Err(fails(format!(
            "its clicks are {:.0} pixels off",
            clicks.median_error
        )))
    }
}

/// Returns the five points in the order of the targets, from any prose or fence.
fn points(text: &str) -> Option<Vec<(f64, f64)>> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    let object: Value = serde_json::from_str(text.get(start..=end)?).ok()?;
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let point = |name: &str| {
        let point = object.get(name)?;
        let (x, y) = match point.as_array().map(Vec::as_slice) {
            Some([x, y]) => (number(x)?, number(y)?),
            Some(_) => return None,
            None => (number(point.get("x")?)?, number(point.get("y")?)?),
        };
        (x.is_finite() && y.is_finite()).then_some((x, y))
    };
    TARGETS.iter().map(|(name, _)| point(name)).collect()
}

/// Returns the convention under which the points are nearest to the targets.
fn best(points: &[(f64, f64)]) -> Clicks {
    let under = |convention| {
        let mut errors: Vec<f64> = points
            .iter()
            .zip(&TARGETS)
            .map(|(&point, (_, at))| {
                let (x, y) = in_pixels(point, convention);
                (x - f64::from(at.0)).hypot(y - f64::from(at.1))
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        Clicks {
            convention,
            median_error: errors.get(errors.len() / 2).copied().unwrap_or(f64::MAX),
            largest_error: errors.last().copied().unwrap_or(f64::MAX),
        }
    };
    let others = [Convention::Thousandths, Convention::Fractions].map(under);
    let pixels = under(Convention::Pixels);
    others.into_iter().fold(pixels, |best, other| {
        if other.median_error < best.median_error {
            other
        } else {
            best
        }
    })
}

fn in_pixels((x, y): (f64, f64), convention: Convention) -> (f64, f64) {
    let (width, height) = (f64::from(SCREEN.0), f64::from(SCREEN.1));
    match convention {
        Convention::Pixels => (x, y),
        Convention::Thousandths => (x * width / 1000.0, y * height / 1000.0),
        Convention::Fractions => (x * width, y * height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_told(from_pixels: impl Fn(f64, f64) -> (f64, f64)) -> String {
        let points: Vec<_> = TARGETS
            .iter()
            .map(|(name, at)| {
                let (x, y) = from_pixels(at.0.into(), at.1.into());
                format!("\"{name}\": {{\"x\": {x}, \"y\": {y}}}")
            })
            .collect();
        format!("{{{}}}", points.join(", "))
    }

    #[test]
    fn conventions_are_told_apart() {
        let check = |told: &str, expected: Option<(Convention, f64)>| {
            let clicks = points(told).map(|points| best(&points));
            let clicks = clicks.map(|it| (it.convention, it.median_error.round()));
            assert_eq!(clicks, expected, "{told}");
        };
        let pixels = as_told(|x, y| (x + 3.0, y - 4.0));
        check(&pixels, Some((Convention::Pixels, 5.0)));
        check(
            &format!("Here they are:\n```json\n{pixels}\n```\nDone."),
            Some((Convention::Pixels, 5.0)),
        );
        check(
            &as_told(|x, y| (x / 1.28, y / 0.8)),
            Some((Convention::Thousandths, 0.0)),
        );
        check(
            &as_told(|x, y| (x / 1280.0, y / 800.0)),
            Some((Convention::Fractions, 0.0)),
        );
        check(&pixels.replacen("red", "pink", 1), None);
        check("{\"red\": [1, 2]}", None);
        check("{\"red\": {\"x\": 1e999, \"y\": 0}}", None);
        check("}{", None);
        check("nowhere", None);
    }
}
