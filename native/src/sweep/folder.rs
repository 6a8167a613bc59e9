//! Folders of generations, file by file: only what Lance puts there is known.

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures::TryStreamExt;
use futures::stream::StreamExt;
use lance::dataset::mem_wal::util::shard_base_path;
use lance_io::local::to_local_path;
use object_store::path::Path;
use uuid::Uuid;

use crate::error::Fault;
use crate::objects;
use crate::remote::Remote;

/// One folder named like a generation's.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    pub name: String,
    pub generation: u64,
    pub bytes: i64,
    /// Unix ms of its youngest file.
    pub newest_time: i64,
    /// A file that Lance would not have put there, or a link.
    pub unknown: Option<String>,
    pub files: Vec<Path>,
    pub path: Path,
}

/// The folders directly below a shard that are named like generations.
pub async fn list(remote: &Remote, shard: &Uuid) -> Result<Vec<Folder>, Fault> {
    let place = shard_base_path(&remote.base, shard);
    let found = remote.store.inner.list_with_delimiter(Some(&place)).await?;
    let mut folders = Vec::new();
    for path in found.common_prefixes {
        let Some(name) = path.filename().map(str::to_owned) else {
            continue;
        };
        if let Some(generation) = generation_of(&name) {
            folders.push(look_into(remote, path, name, generation).await?);
        }
    }
    Ok(folders)
}

/// `{8 hex digits}_gen_{number}`.
fn generation_of(name: &str) -> Option<u64> {
    let (hash, number) = name.split_once("_gen_")?;
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let plain = number.bytes().all(|byte| byte.is_ascii_digit());
    (hash.len() == 8 && hash.bytes().all(hex) && plain).then(|| number.parse().ok())?
}

async fn look_into(
    remote: &Remote,
    path: Path,
    name: String,
    generation: u64,
) -> Result<Folder, Fault> {
    let mut folder = Folder {
        name,
        generation,
        path: path.clone(),
        ..Folder::default()
    };
    if remote.store.has_direct_local_paths() {
        folder.unknown = link_on_disk(&path).await?;
    }
    let mut objects = remote.store.inner.list(Some(&path));
    while let Some(object) = objects.try_next().await? {
        let below: Vec<String> = match object.location.prefix_match(&path) {
            Some(parts) => parts.map(|part| part.as_ref().to_owned()).collect(),
            None => continue,
        };
        if !is_lances(&below) {
            folder.unknown.get_or_insert(below.join("/"));
        }
        folder.bytes += object.size as i64;
        let time = object.last_modified.timestamp_millis();
        folder.newest_time = folder.newest_time.max(time);
        folder.files.push(object.location);
    }
    Ok(folder)
}

/// Whether Lance puts such a file into a generation.
fn is_lances(below: &[String]) -> bool {
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    let Some((name, folders)) = below.split_last() else {
        return false;
    };
    // What an unfinished upload to local disk leaves.
    let name = match name.rsplit_once('#') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    };
    let ends = |endings: &[&str]| {
        let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
        stem.is_some_and(|stem| !stem.is_empty())
    };
    match folders {
        [] => name == "bloom_filter.bin",
        ["data"] => ends(&[".lance"]),
        ["data", _] => ends(&[".blob"]),
        ["_versions"] => ends(&[".manifest"]) || name == "latest_version_hint.json",
        ["_transactions"] => ends(&[".txn"]),
        ["_deletions"] => ends(&[".bin", ".arrow"]),
        ["_pk_index"] => ends(&[".lance"]),
        ["_indices", _, ..] => true,
        _ => false,
    }
}

/// The first symbolic link among a folder and what is in it. What lies behind one
/// is somebody else's.
async fn link_on_disk(path: &Path) -> Result<Option<String>, Fault> {
    let root = PathBuf::from(to_local_path(path));
    tokio::task::spawn_blocking(move || find_link(&root))
        .await
        .map_err(Fault::from_join)?
}

/// Blocks.
fn find_link(path: &std::path::Path) -> Result<Option<String>, Fault> {
    let kind = match path.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if kind.is_symlink() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return Ok(Some(format!("{name} (a symbolic link)")));
    }
    if kind.is_dir() {
        for entry in std::fs::read_dir(path)? {
            if let Some(link) = find_link(&entry?.path())? {
                return Ok(Some(link));
            }
        }
    }
    Ok(None)
}

/// Deletes the files that were seen. Others that came since stay, and so does
/// their folder.
pub async fn delete(remote: &Remote, folder: &Folder) -> Result<(), Fault> {
    let files = futures::stream::iter(folder.files.clone().into_iter().map(Ok)).boxed();
    let mut outcomes = remote.store.inner.delete_stream(files);
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if remote.store.has_direct_local_paths() || remote.store.is_local() {
        objects::remove_empty(folders_of(folder)).await?;
    }
    Ok(())
}

/// The folder and those in it, innermost first.
fn folders_of(folder: &Folder) -> Vec<Path> {
    let mut folders = BTreeSet::from([folder.path.clone()]);
    for file in &folder.files {
        let mut parent = file.parent();
        while let Some(path) = parent.filter(|path| path.prefix_matches(&folder.path)) {
            parent = path.parent();
            folders.insert(path);
        }
    }
    folders.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_named_like_generations_are_looked_at() {
        assert_eq!(generation_of("031101da_gen_12"), Some(12));
        for name in [
            "031101da_gen_",
            "031101DA_gen_1",
            "031101d_gen_1",
            "031101da_gen_1x",
            "031101da_gen_-1",
            "031101da_gen_1_gen_2",
            "x031101da_gen_1",
            "wal",
            "manifest",
        ] {
            assert_eq!(generation_of(name), None, "{name}");
        }
    }

    #[test]
    fn what_lance_puts_into_a_generation_is_known_and_nothing_else() {
        let known = |path: &str| {
            let below: Vec<String> = path.split('/').map(str::to_owned).collect();
            is_lances(&below)
        };
        for path in [
            "bloom_filter.bin",
            "data/0010.lance",
            "data/0010.lance#2",
            "data/0010/1.blob",
            "_versions/18446744073709551614.manifest",
            "_versions/latest_version_hint.json",
            "_transactions/0-x.txn",
            "_deletions/0-1-2.bin",
            "_deletions/0-1-2.arrow",
            "_pk_index/page_data.lance",
            "_indices/uuid/index.idx",
        ] {
            assert!(known(path), "{path}");
        }
        for path in [
            "notes.txt",
            "data/notes.txt",
            "data/.lance",
            "data/a/b/1.blob",
            "_versions/readme.md",
            "other/0010.lance",
            "_indices/loose",
        ] {
            assert!(!known(path), "{path}");
        }
    }
}
