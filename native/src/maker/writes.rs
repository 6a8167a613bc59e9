//! What a worker does in one go.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use chrono::Utc;
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::mem_wal::DatasetMemWalExt;
use lance::dataset::{WriteDestination, WriteMode};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::rows::{self, Dice};
use super::schema::KEY;
use super::wal::{self, Put};
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::tables;

#[derive(Deserialize)]
pub struct MakeWrites {
    uri: String,
    shard: Option<String>,
    #[serde(default)]
    rows: usize,
    #[serde(default)]
    delete: usize,
    #[serde(default)]
    flush: bool,
    #[serde(default)]
    append: bool,
    #[serde(default)]
    seed: u64,
}

/// See `maker`.
pub async fn make_writes(
    engine: Arc<Engine>,
    request: MakeWrites,
    _: Bytes,
) -> Result<Reply, Fault> {
    write(&engine, &request)
        .await
        .map(Reply::json)
        .map_err(|fault| fault.at(&request.uri))
}

async fn write(engine: &Engine, request: &MakeWrites) -> Result<Value, Fault> {
    let dataset = engine.open(&request.uri, None).await?;
    let work = Work::new(&dataset, request).await?;
    let has_wal = dataset.mem_wal_index_details().await?.is_some();
    if has_wal && !request.append {
        through_wal(&dataset, request, work).await
    } else {
        into_base(engine, dataset, work).await
    }
}

/// What to write, independent of the way it takes.
struct Work {
    schema: SchemaRef,
    key: String,
    puts: Vec<String>,
    deletes: Vec<String>,
    dice: Dice,
}

impl Work {
    async fn new(dataset: &Dataset, request: &MakeWrites) -> Result<Self, Fault> {
        let key = key_column(dataset);
        let seed = request.seed;
        Ok(Self {
            schema: Arc::new(Schema::from(dataset.schema())),
            puts: (0..request.rows)
                .map(|row| format!("w{seed}-{row}"))
                .collect(),
            deletes: some_keys(dataset, &key, request.delete, seed).await?,
            key,
            dice: Dice::new(seed),
        })
    }

    fn rows(&mut self) -> Result<arrow_array::RecordBatch, Fault> {
        let now = Utc::now().timestamp_millis();
        rows::batch(&self.schema, &self.key, &self.puts, &mut self.dice, now)
    }
}

fn key_column(dataset: &Dataset) -> String {
    match dataset.schema().unenforced_primary_key().first() {
        Some(field) => field.name.clone(),
        None => KEY.to_owned(),
    }
}

/// Up to `number` keys of the base, others for another seed.
async fn some_keys(
    dataset: &Dataset,
    key: &str,
    number: usize,
    seed: u64,
) -> Result<Vec<String>, Fault> {
    if number == 0 {
        return Ok(Vec::new());
    }
    let rows = dataset.count_rows(None).await?;
    let offset = seed as usize % rows.saturating_sub(number).max(1);
    let mut scanner = dataset.scan();
    scanner.project(&[key])?;
    scanner.limit(Some(number as i64), Some(offset as i64))?;
    let mut found = Box::pin(scanner.try_into_stream()).await?;
    let mut keys = Vec::new();
    while let Some(batch) = found.try_next().await? {
        let column = batch.column(0).as_string_opt::<i32>().ok_or_else(|| {
            Fault::new(
                Class::Unsupported,
                format!("the key {key:?} is not a string"),
            )
        })?;
        keys.extend(column.iter().flatten().map(str::to_owned));
    }
    Ok(keys)
}

async fn through_wal(
    dataset: &Dataset,
    request: &MakeWrites,
    mut work: Work,
) -> Result<Value, Fault> {
    let worker = request.shard.as_deref().unwrap_or("default");
    let shard = Uuid::parse_str(worker).unwrap_or_else(|_| wal::shard_of(worker));
    let mut puts = Vec::new();
    if !work.puts.is_empty() {
        puts.push(Put::Rows(work.rows()?));
    }
    if !work.deletes.is_empty() {
        let keys = rows::key_batch(&work.schema, &work.key, &work.deletes)?;
        puts.push(Put::Delete(keys));
    }
    let epoch = match request.flush {
        true => {
            let generations = if puts.is_empty() { vec![] } else { vec![puts] };
            wal::write_generations(dataset, shard, generations).await?
        }
        false => wal::write_and_die(dataset, shard, puts).await?,
    };
    Ok(json!({
        "version": dataset.version_id(),
        "shard": shard.to_string(),
        "epoch": epoch,
        "keys": work.puts,
        "deleted": work.deletes,
    }))
}

async fn into_base(engine: &Engine, mut dataset: Dataset, mut work: Work) -> Result<Value, Fault> {
    if !work.puts.is_empty() {
        let batch = work.rows()?;
        let reader = RecordBatchIterator::new([Ok(batch)], work.schema.clone());
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(reader);
        let params = tables::write_params(engine, WriteMode::Append, &HashMap::new())?;
        let destination = WriteDestination::from(Arc::new(dataset));
        let transaction = tables::stage(destination.clone(), &params, reader).await?;
        dataset = tables::commit(engine, destination, transaction).await?;
    }
    if !work.deletes.is_empty() {
        Box::pin(dataset.delete(&is_one_of(&work.key, &work.deletes))).await?;
    }
    Ok(json!({
        "version": dataset.version_id(),
        "shard": null,
        "epoch": null,
        "keys": work.puts,
        "deleted": work.deletes,
    }))
}

/// As SQL.
fn is_one_of(key: &str, keys: &[String]) -> String {
    let quoted: Vec<String> = keys
        .iter()
        .map(|key| format!("'{}'", key.replace('\'', "''")))
        .collect();
    format!("`{key}` IN ({})", quoted.join(", "))
}
