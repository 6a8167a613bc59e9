use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_write_with_flush_makes_a_generation_and_one_without_stays_in_the_wal() {
    let place = place();
    place
        .make("a", json!({ "kind": "rollout", "generations": 1 }))
        .await;
    let version = place.open("a").await.version_id();
    let flushed = place
        .write("a", json!({ "rows": 3, "flush": true, "seed": 1 }))
        .await;
    let shard = &place.shards("a").await[0];
    assert_eq!((shard.generations.len(), shard.tail.len()), (2, 0));
    let generation: Vec<_> = shard.generations[1]
        .rows
        .iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(json!(generation), flushed["keys"]);
    assert_eq!(
        (shard.manifest.writer_epoch, &flushed["epoch"]),
        (2, &json!(2))
    );
    let kept = place.write("a", json!({ "rows": 2, "seed": 2 })).await;
    let shard = &place.shards("a").await[0];
    assert_eq!(
        (shard.generations.len(), json!(shard.tail)),
        (2, kept["keys"].clone())
    );
    assert_eq!(
        place.open("a").await.version_id(),
        version,
        "the base did not move"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_named_shard_makes_it() {
    let place = place();
    place.make("a", json!({ "kind": "rollout" })).await;
    let written = place
        .write(
            "a",
            json!({ "rows": 1, "flush": true, "shard": "worker-9" }),
        )
        .await;
    assert_eq!(written["shard"], wal::shard_of("worker-9").to_string());
    let id = Uuid::new_v4().to_string();
    let written = place
        .write("a", json!({ "rows": 1, "flush": true, "shard": id }))
        .await;
    assert_eq!(written["shard"], id);
    assert_eq!(place.shards("a").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_go_the_way_the_rows_go() {
    let place = place();
    place.make("a", json!({ "kind": "rollout" })).await;
    place.make("t", json!({ "kind": "table" })).await;
    for name in ["a", "t"] {
        let before = place.live_keys(name).await;
        let json = json!({ "rows": 2, "delete": 2, "flush": true, "seed": 3 });
        let written = place.write(name, json).await;
        let listed = |field: &str| -> BTreeSet<String> {
            serde_json::from_value(written[field].clone()).unwrap()
        };
        assert_eq!(listed("deleted").len(), 2);
        let mut want: BTreeSet<String> = before.difference(&listed("deleted")).cloned().collect();
        want.extend(listed("keys"));
        assert_eq!(place.live_keys(name).await, want, "{name}");
    }
    assert_eq!(place.shards("a").await[0].generations.len(), 4);
    assert_eq!(
        place.open("t").await.version_id(),
        3,
        "an append and a delete"
    );
}
