//! A named profile keeps what sites remember, also when a person closes the window at once.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::{
    looking::named,
    support::{Pages, browser_with_profile, has_browser, view},
};

#[tokio::test]
async fn a_login_outlives_a_window_that_is_closed_at_once() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    let below = tempfile::tempdir().unwrap();
    // The browser of root runs as another user.
    fs::set_permissions(below.path(), fs::Permissions::from_mode(0o711)).unwrap();
    for _ in 0..2 {
        let login = browser_with_profile(below.path(), "door");
        login.open(&pages.at("remembers.html")).await.unwrap();
        login.devtools("Page.close", json!({})).await.unwrap();
        login.closed().await;
        login.leave().await;
    }
    let later = browser_with_profile(below.path(), "door");
    let seen = view(&later, &pages.at("remembers.html")).await;
    named(&seen, "Welcome back");
}
