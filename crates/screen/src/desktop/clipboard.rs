//! The clipboard of a desktop: the selection `CLIPBOARD` (Inter-Client Communication Conventions
//! Manual 2.0, section 2).
//!
//! A server keeps no copy: whoever pastes asks the owner, in the form that it wants, and the owner
//! must be there to answer. Each reading has a connection of its own, and so has each text that is
//! offered, until another program offers something or the desktop is left. Long texts go in parts
//! (`INCR`).

use std::{collections::BTreeMap, time::Duration};

use tokio::{task::JoinHandle, time::timeout};
use x11rb::{
    connection::Connection as _,
    protocol::{
        Event,
        xproto::{
            Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, CreateWindowAux,
            EventMask, GetPropertyReply, PropMode, Property, SELECTION_NOTIFY_EVENT,
            SelectionNotifyEvent, SelectionRequestEvent, Timestamp, Window, WindowClass,
        },
    },
    wrapper::ConnectionExt as _,
};

use super::display::{Display, DisplayError};

/// Maximum length of a text on the clipboard, in bytes.
pub(super) const MAX_TEXT: usize = 1024 * 1024;

/// Maximum length of a part of a text, in bytes; longer texts go in parts.
const PART: usize = 64 * 1024;

/// Maximum number of concurrent transfers of a text in parts.
const MAX_TRANSFERS: usize = 16;

/// Time limit for an answer of the clipboard's owner, or a part of it.
const ANSWER: Duration = Duration::from_secs(3);

/// Time for the whole text.
const WHOLE: Duration = Duration::from_secs(15);

/// The form of a text in which each character of Unicode is known.
const UTF8: &str = "UTF8_STRING";

/// The text format UTF-8, as named by toolkits that use media types.
const UTF8_MEDIA: &str = "text/plain;charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SelectionText {
    pub(super) text: String,
    /// Whether the text was longer than [`MAX_TEXT`].
    pub(super) is_cut: bool,
}

/// A connection to the server with a hidden window that owns a selection or asks for one.
struct ClipboardClient {
    display: Display,
    window: Window,
    clipboard: Atom,
    incremental: Atom,
}

impl ClipboardClient {
    /// Creates the hidden window of a connection.
    fn on(display: Display) -> Result<Self, DisplayError> {
        let (connection, root) = (&display.connection, display.screen.root);
        let window = connection.generate_id().map_err(words)?;
        let events = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        let (parent, kind) = (x11rb::COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_ONLY);
        let visual = x11rb::COPY_FROM_PARENT;
        connection
            .create_window(parent, window, root, -1, -1, 1, 1, 0, kind, visual, &events)
            .map_err(words)?;
        let clipboard = display.atom("CLIPBOARD")?;
        let incremental = display.atom("INCR")?;
        Ok(Self {
            display,
            window,
            clipboard,
            incremental,
        })
    }

    /// Returns the next event for which `meant` returns a value, within [`ANSWER`].
    async fn wait_for<T>(&self, meant: impl Fn(&Event) -> Option<T>) -> Result<T, DisplayError> {
        let waited = async {
            loop {
                while let Some(event) = self.display.next_event()? {
                    if let Some(found) = meant(&event) {
                        return Ok(found);
                    }
                }
                self.display.wait_for_event().await?;
            }
        };
        let waited = timeout(ANSWER, waited).await;
        waited.unwrap_or_else(|_| Err("the program that holds it does not answer".to_owned()))
    }

    /// Returns a timestamp of the server, which an owner of a selection must give.
    async fn time(&self) -> Result<Timestamp, DisplayError> {
        let (connection, property) = (&self.display.connection, self.incremental);
        let kind = AtomEnum::INTEGER;
        connection
            .change_property32(PropMode::REPLACE, self.window, property, kind, &[])
            .map_err(words)?;
        self.wait_for(|event| match event {
            Event::PropertyNotify(changed) => Some(changed.time),
            _ => None,
        })
        .await
    }

    fn owner(&self) -> Result<Window, DisplayError> {
        let asked = self.display.connection.get_selection_owner(self.clipboard);
        let told = asked.map_err(words)?.reply().map_err(words)?;
        Ok(told.owner)
    }

    /// Returns the data that the owner wrote into the requested property, and removes the property.
    fn taken(&self, property: Atom) -> Result<GetPropertyReply, DisplayError> {
        let most = u32::try_from(MAX_TEXT / 4 + 1).unwrap_or(u32::MAX);
        let any = AtomEnum::ANY;
        let connection = &self.display.connection;
        let asked = connection.get_property(true, self.window, property, any, 0, most);
        asked.map_err(words)?.reply().map_err(words)
    }
}

/// Reads the text on the clipboard, by a connection of its own; empty if there is none.
pub(super) async fn read(display: Display) -> Result<SelectionText, DisplayError> {
    let client = ClipboardClient::on(display)?;
    let read = timeout(WHOLE, client.read()).await;
    read.unwrap_or_else(|_| Err("the program that holds it takes too long".to_owned()))
}

impl ClipboardClient {
    async fn read(&self) -> Result<SelectionText, DisplayError> {
        if self.owner()? == x11rb::NONE {
            return Ok(SelectionText {
                text: String::new(),
                is_cut: false,
            });
        }
        let latin = Atom::from(AtomEnum::STRING);
        for form in [
            self.display.atom(UTF8)?,
            self.display.atom(UTF8_MEDIA)?,
            latin,
        ] {
            let Some((bytes, is_cut)) = self.converted(form).await? else {
                continue;
            };
            let text = if form == latin {
                bytes.iter().copied().map(char::from).collect()
            } else {
                let mut text = String::from_utf8_lossy(&bytes).into_owned();
                if is_cut {
                    // The last character may be cut.
                    text.truncate(text.trim_end_matches('\u{fffd}').len());
                }
                text
            };
            return Ok(SelectionText { text, is_cut });
        }
        Err("it holds something else than text".to_owned())
    }

    /// Requests the clipboard's content in one form; `None` if the owner does not offer this form.
    async fn converted(&self, form: Atom) -> Result<Option<(Vec<u8>, bool)>, DisplayError> {
        let property = self.display.atom("_GYRUS_CLIPBOARD")?;
        let time = self.time().await?;
        self.display
            .connection
            .convert_selection(self.window, self.clipboard, form, property, time)
            .map_err(words)?;
        let answered = self.wait_for(|event| match event {
            Event::SelectionNotify(told) if told.target == form => Some(told.property),
            _ => None,
        });
        if answered.await? == x11rb::NONE {
            return Ok(None);
        }
        let whole = self.taken(property)?;
        if whole.type_ != self.incremental {
            let is_cut = whole.bytes_after > 0 || whole.value.len() > MAX_TEXT;
            return Ok(Some((first(whole.value), is_cut)));
        }
        let mut bytes = Vec::new();
        loop {
            self.wait_for(|event| match event {
                Event::PropertyNotify(changed)
                    if changed.atom == property && changed.state == Property::NEW_VALUE =>
                {
                    Some(())
                }
                _ => None,
            })
            .await?;
            let part = self.taken(property)?;
            if part.value.is_empty() {
                return Ok(Some((bytes, false)));
            }
            bytes.extend(part.value);
            if bytes.len() > MAX_TEXT || part.bytes_after > 0 {
                return Ok(Some((first(bytes), true)));
            }
        }
    }
}

fn first(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(MAX_TEXT);
    bytes
}

/// A text offered on the clipboard, until another text replaces it or this value is dropped.
pub(super) struct Offer(JoinHandle<()>);

impl Drop for Offer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Puts a text on the clipboard over a connection of its own.
pub(super) async fn offer(display: Display, text: String) -> Result<Offer, DisplayError> {
    let client = ClipboardClient::on(display)?;
    let since = client.time().await?;
    client
        .display
        .connection
        .set_selection_owner(client.window, client.clipboard, since)
        .map_err(words)?;
    if client.owner()? != client.window {
        return Err("another program holds it and does not let it go".to_owned());
    }
    let mut offering = ClipboardOffer {
        forms: ClipboardForms::of(&client.display)?,
        client,
        text,
        since,
        transfers: BTreeMap::new(),
    };
    Ok(Offer(tokio::spawn(async move {
        // The display may end.
        let _ = offering.serve().await;
    })))
}

/// The forms in which a text is offered.
struct ClipboardForms {
    targets: Atom,
    timestamp: Atom,
    utf8: Atom,
    utf8_media: Atom,
}

impl ClipboardForms {
    fn of(display: &Display) -> Result<Self, DisplayError> {
        Ok(Self {
            targets: display.atom("TARGETS")?,
            timestamp: display.atom("TIMESTAMP")?,
            utf8: display.atom(UTF8)?,
            utf8_media: display.atom(UTF8_MEDIA)?,
        })
    }
}

/// A text on the clipboard, for programs that request it.
struct ClipboardOffer {
    client: ClipboardClient,
    forms: ClipboardForms,
    text: String,
    since: Timestamp,
    /// The remaining parts of the text for programs that get it in parts: by their window and
    /// property, the form and the bytes.
    transfers: BTreeMap<(Window, Atom), (Atom, Vec<u8>)>,
}

impl ClipboardOffer {
    async fn serve(&mut self) -> Result<(), DisplayError> {
        loop {
            while let Some(event) = self.client.display.next_event()? {
                match event {
                    Event::SelectionRequest(request) => self.answer(&request)?,
                    Event::PropertyNotify(changed) if changed.state == Property::DELETE => {
                        self.send_part(changed.window, changed.atom)?;
                    }
                    Event::SelectionClear(_) if self.transfers.is_empty() => return Ok(()),
                    _ => {}
                }
            }
            self.client.display.wait_for_event().await?;
        }
    }

    fn answer(&mut self, request: &SelectionRequestEvent) -> Result<(), DisplayError> {
        // Old clients name no property.
        let property = match request.property {
            x11rb::NONE => request.target,
            property => property,
        };
        let is_given = self.give(request.requestor, property, request.target)?;
        let told = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property: if is_given { property } else { x11rb::NONE },
        };
        let connection = &self.client.display.connection;
        connection
            .send_event(false, request.requestor, EventMask::NO_EVENT, told)
            .map_err(words)?;
        connection.flush().map_err(words)
    }

    /// Writes the text in a form into a property of a window; whether there is such a form.
    fn give(&mut self, to: Window, property: Atom, form: Atom) -> Result<bool, DisplayError> {
        let connection = &self.client.display.connection;
        let latin = Atom::from(AtomEnum::STRING);
        let replace = PropMode::REPLACE;
        let forms = &self.forms;
        let bytes = if form == forms.targets {
            let all = [
                forms.targets,
                forms.timestamp,
                forms.utf8,
                forms.utf8_media,
                latin,
            ];
            connection
                .change_property32(replace, to, property, AtomEnum::ATOM, &all)
                .map_err(words)?;
            return Ok(true);
        } else if form == forms.timestamp {
            connection
                .change_property32(replace, to, property, AtomEnum::INTEGER, &[self.since])
                .map_err(words)?;
            return Ok(true);
        } else if form == forms.utf8 || form == forms.utf8_media {
            self.text.clone().into_bytes()
        } else if form == latin {
            let letters = self.text.chars();
            letters
                .map(|one| u8::try_from(one).unwrap_or(b'?'))
                .collect()
        } else {
            return Ok(false);
        };
        if bytes.len() <= PART {
            connection
                .change_property8(replace, to, property, form, &bytes)
                .map_err(words)?;
            return Ok(true);
        }
        if self.transfers.len() >= MAX_TRANSFERS {
            return Ok(false);
        }
        let events = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        connection
            .change_window_attributes(to, &events)
            .map_err(words)?;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let kind = self.client.incremental;
        connection
            .change_property32(replace, to, property, kind, &[length])
            .map_err(words)?;
        self.transfers.insert((to, property), (form, bytes));
        Ok(true)
    }

    /// Sends the next part of the text to a program that has read the previous one. The last one is
    /// empty.
    fn send_part(&mut self, to: Window, property: Atom) -> Result<(), DisplayError> {
        let Some((form, rest)) = self.transfers.get_mut(&(to, property)) else {
            return Ok(());
        };
        let part: Vec<u8> = rest.drain(..rest.len().min(PART)).collect();
        let connection = &self.client.display.connection;
        connection
            .change_property8(PropMode::REPLACE, to, property, *form, &part)
            .map_err(words)?;
        if part.is_empty() {
            self.transfers.remove(&(to, property));
        }
        connection.flush().map_err(words)
    }
}

fn words(error: impl std::fmt::Display) -> DisplayError {
    error.to_string()
}
