//! The C shell, called as a stranger would.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    LfReply, LfRequest, lf_abi_version, lf_call, lf_cancel_fire, lf_cancel_free, lf_cancel_new,
    lf_reply_free,
};

/// Calls through the C symbols and frees the reply, twice.
fn call(engine: u64, cancel: u64, op: &str, json: &str) -> (i32, Value) {
    let request = LfRequest {
        engine,
        cancel,
        op: op.as_ptr(),
        op_len: op.len(),
        json: json.as_ptr(),
        json_len: json.len(),
        body: std::ptr::null(),
        body_len: 0,
    };
    let mut reply = LfReply {
        json: std::ptr::null_mut(),
        json_len: 0,
        body: std::ptr::null_mut(),
        body_len: 0,
    };
    // SAFETY: both live until the end of this function; the reply is ours.
    unsafe {
        let status = lf_call(&request, &mut reply);
        let text = std::slice::from_raw_parts(reply.json, reply.json_len);
        let value = serde_json::from_slice(text).unwrap();
        lf_reply_free(&mut reply);
        lf_reply_free(&mut reply);
        assert!(reply.json.is_null() && reply.body.is_null());
        (status, value)
    }
}

fn class(answer: &(i32, Value)) -> (i32, &str) {
    (answer.0, answer.1["class"].as_str().unwrap_or_default())
}

fn open() -> u64 {
    let (status, reply) = call(0, 0, "open", r#"{"threads": 2}"#);
    assert_eq!(status, 0, "{reply}");
    reply["engine"].as_u64().unwrap()
}

#[test]
fn the_version_of_the_abi_is_the_readmes() {
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&format!("ABI version: **{}**", lf_abi_version())));
}

#[test]
fn a_null_request_or_reply_is_refused() {
    // SAFETY: null is what is tested.
    unsafe {
        assert_eq!(lf_call(std::ptr::null(), std::ptr::null_mut()), 2);
        lf_reply_free(std::ptr::null_mut());
    }
}

#[test]
fn an_engine_is_opened_used_closed_and_then_refused() {
    let engine = open();
    let (status, stats) = call(engine, 0, "stats", "");
    assert_eq!(status, 0);
    assert_eq!(stats["stores"], json!(0));
    for _ in 0..2 {
        assert_eq!(call(engine, 0, "close", "{}").0, 0);
    }
    assert_eq!(class(&call(engine, 0, "stats", "{}")), (1, "closed"));
    assert_eq!(class(&call(0, 0, "stats", "{}")), (1, "closed"));
    assert_eq!(class(&call(u64::MAX, 0, "probe", "{}")), (1, "closed"));
}

#[test]
fn a_wrong_request_is_invalid() {
    let engine = open();
    for (op, json) in [
        ("no_such_thing", "{}"),
        ("probe", "not json"),
        ("probe", r#"{"targets": 3}"#),
        ("debug_sleep", "{}"),
    ] {
        assert_eq!(
            class(&call(engine, 0, op, json)),
            (1, "invalid"),
            "{op} {json}"
        );
    }
    assert_eq!(class(&call(engine, 987_654, "stats", "{}")), (1, "invalid"));
    call(engine, 0, "close", "{}");
}

#[test]
fn a_panic_becomes_an_error_and_the_engine_goes_on() {
    let engine = open();
    for on in [0, engine] {
        let answer = call(on, 0, "debug_panic", "{}");
        assert_eq!(class(&answer), (1, "panic"));
        let message = answer.1["message"].as_str().unwrap();
        assert!(message.contains("asked for"), "{message}");
    }
    assert_eq!(call(engine, 0, "debug_sleep", r#"{"ms": 1}"#).0, 0);
    call(engine, 0, "close", "{}");
}

#[test]
fn a_fired_token_ends_its_call_at_once() {
    let engine = open();
    let token = lf_cancel_new();
    assert_ne!(token, 0);
    let started = Instant::now();
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(engine, token, "debug_sleep", r#"{"ms": 600000}"#));
        lf_cancel_fire(token);
        waiting.join().unwrap()
    });
    assert_eq!(class(&answer), (1, "cancelled"));
    assert!(started.elapsed() < Duration::from_secs(30));
    // A token stays fired, until it is forgotten.
    let answer = call(engine, token, "debug_sleep", r#"{"ms": 600000}"#);
    assert_eq!(class(&answer), (1, "cancelled"));
    lf_cancel_free(token);
    lf_cancel_free(token);
    lf_cancel_fire(token);
    assert_eq!(class(&call(engine, token, "stats", "{}")), (1, "invalid"));
    call(engine, 0, "close", "{}");
}

#[test]
fn closing_an_engine_lets_calls_under_way_finish() {
    let engine = open();
    let slot = crate::engine::find(engine).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(engine, 0, "debug_sleep", r#"{"ms": 300}"#));
        let deadline = Instant::now() + Duration::from_secs(30);
        // The table's handle, ours, and that of the call.
        while std::sync::Arc::strong_count(&slot) < 3 {
            assert!(Instant::now() < deadline, "the call never began");
            std::thread::yield_now();
        }
        call(engine, 0, "close", "{}");
        assert_eq!(waiting.join().unwrap().0, 0);
    });
    assert_eq!(class(&call(engine, 0, "stats", "{}")), (1, "closed"));
}

#[test]
fn many_threads_call_one_engine() {
    let engine = open();
    std::thread::scope(|scope| {
        for thread in 0..64 {
            scope.spawn(move || {
                for _ in 0..20 {
                    let op = if thread % 8 == 0 {
                        "debug_panic"
                    } else {
                        "stats"
                    };
                    let answer = call(engine, 0, op, "{}");
                    assert_eq!(answer.0, i32::from(thread % 8 == 0), "{answer:?}");
                }
            });
        }
    });
    call(engine, 0, "close", "{}");
}
