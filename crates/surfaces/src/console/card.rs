//! An approval card in a terminal: our own sentence first, the model's words in a marked box.

use gyrus_contract::{Origin, Text};
use gyrus_kernel::{ApprovalCard, QuestionId, approvals::OpenQuestion};
use gyrus_text::{counted, one_line, visible, width, wrap};

use super::{line::painted_patch, paint::Painter};
use crate::projection::{Tone, is_patch};

/// Maximum number of detail lines on one card. Who wants to see more looks at the run. A card whose
/// text can be edited is shown whole: what is approved as it stands was there to be read.
const DETAIL_LINES: usize = 60;

/// Columns of the rules above and below a card, in a wide terminal.
const RULE: usize = 72;

/// Returns the card's lines, with invisible characters shown. Every line of untrusted text begins
/// with `┃`, so nothing in it can look like the card's end or like a word of ours.
pub fn lines(id: &QuestionId, card: &ApprovalCard, run: &str, painter: &Painter) -> Vec<String> {
    let columns = painter.columns.min(RULE);
    let what = if card.question {
        "question"
    } else {
        "approval"
    };
    let head = format!("┌ {what} {id} ");
    let rule = "─".repeat(columns.saturating_sub(width(&head)));
    let mut lines = vec![painter.paint(Tone::Ask, &format!("{head}{rule}"))];
    lines.extend(sentence(card, painter));
    lines.extend(body(card, run, painter));
    lines.push(end(painter));
    lines
}

/// The lines of several cards of a kind as one card, which names each.
pub fn joined_lines<'a>(
    cards: impl IntoIterator<Item = (&'a QuestionId, &'a ApprovalCard, String)>,
    painter: &Painter,
) -> Vec<String> {
    let frame = painter.paint(Tone::Ask, "│");
    let mut joined = Vec::new();
    for (id, card, run) in cards {
        if joined.is_empty() {
            joined = lines(id, card, &run, painter);
        } else {
            joined.push(format!(
                "{frame} {}",
                painter.paint(Tone::Ask, &format!("and {run} {id}"))
            ));
            joined.extend(sentence(card, painter));
            joined.extend(body(card, &run, painter));
            joined.push(end(painter));
        }
        // The frame goes on.
        joined.pop();
    }
    joined.push(end(painter));
    joined
}

fn sentence(card: &ApprovalCard, painter: &Painter) -> Vec<String> {
    let frame = painter.paint(Tone::Ask, "│");
    let wrapped = wrap(&visible(&card.sentence), painter.columns.saturating_sub(4));
    let painted = wrapped.iter().map(|line| painter.paint(Tone::Strong, line));
    painted.map(|line| format!("{frame} {line}")).collect()
}

fn end(painter: &Painter) -> String {
    let columns = painter.columns.min(RULE);
    let rule = format!("└{}", "─".repeat(columns.saturating_sub(1)));
    painter.paint(Tone::Ask, &rule)
}

/// The lines between the sentence of a card and its end.
fn body(card: &ApprovalCard, run: &str, painter: &Painter) -> Vec<String> {
    let inner = painter.columns.saturating_sub(4);
    let frame = painter.paint(Tone::Ask, "│");
    let mut lines = Vec::new();
    for reason in &card.reasons {
        for (number, line) in wrap(&one_line(reason), inner.saturating_sub(2))
            .iter()
            .enumerate()
        {
            lines.push(format!(
                "{frame} {} {line}",
                if number == 0 { "-" } else { " " }
            ));
        }
    }
    lines.extend(details(card, run, inner, painter));
    if !card.wider.is_empty() {
        let wider: Vec<String> = card.wider.iter().map(ToString::to_string).collect();
        let offer = format!(
            "for this session, or always in this folder, you could allow {}",
            wider.join(" and ")
        );
        let said = wrap(&one_line(&offer), inner);
        lines.extend(said.iter().map(|line| format!("{frame} {line}")));
    }
    lines
}

/// Returns the words that name the author of a card's details.
pub fn whose(card: &ApprovalCard) -> &'static str {
    let any = |origin: Origin| card.details.iter().any(|detail| detail.origin == origin);
    if any(Origin::Model) {
        "as written by the model (unverified)"
    } else if any(Origin::Person) {
        "as you typed it"
    } else {
        "as it was found (unverified)"
    }
}

/// Returns a card as plain text, whole. Every line of untrusted text begins with `┃`, so nothing in
/// it can look like words of ours.
pub fn plain_text(open: &OpenQuestion) -> String {
    let card = &open.card;
    let (name, id) = (open.run.short(), &open.id);
    let what = if card.question {
        "Question"
    } else {
        "Approval"
    };
    let mut text = format!("{what} {id} of run {name}\n{}\n", visible(&card.sentence));
    for reason in &card.reasons {
        text.push_str(&format!("- {}\n", one_line(reason)));
    }
    if !card.details.is_empty() {
        text.push_str(&format!("{}:\n", whose(card)));
    }
    for detail in &card.details {
        for line in visible(detail.text.trim_end_matches('\n')).split('\n') {
            text.push_str(&format!("┃ {line}\n"));
        }
    }
    text
}

fn details(card: &ApprovalCard, run: &str, inner: usize, painter: &Painter) -> Vec<String> {
    let frame = painter.paint(Tone::Ask, "│");
    let framed = |paint, text: &str| {
        let wrapped = wrap(&visible(text), inner).into_iter();
        let painted = wrapped.map(|line| format!("{frame} {}", painter.paint(paint, &line)));
        painted.collect::<Vec<_>>()
    };
    let details = card.details.iter();
    let details: Vec<_> = details
        .flat_map(|detail| detail_lines(detail, inner, painter))
        .collect();
    if details.is_empty() {
        return Vec::new();
    }
    let whose = format!("{}:", whose(card));
    let most = match card.edit {
        Some(_) => usize::MAX,
        None => DETAIL_LINES,
    };
    let mut lines = framed(Tone::Aside, &whose);
    for line in details.iter().take(most) {
        let mark = painter.paint(Tone::Bad, "┃ ");
        lines.push(format!("{frame} {mark}{line}"));
    }
    if details.len() > most {
        let more = details.len() - most;
        lines.push(format!(
            "{frame} and {}: gyrus show {run}",
            counted(more, "more line")
        ));
    } else if details.len() > DETAIL_LINES {
        // The beginning is far above by now.
        lines.extend(framed(Tone::Strong, &card.sentence));
    }
    lines
}

/// The lines of a detail. Those of a patch are coloured by what they do.
fn detail_lines(detail: &Text, columns: usize, painter: &Painter) -> Vec<String> {
    if is_patch(&detail.text) {
        return painted_patch(&detail.text, columns, painter);
    }
    let lines = detail.text.trim_end_matches('\n').split('\n');
    let wrapped = lines.flat_map(|line| wrap(&visible(line), columns));
    wrapped
        .map(|line| painter.paint(Tone::Plain, &line))
        .collect()
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Origin, Text};

    use super::*;

    #[test]
    fn untrusted_words_stay_in_their_box() {
        let card = ApprovalCard {
            question: false,
            sentence: "The tool `shell` wants to do something that needs your approval".to_owned(),
            reasons: vec!["runs a command".to_owned()],
            details: vec![Text::new(
                "command: ls\x1b[1A\n└─────\n│ approved; press y",
                Origin::Model,
            )],
            wider: vec![gyrus_contract::Grant::PackageRegistries],
            edit: None,
        };
        let id = "2.3".parse().unwrap();
        let shown = lines(&id, &card, "1a2b", &Painter::plain(44)).join("\n");
        insta::assert_snapshot!(shown, @r"
        ┌ approval 2.3 ─────────────────────────────
        │ The tool `shell` wants to do something
        │ that needs your approval
        │ - runs a command
        │ as written by the model (unverified):
        │ ┃ command: ls␛[1A
        │ ┃ └─────
        │ ┃ │ approved; press y
        │ for this session, or always in this
        │ folder, you could allow getting packages
        │ from the package registries
        └───────────────────────────────────────────
        ");
        for columns in [20, 30, 200, 2_000] {
            for line in lines(&id, &card, "1a2b", &Painter::plain(columns)) {
                assert!(width(&line) <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn a_diff_is_shown_whole_and_cannot_be_forged_by_long_lines() {
        let diff = format!(
            "diff --git a/a.rs b/a.rs\n@@ -0,0 +1,2 @@\n+aaaaaaaaaaaaaaaaa - b\n{}",
            "+x\n".repeat(100)
        );
        let card = ApprovalCard {
            question: false,
            sentence: "change a.rs".to_owned(),
            reasons: Vec::new(),
            details: vec![Text::new(diff, Origin::Model)],
            wider: Vec::new(),
            edit: Some(String::new()),
        };
        let id = "1.1".parse().unwrap();
        let shown = lines(&id, &card, "1a2b", &Painter::plain(24));
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        assert!(
            shown
                .windows(2)
                .any(|two| two == ["│ ┃ +aaaaaaaaaaaaaaaaa", "│ ┃ ↪ - b"]),
            "{shown:#?}"
        );
        assert_eq!(shown.iter().filter(|line| **line == "│ ┃ +x").count(), 100);
        // Whoever reads its end sees what it is about.
        assert_eq!(shown[shown.len() - 2], "│ change a.rs");
    }

    #[test]
    fn a_long_card_says_where_the_rest_is() {
        let details = vec![Text::new("x\n".repeat(500), Origin::Model)];
        let card = ApprovalCard {
            question: false,
            sentence: "s".to_owned(),
            reasons: Vec::new(),
            details,
            wider: Vec::new(),
            edit: None,
        };
        let id = "1.1".parse().unwrap();
        let shown = lines(&id, &card, "1a2b", &Painter::plain(80));
        assert!(
            shown
                .iter()
                .any(|line| line.ends_with("440 more lines: gyrus show 1a2b"))
        );
    }
}
