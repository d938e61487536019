//! The server as a service of the person's session.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use crate::support::{World, read, said, works};

#[test]
fn a_service_is_installed_and_removed() {
    let world = World::new("");
    let unit = world.path("person/.config/systemd/user/gyrus.service");
    let dot = world.path("person/.config/autostart/gyrus-dot.desktop");
    // No session of systemd answers here, whoever runs this.
    let gyrus = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        said(command.env("PATH", "/nowhere").output().unwrap())
    };
    let installed = gyrus(&["serve", "install", "--port", "0"]).exits(0);
    assert!(
        installed
            .err
            .contains("systemctl --user restart gyrus.service"),
        "{installed:?}"
    );
    assert_eq!(dot.exists(), cfg!(feature = "desktop"));

    // The unit is one, and its command starts the server.
    if works("systemd-analyze", &["--version"]) {
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--user"]).arg(&unit);
        let verified = said(
            verify
                .env("XDG_RUNTIME_DIR", world.path(""))
                .output()
                .unwrap(),
        );
        verified.exits(0);
    }
    let text = read(&unit);
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
    };
    let line = format!("{} exec {}", value("Environment="), value("ExecStart="));
    let mut command = Command::new("sh");
    let command = command.args(["-c", &line.replace(" exec ", "; export GYRUS_HOME; exec ")]);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");

    // What is there is replaced if it is gyrus's own, and else left alone.
    gyrus(&["serve", "install", "--port", "7000"]).exits(0);
    assert!(read(&unit).contains("--port 7000"));
    gyrus(&["serve", "uninstall"]).exits(0);
    assert!(!unit.exists() && !dot.exists());
    fs::write(&unit, "[Unit]\n").unwrap();
    let refused = gyrus(&["serve", "install"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("not of gyrus"), "{refused:?}");
    let nothing = gyrus(&["serve", "uninstall"]).exits(0);
    assert!(
        nothing.err.contains("there is no service of gyrus"),
        "{nothing:?}"
    );
    assert_eq!(read(&unit), "[Unit]\n");
}
