//! Writing through a MemWAL as workers do: claim the shard, put, leave.

use std::time::Duration;

use arrow_array::RecordBatch;
use lance::Dataset;
use lance::dataset::mem_wal::{
    BatchDurableWatcher, DatasetMemWalExt, ShardWriter, ShardWriterConfig,
};
use uuid::Uuid;

use crate::error::Fault;

/// The id lance-context gives the shard of a worker: a name-based uuid. Its
/// embedded stores call themselves `default`.
pub fn shard_of(worker: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, worker.as_bytes())
}

/// One write.
pub enum Put {
    Rows(RecordBatch),
    /// Rows that carry only keys.
    Delete(RecordBatch),
}

/// A worker that ends well: each element of `generations` becomes one
/// generation, and what a predecessor left in the WAL becomes part of the
/// first. Answers the epoch it had claimed.
pub async fn write_generations(
    dataset: &Dataset,
    shard: Uuid,
    generations: Vec<Vec<Put>>,
) -> Result<u64, Fault> {
    // The flush itself writes the WAL entry, and so knows what it covers. An
    // entry written before it by the clock may be acknowledged a moment before
    // the writer remembers its position: then the flush cursor lags behind it.
    let config = config(generations.iter().flatten())
        .with_max_wal_flush_interval(Duration::from_secs(3600))
        .with_max_wal_buffer_size(usize::MAX);
    let writer = Box::pin(dataset.mem_wal_writer(shard, config)).await?;
    let epoch = writer.epoch();
    match flush_each(&writer, generations).await {
        Ok(()) => Box::pin(writer.close()).await?,
        Err(fault) => {
            // A writer that is only dropped leaves its tasks behind.
            writer.abort().await?;
            return Err(fault);
        }
    }
    Ok(epoch)
}

async fn flush_each(writer: &ShardWriter, generations: Vec<Vec<Put>>) -> Result<(), Fault> {
    for puts in generations {
        for put in puts {
            if let Some(mut watcher) = start(writer, put).await? {
                watcher.wait_indexed().await?;
            }
        }
        writer.force_freeze_active().await?.wait().await?;
    }
    Ok(())
}

/// A worker that is killed: its puts are acknowledged, one WAL entry each, and
/// in no generation. Answers the epoch it had claimed.
pub async fn write_and_die(dataset: &Dataset, shard: Uuid, puts: Vec<Put>) -> Result<u64, Fault> {
    let config = config(puts.iter()).with_max_wal_flush_interval(Duration::from_millis(1));
    let writer = Box::pin(dataset.mem_wal_writer(shard, config)).await?;
    let epoch = writer.epoch();
    let outcome = acknowledge_each(&writer, puts).await;
    writer.abort().await?;
    outcome.map(|()| epoch)
}

async fn acknowledge_each(writer: &ShardWriter, puts: Vec<Put>) -> Result<(), Fault> {
    for put in puts {
        if let Some(mut watcher) = start(writer, put).await? {
            watcher.wait().await?;
        }
    }
    Ok(())
}

async fn start(writer: &ShardWriter, put: Put) -> Result<Option<BatchDurableWatcher>, Fault> {
    let (_, watcher) = match put {
        Put::Rows(rows) => writer.put_no_wait(vec![rows]).await?,
        Put::Delete(keys) => writer.delete_no_wait(vec![keys]).await?,
    };
    Ok(watcher)
}

/// Generations end where we say, not where a limit is reached.
fn config<'a>(puts: impl Iterator<Item = &'a Put> + Clone) -> ShardWriterConfig {
    let batches = puts.clone().count();
    let rows: usize = puts
        .map(|(Put::Rows(rows) | Put::Delete(rows))| rows.num_rows())
        .sum();
    ShardWriterConfig::default()
        .with_durable_write(true)
        .with_max_memtable_rows(rows + 1024)
        .with_max_memtable_batches(batches + 64)
        .with_max_memtable_size(1 << 30)
        .with_max_unflushed_memtable_bytes(3 << 30)
        .with_stats_log_interval(None)
}
