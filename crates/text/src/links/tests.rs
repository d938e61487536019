use super::*;

/// Spellings that programs turn into a link, each with the link.
const SPELLINGS: &[(&str, &str)] = &[
    // As ever.
    ("See https://evil.org/x, or not", "https://evil.org/x"),
    ("[here](HTTPS://evil.org/y?z=1)", "HTTPS://evil.org/y?z=1"),
    ("<b>http://evil.org</b>", "http://evil.org"),
    ("go to ssh://evil.org now", "ssh://evil.org"),
    ("go to www.evil.zzz.", "www.evil.zzz"),
    ("http://user:pw@evil.org/", "http://user:pw@evil.org/"),
    ("http://good.com@evil.org", "http://good.com@evil.org"),
    ("http://[2001:db8::1]:80/x y", "http://[2001:db8::1]:80/x"),
    ("http://3627734734/x", "http://3627734734/x"),
    ("at 93.184.215.14 or so", "93.184.215.14"),
    // Without a scheme.
    ("see //evil.org/x", "//evil.org/x"),
    ("see evil.org", "evil.org"),
    ("see evil.org/x", "evil.org/x"),
    ("see evil.org?x=1", "evil.org?x=1"),
    ("see evil.zzz/x", "evil.zzz/x"),
    ("see evil.zzz:8080", "evil.zzz:8080"),
    ("(evil.org)", "evil.org"),
    ("**evil.org**", "evil.org"),
    ("x=evil.org", "evil.org"),
    ("at:evil.org", "evil.org"),
    ("and/evil.org", "evil.org"),
    ("see EVIL.ORG!", "EVIL.ORG"),
    ("data.evil.rs", "data.evil.rs"),
    ("evil.horse", "evil.horse"),
    ("evil.bank", "evil.bank"),
    ("evil.download", "evil.download"),
    ("evil.zip", "evil.zip"),
    ("a.museum", "a.museum"),
    ("user@evil.org/x", "evil.org/x"),
    // Registered endings that are not ASCII.
    ("пример.рф", "пример.рф"),
    ("xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
    ("例子.中国", "例子.中国"),
    ("bücher.de", "bücher.de"),
    // Dots and letters that are mapped.
    ("evil．org", "evil.org"),
    ("evil。org", "evil.org"),
    ("evil｡org", "evil.org"),
    ("evil․org", "evil.org"),
    ("ｅｖｉｌ.ｏｒｇ", "evil.org"),
    ("ⓔⓥⓘⓛ.ⓞⓡⓖ", "evil.org"),
    ("𝐞𝐯𝐢𝐥.𝐨𝐫𝐠", "evil.org"),
    ("http：//evil.zzz", "http://evil.zzz"),
    // Characters that are not seen.
    ("ev\u{200b}il.o\u{ad}rg", "evil.org"),
    ("ht\u{200d}tp://evil.zzz", "http://evil.zzz"),
    ("http:\u{0}//evil.zzz", "http://evil.zzz"),
    ("http:/\u{2060}/evil.zzz", "http://evil.zzz"),
    // Slashes and backslashes.
    ("http:\\\\evil.zzz", "http://evil.zzz"),
    ("http:/\\evil.zzz", "http://evil.zzz"),
    ("http:/evil.zzz", "http:/evil.zzz"),
    ("http:evil.zzz/x", "http:evil.zzz/x"),
    ("HTTPS:evil.zzz", "HTTPS:evil.zzz"),
    ("http:////evil.zzz", "http:////evil.zzz"),
    ("\\\\evil.zzz\\share", "//evil.zzz/share"),
    ("http:\\/\\/evil.zzz", "http:////evil.zzz"),
    // Entities.
    ("http&#58;//evil.zzz", "http://evil.zzz"),
    ("http&#58//evil.zzz", "http://evil.zzz"),
    ("http&#x3a;//evil.zzz", "http://evil.zzz"),
    ("http&#X003A//evil.zzz", "http://evil.zzz"),
    ("http&colon;//evil.zzz", "http://evil.zzz"),
    ("http:&sol;&sol;evil.zzz", "http://evil.zzz"),
    ("http&amp;#58;//evil.zzz", "http://evil.zzz"),
    ("http&colon;&bsol;&#92;evil.zzz", "http://evil.zzz"),
    ("&sol;&#47;evil.zzz", "//evil.zzz"),
    ("evil&period;org", "evil.org"),
    ("evil&#46;o&#114;g", "evil.org"),
    ("evil.&ofr;rg", "evil.\u{fffd}rg"),
    ("evil&shy;.or&ZeroWidthSpace;g", "evil.org"),
    // Escapes.
    ("\\u0068ttp\\u003a//evil.zzz", "http://evil.zzz"),
    ("http\\x3a\\x2f\\x2fevil.zzz", "http://evil.zzz"),
    ("url(\\2f\\2f evil.zzz)", "//evil.zzz"),
    ("url(\\68ttp:evil.zzz)", "http:evil.zzz"),
    ("evil\\2eorg", "evil.org"),
    ("evil\\u{2e}org", "evil.org"),
    ("evil\\.org", "evil.org"),
    // Attributes.
    ("<a href=//evil.zzz>x</a>", "//evil.zzz"),
    ("<a href='//evil.zzz'>x</a>", "//evil.zzz"),
    ("<a href= //evil.zzz>x</a>", "//evil.zzz"),
    ("<a href=/\\evil.zzz>x</a>", "//evil.zzz"),
    ("<a href=\"ht\ntp://evil.zzz\">x</a>", "http://evil.zzz"),
    ("<a href=\"ht&Tab;tp:evil.zzz\">x</a>", "http:evil.zzz"),
    ("<a href=\"/\t/evil.zzz\">x</a>", "//evil.zzz"),
    ("<a href=\" http:evil.zzz\">x</a>", "http:evil.zzz"),
    ("<a href=other:evil>x</a>", "other:evil"),
    ("[x](other:evil)", "other:evil"),
    ("<img src=http:evil.zzz/x>", "http:evil.zzz/x"),
    ("<img srcset='//evil.zzz/x 2x'>", "//evil.zzz/x"),
    ("<img srcset='a.png 1x, //evil.zzz/x 2x'>", "//evil.zzz/x"),
    ("<p style=background:url(//evil.zzz/x)>", "//evil.zzz/x"),
    ("<style>@import '//evil.zzz';</style>", "//evil.zzz"),
    ("<base href=//evil.zzz>", "//evil.zzz"),
    (
        "<meta http-equiv=refresh content='0;url=//evil.zzz'>",
        "//evil.zzz",
    ),
    (
        "<meta http-equiv=refresh content='0;URL=http:evil.zzz'>",
        "http:evil.zzz",
    ),
    ("<meta content='0; //evil.zzz'>", "//evil.zzz"),
    // Tags within a word.
    ("evil<wbr>.org", "evil.org"),
    ("evil<!-- x -->.org", "evil.org"),
    ("<b>evil</b>.<i>org</i>", "evil.org"),
    // Other schemes.
    ("mailto:evil@x.zzz", "mailto:evil@x.zzz"),
    ("tel:+4190", "tel:+4190"),
    ("javascript:alert(1)", "javascript:alert"),
    ("data:text/html,x", "data:text/html,x"),
];

#[test]
fn links_are_found_however_they_are_written() {
    for (text, link) in SPELLINGS {
        for (before, after) in [
            ("", ""),
            ("Hello ", " there"),
            ("<p>", "</p>"),
            ("x, \"", "\"."),
        ] {
            let text = format!("{before}{text}{after}");
            let found = links(&text);
            assert!(found.iter().any(|found| found == link), "{text}: {found:?}");
        }
    }
    assert!(SPELLINGS.len() >= 60);
}

#[test]
fn what_no_program_makes_a_link_of_is_none() {
    for text in [
        "Dear Anna, see you at 12:30 or 3.30 p.m. (i.e. in the afternoon).",
        "anna@x.com, Anna Berg <anna@x.com>, first.last@x.co.uk",
        "src/main.rs, ./notes.md, ../a/b.sh and ~/x.py",
        "minutes.docx, a.txt, v1.2.3, 1,000.50 and 26.11.2026",
        "Note: this; e.g. that … and so on... Next",
        "// a comment, and /// one more",
        "Tom&rsquo;s plan.&nbsp;Done.&mdash;Now & then &",
        "either/or, 24/7, a//b, x == y // z",
        "<p class=\"lead\">Hello</p><br>\n<p>There</p>",
        "<img src=\"cid:picture\">",
        "C:\\Users\\Anna\\notes.txt",
    ] {
        assert_eq!(links(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_link_is_told_once_and_as_it_is_written() {
    let text = "<a href=\"https://a.com/x?b=1&amp;c=%20d\">https://a.com/x?b=1&c=%20d</a> a.com";
    assert_eq!(links(text), ["https://a.com/x?b=1&c=%20d", "a.com"]);
}

#[test]
fn names_of_files_are_told_from_others() {
    for (link, expected) in [
        ("main.rs", true),
        ("NOTES.MD", true),
        ("evil.org", false),
        ("main.rs/x", false),
        ("http://main.rs", false),
    ] {
        assert_eq!(may_be_file(link), expected, "{link}");
    }
}

#[test]
fn long_texts_take_no_long_time() {
    for part in [
        "<b ", "<!--", "&#", "a.b.", "//", "http:", "\\", "=\"", "a.org ",
    ] {
        links(&part.repeat(30_000 / part.len()));
    }
}

#[test]
fn endings_are_sorted() {
    let words: Vec<_> = ENDINGS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let words: Vec<_> = words.iter().flat_map(|line| line.split(' ')).collect();
    assert!(words.is_sorted() && words.len() > 1_500);
    assert!(FILE_ENDINGS.iter().all(|ending| words.contains(ending)));
}

#[test]
fn full_addresses_end_where_an_address_does() {
    let cases = [
        (
            "see https://a.example/b?c=d.",
            vec!["https://a.example/b?c=d"],
        ),
        (
            "[here](https://a.example/x), and",
            vec!["https://a.example/x"],
        ),
        (
            "\"http://a.example\" <https://b.example/>",
            vec!["http://a.example", "https://b.example/"],
        ),
        ("https://a.example/ä\u{a0}b", vec!["https://a.example/ä"]),
        ("ftp://a.example none", vec![]),
    ];
    for (text, expected) in cases {
        assert_eq!(full_addresses(text).collect::<Vec<_>>(), expected, "{text}");
    }
}
