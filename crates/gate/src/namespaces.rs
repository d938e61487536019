//! The reason why namespaces are refused to this process, what a person can do about it, and what
//! does not hold without them.
//!
//! What is said is read from the kernel's settings; whether it is the reason is known only when it
//! was done and tried again.

use std::{env, fs, path::Path};

use crate::sandbox::{Promise, SandboxProof};

/// The reason why this process cannot use namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    /// AppArmor grants namespaces only to programs with a profile. Holds this program's path.
    AppArmor(String),
    /// A filter around this process, as container engines install one.
    Filter { is_root: bool },
    /// A setting forbids namespaces. Holds its name and the value that lifts this.
    Setting(&'static str, &'static str),
}

/// Settings of the kernel that forbid namespaces if they are zero.
const SETTINGS: [(&str, &str); 2] = [
    ("user.max_user_namespaces", "16384"),
    ("kernel.unprivileged_userns_clone", "1"),
];

/// Returns the known remedies as lines for a person; empty if there is none.
pub fn remedy() -> Vec<String> {
    reason().map(|reason| reason.remedy()).unwrap_or_default()
}

/// Describes the promises that a sufficient sandbox does not keep; empty if it keeps all.
pub fn shortcomings(proof: &SandboxProof) -> Vec<&'static str> {
    let broken = Promise::ALL.into_iter();
    let broken = broken.filter(|promise| !proof.holds(*promise));
    broken
        .map(|promise| match promise {
            Promise::Writes => "files outside the workspace can be changed",
            Promise::Hidden => "keys and services can be reached",
            Promise::Network => "the network can be reached",
            Promise::Processes => "other processes can be touched",
            Promise::Sight => {
                "names and sizes of hidden files, and the machine's processes with their \
                 arguments, can be seen"
            }
            Promise::Privileges => "privileges can be gained",
            Promise::Limits => "the number of processes is not limited",
        })
        .collect()
}

fn reason() -> Option<Reason> {
    let setting = |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        fs::read_to_string(path).map(|text| text.trim().to_owned())
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    if status.lines().any(|line| line == "Seccomp:\t2") {
        return Some(Reason::Filter { is_root });
    }
    for (name, value) in SETTINGS {
        if setting(name).is_ok_and(|found| found == "0") {
            return Some(Reason::Setting(name, value));
        }
    }
    let restricts = setting("kernel.apparmor_restrict_unprivileged_userns");
    if restricts.is_ok_and(|found| found == "1") && !is_root {
        let program = env::current_exe().unwrap_or_default();
        return Some(Reason::AppArmor(program.display().to_string()));
    }
    None
}

impl Reason {
    fn remedy(&self) -> Vec<String> {
        match self {
            Self::AppArmor(program) => {
                let mut lines = vec![
                    "AppArmor grants them only to programs with a profile. As root, write this to \
                     /etc/apparmor.d/gyrus, then run `apparmor_parser -r /etc/apparmor.d/gyrus`:"
                        .to_owned(),
                ];
                lines.extend(profile(program).lines().map(|line| format!("  {line}")));
                lines
            }
            Self::Filter { is_root } => {
                let more = match is_root {
                    true => " --cap-add SYS_ADMIN",
                    false => "",
                };
                vec![format!(
                    "A filter around gyrus refuses them. In a container: start it with \
                     --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                     --security-opt systempaths=unconfined{more}; that weakens the container \
                     itself."
                )]
            }
            Self::Setting(name, value) => vec![format!(
                "The kernel is set to refuse them. As root: sysctl -w {name}={value}"
            )],
        }
    }
}

/// Returns a profile that confines nothing and grants namespaces to the program alone.
fn profile(program: &str) -> String {
    let mut path = String::new();
    for character in program.chars() {
        if "\\\"*?[]{}^".contains(character) {
            path.push('\\');
        }
        path.push(character);
    }
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\n\
         profile gyrus \"{path}\" flags=(unconfined) {{\n  userns,\n}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_one_program() {
        assert_eq!(
            profile("/opt/a*b/\"gyrus\""),
            "abi <abi/4.0>,\ninclude <tunables/global>\n\
             profile gyrus \"/opt/a\\*b/\\\"gyrus\\\"\" flags=(unconfined) {\n  userns,\n}"
        );
    }

    #[test]
    fn only_root_needs_a_capability() {
        for is_root in [true, false] {
            let said = Reason::Filter { is_root }.remedy().join("\n");
            assert_eq!(said.contains("SYS_ADMIN"), is_root, "{said}");
        }
    }
}
