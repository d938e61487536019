//! Forms of pages that the person described: one file for each origin, which only
//! `gyrus browser roles` writes.
//!
//! A form is known by the words of its button, the address that it is sent to, and its fields. One
//! that differs in any of these has no roles. Roles never loosen anything by themselves: they are
//! what a mandate can speak of.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{
    Aim, ArgumentRole, ArgumentValue, Digest, Judgement, MeantCall, Repeat, SentControl, Starts,
    ToolAction, ToolMeaning, ToolSpec,
};
use gyrus_process::read_regular_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::origin::{PageOrigin, named_in};
use crate::{MeaningsError, service};

/// Characters of the id of a form.
const ID: usize = 32;

/// Maximum number of forms of one origin.
const MAX_FORMS: usize = 100;

/// The command that writes the files.
const COMMAND: &str = "gyrus browser roles";

/// The forms that the person described, by origin. Cheap to clone; the default knows none.
#[derive(Debug, Clone, Default)]
pub struct FormMeanings(Arc<BTreeMap<String, OriginForms>>);

/// The described forms of one origin, as stored in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginForms {
    /// The origin, as browsers write it.
    pub origin: String,
    #[serde(default, rename = "form")]
    pub forms: Vec<ConfirmedForm>,
}

/// A form with the roles that the person confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedForm {
    /// A short name of the form, unique at its origin.
    pub id: String,
    /// The action of sending the form.
    pub does: ToolAction,
    /// The words of the button.
    pub button: String,
    /// The address to which the form is sent.
    pub action: String,
    #[serde(default, rename = "field")]
    pub fields: Vec<ConfirmedField>,
}

/// A field of such a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedField {
    /// The technical name of the field.
    pub name: String,
    /// The label of the field; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The type of the field.
    pub kind: String,
    /// The role of the field; `None` if nobody said, and then it is a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ArgumentRole>,
}

impl OriginForms {
    /// Returns the text of the file.
    ///
    /// # Errors
    /// A text cannot be written as TOML.
    pub fn to_text(&self) -> Result<String, toml::ser::Error> {
        let head = "# Written by `gyrus browser roles`, which shows it and asks. A form with another \
                    button, address or field has none of these.\n";
        Ok(format!("{head}{}", toml::to_string(self)?))
    }
}

impl ConfirmedForm {
    /// Whether both describe the same form, whatever its meaning.
    pub fn is_same(&self, other: &Self) -> bool {
        let field = |field: &ConfirmedField| {
            let ConfirmedField {
                name, label, kind, ..
            } = field.clone();
            (name, label, kind)
        };
        self.button == other.button
            && self.action == other.action
            && self
                .fields
                .iter()
                .map(field)
                .eq(other.fields.iter().map(field))
    }

    /// Returns the form as a tool whose arguments are its fields, with its meaning.
    pub fn as_tool(&self, origin: &str) -> (ToolSpec, ToolMeaning) {
        let mut properties = Map::new();
        let mut arguments = BTreeMap::new();
        for field in &self.fields {
            let key = argument_name(&field.name);
            let said = match field.label.as_str() {
                "" => "not shown on the page",
                label => label,
            };
            properties.insert(key.clone(), json!({"type": "string", "description": said}));
            if let Some(role) = field.role {
                arguments.insert(key, role);
            }
        }
        let spec = ToolSpec {
            name: name_of(&self.id, origin),
            description: format!(
                "The form of the button “{}” on {origin}, whose fields are filled in on the page",
                self.button
            ),
            parameters: json!({"type": "object", "properties": Value::Object(properties)}),
            touches: Vec::new(),
            repeat: Repeat::Never,
        };
        let meaning = ToolMeaning {
            action: self.does,
            arguments,
        };
        (spec, meaning)
    }

    /// Returns the values that the form would send.
    fn values(&self, controls: &[SentControl]) -> Vec<ArgumentValue> {
        let filled = controls.iter().filter_map(|control| {
            let text = control.read().filter(|text| !text.is_empty())?;
            let mut fields = self.fields.iter();
            let field = fields.find(|field| {
                field.name == control.name
                    && field.label == control.label
                    && field.kind == control.kind
            });
            Some(ArgumentValue {
                path: argument_name(&control.name),
                role: field.and_then(|field| field.role),
                text: text.to_owned(),
                is_text: true,
            })
        });
        let mut values: Vec<_> = filled.collect();
        service::add_links(&mut values);
        values
    }
}

impl FormMeanings {
    /// Reads the files of all origins in a folder, which may be absent.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn read(folder: &Path) -> Result<Self, MeaningsError> {
        let mut all = BTreeMap::new();
        for file in service::files(folder) {
            let wrong = |reason: String| MeaningsError {
                file: file.clone(),
                reason,
                command: COMMAND,
            };
            let text = read_regular_text(&file).map_err(|error| wrong(error.to_string()))?;
            let read: OriginForms =
                toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
            let ids: BTreeSet<&str> = read.forms.iter().map(|form| form.id.as_str()).collect();
            if ids.len() < read.forms.len() || read.forms.len() > MAX_FORMS {
                let what = format!("it has two forms of one id, or more than {MAX_FORMS}");
                return Err(wrong(what));
            }
            all.insert(read.origin.clone(), read);
        }
        Ok(Self(Arc::new(all)))
    }

    /// Returns the origin of a page's address, as browsers write it.
    pub fn origin_of(address: &str) -> Option<String> {
        let origin = PageOrigin::of(&Url::parse(address).ok()?)?;
        Some(origin.into_string())
    }

    /// Returns the file of an origin in the folder.
    pub fn file(folder: &Path, origin: &str) -> PathBuf {
        let digest = Digest::of(origin.as_bytes()).to_string();
        let host = Url::parse(origin).ok();
        let host = host.as_ref().and_then(Url::host_str).unwrap_or("page");
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        };
        let host: String = host.chars().take(60).map(plain).collect();
        folder.join(format!("{host}-{}.toml", &digest[..8]))
    }

    /// Returns the forms that were confirmed for an origin.
    pub fn of_origin(&self, origin: &str) -> Option<&OriginForms> {
        self.0.get(origin)
    }

    /// Takes the sending of a described form apart.
    pub(crate) fn meant(&self, aim: &Aim) -> Option<MeantCall> {
        let (origin, form) = measured(aim)?;
        let known = self.0.get(origin.as_str())?;
        let wanted = form.undescribed();
        let found = known.forms.iter().find(|known| known.is_same(&wanted))?;
        Some(MeantCall {
            name: name_of(&found.id, origin.as_str()),
            action: Some(found.does),
            values: found.values(form.controls),
        })
    }

    /// Returns the described forms of the origins named in these texts, as tools.
    pub(crate) fn tools(&self, trusted: &[&str]) -> Vec<(ToolSpec, ToolMeaning)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let named: BTreeSet<PageOrigin> = trusted.iter().flat_map(|text| named_in(text)).collect();
        let known = named
            .iter()
            .filter_map(|origin| self.0.get(origin.as_str()));
        let tools = known.flat_map(|known| {
            let forms = known.forms.iter();
            forms.map(|form| form.as_tool(&known.origin))
        });
        tools.collect()
    }
}

/// A form that an input would send, as the screen measured it.
pub(super) struct MeasuredForm<'a> {
    pub(super) button: &'a str,
    pub(super) action: String,
    pub(super) controls: &'a [SentControl],
}

impl MeasuredForm<'_> {
    /// Returns the form without roles.
    pub(super) fn undescribed(&self) -> ConfirmedForm {
        let mut fields: Vec<ConfirmedField> = Vec::new();
        for control in self.controls {
            let field = ConfirmedField {
                name: control.name.clone(),
                label: control.label.clone(),
                kind: control.kind.clone(),
                role: None,
            };
            // A list in which several things are chosen is one field.
            if fields.last() != Some(&field) {
                fields.push(field);
            }
        }
        ConfirmedForm {
            id: id_of(self.button),
            does: ToolAction::Sends,
            button: self.button.to_owned(),
            action: self.action.clone(),
            fields,
        }
    }
}

/// Returns the form that an input would send to its own origin, by its button and as data.
pub(super) fn measured(aim: &Aim) -> Option<(PageOrigin, MeasuredForm<'_>)> {
    let is_sent = aim.starts == [Starts::Submits];
    let form = aim
        .form
        .as_ref()
        .filter(|form| is_sent && form.method == "post")?;
    let (sends, element) = (form.sends.as_ref()?, aim.element.as_ref()?);
    let origin = PageOrigin::measured(&aim.origin, &aim.address)?;
    let mut action = Url::parse(&form.action).ok()?;
    action.set_fragment(None);
    let stays = PageOrigin::of(&action).as_ref() == Some(&origin);
    let is_called = !element.name.trim().is_empty();
    (stays && is_called).then(|| {
        let form = MeasuredForm {
            button: &element.name,
            action: action.into(),
            controls: &sends.controls,
        };
        (origin, form)
    })
}

/// A short name, by the words of a button.
fn id_of(button: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c } else { ' ' };
    let plain: String = button.to_lowercase().chars().map(plain).collect();
    let id = plain.split_whitespace().collect::<Vec<_>>().join("_");
    let id: String = id.chars().take(ID).collect();
    if id.is_empty() { "form".to_owned() } else { id }
}

/// Returns the name of a form in mandates.
fn name_of(id: &str, origin: &str) -> String {
    format!("{id} on {origin}")
}

/// The name of a field as an argument: a dot would lead into an object.
fn argument_name(name: &str) -> String {
    name.replace('.', "_")
}

/// Whether a call of the mandate passes unasked: the form itself says what it is about, and what
/// moves money says how much.
pub(super) fn passes<'a>(under: &Judgement<'a>, meant: Option<&MeantCall>) -> Option<&'a str> {
    let meant = meant?;
    let has = |role: ArgumentRole| meant.values.iter().any(|value| value.role == Some(role));
    let says_what = meant.values.iter().any(ArgumentValue::is_destination)
        || has(ArgumentRole::Name)
        || has(ArgumentRole::Amount);
    let passes = match meant.action? {
        ToolAction::Pays => has(ArgumentRole::Amount),
        ToolAction::Deletes => false,
        ToolAction::Reads | ToolAction::Creates | ToolAction::Changes | ToolAction::Sends => {
            says_what
        }
    };
    under.mandated.filter(|_| passes)
}

#[cfg(test)]
mod tests {
    use gyrus_contract::Mode;

    use super::*;

    #[test]
    fn a_form_passes_that_says_what_it_is_about_and_what_it_pays() {
        use ArgumentRole::{Amount, Name, Option as Setting, Text, To};
        let mut under = Judgement {
            agent: "main",
            workspace: Path::new("/srv/work"),
            mode: Mode::Ask,
            exposed: true,
            throwaway: false,
            undoable: false,
            grants: &[],
            skills: &[],
            trusted: &[],
            link_was_seen: false,
            mandated: Some("a"),
            has_mandate: true,
        };
        let meant = |action, roles: &[ArgumentRole]| MeantCall {
            name: "send on http://shop.com".to_owned(),
            action,
            values: roles
                .iter()
                .map(|role| ArgumentValue {
                    path: "field".to_owned(),
                    role: Some(*role),
                    text: "x".to_owned(),
                    is_text: true,
                })
                .collect(),
        };
        for (action, roles, expected) in [
            (ToolAction::Sends, &[To][..], true),
            (ToolAction::Sends, &[Text, Name], true),
            (ToolAction::Creates, &[Amount], true),
            (ToolAction::Sends, &[Text, Setting], false),
            (ToolAction::Changes, &[], false),
            (ToolAction::Pays, &[To, Amount], true),
            (ToolAction::Pays, &[To, Name], false),
            (ToolAction::Deletes, &[Name, Amount], false),
        ] {
            let meant = meant(Some(action), roles);
            let passed = passes(&under, Some(&meant)).is_some();
            assert_eq!(passed, expected, "{meant:?}");
        }
        assert_eq!(passes(&under, Some(&meant(None, &[To]))), None);
        assert_eq!(passes(&under, None), None);
        under.mandated = None;
        assert_eq!(
            passes(&under, Some(&meant(Some(ToolAction::Sends), &[To]))),
            None
        );
    }
}
