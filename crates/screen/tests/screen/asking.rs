//! Questions of pages to the browser's user are questions of the run, and pickers of files are fields.

use gyrus_contract::{ActionVerdict, Starts};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

/// Makes the plain button do this with the page's own functions, and say what came of it.
async fn asks(world: &World, what: &str) {
    let script = format!(
        "plain.onclick = async () => {{ plain.textContent = await ({what})().then(String, (error) => error.name ?? `code ${{error.code}}`); }}"
    );
    world.eval(&script).await;
}

/// The words of the button once they are not these any more.
fn said(before: &str) -> String {
    format!(
        "new Promise((done) => {{ const look = () => plain.textContent === '{before}' ? setTimeout(look, 10) : done(plain.textContent); look(); }})"
    )
}

const POSITION: &str = "() => new Promise((done, fail) => navigator.geolocation.getCurrentPosition((at) => done(at.coords.latitude), (error) => fail({ code: error.code })))";
const WATCH: &str = "() => new Promise((done) => { const watch = navigator.geolocation.watchPosition((at) => { navigator.geolocation.clearWatch(watch); done(at.coords.longitude); }); })";
const CLIPBOARD: &str = "() => navigator.clipboard.readText().then((text) => `read ${text}`)";
const NOTIFIES: &str = "() => Notification.requestPermission()";

#[tokio::test]
async fn a_permission_is_asked_for_and_given_to_one_origin() {
    if !has_browser() {
        return;
    }
    for (what, message, answers) in [
        (
            POSITION,
            "know your position",
            [(true, "52.5"), (false, "code 1")],
        ),
        (
            WATCH,
            "know your position",
            [(true, "13.4"), (true, "13.4")],
        ),
        (
            CLIPBOARD,
            "read what was copied",
            [(true, "read "), (false, "NotAllowedError")],
        ),
        (
            NOTIFIES,
            "show notifications",
            [(true, "granted"), (false, "denied")],
        ),
    ] {
        for (accept, told) in answers {
            let world = World::at("act-all.html", Launch::default()).await;
            let on = world.id("Plain").await;
            asks(&world, what).await;
            let done = world.act("click", json!({"on": on})).await;
            assert!(done.text.contains(message), "{}", done.text);
            // The page goes on meanwhile.
            let dialog = world.look().await.dialog.unwrap();
            assert_eq!(dialog.kind, "permission");
            world.id("Icon").await;
            let answer = json!({"accept": accept, "text": "52.5, 13.4"});
            let aim = world.aim("answer_dialog", answer.clone()).await;
            let aim = aim.unwrap().unwrap();
            assert_eq!(aim.starts, [Starts::Answers { accepts: accept }]);
            assert_eq!(aim.element.unwrap().role, "permission");
            if accept && message.contains("position") {
                let done = world.act("answer_dialog", json!({"accept": true})).await;
                assert_eq!(done.verdict, ActionVerdict::Refused, "{}", done.text);
            }
            let done = world.act("answer_dialog", answer).await;
            assert!(!done.is_error, "{}", done.text);
            assert_eq!(world.eval(&said("Plain")).await, told, "{what}");
            assert_eq!(world.look().await.dialog, None);
            // It is not asked again.
            let done = world.act("click", json!({"on": on})).await;
            assert!(!done.text.contains("the page asks"), "{}", done.text);
        }
    }
}

#[tokio::test]
async fn a_question_goes_with_its_page_and_a_page_cannot_forge_one() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    asks(&world, POSITION).await;
    assert_eq!(world.eval("typeof gyrusAsks").await, "undefined");
    assert_eq!(
        world
            .eval("navigator.geolocation.getCurrentPosition.toString().includes('native')")
            .await,
        true
    );
    let on = world.id("Plain").await;
    world.act("click", json!({"on": on})).await;
    assert!(world.look().await.dialog.is_some());
    world.act("reload", json!({})).await;
    assert_eq!(world.look().await.dialog, None);
}

#[tokio::test]
async fn a_picker_is_given_a_file_and_what_it_saves_is_a_download() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    std::fs::write(world.path("letter.txt"), "dear Ada").unwrap();
    let opens = "() => showOpenFilePicker().then(async ([handle]) => handle.name + ': ' + await (await handle.getFile()).text() + (handle instanceof FileSystemFileHandle))";
    asks(&world, opens).await;
    let on = world.id("Plain").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(done.text.contains("upload_file"), "{}", done.text);
    let done = world
        .act("upload_file", json!({"on": on, "path": "letter.txt"}))
        .await;
    assert!(!done.is_error, "{}", done.text);
    assert_eq!(world.eval(&said("Plain")).await, "letter.txt: dear Adatrue");

    let saves = "() => showSaveFilePicker({ suggestedName: 'out.txt' }).then(async (handle) => { await new Blob(['saved words']).stream().pipeTo(await handle.createWritable()); return 'Saved'; })";
    asks(&world, saves).await;
    world.act("click", json!({"on": on})).await;
    assert_eq!(world.eval(&said("letter.txt: dear Adatrue")).await, "Saved");
    let brought = world.path("downloads/out.txt");
    for _ in 0..3 {
        if !brought.exists() {
            world.act("wait", json!({})).await;
        }
    }
    assert_eq!(std::fs::read_to_string(brought).unwrap(), "saved words");

    asks(&world, "() => showDirectoryPicker()").await;
    let on = world.id("Saved").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(done.text.contains("none can be given"), "{}", done.text);
}
