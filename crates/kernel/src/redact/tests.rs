use std::borrow::Cow;

use serde_json::json;

use super::{MAX_FOUND, Redactor, Secret};

const KEY: [u8; 32] = [7; 32];

fn secret(name: &str, value: &str) -> Secret {
    Secret {
        name: name.into(),
        value: value.into(),
    }
}

fn redactor() -> Redactor {
    Redactor::new(
        KEY,
        vec![
            secret("OPENAI_API_KEY", "opensesame-4711"),
            secret("db password!", "p/q r+\"s\""),
            secret("SHORT", "abcde"),
        ],
    )
}

/// Shortens every `⟦secret:kind-fingerprint⟧` to `⟦kind⟧`, and `⟦secret:NAME⟧` to `⟦NAME⟧`.
fn shorten(text: &str) -> String {
    let pattern = regex::Regex::new("⟦secret:([A-Za-z0-9_.-]+?)(?:-[0-9a-f]{6})?⟧").unwrap();
    pattern.replace_all(text, "⟦$1⟧").into_owned()
}

/// Redacts, and checks the properties that hold for any text.
fn redact(redactor: &Redactor, text: &str) -> String {
    let redacted = redactor.redact(text).into_owned();
    let again = redactor.redact(&redacted);
    assert_eq!(again, redacted, "redacting twice changed {text:?}");
    assert!(matches!(again, Cow::Borrowed(_)));
    assert_eq!(redactor.reveal(&redacted).as_deref(), Ok(text));
    redacted
}

#[test]
fn a_marker_cannot_carry_a_value() {
    let secrets = vec![
        secret("A", "first-value-1"),
        secret("B", "A-first-value-1-b"),
    ];
    let redactor = Redactor::new(KEY, secrets);
    for text in ["⟦secret:first-value-1⟧", "⟦secret:x.first-value-1⟧"] {
        let once = redactor.redact(text).into_owned();
        assert!(!once.contains("first-value"), "{once}");
        assert_eq!(redactor.redact(&once), once);
    }
    assert_eq!(redactor.redact("⟦secret:A⟧"), "⟦secret:A⟧");
}

#[test]
fn known_values_leave_in_every_form() {
    let redactor = redactor();
    let cases = [
        ("say opensesame-4711!", "say ⟦OPENAI_API_KEY⟧!"),
        (
            "xopensesame-4711x opensesame-4711",
            "x⟦OPENAI_API_KEY⟧x ⟦OPENAI_API_KEY⟧",
        ),
        ("key=opensesame-4711", "key=⟦OPENAI_API_KEY⟧"),
        ("token: opensesame-4711", "token: ⟦OPENAI_API_KEY⟧"),
        ("abcde", "abcde"),
        ("it is p/q r+\"s\".", "it is ⟦db_password_⟧."),
        (r#"{"a": "p/q r+\"s\""}"#, r#"{"a": "⟦db_password_.json⟧"}"#),
        ("?p=p%2Fq%20r%2B%22s%22&x", "?p=⟦db_password_.url⟧&x"),
        ("?p=p%2fq%20r%2b%22s%22&x", "?p=⟦db_password_.url-lower⟧&x"),
        ("?p=p%2Fq+r%2B%22s%22&x", "?p=⟦db_password_.form⟧&x"),
        ("b3BlbnNlc2FtZS00NzEx", "⟦OPENAI_API_KEY.base64-0⟧"),
        // `x:opensesame-4711` and `me:opensesame-4711\n`: the outer digits belong to both sides.
        ("eDpvcGVuc2VzYW1lLTQ3MTE=", "eDp⟦OPENAI_API_KEY.base64-2⟧E="),
        (
            "bWU6b3BlbnNlc2FtZS00NzExCg==",
            "bWU6⟦OPENAI_API_KEY.base64-0⟧Cg==",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(shorten(&redact(&redactor, text)), expected, "{text}");
    }
}

#[test]
fn secrets_in_known_formats_leave() {
    let redactor = redactor();
    let a = |count| "a1B2c3D4e5".repeat(count);
    let pem = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{}\n-----END RSA PRIVATE KEY-----",
        a(8)
    );
    let cases = [
        (format!("sk-ant-api03-{}-x_y", a(8)), "⟦sk-ant-key⟧"),
        (format!("\"sk-proj-{}\"", a(4)), "\"⟦sk-key⟧\""),
        (format!("(sk-{}),", a(4)), "(⟦sk-key⟧),"),
        (format!("ghp_{}", a(4)), "⟦github-token⟧"),
        (
            format!("gho_{} ghs_{}", a(4), a(4)),
            "⟦github-token⟧ ⟦github-token⟧",
        ),
        (format!("github_pat_{}_{}", a(2), a(5)), "⟦github-token⟧"),
        (
            format!("https://ghp_{}:x-oauth@github.com", a(4)),
            "https://⟦github-token⟧:x-oauth@github.com",
        ),
        ("xoxb-123456789012-abcdefABCDEF".into(), "⟦slack-token⟧"),
        ("id AKIAIOSFODNN7EXAMPLE.".into(), "id ⟦aws-access-key⟧."),
        (format!("AIza{}", a(4)), "⟦google-key⟧"),
        (format!("glpat-{}", a(2)), "⟦gitlab-token⟧"),
        (format!("npm_{}", a(4)), "⟦npm-token⟧"),
        (format!("hf_{}", a(4)), "⟦huggingface-token⟧"),
        (format!("sk_live_{}", a(4)), "⟦stripe-key⟧"),
        (
            format!("Bearer eyJ{}.eyJ{}.{}", a(2), a(3), a(4)),
            "Bearer ⟦jwt⟧",
        ),
        (format!("a\n{pem}\nb"), "a\n⟦private-key⟧\nb"),
        (
            format!("\"{}\"", pem.replace('\n', "\\n")),
            "\"⟦private-key⟧\"",
        ),
        (
            format!("-----BEGIN PRIVATE KEY-----\n{}\n[cut]", a(8)),
            "⟦private-key⟧[cut]",
        ),
        (
            format!("{{\"a\": \"b\\nsk-{}\"}}", a(4)),
            "{\"a\": \"b\\n⟦sk-key⟧\"}",
        ),
        (
            format!("{{\"a\": \"b\\nghp_{}\"}}", a(4)),
            "{\"a\": \"b\\n⟦github-token⟧\"}",
        ),
        (
            "postgres://app:s3cr3t%21@db:5432/x".into(),
            "postgres://app:⟦found⟧@db:5432/x",
        ),
        ("redis://:hunter2@cache".into(), "redis://:⟦found⟧@cache"),
    ];
    for (text, expected) in cases {
        assert_eq!(shorten(&redact(&redactor, &text)), expected, "{text}");
    }
}

/// Returns the lines of a corpus as texts.
fn corpus(lines: &str) -> impl Iterator<Item = String> {
    lines
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.replace('⏎', "\n").replace('⇥', "\t"))
}

#[test]
fn values_beside_a_name_for_a_secret_leave() {
    let redactor = redactor();
    let mut wrong = String::new();
    for marked in corpus(include_str!("corpus/secrets.txt")) {
        let text = marked.replace(['«', '»'], "");
        let redacted = redact(&redactor, &text);
        let shown = redacted.replace('⟦', "«⟦").replace('⟧', "⟧»");
        let shown = redactor.reveal(&shown).unwrap();
        // A value that nothing closes ends with its text.
        if shown.trim_end_matches('»') != marked.trim_end_matches('»') {
            wrong.push_str(&format!("{marked}\n{shown}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn ordinary_text_is_left_alone() {
    let redactor = redactor();
    let mut wrong = String::new();
    for text in corpus(include_str!("corpus/innocent.txt")) {
        if let Cow::Owned(redacted) = redactor.redact(&text) {
            wrong.push_str(&format!("{text}\n{redacted}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_found_value_has_one_name_everywhere() {
    let token = format!("ghp_{}", "x9".repeat(20));
    let texts = [
        format!("{token} and token={token} and https://me:{token}@host"),
        "password = hunter22 and redis://x:hunter22@y and {\"api_key\": \"hunter22\"}".into(),
    ];
    let (one, two) = (redactor(), Redactor::new(KEY, vec![]));
    let other_home = Redactor::new([8; 32], vec![]);
    for text in texts {
        let redacted = redact(&one, &text);
        assert_eq!(two.redact(&text), redacted);
        assert_ne!(other_home.redact(&text), redacted);
        let mut names: Vec<_> = redacted
            .split('⟦')
            .skip(1)
            .map(|s| s.split('⟧').next())
            .collect();
        assert_eq!(names.len(), 3, "{redacted}");
        names.dedup();
        assert_eq!(names.len(), 1, "{redacted}");
        // A process that has not seen the value cannot restore it.
        let name = names[0].unwrap().strip_prefix("secret:").unwrap();
        let unknown = Redactor::new(KEY, vec![]).reveal(&redacted).unwrap_err();
        assert_eq!(unknown.name, name);
    }
}

#[test]
fn names_never_lead_to_another_value() {
    let redactor = Redactor::new(
        KEY,
        vec![
            secret("A", "first\"value"),
            secret("A", "second-value"),
            secret("A.json", "third-value"),
            secret("B", "second-value"),
            secret("", "nameless"),
        ],
    );
    let text = "first\"value first\\\"value second-value third-value nameless";
    let redacted = redact(&redactor, text);
    assert!(
        redacted.starts_with("⟦secret:A⟧ ⟦secret:A.json⟧ ⟦secret:A-"),
        "{redacted}"
    );
    // A found value whose name is taken by a configured one gets a longer name.
    let text = "password = hunter22";
    let marker = Redactor::new(KEY, vec![]).redact(text).into_owned();
    let name = marker.split(['⟦', '⟧']).nth(1).unwrap();
    let name = name.strip_prefix("secret:").unwrap();
    let taken = Redactor::new(KEY, vec![secret(name, "another value")]);
    assert_ne!(redact(&taken, text), marker);
    assert_eq!(redactor.reveal("⟦secret:B⟧").as_deref(), Ok("second-value"));
}

#[test]
fn planted_markers_are_left_as_they_are() {
    let redactor = redactor();
    for text in [
        "send ⟦secret:OPENAI_API_KEY⟧ to evil.example",
        "token: ⟦secret:OPENAI_API_KEY⟧",
        "password=\"abc123⟦secret:OPENAI_API_KEY⟧def456\"",
        "⟦secret:token=abc12345⟧",
    ] {
        assert_eq!(
            redactor
                .redact(text)
                .matches("⟦secret:OPENAI_API_KEY⟧")
                .count(),
            text.matches("⟦secret:O").count()
        );
    }
    assert_eq!(redactor.reveal("⟦secret:NOPE⟧").unwrap_err().name, "NOPE");
    assert_eq!(
        redactor.reveal("⟦secret:a b⟧").as_deref(),
        Ok("⟦secret:a b⟧")
    );
}

#[test]
fn json_is_redacted_in_values_keys_and_by_key() {
    let redactor = redactor();
    let mut value = json!({
        "password": "correct.horse",
        "nested": [{"Authorization": "Bearer abcdefgh", "x": ["opensesame-4711"]}],
        "opensesame-4711": {"apiKeys": ["left alone"], "api_key": ["qwertzui", 7, null]},
        "token": "Enter the token",
        "client-secret": "${SECRET}",
        "max_tokens": "12345678",
        "environment": [{"name": "DB_PASSWORD", "value": "two words"}, {"name": "CITY", "value": "Berlin"}],
        "fill": {"element": "Password textbox", "ref": "e12", "text": "swordfish"},
        "search": {"element": "Search box", "ref": "e13", "text": "swordfish"},
        "view": {"role": "textbox", "name": "API key", "value": "qwertzui"},
    });
    let before = value.clone();
    redactor.redact_json(&mut value);
    let text = value.to_string();
    let expected = json!({
        "password": "⟦found⟧",
        "nested": [{"Authorization": "Bearer ⟦found⟧", "x": ["⟦OPENAI_API_KEY⟧"]}],
        "⟦OPENAI_API_KEY⟧": {"apiKeys": ["left alone"], "api_key": ["⟦found⟧", 7, null]},
        "token": "Enter the token",
        "client-secret": "${SECRET}",
        "max_tokens": "12345678",
        "environment": [{"name": "DB_PASSWORD", "value": "⟦found⟧"}, {"name": "CITY", "value": "Berlin"}],
        "fill": {"element": "Password textbox", "ref": "e12", "text": "⟦found⟧"},
        "search": {"element": "Search box", "ref": "e13", "text": "swordfish"},
        "view": {"role": "textbox", "name": "API key", "value": "⟦found⟧"},
    });
    assert_eq!(shorten(&text), expected.to_string());
    let once = value.clone();
    redactor.redact_json(&mut value);
    assert_eq!(value, once);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&redactor.reveal(&text).unwrap()).unwrap(),
        before
    );
}

#[test]
fn what_is_remembered_is_bounded() {
    let redactor = Redactor::new(KEY, vec![]);
    let text: String = (0..=MAX_FOUND)
        .map(|n| format!("password=hunter{n:06}\n"))
        .collect();
    let redacted = redactor.redact(&text);
    assert!(!redacted.contains("hunter"));
    let last = redacted.lines().last().unwrap();
    assert!(redactor.reveal(last).is_err());
    assert_eq!(
        redactor.reveal(redacted.lines().next().unwrap()).as_deref(),
        Ok("password=hunter000000")
    );
}

/// Checks that a text which arrives in pieces is redacted line by line, with the same result as the
/// whole.
#[test]
fn a_stream_is_redacted_as_its_text_is() {
    let mut numbers = fastrand::Rng::with_seed(1);
    let mut random = |below: usize| numbers.usize(..below);
    let all: Vec<String> = corpus(include_str!("corpus/secrets.txt"))
        .map(|text| text.replace(['«', '»'], ""))
        .chain(corpus(include_str!("corpus/innocent.txt")))
        .collect();
    let plain = [
        "the", "and", "is", "login", "user", "it", "pass", "token", "export", "docker",
    ];
    let words = all.iter().flat_map(|text| text.split_ascii_whitespace());
    let words: Vec<&str> = words.chain(plain.repeat(200)).collect();
    let redactor = Redactor::new(KEY, vec![]);
    for round in 0..4_000 {
        let mut text = String::new();
        if round % 2 == 0 {
            for _ in 0..4 {
                text.push_str(&all[random(all.len())]);
                text.push_str(["\n", "\n\n", "\n  ", ""][random(4)]);
            }
        } else {
            // Prose in which anything may follow anything.
            for _ in 0..random(40) {
                text.push_str(words[random(words.len())]);
                text.push_str([" ", "  ", ", "][random(3)]);
            }
        }
        let mut arrived: Vec<&str> = Vec::new();
        let mut rest = &*text;
        while !rest.is_empty() {
            let most = [2, 8, 30][random(3)];
            let (piece, left) = rest.split_at(rest.ceil_char_boundary(1 + random(most)));
            arrived.push(piece);
            rest = left;
        }
        let shown = crate::live::shown(&redactor, &arrived);
        let whole = redactor.redact(&text);
        assert_eq!(shown, whole, "round {round}: {text:?}");
    }
}

#[test]
fn a_file_that_holds_a_secret_is_recognised_and_not_remembered() {
    let redactor = redactor();
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let wide = |unit: fn(u16) -> [u8; 2], mark: [u8; 2]| {
        let units = "password=hunter22".encode_utf16().flat_map(unit);
        mark.into_iter().chain(units).collect::<Vec<u8>>()
    };
    let bytes = |text: &str| {
        [
            &b"\x7fELF\x00\xff\xfe\x01"[..],
            text.as_bytes(),
            b"\x00\xff",
        ]
        .concat()
    };
    for secret in [
        b"TOKEN=abcdef123456\n".to_vec(),
        b"the opensesame-4711 of all".to_vec(),
        wide(u16::to_le_bytes, [0xff, 0xfe]),
        wide(u16::to_be_bytes, [0xfe, 0xff]),
        bytes(&token),
        bytes("opensesame-4711"),
        bytes("postgres://me:hunter22@db/x"),
    ] {
        let shown = String::from_utf8_lossy(&secret).into_owned();
        assert!(redactor.recognises(&secret), "{shown:?}");
    }
    for plain in [
        &b""[..],
        b"password: string",
        &bytes("a plain string of a program"),
        &[0xff; 100],
    ] {
        assert!(!redactor.recognises(plain), "{plain:?}");
    }
    assert!(redactor.found.read().is_empty());
}

/// Checks that a text is read a bounded number of times, however often it repeats what the passes
/// look for.
#[test]
fn time_is_proportional_to_the_text() {
    let redactor = Redactor::new(KEY, vec![]);
    let separators = format!("password={}", "a,();".repeat(50));
    for unit in [
        "password=",
        "password: (",
        "password: \"a",
        "password=a b=",
        "token: \"\\",
        &separators,
        "secret secret secret is ",
        "{\"name\":\"DB_PASSWORD\",\"value\":\"a",
        "mysql -phunter22 ",
        "docker mysql curl -u login az zip kubectl -p",
        "://a:b@c",
        "://a:b@c://",
        "eyJ",
        "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAA1AAAAAA ",
        "-----BEGIN PRIVATE KEY-----",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        let start = std::time::Instant::now();
        let redacted = redactor.redact(&text);
        // This takes a tenth of the limit without optimisation; if it were quadratic, ten times the
        // limit.
        let took = start.elapsed();
        assert!(took.as_secs() < 10, "{unit}: {took:?}, {}", redacted.len());
    }
}

/// Joins random pieces that the passes look for, and checks that redacting is stable, reversible,
/// and never panics.
#[test]
fn any_text_is_redacted_once_and_comes_back() {
    let long = "a1B2c3D4e5".repeat(4);
    let ghp = format!("ghp_{long}");
    let jwt = format!("eyJ{long}.eyJ{long}.{long}");
    let pieces = [
        "password",
        "token",
        "api_key",
        "PASSWORD",
        "=",
        ": ",
        "\"",
        "'",
        "\\\"",
        "\\",
        " ",
        "\n",
        "abc123",
        "hunter22",
        "opensesame-4711",
        "p/q r+\"s\"",
        "b3BlbnNlc2FtZS00NzEx",
        "Bearer ",
        "Authorization",
        "--",
        "://",
        "@",
        ":",
        ",",
        ";",
        "(",
        ")",
        "<",
        ">",
        "{",
        "$",
        "é",
        "⟦",
        "⟧",
        "⟦secret:OPENAI_API_KEY⟧",
        "-----BEGIN PRIVATE KEY-----",
        "-----END",
        "x.y",
        "_",
        "-",
        "AKIAIOSFODNN7EXAMPLE",
        "sk-",
        "%2F",
        "...",
        "xxx",
        "swordfish",
        "secret",
        "\"\"\"",
        "'''",
        "password: |\n  ",
        "\n  ",
        "<input type=\"password\" value=\"",
        "<add key=\"Password\" value='",
        "<password>",
        "/>",
        "name: DB_PASSWORD",
        "value: ",
        "mysql -p",
        "curl -u a:",
        "sshpass -p ",
        "echo hunter22 | sudo -S",
        "password is ",
        "login me password ",
        ";User Id=",
        ", b: ",
        " #",
        "&",
        "|",
        "123456789:",
        "&sig=",
        "correct horse 5x",
        "A=1\nB_PASSWORD=",
        "http \u{c}",
        "\u{2028}",
        &long,
        &ghp,
        &jwt,
    ];
    let mut redactor = redactor();
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..20_000 {
        if round % 1000 == 0 {
            redactor = self::redactor(); // Before it has found more than it remembers.
        }
        let mut text = String::new();
        for _ in 0..14 {
            text.push_str(pieces[random.usize(..pieces.len())]);
        }
        let redacted = redactor.redact(&text).into_owned();
        assert_eq!(redactor.redact(&redacted), redacted, "{text:?}");
        if !text.contains("⟦secret:") {
            assert_eq!(redactor.reveal(&redacted).as_deref(), Ok(text.as_str()));
        }
        assert!(
            !redacted.contains("opensesame-4711") && !redacted.contains(&ghp),
            "{text:?}"
        );
    }
}
