//! Small objects by uri: what the fleet stages, its identity, folders of
//! experiments.
//!
//! Local uris are plain paths, taken literally. All others are URLs: what a URL
//! can't hold is percent-encoded in the uris given out, and decoded in those
//! taken. Names of folders are never encoded.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use lance_io::local::to_local_path;
use lance_io::object_store::ObjectStore;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use serde::Deserialize;
use serde_json::json;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::requests::{self, Kind};
use crate::tables::plain_etag;

#[derive(Deserialize)]
pub struct Put {
    uri: String,
    #[serde(default)]
    if_absent: bool,
}

/// Stores an object whole or not at all.
pub async fn put(engine: Arc<Engine>, request: Put, body: Bytes) -> Result<Reply, Fault> {
    let at = |fault: Fault| fault.at(&request.uri);
    let (store, path) = object(&engine, &request.uri).await?;
    let mode = match request.if_absent {
        true => PutMode::Create,
        false => PutMode::Overwrite,
    };
    let options = PutOptions::from(mode);
    let put = store
        .inner
        .put_opts(&path, PutPayload::from_bytes(body), options)
        .await
        .map_err(|error| at(error.into()))?;
    Ok(Reply::json(json!({ "etag": plain_etag(put.e_tag) })))
}

#[derive(Deserialize)]
pub struct Get {
    uri: String,
}

/// Reads an object.
pub async fn get(engine: Arc<Engine>, request: Get, _: Bytes) -> Result<Reply, Fault> {
    let at = |error: object_store::Error| Fault::from(error).at(&request.uri);
    let (store, path) = object(&engine, &request.uri).await?;
    let got = store.inner.get(&path).await.map_err(at)?;
    let meta = got.meta.clone();
    let body = got.bytes().await.map_err(at)?;
    Ok(Reply {
        json: json!({
            "etag": plain_etag(meta.e_tag),
            "time": meta.last_modified.timestamp_millis(),
        }),
        body: body.into(),
    })
}

#[derive(Deserialize)]
pub struct List {
    uri: String,
    /// 0 or absent: all of them.
    #[serde(default)]
    limit: usize,
}

/// The objects anywhere below a uri, in the order of their keys. None is no
/// error: where there are no folders, nothing tells "empty" from "missing".
pub async fn list(engine: Arc<Engine>, request: List, _: Bytes) -> Result<Reply, Fault> {
    let at = |error: object_store::Error| Fault::from(error).at(&request.uri);
    let (store, folder) = engine.store(&request.uri).await?;
    let limit = match request.limit {
        0 => usize::MAX,
        limit => limit,
    };
    let listed = store.inner.list(Some(&folder));
    let mut objects: Vec<ObjectMeta> = if store.list_is_lexically_ordered {
        listed.take(limit).try_collect().await.map_err(at)?
    } else {
        let mut all: Vec<ObjectMeta> = listed.try_collect().await.map_err(at)?;
        all.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        all
    };
    objects.truncate(limit);
    let objects: Vec<_> = objects
        .into_iter()
        .map(|object| {
            json!({
                "uri": uri_below(&store, &request.uri, &folder, &object.location),
                "size": object.size,
                "time": object.last_modified.timestamp_millis(),
                "etag": plain_etag(object.e_tag),
            })
        })
        .collect();
    Ok(Reply::json(json!({ "objects": objects })))
}

#[derive(Deserialize)]
pub struct ListDirs {
    uri: String,
}

/// Names of the folders directly below a uri, sorted.
pub async fn list_dirs(engine: Arc<Engine>, request: ListDirs, _: Bytes) -> Result<Reply, Fault> {
    let (store, folder) = engine.store(&request.uri).await?;
    let names = if store.has_direct_local_paths() {
        let (names, stats) = local_dirs(&folder)
            .await
            .map_err(|fault| fault.at(&request.uri))?;
        requests::count(engine.requests(), Kind::List, 1);
        requests::count(engine.requests(), Kind::Head, stats);
        names
    } else {
        let listed = store
            .inner
            .list_with_delimiter(Some(&folder))
            .await
            .map_err(|error| Fault::from(error).at(&request.uri))?;
        let prefixes = listed.common_prefixes.iter();
        prefixes
            .filter_map(|prefix| prefix.filename().map(str::to_owned))
            .collect()
    };
    Ok(Reply::json(json!({ "names": names })))
}

/// The folders, and how many files had to be asked what they are.
async fn local_dirs(folder: &Path) -> Result<(BTreeSet<String>, i64), Fault> {
    let folder = PathBuf::from(to_local_path(folder));
    let listed = tokio::task::spawn_blocking(move || read_dirs(&folder)).await;
    listed.map_err(Fault::from_join)?
}

/// Blocks.
fn read_dirs(folder: &std::path::Path) -> Result<(BTreeSet<String>, i64), Fault> {
    let (mut names, mut stats) = (BTreeSet::new(), 0);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_dir = if kind.is_symlink() {
            stats += 1;
            // A link that leads nowhere is no folder, and no reason to fail.
            std::fs::metadata(entry.path()).is_ok_and(|target| target.is_dir())
        } else {
            kind.is_dir()
        };
        // A name that is not UTF-8 can't be part of a uri.
        if let (true, Ok(name)) = (is_dir, entry.file_name().into_string()) {
            names.insert(name);
        }
    }
    Ok((names, stats))
}

#[derive(Deserialize)]
pub struct Delete {
    uris: Vec<String>,
}

/// Deletes objects; absent ones count as deleted on stores that don't tell. On
/// local disk a folder that this leaves empty goes too, as it does elsewhere.
pub async fn delete(engine: Arc<Engine>, request: Delete, _: Bytes) -> Result<Reply, Fault> {
    // One request takes up to 1,000 keys, but only of one bucket. Nothing is
    // deleted unless every uri is good.
    let mut by_store: BTreeMap<String, (Arc<ObjectStore>, Vec<Path>)> = BTreeMap::new();
    for uri in &request.uris {
        let (store, path) = object(&engine, uri).await?;
        let (_, paths) = by_store
            .entry(store.store_prefix.clone())
            .or_insert_with(|| (store, Vec::new()));
        paths.push(path);
    }
    let mut deleted = 0;
    for (store, paths) in by_store.into_values() {
        deleted += delete_from(&store, paths).await?;
    }
    Ok(Reply::json(json!({ "deleted": deleted })))
}

async fn delete_from(store: &ObjectStore, paths: Vec<Path>) -> Result<usize, Fault> {
    let folders: BTreeSet<Path> = paths.iter().filter_map(Path::parent).collect();
    let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
    let outcomes: Vec<_> = store.inner.delete_stream(paths).collect().await;
    if store.has_direct_local_paths() {
        remove_empty(folders).await?;
    }
    let mut deleted = 0;
    for outcome in outcomes {
        match outcome {
            Ok(_) => deleted += 1,
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(deleted)
}

/// Only an empty folder can be removed like this; one that is not just stays.
pub(crate) async fn remove_empty(
    folders: impl IntoIterator<Item = Path> + Send + 'static,
) -> Result<(), Fault> {
    tokio::task::spawn_blocking(move || {
        for folder in folders {
            let _ = std::fs::remove_dir(to_local_path(&folder));
        }
    })
    .await
    .map_err(Fault::from_join)
}

/// Where an object is. A folder or the root of a store is refused.
async fn object(engine: &Engine, uri: &str) -> Result<(Arc<ObjectStore>, Path), Fault> {
    let (store, path) = engine.store(uri).await?;
    if uri.ends_with('/') || path.is_root() {
        return Err(Fault::new(Class::Invalid, "not the uri of an object").at(uri));
    }
    Ok((store, path))
}

/// The uri of an object that was found below `uri`.
fn uri_below(store: &ObjectStore, uri: &str, folder: &Path, object: &Path) -> String {
    if store.has_direct_local_paths() {
        return to_local_path(object);
    }
    let below = object
        .as_ref()
        .strip_prefix(folder.as_ref())
        .unwrap_or(object.as_ref());
    let folder = uri.split(['?', '#']).next().unwrap_or(uri);
    format!(
        "{}/{}",
        folder.trim_end_matches('/'),
        encode(below.trim_start_matches('/'))
    )
}

/// Percent-encodes what has a meaning in a URL or no place in one.
fn encode(key: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
