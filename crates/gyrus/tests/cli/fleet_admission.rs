//! A fleet behind TLS: both sides show certificates, and a worker has only the rights that are printed
//! for it.

use std::{fs, path::Path};

use gyrus_fleet::nats::{LocalServer, ServerOptions};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use crate::{
    fleet::{at, exits, no_server, program},
    support::{Running, THREE_STEPS, World},
};

/// Writes an authority `NAME.pem` and what it vouches for: `NAME-server` and `NAME-worker`, each a
/// certificate and a key.
fn authority(folder: &Path, name: &str) {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    let issuer = Issuer::new(parameters, key);
    for (role, purpose) in [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("worker", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        parameters.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &issuer).unwrap();
        let path = |ending| folder.join(format!("{name}-{role}.{ending}"));
        fs::write(path("pem"), certificate.pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
    }
}

#[test]
fn a_run_is_done_over_mutual_tls_and_everything_less_is_refused_with_advice() {
    let Some(programs) = program() else {
        return no_server();
    };
    let world = World::new(THREE_STEPS);
    let folder = world.path("certificates");
    fs::create_dir(&folder).unwrap();
    authority(&folder, "ours");
    authority(&folder, "theirs");
    let rights = exits(at(&world, "client", &["fleet", "permissions"])).exits(0);
    let file = |name: &str| folder.join(name).display().to_string();
    let admission = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}\n\
         authorization {{ users: [ {{ user: worker, password: \"pass-of-the-tests\", {} }} ] }}",
        file("ours-server.pem"),
        file("ours-server.key"),
        file("ours.pem"),
        rights.out
    );
    let server = LocalServer::start(&ServerOptions {
        program: programs.join("nats-server"),
        folder: world.path("server"),
        name: "behind-tls".to_owned(),
        port: None,
        token: None,
        more: admission,
        syncs_always: true,
    })
    .unwrap();
    let address = |login: &str, more: &str| {
        format!(
            "tls://{login}127.0.0.1:{}?monitor={}{more}",
            server.port, server.monitor
        )
    };
    let login = "worker:pass-of-the-tests@";
    let ca = format!("&ca={}", file("ours.pem"));
    let certified = |name: &str| {
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        format!("&cert={certificate}&key={key}")
    };
    let good = address(login, &format!("{ca}{}", certified("ours-worker")));
    let doctor = |address: &str| {
        let words = ["fleet", "doctor", "--fleet", address];
        exits(at(&world, "client", &words))
    };
    let told = doctor(&good).exits(0);
    assert!(
        told.out.contains("the second of two writers was refused"),
        "{told:?}"
    );

    let mut worker = Running::of(&mut at(&world, "worker", &["worker", "--fleet", &good]));
    worker.hears("takes runs of");
    let words = [&world.run_arguments(&[])[..], &["--fleet", &good]].concat();
    exits(at(&world, "client", &words)).exits(0);
    let status = exits(at(&world, "client", &["fleet", "status", "--fleet", &good])).exits(0);
    assert!(
        status.out.starts_with("worker ") && status.out.contains("1 over"),
        "{status:?}"
    );

    let ours = certified("ours-worker");
    let theirs = format!("&ca={}", file("theirs.pem"));
    let no_authority = format!("&ca={}", file("ours-server.key"));
    let missing = format!("&ca={}", file("nothing.pem"));
    let mixed = format!(
        "{ca}&cert={}&key={}",
        file("ours-worker.pem"),
        file("theirs-worker.key")
    );
    for (login, more, words) in [
        // No certificate of its own, one of another authority, one that is for servers.
        (login, ca.clone(), "CertificateRequired"),
        (
            login,
            format!("{ca}{}", certified("theirs-worker")),
            "UnknownCA",
        ),
        (
            login,
            format!("{ca}{}", certified("ours-server")),
            "BadCertificate",
        ),
        // Servers that nobody whom this machine trusts vouches for.
        (login, ours.clone(), "UnknownIssuer"),
        (login, format!("{theirs}{ours}"), "UnknownIssuer"),
        (login, no_authority, "UnknownIssuer"),
        // A certificate with the key of another, and a file that is not there.
        (login, mixed, "could not add certificate or key"),
        (login, missing, "nothing.pem cannot be read"),
        (
            "worker:wrong@",
            format!("{ca}{ours}"),
            "do not accept who this is",
        ),
        ("", format!("{ca}{ours}"), "do not accept who this is"),
    ] {
        let told = doctor(&address(login, &more)).exits(2);
        let text = format!("{}{}", told.out, told.err);
        assert!(text.contains(words), "{more}: {text}");
        assert!(!text.contains("pass-of-the-tests"), "{text}");
    }
}

#[test]
fn the_doctor_says_which_right_is_missing() {
    let Some(programs) = program() else {
        return no_server();
    };
    let world = World::new(THREE_STEPS);
    let rights = exits(at(&world, "client", &["fleet", "permissions"])).exits(0);
    let command = exits(at(&world, "client", &["fleet", "permissions", "--nsc"])).exits(0);
    let subjects = rights
        .out
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"'));
    for subject in subjects.map(|line| line.trim_end_matches('"')) {
        assert!(command.out.contains(subject), "{subject}: {command:?}");
    }
    let user = |name: &str, rights: &str| {
        format!("{{ user: {name}, password: pass-of-the-tests, {rights} }}")
    };
    let users = [
        user("all", &rights.out),
        user(
            "silent",
            &rights
                .out
                .replacen("\"gyrus.main.>\"", "\"gyrus.main.runs.>\"", 1),
        ),
        user(
            "deaf",
            &rights.out.replacen(
                "subscribe: [\n    \"gyrus.main.>\"",
                "subscribe: [\n    \"gyrus.main.queue.>\"",
                1,
            ),
        ),
        user(
            "blind",
            &rights
                .out
                .replace("\"$JS.API.DIRECT.GET.gyrus-main-runs\"", ""),
        ),
    ];
    let server = LocalServer::start(&ServerOptions {
        program: programs.join("nats-server"),
        folder: world.path("server"),
        name: "strict".to_owned(),
        port: None,
        token: None,
        more: format!("authorization {{ users: [ {} ] }}\n", users.join(", ")),
        syncs_always: true,
    })
    .unwrap();
    for (user, code, words) in [
        ("all", 0, "the second of two writers was refused"),
        (
            "silent",
            2,
            "the stream `blobs` takes nothing: nats: Permissions Violation",
        ),
        ("deaf", 2, "the stream `runs` does not tell of its messages"),
        (
            "blind",
            2,
            "the stream `runs` cannot be read: nats: Permissions Violation",
        ),
    ] {
        let (port, monitor) = (server.port, server.monitor);
        let address = format!("nats://{user}:pass-of-the-tests@127.0.0.1:{port}?monitor={monitor}");
        let words_of_doctor = ["fleet", "doctor", "--fleet", &address];
        let told = exits(at(&world, "client", &words_of_doctor));
        let text = format!("{}{}", told.out, told.err);
        assert!(text.contains(words), "{user}: {text}");
        told.exits(code);
    }
}

#[test]
fn who_names_a_certificate_speaks_only_tls() {
    let Some(fleet) = crate::fleet::Fleet::start(THREE_STEPS) else {
        return no_server();
    };
    let folder = fleet.world.path("certificates");
    fs::create_dir(&folder).unwrap();
    authority(&folder, "ours");
    let ca = folder.join("ours.pem");
    let address = format!("{}&ca={}", fleet.address, ca.display());
    let words = ["fleet", "doctor", "--fleet", &address];
    let told = exits(at(&fleet.world, "client", &words)).exits(2);
    let text = format!("{}{}", told.out, told.err);
    assert!(text.contains("does not speak TLS"), "{text}");
}
