//! A table opened anew, with its shards: what maintenance starts from.

use futures::{FutureExt, StreamExt, TryStreamExt};
use lance::Dataset;
use uuid::Uuid;

use crate::base::{self, Indexes};
use crate::engine::Engine;
use crate::error::Fault;
use crate::remote::Remote;
use crate::shard::{Latest, Shards};
use crate::tail::{self, Place};

/// Shards of one table that are looked at at once.
const SHARDS_AT_ONCE: usize = 8;

/// A table and its shards at one moment. The shards were read before the base: a
/// merge commits to the base first and drains afterwards, so what moves in
/// between is seen twice rather than not at all.
pub struct Fresh<'a> {
    pub engine: &'a Engine,
    pub uri: &'a str,
    pub remote: Remote,
    /// All that have a folder, with their latest manifests, by id.
    pub shards: Vec<(Uuid, Option<Latest>)>,
    pub base: Dataset,
    pub indexes: Indexes,
}

impl<'a> Fresh<'a> {
    pub async fn open(engine: &'a Engine, uri: &'a str) -> Result<Self, Fault> {
        let (store, path) = engine.store(uri).await?;
        let remote = Remote { store, base: path };
        let shards = manifests(engine, uri, &remote).await?;
        let base = open_at_head(engine, uri, &remote).await?;
        let indexes = Indexes::of(&base).boxed().await?;
        Ok(Self {
            engine,
            uri,
            remote,
            shards,
            base,
            indexes,
        })
    }

    /// Shards that count their generations anew and list some: nobody can tell
    /// which of those are in the base. Such a shard was removed and made again;
    /// its counter may have gone past the mark since, but then its manifest is
    /// older than the one that our last merge saw.
    pub async fn counted_anew(&self) -> Result<Vec<Uuid>, Fault> {
        let mut anew = Vec::new();
        for (shard, manifest) in &self.shards {
            let Some(manifest) = manifest else {
                continue;
            };
            let (mark, content) = (self.indexes.mark(shard), &manifest.content);
            let listed = &content.sstables;
            if content.current_generation <= mark {
                anew.extend((!listed.is_empty()).then_some(*shard));
            } else if listed.iter().any(|one| one.generation <= mark) {
                let record = tail::record(&self.base, *shard).boxed().await?;
                let older = record.is_some_and(|one| one.checked.manifest > manifest.version);
                anew.extend(older.then_some(*shard));
            }
        }
        Ok(anew)
    }

    pub fn reader(&self) -> Shards<'_> {
        Shards {
            engine: self.engine,
            remote: &self.remote,
            uri: self.uri,
        }
    }

    pub fn place<'b>(&'b self, shard: Uuid, manifest: Option<&'b Latest>) -> Place<'b> {
        Place {
            engine: self.engine,
            remote: &self.remote,
            uri: self.uri,
            base: &self.base,
            shard,
            manifest,
            mark: self.indexes.mark(&shard),
        }
    }
}

/// The table alone, at its head.
pub async fn open(engine: &Engine, uri: &str) -> Result<Dataset, Fault> {
    let (store, path) = engine.store(uri).await?;
    open_at_head(engine, uri, &Remote { store, base: path }).await
}

async fn open_at_head(engine: &Engine, uri: &str, remote: &Remote) -> Result<Dataset, Fault> {
    let head = base::head(engine, remote, uri).await?;
    base::open(engine, uri, &head).boxed().await
}

async fn manifests(
    engine: &Engine,
    uri: &str,
    remote: &Remote,
) -> Result<Vec<(Uuid, Option<Latest>)>, Fault> {
    let shards = Shards {
        engine,
        remote,
        uri,
    };
    let ids = shards.ids().await?;
    futures::stream::iter(ids)
        .map(|id| {
            let latest = shards.latest_manifest(id);
            async move { Ok((id, latest.await?)) }.boxed()
        })
        .buffered(SHARDS_AT_ONCE)
        .try_collect()
        .await
}
