//! Late attempts at tables whose past is gone: a cleanup took what others committed
//! meanwhile, or the table was dropped and made anew. Lance looks at the commits
//! that it finds.

use lance::index::DatasetIndexExt;
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;

use super::*;
use crate::merge::{Outcome, Prepared, Step};

const BASE: [(&str, i64); 2] = [("a", 0), ("k", 0)];
const WRITES: [&[Write]; 3] = [&[Row("a", 1)], &[Row("b", 2)], &[Row("c", 3)]];

async fn prepared(pass: &mut Pass<'_>) -> Box<Prepared> {
    let look = pass.look().await.unwrap();
    match Box::pin(pass.prepare(&look)).await.unwrap() {
        Step::Ready(prepared) => prepared,
        _ => panic!("nothing to commit"),
    }
}

/// Neither lands nor hurts.
async fn is_lost(engine: &Engine, table: &Table, prepared: Box<Prepared>) {
    match prepared.commit(engine, &table.path()).await {
        Ok(Outcome::Landed(version)) => panic!("it landed as {version}"),
        Ok(Outcome::Lost(_)) => {}
        Err(fault) => assert_eq!(fault.class, crate::error::Class::Conflict, "{fault}"),
    }
}

/// A commit that contradicts no other.
async fn build_index(table: &Table) {
    let mut dataset = table.dataset().await;
    let params = ScalarIndexParams::default();
    Box::pin(dataset.create_index(&["value"], IndexType::BTree, None, &params, true))
        .await
        .unwrap();
}

#[tokio::test]
async fn another_merge_that_was_cleaned_up() {
    for keyed in [true, false] {
        let (engine, table) = (engine(), Table::with(keyed, &BASE).await);
        table.generations(SHARD, &WRITES).await;
        let mut late = pass(&engine, request(&table.path(), SHARD));
        let attempt = prepared(&mut late).await;
        let read = table.dataset().await.version_id();
        let two = MergeWal {
            max_generations: 2,
            ..request(&table.path(), SHARD)
        };
        merge_with(&engine, two).await;
        build_index(&table).await;
        table.clean(&[read + 1]).await;
        let before = table.base_rows().await;
        is_lost(&engine, &table, attempt).await;
        assert_eq!(table.base_rows().await, before, "keyed: {keyed}");
        late.make().await.unwrap();
        let mut after = before;
        after.push("id=c value=3".to_owned());
        after.sort();
        assert_eq!(table.base_rows().await, after, "keyed: {keyed}");
    }
}

/// The row that the attempt replaces is in another fragment by now.
#[tokio::test]
async fn a_compaction_that_was_cleaned_up() {
    use crate::compact::{Wanted, pass_over};
    let (engine, table) = (engine(), Table::of(&BASE).await);
    table.write(WriteMode::Append, &[("l", 0)]).await;
    table.generations(SHARD, &WRITES).await;
    let mut late = pass(&engine, request(&table.path(), SHARD));
    let attempt = prepared(&mut late).await;
    let read = table.dataset().await.version_id();
    let base = crate::unbroken::open(&engine, &table.path()).await.unwrap();
    pass_over(base, Wanted::default(), "").await.unwrap();
    build_index(&table).await;
    let head = table.dataset().await.version_id();
    table.clean(&(read + 1..head).collect::<Vec<_>>()).await;
    is_lost(&engine, &table, attempt).await;
    late.make().await.unwrap();
    let rows = [
        "a value=1",
        "b value=2",
        "c value=3",
        "k value=0",
        "l value=0",
    ];
    assert_eq!(table.base_rows().await, rows.map(|row| format!("id={row}")));
}

#[tokio::test]
async fn a_table_that_was_dropped_and_made_anew() {
    // Its head is below, at and above the version that was read, and the manifest of
    // that is as long as it was, or shorter.
    for (commits, longer) in [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (3, 1)] {
        let (engine, table) = (engine(), Table::of(&BASE).await);
        table.write(WriteMode::Append, &[("l", 0)]).await;
        for _ in 0..longer {
            let mut dataset = table.dataset().await;
            let long = "so that its manifest is longer".repeat(9);
            dataset
                .update_config([("lancefleet.test", long.as_str())])
                .await
                .unwrap();
        }
        table.generations(SHARD, &WRITES).await;
        let mut late = pass(&engine, request(&table.path(), SHARD));
        let attempt = prepared(&mut late).await;
        table.drop_all();
        let mut dataset = table.write(WriteMode::Create, &[("new", 0)]).await;
        Box::pin(dataset.initialize_mem_wal().execute())
            .await
            .unwrap();
        let mut expected = vec!["id=new value=0".to_owned()];
        for _ in 0..commits {
            table.write(WriteMode::Append, &[("newer", 0)]).await;
            expected.push("id=newer value=0".to_owned());
        }
        is_lost(&engine, &table, attempt).await;
        assert_eq!(table.base_rows().await, expected, "{commits}");
        late.make().await.unwrap();
        assert_eq!(table.base_rows().await, expected, "{commits}");
    }
}
