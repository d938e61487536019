//! All words of a page are read, in pieces.

use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

#[tokio::test]
async fn the_text_of_a_page_is_read_with_frames_and_shadow_roots_in_pieces() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    world
        .eval(
            "(() => { for (const [source, style] of [['In the frame', ''], ['Unseen', 'display: none']]) { \
             const frame = document.createElement('iframe'); frame.style = style; \
             frame.srcdoc = `<p>${source}</p><script>0</script>`; document.body.append(frame); } \
             for (let at = 1; at <= 500; at++) { const line = document.createElement('p'); \
             line.textContent = `Paragraph ${at} of many`; document.body.append(line); } })()",
        )
        .await;
    world.look().await;
    let mut all = String::new();
    for number in 1..=3 {
        let read = world.act("extract", json!({"pages": number})).await.text;
        let (piece, _) = read.rsplit_once("[piece ").unwrap();
        all.push_str(piece);
    }
    for words in [
        "Send it",
        "In the shadow",
        "In the frame",
        "Paragraph 1 of",
        "Paragraph 500 of",
    ] {
        assert_eq!(all.matches(words).count(), 1, "{words}: {all}");
    }
    assert!(
        !all.contains("Unseen") && !all.contains("customElements"),
        "{all}"
    );
}

#[tokio::test]
async fn a_pdf_in_the_viewer_of_the_browser_is_read() {
    if !has_browser() {
        return;
    }
    let world = World::at("plain.html", Launch::default()).await;
    let url = world.address("paper.pdf");
    world.act("open_url", json!({"url": url})).await;
    let view = world.look().await;
    assert!(
        view.unread.concat().contains("`extract` reads"),
        "{view:#?}"
    );
    let read = world.act("extract", json!({})).await;
    assert_eq!(read.text, "[page 1 of 1]\nTotal: 42 EUR\nAda");
    world
        .act("open_url", json!({"url": world.address("plain.html")}))
        .await;
    for (number, kind) in ["embed", "iframe"].into_iter().enumerate() {
        let frame = format!(
            "(() => {{ const frame = document.createElement('{kind}'); frame.src = '/paper.pdf'; document.body.append(frame); }})()"
        );
        world.eval(&frame).await;
        world.look().await;
        let read = world.act("extract", json!({})).await.text;
        assert_eq!(read.matches("Total: 42 EUR").count(), number + 1, "{read}");
    }
}
