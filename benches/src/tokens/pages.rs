//! The pages that are looked at: those of the screen's tests, and five like the samples of the
//! loop's own tests, as real pages.

use axum::{
    Router,
    extract::Path,
    http::header,
    response::{Html, IntoResponse},
    routing::get,
};
use tokio::net::TcpListener;

/// Pages of the screen's tests on which something can be done.
const OF_TESTS: [&str; 5] = [
    "act-all.html",
    "look-boxes.html",
    "look-form.html",
    "look-modal.html",
    "look-scroll.html",
];

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/screen/tests/pages");

/// Serves them until the process ends, and returns their addresses.
pub(crate) async fn serve() -> anyhow::Result<Vec<String>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let at = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route(
            "/own/{name}",
            get(async |Path(name): Path<String>| Html(own(&name))),
        )
        .route("/{*path}", get(of_tests));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let own = ["form", "shop", "article", "table", "board"].map(|name| format!("{at}/own/{name}"));
    let of_tests = OF_TESTS.map(|name| format!("{at}/{name}"));
    Ok(own.into_iter().chain(of_tests).collect())
}

async fn of_tests(Path(path): Path<String>) -> impl IntoResponse {
    let text = std::fs::read_to_string(format!("{FOLDER}/{path}")).unwrap_or_default();
    let kind = if path.ends_with(".js") {
        "text/javascript"
    } else {
        "text/html; charset=utf-8"
    };
    ([(header::CONTENT_TYPE, kind)], text)
}

fn own(name: &str) -> String {
    let body = match name {
        "form" => FORM.to_owned(),
        "shop" => shop(),
        "article" => article(),
        "table" => table(),
        _ => BOARD.to_owned(),
    };
    format!(
        "<!doctype html><title>{name}</title><style>body {{ font: 16px sans-serif }} .cards {{ display: grid; grid-template-columns: repeat(3, 1fr) }}</style>{body}"
    )
}

const FORM: &str = "<header><a href='#home'>Shop home</a></header><main><h1>Log in</h1>\
<form aria-label='Log in' onsubmit='return false'><label>E-mail <input type=email value='ann@example.org' required></label>\
<label>Password <input type=password required></label><label><input type=checkbox checked> Stay logged in</label>\
<button>Log in</button></form><a href='#forgot'>Forgot your password?</a><p>New here? An account takes a minute.</p>\
<a href='#new'>Create account</a></main><footer><a href='#terms'>Terms</a> <a href='#privacy'>Privacy</a></footer>";

const BOARD: &str = "<button>Pen</button><button>Undo</button><button>Clear</button>\
<canvas width=1200 height=700></canvas>";

fn shop() -> String {
    let cards: String = (1..=60)
        .map(|number| {
            let price = 10 + number * 3;
            format!(
                "<div><a href='#{number}'>Lamp {number} of brass</a><p>{price},00 EUR</p>\
                 <p>In stock, 2 days</p><button onclick='count.textContent++'>Add to cart</button></div>"
            )
        })
        .collect();
    format!(
        "<header><a href='#home'>Shop</a> <input type=search placeholder=Search value=lamp><button>Search</button>\
         <a href='#cart'>Cart (<span id=count>2</span>)</a></header><nav aria-label=Categories><a href='#a'>Lamps</a>\
         <a href='#b'>Chairs</a><a href='#c'>Tables</a><a href='#d'>Carpets</a></nav><main><h1>Lamps</h1>\
         <p>60 results</p><label>Sort by <select><option>Price<option>Name<option>Newest</select></label>\
         <div class=cards>{cards}</div></main><footer><a href='#i'>Imprint</a></footer>"
    )
}

fn article() -> String {
    let paragraphs: String = (1..=25)
        .map(|number| {
            format!(
                "<p>Paragraph {number}: it has long been said that the moon is made of cheese, but samples that \
                 were brought back show that it is rock, mostly basalt and anorthosite, as many had thought. \
                 <a href='#{number}'>source {number}</a></p>"
            )
        })
        .collect();
    format!(
        "<header><a href='#n'>News</a> <a href='#p'>Politics</a> <a href='#s'>Science</a></header>\
         <main><h1>The moon is made of rock</h1><p>By A. Writer, 3 March</p>{paragraphs}</main>"
    )
}

fn table() -> String {
    let rows: String = (1..=30)
        .map(|number| {
            format!("<tr><td>R-{number:04}<td>Customer {number}<td>{number}0,50 EUR</tr>")
        })
        .collect();
    format!(
        "<main><h1>Invoices</h1><label>Filter <input></label><table aria-label=Invoices>\
         <tr><th>Number<th>Customer<th>Amount</tr>{rows}</table><button>Export</button></main>"
    )
}
