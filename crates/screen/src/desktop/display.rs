//! The connection to an X server, and waiting until what it shows has settled.

use std::{
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::event::Timespec;
use x11rb::{
    connection::Connection as _,
    protocol::{
        Event,
        damage::{self, ConnectionExt as _},
        xproto::{
            AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Screen, Window,
        },
    },
    reexports::x11rb_protocol::{parse_display::parse_display, xauth::get_auth},
    rust_connection::{DefaultStream, RustConnection},
};

use super::stream::{FOR_EVENTS, SERVER_ANSWER, TimedStream};

/// Time without a change after which a desktop counts as settled.
const QUIET: Duration = Duration::from_millis(80);

/// Maximum time to wait for a desktop to settle.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// Error message of the X server.
pub(super) type DisplayError = String;

/// Reason why an input was not sent: it would not have reached what was judged.
pub(super) type NotSentReason = String;

/// A connection to an X server.
pub(super) struct Display {
    name: String,
    pub(super) connection: RustConnection<TimedStream>,
    pub(super) screen: Screen,
    /// The time up to which all events have been read.
    read_until: Mutex<Instant>,
    /// The number of the last ping that was sent, and of the last one that was answered.
    pinged: AtomicU32,
    answered: AtomicU32,
    /// The atom of a ping, and of its answer.
    ping: u32,
    /// Set once this connection uses the display.
    pub(super) in_use: OnceLock<()>,
}

/// The reason why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitResult {
    /// Nothing changed any more within the time.
    Quiet,
    /// The display still changed when the time was over.
    Restless,
}

impl Display {
    /// Connects to the named display with the person's authority, and subscribes to its changes.
    pub(super) fn connect(name: &str) -> Result<Self, DisplayError> {
        Self::by_name(name, SERVER_ANSWER)?.following()
    }

    /// Connects to the named display with the person's own authority, only to wait for events
    /// without a time limit.
    pub(super) fn connect_only(name: &str) -> Result<Self, DisplayError> {
        Self::by_name(name, FOR_EVENTS)
    }

    fn by_name(name: &str, limit: Duration) -> Result<Self, DisplayError> {
        let words = |error: &dyn std::fmt::Display| {
            format!("the display `{name}` cannot be opened: {error}")
        };
        let place = parse_display(Some(name)).map_err(|error| words(&error))?;
        let mut reason = words(&"its name is that of no socket");
        for address in place.connect_instruction() {
            let (stream, (family, host)) = match DefaultStream::connect(&address) {
                Ok(connected) => connected,
                Err(error) => {
                    reason = words(&error);
                    continue;
                }
            };
            // A display may be open to everybody.
            let authority = get_auth(family, &host, place.display);
            let (kind, cookie) = authority.ok().flatten().unwrap_or_default();
            let screen = usize::from(place.screen);
            let stream = TimedStream::new(stream, limit);
            let connection =
                RustConnection::connect_to_stream_with_auth_info(stream, screen, kind, cookie);
            let connection = connection.map_err(|error| words(&error))?;
            return Self::new(connection, screen, name);
        }
        Err(reason)
    }

    /// Connects to the server that listens at a socket, with this cookie.
    pub(super) fn connect_with_cookie(
        socket: &Path,
        name: &str,
        cookie: &[u8],
    ) -> Result<Self, DisplayError> {
        let words = |error: &dyn std::fmt::Display| {
            format!("the nested display `{name}` cannot be opened: {error}")
        };
        let stream = UnixStream::connect(socket).map_err(|error| words(&error))?;
        let (stream, _) = DefaultStream::from_unix_stream(stream).map_err(|error| words(&error))?;
        let connection = RustConnection::connect_to_stream_with_auth_info(
            TimedStream::new(stream, SERVER_ANSWER),
            0,
            b"MIT-MAGIC-COOKIE-1".to_vec(),
            cookie.to_vec(),
        );
        let connection = connection.map_err(|error| words(&error))?;
        Self::new(connection, 0, name)
    }

    /// Opens another connection to the same display, with the person's own authority, which only
    /// receives requested events.
    pub(super) fn again(&self) -> Result<Self, DisplayError> {
        Self::by_name(&self.name, SERVER_ANSWER)
    }

    fn new(
        connection: RustConnection<TimedStream>,
        screen: usize,
        name: &str,
    ) -> Result<Self, DisplayError> {
        let screen = connection.setup().roots[screen].clone();
        let mut display = Self {
            name: name.to_owned(),
            connection,
            screen,
            read_until: Mutex::new(Instant::now()),
            pinged: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            ping: 0,
            in_use: OnceLock::new(),
        };
        display.ping = display.atom("_NET_WM_PING")?;
        Ok(display)
    }

    /// Makes this connection receive the changes on the display.
    pub(super) fn following(self) -> Result<Self, DisplayError> {
        self.follow().map_err(|error| error.to_string())?;
        Ok(self)
    }

    /// Asks the server for events about all changes on the screen.
    fn follow(&self) -> Result<(), x11rb::errors::ReplyOrIdError> {
        let events = ChangeWindowAttributesAux::new().event_mask(
            EventMask::PROPERTY_CHANGE
                | EventMask::SUBSTRUCTURE_NOTIFY
                | EventMask::STRUCTURE_NOTIFY,
        );
        self.connection
            .change_window_attributes(self.screen.root, &events)?;
        self.connection.damage_query_version(1, 1)?.reply()?;
        let damage = self.connection.generate_id()?;
        self.connection
            .damage_create(
                damage,
                self.screen.root,
                damage::ReportLevel::RAW_RECTANGLES,
            )?
            .check()?;
        Ok(())
    }

    /// Returns the width and the height of the screen in pixels, which may change at any time.
    pub(super) fn size(&self) -> Result<(u16, u16), DisplayError> {
        let asked = self.connection.get_geometry(self.screen.root);
        let root = asked.map_err(|error| error.to_string())?.reply();
        let root = root.map_err(|error| error.to_string())?;
        Ok((root.width, root.height))
    }

    /// Returns the atom with this name, if any client has created it.
    pub(super) fn atom(&self, name: &str) -> Result<u32, DisplayError> {
        let reply = self.connection.intern_atom(false, name.as_bytes());
        let reply = reply.map_err(|error| error.to_string())?.reply();
        Ok(reply.map_err(|error| error.to_string())?.atom)
    }

    /// Returns the bytes of a window's property; empty if there is none.
    pub(super) fn property(&self, window: Window, name: &str) -> Result<Vec<u8>, DisplayError> {
        let atom = self.atom(name)?;
        let reply = self
            .connection
            .get_property(false, window, atom, AtomEnum::ANY, 0, 1 << 16)
            .map_err(|error| error.to_string())?
            .reply();
        // A window may be gone by now.
        Ok(reply.map(|reply| reply.value).unwrap_or_default())
    }

    /// Returns a property that is a list of 32-bit numbers.
    pub(super) fn numbers(&self, window: Window, name: &str) -> Result<Vec<u32>, DisplayError> {
        let bytes = self.property(window, name)?;
        let words = bytes.chunks_exact(4);
        Ok(words
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .collect())
    }

    pub(super) async fn next_change(&self) -> Result<(), DisplayError> {
        loop {
            if self.drain()? {
                return Ok(());
            }
            self.readable(QUIET).await?;
        }
    }

    /// Returns the number for another ping.
    pub(super) fn next_ping(&self) -> u32 {
        self.pinged.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether the ping of this number was answered.
    pub(super) fn is_answered(&self, serial: u32) -> Result<bool, DisplayError> {
        self.drain()?;
        Ok(self.answered.load(Ordering::Relaxed) >= serial)
    }

    /// Waits briefly for an event of the server.
    pub(super) async fn wait_for_event(&self) -> Result<(), DisplayError> {
        self.readable(QUIET).await
    }

    /// Waits until the display has not changed for a moment.
    pub(super) async fn settle(&self) -> Result<WaitResult, DisplayError> {
        let until = Instant::now() + SETTLE_LIMIT;
        let since = *self.read_until.lock();
        // Whatever changed since the last reading would be waiting here.
        if !self.drain()? && since.elapsed() >= QUIET {
            return Ok(WaitResult::Quiet);
        }
        while Instant::now() < until {
            self.readable(QUIET).await?;
            if !self.drain()? {
                return Ok(WaitResult::Quiet);
            }
        }
        Ok(WaitResult::Restless)
    }

    /// Reads all available events, and returns whether one of them is a change.
    fn drain(&self) -> Result<bool, DisplayError> {
        let now = Instant::now();
        let mut changed = false;
        while let Some(event) = self.next_event()? {
            changed |= !matches!(event, Event::Error(_));
            if let Event::ClientMessage(message) = event
                && message.format == 32
            {
                // Window managers ping too, with times for numbers.
                let [kind, serial, ..] = message.data.as_data32();
                if kind == self.ping && (1..=self.pinged.load(Ordering::Relaxed)).contains(&serial)
                {
                    self.answered.fetch_max(serial, Ordering::Relaxed);
                }
            }
        }
        *self.read_until.lock() = now;
        Ok(changed)
    }

    pub(super) fn next_event(&self) -> Result<Option<Event>, DisplayError> {
        let event = self.connection.poll_for_event();
        event.map_err(|error| error.to_string())
    }

    /// Waits until the server sends something, at most for the time `most`.
    async fn readable(&self, most: Duration) -> Result<(), DisplayError> {
        use std::os::fd::AsFd as _;
        self.connection.flush().map_err(|error| error.to_string())?;
        let stream = self.connection.stream().as_fd();
        let stream = stream.try_clone_to_owned();
        let stream = stream.map_err(|error| error.to_string())?;
        let waited = tokio::task::spawn_blocking(move || {
            let mut polled = [rustix::event::PollFd::new(
                &stream,
                rustix::event::PollFlags::IN,
            )];
            let limit = Timespec::try_from(most).expect("a short time");
            rustix::event::poll(&mut polled, Some(&limit)).map(drop)
        });
        let waited = waited.await.map_err(|error| error.to_string())?;
        waited.map_err(|error| error.to_string())
    }
}
