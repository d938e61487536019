//! Programs that change the machine.

use gyrus_contract::Does;

use super::{Call, options::Spec};
use crate::shell::{reader::Reader, words::Word};

/// Programs that change the machine, its users or its other processes.
const CHANGES: &str = "su pkexec runuser systemctl service kill pkill killall skill snice mount \
    umount useradd userdel usermod groupadd groupdel adduser deluser passwd chpasswd chsh chfn \
    crontab at batch chown chgrp chattr setfacl setcap sysctl iptables ip6tables nft ufw \
    firewall-cmd ifconfig ip route reboot shutdown halt poweroff init telinit modprobe insmod rmmod \
    loginctl update-alternatives visudo hostnamectl timedatectl localectl swapon swapoff losetup \
    nsenter unshare chroot renice launchctl defaults ldconfig setenforce semanage dmesg journalctl \
    logger update-rc.d chkconfig mknod ulimit prlimit taskset ssh-add ssh-keygen gpg2 xset xdotool \
    xrandr setxkbmap loadkeys stty screen tmux killall5 fuser tc brctl nmcli wall write";

/// Those of them that start another program, which is not read.
const LAUNCHES: &str = "su pkexec runuser at batch nsenter unshare chroot prlimit taskset screen \
    tmux ip";

/// Programs that install packages of the machine.
const PACKAGES: &str = "apt apt-get aptitude dnf yum zypper pacman apk snap flatpak brew port emerge \
    rpm nix nix-env xbps-install";

/// Programs that run containers.
const CONTAINERS: &str = "docker podman docker-compose nerdctl lxc buildah vagrant virsh multipass";

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let listed = |names: &str| names.split_ascii_whitespace().any(|name| name == call.name);
    let system = "it changes the machine";
    if call.name == "kill" && only_asks(call) {
        return true;
    }
    if call.name == "kill" && ends_its_own(reader, call) {
        reader.runs_code(call.part, "it ends what the line itself started");
        return true;
    }
    if listed(CHANGES) {
        reader.fact(Does::ChangesSystem, call.part, system);
        if listed(LAUNCHES) {
            reader.hides(call.part, "it may start another program");
        }
        if matches!(call.name, "chown" | "chgrp" | "chattr" | "setfacl") {
            owners(reader, call);
        }
    } else if listed(PACKAGES) {
        reader.fact(Does::ChangesSystem, call.part, system);
        reader.fact(
            Does::GetsPackages,
            call.part,
            "it gets packages of the machine",
        );
    } else if listed(CONTAINERS) {
        reader.fact(Does::ChangesSystem, call.part, "it runs containers");
        reader.runs_code(call.part, "it runs what a container holds");
    } else if call.name == "gpg" {
        reader.fact(Does::UsesCredentials, call.part, "it uses keys");
        reader.runs_code(call.part, "what it writes is not read");
    } else {
        return false;
    }
    true
}

/// `kill -l` and `kill -0` change nothing.
fn only_asks(call: &Call<'_>) -> bool {
    let first = call.args.first().and_then(Word::literal);
    matches!(first.as_deref(), Some("-l" | "-0"))
        && call.args[1..].iter().all(|word| word.is_number())
}

/// `kill $!` and its like: numbers of processes that the line itself got. In the sandbox there are
/// no others.
fn ends_its_own(reader: &Reader<'_>, call: &Call<'_>) -> bool {
    let (signals, targets): (Vec<_>, Vec<_>) = call.args.iter().partition(|word| {
        let text = word.literal().unwrap_or_default();
        let signal = text.strip_prefix('-').unwrap_or_default();
        !signal.is_empty() && signal.chars().all(|c| c.is_ascii_uppercase() || c == '9')
    });
    let own = |word: &&Word| {
        let name = word.raw.trim_matches('"').trim_start_matches('$');
        let name = name.trim_start_matches('{').trim_end_matches('}');
        matches!(word.raw.trim_matches('"'), "$$" | "$!" | "%1" | "%%")
            || word.raw.contains('$') && reader.held.contains_key(name)
    };
    signals.len() <= 1 && !targets.is_empty() && targets.iter().all(own)
}

/// The paths whose owner changes.
fn owners(reader: &mut Reader<'_>, call: &Call<'_>) {
    if let Ok(parsed) = Spec::strict("RvcfhiLHP", "recursive verbose").parse(call.args) {
        for path in parsed.operands.iter().skip(1) {
            reader.writes(path, call.part);
        }
    }
}
