//! Fragments made bigger, one bounded pass at a time.

mod pass;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use lance::Dataset;
use lance::dataset::optimize::{
    CompactionOptions, CompactionPlan, CompactionPlanner, compact_files_with_planner,
    plan_compaction,
};
use serde::{Deserialize, Serialize};

use self::pass::{Budget, Source};
use crate::base::Size;
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::Fault;
use crate::maintain;
use crate::unbroken;

/// What a commit of ours says of itself.
const ACTION: &str = "compact";
/// Bytes of rows that are decoded at once, about.
const BATCH_BYTES: i64 = 8 << 20;
const BATCH_ROWS: i64 = 8192;
/// Bytes read ahead of the decoder. It must hold more than a batch.
const AHEAD_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
pub struct Compact {
    uri: String,
    #[serde(flatten)]
    wanted: Wanted,
    /// Transaction property that tells our commits.
    #[serde(default)]
    property: String,
}

/// Which fragments to make bigger. 0 leaves a value to us.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    pub target_rows: i64,
    #[serde(default)]
    pub max_source_fragments: usize,
    #[serde(default)]
    pub max_source_bytes: i64,
    #[serde(default)]
    pub min_fragments: usize,
}

/// See `lance.Compacted`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Compacted {
    version_before: u64,
    version: u64,
    tasks: i64,
    fragments_before: i64,
    fragments_after: i64,
    fragments_removed: i64,
    fragments_added: i64,
    rows: i64,
    bytes: i64,
    more: bool,
}

/// See README.md.
pub async fn compact(engine: Arc<Engine>, request: Compact, _: Bytes) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, async {
        let base = unbroken::open(&engine, uri).await?;
        pass_over(base, request.wanted, &request.property).await
    })
    .await
}

pub async fn pass_over(
    mut base: Dataset,
    wanted: Wanted,
    property: &str,
) -> Result<Compacted, Fault> {
    let mut options = options(&base, wanted).await?;
    if !property.is_empty() {
        let properties = HashMap::from([(property.to_owned(), ACTION.to_owned())]);
        options.transaction_properties = Some(Arc::new(properties));
    }
    let plan = plan(&base, wanted, &options).await?;
    let budget = Budget::new(wanted.max_source_fragments, wanted.max_source_bytes);
    let tasks = pass::within(plan.tasks.clone(), budget);
    let mut done = of_tasks(&base, &tasks);
    if tasks.is_empty() {
        return Ok(done);
    }
    let chosen = Chosen(CompactionPlan { tasks, ..plan });
    let metrics = Box::pin(compact_files_with_planner(&mut base, None, &chosen)).await?;
    done.version = base.version_id();
    done.fragments_after = base.count_fragments() as i64;
    done.fragments_removed = metrics.fragments_removed as i64;
    done.fragments_added = metrics.fragments_added as i64;
    options.transaction_properties = None;
    done.more = !self::plan(&base, wanted, &options).await?.tasks.is_empty();
    Ok(done)
}

/// The whole plan, as if nothing bounded a pass. Nothing is written.
pub async fn preview(base: &Dataset, wanted: Wanted) -> Result<Compacted, Fault> {
    let options = options(base, wanted).await?;
    let tasks = plan(base, wanted, &options).await?.tasks;
    let mut would = of_tasks(base, &tasks);
    would.fragments_removed = tasks.iter().map(|task| task.fragments.len() as i64).sum();
    // A task makes about one fragment of the size that was asked for.
    would.fragments_added = tasks.len() as i64;
    would.fragments_after += would.fragments_added - would.fragments_removed;
    Ok(would)
}

/// Lance's own plan, which is what tells whether there is something to do: small
/// fragments that have no neighbours of their kind are not mergeable, however
/// many there are. Empty when fewer fragments are in it than asked for.
async fn plan(
    base: &Dataset,
    wanted: Wanted,
    options: &CompactionOptions,
) -> Result<CompactionPlan, Fault> {
    let mut plan = Box::pin(plan_compaction(base, options)).await?;
    let sources: usize = plan.tasks.iter().map(|task| task.fragments.len()).sum();
    if sources < wanted.min_fragments {
        plan.tasks.clear();
    }
    Ok(plan)
}

/// No budget is given to Lance: it would stop before a task that is bigger, and
/// so for ever. `pass::within` makes such tasks smaller instead.
async fn options(base: &Dataset, wanted: Wanted) -> Result<CompactionOptions, Fault> {
    let mut options = CompactionOptions::default();
    if let Ok(rows @ 1..) = usize::try_from(wanted.target_rows) {
        options.target_rows_per_fragment = rows;
    }
    let size = Size::of(base, 0).await?;
    let rows = (size.rows + size.deleted_rows).max(1);
    let each = match size.bytes {
        // Not in the manifest: few rows at a time, whatever they are.
        ..0 => BATCH_BYTES / 64,
        bytes => (bytes / rows).max(1),
    };
    options.batch_size = Some((BATCH_BYTES / each).clamp(1, BATCH_ROWS) as usize);
    options.io_buffer_size = Some(AHEAD_BYTES.max(4 * each as u64));
    // One task after the other: memory is what bounds a pass.
    options.num_threads = Some(1);
    Ok(options)
}

fn of_tasks(base: &Dataset, tasks: &[lance::dataset::optimize::TaskData]) -> Compacted {
    let sources = tasks.iter().flat_map(|task| &task.fragments);
    let source = sources.map(Source::of).fold(Source::none(), Source::and);
    let (version, fragments) = (base.version_id(), base.count_fragments() as i64);
    Compacted {
        version_before: version,
        version,
        tasks: tasks.len() as i64,
        fragments_before: fragments,
        fragments_after: fragments,
        rows: source.rows,
        bytes: source.bytes.unwrap_or(-1),
        ..Compacted::default()
    }
}

/// A plan that was made already.
struct Chosen(CompactionPlan);

#[async_trait]
impl CompactionPlanner for Chosen {
    async fn plan(&self, _: &Dataset) -> lance::Result<CompactionPlan> {
        Ok(self.0.clone())
    }
}
