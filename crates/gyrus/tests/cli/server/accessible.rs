//! Every page of the dashboard as axe-core sees it: wide and narrow, light and dark. It runs where
//! `GYRUS_AXE` names the script, which `cargo xtask pages` sees to.

use serde_json::json;

use super::{
    Server,
    chromium::Chromium,
    run_pages::{enter, finished, script},
};
use crate::support::World;

/// Returns the findings of axe as words.
const FOUND: &str = "axe.run(document, {resultTypes: ['violations']}).then((result) => \
     result.violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.target).join(', ')))";

#[test]
fn everybody_can_use_every_page() {
    let Some(axe) = std::env::var_os("GYRUS_AXE") else {
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let world = World::new(&script());
    let server = Server::start(&world);
    let run = finished(&server, "do it");
    let fork = json!({"at": 1, "into": world.path("copy")});
    let forked = server.post(&format!("/api/runs/{run}/fork"), &fork).is(202);
    let forked = forked.json()["run"].as_str().unwrap().to_owned();
    // A card stands on the page of the waiting run.
    std::fs::write(world.path("script.toml"), super::runs::ASKS).unwrap();
    let asks = server.run("ask", &json!({}));
    server.wait(&asks, |stage| stage["state"] == "parked");
    let asks = asks["run"].as_str().unwrap().to_owned();
    let of_run = [
        "",
        "?zoom=cycles",
        "?zoom=entries",
        "?zoom=reading",
        "/changes",
        "/outcome",
    ];
    let more = [
        "/cost",
        "/children",
        "/context",
        "/steps/5",
        "/undo",
        "/fork",
    ];
    let of_run = of_run
        .iter()
        .chain(&more)
        .map(|part| format!("/runs/{run}{part}"));
    let others = ["/".to_owned(), "/waiting".to_owned(), "/compare".to_owned()];
    let compared = format!("/compare?runs={run},{forked}");
    let pages = of_run
        .chain(others)
        .chain([compared, format!("/runs/{asks}")]);
    let pages: Vec<String> = pages.collect();
    let mut browser = enter(&world, &server);
    let mut found = Vec::new();
    for (width, scheme) in [
        (1440, "light"),
        (1440, "dark"),
        (390, "light"),
        (390, "dark"),
    ] {
        look_like(&mut browser, width, scheme);
        for page in &pages {
            browser.open(&format!("http://{}{page}", server.host));
            browser.is_live();
            browser.value(&format!("{axe};0"));
            let violations = browser.value(FOUND);
            for violation in violations.as_array().expect("axe answers") {
                found.push(format!("{page} {width} {scheme} {violation}"));
            }
            let over = browser.value("document.documentElement.scrollWidth - innerWidth");
            assert!(
                over.as_i64() <= Some(0),
                "{page} is wider than {width} by {over}"
            );
        }
    }
    assert_eq!(found, Vec::<String>::new());
    browser.value("document.querySelector('main').append(document.createElement('img'))");
    let violations = browser.value(FOUND).to_string();
    assert!(violations.contains("image-alt"), "axe looks: {violations}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

fn look_like(browser: &mut Chromium, width: u32, scheme: &str) {
    let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", &size);
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.call("Emulation.setEmulatedMedia", &media);
}
