//! A table opened anew, with its shards: what maintenance starts from.

use std::collections::HashSet;

use futures::{FutureExt, StreamExt, TryStreamExt};
use lance::Dataset;
use uuid::Uuid;

use crate::base::{self, Indexes};
use crate::engine::Engine;
use crate::error::Fault;
use crate::remote::Remote;
use crate::shard::{Latest, Shards};
use crate::tail::{self, Place};
use crate::wal::Wal;

/// Shards of one table that are looked at at once.
const SHARDS_AT_ONCE: usize = 8;

/// A table and its shards at one moment. The shards were read before the base, and
/// the ends of their WALs in between: a merge commits to the base first and drains
/// afterwards, so what moves in between is seen twice rather than not at all.
pub struct Fresh<'a> {
    pub engine: &'a Engine,
    pub uri: &'a str,
    pub remote: Remote,
    /// All that have a folder, with their latest manifests, by id.
    pub shards: Vec<(Uuid, Option<Latest>)>,
    /// First positions without an entry, in the order of the shards.
    ends: Vec<u64>,
    pub base: Dataset,
    pub indexes: Indexes,
}

impl<'a> Fresh<'a> {
    pub async fn open(engine: &'a Engine, uri: &'a str) -> Result<Self, Fault> {
        let (store, path) = engine.store(uri).await?;
        let remote = Remote { store, base: path };
        let (shards, ends) = shards(engine, uri, &remote).await?.into_iter().unzip();
        let base = open_at_head(engine, uri, &remote).await?;
        let indexes = Indexes::of(&base).boxed().await?;
        Ok(Self {
            engine,
            uri,
            remote,
            shards,
            ends,
            base,
            indexes,
        })
    }

    /// Shards whose generations can't be told from merged ones by their numbers:
    /// such a shard was removed and made again, or somebody else merges it too.
    pub async fn counted_anew(&self) -> Result<Vec<Uuid>, Fault> {
        let mut anew = Vec::new();
        for ((shard, manifest), end) in self.shards.iter().zip(&self.ends) {
            let (mark, manifest) = (self.indexes.mark(shard), manifest.as_ref());
            let listed = |one: &&Latest| mark > 0 && !one.content.sstables.is_empty();
            let Some(Latest { content, .. }) = manifest.filter(listed) else {
                continue;
            };
            let is_anew = content.current_generation <= mark || {
                let record = tail::record(&self.base, *shard).boxed().await?;
                tail::made_anew(record.as_ref(), content, mark, *end)
            };
            anew.extend(is_anew.then_some(*shard));
        }
        Ok(anew)
    }

    /// How many generations a shard's manifest names that are in the base.
    pub fn merged(&self, shard: &Uuid) -> usize {
        let mark = self.indexes.mark(shard);
        let known = self.shards.iter().find(|(id, _)| id == shard);
        let manifest = known.and_then(|(_, manifest)| manifest.as_ref());
        let listed = manifest.into_iter().flat_map(|one| &one.content.sstables);
        let merged = listed.filter(|one| one.generation <= mark);
        merged.map(|one| &one.path).collect::<HashSet<_>>().len()
    }

    pub fn reader(&self) -> Shards<'_> {
        Shards {
            engine: self.engine,
            remote: &self.remote,
            uri: self.uri,
        }
    }

    pub fn place<'b>(&'b self, shard: Uuid, manifest: Option<&'b Latest>) -> Place<'b> {
        let known = self.shards.iter().position(|(id, _)| *id == shard);
        Place {
            engine: self.engine,
            remote: &self.remote,
            uri: self.uri,
            base: &self.base,
            shard,
            manifest,
            next: known.map_or(0, |index| self.ends[index]),
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

/// The shards, each with the end of its WAL.
async fn shards(
    engine: &Engine,
    uri: &str,
    remote: &Remote,
) -> Result<Vec<((Uuid, Option<Latest>), u64)>, Fault> {
    let shards = Shards {
        engine,
        remote,
        uri,
    };
    let ids = shards.ids().await?;
    futures::stream::iter(ids)
        .map(|id| one_shard(&shards, id).boxed())
        .buffered(SHARDS_AT_ONCE)
        .try_collect()
        .await
}

async fn one_shard(shards: &Shards<'_>, id: Uuid) -> Result<((Uuid, Option<Latest>), u64), Fault> {
    let manifest = shards.latest_manifest(id).await?;
    let (remote, shard) = (shards.remote, id);
    let content = manifest.as_ref().map(|latest| &latest.content);
    let end = Wal { remote, shard }.end(content).await?;
    Ok(((id, manifest), end))
}
