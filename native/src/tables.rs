//! lancefleet's own small tables: reading them whole, and the operations that
//! change them (`commit`, `append`). Experiments are only ever read here.

mod append;
mod commit;
mod ipc;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance::dataset::{WriteMode, WriteParams};
use lance_io::local::to_local_path;
use lance_io::object_store::ObjectStore;
use lance_table::io::commit::{ManifestNamingScheme, VERSIONS_DIR};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use serde::Deserialize;
use serde_json::json;

use crate::call::Reply;
use crate::clock;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::remote::Remote;
use crate::requests::{self, Kind};

pub use append::append;
pub use commit::commit_snapshot;
pub(crate) use commit::{Fate, commit, commit_builder, fate, judge, stage};

#[derive(Deserialize)]
pub struct Head {
    uri: String,
}

/// Which version is the newest, without opening it.
pub async fn head(engine: Arc<Engine>, request: Head, _: Bytes) -> Result<Reply, Fault> {
    let newest = newest(&engine, &request.uri)
        .await
        .map_err(|fault| fault.at(&request.uri))?;
    Ok(Reply::json(json!({
        "version": newest.version,
        "etag": newest.etag,
        "time": newest.time,
    })))
}

/// The newest version of a table. `time` is when the store got its manifest.
struct Newest {
    version: u64,
    etag: String,
    time: i64,
}

async fn newest(engine: &Engine, uri: &str) -> Result<Newest, Fault> {
    if uri.starts_with("s3+ddb:") {
        return newest_by_opening(engine, uri).await;
    }
    let (store, base) = engine.store(uri).await?;
    let folder = base.join(VERSIONS_DIR);
    let newest = if store.has_direct_local_paths() {
        requests::count(engine.requests(), Kind::List, 1);
        requests::count(engine.requests(), Kind::Head, 1);
        let folder = PathBuf::from(to_local_path(&folder));
        tokio::task::spawn_blocking(move || newest_on_disk(&folder))
            .await
            .map_err(Fault::from_join)??
    } else {
        newest_listed(&store, &folder).await?
    };
    newest.ok_or_else(|| Fault::new(Class::Gone, "no table here"))
}

/// Where the folder is not the authority on what is committed.
async fn newest_by_opening(engine: &Engine, uri: &str) -> Result<Newest, Fault> {
    let dataset = engine.open(uri, None).await?;
    Ok(Newest {
        version: dataset.version_id(),
        etag: etag_of(&dataset).await?,
        time: dataset.manifest().timestamp().timestamp_millis(),
    })
}

/// The version a manifest's name tells; none for detached and foreign files.
fn version_of(name: &str) -> Option<(u64, ManifestNamingScheme)> {
    let scheme = ManifestNamingScheme::detect_scheme(name)?;
    Some((scheme.parse_version(name)?, scheme))
}

/// One readdir and one stat. Blocks.
fn newest_on_disk(folder: &std::path::Path) -> Result<Option<Newest>, Fault> {
    let mut newest: Option<(u64, std::fs::DirEntry)> = None;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Some((version, _)) = entry.file_name().to_str().and_then(version_of) else {
            continue;
        };
        if newest.as_ref().is_none_or(|(known, _)| version > *known) {
            newest = Some((version, entry));
        }
    }
    let Some((version, entry)) = newest else {
        return Ok(None);
    };
    let metadata = entry.metadata()?;
    Ok(Some(Newest {
        version,
        etag: lance_io::object_writer::get_etag(&metadata),
        time: metadata
            .modified()
            .map(|time| DateTime::<Utc>::from(time).timestamp_millis())?,
    }))
}

/// One LIST. Its first entry decides where keys come in order and manifests are
/// named newest first.
async fn newest_listed(store: &ObjectStore, folder: &Path) -> Result<Option<Newest>, Fault> {
    let mut listed = store.inner.list(Some(folder));
    let mut newest: Option<(u64, ObjectMeta)> = None;
    while let Some(object) = listed.try_next().await? {
        let Some((version, scheme)) = object.location.filename().and_then(version_of) else {
            continue;
        };
        if newest.as_ref().is_none_or(|(known, _)| version > *known) {
            newest = Some((version, object));
        }
        if store.list_is_lexically_ordered && scheme == ManifestNamingScheme::V2 {
            break;
        }
    }
    Ok(newest.map(|(version, object)| Newest {
        version,
        etag: plain_etag(object.e_tag),
        time: object.last_modified.timestamp_millis(),
    }))
}

/// E-tags without the quotes that some ways of asking wrap them in, so that
/// those of the same object compare equal.
pub(crate) fn plain_etag(etag: Option<String>) -> String {
    etag.map(|etag| etag.trim_matches('"').to_owned())
        .unwrap_or_default()
}

/// E-tag of the manifest a dataset was opened from.
async fn etag_of(dataset: &Dataset) -> Result<String, Fault> {
    let location = dataset.manifest_location();
    if location.e_tag.is_some() {
        return Ok(plain_etag(location.e_tag.clone()));
    }
    let store = dataset.object_store(None).await?;
    let object = store.inner.head(&location.path).await?;
    Ok(plain_etag(object.e_tag))
}

#[derive(Deserialize)]
pub struct ReadTable {
    uri: String,
    /// 0 or absent: the newest.
    #[serde(default)]
    version: u64,
    /// Absent: all. Columns the table lacks are left out of the answer.
    columns: Option<Vec<String>>,
}

/// All rows of one version.
pub async fn read_table(engine: Arc<Engine>, request: ReadTable, _: Bytes) -> Result<Reply, Fault> {
    let dataset = open(&engine, &request.uri, request.version).await?;
    let etag = etag_of(&dataset).await?;
    let mut scanner = dataset.scan();
    if let Some(columns) = request.columns {
        let known = present(&dataset, columns);
        if known.is_empty() {
            return Err(
                Fault::new(Class::Invalid, "the table has none of the columns").at(&request.uri),
            );
        }
        scanner.project(&known)?;
    }
    let rows = Box::pin(scanner.try_into_stream())
        .await
        .map_err(|error| Fault::from(error).at(&request.uri))?;
    let body = ipc::write(rows)
        .await
        .map_err(|fault| fault.at(&request.uri))?;
    Ok(Reply {
        json: json!({ "version": dataset.version_id(), "etag": etag }),
        body,
    })
}

fn present(dataset: &Dataset, mut columns: Vec<String>) -> Vec<String> {
    columns.retain(|column| {
        let fields = &dataset.schema().fields;
        fields.iter().any(|field| field.name == *column)
    });
    columns
}

#[derive(Deserialize)]
pub struct CountRows {
    uri: String,
    /// 0 or absent: the newest.
    #[serde(default)]
    version: u64,
}

/// Rows of one version, without deleted ones.
pub async fn count_rows(engine: Arc<Engine>, request: CountRows, _: Bytes) -> Result<Reply, Fault> {
    let dataset = open(&engine, &request.uri, request.version).await?;
    let rows = dataset
        .count_rows(None)
        .await
        .map_err(|error| Fault::from(error).at(&request.uri))?;
    Ok(Reply::json(
        json!({ "version": dataset.version_id(), "rows": rows }),
    ))
}

async fn open(engine: &Engine, uri: &str, version: u64) -> Result<Dataset, Fault> {
    engine.open(uri, (version > 0).then_some(version)).await
}

/// The newest version of a table, or nothing where there is none.
async fn open_if_there(engine: &Engine, uri: &str) -> Result<Option<Dataset>, Fault> {
    match engine.open(uri, None).await {
        Ok(dataset) => Ok(Some(dataset)),
        Err(fault) if fault.class == Class::Gone => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[derive(Deserialize)]
pub struct CleanupVersions {
    uri: String,
    older_than_ms: i64,
    /// The newest so many stay, however old; at least one.
    #[serde(default)]
    keep: usize,
}

/// Removes old versions of a table of ours. Tagged versions and files that no
/// manifest is known to own stay.
pub async fn cleanup_versions(
    engine: Arc<Engine>,
    request: CleanupVersions,
    _: Bytes,
) -> Result<Reply, Fault> {
    let age = u64::try_from(request.older_than_ms)
        .map_err(|_| Fault::new(Class::Invalid, "older_than_ms is negative").at(&request.uri))?;
    let dataset = engine.open(&request.uri, None).await?;
    let remote = Remote::of(&engine, &request.uri).await?;
    let now = clock::for_cleanup(&remote)
        .await
        .map_err(|fault| fault.at(&request.uri))?;
    let before = DateTime::from_timestamp_millis(now).unwrap_or_default();
    let policy = CleanupPolicyBuilder::default()
        .before_timestamp(before - Duration::from_millis(age))
        .delete_unverified(false)
        .error_if_tagged_old_versions(false)
        .retain_n_versions(&dataset, request.keep.max(1))
        .await
        .map_err(|error| Fault::from(error).at(&request.uri))?
        .build();
    let removed = Box::pin(dataset.cleanup_with_policy(policy))
        .await
        .map_err(|error| Fault::from(error).at(&request.uri))?;
    Ok(Reply::json(json!({
        "removed": removed.old_versions,
        "bytes": removed.bytes_removed,
    })))
}

/// Data files that Lance 9 (inside lance-context 0.6.7) reads; the default of
/// this crate is newer. For tables we create; an existing one keeps its format.
const READABLE_BY_ALL: &str = "2.1";

/// How tables are written here: no stable row ids, no cleaning up behind the
/// caller's back.
pub(crate) fn write_params(
    engine: &Engine,
    mode: WriteMode,
    properties: &HashMap<String, String>,
) -> Result<WriteParams, Fault> {
    let data_storage_version = match mode {
        WriteMode::Create => Some(READABLE_BY_ALL.parse()?),
        _ => None,
    };
    Ok(WriteParams {
        mode,
        store_params: Some(engine.params()),
        session: Some(engine.session()),
        enable_stable_row_ids: false,
        auto_cleanup: None,
        skip_auto_cleanup: true,
        data_storage_version,
        transaction_properties: (!properties.is_empty()).then(|| Arc::new(properties.clone())),
        ..Default::default()
    })
}
