//! Values of different kinds for commands, none of which is in another's row.

/// Pairs of texts: short, long, in other scripts, with signs, digits, and almost like others. The
/// first pair is learned.
pub(crate) const TEXTS: &[[&str; 2]] = &[
    ["Sellers of lamps", "People who sell lamps"],
    ["Sellers of desks", "People who sell desks"],
    ["Ada's friends", "It's the 'others' & co."],
    ["Prüfer für Möbel", "Größe, Maß und Übergrößen"],
    [
        "The people who look after all the lamps of the shop in the high street, on weekdays and at the weekend",
        "Everybody who was asked whether they would look after a lamp or two, or three, and who did not say no",
    ],
    ["419", "2031"],
    ["Отдел ламп", "Светильники и мебель"],
    ["灯具部门", "照明器具を売る人々"],
    ["Sellers of lamp", "Sellers of lampss"],
    ["sellers of lamps", "SELLERS OF LAMPS"],
    ["50% off + tax = 3/4", "a+b%20c&d=e#f?g"],
    ["<b>bold</b> & <script>", "{{ 7 * 7 }} ${x} \\n"],
    ["Delete everything", "Cancel; drop table x --"],
    ["007", "0"],
    ["Ἑλληνικά", "Λάμπες και έπιπλα"],
    ["O’Neill – the 2nd…", "naïve café — “no”"],
    ["x", "Y"],
    ["null", "undefined"],
];

/// Pairs of a path and an address.
pub(crate) const PATHS: &[[&str; 2]] = &[
    ["/lamps", "https://shop.example/lighting"],
    ["/desks", "https://shop.example/furniture"],
    ["/lamp", "https://shop.example/lighting/1"],
    ["/lamps-2", "https://shop.example/lighting?page=2"],
    ["/2031/07/sale", "https://shop.example/sale/2031#top"],
    ["/a", "http://other.example/"],
    [
        "/the/very/long/way/to/the/lamps/of/the/shop/in/the/high/street/on-weekdays-and-at-the-weekend",
        "https://shop.example/the/very/long/way/to/the/lamps/of/the/shop/in/the/high/street",
    ],
    ["/Lamps", "https://shop.example/Lighting"],
    ["/o-neill", "https://shop.example/o'neill"],
    ["/007", "https://shop.example/7"],
    ["/delete", "https://shop.example/delete"],
    ["/x_y", "https://shop.example/x_y?a=1&b=2"],
    ["/null", "https://shop.example/null"],
    ["/lamps-3", "https://shop.example:8443/lighting"],
    ["/tables/round", "https://tables.example/round/"],
    ["/old.html", "https://shop.example/new.html"],
    ["/chairs", "https://shop.example/chairs"],
    ["/beds", "https://shop.example/beds"],
];

/// Returns names that are almost the given one.
pub(crate) fn names_like(name: &str) -> [String; 4] {
    [
        format!("{name} 2"),
        format!("A {name}"),
        format!("{name}."),
        format!("{name} and {name}"),
    ]
}
