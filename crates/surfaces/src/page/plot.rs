//! Small drawings: tokens and money by step, and where the time went. They are inline SVG without
//! a style of their own; what a bar stands for is told when one points at it.

use gyrus_text::counted;
use maud::{Markup, html};

use super::{
    moment::duration,
    survey::Figures,
    time_shares::{Shares, Use},
};

/// Bars of a plot; with more steps, each bar stands for several.
const BARS: usize = 120;

/// Minimum number of columns of a plot, so that the bars of short runs stay narrow.
const ROOMS: usize = 16;

/// Size of a diagram in its own units; the page stretches it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 60.0;

/// The part of its space that a bar fills.
const FILLED: f64 = 0.78;

/// Returns drawings of tokens by step, and of money if any was spent; nothing for a run of one step.
///
/// `link` returns the address of a step, by its number and that of its first entry.
pub(super) fn by_step(steps: &[Figures], link: &dyn Fn(u32, u64) -> String) -> Markup {
    if steps.len() < 2 {
        return html! {};
    }
    let tokens = |sum: u64| counted(sum, "token");
    let money = |sum: u64| gyrus_contract::Microdollars(sum).to_string();
    let has_cost = steps.iter().any(|figures| figures.cost.0 > 0);
    html! {
        (bars("tokens", steps, link, &|figures| figures.tokens, &tokens))
        @if has_cost {
            (bars("cost", steps, link, &|figures| figures.cost.0, &money))
        }
    }
}

/// A bar of a plot, with its parts from the bottom up.
pub struct Bar {
    /// The address to which the bar links.
    pub href: String,
    /// The description of the whole bar.
    pub title: String,
    /// The parts, each with its class in the style and its value.
    pub parts: Vec<(&'static str, u64)>,
}

impl Bar {
    fn sum(&self) -> u64 {
        let values = self.parts.iter().map(|(_, value)| *value);
        values.fold(0, u64::saturating_add)
    }
}

/// Returns bars side by side under a caption, with the words for the highest one.
pub fn plot(class: &str, caption: &str, bars: &[Bar], words: &dyn Fn(u64) -> String) -> Markup {
    let highest = bars.iter().map(Bar::sum).max().unwrap_or(0).max(1);
    let room = WIDTH / bars.len().max(ROOMS) as f64;
    let height = |value: u64| HEIGHT * (value as f64 / highest as f64);
    let drawn = (0_u32..).zip(bars).map(|(at, bar)| {
        let x = room * f64::from(at);
        let mut below = 0;
        html! {
            a href=(bar.href) aria-label=(bar.title) {
                title { (bar.title) }
                // The whole column can be pointed at, however low its bar is.
                (rectangle("room", (x, 0.0), (room, HEIGHT), ""))
                @for (part, value) in &bar.parts {
                    @let () = below += value;
                    (rectangle(part, (x, HEIGHT - height(below)), (room * FILLED, height(*value)), ""))
                }
            }
        }
    });
    html! {
        figure.plot {
            figcaption { b { (caption) } span { "highest " (words(highest)) } }
            svg class=(class) viewBox="0 0 600 60" preserveAspectRatio="none" {
                @for bar in drawn { (bar) }
            }
        }
    }
}

fn bars(
    name: &'static str,
    steps: &[Figures],
    link: &dyn Fn(u32, u64) -> String,
    value: &dyn Fn(&Figures) -> u64,
    words: &dyn Fn(u64) -> String,
) -> Markup {
    let size = steps.len().div_ceil(BARS);
    let bars = steps.chunks(size).filter_map(|group| {
        let (first, last) = (group.first()?.step, group.last()?.step);
        let sum = group.iter().map(value).fold(0, u64::saturating_add);
        let which = if first == last {
            format!("step {first}")
        } else {
            format!("steps {first} to {last}")
        };
        Some(Bar {
            href: link(first, group.first()?.seq),
            title: format!("{which}: {}", words(sum)),
            parts: vec![("bar", sum)],
        })
    });
    let bars: Vec<_> = bars.collect();
    let by = match size {
        1 => format!("{name} by step"),
        several => format!("{name} by {several} steps"),
    };
    plot(name, &by, &bars, words)
}

/// Returns where the time went, as a strip with a legend.
pub(super) fn strip(shares: &Shares) -> Markup {
    let total = shares.total();
    if total == 0 {
        return html! {};
    }
    let used = Use::ALL
        .into_iter()
        .map(|what| (named(what), shares.of(what)));
    let used: Vec<_> = used.filter(|(_, ms)| *ms > 0).collect();
    let mut x = 0.0;
    let parts = used.iter().map(|((class, name), ms)| {
        let width = WIDTH * (*ms as f64 / total as f64);
        let at = x;
        x += width;
        let title = format!("{name}: {}", duration(*ms));
        rectangle(class, (at, 0.0), (width, HEIGHT), &title)
    });
    html! {
        figure.plot {
            figcaption { b { "where the time went" } span { (duration(total)) } }
            svg.strip viewBox="0 0 600 60" preserveAspectRatio="none" {
                @for part in parts { (part) }
            }
            ul.legend {
                @for ((class, name), ms) in &used {
                    li { i class=(class) {} span { (name) } b { (duration(*ms)) } }
                }
            }
        }
    }
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

/// A rectangle in a drawing; numbers to a hundredth.
fn rectangle(class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) -> Markup {
    let number = |value: f64| (value * 100.0).round() / 100.0;
    html! {
        rect class=(class) x=(number(x)) y=(number(y)) width=(number(width)) height=(number(height)) {
            @if !title.is_empty() { title { (title) } }
        }
    }
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
                seq: 1,
                tokens: u64::from(step),
                cost: Microdollars(0),
            })
            .collect();
        let plots = by_step(&steps, &|step, _| format!("#step{step}"));
        let html = plots.0;
        assert_eq!(html.matches("class=\"bar\"").count(), 100);
        assert!(html.contains("<title>steps 496 to 500: 2,490 tokens</title>"));
        assert!(html.contains("href=\"#step496\""));
        assert!(html.contains("tokens by 5 steps") && !html.contains("cost by"));
        assert!(by_step(&steps[..1], &|_, _| String::new()).0.is_empty());
    }
}
