//! Writing a run's rows as fragments of the base that nothing names yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use futures::{StreamExt, TryStreamExt};
use lance::Dataset;
use lance::dataset::mem_wal::reconcile_batches;
use lance::dataset::transaction::Operation;
use lance::dataset::{InsertBuilder, WriteDestination, WriteMode};
use lance::deps::datafusion::error::DataFusionError;
use lance::deps::datafusion::execution::SendableRecordBatchStream;
use lance::deps::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use lance_table::format::Fragment;

use super::run::Run;
use super::winners::{Key, Rows, Winners};
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::generation::{self, Generation, schema_of};
use crate::tables::write_params;

/// Writes the rows that count, oldest generation first. Answers none when there
/// are none.
pub async fn stage(
    engine: &Engine,
    base: &Arc<Dataset>,
    run: &Run,
    key: &Key,
    winners: &Winners,
) -> Result<Vec<Fragment>, Fault> {
    if winners.count(run) == 0 {
        return Ok(Vec::new());
    }
    let params = write_params(engine, WriteMode::Append, &HashMap::new())?;
    let insert = InsertBuilder::new(WriteDestination::from(base.clone())).with_params(&params);
    let broken = Arc::new(Broken::default());
    let rows = rows(base, run, key, winners, broken.clone());
    let staged = Box::pin(insert.execute_uncommitted_stream(rows)).await;
    // The first thing that went wrong says more than what the writer made of it.
    if let Some(fault) = broken.take() {
        return Err(fault);
    }
    match staged?.operation {
        Operation::Append { fragments } => whole(fragments, winners.count(run)),
        other => Err(Fault::new(
            Class::Internal,
            format!("an append was staged as {}", other.name()),
        )),
    }
}

/// What was written, if it is as much as there was: after the commit the
/// generations go.
fn whole(fragments: Vec<Fragment>, rows: i64) -> Result<Vec<Fragment>, Fault> {
    let written: usize = fragments.iter().filter_map(|one| one.physical_rows).sum();
    match written as i64 == rows {
        true => Ok(fragments),
        false => Err(Fault::new(
            Class::Internal,
            format!("{written} rows were written of {rows}"),
        )),
    }
}

/// What broke the stream of rows, which itself can't carry our faults.
#[derive(Default)]
struct Broken(Mutex<Option<Fault>>);

impl Broken {
    fn put(&self, fault: Fault) -> DataFusionError {
        let told = DataFusionError::Execution(fault.message.clone());
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
        told
    }

    fn take(&self) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn rows(
    base: &Dataset,
    run: &Run,
    key: &Key,
    winners: &Winners,
    broken: Arc<Broken>,
) -> SendableRecordBatchStream {
    let schema = schema_of(base);
    let (target, columns) = (schema.clone(), key.columns.clone());
    let parts: Vec<(Generation, Rows)> = run
        .generations
        .iter()
        .cloned()
        .zip(winners.rows.iter().cloned())
        .collect();
    let batches = futures::stream::iter(parts)
        .then(move |(generation, rows)| {
            let part = Part {
                target: target.clone(),
                key: columns.clone(),
                rows,
                at: 0,
            };
            async move { Ok::<_, Fault>(part.batches(generation.rows().await?)) }
        })
        .try_flatten()
        .map_err(move |fault| broken.put(fault));
    Box::pin(RecordBatchStreamAdapter::new(schema, Box::pin(batches)))
}

/// One generation on its way into the base.
struct Part {
    target: SchemaRef,
    key: Vec<String>,
    rows: Rows,
    /// Rows that went by.
    at: usize,
}

impl Part {
    fn batches(
        mut self,
        read: lance::dataset::scanner::DatasetRecordBatchStream,
    ) -> impl futures::Stream<Item = Result<RecordBatch, Fault>> {
        read.map(move |batch| self.next(batch?))
            .try_filter(|batch| std::future::ready(batch.num_rows() > 0))
    }

    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch, Fault> {
        let wanted = self.wanted(&batch)?;
        self.at += batch.num_rows();
        let own = generation::without_marks(&batch)?;
        let kept = match wanted {
            Some(wanted) if wanted.true_count() < own.num_rows() => {
                filter_record_batch(&own, &wanted)?
            }
            _ => own,
        };
        let source = kept.schema();
        let mapped = reconcile_batches(&source, &self.target, &self.key, vec![kept])?;
        let mut mapped = mapped.into_iter();
        mapped
            .next()
            .ok_or_else(|| Fault::new(Class::Internal, "a batch was lost on its way"))
    }

    /// `None`: all of them.
    fn wanted(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>, Fault> {
        match &self.rows {
            Rows::All => match generation::deletes(batch) {
                Some(deletes) => Ok(Some(
                    deletes.values().iter().map(|one| Some(!one)).collect(),
                )),
                None => Ok(None),
            },
            Rows::These(rows) if self.at + batch.num_rows() <= rows.len() => {
                Ok(Some(rows.slice(self.at, batch.num_rows())))
            }
            Rows::These(rows) => Err(Fault::new(
                Class::Corrupt,
                format!("a generation of {} rows has more of them now", rows.len()),
            )),
        }
    }
}
