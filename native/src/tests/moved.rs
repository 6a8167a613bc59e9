//! Probes: what they see, what they cost.

use lance::dataset::WriteMode;
use serde_json::json;
use uuid::Uuid;

use super::*;

#[tokio::test]
async fn an_untouched_table_is_unchanged_whichever_way_it_is_asked() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    for seen in BOTH {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        for ways in [LIGHT, DEEP, LISTING] {
            let answer = moved(&engine, &uri, &fingerprint, ways).await;
            assert_eq!(answer, "unchanged", "{seen:?} {ways:?}");
        }
    }
}

#[tokio::test]
async fn a_fingerprint_is_the_same_seen_as_disk_and_as_objects() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let disk = observe(&engine, &table.uri(Seen::AsDisk)).await;
    let objects = observe(&engine, &table.uri(Seen::AsObjects)).await;
    assert_eq!(disk["fingerprint"], objects["fingerprint"]);
    assert_ne!(disk["fingerprint"]["etag"], json!(""));
    assert_ne!(disk["fingerprint"]["shards"][0]["etag"], json!(""));
}

#[tokio::test]
async fn an_unchanged_table_with_one_shard_costs_the_promised_requests() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let uri = table.uri(Seen::AsObjects);
    let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
    let requests =
        |list, head| json!({"list": list, "head": head, "get": 0, "put": 0, "delete": 0});
    let before = engine.requests().snapshot();
    for (ways, expected) in [
        (LIGHT, requests(0, 2)),
        (DEEP, requests(1, 5)),
        (LISTING, requests(2, 3)),
        (RETIRED[0], requests(2, 2)),
        (RETIRED[1], requests(2, 2)),
    ] {
        let answer = probe(&engine, &uri, &fingerprint, ways).await;
        assert_eq!(answer["requests"], expected, "{ways:?}");
    }
    let after = engine.requests().snapshot();
    assert_eq!(
        (after.list - before.list, after.head - before.head),
        (7, 14)
    );
}

#[tokio::test]
async fn a_write_to_a_retired_table_is_seen_in_either_turn() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let uri = table.uri(Seen::AsObjects);
    let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
    table.flush(shard, 200, 5).await;
    for ways in RETIRED {
        assert_ne!(moved(&engine, &uri, &fingerprint, ways).await, "unchanged");
    }
    let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
    table.append(300, 5).await;
    for ways in RETIRED {
        assert_eq!(
            moved(&engine, &uri, &fingerprint, ways).await,
            "base version"
        );
    }
}

#[tokio::test]
async fn a_commit_to_the_base_is_seen_by_every_probe() {
    let (engine, table) = (engine(), Table::keyed().await);
    for seen in BOTH {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        table.append(50, 1).await;
        for ways in [LIGHT, DEEP, LISTING] {
            let answer = moved(&engine, &uri, &fingerprint, ways).await;
            assert_eq!(answer, "base version", "{seen:?} {ways:?}");
        }
    }
}

#[tokio::test]
async fn a_flush_that_moves_no_base_version_is_seen_by_every_probe() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    for seen in BOTH {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        table.flush(shard, 200, 5).await;
        let after = observe(&engine, &uri).await["fingerprint"].clone();
        assert_eq!(after["version"], fingerprint["version"]);
        for ways in [LIGHT, DEEP, LISTING] {
            let answer = moved(&engine, &uri, &fingerprint, ways).await;
            assert_eq!(
                answer,
                format!("shard {shard} manifest"),
                "{seen:?} {ways:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_unflushed_write_is_seen_on_disk_and_by_a_deep_probe() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let writer = table.writer(shard).await;
    for (seen, from) in [(Seen::AsDisk, 0), (Seen::AsObjects, 10)] {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        writer.put(vec![table.rows(from, 3)]).await.unwrap();
        assert_eq!(moved(&engine, &uri, &fingerprint, DEEP).await, "wal tail");
        let light = moved(&engine, &uri, &fingerprint, LIGHT).await;
        let expected = match seen {
            Seen::AsDisk => "wal tail",
            Seen::AsObjects => "unchanged",
        };
        assert_eq!(light, expected, "{seen:?}");
    }
    Box::pin(writer.close()).await.unwrap();
}

#[tokio::test]
async fn shards_that_appear_and_vanish_are_seen_on_disk_and_by_a_deep_probe() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.flush(Uuid::new_v4(), 100, 5).await;
    for seen in BOTH {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        let shard = Uuid::new_v4();
        table.flush(shard, 200, 5).await;
        let answer = moved(&engine, &uri, &fingerprint, DEEP).await;
        assert_eq!(answer, format!("new shard {shard}"), "{seen:?}");

        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        std::fs::remove_dir_all(format!("{}/_mem_wal/{shard}", table.path())).unwrap();
        let answer = moved(&engine, &uri, &fingerprint, DEEP).await;
        assert_eq!(answer, format!("shard gone {shard}"), "{seen:?}");
    }
}

#[tokio::test]
async fn a_table_recreated_with_the_same_version_numbers_is_seen() {
    let engine = engine();
    for seen in BOTH {
        let (table, shard) = (Table::keyed().await, Uuid::new_v4());
        table.flush(shard, 100, 5).await;
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        table.drop_all();
        table.create().await;
        table.flush(shard, 100, 5).await;
        let after = observe(&engine, &uri).await["fingerprint"].clone();
        for number in ["/version", "/shards/0/manifest", "/shards/0/wal_next"] {
            assert_eq!(after.pointer(number), fingerprint.pointer(number));
        }
        for ways in [DEEP, LISTING] {
            let answer = moved(&engine, &uri, &fingerprint, ways).await;
            assert_eq!(answer, "base etag", "{seen:?} {ways:?}");
        }
    }
}

#[tokio::test]
async fn a_shard_recreated_with_the_same_version_numbers_is_seen() {
    let engine = engine();
    for seen in BOTH {
        let (table, shard) = (Table::keyed().await, Uuid::new_v4());
        table.flush(shard, 100, 5).await;
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        std::fs::remove_dir_all(format!("{}/_mem_wal/{shard}", table.path())).unwrap();
        table.flush(shard, 100, 5).await;
        let answer = moved(&engine, &uri, &fingerprint, DEEP).await;
        assert_eq!(answer, format!("shard {shard} etag"), "{seen:?}");
    }
}

/// The false "unchanged" that a tag makes: the known head is held, the versions
/// after it were cleaned, so its successor is absent although the head moved on.
#[tokio::test]
async fn a_head_hidden_behind_a_hole_is_found_by_listing() {
    let (engine, table) = (engine(), Table::keyed().await);
    let uri = table.uri(Seen::AsObjects);
    let before = observe(&engine, &uri).await;
    assert_eq!(before["fingerprint"]["refs"], json!(false));
    let fingerprint = before["fingerprint"].clone();
    let known = fingerprint["version"].as_u64().unwrap();
    let dataset = table.dataset().await;
    dataset.tags().create("held", known).await.unwrap();
    for from in [50, 60, 70] {
        table.append(from, 1).await;
    }
    table.clean(&[known + 1, known + 2]).await;

    assert_eq!(moved(&engine, &uri, &fingerprint, DEEP).await, "unchanged");
    assert_eq!(
        moved(&engine, &uri, &fingerprint, LISTING).await,
        "base version"
    );
    let disk = moved(&engine, &table.uri(Seen::AsDisk), &fingerprint, LIGHT).await;
    assert_eq!(disk, "base version");

    for seen in BOTH {
        let after = observe(&engine, &table.uri(seen)).await;
        assert_eq!(after["fingerprint"]["version"], json!(known + 3));
        assert_eq!(after["fingerprint"]["gaps"], json!(true));
        assert_eq!(after["fingerprint"]["refs"], json!(true));
        assert_eq!(after["tags"], json!(["held"]));
    }
}

#[tokio::test]
async fn a_known_head_that_was_cleaned_is_seen_by_a_deep_probe() {
    let (engine, table) = (engine(), Table::keyed().await);
    let uri = table.uri(Seen::AsObjects);
    let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
    table.append(50, 1).await;
    table.append(60, 1).await;
    let known = fingerprint["version"].as_u64().unwrap();
    table.clean(&[known, known + 1]).await;
    assert_eq!(moved(&engine, &uri, &fingerprint, LIGHT).await, "unchanged");
    assert_eq!(moved(&engine, &uri, &fingerprint, DEEP).await, "base etag");
}

#[tokio::test]
async fn a_restored_version_is_seen() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(50, 1).await;
    for seen in BOTH {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        let mut old = table.dataset().await.checkout_version(2).await.unwrap();
        old.restore().await.unwrap();
        assert_eq!(
            moved(&engine, &uri, &fingerprint, LIGHT).await,
            "base version"
        );
    }
}

#[tokio::test]
async fn the_old_naming_of_manifests_is_probed_by_its_own_names() {
    let engine = engine();
    let table = Table::empty(false);
    let rows = RecordBatchIterator::new(vec![Ok(table.rows(0, 3))], table.schema());
    let params = WriteParams {
        enable_v2_manifest_paths: false,
        ..WriteParams::default()
    };
    Box::pin(Dataset::write(rows, &table.path(), Some(params)))
        .await
        .unwrap();
    for seen in BOTH {
        let uri = table.uri(seen);
        let fingerprint = observe(&engine, &uri).await["fingerprint"].clone();
        assert_eq!(fingerprint["naming"], json!("v1"));
        for ways in [LIGHT, DEEP, LISTING] {
            assert_eq!(moved(&engine, &uri, &fingerprint, ways).await, "unchanged");
        }
        table.commit(WriteMode::Append, 10, 1, None).await;
        for ways in [LIGHT, DEEP, LISTING] {
            assert_eq!(
                moved(&engine, &uri, &fingerprint, ways).await,
                "base version"
            );
        }
    }
}
