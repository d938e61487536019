//! Unix sockets that services of the machine listen on: a read-only mount does not keep anybody
//! from connecting to one.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Looked at, at most; a machine with more is not met by us.
const LIMIT: usize = 4096;

/// The paths that processes of this network namespace listen on now.
pub(super) fn listed() -> Vec<PathBuf> {
    // Without it the well known folders are hidden still.
    parse(&fs::read("/proc/net/unix").unwrap_or_default())
}

/// Reads proc_net_unix(5).
fn parse(table: &[u8]) -> Vec<PathBuf> {
    let paths: BTreeSet<&Path> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            // A path may hold spaces, so it is what follows the seventh field.
            let path = (0..7).try_fold(line, |rest, _| {
                let rest = rest.trim_ascii_start();
                let end = rest.iter().position(|byte| *byte == b' ')?;
                Some(&rest[end..])
            })?;
            // An abstract name starts with `@`.
            let path = path.strip_prefix(b" ")?;
            path.starts_with(b"/")
                .then(|| Path::new(OsStr::from_bytes(path)))
        })
        .take(LIMIT)
        .collect();
    paths.into_iter().map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths_only() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 5062 /run/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 5063\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 5064 @x /etc/passwd\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 5065 /run/a b.sock\n";
        assert_eq!(parse(table), [PathBuf::from("/run/a b.sock")]);
        assert_eq!(parse(b""), Vec::<PathBuf>::new());
    }
}
