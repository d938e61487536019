//! Small drawings: tokens and money by step, and where the time went. They are inline SVG without
//! a style of their own; what a bar stands for is told when one points at it.

use gyrus_text::counted;

use super::{
    clock::{Shares, Use},
    markup::{Anchor, Element, Markup},
    moment::duration,
    survey::Figures,
};

/// Bars of a plot; with more steps, each bar stands for several.
const BARS: usize = 120;

/// A plot of few steps has room for so many, so that a bar stays a bar.
const ROOMS: usize = 16;

/// Size of a drawing in its own units; the page stretches it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 60.0;

/// The part of its room that a bar fills.
const FILLED: f64 = 0.78;

/// Tokens by step, and money if any was spent. Nothing for a run of one step.
pub(super) fn by_step(steps: &[Figures], run: u32) -> Markup {
    let mut plots = Markup::default();
    if steps.len() < 2 {
        return plots;
    }
    let tokens = |sum: u64| counted(sum, "token");
    plots.push(bars(
        "tokens",
        steps,
        run,
        &|figures| figures.tokens,
        &tokens,
    ));
    if steps.iter().any(|figures| figures.cost.0 > 0) {
        let money = |sum: u64| gyrus_contract::Microdollars(sum).to_string();
        plots.push(bars("cost", steps, run, &|figures| figures.cost.0, &money));
    }
    plots
}

fn bars(
    name: &'static str,
    steps: &[Figures],
    run: u32,
    value: &dyn Fn(&Figures) -> u64,
    words: &dyn Fn(u64) -> String,
) -> Element {
    let groups: Vec<&[Figures]> = steps.chunks(steps.len().div_ceil(BARS)).collect();
    let sum = |group: &[Figures]| group.iter().map(value).fold(0, u64::saturating_add);
    let highest = groups
        .iter()
        .map(|group| sum(group))
        .max()
        .unwrap_or(0)
        .max(1);
    let room = WIDTH / groups.len().max(ROOMS) as f64;
    let mut drawing = drawing(name);
    for (at, group) in groups.iter().enumerate() {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let sum = sum(group);
        let which = if group.len() == 1 {
            format!("step {}", first.step)
        } else {
            format!("steps {} to {}", first.step, last.step)
        };
        let height = HEIGHT * (sum as f64 / highest as f64);
        let said = format!("{which}: {}", words(sum));
        let x = room * at as f64;
        let link = Element::new("a")
            .link(Anchor::Step {
                run,
                step: first.step,
            })
            .with(Element::new("title").text(&said))
            // The whole column can be pointed at, however low its bar is.
            .with(rectangle(x, 0.0, room, HEIGHT).class("room"))
            .with(rectangle(x, HEIGHT - height, room * FILLED, height).class("bar"));
        drawing = drawing.with(link);
    }
    let by = match groups.first().map_or(1, |group| group.len()) {
        1 => format!("{name} by step"),
        several => format!("{name} by {several} steps"),
    };
    let top = format!("highest {}", words(highest));
    Element::new("figure")
        .class("plot")
        .with(
            Element::new("figcaption")
                .with(Element::new("b").text(&by))
                .with(Element::new("span").text(&top)),
        )
        .with(drawing)
}

/// Where the time went, as a strip with a legend.
pub(super) fn strip(shares: &Shares) -> Markup {
    let total = shares.total();
    if total == 0 {
        return Markup::default();
    }
    let mut drawing = drawing("strip");
    let mut legend = Element::new("ul").class("legend");
    let mut x = 0.0;
    for what in Use::ALL {
        let ms = shares.of(what);
        if ms == 0 {
            continue;
        }
        let (class, name) = named(what);
        let width = WIDTH * (ms as f64 / total as f64);
        let said = format!("{name}: {}", duration(ms));
        let part = rectangle(x, 0.0, width, HEIGHT)
            .class(class)
            .with(Element::new("title").text(&said));
        drawing = drawing.with(part);
        x += width;
        let row = Element::new("li")
            .with(Element::new("i").class(class))
            .with(Element::new("span").text(name))
            .with(Element::new("b").text(&duration(ms)));
        legend = legend.with(row);
    }
    let caption = Element::new("figcaption")
        .with(Element::new("b").text("where the time went"))
        .with(Element::new("span").text(&duration(total)));
    Element::new("figure")
        .class("plot")
        .with(caption)
        .with(drawing)
        .with(legend)
        .into()
}

fn named(what: Use) -> (&'static str, &'static str) {
    match what {
        Use::Model => ("of-model", "models"),
        Use::Tools => ("of-tools", "tools"),
        Use::Children => ("of-children", "child runs"),
        Use::Person => ("of-person", "waiting for a person"),
        Use::Rest => ("of-rest", "at rest"),
        Use::Own => ("of-own", "gyrus itself"),
    }
}

fn drawing(class: &'static str) -> Element {
    Element::new("svg")
        .class(class)
        .set("viewBox", "0 0 600 60")
        .set("preserveAspectRatio", "none")
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Element {
    Element::new("rect")
        .number("x", x)
        .number("y", y)
        .number("width", width)
        .number("height", height)
}

#[cfg(test)]
mod tests {
    use gyrus_contract::Microdollars;

    use super::*;

    #[test]
    fn many_steps_share_bars() {
        let steps: Vec<Figures> = (1..=500)
            .map(|step| Figures {
                step,
                tokens: u64::from(step),
                cost: Microdollars(0),
            })
            .collect();
        let plots = by_step(&steps, 0);
        let html = plots.as_str();
        assert_eq!(html.matches("class=\"bar\"").count(), 100);
        assert!(html.contains("<title>steps 496 to 500: 2,490 tokens</title>"));
        assert!(html.contains("href=\"#step496\""));
        assert!(html.contains("tokens by 5 steps") && !html.contains("cost by"));
        assert!(by_step(&steps[..1], 0).is_empty());
    }
}
