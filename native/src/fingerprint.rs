//! What a probe compares, and where the objects it asks for lie.

use lance::dataset::mem_wal::util::{
    manifest_filename, mem_wal_path, shard_manifest_path, shard_wal_path, wal_entry_filename,
};
use lance_table::io::commit::ManifestNamingScheme;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Class, Fault};

/// See `fleet.Fingerprint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    #[serde(default)]
    pub version: u64,
    #[serde(default)]
    pub etag: String,
    #[serde(default)]
    pub naming: Naming,
    #[serde(default)]
    pub gaps: bool,
    #[serde(default)]
    pub refs: bool,
    /// Sorted by id.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub shards: Vec<ShardMark>,
}

/// See `fleet.ShardMark`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardMark {
    pub id: Uuid,
    /// Latest shard manifest; 0: a folder without one.
    #[serde(default)]
    pub manifest: u64,
    #[serde(default)]
    pub etag: String,
    /// First WAL position that does not exist yet. 0: never looked at.
    #[serde(default)]
    pub wal_next: u64,
}

/// How manifest files of the base table are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Naming {
    V1,
    #[default]
    #[serde(alias = "")]
    V2,
}

impl From<ManifestNamingScheme> for Naming {
    fn from(scheme: ManifestNamingScheme) -> Self {
        match scheme {
            ManifestNamingScheme::V1 => Self::V1,
            ManifestNamingScheme::V2 => Self::V2,
        }
    }
}

impl From<Naming> for ManifestNamingScheme {
    fn from(naming: Naming) -> Self {
        match naming {
            Naming::V1 => Self::V1,
            Naming::V2 => Self::V2,
        }
    }
}

/// Go writes an empty slice as null.
fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An e-tag as fingerprints keep it. The same object's comes with and without
/// quotes, depending on who was asked: Lance's local listing gives it bare,
/// object stores quote it, and some quote it only in one kind of answer.
pub fn clean_etag(etag: &str) -> String {
    etag.trim()
        .trim_start_matches("W/")
        .trim_matches('"')
        .to_owned()
}

/// Whether two e-tags may name the same object. One that is not known says nothing.
pub fn same_etag(known: &str, seen: &str) -> bool {
    let (known, seen) = (clean_etag(known), clean_etag(seen));
    known.is_empty() || seen.is_empty() || known == seen
}

pub fn versions_dir(base: &Path) -> Path {
    base.clone().join("_versions")
}

pub fn base_manifest(base: &Path, naming: Naming, version: u64) -> Path {
    ManifestNamingScheme::from(naming).manifest_path(base, version)
}

pub fn shards_dir(base: &Path) -> Path {
    mem_wal_path(base)
}

pub fn shard_manifest(base: &Path, shard: &Uuid, version: u64) -> Path {
    shard_manifest_path(base, shard).join(manifest_filename(version))
}

pub fn shard_manifests_dir(base: &Path, shard: &Uuid) -> Path {
    shard_manifest_path(base, shard)
}

pub fn wal_entry(base: &Path, shard: &Uuid, position: u64) -> Path {
    shard_wal_path(base, shard).join(wal_entry_filename(position))
}

pub fn wal_dir(base: &Path, shard: &Uuid) -> Path {
    shard_wal_path(base, shard)
}

/// One attached manifest, by its file name. Detached manifests (`d...`),
/// temporary files, the version hint and a version 0, which there never was, give
/// none.
pub fn parse_manifest_name(name: &str) -> Option<(Naming, u64)> {
    if name.starts_with('d') {
        return None;
    }
    let scheme = ManifestNamingScheme::detect_scheme(name)?;
    let version = scheme.parse_version(name)?;
    (version > 0).then(|| (scheme.into(), version))
}

/// What a listing of `_versions/` says about the head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub head: u64,
    pub naming: Naming,
    count: u64,
    lowest: u64,
}

impl Versions {
    /// Takes one file name; says whether it is the newest so far.
    pub fn take(&mut self, name: &str) -> Result<bool, Fault> {
        let Some((naming, version)) = parse_manifest_name(name) else {
            return Ok(false);
        };
        if self.count > 0 && naming != self.naming {
            return Err(Fault::new(
                Class::Corrupt,
                "_versions has manifests of both naming schemes",
            ));
        }
        self.lowest = if self.count == 0 {
            version
        } else {
            self.lowest.min(version)
        };
        self.count += 1;
        self.naming = naming;
        let newest = self.count == 1 || version > self.head;
        if newest {
            self.head = version;
        }
        Ok(newest)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether numbers are missing between the lowest listed version and the
    /// head. Each number is listed once, so counting tells.
    ///
    /// A hole is what cleanup leaves around a version that a tag or a branch
    /// holds. It proves that "the next version is absent" does not mean "this is
    /// the head" for this table, so probes must list from then on. The opposite
    /// proof does not exist: a hole can appear later, which is why tables with
    /// tags or branches (`refs`) are listed too, and every table now and then.
    pub fn gaps(&self) -> bool {
        self.count > 0 && self.head - self.lowest + 1 > self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(names: &[&str]) -> Versions {
        let mut versions = Versions::default();
        for name in names {
            versions.take(name).unwrap();
        }
        versions
    }

    #[test]
    fn the_head_is_the_highest_attached_version() {
        let seen = versions(&[
            "18446744073709551614.manifest",
            "18446744073709551612.manifest",
            "18446744073709551613.manifest",
            "d9223372036854775809.manifest",
            "latest_version_hint.json",
            ".tmp_9.manifest_9c100374",
        ]);
        assert_eq!(
            (seen.head, seen.naming, seen.gaps()),
            (3, Naming::V2, false)
        );
        let seen = versions(&["9.manifest", "10.manifest"]);
        assert_eq!(
            (seen.head, seen.naming, seen.gaps()),
            (10, Naming::V1, false)
        );
    }

    #[test]
    fn a_hole_below_the_head_is_a_gap_and_a_missing_beginning_is_not() {
        assert!(versions(&["1.manifest", "4.manifest"]).gaps());
        assert!(!versions(&["3.manifest", "4.manifest"]).gaps());
        assert!(!versions(&["4.manifest"]).gaps());
        assert!(!versions(&[]).gaps());
    }

    #[test]
    fn mixed_naming_is_corrupt() {
        let mut seen = versions(&["4.manifest"]);
        let fault = seen.take("18446744073709551614.manifest").unwrap_err();
        assert_eq!(fault.class, Class::Corrupt);
    }

    #[test]
    fn an_etag_is_the_same_with_and_without_quotes() {
        assert!(same_etag("\"1f-2-3\"", "1f-2-3"));
        assert!(same_etag("W/\"x\"", "x"));
        assert!(!same_etag("\"x\"", "\"y\""));
        assert!(same_etag("", "\"y\""));
    }

    #[test]
    fn go_json_with_null_shards_and_left_out_fields_is_read() {
        let read: Fingerprint =
            serde_json::from_str(r#"{"version":3,"naming":"v1","shards":null}"#).unwrap();
        assert_eq!((read.version, read.naming), (3, Naming::V1));
        let read: Fingerprint = serde_json::from_str(r#"{"version":0,"naming":""}"#).unwrap();
        assert_eq!(read.naming, Naming::V2);
    }
}
