//! Serialises paths of any bytes as text.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serializer, de::Error};

use crate::snapshot::name;

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name::encode(path.as_os_str().as_bytes()))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(from)?;
    let bytes = name::decode(&text).ok_or_else(|| D::Error::custom("invalid path"))?;
    Ok(OsStr::from_bytes(&bytes).into())
}
