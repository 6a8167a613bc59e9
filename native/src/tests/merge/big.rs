//! Much to merge in little memory. Each of these runs in a process of its own,
//! whose peak is the system's own figure.

use std::process::Command;

use arrow_array::LargeBinaryArray;
use lance::dataset::InsertBuilder;
use lance_index::mem_wal::SsTable;

use super::rows::edit_manifest;
use super::*;

const MIB: usize = 1 << 20;

/// Runs an ignored test of this file alone.
fn alone(name: &str) {
    let this = std::env::current_exe().unwrap();
    let name = format!("tests::merge::big::{name}");
    let done = Command::new(this)
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .env("LANCE_MEM_POOL_SIZE", "1000000000")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// Peak of this process, MiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

#[test]
#[cfg(target_os = "linux")]
fn wide_rows_are_merged_in_a_fraction_of_their_size() {
    alone("child_wide_rows");
}

#[test]
#[cfg(target_os = "linux")]
fn a_long_backlog_is_merged_in_passes_whose_memory_does_not_grow() {
    alone("child_backlog");
}

fn wide_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Table::empty(true).schema().field(0).clone(),
        Field::new("payload", DataType::LargeBinary, true),
    ]))
}

fn wide(key: &str, mib: usize, seed: u8) -> RecordBatch {
    let mut state = u64::from(seed) | 1;
    let payload: Vec<u8> = (0..mib * MIB / 8)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect();
    let payload = LargeBinaryArray::from(vec![payload.as_slice()]);
    let key = StringArray::from(vec![key]);
    RecordBatch::try_new(wide_schema(), vec![Arc::new(key), Arc::new(payload)]).unwrap()
}

/// A generation as a flush leaves it, written row by row: the making must not be
/// what takes the memory.
async fn add_generation(table: &Table, number: u64, rows: Vec<RecordBatch>) {
    let folder = format!("{number:08x}_gen_{number}");
    let uri = format!("{}/_mem_wal/{SHARD}/{folder}", table.path());
    let schema = rows[0].schema();
    let rows = RecordBatchIterator::new(rows.into_iter().map(Ok), schema);
    let params = WriteParams::default();
    Box::pin(
        InsertBuilder::new(uri.as_str())
            .with_params(&params)
            .execute_stream(rows),
    )
    .await
    .unwrap();
    edit_manifest(table, |manifest| {
        manifest
            .sstables
            .push(SsTable::unmeasured(number, folder.clone()));
        manifest.current_generation = number + 1;
    })
    .await;
}

/// A generation of 300 MB among small ones: 30 rows of 10 MB.
#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn child_wide_rows() {
    let engine = engine();
    let table = Table::empty(true);
    let first = RecordBatchIterator::new(vec![Ok(wide("base", 1, 1))], wide_schema());
    let mut dataset = Box::pin(Dataset::write(first, &table.path(), None))
        .await
        .unwrap();
    Box::pin(dataset.initialize_mem_wal().execute())
        .await
        .unwrap();
    Box::pin(table.writer(SHARD).await.close()).await.unwrap();
    add_generation(&table, 1, vec![wide("small", 1, 2)]).await;
    let uri = format!("{}/_mem_wal/{SHARD}/00000002_gen_2", table.path());
    for row in 0..30 {
        let key = format!("wide {row}");
        let batch = RecordBatchIterator::new(vec![Ok(wide(&key, 10, row))], wide_schema());
        let params = WriteParams {
            mode: if row == 0 {
                WriteMode::Create
            } else {
                WriteMode::Append
            },
            ..WriteParams::default()
        };
        Box::pin(Dataset::write(batch, &uri, Some(params)))
            .await
            .unwrap();
    }
    edit_manifest(&table, |manifest| {
        let folder = "00000002_gen_2".to_owned();
        manifest.sstables.push(SsTable::unmeasured(2, folder));
        manifest.current_generation = 3;
    })
    .await;
    add_generation(&table, 3, vec![wide("small", 1, 4), wide("base", 1, 5)]).await;
    let made = peak();
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["rows"], json!(32), "{merged}");
    assert_eq!(merged["left"], json!(0));
    assert_eq!(table.dataset().await.count_rows(None).await.unwrap(), 32);
    let (peak, bytes) = (peak(), merged["bytes"].as_i64().unwrap() as usize / MIB);
    println!("{made} MiB when made, {peak} MiB at the peak, {bytes} MiB merged");
    assert!(bytes > 300, "{bytes}");
    assert!(
        peak < made + 160,
        "{made} MiB before, {peak} MiB at the peak"
    );
}

#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn child_backlog() {
    const GENERATIONS: usize = 1500;
    let (engine, table) = (engine(), Table::of(&[("key 0", 0)]).await);
    let keys: Vec<String> = (0..100).map(|key| format!("key {key}")).collect();
    let put = |generation: usize| {
        let key = keys[generation * 7 % keys.len()].as_str();
        vec![Put::Rows(table.batch(&[(key, generation as i64)]))]
    };
    let dataset = table.dataset().await;
    let puts = (1..=GENERATIONS).map(put).collect();
    Box::pin(write_generations(&dataset, SHARD, puts))
        .await
        .unwrap();
    let mut passes = Vec::new();
    let request = MergeWal {
        max_generations: 100,
        ..request(&table.path(), SHARD)
    };
    let mut warm = 0;
    loop {
        let merged = merge_with(&engine, request.clone()).await;
        if merged["generations"] == json!(0) {
            break;
        }
        passes.push(merged["left"].as_i64().unwrap());
        if passes.len() == 3 {
            warm = peak();
        }
    }
    let expected: Vec<i64> = (0..15).rev().map(|pass| pass * 100).collect();
    assert_eq!(passes, expected);
    assert_eq!(table.mark(SHARD).await, 1500);
    let mut newest: Vec<String> = (0..100)
        .map(|key| {
            let last = (1..=GENERATIONS).rev().find(|one| one * 7 % 100 == key);
            format!("id=key {key} value={}", last.unwrap())
        })
        .collect();
    newest.sort();
    assert_eq!(table.base_rows().await, newest);
    let peak = peak();
    println!("{warm} MiB after three passes, {peak} MiB at the peak");
    assert!(
        peak < warm + 48,
        "{warm} MiB after three passes, {peak} MiB at the peak"
    );
}
