//! Trusted file owners: root, and the user that this process runs as.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Read,
    path::Path,
};

use rustix::{
    fs::{FileType, Stat, getxattr},
    process::geteuid,
};

/// Maximum bytes read from each of the system's lists of users and groups.
const MAX_LIST_BYTES: u64 = 1 << 20;

/// The attribute with a file's access control list.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Users and groups that may change files without making these untrusted.
pub(super) struct Owners {
    users: BTreeSet<u32>,
    /// Groups without other members.
    groups: BTreeSet<u32>,
}

impl Owners {
    /// Returns root, the user of this process, and groups without other members.
    pub(super) fn of_this_process() -> Self {
        let mut users = BTreeSet::from([0, geteuid().as_raw()]);
        let list = |path| {
            let mut text = String::new();
            let file = File::open(path).map(|file| file.take(MAX_LIST_BYTES));
            match file.and_then(|mut file| file.read_to_string(&mut text)) {
                Ok(_) => text,
                Err(_) => String::new(),
            }
        };
        let groups = own_groups(&users, &list("/etc/passwd"), &list("/etc/group"));
        users.extend(unmapped());
        Self { users, groups }
    }

    /// Returns the reason why another user may change a file or folder, if one may.
    pub(super) fn who_else_may_change(&self, path: &Path, stat: &Stat) -> Option<String> {
        if !self.users.contains(&stat.st_uid) {
            return Some(format!("belongs to another user ({})", stat.st_uid));
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        // A link has no mode of its own. In a sticky folder only owners replace files, and the
        // owner is checked.
        let is_sticky = kind == FileType::Directory && stat.st_mode & 0o1000 != 0;
        if kind == FileType::Symlink || is_sticky {
            return None;
        }
        if stat.st_mode & 0o002 != 0 {
            return Some("may be changed by every user".to_owned());
        }
        if stat.st_mode & 0o020 == 0 {
            return None;
        }
        if !self.groups.contains(&stat.st_gid) {
            return Some(format!("may be changed by the group {}", stat.st_gid));
        }
        // With an access control list, the group bits of the mode apply to all its entries.
        let has_list = getxattr(path, ACCESS_LIST, &mut [0_u8; 0]).is_ok_and(|bytes| bytes > 0);
        has_list.then(|| "may be changed by others (it has an access control list)".to_owned())
    }
}

/// Returns the listed groups with only these users as members. Root's own group is included even
/// where there are no lists.
fn own_groups(users: &BTreeSet<u32>, passwd: &str, group: &str) -> BTreeSet<u32> {
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    let mut others: BTreeSet<u32> = BTreeSet::new();
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, user, group, ..] = fields[..] else {
            continue;
        };
        let (Ok(user), Ok(group)) = (user.parse::<u32>(), group.parse::<u32>()) else {
            continue;
        };
        if users.contains(&user) {
            names.insert(name, user);
        } else {
            others.insert(group);
        }
    }
    let mut own = BTreeSet::from([0]);
    for line in group.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, number, members] = fields[..] else {
            continue;
        };
        let is_own = members
            .split(',')
            .all(|member| member.is_empty() || names.contains_key(member));
        if let Ok(number) = number.parse::<u32>()
            && is_own
        {
            own.insert(number);
        }
    }
    own.retain(|group| !others.contains(group));
    own
}

/// Returns the number of all users unknown to a user namespace, if this process is in one that maps
/// only some: such users are outside of it, and no process in it can have their rights.
fn unmapped() -> Option<u32> {
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
    let overflow: u32 = overflow.trim().parse().ok()?;
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    let is_mapped = map.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (Some(first), Some(_), Some(count)) = (number(), number(), number()) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(overflow))
    });
    (!is_mapped).then_some(overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_in_which_nobody_else_is() {
        let passwd = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\
                      bob:x:1001:1001::/:/bin/sh\ncay:x:1002:60::/:/bin/sh\nbroken\n";
        let group = "root:x:0:\nada:x:1000:\nbob:x:1001:\nstaff:x:50:\nadm:x:4:ada,root\n\
                     users:x:100:ada,bob\nshared:x:60:\nbroken:x:7\n";
        let users = BTreeSet::from([0, 1000]);
        let own = own_groups(&users, passwd, group);
        assert_eq!(own, BTreeSet::from([0, 4, 50, 1000]));
        assert_eq!(own_groups(&users, "", ""), BTreeSet::from([0]));
        // Root's group does not count if another user is in it.
        assert_eq!(own_groups(&users, "eve:x:5:0::/:", ""), BTreeSet::new());
    }
}
