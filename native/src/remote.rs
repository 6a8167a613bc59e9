//! Object storage, asked directly: each of these costs the requests it names and
//! no more.

use std::sync::Arc;

use futures::TryStreamExt;
use lance_io::object_store::ObjectStore;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use uuid::Uuid;

use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fingerprint::{self, Fingerprint, Naming, ShardMark, Versions, same_etag};
use crate::local::moved_shards;
use crate::probe::{Manifests, Moved, first_moved};

/// Objects in one page of a listing.
const PAGE: usize = 1000;

/// One dataset on object storage.
pub struct Remote {
    pub store: Arc<ObjectStore>,
    pub base: Path,
}

impl Remote {
    pub async fn of(engine: &Engine, uri: &str) -> Result<Self, Fault> {
        let (store, base) = engine.store(uri).await?;
        Ok(Self { store, base })
    }

    /// 1 HEAD. `None`: there is no such object.
    pub async fn head(&self, path: &Path) -> Result<Option<ObjectMeta>, Fault> {
        match self.store.inner.head(path).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// 1 HEAD of the next version; `deep`: another one of the head we know.
    pub async fn head_moved(&self, known: &Fingerprint, deep: bool) -> Result<Moved, Fault> {
        let manifest = |version| fingerprint::base_manifest(&self.base, known.naming, version);
        let next = async {
            let found = self.head(&manifest(known.version + 1)).await?;
            Ok(found.map(|_| "base version".to_owned()))
        };
        if !deep {
            return next.await;
        }
        let current = async {
            let found = self.head(&manifest(known.version)).await?;
            Ok(changed_object(found, &known.etag, || {
                "base etag".to_owned()
            }))
        };
        let (next, current) = tokio::join!(next, current);
        first_moved([next, current].into_iter())
    }

    /// 1 LIST of `_versions/` (more where the order of names doesn't help).
    pub async fn head_moved_by_listing(&self, known: &Fingerprint) -> Result<Moved, Fault> {
        let (versions, head) = self.versions().await?;
        if versions.head != known.version || versions.naming != known.naming {
            return Ok(Some("base version".to_owned()));
        }
        let etag = head.e_tag.unwrap_or_default();
        Ok((!same_etag(&known.etag, &etag)).then(|| "base etag".to_owned()))
    }

    /// The versions of the base table and the head's manifest, by LIST. On a
    /// store that lists in order of names the first page is enough for the V2
    /// scheme: newer versions have smaller names.
    pub async fn versions(&self) -> Result<(Versions, ObjectMeta), Fault> {
        let directory = fingerprint::versions_dir(&self.base);
        let mut listed = self.store.inner.list(Some(&directory));
        let (mut versions, mut head) = (Versions::default(), None);
        let mut seen = 0;
        while let Some(object) = listed.try_next().await? {
            seen += 1;
            let name = object.location.filename().unwrap_or_default().to_owned();
            if versions.take(&name)? {
                head = Some(object);
            }
            let newest_first = versions.naming == Naming::V2 && !versions.is_empty();
            if self.store.list_is_lexically_ordered && newest_first && seen >= PAGE {
                break;
            }
        }
        let head = head.ok_or_else(|| Fault::new(Class::Gone, "_versions has no manifest"))?;
        Ok((versions, head))
    }

    /// 1 LIST with delimiter of `_mem_wal/`.
    pub async fn shards_moved(&self, known: &Fingerprint) -> Result<Moved, Fault> {
        Ok(moved_shards(known, &self.shards().await?))
    }

    /// The folders of shards, sorted, by 1 LIST with delimiter.
    pub async fn shards(&self) -> Result<Vec<Uuid>, Fault> {
        let directory = fingerprint::shards_dir(&self.base);
        let listed = self
            .store
            .inner
            .list_with_delimiter(Some(&directory))
            .await?;
        let mut shards: Vec<Uuid> = listed
            .common_prefixes
            .iter()
            .filter_map(|prefix| Uuid::parse_str(prefix.filename()?).ok())
            .collect();
        shards.sort_unstable();
        Ok(shards)
    }

    /// 1 HEAD of the shard's next manifest; `deep`: 2 more, of the manifest we
    /// know and of the next WAL entry, or 1 where only one manifest is asked for.
    pub async fn shard_moved(
        &self,
        known: &ShardMark,
        deep: Option<Manifests>,
    ) -> Result<Moved, Fault> {
        let id = known.id;
        let manifest = |version| fingerprint::shard_manifest(&self.base, &id, version);
        let next = async {
            if deep == Some(Manifests::Known) && known.manifest > 0 {
                return Ok(None);
            }
            let found = self.head(&manifest(known.manifest + 1)).await?;
            Ok(found.map(|_| format!("shard {id} manifest")))
        };
        if deep.is_none() {
            return next.await;
        }
        let current = async {
            if known.manifest == 0 || deep == Some(Manifests::Next) {
                return Ok(None);
            }
            let found = self.head(&manifest(known.manifest)).await?;
            Ok(changed_object(found, &known.etag, || {
                format!("shard {id} etag")
            }))
        };
        let tail = async {
            let next = fingerprint::wal_entry(&self.base, &id, known.wal_next.max(1));
            Ok(self.head(&next).await?.map(|_| "wal tail".to_owned()))
        };
        let (next, current, tail) = tokio::join!(next, current, tail);
        first_moved([next, current, tail].into_iter())
    }
}

/// An object that is gone or is another one under the same name.
fn changed_object(found: Option<ObjectMeta>, etag: &str, detail: impl Fn() -> String) -> Moved {
    let same = found.is_some_and(|meta| same_etag(etag, &meta.e_tag.unwrap_or_default()));
    (!same).then(detail)
}
