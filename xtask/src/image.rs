//! An image of the program for container runtimes, in the layout of the
//! [OCI](https://github.com/opencontainers/image-spec): written without a daemon, from what is staged and the libraries, the
//! shell and the certificates of the machine that packs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    programs::run_in,
    release::{Release, pack_tree, said},
};

/// Programs of the machine that the image has beside gyrus: those that its commands start with.
const PROGRAMS: &str = "awk bash basename cat chmod cmp cp cut date diff dirname du echo env false find git grep \
                        gzip head id ln ls mkdir mktemp mv paste printf pwd readlink realpath rm rmdir sed seq \
                        sh sha256sum sleep sort stat tail tar tee test touch tr true uname uniq wc xargs";

/// The certificates by which servers are known.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Writes the image of a staged tree as one archive, which `skopeo`, `podman load` and others read.
pub(crate) fn write(release: &Release, tree: &Path, folder: &Path) -> anyhow::Result<()> {
    let parts = tempfile::tempdir()?;
    let root = parts.path().join("root");
    fill(tree, &root)?;
    let image = parts.path().join("image");
    fs::create_dir_all(image.join("blobs/sha256"))?;
    let layer = parts.path().join("layer.tar");
    pack_tree(release, &root, &layer, &[])?;
    let unpacked = digest(&layer)?;
    said(Command::new("gzip").args(["-9n", "-k"]).arg(&layer))?;
    let layer = blob(&image, &fs::read(layer.with_extension("tar.gz"))?)?;
    let config = json!({
        "architecture": release.architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/gyrus"],
            "Env": ["PATH=/usr/bin", "HOME=/root", "LANG=C.UTF-8"],
            "WorkingDir": "/work",
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{unpacked}")]},
    });
    let kind = |name: &str| format!("application/vnd.oci.image.{name}");
    let config = blob(&image, config.to_string().as_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": kind("manifest.v1+json"),
        "config": descriptor(&kind("config.v1+json"), &config),
        "layers": [descriptor(&kind("layer.v1.tar+gzip"), &layer)],
    });
    let manifest = blob(&image, manifest.to_string().as_bytes())?;
    let mut manifest = descriptor(&kind("manifest.v1+json"), &manifest);
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(image.join("index.json"), index.to_string())?;
    fs::write(
        image.join("oci-layout"),
        r#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    let archive = folder.join(format!("{}.oci.tar", release.name()));
    pack_tree(release, &image, &archive, &[])
}

/// Lays out the root of a container.
fn fill(tree: &Path, root: &Path) -> anyhow::Result<()> {
    for folder in ["work", "tmp", "root", "etc", "proc", "dev"] {
        fs::create_dir_all(root.join(folder))?;
    }
    run_in(tree, Command::new("cp").args(["-a", "usr"]).arg(root))?;
    let mut files = BTreeSet::new();
    needed(&root.join("usr/bin/gyrus"), &mut files)?;
    let programs = PROGRAMS
        .split(' ')
        .map(|name| Path::new("/usr/bin").join(name));
    for program in programs.filter(|program| program.exists()) {
        needed(&program, &mut files)?;
        files.insert(program);
    }
    files.insert(Path::new("/").join(CERTIFICATES));
    for file in files {
        let inside = root.join(file.strip_prefix("/")?);
        fs::create_dir_all(inside.parent().context("a file lies in a folder")?)?;
        fs::copy(&file, inside).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let passwd = "root:x:0:0:root:/root:/usr/bin/bash\n";
    Ok(fs::write(root.join("etc/passwd"), passwd)?)
}

/// Adds the libraries that a program is loaded with.
fn needed(program: &Path, files: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let listed = said(Command::new("ldd").arg(program))?;
    let paths = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    files.extend(paths.map(|word| PathBuf::from(word.trim_end_matches(':'))));
    Ok(())
}

/// Stores a blob under its digest; returns that and its size.
fn blob(image: &Path, bytes: &[u8]) -> anyhow::Result<(String, usize)> {
    let path = image.join("blobs/new");
    fs::write(&path, bytes)?;
    let digest = digest(&path)?;
    fs::rename(path, image.join("blobs/sha256").join(&digest))?;
    Ok((digest, bytes.len()))
}

fn descriptor(kind: &str, (digest, size): &(String, usize)) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": size})
}

fn digest(path: &Path) -> anyhow::Result<String> {
    let sum = said(Command::new("sha256sum").arg(path))?;
    let digest = sum.split(' ').next();
    Ok(digest.context("sha256sum printed nothing")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(tree: &Path) -> (tempfile::TempDir, Vec<u8>) {
        let release = Release {
            version: "1.2.3".to_owned(),
            time: "1000000000".to_owned(),
            architecture: "amd64",
        };
        let folder = tempfile::tempdir().unwrap();
        write(&release, tree, folder.path()).unwrap();
        let bytes = fs::read(folder.path().join("gyrus-1.2.3-linux-amd64.oci.tar")).unwrap();
        (folder, bytes)
    }

    #[test]
    fn an_image_is_the_same_bytes_each_time_and_runs() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("usr/bin")).unwrap();
        fs::copy("/usr/bin/env", tree.path().join("usr/bin/gyrus")).unwrap();
        let (folder, bytes) = archive(tree.path());
        assert!(bytes == archive(tree.path()).1, "the same bytes");
        let unpack = |archive: &Path, to: &Path| {
            fs::create_dir(to).unwrap();
            said(
                Command::new("tar")
                    .arg("-xf")
                    .arg(archive)
                    .arg("-C")
                    .arg(to),
            )
            .unwrap();
        };
        let (image, root) = (folder.path().join("image"), folder.path().join("root"));
        unpack(
            &folder.path().join("gyrus-1.2.3-linux-amd64.oci.tar"),
            &image,
        );
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"]
                .as_str()
                .unwrap()
                .strip_prefix("sha256:");
            image.join("blobs/sha256").join(digest.unwrap())
        };
        let json = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
        let manifest = json(&blob(&json(&image.join("index.json"))["manifests"][0]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(
            digest(&layer).unwrap(),
            layer.file_name().unwrap().to_str().unwrap()
        );
        assert_eq!(json(&blob(&manifest["config"]))["os"], "linux");
        unpack(&layer, &root);
        let bwrap = |root: &Path, words: &[&str]| {
            let mut bwrap = Command::new("bwrap");
            bwrap
                .arg("--bind")
                .arg(root)
                .args(["/", "--unshare-user", "--"]);
            said(bwrap.args(words))
        };
        // Where there is no bubblewrap, or it may not make namespaces, the bytes are all that is seen.
        if bwrap(Path::new("/"), &["true"]).is_ok() {
            let script = "echo it runs | grep -c runs";
            let printed = bwrap(&root, &["/usr/bin/gyrus", "bash", "-c", script]);
            assert_eq!(printed.unwrap(), "1\n");
        }
    }
}
