//! One MemWAL shard: its manifest, what it has pending, where its WAL ends.

use futures::{StreamExt, TryStreamExt};
use lance::dataset::mem_wal::util::{parse_bit_reversed_filename, shard_base_path};
use lance_index::mem_wal::{ShardManifest, ShardStatus, SsTable};
use lance_table::format::pb;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use prost::Message;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::Size;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fingerprint::{
    Naming, ShardMark, base_manifest, clean_etag, shard_manifest, shard_manifests_dir, versions_dir,
};
use crate::local;
use crate::remote::Remote;
use crate::wal::{Tail, Wal};

/// Generations opened at once to count their rows.
const OPENS_AT_ONCE: usize = 8;
/// Column that Lance adds to a generation: true deletes the row's key.
const TOMBSTONE: &str = "_tombstone";

/// See `fleet.Shard`.
#[derive(Clone, Debug, Serialize)]
pub struct Shard {
    #[serde(flatten)]
    pub mark: ShardMark,
    pub epoch: u64,
    pub current_generation: u64,
    pub compacted_mark: u64,
    pub status: &'static str,
    pub pending: i64,
    pub pending_rows: i64,
    /// What the writer measured in memory, or the size of the data files where
    /// it didn't say and the generation was opened.
    pub pending_bytes: i64,
    tombstones: bool,
    flush_cursor: u64,
    tail_entries: i64,
    tail_rows: i64,
    newest_entry: u64,
    newest_entry_time: i64,
    newest_generation_time: i64,
}

impl Default for Shard {
    /// A shard without a manifest.
    fn default() -> Self {
        Self {
            mark: ShardMark::default(),
            epoch: 0,
            current_generation: 0,
            compacted_mark: 0,
            status: "active",
            pending: 0,
            pending_rows: 0,
            pending_bytes: 0,
            tombstones: false,
            flush_cursor: 0,
            tail_entries: 0,
            tail_rows: 0,
            newest_entry: 0,
            newest_entry_time: 0,
            newest_generation_time: 0,
        }
    }
}

/// A shard as storage shows it, before the base table's marks are known.
pub struct Seen {
    pub id: Uuid,
    manifest: Option<Latest>,
    tail: Tail,
}

/// A version of a shard's manifest and the file it came from.
#[derive(Clone, Debug)]
pub struct Latest {
    pub version: u64,
    pub etag: String,
    /// Unix ms of the file.
    pub time: i64,
    pub content: ShardManifest,
}

/// Reads the shards of one dataset.
pub struct Shards<'a> {
    pub engine: &'a Engine,
    pub remote: &'a Remote,
    pub uri: &'a str,
}

impl Shards<'_> {
    /// The shards that have a folder, sorted.
    pub async fn ids(&self) -> Result<Vec<Uuid>, Fault> {
        match self.remote.store.is_local() {
            true => local::on_disk(self.engine, &self.remote.base, |disk| disk.shards()).await,
            false => self.remote.shards().await,
        }
    }

    /// The manifest first, then the WAL. Content and e-tag of the manifest come
    /// from one request.
    pub async fn see(&self, id: Uuid) -> Result<Seen, Fault> {
        let manifest = self.latest_manifest(id).await?;
        let (cursor, seen) = manifest.as_ref().map_or((0, 0), |latest| {
            (
                latest.content.replay_after_wal_entry_position,
                latest.content.wal_entry_position_last_seen,
            )
        });
        let wal = Wal {
            remote: self.remote,
            shard: id,
        };
        let tail = wal.tail(cursor, seen).await?;
        Ok(Seen { id, manifest, tail })
    }

    /// Completes a shard with what the base table has of it: `compacted` is the
    /// last generation that is in the base already.
    pub async fn measure(&self, seen: Seen, compacted: u64, keyed: bool) -> Result<Shard, Fault> {
        let Seen { id, manifest, tail } = seen;
        let mut shard = Shard {
            mark: ShardMark {
                id,
                manifest: 0,
                etag: String::new(),
                wal_next: tail.next,
            },
            compacted_mark: compacted,
            tail_entries: tail.entries,
            tail_rows: tail.rows,
            newest_entry: tail.newest,
            newest_entry_time: tail.newest_time,
            ..Shard::default()
        };
        let Some(latest) = manifest else {
            return Ok(shard);
        };
        let pending = pending_above(compacted, &latest.content.sstables);
        let pending = self.measure_pending(id, pending).await?;
        shard.mark.manifest = latest.version;
        shard.mark.etag = latest.etag;
        shard.epoch = latest.content.writer_epoch;
        shard.current_generation = latest.content.current_generation;
        shard.flush_cursor = latest.content.replay_after_wal_entry_position;
        if latest.content.status == ShardStatus::Sealed {
            shard.status = "sealed";
        }
        shard.pending = pending.len() as i64;
        shard.pending_rows = pending.iter().map(|one| one.rows).sum();
        shard.pending_bytes = sum_known(pending.iter().map(|one| one.bytes));
        shard.tombstones = keyed && pending.iter().any(|one| one.tombstones);
        shard.newest_generation_time = self.newest_time(id, &pending).await?;
        Ok(shard)
    }

    /// `None`: a shard folder without a manifest, as a writer that died early
    /// leaves it.
    pub async fn latest_manifest(&self, id: Uuid) -> Result<Option<Latest>, Fault> {
        let mut version = self.latest_version(id).await?;
        loop {
            if version == 0 {
                return Ok(None);
            }
            // Pruning takes old versions only; gone means dropped or recreated.
            match self.read_manifest(id, version).await {
                Err(fault) if fault.class == Class::Gone => {
                    let listed = self.listed_version(id).await?;
                    if listed == version {
                        return Err(fault);
                    }
                    version = listed;
                }
                read => return read.map(Some),
            }
        }
    }

    async fn latest_version(&self, id: Uuid) -> Result<u64, Fault> {
        if self.remote.store.is_local() {
            return self.local_version(id).await;
        }
        // The hint is best effort: it may lag, be absent or be wrong.
        let mut version = match self.hinted_version(id).await {
            Some(version) if version > 0 => version,
            _ => self.listed_version(id).await?,
        };
        while self.exists(id, version + 1).await? {
            version += 1;
        }
        Ok(version)
    }

    async fn local_version(&self, id: Uuid) -> Result<u64, Fault> {
        local::on_disk(self.engine, &self.remote.base, move |disk| {
            disk.shard_manifest(&id)
        })
        .await
    }

    async fn hinted_version(&self, id: Uuid) -> Option<u64> {
        #[derive(Deserialize)]
        struct Hint {
            version: u64,
        }
        let path = shard_manifests_dir(&self.remote.base, &id).join("version_hint.json");
        let got = self.remote.store.inner.get(&path).await.ok()?;
        let hint: Hint = serde_json::from_slice(&got.bytes().await.ok()?).ok()?;
        Some(hint.version)
    }

    async fn listed_version(&self, id: Uuid) -> Result<u64, Fault> {
        let directory = shard_manifests_dir(&self.remote.base, &id);
        let mut listed = self.remote.store.inner.list(Some(&directory));
        let mut latest = 0;
        while let Some(object) = listed.try_next().await? {
            let name = object.location.filename().unwrap_or_default();
            if name.ends_with(".binpb") {
                latest = latest.max(parse_bit_reversed_filename(name).unwrap_or(0));
            }
        }
        Ok(latest)
    }

    async fn exists(&self, id: Uuid, version: u64) -> Result<bool, Fault> {
        let path = shard_manifest(&self.remote.base, &id, version);
        Ok(self.remote.head(&path).await?.is_some())
    }

    /// 1 GET.
    pub async fn read_manifest(&self, id: Uuid, version: u64) -> Result<Latest, Fault> {
        let path = shard_manifest(&self.remote.base, &id, version);
        let got = self.remote.store.inner.get(&path).await?;
        let etag = clean_etag(got.meta.e_tag.as_deref().unwrap_or_default());
        let time = got.meta.last_modified.timestamp_millis();
        let bytes = got.bytes().await?;
        let corrupt = |error: &dyn std::fmt::Display| {
            Fault::new(
                Class::Corrupt,
                format!("shard {id}: manifest {version}: {error}"),
            )
        };
        let decoded = pb::ShardManifest::decode(bytes).map_err(|error| corrupt(&error))?;
        let content = ShardManifest::try_from(decoded).map_err(|error| corrupt(&error))?;
        Ok(Latest {
            version,
            etag,
            time,
            content,
        })
    }

    async fn measure_pending(
        &self,
        id: Uuid,
        pending: Vec<SsTable>,
    ) -> Result<Vec<Generation>, Fault> {
        futures::stream::iter(pending)
            .map(|sstable| self.measure_generation(id, sstable))
            .buffered(OPENS_AT_ONCE)
            .try_collect()
            .await
    }

    /// From the manifest where its writer measured, else by opening it.
    async fn measure_generation(&self, id: Uuid, sstable: SsTable) -> Result<Generation, Fault> {
        if let Some(rows) = sstable.physical_rows {
            return Ok(Generation {
                number: sstable.generation,
                path: sstable.path.clone(),
                rows: rows as i64,
                bytes: sstable.in_memory_bytes.map_or(-1, |bytes| bytes as i64),
                // A writer that measures is one that knows deletes.
                tombstones: true,
                time: None,
            });
        }
        let uri = format!(
            "{}/_mem_wal/{id}/{}",
            self.uri.trim_end_matches('/'),
            sstable.path
        );
        let opened = self.engine.open(&uri, None).await?;
        let size = Size::of(&opened, 0).await?;
        Ok(Generation {
            number: sstable.generation,
            path: sstable.path.clone(),
            rows: size.rows,
            bytes: size.bytes,
            tombstones: opened.schema().field(TOMBSTONE).is_some(),
            time: Some(opened.manifest().timestamp().timestamp_millis()),
        })
    }

    /// When the newest pending generation was written: the time of its first
    /// manifest. 0: none pending.
    async fn newest_time(&self, id: Uuid, pending: &[Generation]) -> Result<i64, Fault> {
        let Some(newest) = pending.iter().max_by_key(|one| one.number) else {
            return Ok(0);
        };
        if let Some(time) = newest.time {
            return Ok(time);
        }
        let folder = shard_base_path(&self.remote.base, &id).join(newest.path.as_str());
        let first = base_manifest(&folder, Naming::V2, 1);
        if let Some(meta) = self.remote.head(&first).await? {
            return Ok(meta.last_modified.timestamp_millis());
        }
        self.listed_time(&folder).await
    }

    async fn listed_time(&self, generation: &Path) -> Result<i64, Fault> {
        let directory = versions_dir(generation);
        let mut listed = self.remote.store.inner.list(Some(&directory));
        let mut newest = 0;
        while let Some(object) = listed.try_next().await? {
            newest = newest.max(object.last_modified.timestamp_millis());
        }
        match newest {
            0 => Err(Fault::new(
                Class::Gone,
                format!("generation {generation} has no manifest"),
            )),
            time => Ok(time),
        }
    }
}

struct Generation {
    number: u64,
    path: String,
    rows: i64,
    /// -1: unknown.
    bytes: i64,
    /// It may hold deletes.
    tombstones: bool,
    /// Unix ms, where it was seen on the way.
    time: Option<i64>,
}

/// The generations that are not in the base yet. A flush may list one folder
/// twice after an ambiguous PUT: it counts once.
fn pending_above(mark: u64, sstables: &[SsTable]) -> Vec<SsTable> {
    let mut pending: Vec<SsTable> = Vec::new();
    for sstable in sstables {
        let listed = pending.iter().any(|one| one.path == sstable.path);
        if sstable.generation > mark && !listed {
            pending.push(sstable.clone());
        }
    }
    pending
}

/// -1 if any of them is unknown.
pub fn sum_known(numbers: impl Iterator<Item = i64>) -> i64 {
    let mut sum = 0;
    for number in numbers {
        if number < 0 {
            return -1;
        }
        sum += number;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_at_or_below_the_mark_and_repeated_folders_are_not_pending() {
        let sstables = [
            SsTable::unmeasured(1, "a_gen_1".into()),
            SsTable::unmeasured(2, "b_gen_2".into()),
            SsTable::unmeasured(3, "c_gen_3".into()),
            SsTable::unmeasured(3, "c_gen_3".into()),
        ];
        let pending = pending_above(1, &sstables);
        let paths: Vec<_> = pending.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["b_gen_2", "c_gen_3"]);
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        assert_eq!(sum_known([1, 2].into_iter()), 3);
        assert_eq!(sum_known([1, -1].into_iter()), -1);
        assert_eq!(sum_known(std::iter::empty()), 0);
    }
}
