//! Notifications on the person's desktop (Desktop Notifications Specification 1.3, freedesktop.org):
//! shown, taken away, and what the person chose.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::Fuse};
use zbus::{Connection, MatchRule, MessageStream, Variant, connection::Builder, message::Type};

/// The name of the service and of its interface.
const SERVICE: &str = "org.freedesktop.Notifications";

/// The object that shows notifications.
const OBJECT: &str = "/org/freedesktop/Notifications";

/// Time that the service has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The urgency of a notification that waits for a person: it stays until it is answered.
const CRITICAL: u8 = 2;

/// A choice that a notification offers: its name, and its words.
pub type NotificationChoice<'a> = (&'a str, &'a str);

/// A person's act on a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenNotification {
    /// The number of the notification.
    pub notification: u32,
    /// The name of the choice; `default` for a click on the notification itself.
    pub choice: String,
}

/// The service that shows notifications.
pub struct NotificationService {
    connection: Connection,
    signals: Fuse<MessageStream>,
    /// The abilities of the service, as it names them.
    abilities: BTreeSet<String>,
}

impl NotificationService {
    /// Connects to the service of the person's session.
    ///
    /// # Errors
    /// A message: there is no session bus, or no notification service on it.
    pub async fn connect() -> Result<Self, String> {
        let connect = Builder::session().method_timeout(PATIENCE).build();
        let connection = tokio::time::timeout(PATIENCE, connect).await;
        let connection = connection.map_err(|_| "the session bus does not answer")?;
        let connection = connection.map_err(|error| format!("there is no session bus: {error}"))?;
        let missing = |error: zbus::Error| format!("nothing shows notifications here: {error}");
        let reply = connection
            .call_method(Some(SERVICE), OBJECT, Some(SERVICE), "GetCapabilities", &())
            .await
            .map_err(missing)?;
        let abilities: Vec<String> = reply.body().deserialize().map_err(missing)?;
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(SERVICE)
            .interface(SERVICE)
            .member("ActionInvoked")
            .build()
            .map_err(missing)?;
        let signals = MessageStream::for_match_rule(rule, &connection, None);
        Ok(Self {
            signals: signals.await.map_err(missing)?.fuse(),
            connection,
            abilities: abilities.into_iter().collect(),
        })
    }

    /// Shows a notification until it is closed, and returns its number. Choices are left out where
    /// the service has none.
    ///
    /// # Errors
    /// A message with the reason why the service refused the notification.
    pub async fn show(
        &self,
        summary: &str,
        body: &str,
        choices: &[NotificationChoice<'_>],
    ) -> Result<u32, String> {
        let has_choices = self.abilities.contains("actions");
        let actions: Vec<&str> = choices
            .iter()
            .filter(|_| has_choices)
            .flat_map(|(name, words)| [*name, *words])
            .collect();
        let is_markup = self.abilities.contains("body-markup");
        let body = if is_markup {
            escaped(body)
        } else {
            body.to_owned()
        };
        let hints = HashMap::from([("urgency", Variant::from(CRITICAL))]);
        let fields = ("gyrus", 0_u32, "", summary, body, actions, hints, 0_i32);
        let reply = self
            .connection
            .call_method(Some(SERVICE), OBJECT, Some(SERVICE), "Notify", &fields)
            .await
            .map_err(|error| format!("a notification cannot be shown: {error}"))?;
        let body = reply.body();
        body.deserialize().map_err(|error| error.to_string())
    }

    /// Closes a notification that is still shown.
    pub async fn close(&self, notification: u32) {
        let closed = self.connection.call_method(
            Some(SERVICE),
            OBJECT,
            Some(SERVICE),
            "CloseNotification",
            &notification,
        );
        // A service that is gone shows nothing.
        let _ = closed.await;
    }

    /// Waits until the person clicks a notification or a button of one; for ever, once the service
    /// is gone.
    pub async fn next(&mut self) -> ChosenNotification {
        loop {
            let Some(signal) = self.signals.next().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let chosen = signal
                .ok()
                .and_then(|signal| signal.body().deserialize().ok());
            if let Some((notification, choice)) = chosen {
                return ChosenNotification {
                    notification,
                    choice,
                };
            }
        }
    }
}

/// Returns a text with markup escaped.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
