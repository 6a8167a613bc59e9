//! Data for demos, tests and benchmarks: experiments as real writers leave
//! them, made by the same writer that real ones use.
//!
//! ### make_dataset `{uri, kind, keyless?, shards?, generations?, rows?, fragments?, tombstones?, stranded?, age_ms?, seed?}`
//! One new experiment. `kind`: `rollout` and `generic` have lance-context's
//! columns, a primary key (unless `keyless`: then nothing is updated, and every row
//! counts) and a MemWAL; `table` is a plain table. `rows` is the
//! size of each base fragment and of each generation; a fifth of a
//! generation's rows update keys of the base. `tombstones` and `stranded` are
//! numbers of rows for each shard: keys deleted in its last generation, and
//! rows acknowledged in its WAL that no generation has (true: 3). Answers what
//! is there: `{version, fragments, base_rows, generations, pending_rows,
//! tombstones, stranded_rows, keys, shards:[id]}`; `keys` counts the live keys
//! of base and generations. lance-context 0.6.7 reads and writes these, with one
//! exception: the Lance inside of it can't replay stranded rows of this one.
//!
//! With `age_ms` everything looks that old: commit times everywhere, file times
//! on local disk. Object stores stamp objects themselves; there only the
//! manifests tell.
//!
//! ### make_fleet `{items:[{uri, template}], templates:[spec], dir?, concurrency?}`
//! Many experiments. A spec is a make_dataset request without its uri. On local
//! disk each template is made once, below `dir` (default: the system's folder
//! for temporary files), and copied. Answers `{made, templates:[facts]}`.
//!
//! ### make_writes `{uri, shard?, rows?, delete?, flush?, append?, seed?}`
//! What a worker does in one go. New rows have keys made from `seed`, so the
//! same seed again updates them; `delete` removes that many keys of the base.
//! They go through the MemWAL: with `flush` into a generation, without it they
//! stay in the WAL, as after a crash. `append`, or a table without MemWAL:
//! straight into the base. `shard` is a uuid or the name of a worker. Answers
//! `{version, shard, epoch, keys:[..], deleted:[..]}`.

mod age;
mod dataset;
mod fleet;
mod plan;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod wal;
mod writes;

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::Fault;

pub use fleet::make_fleet;
#[cfg(test)]
pub(crate) use wal::{Put, write_and_die, write_generations};
pub use writes::make_writes;

/// What an experiment is like.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Spec {
    kind: schema::Kind,
    keyless: bool,
    shards: usize,
    generations: usize,
    rows: usize,
    fragments: usize,
    tombstones: Number,
    stranded: Number,
    age_ms: u64,
    seed: u64,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            kind: schema::Kind::Rollout,
            keyless: false,
            shards: 1,
            generations: 3,
            rows: 5,
            fragments: 1,
            tombstones: Number::Exactly(0),
            stranded: Number::Exactly(0),
            age_ms: 0,
            seed: 0,
        }
    }
}

impl Spec {
    fn schema(&self) -> SchemaRef {
        match self.keyless {
            true => schema::without_key(&self.kind.schema()),
            false => self.kind.schema(),
        }
    }
}

/// A number, or just "some".
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Exactly(usize),
    Any(bool),
}

impl Number {
    fn get(self) -> usize {
        match self {
            Self::Exactly(number) => number,
            Self::Any(true) => 3,
            Self::Any(false) => 0,
        }
    }
}

#[derive(Deserialize)]
pub struct MakeDataset {
    uri: String,
    #[serde(flatten)]
    spec: Spec,
}

/// See the top of this file.
pub async fn make_dataset(
    engine: Arc<Engine>,
    request: MakeDataset,
    _: Bytes,
) -> Result<Reply, Fault> {
    dataset::make(&engine, &request.uri, &request.spec)
        .await
        .map(|facts| Reply::json(Value::from(facts)))
        .map_err(|fault| fault.at(&request.uri))
}
