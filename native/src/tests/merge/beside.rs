//! A merge beside a live writer: entries that are in no generation yet, and what
//! the merge may conclude of them. Entries name no generations here, as those of
//! writers before Lance 14.

use lance_index::mem_wal::SsTable;

use super::rows::edit_manifest;
use super::*;
use crate::maker::write_and_die;
use crate::merge::{Look, Outcome, Step};

/// A generation that is merged, and puts that are in none: one entry each.
async fn with_tail(base: &[(&str, i64)], puts: &[Write]) -> Table {
    let table = Table::of(base).await;
    table.generations(SHARD, &[&[Row("a", 1)]]).await;
    put(&table, puts).await;
    table
}

async fn put(table: &Table, puts: &[Write]) {
    let dataset = table.dataset().await;
    let puts = table.puts(puts);
    Box::pin(write_and_die(&dataset, SHARD, puts))
        .await
        .unwrap();
    table.forget_generations(SHARD);
}

async fn cursor(table: &Table) -> u64 {
    let manifest = table.manifest(SHARD).await;
    manifest.replay_after_wal_entry_position
}

/// The writer's frozen generation 2 comes to the manifest at last. The cursor stays
/// where it is: the writer never moves it back.
async fn flush_late(table: &Table, writes: &[Write]) {
    table.generations(OTHER, &[writes]).await;
    let made = manifest(&table.dataset().await, OTHER).await.unwrap();
    let path = made.sstables[0].path.clone();
    let folder = |shard: Uuid| format!("{}/_mem_wal/{shard}", table.path());
    let from = format!("{}/{path}", folder(OTHER));
    std::fs::rename(from, format!("{}/{path}", folder(SHARD))).unwrap();
    std::fs::remove_dir_all(folder(OTHER)).unwrap();
    edit_manifest(table, |manifest| {
        manifest.sstables.push(SsTable::unmeasured(2, path.clone()));
        manifest.current_generation = 3;
    })
    .await;
}

/// The writer is killed, its successor replays what is past the cursor, and all of
/// it is merged.
async fn die_and_come_back(engine: &Arc<Engine>, table: &Table) {
    Box::pin(table.writer(SHARD).await.close()).await.unwrap();
    merge_all(engine, request(&table.path(), SHARD)).await;
}

#[tokio::test]
async fn a_delete_is_not_in_the_base_while_its_row_waits_in_a_generation_to_come() {
    let (engine, table) = (engine(), with_tail(&[], &[Row("x", 1), Delete("x")]).await);
    let before = cursor(&table).await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["covered_through"], json!(before), "{merged}");
    assert_eq!(cursor(&table).await, before);
    flush_late(&table, &[Row("x", 1)]).await;
    die_and_come_back(&engine, &table).await;
    assert_eq!(table.base_rows().await, ["id=a value=1"]);
}

#[tokio::test]
async fn a_value_that_came_back_is_not_in_the_base_while_the_one_between_is_to_come() {
    let tail = [Row("x", 8), Row("x", 7)];
    let (engine, table) = (engine(), with_tail(&[("x", 7)], &tail).await);
    let before = cursor(&table).await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["covered_through"], json!(before), "{merged}");
    flush_late(&table, &[Row("x", 8)]).await;
    die_and_come_back(&engine, &table).await;
    assert_eq!(table.base_rows().await, ["id=a value=1", "id=x value=7"]);
}

/// The first of the entries is in the base by itself. Stepped over, it would no
/// longer say that the delete is another state than the one to come.
#[tokio::test]
async fn an_entry_is_not_stepped_over_without_the_one_that_has_another_state_of_its_key() {
    let tail = [Row("x", 7), Delete("x"), Row("y", 1)];
    let (engine, table) = (engine(), with_tail(&[("x", 7), ("y", 1)], &tail).await);
    let before = cursor(&table).await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["covered_through"], json!(before), "{merged}");
}

#[tokio::test]
async fn equal_states_of_a_key_are_stepped_over_together() {
    let tail = [Row("x", 7), Row("x", 7), Row("y", 1)];
    let (engine, table) = (engine(), with_tail(&[("x", 7), ("y", 1)], &tail).await);
    // The claim of the writer that died is an entry too.
    let end = cursor(&table).await + 4;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["covered_through"], json!(end), "{merged}");
}

/// Looked at, prepared and committed; not drained.
async fn commit(engine: &Engine, table: &Table, pass: &mut Pass<'_>, look: &Look) -> u64 {
    let Step::Ready(prepared) = Box::pin(pass.prepare(look)).await.unwrap() else {
        panic!("nothing to commit");
    };
    match prepared.commit(engine, &table.path()).await.unwrap() {
        Outcome::Landed(version) => version,
        Outcome::Lost(fault) => panic!("{fault}"),
    }
}

#[tokio::test]
async fn an_entry_that_came_after_the_look_is_not_judged() {
    let (engine, table) = (engine(), with_tail(&[("x", 7)], &[]).await);
    let mut pass = pass(&engine, request(&table.path(), SHARD));
    let look = pass.look().await.unwrap();
    let before = cursor(&table).await;
    put(&table, &[Row("x", 7)]).await;
    let version = commit(&engine, &table, &mut pass, &look).await;
    pass.finish(&look, Some(version)).await.unwrap();
    assert_eq!(cursor(&table).await, before);
}

#[tokio::test]
async fn what_was_judged_is_judged_again_when_the_base_moved() {
    let (engine, table) = (engine(), with_tail(&[("x", 7)], &[Row("x", 7)]).await);
    let before = cursor(&table).await;
    let mut pass = pass(&engine, request(&table.path(), SHARD));
    let look = pass.look().await.unwrap();
    Box::pin(pass.prepare(&look)).await.unwrap();
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("id = 'x'")).await.unwrap();
    let look = pass.look().await.unwrap();
    let version = commit(&engine, &table, &mut pass, &look).await;
    pass.finish(&look, Some(version)).await.unwrap();
    assert_eq!(cursor(&table).await, before);
}

#[tokio::test]
async fn a_drain_leaves_the_cursor_alone_when_a_generation_was_flushed_since() {
    let (engine, table) = (engine(), with_tail(&[("x", 7)], &[Row("x", 7)]).await);
    let before = cursor(&table).await;
    let mut pass = pass(&engine, request(&table.path(), SHARD));
    let look = pass.look().await.unwrap();
    let version = commit(&engine, &table, &mut pass, &look).await;
    flush_late(&table, &[Row("x", 8)]).await;
    let merged = pass.finish(&look, Some(version)).await.unwrap();
    assert_eq!(merged.drained, 1);
    assert_eq!(cursor(&table).await, before);
}

/// Its generation is merged and not drained, the base went on, and then the writer
/// put the same row again: that is not the row of the generation.
#[tokio::test]
async fn an_entry_that_is_younger_than_a_merged_generation_is_not_in_it() {
    let (engine, table) = (engine(), with_tail(&[], &[]).await);
    let mut pass = pass(&engine, request(&table.path(), SHARD));
    let look = pass.look().await.unwrap();
    commit(&engine, &table, &mut pass, &look).await;
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("id = 'a'")).await.unwrap();
    put(&table, &[Row("a", 1)]).await;
    let before = cursor(&table).await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["drained"], json!(1), "{merged}");
    assert_eq!(cursor(&table).await, before);
    die_and_come_back(&engine, &table).await;
    assert_eq!(table.base_rows().await, ["id=a value=1"]);
}
