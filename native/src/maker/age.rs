//! Making an experiment look old.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use chrono::TimeDelta;
use futures::TryStreamExt;
use lance_io::local::to_local_path;
use lance_io::object_store::ObjectStore;
use lance_io::utils::read_message;
use lance_table::format::{Transaction, pb};
use lance_table::io::commit::{ManifestLocation, VERSIONS_DIR, write_manifest_file_to_path};
use lance_table::io::manifest::{read_manifest, read_manifest_indexes};
use object_store::ObjectMeta;

use crate::engine::Engine;
use crate::error::{Class, Fault};

/// Moves every commit of the dataset and of its generations `by_ms` into the
/// past, and on local disk every file's time with them. Order and distances in
/// time stay.
pub async fn make_older(engine: &Engine, uri: &str, by_ms: u64) -> Result<(), Fault> {
    let (store, base) = engine.store(uri).await?;
    let objects: Vec<ObjectMeta> = store.inner.list(Some(&base)).try_collect().await?;
    for object in objects.into_iter().filter(is_manifest) {
        rewrite_manifest(&store, object, by_ms).await?;
    }
    if store.has_direct_local_paths() {
        let root = PathBuf::from(to_local_path(&base));
        tokio::task::spawn_blocking(move || shift_times(&root, Duration::from_millis(by_ms)))
            .await
            .map_err(Fault::from_join)??;
    }
    Ok(())
}

fn is_manifest(object: &ObjectMeta) -> bool {
    let mut parts: Vec<_> = object.location.parts().collect();
    let name = parts.pop();
    let folder = parts.pop();
    folder.is_some_and(|folder| folder.as_ref() == VERSIONS_DIR)
        && name.is_some_and(|name| name.as_ref().ends_with(".manifest"))
}

/// The same manifest with earlier times, at the same place.
async fn rewrite_manifest(
    store: &ObjectStore,
    object: ObjectMeta,
    by_ms: u64,
) -> Result<(), Fault> {
    let by = TimeDelta::try_milliseconds(by_ms as i64)
        .ok_or_else(|| Fault::new(Class::Invalid, "age_ms is out of range"))?;
    let location = ManifestLocation::try_from(object)?;
    let mut manifest = read_manifest(store, &location.path, location.size).await?;
    let mut indices = read_manifest_indexes(store, &location, &manifest).await?;
    let transaction = match manifest.transaction_section {
        Some(position) => {
            let reader = store.open(&location.path).await?;
            let message: pb::Transaction = read_message(reader.as_ref(), position).await?;
            Some(Transaction::from(message))
        }
        None => None,
    };
    for index in &mut indices {
        index.created_at = index.created_at.map(|created| created - by);
    }
    let by_nanos = u128::from(by_ms) * 1_000_000;
    manifest.set_timestamp(manifest.timestamp_nanos.saturating_sub(by_nanos));
    let indices = (!indices.is_empty()).then_some(indices);
    write_manifest_file_to_path(store, &mut manifest, indices, &location.path, transaction).await?;
    Ok(())
}

/// Blocks. A folder comes after its files, which change its own time.
fn shift_times(path: &FilePath, by: Duration) -> Result<(), Fault> {
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path)? {
            shift_times(&entry?.path(), by)?;
        }
    }
    let file = std::fs::File::open(path)?;
    file.set_modified(metadata.modified()? - by)?;
    Ok(())
}
