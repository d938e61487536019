//! Detection of the file system that a path is on.

use std::path::{Path, PathBuf};

/// The file in which Linux lists this process's mounts.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Network file systems, on which locks and syncing are not reliable.
const NETWORK: [&str; 12] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "lustre",
    "glusterfs",
    "ncpfs",
    "coda",
];

/// Network file systems in user space, by the name that follows `fuse.`.
const NETWORK_FUSE: [&str; 10] = [
    "sshfs",
    "rclone",
    "s3fs",
    "glusterfs",
    "ceph",
    "gcsfuse",
    "goofys",
    "davfs",
    "juicefs",
    "blobfuse",
];

/// Whether something is mounted below a folder, given the text of [`MOUNTINFO`]. `folder` must be
/// absolute and without symbolic links.
pub fn holds_mount(mountinfo: &str, folder: &Path) -> bool {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .map(unescape)
        .any(|point| point != folder && point.starts_with(folder))
}

/// Returns the kind of network file system that `path` is on, given the text of [`MOUNTINFO`];
/// `None` if it is on a local one, or on none that is listed. `path` must be absolute and without
/// symbolic links.
pub fn network_file_system(mountinfo: &str, path: &Path) -> Option<String> {
    let mut best: Option<(PathBuf, &str)> = None;
    for line in mountinfo.lines() {
        let Some((place, kind)) = line.split_once(" - ") else {
            continue;
        };
        let Some(point) = place.split(' ').nth(4).map(unescape) else {
            continue;
        };
        let Some(kind) = kind.split(' ').next() else {
            continue;
        };
        // Of mounts on the same folder, the later one covers the earlier.
        let covers = best
            .as_ref()
            .is_none_or(|(best, _)| point.starts_with(best));
        if path.starts_with(&point) && covers {
            best = Some((point, kind));
        }
    }
    let (_, kind) = best?;
    let network = match kind.strip_prefix("fuse.") {
        Some(program) => NETWORK_FUSE.contains(&program),
        None => NETWORK.contains(&kind),
    };
    network.then(|| kind.to_owned())
}

/// Undoes the octal escapes of spaces, tabs, newlines and backslashes.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'\\')
            .then(|| std::str::from_utf8(after.get(..3)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_and_latest_mount_decides() {
        let mounts = "\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:40 / /home rw shared:2 - nfs4 server:/home rw
24 23 0:41 / /home/me/disk rw - ext4 /dev/vdb rw
25 22 0:42 / /mnt/with\\040space rw shared:3 master:1 - cifs //server/share rw
26 22 0:43 / /mnt/ssh rw - fuse.sshfs me@host: rw
27 22 0:44 / /mnt/fuse rw - fuse.portal portal rw
28 22 0:45 / /over rw - nfs server:/ rw
29 28 0:46 / /over rw - tmpfs tmpfs rw
not a mount
";
        for (path, kind) in [
            ("/var/lib", None),
            ("/home/me", Some("nfs4")),
            ("/home/me/disk/state", None),
            ("/homes", None),
            ("/mnt/with space/x", Some("cifs")),
            ("/mnt/ssh", Some("fuse.sshfs")),
            ("/mnt/fuse", None),
            ("/over/x", None),
        ] {
            assert_eq!(
                network_file_system(mounts, Path::new(path)).as_deref(),
                kind,
                "{path}"
            );
        }
        assert_eq!(network_file_system("", Path::new("/")), None);
        for (folder, holds) in [
            ("/home", true),
            ("/home/me/disk", false),
            ("/mnt/with space", false),
            ("/hom", false),
        ] {
            assert_eq!(holds_mount(mounts, Path::new(folder)), holds, "{folder}");
        }
    }
}
