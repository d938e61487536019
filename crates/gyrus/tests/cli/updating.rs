//! `gyrus update` through the real program, a real signature of ssh-keygen, and a server on loopback;
//! and `gyrus config`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

use crate::support::{Said, World, read, said, works};

/// Serves the files of a folder, and keeps the paths that were asked for.
struct Served {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Served {
    fn start(folder: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/gyrus", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut first = String::new();
                let _ = lines.read_line(&mut first);
                loop {
                    let mut line = String::new();
                    if lines.read_line(&mut line).unwrap_or(0) <= 2 {
                        break;
                    }
                }
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                kept.lock().unwrap().push(path);
                let (status, body) = match fs::read(folder.join(name)) {
                    Ok(body) => ("200 OK", body),
                    Err(_) => ("404 Not Found", Vec::new()),
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            }
        });
        Self { address, asked }
    }
}

/// A world whose gyrus is a file of its own, and packages for it.
struct Updating {
    world: World,
    served: Served,
}

fn shell(folder: &Path, line: &str) {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

impl Updating {
    fn new() -> Self {
        let world = World::new("");
        for folder in ["bin", "packages"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_gyrus");
        let own = world.path("bin/gyrus");
        fs::hard_link(program, &own)
            .or_else(|_| fs::copy(program, &own).map(drop))
            .unwrap();
        shell(
            &world.path("."),
            "ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -q -t ed25519 -N '' -f other",
        );
        let served = Served::start(world.path("packages"));
        let this = Self { world, served };
        this.configure("key.pub");
        this
    }

    fn configure(&self, key: &str) {
        fs::create_dir_all(self.world.path("home")).unwrap();
        let key = read(&self.world.path(key));
        let (url, key) = (&self.served.address, key.trim());
        let text = format!("[update]\nurl = \"{url}\"\nkey = \"{key}\"\n");
        fs::write(self.world.path("home/config.toml"), text).unwrap();
    }

    /// Packs a program that says it is of this version, and whose doctor ends so.
    fn pack(&self, version: &str, doctor: u8) {
        let name = format!("gyrus-{version}-linux-{}", machine());
        let folder = self.world.path("tree").join(&name).join("bin");
        fs::create_dir_all(&folder).unwrap();
        let program = format!(
            "#!/bin/sh\ncase $1 in --version) echo gyrus {version};; doctor) echo '✗ state is broken'; exit {doctor};; esac\n"
        );
        fs::write(folder.join("gyrus"), program).unwrap();
        shell(
            &self.world.path("tree"),
            &format!("tar czf ../packages/{name}.tar.gz {name}"),
        );
        self.sign("key");
    }

    fn sign(&self, key: &str) {
        shell(
            &self.world.path("packages"),
            &format!(
                "rm -f SHA256SUMS*; sha256sum * > SHA256SUMS; ssh-keygen -q -Y sign -n gyrus -f ../{key} SHA256SUMS"
            ),
        );
    }

    fn gyrus(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(self.world.path("bin/gyrus"));
        for (name, value) in self.world.command(&[]).get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        said(
            command
                .args(arguments)
                .current_dir(self.world.work())
                .output()
                .unwrap(),
        )
    }

    fn version(&self) -> String {
        self.gyrus(&["--version"]).out.trim().to_owned()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.world.path("bin")).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_newer_version_takes_the_place_of_this_one_and_goes_back_where_doctor_fails() {
    if !works("ssh-keygen", &["-?"]) && !Path::new("/usr/bin/ssh-keygen").exists() {
        return;
    }
    let updating = Updating::new();
    let own = updating.version();
    // What is there is no newer one.
    updating.pack("0.0.9", 0);
    let told = updating.gyrus(&["update"]).exits(0);
    assert!(told.err.contains("is up to date"), "{told:#?}");
    updating.pack("9.0.0", 1);
    let told = updating.gyrus(&["update", "--check"]).exits(0);
    assert!(told.err.contains("gyrus 9.0.0 is there"), "{told:#?}");
    assert_eq!(updating.files(), ["gyrus"]);

    // Its doctor finds fault where that of this one finds none.
    updating.gyrus(&["doctor"]).exits(0);
    let told = updating.gyrus(&["update"]).exits(1);
    assert!(
        told.err.contains("is in its place again") && told.err.contains("state is broken"),
        "{told:#?}"
    );
    assert_eq!(
        (updating.version(), updating.files()),
        (own.clone(), vec!["gyrus".to_owned()])
    );

    updating.pack("9.0.1", 0);
    let told = updating.gyrus(&["update"]).exits(0);
    assert!(told.err.contains("gyrus 9.0.1 took the place"), "{told:#?}");
    assert_eq!(updating.version(), "gyrus 9.0.1");
    assert_eq!(updating.files(), ["gyrus", "gyrus.previous"]);
    let mode = fs::metadata(updating.world.path("bin/gyrus"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    // The program that it replaced puts itself back.
    let previous = updating.world.path("bin/gyrus.previous");
    fs::rename(previous, updating.world.path("bin/gyrus")).unwrap();
    assert_eq!(updating.version(), own);
    updating.gyrus(&["update"]).exits(0);
    let back = Command::new(updating.world.path("bin/gyrus.previous"))
        .arg("--version")
        .output();
    assert_eq!(String::from_utf8_lossy(&back.unwrap().stdout).trim(), own);
}

#[test]
fn nothing_is_taken_that_the_configured_key_did_not_sign() {
    if !Path::new("/usr/bin/ssh-keygen").exists() {
        return;
    }
    let updating = Updating::new();
    let own = updating.version();
    updating.pack("9.0.0", 0);
    let refused = |expected: &str| {
        let told = updating.gyrus(&["update"]).exits(1);
        assert!(told.err.contains(expected), "{expected}: {told:#?}");
        assert_eq!(
            (updating.version(), updating.files()),
            (own.clone(), vec!["gyrus".to_owned()])
        );
    };
    updating.sign("other");
    refused("signed by another key");
    updating.sign("key");
    let sums = updating.world.path("packages/SHA256SUMS");
    let signed = read(&sums);
    fs::write(&sums, signed.replace("9.0.0", "9.9.0")).unwrap();
    refused("does not fit the checksums");
    fs::write(&sums, signed).unwrap();
    let archive = format!("packages/gyrus-9.0.0-linux-{}.tar.gz", machine());
    let bytes = fs::read(updating.world.path(&archive)).unwrap();
    fs::write(updating.world.path(&archive), &bytes[1..]).unwrap();
    refused("is not the file that was signed");
    // Signed, and no program.
    updating.sign("key");
    refused("has no program");
    shell(
        &updating.world.path("."),
        &format!(
            "ssh-keygen -q -Y sign -n file -f key packages/SHA256SUMS 2>/dev/null; mv packages/SHA256SUMS.sig x || true; ssh-keygen -q -Y sign -n file -f key - < packages/SHA256SUMS > packages/SHA256SUMS.sig 2>/dev/null; rm -f {archive}.x"
        ),
    );
    refused("for something else");
    fs::remove_file(updating.world.path("packages/SHA256SUMS.sig")).unwrap();
    refused("404");

    // Without a configuration, nobody is asked.
    let asked = updating.served.asked.lock().unwrap().len();
    fs::write(updating.world.path("home/config.toml"), "").unwrap();
    updating
        .gyrus(&["update"])
        .exits(2)
        .says("no place for updates");
    assert_eq!(updating.served.asked.lock().unwrap().len(), asked);
    updating
        .gyrus(&["update", "--back"])
        .exits(2)
        .says("no earlier program");
}

#[test]
fn what_is_configured_is_shown_with_its_source() {
    let world = World::new("");
    fs::create_dir_all(world.path("home")).unwrap();
    fs::write(
        world.path("home/config.toml"),
        "approve = \"edits\"\n[limits]\nsteps = 7\n[mcp.a]\ncommand = \"x\"\nenv = { K = \"hush-9\" }\n",
    )
    .unwrap();
    let shown = world.gyrus(&["config"]).exits(0).out;
    let row = |key: &str| {
        let line = shown
            .lines()
            .find(|line| line.split(' ').next() == Some(key))
            .unwrap_or_default();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(row("approve"), "\"edits\" config.toml");
    assert_eq!(row("limits.steps"), "7 config.toml");
    assert_eq!(row("policy"), "order default");
    assert!(row("model").ends_with("GYRUS_MODEL"), "{shown}");
    assert_eq!(row("mcp.a.env"), "(not shown) config.toml");
    assert!(
        !shown.contains("hush-9") && !shown.contains("limits.cost"),
        "{shown}"
    );
    let listed: Value =
        serde_json::from_str(&world.gyrus(&["config", "--json"]).exits(0).out).unwrap();
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .any(|key| key["key"] == "limits.cost")
    );
    fs::write(world.path("home/config.toml"), "aprove = \"ask\"\n").unwrap();
    world
        .gyrus(&["config"])
        .exits(2)
        .says("did you mean `approve`?");
    // The page of the documentation is what the program says.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    let printed = world.gyrus(&["config", "--reference"]).exits(0).out;
    assert!(
        printed == read(&page),
        "write it again: gyrus config --reference > docs/keys.md"
    );
}
