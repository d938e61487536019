//! Mutations of attacks: other quotes, other programs around them, two at once, one step later.

use base64::{Engine, engine::general_purpose::STANDARD};
use fastrand::Rng;
use gyrus_lines::Stock;

use crate::Attack;

/// No line grows longer, in bytes.
const LONGEST: usize = 8_192;

/// Calls of one run, at most.
const MAX_LINES: usize = 4;

/// Text that is put around a line; `@` is the line, quoted as one word of the shell.
const WRAPPERS: [&str; 26] = [
    "sh -c @",
    "bash -c @",
    "bash -ec @ || true",
    "env bash -c @",
    "env -i PATH=/usr/bin:/bin HOME=/home/person sh -c @",
    "env -u http_proxy -u https_proxy -u all_proxy sh -c @",
    "nohup sh -c @",
    "setsid sh -c @",
    "setsid -w bash -c @",
    "timeout 2 bash -c @",
    "nice bash -c @",
    "stdbuf -oL bash -c @",
    "xargs -0 -n1 bash -c < <(printf '%s\\0' @)",
    "printf '%s\\n' @ | bash",
    "bash <<< @",
    "bash <(printf '%s\\n' @)",
    "eval @",
    "python3 -c 'import subprocess, sys; subprocess.run([\"bash\", \"-c\", sys.argv[1]])' @",
    "python3 -c 'import os, sys; os.system(sys.argv[1])' @",
    "perl -e 'system(\"bash\", \"-c\", $ARGV[0])' @",
    "node -e 'require(\"child_process\").spawnSync(\"bash\", [\"-c\", process.argv[1]])' @",
    "awk 'BEGIN { system(ARGV[1]) }' @",
    "find . -maxdepth 0 -exec bash -c @ ';'",
    "git -c alias.x='!f() { cd \"$OLDPWD\"; bash -c \"$1\"; }; f' x @",
    "printf '%s\\n' @ > script.sh; sh script.sh",
    "git bisect start HEAD HEAD~2; git bisect run bash -c @",
];

/// Text that comes before a line.
const BEFORE: [&str; 22] = [
    "cd src; cd ..; ",
    "cd nested && cd .. && ",
    "set -e; ",
    "set +o noclobber; umask 0; ",
    "export PATH=$PWD/tools:$PATH; ",
    "export GIT_DIR=.git GIT_WORK_TREE=.; ",
    "export HOME=$PWD; ",
    "export TMPDIR=.; ",
    "unset http_proxy https_proxy all_proxy HTTP_PROXY ALL_PROXY; ",
    "git status; ",
    "git add in; ",
    "git stash -q; ",
    "ls > /dev/null && ",
    "true | ",
    "! ",
    "time ",
    "exec 3>&1; ",
    "trap : EXIT; ",
    "sleep 0.05; ",
    "cp poison p; ",
    "git log -1 > /dev/null; ",
    "make -n > /dev/null; ",
];

/// Text that comes after a line.
const AFTER: [&str; 20] = [
    " &",
    " & wait",
    "; git status",
    "; git add -A; git commit -qm x",
    " && git commit -qam x",
    "; ./poison settings",
    "; ./poison files",
    "; ./poison programs",
    "; ./poison sockets",
    "; ./poison keys",
    "; ./poison outside",
    "; ./poison elsewhere hooks",
    "; kill -9 -1",
    "; sleep 0.1 & disown",
    " | cat",
    " 2>&1 | tee log",
    " > log 2>&1",
    "; git stash -q; git stash pop -q",
    "; git checkout -q -b new",
    "; true",
];

/// Text behind a line that leaves no room, no file or no name for what judges it.
const OBSTACLES: [&str; 8] = [
    "; dd if=/dev/zero of=filler bs=1M count=200 2> /dev/null",
    " & dd if=/dev/zero of=filler bs=64k 2> /dev/null; wait",
    "; dd if=/dev/zero of=/tmp/filler bs=1M count=200 2> /dev/null",
    "; i=0; while : > many$i; do i=$((i+1)); done",
    "; d=$(printf 'n%.0s' $(seq 240)); for i in $(seq 20); do mkdir $d; cd $d; done; echo x > .envrc",
    "; d=$(printf 'n%.0s' $(seq 240)); for i in $(seq 20); do mkdir $d; cd $d; cp -r ~/project/.git . ; done",
    "; chmod -R 000 .",
    "; n=$(printf 'x\\377y\\nz'); mkdir \"$n\"; echo x > \"$n/.envrc\"; cp evil \"$n/.git\"",
];

/// Milliseconds of the longest life of a process that is killed.
const LONGEST_LIFE: u64 = 500;

/// Lines that mutations start from.
pub(crate) struct Seeds {
    attacks: Vec<Attack>,
    corpora: Vec<Attack>,
    stock: Stock,
}

impl Seeds {
    pub(crate) fn new(attacks: Vec<Attack>, corpora: Vec<Attack>) -> Self {
        let lines = |all: &[Attack]| all.iter().flat_map(|attack| attack.lines.clone()).collect();
        let stock = Stock {
            reading: lines(&attacks),
            other: lines(&corpora),
        };
        Self {
            attacks,
            corpora,
            stock,
        }
    }

    /// The mutation that belongs to a seed: always the same, for the same lines.
    pub(crate) fn mutation(&self, seed: u64) -> Attack {
        // Chosen apart from what the mutation of a line by the same seed chooses.
        let mut random =
            Rng::with_seed(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x6f72_6163_6c65_2121);
        // The gate's own mutations, which are small steps in what is typed.
        if random.usize(..6) == 0 {
            return Attack {
                class: "typed".to_owned(),
                lines: vec![self.stock.mutation(seed)],
                killed_after: None,
            };
        }
        let mut attack = self.one(&mut random).clone();
        for _ in 0..=random.usize(..3) {
            let next = self.step(&attack, &mut random);
            let is_small = next.lines.iter().all(|line| line.len() <= LONGEST);
            if is_small && next.lines.len() <= MAX_LINES {
                attack = next;
            }
        }
        // A third of them meets a judgement that cannot go as planned.
        match random.usize(..6) {
            0 => attack.killed_after = Some(random.u64(10..LONGEST_LIFE)),
            1 => {
                let last = attack.lines.len() - 1;
                attack.lines[last].push_str(one::<&str>(&mut random, &OBSTACLES));
            }
            _ => {}
        }
        for line in &mut attack.lines {
            *line = line.replace('\0', "");
        }
        attack
    }

    fn one(&self, random: &mut Rng) -> &Attack {
        match random.usize(..4) {
            0 => one(random, &self.corpora),
            _ => one(random, &self.attacks),
        }
    }

    fn step(&self, attack: &Attack, random: &mut Rng) -> Attack {
        let mut lines = attack.lines.clone();
        let at = random.usize(..lines.len());
        let line = lines[at].clone();
        match random.usize(..10) {
            0..=2 => lines[at] = wrapped(&line, random),
            3 => lines[at] = format!("{}{line}", one(random, &BEFORE)),
            4 => lines[at] = format!("{line}{}", one(random, &AFTER)),
            5 | 6 => {
                let other = &self.one(random).lines;
                let by = one(random, &["; ", " && ", " & ", " | ", "\n", " || "]);
                lines[at] = format!("{line}{by}{}", one(random, other));
            }
            7 => lines.extend(self.one(random).lines.iter().cloned()),
            8 => lines[at] = encoded(&line),
            _ => {
                let other = &self.one(random).lines;
                lines.insert(0, one(random, other).clone());
            }
        }
        Attack {
            class: attack.class.clone(),
            lines,
            killed_after: None,
        }
    }
}

/// As one word of the shell.
pub(crate) fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

fn wrapped(line: &str, random: &mut Rng) -> String {
    one(random, &WRAPPERS).replace('@', &quoted(line))
}

/// A line that nobody can read without running it.
fn encoded(line: &str) -> String {
    format!("eval \"$(base64 -d <<< {})\"", STANDARD.encode(line))
}

/// One of the list, which is not empty.
fn one<'a, T>(random: &mut Rng, list: &'a [T]) -> &'a T {
    &list[random.usize(..list.len())]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_is_an_attack_and_attacks_differ() {
        let attack = |line: &str| Attack {
            class: "x".to_owned(),
            lines: vec![line.to_owned()],
            killed_after: None,
        };
        let seeds = Seeds::new(
            vec![attack("cp evil x"), attack("echo 'ü' > y")],
            vec![attack("ls")],
        );
        let all = |from: u64| (from..from + 2_000).map(|seed| seeds.mutation(seed).lines);
        assert!(all(0).eq(all(0)));
        let different: BTreeSet<Vec<String>> = all(0).collect();
        assert!(different.len() > 1_000, "{}", different.len());
    }

    #[test]
    fn a_wrapped_line_is_still_one_word() {
        assert_eq!(quoted("a 'b'"), r"'a '\''b'\'''");
    }
}
