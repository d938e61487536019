//! Risk of an input on a desktop, by what the screen measured just before.
//!
//! Programs there are the person's own, so a window is not a stranger as a page is. But what they do
//! is done with the person's rights: some windows start commands, some ask for passwords, and some
//! decide what others may do. They are told apart by the name that a program gives its windows, and
//! a program on a desktop is believed that far. On the display that the person works at, every use
//! of a program that they neither named nor allowed is asked about.

use std::path::Path;

use gyrus_contract::{Aim, ElementState, Grant, Risk, Starts};
use gyrus_text::quote;

use super::words::{Label, WordClass};
use crate::{
    as_user,
    risk::Scales,
    weight::{TouchWeight, uses_secret},
};

/// Longest quotation from a program, in characters.
const QUOTED: usize = 60;

/// Beginning of the addresses of windows.
const SCHEME: &str = "x11:";

/// Name of a desktop without a person, whose programs run in the run's sandbox.
const SANDBOX: &str = "sandbox";

/// Name of a desktop without a person, whose programs have the person's rights.
const NESTED: &str = "nested";

/// The role of the clipboard: what a person copied may be anything, also a password.
const CLIPBOARD: &str = "clipboard";

/// Minimum number of letters of a program's name that a goal can name it by.
const MIN_NAME: usize = 3;

/// Parts of the names of windows, in lower case, whose text is a command.
const TERMINALS: &str = "term konsole alacritty kitty tilix guake tilda yakuake sakura console \
                         st-256color ghostty urxvt rxvt emacs rofi dmenu gmrun krunner appfinder \
                         xfrun bash zsh";

/// Parts of the names of windows that ask for a password or a key, separated by spaces.
const PROMPTS: &str = "pinentry askpass prompter keyring kwallet seahorse gksu kdesu lightdm";

/// Parts of the names of windows that no run may use: those that give rights, and gyrus's own.
const FORBIDDEN: &str = "polkit policykit gyrus screensaver i3lock xscreensaver dunst notif";

/// Parts of the names of windows that manage files.
const FILE_MANAGERS: &str = "pcmanfm thunar nautilus dolphin nemo caja spacefm files doublecmd";

/// Parts of the names of windows that change the system.
const SETTINGS: &str = "settings control-center systemsettings software synaptic gparted discover";

pub(super) fn is_desktop(aim: &Aim) -> bool {
    aim.address.starts_with(SCHEME)
}

/// Returns all weights of an input on a desktop.
pub(super) fn weights(scales: &Scales<'_>, aim: &Aim) -> Vec<TouchWeight> {
    let window = InputWindow::new(scales, aim);
    let mut weights: Vec<TouchWeight> = aim
        .starts
        .iter()
        .flat_map(|starts| window.starts(starts))
        .collect();
    if weights.is_empty() {
        let what = format!("uses {}, and what that starts is not known", window.control);
        weights.push(TouchWeight::new(Risk::High, what).each_time());
    }
    if uses_secret(&scales.call.arguments) {
        let what = "puts a secret, which is kept from the model, into a program";
        weights.push(TouchWeight::critical(what));
    }
    weights
}

/// The window that an input goes to, and the control.
struct InputWindow<'a> {
    scales: &'a Scales<'a>,
    aim: &'a Aim,
    /// The name of the program, in lower case.
    program: String,
    /// Whether the person works at this desktop.
    is_persons: bool,
    /// Whether the window's programs are in the run's sandbox.
    is_contained: bool,
    /// The reason why using the program needs no question.
    listed: Option<&'static str>,
    /// Description of the window.
    place: String,
    control: String,
    label: Label,
    role: &'a str,
}

impl<'a> InputWindow<'a> {
    fn new(scales: &'a Scales<'a>, aim: &'a Aim) -> Self {
        let rest = aim.origin.strip_prefix(SCHEME).unwrap_or(&aim.origin);
        let (desktop, program) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, role) = match &aim.element {
            Some(element) => (element.name.as_str(), element.role.as_str()),
            None => ("", ""),
        };
        let mut window = Self {
            scales,
            aim,
            program: program.to_lowercase(),
            is_persons: desktop != NESTED && desktop != SANDBOX,
            is_contained: desktop == SANDBOX,
            listed: None,
            place: match program {
                "" => "the desktop".to_owned(),
                program => quoted(program),
            },
            control: match name.trim() {
                "" => "a control without a name".to_owned(),
                name => quoted(name),
            },
            label: Label::new(name),
            role,
        };
        if window.is_persons {
            window.place.push_str(", on the display that you work at");
        }
        window.listed = window.listed();
        window
    }

    /// Returns the reason why using the program needs no question, if it needs none.
    fn listed(&self) -> Option<&'static str> {
        let granted = self.scales.under.grants.iter().chain(self.scales.standing);
        let wanted = self.grant();
        if granted.into_iter().any(|grant| *grant == wanted) {
            return Some("which you allowed");
        }
        let is_name = |word: &str| word.to_lowercase() == self.program;
        let is_separator = |letter: char| !(letter.is_alphanumeric() || "-_".contains(letter));
        let names = |text: &&str| text.split(is_separator).any(is_name);
        let is_named =
            self.program.chars().count() >= MIN_NAME && self.scales.under.trusted.iter().any(names);
        is_named.then_some("which you named")
    }

    fn grant(&self) -> Grant {
        Grant::Origin {
            origin: self.aim.origin.clone(),
        }
    }

    fn is_one_of(&self, parts: &str) -> bool {
        let mut parts = parts.split_ascii_whitespace();
        parts.any(|part| self.program.contains(part))
    }

    /// Whether text typed into the window is a command.
    fn is_terminal(&self) -> bool {
        self.role == "terminal" || self.is_one_of(TERMINALS)
    }

    fn starts(&self, starts: &Starts) -> Vec<TouchWeight> {
        if self.is_one_of(FORBIDDEN) && *starts != Starts::Looking {
            let what = format!(
                "uses {}, which decides what runs and programs may do",
                self.place
            );
            return vec![TouchWeight::critical(what).forbidden()];
        }
        if let Starts::Launches { program } = starts {
            return vec![self.launches(program)];
        }
        if let Starts::Closes { unsaved } = starts {
            return vec![self.closes(*unsaved)];
        }
        if self.role == CLIPBOARD {
            let is_read = *starts == Starts::Looking;
            return vec![self.uses(if is_read { "reads" } else { "replaces" })];
        }
        if *starts == Starts::Looking {
            return vec![TouchWeight::safe(format!("looks at {}", self.place))];
        }
        if self.is_terminal() {
            return vec![self.commands()];
        }
        if self.is_one_of(PROMPTS) {
            let what = format!("uses {}, which asks for a password or a key", self.place);
            return vec![TouchWeight::critical(what)];
        }
        match starts {
            Starts::Types => vec![self.types()],
            Starts::Chooses { .. } => vec![self.uses("changes")],
            Starts::Acts => self.acts(),
            Starts::Uploads { names } => self.gives(names),
            Starts::Looking
            | Starts::Launches { .. }
            | Starts::Closes { .. }
            | Starts::Follows { .. }
            | Starts::Opens { .. }
            | Starts::Submits
            | Starts::Answers { .. }
            | Starts::Sends { .. } => {
                let what = format!("does what belongs to pages to {}", self.place);
                vec![TouchWeight::critical(what)]
            }
        }
    }

    /// Returns the weight of using a window whose text is a command.
    fn commands(&self) -> TouchWeight {
        let place = &self.place;
        if self.is_contained {
            let what = format!("uses {place}, where text is a command, in the run's sandbox");
            return self.unless_listed(what);
        }
        TouchWeight::critical(format!(
            "uses {place}, where text is a command that runs with your own rights"
        ))
    }

    fn types(&self) -> TouchWeight {
        let is_masked = self
            .aim
            .element
            .as_ref()
            .is_some_and(|element| element.states.contains(&ElementState::Masked));
        if is_masked || self.label.is_secret {
            let what = format!(
                "types into {}, a field for a password, a code or a card, in {}",
                self.control, self.place
            );
            return TouchWeight::critical(what);
        }
        self.uses("types into")
    }

    /// Plain use of a control: asked about where the person works, and where the system is changed.
    fn uses(&self, does: &str) -> TouchWeight {
        let what = format!("{does} {} in {}", self.control, self.place);
        let is_settings = self.is_one_of(SETTINGS);
        if is_settings && !self.is_contained {
            return self.asks(what);
        }
        if self.listed.is_none() && !self.is_persons {
            return TouchWeight::new(Risk::Moderate, what).contained();
        }
        self.unless_listed(what)
    }

    /// Asks once, unless the policy names the program or the person allowed it.
    fn unless_listed(&self, what: String) -> TouchWeight {
        match self.listed {
            Some(why) => TouchWeight::new(Risk::Moderate, format!("{what}, {why}")).contained(),
            None => self.asks(what),
        }
    }

    fn asks(&self, what: String) -> TouchWeight {
        TouchWeight::new(Risk::High, what).unless(self.grant())
    }

    fn acts(&self) -> Vec<TouchWeight> {
        let mut weights = vec![self.uses("uses")];
        let what = |says: &str| {
            let (control, place) = (&self.control, &self.place);
            format!("uses {control}, whose name says that it {says}, in {place}")
        };
        let is_text = matches!(self.role, "textbox" | "combobox" | "spinbutton" | "window");
        match self.label.class.filter(|_| !is_text) {
            Some(WordClass::Drops) => {
                weights.push(TouchWeight::critical(what("drops what was not saved")));
            }
            Some(WordClass::Commits) => {
                weights.push(self.asks(what("sends, publishes, orders or takes part")));
            }
            Some(WordClass::Deletes) => weights.push(TouchWeight::critical(what("deletes"))),
            Some(WordClass::Authorises) => {
                weights.push(TouchWeight::critical(what(
                    "gives others power or approves something",
                )));
            }
            Some(WordClass::Pays) => weights.push(TouchWeight::critical(what("moves money"))),
            None => {}
        }
        let name = self.control.to_lowercase();
        // The same in English, German, French, Spanish, Italian and Portuguese.
        if !is_text && name.contains("instal") {
            weights.push(TouchWeight::critical(what("installs something")));
        }
        weights.extend(self.by_arguments());
        weights
    }

    /// Weighs giving files to a program by a control that asks for one.
    fn gives(&self, names: &[String]) -> Vec<TouchWeight> {
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        let mut weights = self.acts();
        weights.push(self.uses(&format!("gives the file {} to", names.join(", "))));
        weights
    }

    /// Weight of keys and drags that mean the same in many programs.
    fn by_arguments(&self) -> Option<TouchWeight> {
        let arguments = &self.scales.call.arguments;
        let key = arguments["key"].as_str().unwrap_or_default().to_lowercase();
        let deletes = ["delete", "del"].iter().any(|word| key.ends_with(word));
        let is_files = self.is_one_of(FILE_MANAGERS);
        if deletes && is_files {
            let what = format!(
                "presses {} in {}, which deletes files",
                quoted(&key),
                self.place
            );
            return Some(TouchWeight::critical(what));
        }
        if deletes {
            let what = format!("presses {} on {}", quoted(&key), self.control);
            return Some(self.asks(format!("{what} in {}, which may delete it", self.place)));
        }
        let drags = is_files && arguments.get("from").is_some();
        drags.then(|| self.asks(format!("drags in {}, which moves files", self.place)))
    }

    fn launches(&self, program: &str) -> TouchWeight {
        let name = Path::new(program)
            .file_name()
            .and_then(|name| name.to_str());
        let name = name.unwrap_or(program);
        let runs_others =
            self.is_terminal() || self.is_one_of(SETTINGS) || as_user::runs_others(name);
        let program = quoted(program);
        if self.is_contained {
            let what = format!("starts {program} in the run's sandbox");
            return if runs_others {
                self.unless_listed(format!("{what}, which runs commands or changes the system"))
            } else {
                TouchWeight::new(Risk::Moderate, what).contained()
            };
        }
        if runs_others {
            return TouchWeight::critical(format!(
                "starts {program}, which runs commands or changes the system with your own rights"
            ));
        }
        self.unless_listed(format!("starts {program} with your own rights"))
    }

    fn closes(&self, unsaved: bool) -> TouchWeight {
        let (control, place) = (&self.control, &self.place);
        if unsaved {
            let what = format!("closes {control} of {place}, which was not saved: that deletes it");
            return TouchWeight::critical(what);
        }
        if self.is_terminal() {
            let what = format!("closes {control} of {place}, which ends what runs there");
            return TouchWeight::critical(what);
        }
        self.uses("closes")
    }
}

/// Quotes the words of a program, so that they cannot be taken for gyrus's.
fn quoted(text: &str) -> String {
    quote(text, QUOTED)
}
