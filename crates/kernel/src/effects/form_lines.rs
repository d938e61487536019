//! The lines of a card about what an input fills in and sends.

use gyrus_contract::{Aim, Origin, ResolvedCall, SentControl, Text};
use gyrus_text::{one_line, shorten};

/// Maximum number of characters of a name or a value.
const SHOWN: usize = 200;

/// Returns the fields that an input fills in, and the data that its form sends, one a line.
pub(super) fn form_lines(call: &ResolvedCall) -> Vec<Text> {
    let texts = call.arguments["fill"].as_array().into_iter().flatten();
    let fields = call.aim.iter().flat_map(|aim| &aim.fills);
    let filled = fields.zip(texts).map(|(field, given)| {
        let text = given[1].as_str().unwrap_or_default();
        filled(field, text)
    });
    let forms = call.aim.iter().filter_map(|aim| aim.form.as_ref());
    let controls = forms.filter_map(|form| form.sends.as_ref());
    let sent = controls.flat_map(|sends| &sends.controls).filter_map(sent);
    let page = Origin::Tool {
        name: call.tool.clone(),
    };
    let elements = call.aim.iter().filter_map(|aim| aim.element.as_ref());
    let elements = elements.map(|element| {
        let name = shorten(&element.name, SHOWN);
        format!("on the {} “{name}”", element.role)
    });
    let lines = elements.chain(filled).chain(sent);
    let lines = lines.map(|line| Text::new(one_line(&line).into_owned(), page.clone()));
    lines.collect()
}

fn filled(field: &Aim, text: &str) -> String {
    let name = field.element.as_ref().map_or("", |element| &element.name);
    let (name, text) = (shorten(name, SHOWN), shorten(text, SHOWN));
    format!("fills in “{name}” on {}: {text}", field.origin)
}

/// Describes a control, if its value is sent.
fn sent(control: &SentControl) -> Option<String> {
    let read = shorten(control.read()?, SHOWN);
    let name = match control.label.as_str() {
        "" => format!("{} (not shown on the page)", control.name),
        label => label.to_owned(),
    };
    let value = control.value.as_deref().filter(|value| {
        let is_said = read.ends_with(&format!("({value})"));
        !(value.is_empty() || is_said || control.shown.is_empty() || control.shown == *value)
    });
    let value = value.map_or_else(String::new, |value| format!(" (value {value})"));
    Some(format!("sends {name}: {read}{}", shorten(&value, SHOWN)))
}
