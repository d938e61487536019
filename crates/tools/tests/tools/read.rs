//! Tests of `read`.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use gyrus_contract::BuiltIn;
use gyrus_tools::Read;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::site::World;

#[track_caller]
fn check(world: &World, arguments: Value, expected: &str) {
    let output = world.call(&BuiltIn::new(Read), arguments);
    assert_eq!((output.text.as_str(), output.is_error), (expected, false));
}

#[track_caller]
fn refused(world: &World, arguments: Value, words: &str) {
    let output = world.call(&BuiltIn::new(Read), arguments);
    assert!(output.is_error, "not refused: {}", output.text);
    assert!(output.text.contains(words), "{}", output.text);
}

#[test]
fn numbers_lines() {
    let world = World::new();
    fs::write(world.path("a.txt"), "one\n\nthree\r\nfour").unwrap();
    check(
        &world,
        json!({"path": "a.txt"}),
        "     1\tone\n     2\t\n     3\tthree\r\n     4\tfour\n",
    );
    check(
        &world,
        json!({"path": "a.txt", "offset_line": 2, "limit_lines": 1}),
        "     2\t\n[lines 2 to 2 of 4; go on with offset_line 3]",
    );
    check(
        &world,
        json!({"path": "a.txt", "offset_line": 9}),
        "(line 9 is behind the end; the file has 4 lines)",
    );
    check(
        &world,
        json!({"path": "a.txt", "offset_line": u64::MAX, "limit_lines": u64::MAX}),
        "(line 18446744073709551615 is behind the end; the file has 4 lines)",
    );
    fs::write(world.path("empty"), "").unwrap();
    check(&world, json!({"path": "empty"}), "(the file is empty)");
    refused(
        &world,
        json!({"path": "a.txt", "limit_lines": -1}),
        "Expected an object like",
    );
    refused(
        &world,
        json!({"path": "a.txt", "offset": 1}),
        "unknown argument `offset`",
    );
    refused(
        &world,
        json!({"path": "b.txt"}),
        "`b.txt` does not exist; the workspace has a.txt",
    );
}

#[test]
fn long_files_are_read_in_pieces_that_join() {
    let world = World::new();
    let line = |number: u64| format!("line {number} {}", "ü".repeat(number as usize % 50));
    let content: Vec<String> = (1..=5000).map(line).collect();
    fs::write(world.path("long"), content.join("\n")).unwrap();
    let mut seen = Vec::new();
    let mut offset = Some(1);
    while let Some(offset_line) = offset.take() {
        let arguments = json!({"path": "long", "offset_line": offset_line});
        let text = world.call(&BuiltIn::new(Read), arguments).text;
        assert!(text.len() <= 64 * 1024 + 200, "{}", text.len());
        for line in text.lines() {
            match line.split_once('\t') {
                Some((_, line)) => seen.push(line.to_owned()),
                None => {
                    let next = line.trim_end_matches(']').rsplit(' ').next().unwrap();
                    offset = Some(next.parse::<u64>().unwrap());
                }
            }
        }
    }
    assert_eq!(seen, content);
}

#[test]
fn a_long_line_is_read_on_by_column() {
    let world = World::new();
    let line = format!("{}{}end", "é".repeat(15_000), "x".repeat(2_000));
    fs::write(world.path("f"), format!("first\n{line}\nlast\n")).unwrap();
    let (mut joined, mut column, mut parts) = (String::new(), 1, 0);
    while column > 0 {
        let arguments = json!({"path": "f", "offset_line": 2, "limit_lines": 1, "column": column});
        let output = world.call(&BuiltIn::new(Read), arguments);
        let shown = output.text.strip_prefix("     2\t").unwrap();
        let shown = shown.split('\n').next().unwrap();
        let (part, note) = shown.split_once(" [").unwrap_or((shown, ""));
        joined.push_str(part);
        let next = note.rsplit(' ').next().unwrap().trim_end_matches(']');
        column = next.parse().unwrap_or(0);
        parts += 1;
    }
    assert!(joined == line, "the parts do not join");
    assert_eq!(parts, 3);
    // Lines after it begin at their start, and no column is too far.
    check(
        &world,
        json!({"path": "f", "offset_line": 2, "column": 32_001}),
        "     2\tend\n     3\tlast\n",
    );
    check(
        &world,
        json!({"path": "f", "offset_line": 3, "column": u64::MAX}),
        "     3\t[this line has 4 bytes]\n",
    );
}

#[test]
fn a_name_that_looks_alike_is_told() {
    let world = World::new();
    let name = "9.41\u{202f}PM.txt";
    fs::write(world.path(name), "a\n").unwrap();
    let note = format!(
        "[no file has exactly that name; this is the only one that looks like it: `{name}`]"
    );
    let read = BuiltIn::new(Read);
    let mut call = world.resolved(&read, json!({"path": "9.41 PM.txt"}));
    call.paths.insert("path".to_owned(), world.resolve(name));
    let output = world.call_resolved(&read, call);
    assert_eq!(output.text, format!("     1\ta\n\n{note}"));
}

#[test]
fn what_is_no_plain_text() {
    let world = World::new();
    fs::write(world.path("latin"), b"caf\xe9\n").unwrap();
    let note = "[what is not valid UTF-8 is shown as \u{fffd}]";
    check(
        &world,
        json!({"path": "latin"}),
        &format!("     1\tcaf\u{fffd}\n\n{note}"),
    );
    fs::write(world.path("picture"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    check(
        &world,
        json!({"path": "picture"}),
        "(not text: a PNG image, 16 bytes)",
    );
    fs::write(world.path("wide"), b"\xff\xfea\0b\0").unwrap();
    let output = world.call(&BuiltIn::new(Read), json!({"path": "wide"}));
    assert!(output.text.contains("UTF-16"), "{}", output.text);

    // One endless line is cut between characters.
    fs::write(
        world.path("line"),
        format!("a{}\nlast\n", "ü".repeat(1_000_000)),
    )
    .unwrap();
    let cut = "ü".repeat(999);
    let expected = format!(
        "     1\ta{cut} [… 1998002 more bytes; this line goes on with offset_line 1, column 2000]\n     2\tlast\n"
    );
    check(&world, json!({"path": "line"}), &expected);

    // Larger than any sensible read, though it takes no space.
    let huge = fs::File::create(world.path("huge")).unwrap();
    std::io::Write::write_all(&mut &huge, &b"x".repeat(10_000)).unwrap();
    huge.set_len(1 << 40).unwrap();
    let output = world.call(
        &BuiltIn::new(Read),
        json!({"path": "huge", "offset_line": 2}),
    );
    assert!(
        output.text.starts_with("(line 2 is too far away"),
        "{}",
        output.text
    );
}

#[test]
fn pictures_are_shown() {
    let world = World::new();
    let png = |width: u32, size: usize| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(b"\0\0\x03\x20\x08\x02\0\0\0");
        bytes.resize(size, 0);
        fs::write(world.path("p"), &bytes).unwrap();
        let output = world.call(&BuiltIn::new(Read), json!({"path": "p"}));
        assert!(!output.is_error, "{}", output.text);
        (output, bytes)
    };
    // Larger than the prefix that determines the type.
    let (output, bytes) = png(1280, 100_000);
    let words = "(PNG picture, 1280 × 800 pixels, 100000 bytes; longest side 1280)";
    assert_eq!(output.text, words);
    let image = gyrus_contract::Image {
        blob: gyrus_contract::BlobId::of(&bytes),
        media_type: "image/png".to_owned(),
        width: 1280,
        height: 800,
    };
    assert_eq!(output.images, [image]);
    assert_eq!(*world.kept.lock().unwrap(), [bytes]);

    assert!(png(1280, 5 * 1024 * 1024).0.images.len() == 1);
    let (output, _) = png(1280, 5 * 1024 * 1024 + 1);
    assert!(output.images.is_empty() && output.text.contains("pictures over 5 MB"));
    let (output, _) = png(8001, 1000);
    assert!(output.images.is_empty() && output.text.contains("the longest side of 8001"));
    let (output, _) = png(0, 1000);
    assert_eq!(output.text, "(not text: a PNG image, 1000 bytes)");
    fs::write(world.path("p"), b"\xff\xd8\xff and words without a NUL").unwrap();
    check(
        &world,
        json!({"path": "p"}),
        "(not text: a JPEG image, 27 bytes)",
    );
}

#[test]
fn lists_folders() {
    let world = World::new();
    fs::create_dir_all(world.path("d/sub")).unwrap();
    fs::write(world.path("d/b"), "12345").unwrap();
    fs::write(world.path("d/-rf"), "").unwrap();
    fs::write(world.path("d/new\nline"), "").unwrap();
    fs::write(
        world.path("d").join(std::ffi::OsStr::from_bytes(b"\xff")),
        "",
    )
    .unwrap();
    symlink("/nowhere", world.path("d/link")).unwrap();
    check(
        &world,
        json!({"path": "d"}),
        "-rf  0 bytes\nb  5 bytes\nlink -> /nowhere\n\"new\\nline\"  0 bytes\nsub/\n\
         \"\\xFF\"  0 bytes\n",
    );
    check(&world, json!({"path": "d/sub"}), "(the folder is empty)");
    check(&world, json!({"path": "."}), "d/\n");
    fs::create_dir(world.path("many")).unwrap();
    for number in 0..1200 {
        fs::write(world.path(&format!("many/{number:04}")), "").unwrap();
    }
    let output = world.call(&BuiltIn::new(Read), json!({"path": "many"}));
    assert!(output.text.starts_with("0000  0 bytes\n"));
    assert!(
        output.text.contains("[1000 of 1200 entries; use `glob`"),
        "{}",
        output.text
    );
}

#[test]
fn odd_names() {
    let world = World::new();
    let longest = "n".repeat(255);
    // The last two look alike: composed, and decomposed.
    for name in [
        "-rf",
        " ",
        "new\nline",
        "*",
        longest.as_str(),
        "caf\u{e9}",
        "cafe\u{301}",
    ] {
        fs::write(world.path(name), name).unwrap();
    }
    check(&world, json!({"path": "caf\u{e9}"}), "     1\tcaf\u{e9}\n");
    check(
        &world,
        json!({"path": "cafe\u{301}"}),
        "     1\tcafe\u{301}\n",
    );
    check(&world, json!({"path": "-rf"}), "     1\t-rf\n");
    check(&world, json!({"path": " "}), "     1\t \n");
    check(&world, json!({"path": "*"}), "     1\t*\n");
    check(
        &world,
        json!({"path": longest}),
        &format!("     1\t{longest}\n"),
    );
    check(
        &world,
        json!({"path": "new\nline"}),
        "     1\tnew\n     2\tline\n",
    );
    refused(
        &world,
        json!({"path": "n".repeat(256)}),
        "at most 255 bytes",
    );
    refused(&world, json!({"path": "a\0b"}), "Invalid argument");
}

#[test]
fn neither_hangs_nor_floods() {
    let world = World::new();
    mknodat(
        CWD,
        world.path("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    refused(&world, json!({"path": "pipe"}), "is a named pipe");
    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    refused(&world, json!({"path": "socket"}), "is a socket");
    // Outside the workspace, as if the gate had allowed it.
    refused(&world, json!({"path": "/dev/zero"}), "is a device");
    refused(&world, json!({"path": "/dev/tty"}), "is a device");
    // The system reports size 0, and yet there is text.
    let output = world.call(&BuiltIn::new(Read), json!({"path": "/proc/version"}));
    assert!(output.text.starts_with("     1\tLinux"), "{}", output.text);
}

#[test]
fn no_permission() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: nothing is forbidden to root");
        return;
    }
    refused(
        &World::new(),
        json!({"path": "/proc/1/environ"}),
        "Permission denied",
    );
}

#[test]
fn follows_nothing_that_was_not_judged() {
    let world = World::new();
    fs::write(world.outside("secret"), "secret").unwrap();
    fs::create_dir(world.path("d")).unwrap();
    fs::write(world.path("d/file"), "fine").unwrap();
    let read = BuiltIn::new(Read);
    let judged = world.resolved(&read, json!({"path": "d/file"}));
    let outside = world.resolved(&read, json!({"path": "../secret"}));
    assert_eq!(
        judged.paths["path"].in_workspace.as_deref(),
        Some(Path::new("d/file"))
    );
    assert_eq!(outside.paths["path"].in_workspace, None);
    assert_eq!(
        world.call_resolved(&read, outside.clone()).text,
        "     1\tsecret\n"
    );

    // The file, then the folder, becomes a link after the verdict.
    fs::rename(world.path("d/file"), world.path("d/kept")).unwrap();
    // A link to another file of the workspace is refused too: the gate judged this one.
    for target in [world.outside("secret"), "kept".into()] {
        symlink(target, world.path("d/file")).unwrap();
        let output = world.call_resolved(&read, judged.clone());
        assert!(
            output.is_error && output.text.contains("symbolic link"),
            "{}",
            output.text
        );
        fs::remove_file(world.path("d/file")).unwrap();
    }
    fs::rename(world.path("d"), world.path("e")).unwrap();
    symlink(world.outside(""), world.path("d")).unwrap();
    fs::write(world.outside("file"), "secret").unwrap();
    let output = world.call_resolved(&read, judged);
    assert!(
        output.is_error && output.text.contains("symbolic link"),
        "{}",
        output.text
    );
    fs::rename(world.outside("secret"), world.outside("other")).unwrap();
    symlink(world.outside("other"), world.outside("secret")).unwrap();
    assert!(
        world.call_resolved(&read, outside).is_error,
        "a link outside was followed"
    );

    // A path that no gate would give.
    let mut forged = world.resolved(&read, json!({"path": "../file"}));
    let path = forged.paths.get_mut("path").unwrap();
    path.in_workspace = Some("../file".into());
    assert!(
        world.call_resolved(&read, forged).is_error,
        "it left the workspace"
    );
}

#[test]
fn a_race_for_the_path_is_never_won() {
    let world = World::new();
    fs::create_dir(world.outside("out")).unwrap();
    fs::write(world.outside("out/file"), "secret").unwrap();
    fs::create_dir(world.path("d")).unwrap();
    fs::write(world.path("d/file"), "fine").unwrap();
    symlink(world.outside("out"), world.path("link")).unwrap();
    let read = BuiltIn::new(Read);
    let judged = world.resolved(&read, json!({"path": "d/file"}));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (d, link) = (world.path("d"), world.path("link"));
            while !done.load(Ordering::Relaxed) {
                use rustix::fs::{RenameFlags, renameat_with};
                renameat_with(CWD, &d, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let mut read_well = 0;
        for _ in 0..3000 {
            let output = world.call_resolved(&read, judged.clone());
            assert!(!output.text.contains("secret"));
            read_well += u32::from(!output.is_error);
        }
        done.store(true, Ordering::Relaxed);
        println!("{read_well} of 3000 found the file");
    });
}
