//! A table opened anew, with its shards: what maintenance starts from.

use futures::{FutureExt, StreamExt, TryStreamExt};
use lance::Dataset;
use uuid::Uuid;

use crate::base::{self, Indexes};
use crate::engine::Engine;
use crate::error::Fault;
use crate::remote::Remote;
use crate::shard::{Latest, Shards};
use crate::tail::Place;

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

    /// How many generations a shard's manifest names.
    pub fn listed(&self, shard: &Uuid) -> usize {
        let known = self.shards.iter().find(|(id, _)| id == shard);
        let manifest = known.and_then(|(_, manifest)| manifest.as_ref());
        manifest.map_or(0, |latest| latest.content.sstables.len())
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
