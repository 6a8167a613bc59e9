//! Stranded WAL entries brought into a generation: by opening a writer, which
//! replays them, and closing it.

mod plan;

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use lance::dataset::mem_wal::{DatasetMemWalExt, ShardManifestStore, ShardWriterConfig};
use lance_index::mem_wal::ShardManifest;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::plan::Plan;
use crate::base;
use crate::call::Reply;
use crate::clock;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fresh::Fresh;
use crate::maintain::{self, Refusal};
use crate::shard::Latest;
use crate::tail::Listed;

/// Heads that are asked for at once when the newest manifest is sought.
const SCAN_BATCH: usize = 2;
/// Lance wants this to exceed what it sets aside for the rows of a generation;
/// nothing is allocated for it.
const UNFLUSHED_BYTES: usize = 3 << 30;

#[derive(Deserialize)]
pub struct SealShard {
    uri: String,
    shard: Uuid,
    #[serde(default)]
    silent_ms: i64,
    #[serde(default)]
    allow_unknown: bool,
    #[serde(default)]
    dry_run: bool,
}

/// See `lance.Sealed`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sealed {
    shard: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refusal>,
    entries: Vec<Listed>,
    rows: i64,
    generation: u64,
    epoch: u64,
    manifest: u64,
}

/// See README.md.
pub async fn seal_shard(engine: Arc<Engine>, request: SealShard, _: Bytes) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, async {
        let fresh = Fresh::open(&engine, uri).await?;
        seal(&fresh, &request).await
    })
    .await
}

/// What a look at the table says is to be done, and doing it.
pub async fn seal(fresh: &Fresh<'_>, request: &SealShard) -> Result<Sealed, Fault> {
    let shard = request.shard;
    let known = fresh.shards.iter().find(|(id, _)| *id == shard);
    let Some((_, manifest)) = known else {
        return Err(Fault::new(
            Class::Gone,
            format!("there is no shard {shard}"),
        ));
    };
    let place = fresh.place(shard, manifest.as_ref());
    let examined = place.examine().boxed().await?;
    let plan = Plan::of(&examined);
    let mut sealed = Sealed {
        shard,
        entries: plan.replayed.iter().map(Listed::from).collect(),
        rows: plan.replayed.iter().map(|one| one.rows.max(0)).sum(),
        epoch: manifest.as_ref().map_or(0, |one| one.content.writer_epoch),
        manifest: manifest.as_ref().map_or(0, |one| one.version),
        ..Sealed::default()
    };
    let silent = request.silent_ms.max(0);
    let mut silent_since = clock::now().saturating_sub(silent);
    if silent > 0 && !request.dry_run && plan.is_silent(silent_since) {
        silent_since = clock::at_most_now(&fresh.remote).await? - silent;
    }
    sealed.refused = plan.refused(manifest.as_ref(), silent_since, request.allow_unknown);
    if sealed.refused.is_none() && !plan.replayed.is_empty() {
        place.readable_after(plan.covered).boxed().await?;
    }
    let Some(manifest) = manifest.as_ref().filter(|_| !request.dry_run) else {
        return Ok(sealed);
    };
    let advances = plan.gets_further(sealed.refused.as_ref());
    if !advances && (sealed.refused.is_some() || plan.replayed.is_empty()) {
        return Ok(sealed);
    }
    if is_claimed(fresh, shard, manifest).await? {
        sealed.refused = Some(plan::live());
        return Ok(sealed);
    }
    step_over(fresh, shard, manifest, plan.covered).await?;
    if advances {
        return Ok(sealed);
    }
    if is_claimed(fresh, shard, manifest).await? {
        sealed.refused = Some(plan::live());
        return Ok(sealed);
    }
    base_is_as_judged(fresh).await?;
    let (epoch, after) = replay(fresh, shard, manifest, &plan).await?;
    let before = manifest.content.current_generation;
    let made = after.sstables.iter().map(|one| one.generation);
    sealed.generation = made.filter(|one| *one >= before).max().unwrap_or(0);
    sealed.epoch = epoch;
    sealed.manifest = after.version;
    Ok(sealed)
}

fn manifests(fresh: &Fresh<'_>, shard: Uuid) -> ShardManifestStore {
    ShardManifestStore::new(
        fresh.remote.store.clone(),
        &fresh.remote.base,
        shard,
        SCAN_BATCH,
    )
}

/// Whether a writer has claimed the shard since it was looked at. Claiming it now
/// would fence that one.
async fn is_claimed(fresh: &Fresh<'_>, shard: Uuid, manifest: &Latest) -> Result<bool, Fault> {
    let latest = manifests(fresh, shard).latest().boxed().await?;
    Ok(latest.is_none_or(|latest| latest.writer_epoch != manifest.content.writer_epoch))
}

/// What equals the base is harmless to replay as long as the base has it: since it
/// was looked at, rows may have been deleted there.
async fn base_is_as_judged(fresh: &Fresh<'_>) -> Result<(), Fault> {
    let seen = fresh.base.version_id();
    let head = base::head(fresh.engine, &fresh.remote, fresh.uri).await?;
    match head.version == seen {
        true => Ok(()),
        false => Err(Fault::new(
            Class::Conflict,
            format!(
                "the table went from version {seen} to {} while its log was looked at",
                head.version
            ),
        )),
    }
}

/// Moves the flush cursor over entries that are accounted for, so that they are
/// not replayed. It is never moved back. Refused, as a conflict, when a writer
/// has claimed the shard since it was looked at.
async fn step_over(
    fresh: &Fresh<'_>,
    shard: Uuid,
    manifest: &Latest,
    covered: u64,
) -> Result<(), Fault> {
    if covered <= manifest.content.replay_after_wal_entry_position {
        return Ok(());
    }
    let epoch = manifest.content.writer_epoch;
    let manifests = manifests(fresh, shard);
    let moved = manifests.commit_update(epoch, |current| ShardManifest {
        version: current.next_version(),
        replay_after_wal_entry_position: current.replay_after_wal_entry_position.max(covered),
        ..current.clone()
    });
    moved.boxed().await?;
    Ok(())
}

/// Claims the shard and leaves it. Answers the epoch and the manifest afterwards.
async fn replay(
    fresh: &Fresh<'_>,
    shard: Uuid,
    manifest: &Latest,
    plan: &Plan,
) -> Result<(u64, ShardManifest), Fault> {
    let config = config(manifest, plan);
    let writer = Box::pin(fresh.base.mem_wal_writer(shard, config)).await?;
    let epoch = writer.epoch();
    Box::pin(writer.close()).await?;
    let after = manifests(fresh, shard).refresh_latest().boxed().await?;
    let after =
        after.ok_or_else(|| Fault::new(Class::Gone, format!("shard {shard} lost its manifest")))?;
    Ok((epoch, after))
}

/// A writer with room for all that is replayed: what one generation began must
/// not be split over two.
fn config(manifest: &Latest, plan: &Plan) -> ShardWriterConfig {
    let rows: i64 = plan.replayed.iter().map(|one| one.rows.max(0)).sum();
    let rows = (rows as usize + 1024).max(ShardWriterConfig::default().max_memtable_rows);
    let batches = (plan.batches() + 64).max(ShardWriterConfig::default().max_memtable_batches);
    ShardWriterConfig::default()
        .with_shard_spec_id(manifest.content.shard_spec_id)
        .with_max_memtable_rows(rows)
        .with_max_memtable_batches(batches)
        .with_max_unflushed_memtable_bytes(UNFLUSHED_BYTES)
        .with_stats_log_interval(None)
}
