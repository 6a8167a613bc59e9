//! Commits only over versions that are all still there.
//!
//! Lance carries a commit over what others committed since, by looking at what each
//! of them did. It looks at those it finds: a version that a cleanup removed
//! meanwhile is left out in silence, while a tag may keep the one that was read. A
//! late attempt would then land on top of what contradicts it: generations that
//! another attempt merged would be there twice, and rows come back out of
//! fragments that are rewritten. So where one version is missing the attempt is
//! lost; and where the version that was read is another one by now, as after the
//! table was dropped and made anew.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use lance::Dataset;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter,
};
use lance_table::io::manifest::read_manifest;
use object_store::path::Path;

use crate::engine::Engine;
use crate::error::Fault;
use crate::fresh;

/// Commits what was made from one version of a table.
#[derive(Debug)]
pub struct Unbroken {
    inner: Arc<dyn CommitHandler>,
    read: Identity,
}

/// What tells a version from one of the same number in another table.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    version: u64,
    timestamp_nanos: u128,
    transaction_file: Option<String>,
}

impl Identity {
    fn of(manifest: &Manifest) -> Self {
        Self {
            version: manifest.version,
            timestamp_nanos: manifest.timestamp_nanos,
            transaction_file: manifest.transaction_file.clone(),
        }
    }
}

impl Unbroken {
    pub async fn over(
        engine: &Engine,
        uri: &str,
        read: &Dataset,
    ) -> Result<Arc<dyn CommitHandler>, Fault> {
        Ok(Arc::new(Self {
            inner: engine.commit_handler(uri).await?,
            read: Identity::of(read.manifest()),
        }))
    }

    /// Looked at after Lance looked at the others' commits and right before the
    /// next version is put if absent: what is there now was there for Lance too.
    async fn check(&self, base: &Path, store: &ObjectStore, next: u64) -> lance::Result<()> {
        let lost = |why: String| lance::Error::retryable_commit_conflict_source(next, why.into());
        let read = self.read.version;
        // Where names don't sort, Lance trusts a hint for what came since.
        let listed = match store.list_is_lexically_ordered {
            true => self
                .inner
                .list_manifest_locations_since(base, store, read.saturating_sub(1)),
            false => self.inner.list_manifest_locations(base, store, false),
        };
        let there: HashMap<u64, ManifestLocation> = listed
            .map_ok(|location| (location.version, location))
            .try_collect()
            .await?;
        if let Some(gone) = (read..next).find(|version| !there.contains_key(version)) {
            return Err(lost(format!(
                "it was made from version {read}, and version {gone} was cleaned up since: nobody \
                 can tell whether the two can both stand"
            )));
        }
        let newest = there.keys().copied().max().unwrap_or(0);
        let Some(location) = there.get(&read).filter(|_| newest < next) else {
            return Err(lost(format!(
                "it was made from version {read}, and the head is {newest} by now"
            )));
        };
        let manifest = read_manifest(store, &location.path, location.size).await?;
        match Identity::of(&manifest) == self.read {
            true => Ok(()),
            false => Err(lost(format!(
                "version {read} is another one by now: the table was made anew"
            ))),
        }
    }
}

/// Says whether the version that was read is another one by now. What is there may
/// look damaged then to whoever remembers, as Lance does, how long its manifest was.
pub async fn made_anew(engine: &Engine, uri: &str, read: &Dataset) -> bool {
    let was = Identity::of(read.manifest());
    let Ok(head) = fresh::open(engine, uri).await else {
        return false;
    };
    if head.version_id() <= was.version {
        return Identity::of(head.manifest()) != was;
    }
    match Box::pin(head.checkout_version(was.version)).await {
        Ok(then) => Identity::of(then.manifest()) != was,
        Err(_) => false,
    }
}

/// The head, opened for a change that Lance itself commits.
pub async fn open(engine: &Engine, uri: &str) -> Result<Dataset, Fault> {
    let head = fresh::open(engine, uri).await?;
    let handler = Unbroken::over(engine, uri, &head).await?;
    engine.open_to_commit(uri, head.version_id(), handler).await
}

#[async_trait]
impl CommitHandler for Unbroken {
    fn is_version_not_found_definitive(&self) -> bool {
        self.inner.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        self.inner.propagate_commit_error_after_success()
    }

    async fn resolve_latest_location(
        &self,
        base_path: &Path,
        object_store: &ObjectStore,
    ) -> lance::Result<ManifestLocation> {
        self.inner
            .resolve_latest_location(base_path, object_store)
            .await
    }

    async fn resolve_version_location(
        &self,
        base_path: &Path,
        version: u64,
        object_store: &dyn object_store::ObjectStore,
    ) -> lance::Result<ManifestLocation> {
        self.inner
            .resolve_version_location(base_path, version, object_store)
            .await
    }

    async fn version_exists(
        &self,
        base_path: &Path,
        version: u64,
        object_store: &dyn object_store::ObjectStore,
        naming_scheme: ManifestNamingScheme,
    ) -> lance::Result<bool> {
        self.inner
            .version_exists(base_path, version, object_store, naming_scheme)
            .await
    }

    fn list_detached_manifest_locations<'a>(
        &self,
        base_path: &Path,
        object_store: &'a ObjectStore,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner
            .list_detached_manifest_locations(base_path, object_store)
    }

    fn list_manifest_locations<'a>(
        &self,
        base_path: &Path,
        object_store: &'a ObjectStore,
        sorted_descending: bool,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner
            .list_manifest_locations(base_path, object_store, sorted_descending)
    }

    fn list_manifest_locations_since<'a>(
        &self,
        base_path: &Path,
        object_store: &'a ObjectStore,
        since_version: u64,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner
            .list_manifest_locations_since(base_path, object_store, since_version)
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        self.check(base_path, object_store, manifest.version)
            .await?;
        self.inner
            .commit(
                manifest,
                indices,
                base_path,
                object_store,
                manifest_writer,
                naming_scheme,
                transaction,
            )
            .await
    }
}
