//! Uploads and downloads.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use gyrus_contract::{
    Aim, Artifact, Digest, DownloadState, Site, Starts, ToolOutput, UploadFileCall,
};

use super::action::{ActionCall, ActionFailure, ScreenToolAction};
use crate::{
    browser::BrowserSession,
    input::{InputTarget, Press, Spot, UnusableTarget},
    launch::hand_over,
    state::TabState,
    verdict::StateBefore,
};

/// Maximum bytes of a file that is given to a page, because it is copied.
const MAX_UPLOAD: u64 = 256 << 20;

/// Time limit for a clicked page to ask for a file.
const CHOOSER_LIMIT: Duration = Duration::from_secs(3);

/// Folder of downloads, below the workspace.
const DOWNLOADS: &str = "downloads";

/// Maximum number of files of one name.
const MAX_SAME_NAME: u32 = 1_000;

impl ScreenToolAction for UploadFileCall {
    const READS: Option<&'static str> = Some("path");

    async fn aim(&self, session: &BrowserSession, tab: &TabState) -> Result<Aim, ActionFailure> {
        let spot = locate_upload(session, tab, InputTarget::Element(self.on)).await?;
        let name = self.path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Aim {
            starts: vec![Starts::Uploads { names: vec![name] }],
            ..spot.aim()
        })
    }

    async fn act(&self, doing: &ActionCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let refused = |why: String| ActionFailure::Refused(format!("refused: {why}"));
        let path = doing.call.paths.get("path").map(|path| path.real.clone());
        let path = path.ok_or_else(|| refused("the path was not looked up".to_owned()))?;
        let copy = lend(doing.session, &path)
            .map_err(|error| refused(format!("`{}`: {error}", path.display())))?;
        let name = copy
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let target = InputTarget::Element(self.on);
        let spot = locate_upload(doing.session, &doing.tab, target).await?;
        let judged = doing
            .call
            .aim
            .as_ref()
            .ok_or_else(|| refused("what this would touch was not judged".to_owned()))?;
        spot.is_as_judged(judged).map_err(ActionFailure::Refused)?;
        let standing = doing.session.watch(&doing.tab, Some(&spot), "").await;
        let effects = match spot.told.kind.as_str() {
            "file" => {
                let input = async {
                    let world = spot.frame.world.unwrap_or_default();
                    let expression = format!("gyrus.controlOf({})", spot.number());
                    let node = doing
                        .session
                        .object(&spot.frame.session, world, &expression)
                        .await;
                    let node = node.unwrap_or_default();
                    doing
                        .session
                        .give_files(&spot.frame.session, node, &copy)
                        .await
                };
                doing.finish(Some(&spot), &standing, input).await?
            }
            _ => doing.upload_by_button(&spot, &copy).await?,
        };
        Ok(doing.told(
            &format!("Gave {name} to {} {}", spot.id(), spot.told.words),
            &effects,
        ))
    }
}

impl ActionCall<'_> {
    /// Uploads by a button that asks for a file when it is clicked.
    async fn upload_by_button(
        &self,
        spot: &Spot,
        copy: &Path,
    ) -> Result<crate::verdict::InputEffects, ActionFailure> {
        self.session.state().chooser = None;
        let standing: StateBefore = self.session.watch(&self.tab, Some(spot), "pointer").await;
        let press = Press::default();
        let mut asked = false;
        let input = async {
            self.session.press(&self.tab, spot.point, press).await?;
            let chooser = self
                .session
                .wait(CHOOSER_LIMIT, |state| state.chooser.clone())
                .await;
            if let Some(chooser) = chooser {
                asked = true;
                let node = serde_json::json!({"backendNodeId": chooser.node});
                self.session
                    .give_files(&chooser.session, node, copy)
                    .await?;
                self.session.state().chooser = None;
            }
            Ok(())
        };
        let effects = self.finish(Some(spot), &standing, input).await?;
        if asked {
            Ok(effects)
        } else {
            Err(ActionFailure::Broke(format!(
                "{} was clicked and asked for no file. {}",
                spot.told.words,
                effects.say()
            )))
        }
    }
}

/// Finds the target of an upload. A file field need not be visible, because a person may click
/// another element for it. A button must be.
async fn locate_upload(
    session: &BrowserSession,
    tab: &TabState,
    target: InputTarget,
) -> Result<Spot, UnusableTarget> {
    let spot = session.locate(tab, target, "set", "").await?;
    if spot.told.kind == "file" {
        Ok(spot)
    } else {
        session.locate(tab, target, "upload", "").await
    }
}

/// Copies a file to the browser's own folder, under its name: the browser may run as another user,
/// and what it reads later is what was judged.
fn lend(session: &BrowserSession, path: &Path) -> io::Result<PathBuf> {
    let mut source = OpenOptions::new().read(true).open(path)?;
    let data = source.metadata()?;
    if !data.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if data.len() > MAX_UPLOAD {
        return Err(io::Error::other(format!(
            "it is larger than {} MB",
            MAX_UPLOAD >> 20
        )));
    }
    let folder = session
        .profile
        .folder()
        .join("gyrus-uploads")
        .join(uuid::Uuid::new_v4().to_string());
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("it has no name"))?;
    let copy = folder.join(name);
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&copy)?;
    io::copy(&mut io::Read::take(&mut source, MAX_UPLOAD), &mut target)?;
    for made in [folder.parent().unwrap_or(&folder), &folder, &copy] {
        hand_over(made)?;
    }
    Ok(copy)
}

/// Moves finished downloads into the workspace, and lists them in the output.
pub(super) async fn bring_downloads(
    session: &BrowserSession,
    site: &dyn Site,
    output: &mut ToolOutput,
) {
    let ready: Vec<(String, String)> = {
        let state = session.state();
        let ready = state.downloads.iter();
        let ready =
            ready.filter(|one| one.shown.state == DownloadState::Done && one.shown.path.is_none());
        ready
            .map(|one| (one.guid.clone(), one.shown.name.clone()))
            .collect()
    };
    for (guid, name) in ready {
        let from = session.profile.folder().join("gyrus-downloads").join(&guid);
        let (path, failed) = match bring(&from, &name, site.workspace(), |path| {
            site.withheld(path).is_some()
        }) {
            Ok((path, digest)) => {
                output.text.push_str(&format!("\nDownloaded: {path}"));
                output.artifacts.push(Artifact {
                    path: path.clone(),
                    digest,
                });
                (Some(path), false)
            }
            Err(error) => {
                output
                    .text
                    .push_str(&format!("\nThe download {name} could not be kept: {error}"));
                (None, true)
            }
        };
        let mut state = session.state();
        if let Some(download) = state.downloads.iter_mut().find(|one| one.guid == guid) {
            download.shown.path = path;
            if failed {
                download.shown.state = DownloadState::Failed;
            }
        }
    }
}

/// Copies one file; the copy belongs to gyrus's user and never replaces another.
fn bring(
    from: &Path,
    name: &str,
    workspace: &Path,
    is_obeyed: impl Fn(&Path) -> bool,
) -> io::Result<(String, Digest)> {
    let folder = workspace.join(DOWNLOADS);
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // The folder must not be a link to another place.
    if !fs::symlink_metadata(&folder)?.is_dir() {
        return Err(io::Error::other(format!(
            "{} is not a folder",
            folder.display()
        )));
    }
    let name = harmless_name(&safe_name(name), is_obeyed);
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(from)?;
    if !source.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    for again in 1..=MAX_SAME_NAME {
        let name = numbered(&name, again);
        let path = folder.join(&name);
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let mut target = match opened {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        let copied = io::copy(
            &mut io::Read::take(&mut source, crate::state::MAX_DOWNLOAD),
            &mut target,
        );
        let digest = copied.and_then(|_| digest_of(&path));
        return match digest {
            Ok(digest) => {
                let _ = fs::remove_file(from);
                Ok((format!("{DOWNLOADS}/{name}"), digest))
            }
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        };
    }
    Err(io::Error::other("there are too many files of this name"))
}

fn digest_of(path: &Path) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    Ok(Digest::from_hash(hasher.finalize()))
}

/// Turns a page's name for a file into a safe one: no folders, no unseen characters, not hidden,
/// not too long.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last
        .chars()
        .map(|one| match one {
            ':' | '*' | '?' | '"' | '<' | '>' | '|' => '_',
            one if gyrus_text::is_unseen(one) => '_',
            one => one,
        })
        .collect();
    let kept = kept.trim_matches([' ', '.', '-']).to_owned();
    // The end says what kind of file it is.
    let (stem, kind) = kept
        .rsplit_once('.')
        .map_or((kept.as_str(), ""), |(stem, kind)| (stem, kind));
    let cut = |text: &str, most: usize| -> String {
        let mut text = text.to_owned();
        while text.len() > most {
            text.pop();
        }
        text
    };
    let name = if kind.is_empty() {
        cut(stem, 180)
    } else {
        format!("{}.{}", cut(stem, 160), cut(kind, 20))
    };
    if name.is_empty() {
        "download".to_owned()
    } else {
        name
    }
}

/// Turns the name into one that no other program obeys.
fn harmless_name(name: &str, is_obeyed: impl Fn(&Path) -> bool) -> String {
    let names = [name.to_owned(), format!("{name}.download")];
    let mut names = names.into_iter();
    let harmless = names.find(|name| !is_obeyed(&Path::new(DOWNLOADS).join(name)));
    harmless.unwrap_or_else(|| "download".to_owned())
}

fn numbered(name: &str, again: u32) -> String {
    match (again, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, kind))) if !stem.is_empty() => format!("{stem} ({again}).{kind}"),
        _ => format!("{name} ({again})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_do_no_harm() {
        for (given, safe) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("..\\x.exe", "x.exe"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\nb\u{202e}gpj.sh", "a_b_gpj.sh"),
            ("..", "download"),
            ("", "download"),
            ("日本.txt", "日本.txt"),
        ] {
            assert_eq!(safe_name(given), safe, "{given:?}");
        }
        assert!(safe_name(&format!("{}.txt", "é".repeat(300))).len() <= 200);
    }

    #[test]
    fn a_download_never_takes_the_place_of_a_file() {
        let world = tempfile::tempdir().unwrap();
        for (content, path) in [("one", "downloads/a.txt"), ("two", "downloads/a (2).txt")] {
            let from = world.path().join("guid");
            fs::write(&from, content).unwrap();
            let (brought, _) = bring(&from, "a.txt", world.path(), |_| false).unwrap();
            assert_eq!(brought, path);
            assert_eq!(
                fs::read_to_string(world.path().join(path)).unwrap(),
                content
            );
            assert!(!from.exists());
        }
    }

    #[test]
    fn a_download_gets_a_name_that_nothing_obeys() {
        let obeyed = |path: &Path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            ["AGENTS.md", "mise.toml", "mise.toml.download"].contains(&name)
        };
        for (name, expected) in [
            ("a.txt", "a.txt"),
            ("AGENTS.md", "AGENTS.md.download"),
            ("mise.toml", "download"),
        ] {
            assert_eq!(harmless_name(name, obeyed), expected);
        }
    }

    #[test]
    fn a_download_does_not_follow_links() {
        let world = tempfile::tempdir().unwrap();
        let (elsewhere, workspace) = (
            world.path().join("elsewhere"),
            world.path().join("workspace"),
        );
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir(&workspace).unwrap();
        std::os::unix::fs::symlink(&elsewhere, workspace.join("downloads")).unwrap();
        let from = world.path().join("guid");
        fs::write(&from, "x").unwrap();
        assert!(bring(&from, "a.txt", &workspace, |_| false).is_err());
        std::os::unix::fs::symlink("/etc/passwd", world.path().join("link")).unwrap();
        fs::remove_file(workspace.join("downloads")).unwrap();
        assert!(bring(&world.path().join("link"), "a.txt", &workspace, |_| false).is_err());
    }
}
