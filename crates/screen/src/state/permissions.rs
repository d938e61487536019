//! Questions of pages to the browser's user: for their position, for what is on the clipboard, for
//! leave to notify them. Nobody sees the browser ask; `page/asks.js` tells of them, and each is a
//! dialog of the kind [`KIND`] that holds nothing up.

use gyrus_contract::Dialog;
use serde::Deserialize;

/// Kind of the dialog; pages cannot open one of it.
pub(crate) const KIND: &str = "permission";

/// Name of the function in the page's world that reports its questions.
pub(crate) const BINDING: &str = "gyrusAsks";

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PermissionQuestion {
    #[serde(skip)]
    pub(super) tab: u32,
    /// The requested permission, as browsers name it.
    pub(crate) asks: PagePermission,
    /// The origin of the document that asks.
    pub(crate) origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PagePermission {
    Geolocation,
    Notifications,
    ClipboardRead,
}

impl PagePermission {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Geolocation => "geolocation",
            Self::Notifications => "notifications",
            Self::ClipboardRead => "clipboard-read",
        }
    }
}

impl PermissionQuestion {
    pub(super) fn dialog(&self) -> Dialog {
        let wants = match self.asks {
            PagePermission::Geolocation => "know your position",
            PagePermission::Notifications => "show notifications",
            PagePermission::ClipboardRead => "read what was copied",
        };
        Dialog {
            kind: KIND.to_owned(),
            message: format!("{} wants to {wants}", self.origin),
            offered: String::new(),
        }
    }
}
