//! Proposals: what a form of a page probably does, and what its fields hold. A person reads it before
//! it counts. A wrong one costs them a correction, so in doubt it is the stricter.

use std::collections::BTreeMap;

use gyrus_contract::{Aim, ArgumentRole, Repeat, SentControl, ToolAction, ToolSpec};
use serde_json::json;

use super::forms::{ConfirmedForm, MeasuredForm, measured};
use crate::service::{self, table, words};

/// Words in labels and names with their probable meaning; the file's own head says in which form.
const WORDS: &str = include_str!("roles.txt");

/// Parts of names of hidden fields by which a site knows its own page again.
const TOKENS: [&str; 5] = ["csrf", "xsrf", "nonce", "authenticity", "token"];

/// Returns the form that an input would send, with its probable meaning, and its origin; `None` if
/// the input does not send one by a button, as data, to its own origin.
pub fn propose_form(aim: &Aim) -> Option<(String, ConfirmedForm)> {
    let (origin, form) = measured(aim)?;
    Some((origin.into_string(), propose(&form)))
}

fn propose(form: &MeasuredForm<'_>) -> ConfirmedForm {
    let by_name: BTreeMap<(&str, &str), &SentControl> = form
        .controls
        .iter()
        .map(|control| ((control.name.as_str(), control.label.as_str()), control))
        .collect();
    let mut proposed = form.undescribed();
    for field in &mut proposed.fields {
        let control = by_name.get(&(field.name.as_str(), field.label.as_str()));
        field.role = control.and_then(|control| role(control));
    }
    let spec = ToolSpec {
        name: form.button.to_owned(),
        description: String::new(),
        parameters: json!({}),
        touches: Vec::new(),
        repeat: Repeat::Never,
    };
    proposed.does = service::propose(&spec).action;
    let mut roles = proposed.fields.iter().map(|field| field.role);
    if roles.any(|role| role == Some(ArgumentRole::Amount)) && proposed.does < ToolAction::Pays {
        proposed.does = ToolAction::Pays;
    }
    proposed
}

/// Returns the probable role of a field.
fn role(control: &SentControl) -> Option<ArgumentRole> {
    let hint = control.autocomplete.split_whitespace().next_back();
    match (hint.unwrap_or_default(), control.kind.as_str()) {
        (hint, _) if hint.starts_with("cc-") => return Some(ArgumentRole::Password),
        ("" | "on" | "off", _) => {}
        // Pages put the first two on ordinary fields, so that browsers fill nothing in.
        ("current-password" | "new-password", kind) if kind != "password" => {}
        ("current-password" | "new-password" | "one-time-code", _) => {
            return Some(ArgumentRole::Password);
        }
        ("transaction-amount", _) => return Some(ArgumentRole::Amount),
        // All others are names, addresses and numbers of people.
        _ => return Some(ArgumentRole::To),
    }
    let name = control.name.to_lowercase();
    match control.kind.as_str() {
        "hidden" => {
            let is_token = TOKENS.iter().any(|part| name.contains(part));
            return is_token.then_some(ArgumentRole::Option);
        }
        "password" => return Some(ArgumentRole::Password),
        "email" | "tel" => return Some(ArgumentRole::To),
        "submit" | "checkbox" | "date" | "time" | "month" | "week" | "datetime-local" => {
            return Some(ArgumentRole::Option);
        }
        _ => {}
    }
    let known = table::<ArgumentRole>(WORDS);
    let words = [words(&control.label), words(&control.name)].concat();
    let mut known = known.iter();
    let found = known.find(|(_, known)| words.iter().any(|word| known.contains(&word.as_str())));
    match found {
        Some((role, _)) => Some(*role),
        None if control.kind == "textarea" => Some(ArgumentRole::Text),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_names_types_and_hints_tell_most() {
        let proposed = |button: &str, fields: &[(&str, &str, &str, &str)]| {
            let controls = fields
                .iter()
                .map(|(name, label, kind, autocomplete)| SentControl {
                    name: (*name).to_owned(),
                    label: (*label).to_owned(),
                    kind: (*kind).to_owned(),
                    autocomplete: (*autocomplete).to_owned(),
                    value: None,
                    shown: String::new(),
                    secret: false,
                });
            let controls: Vec<_> = controls.collect();
            let form = propose(&MeasuredForm {
                button,
                action: "http://a.example/x".to_owned(),
                controls: &controls,
            });
            let fields = form.fields.iter().map(|field| {
                let role = field.role.map_or("-".to_owned(), |role| role.to_string());
                format!("{}={role}", field.name)
            });
            format!(
                "{} {}: {}",
                form.id,
                form.does,
                fields.collect::<Vec<_>>().join(" ")
            )
        };
        let all = [
            proposed(
                "Place order",
                &[
                    ("csrf_token", "", "hidden", ""),
                    ("seller", "", "hidden", ""),
                    ("a", "Item", "select-one", ""),
                    ("n", "Quantity", "number", ""),
                    ("b", "Full name", "text", ""),
                    ("c", "Wohin", "text", "shipping street-address"),
                    ("card", "Number", "text", "cc-number"),
                ],
            ),
            proposed(
                "Transfer money!",
                &[
                    ("iban", "Empfänger", "text", ""),
                    ("x", "Amount", "text", ""),
                    ("ref", "Reference", "text", "off"),
                ],
            ),
            proposed(
                "Senden",
                &[
                    ("to", "An", "email", ""),
                    ("m", "Nachricht", "textarea", ""),
                    ("s", "Betreff", "text", ""),
                ],
            ),
            proposed("→", &[]),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        place_order pays: csrf_token=option seller=- a=name n=name b=to c=to card=password
        transfer_money pays: iban=to x=amount ref=text
        senden sends: to=to m=text s=-
        form sends: 
        ");
    }
}
