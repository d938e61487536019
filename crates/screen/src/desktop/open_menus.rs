//! Menus that stand apart from the windows of their program: Qt lists no menu of a right click
//! among its elements and tells of one only as it comes up, by an event.

use std::{collections::VecDeque, sync::Arc};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use zbus::{Connection, MatchRule, Message, MessageStream, message};

/// Maximum number of remembered elements that came up.
const MAX_SHOWN: usize = 64;

/// Elements that came up and have not gone, each as the name of its program and its path.
type MenuElements = Arc<Mutex<VecDeque<(String, String)>>>;

/// A listener for elements that come up on the accessibility bus; it ends when this is dropped.
pub(super) struct OpenMenus {
    shown: MenuElements,
    listening: JoinHandle<()>,
}

impl OpenMenus {
    /// Begins to listen on the bus.
    pub(super) async fn listen(bus: &Connection) -> Result<Self, zbus::Error> {
        let rule = MatchRule::builder()
            .msg_type(message::Type::Signal)
            .interface("org.a11y.atspi.Event.Object")
            .member("StateChanged")
            .arg(0, "showing")
            .build()?;
        let mut events = MessageStream::for_match_rule(rule, bus, None).await?;
        let shown = MenuElements::default();
        let heard = shown.clone();
        let listening = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                hear(&heard, &event);
            }
        });
        Ok(Self { shown, listening })
    }

    /// Returns the paths of elements that came up in the program of this name on the bus, the
    /// oldest first.
    pub(super) fn of(&self, name: &str) -> Vec<String> {
        let shown = self.shown.lock();
        let own = shown.iter().filter(|(program, _)| program == name);
        own.map(|(_, path)| path.clone()).collect()
    }
}

impl Drop for OpenMenus {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn hear(shown: &MenuElements, event: &Message) {
    let header = event.header();
    let (Some(sender), Some(path)) = (header.sender(), header.path()) else {
        return;
    };
    // Toolkits differ in what follows these two.
    let body = event.body();
    let Ok((_, is_shown)) = body.deserialize_ignore_signature::<(String, i32)>() else {
        return;
    };
    let one = (sender.to_string(), path.to_string());
    let mut shown = shown.lock();
    shown.retain(|other| *other != one);
    if is_shown != 0 {
        shown.push_back(one);
    }
    if shown.len() > MAX_SHOWN {
        shown.pop_front();
    }
}
