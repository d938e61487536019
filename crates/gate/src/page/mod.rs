//! Risk of an input on a page, and in `desktop` on a desktop, by what the screen measured just before.
//!
//! A page belongs to others. What a run may do there without asking depends on whether the person
//! named its origin, on where typed data would go, and on what the control is for. Names and roles
//! are the page's own words: they can make an input weigh more, and are shown as quotations only.

mod desktop;
mod forms;
mod origin;
mod roles;
mod words;

use gyrus_contract::{Aim, ElementState, Field, Form, Grant, Judgement, Risk, Starts, ToolAction};
use gyrus_text::{counted, head_and_tail, quote};
use url::Url;

pub use self::{
    forms::{ConfirmedField, ConfirmedForm, FormMeanings, OriginForms},
    roles::propose_form,
};
use self::{
    origin::{PageOrigin, is_near},
    words::{Label, WordClass},
};
use crate::{
    destinations,
    risk::Scales,
    shell,
    weight::{TouchWeight, uses_secret},
};

/// Longest quotation from a page, in characters.
const QUOTED: usize = 60;

/// Maximum length of an address or origin that is shown whole, in characters.
const SHOWN: usize = 120;

/// Maximum number of fields and files that a reason names.
const NAMED: usize = 3;

/// Types of fields that take no typed text.
const NOT_TYPED: [&str; 8] = [
    "hidden", "checkbox", "radio", "select", "range", "submit", "button", "image",
];

/// Roles of elements that show data: a name there is content, and only as a whole a command.
const DATA: [&str; 8] = [
    "cell",
    "gridcell",
    "columnheader",
    "rowheader",
    "row",
    "grid",
    "treegrid",
    "table",
];

/// Names of fields for a search.
const SEARCHES: [&str; 14] = [
    "q",
    "s",
    "query",
    "search",
    "keyword",
    "keywords",
    "find",
    "suche",
    "recherche",
    "buscar",
    "cerca",
    "zoeken",
    "szukaj",
    "pesquisa",
];

/// Hosts that an input may reach, for rules about hosts; an empty one may be any.
pub(crate) fn hosts(aim: &Aim) -> Vec<String> {
    let mut addresses = Vec::new();
    let on_page = aim.starts.iter().filter(|_| !desktop::is_desktop(aim));
    for starts in on_page {
        match starts {
            // Nothing comes to the page that is left.
            Starts::Opens { address } => addresses.push(address),
            Starts::Follows { address } => addresses.extend([address, &aim.address]),
            Starts::Submits => {
                addresses.push(&aim.address);
                addresses.extend(aim.form.as_ref().map(|form| &form.action));
            }
            Starts::Looking
            | Starts::Types
            | Starts::Chooses { .. }
            | Starts::Acts
            | Starts::Uploads { .. }
            | Starts::Answers { .. } => addresses.push(&aim.address),
            Starts::Sends { address, .. } => addresses.extend([address, &aim.address]),
            // A program of the desktop is on no host.
            Starts::Launches { .. } | Starts::Closes { .. } => {}
        }
    }
    let host = |address: &String| {
        let url = Url::parse(address).ok();
        url.and_then(|url| destinations::host(url.as_str()))
            .unwrap_or_default()
    };
    let filled = aim.fills.iter().flat_map(hosts);
    addresses.into_iter().map(host).chain(filled).collect()
}

/// Returns the origins to which a page may send because of an allowed input of this risk: those
/// that the person named or granted, and the input's own if it was judged to send.
pub(crate) fn sends_to(
    aim: Option<&Aim>,
    risk: Risk,
    under: &Judgement<'_>,
    standing: &[Grant],
) -> Vec<String> {
    let mut origins = origin::all_listed(under, standing);
    // Below, nobody was asked: it passed because nothing was to be sent.
    if let Some(aim) = aim.filter(|_| risk >= Risk::High) {
        let places = aim.fills.iter().chain([aim]);
        origins.extend(places.filter_map(|aim| PageOrigin::measured(&aim.origin, &aim.address)));
        let sends = |starts: &Starts| matches!(starts, Starts::Submits | Starts::Acts);
        let form = aim.form.iter().filter(|_| aim.starts.iter().any(sends));
        let of_form = form.map(|form| &form.action);
        let let_go = aim.starts.iter().filter_map(|starts| match starts {
            Starts::Sends { address, .. } => Some(address),
            _ => None,
        });
        let addresses = of_form.chain(let_go).filter_map(|at| Url::parse(at).ok());
        origins.extend(addresses.filter_map(|url| PageOrigin::of(&url)));
    }
    origins.sort_unstable();
    origins.dedup();
    origins.into_iter().map(PageOrigin::into_string).collect()
}

impl Scales<'_> {
    /// Returns all weights of an input on a page.
    pub(crate) fn page(&self) -> Vec<TouchWeight> {
        let Some(aim) = &self.call.aim else {
            let what = "uses a page, and what it would touch there was not measured";
            return vec![TouchWeight::critical(what)];
        };
        if desktop::is_desktop(aim) {
            return desktop::weights(self, aim);
        }
        let page = InputPage::new(self, aim);
        let mut weights: Vec<TouchWeight> = aim
            .starts
            .iter()
            .flat_map(|starts| page.starts(starts))
            .collect();
        if weights.is_empty() {
            let what = format!("uses {}, and what that starts is not known", page.control);
            weights.push(TouchWeight::new(Risk::High, what).each_time());
        }
        page.apply_mandate(&mut weights);
        for field in &aim.fills {
            let page = InputPage::new(self, field);
            weights.extend(field.starts.iter().flat_map(|starts| page.starts(starts)));
        }
        if uses_secret(&self.call.arguments) {
            let what = format!(
                "puts a secret, which is kept from the model, into {}",
                page.place
            );
            weights.push(TouchWeight::critical(what));
        }
        weights
    }
}

/// Whether the name of a control says something in letters that are read here.
pub(crate) fn is_readable(name: &str) -> bool {
    Label::new(name).is_readable
}

/// The page that an input goes to, and the control.
struct InputPage<'a> {
    scales: &'a Scales<'a>,
    aim: &'a Aim,
    /// The page's origin; `None` if it has none that can be named.
    origin: Option<PageOrigin>,
    /// The reason why typing into the page needs no question.
    listed: Option<&'static str>,
    /// Description of the element's place on the page.
    place: String,
    control: String,
    label: Label,
    role: &'a str,
    /// The mandate's call that the input is, if it may pass without a question.
    mandated: Option<&'a str>,
}

impl<'a> InputPage<'a> {
    fn new(scales: &'a Scales<'a>, aim: &'a Aim) -> Self {
        let origin = PageOrigin::measured(&aim.origin, &aim.address);
        let listed = origin
            .as_ref()
            .and_then(|origin| origin.listed(scales.under, scales.standing));
        let place = match &origin {
            Some(origin) => middle_out(origin.as_str()),
            None => format!("a page without an origin ({})", address_shown(&aim.address)),
        };
        let (name, role) = match &aim.element {
            Some(element) => (element.name.as_str(), element.role.as_str()),
            None => ("", ""),
        };
        Self {
            scales,
            aim,
            origin,
            listed,
            place,
            control: if name.trim().is_empty() {
                "a control without a name".to_owned()
            } else {
                quoted(name)
            },
            label: Label::new(name),
            role,
            mandated: forms::passes(scales.under, scales.meant),
        }
    }

    /// Lowers weights that are high because the input sends to the page's own origin, if the
    /// mandate covers it.
    fn apply_mandate(&self, weights: &mut [TouchWeight]) {
        let own = self.origin.as_ref().map(PageOrigin::grant);
        let sends = |weight: &&mut TouchWeight| weight.risk >= Risk::High;
        if let (None, Some(_)) = (self.mandated, self.scales.under.mandated) {
            let first = weights.iter_mut().find(sends);
            first.into_iter().for_each(|weight| {
                weight
                    .reason
                    .push_str("; the form itself does not say what or how much");
            });
        }
        let Some(id) = self.mandated else { return };
        let high = weights.iter_mut().filter(sends);
        let high = high.filter(|weight| weight.risk == Risk::High && weight.grant == own);
        high.for_each(|weight| {
            weight.risk = Risk::Moderate;
            weight.contained = true;
            weight
                .reason
                .push_str(&format!(", as call `{id}` of the mandate says"));
        });
    }

    fn starts(&self, starts: &Starts) -> Vec<TouchWeight> {
        if *starts == Starts::Looking {
            return vec![TouchWeight::safe(format!("looks at {}", self.place))];
        }
        let leaves = matches!(starts, Starts::Opens { .. });
        if !leaves && let Some(forbidden) = self.on_the_browsers_own() {
            return vec![forbidden];
        }
        match starts {
            Starts::Looking => Vec::new(),
            Starts::Follows { address } => self.goes(address, true),
            Starts::Opens { address } => self.goes(address, false),
            Starts::Types => vec![self.types()],
            Starts::Chooses { option } => self.chooses(option),
            Starts::Submits => self.submits(),
            Starts::Acts => self.acts(),
            Starts::Uploads { names } => self.uploads(names),
            Starts::Answers { accepts } => vec![self.answers(*accepts)],
            Starts::Launches { .. } | Starts::Closes { .. } => {
                vec![self.critical("starts or ends a program")]
            }
            Starts::Sends {
                method,
                address,
                bytes,
            } => self.lets_go(method, address, *bytes),
        }
    }

    /// Weighs an input on a page of the browser itself, whose controls change the browser.
    fn on_the_browsers_own(&self) -> Option<TouchWeight> {
        let scheme = Url::parse(&self.aim.address).ok()?;
        let of_pages = ["http", "https", "about", "blob", "data", "file"];
        (!of_pages.contains(&scheme.scheme())).then(|| {
            let what = format!("uses {}, which belongs to the browser itself", self.place);
            TouchWeight::critical(what).forbidden()
        })
    }

    /// Weighs an input as moderate, without a question: the person named the place, or nothing that
    /// the run knows goes there.
    fn plain(&self, what: &str) -> TouchWeight {
        let why = self.listed.map(|why| format!(", {why}"));
        let what = format!("{what} on {}{}", self.place, why.unwrap_or_default());
        TouchWeight::new(Risk::Moderate, what).contained()
    }

    /// Weighs an input as one that asks once for this origin.
    fn asks(&self, what: &str) -> TouchWeight {
        let why = match self.listed {
            Some(_) => "",
            None => ", which you did not name",
        };
        let weight = TouchWeight::new(Risk::High, format!("{what} on {}{why}", self.place));
        match &self.origin {
            Some(origin) => weight.unless(origin.grant()),
            None => weight.each_time(),
        }
    }

    fn critical(&self, what: &str) -> TouchWeight {
        TouchWeight::critical(format!("{what} on {}", self.place))
    }

    fn has(&self, state: ElementState) -> bool {
        let element = self.aim.element.as_ref();
        element.is_some_and(|element| element.states.contains(&state))
    }

    /// Returns the weight that the control's name adds, if it adds one.
    fn said(&self, does: &str, class: Option<WordClass>) -> Option<TouchWeight> {
        let control = &self.control;
        let what = |says: &str| format!("{does} {control}, whose name says that it {says},");
        Some(match class? {
            WordClass::Drops => return None,
            WordClass::Commits => self.asks(&what("sends, publishes, orders or takes part")),
            WordClass::Deletes => self.critical(&what("deletes")),
            WordClass::Authorises => {
                self.critical(&what("gives others power or approves something"))
            }
            WordClass::Pays if self.pays_by_mandate() => self.asks(&what("moves money")),
            WordClass::Pays => self.critical(&what("moves money")),
        })
    }

    /// Whether the input pays the amount that the mandate states.
    fn pays_by_mandate(&self) -> bool {
        let action = self.scales.meant.and_then(|meant| meant.action);
        self.mandated.is_some() && action == Some(ToolAction::Pays)
    }

    /// Weighs going to another address.
    fn goes(&self, address: &str, by_link: bool) -> Vec<TouchWeight> {
        let Ok(url) = Url::parse(address) else {
            let what = format!("goes to {}, which is not an address", quoted(address));
            return vec![TouchWeight::new(Risk::High, what).each_time()];
        };
        let Some(target) = PageOrigin::of(&url) else {
            if url.as_str() == "about:blank" {
                return vec![TouchWeight::safe("opens an empty page")];
            }
            let what = format!(
                "goes to {}; pages have addresses with http:// or https://",
                address_shown(address)
            );
            return vec![TouchWeight::critical(what).forbidden()];
        };
        let shown = middle_out(target.as_str());
        let listed = target.listed(self.scales.under, self.scales.standing);
        let stays = self.origin.as_ref() == Some(&target);
        let mut weights = vec![if let Some(why) = listed {
            TouchWeight::safe(format!("goes to {shown}, {why}"))
        } else if is_near(&url) && !(by_link && stays) {
            let what = format!(
                "goes to {shown}, which is on this machine or its network, and which you did not name"
            );
            match destinations::place(url.as_str()) {
                Some((host, port)) => TouchWeight::new(Risk::High, what).unless(Grant::Host {
                    host,
                    port: destinations::port_of_grant(port),
                }),
                None => TouchWeight::new(Risk::High, what).each_time(),
            }
        } else if by_link {
            TouchWeight::safe(format!("follows a link to {shown}, as the page has it"))
        } else {
            self.scales.address(url.as_str())
        }];
        if !url.username().is_empty() || url.password().is_some() {
            let what = format!("goes to {shown} with a name or a password in the address");
            weights.push(TouchWeight::new(Risk::High, what).each_time());
        }
        if by_link {
            weights.extend(self.said("follows", self.class_of_a_link()));
        }
        let what = format!("goes to an address of {shown} that says that it deletes something");
        if is_ordered_to_delete(&url) {
            weights.push(TouchWeight::critical(what));
        } else if is_called_delete(&url) {
            weights.push(TouchWeight::new(Risk::High, what).unless(target.grant()));
        }
        weights
    }

    /// Returns the effect of following the link, according to its words. The words of a link
    /// describe its target; those of a button, and of a link that listens for clicks, describe the
    /// effect.
    fn class_of_a_link(&self) -> Option<WordClass> {
        let listens = self.has(ElementState::Clickable);
        match self.role {
            "link" | "" if !listens => {
                let orders =
                    |class: &WordClass| matches!(class, WordClass::Deletes | WordClass::Authorises);
                let pays = |class: &WordClass| *class == WordClass::Pays && self.label.has_amount;
                let begins = self.label.class_of_the_order;
                let whole = self.label.class_of_the_whole.filter(orders);
                whole.max(begins.filter(|class| orders(class) || pays(class)))
            }
            _ => self.label.class,
        }
    }

    fn types(&self) -> TouchWeight {
        if self.is_secret_field() {
            return self.critical(&format!(
                "types into {}, a field for a password, a code or a card,",
                self.control
            ));
        }
        let what = format!("types into {}", self.control);
        match self.listed {
            Some(_) => self.plain(&what),
            None => self.asks(&what),
        }
    }

    fn is_secret_field(&self) -> bool {
        let Some(element) = &self.aim.element else {
            return false;
        };
        let mut fields = self.aim.form.iter().flat_map(|form| &form.fields);
        element.states.contains(&ElementState::Masked)
            || self.label.is_secret
            || fields.any(|field| field.name == element.name && is_secret(field))
    }

    fn chooses(&self, option: &str) -> Vec<TouchWeight> {
        // What is dragged acts, and is dropped on something.
        if !option.is_empty() && self.aim.starts.contains(&Starts::Acts) {
            let zone = Label::new(option);
            let deletes = zone.class.filter(|class| *class == WordClass::Deletes);
            let what = format!("drops {} on {}", self.control, quoted(option));
            let weight = match zone.class_of_the_whole.max(deletes) {
                None | Some(WordClass::Drops) => self.plain(&what),
                Some(WordClass::Commits) => self.asks(&what),
                Some(WordClass::Deletes | WordClass::Authorises | WordClass::Pays) => {
                    self.critical(&format!("{what}, whose name says what that does,"))
                }
            };
            return vec![weight];
        }
        let what = match option {
            "" => format!("changes {}", self.control),
            option => format!("changes {} to {}", self.control, quoted(option)),
        };
        let mut weights = vec![if self.is_secret_field() {
            self.critical(&format!("{what}, a field for a secret,"))
        } else if self.listed.is_some() {
            self.plain(&what)
        } else {
            self.asks(&what)
        }];
        // A switch does at once what it says; the rest waits for its form.
        if self.role == "switch" {
            weights.extend(self.said("changes", self.label.class));
        }
        weights
    }

    fn submits(&self) -> Vec<TouchWeight> {
        let Some(form) = &self.aim.form else {
            let what = format!("sends a form by {}", self.control);
            let mut weights = vec![self.asks(&what)];
            weights.extend(self.said("uses", self.label.class));
            return weights;
        };
        let target = Url::parse(&form.action).ok();
        let target = target.as_ref().and_then(PageOrigin::of);
        let carries = carried(form);
        let mut weights = Vec::new();
        if form.fields.iter().any(is_secret) {
            weights.push(self.critical(&format!(
                "sends a form with a password, a code or a card by {}{carries}",
                self.control
            )));
        }
        let stays = self.origin.is_some() && target == self.origin;
        weights.push(if stays && self.listed.is_some() && only_looks_up(form) {
            self.plain(&format!("looks something up by {}{carries}", self.control))
        } else {
            self.asks(&format!("sends a form by {}{carries}", self.control))
        });
        if !stays {
            weights.push(self.sends_elsewhere(form, target));
        }
        // What a field is called says what it holds.
        let by_itself = self.label.class.filter(|_| !self.is_text_field());
        weights.extend(self.said("uses", class_of_buttons(form).max(by_itself)));
        weights
    }

    fn sends_elsewhere(&self, form: &Form, target: Option<PageOrigin>) -> TouchWeight {
        let Some(target) = target else {
            let what = format!(
                "sends a form from {} to {}, of which nobody can tell where that is",
                self.place,
                address_shown(&form.action)
            );
            return TouchWeight::new(Risk::High, what).each_time();
        };
        let what = format!(
            "sends a form from {} to another place: {}",
            self.place,
            middle_out(target.as_str())
        );
        TouchWeight::new(Risk::High, what).unless(target.grant())
    }

    /// Weighs the release of a request that the screen held.
    fn lets_go(&self, method: &str, address: &str, bytes: Option<u64>) -> Vec<TouchWeight> {
        let size = match bytes {
            Some(bytes) => counted(bytes, "byte"),
            None => "an unknown size".to_owned(),
        };
        let request = format!("lets {} send {} ({size})", self.place, quoted(method));
        let url = Url::parse(address).ok();
        let target = url
            .as_ref()
            .and_then(|url| Some((url, PageOrigin::of(url)?)));
        let Some((url, target)) = target else {
            let what = format!(
                "{request} to {}, which is not a page",
                address_shown(address)
            );
            return vec![TouchWeight::new(Risk::High, what).each_time()];
        };
        let shown = middle_out(target.as_str());
        let listed = target.listed(self.scales.under, self.scales.standing);
        let mut weights = vec![match listed {
            _ if self.aim.element.is_some() => {
                let what = format!(
                    "{request} to {shown}, as following {} does more than to go somewhere",
                    self.control
                );
                TouchWeight::new(Risk::High, what).unless(target.grant())
            }
            Some(why) => {
                TouchWeight::new(Risk::Moderate, format!("{request} to {shown}, {why}")).contained()
            }
            None => {
                let what = format!("{request} to {shown}, which you did not name");
                TouchWeight::new(Risk::High, what).unless(target.grant())
            }
        }];
        // Only what a link did has a control.
        weights.extend(self.said("follows", self.label.class));
        if method == "DELETE" || is_ordered_to_delete(url) {
            let what = format!("{request} to {shown}, which says that it deletes something");
            weights.push(TouchWeight::critical(what));
        }
        weights
    }

    fn is_text_field(&self) -> bool {
        matches!(
            self.role,
            "textbox" | "searchbox" | "combobox" | "spinbutton"
        )
    }

    /// Weighs the unknown effects of using the control.
    fn acts(&self) -> Vec<TouchWeight> {
        let uses = format!("uses {}", self.control);
        let form = self.aim.form.as_ref();
        let filled = form.filter(|form| form.fields.iter().any(|field| field.filled));
        // What is dragged is a thing, as a card on a board.
        let is_data = self.has(ElementState::Draggable) || DATA.contains(&self.role);
        // What a field is called says what it holds.
        let is_told = is_data || self.is_text_field();
        let unread = match (filled, self.listed) {
            _ if is_told => None,
            (Some(_), _) if !self.label.is_readable => Some("nobody can tell what it does"),
            (None, None) if self.label.is_foreign => Some("its language is not read here"),
            _ => None,
        };
        let mut weights = vec![match (filled, self.listed, unread) {
            (Some(form), _, Some(why)) => self.asks(&format!("{uses} ({why}){}", carried(form))),
            (None, _, Some(why)) => self.asks(&format!("{uses} ({why})")),
            (Some(form), None, None) => self.asks(&format!("{uses}{}", carried(form))),
            (Some(_), Some(_), None) | (None, _, None) => self.plain(&uses),
        }];
        let class = if is_told {
            self.label.class_of_the_whole.filter(|_| is_data)
        } else {
            self.label.class
        };
        let by_buttons = form.and_then(class_of_buttons);
        weights.extend(self.said("uses", class.max(by_buttons)));
        if let Some(form) = filled {
            let mut filled = form.fields.iter().filter(|field| field.filled);
            if filled.any(is_secret) {
                let what =
                    format!("{uses}, beside a filled field for a password, a code or a card,");
                weights.push(self.critical(&what));
            }
            let target = Url::parse(&form.action).ok();
            let target = target.as_ref().and_then(PageOrigin::of);
            if !form.method.is_empty() && (target.is_none() || target != self.origin) {
                weights.push(self.sends_elsewhere(form, target));
            }
        }
        weights
    }

    fn uploads(&self, names: &[String]) -> Vec<TouchWeight> {
        let files = enumerated(names.iter().map(String::as_str));
        let what = format!("hands {files} over by {}", self.control);
        let paths = &self.scales.call.paths;
        let mut weights = vec![self.asks(&what)];
        if paths.is_empty() || paths.values().any(|path| path.in_workspace.is_none()) {
            let outside = format!("{what}, from outside the workspace,");
            weights.push(self.critical(&outside));
        }
        let person = self.scales.own_paths.person.as_deref();
        if paths
            .values()
            .any(|path| shell::is_secret(&path.real, person))
        {
            weights.push(self.critical(&format!("{what}, where keys or passwords are kept,")));
        }
        weights
    }

    /// Weighs answering a dialog: its kind is the element's role, its message the name.
    fn answers(&self, accepts: bool) -> TouchWeight {
        let says = |word: &str| format!("answers {word} to {}", self.control);
        match (self.role, accepts) {
            ("alert", _) | ("beforeunload", false) => {
                TouchWeight::safe(format!("closes a message of {}", self.place))
            }
            ("permission", false) => {
                TouchWeight::safe(format!("denies what {} asks for", self.place))
            }
            ("permission", true) => {
                let what = format!("grants what {} asks for: {}", self.place, self.control);
                TouchWeight::new(Risk::High, what).each_time()
            }
            ("login", true) => self.critical("gives a user name and a password"),
            ("beforeunload", true) => self.plain("leaves what was not saved"),
            (_, false) => self.plain(&says("no")),
            (_, true) => match self.label.class {
                Some(WordClass::Drops) => self.plain("leaves what was not saved"),
                None | Some(WordClass::Commits) => self.asks(&says("yes")),
                class => self
                    .said("answers yes to", class)
                    .unwrap_or_else(|| self.critical(&says("yes"))),
            },
        }
    }
}

/// Returns the most serious meaning of a form's buttons.
fn class_of_buttons(form: &Form) -> Option<WordClass> {
    let is_button = |field: &&Field| matches!(&*field.kind, "submit" | "image");
    let buttons = form.fields.iter().filter(is_button);
    let classes = buttons.map(|field| Label::new(&field.name).class);
    classes.max().flatten()
}

fn is_secret(field: &Field) -> bool {
    field.secret || field.kind == "password" || Label::new(&field.name).is_secret
}

/// Whether a form only requests a page, with at most one text, as a search does.
fn only_looks_up(form: &Form) -> bool {
    let mut typed = form
        .fields
        .iter()
        .filter(|field| !NOT_TYPED.contains(&&*field.kind));
    let is_search = |field: &Field| {
        let name = field.name.to_lowercase();
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        field.kind == "search" || words.any(|word| SEARCHES.contains(&word))
    };
    let fits = typed.next().is_none_or(is_search) && typed.next().is_none();
    form.method == "get" && fits && !form.fields.iter().any(|field| field.kind == "file")
}

/// Reason that names the data typed into a form.
fn carried(form: &Form) -> String {
    let filled = form.fields.iter().filter(|field| field.filled);
    let names: Vec<&str> = filled.map(|field| field.name.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(", with what stands in {}", enumerated(names.into_iter()))
    }
}

/// Whether an address requests a deletion: `?action=delete`.
fn is_ordered_to_delete(url: &Url) -> bool {
    const ORDERS: [&str; 9] = [
        "action", "act", "do", "op", "cmd", "method", "_method", "mode", "task",
    ];
    url.query_pairs()
        .any(|(key, value)| says_delete(&key) || (ORDERS.contains(&&*key) && says_delete(&value)))
}

/// Whether an address has a step that names deleting: `/items/5/delete`, or a page about the word.
fn is_called_delete(url: &Url) -> bool {
    url.path_segments().into_iter().flatten().any(says_delete)
}

fn says_delete(text: &str) -> bool {
    Label::new(text).class_of_the_whole == Some(WordClass::Deletes)
}

/// Lists the first of some names from a page.
fn enumerated<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut all: Vec<String> = names.take(NAMED).map(quoted).collect();
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all.join(", ")
}

/// Quotes the words of a page, so that they cannot be taken for gyrus's.
fn quoted(text: &str) -> String {
    quote(text, QUOTED)
}

/// Returns an address, shortened, with invisible characters shown.
fn address_shown(address: &str) -> String {
    quote(address, SHOWN)
}

/// An origin, which is plain ASCII. Of one that is too long both ends are shown: who it belongs to
/// is said at the end.
fn middle_out(origin: &str) -> String {
    match head_and_tail(origin, SHOWN - 80, 80) {
        Some((start, _, end)) => format!("{start}…{end}"),
        None => origin.to_owned(),
    }
}
