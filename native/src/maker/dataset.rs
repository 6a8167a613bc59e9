//! One experiment.

use std::collections::HashMap;

use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use chrono::Utc;
use lance::Dataset;
use lance::dataset::mem_wal::DatasetMemWalExt;
use lance::dataset::{WriteDestination, WriteMode, WriteParams};
use serde::Serialize;
use serde_json::Value;

use super::plan::{Plan, ShardPlan, base_key};
use super::rows::{self, Dice};
use super::schema::KEY;
use super::wal::{self, Put};
use super::{Spec, age};
use crate::engine::Engine;
use crate::error::Fault;
use crate::tables;

/// What was made.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub version: u64,
    pub fragments: usize,
    pub base_rows: usize,
    pub generations: usize,
    pub pending_rows: usize,
    pub tombstones: usize,
    pub stranded_rows: usize,
    pub keys: usize,
    pub shards: Vec<String>,
}

impl From<Facts> for Value {
    fn from(facts: Facts) -> Self {
        serde_json::to_value(facts).unwrap_or_default()
    }
}

pub async fn make(engine: &Engine, uri: &str, spec: &Spec) -> Result<Facts, Fault> {
    let plan = Plan::new(spec)?;
    let written_at = Utc::now().timestamp_millis() - spec.age_ms as i64;
    let mut dataset = make_base(engine, uri, spec, written_at).await?;
    let mut shards = Vec::new();
    if spec.kind.has_wal() {
        Box::pin(dataset.initialize_mem_wal().unsharded().execute()).await?;
        for (number, shard) in plan.shards.iter().enumerate() {
            let id = wal::shard_of(&worker(number));
            fill_shard(&dataset, id, shard, spec, written_at).await?;
            shards.push(id.to_string());
        }
    }
    if spec.age_ms > 0 {
        age::make_older(engine, uri, spec.age_ms).await?;
    }
    Ok(Facts {
        version: dataset.version_id(),
        fragments: dataset.count_fragments(),
        base_rows: spec.fragments * spec.rows,
        generations: plan
            .shards
            .iter()
            .map(|shard| shard.generations.len())
            .sum(),
        pending_rows: plan.pending_rows(),
        tombstones: plan.tombstones(),
        stranded_rows: plan.stranded(),
        keys: plan.keys,
        shards,
    })
}

/// The first shard is an embedded store's.
fn worker(number: usize) -> String {
    match number {
        0 => "default".to_owned(),
        number => format!("worker-{number}"),
    }
}

/// The base table in one commit, `rows` rows to a fragment.
async fn make_base(
    engine: &Engine,
    uri: &str,
    spec: &Spec,
    written_at: i64,
) -> Result<Dataset, Fault> {
    let params = WriteParams {
        max_rows_per_file: spec.rows,
        ..tables::write_params(engine, WriteMode::Create, &HashMap::new())?
    };
    let destination = WriteDestination::from(uri);
    let transaction =
        tables::stage(destination.clone(), &params, base_rows(spec, written_at)).await?;
    tables::commit(engine, destination, transaction).await
}

/// Made while it is read: a big base never is in memory at once.
fn base_rows(spec: &Spec, written_at: i64) -> Box<dyn RecordBatchReader + Send> {
    let schema = spec.schema();
    let mut dice = Dice::new(spec.seed);
    let (fragments, rows) = (spec.fragments, spec.rows);
    let made = schema.clone();
    let batches = (0..fragments).map(move |fragment| {
        let keys: Vec<String> = (fragment * rows..(fragment + 1) * rows)
            .map(base_key)
            .collect();
        rows::batch(&made, KEY, &keys, &mut dice, written_at)
            .map_err(|fault| ArrowError::ComputeError(fault.message))
    });
    Box::new(RecordBatchIterator::new(batches, schema))
}

async fn fill_shard(
    dataset: &Dataset,
    id: uuid::Uuid,
    plan: &ShardPlan,
    spec: &Spec,
    written_at: i64,
) -> Result<(), Fault> {
    let schema = spec.schema();
    let mut dice = Dice::new(spec.seed ^ id.as_u64_pair().0);
    let mut rows = |keys: &[String]| rows::batch(&schema, KEY, keys, &mut dice, written_at);
    let mut generations = Vec::new();
    for keys in &plan.generations {
        generations.push(vec![Put::Rows(rows(keys)?)]);
    }
    if let (Some(last), false) = (generations.last_mut(), plan.tombstones.is_empty()) {
        let keys = rows::key_batch(&schema, KEY, &plan.tombstones)?;
        last.push(Put::Delete(keys));
    }
    if !generations.is_empty() || plan.stranded.is_empty() {
        wal::write_generations(dataset, id, generations).await?;
    }
    if !plan.stranded.is_empty() {
        wal::write_and_die(dataset, id, vec![Put::Rows(rows(&plan.stranded)?)]).await?;
    }
    Ok(())
}
