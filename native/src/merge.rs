//! Taking generations of one shard over into the base table: one bounded pass.
//! The protocol, and what makes it safe for two to try at once and to die
//! anywhere, is told in README.md ("How a merge is done").

mod base_rows;
mod commit;
mod drain;
mod fit;
mod look;
mod pass;
mod run;
mod stage;
mod winners;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::Fault;
use crate::maintain::{self, Refusal};

pub use look::{DECIDE, ERASED, Look, RESTARTED};
pub use pass::Pass;
#[cfg(test)]
pub use {
    commit::{Outcome, Prepared},
    pass::Step,
};

use run::{Limits, Run};
use winners::Key;

/// What a test of staging alone takes.
#[cfg(test)]
pub mod staging {
    pub use super::run::{Limits, Run};
    pub use super::stage::stage;
    pub use super::winners::{Key, Winners};
}

/// See `lance.MergeSpec`.
#[derive(Clone, Debug, Deserialize)]
pub struct MergeWal {
    pub uri: String,
    pub shard: Uuid,
    #[serde(default)]
    pub remembered_mark: u64,
    #[serde(default)]
    pub max_generations: usize,
    #[serde(default)]
    pub max_bytes: i64,
    /// Name of the transaction property that says whose commit it is.
    #[serde(default)]
    pub property: String,
}

/// See `lance.Merged`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    pub shard: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    pub from: u64,
    pub to: u64,
    pub generations: i64,
    pub rows: i64,
    pub deletes: i64,
    pub bytes: i64,
    pub drained: i64,
    pub version_before: u64,
    pub version: u64,
    pub mark_before: u64,
    pub mark: u64,
    pub covered_through: u64,
    pub left: i64,
}

/// Why a pass over this shard would be refused now; `remembered`: see `MergeWal`.
pub async fn refusal(
    engine: &Engine,
    uri: &str,
    shard: Uuid,
    remembered: u64,
) -> Result<Option<Refusal>, Fault> {
    let look = Look::new(engine, uri, shard).await?;
    if let Some(refused) = look.refusal(engine, uri, remembered).await? {
        return Ok(Some(refused));
    }
    let key = Key::of(look.base.schema());
    let run = Run::open(engine, uri, &look, &key.columns, Limits::new(1, 0)).await?;
    Ok(run.err())
}

/// See README.md.
pub async fn merge_wal(engine: Arc<Engine>, request: MergeWal, _: Bytes) -> Result<Reply, Fault> {
    let uri = request.uri.clone();
    let mut pass = Pass::new(&engine, request);
    maintain::answer(&uri, pass.make()).await
}
