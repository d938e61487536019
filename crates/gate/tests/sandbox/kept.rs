//! Folders of which a part must stay as it is.

use std::fs;

use super::{
    everyday,
    start::{Around, User},
    world::World,
};

/// Each succeeds only if an attempt worked.
const ATTACKS: &[&str] = &[
    "echo x > .git/hooks/post-commit",
    "echo x >> .git/config",
    ": > .git/config",
    "rm .git/config",
    "rm -rf .git/hooks",
    "mv .git away",
    "mv sub away",
    "mv .git/config here",
    "mkdir d && mv -T d .git",
    "touch c && mv c .git/config",
    "ln .git/config linked",
    "touch e && ln e .git/linked",
    "ln -s .git/config l && echo x >> l",
    "ln -s .git/hooks h && touch h/new",
    "ln -s .git/new n && echo x > n",
    "chmod 777 .git/config",
    "touch -d yesterday .git/config",
    "setfattr -n user.x -v y .git/config",
    "chown :0 .git/config && [ $(id -u) != 0 ]",
    "truncate -s 0 .git/config",
    "cd .git && echo x > ../sub/.git/config",
    "exec 3<.git && touch /proc/self/fd/3/new",
    "mkdir sub/a && cd sub/a && echo x > ../.git/config",
    "mkfifo .git/pipe",
    "mkdir .git/new",
    "rmdir .git/hooks",
    "mv --exchange .git src",
    "perl -e 'rename \"src\", \".git\" or exit 1'",
    "perl -e 'truncate \".git/config\", 0 or exit 1'",
    "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\".git/s\")) or exit 1'",
    "python3 -c 'import os; os.open(\".git\", os.O_TMPFILE | os.O_RDWR)'",
    "touch $WORLD/outside/new",
    "mv src $WORLD/outside/new",
    "ln -s $WORLD/outside o && touch o/new",
    "rm -rf $WORLD/workspace",
];

/// Everyday commands that work beside them, in a folder that has no rule of its own.
const EVERYDAY: &str = "
    echo a > new && echo b >> new && [ \"$(cat new)\" = $'a\\nb' ] && mv new newer && cp newer top &&
    mkdir -p fresh/er && echo x > fresh/er/file && mv fresh moved && rm -r moved &&
    echo changed > file && sed -i s/changed/again/ file && [ $(cat file) = again ] &&
    ln -s file link && echo y > link && [ $(cat file) = y ] && ln file hard && rm hard link &&
    (umask 027; touch private; mkdir shut) && [ $(stat -c %a private shut | tr '\\n' ,) = 640,750, ] &&
    chmod 700 private && touch -d yesterday private && truncate -s 5 private && [ $(stat -c %s private) = 5 ] &&
    mkfifo p && (echo x > p &) && [ $(cat p) = x ] && echo x > src/new && mv src/new sub/new &&
    mv sub/new . && rm new p && set -C && ! echo x 2>/dev/null > file && set +C &&
    [ $(cat .git/config) = real ] && [ $(cat sub/.git/config) = real ] && mv -T src source && rm -r source && rm file
";

pub(crate) fn stays_as_it_is(user: User, around: Around) {
    let mut world = World::new(user, around);
    for folder in [
        "workspace/.git/hooks",
        "workspace/sub/.git",
        "workspace/src",
    ] {
        fs::create_dir_all(world.path(folder)).unwrap();
    }
    for (file, text) in [
        (".git/config", "real"),
        ("sub/.git/config", "real"),
        ("file", "x"),
        ("src/code", "x"),
    ] {
        fs::write(world.path("workspace").join(file), text).unwrap();
    }
    world.give("workspace");
    world.kept = vec![
        world.path("workspace/.git"),
        world.path("workspace/sub/.git"),
    ];
    let mut script = String::new();
    for attack in ATTACKS {
        let quoted = attack.replace('\'', r"'\''");
        script.push_str(&format!(
            "if bash -c '{quoted}' >/dev/null 2>&1; then echo 'BROKEN: {quoted}'; fi\n"
        ));
    }
    script.push_str("echo done\n");
    // Some leave what they made, so each part has a world of its own.
    let ran = world.script(&format!("({EVERYDAY}) || echo BROKEN; echo done"));
    assert_eq!(ran.output, "done\n", "{ran:?}");
    fs::create_dir_all(world.path("workspace/src")).unwrap();
    world.give("workspace");
    let ran = world.script(&script);
    assert_eq!(ran.output, "done\n", "{ran:?}");
    world.check_unchanged();
    for folder in ["workspace/.git", "workspace/sub/.git"] {
        let text = fs::read_to_string(world.path(folder).join("config")).unwrap();
        assert_eq!(text, "real", "{folder}");
    }
    let mut names: Vec<_> = fs::read_dir(world.path("workspace/.git"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["config", "hooks"]);
}

/// Everyday commands work in a workspace without a rule of its own as in one with a rule.
pub(crate) fn keeps_nobody_from_working(user: User, around: Around) {
    everyday::works(user, around, |world| {
        fs::create_dir(world.path("workspace/.kept")).unwrap();
        world.kept = vec![world.path("workspace/.kept")];
    });
}

/// No command runs where hidden files of the workspace cannot be kept from it.
pub(crate) fn nothing_runs_beside_what_is_hidden(user: User, around: Around) {
    let world = World::new(user, around);
    fs::write(world.path("workspace/secret"), "decoy").unwrap();
    let mut containment = world.containment();
    containment.hidden.push(world.path("workspace/secret"));
    let ran = world.start(|start| {
        let mut start = start.clone();
        start.containment = &containment;
        start.script("echo started; cat secret")
    });
    assert!(ran.output.contains("takes namespaces"), "{ran:?}");
    assert!(!ran.output.contains("started"), "{ran:?}");
}
