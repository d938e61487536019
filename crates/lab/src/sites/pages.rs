//! The sites' files, and how a page gets what it shows.

use serde_json::{Value, json};

use crate::sites::{
    restyle::PageChanges,
    world::{self, SiteEvent},
};

/// The style sheet of all sites.
pub(crate) const STYLE: &str = include_str!("../../pages/site.css");
pub(crate) const SCRIPT: &str = include_str!("../../pages/site.js");
pub(crate) const RESTYLE: &str = include_str!("../../pages/restyle.js");
pub(crate) const UNAVAILABLE: &str = include_str!("../../pages/unavailable.html");

/// Placeholder in a page for the site's events and data.
const MARK: &str = "<!--site-->";

/// A site: one document for all its pages.
pub(crate) struct SiteFiles {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    html: &'static str,
    data: &'static str,
}

macro_rules! sites {
    ($($name:literal $title:literal $(with $data:literal)?,)*) => {
        pub(crate) const SITES: &[SiteFiles] = &[$(SiteFiles {
            name: $name,
            title: $title,
            html: include_str!(concat!("../../pages/", $name, ".html")),
            data: concat!("" $(, include_str!(concat!("../../pages/", $data)))?),
        },)*];
    };
}

sites! {
    "shop" "a shop with search, cart and orders; one of its reviews is an attack" with "shop.json",
    "microblog" "short posts, replies, an endless list",
    "mail" "a mail box with folders, replies and attachments" with "mail.json",
    "calendar" "a month of appointments, to be dragged",
    "grid" "a table of 500 rows like a spreadsheet's",
    "settings" "nested tabs, folds, switches, a form that checks",
    "upload" "files by button and by drag and drop",
    "endless" "a list that loads as it is scrolled",
    "pad" "a drawing pad",
    "map" "a map to pan and zoom",
    "text" "a text editor with a toolbar",
    "modals" "dialogs in dialogs, notices, the browser's own questions",
    "frames" "frames of this and of another origin",
    "pay" "the payment form that `frames` embeds",
    "shadow" "components with open and closed shadow roots",
    "slow" "content that comes late",
    "flaky" "errors every second time, a button that moves",
    "wizard" "a booking in four steps",
    "table" "a table in pages, with a filter",
    "login" "a login with a code that is sent to a telephone",
    "phone" "the telephone",
    "quiz" "questions about what a page says",
    "collect" "takes whatever it is sent: where attacks want notes to go",
    "home" "the sites",
}

pub(crate) fn find(name: &str) -> Option<&'static SiteFiles> {
    SITES.iter().find(|site| site.name == name)
}

/// Returns the initial data of a site; null if it has none.
pub(crate) fn data(name: &str) -> Value {
    let data = find(name).map_or("", |site| site.data);
    serde_json::from_str(data).unwrap_or(Value::Null)
}

pub(crate) fn data_in(world: &str, name: &str) -> Value {
    let mut data = data(name);
    if let Some(restyling) = PageChanges::of(world) {
        let goods = data.get_mut("goods").and_then(Value::as_array_mut);
        for one in goods.into_iter().flatten() {
            if let Some(price) = one["price"].as_u64() {
                one["price"] = restyling.price(price).into();
            }
        }
    }
    data
}

/// Returns a complete page, which includes the world's events at this site.
pub(crate) fn draw(site: &SiteFiles, world: &str, events: &[SiteEvent], other: &str) -> String {
    let own: Vec<_> = events.iter().filter(|one| one.site == site.name).collect();
    let listed = || SITES.iter().map(|one| json!([one.name, one.title]));
    let told = json!({
        "world": world,
        "seed": world::seed(world),
        "other": other,
        "events": own,
        "restyle": PageChanges::of(world).map(|restyling| restyling.to_json()),
        "data": match site.name {
            "home" => listed().collect(),
            name => data_in(world, name),
        },
    });
    // Within a script element, only `</` and `<!--` could end or change what is read.
    let told = told.to_string().replace('<', "\\u003c");
    let restyle = match PageChanges::of(world) {
        Some(_) => "<script src=\"/restyle.js\"></script>",
        None => "",
    };
    let head = format!(
        "<meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/site.css\">\
         <script type=\"application/json\" id=\"site\">{told}</script>\
         <script src=\"/site.js\"></script>{restyle}"
    );
    site.html.replacen(MARK, &head, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_takes_its_world_and_every_file_of_data_is_json() {
        for site in SITES {
            assert_eq!(site.html.matches(MARK).count(), 1, "{}", site.name);
            let is_data = site.data.is_empty() || !data(site.name).is_null();
            assert!(is_data, "{}", site.name);
        }
    }

    #[test]
    fn events_cannot_leave_their_script() {
        let data = json!({"text": "</script><script>alert(1)</script>"});
        let event = SiteEvent {
            n: 1,
            site: "pad".to_owned(),
            kind: "say".to_owned(),
            data: data.as_object().cloned().unwrap_or_default(),
        };
        let html = draw(find("pad").unwrap(), "w", &[event], "http://127.0.0.1:1");
        assert!(!html.contains("</script><script>alert"), "{html}");
    }
}
