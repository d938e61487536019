//! The proof that is given to people, tried itself.

use gyrus_contract::Network;
use gyrus_gate::sandbox::{Promise, Wall, prove};

use tempfile::TempDir;

use super::{
    start::{Around, OTHER, Start, User},
    world::World,
};

/// A folder whose path is longer than an address of a socket.
fn folder_in(world: &World) -> TempDir {
    let prefix = "long-".repeat(24);
    let mut folder = tempfile::Builder::new();
    folder.prefix(&prefix).tempdir_in(world.path("")).unwrap()
}

pub(crate) fn holds(user: User, around: Around) {
    for network in [Network::None, Network::Proxy, Network::Open] {
        let world = World::new(user, around);
        let folder = folder_in(&world);
        if user == User::Other {
            std::os::unix::fs::chown(folder.path(), Some(OTHER), Some(OTHER)).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(folder.path(), mode).unwrap();
        }
        let proof = prove(folder.path(), network, |containment, command| {
            if user == User::Other {
                for name in [
                    "workspace",
                    "temporary",
                    "hidden",
                    "outside",
                    "hidden/secret",
                ] {
                    let path = folder.path().join(name);
                    std::os::unix::fs::chown(path, Some(OTHER), Some(OTHER)).unwrap();
                }
            }
            let start = Start {
                containment,
                around,
                user,
                folder: &containment.writable[0],
                environment: world.environment(),
            };
            let arguments: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
            let ran = start.run(&command.program, &arguments, drop);
            match ran.code {
                Some(0) => Ok(ran.output),
                _ => Err(format!("{ran:?}")),
            }
        })
        .unwrap();
        let broken: Vec<_> = proof.broken().collect();
        if around.has_namespaces() {
            assert!(proof.is_whole(), "{network:?}: {broken:#?}");
            assert_eq!(proof.wall, Wall::Namespaces);
            continue;
        }
        for promise in [
            Promise::Writes,
            Promise::Hidden,
            Promise::Network,
            Promise::Processes,
            Promise::Privileges,
        ] {
            assert!(proof.holds(promise), "{network:?}: {broken:#?}");
        }
        assert_eq!(proof.wall, Wall::Landlock);
        // The machine's processes are in sight, and the proof says so.
        assert!(!proof.holds(Promise::Sight), "{broken:#?}");
    }
}

/// A proof of nothing must say so: the same without a sandbox.
pub(crate) fn sees_what_is_missing(user: User, around: Around) {
    let world = World::new(user, around);
    let folder = folder_in(&world);
    let proof = prove(folder.path(), Network::None, |_, command| {
        let output = std::process::Command::new(&command.program)
            .args(&command.arguments)
            .output()?;
        std::io::Result::Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    })
    .unwrap();
    for promise in Promise::ALL {
        assert!(!proof.holds(promise), "{promise:?}");
    }
    let hidden = proof.findings.iter();
    let mut hidden = hidden.filter(|found| found.promise == Promise::Hidden);
    assert!(hidden.all(|found| !found.held), "{:#?}", proof.findings);
}
